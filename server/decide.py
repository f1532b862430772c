"""What a command does: pure functions from a command and the rows it needs to events and a reply.

Nothing here reads a clock, mints an id or touches a file: times and ids come in with `Moment`. A
refusal is an exception, and then nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from unicodedata import category

import msgspec

from ledger import (
    ContentEvent,
    Event,
    MemoryAdded,
    MemoryDeleted,
    MemoryRelinked,
    MemoryRestored,
    MemoryState,
    MemoryUpdated,
    NewEvent,
    format_us,
    parse_span,
)
from projections.facts import Current, Facts, Tombstone, Touched
from projections.projector import STATE_FIELDS
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
from server.errors import (
    InvalidArgumentsError,
    NotFoundError,
    SupersededError,
    UndoConflictError,
    VersionConflictError,
)

_BLANK = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})
"""Unicode categories of what cannot be seen."""

US_PER_DAY = 86_400_000_000
EXPIRY_US_MAX = 253_402_300_799_999_999
"""The last microsecond of the year 9999."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What is not deterministic about a decision."""

    now_us: int
    new_id: Callable[[], str]
    new_salt: Callable[[], str]
    request: str | None
    """Digest of the request; only with an idempotency key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Events to append as one batch, and the reply once their position is known."""

    events: tuple[NewEvent, ...]
    reply: Callable[[int], msgspec.Struct]
    """Takes the ledger position of the first event."""
    undo: int = 0
    """Position of the operation that this one undoes."""


def decide_add(args: AddArgs, facts: Facts, moment: Moment) -> Decision:
    """Add a memory."""
    del facts  # nothing that is stored forbids an addition
    _refuse_blank("content", args.content)
    _check_dates(args)
    state = MemoryState(
        expires_at=_expiry(args.ttl_days, moment.now_us),
        **{
            name: getattr(args, name)
            for name in STATE_FIELDS
            if name not in ("expires_at", "supersedes", "superseded_by")
        },
    )
    _refuse_empty_window(state)
    memory_id = moment.new_id()

    def reply(position: int) -> AddResult:
        return AddResult(
            id=memory_id, layer=args.layer, created=True, version=position, position=position
        )

    return Decision(
        events=(NewEvent(memory_id, _content_event(MemoryAdded, state, moment), 0),), reply=reply
    )


def decide_update(args: UpdateArgs, facts: Facts, moment: Moment) -> Decision:
    """Change a memory in place, or put a new one in its place."""
    current = _existing(facts, args.id, args.expected_version)
    if args.new_content is not None and not args.supersede:
        raise InvalidArgumentsError(
            "`new_content` goes with `supersede: true`; to change it in place, pass `content`.",
            details={"field": "new_content"},
        )
    content = args.content if args.new_content is None else args.new_content
    if content is not None:
        _refuse_blank("content" if args.new_content is None else "new_content", content)
    _check_dates(args)
    state = _changed_state(args, current.state, content)
    if args.supersede:
        state = _successor_state(args, current.id, state, moment)
    _refuse_empty_window(state)
    return (
        _supersede(current, state, moment) if args.supersede else _replace(current, state, moment)
    )


def decide_delete(args: DeleteArgs, facts: Facts, moment: Moment) -> Decision:
    """Delete a memory; its chain closes up around it."""
    current = _existing(facts, args.id, args.expected_version)
    events = [
        NewEvent(
            current.id,
            MemoryDeleted(salt=moment.new_salt(), request=moment.request),
            current.last_seq,
        )
    ]
    successor = current.state.superseded_by
    predecessors = [older for older in facts.superseded_by(current.id) if older.id != current.id]
    following = None if successor is None else facts.memory(successor)
    neighbours = {memory.id: memory for memory in predecessors}
    if isinstance(following, Current) and following.state.supersedes == current.id:
        neighbours[following.id] = following
    neighbours.pop(current.id, None)
    events += [_close_up(memory, current, moment) for memory in neighbours.values()]
    reactivated = next(
        (older.id for older in reversed(predecessors) if successor in (None, older.id)), None
    )

    def reply(position: int) -> DeleteResult:
        return DeleteResult(
            deleted_id=current.id, deleted=True, reactivated_id=reactivated, position=position
        )

    return Decision(events=tuple(events), reply=reply)


