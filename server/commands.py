"""What the use cases take: one Struct validates, documents and makes the JSON Schema.

Names, fields and limits are those that users of mnemon-mcp know; what is new is optional.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

Layer = Literal["episodic", "semantic", "procedural", "resource"]
EntityType = Literal["user", "project", "person", "concept", "file", "rule", "tool"]
SearchMode = Literal["fts", "exact"]
ListOrder = Literal["newest", "oldest", "changed", "happened", "important"]
ExportFormat = Literal["json", "markdown", "claude-md", "jsonl"]
AliasAction = Literal["add", "list", "remove"]

LAYERS: tuple[Layer, ...] = ("episodic", "semantic", "procedural", "resource")
CONTENT_CHARS_MAX = 100_000
LIMIT_DEFAULT = 10
IDS_MAX = 100
"""Ids, and memories of a batch, in one call."""

PATCHES_MAX = 100
"""Patches of one call."""

DELETED_MAX = 1_000
"""Memories that one call deletes by filter: one operation, one undo."""

DELETION_FILTERS = (
    "ids",
    "layers",
    "entity_name",
    "scope",
    "tags",
    "session_id",
    "source_file",
    "date_from",
    "date_to",
)
"""Fields of memory_delete_many that say which memories."""

EXPORTED_MAX = 10_000
POSITION_MAX = 2**63 - 1
"""What a position is kept in."""

Content = Annotated[str, Meta(min_length=1, max_length=CONTENT_CHARS_MAX)]
Name = Annotated[str, Meta(max_length=500)]
Share = Annotated[float, Meta(ge=0, le=1)]
Date = Annotated[
    str, Meta(min_length=1, max_length=100, examples=["2026-11-30", "2026-11", "March 2021"])
]
Scope = Annotated[str, Meta(max_length=200)]
Cursor = Annotated[
    str,
    Meta(
        max_length=2_000,
        description="`next_cursor` of the page before; the rest of the call as then",
    ),
]
KnownAtText = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=100,
        description="What the store knew then, later changes set aside: a ledger position (an "
        "integer), or a date or time in words or ISO 8601, whose end is meant",
        examples=["4711", "2026-11-30", "yesterday 18:00"],
    ),
]
KnownAtPosition = Annotated[int, Meta(ge=0, le=POSITION_MAX)]
Filled = Annotated[str, Meta(min_length=1, max_length=500)]
Object = dict[str, Any]
Tags = Annotated[
    tuple[Annotated[str, Meta(min_length=1, max_length=100)], ...], Meta(max_length=50)
]
Id = Annotated[str, Meta(min_length=1, max_length=200)]
Key = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=200,
        description="Your own name for this request: sent again with it, the request is not done "
        "twice but answered with the first one's ids",
    ),
]
ExpectedVersion = Annotated[
    int,
    Meta(
        ge=1,
        description="The memory's `version` you decided on; if it has moved since, nothing is "
        "written and the error says what is current",
    ),
]


class Args(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of the arguments: unknown fields are refused."""


class AddArgs(Args, frozen=True, kw_only=True):
    """Arguments of memory_add."""

    content: Annotated[Content, Meta(description="What to remember, in plain words")]
    layer: Annotated[
        Layer,
        Meta(
            description="episodic: events and sessions; semantic: facts and concepts; "
            "procedural: rules and workflows; resource: reference material"
        ),
    ]
    title: Annotated[Name, Meta(description="Short title")] | None = None
    entity_type: Annotated[EntityType, Meta(description="Kind of thing it is about")] | None = None
    entity_name: Annotated[Name, Meta(description="Name of the thing it is about")] | None = None
    event_at: (
        Annotated[
            Date, Meta(description="When it happened: ISO 8601 date or date-time, UTC if no zone")
        ]
        | None
    ) = None
    ttl_days: (
        Annotated[float, Meta(gt=0, description="Days until it expires (default: never)")] | None
    ) = None
    confidence: Annotated[Share, Meta(description="How certain it is, 0 to 1")] = 0.8
    importance: Annotated[Share, Meta(description="Weight in ranking, 0 to 1")] = 0.5
    scope: Annotated[
        str, Meta(max_length=200, description="Project or context, matched exactly")
    ] = "global"
    tags: Annotated[Tags, Meta(description="Up to 50 words to filter by")] = ()
    source: Annotated[str, Meta(max_length=200, description="Where it comes from")] = "api"
    source_file: (
        Annotated[
            str,
            Meta(
                max_length=1000,
                description="Path of the file it comes from; what was added from the same file and "
                "scope is superseded",
            ),
        ]
        | None
    ) = None
    session_id: (
        Annotated[
            str, Meta(max_length=200, description="Session it belongs to: memory_session_start")
        ]
        | None
    ) = None
    meta: Annotated[Object, Meta(description="Any further JSON fields")] = {}
    valid_from: (
        Annotated[Date, Meta(description="First moment the fact holds (default: always held)")]
        | None
    ) = None
    valid_until: (
        Annotated[
            Date, Meta(description="Last day or moment the fact holds (default: still holds)")
        ]
        | None
    ) = None
    idempotency_key: Key | None = None


