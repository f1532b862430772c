"""The text index: filling it at once, and keeping its segments few."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from projections.connection import Connection
from projections.term_worker import analyze_rows
from projections.text import terms

FTS5_AUTOMERGE, FTS5_HASH_BYTES = 4, 1 << 20
"""FTS5's own defaults, restored after a bulk."""

BULK_HASH_BYTES = 64 << 20
"""Postings gathered in memory before a bulk writes a segment."""


def index_everything(connection: Connection, count: int) -> Iterator[int]:
    """Fill an empty text index from the memories table, in rid order; yield the rows done so far.

    FTS5 starts a new segment each time a rowid comes out of order inside a transaction, so a
    rebuild folds all edits into the table first and indexes each final text once.

    Args:
        connection: where the index is.
        count: how many memories there are.

    """
    _tune_text_index(connection, automerge=0, hashsize=BULK_HASH_BYTES)
    rows = connection.execute("SELECT rid, title, content, entity_name FROM memories ORDER BY rid")
    for done, row in enumerate(analyze_rows(rows, count), 1):
        connection.execute(
            "INSERT INTO memories_fts(rowid, title, content, entity) VALUES(?, ?, ?, ?)", row
        )
        yield done
    _tune_text_index(connection, automerge=FTS5_AUTOMERGE, hashsize=FTS5_HASH_BYTES)


def _tune_text_index(connection: Connection, **options: int) -> None:
    for name, value in options.items():
        connection.execute(
            "INSERT INTO memories_fts(memories_fts, rank) VALUES(?, ?)", (name, value)
        )


def merge_indexes(connection: Connection, pages_max: int) -> None:
    """Merge small segments of the full-text indexes, writing about so many pages of each."""
    for index in ("memories_fts", "trigrams"):
        connection.execute(f"INSERT INTO {index}({index}, rank) VALUES('merge', ?)", (pages_max,))


def terms_of(title: str | None, content: str, entity: str | None) -> tuple[Any, ...]:
    """Return what the index holds of a memory: the terms of each of its columns."""
    return (
        None if title is None else terms(title),
        terms(content),
        None if entity is None else terms(entity),
    )
