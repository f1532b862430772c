"""What an audit tells: operations, what each did to whom; light to import, as schemas hold it."""

from __future__ import annotations

import msgspec


class FieldChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One field of a memory, session or alias that an operation changed; long texts are cut."""

    field: str
    before: str | None = None
    """None if it was not set."""
    after: str | None = None
    """None if it is not set any more."""


class AuditedSubject(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an operation did to one memory, session, alias or workspace."""

    id: str
    kind: str
    """`memory`, `session`, `alias`, `redaction` or `workspace`."""
    action: str
    """In words: added, changed, superseded, deleted, restored, redacted and so on."""
    title: str | None = None
    snippet: str | None = None
    """How its content begins, if it has no title."""
    entity_name: str | None = None
    changes: tuple[FieldChange, ...] = ()
    is_redacted: bool = False
    """What it said before or after was erased since, so that `changes` does not tell all."""
    redacted_records: int | None = None
    """Of a redaction: how many records about it are erased."""


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One operation: who did what, when and why."""

    position: int
    """Ledger position; memory_undo takes it."""
    at: str
    actor: str
    action: str
    """In words: what it did, taken together."""
    subjects: tuple[AuditedSubject, ...]
    """At most 20."""
    subjects_count: int
    reason: str | None = None
    """Of a redaction or a deletion; None if none was given, or it was redacted too."""
    redaction_id: str | None = None
    """Of the redaction that it is part of."""
    session_id: str | None = None
    cause: str | None = None
    """Id of an outside cause."""
    undoes: int | None = None
    """Position of the operation that it took back."""
    undone_by: int | None = None
    """Position of the last operation that took it back."""
