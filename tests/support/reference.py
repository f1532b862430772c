"""The parts of the documents that are made from the code.

`python -m tests.support.reference` writes them; `tests/test_docs.py` fails while they differ. A
made part stands between `<!-- made: name -->` and `<!-- end: name -->`.
"""

import argparse
import ast
import inspect
import re
import textwrap
import typing
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import msgspec

import ledger
from projections.offline import add_commands
from server import config, errors
from server.app import App
from server.schema import json_schema
from server.tool import Tool
from server.tools import make_tools

ROOT = Path(__file__).resolve().parents[2]

_MARKED = re.compile(
    r"<!-- made: (?P<name>[a-z-]+) -->\n(?P<text>.*?)<!-- end: (?P=name) -->", re.DOTALL
)

Json = dict[str, Any]


def _no_store() -> NoReturn:
    raise AssertionError("no tool is run here")


TOOLS: tuple[Tool, ...] = make_tools(typing.cast("Callable[[], App]", _no_store))


# ---------------------------------------------------------------------------- parts


def tool_list() -> str:
    """Name the tools and what each is for: the first sentence of its description."""
    rows = [(f"`{tool.name}`", tool.title, tool.description.split(". ")[0] + ".") for tool in TOOLS]
    return _table(("tool", "title", "what it does"), rows)


def tool_reference() -> str:
    """Describe every tool: hints, arguments, results."""
    parts = [_tool(tool) for tool in TOOLS]
    nested: dict[str, type[msgspec.Struct]] = {}
    for tool in TOOLS:
        _collect(tool.result, nested)
    parts += [
        f"## {name}\n\n{_first_sentence(struct)}\n\n{_fields(struct, given=False)}"
        for name, struct in nested.items()
    ]
    return "\n".join(parts)


def error_codes() -> str:
    """List the codes a refusal can have, from the errors' own docstrings."""
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type)
        and issubclass(kind, errors.UseCaseError)
        and kind is not errors.UseCaseError
    ]
    return _table(
        ("code", "what it says"), [(f"`{kind.code}`", inspect.getdoc(kind) or "") for kind in kinds]
    )


def settings() -> str:
    """Repeat the table of the module that reads the environment."""
    rows = [
        line.strip() for line in (config.__doc__ or "").splitlines() if line.strip().startswith("|")
    ]
    return "\n".join(re.sub(r"MNEMOLOG_\w+", r"`\g<0>`", row) for row in rows) + "\n"


def commands() -> str:
    """List the subcommands that both doors share, with their options."""
    parser = argparse.ArgumentParser(prog="mnemolog")
    subparsers = parser.add_subparsers()
    add_commands(subparsers)
    rows = []
    for choice in subparsers._choices_actions:
        command = subparsers.choices[choice.dest]
        options = ", ".join(
            f"`{action.option_strings[-1]}{' ' if action.metavar else ''}{action.metavar or ''}`"
            for action in command._actions
            if action.dest != "help"
        )
        rows.append((f"`mnemolog {choice.dest}`", choice.help or "", options.replace("|", " or ")))
    return _table(("command", "what it does", "options"), rows)


def specification() -> str:
    """Repeat the docstring of the package that owns the format."""
    return f"```text\n{inspect.getdoc(ledger)}\n```\n"


PARTS: dict[str, Callable[[], str]] = {
    "tool-list": tool_list,
    "tool-reference": tool_reference,
    "error-codes": error_codes,
    "settings": settings,
    "commands": commands,
    "specification": specification,
}


# ---------------------------------------------------------------------------- documents


def documents() -> list[Path]:
    """Return every Markdown document of the project."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def made_parts(document: Path) -> dict[str, str]:
    """Return the made parts a document holds, by name."""
    return {found["name"]: found["text"] for found in _MARKED.finditer(document.read_text("utf-8"))}


def remade(document: Path) -> str:
    """Return a document's text with every made part made anew."""
    return _MARKED.sub(_make, document.read_text("utf-8"))


