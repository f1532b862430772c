"""Reads by id: one memory, its chain, its versions, and statistics of a workspace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ledger import MemoryState, format_us
from projections.connection import Connection
from projections.model import EntityCount, LayerStatistics, Memory, Version
from projections.states import (
    ACTIVE,
    STATE_FIELDS,
    SUPERSEDED,
    decode_state,
    state_fields,
    state_from_columns,
)

IS_ACTIVE = "(superseded_by IS NULL AND (expires_us IS NULL OR expires_us > ?1))"
"""SQL for a memory that is current at the instant of parameter 1."""

CHAIN_LENGTH_MAX = 1_000
TOP_ENTITIES = 5
US_PER_DAY = 86_400_000_000

SEQ_MAX = (1 << 63) - 1
"""No ledger position comes after it."""

MEMORY_COLUMNS = ", ".join(
    f"m.{name}" for name in ("id", "version", "created_us", "updated_us", *STATE_FIELDS)
)
"""Columns of `memories m` that `memory_from_columns` takes."""


_SAID_BY_VERSIONS = tuple(name for name in STATE_FIELDS if name in Version.__struct_fields__)

EXPIRED = "expired"
"""Status of a memory whose time to live has run out, beside `ACTIVE` and `SUPERSEDED`."""


def memory_from_columns(row: Sequence[Any], now: str) -> Memory:
    """Build a memory from the columns of `MEMORY_COLUMNS`; `now` is an instant in record form."""
    memory_id, version, created_us, updated_us, *columns = row
    fields = state_fields(columns)
    return Memory(
        id=memory_id,
        version=version,
        created_at=format_us(created_us),
        updated_at=format_us(updated_us),
        status=status_of(fields["superseded_by"], fields["expires_at"], now),
        **fields,
    )


def status_of(superseded_by: str | None, expires_at: str | None, now: str) -> str:
    """Return the status at an instant in record form of a memory that is not deleted."""
    if superseded_by is not None:
        return SUPERSEDED
    return ACTIVE if expires_at is None or expires_at > now else EXPIRED


def workspace_rid(connection: Connection, name: str) -> int | None:
    """Return the rid of a workspace; None when nothing was ever written to it."""
    return connection.integer("SELECT rid FROM workspaces WHERE name = ?", (name,))


def find_memory(
    connection: Connection, workspace: int | None, memory_id: str, now: str
) -> Memory | None:
    """Return a memory of this workspace that is not deleted; `now` dates its status."""
    row = connection.one(
        f"SELECT {MEMORY_COLUMNS} FROM memories m WHERE m.id = ? AND m.workspace = ?",
        (memory_id, workspace),
    )
    return None if row is None else memory_from_columns(row, now)


def deleted_at(connection: Connection, workspace: int | None, memory_id: str) -> int | None:
    """Return the ledger position at which a memory of this workspace was deleted, if it was."""
    return connection.integer(
        "SELECT seq FROM tombstones WHERE id = ? AND workspace = ?", (memory_id, workspace)
    )


def chain_of(find: Callable[[str], Memory | None], memory: Memory) -> list[Memory]:
    """Return the whole chain a memory stands in, newest first; `find` looks its links up.

    A loop, which only a hand-made ledger can hold, is walked once.
    """
    older = list(_walk(find, memory, "supersedes"))
    newer = list(_walk(find, memory, "superseded_by"))
    seen = {memory.id, *(link.id for link in older)}
    return [*(link for link in reversed(newer) if link.id not in seen), memory, *older]


def memory_rid(connection: Connection, workspace: int | None, memory_id: str) -> int | None:
    """Return the rid of a memory of this workspace, also of one that is deleted."""
    return connection.integer(
        "SELECT rid FROM memories WHERE id = ?1 AND workspace = ?2 "
        "UNION ALL SELECT rid FROM tombstones WHERE id = ?1 AND workspace = ?2",
        (memory_id, workspace),
    )


def versions_of(
    connection: Connection, workspace: int | None, memory_id: str, until: int = SEQ_MAX
) -> list[Version]:
    """Return every version of a memory, newest first, also of one that is deleted.

    Args:
        connection: in a read transaction.
        workspace: rid of the workspace.
        memory_id: the memory.
        until: leave out what came after this ledger position.

    """
    rid = memory_rid(connection, workspace, memory_id)
    if rid is None:
        return []
    versions = []
    current = connection.one(
        f"SELECT last_seq, version, {', '.join(STATE_FIELDS)} FROM memories "
        "WHERE rid = ? AND last_seq <= ?",
        (rid, until),
    )
    if current is not None:
        from_seq, version, *columns = current
        state = state_from_columns(columns)
        status = ACTIVE if state.superseded_by is None else SUPERSEDED
        interval = (from_seq, None)
        versions.append(_version(connection, interval, version, status, state))
    closed = connection.execute(
        "SELECT version, status, from_seq, to_seq, state FROM memory_versions "
        "WHERE rid = ? AND from_seq <= ? ORDER BY from_seq DESC",
        (rid, until),
    )
    versions += [
        _version(
            connection,
            (from_seq, None if to_seq is None or to_seq > until else to_seq),
            version,
            status,
            None if text is None else decode_state(text),
        )
        for version, status, from_seq, to_seq, text in closed
    ]
    return versions


def layer_statistics(
    connection: Connection,
    workspace: int | None,
    *,
    layers: Sequence[str],
    entity_names: Sequence[str] | None,
    now_us: int,
) -> dict[str, LayerStatistics]:
    """Count the memories of each layer, optionally of some entities only."""
    where = "workspace = ?2"
    params: list[int | str | None] = [workspace]
    if entity_names is not None:
        where += f" AND entity_name IN ({', '.join('?' * len(entity_names))})"
        params += entity_names
    counted = {
        layer: rest
        for layer, *rest in connection.execute(
            f"SELECT layer, count(*), sum({IS_ACTIVE}), sum(superseded_by IS NOT NULL), "
            "sum(superseded_by IS NULL AND expires_us IS NOT NULL AND expires_us <= ?1), "
            f"avg(confidence) FILTER (WHERE {IS_ACTIVE}), "
            f"avg(?1 - created_us) FILTER (WHERE {IS_ACTIVE}) "
            f"FROM memories WHERE {where} GROUP BY layer",
            (now_us, *params),
        )
    }
    entities = _top_entities(connection, where, (now_us, *params))
    statistics = {}
    for layer in layers:
        total, active, superseded, expired, confidence, age_us = counted.get(layer, [0] * 6)
        statistics[layer] = LayerStatistics(
            total=total,
            active=active,
            superseded=superseded,
            expired=expired,
            avg_confidence=round(confidence or 0.0, 3),
            avg_age_days=round((age_us or 0) / US_PER_DAY, 1),
            top_entities=tuple(entities.get(layer, ())),
        )
    return statistics


def _top_entities(
    connection: Connection, where: str, params: Sequence[int | str | None]
) -> dict[str, list[EntityCount]]:
    """Return the entities of each layer that have most memories, in one pass over the table."""
    # The index of entities is in the order of their names, so every row would be looked up alone.
    source = "memories NOT INDEXED" if "entity_name" not in where else "memories"
    rows = connection.execute(
        f"SELECT layer, entity_name, n FROM (SELECT layer, entity_name, count(*) AS n, "
        "row_number() OVER (PARTITION BY layer ORDER BY count(*) DESC, entity_name) AS place "
        f"FROM {source} "
        f"WHERE {where} AND {IS_ACTIVE} AND entity_name IS NOT NULL "
        "GROUP BY layer, entity_name) WHERE place <= ? ORDER BY layer, place",
        (*params, TOP_ENTITIES),
    )
    entities: dict[str, list[EntityCount]] = {}
    for layer, name, count in rows:
        entities.setdefault(layer, []).append(EntityCount(entity_name=name, count=count))
    return entities


def _walk(find: Callable[[str], Memory | None], memory: Memory, link: str) -> Iterator[Memory]:
    seen, step = {memory.id}, memory
    while len(seen) <= CHAIN_LENGTH_MAX:
        following = getattr(step, link)
        if following is None or following in seen:
            return
        found = find(following)
        if found is None:
            return
        seen.add(found.id)
        yield found
        step = found


def _version(
    connection: Connection,
    interval: tuple[int, int | None],
    version: int,
    status: str,
    state: MemoryState | None,
) -> Version:
    from_seq, to_seq = interval
    row = connection.one(
        "SELECT e.t_us, a.name FROM events e LEFT JOIN agents a ON a.rid = e.actor WHERE e.seq = ?",
        (from_seq,),
    )
    t_us, actor = (0, None) if row is None else row
    said = {} if state is None else {name: getattr(state, name) for name in _SAID_BY_VERSIONS}
    return Version(
        version=version,
        status=status,
        from_seq=from_seq,
        to_seq=to_seq,
        at=format_us(t_us),
        actor=actor or "",
        **said,
    )
