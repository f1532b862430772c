"""Whether a generation can be believed.

SQLite's integrity check asks FTS5 to check its own index as well, but an index that lost rows whole
is consistent with itself. So a sample of memories must also be found by their own words.
"""

from __future__ import annotations

from projections.connection import DAMAGE_ERRORS, Connection, StatementError
from projections.text import analyze

SAMPLE = 64
"""Memories whose words are looked up."""

_TERMS_PER_MEMORY = 4


def find_damage(connection: Connection) -> str | None:
    """Check a generation; return what is wrong with it, or None.

    Reads every page; call it in a read transaction, off any request's path.
    """
    try:
        for (verdict,) in connection.execute("PRAGMA integrity_check(1)"):
            if verdict != "ok":
                return str(verdict)
        return _find_unindexed(connection)
    except (
        *DAMAGE_ERRORS,
        StatementError,
    ) as error:  # the last: a table that is not there any more
        return str(error)


def _find_unindexed(connection: Connection) -> str | None:
    count = connection.value("SELECT count(*) FROM memories")
    indexed = connection.value("SELECT count(*) FROM memories_fts_docsize")
    if count != indexed:
        return f"the text index holds {indexed} of {count} memories"
    step = max(1, count // SAMPLE)
    rows = connection.execute(
        "SELECT rid, content FROM (SELECT rid, content, row_number() OVER (ORDER BY rid) AS i "
        "FROM memories) WHERE i % ? = 0",
        (step,),
    )
    for rid, content in rows:
        for token in analyze(content)[:_TERMS_PER_MEMORY]:
            found = connection.value(
                "SELECT rowid FROM memories_fts WHERE memories_fts MATCH ? AND rowid = ?",
                (f'{{content}} : "{token.term}"', rid),
            )
            if found is None:
                return f"memory {rid} is not found by a word of its text"
    return None
