"""Plans of redactions: which records an erasing takes, as the tables name them.

A plan is made of rows alone, so that it can be made outside the ledger's lock, where the texts are
fetched, and again under it, where it must come out the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from ledger import MemoryState, parse_span
from projections.aliases import names_of
from projections.connection import Connection
from projections.erasure import CONTENT_TYPES
from projections.filters import Filters
from projections.listing import select_ids
from projections.redactions import (
    ERASABLE_TYPES,
    Target,
    chain_members,
    contents_at,
    deleted_states,
    erasable,
    naming,
)
from projections.states import decode_state
from projections.subjects import id_at, rid_of, subject_at
from server.commands import FilterArgs
from server.decision import refuse_blank
from server.errors import InvalidArgumentsError, NotFoundError
from server.redaction_args import RedactArgs, RedactFilter
from server.selection import select

SUBJECTS_MAX: Final = 10_000
"""Memories of one redaction: it is one batch, and its reply names the first of them."""

_WAYS: Final = ("id", "event", "entity", "filter")
_NOTHING: Final = "nothing was changed"
_UNLIMITED: Final = 2**31


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A memory, session, alias or redaction of which something would be erased."""

    rid: int
    id: str
    kind: str
    targets: tuple[Target, ...]
    loses_state: bool
    """Whether a memory that is there now is not there afterwards."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a redaction takes."""

    subjects: tuple[Subject, ...]
    notes: tuple[str, ...] = ()

    @property
    def seqs(self) -> tuple[int, ...]:
        """Positions of the records, in ledger order."""
        return tuple(sorted(target.seq for each in self.subjects for target in each.targets))


def check(args: RedactArgs) -> None:
    """Refuse what says nothing, or more than one thing.

    Raises:
        InvalidArgumentsError: `field` in its details names the argument.

    """
    given = [name for name in _WAYS if getattr(args, name) is not None]
    if len(given) != 1:
        raise InvalidArgumentsError(
            f"Pass exactly one of `id`, `event`, `entity` and `filter`; {_NOTHING}.",
            details={"field": given[1] if given else "id", "accepted": list(_WAYS)},
        )
    refuse_blank("reason", args.reason)
    if args.entity is not None:
        refuse_blank("entity", args.entity)
    if args.filter is not None and not _fields(args.filter):
        raise InvalidArgumentsError(
            f"`filter` is empty and would be every memory; {_NOTHING}. Accepted: "
            f"{', '.join(RedactFilter.__struct_fields__)}.",
            details={"field": "filter", "accepted": list(RedactFilter.__struct_fields__)},
        )


def make_plan(
    args: RedactArgs, connection: Connection, workspace: int | None, *, now_us: int, zone: str
) -> Plan:
    """Say what a redaction takes; call it in a transaction.

    Raises:
        InvalidArgumentsError: the arguments do not say it, or name what is never erased.
        NotFoundError: there is nothing of the kind, or nothing of it that is not erased already.

    """
    notes: tuple[str, ...] = ()
    if args.event is not None:
        rid, targets = _of_event(connection, workspace, args.event)
        chosen = {rid: targets}
    else:
        if args.id is not None:
            rids = _of_id(connection, workspace, args.id, chain=args.chain)
        elif args.entity is not None:
            rids = naming(connection, workspace, names_of(connection, workspace, args.entity))
        else:
            assert args.filter is not None
            rids, notes = _of_filter(connection, workspace, args.filter, now_us=now_us, zone=zone)
        chosen = {rid: erasable(connection, rid) for rid in rids[: SUBJECTS_MAX + 1]}
    subjects = tuple(
        _subject(connection, rid, targets) for rid, targets in chosen.items() if targets
    )
    if not subjects:
        raise _nothing(args, found=bool(chosen))
    if len(subjects) > SUBJECTS_MAX:
        raise InvalidArgumentsError(
            f"More than {SUBJECTS_MAX} memories are meant, which is more than one redaction takes; "
            f"{_NOTHING}. Narrow it.",
            details={"field": next(name for name in _WAYS if getattr(args, name) is not None)},
        )
    return Plan(subjects=subjects, notes=notes)


def plan_of(connection: Connection, workspace: int | None, seqs: Iterable[int]) -> Plan:
    """Return the plan that takes just these records of a workspace; call it in a transaction."""
    chosen: dict[int, list[Target]] = {}
    for seq in sorted(seqs):
        row = connection.one("SELECT type, subject FROM events WHERE seq = ?", (seq,))
        if row is not None and id_at(connection, workspace, row[1]) is not None:
            chosen.setdefault(row[1], []).append(Target(seq, row[0]))
    return Plan(
        subjects=tuple(_subject(connection, rid, targets) for rid, targets in chosen.items())
    )


