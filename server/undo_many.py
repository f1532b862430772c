"""Undoing many operations: what is chosen, what would become of it, and doing it.

A trial on one moment's rows decides what can be undone, newest first, each as if those before it
were undone already. A dry run ends there. Otherwise each operation is undone by a command of its
own, decided anew under the ledger's lock, so that nothing is undone that somebody else has touched
meanwhile; as many share a round as keep the lock for some hundredths of a second only.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from ledger import Clock, IdSource, Ledger
from projections.connection import Connection
from projections.facts import Facts
from projections.operations import (
    OperationFilter,
    actor_names,
    select_operations,
    undoers,
    undone_under,
)
from projections.queries import workspace_rid
from projections.supposition import Supposition
from server.commands import POSITION_MAX, UNDO_FILTERS, Bound, UndoArgs
from server.commit import Command, Committer, refuse_other_request, request_digest
from server.decision import Moment, position_said, read_range
from server.errors import CallCancelledError, InvalidArgumentsError, StoreError, UseCaseError
from server.reads import ReadSide
from server.repeat import REPEATED, repeat_undo
from server.results import Refusal, SkippedOperation, UndoResult
from server.tool import Call
from server.undo_decisions import compensation, decide_undo, operation_to_undo

UNDONE_MAX: Final = 10_000
"""Operations that one call undoes."""

SHOWN_MAX: Final = 100
"""Positions, and ids, that a reply names."""

SKIPPED_SHOWN_MAX: Final = 50
LATER_SHOWN_MAX: Final = 5
ACTORS_SHOWN_MAX: Final = 10

ROUND_OPERATIONS_MAX: Final = 32
ROUND_SUBJECTS_MAX: Final = 128
"""What is undone while the lock is held once, one operation at least."""

PAUSE_S: Final = 0.01
"""Between two rounds: longer than those who wait for the lock rest between two tries."""

UNDONE_ALREADY: Final = "undone_already"
UNDID_MATCHED: Final = "undid_matched"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a trial came to."""

    matched: int
    undoable: tuple[tuple[int, int], ...]
    """(position, how many subjects it touched), newest first."""
    memories: tuple[str, ...]
    """Ids of the first that would change."""
    skipped: tuple[SkippedOperation, ...]
    remaining: int
    notes: tuple[str, ...]


