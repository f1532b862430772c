"""Replies to requests that were done before: ids, position and state, never text."""

from __future__ import annotations

from projections.facts import Current, Facts, Tombstone
from server.commands import (
    AddArgs,
    AddResult,
    DeleteArgs,
    DeleteResult,
    UndoArgs,
    UndoResult,
    UpdateArgs,
    UpdateResult,
)

REPEATED = "the idempotency key was used before: nothing was written, this is what it did then"


def repeat_add(args: AddArgs, facts: Facts, position: int) -> AddResult:
    """Reply to a repeated memory_add."""
    memory = facts.touched(position)[0].now
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
    touched = facts.touched(position)
    new = touched[0].now if args.supersede else None
    memory = touched[0].now
    return UpdateResult(
        updated_id=args.id,
        superseded=args.supersede,
        changed=False,
        new_id=None if new is None else new.id,
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
        memories=tuple(memory.memory_id for memory in facts.touched(position)),
        notes=(REPEATED,),
    )


def state_name(memory: Current | Tombstone) -> str:
    """Say what has become of a memory."""
    if isinstance(memory, Tombstone):
        return "deleted"
    return "active" if memory.state.superseded_by is None else "superseded"


def _version(memory: Current | Tombstone) -> int:
    return memory.last_seq if isinstance(memory, Tombstone) else memory.version
