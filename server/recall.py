"""The reading use cases: searching, listing, reading by id, statistics and exports."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

import msgspec

from ledger import Clock, format_us
from projections.aliases import names_of
from projections.checkpoint import read_checkpoint
from projections.connection import Connection
from projections.filters import Filters
from projections.listing import KEY_TYPES, Key, ListPage, count_memories, list_memories
from projections.model import Memory, Version
from projections.queries import (
    chain_of,
    deleted_at,
    find_memory,
    layer_statistics,
    versions_of,
    workspace_rid,
)
from projections.redactions import is_erased, redactions_of, subject_of
from projections.search import Page, search_exact, search_text
from projections.sessions import count_sessions, list_sessions
from projections.text import Query, fold, parse_query
from server.activity import ActivityRecorder
from server.commands import (
    LAYERS,
    ExportArgs,
    GetArgs,
    InspectArgs,
    ListArgs,
    SearchArgs,
    SessionListArgs,
)
from server.cursor import Cursor, decode_cursor, encode_cursor, list_id
from server.errors import InvalidArgumentsError, NotFoundError
from server.export import write_export
from server.reads import ReadSide
from server.reply import REPAIRED, Budget, cut_notes, dressed, fitted, gap_notes, history_notes
from server.results import (
    ExportResult,
    GetResult,
    InspectResult,
    ListResult,
    Missing,
    Result,
    SearchResult,
    SessionListResult,
)
from server.selection import absence_notes, located, select
from server.tool import Call

EXPORT_CHARS_MAX = 1_000_000
"""Text of one reply of an export; one memory of the greatest length always fits."""

EXPORT_CHARS_BESIDES = 400
"""Characters that a memory's fields besides content and meta take about."""

EXPORT_PAGE = 200
"""Memories read at once while an export is written."""

EXPORT_KEY: Final[type[Key]] = tuple[str, int]
"""A memory's place in an export: its layer, and its rid, negative for the newest come first."""

R = TypeVar("R", bound=Result)