def decide_undo(args: UndoArgs, facts: Facts, moment: Moment) -> Decision:
    """Undo an operation that is still the last on every memory it touched."""
    undone = _operation_to_undo(args, facts)
    touched = facts.touched(undone)
    if not touched:
        raise NotFoundError(
            f"No operation at position {undone} touched a memory of this workspace; nothing was "
            "changed. `position` is in the reply of the call that did it.",
            details={"position": undone},
        )
    later = sorted({position for memory in touched for position in memory.later})
    if later:
        undone_by = facts.undone_by(undone)
        raise UndoConflictError(
            f"The operation at position {undone} is undone already, by that at {undone_by}; "
            "nothing was changed."
            if undone_by in later
            else f"The operation at position {undone} is not the last on what it touched; nothing "
            f"was changed. Undo these first, newest first: {', '.join(map(str, reversed(later)))}.",
            details={"position": undone, "later": later, "undone_by": undone_by},
        )
    events = tuple(_compensate(memory, moment) for memory in touched)

    def reply(position: int) -> UndoResult:
        return UndoResult(
            undone=True,
            undone_position=undone,
            position=position,
            memories=tuple(memory.memory_id for memory in touched),
        )

    return Decision(events=events, reply=reply, undo=undone)


def _replace(current: Current, state: MemoryState, moment: Moment) -> Decision:
    if state == current.state:
        unchanged = UpdateResult(
            updated_id=current.id, superseded=False, changed=False, version=current.version
        )
        return Decision(events=(), reply=lambda _: unchanged)

    def reply(position: int) -> UpdateResult:
        return UpdateResult(
            updated_id=current.id,
            superseded=False,
            changed=True,
            version=position,
            position=position,
        )

    event = NewEvent(current.id, _content_event(MemoryUpdated, state, moment), current.last_seq)
    return Decision(events=(event,), reply=reply)


def _supersede(current: Current, state: MemoryState, moment: Moment) -> Decision:
    if current.state.superseded_by is not None:
        raise SupersededError(
            f"Memory {current.id} was superseded by {current.state.superseded_by}; nothing was "
            "changed. Supersede the newest memory of the chain instead.",
            details={"id": current.id, "superseded_by": current.state.superseded_by},
        )
    new_id = moment.new_id()

    def reply(position: int) -> UpdateResult:
        return UpdateResult(
            updated_id=current.id,
            superseded=True,
            changed=True,
            new_id=new_id,
            version=position,
            position=position,
        )

    return Decision(
        events=(
            NewEvent(new_id, _content_event(MemoryAdded, state, moment), 0),
            _relink(current, moment, superseded_by=new_id),
        ),
        reply=reply,
    )


def _changed_state(args: UpdateArgs, state: MemoryState, content: str | None) -> MemoryState:
    changes = {
        name: value
        for name in (
            "title",
            "confidence",
            "importance",
            "tags",
            "event_at",
            "valid_from",
            "valid_until",
        )
        if (value := getattr(args, name)) is not None
    }
    if content is not None:
        changes["content"] = content
    if args.meta is not None:
        changes["meta"] = {**state.meta, **args.meta}
    return msgspec.structs.replace(state, **changes)


def _successor_state(
    args: UpdateArgs, predecessor: str, state: MemoryState, moment: Moment
) -> MemoryState:
    """Return the state of a memory that takes another's place.

    It holds from the date given, or else from now on, and says so: the window in which its
    predecessor held is the predecessor's. A time to live that has run out is not passed on either.
    """
    expired = state.expires_at is not None and state.expires_at <= format_us(moment.now_us)
    return msgspec.structs.replace(
        state,
        supersedes=predecessor,
        valid_from=args.valid_from or args.event_at or format_us(moment.now_us),
        valid_until=args.valid_until,
        expires_at=None if expired else state.expires_at,
    )


def _operation_to_undo(args: UndoArgs, facts: Facts) -> int:
    if (args.position is None) == (args.id is None):
        raise InvalidArgumentsError(
            "Pass exactly one of `position` (of the operation) and `id` (of a memory whose last "
            "operation is to be undone).",
            details={"field": "position"},
        )
    if args.position is not None:
        return args.position
    assert args.id is not None
    memory = facts.memory(args.id)
    if memory is None:
        raise _no_such_memory(args.id)
    position = facts.last_operation(memory)
    if position is None:
        raise UndoConflictError(
            f"Every operation on memory {args.id} is undone; nothing was changed. To redo one, "
            "undo its undo: pass the `position` of that reply.",
            details={"id": args.id},
        )
    return position


