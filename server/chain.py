"""Supersede chains: where a memory stands among others, and how a chain closes up around gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from ledger import MemoryDeleted, MemoryRelinked, MemoryState, NewEvent, format_us, parse_span
from projections.facts import Current, Facts
from server.decision import Moment

CHAIN_LENGTH_MAX = 1_000

Link = Literal["supersedes", "superseded_by"]


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a new memory goes among those of the same file."""

    older: tuple[Current, ...] = ()
    """What it supersedes, oldest first."""
    newer: Current | None = None
    """What supersedes it: the next one in the chain that tells of a later date."""
    undecided: tuple[str, ...] = ()
    """Ids of those of which it cannot be told whether they are older or newer."""


def relink(memory: Current, moment: Moment, **links: str | None) -> NewEvent:
    """Return the event that gives a memory other neighbours."""
    state = msgspec.structs.replace(memory.state, **links)
    return NewEvent(
        memory.id,
        MemoryRelinked(
            salt=moment.new_salt(), supersedes=state.supersedes, superseded_by=state.superseded_by
        ),
        memory.last_seq,
    )


def place_by_file(state: MemoryState, facts: Facts, moment: Moment) -> Place:
    """Find the place of a memory that comes from a file: by what it tells of, not by arrival."""
    assert state.source_file is not None
    older: list[Current] = []
    newer: list[Current] = []
    undecided: list[str] = []
    for head in facts.heads_of_file(state.source_file, state.scope):
        is_later = _tells_of_later(state, head, facts, moment)
        if is_later is None:
            undecided.append(head.id)
        else:
            (older if is_later else newer).append(head)
    if not newer:
        return Place(older=tuple(older), undecided=tuple(undecided))
    following, preceding = _walk_back(newer[0], state, facts)
    return Place(older=(*older, *preceding), newer=following, undecided=tuple(undecided))


def put_in(memory_id: str, place: Place, moment: Moment) -> list[NewEvent]:
    """Return the events that make a new memory's neighbours its neighbours."""
    events = [relink(memory, moment, superseded_by=memory_id) for memory in place.older]
    if place.newer is not None:
        events.append(relink(place.newer, moment, supersedes=memory_id))
    return events


def placed(state: MemoryState, place: Place, moment: Moment) -> MemoryState:
    """Return a new memory's state with its links, and with the moment from which it holds."""
    if not place.older and place.newer is None:
        return state
    begins = state.valid_from or state.event_at or format_us(moment.now_us)
    ends = None if state.valid_until is None else parse_span(state.valid_until)[1]
    holds = ends is None or parse_span(begins)[0] < ends
    return msgspec.structs.replace(
        state,
        supersedes=place.older[-1].id if place.older else None,
        superseded_by=None if place.newer is None else place.newer.id,
        valid_from=begins if holds else state.valid_from,
    )


def delete(
    memories: Sequence[Current], facts: Facts, moment: Moment
) -> tuple[tuple[NewEvent, ...], tuple[str, ...]]:
    """Return the events that delete memories and close their chains up, and who is current again.

    Neighbours of neighbours may be deleted together: a survivor is joined with the next survivor.
    """
    events = [
        NewEvent(
            memory.id,
            MemoryDeleted(salt=moment.new_salt(), request=moment.request),
            memory.last_seq,
        )
        for memory in memories
    ]
    relinks, reactivated = close_up(memories, facts, moment)
    return (*events, *relinks), reactivated


def close_up(
    memories: Sequence[Current], facts: Facts, moment: Moment
) -> tuple[tuple[NewEvent, ...], tuple[str, ...]]:
    """Return the events that join the neighbours of memories that go, and who is current again."""
    gone = {memory.id: memory for memory in memories}
    events = []
    neighbours = _neighbours(memories, gone, facts)
    newer = {each.id: _survivor(each, "superseded_by", gone) for each in neighbours.values()}
    by_age = sorted(neighbours.values(), key=lambda memory: memory.rid)
    joined = {newer[each.id]: each for each in by_age}
    reactivated = []
    for neighbour in neighbours.values():
        older = _survivor(neighbour, "supersedes", gone)
        if older is None and neighbour.state.supersedes is not None:
            # Of several that it superseded, or that a deleted one did, others may be left.
            beside = [*facts.superseded_by(neighbour.id), joined.get(neighbour.id)]
            left = [each for each in beside if each is not None and each.id not in gone]
            older = max(left, key=lambda memory: memory.rid).id if left else None
        events.append(
            relink(neighbour, moment, supersedes=older, superseded_by=newer[neighbour.id])
        )
        if neighbour.state.superseded_by is not None and newer[neighbour.id] is None:
            reactivated.append(neighbour.id)
    return tuple(events), tuple(reactivated)


def _neighbours(
    memories: Sequence[Current], gone: Mapping[str, Current], facts: Facts
) -> dict[str, Current]:
    """Return the survivors on either side of what is deleted.

    What superseded a deleted memory is touched even if its own link names another one, so that the
    deletion cannot be undone once the memory to return to is gone itself.
    """
    neighbours: dict[str, Current] = {}
    for memory in memories:
        following = memory.state.superseded_by
        successor = None if following is None else facts.memory(following)
        beside = facts.superseded_by(memory.id)
        if isinstance(successor, Current):
            beside.append(successor)
        neighbours |= {each.id: each for each in beside if each.id not in gone}
    return neighbours


def _survivor(memory: Current, link: Link, gone: Mapping[str, Current]) -> str | None:
    """Follow a memory's link past the deleted ones.

    A loop, which only a hand-made ledger can hold, is opened.
    """
    following: str | None = getattr(memory.state, link)
    seen = {memory.id}
    while following is not None and following in gone:
        if following in seen:
            return None
        seen.add(following)
        following = getattr(gone[following].state, link)
    return None if following == memory.id else following


def _tells_of_later(
    state: MemoryState, other: Current, facts: Facts, moment: Moment
) -> bool | None:
    """Say whether a new memory tells of a later time than a stored one; None: it cannot be told.

    A memory without a date tells of the moment it was added. That may be compared with a date only
    where the dates leave no doubt: a dated note that is added later need not be the newer one.
    """
    theirs = other.state.event_at
    their_us = facts.created_us(other) if theirs is None else parse_span(theirs)[0]
    if state.event_at is None:
        return True if their_us <= moment.now_us else None
    own_us = parse_span(state.event_at)[0]
    if theirs is None:
        return True if own_us >= their_us else None
    return own_us >= their_us


def _walk_back(
    newer: Current, state: MemoryState, facts: Facts
) -> tuple[Current, tuple[Current, ...]]:
    """Walk down a chain to the last memory that tells of a later time; return it and the next."""
    assert state.event_at is not None
    own_us = parse_span(state.event_at)[0]
    for _ in range(CHAIN_LENGTH_MAX):
        older = None if newer.state.supersedes is None else facts.memory(newer.state.supersedes)
        if not isinstance(older, Current) or older.state.superseded_by != newer.id:
            return newer, ()
        if older.state.event_at is None or parse_span(older.state.event_at)[0] <= own_us:
            return newer, (older,)
        newer = older
    # Far back its exact place is not looked for, but it stands between two neighbours.
    older = None if newer.state.supersedes is None else facts.memory(newer.state.supersedes)
    return newer, (older,) if isinstance(older, Current) else ()