def _subject(connection: Connection, rid: int, targets: Iterable[Target]) -> Subject:
    targets = tuple(targets)
    subject = subject_at(connection, rid)
    assert subject is not None, "what was chosen is in the workspace"
    present = connection.integer(
        "SELECT max(e.seq) FROM events e JOIN memories m ON m.rid = ?1 WHERE (e.seq = ?1 OR "
        "(e.subject = ?1 AND e.subject <> e.seq)) AND e.type IN (?2, ?3, ?4)",
        (rid, *CONTENT_TYPES),
    )
    return Subject(
        rid=rid,
        id=subject.id,
        kind=subject.kind,
        targets=targets,
        loses_state=present is not None and present in {target.seq for target in targets},
    )


def _of_id(
    connection: Connection, workspace: int | None, subject_id: str, *, chain: bool
) -> list[int]:
    rid = rid_of(connection, workspace, subject_id)
    if rid is None:
        raise NotFoundError(
            f"There is no memory or session with this id in this workspace; {_NOTHING}. Ids come "
            "from memory_add and memory_search.",
            details={"id": subject_id},
        )
    subject = subject_at(connection, rid)
    if chain and subject is not None and subject.kind == "memory":
        return chain_members(connection, workspace, rid)
    return [rid]


def _of_event(connection: Connection, workspace: int | None, seq: int) -> tuple[int, list[Target]]:
    """Return the subject of an event, and the records that hold what the event's holds."""
    row = connection.one("SELECT type, subject FROM events WHERE seq = ?", (seq,))
    kind, rid = (None, 0) if row is None else row
    if kind is None or (kind in ERASABLE_TYPES and id_at(connection, workspace, rid) is None):
        raise NotFoundError(
            f"There is no event at position {seq} in this workspace; {_NOTHING}.",
            details={"event": seq},
        )
    if kind not in ERASABLE_TYPES:
        raise InvalidArgumentsError(
            f"The event at position {seq} is a {kind}, which is never erased: it holds no text of "
            f"a memory; {_NOTHING}.",
            details={"field": "event", "event": seq, "type": kind},
        )
    left = erasable(connection, rid)
    said = contents_at(connection, rid, left)
    if kind in ("alias_added", "session_started"):
        # Every later event of it repeats what this one says.
        return rid, left if any(target.seq == seq for target in left) else []
    return rid, [
        target
        for target in left
        if target.seq == seq or (seq in said and said.get(target.seq) == said[seq])
    ]


def _of_filter(
    connection: Connection, workspace: int | None, chosen: RedactFilter, *, now_us: int, zone: str
) -> tuple[list[int], tuple[str, ...]]:
    given = _fields(chosen)
    scope = given.pop("scope", None)
    selection = select(FilterArgs(**given), now_us=now_us, zone=zone)
    filters = msgspec.structs.replace(
        selection.filters,
        workspace=workspace,
        scope=scope,
        include_superseded=True,
        expiry="any",
    )
    ids = select_ids(connection, filters, _UNLIMITED)
    rids = [rid for each in ids if (rid := rid_of(connection, workspace, each)) is not None]
    rids += [
        rid
        for rid, created_us, text in deleted_states(connection, workspace)
        if _satisfies(decode_state(text), created_us, filters)
    ]
    return sorted(rids), selection.notes


def _fields(chosen: RedactFilter) -> dict[str, Any]:
    return {
        name: value
        for name in chosen.__struct_fields__
        if (value := getattr(chosen, name)) is not msgspec.UNSET
    }


def _satisfies(state: MemoryState, created_us: int, filters: Filters) -> bool:
    """Say of a deleted memory's last state what SQL says of those in the table."""
    happened_from, happened_to = (
        (created_us, created_us + 1) if state.event_at is None else parse_span(state.event_at)
    )
    exact: Mapping[str, object] = {
        name: value
        for name in ("scope", "session_id", "source_file")
        if (value := getattr(filters, name)) is not None
    }
    return (
        all(getattr(state, name) == value for name, value in exact.items())
        and (not filters.layers or state.layer in filters.layers)
        and set(filters.tags) <= set(state.tags)
        and (filters.happened_from is None or happened_to > filters.happened_from)
        and (filters.happened_to is None or happened_from < filters.happened_to)
    )


def _nothing(args: RedactArgs, *, found: bool) -> NotFoundError:
    if found:
        said = "Everything of it is redacted already"
    elif args.entity is not None:
        said = "No memory of this workspace names this entity, now or in any past version"
    else:
        said = "No memory of this workspace satisfies the filter"
    return NotFoundError(f"{said}; {_NOTHING}.", details={"memories": 0})