class UndoMany:
    """Undoes what a filter matches in one workspace."""

    def __init__(
        self,
        ledger: Ledger,
        committer: Committer,
        reads: ReadSide,
        *,
        clock: Clock,
        ids: IdSource,
        workspace: str,
        zone: str,
    ) -> None:
        """Bind to the sides of the store and a workspace; `zone` is what words are meant in."""
        self._ledger = ledger
        self._committer = committer
        self._reads = reads
        self._clock = clock
        self._ids = ids
        self._workspace = workspace
        self._zone = zone

    def new_cause(self, actor: str, key: str | None) -> str:
        """Return an id for what one bulk command does; one key always has the same.

        With a key it is a keyed digest, like that which stands for the key itself, so that a
        request that was cut off and is sent again goes on under its first cause.
        """
        if key is None:
            return self._ids.new_id()
        return self._ledger.idempotency_digest(f"cause {self._workspace}", actor, key)

    def trial(self, args: UndoArgs, call: Call) -> UndoResult:
        """Say what undoing would come to; writes nothing."""
        if not given_filters(args):
            return self._reads.run(call, lambda connection: self._trial_of_one(connection, args))
        plan = self._reads.run(call, lambda connection: self._plan(connection, args))
        return _result(
            plan,
            undone=[position for position, _ in plan.undoable],
            memories=plan.memories,
            dry_run=True,
        )

    def run(self, args: UndoArgs, call: Call, *, actor: str, cause: str = "") -> UndoResult:
        """Undo what a filter matches; `cause` is that of an earlier call, if this goes on with it.

        Raises:
            UseCaseError: nothing was undone.

        """
        cause = cause or self.new_cause(actor, args.idempotency_key)
        repeated = self._reads.run(call, lambda connection: self._repeated(connection, args, actor))
        if repeated is not None:
            return repeated
        plan = self._reads.run(call, lambda connection: self._plan(connection, args))
        run = _Run(len(plan.undoable))
        last = plan.undoable[-1][0] if plan.undoable else 0
        for part in _rounds(plan.undoable):
            commands = [
                Command(
                    args=UndoArgs(position=position),
                    decide=decide_undo,
                    repeat=repeat_undo,
                    workspace=self._workspace,
                    actor=actor,
                    call=call,
                    cause=cause,
                    # The key is recorded with what is undone last: a request that was cut off
                    # before goes on when it is sent again.
                    request=args if position == last else None,
                )
                for position in part
            ]
            if run.has_begun:
                time.sleep(PAUSE_S)
            run.take(part, self._committer.submit_all(commands), call)
            if run.stopped is not None:
                break
        return run.result(plan, cause)

    def _plan(self, connection: Connection, args: UndoArgs) -> Plan:
        chosen, notes = self._filter(args)
        rid = workspace_rid(connection, self._workspace)
        selected = select_operations(connection, rid, chosen)
        if not selected and args.actor is not None:
            known = ", ".join(actor_names(connection, ACTORS_SHOWN_MAX))
            notes = (*notes, f"nothing matched; who has written to the store: {known or 'nobody'}")
        matched, undone = frozenset(selected), undoers(connection)
        facts, moment = Supposition(connection, rid), self._moment()
        undoable: list[tuple[int, int]] = []
        memories: dict[str, None] = {}
        skipped: list[SkippedOperation] = []
        remaining = 0
        for position in selected:
            undoes = facts.undoes(position)
            if position in undone:
                skipped.append(SkippedOperation(position=position, code=UNDONE_ALREADY))
            elif undoes in matched:
                skipped.append(SkippedOperation(position=position, code=UNDID_MATCHED))
            elif len(undoable) == UNDONE_MAX:
                remaining += 1
            else:
                try:
                    touched, events = compensation(position, facts, moment)
                except UseCaseError as refusal:
                    skipped.append(_skipped(position, refusal))
                    continue
                facts.suppose_undone(position, touched, events)
                undoable.append((position, len(touched)))
                if len(memories) < SHOWN_MAX:
                    memories |= dict.fromkeys(subject.now.id for subject in touched)
        return Plan(
            matched=len(selected),
            undoable=tuple(undoable),
            memories=tuple(memories)[:SHOWN_MAX],
            skipped=tuple(skipped),
            remaining=remaining,
            notes=notes,
        )

    def _trial_of_one(self, connection: Connection, args: UndoArgs) -> UndoResult:
        facts = Facts(connection, workspace_rid(connection, self._workspace))
        position = operation_to_undo(args, facts)
        touched, _ = compensation(position, facts, self._moment())
        return UndoResult(
            undone=False,
            undone_position=position,
            memories=tuple(subject.now.id for subject in touched),
            dry_run=True,
        )

    def _repeated(self, connection: Connection, args: UndoArgs, actor: str) -> UndoResult | None:
        """Return the reply to a request that was done before, if it was."""
        if args.idempotency_key is None:
            return None
        workspace = connection.value("SELECT id FROM workspaces WHERE name = ?", (self._workspace,))
        agent = connection.value("SELECT id FROM agents WHERE name = ?", (actor,))
        if workspace is None or agent is None:
            return None
        rid = workspace_rid(connection, self._workspace)
        digest = self._ledger.idempotency_digest(workspace, agent, args.idempotency_key)
        found = Facts(connection, rid).repeated(digest)
        if found is None:
            return None
        position, first_request = found
        refuse_other_request(position, request_digest(args), first_request)
        cause = self.new_cause(actor, args.idempotency_key)
        undos = undone_under(connection, cause)
        return UndoResult(
            undone=False,
            position=undos[0][1] if undos else position,
            undone_count=len(undos),
            undone_positions=tuple(undone for undone, _ in undos[:SHOWN_MAX]),
            cause=cause,
            notes=(REPEATED,),
        )

    def _filter(self, args: UndoArgs) -> tuple[OperationFilter, tuple[str, ...]]:
        now_us = self._clock.now_us()
        first, from_us, of_from = _bound("from", args.since, now_us, self._zone)
        last, to_us, of_to = _bound("to", args.until, now_us, self._zone)
        chosen = OperationFilter(
            actor=args.actor,
            session=args.session_id,
            cause=args.cause,
            first=first,
            last=last,
            from_us=None if from_us is None else from_us[0],
            to_us=None if to_us is None else to_us[1],
        )
        return chosen, (*of_from, *of_to)

    def _moment(self) -> Moment:
        return Moment(
            now_us=self._clock.now_us(),
            zone=self._zone,
            new_id=self._ids.new_id,
            new_salt=lambda: "",
            request=None,
        )


