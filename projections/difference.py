"""What changed between two moments, from the tables of versions and without replaying anything.

Only subjects that events between the two moments are about can differ, and each is looked up twice:
as it stood at the one and at the other. What came and went in between is no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import msgspec

from ledger import AliasState, MemoryState, SessionState
from projections.connection import Connection
from projections.erasure import REDACTED, SUBJECT_TYPES
from projections.intervals import standing_at
from projections.states import decode_alias, decode_session
from projections.subjects import subject_at

Kind = Literal["memory", "session", "alias"]
What = Literal[
    "added", "changed", "superseded", "reactivated", "restored", "deleted", "redacted", "passing"
]
"""What became of a subject; `passing`: added and deleted again in between; `redacted`: what it said
at the first moment is erased and it says nothing else at the second; or, without fields, a
redaction in between took something of it."""

Fields = dict[str, Any]


class Difference(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How one subject differs between two moments."""

    kind: Kind
    id: str
    what: What
    position: int
    """Ledger position of the last event about it in between."""
    version: int | None = None
    """Of a memory that is there at the second moment: its version then."""
    before: Fields = {}
    """Field -> value at the first moment: the fields that differ; of what is gone, all of them."""
    after: Fields = {}
    """Field -> value at the second moment: the fields that differ; of what came, all of them."""


