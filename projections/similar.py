"""Similar memories: what is said of an entity already that a new memory may contradict.

The work is bounded whatever the store's size: of the longest words of the new text, which tend to
be rare, only the rarest count, until together they stand in `ROWS_MAX` memories, and only
`COMPARED_MAX` texts are compared.
"""

from __future__ import annotations

from math import log1p
from typing import Final

import msgspec

from ledger import format_us
from projections.connection import Connection
from projections.filters import Filters
from projections.model import Memory
from projections.queries import MEMORY_COLUMNS, memory_from_columns
from projections.text import Term, parse_query

ROWS_MAX: Final = 500
"""Memories that the words looked up may stand in, together."""

COUNTED_MAX: Final = 12
"""Words whose memories are looked up: some hundredths of a millisecond each."""

NEWEST_MAX, NAMES_MAX = 16, 4
"""Memories of each name, newest first, that are compared where even the rarest word is common."""

EXAMINED_MAX: Final = 500
"""Memories of each name that are looked at for the newest current ones."""

COMPARED_MAX: Final = 6
"""Best matches whose texts are compared."""

COMPARED_CHARS_MAX: Final = 2_000
"""Characters of a text that are compared."""

SIMILARITY_MIN: Final = 0.25
"""Share of the shorter text's distinct words that both have."""


class Similar(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that says something similar."""

    memory: Memory
    similarity: float
    """Overlap coefficient of the distinct words, 0 to 1."""


def find_similar(
    connection: Connection, memory: Memory, filters: Filters, *, limit: int
) -> list[Similar]:
    """Return the memories most similar to one, most similar first.

    Args:
        connection: in a read transaction.
        memory: what to compare with; it is not among the results.
        filters: what the results satisfy; its entity names are no evidence of similarity.
        limit: most results.

    """
    common = {term.text for name in filters.entity_names for term in parse_query(name).terms}
    words = _words(memory.content, common)
    candidates = _candidates(connection, words, memory.id, filters)
    own = {word.text for word in words}
    found = []
    for candidate in candidates:
        theirs = {word.text for word in _words(candidate.content, common)}
        shared = len(own & theirs) / max(1, min(len(own), len(theirs)))
        if shared >= SIMILARITY_MIN:
            found.append(Similar(memory=candidate, similarity=round(shared, 3)))
    found.sort(key=lambda similar: similar.similarity, reverse=True)
    return found[:limit]


def _words(text: str, common: set[str]) -> list[Term]:
    terms = parse_query(text[:COMPARED_CHARS_MAX].replace('"', " ")).terms
    return [term for term in terms if not term.is_prefix and term.text not in common]


def _candidates(
    connection: Connection, words: list[Term], memory_id: str, filters: Filters
) -> list[Memory]:
    longest = sorted(words, key=lambda word: len(word.text), reverse=True)[:COUNTED_MAX]
    places = {word: _places(connection, word) for word in longest}
    # A word that stands in one memory stands in the new one.
    by_rarity = sorted(
        (word for word in longest if len(places[word]) > 1), key=lambda word: len(places[word])
    )
    if not by_rarity:
        return []
    if len(places[by_rarity[0]]) > ROWS_MAX:
        return _newest(connection, memory_id, filters)
    scores: dict[int, float] = {}
    rows = 0
    for word in by_rarity:
        rows += len(places[word])
        if rows > ROWS_MAX:
            break
        rarity = log1p(ROWS_MAX / len(places[word]))
        for rid in places[word]:
            scores[rid] = scores.get(rid, 0.0) + rarity
    return _best(connection, scores, memory_id, filters)


def _places(connection: Connection, word: Term) -> list[int]:
    """Return the rids of the memories a word stands in: one too many of what is too common."""
    rows = connection.execute(
        "SELECT rowid FROM memories_fts WHERE memories_fts MATCH ? LIMIT ?",
        (word.match, ROWS_MAX + 1),
    )
    return [rid for (rid,) in rows]


def _best(
    connection: Connection, scores: dict[int, float], memory_id: str, filters: Filters
) -> list[Memory]:
    """Return the memories that score highest, of those that satisfy the filters."""
    where, params = filters.conditions()
    rows = connection.execute(
        "SELECT m.rid FROM json_each(?) found CROSS JOIN memories m ON m.rid = found.value "
        f"WHERE {where} AND m.id <> ?",
        (msgspec.json.encode(list(scores)).decode(), *params, memory_id),
    )
    best = sorted((rid for (rid,) in rows), key=lambda rid: (scores[rid], rid), reverse=True)
    now = format_us(filters.now_us)
    return [
        memory_from_columns(columns, now)
        for rid in best[:COMPARED_MAX]
        for columns in connection.execute(
            f"SELECT {MEMORY_COLUMNS} FROM memories m WHERE m.rid = ?", (rid,)
        )
    ]


def _newest(connection: Connection, memory_id: str, filters: Filters) -> list[Memory]:
    """Return the newest memories of each name; name by name the index gives them in order.

    However many of a name were superseded or have expired, only so many are looked at.
    """
    now, memories = format_us(filters.now_us), []
    for name in filters.entity_names[:NAMES_MAX]:
        where, params = msgspec.structs.replace(filters, entity_names=()).conditions()
        memories += [
            memory_from_columns(columns, now)
            for columns in connection.execute(
                f"SELECT {MEMORY_COLUMNS} FROM (SELECT rid FROM memories WHERE entity_name = ? "
                "ORDER BY rid DESC LIMIT ?) AS newest CROSS JOIN memories m ON m.rid = newest.rid "
                f"WHERE {where} AND m.id <> ? ORDER BY m.rid DESC LIMIT ?",
                (name, EXAMINED_MAX, *params, memory_id, NEWEST_MAX),
            )
        ]
    return memories