class _Run:
    """What became of the operations so far."""

    def __init__(self, total: int) -> None:
        self.stopped: UseCaseError | None = None
        self.has_begun = False
        self._total = total
        self._undone: list[int] = []
        self._position: int | None = None
        self._memories: dict[str, None] = {}
        self._skipped: list[SkippedOperation] = []

    def take(
        self, part: Sequence[int], outcomes: Sequence[msgspec.Struct | BaseException], call: Call
    ) -> None:
        """Take note of a round.

        Raises:
            BaseException: it failed in a way nobody foresaw.

        """
        self.has_begun = True
        for position, outcome in zip(part, outcomes, strict=True):
            match outcome:
                case UndoResult():
                    self._undone.append(position)
                    self._position = self._position or outcome.position
                    if len(self._memories) < SHOWN_MAX:
                        self._memories |= dict.fromkeys(outcome.memories)
                case StoreError() | CallCancelledError():
                    self.stopped = self.stopped or outcome
                case UseCaseError():
                    self._skipped.append(_skipped(position, outcome))
                case BaseException():
                    raise outcome
                case _:
                    raise AssertionError(outcome)
        call.progress(len(self._undone), self._total, "undoing operations")

    def result(self, plan: Plan, cause: str) -> UndoResult:
        """Return the reply.

        Raises:
            UseCaseError: it was stopped before anything was undone, or taken back.

        """
        stopped = self.stopped
        if stopped is not None and not self._undone:
            raise stopped
        notes = plan.notes
        if self._skipped:
            count = len(self._skipped)
            notes = (*notes, f"{count} were left because another writer came between")
        left = self._total - len(self._undone) - len(self._skipped)
        plan = msgspec.structs.replace(
            plan,
            skipped=(*self._skipped, *plan.skipped),
            remaining=plan.remaining + left,
            notes=notes,
        )
        return _result(
            plan,
            undone=self._undone,
            memories=tuple(self._memories)[:SHOWN_MAX],
            position=self._position,
            cause=cause if self._undone else None,
            stopped=None
            if stopped is None
            else Refusal(code=stopped.code, message=stopped.message, details=stopped.details),
        )


def given_filters(args: UndoArgs) -> bool:
    """Say whether a request is for what a filter matches.

    Raises:
        InvalidArgumentsError: nothing says what to undo, or several things do.

    """
    filters = (args.actor, args.session_id, args.cause, args.since, args.until)
    by_filter = any(each is not None for each in filters)
    if [args.position is not None, args.id is not None, by_filter].count(True) != 1:
        raise InvalidArgumentsError(
            "Pass exactly one of `position` (of the operation), `id` (of a memory or session "
            "whose last operation is to be undone) and a filter of one or several of "
            f"{', '.join(f'`{name}`' for name in UNDO_FILTERS)}; nothing was changed.",
            details={"field": "position", "accepted": ["position", "id", *UNDO_FILTERS]},
        )
    return by_filter


def _bound(
    field: str, bound: Bound | None, now_us: int, zone: str
) -> tuple[int | None, tuple[int, int] | None, tuple[str, ...]]:
    """Return a bound as a position or as a half-open span, and what is to be said of it."""
    if bound is None:
        return None, None, ()
    if isinstance(bound, int):
        return bound, None, ()
    position = position_said(bound)
    if position is not None:
        return min(position, POSITION_MAX), None, ()
    span = read_range(field, bound, now_us=now_us, zone=zone)
    return None, (span.from_us, span.to_us), (span.said,) if span.said else ()


def _rounds(undoable: Sequence[tuple[int, int]]) -> Iterator[list[int]]:
    part: list[int] = []
    subjects = 0
    for position, size in undoable:
        if part and (len(part) == ROUND_OPERATIONS_MAX or subjects + size > ROUND_SUBJECTS_MAX):
            yield part
            part, subjects = [], 0
        part.append(position)
        subjects += size
    if part:
        yield part


def _skipped(position: int, refusal: UseCaseError) -> SkippedOperation:
    later = refusal.details.get("later", ())
    return SkippedOperation(
        position=position, code=refusal.code, later=tuple(later[-LATER_SHOWN_MAX:][::-1])
    )


def _result(
    plan: Plan,
    *,
    undone: Sequence[int],
    memories: tuple[str, ...],
    dry_run: bool = False,
    position: int | None = None,
    cause: str | None = None,
    stopped: Refusal | None = None,
) -> UndoResult:
    needless = (UNDONE_ALREADY, UNDID_MATCHED)
    shown = sorted(plan.skipped, key=lambda each: each.code in needless)
    return UndoResult(
        undone=bool(undone) and not dry_run,
        position=position,
        memories=memories,
        dry_run=dry_run,
        matched_count=plan.matched,
        undone_count=len(undone),
        undone_positions=tuple(undone[:SHOWN_MAX]),
        skipped_count=len(plan.skipped),
        skipped_by_code=dict(sorted(Counter(each.code for each in plan.skipped).items())),
        skipped=tuple(shown[:SKIPPED_SHOWN_MAX]),
        remaining_count=plan.remaining,
        cause=cause,
        stopped=stopped,
        notes=plan.notes,
    )
