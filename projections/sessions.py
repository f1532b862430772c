"""Sessions: the spans of work that memories were added in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ledger import format_us
from projections.connection import Connection
from projections.model import Session

_decode_meta = msgspec.json.Decoder(dict[str, Any]).decode


def list_sessions(
    connection: Connection,
    workspace: int | None,
    *,
    client: str | None,
    project: str | None,
    active_only: bool,
    before: int | None,
    limit: int,
) -> list[tuple[int, Session]]:
    """Return (rid, session) of the sessions begun last, newest first.

    Args:
        connection: in a read transaction.
        workspace: rid of the workspace.
        client: only of this one.
        project: only of this one.
        active_only: only those that go on.
        before: only those with a lesser rid.
        limit: most sessions.

    """
    where, params = _conditions(workspace, client=client, project=project, active_only=active_only)
    if before is not None:
        where += " AND s.rid < ?"
        params.append(before)
    rows = connection.execute(
        "SELECT s.rid, s.id, s.client, s.project, s.meta, s.started_us, s.ended_us, s.summary, "
        "(SELECT count(*) FROM memories m WHERE m.session_id = s.id AND m.workspace = s.workspace) "
        f"FROM sessions s WHERE {where} ORDER BY s.rid DESC LIMIT ?",
        (*params, limit),
    )
    return [(rid, _session(columns)) for rid, *columns in rows]


def count_sessions(
    connection: Connection,
    workspace: int | None,
    *,
    client: str | None,
    project: str | None,
    active_only: bool,
) -> int:
    """Count the sessions that `list_sessions` would give."""
    where, params = _conditions(workspace, client=client, project=project, active_only=active_only)
    return connection.integer(f"SELECT count(*) FROM sessions s WHERE {where}", params) or 0


def count_memories_of(connection: Connection, workspace: int | None, session_id: str) -> int:
    """Count the memories that name a session, superseded ones included."""
    sql = "SELECT count(*) FROM memories WHERE session_id = ? AND workspace = ?"
    return connection.integer(sql, (session_id, workspace)) or 0


def _conditions(
    workspace: int | None, *, client: str | None, project: str | None, active_only: bool
) -> tuple[str, list[Any]]:
    where, values = "s.workspace = ? AND NOT s.gone", list[Any]([workspace])
    for column, value in (("client", client), ("project", project)):
        if value is not None:
            where += f" AND s.{column} = ?"
            values.append(value)
    if active_only:
        where += " AND s.ended_us IS NULL"
    return where, values


def _session(columns: Sequence[Any]) -> Session:
    session_id, client, project, meta, started_us, ended_us, summary, memories_count = columns
    return Session(
        id=session_id,
        client=client,
        project=project,
        meta={} if meta is None else _decode_meta(meta),
        started_at=format_us(started_us),
        ended_at=None if ended_us is None else format_us(ended_us),
        summary=summary,
        memories_count=memories_count,
    )
