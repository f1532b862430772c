"""Ledgers of released formats are read for ever."""

import gzip
import json
import shutil
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import pytest
import zstandard

from ledger import (
    AgentRegistered,
    AliasAdded,
    AliasRemoved,
    Event,
    MemoryAdded,
    MemoryDeleted,
    MemoryRedacted,
    MemoryRelinked,
    MemoryRestored,
    MemoryUpdated,
    Position,
    RedactionCompleted,
    RedactionExplained,
    SessionEnded,
    SessionEvent,
    SessionRestored,
    SessionStarted,
    SessionWithdrawn,
    WorkspaceCreated,
    verify,
)
from ledger.record import EVENTS
from tests.golden.make_golden import (
    BEGUN,
    FULL,
    MADE,
    NAMES,
    ONE,
    PLAIN,
    REDACTION,
    SUMMED_UP,
    make,
)
from tests.support.ledgers import ACTOR, WORKSPACE, append_each, open_ledger, tree

GOLDEN = Path(__file__).parent.parent / "golden"
LAST = {
    "every_event": "eae9b546dad7fbf7282e85897a0a7256113bae64d8eafdb6906ea3ab44b45fe4",
    "live": "2899b6eba92e06e9a42626e17c734ce063df26d7a8135578d8b010b6fc34134a",
    "redacted": "9f73feab50eae55f439151741b4c70efb3f6460a534ca51e4ad829ff26c0b652",
    "sealed": "e8361b5f650b0cb8b178c1e5e0784c48f36de40c502380c75594312f7de58e61",
}
KINDS: list[type[Event]] = [
    WorkspaceCreated,
    AgentRegistered,
    MemoryAdded,
    MemoryAdded,
    MemoryRelinked,
    MemoryUpdated,
    MemoryDeleted,
    MemoryRestored,
]
LATER_KINDS: list[type[Event]] = [
    SessionStarted,
    MemoryAdded,
    MemoryAdded,
    SessionEnded,
    SessionRestored,
    SessionWithdrawn,
    SessionRestored,
    AliasAdded,
    AliasRemoved,
    AliasAdded,
    MemoryDeleted,
    MemoryDeleted,
]
REDACTED_KINDS: list[type[Event] | None] = [
    WorkspaceCreated,
    AgentRegistered,
    MemoryAdded,
    None,
    MemoryRelinked,
    None,
    None,
    None,
    MemoryRedacted,
    None,
    RedactionCompleted,
    MemoryRedacted,
]
"""None: the payload is redacted."""


@pytest.fixture(name="root", params=sorted(LAST))
def _root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    root = tmp_path / str(request.param)
    shutil.copytree(GOLDEN / "format1" / root.name, root)
    return root


def kinds(root: Path) -> Sequence[type[Event] | None]:
    """Return the events of a golden ledger."""
    if root.name == "redacted":
        return REDACTED_KINDS
    return [*KINDS, *LATER_KINDS] if root.name == "every_event" else KINDS


def test_the_golden_ledgers_hold_every_event() -> None:
    assert {*KINDS, *LATER_KINDS, *REDACTED_KINDS, RedactionExplained} == {None, *EVENTS.values()}
    assert sorted(LAST) == sorted(MADE)


@pytest.mark.guarantee("G-FORMAT-2")
def test_a_golden_ledger_reads_as_it_was_written(root: Path) -> None:
    ledger = open_ledger(root)

    records = list(ledger.read(Position.start))

    assert [record.payload and type(record.payload) for record in records] == kinds(root)
    assert records[-1].digest == LAST[root.name]
    records = records[: len(KINDS)]
    assert [record.header.group for record in records] == [1, 1, 1, 4, 4, 6, 7, 8]
    assert [record.header.batch for record in records] == [1, 1, 3, 4, 4, 6, 7, 8]
    assert [record.header.back for record in records] == [False] * 6 + [True] + [False]
    assert [record.header.undo for record in records] == [0] * 7 + [7]
    full, plain = records[3], records[5]
    assert (full.header.ws, full.header.sub, full.header.act) == (WORKSPACE, ONE, ACTOR)
    if root.name == "redacted":
        return
    assert isinstance(full.payload, MemoryAdded)
    assert isinstance(plain.payload, MemoryUpdated)
    assert (full.payload.memory, full.payload.request) == (FULL, "e" * 64)
    assert plain.payload.memory == PLAIN


