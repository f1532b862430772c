"""What the audits take."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from server.commands import Args, Cursor, Id, Name

AuditType = Literal[
    "added",
    "changed",
    "deleted",
    "restored",
    "redacted",
    "undo",
    "session",
    "alias",
    "workspace",
]

Point = Annotated[str, Meta(min_length=1, max_length=100, examples=["4711", "2026-11-30"])]
"""A ledger position, or a date."""

From = Annotated[
    Point,
    Meta(description="Only from this ledger position, date or moment on, in words or ISO 8601"),
]
To = Annotated[Point, Meta(description="Only up to this ledger position, or the end of this")]
OldestFirst = Annotated[bool, Meta(description="Oldest first instead of newest first")]
PageSize = Annotated[int, Meta(ge=1, le=100, description="Most operations of a page")]


class AuditArgs(Args, frozen=True, kw_only=True):
    """Arguments of memory_audit."""

    id: Annotated[
        Id, Meta(description="Memory whose history is told, also one that was deleted or redacted")
    ]
    oldest_first: OldestFirst = False
    limit: PageSize = 20
    cursor: Cursor | None = None


class AuditShowArgs(Args, frozen=True, kw_only=True):
    """Arguments of `audit show`: every filter that is given holds."""

    actor: Annotated[Name, Meta(description="Only what this actor did")] | None = None
    memory: Annotated[Id, Meta(description="Only what was done to this memory")] | None = None
    entity: (
        Annotated[Name, Meta(description="Only about this entity, whichever of its names")] | None
    ) = None
    types: Annotated[tuple[AuditType, ...], Meta(description="Only operations of this type")] = ()
    session: Annotated[Id, Meta(description="Only what was done in this session")] | None = None
    from_: From | None = msgspec.field(default=None, name="from")
    to: To | None = None
    oldest_first: OldestFirst = False
    limit: PageSize = 20
    cursor: Cursor | None = None


class AuditExportArgs(Args, frozen=True, kw_only=True):
    """Arguments of `audit export`: the whole ledger, or the part that every filter given names."""

    folder: Annotated[
        str, Meta(min_length=1, max_length=4_000, description="New folder that is written")
    ]
    only_workspace: Annotated[
        bool, Meta(description="Only what was done in the workspace; default: the whole ledger")
    ] = False
    memory: Annotated[Id, Meta(description="Only what was done to this memory")] | None = None
    entity: (
        Annotated[
            Name,
            Meta(
                min_length=1, description="Only memories about this entity, whichever of its names"
            ),
        ]
        | None
    ) = None
    from_: From | None = msgspec.field(default=None, name="from")
    to: To | None = None
    checkpoint: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=4_000,
                description="File with an earlier checkpoint that the bundle is to be comparable "
                "with",
            ),
        ]
        | None
    ) = None
