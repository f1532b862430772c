"""Decisions to redact: the intent, its reason, and the chains that close up; and the receipt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ledger import (
    MemoryRedacted,
    NewEvent,
    RedactedRecord,
    RedactionCompleted,
    RedactionExplained,
)
from projections.connection import Connection
from projections.facts import Current, Facts
from projections.redactions import redaction_at, targets_of
from projections.subjects import id_at
from server import chain
from server.commands import IDS_MAX, InternalArgs
from server.decision import Decision, Moment
from server.errors import NotFoundError, UseCaseError
from server.redaction_args import RedactArgs
from server.redaction_plan import Plan, Subject, make_plan, plan_of
from server.repeat import REPEATED
from server.results import RedactedSubject, RedactResult, Result


class PlanMovedError(UseCaseError):
    """What a redaction takes is not what it was when its texts were fetched; plan it again."""

    code: ClassVar[str] = "plan_moved"


class CompleteArgs(InternalArgs, frozen=True, kw_only=True):
    """What the receipt of a redaction says."""

    redaction: str
    segments: tuple[int, ...]
    files: int
    searched: bool
    remains: tuple[str, ...]


class AgainArgs(InternalArgs, frozen=True, kw_only=True):
    """Records that the list of redactions names and the ledger holds again."""

    digests: dict[int, str]
    reason: str


class CompleteResult(Result, frozen=True, kw_only=True):
    """Where the receipt is."""

    position: int


def decide_redact(
    args: RedactArgs, facts: Facts, moment: Moment, *, digests: Mapping[int, str]
) -> Decision:
    """Erase records from here on.

    Args:
        args: what is asked for.
        facts: the workspace.
        moment: what is not deterministic.
        digests: of the records that were planned to go: position -> digest.

    Raises:
        PlanMovedError: others must go.

    """
    plan = facts.look(
        lambda connection, workspace: make_plan(
            args, connection, workspace, now_us=moment.now_us, zone=moment.zone
        )
    )
    if set(plan.seqs) != set(digests):
        raise PlanMovedError("The store moved while the redaction was planned.")
    return _decision(plan, args.reason, digests, facts, moment)


def decide_again(args: AgainArgs, facts: Facts, moment: Moment) -> Decision:
    """Erase what was erased before and stands in the ledger again, as after an old copy of it."""
    plan = facts.look(lambda connection, workspace: plan_of(connection, workspace, args.digests))
    if not plan.subjects:
        return Decision(events=(), reply=lambda _: CompleteResult(position=0))
    return _decision(plan, args.reason, args.digests, facts, moment)


def _decision(
    plan: Plan, reason: str, digests: Mapping[int, str], facts: Facts, moment: Moment
) -> Decision:
    redaction = moment.new_id()
    explained = RedactionExplained(salt=moment.new_salt(), reason=reason, request=moment.request)
    # First of the batch, so that its position is the redaction's and its request the batch's.
    events = [NewEvent(redaction, explained, 0)]
    events += [_redacted(each, redaction, digests, facts, moment) for each in plan.subjects]
    gone = [facts.memory(each.id) for each in plan.subjects if each.loses_state]
    relinks, reactivated = chain.close_up(
        [memory for memory in gone if isinstance(memory, Current)], facts, moment
    )
    described = tuple(describe(each, facts) for each in plan.subjects[:IDS_MAX])

    def reply(position: int) -> RedactResult:
        return RedactResult(
            redaction_id=redaction,
            state="redacted",
            completed=False,
            memories=tuple(each.id for each in plan.subjects[:IDS_MAX]),
            memories_count=len(plan.subjects),
            records=len(plan.seqs),
            subjects=described,
            reactivated_ids=reactivated,
            position=position,
            notes=plan.notes,
        )

    return Decision(events=(*events, *relinks), reply=reply)


def decide_completed(args: CompleteArgs, facts: Facts, moment: Moment) -> Decision:
    """Write the receipt of a redaction, unless somebody else has."""
    row = facts.look(
        lambda connection, _: connection.one(
            "SELECT last_seq, completed_seq FROM redactions WHERE id = ?", (args.redaction,)
        )
    )
    if row is None:
        raise NotFoundError("There is no such redaction in this workspace.")
    last_seq, completed_seq = row
    if completed_seq is not None:
        return Decision(events=(), reply=lambda _: CompleteResult(position=completed_seq))
    receipt = RedactionCompleted(
        salt=moment.new_salt(),
        segments=args.segments,
        files=args.files,
        searched=args.searched,
        remains=args.remains,
    )
    return Decision(
        events=(NewEvent(args.redaction, receipt, last_seq),),
        reply=lambda position: CompleteResult(position=position),
    )


def repeat_redact(args: RedactArgs, facts: Facts, position: int) -> RedactResult:
    """Reply to a repeated memory_redact."""
    del args

    def look(connection: Connection, workspace: int | None) -> RedactResult:
        found = redaction_at(connection, position)
        seqs = targets_of(connection, position)
        rids = [
            connection.integer("SELECT subject FROM events WHERE seq = ?", (seq,)) for seq in seqs
        ]
        ids = [id_at(connection, workspace, rid or 0) for rid in dict.fromkeys(rids)]
        named = tuple(each for each in ids if each is not None)
        return RedactResult(
            redaction_id=None if found is None else found.id,
            state="redacted",
            completed=found is not None and found.completed,
            memories=named[:IDS_MAX],
            memories_count=len(named),
            records=len(seqs),
            position=position,
            notes=(REPEATED,),
        )

    return facts.look(look)


def repeat_completed(args: InternalArgs, facts: Facts, position: int) -> CompleteResult:
    """Reply to what the program repeats; it has no key, so it never does."""
    del args, facts
    return CompleteResult(position=position)


def describe(subject: Subject, facts: Facts, *, text: str | None = None) -> RedactedSubject:
    """Say what is erased of a subject."""
    memory = facts.memory(subject.id) if subject.kind == "memory" else None
    status = None
    if memory is not None:
        status = "deleted"
        if isinstance(memory, Current):
            status = "active" if memory.state.superseded_by is None else "superseded"
        elif memory.is_redacted:
            status = "redacted"
    return RedactedSubject(
        id=subject.id,
        kind=subject.kind,
        records=len(subject.targets),
        status=status,
        remains=isinstance(memory, Current) and not subject.loses_state,
        snippet=text,
    )


def _redacted(
    subject: Subject, redaction: str, digests: Mapping[int, str], facts: Facts, moment: Moment
) -> NewEvent:
    payload = MemoryRedacted(
        salt=moment.new_salt(),
        redaction=redaction,
        targets=tuple(
            RedactedRecord(seq=target.seq, digest=digests[target.seq]) for target in subject.targets
        ),
    )
    return NewEvent(subject.id, payload, _last_seq(subject, facts))


def _last_seq(subject: Subject, facts: Facts) -> int:
    """Return the position of the last event about a subject."""
    table = {
        "session": "sessions",
        "alias": "aliases",
        "redaction": "redactions",
    }.get(subject.kind)
    if table is None:
        memory = facts.memory(subject.id)
        assert memory is not None
        return memory.last_seq
    sql = f"SELECT last_seq FROM {table} WHERE rid = ?"
    return facts.look(lambda connection, _: connection.integer(sql, (subject.rid,))) or 0
