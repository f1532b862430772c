"""What the read side says of memories; light to import, since every answer's schema holds it."""

from __future__ import annotations

from typing import Any

import msgspec


class Memory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A memory as it is now."""

    id: str
    layer: str
    content: str
    content_cut: bool = False
    """True where the reply is full: `content` is the beginning only, and `meta` is left out."""
    title: str | None = None
    entity_type: str | None = None
    entity_name: str | None = None
    scope: str
    tags: tuple[str, ...] = ()
    meta: dict[str, Any] = {}
    confidence: float
    importance: float
    source: str
    source_file: str | None = None
    session_id: str | None = None
    event_at: str | None = None
    valid_from: str | None = None
    valid_until: str | None = None
    expires_at: str | None = None
    supersedes: str | None = None
    superseded_by: str | None = None
    created_at: str
    updated_at: str
    status: str
    """`active`, `superseded` or `expired`."""
    version: int
    """Ledger position of the event that last moved it: pass it as `expected_version`."""


class Version(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One state a memory has had, with the half-open ledger interval in which it was current."""

    version: int
    status: str
    from_seq: int
    to_seq: int | None = None
    at: str
    actor: str
    content: str | None = None
    content_cut: bool = False
    title: str | None = None
    tags: tuple[str, ...] = ()
    meta: dict[str, Any] = {}
    confidence: float | None = None
    importance: float | None = None
    event_at: str | None = None
    valid_from: str | None = None
    valid_until: str | None = None
    expires_at: str | None = None
    supersedes: str | None = None
    superseded_by: str | None = None


class ExpiredEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A memory whose time to live has run out."""

    id: str
    title: str | None = None
    expires_at: str


class OrphanedLink(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that names a neighbour in its chain that is not there."""

    id: str
    missing_supersedes: str


class EntityCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many active memories are about an entity."""

    entity_name: str
    count: int


class LayerStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of one layer."""

    total: int
    active: int
    superseded: int
    expired: int
    avg_confidence: float
    avg_age_days: float
    top_entities: tuple[EntityCount, ...]
    """Those with most active memories, at most five."""


class Session(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A span of work that memories were added in."""

    id: str
    client: str
    project: str | None = None
    meta: dict[str, Any] = {}
    started_at: str
    ended_at: str | None = None
    summary: str | None = None
    memories_count: int
    """Memories that name it, superseded ones included."""


class Alias(msgspec.Struct, frozen=True, kw_only=True):
    """A further name of an entity."""

    alias: str
    entity_name: str
