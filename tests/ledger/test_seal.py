"""Sealing: rolled segments become compressed ones, and nothing else changes."""

import errno
from pathlib import Path

import pytest

from ledger import (
    LedgerDamagedError,
    LedgerOptions,
    LedgerWriteError,
    Position,
    verify,
)
from ledger.codec import Codec
from tests.support.ledgers import (
    SMALL,
    OrderedFiles,
    append_each,
    contents,
    live_path,
    open_ledger,
    open_sealer,
)


@pytest.mark.guarantee("G-SEAL-1")
@pytest.mark.parametrize("codec", ["zst", "gz"])
def test_rolled_segments_are_sealed_and_read_as_before(tmp_path: Path, codec: Codec) -> None:
    options = LedgerOptions(segment_bytes_max=1, codec=codec)
    ledger = open_ledger(tmp_path / "l", options=options)
    end = append_each(ledger, "one", "two")
    records = list(ledger.read(Position.start))
    sealer = open_sealer(ledger)
    assert sealer.pending() == [1, 2]

    entries = sealer.run()
    sealer.close()

    assert [(entry.first, entry.last, entry.count) for entry in entries] == [(1, 1, 1), (2, 2, 1)]
    assert sealer.pending() == []
    assert sorted(path.name for path in (tmp_path / "l" / "log").iterdir()) == [
        f"00000000000000000001.g0.jsonl.{codec}",
        f"00000000000000000002.g0.jsonl.{codec}",
        "00000000000000000003.jsonl",
    ]
    assert list(open_ledger(tmp_path / "l").read(Position.start)) == records
    for record in records:
        assert list(ledger.read(record.position)) == records[record.seq :]
    assert verify(tmp_path / "l", end).ok


def test_one_sealer_works_at_a_time(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "l", options=SMALL)
    append_each(ledger, "one")
    one, two = open_sealer(ledger), open_sealer(open_ledger(tmp_path / "l"))
    one._lock.acquire(0)

    assert two.run() == []

    one._lock.release()
    assert len(two.run()) == 1


@pytest.mark.parametrize("call", ["create", "write", "sync", "rename", "sync_directory", "unlink"])
def test_a_seal_that_fails_can_be_run_again(tmp_path: Path, call: str) -> None:
    files = OrderedFiles()
    ledger = open_ledger(tmp_path / "l", options=SMALL, files=files)
    end = append_each(ledger, "one", "two")
    sealer = open_sealer(ledger)
    files.fail(call, errno.ENOSPC)

    with pytest.raises(LedgerWriteError) as caught:
        sealer.run()

    assert (caught.value.outcome, caught.value.reason) == ("not_written", "disk_full")
    assert contents(ledger) == ["one", "two"]
    sealer.run()
    assert sealer.pending() == []
    assert verify(tmp_path / "l", end).notes == []
    assert verify(tmp_path / "l", end).ok


@pytest.mark.guarantee("G-SEAL-1")
@pytest.mark.parametrize("codec", ["zst", "gz"])
@pytest.mark.parametrize("bad", [b"", b"short", None])
def test_a_copy_that_does_not_inflate_to_the_original_is_thrown_away(
    tmp_path: Path, codec: Codec, bad: bytes | None
) -> None:
    class Lying(OrderedFiles):
        def write_file(self, path: Path, data: bytes) -> None:
            super().write_file(path, bad if bad is not None else data[:-1] + b"x")

    options = LedgerOptions(segment_bytes_max=1, codec=codec)
    ledger = open_ledger(tmp_path / "l", options=options)
    append_each(ledger, "one")

    with pytest.raises(LedgerWriteError):
        open_sealer(open_ledger(tmp_path / "l", options=options, files=Lying())).run()

    assert open_sealer(ledger).pending() == [1]
    assert not list((tmp_path / "l" / "log").glob("*.tmp"))
    assert contents(ledger) == ["one"]


@pytest.mark.guarantee("G-SEAL-1")
def test_a_raw_twin_of_a_bad_sealed_file_is_kept(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "l", options=SMALL)
    append_each(ledger, "one")
    raw = ledger.layout.raw(1)
    data = raw.read_bytes()
    open_sealer(ledger).run()
    raw.write_bytes(data)
    sealed = next((tmp_path / "l" / "log").glob("*.zst"))
    sealed.write_bytes(b"bad")

    with pytest.raises(LedgerDamagedError, match="sealed_file"):
        open_sealer(ledger).run()

    assert raw.read_bytes() == data


def test_a_raw_twin_goes_once_the_manifest_that_names_its_sealed_file_is_durable(
    tmp_path: Path,
) -> None:
    ledger = open_ledger(tmp_path / "l", options=SMALL)
    append_each(ledger, "one")
    raw = ledger.layout.raw(1)
    data = raw.read_bytes()
    open_sealer(ledger).run()
    raw.write_bytes(data)
    files = OrderedFiles()

    open_sealer(open_ledger(tmp_path / "l", files=files)).run()

    assert files.calls == ["open_lock", "open_lock", "sync_directory", "unlink", "sync_directory"]
    assert not raw.exists()


def test_a_sealed_file_nobody_names_goes_only_if_its_raw_twin_is_there(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "l", options=SMALL)
    append_each(ledger, "one")
    log = tmp_path / "l" / "log"
    lonely, twin = log / f"{9:020d}.g0.jsonl.zst", log / f"{2:020d}.g0.jsonl.zst"
    lonely.write_bytes(b"x")
    twin.write_bytes(b"x")

    open_sealer(ledger).run()

    assert lonely.exists()
    assert not twin.exists()


def test_a_segment_without_records_or_footer_is_never_pending(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "l")

    assert open_sealer(ledger).pending() == []
    assert open_sealer(ledger).run() == []
    assert live_path(ledger).exists()
