"""Selections: filters as they are given, turned into filters as the tables understand them."""

from __future__ import annotations

from typing import Final

import msgspec

from projections.aliases import names_of
from projections.connection import Connection
from projections.filters import Filters
from projections.queries import workspace_rid
from server.commands import FilterArgs
from server.decision import read_range
from server.errors import InvalidArgumentsError
from server.when import Span

_NAMES: Final = ("entity_name", "scope", "session_id", "source_file")


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Which memories are meant, and how the words for it were understood."""

    filters: Filters
    """Without a workspace, and with names as given: see `located`."""
    notes: tuple[str, ...]


def select(args: FilterArgs, *, now_us: int, zone: str) -> Selection:
    """Understand the filters of a call.

    Raises:
        InvalidArgumentsError: a date is none, or no time satisfies all of them.

    """
    spans = _spans(args, now_us=now_us, zone=zone)
    happened_from = max((span.from_us for span in _given(spans, "when", "date_from")), default=None)
    happened_to = min((span.to_us for span in _given(spans, "when", "date_to")), default=None)
    if happened_from is not None and happened_to is not None and happened_to <= happened_from:
        raise InvalidArgumentsError(
            "`date_to` lies before `date_from`; nothing can have happened then."
            if "when" not in spans
            else "`when` and `date_from` or `date_to` have no moment in common.",
            details={"field": "when" if "when" in spans else "date_to"},
        )
    names = {field: getattr(args, field) for field in _NAMES}
    filters = Filters(
        workspace=None,
        now_us=now_us,
        layers=tuple(dict.fromkeys(args.layers)),
        entity_names=(args.entity_name,) if args.entity_name else (),
        scope=args.scope or None,
        tags=args.tags,
        session_id=args.session_id or None,
        source_file=args.source_file or None,
        happened_from=happened_from,
        happened_to=happened_to,
        true_at=spans["as_of"].to_us - 1 if "as_of" in spans else None,
        min_confidence=args.min_confidence,
        min_importance=args.min_importance,
        include_superseded=args.include_superseded,
        expiry="any" if args.include_expired else "live",
    )
    notes = [span.said for span in spans.values() if span.said]
    # Models fill in what they leave open with an empty string.
    notes += [f"`{field}` is empty: no filter" for field, name in names.items() if name == ""]
    return Selection(filters=filters, notes=tuple(notes))


def located(connection: Connection, workspace: str, filters: Filters) -> Filters:
    """Return filters for a workspace by name, with every name of the entity they name."""
    rid = workspace_rid(connection, workspace)
    names = filters.entity_names
    return msgspec.structs.replace(
        filters,
        workspace=rid,
        entity_names=names_of(connection, rid, names[0]) if names else (),
    )


def absence_notes(connection: Connection, workspace: str, filters: Filters) -> tuple[str, ...]:
    """Say so if no memory at all has the scope that was asked for.

    A misspelt scope otherwise looks like one that holds nothing about the matter.
    """
    if filters.scope is None:
        return ()
    has_any = connection.value(
        "SELECT EXISTS (SELECT 1 FROM memories WHERE workspace = ? AND scope = ?)",
        (workspace_rid(connection, workspace), filters.scope),
    )
    return () if has_any else (f"no memory of this workspace has the scope {filters.scope!r}",)


def _spans(args: FilterArgs, *, now_us: int, zone: str) -> dict[str, Span]:
    return {
        field: read_range(field, text, now_us=now_us, zone=zone)
        for field in ("when", "date_from", "date_to", "as_of")
        if (text := getattr(args, field)) is not None
    }


def _given(spans: dict[str, Span], *fields: str) -> list[Span]:
    return [spans[field] for field in fields if field in spans]
