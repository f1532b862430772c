"""A backup opens alone and holds what had been acknowledged, whatever others do meanwhile."""

import errno
import itertools
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from ledger import (
    BackupDamagedError,
    BackupRefusedError,
    Ledger,
    LedgerDamagedError,
    LedgerNotFoundError,
    LedgerOptions,
    LedgerReadOnlyError,
    LedgerWriteError,
    Position,
    backup,
    verify,
)
from ledger import backups as backup_module
from ledger.backups import LedgerCopy
from ledger.manifest import encode_manifest, new_manifest
from tests.support.bundles import note_at
from tests.support.ledgers import (
    SMALL,
    Crash,
    OrderedFiles,
    QuickFiles,
    append,
    append_each,
    close_opened,
    contents,
    live_path,
    open_ledger,
    open_sealer,
    tree,
)
from tests.support.redactions import digests, name, open_redactor, redact, said


@pytest.fixture(name="root")
def _root(tmp_path: Path) -> Path:
    return tmp_path / "l"


@pytest.fixture(name="target")
def _target(tmp_path: Path) -> Path:
    return tmp_path / "backups" / "one"


def make_all_kinds(root: Path) -> Ledger:
    """Make a ledger of five texts: one segment sealed, one redacted, one rolled, one live."""
    ledger = open_ledger(root, options=SMALL)
    known = append_each(ledger, "one", "two")
    open_sealer(ledger).run()
    redact(ledger, 2)
    known = append_each(ledger, "three", known=known)
    last = open_ledger(root)
    append_each(last, "four", "five", known=known)
    return last


def test_a_checkpoint_that_is_not_whole_is_left_out(root: Path, target: Path) -> None:
    ledger = make_all_kinds(root)
    signed = note_at(ledger, 2)
    (root / "checkpoints").write_bytes(signed + b"torn")

    backup(ledger, target, lambda *_: None)

    assert (target / "checkpoints").read_bytes() == signed


@pytest.mark.guarantee("G-BACKUP-1")
def test_a_backup_opens_alone_and_says_the_same(root: Path, target: Path) -> None:
    ledger = make_all_kinds(root)
    (root / "checkpoints").write_bytes(note_at(ledger, 2))
    records = list(ledger.read(Position.start))
    before = tree(root)
    seen: list[tuple[str, int, int]] = []

    report = backup(ledger, target, lambda *step: seen.append(step))

    copied = tree(target)
    assert {file: data for file, data in before.items() if file in copied} == copied
    assert {"LOCK", "SEAL"} == before.keys() - copied.keys()
    assert list(open_ledger(target).read(Position.start)) == records
    end = records[-1].position
    assert (report.path, report.ledger, report.events) == (target, ledger.id, 6)
    assert (report.redacted, report.segments, report.last) == (1, 5, end)
    assert report.size == sum(map(len, copied.values()))
    assert verify(target, end).notes == [
        "checkpoints: 1 of 1 signatures not checked: there is no key"
    ]
    assert seen[0][0] == "copy"
    assert seen[-1] == ("verify", 1, 1)
    assert [path.name for path in target.parent.iterdir()] == ["one"]
    for path in target.rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600)
    assert append_each(open_ledger(target), "six", known=end).seq == 7


@pytest.mark.parametrize("texts", [0, 1])
def test_a_backup_of_a_ledger_whose_live_segment_is_empty(
    root: Path, target: Path, texts: int
) -> None:
    ledger = open_ledger(root, options=SMALL)
    if texts:
        append_each(ledger, "one")

    report = backup(ledger, target)

    assert report.events == texts
    assert contents(open_ledger(target)) == ["one"][:texts]
    assert append_each(open_ledger(target), "more").seq == texts + 1
    assert verify(target).ok


def test_a_backup_is_not_made_where_something_is(root: Path, target: Path) -> None:
    ledger = make_all_kinds(root)
    target.mkdir(parents=True)
    inside = root / "log" / "copy"
    link = target.parent / "link"
    link.symlink_to(target.parent / "nowhere")

    for path, reason in (
        (target, "target_exists"),
        (link, "target_exists"),
        (root, "target_exists"),
        (inside, "inside_ledger"),
    ):
        with pytest.raises(BackupRefusedError, match="nothing was written") as caught:
            backup(ledger, path)
        assert (caught.value.path, caught.value.reason) == (path, reason)
    assert list(target.iterdir()) == []


def test_what_nobody_has_finished_is_not_in_a_backup(root: Path, target: Path) -> None:
    ledger = open_ledger(root)
    append_each(ledger, "one")
    with live_path(ledger).open("ab") as file:
        file.write(b'{"h":{"seq":2')

    backup(open_ledger(root), target)

    assert verify(target).ok
    assert contents(open_ledger(target)) == ["one"]


