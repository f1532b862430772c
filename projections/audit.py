"""Audits: who did what, when and why, one entry an operation, read from the tables.

The `events` table names each event of an operation, its subject and its actor; the versions say
what the subject was before and after. Nothing here reads the ledger: what only a payload holds
(the reason of a deletion) the caller adds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from ledger import MemoryState, format_us
from projections.audit_model import AuditedSubject, AuditEntry, FieldChange
from projections.connection import Connection
from projections.erasure import REDACTED
from projections.intervals import standing_at
from projections.queries import memory_rid
from projections.redactions import redaction_at
from projections.snippet import ELLIPSIS
from projections.states import decode_alias, decode_session
from projections.subjects import is_of_workspace, subject_at

SUBJECTS_MAX: Final = 20
"""Subjects of one operation that an entry describes."""

VALUE_CHARS: Final = 200
"""Longest text of a value."""

SNIPPET_CHARS: Final = 60
"""Longest beginning of a content that stands for a title."""

ENTRY_CHARS: Final = 200
"""Characters that an entry takes about besides its values."""

PAGE_CHARS_MAX: Final = 200_000
"""A page ends beyond this many, whatever its limit."""

TYPES: Final[dict[str, tuple[str, ...]]] = {
    "added": ("memory_added",),
    "changed": ("memory_updated", "memory_relinked"),
    "deleted": ("memory_deleted",),
    "restored": ("memory_restored",),
    "redacted": ("memory_redacted", "redaction_explained", "redaction_completed"),
    "session": ("session_started", "session_ended", "session_restored", "session_withdrawn"),
    "alias": ("alias_added", "alias_removed"),
    "workspace": ("workspace_created",),
}
"""Word for a kind of operation -> the events that make it one; `undo` is one of its own."""

_ACTIONS: Final = {
    "memory_added": "added",
    "memory_updated": "changed",
    "memory_relinked": "relinked",
    "memory_deleted": "deleted",
    "memory_restored": "restored",
    "memory_redacted": "redacted",
    "redaction_explained": "explained the redaction",
    "redaction_completed": "completed the redaction",
    "session_started": "began the session",
    "session_ended": "ended the session",
    "session_restored": "restored the session",
    "session_withdrawn": "withdrew the session",
    "alias_added": "named the entity",
    "alias_removed": "removed the name",
    "workspace_created": "created the workspace",
    "agent_registered": "was first seen",
}

# CROSS JOIN: the planner would rather read every version than look each deleted memory up.
_ABOUT: Final = (
    "SELECT rid FROM memories WHERE entity_name IN ({marks}) UNION ALL "
    "SELECT v.rid FROM tombstones t CROSS JOIN memory_versions v ON v.rid = t.rid "
    "WHERE v.state IS NOT NULL AND json_extract(v.state, '$.entity_name') IN ({marks})"
)
"""The rids of memories about an entity, or that were before they were gone."""

_IN_WORKSPACE: Final = (
    f"({is_of_workspace('memory', 'session', 'alias', 'redaction')} "
    "OR (e.subject = ?1 AND e.type = 'workspace_created'))"
)


class AuditFilters(msgspec.Struct, frozen=True, kw_only=True):
    """Which operations: every condition that is given holds for one event of each."""

    workspace: int | None
    memory: str | None = None
    entity_names: tuple[str, ...] = ()
    actor: str | None = None
    types: tuple[str, ...] = ()
    """Words of `TYPES`, or `undo`."""
    session_id: str | None = None
    from_seq: int = 1
    to_seq: int = 2**63 - 1


class AuditPage(msgspec.Struct, frozen=True, kw_only=True):
    """Operations in order."""

    entries: tuple[AuditEntry, ...]
    has_more: bool
    deletions: dict[int, int]
    """Position of an operation -> of its first deletion, whose reason the ledger may hold."""


class _Event(msgspec.Struct, frozen=True):
    seq: int
    type: str
    subject: int
    actor: int
    t_us: int
    undo: int | None
    session: int | None
    cause: int | None


def find_entries(
    connection: Connection, filters: AuditFilters, *, after: int | None, limit: int, newest: bool
) -> AuditPage:
    """Return operations that satisfy filters.

    Args:
        connection: in a read transaction.
        filters: which.
        after: position of the last operation of the page before; None for the first page.
        limit: how many at most.
        newest: newest first, else oldest first.
    """
    entries: list[AuditEntry] = []
    chars = 0
    rid = (
        None
        if filters.memory is None
        else memory_rid(connection, filters.workspace, filters.memory)
    )
    if filters.memory is not None and rid is None:
        return AuditPage(entries=(), has_more=False, deletions={})
    deletions: dict[int, int] = {}
    has_more = False
    batches = _batches(connection, filters, rid, after=after, newest=newest)
    for batch in batches:
        if len(entries) == limit or chars > PAGE_CHARS_MAX:
            has_more = True
            break
        entry, deletion = _entry(connection, batch, rid)
        entries.append(entry)
        chars += _chars(entry)
        if deletion is not None:
            deletions[batch] = deletion
    return AuditPage(entries=tuple(entries), has_more=has_more, deletions=deletions)


def _batches(
    connection: Connection,
    filters: AuditFilters,
    rid: int | None,
    *,
    after: int | None,
    newest: bool,
) -> Iterator[int]:
    """Yield the positions of operations, each once, in order."""
    sql, params = _query(filters, rid, after=after, newest=newest)
    last = None
    for (batch,) in connection.execute(sql, params):
        if batch != last:
            yield batch
            last = batch


def _query(
    filters: AuditFilters, rid: int | None, *, after: int | None, newest: bool
) -> tuple[str, list[Any]]:
    # A batch's events are neighbours, so the order of positions is that of batches.
    params: list[Any] = [filters.workspace]
    parts: list[str] = []

    def add(sql: str, *values: object) -> None:
        parts.append(sql)
        params.extend(values)

    def add_subjects(rids: str, *values: object) -> None:
        # The first event of a subject has its rid; the others are found by their index.
        add(
            f"e.seq IN (SELECT rid FROM ({rids}) UNION ALL SELECT v.seq FROM ({rids}) w "
            "JOIN events v ON v.subject = w.rid AND v.subject <> v.seq)",
            *values,
            *values,
        )

    low, high = filters.from_seq, filters.to_seq
    if after is not None and newest:
        high = min(high, after - 1)
    if after is not None and not newest:
        low = max(low, after + 1)
        add("e.batch > ?", after)
    add("e.seq BETWEEN ? AND ?", low, high)
    if rid is not None:
        add_subjects("SELECT ? AS rid", rid)
    if filters.entity_names:
        marks = ", ".join("?" * len(filters.entity_names))
        names = filters.entity_names
        add_subjects(_ABOUT.format(marks=marks), *names, *names)
    if filters.session_id is not None:
        add("e.session = (SELECT rid FROM origins WHERE id = ?)", filters.session_id)
    if filters.actor is not None:
        add("e.actor IN (SELECT rid FROM agents WHERE name = ?)", filters.actor)
    if filters.types:
        kinds = [kind for word in filters.types for kind in TYPES.get(word, ())]
        is_undo = " OR e.undo IS NOT NULL" if "undo" in filters.types else ""
        add(f"(e.type IN ({', '.join('?' * len(kinds))}){is_undo})", *kinds)
    # Last, for it costs most.
    parts.append(_IN_WORKSPACE)
    order = "DESC" if newest else "ASC"
    # Parameter 1 is the workspace even where no condition needs it.
    where = " AND ".join(["?1 IS ?1", *parts])
    return f"SELECT e.batch FROM events e WHERE {where} ORDER BY e.seq {order}", params


def _entry(connection: Connection, batch: int, rid: int | None) -> tuple[AuditEntry, int | None]:
    """Return an operation, and the position of its first deletion if it has one."""
    events: list[_Event] = []
    subjects: dict[int, list[_Event]] = {}
    for of, *columns in connection.execute(
        "SELECT batch, seq, type, subject, actor, t_us, undo, session, cause FROM events "
        "WHERE seq >= ? ORDER BY seq",
        (batch,),
    ):
        if of != batch:
            break
        event = _Event(*columns)
        events.append(event)
        subjects.setdefault(event.subject, []).append(event)
    shown = list(subjects.items())
    if rid is not None:
        shown.sort(key=lambda item: item[0] != rid)
    first = events[0]
    redaction = _redaction_of(events)
    told = redaction_at(connection, redaction) if redaction is not None else None
    described = tuple(_subject(connection, *item) for item in shown[:SUBJECTS_MAX])
    deletions = [event.seq for event in events if event.type == "memory_deleted"]
    entry = AuditEntry(
        position=batch,
        at=format_us(first.t_us),
        actor=connection.value("SELECT name FROM agents WHERE rid = ?", (first.actor,)) or "",
        action=_action(events, described),
        subjects=described,
        subjects_count=len(subjects),
        reason=None if told is None else told.reason,
        redaction_id=None if told is None else told.id,
        session_id=_origin(connection, first.session),
        cause=_origin(connection, first.cause),
        undoes=first.undo,
        undone_by=connection.integer("SELECT max(batch) FROM events WHERE undo = ?", (batch,)),
    )
    return entry, deletions[0] if deletions else None


def _origin(connection: Connection, rid: int | None) -> str | None:
    """Return the id of a session or a cause."""
    found: str | None = connection.value("SELECT id FROM origins WHERE rid = ?", (rid,))
    return found


def _redaction_of(events: Sequence[_Event]) -> int | None:
    for event in events:
        if event.type in ("redaction_explained", "redaction_completed"):
            return event.subject
    return None


def _action(events: Sequence[_Event], subjects: Sequence[AuditedSubject]) -> str:
    """Say in words what an operation did, taken together."""
    if events[0].undo is not None:
        return f"undid {events[0].undo}"
    kinds = {event.type for event in events}
    if "memory_redacted" in kinds:
        return "redacted"
    if "memory_added" in kinds and any(each.action == "superseded" for each in subjects):
        return "superseded"
    for kind in ("memory_deleted", "memory_added"):
        if kind in kinds:
            return _ACTIONS[kind]
    return _ACTIONS[events[0].type]


def _subject(connection: Connection, rid: int, events: Sequence[_Event]) -> AuditedSubject:
    kind, subject_id = _named(connection, rid)
    first, last = events[0], events[-1]
    action = _ACTIONS[first.type]
    if first.type == "memory_redacted":
        return AuditedSubject(
            id=subject_id,
            kind=kind,
            action=action,
            redacted_records=_targets(connection, first.seq),
            is_redacted=True,
        )
    before, was_erased = _state(connection, kind, rid, first.seq - 1)
    after, is_erased = _state(connection, kind, rid, last.seq)
    said = after or before
    if _superseded(before) != _superseded(after) and after is not None and _superseded(after):
        action = "superseded"
    return AuditedSubject(
        id=subject_id,
        kind=kind,
        action=action,
        title=getattr(said, "title", None),
        snippet=_snippet(said),
        entity_name=getattr(said, "entity_name", None),
        changes=() if after is None else _changes(before, after),
        is_redacted=was_erased or is_erased,
    )


def _snippet(state: msgspec.Struct | None) -> str | None:
    if not isinstance(state, MemoryState) or state.title:
        return None
    return _cut(state.content, SNIPPET_CHARS)


def _superseded(state: msgspec.Struct | None) -> str | None:
    return getattr(state, "superseded_by", None)


def _named(connection: Connection, rid: int) -> tuple[str, str]:
    """Return what a rid is of, and its id."""
    subject = subject_at(connection, rid)
    if subject is not None:
        return subject.kind, subject.id
    workspace_id = connection.value("SELECT id FROM workspaces WHERE rid = ?", (rid,))
    return ("event", "") if workspace_id is None else ("workspace", workspace_id)


def _targets(connection: Connection, seq: int) -> int:
    """Count the records about a subject that the redaction of an event erases."""
    return (
        connection.integer(
            "SELECT count(*) FROM events i JOIN events x ON x.seq BETWEEN i.batch AND i.seq "
            "AND x.batch = i.batch AND x.type = 'redaction_explained' "
            "JOIN redaction_targets t ON t.redaction = x.subject "
            "JOIN events e ON e.seq = t.seq AND e.subject = i.subject WHERE i.seq = ?",
            (seq,),
        )
        or 0
    )


def _state(
    connection: Connection, kind: str, rid: int, seq: int
) -> tuple[msgspec.Struct | None, bool]:
    """Return what a subject said after a position, and whether that was erased."""
    if kind == "memory":
        standing = standing_at(connection, rid, seq)
        if standing is None:
            return None, False
        return standing.state, standing.status == REDACTED
    if kind not in ("session", "alias"):
        return None, False
    row = connection.one(
        "SELECT v.state, t.seq IS NOT NULL FROM subject_versions v LEFT JOIN redaction_targets t "
        "ON t.seq = v.from_seq WHERE v.rid = ? AND v.from_seq <= ? "
        "ORDER BY v.from_seq DESC LIMIT 1",
        (rid, seq),
    )
    if row is None or row[0] is None:
        return None, row is not None and bool(row[1])
    decode = decode_session if kind == "session" else decode_alias
    return decode(row[0]), False


def _changes(before: msgspec.Struct | None, after: msgspec.Struct) -> tuple[FieldChange, ...]:
    """Return the fields in which two states differ; against nothing, those that are set."""
    blank = before or _blank(type(after))
    changes = []
    for field in after.__struct_fields__:
        old, new = getattr(blank, field), getattr(after, field)
        if old != new or (before is None and field in ("content", "layer")):
            told = None if before is None else _value(old)
            changes.append(FieldChange(field=field, before=told, after=_value(new)))
    return tuple(changes)


def _blank(kind: type[msgspec.Struct]) -> msgspec.Struct:
    """Return a state that says nothing: every field that must be given is empty."""
    needed = {field.name: "" for field in msgspec.structs.fields(kind) if field.required}
    return kind(**needed)


def _value(value: object) -> str | None:
    if value is None or value in ((), {}, ""):
        return None
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return _cut(text, VALUE_CHARS)


def _cut(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[: chars - 1] + ELLIPSIS


def _chars(entry: AuditEntry) -> int:
    return ENTRY_CHARS * (1 + len(entry.subjects)) + sum(
        len(change.before or "") + len(change.after or "")
        for subject in entry.subjects
        for change in subject.changes
    )
