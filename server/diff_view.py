"""What changed between two moments as a person reads it: like a patch, a block a difference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from projections.difference import Difference, Fields
from projections.wording import counted
from server.diff import DiffResult
from server.results import KnownAt
from server.terminal import Block, Prose, one_line
from server.views import View

LINES_MAX: Final = 40
"""Lines of one text that are shown."""

LINE_CHARS_MAX: Final = 400

_SIGNS: Final = {
    "added": "+",
    "restored": "+",
    "deleted": "-",
    "redacted": "x",
}
_SHOWN_WHOLE: Final = ("title", "entity_name", "scope", "event_at", "client", "name", "entity")
"""Short fields that are shown of what came or went."""


def of_diff(result: DiffResult) -> View:
    """Show the differences, and count them."""
    blocks: list[Block] = [Prose("\n".join(_lines(each)) + "\n") for each in result.differences]
    notes = [f"from {_moment(result.since)} to {_moment(result.until)}"]
    notes += [
        f"{kind}: " + ", ".join(f"{count} {_WORDS.get(what, what)}" for what, count in each.items())
        for kind, each in result.counts.items()
    ]
    if not result.total:
        notes.append("nothing differs")
    if result.has_more or result.returned_count < result.total:
        more = f"; more: --offset {result.next_offset}" if result.has_more else ""
        notes.append(f"{result.returned_count} of {result.total} differences{more}")
    redacted = result.since.redacted_since
    if redacted:
        notes.append(f"{counted(redacted, 'redaction')} since then took away what was named")
    return View(blocks, notes)


_WORDS: Final = {"passing": "added and deleted again in between"}


def _moment(known_at: KnownAt) -> str:
    at = f" ({known_at.at})" if known_at.at else ""
    return f"position {known_at.position}{at}"


def _lines(difference: Difference) -> Iterator[str]:
    sign = _SIGNS.get(difference.what, "~")
    said = {**difference.before, **difference.after}
    about = [str(said[name]) for name in ("layer", "entity_name") if said.get(name)]
    yield " ".join(
        [
            f"{sign} {difference.kind} {difference.id} {difference.what}",
            *([f"[{', '.join(map(one_line, about))}]"] if about and sign in "+-" else []),
            f"(position {difference.position})",
        ]
    )
    if sign == "~":
        for name, value in difference.before.items():
            yield from _changed(name, value, difference.after[name])
        return
    yield from _whole(sign, difference.after or difference.before)


def _whole(sign: str, fields: Fields) -> Iterator[str]:
    for name in _SHOWN_WHOLE:
        if fields.get(name) not in (None, "", "global"):
            yield f"    {name}: {_written(fields[name])}"
    yield from _cut([f"    {sign} {line}" for line in str(fields.get("content", "")).splitlines()])


def _changed(name: str, before: object, after: object) -> Iterator[str]:
    if name not in ("content", "summary") or before is None or after is None:
        yield f"    {name}: {_written(before)} -> {_written(after)}"
        return
    from difflib import unified_diff  # noqa: PLC0415 - only a text that changed needs it

    patch = unified_diff(str(before).splitlines(), str(after).splitlines(), n=1, lineterm="")
    lines = [line for line in patch if not line.startswith(("---", "+++", "@@"))]
    yield f"    {name}:"
    yield from _cut([f"      {line}" for line in lines])


def _cut(lines: list[str]) -> Iterator[str]:
    for line in lines[:LINES_MAX]:
        over = len(line) - LINE_CHARS_MAX
        yield line if over <= 0 else f"{line[:LINE_CHARS_MAX]} … {over} more characters (--json)"
    if len(lines) > LINES_MAX:
        yield f"    … {len(lines) - LINES_MAX} more lines (--json has them all)"


def _written(value: object) -> str:
    match value:
        case None | "" | () | []:
            return "none"
        case str():
            text = one_line(value)
        case list() | tuple():
            text = one_line(", ".join(map(str, value)))
        case _:
            text = msgspec.json.encode(value).decode()
    return text if len(text) <= LINE_CHARS_MAX else f"{text[:LINE_CHARS_MAX]}…"
