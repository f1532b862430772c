"""Disks that forget, file systems without room for a name, stopped processes, clocks that jump."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ledger import (
    Ledger,
    LedgerOptions,
    LedgerReadOnlyError,
    LedgerWriteError,
    OsFiles,
    Position,
    verify,
)
from tests.crash.harness import assert_sound, code, contents, dice, serving, structured
from tests.support.ledgers import (
    SMALL,
    START_US,
    CountingIds,
    TickingClock,
    batch,
    content_of,
    open_ledger,
    open_sealer,
)
from tests.support.peer import call

MIB = 1 << 20
STOPS = 12
BATCH = 100
YEAR_US = 365 * 86_400_000_000


def _do(*command: object) -> None:
    """Run a command of the system; without the right or the tool the test is skipped."""
    try:
        subprocess.run([*map(str, command)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"{command[0]} does not work here: {error}")


# ---------------------------------------------------------------------------- a disk that forgets


@pytest.fixture
def forgetful(tmp_path: Path) -> Iterator[tuple[Path, Path, Path]]:
    """Yield a file system on a loop device, its image, and ballast beside it.

    The image is larger than the disk that it is on: a sync fails once that is full, and the system
    then drops the pages that it could not write, so that the next sync succeeds.
    """
    under, mounted = tmp_path / "under", tmp_path / "mounted"
    under.mkdir()
    mounted.mkdir()
    with ExitStack() as undo:
        _do("mount", "-t", "tmpfs", "-o", f"size={24 * MIB}", "tmpfs", under)
        undo.callback(subprocess.run, ["umount", "--lazy", str(under)], check=False)
        image, ballast = under / "image", under / "ballast"
        with image.open("wb") as file:
            file.truncate(64 * MIB)
        _do("mkfs.ext4", "-q", "-E", "lazy_itable_init=0", "-J", "size=4", image)
        ballast.write_bytes(bytes(6 * MIB))
        _do("mount", "-o", "loop", image, mounted)
        undo.callback(
            subprocess.run, ["umount", "--lazy", str(mounted)], check=False, capture_output=True
        )
        yield mounted, image, ballast


def _open(root: Path, options: LedgerOptions | None = None) -> Ledger:
    return Ledger.open(
        root, clock=TickingClock(), ids=CountingIds(), options=options, files=OsFiles()
    )


def _append(ledger: Ledger, text: str, known: Position | None) -> Position:
    with ledger.lock(1) as writer:
        list(writer.catch_up(known))
        group = writer.group()
        group.add(batch(text))
        return group.commit()


@pytest.mark.crash
def test_a_disk_whose_second_sync_succeeds_loses_nothing_that_was_acknowledged(
    forgetful: tuple[Path, Path, Path],
) -> None:
    mounted, image, ballast = forgetful
    ledger = _open(mounted / "ledger")
    known: Position | None = None
    acknowledged: list[str] = []
    refused = 0
    for number in range(40):
        text = f"{number} {os.urandom(MIB // 2).hex()}"
        try:
            known = _append(ledger, text, known)
        except (LedgerWriteError, LedgerReadOnlyError):
            refused += 1
            if refused == 3:
                break
        else:
            acknowledged.append(text)
    ledger.close()
    assert refused, "the disk never was full"
    assert acknowledged

    # What is still in memory is no proof: only what a fresh mount shows was on the disk.
    ballast.unlink()
    _do("umount", mounted)
    _do("mount", "-o", "loop", image, mounted)
    again = _open(mounted / "ledger")
    end = _append(again, "after", known)
    found = [content_of(record) for record in again.read(Position.start)]
    again.close()

    assert found == [*acknowledged, "after"]
    assert verify(mounted / "ledger", end).problems == []


# ---------------------------------------------------------------------------- no room for a name


@pytest.mark.crash
def test_a_file_system_without_inodes_refuses_or_goes_on_and_loses_nothing(
    tmp_path: Path,
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    _do("mount", "-t", "tmpfs", "-o", "size=4m,nr_inodes=16", "tmpfs", disk)
    try:
        placeholder = disk / "placeholder"
        placeholder.write_bytes(b"")
        ledger = _open(disk / "ledger", SMALL)
        acknowledged, refusals = [], []
        for number in range(12):
            try:
                _append(ledger, f"note {number}", None)
            except LedgerWriteError as error:
                refusals.append(error.reason)
            else:
                acknowledged.append(f"note {number}")
        assert refusals or ledger.reports, "there were inodes enough"
        assert set(refusals) <= {"disk_full"}
        ledger.close()
        placeholder.unlink()
        again = _open(disk / "ledger")
        end = _append(again, "after", None)
        found = [content_of(record) for record in again.read(Position.start)]
        again.close()
        assert found == [*acknowledged, "after"]
        assert verify(disk / "ledger", end).problems == []
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


# ---------------------------------------------------------------------------- a stopped writer


@pytest.mark.crash
def test_a_writer_stopped_in_the_middle_of_a_batch_holds_others_up_and_loses_nothing(
    tmp_path: Path,
) -> None:
    chance, home = dice(), tmp_path / "home"
    settings = {"MNEMOLOG_LOCK_TIMEOUT_S": "0.2"}
    expected: set[str] = set()
    held_up = 0
    with serving(home) as stopped, serving(home, settings=settings) as other:
        for server in (stopped, other):
            server.total()
        for number in range(STOPS):
            texts = [f"batch {number} part {part}" for part in range(BATCH)]
            memories = [{"content": text, "layer": "semantic"} for text in texts]
            stopped.send(call(number, "memory_add_many", memories=memories))
            early = stopped.available(chance.uniform(0, 0.03))
            stopped.process.send_signal(signal.SIGSTOP)
            try:
                said = other.add(f"beside {number}")
            finally:
                stopped.process.send_signal(signal.SIGCONT)
            if "error" in said:
                assert code(said) == "busy", said
                held_up += 1
            else:
                expected.add(f"beside {number}")
            answer = early[0] if early else stopped.answer(number)
            assert len(structured(answer)["results"]) == BATCH
            expected.update(texts)
    found = contents(home)
    assert set(found.counts) == expected
    assert set(found.counts.values()) == {1}
    assert_sound(home)


# ---------------------------------------------------------------------------- a clock that jumps


def test_a_clock_that_jumps_back_and_far_forward_changes_no_order_and_loses_nothing(
    tmp_path: Path,
) -> None:
    clock = TickingClock()
    known: Position | None = None
    jumps = [0, -10 * YEAR_US, 100 * YEAR_US, 0, -START_US, 1]
    for number, jump in enumerate(jumps):
        clock.now = START_US + jump
        ledger = open_ledger(tmp_path / "l", clock=clock)
        known = _append(ledger, f"note {number}", known)
        open_sealer(ledger).run()

    again = open_ledger(tmp_path / "l")
    records = list(again.read(Position.start))

    assert [content_of(record) for record in records] == [
        f"note {number}" for number in range(len(jumps))
    ]
    assert [record.header.back for record in records] == [False, True, False, True, True, False]
    assert verify(tmp_path / "l", known).problems == []
    assert again.position_at(t_us=START_US + 200 * YEAR_US).seq == len(jumps)