def test_a_ledger_that_cannot_be_written_is_backed_up(root: Path, target: Path) -> None:
    class ReadOnly(QuickFiles):
        def may_write(self, path: Path) -> bool:
            return not path.is_relative_to(root)

    ledger = make_all_kinds(root)
    end = list(ledger.read(Position.start))[-1].position

    frozen = open_ledger(root, files=ReadOnly())
    with pytest.raises(LedgerReadOnlyError), frozen.lock(0):
        pass

    assert backup(frozen, target).last == end


@pytest.mark.parametrize(
    ("segment", "damage"),
    [
        ("1.g0.jsonl.zst", "flip"),
        ("1.g0.jsonl.zst", "gone"),
        ("4.jsonl", "flip"),
        ("4.jsonl", "gone"),
        ("5.jsonl", "flip"),
    ],
)
def test_a_damaged_ledger_is_not_backed_up(
    tmp_path: Path, root: Path, target: Path, segment: str, damage: str
) -> None:
    ledger = make_all_kinds(root)
    path = root / "log" / segment.rjust(len(segment) + 19, "0")
    data = bytearray(path.read_bytes())
    data[300] ^= 1
    path.write_bytes(data)
    if damage == "gone":
        path.unlink()

    with pytest.raises((BackupDamagedError, LedgerDamagedError)):
        backup(ledger, target)

    assert not list(tmp_path.glob("backups/*"))


def test_a_payload_that_no_redaction_names_is_named(root: Path, target: Path) -> None:
    ledger = open_ledger(root, options=SMALL)
    append_each(ledger, *[f"text {number}" for number in range(6)])
    open_redactor(ledger).rewrite(digests(ledger, range(1, 6)))

    with pytest.raises(BackupDamagedError, match="; and 2 more") as caught:
        backup(ledger, target)

    assert caught.value.path == root
    assert len(caught.value.problems) == 5
    assert caught.value.problems[0].startswith("payload_missing in log/00000000000000000001.g1")


@pytest.mark.parametrize(
    ("call", "skip"),
    [("create", 0), ("create", 4), ("write", 3), ("sync", 2), ("rename", 2), ("sync_directory", 7)],
)
def test_a_backup_that_fails_leaves_nothing(root: Path, target: Path, call: str, skip: int) -> None:
    make_all_kinds(root)
    files = OrderedFiles()
    ledger = open_ledger(root, files=files)
    files.fail(call, errno.ENOSPC, skip=skip)

    with pytest.raises(LedgerWriteError) as caught:
        backup(ledger, target)

    assert caught.value.reason == "disk_full"
    assert not target.parent.exists() or list(target.parent.iterdir()) == []
    files.heal()
    assert backup(ledger, target).events == 6


@pytest.mark.guarantee("G-BACKUP-1")
def test_a_backup_that_was_killed_is_not_mistaken_for_a_good_one(tmp_path: Path) -> None:
    root = tmp_path / "l"
    make_all_kinds(root)
    for crash_at in itertools.count():
        close_opened()
        folder = tmp_path / "backups"
        shutil.rmtree(folder, ignore_errors=True)
        try:
            backup(open_ledger(root, files=OrderedFiles(crash_at)), folder / "one")
        except Crash:
            crashed = True
        else:
            crashed = False

        for path in folder.glob("*"):
            if path.name == "one":
                assert verify(path).events == 6
                assert verify(path).ok
                continue
            try:
                report = verify(path)
            except LedgerNotFoundError:
                continue
            # All there but its name, or else found out.
            assert not report.ok or report.events == 6
        if not crashed:
            assert crash_at > 20
            break


def meanwhile(monkeypatch: pytest.MonkeyPatch, step: Callable[[], None]) -> None:
    """Have a step run once, as soon as the end of a backup has been taken."""
    taken: list[int] = []
    durable_end = backup_module._durable_end

    def end(ledger: Ledger, lock_timeout_s: float) -> Position:
        position = durable_end(ledger, lock_timeout_s)
        if not taken:
            taken.append(position.seq)
            step()
        return position

    monkeypatch.setattr(backup_module, "_durable_end", end)


