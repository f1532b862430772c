"""Decisions about memories: adding, changing, superseding, deleting."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ledger import (
    MemoryAdded,
    MemoryState,
    MemoryUpdated,
    NewEvent,
    format_us,
    parse_span,
)
from projections.facts import Current, Facts
from projections.filters import Filters
from projections.states import STATE_FIELDS
from server import chain
from server.commands import (
    DELETED_MAX,
    DELETION_FILTERS,
    IDS_MAX,
    AddArgs,
    DeleteArgs,
    DeleteManyArgs,
    FilterArgs,
    HealthArgs,
    UpdateArgs,
)
from server.decision import (
    Decision,
    Moment,
    content_event,
    existing,
    is_same,
    read_date,
    refuse_blank,
)
from server.errors import InvalidArgumentsError, SupersededError
from server.results import AddResult, DeleteManyResult, DeleteResult, Result, UpdateResult
from server.selection import select

US_PER_DAY = 86_400_000_000
EXPIRY_US_MAX = 253_402_300_799_999_999
"""The last microsecond of the year 9999."""

_DATES: Final = ("event_at", "valid_from", "valid_until")
_NAMES: Final = ("entity_name", "session_id", "source_file")
_CHANGED: Final = ("title", "confidence", "importance", "tags", *_DATES)


class CleanupResult(Result, frozen=True, kw_only=True):
    """What a cleaning did."""

    cleaned: int
    remaining: int
    position: int | None


def decide_add(args: AddArgs, facts: Facts, moment: Moment) -> Decision:
    """Add a memory."""
    refuse_blank("content", args.content)
    args, notes = _without_blank_names(args)
    dates, said = _read_dates(args, moment)
    notes += said
    state = MemoryState(
        expires_at=_expiry(args.ttl_days, moment.now_us),
        **{
            name: dates[name] if name in dates else getattr(args, name)
            for name in STATE_FIELDS
            if name not in ("expires_at", "supersedes", "superseded_by")
        },
    )
    _refuse_empty_window(state)
    place = chain.Place()
    if state.source_file is not None:
        place = chain.place_by_file(state, facts, moment)
        state = chain.placed(state, place, moment)
        notes += _undecided_notes(place)
    session = None if args.session_id is None else facts.session(args.session_id)
    if session is not None and session.state is None:
        session = None  # its beginning was undone
    if args.session_id is not None and session is None:
        notes.append("no session with this session_id was started here; it is kept as given")
    memory_id = moment.new_id()

    def reply(position: int) -> AddResult:
        return AddResult(
            id=memory_id,
            layer=args.layer,
            created=True,
            version=position,
            position=position,
            state="active" if state.superseded_by is None else "superseded",
            superseded_ids=tuple(memory.id for memory in place.older),
            superseded_by=state.superseded_by,
            notes=tuple(notes),
        )

    added = NewEvent(memory_id, content_event(MemoryAdded, state, moment), 0)
    return Decision(
        events=(added, *chain.put_in(memory_id, place, moment)),
        reply=reply,
        session="" if session is None else session.id,
    )


def decide_update(args: UpdateArgs, facts: Facts, moment: Moment) -> Decision:
    """Change a memory in place, or put a new one in its place."""
    current = existing(facts, args.id, args.expected_version)
    if args.new_content is not None and not args.supersede:
        raise InvalidArgumentsError(
            "`new_content` goes with `supersede: true`; to change it in place, pass `content`.",
            details={"field": "new_content"},
        )
    content = args.content if args.new_content is None else args.new_content
    if content is not None:
        refuse_blank("content" if args.new_content is None else "new_content", content)
    dates, notes = _read_dates(args, moment)
    state = _changed_state(args, dates, current.state, content)
    if args.supersede:
        state = _successor_state(dates, current.id, state, moment)
    _refuse_empty_window(state)
    decide = _supersede if args.supersede else _replace
    return decide(current, state, moment, tuple(notes))


def decide_delete(args: DeleteArgs, facts: Facts, moment: Moment) -> Decision:
    """Delete a memory; its chain closes up around it."""
    current = existing(facts, args.id, args.expected_version)
    events, reactivated = chain.delete([current], facts, moment)

    def reply(position: int) -> DeleteResult:
        return DeleteResult(
            deleted_id=current.id,
            deleted=True,
            reactivated_id=reactivated[-1] if reactivated else None,
            position=position,
            notes=(
                (f"current again as well: {', '.join(reactivated[:-1])}",)
                if len(reactivated) > 1
                else ()
            ),
        )

    return Decision(events=events, reply=reply)


def decide_delete_many(args: DeleteManyArgs, facts: Facts, moment: Moment) -> Decision:
    """Delete the memories that satisfy a filter, superseded and expired ones included."""
    filters, notes = _deletion_filters(args, facts, now_us=moment.now_us, zone=moment.zone)
    matched = facts.count(filters)
    memories = facts.memories(filters, DELETED_MAX)
    events, reactivated = chain.delete(memories, facts, moment)

    def reply(position: int) -> DeleteManyResult:
        return DeleteManyResult(
            deleted_count=len(memories),
            matched_count=matched,
            remaining_count=matched - len(memories),
            ids=tuple(memory.id for memory in memories[:IDS_MAX]),
            reactivated_ids=reactivated,
            dry_run=False,
            position=position or None,
            notes=notes,
        )

    return Decision(events=events, reply=reply)


def preview_deletion(
    args: DeleteManyArgs, facts: Facts, *, now_us: int, zone: str
) -> DeleteManyResult:
    """Say what `decide_delete_many` would delete."""
    filters, notes = _deletion_filters(args, facts, now_us=now_us, zone=zone)
    matched = facts.count(filters)
    return DeleteManyResult(
        deleted_count=0,
        matched_count=matched,
        remaining_count=matched,
        ids=tuple(memory.id for memory in facts.memories(filters, IDS_MAX)),
        dry_run=True,
        notes=notes,
    )


def decide_cleanup(args: HealthArgs, facts: Facts, moment: Moment) -> Decision:
    """Delete what has expired."""
    assert args.cleanup
    filters = Filters(
        workspace=None, now_us=moment.now_us, include_superseded=True, expiry="expired"
    )
    matched = facts.count(filters)
    memories = facts.memories(filters, DELETED_MAX)
    events, _ = chain.delete(memories, facts, moment)

    def reply(position: int) -> CleanupResult:
        return CleanupResult(
            cleaned=len(memories), remaining=matched - len(memories), position=position or None
        )

    return Decision(events=events, reply=reply)


def _deletion_filters(
    args: DeleteManyArgs, facts: Facts, *, now_us: int, zone: str
) -> tuple[Filters, tuple[str, ...]]:
    given = {
        name: value
        for name in DELETION_FILTERS
        if (value := getattr(args, name)) is not msgspec.UNSET
    }
    if bool(given) == args.everything:
        raise InvalidArgumentsError(
            "`everything` goes with no filter; nothing was deleted."
            if given
            else f"Nothing says what to delete, and nothing was deleted. Pass at least one of "
            f"{', '.join(DELETION_FILTERS)}, or `everything: true` for every memory of the "
            "workspace.",
            details={"field": "everything", "accepted": list(DELETION_FILTERS)},
        )
    # A scope may be named by nothing, which `select` takes for no filter.
    exact = {"ids": given.pop("ids", ()), "scope": given.pop("scope", None)}
    selection = select(FilterArgs(**given), now_us=now_us, zone=zone)
    entity = given.get("entity_name")
    filters = msgspec.structs.replace(
        selection.filters,
        **exact,
        entity_names=() if entity is None else facts.names_of(entity),
        include_superseded=True,
        expiry="any",
    )
    return filters, selection.notes


def _replace(
    current: Current, state: MemoryState, moment: Moment, notes: tuple[str, ...]
) -> Decision:
    if is_same(state, current.state):
        unchanged = UpdateResult(
            updated_id=current.id,
            superseded=False,
            changed=False,
            version=current.version,
            notes=notes,
        )
        return Decision(events=(), reply=lambda _: unchanged)

    def reply(position: int) -> UpdateResult:
        return UpdateResult(
            updated_id=current.id,
            superseded=False,
            changed=True,
            version=position,
            position=position,
            notes=notes,
        )

    event = NewEvent(current.id, content_event(MemoryUpdated, state, moment), current.last_seq)
    return Decision(events=(event,), reply=reply)


def _supersede(
    current: Current, state: MemoryState, moment: Moment, notes: tuple[str, ...]
) -> Decision:
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
            notes=notes,
        )

    return Decision(
        events=(
            NewEvent(new_id, content_event(MemoryAdded, state, moment), 0),
            chain.relink(current, moment, superseded_by=new_id),
        ),
        reply=reply,
    )


def _changed_state(
    args: UpdateArgs, dates: dict[str, str], state: MemoryState, content: str | None
) -> MemoryState:
    changes = {
        name: value
        for name in _CHANGED
        if (value := dates.get(name, getattr(args, name))) is not None
    }
    if content is not None:
        changes["content"] = content
    if args.meta is not None:
        changes["meta"] = {**state.meta, **args.meta}
    return msgspec.structs.replace(state, **changes)


def _successor_state(
    dates: dict[str, str], predecessor: str, state: MemoryState, moment: Moment
) -> MemoryState:
    """Return the state of a memory that takes another's place.

    It holds from the date given, or else from now on, and says so: the window in which its
    predecessor held is the predecessor's. A time to live that has run out is not passed on either.
    """
    expired = state.expires_at is not None and state.expires_at <= format_us(moment.now_us)
    return msgspec.structs.replace(
        state,
        supersedes=predecessor,
        valid_from=dates.get("valid_from") or dates.get("event_at") or format_us(moment.now_us),
        valid_until=dates.get("valid_until"),
        expires_at=None if expired else state.expires_at,
    )


def _without_blank_names(args: AddArgs) -> tuple[AddArgs, list[str]]:
    """Drop names that name nothing: models fill in what they leave open with an empty string."""
    given = {name: getattr(args, name) for name in _NAMES}
    blank = [name for name, value in given.items() if value is not None and not value.strip()]
    notes = [f"`{name}` is blank: taken as not given" for name in blank]
    return msgspec.structs.replace(args, **dict.fromkeys(blank)), notes


def _read_dates(args: AddArgs | UpdateArgs, moment: Moment) -> tuple[dict[str, Any], list[str]]:
    """Return the dates that are given, as they are stored, and what is to be said of them."""
    dates: dict[str, Any] = {}
    notes: list[str] = []
    for field in _DATES:
        text = getattr(args, field)
        if text is not None:
            when = read_date(field, text, now_us=moment.now_us, zone=moment.zone)
            dates[field] = when.stored
            notes += [when.said] if when.said else []
    return dates, notes


def _undecided_notes(place: chain.Place) -> list[str]:
    if not place.undecided:
        return []
    return [
        (
            "of the same source_file, and not superseded because it cannot be told which is newer: "
            f"{', '.join(place.undecided)}"
        )
    ]


def _refuse_empty_window(state: MemoryState) -> None:
    if state.valid_from is None or state.valid_until is None:
        return
    if parse_span(state.valid_from)[0] >= parse_span(state.valid_until)[1]:
        raise InvalidArgumentsError(
            "`valid_until` lies before `valid_from`; the fact would never hold.",
            details={"field": "valid_until"},
        )


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
