"""What is searched for after a redaction: the salts and the texts of the erased payloads.

They live in the memory of this process only, and are written nowhere: not into the ledger, not into
a log, not into a command line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from ledger import Record, text_needles
from projections.text import terms

TEXT_CHARS_MIN: Final = 5
"""Texts that are shorter stand everywhere and show nothing."""

PIECE_CHARS: Final = 80
"""A long text is searched for by pieces: a database cuts what is longer than a page."""

PIECES_MAX: Final = 8
NEEDLES_MAX: Final = 400
"""Texts of one redaction that are searched for; each takes a second for each gigabyte."""

_NOT_WRITTEN: Final = frozenset(
    (
        *("salt", "request", "layer", "entity_type", "supersedes", "superseded_by", "session_id"),
        *("event_at", "valid_from", "valid_until", "expires_at", "started_at", "ended_at"),
    )
)
"""Fields that hold a choice, an id or a date, which stand in other records as well."""

_DEFAULTS: Final = frozenset(("global", "api", "cli"))
"""Values that fields have of themselves."""


class Needles(msgspec.Struct, frozen=True, kw_only=True):
    """What must not be found any more."""

    salts: frozenset[bytes]
    texts: frozenset[bytes]
    stems: frozenset[str]
    """As the text index keeps them."""
    is_cut: bool
    """There are more texts than are searched for."""


def needles_of(records: Iterable[Record]) -> Needles:
    """Return what to search for once the payloads of these records are erased."""
    salts: set[bytes] = set()
    pieces: dict[str, None] = {}
    stems: set[str] = set()
    for record in records:
        if record.payload is None:
            continue
        fields = msgspec.to_builtins(record.payload)
        salts.add(fields["salt"].encode())
        for text in dict.fromkeys(_written(fields)):
            if text in _DEFAULTS:
                continue
            stems |= {stem for stem in terms(text).split() if len(stem) >= TEXT_CHARS_MIN}
            if len(text.strip()) >= TEXT_CHARS_MIN:
                pieces |= dict.fromkeys(_pieces(text))
    kept = list(pieces)[:NEEDLES_MAX]
    return Needles(
        salts=frozenset(salts),
        texts=frozenset(
            needle for piece in kept for needle in text_needles(piece) if b"\n" not in needle
        ),
        stems=frozenset(sorted(stems)[:NEEDLES_MAX]),
        is_cut=len(pieces) > NEEDLES_MAX or len(stems) > NEEDLES_MAX,
    )


def _written(value: Any, name: str = "") -> Iterator[str]:  # noqa: ANN401 - JSON
    """Yield every text that somebody wrote, keys of objects included."""
    match value:
        case str():
            yield value
        case dict():
            for key, item in value.items():
                if key in _NOT_WRITTEN and name != "meta":
                    continue
                if name == "meta":
                    yield key
                    yield from _written(item, "meta")
                else:
                    yield from _written(item, key)
        case list() | tuple():
            for item in value:
                yield from _written(item, name)
        case _:
            return


def _pieces(text: str) -> list[str]:
    if len(text) <= PIECE_CHARS:
        return [text]
    step = max((len(text) - PIECE_CHARS) // (PIECES_MAX - 1), 1)
    starts = dict.fromkeys([*range(0, len(text) - PIECE_CHARS, step)][: PIECES_MAX - 1])
    cut = [text[start : start + PIECE_CHARS] for start in [*starts, len(text) - PIECE_CHARS]]
    # A line feed would end a record, and is escaped where texts are JSON.
    return [line for piece in cut for line in piece.split("\n") if len(line) >= TEXT_CHARS_MIN]
