"""Operations: the batches of a workspace, chosen by who or what was behind them and when.

An operation is named by the ledger position of its first event. Choosing reads the table of events
once from its end; it needs no index, so that no write pays for what is seldom asked.
"""

from __future__ import annotations

from typing import Any

import msgspec

from projections.connection import Connection
from projections.subjects import is_of_workspace

_OF_WORKSPACE = is_of_workspace("memory", "session", "alias")

_ADDED_BY_NAME = """e.type = 'memory_added' AND e.subject = e.seq AND (
    EXISTS (SELECT 1 FROM memories WHERE rid = e.subject AND session_id = ??)
    OR EXISTS (SELECT 1 FROM tombstones AS t JOIN memory_versions AS v
        ON v.rid = t.rid AND v.from_seq = t.rid
        WHERE t.rid = e.subject AND v.state ->> '$.session_id' = ??))"""


class OperationFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which operations; what is None does not narrow."""

    actor: str | None = None
    """Name of who did it."""
    session: str | None = None
    """A session that the operation named. A name that no operation's header knows, because it was
    not minted here, stands for the additions of memories that carry it."""
    cause: str | None = None
    """Id that the operations of one bulk command share."""
    first: int | None = None
    last: int | None = None
    """Ledger positions, both included."""
    from_us: int | None = None
    to_us: int | None = None
    """Half-open span of the recorded time."""


def select_operations(
    connection: Connection, workspace: int | None, chosen: OperationFilter
) -> list[int]:
    """Return the positions of the operations of a workspace that a filter matches, newest first."""
    conditions: list[str] = ["e.seq = e.batch"]
    params: list[Any] = [workspace]

    def narrow(condition: str, *values: Any) -> None:  # noqa: ANN401 - SQLite values
        for value in values:
            params.append(value)
            condition = condition.replace("??", f"?{len(params)}", 1)
        conditions.append(condition)

    if chosen.actor is not None:
        narrow("e.actor = (SELECT rid FROM agents WHERE name = ??)", chosen.actor)
    if chosen.session is not None:
        origin = connection.value("SELECT rid FROM origins WHERE id = ?", (chosen.session,))
        if origin is None:
            narrow(_ADDED_BY_NAME, chosen.session, chosen.session)
        else:
            narrow("e.session = ??", origin)
    if chosen.cause is not None:
        narrow("e.cause = (SELECT rid FROM origins WHERE id = ??)", chosen.cause)
    for bound, condition in (
        (chosen.first, "e.seq >= ??"),
        (chosen.last, "e.seq <= ??"),
        (chosen.from_us, "e.t_us >= ??"),
        (chosen.to_us, "e.t_us < ??"),
    ):
        if bound is not None:
            narrow(condition, bound)
    # What is cheap to look at narrows first; the workspace takes a look into four tables.
    where = " AND ".join([*conditions, f"({_OF_WORKSPACE})"])
    sql = f"SELECT e.seq FROM events AS e WHERE {where} ORDER BY e.seq DESC"
    rows = connection.execute(sql, params)
    return [seq for (seq,) in rows]


def undoers(connection: Connection) -> dict[int, int]:
    """Return each operation that is undone now, and the one that undid it.

    An undo that was undone itself counts for nothing. Whatever undoes comes later than what it
    undoes, so one look from the newest to the oldest decides.
    """
    undone: dict[int, int] = {}
    for position, target in connection.execute(
        "SELECT batch, undo FROM events WHERE undo IS NOT NULL AND seq = batch ORDER BY seq DESC"
    ):
        if position not in undone:
            undone[target] = position
    return undone


def undone_under(connection: Connection, cause: str) -> list[tuple[int, int]]:
    """Return (undone, undoing) of the undos that share a cause, in the order they were done."""
    rows = connection.execute(
        "SELECT undo, batch FROM events WHERE undo IS NOT NULL AND seq = batch "
        "AND cause = (SELECT rid FROM origins WHERE id = ?) ORDER BY seq",
        (cause,),
    )
    return [(undone, undoing) for undone, undoing in rows]


def actor_names(connection: Connection, limit: int) -> list[str]:
    """Return the names of those who wrote to the store, the latest to come first."""
    rows = connection.execute("SELECT name FROM agents ORDER BY rid DESC LIMIT ?", (limit,))
    return [name for (name,) in rows]
