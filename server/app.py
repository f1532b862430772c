"""The use cases: what mnemolog does, whatever the way in.

Writes go through the committer, reads through the read side; nothing here knows a protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import msgspec

from ledger import Clock, Ledger, format_us
from projections.activity import ActivityLog
from projections.aliases import list_aliases, names_of
from projections.checkpoint import read_checkpoint
from projections.connection import Connection
from projections.facts import Facts
from projections.filters import Filters
from projections.health import STALE_AFTER_US, MemoryHealth, memory_health
from projections.queries import find_memory, layer_statistics, workspace_rid
from projections.similar import Similar, find_similar
from projections.snippet import snippet
from server.activity import ActivityRecorder
from server.alias_decisions import decide_alias
from server.audit import Audits
from server.audit_args import AuditArgs, AuditExportArgs, AuditShowArgs
from server.audit_export import AuditExports
from server.audit_results import AuditExportResult, AuditResult
from server.commands import (
    LAYERS,
    AddArgs,
    AddManyArgs,
    AliasArgs,
    AppendArgs,
    DeleteArgs,
    DeleteManyArgs,
    ExportArgs,
    GetArgs,
    HealthArgs,
    InspectArgs,
    ListArgs,
    PatchArgs,
    SearchArgs,
    SessionEndArgs,
    SessionListArgs,
    SessionStartArgs,
    UndoArgs,
    UpdateArgs,
)
from server.commit import Command, Committer, Decide, Repeat
from server.diff import Comparison, DiffArgs, DiffResult
from server.edit_decisions import decide_append, decide_patch
from server.errors import InvalidArgumentsError, UseCaseError
from server.examine import StoreHealth, diagnosis, examine
from server.memory_decisions import (
    CleanupResult,
    decide_add,
    decide_cleanup,
    decide_delete,
    decide_delete_many,
    decide_update,
    preview_deletion,
)
from server.past_reads import PastSide
from server.reads import ReadSide
from server.recall import Recall
from server.redaction import Redactions
from server.redaction_args import RedactArgs
from server.repeat import (
    repeat_add,
    repeat_alias,
    repeat_append,
    repeat_cleanup,
    repeat_delete,
    repeat_delete_many,
    repeat_patch,
    repeat_session_end,
    repeat_session_start,
    repeat_undo,
    repeat_update,
)
from server.reply import REPAIRED
from server.request import WriteArgs
from server.results import (
    AddedItem,
    AddManyResult,
    AddResult,
    AliasResult,
    AppendResult,
    Conflict,
    DeleteManyResult,
    DeleteResult,
    ExportResult,
    GetResult,
    HealthResult,
    HealthStatistics,
    InspectResult,
    ListResult,
    PatchResult,
    RedactResult,
    Refusal,
    Result,
    SearchResult,
    SessionEndResult,
    SessionListResult,
    SessionStartResult,
    UndoResult,
    UpdateResult,
)
from server.schema import convert
from server.session_decisions import decide_session_end, decide_session_start
from server.tool import Call
from server.undo_decisions import decide_undo
from server.undo_many import UndoMany, given_filters

ACTOR_NAME_MAX = 200
ACTOR_UNKNOWN = "unknown"

CONFLICTS_MAX = 3
"""Candidates for contradiction that one reply names."""

ALIASES_MAX = 1_000
"""Aliases that one reply lists."""

R = TypeVar("R", bound=Result)


class App:
    """The use cases over one open store.

    Every method raises a `UseCaseError` if it refuses; unless that says otherwise nothing was
    written.
    """

    def __init__(
        self,
        ledger: Ledger,
        committer: Committer,
        reads: ReadSide,
        *,
        past: PastSide,
        redactions: Redactions,
        audit_exports: AuditExports,
        clock: Clock,
        undo_many: UndoMany,
        workspace: str,
        zone: str,
        recorder: ActivityRecorder,
        activity: ActivityLog,
        after_write: Callable[[], None],
    ) -> None:
        """Bind to the sides of the store and one workspace.

        Args:
            ledger: is looked at by `health`.
            committer: runs the writes.
            reads: runs the reads.
            past: runs those of the store as it was.
            redactions: runs the redactions.
            audit_exports: writes audit bundles.
            clock: dates expiry and the age of memories.
            undo_many: undoes what a filter matches.
            workspace: name of the workspace that is read and written.
            zone: name of the time zone that dates in words are meant in.
            recorder: takes note of what is found and read.
            activity: says what was found and read lately.
            after_write: called once a write is acknowledged; must not take time.

        """
        self._ledger = ledger
        self._committer = committer
        self._reads = reads
        self._redactions = redactions
        self._audit_exports = audit_exports
        self._audits = Audits(ledger, reads, clock=clock, workspace=workspace, zone=zone)
        self._clock = clock
        self._workspace = workspace
        self._zone = zone
        self._activity = activity
        self._after_write = after_write
        self._undo_many = undo_many
        self._recall = Recall(
            reads, past, clock=clock, workspace=workspace, zone=zone, activity=recorder
        )
        self._comparison = Comparison(reads, past, workspace)

    def add(self, args: AddArgs, call: Call) -> AddResult:
        """Store a memory."""
        return self._compared(self._write(AddResult, self._add_command(args, call)), args, call)

    def add_many(self, args: AddManyArgs, call: Call, *, cause: str = "") -> AddManyResult:
        """Store memories, each on its own: what is refused stops no other.

        Args:
            args: the memories.
            call: the running call.
            cause: of an earlier call, if this goes on with the same batch.

        """
        cause = cause or self._undo_many.new_cause(_actor(call), args.idempotency_key)
        items: list[AddArgs | UseCaseError] = []
        for index, item in enumerate(args.memories):
            try:
                items.append(_with_key(convert(item, AddArgs), args.idempotency_key, index))
            except InvalidArgumentsError as refusal:
                items.append(_of_item(refusal, index))
        commands = [
            self._add_command(item, call, cause) for item in items if isinstance(item, AddArgs)
        ]
        outcomes = iter(self._committer.submit_all(commands))
        results = [
            self._added(item, next(outcomes), call) if isinstance(item, AddArgs) else _refused(item)
            for item in items
        ]
        if commands:
            self._after_write()
        return AddManyResult(
            cause=cause,
            results=tuple(results),
            added_count=sum(item.added is not None and item.added.created for item in results),
            refused_count=sum(item.error is not None for item in results),
            notes=(REPAIRED,) if call.repaired else (),
        )

    def update(self, args: UpdateArgs, call: Call) -> UpdateResult:
        """Change a memory in place, or supersede it."""
        return self._write(UpdateResult, self._command(args, decide_update, repeat_update, call))

    def patch(self, args: PatchArgs, call: Call) -> PatchResult:
        """Replace pieces of a memory's text."""
        return self._write(PatchResult, self._command(args, decide_patch, repeat_patch, call))

    def append(self, args: AppendArgs, call: Call) -> AppendResult:
        """Add text at the end of a memory's text."""
        return self._write(AppendResult, self._command(args, decide_append, repeat_append, call))

    def delete(self, args: DeleteArgs, call: Call) -> DeleteResult:
        """Delete a memory."""
        return self._write(DeleteResult, self._command(args, decide_delete, repeat_delete, call))

    def delete_many(self, args: DeleteManyArgs, call: Call, *, cause: str = "") -> DeleteManyResult:
        """Delete the memories that satisfy a filter, or only say which those are.

        `cause` is that of an earlier call, if this goes on with the same deletion.
        """
        if args.dry_run:
            now_us = self._clock.now_us()
            return self._reads.run(
                call,
                lambda connection: preview_deletion(
                    args,
                    Facts(connection, workspace_rid(connection, self._workspace)),
                    now_us=now_us,
                    zone=self._zone,
                ),
            )
        cause = cause or self._undo_many.new_cause(_actor(call), args.idempotency_key)
        deleted = self._write(
            DeleteManyResult,
            self._command(args, decide_delete_many, repeat_delete_many, call, cause),
        )
        if deleted.position is None:
            return deleted
        return msgspec.structs.replace(deleted, cause=cause)

    def undo(self, args: UndoArgs, call: Call, *, cause: str = "") -> UndoResult:
        """Undo an operation, or those that a filter matches.

        `cause` is that of an earlier call, if this goes on with the same undoing.
        """
        by_filter = given_filters(args)
        if args.dry_run:
            return self._undo_many.trial(args, call)
        if not by_filter:
            return self._write(UndoResult, self._command(args, decide_undo, repeat_undo, call))
        result = self._undo_many.run(args, call, actor=_actor(call), cause=cause)
        if result.undone:
            self._after_write()
        return _repaired(result, call)

    def redact(self, args: RedactArgs, call: Call) -> RedactResult:
        """Erase what was stored for good, or only say what would be erased."""
        if args.dry_run:
            return self._redactions.preview(args, self._workspace, call)
        result = self._redactions.redact(args, self._command, self._workspace, call)
        self._after_write()
        return result

    def session_start(self, args: SessionStartArgs, call: Call) -> SessionStartResult:
        """Begin a session."""
        return self._write(
            SessionStartResult,
            self._command(args, decide_session_start, repeat_session_start, call),
        )

    def session_end(self, args: SessionEndArgs, call: Call) -> SessionEndResult:
        """End a session."""
        return self._write(
            SessionEndResult, self._command(args, decide_session_end, repeat_session_end, call)
        )

    def session_list(self, args: SessionListArgs, call: Call) -> SessionListResult:
        """List sessions, newest first."""
        return self._recall.sessions(args, call)

    def alias(self, args: AliasArgs, call: Call) -> AliasResult:
        """Add, remove or list further names of entities."""
        if args.action != "list":
            return self._write(AliasResult, self._command(args, decide_alias, repeat_alias, call))
        return self._reads.run(call, lambda connection: self._aliases(connection, args))

    def search(self, args: SearchArgs, call: Call) -> SearchResult:
        """Find memories by words, or by a piece of their text."""
        return self._recall.search(args, call)

    def list(self, args: ListArgs, call: Call) -> ListResult:
        """List the memories that satisfy filters."""
        return self._recall.list(args, call)

    def get(self, args: GetArgs, call: Call) -> GetResult:
        """Read memories by their ids."""
        return self._recall.get(args, call)

    def inspect(self, args: InspectArgs, call: Call) -> InspectResult:
        """Look at one memory, or count them."""
        return self._recall.inspect(args, call)

    def export(self, args: ExportArgs, call: Call) -> ExportResult:
        """Write memories as text, as many as fit one reply."""
        return self._recall.export(args, call)

    def position(self, call: Call) -> int:
        """Return the ledger position that reads show."""
        checkpoint = self._reads.run(call, read_checkpoint)
        return 0 if checkpoint is None else checkpoint.seq

    def export_whole(self, args: ExportArgs, call: Call) -> Iterator[str]:
        """Yield an export of every memory that satisfies the filters, whatever `limit` says."""
        return self._recall.export_whole(args, call)

    def audit(self, args: AuditArgs, call: Call) -> AuditResult:
        """Tell the history of one memory."""
        return self._audits.history(args, call)

    def audit_show(self, args: AuditShowArgs, call: Call) -> AuditResult:
        """Tell who did what in the workspace."""
        return self._audits.show(args, call)

    def audit_export(self, args: AuditExportArgs, call: Call) -> AuditExportResult:
        """Write a bundle of the ledger, or of a part of it, that a stranger can check."""
        return self._audit_exports.export(args, call)

    def diff(self, args: DiffArgs, call: Call) -> DiffResult:
        """Say what changed between two moments."""
        return self._comparison.diff(args, call)

    def health(self, args: HealthArgs, call: Call) -> HealthResult:
        """Examine the store; delete what has expired, if asked to."""
        cleaned = None
        if args.cleanup:
            command = self._command(args, decide_cleanup, repeat_cleanup, call)
            cleaned = self._write(CleanupResult, command)
        now_us = self._clock.now_us()
        read_ids = self._activity.read_since(now_us - STALE_AFTER_US)
        generation = self._reads.current(call)

        def look(
            connection: Connection,
        ) -> tuple[MemoryHealth, StoreHealth, HealthStatistics]:
            rid = workspace_rid(connection, self._workspace)
            return (
                memory_health(connection, rid, now_us=now_us, read_ids=read_ids),
                examine(self._ledger, generation, connection, now_us=now_us),
                _statistics(connection, rid, now_us),
            )

        result = diagnosis(*self._reads.run(call, look))
        if cleaned is None:
            return result
        return msgspec.structs.replace(
            result,
            cleaned_expired=cleaned.cleaned,
            remaining_expired=cleaned.remaining,
            position=cleaned.position,
            notes=cleaned.notes,
        )

    def _add_command(self, args: AddArgs, call: Call, cause: str = "") -> Command:
        return self._command(args, decide_add, repeat_add, call, cause)

    def _command(
        self, args: WriteArgs, decide: Decide, repeat: Repeat, call: Call, cause: str = ""
    ) -> Command:
        return Command(
            args=args,
            decide=decide,
            repeat=repeat,
            workspace=self._workspace,
            actor=_actor(call),
            call=call,
            cause=cause,
        )

    def _write(self, result: type[R], command: Command) -> R:
        reply = self._committer.submit(command)
        assert isinstance(reply, result)
        self._after_write()
        return _repaired(reply, command.call)

    def _added(self, args: AddArgs, outcome: object, call: Call) -> AddedItem:
        """Say what became of one item of a batch.

        Raises:
            BaseException: it failed in a way nobody foresaw.

        """
        if isinstance(outcome, UseCaseError):
            return _refused(outcome)
        if isinstance(outcome, BaseException):
            raise outcome
        assert isinstance(outcome, AddResult)
        return AddedItem(added=self._compared(outcome, args, call))

    def _compared(self, added: AddResult, args: AddArgs, call: Call) -> AddResult:
        """Name what is stored about the same entity in similar words.

        The memory is stored whatever comes of this, so nothing here is an error of the call.
        """
        if args.entity_name is None or not added.created:
            return added
        try:
            similar = self._reads.run(call, lambda connection: self._similar(connection, added.id))
        except UseCaseError as error:
            note = f"what it may contradict was not looked for: {error.message}"
            return msgspec.structs.replace(added, notes=(*added.notes, note))
        conflicts = tuple(
            Conflict(
                id=each.memory.id,
                snippet=snippet(each.memory.content, ()),
                similarity=each.similarity,
            )
            for each in similar
        )
        return msgspec.structs.replace(added, potential_conflicts=conflicts)

    def _similar(self, connection: Connection, memory_id: str) -> Sequence[Similar]:
        rid, now_us = workspace_rid(connection, self._workspace), self._clock.now_us()
        memory = find_memory(connection, rid, memory_id, format_us(now_us))
        if memory is None or memory.entity_name is None:
            return []
        filters = Filters(
            workspace=rid,
            now_us=now_us,
            entity_names=names_of(connection, rid, memory.entity_name),
        )
        return find_similar(connection, memory, filters, limit=CONFLICTS_MAX)

    def _aliases(self, connection: Connection, args: AliasArgs) -> AliasResult:
        rid = workspace_rid(connection, self._workspace)
        name = args.entity_name or args.alias
        names = None if name is None else names_of(connection, rid, name)
        found = list_aliases(connection, rid, names, ALIASES_MAX + 1)
        return AliasResult(
            changed=False,
            aliases=tuple(found[:ALIASES_MAX]),
            notes=(
                (f"only the first {ALIASES_MAX} aliases are listed; pass an entity_name",)
                if len(found) > ALIASES_MAX
                else ()
            ),
        )


