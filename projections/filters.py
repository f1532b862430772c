"""Filters: which memories an answer may hold, as conditions on their table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

Expiry = Literal["live", "expired", "any"]
"""Whether the time to live has run out."""


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """What every memory of an answer satisfies. Times are microseconds, spans half open."""

    workspace: int | None
    now_us: int
    ids: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    entity_names: tuple[str, ...] = ()
    scope: str | None = None
    tags: tuple[str, ...] = ()
    """Every one of them."""
    happened_from: int | None = None
    happened_to: int | None = None
    true_at: int | None = None
    """Only what was true at this instant, superseded and expired memories included."""
    min_confidence: float | None = None
    min_importance: float | None = None
    session_id: str | None = None
    source_file: str | None = None
    include_superseded: bool = False
    expiry: Expiry = "live"

    def conditions(self) -> tuple[str, list[Any]]:
        """Return SQL over `memories m`, and its parameters."""
        parts: list[tuple[str, Sequence[Any]]] = [
            ("m.workspace = ?", (self.workspace,)),
            *self._standing(),
            *self._one_of(),
        ]
        parts += [
            (sql, (value,))
            for sql, value in (
                ("m.scope = ?", self.scope),
                ("m.session_id = ?", self.session_id),
                ("m.source_file = ?", self.source_file),
                ("m.happened_to > ?", self.happened_from),
                ("m.happened_from < ?", self.happened_to),
                ("m.confidence >= ?", self.min_confidence),
                ("m.importance >= ?", self.min_importance),
            )
            if value is not None
        ]
        parts += [
            ("EXISTS (SELECT 1 FROM json_each(m.tags) WHERE value = ?)", (tag,))
            for tag in self.tags
        ]
        return " AND ".join(sql for sql, _ in parts), [
            value for _, values in parts for value in values
        ]

    def _standing(self) -> Iterator[tuple[str, Sequence[Any]]]:
        """Yield what says whether a memory is current, or was."""
        if self.true_at is not None:
            yield "(m.true_from IS NULL OR m.true_from <= ?)", (self.true_at,)
            yield "(m.true_until IS NULL OR m.true_until > ?)", (self.true_at,)
            return
        if self.expiry == "live":
            yield "(m.expires_us IS NULL OR m.expires_us > ?)", (self.now_us,)
        elif self.expiry == "expired":
            yield "m.expires_us <= ?", (self.now_us,)
        if not self.include_superseded:
            yield "m.superseded_by IS NULL", ()

    def _one_of(self) -> Iterator[tuple[str, Sequence[Any]]]:
        for column, values in (
            ("m.id", self.ids),
            ("m.layer", self.layers),
            ("m.entity_name", self.entity_names),
        ):
            if values:
                yield f"{column} IN ({', '.join('?' * len(values))})", values
