"""Makes the golden ledgers of the current format, once, when a format version is released.

`python -m tests.golden.make_golden <target>` from the repository's root. A released folder is never
made again: programs of all later versions must read its bytes.
"""

import argparse
from pathlib import Path

from ledger import (
    AgentRegistered,
    Batch,
    Ledger,
    LedgerOptions,
    MemoryAdded,
    MemoryDeleted,
    MemoryRelinked,
    MemoryRestored,
    MemoryState,
    MemoryUpdated,
    NewEvent,
    Position,
    Sealer,
    WorkspaceCreated,
)
from ledger.codec import Codec
from tests.support.ledgers import ACTOR, WORKSPACE, CountingIds, TickingClock

ONE, TWO = "cccccccccccccccc", "dddddddddddddddd"
FULL = MemoryState(
    content='Ünïcode, "quotes", \\ and\nlines; память; 記憶; 🧠',
    layer="semantic",
    title="A title",
    entity_type="person",
    entity_name="Ada",
    scope="project",
    tags=("a", "b"),
    meta={"n": 1, "f": 2.5, "deep": [None, True, {"k": "v"}]},
    confidence=0.9,
    importance=1,
    source="import",
    source_file="notes.md",
    session_id="s-1",
    event_at="2026-11-30",
    valid_from="2026-01-01",
    valid_until="2027-01-01",
    expires_at="2030-01-01T00:00:00.000000Z",
    supersedes=TWO,
)
PLAIN = MemoryState(content="plain", layer="episodic")


def batches(ids: CountingIds) -> list[list[Batch]]:
    """Return groups of batches in which every event type and header field occurs."""

    def batch(*events: NewEvent, **fields: str | int) -> Batch:
        return Batch(WORKSPACE, ACTOR, list(events), **fields)  # type: ignore[arg-type]

    salt = ids.new_salt
    return [
        [
            batch(
                NewEvent(WORKSPACE, WorkspaceCreated(salt=salt(), name="home")),
                NewEvent(ACTOR, AgentRegistered(salt=salt(), name="agent")),
            ),
            batch(NewEvent(TWO, MemoryAdded(salt=salt(), memory=PLAIN))),
        ],
        [
            batch(
                NewEvent(ONE, MemoryAdded(salt=salt(), memory=FULL, request="e" * 64)),
                NewEvent(TWO, MemoryRelinked(salt=salt(), superseded_by=ONE), 3),
                session="ffffffffffffffff",
                cause="gggggggggggggggg",
                ik="0" * 32,
            )
        ],
        [batch(NewEvent(ONE, MemoryUpdated(salt=salt(), memory=PLAIN), 4))],
        [batch(NewEvent(ONE, MemoryDeleted(salt=salt(), reason="no longer true"), 6))],
        [batch(NewEvent(ONE, MemoryRestored(salt=salt(), memory=PLAIN), 7), undo=7)],
    ]


def make(root: Path, codecs: list[Codec | None]) -> Position:
    """Make one ledger; after each of the first groups roll and seal with the codec given."""
    ids, clock = CountingIds(), TickingClock()
    known = Position.start
    for number, group_batches in enumerate(batches(ids)):
        codec = codecs[number] if number < len(codecs) else None
        options = LedgerOptions(
            segment_bytes_max=1 if number < len(codecs) else 1 << 24, codec=codec or "zst"
        )
        ledger = Ledger.open(root, clock=clock, ids=ids, options=options)
        sealer = Sealer(ledger)
        with ledger.lock(5) as writer:
            for _ in writer.catch_up(known):
                pass
            group = writer.group()
            for batch in group_batches:
                group.add(batch)
            known = group.commit()
        if codec is not None:
            sealer.run()
        sealer.close()
        ledger.close()
        # One record whose clock went back.
        clock.now -= 10_000 if number == 2 else 0
    return known


def main() -> None:
    """Make `format1/live` and `format1/sealed` below the target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path)
    target: Path = parser.parse_args().target
    make(target / "format1" / "live", [])
    make(target / "format1" / "sealed", ["zst", "gz", None])


if __name__ == "__main__":
    main()
