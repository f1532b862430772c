"""Replies to requests that were done before: ids, position and state, never text."""

from __future__ import annotations

import msgspec

from projections.facts import Current, Facts, StandingAlias, StandingSession, Tombstone
from projections.model import Alias
from server.commands import (
    IDS_MAX,
    AddArgs,
    AliasArgs,
    AppendArgs,
    DeleteArgs,
    DeleteManyArgs,
    HealthArgs,
    PatchArgs,
    SessionEndArgs,
    SessionStartArgs,
    UndoArgs,
    UpdateArgs,
)
from server.memory_decisions import CleanupResult
from server.results import (
    AddResult,
    AliasResult,
    AppendResult,
    DeleteManyResult,
    DeleteResult,
    PatchResult,
    SessionEndResult,
    SessionStartResult,
    UndoResult,
    UpdateResult,
)
from server.session_decisions import ended

REPEATED = "the idempotency key was used before: nothing was written, this is what it did then"


def repeat_add(args: AddArgs, facts: Facts, position: int) -> AddResult:
    """Reply to a repeated memory_add."""
    memory = facts.touched(position)[0].now
    assert isinstance(memory, Current | Tombstone)
    return AddResult(
        id=memory.id,
        layer=args.layer,
        created=False,
        version=_version(memory),
        position=position,
        state=state_name(memory),
        notes=(REPEATED,),
    )


def repeat_update(args: UpdateArgs, facts: Facts, position: int) -> UpdateResult:
    """Reply to a repeated memory_update."""
    memory = facts.touched(position)[0].now
    assert isinstance(memory, Current | Tombstone)
    return UpdateResult(
        updated_id=args.id,
        superseded=args.supersede,
        changed=False,
        new_id=memory.id if args.supersede else None,
        version=_version(memory),
        position=position,
        state=state_name(memory),
        notes=(REPEATED,),
    )


def repeat_patch(args: PatchArgs, facts: Facts, position: int) -> PatchResult:
    """Reply to a repeated memory_patch."""
    memory = facts.touched(position)[0].now
    assert isinstance(memory, Current | Tombstone)
    return PatchResult(
        patched_id=args.id,
        changed=False,
        version=_version(memory),
        position=position,
        state=state_name(memory),
        notes=(REPEATED,),
    )


def repeat_append(args: AppendArgs, facts: Facts, position: int) -> AppendResult:
    """Reply to a repeated memory_append."""
    memory = facts.touched(position)[0].now
    assert isinstance(memory, Current | Tombstone)
    return AppendResult(
        appended_id=args.id,
        changed=False,
        version=_version(memory),
        position=position,
        state=state_name(memory),
        notes=(REPEATED,),
    )


def repeat_delete(args: DeleteArgs, facts: Facts, position: int) -> DeleteResult:
    """Reply to a repeated memory_delete."""
    del facts
    return DeleteResult(deleted_id=args.id, deleted=False, position=position, notes=(REPEATED,))


def repeat_undo(args: UndoArgs, facts: Facts, position: int) -> UndoResult:
    """Reply to a repeated memory_undo."""
    del args
    return UndoResult(
        undone=False,
        undone_position=facts.undoes(position) or 0,
        position=position,
        memories=tuple(subject.now.id for subject in facts.touched(position)),
        notes=(REPEATED,),
    )


def repeat_delete_many(args: DeleteManyArgs, facts: Facts, position: int) -> DeleteManyResult:
    """Reply to a repeated memory_delete_many."""
    del args
    deleted = _deleted(facts, position)
    return DeleteManyResult(
        deleted_count=0,
        matched_count=len(deleted),
        remaining_count=0,
        ids=deleted[:IDS_MAX],
        dry_run=False,
        position=position,
        notes=(REPEATED,),
    )


def repeat_cleanup(args: HealthArgs, facts: Facts, position: int) -> CleanupResult:
    """Reply to a repeated cleaning."""
    del args, facts
    return CleanupResult(cleaned=0, remaining=0, position=position, notes=(REPEATED,))


def repeat_session_start(args: SessionStartArgs, facts: Facts, position: int) -> SessionStartResult:
    """Reply to a repeated memory_session_start."""
    del args
    session = _session(facts, position)
    return SessionStartResult(
        id=session.id,
        started_at="" if session.state is None else session.state.started_at,
        position=position,
        notes=(REPEATED,),
    )


def repeat_session_end(args: SessionEndArgs, facts: Facts, position: int) -> SessionEndResult:
    """Reply to a repeated memory_session_end; its summary is text and is not repeated."""
    state = _session(facts, position).state
    count = facts.count_of_session(args.id)
    if state is None or state.ended_at is None:  # the end was undone since
        return SessionEndResult(
            id=args.id, memories_count=count, position=position, notes=(REPEATED,)
        )
    silent = msgspec.structs.replace(state, summary=None)
    return msgspec.structs.replace(ended(args.id, silent, count, position), notes=(REPEATED,))


def repeat_alias(args: AliasArgs, facts: Facts, position: int) -> AliasResult:
    """Reply to a repeated memory_alias; the names are those of the request."""
    alias = facts.touched(position)[0].now
    assert isinstance(alias, StandingAlias)
    names = (
        ()
        if args.alias is None or args.entity_name is None
        else (Alias(alias=args.alias, entity_name=args.entity_name),)
    )
    return AliasResult(changed=False, aliases=names, position=position, notes=(REPEATED,))


def _session(facts: Facts, position: int) -> StandingSession:
    session = facts.touched(position)[0].now
    assert isinstance(session, StandingSession)
    return session


def _deleted(facts: Facts, position: int) -> tuple[str, ...]:
    return tuple(
        subject.now.id for subject in facts.touched(position) if subject.type == "memory_deleted"
    )


def state_name(memory: Current | Tombstone) -> str:
    """Say what has become of a memory."""
    if isinstance(memory, Tombstone):
        return "redacted" if memory.is_redacted else "deleted"
    return "active" if memory.state.superseded_by is None else "superseded"


def _version(memory: Current | Tombstone) -> int:
    return memory.last_seq if isinstance(memory, Tombstone) else memory.version
