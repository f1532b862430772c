"""Snippets: the part of a text that shows best why it was found."""

import re
import unicodedata
from collections.abc import Collection, Sequence

from projections.text import ENGLISH_AND_RUSSIAN, Languages, Term, Token, occurrences

ELLIPSIS = "…"
"""Stands for text that was cut off."""

WIDTH_CHARS = 300
"""Usual longest snippet, in characters."""

_SCAN_CHARS_MAX = 200_000
_HITS_MAX = 500
# How far an end of the snippet moves to a word boundary, and to one between combined characters.
_WORD_SLACK_CHARS = 24
_CLUSTER_SLACK_CHARS = 32

_BLANK = re.compile(r"\s")
_JOINERS = frozenset("\u200d\u20e3")


def snippet(
    text: str,
    query_terms: Collection[Term],
    width_chars: int = WIDTH_CHARS,
    languages: Languages = ENGLISH_AND_RUSSIAN,
) -> str:
    """Cut out the part of a text in which the most different terms of a query stand together.

    The cut ends at blanks where there are any nearby, never within a combined character, and is
    marked by an ellipsis. The rest is the original text, character by character. A text that fits
    is returned whole, one without any match by its beginning. Work is bounded: matches beyond the
    first 200,000 characters or the first 500 are not looked at.

    Args:
        text: The text as it was stored.
        query_terms: What the query looked for.
        width_chars: Longest result, in characters, the ellipses included; at least 16.
        languages: The languages that the text is analyzed in.

    Raises:
        ValueError: If the width is less than 16.
    """
    if width_chars < 16:
        raise ValueError(f"width_chars is {width_chars}, at least 16 are needed")
    if len(text) <= width_chars:
        return text
    inner_chars = width_chars - 2 * len(ELLIPSIS)
    scanned = text[:_SCAN_CHARS_MAX]
    hits = occurrences(scanned, query_terms, limit=_HITS_MAX, languages=languages)
    first, last = _densest(hits, query_terms, inner_chars)
    first, last = _back_to_boundary(text, first), _on_to_boundary(text, last)
    spare_chars = max(0, inner_chars - (last - first))
    start = max(0, min(first - spare_chars // 2, len(text) - inner_chars))
    end = min(len(text), start + inner_chars)
    start = _open(text, start, min(first, end))
    end = _close(text, end, max(last, start))
    cut = text[start:end].strip()
    before = ELLIPSIS if text[:start].strip() else ""
    after = ELLIPSIS if text[end:].strip() else ""
    return f"{before}{cut}{after}"


def _densest(
    hits: Sequence[Token], query_terms: Collection[Term], width_chars: int
) -> tuple[int, int]:
    """Return the span of the hits that best fill a window: most different terms, then most hits."""
    wanted = [_index_of(hit.term, query_terms) for hit in hits]
    counts: dict[int, int] = {}
    best, span = (0, 0), (0, 0)
    left = 0
    for right, hit in enumerate(hits):
        counts[wanted[right]] = counts.get(wanted[right], 0) + 1
        while left < right and hit.end - hits[left].start > width_chars:
            counts[wanted[left]] -= 1
            if not counts[wanted[left]]:
                del counts[wanted[left]]
            left += 1
        score = (len(counts), right - left + 1)
        if score > best:
            best, span = score, (hits[left].start, hit.end)
    return span[0], min(span[1], span[0] + width_chars)


def _index_of(term: str, query_terms: Collection[Term]) -> int:
    return next(index for index, wanted in enumerate(query_terms) if wanted.matches(term))


def _open(text: str, start: int, limit: int) -> int:
    """Move a beginning forward to the next word, if one begins near, but not beyond the limit."""
    if start == 0:
        return 0
    blank = _BLANK.search(text, start - 1, min(start + _WORD_SLACK_CHARS, limit))
    if blank:
        return blank.end()
    return _on_to_boundary(text, start)


def _close(text: str, end: int, limit: int) -> int:
    """Move an end back to the end of a word, if one ends near, but not before the limit."""
    if end == len(text):
        return end
    for at in range(end, max(end - _WORD_SLACK_CHARS, limit) - 1, -1):
        if text[at].isspace():
            return at
    return _back_to_boundary(text, end)


def _on_to_boundary(text: str, at: int) -> int:
    stop = min(at + _CLUSTER_SLACK_CHARS, len(text))
    while 0 < at < stop and _joins(text, at):
        at += 1
    return at


def _back_to_boundary(text: str, at: int) -> int:
    stop = max(at - _CLUSTER_SLACK_CHARS, 0)
    while stop < at < len(text) and _joins(text, at):
        at -= 1
    return at


def _joins(text: str, at: int) -> bool:
    """Tell whether the character at a place belongs to the one before it."""
    char = text[at]
    return (
        unicodedata.category(char).startswith("M")
        or char in _JOINERS
        or text[at - 1] == "\u200d"
        or "\U0001f3fb" <= char <= "\U0001f3ff"
        or "\u1160" <= char <= "\u11ff"
        or (_is_flag_letter(char) and _is_flag_letter(text[at - 1]) and _flag_is_open(text, at))
    )


def _is_flag_letter(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _flag_is_open(text: str, at: int) -> bool:
    """Tell whether an odd number of flag letters, as far as looked, stands before a place."""
    before = 0
    while before < _CLUSTER_SLACK_CHARS and before < at and _is_flag_letter(text[at - 1 - before]):
        before += 1
    return before % 2 == 1
