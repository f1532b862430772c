"""Makes the golden ledgers of the current format, once, when a format or an event is released.

`python -m tests.golden.make_golden <target>` from the repository's root. A released folder is never
made again: programs of all later versions must read its bytes.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ledger import (
    AgentRegistered,
    AliasAdded,
    AliasRemoved,
    AliasState,
    Batch,
    Ledger,
    LedgerOptions,
    MemoryAdded,
    MemoryDeleted,
    MemoryRedacted,
    MemoryRelinked,
    MemoryRestored,
    MemoryState,
    MemoryUpdated,
    NewEvent,
    Position,
    RedactedRecord,
    RedactionCompleted,
    RedactionExplained,
    Redactor,
    Sealer,
    SessionEnded,
    SessionRestored,
    SessionStarted,
    SessionState,
    SessionWithdrawn,
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
THREE, FOUR = "hhhhhhhhhhhhhhhh", "iiiiiiiiiiiiiiii"
SESSION, ALIAS = "jjjjjjjjjjjjjjjj", "kkkkkkkkkkkkkkkk"
BEGUN = SessionState(
    client="an editor 🖊",
    started_at="2026-11-30T20:30:04.000000Z",
    project="Матрёна",
    meta={"deep": [None, {"k": 1.5}]},
)
SUMMED_UP = SessionState(
    client=BEGUN.client,
    started_at=BEGUN.started_at,
    project=BEGUN.project,
    meta=BEGUN.meta,
    ended_at="2026-11-30T21:00:00.000000Z",
    summary="found the leak",
)
NAMES = AliasState(name="Ada L.", entity="Ada")
Groups = list[list[Batch]]


def _batch(*events: NewEvent, **fields: str | int) -> Batch:
    return Batch(WORKSPACE, ACTOR, list(events), **fields)  # type: ignore[arg-type]


def batches(ids: CountingIds) -> Groups:
    """Return groups of batches with every event about memories and every header field."""
    batch = _batch
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


def all_batches(ids: CountingIds) -> Groups:
    """Return groups of batches with every event there is."""
    first = batches(ids)
    batch, salt, request = _batch, ids.new_salt, "e" * 64
    began = SessionStarted(salt=salt(), session=BEGUN, request=request)
    return [
        *first,
        [
            batch(NewEvent(SESSION, began), session=SESSION, ik="1" * 32),
            batch(
                NewEvent(THREE, MemoryAdded(salt=salt(), memory=PLAIN)),
                NewEvent(FOUR, MemoryAdded(salt=salt(), memory=PLAIN)),
                session=SESSION,
            ),
        ],
        [
            batch(
                NewEvent(SESSION, SessionEnded(salt=salt(), session=SUMMED_UP), 9), session=SESSION
            )
        ],
        [batch(NewEvent(SESSION, SessionRestored(salt=salt(), session=BEGUN), 12), undo=12)],
        [
            batch(NewEvent(SESSION, SessionWithdrawn(salt=salt(), request=request), 13), undo=9),
            batch(NewEvent(SESSION, SessionRestored(salt=salt(), session=BEGUN), 14), undo=14),
        ],
        [batch(NewEvent(ALIAS, AliasAdded(salt=salt(), alias=NAMES, request=request)))],
        [
            batch(NewEvent(ALIAS, AliasRemoved(salt=salt(), request=request), 16)),
            batch(NewEvent(ALIAS, AliasAdded(salt=salt(), alias=NAMES), 17), undo=17),
        ],
        [
            batch(
                NewEvent(THREE, MemoryDeleted(salt=salt(), request=request), 10),
                NewEvent(FOUR, MemoryDeleted(salt=salt(), request=request), 11),
            )
        ],
    ]


REDACTION = "llllllllllllllll"


MADE: Final[dict[str, tuple[Callable[[CountingIds], Groups], list[Codec | None]]]] = {
    "live": (batches, []),
    "sealed": (batches, ["zst", "gz", None]),
    "every_event": (all_batches, ["gz", "zst"]),
    "redacted": (batches, ["zst", "gz", None]),
}
"""Name of a ledger -> what is in it, and what each of its first segments is packed with."""


def make(root: Path, name: str) -> Position:
    """Make one ledger; after each of the first groups roll and seal with the codec given."""
    content, codecs = MADE[name]
    ids, clock = CountingIds(), TickingClock()
    known = Position.start
    for number, group_batches in enumerate(content(ids)):
        codec = codecs[number] if number < len(codecs) else None
        options = LedgerOptions(
            segment_bytes_max=1 if number < len(codecs) else 1 << 24, codec=codec or "zst"
        )
        ledger = Ledger.open(root, clock=clock, ids=ids, options=options)
        sealer = Sealer(ledger)
        known = _append(ledger, group_batches, known)
        if codec is not None:
            sealer.run()
        sealer.close()
        ledger.close()
        # One record whose clock went back.
        clock.now -= 10_000 if number == 2 else 0
    return _redact(root, clock, ids, known) if name == "redacted" else known


def _append(ledger: Ledger, group_batches: list[Batch], known: Position) -> Position:
    with ledger.lock(5) as writer:
        for _ in writer.catch_up(known):
            pass
        group = writer.group()
        for batch in group_batches:
            group.add(batch)
        return group.commit()


def _redact(root: Path, clock: TickingClock, ids: CountingIds, known: Position) -> Position:
    """Redact memory ONE out of sealed, rolled and live segments, then the reason given for it."""
    ledger = Ledger.open(root, clock=clock, ids=ids)
    redactor = Redactor(ledger)
    salt = ids.new_salt
    targets = _targets(ledger, 4, 6, 7, 8)
    named = MemoryRedacted(salt=salt(), redaction=REDACTION, targets=targets)
    why = RedactionExplained(salt=salt(), reason="Ada asked")
    known = _append(ledger, [_batch(NewEvent(ONE, named, 8), NewEvent(REDACTION, why))], known)
    segments = redactor.rewrite({each.seq: each.digest for each in targets})
    receipt = RedactionCompleted(
        salt=salt(), segments=tuple(segments), files=9, searched=False, remains=("same_text",)
    )
    known = _append(ledger, [_batch(NewEvent(REDACTION, receipt, 10))], known)
    targets = _targets(ledger, 10)
    named = MemoryRedacted(salt=salt(), redaction=REDACTION, targets=targets)
    known = _append(ledger, [_batch(NewEvent(REDACTION, named, 11))], known)
    redactor.rewrite({each.seq: each.digest for each in targets})
    redactor.close()
    ledger.close()
    return known


def _targets(ledger: Ledger, *seqs: int) -> tuple[RedactedRecord, ...]:
    found = ledger.records_at(seqs)
    return tuple(RedactedRecord(seq=seq, digest=found[seq].digest) for seq in seqs)


def main() -> None:
    """Make the ledgers of format 1 below the target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path)
    target: Path = parser.parse_args().target
    for name in MADE:
        make(target / "format1" / name, name)


if __name__ == "__main__":
    main()