def test_sessions_and_aliases_of_a_golden_ledger_read_as_they_were_written(tmp_path: Path) -> None:
    root = tmp_path / "every_event"
    shutil.copytree(GOLDEN / "format1" / root.name, root)

    records = list(open_ledger(root).read(Position.start))[len(KINDS) :]

    said = [record.payload for record in records]
    assert [one.session for one in said if isinstance(one, SessionEvent)] == [
        BEGUN,
        SUMMED_UP,
        BEGUN,
        BEGUN,
    ]
    assert [one.alias for one in said if isinstance(one, AliasAdded)] == [NAMES, NAMES]
    asked = [getattr(one, "request", None) for one in said]
    assert [number for number, digest in enumerate(asked) if digest == "e" * 64] == [
        0,
        5,
        7,
        8,
        10,
        11,
    ]
    assert [record.header.undo for record in records] == [0, 0, 0, 0, 12, 9, 14, 0, 0, 17, 0, 0]
    assert [record.header.batch for record in records] == [
        *(9, 10, 10, 12, 13, 14, 15, 16, 17, 18, 19, 19),
    ]
    assert {record.header.ses for record in records[:4]} == {records[0].header.sub}


def test_the_redactions_of_a_golden_ledger_read_as_they_were_written(tmp_path: Path) -> None:
    root = tmp_path / "redacted"
    shutil.copytree(GOLDEN / "format1" / root.name, root)

    records = list(open_ledger(root).read(Position.start))

    named, _, receipt, again = (record.payload for record in records[8:])
    assert isinstance(named, MemoryRedacted)
    assert isinstance(again, MemoryRedacted)
    assert (named.redaction, again.redaction) == (REDACTION, REDACTION)
    for redacted, seqs in ((named, [4, 6, 7, 8]), (again, [10])):
        assert [each.seq for each in redacted.targets] == seqs
        assert [each.digest for each in redacted.targets] == [records[n - 1].digest for n in seqs]
    assert isinstance(receipt, RedactionCompleted)
    assert (receipt.segments, receipt.files, receipt.searched, receipt.remains) == (
        (4, 6, 7),
        9,
        False,
        ("same_text",),
    )
    assert records[9].header.type == "redaction_explained"
    assert verify(root).redacted == 5


@pytest.mark.guarantee("G-FORMAT-2")
def test_a_golden_ledger_verifies_and_goes_on(root: Path) -> None:
    before = tree(root)

    report = verify(root)

    assert (report.ok, report.events, report.notes) == (True, len(kinds(root)), [])
    assert tree(root) == before
    end = append_each(open_ledger(root), "more", known=report.last)
    assert verify(root, end).ok


@pytest.mark.guarantee("G-FORMAT-2")
def test_the_writer_of_today_writes_the_golden_bytes(root: Path, tmp_path: Path) -> None:
    make(tmp_path / "today", root.name)

    today = {
        name: data for name, data in tree(tmp_path / "today").items() if name.endswith(".jsonl")
    }

    assert today
    assert {name: tree(root)[name] for name in today} == today


def raw_lines(root: Path) -> Iterator[bytes]:
    """Yield the lines of every segment with nothing of the package."""
    for path in sorted((root / "log").iterdir()):
        data = path.read_bytes()
        if path.suffix == ".zst":
            data = zstandard.ZstdDecompressor().decompress(data)
        elif path.suffix == ".gz":
            data = gzip.decompress(data)
        yield from data.splitlines()


@pytest.mark.guarantee("G-FORMAT-1")
def test_the_chain_can_be_checked_with_the_standard_library_alone(root: Path) -> None:
    identity = json.loads((root / "FORMAT").read_bytes())["format"]
    prev, seq = identity["genesis"], 0
    for line in raw_lines(root):
        record = json.loads(line)
        if "h" not in record:
            continue
        middle = line.index(b'},"p":') + 1
        head, body = line[5:middle], line[middle + 5 : -72]
        assert record["d"] == sha256(b"\x00" + head).hexdigest()
        if body != b"null":
            assert record["h"]["pc"] == sha256(b"\x02" + body).hexdigest()
        assert (record["h"]["prev"], record["h"]["seq"]) == (prev, seq + 1)
        prev, seq = record["d"], seq + 1

    assert (prev, seq) == (LAST[root.name], len(kinds(root)))
