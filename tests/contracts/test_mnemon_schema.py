"""Whatever call mnemon-mcp 1.3.0 takes, mnemolog takes too, but for what is named."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from server.errors import InvalidArgumentsError
from server.schema import convert, json_schema
from tests.support.mnemon import SCHEMA_DIFFERENCES, TOOLS, Field, field_of, mnemon
from tests.support.peer import request
from tests.support.reference import TOOLS as OUR_TOOLS

OURS: Final = {tool.name: tool.args for tool in OUR_TOOLS}

ID_CHARACTERS_MAX: Final = 200
OFFSET_MAX: Final = 10_000

NARROWER: Final[dict[tuple[str, str, object], str]] = {
    ("memory_search", "offset", OFFSET_MAX + 1): "far offsets",
    ("memory_search", "mode", "vector"): "vector modes",
    ("memory_search", "mode", "hybrid"): "vector modes",
    **{
        (tool, "id", "i" * (ID_CHARACTERS_MAX + 1)): "lengths of ids"
        for tool, fields in TOOLS.items()
        if "id" in fields
    },
    **{
        (tool, field, 9.5): "whole numbers"
        for tool, fields in TOOLS.items()
        for field in ("limit", "offset")
        if field in fields
    },
}
"""What they take and we refuse -> the difference that says so."""

WIDER: Final[dict[tuple[str, str, object], str]] = {
    (tool, field, "last Monday"): "date forms"
    for tool, fields in TOOLS.items()
    for field, description in fields.items()
    if description.kind == "date"
}
"""What they refuse and we take -> the difference that says so."""


@dataclass(frozen=True, slots=True)
class Example:
    """A value of a field that they take, or refuse."""

    tool: str
    field: str
    value: Any
    is_taken: bool

    @property
    def key(self) -> tuple[str, str, Any] | None:
        value = self.value
        return (self.tool, self.field, value) if isinstance(value, str | int | float) else None

    def __str__(self) -> str:
        said = repr(self.value)
        said = said if len(said) <= 30 else f"{len(self.value)} long"
        return f"{self.tool}-{self.field}-{said}"


def values(field: Field) -> Iterator[tuple[Any, bool]]:
    """Yield values at a field's limits, which are taken, and just beyond, which are refused."""
    match field.kind:
        case "text":
            low, high = int(field.low or 0), int(field.high or ID_CHARACTERS_MAX)
            yield from [("i" * low, True), ("i" * high, True)]
            yield "i" * (high + 1), field.high is None
            if low:
                yield "i" * (low - 1), False
        case "date":
            for date in ("2026-11-30", "2026-11-30T20:29:00Z", "2026-11-30T20:29:00.5+02:00"):
                yield date, True
            yield "last Monday", False
        case "number":
            yield from _numbers(field)
        case "boolean":
            yield from [(True, True), (False, True), (7, False)]
        case "object":
            yield from [({}, True), ({"a": {"b": [1, None, "c"]}}, True), ([1], False)]
        case "choice":
            yield from [(value, True) for value in field.values]
            yield from [("other", False), (field.values[0].upper(), False)]
        case "choices":
            yield from [([], True), (list(field.values), True), ([field.values[0]] * 9, True)]
            yield [*field.values, "other"], False


def _numbers(field: Field) -> Iterator[tuple[Any, bool]]:
    if field.low is not None:
        yield from [(field.low, True), (field.low - 0.5, False)]
    if field.high is not None:
        yield from [(field.high, True), (field.high + 0.5, False)]
    if field.above is not None:
        yield from [(field.above, False), (field.above + 0.5, True), (1e6, True)]
    if (field.high or 100) > 1:
        yield from [(9.0, True), (10, True)]
    if field.low is not None and (field.high or 100) > 1:
        yield 9.5, True
    if field.low is not None and field.high is None:
        yield from [(OFFSET_MAX, True), (OFFSET_MAX + 1, True)]


EXAMPLES: Final = [
    Example(tool, name, value, is_taken)
    for tool, fields in TOOLS.items()
    for name, field in fields.items()
    for value, is_taken in values(field)
]


def needed(tool: str) -> dict[str, Any]:
    """Return the least that a tool takes."""
    fields = TOOLS[tool].items()
    return {
        name: field.values[0] if field.kind == "choice" else "i"
        for name, field in fields
        if field.required
    }


def is_taken(tool: str, arguments: dict[str, Any]) -> bool:
    try:
        convert(arguments, OURS[tool])
    except InvalidArgumentsError:
        return False
    return True


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_a_value_is_taken_or_refused_as_theirs_but_for_what_is_named(example: Example) -> None:
    taken = is_taken(example.tool, needed(example.tool) | {example.field: example.value})

    if example.key in NARROWER:
        assert (example.is_taken, taken) == (True, False)
    elif example.key in WIDER:
        assert (example.is_taken, taken) == (False, True)
    else:
        assert taken == example.is_taken


def test_every_exception_is_met_and_named() -> None:
    met = {example.key for example in EXAMPLES}
    named = {*NARROWER.values(), *WIDER.values(), "unknown fields"}

    assert {*NARROWER, *WIDER} <= met
    assert named == {each.name for each in SCHEMA_DIFFERENCES}


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_has_their_fields_and_requires_the_same(tool: str) -> None:
    schema = json_schema(OURS[tool])
    required = {name for name, field in TOOLS[tool].items() if field.required}

    assert set(TOOLS[tool]) <= set(schema["properties"])
    assert set(schema.get("required", ())) == required
    assert is_taken(tool, needed(tool))
    for name in required:
        rest = {field: value for field, value in needed(tool).items() if field != name}
        assert not is_taken(tool, rest)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_field_that_no_tool_has_is_refused(tool: str) -> None:
    assert not is_taken(tool, needed(tool) | {"colour": "red"})


def test_what_is_stated_of_their_tools_is_what_the_server_says(tmp_path: Path) -> None:
    with mnemon(tmp_path) as peer:
        listed = peer.ask(request(1, "tools/list"))["result"]["tools"]

    said = {
        tool["name"]: {
            name: field_of(schema, required=name in tool["inputSchema"].get("required", ()))
            for name, schema in tool["inputSchema"]["properties"].items()
        }
        for tool in listed
    }
    assert said == TOOLS
