"""The index behind exact search: trigrams of the folded text.

Indexing trigrams costs several times a word index's price when done one memory at a time, and a
sixth of that in bulk. So a write only notes its memory as pending; `flush_trigrams` indexes what is
pending in bulk, off every write's path, and a search looks at the pending memories themselves.
"""

from __future__ import annotations

from projections.connection import Connection
from projections.text import fold

PENDING_MAX = 64
"""Pending memories past which they are worth a bulk."""

TRIGRAM_LENGTH = 3
_GRAMS_MAX = 24


def mark_trigrams(connection: Connection, rid: int) -> None:
    """Note that a memory's trigrams are not those of its text."""
    connection.execute("INSERT OR IGNORE INTO trigrams_pending VALUES(?)", (rid,))


def forget_trigrams(connection: Connection, rid: int) -> None:
    """Take a deleted memory out of the index."""
    connection.execute("DELETE FROM trigrams_pending WHERE rid = ?", (rid,))
    connection.execute("DELETE FROM trigrams WHERE rowid = ?", (rid,))


def are_trigrams_due(connection: Connection) -> bool:
    """Say whether enough memories are pending for a bulk."""
    count = "SELECT count(*) FROM (SELECT 1 FROM trigrams_pending LIMIT ?)"
    return connection.integer(count, (PENDING_MAX,)) == PENDING_MAX


def flush_trigrams(connection: Connection, rows_max: int) -> int:
    """Index at most so many pending memories, oldest first; return how many it did.

    Call it in a write transaction.
    """
    rows = list(
        connection.execute(
            "SELECT p.rid, m.content FROM trigrams_pending p JOIN memories m USING (rid) "
            "ORDER BY p.rid LIMIT ?",
            (rows_max,),
        )
    )
    for rid, content in rows:
        connection.execute(
            "INSERT OR REPLACE INTO trigrams(rowid, content) VALUES(?, ?)", (rid, _indexed(content))
        )
        connection.execute("DELETE FROM trigrams_pending WHERE rid = ?", (rid,))
    return len(rows)


def trigram_match(folded: str) -> str | None:
    """Return the FTS5 expression that every text holding this folded string satisfies.

    None when the string is too short for a trigram, or has none that the index can hold.
    """
    starts = [*range(0, len(folded) - TRIGRAM_LENGTH, TRIGRAM_LENGTH), len(folded) - TRIGRAM_LENGTH]
    grams = [folded[i : i + TRIGRAM_LENGTH] for i in starts[:_GRAMS_MAX] if i >= 0]
    quoted = ['"' + gram.replace('"', '""') + '"' for gram in grams if "\0" not in gram]
    return " AND ".join(quoted) or None


def _indexed(content: str) -> str:
    # The tokenizer stops at a NUL.
    return fold(content).replace("\0", " ")
