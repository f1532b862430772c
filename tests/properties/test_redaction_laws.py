"""What holds of every redaction, whatever was written before and whatever is erased."""

import shutil
import tempfile
from hashlib import sha256
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import (
    Batch,
    LedgerOptions,
    MemoryAdded,
    MemoryState,
    NewEvent,
    Position,
    verify,
)
from ledger.codec import Codec
from tests.support.ledgers import (
    ACTOR,
    WORKSPACE,
    CountingIds,
    close_opened,
    open_ledger,
    open_sealer,
    tree,
)
from tests.support.redactions import digests, inflated, name, open_redactor, raw_lines

BATCHES = st.lists(st.integers(1, 4), min_size=1, max_size=4)
"""How many events each batch of a group has."""
GROUPS = st.lists(st.tuples(BATCHES, st.booleans(), st.sampled_from(["", "zst", "gz"])), max_size=6)
"""Groups, whether the segment is rolled after each, and how it is sealed."""


def write(root: Path, groups: list[tuple[list[int], bool, str]], ids: CountingIds) -> Position:
    """Write groups of memories, each with a salt and a text of its own."""
    known = Position.start
    for sizes, rolls, sealed in groups:
        codec: Codec = "gz" if sealed == "gz" else "zst"
        options = LedgerOptions(segment_bytes_max=1 if rolls else 1 << 24, codec=codec)
        ledger = open_ledger(root, options=options)
        with ledger.lock(5) as writer:
            list(writer.catch_up(known))
            group = writer.group()
            for size in sizes:
                group.add(Batch(WORKSPACE, ACTOR, [memory(ids) for _ in range(size)]))
            known = group.commit()
        if sealed:
            open_sealer(ledger).run()
    return known


def memory(ids: CountingIds) -> NewEvent:
    # Unlike any other salt or key of the ledger, which count from one too.
    salt = sha256(ids.new_salt().encode()).hexdigest()[:32]
    state = MemoryState(content=f"secret {salt[::-1]}", layer="semantic")
    return NewEvent(ids.new_id(), MemoryAdded(salt=salt, memory=state))


@settings(max_examples=40)
@given(GROUPS, GROUPS, st.data())
def test_a_redaction_erases_its_targets_and_nothing_else(
    groups: list[tuple[list[int], bool, str]],
    more: list[tuple[list[int], bool, str]],
    data: st.DataObject,
) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        root = folder / "l"
        ids = CountingIds()
        open_ledger(root)
        for later in (groups, more):
            end = write(root, later, ids)
            ledger = open_ledger(root)
            before = {record.seq: record for record in ledger.read(Position.start)}
            lines = raw_lines(root)
            chosen = data.draw(st.sets(st.sampled_from(sorted(before)))) if before else set()
            targets = digests(
                ledger, [seq for seq in chosen if before[seq].header.type == "memory_added"]
            )

            end = name(ledger, targets, end if before else None)
            rewritten = open_redactor(ledger).rewrite(targets)

            after = {record.seq: record for record in ledger.read(Position.start)}
            now = raw_lines(root)
            assert after.keys() == before.keys() | {end.seq}
            assert [after[seq].digest for seq in before] == [before[seq].digest for seq in before]
            assert all(now[seq] == lines[seq] for seq in before if seq not in targets)
            assert all(after[seq].payload is None for seq in targets)
            assert all(b'"p":null,"d":"' in now[seq] for seq in targets)
            gone = [before[seq].payload for seq in targets if before[seq].payload is not None]
            everything = list(inflated(root).values())
            for payload in gone:
                assert isinstance(payload, MemoryAdded)
                for text in (payload.salt, payload.memory.content):
                    assert not any(text.encode() in file for file in everything)
            assert verify(root, end).problems == []
            assert verify(root, end).notes == []
            stood = tree(root)
            assert open_redactor(ledger).rewrite(targets) == []
            assert tree(root) == stood
            assert len(rewritten) == len(set(rewritten))
    finally:
        close_opened()
        shutil.rmtree(folder)
