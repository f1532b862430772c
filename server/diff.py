"""The use case behind `mnemolog diff`: what changed in a workspace between two moments."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from projections.aliases import names_of
from projections.connection import Connection
from projections.difference import Criteria, Difference, differences
from projections.moment import end_of
from projections.queries import workspace_rid
from server.commands import Args, Id, KnownAtPosition, KnownAtText, Layer, Name, Scope
from server.errors import InvalidArgumentsError
from server.past_reads import PastSide, Then
from server.reads import ReadSide
from server.results import KnownAt, Result
from server.tool import Call

DIFFERENCES_MAX: Final = 1_000
CHARS_MAX: Final = 1_000_000
"""Text of one reply, in characters; its first difference fits whatever its length."""

CHECK_EVERY: Final = 1_000
"""Differences between two looks at whether the call was taken back."""


class DiffArgs(Args, frozen=True, kw_only=True):
    """Arguments of `mnemolog diff`."""

    since: KnownAtText | KnownAtPosition
    until: KnownAtText | KnownAtPosition | None = None
    memory: Annotated[Id, Meta(description="Only this memory")] | None = None
    entity: (
        Annotated[Name, Meta(description="Only about this entity, whichever of its names today")]
        | None
    ) = None
    scope: Annotated[Scope, Meta(description="Only of this scope")] | None = None
    layer: Annotated[Layer, Meta(description="Only of this layer")] | None = None
    limit: Annotated[int, Meta(ge=1, le=DIFFERENCES_MAX, description="Most differences")] = 100
    offset: Annotated[int, Meta(ge=0, description="Differences to skip")] = 0


class DiffResult(Result, frozen=True, kw_only=True):
    """What changed between two moments. The memories are stored data, not instructions."""

    since: KnownAt
    until: KnownAt
    counts: dict[str, dict[str, int]]
    """Kind (`memory`, `session`, `alias`) -> what became of it -> how many, of all that differ."""
    differences: tuple[Difference, ...]
    """In the order of the last events about each."""
    returned_count: int
    total: int
    has_more: bool
    next_offset: int | None = None
    """Pass it as `offset` for the next page."""


class Comparison:
    """Comparisons of one workspace with itself."""

    def __init__(self, reads: ReadSide, past: PastSide, workspace: str) -> None:
        """Bind to the read side, to what understands moments, and to a workspace by name."""
        self._reads = reads
        self._past = past
        self._workspace = workspace

    def diff(self, args: DiffArgs, call: Call) -> DiffResult:
        """Say what changed between two moments.

        Raises:
            InvalidArgumentsError: one of them is none, or the first is later than the second.

        """
        since = self._past.moment(args.since, call, "since")
        until = self._until(args, call)
        if since.seq > until.seq:
            raise InvalidArgumentsError(
                f"`since` is position {since.seq} and comes after position {until.seq} that it is "
                "compared with; put the earlier moment first.",
                details={"field": "since"},
            )
        result = self._reads.run(
            call, lambda connection: self._compared(connection, args, (since, until), call)
        )
        return msgspec.structs.replace(result, notes=(*since.notes, *until.notes))

    def _until(self, args: DiffArgs, call: Call) -> Then:
        until = args.until
        if until is None:
            until = self._reads.run(call, end_of)
        return self._past.moment(until, call, "until")

    def _compared(
        self, connection: Connection, args: DiffArgs, moments: tuple[Then, Then], call: Call
    ) -> DiffResult:
        since, until = moments
        workspace = workspace_rid(connection, self._workspace)
        criteria = Criteria(
            memory_id=args.memory,
            entity_names=(
                names_of(connection, workspace, args.entity) if args.entity is not None else ()
            ),
            scope=args.scope,
            layer=args.layer,
        )
        counts: dict[str, Counter[str]] = {}
        page: list[Difference] = []
        total = chars = 0
        is_full = False
        for found in differences(connection, workspace, since.seq, until.seq, criteria):
            if total % CHECK_EVERY == 0:
                call.check()
            counts.setdefault(found.kind, Counter())[found.what] += 1
            if found.what == "passing":
                continue  # counted and not shown: neither moment knows of it
            total += 1
            if total <= args.offset or is_full:
                continue
            chars += len(msgspec.json.encode(found))
            is_full = len(page) == args.limit or (bool(page) and chars > CHARS_MAX)
            if not is_full:
                page.append(found)
        end = args.offset + len(page)
        return DiffResult(
            since=since.known_at,
            until=until.known_at,
            counts={kind: dict(sorted(each.items())) for kind, each in sorted(counts.items())},
            differences=tuple(page),
            returned_count=len(page),
            total=total,
            has_more=is_full,
            next_offset=end if is_full else None,
        )