def _make(found: re.Match[str]) -> str:
    name = found["name"]
    return f"<!-- made: {name} -->\n{PARTS[name]()}<!-- end: {name} -->"


# ---------------------------------------------------------------------------- tables


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |\n" for row in lines
    )


def _tool(tool: Tool) -> str:
    hints = [
        "reads only" if tool.read_only else "writes",
        *(["may take something away"] if tool.destructive else []),
        *(["the same call twice leaves the same state as once"] if tool.idempotent else []),
    ]
    return (
        f"## {tool.name}\n\n{tool.description}\n\nHints for clients: {', '.join(hints)}.\n\n"
        f"Arguments:\n\n{_fields(tool.args, given=True)}\n"
        f"Result:\n\n{_fields(tool.result, given=False)}"
    )


def _fields(struct: type[msgspec.Struct], *, given: bool) -> str:
    schema = json_schema(struct)
    meanings = _attribute_docstrings(struct)
    rows = []
    for name, field in schema["properties"].items():
        described = _without_null(field)
        meaning = described.get("description") or meanings.get(name, "")
        row = (f"`{name}`", _accepted(described), meaning)
        rows.append((*row, _default(name, field, schema)) if given else row)
    head = ("field", "type", "meaning")
    return _table((*head, "default") if given else head, rows)


def _without_null(field: Json) -> Json:
    choices = [choice for choice in field.get("anyOf", ()) if choice.get("type") != "null"]
    return choices[0] if choices else field


def _default(name: str, field: Json, schema: Json) -> str:
    if name in schema.get("required", ()):
        return "required"
    default = field.get("default")
    return "none" if default is None or default in ([], {}) else f"`{_json(default)}`"


def _accepted(field: Json) -> str:
    if "$ref" in field:
        return str(field["$ref"]).rsplit("/", 1)[-1]
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"])
    match field["type"]:
        case "array":
            bound = f" (at most {field['maxItems']})" if "maxItems" in field else ""
            return f"list of {_accepted(field['items'])}{bound}"
        case "object":
            values = field.get("additionalProperties")
            return f"object of {_accepted(values)}" if isinstance(values, dict) else "object"
        case kind:
            return f"{kind}{_bounds(field)}"


def _bounds(field: Json) -> str:
    if "pattern" in field:
        return ", an ISO 8601 date or date-time"
    low, high = (
        next((field[key] for key in keys if key in field), None)
        for keys in (("minimum", "minLength"), ("maximum", "maxLength"))
    )
    unit = " characters" if field["type"] == "string" else ""
    above = f", more than {field['exclusiveMinimum']}" if "exclusiveMinimum" in field else ""
    if low is not None and high is not None:
        return f", {low:,} to {high:,}{unit}"
    if high is not None:
        return f", at most {high:,}{unit}"
    return f", {low:,} or more{unit}" if low is not None else above


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _first_sentence(struct: type[msgspec.Struct]) -> str:
    return (inspect.getdoc(struct) or "").splitlines()[0]


def _collect(hint: object, found: dict[str, type[msgspec.Struct]], *, root: bool = True) -> None:
    """Note every Struct that a result holds."""
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        if hint.__name__ in found:
            return
        if not root:
            found[hint.__name__] = hint
        for field in msgspec.structs.fields(hint):
            _collect(field.type, found, root=False)
        return
    for argument in typing.get_args(hint):
        _collect(argument, found, root=False)


@cache
def _attribute_docstrings(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Return the sentences that stand below the fields of a Struct and of its bases."""
    meanings: dict[str, str] = {}
    for kind in reversed(struct.__mro__):
        if not issubclass(kind, msgspec.Struct) or kind is msgspec.Struct:
            continue
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
        assert isinstance(definition, ast.ClassDef)
        for field, below in zip(definition.body, definition.body[1:], strict=False):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(below, ast.Expr)
                and isinstance(below.value, ast.Constant)
            ):
                meanings[field.target.id] = " ".join(str(below.value.value).split())
    return meanings


if __name__ == "__main__":
    for each in documents():
        each.write_text(remade(each), "utf-8")
