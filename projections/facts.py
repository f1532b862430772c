"""What a decision may look at: rows of one workspace, read in the transaction that will write."""

from __future__ import annotations

import msgspec

from ledger import MemoryState
from projections.connection import Connection
from projections.projector import STATE_FIELDS, decode_state, state_from_columns


class Current(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that is not deleted."""

    id: str
    rid: int
    version: int
    last_seq: int
    """Ledger position of the last event about it."""
    state: MemoryState


class Tombstone(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that is deleted."""

    id: str
    rid: int
    last_seq: int


class Touched(msgspec.Struct, frozen=True, kw_only=True):
    """What one operation did to one memory."""

    memory_id: str
    type: str
    """Of the operation's first event about it."""
    before: MemoryState | None
    """Its state before the operation; None when it did not exist or was deleted."""
    now: Current | Tombstone
    later: tuple[int, ...]
    """Positions of later operations on it, oldest first; an operation that was undone and the one
    that undid it leave no trace and are not among them."""


class Facts:
    """Questions a decision asks about a workspace."""

    def __init__(self, connection: Connection, workspace: int | None) -> None:
        """Bind to a connection and a workspace; None is one that nothing was written to."""
        self._connection = connection
        self._workspace = workspace

    def memory(self, memory_id: str) -> Current | Tombstone | None:
        """Look a memory up."""
        row = self._connection.one(
            f"SELECT rid, version, last_seq, {', '.join(STATE_FIELDS)} FROM memories "
            "WHERE id = ? AND workspace = ?",
            (memory_id, self._workspace),
        )
        if row is not None:
            rid, version, last_seq, *columns = row
            return Current(
                id=memory_id,
                rid=rid,
                version=version,
                last_seq=last_seq,
                state=state_from_columns(columns),
            )
        row = self._connection.one(
            "SELECT rid, seq FROM tombstones WHERE id = ? AND workspace = ?",
            (memory_id, self._workspace),
        )
        return None if row is None else Tombstone(id=memory_id, rid=row[0], last_seq=row[1])

    def superseded_by(self, memory_id: str) -> list[Current]:
        """Return the memories that a memory superseded."""
        ids = self._connection.execute(
            "SELECT id FROM memories WHERE superseded_by = ? AND workspace = ? ORDER BY rid",
            (memory_id, self._workspace),
        )
        found = [self.memory(predecessor) for (predecessor,) in list(ids)]
        return [memory for memory in found if isinstance(memory, Current)]

    def last_operation(self, memory: Current | Tombstone) -> int | None:
        """Return the position of the last operation on a memory that is not undone, if there is."""
        first = self._connection.execute(
            "SELECT batch, undo FROM events WHERE seq = ?", (memory.rid,)
        )
        remaining = _not_undone([*first, *self._operations_after(memory.rid, memory.rid)])
        return remaining[-1] if remaining else None

    def undone_by(self, position: int) -> int | None:
        """Return the position of the last operation that undid this one, if any did."""
        return self._connection.integer("SELECT max(batch) FROM events WHERE undo = ?", (position,))

    def undoes(self, position: int) -> int | None:
        """Return the position of the operation that this one undid, if it undid any."""
        return self._connection.integer("SELECT undo FROM events WHERE seq = ?", (position,))

    def touched(self, position: int) -> list[Touched]:
        """Say what an operation of this workspace did; empty when there is no such operation."""
        first_events: dict[int, tuple[int, str]] = {}
        for seq, batch, event_type, subject in self._connection.execute(
            "SELECT seq, batch, type, subject FROM events WHERE seq >= ? ORDER BY seq", (position,)
        ):
            if batch != position:
                break  # a batch's events are neighbours
            first_events.setdefault(subject, (seq, event_type))
        touched = [self._touched(rid, *event) for rid, event in first_events.items()]
        return [memory for memory in touched if memory is not None]

    def repeated(self, digest: str) -> tuple[int, str | None] | None:
        """Return (position, request digest) of the operation that used an idempotency key."""
        row = self._connection.one(
            "SELECT batch, request FROM idempotency WHERE digest = ?", (digest,)
        )
        return None if row is None else (row[0], row[1])

    def _touched(self, rid: int, first_seq: int, event_type: str) -> Touched | None:
        memory_id = self._connection.value(
            "SELECT id FROM memories WHERE rid = ?1 "
            "UNION ALL SELECT id FROM tombstones WHERE rid = ?1",
            (rid,),
        )
        now = None if memory_id is None else self.memory(memory_id)
        if now is None:
            return None  # a workspace's or an agent's event, or one of another workspace
        text = self._connection.value(
            "SELECT state FROM memory_versions WHERE rid = ? AND to_seq = ?", (rid, first_seq)
        )
        return Touched(
            memory_id=now.id,
            type=event_type,
            before=None if text is None else decode_state(text),
            now=now,
            later=_not_undone(self._operations_after(rid, first_seq)),
        )

    def _operations_after(self, rid: int, seq: int) -> list[tuple[int, int | None]]:
        """Return (position, what it undoes) of each operation on a memory after an event's."""
        return list(
            self._connection.execute(
                "SELECT DISTINCT batch, undo FROM events WHERE subject = ? AND subject <> seq "
                "AND batch > (SELECT batch FROM events WHERE seq = ?) ORDER BY batch",
                (rid, seq),
            )
        )


def _not_undone(operations: list[tuple[int, int | None]]) -> tuple[int, ...]:
    """Return the positions, oldest first, without the pairs of which one undid the other."""
    positions = {position for position, _ in operations}
    gone: set[int] = set()
    for position, undone in reversed(operations):
        if position not in gone and undone is not None and undone in positions:
            gone |= {position, undone}
    return tuple(position for position, _ in operations if position not in gone)
