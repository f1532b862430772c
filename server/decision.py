"""What a command comes to: events to append and a reply, and the moment it is decided at.

Decisions are pure functions of a command and the rows it needs. Nothing in them reads a clock,
mints an id or touches a file: times and ids come in with `Moment`. A refusal is an exception, and
then nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from unicodedata import category

import msgspec

from ledger import ContentEvent, MemoryState, NewEvent
from projections.facts import Current, Facts, Tombstone
from projections.redactions import redactions_of
from server.errors import (
    InvalidArgumentsError,
    NotFoundError,
    RedactedError,
    VersionConflictError,
)
from server.when import NotUnderstoodError, Span, When, understand_date, understand_range

_BLANK = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})
"""Unicode categories of what cannot be seen."""

_encode = msgspec.json.Encoder(order="sorted").encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What is not deterministic about a decision."""

    now_us: int
    zone: str
    """Name of the time zone that dates in words are meant in."""
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
    session: str = ""
    """Id of the session it belongs to."""


def content_event(kind: type[ContentEvent], state: MemoryState, moment: Moment) -> ContentEvent:
    """Make an event that carries a memory's whole state."""
    return kind(salt=moment.new_salt(), memory=state, request=moment.request)


def existing(facts: Facts, memory_id: str, expected_version: int | None) -> Current:
    """Return a memory that is to be changed.

    Raises:
        NotFoundError: there is none, or it was deleted.
        RedactedError: its content was erased.
        VersionConflictError: it is not at the version that was expected.

    """
    memory = facts.memory(memory_id)
    if memory is None:
        raise no_such_memory(memory_id)
    if isinstance(memory, Tombstone) and memory.is_redacted:
        raise redacted(memory.id, facts, memory.rid)
    if isinstance(memory, Tombstone):
        raise NotFoundError(
            f"Memory {memory_id} was deleted; nothing was changed. memory_undo with this id brings "
            "it back.",
            details={"id": memory_id, "deleted_at": memory.gone_seq},
        )
    if expected_version is not None and expected_version != memory.version:
        raise VersionConflictError(
            f"Memory {memory_id} is at version {memory.version}, not {expected_version}; nothing "
            "was changed. Read it again and decide anew.",
            details={"id": memory_id, "version": memory.version},
        )
    return memory


def no_such_memory(memory_id: str) -> NotFoundError:
    """Return what is said of an id that this workspace does not know."""
    return NotFoundError(
        "There is no memory with this id in this workspace; nothing was changed. Ids come from "
        "memory_add and memory_search.",
        details={"id": memory_id},
    )


def redacted(memory_id: str, facts: Facts, rid: int) -> RedactedError:
    """Return what is said of a memory of which nothing is left to change."""
    redactions = facts.look(lambda connection, _: redactions_of(connection, rid))
    when = f" at {redactions[-1].at} by {redactions[-1].by}" if redactions else ""
    return RedactedError(
        f"Memory {memory_id} was redacted{when}: its content is erased and cannot come back; "
        "nothing was changed. Add a new memory instead.",
        details={"id": memory_id, "redactions": [each.id for each in redactions]},
    )


def is_same(state: MemoryState, other: MemoryState) -> bool:
    """Say whether two states are stored alike; to Python 1 and true in `meta` are equal."""
    return state == other and _encode(state) == _encode(other)


def refuse_blank(field: str, text: str) -> None:
    """Refuse a text in which nothing can be seen.

    Raises:
        InvalidArgumentsError: it is one.

    """
    if all(category(character) in _BLANK for character in text):
        raise InvalidArgumentsError(
            f"`{field}` is blank; it must hold at least one character that can be seen.",
            details={"field": field},
        )


def position_said(text: str) -> int | None:
    """Return the ledger position that a text says; None: it means a time.

    Digits alone are a position, as for `replay --until`, though four of them could be a year.
    """
    said = text.strip()
    return int(said) if said.isascii() and said.isdecimal() else None


def read_date(field: str, text: str, *, now_us: int, zone: str) -> When:
    """Read a date argument.

    Raises:
        InvalidArgumentsError: it is no date; the message names the field and says what is accepted.

    """
    try:
        return understand_date(text, now_us=now_us, zone=zone)
    except NotUnderstoodError as error:
        raise InvalidArgumentsError(f"`{field}`: {error}", details={"field": field}) from error


def read_range(field: str, text: str, *, now_us: int, zone: str) -> Span:
    """Read a range of time, or a date, that a filter is given.

    Raises:
        InvalidArgumentsError: as `read_date`.

    """
    try:
        return understand_range(text, now_us=now_us, zone=zone)
    except NotUnderstoodError as error:
        raise InvalidArgumentsError(f"`{field}`: {error}", details={"field": field}) from error
