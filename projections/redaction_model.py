"""A redaction as it is told of; light to import, since every answer's schema holds it."""

from __future__ import annotations

import msgspec


class Redaction(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A redaction, as it is told of."""

    id: str
    at: str
    """When it was asked for."""
    by: str
    """Name of the actor."""
    reason: str | None = None
    """None if the reason was erased as well."""
    completed: bool
    """False while bytes of what it erases may be left in some file."""
    position: int
