"""Replies: how much content one may carry, and how what was found is shown in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from projections.model import Memory, Version
from projections.search import Hit
from projections.snippet import snippet
from projections.text import Term
from server.results import Found

REPLY_CONTENT_CHARS_MAX = 100_000
"""Content in one reply; one memory of the greatest length always fits."""

REPAIRED = "the request held text that is not valid Unicode; each such piece was replaced by U+FFFD"

HISTORY_ENTRIES_MAX = 100
"""Memories of a chain, and versions of a memory, in one reply."""

E = TypeVar("E", Memory, Version)


class Budget:
    """The characters of content that one reply may carry, and how many contents did not fit."""

    def __init__(self) -> None:
        """Begin with an empty reply."""
        self._left = REPLY_CONTENT_CHARS_MAX
        self.cut = 0

    def take(self, content: str | None) -> bool:
        """Make room for a content; say whether there was any."""
        length = len(content or "")
        fits = length <= self._left
        self._left -= length if fits else 0
        self.cut += not fits
        return fits


def fitted(entries: Sequence[E], budget: Budget) -> tuple[E, ...]:
    """Return the first entries, contents that do not fit cut to their beginning."""
    return tuple(
        entry
        if budget.take(entry.content)
        else msgspec.structs.replace(
            entry, content=snippet(entry.content or "", ()), content_cut=True
        )
        for entry in entries[:HISTORY_ENTRIES_MAX]
    )


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
            "`mnemolog replay --until` shows the store as it was"
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
        fits = budget.take(memory.content)
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
