"""Memories by id as they were at a ledger position, looked up by the intervals of their versions.

A state was current from its event to the next one about the same memory: in `memories` if it still
is, else in `memory_versions`. So one memory's past is found without replaying anything.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from ledger import MemoryState, format_us
from projections.connection import Connection
from projections.erasure import REDACTED
from projections.model import Memory, Version
from projections.queries import (
    chain_of,
    find_memory,
    memory_rid,
    status_of,
    versions_of,
)
from projections.redaction_model import Redaction
from projections.redactions import is_erased, redactions_of
from projections.states import (
    ACTIVE,
    DELETED,
    STATE_FIELDS,
    SUPERSEDED,
    decode_state,
    state_from_columns,
)

_COLUMNS = ", ".join(STATE_FIELDS)


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How a memory stood at a position."""

    rid: int
    version: int
    from_seq: int
    """Position of the event that made it so."""
    status: str
    state: MemoryState | None
    """None: it was deleted, or what it said is erased; `status` says which."""


class MemoriesById(Protocol):
    """What is asked of memories whose ids are known, now or at a moment."""

    def find(self, memory_id: str) -> Memory | None:
        """Return a memory that is not deleted."""
        ...

    def fate(self, memory_id: str) -> str | None:
        """Say what has become of a memory that is not found: `deleted`, `redacted`, or None."""
        ...

    def redactions(self, memory_id: str) -> tuple[Redaction, ...]:
        """Return the redactions that erased something of a memory, later ones too."""
        ...

    def chain(self, memory: Memory) -> list[Memory]:
        """Return the whole chain a memory stands in, newest first."""
        ...

    def versions(self, memory_id: str) -> list[Version]:
        """Return every version up to then, newest first."""
        ...


class Present:
    """The memories of a workspace as they are."""

    def __init__(self, connection: Connection, workspace: int | None, now_us: int) -> None:
        """Bind to a connection in a read transaction; `now_us` dates expiry."""
        self._connection = connection
        self._workspace = workspace
        self._now = format_us(now_us)

    def find(self, memory_id: str) -> Memory | None:
        """Return a memory that is not deleted."""
        return find_memory(self._connection, self._workspace, memory_id, self._now)

    def fate(self, memory_id: str) -> str | None:
        """Say what has become of a memory that is not found: `deleted`, `redacted`, or None."""
        rid = memory_rid(self._connection, self._workspace, memory_id)
        if rid is None:
            return None
        return REDACTED if is_erased(self._connection, rid) else DELETED

    def redactions(self, memory_id: str) -> tuple[Redaction, ...]:
        """Return the redactions that erased something of a memory."""
        return _redactions(self._connection, self._workspace, memory_id)

    def chain(self, memory: Memory) -> list[Memory]:
        """Return the whole chain a memory stands in, newest first."""
        return chain_of(self.find, memory)

    def versions(self, memory_id: str) -> list[Version]:
        """Return every version, newest first."""
        return versions_of(self._connection, self._workspace, memory_id)


class Past:
    """The memories of a workspace as they were at a position."""

    def __init__(
        self, connection: Connection, workspace: int | None, seq: int, now_us: int
    ) -> None:
        """Bind to a connection in a read transaction; `now_us` dates expiry."""
        self._connection = connection
        self._workspace = workspace
        self._seq = seq
        self._now = format_us(now_us)

    def find(self, memory_id: str) -> Memory | None:
        """Return a memory that was there and not deleted."""
        standing = self._standing(memory_id)
        if standing is None or standing.state is None:
            return None
        state = standing.state
        fields = {name: getattr(state, name) for name in STATE_FIELDS}
        return Memory(
            id=memory_id,
            version=standing.version,
            created_at=self._time_of(standing.rid),
            updated_at=self._time_of(standing.version),
            status=status_of(state.superseded_by, state.expires_at, self._now),
            **fields,
        )

    def fate(self, memory_id: str) -> str | None:
        """Say what had become of a memory that is not found: `deleted`, `redacted`, or None."""
        standing = self._standing(memory_id)
        if standing is None:
            return None
        is_gap = standing.state is None and is_erased(self._connection, standing.rid, self._seq)
        return REDACTED if is_gap else standing.status

    def redactions(self, memory_id: str) -> tuple[Redaction, ...]:
        """Return the redactions that erased something of a memory, later ones too."""
        return _redactions(self._connection, self._workspace, memory_id)

    def chain(self, memory: Memory) -> list[Memory]:
        """Return the whole chain a memory stood in, newest first."""
        return chain_of(self.find, memory)

    def versions(self, memory_id: str) -> list[Version]:
        """Return every version up to then, newest first."""
        return versions_of(self._connection, self._workspace, memory_id, self._seq)

    def _standing(self, memory_id: str) -> Standing | None:
        rid = memory_rid(self._connection, self._workspace, memory_id)
        return None if rid is None else standing_at(self._connection, rid, self._seq)

    def _time_of(self, seq: int) -> str:
        t_us = self._connection.integer("SELECT t_us FROM events WHERE seq = ?", (seq,))
        return format_us(t_us or 0)


def standing_at(connection: Connection, rid: int, seq: int) -> Standing | None:
    """Return how a memory stood at a position; None before it was added."""
    row = connection.one(
        f"SELECT last_seq, version, {_COLUMNS} FROM memories WHERE rid = ? AND last_seq <= ?",
        (rid, seq),
    )
    if row is not None:
        from_seq, version, *columns = row
        state = state_from_columns(columns)
        status = ACTIVE if state.superseded_by is None else SUPERSEDED
        return Standing(rid=rid, version=version, from_seq=from_seq, status=status, state=state)
    row = connection.one(
        "SELECT from_seq, version, status, state FROM memory_versions WHERE rid = ?1 "
        "AND from_seq <= ?2 AND (to_seq IS NULL OR to_seq > ?2) ORDER BY from_seq DESC LIMIT 1",
        (rid, seq),
    )
    if row is None:
        return None
    from_seq, version, status, text = row
    return Standing(
        rid=rid,
        version=version,
        from_seq=from_seq,
        status=status,
        state=None if text is None else decode_state(text),
    )


def _redactions(
    connection: Connection, workspace: int | None, memory_id: str
) -> tuple[Redaction, ...]:
    rid = memory_rid(connection, workspace, memory_id)
    return () if rid is None else tuple(redactions_of(connection, rid))
