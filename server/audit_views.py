"""The audits as a person reads them."""

from __future__ import annotations

from projections.audit_model import AuditedSubject, AuditEntry, FieldChange
from server.audit_results import AuditExportResult, AuditResult
from server.terminal import Block, Facts, Prose, one_line
from server.views import View

_SECONDS_CHARS = len("2026-11-30T20:29:33")


def of_audit(result: AuditResult) -> View:
    """Tell one operation after the other."""
    blocks: list[Block] = [Prose(_told(entry)) for entry in result.entries]
    blocks += [
        Prose(
            f"redaction {each.id} at position {each.position} by {one_line(each.by)} at "
            f"{_second_of(each.at)}"
            f"{'' if each.completed else ', not finished yet'}: "
            f"{'its reason was redacted too' if each.reason is None else one_line(each.reason)}"
        )
        for each in result.redactions
    ]
    notes = []
    if not result.entries:
        notes.append("nothing was done that fits")
    if result.next_cursor is not None:
        notes.append(f"{result.returned_count} shown; next page: --cursor {result.next_cursor}")
    return View(blocks, notes)


def of_audit_export(result: AuditExportResult) -> View:
    """Say what was written, and what to give whoever checks it."""
    part = "the whole ledger" if result.is_whole else "a part of the ledger"
    return View(
        [
            Prose(f"exported {part} up to position {result.position} to {result.folder}"),
            Facts(
                [
                    ("records", result.records),
                    ("of them redacted", result.redacted_records),
                    ("extends the checkpoint at position", result.earlier_position),
                    ("public key", result.public_key),
                ]
            ),
        ],
        [
            "give the public key by another way than the folder; VERIFY.md in it says how to check",
        ],
    )


def _told(entry: AuditEntry) -> str:
    """Return an operation as a heading line and a line for each thing it says."""
    head = f"{entry.position}  {_second_of(entry.at)}  {one_line(entry.actor)}  {entry.action}"
    lines = [head]
    lines += [f"    reason: {one_line(entry.reason)}"] if entry.reason else []
    lines += [f"    session: {one_line(entry.session_id)}"] if entry.session_id else []
    lines += [f"    cause: {one_line(entry.cause)}"] if entry.cause else []
    lines += [f"    undone by: {entry.undone_by}"] if entry.undone_by is not None else []
    for subject in entry.subjects:
        lines += _subject_lines(subject)
    more = entry.subjects_count - len(entry.subjects)
    lines += [f"    and {more} more"] if more else []
    return "\n".join(lines)


def _subject_lines(subject: AuditedSubject) -> list[str]:
    named = [f"{subject.kind} {subject.id}: {subject.action}"]
    said = subject.title or (None if subject.changes else subject.snippet)
    named += [f"“{one_line(said)}”"] if said else []
    named += [f"[{one_line(subject.entity_name)}]"] if subject.entity_name else []
    if subject.redacted_records is not None:
        named.append(f"{subject.redacted_records} records")
    elif subject.is_redacted:
        named.append("(what it said is redacted)")
    return [
        "    " + " ".join(named),
        *(f"        {_change_text(change)}" for change in subject.changes),
    ]


def _change_text(change: FieldChange) -> str:
    if change.before is None:
        return f"{change.field}: {one_line(change.after or '')}"
    after = "(nothing)" if change.after is None else one_line(change.after)
    return f"{change.field}: {one_line(change.before)} -> {after}"


def _second_of(instant: str) -> str:
    return instant[:_SECONDS_CHARS].replace("T", " ") + "Z"
