"""What memory_redact takes."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import UNSET, Meta

from server.commands import (
    POSITION_MAX,
    Args,
    Filled,
    Id,
    Key,
    OnlyFile,
    OnlyFrom,
    OnlyLayers,
    OnlyScope,
    OnlySession,
    OnlyTags,
    OnlyTo,
)

REASON_CHARS_MAX = 2_000


class RedactFilter(Args, frozen=True, kw_only=True):
    """Which memories memory_redact erases by a filter: every field that is given holds.

    A null, an empty text or an empty list is refused, not taken for an absent filter.
    """

    refuses_null: ClassVar[bool] = True

    layers: OnlyLayers = UNSET
    scope: OnlyScope = UNSET
    tags: OnlyTags = UNSET
    session_id: OnlySession = UNSET
    source_file: OnlyFile = UNSET
    date_from: OnlyFrom = UNSET
    date_to: OnlyTo = UNSET


class RedactArgs(Args, frozen=True, kw_only=True):
    """Arguments of memory_redact: exactly one of `id`, `event`, `entity` and `filter`."""

    id: (
        Annotated[Id, Meta(description="Memory (or session) of which everything is erased")] | None
    ) = None
    event: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=POSITION_MAX,
                description="Ledger position of one record: its payload is erased, and those of "
                "the same memory that repeat its content",
            ),
        ]
        | None
    ) = None
    entity: (
        Annotated[
            Filled,
            Meta(
                description="Every memory that names this entity, by any of its names, now or in "
                "any past version; its aliases too"
            ),
        ]
        | None
    ) = None
    filter: (
        Annotated[
            RedactFilter,
            Meta(
                description="Every memory that satisfies all of these, deleted, expired and "
                "superseded ones included"
            ),
        ]
        | None
    ) = None
    reason: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=REASON_CHARS_MAX,
            description="Why, for the history; do not repeat what is to be erased",
        ),
    ]
    chain: Annotated[
        bool,
        Meta(
            description="With id: also every memory of its supersede chain, which holds "
            "earlier and later words for the same fact; false: this memory alone"
        ),
    ] = True
    dry_run: Annotated[bool, Meta(description="Only say what would be erased")] = False
    idempotency_key: Key | None = None
