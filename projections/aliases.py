"""Aliases: which names are names of one entity.

Aliases join names into groups: everything that can be reached from a name, in either direction, is
the same entity. So it does not matter which name was declared the alias of which.
"""

from __future__ import annotations

from projections.connection import Connection
from projections.model import Alias

NAMES_MAX = 500
"""Names of one entity that a filter looks for; a bound for the SQL, far above what people need."""


def names_of(connection: Connection, workspace: int | None, name: str) -> tuple[str, ...]:
    """Return every name of the entity that has this name, itself first."""
    rows = connection.execute(
        "WITH RECURSIVE same(name) AS (VALUES(?2) UNION "
        "SELECT a.entity FROM same JOIN aliases a "
        "ON a.workspace = ?1 AND a.name = same.name AND NOT a.gone UNION "
        "SELECT a.name FROM same JOIN aliases a "
        "ON a.workspace = ?1 AND a.entity = same.name AND NOT a.gone "
        f"LIMIT {NAMES_MAX}) SELECT name FROM same",
        (workspace, name),
    )
    return tuple(found for (found,) in rows)


def list_aliases(
    connection: Connection, workspace: int | None, names: tuple[str, ...] | None, limit: int
) -> list[Alias]:
    """Return aliases in alphabetical order of entity and alias, optionally those of some names."""
    where, params = "a.workspace = ? AND NOT a.gone", [workspace, *(names or ())]
    if names is not None:
        marks = ", ".join("?" * len(names))
        where += f" AND (a.name IN ({marks}) OR a.entity IN ({marks}))"
        params += names
    rows = connection.execute(
        f"SELECT a.name, a.entity FROM aliases a WHERE {where} ORDER BY a.entity, a.name LIMIT ?",
        (*params, limit),
    )
    return [Alias(alias=name, entity_name=entity) for name, entity in rows]
