"""Whether a generation can be believed.

SQLite's integrity check asks FTS5 to check its own index as well, but an index that lost rows whole
is consistent with itself. So a sample of memories must also be found by their own text.
"""

from __future__ import annotations

from projections.connection import DAMAGE_ERRORS, Connection, StatementError
from projections.substring import trigram_match
from projections.text import analyze, fold

SAMPLE = 64
"""Memories that are looked up by their text."""

_TERMS_PER_MEMORY = 4


def find_damage(connection: Connection, *, thorough: bool = True) -> str | None:
    """Check a generation; return what is wrong with it, or None.

    Args:
        connection: in a read transaction.
        thorough: read every page, about a second for each 100 MB; else count and sample.

    """
    try:
        if thorough:
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
    forgotten = connection.value(
        "SELECT count(*) FROM memories WHERE rid NOT IN (SELECT id FROM trigrams_docsize) "
        "AND rid NOT IN (SELECT rid FROM trigrams_pending)"
    )
    if forgotten:
        return f"the substring index lacks {forgotten} of {count} memories"
    rows = connection.execute(
        "SELECT rid, content, rid IN (SELECT rid FROM trigrams_pending) FROM (SELECT rid, content, "
        "row_number() OVER (ORDER BY rid) AS i FROM memories) WHERE i % ? = 0",
        (step,),
    )
    for rid, content, is_pending in rows:
        grams = None if is_pending else trigram_match(fold(content))
        if grams is not None and not _finds(connection, "trigrams", grams, rid):
            return f"memory {rid} is not found by a part of its text"
        for token in analyze(content)[:_TERMS_PER_MEMORY]:
            if not _finds(connection, "memories_fts", f'{{content}} : "{token.term}"', rid):
                return f"memory {rid} is not found by a word of its text"
    return None


def _finds(connection: Connection, index: str, expression: str, rid: int) -> bool:
    sql = f"SELECT rowid FROM {index} WHERE {index} MATCH ? AND rowid = ?"
    return connection.value(sql, (expression, rid)) is not None
