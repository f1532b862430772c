"""What holds of every ledger, whatever was written, torn and opened again."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import (
    AgentRegistered,
    AliasAdded,
    AliasRemoved,
    AliasState,
    Batch,
    Event,
    LedgerOptions,
    MemoryAdded,
    MemoryDeleted,
    MemoryRelinked,
    MemoryRestored,
    MemoryState,
    MemoryUpdated,
    NewEvent,
    Position,
    SessionEnded,
    SessionRestored,
    SessionStarted,
    SessionState,
    SessionWithdrawn,
    WorkspaceCreated,
    verify,
)
from ledger.record import (
    decode_payload,
    encode_line,
    encode_payload,
    event_name,
    is_canonical,
    open_record,
)
from tests.ledger.test_record import header
from tests.support.ledgers import (
    ACTOR,
    WORKSPACE,
    close_opened,
    contents,
    live_path,
    open_ledger,
    open_sealer,
)

TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
NUMBER = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
STATES = st.builds(
    MemoryState,
    content=TEXT,
    layer=TEXT,
    title=st.none() | TEXT,
    tags=st.lists(TEXT, max_size=3).map(tuple),
    meta=st.dictionaries(TEXT, JSON, max_size=3),
    confidence=st.floats(0, 1),
    importance=st.integers(0, 1),
)
SESSIONS = st.builds(
    SessionState,
    client=TEXT,
    started_at=TEXT,
    project=st.none() | TEXT,
    meta=st.dictionaries(TEXT, JSON, max_size=3),
    ended_at=st.none() | TEXT,
    summary=st.none() | TEXT,
)
SALTS = st.text("0123456789abcdef", min_size=32, max_size=32)
REQUESTS = st.none() | TEXT
LINKS = st.none() | TEXT
PAYLOADS = st.one_of(
    st.builds(WorkspaceCreated, salt=SALTS, name=TEXT),
    st.builds(AgentRegistered, salt=SALTS, name=TEXT),
    st.builds(MemoryAdded, salt=SALTS, memory=STATES, request=REQUESTS),
    st.builds(MemoryUpdated, salt=SALTS, memory=STATES, request=REQUESTS),
    st.builds(MemoryRestored, salt=SALTS, memory=STATES, request=REQUESTS),
    st.builds(MemoryRelinked, salt=SALTS, supersedes=LINKS, superseded_by=LINKS),
    st.builds(MemoryDeleted, salt=SALTS, reason=st.none() | TEXT, request=REQUESTS),
    st.builds(SessionStarted, salt=SALTS, session=SESSIONS, request=REQUESTS),
    st.builds(SessionEnded, salt=SALTS, session=SESSIONS, request=REQUESTS),
    st.builds(SessionRestored, salt=SALTS, session=SESSIONS, request=REQUESTS),
    st.builds(SessionWithdrawn, salt=SALTS, request=REQUESTS),
    st.builds(
        AliasAdded,
        salt=SALTS,
        alias=st.builds(AliasState, name=TEXT, entity=TEXT),
        request=REQUESTS,
    ),
    st.builds(AliasRemoved, salt=SALTS, request=REQUESTS),
)
GROUPS = st.lists(
    st.lists(st.lists(TEXT, min_size=1, max_size=3), min_size=1, max_size=3), max_size=3
)


@pytest.fixture(name="base", scope="module")
def _base() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@given(PAYLOADS)
def test_a_payload_comes_back_as_it_was_given(given_payload: Event) -> None:
    body, commitment, seen = encode_payload(given_payload)
    name, version = event_name(given_payload)
    line, digest = encode_line(header(type=name, v=version, pc=commitment), body)
    head, head_raw, body_read, digest_read = open_record(line[:-1])
    payload = decode_payload(head, body_read)

    assert (body_read, digest_read) == (body, digest)
    assert payload == seen == given_payload
    assert is_canonical(head, head_raw, payload, body_read)


def write(
    root: Path, groups: list[list[list[str]]], known: Position, segment_bytes_max: int = 1 << 24
) -> Position:
    ledger = open_ledger(root, options=LedgerOptions(segment_bytes_max=segment_bytes_max))
    with ledger.lock(5) as writer:
        for _ in writer.catch_up(known):
            pass
        known = writer.end
        for batches in groups:
            group = writer.group()
            for texts in batches:
                events = [
                    NewEvent(
                        "s", MemoryAdded(salt="0", memory=MemoryState(content=text, layer="x"))
                    )
                    for text in texts
                ]
                group.add(Batch(WORKSPACE, ACTOR, events))
            known = group.commit()
    ledger.close()
    return known


@pytest.mark.guarantee("G-ACK-1")
@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(
            GROUPS,
            st.sampled_from([1, 1500, 1 << 24]),
            st.booleans(),
            st.binary(max_size=40),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_nothing_committed_is_lost_over_openings_tears_rolls_and_seals(
    base: Path, sessions: list[tuple[list[list[list[str]]], int, bool, bytes]]
) -> None:
    root = base / "l"
    close_opened()
    shutil.rmtree(root, ignore_errors=True)
    known, expected = Position.start, []
    for groups, segment_bytes_max, seal, torn in sessions:
        known = write(root, groups, known, segment_bytes_max=segment_bytes_max)
        expected += [text for batches in groups for texts in batches for text in texts]
        ledger = open_ledger(root)
        with live_path(ledger).open("ab") as file:
            file.write(torn)
        if seal:
            open_sealer(ledger).run()

        assert contents(ledger) == expected
        report = verify(root, known)
        assert report.torn_bytes == len(torn)
        assert report.ok is not bool(torn)
        assert (report.events, report.last.seq) == (len(expected), len(expected))
    write(root, [], known)
    assert verify(root, known).ok


@pytest.mark.guarantee("G-BATCH-1")
@settings(max_examples=30)
@given(GROUPS.filter(bool), st.data())
def test_a_cut_anywhere_leaves_whole_batches_of_a_prefix(
    base: Path, groups: list[list[list[str]]], data: st.DataObject
) -> None:
    root = base / "cut"
    close_opened()
    shutil.rmtree(root, ignore_errors=True)
    write(root, groups, Position.start)
    ledger = open_ledger(root)
    path = live_path(ledger)
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    path.write_bytes(whole[: data.draw(st.integers(first, len(whole)))])
    prefixes: list[list[str]] = [[]]
    for batches in groups:
        for texts in batches:
            prefixes.append(prefixes[-1] + texts)

    assert contents(ledger) in prefixes
    kept = contents(ledger)
    end = write(root, [[["after"]]], Position.start)
    assert contents(open_ledger(root)) == [*kept, "after"]
    assert verify(root, end).ok


@pytest.mark.guarantee("G-DAMAGE-1")
@settings(max_examples=30)
@given(GROUPS.filter(bool), st.data())
def test_a_flipped_bit_is_noticed_and_never_changes_what_is_read(
    base: Path, groups: list[list[list[str]]], data: st.DataObject
) -> None:
    root = base / "flip"
    close_opened()
    shutil.rmtree(root, ignore_errors=True)
    end = write(root, groups, Position.start)
    ledger = open_ledger(root)
    expected = contents(ledger)
    path = live_path(ledger)
    whole = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(whole)

    assert not verify(root, end).ok
    found = [
        record.payload.memory.content
        for record in open_ledger(root).read_tolerant(Position.start, lambda _: None)
        if isinstance(record.payload, MemoryAdded)
    ]
    assert len(expected) - len(found) <= 2
    assert set(found) <= set(expected)
