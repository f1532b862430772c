"""Subjects: whatever events are about, found by its rid or its id in the tables that hold it.

A rid is the position of a subject's first event, so no two subjects share one.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from projections.connection import Connection

KINDS = {
    "memories": "memory",
    "tombstones": "memory",
    "sessions": "session",
    "aliases": "alias",
    "redactions": "redaction",
}
"""Table -> what its rows are; each has a rid, an id and the rid of a workspace."""


class Subject(msgspec.Struct, frozen=True):
    """A memory, session, alias or redaction."""

    kind: str
    id: str
    workspace: int


def subject_at(connection: Connection, rid: int) -> Subject | None:
    """Return what has a rid, in whatever workspace."""
    for table, kind in KINDS.items():
        row = connection.one(f"SELECT id, workspace FROM {table} WHERE rid = ?", (rid,))
        if row is not None:
            return Subject(kind, *row)
    return None


def id_at(connection: Connection, workspace: int | None, rid: int) -> str | None:
    """Return the id of what has a rid in a workspace."""
    subject = subject_at(connection, rid)
    return None if subject is None or subject.workspace != workspace else subject.id


def ids_at(connection: Connection, rids: Iterable[int]) -> list[str]:
    """Return the ids of those of some rids that have one, in their order, each once."""
    found = (subject_at(connection, rid) for rid in dict.fromkeys(rids))
    return [subject.id for subject in found if subject is not None]


def rid_of(connection: Connection, workspace: int | None, subject_id: str) -> int | None:
    """Return the rid of a memory, session, alias or redaction of a workspace."""
    for table in KINDS:
        rid = connection.integer(
            f"SELECT rid FROM {table} WHERE id = ? AND workspace = ?", (subject_id, workspace)
        )
        if rid is not None:
            return rid
    return None


def is_of_workspace(*kinds: str) -> str:
    """Return SQL for: the subject of event `e` is of the workspace ?1 and of one of these kinds."""
    return " OR ".join(
        f"EXISTS (SELECT 1 FROM {table} WHERE rid = e.subject AND workspace = ?1)"
        for table, kind in KINDS.items()
        if kind in kinds
    )
