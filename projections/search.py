"""Search: the text leg, the exact leg, and the re-ranking both share.

A leg yields candidates, best first, in one or more runs; re-ranking multiplies relevance with
importance, decay and recency. Each run is re-ranked in blocks of `BLOCK` candidates. Neither runs
nor blocks depend on the page that is asked for, so pages of any size cut one and the same list.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import msgspec

from ledger import format_us
from projections.connection import Connection
from projections.filters import Filters
from projections.model import Memory
from projections.queries import MEMORY_COLUMNS, US_PER_DAY, memory_from_columns
from projections.schema import BM25_WEIGHTS
from projections.substring import trigram_match
from projections.text import Query, Term, fold

BLOCK = 32
"""Candidates that are re-ranked together."""

HALF_LIFE_DAYS = {"episodic": 30.0, "resource": 90.0}
"""Layers whose memories fade; facts and rules do not."""

TWO_TERMS_PENALTY = 0.9
ANY_TERM_PENALTY = 0.8
"""What a match of some terms is worth beside a match of all; the first seed's figures."""

RUN_LENGTH_MIN = 11
"""Candidates, one more than a usual page, with which a run is not joined by looser matches."""

SCORED_ROWS_MAX = 20_000
"""Rows that "any term" may score: matching is cheap and BM25 is not (about 0.5 us a row)."""


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """One memory found."""

    memory: Memory
    score: float
    """Greater is better; in (0, 1]."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Part of a result."""

    hits: tuple[Hit, ...]
    has_more: bool
    matched: str
    """What the last candidates needed had to hold: "all", "two" or "any" terms, or "substring"."""


class _Candidate(msgspec.Struct, frozen=True):
    """A match: its relevance, in (0, 1], and what re-ranking weighs it by."""

    rid: int
    relevance: float
    importance: float
    layer: str
    created_us: int

    def score(self, now_us: int) -> float:
        """Return relevance x (0.3 + 0.7 importance) x decay(layer) x recency."""
        age_days = max(0.0, (now_us - self.created_us) / US_PER_DAY)
        weight = (0.3 + 0.7 * self.importance) * decay(self.layer, age_days) * recency(age_days)
        return self.relevance * weight


def search_text(
    connection: Connection, query: Query, filters: Filters, *, limit: int, offset: int
) -> Page:
    """Find memories by words, best first.

    All terms first; while that gives too few, the two most specific terms; then any term.
    """
    if not query.terms:
        return Page(hits=(), has_more=False, matched="all")
    wanted = _wanted(limit, offset)
    found: dict[int, _Candidate] = {}
    runs = [0]
    matched = "all"
    for stage, expression, penalty in _relaxations(connection, query):
        matched = stage
        few = stage != "any" and len(query.terms) > 1
        for candidate in _match(connection, expression, penalty, filters, wanted, few=few):
            found.setdefault(candidate.rid, candidate)
        if len(found) >= RUN_LENGTH_MIN:
            runs.append(len(found))
            if len(found) > offset + limit:
                break
    ranked = _rerank(list(found.values()), runs, filters.now_us)
    return _page(connection, ranked, matched, filters.now_us, limit=limit, offset=offset)


def search_exact(
    connection: Connection, text: str, filters: Filters, *, limit: int, offset: int
) -> Page:
    """Find memories whose content holds a string, letter case and letter forms aside.

    Ordered by importance and confidence before re-ranking.
    """
    folded = fold(text)
    wanted = _wanted(limit, offset)
    candidates: list[_Candidate] = []
    for content, candidate in _holding(connection, folded, filters):
        if folded in fold(content):
            candidates.append(candidate)
            if len(candidates) == wanted:
                break
    ranked = _rerank(candidates, [0], filters.now_us)
    return _page(connection, ranked, "substring", filters.now_us, limit=limit, offset=offset)


def _relaxations(connection: Connection, query: Query) -> Iterator[tuple[str, str, float]]:
    """Yield (what must match, FTS5 expression, penalty), from strict to loose."""
    yield "all", query.match_all(), 1.0
    if len(query.terms) < 2:
        return
    counts = {term: _document_count(connection, term) for term in query.terms}
    by_rarity = sorted((term for term, count in counts.items() if count), key=counts.__getitem__)
    if not by_rarity:
        return
    if len(query.terms) > 2 and len(by_rarity) >= 2:
        yield "two", f"{by_rarity[0].match} AND {by_rarity[1].match}", TWO_TERMS_PENALTY
    yield "any", _any_of(by_rarity, counts), ANY_TERM_PENALTY