def _actor(call: Call) -> str:
    return call.actor_name[:ACTOR_NAME_MAX] or ACTOR_UNKNOWN


def _repaired(reply: R, call: Call) -> R:
    """Say so where the request held text that is not Unicode."""
    if call.repaired:
        return msgspec.structs.replace(reply, notes=(*reply.notes, REPAIRED))
    return reply


def _of_item(refusal: InvalidArgumentsError, index: int) -> InvalidArgumentsError:
    """Name the item where it is the item itself that is at fault and none of its fields."""
    if refusal.details.get("field") != "arguments":
        return refusal
    name = f"memories[{index}]"
    return InvalidArgumentsError(
        refusal.message.replace("`arguments`", f"`{name}`", 1),
        details={**refusal.details, "field": name},
    )


def _refused(refusal: UseCaseError) -> AddedItem:
    return AddedItem(
        error=Refusal(code=refusal.code, message=refusal.message, details=refusal.details)
    )


def _with_key(args: AddArgs, key: str | None, index: int) -> AddArgs:
    """Give an item of a batch a key of its own, made from the batch's."""
    if key is None or args.idempotency_key is not None:
        return args
    return msgspec.structs.replace(args, idempotency_key=f"{key}#{index}")


def _statistics(connection: Connection, workspace: int | None, now_us: int) -> HealthStatistics:
    layers = layer_statistics(
        connection, workspace, layers=LAYERS, entity_names=None, now_us=now_us
    )
    return HealthStatistics(
        total_active=sum(layer.active for layer in layers.values()),
        total_superseded=sum(layer.superseded for layer in layers.values()),
        by_layer={name: layer.active for name, layer in layers.items()},
    )
