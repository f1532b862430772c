"""Views: the results of the use cases as a person reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from projections.model import LayerStatistics, Memory, Version
from projections.redaction_model import Redaction
from projections.snippet import snippet
from projections.wording import counted
from server.results import (
    AddManyResult,
    AddResult,
    AliasResult,
    DeleteManyResult,
    DeleteResult,
    Found,
    GetResult,
    HealthResult,
    InspectResult,
    ListResult,
    Missing,
    SearchResult,
    SessionEndResult,
    SessionListResult,
    SessionStartResult,
    UndoResult,
    UpdateResult,
)
from server.terminal import ID_COLUMN, Block, Facts, Prose, Table, minute_of

_DATE_CHARS: Final = 10
_MEMORIES_HEAD: Final = (ID_COLUMN, "date", "layer", "entity", "memory")


class View(msgspec.Struct, frozen=True):
    """A result for people.

    Attributes:
        blocks: What it says.
        notes: What there is to know besides, a sentence each.
    """

    blocks: Sequence[Block]
    notes: Sequence[str] = ()


def of_add(result: AddResult) -> View:
    """Say what was stored, and what that may contradict."""
    if not result.created:
        text = f"already stored as {result.id} by a request of this key; it is {result.state}"
        return View([Prose(text)])
    blocks: list[Block] = [
        Prose(f"added {result.id} ({result.layer}) at position {result.position}")
    ]
    if result.superseded_ids:
        blocks.append(Prose(f"in place of {', '.join(result.superseded_ids)}"))
    if result.superseded_by is not None:
        blocks.append(Prose(f"as history: {result.superseded_by} tells of a later date"))
    if result.potential_conflicts:
        blocks += [
            Prose("stored already in similar words; is it still true?"),
            Table(
                (ID_COLUMN, "similarity", "memory"),
                [
                    (each.id, f"{each.similarity:.0%}", each.snippet)
                    for each in result.potential_conflicts
                ],
            ),
        ]
    return View(blocks)


def of_batch(result: AddManyResult, count: int) -> View:
    """Count what was stored of so many."""
    repeated = count - result.added_count - result.refused_count
    counts = [f"added {result.added_count}"]
    counts += [f"stored before {repeated}"] if repeated else []
    counts += [f"refused {result.refused_count}"] if result.refused_count else []
    notes = [f"to undo all of it: mnemolog undo --cause {result.cause}"] if result.cause else []
    return View([Prose(", ".join(counts))], notes)


def of_search(result: SearchResult) -> View:
    """List what was found."""
    rows = [_row(found, found.snippet) for found in result.memories]
    if not rows:
        return View([], ["nothing found"])
    words = {"all": "", "exact": ""}.get(result.matched, f" ({result.matched} of the words)")
    more = f"; more: --offset {result.next_offset}" if result.has_more else ""
    return View([Table(_MEMORIES_HEAD, rows)], [f"{result.returned_count} found{words}{more}"])


def of_list(result: ListResult) -> View:
    """List memories."""
    rows = [_row(memory, snippet(memory.content, ())) for memory in result.memories]
    if not rows:
        return View([], ["nothing there"])
    return View([Table(_MEMORIES_HEAD, rows)], [_page(result)])


def of_get(result: GetResult) -> View:
    """Show memories whole, a blank line between them."""
    blocks: list[Block] = []
    for memory in result.memories:
        blocks += [Prose("")] if blocks else []
        blocks += _whole(memory)
    for memory_id, versions in (result.versions or {}).items():
        blocks += [Prose(f"\nversions of {memory_id}"), _versions(versions)]
    return View(blocks, [f"{each.id}: {_gone(each)}" for each in result.missing])


_MISSING: Final = {
    "deleted": "it was deleted; `mnemolog undo` with this id brings it back",
    "not_found": "there is no such memory in this workspace",
    "redacted": "its content is erased",
}


def _gone(missing: Missing) -> str:
    said = "; ".join(_redaction(each) for each in missing.redacted)
    return f"{_MISSING[missing.reason]}; {said}" if said else _MISSING[missing.reason]


def _redaction(redaction: Redaction) -> str:
    why = "" if redaction.reason is None else f" ({redaction.reason})"
    state = "" if redaction.completed else ", and bytes of it are still being erased"
    return f"redacted at {minute_of(redaction.at)} by {redaction.by}{why}{state}"


def of_inspect(result: InspectResult) -> View:
    """Show one memory with its history, or count them."""
    if result.layer_stats is not None:
        return View(_statistics(result, result.layer_stats))
    blocks: list[Block] = []
    if result.memory is not None:
        blocks += _whole(result.memory)
    elif result.status is not None:
        blocks.append(Facts([("status", result.status)]))
    blocks += [Prose(_redaction(each)) for each in result.redacted]
    if result.superseded_chain:
        rows = [_row(memory, snippet(memory.content, ())) for memory in result.superseded_chain]
        blocks += [Prose("\nchain, newest first"), Table(_MEMORIES_HEAD, rows)]
    if result.versions:
        blocks += [Prose("\nversions, newest first"), _versions(result.versions)]
    return View(blocks)


def of_update(result: UpdateResult) -> View:
    """Say what became of a memory."""
    if not result.changed:
        return View([Prose(f"nothing was changed in {result.updated_id}")])
    if result.superseded:
        text = f"superseded {result.updated_id} by {result.new_id} at position {result.position}"
        return View([Prose(text)])
    return View([Prose(f"changed {result.updated_id} at position {result.position}")])


def of_delete(result: DeleteResult) -> View:
    """Say what was deleted."""
    if not result.deleted:
        return View([Prose(f"{result.deleted_id} was deleted by a request of this key before")])
    blocks: list[Block] = [Prose(f"deleted {result.deleted_id} at position {result.position}")]
    if result.reactivated_id is not None:
        blocks.append(Prose(f"current again: {result.reactivated_id}"))
    return View(blocks)


def of_delete_many(result: DeleteManyResult) -> View:
    """Say what was deleted, or would be."""
    ids = [Prose("\n".join(result.ids))] if result.ids else []
    if result.dry_run:
        shown = len(result.ids)
        first = f", the first {shown} of them" if shown < result.matched_count else ""
        return View(ids, [f"{result.matched_count} would be deleted{first}"])
    where = "" if result.position is None else f" at position {result.position}"
    blocks: list[Block] = [Prose(f"deleted {result.deleted_count}{where}")]
    if result.reactivated_ids:
        blocks.append(Prose(f"current again: {', '.join(result.reactivated_ids)}"))
    return View(blocks)


def of_undo(result: UndoResult) -> View:
    """Say what was undone, or would be."""
    if result.dry_run:
        text = f"position {result.undone_position} would be undone"
        return View([Prose(text), Prose(f"would change: {', '.join(result.memories)}")])
    if not result.undone:
        return View([Prose(f"position {result.undone_position} was undone by this key before")])
    text = f"undid position {result.undone_position} at position {result.position}"
    return View([Prose(text), Prose(f"changed: {', '.join(result.memories)}")])


_WHY_LEFT: Final = {
    "undone_already": "undone already",
    "undid_matched": "undid another one that matches",
    "undo_conflict": "changed later",
    "redacted": "redacted",
}
"""Why an operation was not undone, by the code of it."""


def of_undo_many(result: UndoResult) -> View:
    """Say what was undone by a filter, or would be, and what stays as it is."""
    count, positions = result.undone_count or 0, result.undone_positions
    if result.matched_count is None:
        return View([Prose(f"{counted(count, 'operation')} undone by this key before")])
    done = "would be undone" if result.dry_run else "undone"
    matched = counted(result.matched_count, "operation")
    blocks: list[Block] = [Prose(f"{count} of {matched} {done}")]
    if positions:
        more = f" and {count - len(positions)} more" if count > len(positions) else ""
        blocks.append(Prose(f"positions: {', '.join(map(str, positions))}{more}"))
    rows = [
        (str(each.position), _why_left(each.code), ", ".join(map(str, each.later)))
        for each in result.skipped
    ]
    if rows:
        blocks.append(Table(("left", "why", "changed later by"), rows))
    left = ", ".join(f"{n} {_why_left(code)}" for code, n in result.skipped_by_code.items())
    notes = [f"left as they are: {left}"] if left else []
    if result.remaining_count:
        notes.append(f"{result.remaining_count} more match; the same command goes on")
    if result.cause is not None:
        notes.append(f"`mnemolog undo --cause {result.cause}` takes all of it back")
    if result.stopped is not None:
        notes.append(f"stopped: {result.stopped.message}")
    return View(blocks, notes)


def _why_left(code: str) -> str:
    return _WHY_LEFT.get(code, code.replace("_", " "))


def of_health(result: HealthResult) -> View:
    """Say how the store is."""
    ledger, projections = result.ledger, result.projections
    blocks: list[Block] = [
        Facts(
            [
                ("status", result.status),
                ("active", result.stats.total_active),
                ("superseded", result.stats.total_superseded),
                *result.stats.by_layer.items(),
                ("expired", result.expired_count),
                ("stale", result.stale_count),
                ("low confidence", result.low_confidence_count),
                ("orphaned", len(result.orphaned_chains)),
                (
                    "ledger",
                    f"position {ledger.position}, {counted(ledger.files, 'file')}, "
                    + _size(ledger.size_bytes)
                    + (", read-only" if ledger.read_only else ""),
                ),
                (
                    "projections",
                    f"{projections.generation}, {_size(projections.size_bytes)}"
                    + (", behind the ledger" if projections.is_behind else ""),
                ),
                ("disk", f"{_size(result.disk.free_bytes)} free"),
                ("expired and deleted now", result.cleaned_expired),
                ("expired and left", result.remaining_expired),
            ]
        )
    ]
    blocks += [Prose(f"- {issue}") for issue in result.issues]
    return View(blocks)


def of_session_start(result: SessionStartResult) -> View:
    """Give the id of a session."""
    return View([Prose(result.id)], [f"began at {result.started_at}"])


def of_session_end(result: SessionEndResult) -> View:
    """Say how long a session was."""
    facts = Facts(
        [
            ("ended", result.ended_at),
            ("minutes", result.duration_minutes),
            ("memories", result.memories_count),
            ("summary", result.summary),
        ]
    )
    return View([facts])


def of_session_list(result: SessionListResult) -> View:
    """List sessions."""
    rows = [
        (
            session.id,
            minute_of(session.started_at),
            minute_of(session.ended_at) if session.ended_at else "goes on",
            session.client,
            session.project or "",
            str(session.memories_count),
            session.summary or "",
        )
        for session in result.sessions
    ]
    if not rows:
        return View([], ["nothing there"])
    head = (ID_COLUMN, "began", "ended", "client", "project", "memories", "summary")
    return View([Table(head, rows)], [_page(result)])


def of_alias(result: AliasResult, done: str | None = None) -> View:
    """List aliases, or say what became of one.

    Args:
        result: what the store answered.
        done: what was asked for, as one word of what was done; None: a list.

    """
    if done is not None:
        pairs = "; ".join(f"{each.alias} -> {each.entity_name}" for each in result.aliases)
        return View([Prose(f"{done}: {pairs}" if result.changed else "nothing was changed")])
    rows = [(each.alias, each.entity_name) for each in result.aliases]
    return View([Table(("alias", "entity"), rows)], [] if rows else ["nothing there"])


def _page(result: ListResult | SessionListResult) -> str:
    more = f"; next page: --cursor {result.next_cursor}" if result.has_more else ""
    return f"{result.returned_count} of {result.total}{more}"


def _row(memory: Memory | Found, text: str) -> tuple[str, ...]:
    marks = [] if memory.status == "active" else [f"[{memory.status}]"]
    title = [f"{memory.title}:"] if memory.title else []
    return (
        memory.id,
        (memory.event_at or memory.created_at)[:_DATE_CHARS],
        memory.layer,
        memory.entity_name or "",
        " ".join([*marks, *title, text]),
    )


def _whole(memory: Memory) -> list[Block]:
    fields = [name for name in memory.__struct_fields__ if name not in {"content", "content_cut"}]
    facts = Facts([(name.replace("_", " "), getattr(memory, name)) for name in fields])
    return [facts, Prose(""), Prose(memory.content)]


def _versions(versions: Iterable[Version]) -> Table:
    return Table(
        ("version", "status", "at", "actor", "memory"),
        [
            (
                str(each.version),
                each.status,
                minute_of(each.at),
                each.actor,
                snippet(each.content or "", ()),
            )
            for each in versions
        ],
    )


def _statistics(result: InspectResult, layers: dict[str, LayerStatistics]) -> list[Block]:
    rows = [
        (
            name,
            str(layer.active),
            str(layer.superseded),
            str(layer.expired),
            f"{layer.avg_confidence:.2f}",
            f"{layer.avg_age_days:.1f}",
            ", ".join(entity.entity_name for entity in layer.top_entities),
        )
        for name, layer in layers.items()
    ]
    head = ("layer", "active", "superseded", "expired", "confidence", "days old", "entities")
    return [
        Facts(
            [
                ("workspace", result.workspace),
                ("memories", result.total),
                ("position", result.position),
            ]
        ),
        Table(head, rows),
    ]


def _size(size_bytes: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size_bytes < 1024:
            return f"{size_bytes:.0f} {unit}"
        size_bytes /= 1024
    return f"{size_bytes:.0f} TiB"