def _any_of(by_rarity: list[Term], counts: dict[Term, int]) -> str:
    """Match any term, or where that would score too many rows: any two, or one of the rarest."""
    if sum(counts.values()) <= SCORED_ROWS_MAX or len(by_rarity) == 1:
        return " OR ".join(term.match for term in by_rarity)
    pairs = [
        f"({first.match} AND {second.match})"
        for i, first in enumerate(by_rarity)
        for second in by_rarity[i + 1 :]
    ]
    rare, scored = [by_rarity[0].match], counts[by_rarity[0]]
    for term in by_rarity[1:]:
        scored += counts[term]
        if scored > SCORED_ROWS_MAX:
            break
        rare.append(term.match)
    return " OR ".join([*rare, *pairs])


def _document_count(connection: Connection, term: Term) -> int:
    if term.is_prefix:
        return int(
            connection.value(
                "SELECT count(*) FROM memories_fts WHERE memories_fts MATCH ?", (term.match,)
            )
        )
    return connection.value("SELECT doc FROM terms WHERE term = ?", (term.text,)) or 0


def _match(
    connection: Connection,
    expression: str,
    penalty: float,
    filters: Filters,
    wanted: int,
    *,
    few: bool,
) -> Iterator[_Candidate]:
    """Yield the best matches that satisfy the filters.

    FTS5's own order by `rank` prepares a statement of its own, which costs more than it saves where
    few rows match; where many do it spares joining all but the best.
    """
    where, params = filters.conditions()
    rank = f"bm25(memories_fts, {BM25_WEIGHTS})" if few else "rank"
    rows = connection.execute(
        f"SELECT {rank} AS r, m.rid, m.importance, m.layer, m.created_us "
        "FROM memories_fts JOIN memories m ON m.rid = memories_fts.rowid "
        f"WHERE memories_fts MATCH ? AND {where} ORDER BY {'r' if few else 'rank'} LIMIT ?",
        (expression, *params, wanted),
    )
    for rank, rid, importance, layer, created_us in rows:
        # FTS5's bm25() is negative, more so for a better match; |x| / (1 + |x|) keeps its order.
        relevance = penalty * -rank / (1.0 - rank)
        yield _Candidate(rid, relevance, importance, layer, created_us)


def _holding(
    connection: Connection, folded: str, filters: Filters
) -> Iterator[tuple[str, _Candidate]]:
    """Yield content and candidate of every memory that may hold a folded string."""
    where, params = filters.conditions()
    expression = trigram_match(folded)
    if expression is None:
        source = ""
    else:
        source = (
            "m.rid IN (SELECT rowid FROM trigrams WHERE trigrams MATCH ? "
            "UNION ALL SELECT rid FROM trigrams_pending) AND "
        )
        params = [expression, *params]
    rows = connection.execute(
        "SELECT m.content, m.rid, 1.0, m.importance, m.layer, m.created_us "
        f"FROM memories m WHERE {source}{where} "
        "ORDER BY m.importance DESC, m.confidence DESC, m.rid DESC",
        params,
    )
    for content, *match in rows:
        yield content, _Candidate(*match)


def _wanted(limit: int, offset: int) -> int:
    """Candidates to fetch: the page's last block, wherever it begins, is whole."""
    return offset + limit + BLOCK


def _rerank(candidates: list[_Candidate], runs: list[int], now_us: int) -> list[tuple[float, int]]:
    """Return (score, rid) in the final order; `runs` says where each run begins, from 0 on."""
    ranked: list[tuple[float, int]] = []
    for run, end in pairwise([*runs, len(candidates)]):
        for start in range(run, end, BLOCK):
            block = candidates[start : min(start + BLOCK, end)]
            scored = [(candidate.score(now_us), candidate.rid) for candidate in block]
            ranked += sorted(scored, reverse=True)
    return ranked


def _page(
    connection: Connection,
    ranked: list[tuple[float, int]],
    matched: str,
    now_us: int,
    *,
    limit: int,
    offset: int,
) -> Page:
    page = ranked[offset : offset + limit]
    now = format_us(now_us)
    memories = {
        rid: memory_from_columns(columns, now)
        for rid, *columns in connection.execute(
            f"SELECT m.rid, {MEMORY_COLUMNS} FROM memories m "
            f"WHERE m.rid IN ({', '.join('?' * len(page))})",
            [rid for _, rid in page],
        )
    }
    return Page(
        hits=tuple(Hit(memory=memories[rid], score=score) for score, rid in page),
        has_more=len(ranked) > offset + limit,
        matched=matched,
    )


def decay(layer: str, age_days: float) -> float:
    """Halve the weight of a fading layer's memory every half-life."""
    half_life = HALF_LIFE_DAYS.get(layer)
    return 1.0 if half_life is None else 2.0 ** (-age_days / half_life)


def recency(age_days: float) -> float:
    """Favour the new mildly: 1 today, 1/2 after a year."""
    return 1.0 / (1.0 + age_days / 365.0)
