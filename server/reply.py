"""Replies: how much content one may carry, and how what was found is shown in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from projections.model import Memory, Version
from projections.search import Hit
from projections.snippet import snippet
from projections.text import Term
from server.results import Found

REPLY_CONTENT_CHARS_MAX = 100_000
"""Content and `meta` in one reply, in characters; its first entry fits all the same."""

REPAIRED = "the request held text that is not valid Unicode; each such piece was replaced by U+FFFD"

HISTORY_ENTRIES_MAX = 100
"""Memories of a chain, and versions of a memory, in one reply."""

E = TypeVar("E", Memory, Version)


class Budget:
    """The characters that the contents and the `meta` of one reply may take, and what was cut."""

    def __init__(self) -> None:
        """Begin with an empty reply, whose first entry always fits."""
        self._left: int | None = None
        self.cut = 0

    def take(self, content: str, meta: Mapping[str, object]) -> bool:
        """Make room for an entry; say whether there was any."""
        length = len(content) + (len(msgspec.json.encode(meta)) if meta else 0)
        if self._left is None:
            self._left = max(0, REPLY_CONTENT_CHARS_MAX - length)
            return True
        fits = length <= self._left
        self._left -= length if fits else 0
        return fits


def fitted(entries: Sequence[E], budget: Budget) -> tuple[E, ...]:
    """Return the first entries; what does not fit loses its `meta` and all but its beginning."""
    return tuple(_fitted(entry, budget) for entry in entries[:HISTORY_ENTRIES_MAX])


def _fitted(entry: E, budget: Budget) -> E:
    content = entry.content or ""
    if budget.take(content, entry.meta):
        return entry
    short = snippet(content, ())
    if short == content and not entry.meta:
        return entry
    budget.cut += 1
    return msgspec.structs.replace(entry, content=short, meta={}, content_cut=True)


def cut_notes(budget: Budget) -> tuple[str, ...]:
    """Say that contents of memories were cut to their beginning."""
    if not budget.cut:
        return ()
    return (
        (
            f"the content of {budget.cut} memories is cut to its beginning (content_cut); "
            "memory_get with fewer ids gives the whole"
        ),
    )


def history_notes(left_out: int, cut: int) -> tuple[str, ...]:
    """Say what of a history was left out or cut."""
    notes = []
    if left_out:
        notes.append(f"{left_out} more entries of the history are left out")
    if cut:
        notes.append(
            f"the content of {cut} entries is cut to its beginning (content_cut); "
            "memory_get with known_at gives each of them whole"
        )
    return tuple(notes)


def gap_notes(gaps: tuple[str, ...]) -> tuple[str, ...]:
    """Say that a damaged ledger could be read in part only."""
    if not gaps:
        return ()
    note = (
        f"{len(gaps)} parts of the ledger are damaged and missing here, and nothing can be "
        "written; `mnemolog verify` names them"
    )
    return (note,)


def dressed(hits: tuple[Hit, ...], terms: tuple[Term, ...], budget: Budget) -> tuple[Found, ...]:
    """Return the hits as a reply shows them; contents that do not fit are cut to their snippet."""
    found = []
    for hit in hits:
        memory = hit.memory
        short = snippet(memory.content, terms)
        fits = budget.take(memory.content, {}) or short == memory.content
        budget.cut += not fits
        found.append(
            Found(
                content=memory.content if fits else short,
                content_cut=not fits,
                snippet=short,
                score=float(f"{hit.score:.6g}"),
                id=memory.id,
                layer=memory.layer,
                title=memory.title,
                entity_type=memory.entity_type,
                entity_name=memory.entity_name,
                scope=memory.scope,
                tags=memory.tags,
                confidence=memory.confidence,
                importance=memory.importance,
                source_file=memory.source_file,
                session_id=memory.session_id,
                event_at=memory.event_at,
                valid_from=memory.valid_from,
                valid_until=memory.valid_until,
                expires_at=memory.expires_at,
                superseded_by=memory.superseded_by,
                created_at=memory.created_at,
                status=memory.status,
                version=memory.version,
            )
        )
    return tuple(found)
