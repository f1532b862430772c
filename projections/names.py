"""The names a workspace uses, for whoever is typing one: entities with their aliases, and scopes.

A name is in use while a memory that is neither superseded nor expired has it. One look reads every
row once; what comes of it answers any number of prefixes until the store moves.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from projections.connection import Connection
from projections.text import fold

FOREVER_US = (1 << 63) - 1
"""Moment at which what does not expire does, in microseconds."""

_LAST = "\U0010ffff"
"""No name goes on with it, so a prefix and it come after all names with the prefix."""


class Names:
    """Names in alphabetical order, letter case aside."""

    def __init__(self, used: Iterable[tuple[str, int]]) -> None:
        """Take names, each with the moment in microseconds up to which it is in use."""
        self._entries = sorted((fold(name), name, until_us) for name, until_us in used)

    def beginning_with(self, prefix: str, now_us: int) -> list[str]:
        """Return the names in use now that begin with a prefix, as `fold` compares texts."""
        folded = fold(prefix)
        first = bisect_left(self._entries, (folded,))
        after = bisect_left(self._entries, (folded + _LAST,))
        return [name for _, name, until_us in self._entries[first:after] if until_us > now_us]


def entity_names(connection: Connection, workspace: int | None) -> Names:
    """Return the names of entities; an alias is in use as long as any of the entity's names is."""
    used = dict(_used(connection, workspace, "entity_name"))
    aliases = connection.execute(
        "SELECT name, entity FROM aliases WHERE workspace = ? AND NOT gone", (workspace,)
    )
    for group in _groups(aliases):
        until_us = max(used.get(name, 0) for name in group)
        used.update(dict.fromkeys(group, until_us))
    return Names(used.items())


def scopes(connection: Connection, workspace: int | None) -> Names:
    """Return the scopes."""
    return Names(_used(connection, workspace, "scope"))


def _used(connection: Connection, workspace: int | None, column: str) -> Iterable[tuple[str, int]]:
    # Not by an index: looking every row up in the order of its names takes twice as long.
    return connection.execute(
        f"SELECT {column}, max(coalesce(expires_us, {FOREVER_US})) FROM memories NOT INDEXED "
        f"WHERE workspace = ? AND superseded_by IS NULL AND {column} IS NOT NULL "
        f"GROUP BY {column}",
        (workspace,),
    )


def _groups(pairs: Iterable[tuple[str, str]]) -> list[set[str]]:
    """Join pairs of names into sets of names of one entity."""
    group_of: dict[str, set[str]] = {}
    for pair in pairs:
        joined = set(pair)
        for name in pair:
            joined |= group_of.get(name, set())
        group_of.update(dict.fromkeys(joined, joined))
    return list({id(group): group for group in group_of.values()}.values())