def test_segments_may_be_sealed_and_rolled_and_appended_to_meanwhile(
    root: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = make_all_kinds(root)
    end = list(ledger.read(Position.start))[-1].position

    def others() -> None:
        other = open_ledger(root, options=SMALL)
        append(other, [["seven", "eight"]], [["nine"]])
        open_sealer(other).run()

    meanwhile(monkeypatch, others)
    report = backup(ledger, target)

    assert report.last == end
    assert said(open_ledger(target).read(Position.start)) == ["one", None, "three", "four", "five"]
    assert live_path(open_ledger(target)).name.lstrip("0") == "5.jsonl"
    assert contents(ledger, end) == ["seven", "eight", "nine"]


def test_segments_may_be_sealed_while_they_are_copied(
    root: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_ledger(root, options=SMALL)
    append_each(ledger, "one", "two", "three")
    take = LedgerCopy._take_whole

    def slowly(self: LedgerCopy, source: object) -> None:
        open_sealer(ledger).run()
        take(self, source)  # type: ignore[arg-type]

    monkeypatch.setattr(LedgerCopy, "_take_whole", slowly)
    backup(ledger, target)

    assert contents(open_ledger(target)) == ["one", "two", "three"]


def test_what_is_redacted_meanwhile_is_redacted_in_the_backup(
    root: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = make_all_kinds(root)

    def erase() -> None:
        redact(open_ledger(root), 1, 5)

    meanwhile(monkeypatch, erase)

    report = backup(ledger, target)

    assert (report.events, report.redacted) == (7, 3)
    copy = open_ledger(target)
    assert said(copy.read(Position.start)) == [None, None, "three", None, "five"]
    assert verify(target).ok


def test_the_live_segment_of_a_backup_may_hold_what_was_redacted(
    root: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_ledger(root)
    known = append_each(ledger, "one", "two")
    targets = digests(ledger, [1])
    end = name(ledger, targets, known)

    def erase() -> None:
        open_redactor(open_ledger(root)).rewrite(targets)

    meanwhile(monkeypatch, erase)

    assert backup(ledger, target).redacted == 1

    copy = open_ledger(target)
    before = tree(target / "log")
    assert open_redactor(copy).rewrite(targets) == []
    assert tree(target / "log") == before
    assert append_each(copy, "three", known=end).seq == 4


def test_a_file_that_is_gone_for_good_is_missed_once(root: Path, target: Path) -> None:
    ledger = open_ledger(root, options=SMALL)
    end = append_each(ledger, "one", "two")
    open_sealer(ledger).run()
    (root / "log" / f"{1:020d}.g0.jsonl.zst").unlink()

    with pytest.raises(LedgerDamagedError, match="segment_missing"):
        backup(ledger, target)
    shutil.rmtree(root / "log")
    (root / "log").mkdir()
    (root / "MANIFEST.json").write_bytes(encode_manifest(new_manifest(ledger.id)))
    copy = LedgerCopy(ledger.layout, ledger.identity, target, files=QuickFiles())
    with pytest.raises(LedgerDamagedError, match="segment_missing"):
        copy.take(end, lambda _phase, _done, _total: None)


def test_the_original_may_be_put_back_to_another_state_meanwhile(
    root: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_ledger(root)
    append_each(ledger, "one")
    copy = root.with_name("copy")
    shutil.copytree(root, copy)
    known = append_each(ledger, "two")

    def put_back() -> None:
        shutil.rmtree(root)
        shutil.copytree(copy, root)
        append_each(open_ledger(root), "other")

    meanwhile(monkeypatch, put_back)
    with pytest.raises(LedgerDamagedError, match="the record is not there"):
        backup(ledger, target)
    assert known.seq == 2


@pytest.mark.guarantee("G-BACKUP-1")
def test_backups_are_whole_while_others_write_seal_and_redact(tmp_path: Path) -> None:
    root = tmp_path / "l"
    ledger = open_ledger(root, options=LedgerOptions(segment_bytes_max=2000))
    known = append_each(ledger, "first")
    acknowledged = ["first"]
    wrong: list[BaseException] = []
    stop = threading.Event()

    def write() -> None:
        try:
            other = open_ledger(root, options=LedgerOptions(segment_bytes_max=2000))
            end, number = known, 0
            while not stop.is_set():
                number += 1
                end = append_each(other, f"text {number}", known=end)
                acknowledged.append(f"text {number}")
                if number % 7 == 0:
                    open_sealer(other).run()
                if number % 11 == 0:
                    end = name(other, digests(other, [end.seq]), end)
                    open_redactor(other).rewrite(digests(other, [end.seq - 1]))
        except BaseException as error:  # noqa: BLE001 - whatever it is, the test is to fail
            wrong.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    for number in range(8):
        expected = list(acknowledged)
        target = tmp_path / f"backup {number}"
        backup(ledger, target)
        found = said(open_ledger(target).read(Position.start))
        assert len(found) >= len(expected)
        assert all(now in {None, then} for now, then in zip(found, expected, strict=False))
        assert verify(target).ok
    stop.set()
    writer.join()

    assert wrong == []