class AddManyArgs(Args, frozen=True, kw_only=True):
    """Arguments of memory_add_many."""

    memories: Annotated[
        tuple[
            Annotated[
                Any,
                Meta(extra={"struct": AddArgs}, extra_json_schema={"$ref": "#/$defs/AddArgs"}),
            ],
            ...,
        ],
        Meta(
            min_length=1,
            max_length=IDS_MAX,
            description="Memories, each as memory_add takes it; one that is refused does not stop "
            "the others",
        ),
    ]
    idempotency_key: Key | None = None


class FilterArgs(Args, frozen=True, kw_only=True):
    """Which memories: every filter that is given holds."""

    layers: Annotated[tuple[Layer, ...], Meta(description="Only these layers")] = ()
    entity_name: (
        Annotated[Name, Meta(description="Only about this entity, whichever of its names")] | None
    ) = None
    scope: Annotated[Scope, Meta(description="Only of this scope")] | None = None
    tags: Annotated[Tags, Meta(description="Only with all of these tags")] = ()
    session_id: Annotated[Scope, Meta(description="Only of this session")] | None = None
    source_file: Annotated[str, Meta(max_length=1000, description="Only from this file")] | None = (
        None
    )
    when: (
        Annotated[
            Date,
            Meta(
                description="Only what happened (else: was added) then, in words or ISO 8601",
                examples=["last 3 days", "2026-11", "between May and July 2024"],
            ),
        ]
        | None
    ) = None
    date_from: (
        Annotated[Date, Meta(description="Only what happened (else: was added) at or after this")]
        | None
    ) = None
    date_to: (
        Annotated[Date, Meta(description="Only what happened (else: was added) by the end of this")]
        | None
    ) = None
    min_confidence: Annotated[Share, Meta(description="Least confidence")] | None = None
    min_importance: Annotated[Share, Meta(description="Least importance")] | None = None
    include_superseded: Annotated[bool, Meta(description="Also what was replaced by newer")] = False
    include_expired: Annotated[bool, Meta(description="Also what has expired")] = False
    as_of: (
        Annotated[
            Date,
            Meta(
                description="What was true then: validity windows and successors of that day apply"
            ),
        ]
        | None
    ) = None
    known_at: KnownAtText | KnownAtPosition | None = None


class SearchArgs(FilterArgs, frozen=True, kw_only=True):
    """Arguments of memory_search."""

    query: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=10_000,
            description='Words to look for, in any language; "quoted words" must stand together',
        ),
    ]
    limit: Annotated[int, Meta(ge=1, le=100, description="Most results")] = LIMIT_DEFAULT
    offset: Annotated[int, Meta(ge=0, le=10_000, description="Results to skip")] = 0
    mode: Annotated[
        SearchMode,
        Meta(description="fts: by words, inflections aside; exact: content holds this very text"),
    ] = "fts"


class UpdateArgs(Args, frozen=True, kw_only=True):
    """Arguments of memory_update."""

    id: Annotated[Id, Meta(description="Memory to change")]
    content: (
        Annotated[str, Meta(max_length=CONTENT_CHARS_MAX, description="New content")] | None
    ) = None
    title: Annotated[Name, Meta(description="New title")] | None = None
    confidence: Annotated[Share, Meta(description="New confidence")] | None = None
    importance: Annotated[Share, Meta(description="New importance")] | None = None
    tags: Annotated[Tags, Meta(description="New tags, all of them")] | None = None
    meta: (
        Annotated[dict[str, Any], Meta(description="Fields merged into the present ones")] | None
    ) = None
    event_at: Annotated[Date, Meta(description="New date it happened")] | None = None
    valid_from: (
        Annotated[Date, Meta(description="New first moment it holds (with supersede: default now)")]
        | None
    ) = None
    valid_until: Annotated[Date, Meta(description="New last moment it holds")] | None = None
    supersede: Annotated[
        bool,
        Meta(
            description="true: keep this memory as history and add a new one in its place; "
            "false: change it in place (its old versions stay in the ledger)"
        ),
    ] = False
    new_content: (
        Annotated[
            str,
            Meta(
                max_length=CONTENT_CHARS_MAX,
                description="Content of the new memory with supersede (default: `content`, else "
                "as it was)",
            ),
        ]
        | None
    ) = None
    expected_version: ExpectedVersion | None = None
    idempotency_key: Key | None = None


