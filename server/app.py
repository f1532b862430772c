"""The use cases: what mnemolog does, whatever the way in.

Writes go through the committer, reads through the read side; nothing here knows a protocol.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import msgspec

from ledger import Clock, format_us
from projections.checkpoint import read_checkpoint
from projections.connection import Connection
from projections.model import Memory, Version
from projections.queries import (
    chain_of,
    deleted_at,
    find_memory,
    layer_statistics,
    versions_of,
    workspace_rid,
)
from projections.search import Filters, Hit, Page, search_exact, search_text
from projections.snippet import snippet
from projections.text import Query, Term, fold, parse_query
from server.commands import (
    LAYERS,
    AddArgs,
    AddResult,
    DeleteArgs,
    DeleteResult,
    Found,
    InspectArgs,
    InspectResult,
    Result,
    SearchArgs,
    SearchResult,
    UndoArgs,
    UndoResult,
    UpdateArgs,
    UpdateResult,
    WriteArgs,
)
from server.commit import Command, Committer, Decide, Repeat
from server.decide import check_date, decide_add, decide_delete, decide_undo, decide_update
from server.errors import InvalidArgumentsError, NotFoundError
from server.reads import ReadSide
from server.repeat import repeat_add, repeat_delete, repeat_undo, repeat_update
from server.tool import Call

ACTOR_NAME_MAX = 200
ACTOR_UNKNOWN = "unknown"

REPLY_CONTENT_CHARS_MAX = 100_000
"""Content in one search reply; one memory of the greatest length always fits."""

REPAIRED = "the request held text that is not valid Unicode; each such piece was replaced by U+FFFD"

HISTORY_ENTRIES_MAX = 100
"""Memories of a chain, and versions of a memory, in one reply."""

R = TypeVar("R", bound=Result)
E = TypeVar("E", Memory, Version)


class App:
    """The use cases over one open store."""

    def __init__(
        self,
        committer: Committer,
        reads: ReadSide,
        *,
        clock: Clock,
        workspace: str,
        after_write: Callable[[], None],
    ) -> None:
        """Bind to the two sides of the store and one workspace.

        Args:
            committer: runs the writes.
            reads: runs the reads.
            clock: dates expiry and the age of memories.
            workspace: name of the workspace that is read and written.
            after_write: called once a write is acknowledged; must not take time.

        """
        self._after_write = after_write
        self._committer = committer
        self._reads = reads
        self._clock = clock
        self._workspace = workspace

    def add(self, args: AddArgs, call: Call) -> AddResult:
        """Store a memory.

        Raises:
            UseCaseError: see `server.errors`; unless it says otherwise nothing was written.

        """
        return self._write(AddResult, args, decide_add, repeat_add, call)

    def update(self, args: UpdateArgs, call: Call) -> UpdateResult:
        """Change a memory in place, or supersede it.

        Raises:
            UseCaseError: as `add`.

        """
        return self._write(UpdateResult, args, decide_update, repeat_update, call)

    def delete(self, args: DeleteArgs, call: Call) -> DeleteResult:
        """Delete a memory.

        Raises:
            UseCaseError: as `add`.

        """
        return self._write(DeleteResult, args, decide_delete, repeat_delete, call)

    def undo(self, args: UndoArgs, call: Call) -> UndoResult:
        """Undo an operation.

        Raises:
            UseCaseError: as `add`.

        """
        return self._write(UndoResult, args, decide_undo, repeat_undo, call)

    def search(self, args: SearchArgs, call: Call) -> SearchResult:
        """Find memories.

        Raises:
            InvalidArgumentsError: the query is blank, or a date is none.
            UseCaseError: the store cannot be read now.

        """
        started = time.perf_counter()
        if not args.query.strip():
            raise InvalidArgumentsError(
                "`query` is blank; it must hold at least one character that is not white space.",
                details={"field": "query"},
            )
        query = parse_query(args.query)
        notes = [REPAIRED] if call.repaired else []
        notes += _gap_notes(self._reads.current(call).gaps)
        if not (query.terms if args.mode == "fts" else fold(args.query)):
            # In exact mode: nothing but invisible characters, which every text would hold.
            notes.append("the query holds no word, number or symbol to search for")
            page = Page(hits=(), has_more=False, matched="all")
        else:
            page = self._find(args, query, call)
        if args.mode == "fts" and query.dropped:
            notes.append(f"the query is long: {query.dropped} words or phrases were left out")
        budget = _Budget()
        memories = _dressed(page.hits, query.terms, budget)
        if budget.cut:
            notes.append(
                f"the content of {budget.cut} memories is cut to its snippet (content_cut); "
                "memory_inspect with the id gives the whole"
            )
        return SearchResult(
            memories=memories,
            returned_count=len(memories),
            has_more=page.has_more,
            next_offset=args.offset + len(memories) if page.has_more else None,
            mode=args.mode,
            matched=page.matched,
            query_time_ms=round((time.perf_counter() - started) * 1e3, 3),
            notes=tuple(notes),
        )

    def inspect(self, args: InspectArgs, call: Call) -> InspectResult:
        """Look at one memory, or count them.

        Raises:
            NotFoundError: no memory of this workspace has the id, or ever had.
            UseCaseError: the store cannot be read now.

        """
        memory_id, history = args.id, args.include_history
        if memory_id is None:
            result = self._reads.run(call, lambda connection: self._statistics(connection, args))
        else:
            result = self._reads.run(
                call, lambda connection: self._inspect_one(connection, memory_id, history=history)
            )
        gaps = _gap_notes(self._reads.current(call).gaps)
        return msgspec.structs.replace(result, notes=(*result.notes, *gaps)) if gaps else result

    def _write(
        self, result: type[R], args: WriteArgs, decide: Decide, repeat: Repeat, call: Call
    ) -> R:
        reply = self._committer.submit(
            Command(
                args=args,
                decide=decide,
                repeat=repeat,
                workspace=self._workspace,
                actor=call.actor_name[:ACTOR_NAME_MAX] or ACTOR_UNKNOWN,
                call=call,
            )
        )
        assert isinstance(reply, result)
        self._after_write()
        if call.repaired:
            return msgspec.structs.replace(reply, notes=(*reply.notes, REPAIRED))
        return reply

    def _find(self, args: SearchArgs, query: Query, call: Call) -> Page:
        filters = self._filters(args)

        def find(connection: Connection) -> Page:
            rid = workspace_rid(connection, self._workspace)
            here = msgspec.structs.replace(filters, workspace=rid)
            if args.mode == "exact":
                return search_exact(
                    connection, args.query, here, limit=args.limit, offset=args.offset
                )
            return search_text(connection, query, here, limit=args.limit, offset=args.offset)

        page = self._reads.run(call, find)
        if not page.hits and not self._reads.believe(call):
            page = self._reads.run(call, find)
        return page

    def _filters(self, args: SearchArgs) -> Filters:
        true_at = None if args.as_of is None else check_date("as_of", args.as_of)[1] - 1
        happened_from = (
            None if args.date_from is None else check_date("date_from", args.date_from)[0]
        )
        happened_to = None if args.date_to is None else check_date("date_to", args.date_to)[1]
        if happened_from is not None and happened_to is not None and happened_to <= happened_from:
            raise InvalidArgumentsError(
                "`date_to` lies before `date_from`; nothing can have happened then.",
                details={"field": "date_to"},
            )
        return Filters(
            workspace=None,
            now_us=self._clock.now_us(),
            layers=tuple(dict.fromkeys(args.layers)),
            entity_names=() if args.entity_name is None else (args.entity_name,),
            scope=args.scope,
            tags=args.tags,
            happened_from=happened_from,
            happened_to=happened_to,
            true_at=true_at,
            min_confidence=args.min_confidence,
            min_importance=args.min_importance,
            include_superseded=args.include_superseded,
        )

    def _statistics(self, connection: Connection, args: InspectArgs) -> InspectResult:
        checkpoint = read_checkpoint(connection)
        layers = layer_statistics(
            connection,
            workspace_rid(connection, self._workspace),
            layers=LAYERS if args.layer is None else (args.layer,),
            entity_names=None if args.entity_name is None else (args.entity_name,),
            now_us=self._clock.now_us(),
        )
        return InspectResult(
            layers=layers,
            total=sum(layer.total for layer in layers.values()),
            workspace=self._workspace,
            position=0 if checkpoint is None else checkpoint.seq,
        )

    def _inspect_one(
        self, connection: Connection, memory_id: str, *, history: bool
    ) -> InspectResult:
        workspace = workspace_rid(connection, self._workspace)
        memory = find_memory(connection, workspace, memory_id)
        if memory is None and deleted_at(connection, workspace, memory_id) is None:
            raise NotFoundError(
                "There is no memory with this id in this workspace. Ids come from memory_add and "
                "memory_search.",
                details={"id": memory_id},
            )
        status = "deleted" if memory is None else self._status(memory)
        if not history:
            return InspectResult(memory=memory, status=status)
        chain = [] if memory is None else chain_of(connection, workspace, memory)
        versions = versions_of(connection, workspace, memory_id)
        budget = _Budget()
        kept_chain, kept_versions = _kept(chain, budget), _kept(versions, budget)
        left_out = len(chain) - len(kept_chain) + len(versions) - len(kept_versions)
        return InspectResult(
            memory=memory,
            status=status,
            superseded_chain=None if memory is None else kept_chain,
            versions=kept_versions,
            notes=_history_notes(left_out, budget.cut),
        )

    def _status(self, memory: Memory) -> str:
        if memory.superseded_by is not None:
            return "superseded"
        now = format_us(self._clock.now_us())
        return "active" if memory.expires_at is None or memory.expires_at > now else "expired"


class _Budget:
    """The characters of content that one reply may carry, and how many contents did not fit."""

    def __init__(self) -> None:
        self._left = REPLY_CONTENT_CHARS_MAX
        self.cut = 0

    def take(self, content: str | None) -> bool:
        """Make room for a content; say whether there was any."""
        length = len(content or "")
        fits = length <= self._left
        self._left -= length if fits else 0
        self.cut += not fits
        return fits


def _kept(entries: list[E], budget: _Budget) -> tuple[E, ...]:
    """Return the first entries of a history, contents that do not fit cut to their beginning."""
    return tuple(
        entry
        if budget.take(entry.content)
        else msgspec.structs.replace(
            entry, content=snippet(entry.content or "", ()), content_cut=True
        )
        for entry in entries[:HISTORY_ENTRIES_MAX]
    )


def _history_notes(left_out: int, cut: int) -> tuple[str, ...]:
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


def _gap_notes(gaps: tuple[str, ...]) -> tuple[str, ...]:
    """Say that a damaged ledger could be read in part only."""
    if not gaps:
        return ()
    note = (
        f"{len(gaps)} parts of the ledger are damaged and missing here, and nothing can be "
        "written; `mnemolog verify` names them"
    )
    return (note,)


def _dressed(hits: tuple[Hit, ...], terms: tuple[Term, ...], budget: _Budget) -> tuple[Found, ...]:
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
                event_at=memory.event_at,
                valid_from=memory.valid_from,
                valid_until=memory.valid_until,
                expires_at=memory.expires_at,
                superseded_by=memory.superseded_by,
                created_at=memory.created_at,
                version=memory.version,
            )
        )
    return tuple(found)
