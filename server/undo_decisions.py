"""Decisions to undo: the events that put back what an operation changed."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ledger import (
    AliasAdded,
    AliasRemoved,
    AliasState,
    Event,
    MemoryDeleted,
    MemoryRelinked,
    MemoryRestored,
    MemoryState,
    MemoryUpdated,
    NewEvent,
    SessionRestored,
    SessionState,
    SessionWithdrawn,
)
from projections.facts import Current, Facts, StandingAlias, StandingSession, Tombstone, Touched
from server.commands import UndoArgs
from server.decision import (
    Decision,
    Moment,
    content_event,
    is_same,
    no_such_memory,
    redacted,
)
from server.errors import (
    AliasConflictError,
    NotFoundError,
    RedactedError,
    UndoConflictError,
)
from server.results import UndoResult


def decide_undo(args: UndoArgs, facts: Facts, moment: Moment) -> Decision:
    """Undo an operation that is still the last on every memory it touched."""
    undone = operation_to_undo(args, facts)
    touched, events = compensation(undone, facts, moment)

    def reply(position: int) -> UndoResult:
        return UndoResult(
            undone=True,
            undone_position=undone,
            position=position,
            memories=tuple(subject.now.id for subject in touched),
        )

    return Decision(events=events, reply=reply, undo=undone)


def compensation(
    undone: int, facts: Facts, moment: Moment
) -> tuple[list[Touched], tuple[NewEvent, ...]]:
    """Return what an operation touched and the events that undo it.

    Raises:
        UseCaseError: it cannot be undone.

    """
    _refuse_redaction(undone, facts)
    touched = facts.touched(undone)
    if not touched:
        raise NotFoundError(
            f"No operation at position {undone} touched anything in this workspace; nothing was "
            "changed. `position` is in the reply of the call that did it.",
            details={"position": undone},
        )
    _refuse_erased(undone, touched, facts)
    later = sorted({position for subject in touched for position in subject.later})
    if later:
        _refuse_behind_redaction(undone, later, facts)
        undone_by = facts.undone_by(undone)
        raise UndoConflictError(
            f"The operation at position {undone} is undone already, by that at {undone_by}; "
            "nothing was changed."
            if undone_by in later
            else f"The operation at position {undone} is not the last on what it touched; nothing "
            f"was changed. Undo these first, newest first: {', '.join(map(str, reversed(later)))}.",
            details={"position": undone, "later": later, "undone_by": undone_by},
        )
    return touched, tuple(_compensate(subject, facts, moment) for subject in touched)


def operation_to_undo(args: UndoArgs, facts: Facts) -> int:
    """Return the position of the one operation that is meant.

    Raises:
        UseCaseError: there is none.

    """
    if args.position is not None:
        return args.position
    assert args.id is not None
    subject = facts.memory(args.id) or facts.session(args.id)
    if subject is None:
        raise no_such_memory(args.id)
    if isinstance(subject, Tombstone) and subject.is_redacted:
        raise redacted(subject.id, facts, subject.rid)
    position = facts.last_operation(subject)
    if position is None:
        raise UndoConflictError(
            f"Every operation on {args.id} is undone; nothing was changed. To redo one, "
            "undo its undo: pass the `position` of that reply.",
            details={"id": args.id},
        )
    return position


def _refuse_redaction(undone: int, facts: Facts) -> None:
    if facts.is_redaction(undone):
        raise UndoConflictError(
            f"The operation at position {undone} is a redaction, which cannot be undone: what it "
            "erased is nowhere any more; nothing was changed.",
            details={"position": undone},
        )


def _refuse_erased(undone: int, touched: Sequence[Touched], facts: Facts) -> None:
    """Refuse to go back to what was erased, or to touch what is a gap now."""
    for subject in touched:
        now = subject.now
        if isinstance(now, Tombstone) and now.is_redacted:
            raise redacted(now.id, facts, now.rid)
        if subject.is_erased:
            raise RedactedError(
                f"What {now.id} said before the operation at position {undone} was erased by a "
                "redaction, so that it cannot be put back; nothing was changed.",
                details={"id": now.id, "position": undone},
            )


def _refuse_behind_redaction(undone: int, later: Sequence[int], facts: Facts) -> None:
    in_the_way = [position for position in later if facts.is_redaction(position)]
    if in_the_way:
        raise UndoConflictError(
            f"A redaction at position {in_the_way[-1]} changed what the operation at position "
            f"{undone} touched, and a redaction cannot be undone; nothing was changed.",
            details={"position": undone, "later": list(later), "undone_by": None},
        )


def _compensate(touched: Touched, facts: Facts, moment: Moment) -> NewEvent:
    """Return the event that puts a subject back to what it was before an operation."""
    now, before = touched.now, touched.before
    payload: Event
    match now, before:
        case StandingSession(), SessionState():
            payload = SessionRestored(
                salt=moment.new_salt(), session=before, request=moment.request
            )
        case StandingSession(), _:
            payload = SessionWithdrawn(salt=moment.new_salt(), request=moment.request)
        case StandingAlias(), AliasState():
            payload = _alias_again(before, facts, moment)
        case StandingAlias(), _:
            payload = AliasRemoved(salt=moment.new_salt(), request=moment.request)
        case Tombstone(), MemoryState():
            payload = content_event(MemoryRestored, before, moment)
        case Current(), MemoryState():
            payload = _memory_again(before, now, moment)
        case _:
            payload = MemoryDeleted(salt=moment.new_salt(), request=moment.request)
    return NewEvent(now.id, payload, now.last_seq)


def _memory_again(before: MemoryState, now: Current, moment: Moment) -> Event:
    links = {"supersedes": before.supersedes, "superseded_by": before.superseded_by}
    if is_same(before, msgspec.structs.replace(now.state, **links)):
        return MemoryRelinked(salt=moment.new_salt(), **links)
    return content_event(MemoryUpdated, before, moment)


def _alias_again(before: AliasState, facts: Facts, moment: Moment) -> AliasAdded:
    taken = facts.alias(before.name)
    if taken is not None and taken.state is not None:
        raise AliasConflictError(
            f"{before.name!r} has become an alias of {taken.state.entity!r} since; nothing was "
            "changed. Remove that alias first.",
            details={"alias": before.name, "entity_name": taken.state.entity},
        )
    return AliasAdded(salt=moment.new_salt(), alias=before, request=moment.request)