def _compensate(touched: Touched, moment: Moment) -> NewEvent:
    """Return the event that puts a memory back to what it was before an operation."""
    salt, now = moment.new_salt(), touched.now
    payload: Event
    if touched.before is None:
        payload = MemoryDeleted(salt=salt, request=moment.request)
    elif isinstance(now, Tombstone):
        payload = _content_event(MemoryRestored, touched.before, moment)
    elif _same_but_links(touched.before, now.state):
        payload = MemoryRelinked(
            salt=salt,
            supersedes=touched.before.supersedes,
            superseded_by=touched.before.superseded_by,
        )
    else:
        payload = _content_event(MemoryUpdated, touched.before, moment)
    return NewEvent(touched.memory_id, payload, now.last_seq)


def _same_but_links(one: MemoryState, other: MemoryState) -> bool:
    return one == msgspec.structs.replace(
        other, supersedes=one.supersedes, superseded_by=one.superseded_by
    )


def _relink(memory: Current, moment: Moment, **links: str | None) -> NewEvent:
    state = msgspec.structs.replace(memory.state, **links)
    return NewEvent(
        memory.id,
        MemoryRelinked(
            salt=moment.new_salt(), supersedes=state.supersedes, superseded_by=state.superseded_by
        ),
        memory.last_seq,
    )


def _close_up(memory: Current, gone: Current, moment: Moment) -> NewEvent:
    """Join a neighbour of a deleted memory with the one beyond it.

    A loop, which only a hand-made ledger can hold, is opened.
    """

    def beyond(link: str | None, further: str | None) -> str | None:
        link = further if link == gone.id else link
        return None if link in (gone.id, memory.id) else link

    return _relink(
        memory,
        moment,
        supersedes=beyond(memory.state.supersedes, gone.state.supersedes),
        superseded_by=beyond(memory.state.superseded_by, gone.state.superseded_by),
    )


def _content_event(kind: type[ContentEvent], state: MemoryState, moment: Moment) -> ContentEvent:
    return kind(salt=moment.new_salt(), memory=state, request=moment.request)


def _existing(facts: Facts, memory_id: str, expected_version: int | None) -> Current:
    memory = facts.memory(memory_id)
    if memory is None:
        raise _no_such_memory(memory_id)
    if isinstance(memory, Tombstone):
        raise NotFoundError(
            f"Memory {memory_id} was deleted; nothing was changed. memory_undo with this id brings "
            "it back.",
            details={"id": memory_id, "deleted_at": memory.last_seq},
        )
    if expected_version is not None and expected_version != memory.version:
        raise VersionConflictError(
            f"Memory {memory_id} is at version {memory.version}, not {expected_version}; nothing "
            "was changed. Read it again and decide anew.",
            details={"id": memory_id, "version": memory.version},
        )
    return memory


def _no_such_memory(memory_id: str) -> NotFoundError:
    return NotFoundError(
        "There is no memory with this id in this workspace; nothing was changed. Ids come from "
        "memory_add and memory_search.",
        details={"id": memory_id},
    )


def _refuse_blank(field: str, text: str) -> None:
    if all(category(character) in _BLANK for character in text):
        raise InvalidArgumentsError(
            f"`{field}` is blank; it must hold at least one character that can be seen.",
            details={"field": field},
        )


def _check_dates(dates: AddArgs | UpdateArgs) -> None:
    for field in ("event_at", "valid_from", "valid_until"):
        value = getattr(dates, field)
        if value is not None:
            check_date(field, value)


def _refuse_empty_window(state: MemoryState) -> None:
    if state.valid_from is None or state.valid_until is None:
        return
    if parse_span(state.valid_from)[0] >= parse_span(state.valid_until)[1]:
        raise InvalidArgumentsError(
            "`valid_until` lies before `valid_from`; the fact would never hold.",
            details={"field": "valid_until"},
        )


def check_date(field: str, value: str) -> tuple[int, int]:
    """Return the span a date argument means.

    Raises:
        InvalidArgumentsError: it is no date; the message names the field and says what is accepted.

    """
    try:
        return parse_span(value)
    except ValueError as error:
        raise InvalidArgumentsError(f"`{field}`: {error}", details={"field": field}) from error


def _expiry(ttl_days: float | None, now_us: int) -> str | None:
    if ttl_days is None:
        return None
    expires_us = now_us + ttl_days * US_PER_DAY
    if not expires_us <= EXPIRY_US_MAX:
        raise InvalidArgumentsError(
            "`ttl_days` reaches beyond the year 9999; leave it out for one that never expires.",
            details={"field": "ttl_days"},
        )
    return format_us(int(expires_us))
