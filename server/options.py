"""Options of the command line, made from the fields of an argument Struct.

A field's option has its name with dashes, its choices and its description; a list's has the
singular and may be repeated. What was given is checked by the Struct, as a client's call is.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec

from server.errors import InvalidArgumentsError
from server.schema import json_schema
from server.status import usage_error

COMMANDS: Final = {
    f"memory_{tool}": f"`mnemolog {command}`"
    for tool, command in {
        "add": "add",
        "add_many": "add --batch",
        "search": "search",
        "list": "list",
        "get": "get",
        "update": "update",
        "patch": "patch",
        "append": "append",
        "delete": "delete",
        "delete_many": "delete",
        "redact": "redact",
        "undo": "undo",
        "inspect": "inspect",
        "audit": "audit show --memory",
        "export": "export",
        "health": "health",
        "session_start": "session start",
        "session_end": "session end",
        "session_list": "session list",
        "alias": "alias",
    }.items()
}
"""Tool -> its command, for texts that were written for agents."""

_TOOL: Final = re.compile(r"`?\b(?:memory_alias with action (\w+)|(memory_[a-z_]+))\b`?")


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A field that is given by its place instead of an option.

    Attributes:
        field: Name of the field.
        metavar: How usage texts name it.
        nargs: As argparse takes it; words given to a field that is no list are joined by spaces.
    """

    field: str
    metavar: str
    nargs: str | None = None


def add_options(
    parser: argparse.ArgumentParser,
    struct: type[msgspec.Struct],
    *,
    places: Sequence[Place] = (),
    defaults: Mapping[str, object] | None = None,
    without: Sequence[str] = (),
) -> None:
    """Add the options of a Struct's fields; only those that are given get into the namespace.

    Args:
        parser: is added to.
        struct: the arguments.
        places: fields that are given by their place, in their order.
        defaults: field -> what holds on the command line if it is not given; only for the help.
        without: fields that have no option.

    """
    schema = json_schema(struct)
    fields = schema["properties"]
    for place in places:
        meaning = in_commands(_described(fields[place.field]).get("description", ""))
        parser.add_argument(
            place.field,
            metavar=place.metavar,
            nargs=place.nargs,
            default=argparse.SUPPRESS,
            help=meaning.replace("%", "%%"),
        )
    placed = {place.field for place in places}
    for name, field in fields.items():
        if name in placed or name in without:
            continue
        described = _described(field)
        default = (defaults or {}).get(name, field.get("default"))
        parser.add_argument(
            option_of(name, described),
            dest=name,
            default=argparse.SUPPRESS,
            help=_meaning(described, default),
            **_form(described),
        )


def given(parsed: argparse.Namespace, struct: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the fields that were given, as a client's call would hold them.

    Raises:
        CommandError: an object is neither KEY=VALUE nor JSON.

    """
    arguments: dict[str, Any] = {}
    for name, field in json_schema(struct)["properties"].items():
        if not hasattr(parsed, name):
            continue
        value, kind = _whole_characters(getattr(parsed, name)), _described(field).get("type")
        if kind == "object":
            arguments[name] = _object(value)
        elif not isinstance(value, list):
            arguments[name] = value
        elif kind == "array":
            arguments[name] = _list(value)
        elif value:
            arguments[name] = " ".join(value)
    return arguments


def is_broken(text: str) -> bool:
    """Whether a word of a command line holds bytes that are not UTF-8."""
    return any("\ud800" <= character <= "\udfff" for character in text)


def in_options(
    error: InvalidArgumentsError, struct: type[msgspec.Struct], places: Sequence[Place] = ()
) -> InvalidArgumentsError:
    """Return a refusal of arguments whose message speaks of options instead of fields."""
    field = str(error.details.get("field", ""))
    name = field.partition("[")[0].partition(".")[0]
    described = json_schema(struct)["properties"].get(name)
    if described is None:
        return error
    said = option_of(name, _described(described))
    for place in places:
        if place.field == name:
            said = place.metavar
    message = error.message.replace(f"`{field}`", f"`{said}`", 1)
    return InvalidArgumentsError(message, details=error.details)


def option_of(name: str, described: Mapping[str, Any]) -> str:
    """Return a field's option."""
    if described.get("type") == "array":
        name = name.removesuffix("s")
    return "--" + name.replace("_", "-")


def in_commands(text: str) -> str:
    """Return a text for people, commands named instead of tools."""

    def command(found: re.Match[str]) -> str:
        action, tool = found.groups()
        return f"`mnemolog alias {action}`" if action else COMMANDS.get(tool, found[0])

    return _TOOL.sub(command, text)


def _whole_characters(value: Any) -> Any:  # noqa: ANN401 - what argparse made
    """Put U+FFFD for bytes that are not UTF-8, as the server does."""
    if isinstance(value, list):
        return [_whole_characters(item) for item in value]
    if isinstance(value, str) and is_broken(value):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return value


def _described(field: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a field's schema that describes it: without the null of an optional."""
    members = [member for member in field.get("anyOf", ()) if member.get("type") != "null"]
    return members[0] if members else field


def _meaning(described: Mapping[str, Any], default: object) -> str:
    text = in_commands(described.get("description", ""))
    if described.get("type") == "boolean":
        text = text.removeprefix("true: ").partition("; false: ")[0]
    if described.get("type") == "array":
        text += "; may be repeated"
    if default not in (None, False, [], {}, "") and "default" not in text:
        text += f" (default: {default})"
    return text.replace("%", "%%")


def _form(described: Mapping[str, Any]) -> dict[str, Any]:
    match described.get("type"):
        case "boolean":
            return {"action": "store_true"}
        case "object":
            return {"action": "append", "metavar": "KEY=VALUE|JSON"}
        case "array":
            return {"action": "append", **_value_form(_described(described["items"]))}
        case _:
            return _value_form(described)


def _value_form(described: Mapping[str, Any]) -> dict[str, Any]:
    if "enum" in described:
        return {"choices": described["enum"]}
    if described.get("type") in ("integer", "number"):
        return {"metavar": "N"}
    return {"metavar": "DATE" if "examples" in described else "TEXT"}


def _list(values: list[str]) -> object:
    """Return the values, or the list that the only one of them is in JSON: `--tag '[]'`."""
    if len(values) == 1 and values[0].startswith("["):
        with suppress(msgspec.DecodeError, RecursionError):
            return msgspec.json.decode(values[0])
    return values


def _object(values: Sequence[str]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for value in values:
        if value.lstrip().startswith("{"):
            try:
                merged |= msgspec.json.decode(value, type=dict[str, Any])
            except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
                raise usage_error(f"`--meta` is no JSON object: {error}") from None
            continue
        key, equals, text = value.partition("=")
        if not equals or not key:
            raise usage_error("`--meta` takes KEY=VALUE, or a JSON object for other than texts")
        merged[key] = text
    return merged