class Criteria(msgspec.Struct, frozen=True, kw_only=True):
    """Which memories are compared: those that satisfy all of it at either moment."""

    memory_id: str | None = None
    entity_names: tuple[str, ...] = ()
    scope: str | None = None
    layer: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether everything is compared, sessions and aliases too."""
        return self == Criteria()

    def take(self, memory_id: str, *states: MemoryState | None) -> bool:
        """Say whether a memory with these states is compared."""
        if self.memory_id not in (None, memory_id):
            return False
        return any(
            (not self.entity_names or state.entity_name in self.entity_names)
            and self.scope in (None, state.scope)
            and self.layer in (None, state.layer)
            for state in states
            if state is not None
        )

    def take_alias(self, *states: AliasState | None) -> bool:
        """Say whether an alias with these states is compared."""
        if self.is_empty:
            return True
        if not self.entity_names or self.memory_id or self.scope or self.layer:
            return False
        names = {name for state in states if state for name in (state.name, state.entity)}
        return not names.isdisjoint(self.entity_names)


def differences(
    connection: Connection, workspace: int | None, first: int, second: int, criteria: Criteria
) -> Iterator[Difference]:
    """Yield what differs between two moments, in the order of the last events about it.

    Applied to the store as it was at the first moment they give the store as it was at the second.

    Args:
        connection: in a read transaction.
        workspace: rid of the workspace.
        first: ledger position of the earlier moment.
        second: ledger position of the later one.
        criteria: which memories.

    """
    touched = connection.execute(
        "SELECT subject, max(seq), max(CASE WHEN type = 'memory_redacted' THEN seq END) "
        "FROM events WHERE seq > ? AND seq <= ? GROUP BY subject ORDER BY 2",
        (first, second),
    )
    for rid, position, redacted_at in touched:
        subject = subject_at(connection, rid)
        if subject is None or subject.workspace != workspace:
            continue  # a workspace, an agent, or something of another workspace
        if subject.kind not in _FIND:
            continue  # a redaction, which shows in what it erased
        subject_id = subject.id
        kind, find = _FIND[subject.kind]
        found = find(connection, subject_id, rid, (first, second), criteria)
        if found is not None:
            yield msgspec.structs.replace(found, position=position)
            if found.what == "redacted":
                continue
        is_named = criteria.is_empty or criteria.memory_id == subject_id
        if redacted_at is not None and (found is not None or is_named):
            yield Difference(kind=kind, id=subject_id, what="redacted", position=redacted_at)


def _memory(
    connection: Connection, memory_id: str, rid: int, moments: tuple[int, int], criteria: Criteria
) -> Difference | None:
    was, now = (standing_at(connection, rid, seq) for seq in moments)
    before, after = (None if each is None else each.state for each in (was, now))
    if before is None and after is None:
        between = connection.one(
            "SELECT 1 FROM memory_versions WHERE rid = ? AND from_seq > ? AND from_seq <= ? "
            "AND state IS NOT NULL",
            (rid, *moments),
        )
        is_passing = between is not None and criteria.take(memory_id, *_states(connection, rid))
        return _row("memory", memory_id, "passing") if is_passing else None
    if not criteria.take(memory_id, before, after):
        return None
    if before is None:
        what: What = "added" if was is None else "restored"
    elif after is None:
        what = "redacted" if now is not None and now.status == REDACTED else "deleted"
    elif before.superseded_by is None and after.superseded_by is not None:
        what = "superseded"
    elif before.superseded_by is not None and after.superseded_by is None:
        what = "reactivated"
    else:
        what = "changed"
    difference = _row("memory", memory_id, what, _fields(before), _fields(after))
    if difference is None or after is None or now is None:
        return difference
    return msgspec.structs.replace(difference, version=now.version)


def _states(connection: Connection, rid: int) -> Iterator[MemoryState]:
    """Yield the states that a memory, now gone, has had."""
    rows = connection.execute(
        "SELECT from_seq FROM memory_versions WHERE rid = ? AND state IS NOT NULL", (rid,)
    )
    for (seq,) in list(rows):
        standing = standing_at(connection, rid, seq)
        if standing is not None and standing.state is not None:
            yield standing.state


def _session(
    connection: Connection, session_id: str, rid: int, moments: tuple[int, int], criteria: Criteria
) -> Difference | None:
    if not criteria.is_empty:
        return None
    was, now = (_said(connection, rid, seq) for seq in moments)
    before, after = (
        None if each.text is None else decode_session(each.text) for each in (was, now)
    )
    what = _became(connection, rid, moments, (was, now))
    return what and _row("session", session_id, what, _fields(before), _fields(after))


def _alias(
    connection: Connection, alias_id: str, rid: int, moments: tuple[int, int], criteria: Criteria
) -> Difference | None:
    was, now = (_said(connection, rid, seq) for seq in moments)
    before, after = (None if each.text is None else decode_alias(each.text) for each in (was, now))
    what = _became(connection, rid, moments, (was, now))
    if what is None or not criteria.take_alias(before, after):
        return None
    return _row("alias", alias_id, what, _fields(before), _fields(after))


_Find = Callable[[Connection, str, int, tuple[int, int], Criteria], Difference | None]

_FIND: dict[str, tuple[Kind, _Find]] = {
    "memory": ("memory", _memory),
    "session": ("session", _session),
    "alias": ("alias", _alias),
}


class _Said(msgspec.Struct, frozen=True):
    """How a session or an alias stood at a position."""

    begun: bool
    is_erased: bool
    text: str | None
    """Its state; None: it was not there."""


def _said(connection: Connection, rid: int, seq: int) -> _Said:
    row = connection.one(
        "SELECT v.state, e.type FROM subject_versions v JOIN events e ON e.seq = v.from_seq "
        "WHERE v.rid = ? AND v.from_seq <= ? ORDER BY v.from_seq DESC LIMIT 1",
        (rid, seq),
    )
    if row is None:
        return _Said(begun=False, is_erased=False, text=None)
    text, kind = row
    return _Said(begun=True, is_erased=text is None and kind in SUBJECT_TYPES, text=text)


def _became(
    connection: Connection, rid: int, moments: tuple[int, int], said: tuple[_Said, _Said]
) -> What | None:
    """Say what became of a session or an alias; None: there is nothing of it to tell."""
    was, now = said
    if was.text is None and now.text is None:
        between = connection.one(
            "SELECT 1 FROM subject_versions WHERE rid = ? AND from_seq > ? AND from_seq <= ? "
            "AND state IS NOT NULL",
            (rid, *moments),
        )
        return None if between is None else "passing"
    if was.text is None:
        return "restored" if was.begun else "added"
    if now.text is None:
        return "redacted" if now.is_erased else "deleted"
    return "changed"


def _fields(state: MemoryState | SessionState | AliasState | None) -> Fields | None:
    if state is None:
        return None
    return {name: getattr(state, name) for name in state.__struct_fields__}


def _row(
    kind: Kind,
    subject_id: str,
    what: What,
    before: Fields | None = None,
    after: Fields | None = None,
) -> Difference | None:
    """Return a difference with the fields that differ; None if none does."""
    if before is not None and after is not None:
        names = [name for name in before if not _is_same(before[name], after[name])]
        if not names:
            return None
        before = {name: before[name] for name in names}
        after = {name: after[name] for name in names}
    return Difference(
        kind=kind, id=subject_id, what=what, position=0, before=before or {}, after=after or {}
    )


def _is_same(value: object, other: object) -> bool:
    """Compare as JSON: to Python 1 and true are equal."""
    return value == other and msgspec.json.encode(value) == msgspec.json.encode(other)
