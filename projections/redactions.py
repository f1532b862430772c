"""Redactions: what was erased, by whom and when, and which records an erasing would take."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from ledger import format_us
from projections.connection import Connection
from projections.erasure import CONTENT_TYPES, REDACTED, SUBJECT_TYPES
from projections.redaction_model import Redaction
from projections.states import STATE_FIELDS, decode_session, decode_state, state_from_columns

MEMORY_TYPES: Final = (*CONTENT_TYPES, "memory_deleted")
"""Events about a memory that hold what somebody wrote."""

ERASABLE_TYPES: Final = (
    *MEMORY_TYPES,
    *SUBJECT_TYPES,
    "session_withdrawn",
    "redaction_explained",
)
"""Events whose payloads a redaction may erase."""


SEQ_MAX: Final = 2**63 - 1
"""Past every ledger position, as SQLite counts."""


class Target(msgspec.Struct, frozen=True):
    """A record whose payload would be erased."""

    seq: int
    type: str


def redactions_of(connection: Connection, rid: int) -> list[Redaction]:
    """Return the redactions that erased something of a subject, oldest first."""
    rows = connection.execute(
        "SELECT DISTINCT t.redaction FROM redaction_targets t JOIN events e ON e.seq = t.seq "
        "WHERE t.seq IN (SELECT seq FROM events WHERE subject = ?1 AND subject <> seq UNION ALL "
        "SELECT ?1) AND e.subject = ?1 ORDER BY t.redaction",
        (rid,),
    )
    found = [redaction_at(connection, redaction) for (redaction,) in list(rows)]
    return [redaction for redaction in found if redaction is not None]


def redaction_at(connection: Connection, rid: int) -> Redaction | None:
    """Return a redaction by its rid; nobody is known of one that a restore carried over."""
    row = connection.one(
        "SELECT r.id, e.t_us, a.name, r.reason, r.completed_seq IS NOT NULL FROM redactions r "
        "JOIN events e ON e.seq = r.rid LEFT JOIN agents a ON a.rid = e.actor AND "
        "e.type = 'redaction_explained' WHERE r.rid = ?",
        (rid,),
    )
    if row is None:
        return None
    redaction_id, t_us, actor, reason, completed = row
    return Redaction(
        id=redaction_id,
        at=format_us(t_us),
        by=actor or "",
        reason=reason,
        completed=bool(completed),
        position=rid,
    )


def unfinished(connection: Connection) -> list[tuple[int, str, str]]:
    """Return rid, id and workspace name of the redactions that are not completed, oldest first."""
    rows = connection.execute(
        "SELECT r.rid, r.id, w.name FROM redactions r JOIN workspaces w ON w.rid = r.workspace "
        "WHERE r.completed_seq IS NULL ORDER BY r.rid"
    )
    return [(rid, redaction_id, workspace) for rid, redaction_id, workspace in rows]


def redacted_records(connection: Connection) -> dict[int, str]:
    """Return every record that a redaction names, erased or to be erased: position -> digest."""
    return dict(connection.execute("SELECT seq, digest FROM redaction_targets ORDER BY seq"))


def targets_of(connection: Connection, rid: int) -> dict[int, str]:
    """Return the records that a redaction erases: position -> digest."""
    return dict(
        connection.execute(
            "SELECT seq, digest FROM redaction_targets WHERE redaction = ? ORDER BY seq", (rid,)
        )
    )


def is_erased(connection: Connection, rid: int, until: int | None = None) -> bool:
    """Say whether nothing is left of what a memory last said.

    Args:
        connection: in a read transaction.
        rid: of a memory that is gone.
        until: a ledger position, to ask of a memory that was gone then; None: now.

    """
    until = SEQ_MAX if until is None else until
    status = connection.value(
        "SELECT status FROM memory_versions WHERE rid = ? AND from_seq <= ? "
        "ORDER BY from_seq DESC LIMIT 1",
        (rid, until),
    )
    left = (
        "SELECT 1 FROM memory_versions WHERE rid = ? AND from_seq <= ? AND state IS NOT NULL "
        "LIMIT 1"
    )
    return status == REDACTED or connection.value(left, (rid, until)) is None


def erasable(connection: Connection, rid: int) -> list[Target]:
    """Return the records about a subject that hold what somebody wrote and are not erased."""
    rows = connection.execute(
        "SELECT e.seq, e.type FROM events e WHERE (e.seq = ?1 OR (e.subject = ?1 AND "
        f"e.subject <> e.seq)) AND e.subject = ?1 AND e.type IN ({_marks(ERASABLE_TYPES)}) "
        "AND e.seq NOT IN (SELECT seq FROM redaction_targets) ORDER BY e.seq",
        (rid, *ERASABLE_TYPES),
    )
    return [Target(seq, kind) for seq, kind in rows]


def contents_at(connection: Connection, rid: int, targets: Iterable[Target]) -> dict[int, str]:
    """Return what a memory, or the summary of a session, said after each of some events."""
    said: dict[int, str] = {}
    for target in targets:
        if target.type in CONTENT_TYPES:
            text = connection.value(
                "SELECT state FROM memory_versions WHERE rid = ? AND from_seq = ?",
                (rid, target.seq),
            )
            content = (
                connection.value("SELECT content FROM memories WHERE rid = ?", (rid,))
                if text is None
                else decode_state(text).content
            )
            said[target.seq] = content or ""
        elif target.type in SUBJECT_TYPES and target.type != "alias_added":
            text = connection.value(
                "SELECT state FROM subject_versions WHERE rid = ? AND from_seq = ?",
                (rid, target.seq),
            )
            said[target.seq] = "" if text is None else decode_session(text).summary or ""
    return said


def naming(connection: Connection, workspace: int | None, names: Collection[str]) -> list[int]:
    """Return the memories that name an entity now or did once, and the aliases that do or did."""
    marks = _marks(names)
    rows = connection.execute(
        f"SELECT rid FROM memories WHERE workspace = ? AND entity_name IN ({marks}) UNION "
        "SELECT v.rid FROM memory_versions v WHERE v.state IS NOT NULL AND "
        f"json_extract(v.state, '$.entity_name') IN ({marks}) AND EXISTS (SELECT 1 FROM memories m "
        "WHERE m.rid = v.rid AND m.workspace = ? UNION ALL SELECT 1 FROM tombstones t "
        "WHERE t.rid = v.rid AND t.workspace = ?) UNION "
        "SELECT a.rid FROM aliases a JOIN subject_versions v USING (rid) WHERE a.workspace = ? "
        f"AND v.state IS NOT NULL AND (json_extract(v.state, '$.name') IN ({marks}) OR "
        f"json_extract(v.state, '$.entity') IN ({marks})) ORDER BY 1",
        (workspace, *names, *names, workspace, workspace, workspace, *names, *names),
    )
    return [rid for (rid,) in rows]


def deleted_states(connection: Connection, workspace: int | None) -> Iterable[tuple[int, int, str]]:
    """Yield rid, time of addition (us) and last state of each deleted memory that has one left."""
    return connection.execute(
        "SELECT t.rid, e.t_us, (SELECT v.state FROM memory_versions v WHERE v.rid = t.rid AND "
        "v.state IS NOT NULL ORDER BY v.from_seq DESC LIMIT 1) AS state FROM tombstones t "
        "JOIN events e ON e.seq = t.rid WHERE t.workspace = ? AND state IS NOT NULL ORDER BY t.rid",
        (workspace,),
    )


def chain_members(connection: Connection, workspace: int | None, rid: int) -> list[int]:
    """Return the memories of a memory's supersede chain, itself included, in order of addition.

    Those that were deleted from it are members: they hold earlier words for the same fact. From a
    deleted memory the walk goes on to other deleted ones only; a memory that is current and was
    once linked with it may be about something else.
    """
    found, pending = {rid}, [rid]
    while pending:
        each = pending.pop()
        row = connection.one(
            f"SELECT {', '.join(STATE_FIELDS)} FROM memories WHERE rid = ?", (each,)
        )
        present = set[str]()
        if row is not None:
            state = state_from_columns(row)
            present = {link for link in (state.supersedes, state.superseded_by) if link}
            own_id = connection.value("SELECT id FROM memories WHERE rid = ?", (each,))
            beside = connection.execute(
                "SELECT id FROM memories WHERE superseded_by = ?", (own_id,)
            )
            present |= {link for (link,) in beside}
        past = set[str]()
        for (text,) in connection.execute(
            "SELECT state FROM memory_versions WHERE rid = ? AND state IS NOT NULL", (each,)
        ):
            state = decode_state(text)
            past |= {link for link in (state.supersedes, state.superseded_by) if link}
        linked = {
            connection.integer(
                "SELECT rid FROM memories WHERE id = ? AND workspace = ?", (link, workspace)
            )
            for link in present
        }
        linked |= {
            connection.integer(
                "SELECT rid FROM tombstones WHERE id = ? AND workspace = ?", (link, workspace)
            )
            for link in present | past
        }
        fresh = {link for link in linked if link is not None} - found
        found |= fresh
        pending += fresh
    return sorted(found)


def _marks(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))
