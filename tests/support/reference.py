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
from server import config, errors, status, usage
from server.app import App
from server.form import written
from server.prompts import make_prompts
from server.resources import make_resources, make_templates
from server.schema import json_schema
from server.tool import Tool
from server.tool_entry import ENTRIES, encode_entries
from server.tools import make_tools
from tests.support import guarantees, integrity, mnemon

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
    rows = [
        (f"`{tool.name}`", tool.title, tool.description.split(". ")[0].rstrip(".") + ".")
        for tool in TOOLS
    ]
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


def resource_list() -> str:
    """Name the resources and the templates, and what each holds."""
    app = typing.cast("Callable[[], Any]", _no_store)
    rows = [(f"`{each.uri}`", each.title, each.description) for each in make_resources(app)]
    rows += [
        (f"`{each.uri_template}`", each.title, each.description)
        for each in make_templates(app, app)
    ]
    return _table(("URI", "title", "what it holds"), rows)


def prompt_list() -> str:
    """Name the prompts and what each is filled in with."""
    rows = []
    for prompt in make_prompts(typing.cast("Callable[[], Any]", _no_store)):
        arguments = [
            f"`{argument.name}`{'' if argument.required else ' (optional)'}: {argument.description}"
            for argument in prompt.arguments
        ]
        rows.append((f"`{prompt.name}`", prompt.description, "; ".join(arguments)))
    return _table(("prompt", "what it is for", "arguments"), rows)


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
    """List the settings in short."""
    rows = [
        (f"`{setting.variable}`", setting.meaning, _unset(setting)) for setting in config.SETTINGS
    ]
    return _table(("variable", "meaning", "default"), rows)


def setting_reference() -> str:
    """List the settings with their names in the file and what is accepted."""
    rows = []
    for setting in config.SETTINGS:
        form = setting.form
        in_file = form.accepted_in_file
        rows.append(
            (
                f"`{setting.variable}`",
                f"`{setting.key}`" if setting.in_file else "not in the file",
                setting.meaning,
                f"{form.accepted} (in the file: {in_file})" if in_file else form.accepted,
                _unset(setting),
            )
        )
    return _table(("variable", "key in the file", "meaning", "accepted", "default"), rows)


def _unset(setting: config.Setting) -> str:
    return setting.unset or f"`{written(setting.default)}`"


def commands() -> str:
    """List the commands in the order of the help."""
    said = _help_lines()
    rows = [(f"`mnemolog {name}`", said[name]) for name in usage.COMMANDS]
    return _table(("command", "what it does"), rows)


def command_reference() -> str:
    """Describe every command: how it is typed, its options, examples."""
    return "\n".join(_command(name) for name in _command_names())


def exit_statuses() -> str:
    """List the exit statuses."""
    rows = [(str(number), meaning) for number, meaning in status.MEANINGS.items()]
    return _table(("status", "meaning"), rows)


def specification() -> str:
    """Repeat the docstring of the package that owns the format."""
    return f"```text\n{inspect.getdoc(ledger)}\n```\n"


def mnemon_differences() -> str:
    """List what is not as in mnemon-mcp, and why."""
    rows = [(each.name, each.theirs, each.ours, each.reason) for each in mnemon.DIFFERENCES]
    return _table(("what", "mnemon-mcp 1.3.0", "mnemolog", "why"), rows)


def mnemon_faults() -> str:
    """List the faults of mnemon-mcp that are none here."""
    rows = [(each.theirs, each.ours) for each in mnemon.FAULTS]
    return _table(("mnemon-mcp 1.3.0", "mnemolog"), rows)


def promises() -> str:
    """List the promises that the README makes, with their ids."""
    return _table(("promise", "id"), guarantees.readme_rows())


def edits() -> str:
    """List the public suite's edits of the files."""
    return _table(
        ("edit", "what it does to a memory"),
        [(name, what) for name, what in (text.split(", ", 1) for text in integrity.EDITS.values())],
    )


