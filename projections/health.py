"""Health: what a look at the tables says about the state of the memories."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from projections.connection import Connection
from projections.model import ExpiredEntry, OrphanedLink
from projections.queries import IS_ACTIVE

LISTED_MAX = 50
"""Entries that are named one by one."""

LOW_CONFIDENCE = 0.3
STALE_AFTER_US = 30 * 86_400_000_000
YOUNG_US = 7 * 86_400_000_000
"""Age below which a memory is not stale, however seldom it is read."""


class MemoryHealth(msgspec.Struct, frozen=True, kw_only=True):
    """What was found of one workspace."""

    expired: tuple[ExpiredEntry, ...]
    """Those not superseded, first expired first, at most LISTED_MAX."""
    expired_count: int
    """All of them, superseded ones included."""
    orphans: tuple[OrphanedLink, ...]
    """At most LISTED_MAX."""
    loops: tuple[str, ...]
    """Memories whose chain has no newest one, at most LISTED_MAX."""
    stale_count: int
    low_confidence_count: int


def memory_health(
    connection: Connection, workspace: int | None, *, now_us: int, read_ids: Collection[str]
) -> MemoryHealth:
    """Look at a workspace; a full pass over its table.

    Args:
        connection: in a read transaction.
        workspace: its rid.
        now_us: dates expiry and age.
        read_ids: memories that were found or read within STALE_AFTER_US.

    """
    expired = connection.execute(
        "SELECT id, title, expires_at FROM memories WHERE workspace = ? AND expires_us <= ? "
        "AND superseded_by IS NULL ORDER BY expires_us, rid LIMIT ?",
        (workspace, now_us, LISTED_MAX),
    )
    orphans = connection.execute(
        "SELECT m.id, m.supersedes FROM memories m WHERE m.workspace = ? "
        "AND m.supersedes IS NOT NULL "
        "AND NOT EXISTS (SELECT 1 FROM memories o WHERE o.id = m.supersedes) LIMIT ?",
        (workspace, LISTED_MAX),
    )
    count, low_confidence = connection.one(
        f"SELECT sum(expires_us <= ?1), sum({IS_ACTIVE} AND confidence < ?2) "
        "FROM memories WHERE workspace = ?3",
        (now_us, LOW_CONFIDENCE, workspace),
    ) or (0, 0)
    stale = connection.integer(
        f"SELECT count(*) FROM memories WHERE {IS_ACTIVE} AND workspace = ?2 AND created_us < ?3 "
        "AND id NOT IN (SELECT value FROM json_each(?4))",
        (now_us, workspace, now_us - YOUNG_US, msgspec.json.encode(list(read_ids)).decode()),
    )
    return MemoryHealth(
        expired=tuple(ExpiredEntry(id=i, title=title, expires_at=at) for i, title, at in expired),
        expired_count=count or 0,
        orphans=tuple(OrphanedLink(id=i, missing_supersedes=link) for i, link in orphans),
        loops=_loops(connection, workspace),
        stale_count=stale or 0,
        low_confidence_count=low_confidence or 0,
    )


def _loops(connection: Connection, workspace: int | None) -> tuple[str, ...]:
    """Return memories from which no newest one is reached.

    Found by walking back from what a newest memory superseded, so only over what was superseded.
    """
    rows = connection.execute(
        "WITH RECURSIVE sound(id) AS (SELECT m.id FROM memories m WHERE m.workspace = ?1 "
        "AND m.superseded_by IS NOT NULL AND NOT EXISTS (SELECT 1 FROM memories o "
        "WHERE o.id = m.superseded_by AND o.superseded_by IS NOT NULL) "
        "UNION SELECT m.id FROM sound JOIN memories m ON m.superseded_by = sound.id) "
        "SELECT id FROM memories WHERE workspace = ?1 AND superseded_by IS NOT NULL "
        "AND id NOT IN sound ORDER BY rid LIMIT ?2",
        (workspace, LISTED_MAX),
    )
    return tuple(memory_id for (memory_id,) in rows)