class Patch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One piece of a text and what takes its place."""

    old_string: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=CONTENT_CHARS_MAX,
            description="A piece of the text, exactly as it stands there",
        ),
    ]
    new_string: Annotated[
        str, Meta(max_length=CONTENT_CHARS_MAX, description="What takes its place; may be empty")
    ]
    replace_all: Annotated[
        bool,
        Meta(description="Replace it wherever it stands, not only where it stands once"),
    ] = False


class PatchArgs(Args, frozen=True, kw_only=True):
    """Arguments of memory_patch."""

    id: Annotated[Id, Meta(description="Memory to change")]
    patches: Annotated[
        tuple[Patch, ...],
        Meta(
            min_length=1,
            max_length=PATCHES_MAX,
            description="Each works on what the one before it left; all are done or none",
        ),
    ]
    expected_version: ExpectedVersion | None = None
    idempotency_key: Key | None = None


class AppendArgs(Args, frozen=True, kw_only=True):
    """Arguments of memory_append."""

    id: Annotated[Id, Meta(description="Memory to add to")]
    text: Annotated[Content, Meta(description="What to add at its end")]
    separator: Annotated[
        str, Meta(max_length=100, description="What comes between; by default a blank line")
    ] = "\n\n"
    expected_version: ExpectedVersion | None = None
    idempotency_key: Key | None = None


class DeleteArgs(Args, frozen=True, kw_only=True):
    """Arguments of memory_delete."""

    id: Annotated[Id, Meta(description="Memory to delete")]
    expected_version: ExpectedVersion | None = None
    idempotency_key: Key | None = None


OnlyLayers = (
    Annotated[tuple[Layer, ...], Meta(min_length=1, description="Only these layers")] | UnsetType
)
OnlyScope = Annotated[Scope, Meta(description="Only of this scope")] | UnsetType
OnlyTags = (
    Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=100)], ...],
        Meta(min_length=1, max_length=50, description="Only with all of these tags"),
    ]
    | UnsetType
)
OnlySession = Annotated[Filled, Meta(description="Only of this session")] | UnsetType
OnlyFile = (
    Annotated[str, Meta(min_length=1, max_length=1000, description="Only from this file")]
    | UnsetType
)
OnlyFrom = (
    Annotated[Date, Meta(description="Only what happened (else: was added) at or after this")]
    | UnsetType
)
OnlyTo = (
    Annotated[Date, Meta(description="Only what happened (else: was added) by the end of this")]
    | UnsetType
)
"""Conditions of what deletes or erases by a filter: given, or absent, and never null or empty."""


class DeleteManyArgs(Args, frozen=True, kw_only=True):
    """Arguments of memory_delete_many: at least one of `ids`, a filter and `everything`.

    A null, an empty text or an empty list is refused, not taken for an absent filter.
    """

    refuses_null: ClassVar[bool] = True

    ids: (
        Annotated[
            tuple[Id, ...],
            Meta(min_length=1, max_length=IDS_MAX, description="Only these memories"),
        ]
        | UnsetType
    ) = UNSET
    layers: OnlyLayers = UNSET
    entity_name: Annotated[Filled, Meta(description="Only about this entity")] | UnsetType = UNSET
    scope: OnlyScope = UNSET
    tags: OnlyTags = UNSET
    session_id: OnlySession = UNSET
    source_file: OnlyFile = UNSET
    date_from: OnlyFrom = UNSET
    date_to: OnlyTo = UNSET
    everything: Annotated[
        bool, Meta(description="true: every memory of the workspace; goes with no filter")
    ] = False
    dry_run: Annotated[bool, Meta(description="Only say what would be deleted")] = False
    idempotency_key: Key | None = None


class InspectArgs(Args, frozen=True, kw_only=True):
    """Arguments of memory_inspect."""

    id: (
        Annotated[
            str, Meta(max_length=200, description="Memory to look at; without it: statistics")
        ]
        | None
    ) = None
    layer: Annotated[Layer, Meta(description="Statistics of this layer only")] | None = None
    entity_name: Annotated[Name, Meta(description="Statistics of this entity only")] | None = None
    include_history: Annotated[
        bool, Meta(description="With id: also its chain, and each version it has had")
    ] = False
    known_at: KnownAtText | KnownAtPosition | None = None


class GetArgs(Args, frozen=True, kw_only=True):
    """Arguments of memory_get."""

    ids: Annotated[
        tuple[Id, ...], Meta(min_length=1, max_length=IDS_MAX, description="Memories to read")
    ]
    include_versions: Annotated[
        bool, Meta(description="Also every version each has had, newest first")
    ] = False
    known_at: KnownAtText | KnownAtPosition | None = None


class ListArgs(FilterArgs, frozen=True, kw_only=True):
    """Arguments of memory_list."""

    order: Annotated[
        ListOrder,
        Meta(
            description="newest, oldest: as added; changed: last change first; happened: latest "
            "date first; important: most important first"
        ),
    ] = "newest"
    limit: Annotated[int, Meta(ge=1, le=100, description="Most memories of a page")] = 20
    cursor: Cursor | None = None


class ExportArgs(FilterArgs, frozen=True, kw_only=True):
    """Arguments of memory_export."""

    format: Annotated[
        ExportFormat,
        Meta(
            description="json: all fields, an array; jsonl: one memory a line; markdown: for "
            "people; claude-md: compact, for a context file"
        ),
    ]
    limit: Annotated[
        int, Meta(ge=1, le=EXPORTED_MAX, description="Most memories of this reply")
    ] = 1_000
    cursor: Cursor | None = None


class SessionStartArgs(Args, frozen=True, kw_only=True):
    """Arguments of memory_session_start."""

    client: Annotated[
        str, Meta(min_length=1, max_length=200, description="Program that works in the session")
    ]
    project: Annotated[Name, Meta(description="What it works on")] | None = None
    meta: Annotated[Object, Meta(description="Any further JSON fields")] = {}
    idempotency_key: Key | None = None


class SessionEndArgs(Args, frozen=True, kw_only=True):
    """Arguments of memory_session_end."""

    id: Annotated[Id, Meta(description="Session to end")]
    summary: Annotated[str, Meta(max_length=10_000, description="What was done in it")] | None = (
        None
    )
    idempotency_key: Key | None = None


class SessionListArgs(Args, frozen=True, kw_only=True):
    """Arguments of memory_session_list."""

    limit: Annotated[int, Meta(ge=1, le=100, description="Most sessions")] = 20
    client: Annotated[Scope, Meta(description="Only of this client")] | None = None
    project: Annotated[Name, Meta(description="Only of this project")] | None = None
    active_only: Annotated[bool, Meta(description="Only those that go on")] = False
    cursor: Cursor | None = None


class AliasArgs(Args, frozen=True, kw_only=True):
    """Arguments of memory_alias."""

    action: Annotated[
        AliasAction,
        Meta(
            description="add: `alias` is a further name of `entity_name`; remove: `alias` is one "
            "no more; list: the aliases, optionally of `entity_name`"
        ),
    ]
    alias: Annotated[str, Meta(min_length=1, max_length=500, description="Further name")] | None = (
        None
    )
    entity_name: (
        Annotated[str, Meta(min_length=1, max_length=500, description="Name it stands for")] | None
    ) = None
    idempotency_key: Key | None = None


class HealthArgs(Args, frozen=True, kw_only=True):
    """Arguments of memory_health."""

    cleanup: Annotated[
        bool,
        Meta(
            description="true: delete what has expired; chains close up around it, and memory_undo "
            "brings it back"
        ),
    ] = False
    idempotency_key: Key | None = None


Bound = (
    Annotated[int, Meta(ge=0, le=POSITION_MAX)]
    | Annotated[
        str, Meta(min_length=1, max_length=100, examples=["4711", "2026-11-30", "yesterday"])
    ]
)
"""A ledger position, or a date or range of time in digits or words."""

UNDO_FILTERS = ("actor", "session_id", "cause", "from", "to")
"""Fields of memory_undo that say which operations."""


class UndoArgs(Args, frozen=True, kw_only=True):
    """Arguments of memory_undo: exactly one of `position`, `id` and a filter."""

    position: (
        Annotated[
            int, Meta(ge=1, le=POSITION_MAX, description="`position` of the operation to undo")
        ]
        | None
    ) = None
    id: (
        Annotated[
            Id, Meta(description="Undo the last operation on this memory; again: the one before")
        ]
        | None
    ) = None
    actor: (
        Annotated[Filled, Meta(description="Undo what this agent did, by the name it gave")] | None
    ) = None
    session_id: (
        Annotated[
            Filled,
            Meta(description="Undo what named this session: its memories as they were added"),
        ]
        | None
    ) = None
    cause: (
        Annotated[
            Filled,
            Meta(description="Undo what one bulk command did, by the `cause` in its reply"),
        ]
        | None
    ) = None
    since: (
        Annotated[Bound, Meta(description="Undo what was done at or after this position or time")]
        | None
    ) = msgspec.field(default=None, name="from")
    until: (
        Annotated[
            Bound, Meta(description="Undo what was done up to this position or time, it included")
        ]
        | None
    ) = msgspec.field(default=None, name="to")
    dry_run: Annotated[
        bool, Meta(description="true: only say what would be undone and what not")
    ] = False
    idempotency_key: Key | None = None


class InternalArgs(Args, frozen=True, kw_only=True):
    """Base of what only the program itself writes."""

    idempotency_key: None = None
