"""Exports: memories as text for a program, for people, or for a context file.

An export is written in pieces, so that one of any length needs the memory of one page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

import msgspec

from projections.model import Memory

UNTITLED = "(untitled)"

Writer = Callable[[Iterable[Memory], int], Iterator[str]]


def write_export(export_format: str, memories: Iterable[Memory], total: int) -> Iterator[str]:
    """Yield the text of an export, piece by piece.

    Args:
        export_format: json, jsonl, markdown or claude-md.
        memories: ordered by layer.
        total: how many there are in all, for a heading.

    """
    return _WRITERS[export_format](memories, total)


def _json(memories: Iterable[Memory], _: int) -> Iterator[str]:
    between = "[\n"
    for memory in memories:
        text = msgspec.json.format(msgspec.json.encode(memory), indent=2).decode()
        yield between + text
        between = ",\n"
    yield "[]" if between == "[\n" else "\n]"


def _json_lines(memories: Iterable[Memory], _: int) -> Iterator[str]:
    for memory in memories:
        yield msgspec.json.encode(memory).decode() + "\n"


def _markdown(memories: Iterable[Memory], total: int) -> Iterator[str]:
    yield f"# Memory export\n\nTotal: {total} memories\n"
    for layer, group in groupby(memories, lambda memory: memory.layer):
        yield f"\n## {layer}\n"
        for memory in group:
            yield _section(memory)


def _section(memory: Memory) -> str:
    entity = f" [{_line(memory.entity_name)}]" if memory.entity_name else ""
    facts = [
        ("Date", memory.event_at),
        ("Confidence", f"{memory.confidence:g} | **Importance:** {memory.importance:g}"),
        ("Entity", memory.entity_type),
        ("Scope", memory.scope),
        ("Tags", ", ".join(memory.tags)),
        ("Source file", memory.source_file),
        ("Valid", _window(memory)),
        ("Expires", memory.expires_at),
        ("Status", None if memory.status == "active" else memory.status),
        ("Id", memory.id),
    ]
    lines = [f"- **{name}:** {_line(value)}" for name, value in facts if value]
    title = f"\n### {_title(memory)}{entity}\n\n"
    return title + "\n".join(lines) + f"\n\n{memory.content}\n"


def _claude_md(memories: Iterable[Memory], _: int) -> Iterator[str]:
    for memory in memories:
        said = [memory.layer, memory.entity_name, memory.event_at]
        if memory.status != "active":
            said.append(memory.status)
        # A comment ends at the first "-->", whoever wrote it.
        about = re.sub("-(?=-)", "- ", " | ".join(_line(part) for part in said if part))
        yield f"## {_title(memory)}\n<!-- {about} -->\n\n{memory.content}\n\n"


def _window(memory: Memory) -> str:
    if memory.valid_from is None and memory.valid_until is None:
        return ""
    return f"{memory.valid_from or 'always'} to {memory.valid_until or 'now'}"


def _title(memory: Memory) -> str:
    return _line(memory.title or "") or UNTITLED


def _line(text: str) -> str:
    """Return a text as one line, so that a name cannot begin a heading or a list of its own."""
    return " ".join(text.split())


_WRITERS: dict[str, Writer] = {
    "json": _json,
    "jsonl": _json_lines,
    "markdown": _markdown,
    "claude-md": _claude_md,
}