def edit_results() -> str:
    """Show what became of each edit, by what was edited and what was asked."""
    numbers = [text.split(",")[0] for text in integrity.EDITS.values()]
    rows = [
        (row.edited, row.asked, *(integrity.VERDICTS[letter] for letter in row.verdicts))
        for row in integrity.AT_REST
    ]
    return _table(("edited", "asked", *numbers), rows)


def edit_reasons() -> str:
    """Say why what was accepted was."""
    numbers = [text.split(",")[0] for text in integrity.EDITS.values()]
    rows = []
    for row in integrity.AT_REST:
        found = [
            number for number, letter in zip(numbers, row.verdicts, strict=True) if letter == "a"
        ]
        if found:
            rows.append((row.edited, row.asked, ", ".join(found), row.accepted_because))
    return _table(("edited", "asked", "accepted", "why"), rows)


def front_door() -> str:
    """Show what became of each attack through the tools."""
    rows = [
        (f"`{row.attack}`", row.tries, "kept out" if row.kept_out else "surfaced", row.because)
        for row in integrity.FRONT_DOOR
    ]
    return _table(("attack", "what the attacker does", "result", "why"), rows)


PARTS: dict[str, Callable[[], str]] = {
    "promises": promises,
    "promise-links": guarantees.links,
    "guarantees": guarantees.page,
    "edits": edits,
    "edit-results": edit_results,
    "edit-reasons": edit_reasons,
    "front-door": front_door,
    "tool-list": tool_list,
    "tool-reference": tool_reference,
    "resource-list": resource_list,
    "prompt-list": prompt_list,
    "error-codes": error_codes,
    "settings": settings,
    "setting-reference": setting_reference,
    "commands": commands,
    "command-reference": command_reference,
    "exit-statuses": exit_statuses,
    "specification": specification,
    "mnemon-differences": mnemon_differences,
    "mnemon-faults": mnemon_faults,
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


# ---------------------------------------------------------------------------- commands


PARSER = usage.make_parser()


def _subcommands(parser: argparse.ArgumentParser) -> "argparse._SubParsersAction[Any] | None":
    found = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return found[0] if found else None


def _help_lines() -> dict[str, str]:
    choices = _subcommands(PARSER)
    assert choices is not None
    return {choice.dest: choice.help or "" for choice in choices._choices_actions}


def _command_names() -> list[str]:
    names = []
    for name in usage.COMMANDS:
        family = _subcommands(usage.command_parser(PARSER, name))
        names += [name] if family is None else [f"{name} {action}" for action in family.choices]
    return names


def _command(name: str) -> str:
    parser = usage.command_parser(PARSER, name)
    lines = [f"### {name}", "", f"```text\n{' '.join(parser.format_usage().split())}\n```", ""]
    if parser.description:
        lines += [" ".join(parser.description.split()), ""]
    rows = [
        (_typed(action), (action.help or "").replace("%%", "%"))
        for action in parser._actions
        if action.dest != "help" and (action.dest not in _COMMON or name in _APART)
    ]
    if rows:
        lines += [_table(("argument or option", "meaning"), rows)]
    if parser.epilog:
        examples = [f"$ {line.strip()}" for line in parser.epilog.splitlines()[1:]]
        lines += ["```console", *examples, "```", ""]
    return "\n".join(lines)


_COMMON = ("json", "workspace", "actor", "home")
"""Options that the page describes once, for the commands on memories."""

_APART = (*usage.OFFLINE, "serve", "config", "demo")
"""The other commands."""


def _typed(action: argparse.Action) -> str:
    value = action.metavar or ("|".join(map(str, action.choices)) if action.choices else "")
    return f"`{' '.join(filter(None, [*action.option_strings[-1:], str(value)]))}`"


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
    if "anyOf" in field:
        return ", or ".join(map(_accepted, field["anyOf"]))
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
    ENTRIES.write_bytes(encode_entries(TOOLS))
    for each in documents():
        each.write_text(remade(each), "utf-8")
