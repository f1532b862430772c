"""What a decision may look at: rows of one workspace, read in the transaction that will write."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from ledger import AliasState, MemoryState, SessionState
from projections.aliases import names_of
from projections.connection import Connection
from projections.erasure import REDACTED
from projections.filters import Filters
from projections.listing import count_memories, select_ids
from projections.redactions import is_erased
from projections.sessions import count_memories_of
from projections.states import (
    STATE_FIELDS,
    decode_alias,
    decode_session,
    decode_state,
    state_from_columns,
)
from projections.subjects import Subject, subject_at

T = TypeVar("T")


class Current(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that is not deleted."""

    id: str
    rid: int
    version: int
    last_seq: int
    """Ledger position of the last event about it."""
    state: MemoryState


class Tombstone(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that is deleted, or whose state was erased."""

    id: str
    rid: int
    last_seq: int
    gone_seq: int
    """Ledger position from which on it is gone."""
    is_redacted: bool = False
    """Nothing is left of what it last said."""


class StandingSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session; `state` is None when its beginning was undone."""

    id: str
    rid: int
    last_seq: int
    state: SessionState | None


class StandingAlias(msgspec.Struct, frozen=True, kw_only=True):
    """An alias; `state` is None when it was removed."""

    id: str
    rid: int
    last_seq: int
    state: AliasState | None


class Touched(msgspec.Struct, frozen=True, kw_only=True):
    """What one operation did to one subject."""

    type: str
    """Of the operation's first event about it."""
    before: MemoryState | SessionState | AliasState | None
    """Its state before the operation; None when it did not exist or was gone."""
    is_erased: bool = False
    """Its state before the operation was erased."""
    now: Current | Tombstone | StandingSession | StandingAlias
    later: tuple[int, ...]
    """Positions of later operations on it, oldest first; an operation that was undone and the one
    that undid it leave no trace and are not among them."""


class Facts:
    """Questions a decision asks about a workspace."""

    def __init__(self, connection: Connection, workspace: int | None) -> None:
        """Bind to a connection and a workspace; None is one that nothing was written to."""
        self._connection = connection
        self._workspace = workspace

    def look(self, read: Callable[[Connection, int | None], T]) -> T:
        """Return what a read of another module finds, for questions that few decisions ask."""
        return read(self._connection, self._workspace)

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
        return None if row is None else self._tombstone(memory_id, *row)

    def _tombstone(self, memory_id: str, rid: int, last_seq: int) -> Tombstone:
        gone_seq = self._connection.integer(
            "SELECT from_seq FROM memory_versions WHERE rid = ? AND to_seq IS NULL", (rid,)
        )
        return Tombstone(
            id=memory_id,
            rid=rid,
            last_seq=last_seq,
            gone_seq=last_seq if gone_seq is None else gone_seq,
            is_redacted=is_erased(self._connection, rid),
        )

    def memories(self, filters: Filters, limit: int) -> list[Current]:
        """Return the first memories of the workspace that satisfy filters, oldest first."""
        here = msgspec.structs.replace(filters, workspace=self._workspace)
        return self._all(select_ids(self._connection, here, limit))

    def count(self, filters: Filters) -> int:
        """Count the memories of the workspace that satisfy filters."""
        here = msgspec.structs.replace(filters, workspace=self._workspace)
        return count_memories(self._connection, here)

    def heads_of_file(self, source_file: str, scope: str) -> list[Current]:
        """Return what was added from a file in a scope and is not superseded, oldest first."""
        ids = self._connection.execute(
            "SELECT id FROM memories WHERE source_file = ? AND scope = ? AND workspace = ? "
            "AND superseded_by IS NULL ORDER BY rid",
            (source_file, scope, self._workspace),
        )
        return self._all([head for (head,) in ids])

    def created_us(self, memory: Current) -> int:
        """Return when a memory was added."""
        sql = "SELECT created_us FROM memories WHERE rid = ?"
        return self._connection.integer(sql, (memory.rid,)) or 0

    def session(self, session_id: str) -> StandingSession | None:
        """Look a session up."""
        row = self._connection.one(
            "SELECT rid, last_seq FROM sessions WHERE id = ? AND workspace = ?",
            (session_id, self._workspace),
        )
        if row is None:
            return None
        rid, last_seq = row
        text = self._version(rid, last_seq)
        state = None if text is None else decode_session(text)
        return StandingSession(id=session_id, rid=rid, last_seq=last_seq, state=state)

    def count_of_session(self, session_id: str) -> int:
        """Count the memories that name a session."""
        return count_memories_of(self._connection, self._workspace, session_id)

    def alias(self, name: str) -> StandingAlias | None:
        """Look up what a name is an alias of."""
        alias_id = self._connection.value(
            "SELECT id FROM aliases WHERE name = ? AND workspace = ? AND NOT gone",
            (name, self._workspace),
        )
        return None if alias_id is None else self._alias(alias_id)

    def names_of(self, name: str) -> tuple[str, ...]:
        """Return every name of the entity that has this name."""
        return names_of(self._connection, self._workspace, name)

    def superseded_by(self, memory_id: str) -> list[Current]:
        """Return the memories that a memory superseded."""
        ids = self._connection.execute(
            "SELECT id FROM memories WHERE superseded_by = ? AND workspace = ? ORDER BY rid",
            (memory_id, self._workspace),
        )
        return self._all([predecessor for (predecessor,) in ids])

    def last_operation(self, subject: Current | Tombstone | StandingSession) -> int | None:
        """Return the position of the last operation on a subject that is not undone, if any."""
        first = self._connection.execute(
            "SELECT batch, undo FROM events WHERE seq = ?", (subject.rid,)
        )
        remaining = not_undone([*first, *self._operations_after(subject.rid, subject.rid)])
        return remaining[-1] if remaining else None

    def is_redaction(self, position: int) -> bool:
        """Say whether an operation is a redaction, or the end of one."""
        kind = self._connection.value("SELECT type FROM events WHERE seq = ?", (position,))
        return kind in ("redaction_explained", "redaction_completed")

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

    def _all(self, ids: list[str]) -> list[Current]:
        found = map(self.memory, ids)
        return [memory for memory in found if isinstance(memory, Current)]

    def _touched(self, rid: int, first_seq: int, event_type: str) -> Touched | None:
        now = self._subject(rid)
        if now is None:
            return None  # a workspace's or an agent's event, or one of another workspace
        before: MemoryState | SessionState | AliasState | None
        if isinstance(now, Current | Tombstone):
            row = self._connection.one(
                "SELECT state, status FROM memory_versions WHERE rid = ? AND from_seq < ? "
                "ORDER BY from_seq DESC LIMIT 1",
                (rid, first_seq),
            )
            text, status = (None, None) if row is None else row
            is_before_erased = status == REDACTED
            before = None if text is None else decode_state(text)
        else:
            text = self._version(rid, first_seq - 1)
            is_before_erased = text is None and self._is_erased_before(rid, first_seq)
            decode = decode_session if isinstance(now, StandingSession) else decode_alias
            before = None if text is None else decode(text)
        return Touched(
            type=event_type,
            before=before,
            is_erased=is_before_erased,
            now=now,
            later=self._later(rid, first_seq),
        )

    def _later(self, rid: int, first_seq: int) -> tuple[int, ...]:
        return not_undone(self._operations_after(rid, first_seq))

    def _subject(self, rid: int) -> Current | Tombstone | StandingSession | StandingAlias | None:
        """Look up whatever has this rid in the workspace."""
        match subject_at(self._connection, rid):
            case Subject(kind="memory", id=memory_id):
                return self.memory(memory_id)
            case Subject(kind="session", id=session_id):
                return self.session(session_id)
            case Subject(kind="alias", id=alias_id):
                return self._alias(alias_id)
            case _:
                return None

    def _alias(self, alias_id: str) -> StandingAlias | None:
        row = self._connection.one(
            "SELECT rid, last_seq FROM aliases WHERE id = ? AND workspace = ?",
            (alias_id, self._workspace),
        )
        if row is None:
            return None
        rid, last_seq = row
        text = self._version(rid, last_seq)
        state = None if text is None else decode_alias(text)
        return StandingAlias(id=alias_id, rid=rid, last_seq=last_seq, state=state)

    def _version(self, rid: int, seq: int) -> str | None:
        """Return the state a session or an alias had after a position; None: it was gone."""
        text: str | None = self._connection.value(
            "SELECT state FROM subject_versions WHERE rid = ? AND from_seq <= ? "
            "ORDER BY from_seq DESC LIMIT 1",
            (rid, seq),
        )
        return text

    def _is_erased_before(self, rid: int, seq: int) -> bool:
        """Say whether the state of a session or an alias before a position was erased."""
        return (
            self._connection.value(
                "SELECT 1 FROM redaction_targets WHERE seq = (SELECT max(from_seq) FROM "
                "subject_versions WHERE rid = ? AND from_seq < ?)",
                (rid, seq),
            )
            is not None
        )

    def _operations_after(self, rid: int, seq: int) -> list[tuple[int, int | None]]:
        """Return (position, what it undoes) of each operation on a subject after an event's.

        That something of it was erased is none: it changes nothing of what is left.
        """
        return list(
            self._connection.execute(
                "SELECT DISTINCT batch, undo FROM events WHERE subject = ? AND subject <> seq "
                "AND type <> 'memory_redacted' "
                "AND batch > (SELECT batch FROM events WHERE seq = ?) ORDER BY batch",
                (rid, seq),
            )
        )


def not_undone(operations: list[tuple[int, int | None]]) -> tuple[int, ...]:
    """Return the positions, oldest first, without the pairs of which one undid the other."""
    positions = {position for position, _ in operations}
    gone: set[int] = set()
    for position, undone in reversed(operations):
        if position not in gone and undone is not None and undone in positions:
            gone |= {position, undone}
    return tuple(position for position, _ in operations if position not in gone)