class Recall:
    """The reads of one workspace of an open store."""

    def __init__(
        self,
        reads: ReadSide,
        *,
        clock: Clock,
        workspace: str,
        zone: str,
        activity: ActivityRecorder,
    ) -> None:
        """Bind to the read side.

        Args:
            reads: runs the reads.
            clock: dates expiry and the age of memories.
            workspace: name of the workspace that is read.
            zone: name of the time zone that dates in words are meant in.
            activity: takes note of what was found and read.

        """
        self._reads = reads
        self._clock = clock
        self._workspace = workspace
        self._zone = zone
        self._activity = activity

    def search(self, args: SearchArgs, call: Call) -> SearchResult:
        """Find memories by words, or by a piece of their text."""
        started = time.perf_counter()
        if not args.query.strip():
            raise InvalidArgumentsError(
                "`query` is blank; it must hold at least one character that is not white space.",
                details={"field": "query"},
            )
        query = parse_query(args.query)
        selection = select(args, now_us=self._clock.now_us(), zone=self._zone)
        notes = [*self._notes(call), *selection.notes]
        if not (query.terms if args.mode == "fts" else fold(args.query)):
            # In exact mode: nothing but invisible characters, which every text would hold.
            notes.append("the query holds no word, number or symbol to search for")
            page = Page(hits=(), has_more=False, matched="all")
        else:
            page = self._find(args, query, selection.filters, call)
            notes += () if page.hits else self._absence(selection.filters, call)
        if args.mode == "fts" and query.dropped:
            notes.append(f"the query is long: {query.dropped} words or phrases were left out")
        budget = Budget()
        memories = dressed(page.hits, query.terms, budget)
        if budget.cut:
            notes.append(
                f"the content of {budget.cut} memories is cut to its snippet (content_cut); "
                "memory_get with their ids gives the whole"
            )
        duration_ms = round((time.perf_counter() - started) * 1e3, 3)
        self._activity.note_search(
            workspace=self._workspace,
            actor=call.actor_name,
            args=args,
            hits=tuple(memory.id for memory in memories),
            duration_ms=duration_ms,
        )
        return SearchResult(
            memories=memories,
            returned_count=len(memories),
            has_more=page.has_more,
            next_offset=args.offset + len(memories) if page.has_more else None,
            mode=args.mode,
            matched=page.matched,
            query_time_ms=duration_ms,
            notes=tuple(notes),
        )

    def list(self, args: ListArgs, call: Call) -> ListResult:
        """List the memories that satisfy filters."""
        selection = select(args, now_us=self._clock.now_us(), zone=self._zone)
        cursor = _cursor_of(args, KEY_TYPES[args.order])
        total = self._total(selection.filters, cursor, call)
        after = None if cursor is None else cursor.after
        page = self._page(selection.filters, args.order, after, args.limit, call)
        budget = Budget()
        memories = fitted(page.memories, budget)
        return ListResult(
            memories=memories,
            returned_count=len(memories),
            total=total,
            has_more=page.has_more,
            next_cursor=_cursor(args, total, page.keys[-1]) if page.has_more else None,
            notes=(
                *self._notes(call),
                *selection.notes,
                *(() if total else self._absence(selection.filters, call)),
                *cut_notes(budget),
            ),
        )

    def get(self, args: GetArgs, call: Call) -> GetResult:
        """Read memories by their ids."""
        ids = tuple(dict.fromkeys(args.ids))
        result = self._reads.run(
            call, lambda connection: self._get(connection, ids, versions=args.include_versions)
        )
        self._note_read([memory.id for memory in result.memories], call)
        return _with_notes(result, self._notes(call))

    def inspect(self, args: InspectArgs, call: Call) -> InspectResult:
        """Look at one memory, or count them."""
        memory_id, history = args.id, args.include_history
        if not memory_id:
            result = self._reads.run(call, lambda connection: self._statistics(connection, args))
        else:
            result = self._reads.run(
                call, lambda connection: self._inspect_one(connection, memory_id, history=history)
            )
            self._note_read([memory_id], call)
        return _with_notes(result, self._notes(call))

    def sessions(self, args: SessionListArgs, call: Call) -> SessionListResult:
        """List sessions, newest first."""
        cursor = _cursor_of(args, tuple[int])
        before = None if cursor is None else int(cursor.after[0])

        def read(connection: Connection) -> SessionListResult:
            rid = workspace_rid(connection, self._workspace)
            wanted = {
                "client": args.client,
                "project": args.project,
            }
            rows = list_sessions(
                connection,
                rid,
                **wanted,
                active_only=args.active_only,
                before=before,
                limit=args.limit + 1,
            )
            total = (
                count_sessions(connection, rid, **wanted, active_only=args.active_only)
                if cursor is None
                else cursor.total
            )
            page, has_more = rows[: args.limit], len(rows) > args.limit
            return SessionListResult(
                sessions=tuple(session for _, session in page),
                returned_count=len(page),
                total=total,
                has_more=has_more,
                next_cursor=_cursor(args, total, (page[-1][0],)) if has_more else None,
            )

        return _with_notes(self._reads.run(call, read), self._notes(call))

    def export(self, args: ExportArgs, call: Call) -> ExportResult:
        """Write memories as text, as many as fit one reply."""
        selection = select(args, now_us=self._clock.now_us(), zone=self._zone)
        cursor = _cursor_of(args, EXPORT_KEY)
        total = self._total(selection.filters, cursor, call)
        memories: list[Memory] = []
        last: Key = () if cursor is None else cursor.after
        chars, has_more = 0, False
        for key, memory in self._walk(selection.filters, last or None, call):
            meta = len(msgspec.json.encode(memory.meta))
            chars += len(memory.content) + meta + EXPORT_CHARS_BESIDES
            if memories and (len(memories) == args.limit or chars > EXPORT_CHARS_MAX):
                has_more = True
                break
            memories.append(memory)
            last = key
        return ExportResult(
            format=args.format,
            count=len(memories),
            content="".join(write_export(args.format, memories, total)),
            total=total,
            has_more=has_more,
            next_cursor=_cursor(args, total, last) if has_more else None,
            notes=(*self._notes(call), *selection.notes),
        )

    def export_whole(self, args: ExportArgs, call: Call) -> Iterator[str]:
        """Yield an export of every memory that satisfies the filters, whatever `limit` says."""
        selection = select(args, now_us=self._clock.now_us(), zone=self._zone)
        total = self._total(selection.filters, None, call)
        memories = (memory for _, memory in self._walk(selection.filters, None, call))
        yield from write_export(args.format, memories, total)

    def _notes(self, call: Call) -> tuple[str, ...]:
        repaired = (REPAIRED,) if call.repaired else ()
        return (*repaired, *gap_notes(self._reads.current(call).gaps))

    def _absence(self, filters: Filters, call: Call) -> tuple[str, ...]:
        return self._reads.run(
            call, lambda connection: absence_notes(connection, self._workspace, filters)
        )

    def _note_read(self, ids: Sequence[str], call: Call) -> None:
        self._activity.note_read(ids, workspace=self._workspace, actor=call.actor_name)

    def _find(self, args: SearchArgs, query: Query, filters: Filters, call: Call) -> Page:
        def find(connection: Connection) -> Page:
            here = located(connection, self._workspace, filters)
            if args.mode == "exact":
                return search_exact(
                    connection, args.query, here, limit=args.limit, offset=args.offset
                )
            return search_text(connection, query, here, limit=args.limit, offset=args.offset)

        page = self._reads.run(call, find)
        if not page.hits and not self._reads.believe(call):
            page = self._reads.run(call, find)
        return page

    def _total(self, filters: Filters, cursor: Cursor | None, call: Call) -> int:
        """Count what a list holds; a later page keeps to the count of the first."""
        if cursor is not None:
            return cursor.total
        return self._reads.run(
            call,
            lambda connection: count_memories(
                connection, located(connection, self._workspace, filters)
            ),
        )

    def _page(
        self, filters: Filters, order: str, after: Key | None, limit: int, call: Call
    ) -> ListPage:
        def read(connection: Connection) -> ListPage:
            here = located(connection, self._workspace, filters)
            return list_memories(connection, here, order=order, after=after, limit=limit)

        return self._reads.run(call, read)

    def _walk(
        self, filters: Filters, after: Key | None, call: Call
    ) -> Iterator[tuple[Key, Memory]]:
        """Yield every memory with its key, ordered by layer, a page of them read at a time.

        Layer by layer the table is read in its own order: sorting what is left anew for each page
        would take time that grows with the square of the store.
        """
        for layer in sorted(filters.layers or LAYERS):
            if after is not None and layer < str(after[0]):
                continue
            here = msgspec.structs.replace(filters, layers=(layer,))
            begins: Key | None = None
            if after is not None and layer == after[0]:
                begins = (-int(after[1]),)
            has_more = True
            while has_more:
                page = self._page(here, "newest", begins, EXPORT_PAGE, call)
                for (rid, *_), memory in zip(page.keys, page.memories, strict=True):
                    yield (layer, -int(rid)), memory
                begins = page.keys[-1] if page.keys else None
                has_more = page.has_more

    def _get(self, connection: Connection, ids: tuple[str, ...], *, versions: bool) -> GetResult:
        rid = workspace_rid(connection, self._workspace)
        now = format_us(self._clock.now_us())
        found, missing = [], []
        for memory_id in ids:
            memory = find_memory(connection, rid, memory_id, now)
            if memory is not None:
                found.append(memory)
                continue
            missing.append(_missing(connection, rid, memory_id))
        budget = Budget()
        memories = fitted(found, budget)
        notes = cut_notes(budget)
        histories: dict[str, tuple[Version, ...]] = {}
        left_out = 0
        if versions:
            cut = budget.cut
            for memory_id in ids:
                history = versions_of(connection, rid, memory_id)
                if history:
                    histories[memory_id] = fitted(history, budget)
                    left_out += len(history) - len(histories[memory_id])
            notes += history_notes(left_out, budget.cut - cut)
        return GetResult(
            memories=memories,
            missing=tuple(missing),
            versions=histories if versions else None,
            notes=notes,
        )

    def _statistics(self, connection: Connection, args: InspectArgs) -> InspectResult:
        checkpoint = read_checkpoint(connection)
        rid = workspace_rid(connection, self._workspace)
        layers = layer_statistics(
            connection,
            rid,
            layers=LAYERS if args.layer is None else (args.layer,),
            entity_names=(
                None if args.entity_name is None else names_of(connection, rid, args.entity_name)
            ),
            now_us=self._clock.now_us(),
        )
        return InspectResult(
            layer_stats=layers,
            total=sum(layer.total for layer in layers.values()),
            workspace=self._workspace,
            position=0 if checkpoint is None else checkpoint.seq,
        )

    def _inspect_one(
        self, connection: Connection, memory_id: str, *, history: bool
    ) -> InspectResult:
        workspace = workspace_rid(connection, self._workspace)
        now = format_us(self._clock.now_us())
        memory = find_memory(connection, workspace, memory_id, now)
        gone = _missing(connection, workspace, memory_id) if memory is None else None
        if gone is not None and gone.reason == "not_found":
            raise NotFoundError(
                "There is no memory with this id in this workspace. Ids come from memory_add and "
                "memory_search.",
                details={"id": memory_id},
            )
        status = memory.status if memory is not None else gone.reason if gone else "deleted"
        rid = subject_of(connection, workspace, memory_id)
        erased = () if rid is None else tuple(redactions_of(connection, rid))
        if not history:
            return InspectResult(memory=memory, status=status, redacted=erased)
        chain = [] if memory is None else chain_of(connection, workspace, memory, now)
        versions = versions_of(connection, workspace, memory_id)
        budget = Budget()
        kept_chain, kept_versions = fitted(chain, budget), fitted(versions, budget)
        left_out = len(chain) - len(kept_chain) + len(versions) - len(kept_versions)
        return InspectResult(
            memory=memory,
            status=status,
            superseded_chain=None if memory is None else kept_chain,
            versions=kept_versions,
            redacted=erased,
            notes=history_notes(left_out, budget.cut),
        )


def _missing(connection: Connection, workspace: int | None, memory_id: str) -> Missing:
    """Say what has become of a memory that is not there."""
    if deleted_at(connection, workspace, memory_id) is None:
        return Missing(id=memory_id, reason="not_found")
    rid = subject_of(connection, workspace, memory_id)
    assert rid is not None
    if not is_erased(connection, rid):
        return Missing(id=memory_id, reason="deleted")
    redactions = tuple(redactions_of(connection, rid))
    return Missing(id=memory_id, reason="redacted", redacted=redactions)


def _cursor_of(args: ListArgs | ExportArgs | SessionListArgs, key_type: type[Key]) -> Cursor | None:
    return None if args.cursor is None else decode_cursor(args.cursor, args, key_type)


def _cursor(args: ListArgs | ExportArgs | SessionListArgs, total: int, after: Key) -> str:
    return encode_cursor(Cursor(list_id(args), total, after))


def _with_notes(result: R, notes: tuple[str, ...]) -> R:
    if not notes:
        return result
    return msgspec.structs.replace(result, notes=(*notes, *result.notes))
