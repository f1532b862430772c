"""The list of redactions outlives the ledger it is about."""

import errno
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from ledger import (
    ErasedRecord,
    Ledger,
    LedgerReadOnlyError,
    LedgerWriteError,
    LockTimeoutError,
    Position,
    RedactionList,
    outstanding,
)
from ledger.lock import FileLock
from tests.support.ledgers import SMALL, OrderedFiles, QuickFiles, append_each, open_ledger
from tests.support.redactions import REDACTION, digests, name, redact

ONE, TWO, THREE = (
    ErasedRecord(ledger="l" * 16, redaction=REDACTION, seq=seq, digest=f"{seq:064x}")
    for seq in (1, 2, 3)
)


def listed(ledger: Ledger, *seqs: int) -> list[ErasedRecord]:
    return [
        ErasedRecord(ledger=ledger.id, redaction=REDACTION, seq=seq, digest=digest)
        for seq, digest in digests(ledger, seqs).items()
    ]


def test_a_list_says_what_was_added_once(tmp_path: Path) -> None:
    kept = RedactionList(tmp_path, files=QuickFiles())
    assert kept.entries() == []

    assert kept.add([]) == 0
    assert kept.add([ONE, TWO, ONE]) == 2
    assert RedactionList(tmp_path).add([TWO, THREE]) == 1

    assert RedactionList(tmp_path).entries() == [ONE, TWO, THREE]
    assert kept.damaged() == 0
    assert kept.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("size", range(1, 250, 7))
def test_what_was_never_acknowledged_counts_for_nothing(tmp_path: Path, size: int) -> None:
    kept = RedactionList(tmp_path, files=QuickFiles())
    kept.add([ONE, TWO])
    whole = kept.path.read_bytes()
    kept.path.write_bytes(whole + whole[:size].replace(b"\n", b""))

    assert kept.entries() == [ONE, TWO]
    assert kept.damaged() == 0
    kept.add([THREE])
    assert kept.entries() == [ONE, TWO, THREE]


def test_a_damaged_line_hides_no_other(tmp_path: Path) -> None:
    kept = RedactionList(tmp_path, files=QuickFiles())
    kept.add([ONE, TWO, THREE])
    kept.path.write_bytes(kept.path.read_bytes().replace(b'"seq":2', b'"seq":9'))

    assert kept.entries() == [ONE, THREE]
    assert kept.damaged() == 1
    kept.add([TWO])
    assert kept.entries() == [ONE, THREE, TWO]


@pytest.mark.parametrize("call", ["open_write", "write", "sync", "sync_directory", "truncate"])
def test_what_cannot_be_made_durable_is_said(tmp_path: Path, call: str) -> None:
    files = OrderedFiles()
    kept = RedactionList(tmp_path, files=files)
    kept.add([ONE])
    kept.path.write_bytes(kept.path.read_bytes() + b"torn")
    files.fail(call, errno.ENOSPC)

    with pytest.raises(LedgerWriteError) as caught:
        kept.add([TWO])

    assert caught.value.reason == "disk_full"
    kept.add([TWO])
    assert kept.entries() == [ONE, TWO]


def test_one_process_adds_at_a_time(tmp_path: Path) -> None:
    kept = RedactionList(tmp_path, lock_timeout_s=0)
    other = FileLock(kept.path, QuickFiles())
    other.acquire(0)

    with pytest.raises(LockTimeoutError):
        kept.add([ONE])

    other.release()
    other.close()
    with pytest.raises(LedgerReadOnlyError):
        RedactionList(tmp_path / "missing").add([ONE])


def test_a_ledger_put_back_from_an_older_copy_is_known_to_hold_erased_texts(
    tmp_path: Path,
) -> None:
    ledger = open_ledger(tmp_path / "l", options=SMALL)
    append_each(ledger, "one", "two", "three")
    copy = tmp_path / "copy"
    shutil.copytree(ledger.layout.root, copy)
    entries = listed(ledger, 2, 3)
    redact(ledger, 2, 3)
    stranger = replace(entries[0], ledger="x" * 16)
    other = replace(entries[0], seq=1)
    later = replace(entries[0], seq=99)

    assert outstanding(ledger, entries) == []
    restored = open_ledger(copy)
    found = outstanding(restored, [stranger, *entries, other, later, *entries])

    assert [(each.redaction, each.record.seq) for each in found] == [(REDACTION, 2), (REDACTION, 3)]
    assert [each.record for each in found] == list(restored.read(Position.start))[1:]
    name(restored, digests(restored, [2]))
    assert [each.record.seq for each in outstanding(restored, entries)] == [3]
    assert outstanding(restored, listed(restored, 4)) == []
