"""Lists: every memory that satisfies filters, in an order that pages cut without gap or repeat.

Pages are found by key, not by counting: a page begins after the last memory of the one before, so
what is added or deleted meanwhile moves nothing. Only an order by a value that changes itself
(`changed`, `important`, `happened`) shows a memory twice or not at all if it changes meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ledger import format_us
from projections.connection import Connection
from projections.filters import Filters
from projections.model import Memory
from projections.queries import MEMORY_COLUMNS, memory_from_columns

ORDERS: Final = {
    "newest": ("m.rid", "DESC"),
    "oldest": ("m.rid", "ASC"),
    "changed": ("m.version", "DESC"),
    "happened": ("m.happened_from, m.rid", "DESC"),
    "important": ("m.importance, m.rid", "DESC"),
}
"""Name of an order -> the columns of its key, which no two memories share, and the direction."""

Key = tuple[int | float | str, ...]

KEY_TYPES: Final[dict[str, type[Key]]] = {
    "newest": tuple[int],
    "oldest": tuple[int],
    "changed": tuple[int],
    "happened": tuple[int, int],
    "important": tuple[float, int],
}
"""Name of an order -> its key."""


class ListPage(msgspec.Struct, frozen=True, kw_only=True):
    """Part of a list."""

    memories: tuple[Memory, ...]
    keys: tuple[Key, ...]
    """The key of each memory: where a page that begins after it goes on."""
    has_more: bool


def list_memories(
    connection: Connection, filters: Filters, *, order: str, after: Key | None, limit: int
) -> ListPage:
    """Return at most `limit` memories that come after a key."""
    columns, direction = ORDERS[order]
    where, params = filters.conditions()
    if after is not None:
        marks = ", ".join("?" * len(after))
        where += f" AND ({columns}) {'>' if direction == 'ASC' else '<'} ({marks})"
        params += after
    keys = columns.split(", ")
    order_by = ", ".join(f"{key} {direction}" for key in keys)
    # The page is found first: sorting whole rows would carry every text along.
    rows: Sequence[tuple[Any, ...]] = list(
        connection.execute(
            f"SELECT {columns}, {MEMORY_COLUMNS} FROM (SELECT m.rid FROM memories m WHERE {where} "
            f"ORDER BY {order_by} LIMIT ?) AS page CROSS JOIN memories m ON m.rid = page.rid "
            f"ORDER BY {order_by}",
            (*params, limit + 1),
        )
    )
    now, width = format_us(filters.now_us), len(keys)
    return ListPage(
        memories=tuple(memory_from_columns(row[width:], now) for row in rows[:limit]),
        keys=tuple(row[:width] for row in rows[:limit]),
        has_more=len(rows) > limit,
    )


def count_memories(connection: Connection, filters: Filters) -> int:
    """Count the memories that satisfy filters."""
    where, params = filters.conditions()
    count = connection.integer(f"SELECT count(*) FROM memories m WHERE {where}", params)
    return count or 0


def select_ids(connection: Connection, filters: Filters, limit: int) -> list[str]:
    """Return the ids of the first `limit` memories that satisfy filters, oldest first."""
    where, params = filters.conditions()
    rows = connection.execute(
        f"SELECT m.id FROM memories m WHERE {where} ORDER BY m.rid LIMIT ?", (*params, limit)
    )
    return [memory_id for (memory_id,) in rows]
