"""Argument and result Structs as clients see them: JSON Schemas out, checked arguments in.

`convert` accepts what models send by mistake where the meaning is plain: numbers and booleans as
strings, lists and objects as JSON in a string, null for an optional field. Everything else is
refused with the field, what was got and what is accepted. A Struct with `refuses_null` refuses a
null as well: where a filter says what to delete, an absent value and an empty one differ.
"""

import math
import re
import typing
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeVar

import msgspec
from msgspec import inspect as structure

from server.errors import InvalidArgumentsError

StructT = TypeVar("StructT", bound=msgspec.Struct)

JsonSchema = dict[str, Any]

_REFS: Final = "#/$defs/"
_ECHO_CHARACTERS_MAX: Final = 40
_NAME_CHARACTERS_MAX: Final = 64
_INT_MIN: Final = -(2**63)
_INT_MAX: Final = 2**63 - 1
"""What a database column holds; a wider integer could be accepted here and fail later."""


# ---------------------------------------------------------------------------- schema


@cache
def json_schema(struct: type[msgspec.Struct]) -> JsonSchema:
    """The JSON Schema of a Struct: an object at the root, only local references.

    Enumerations keep the order in which they are declared. The dictionary is shared: do not change
    it.
    """
    (root, *_), definitions = msgspec.json.schema_components(
        [struct, *_checked_alone(struct)], ref_template=_REFS + "{name}"
    )
    # Through JSON and back, so that defaults such as tuples are what a client will see.
    definitions = msgspec.json.decode(msgspec.json.encode(definitions), type=dict[str, JsonSchema])
    orders: dict[frozenset[object], list[object]] = {}
    _collect_literals(struct, orders, set())
    for name, definition in definitions.items():
        definition.pop("title", None)
        definition.pop("description", None)
        definitions[name] = _tidy(definition, orders)
    name = str(root["$ref"]).removeprefix(_REFS)
    schema: JsonSchema = definitions.pop(name)
    schema.setdefault("properties", {})
    if _refers_to(name, [schema, definitions]):
        definitions[name] = dict(schema)
    if definitions:
        schema["$defs"] = definitions
    return schema


def _checked_alone(struct: type[msgspec.Struct]) -> list[type[msgspec.Struct]]:
    """The Structs of items that a handler converts one by one: `Meta(extra={"struct": ...})`."""
    found = []
    pending: list[object] = [field.type for field in msgspec.structs.fields(struct)]
    while pending:
        hint = pending.pop()
        if isinstance(hint, msgspec.Meta):
            if hint.extra is not None:
                found.append(hint.extra["struct"])
        else:
            pending += typing.get_args(hint)
    return found


def _collect_literals(
    hint: object, orders: dict[frozenset[object], list[object]], seen: set[object]
) -> None:
    """Note the declared order of every Literal reachable from a type."""
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        if hint not in seen:
            seen.add(hint)
            for field in msgspec.structs.fields(hint):
                _collect_literals(field.type, orders, seen)
        return
    if typing.get_origin(hint) is typing.Literal:
        values = list(typing.get_args(hint))
        orders[frozenset(values)] = values
        return
    for argument in typing.get_args(hint):
        _collect_literals(argument, orders, seen)


def _tidy(node: JsonSchema, orders: dict[frozenset[object], list[object]]) -> JsonSchema:
    """Put enumerations in order with their type, and drop what says nothing."""
    tidied: JsonSchema = {}
    for key, value in node.items():
        match key:
            case "properties":
                first = [name for name in value if name in node.get("required", ())]
                names = dict.fromkeys([*first, *value])
                tidied[key] = {name: _tidy(value[name], orders) for name in names}
            case "items" | "additionalProperties" if isinstance(value, dict):
                tidied[key] = _tidy(value, orders)
            case "anyOf":
                tidied[key] = [_tidy(child, orders) for child in value]
            case "enum":
                tidied |= _enumeration(orders.get(frozenset(value)) or value)
            case "required" if not value:
                continue
            case _:
                tidied[key] = value
    return tidied


def _enumeration(values: list[Any]) -> JsonSchema:
    if all(isinstance(value, str) for value in values):
        return {"type": "string", "enum": values}
    return {"enum": values}


def _refers_to(name: str, node: object) -> bool:
    if isinstance(node, dict):
        return node.get("$ref") == _REFS + name or any(
            _refers_to(name, child) for child in node.values()
        )
    return isinstance(node, list) and any(_refers_to(name, child) for child in node)


# ---------------------------------------------------------------------------- arguments


def convert(arguments: dict[str, Any], struct: type[StructT]) -> StructT:
    """Check a call's arguments and turn them into a Struct.

    Raises:
        InvalidArgumentsError: If they do not fit. The message is one sentence for the caller;
            details hold `field` (a path such as `tags[2]`), `got` and `expected`, or `accepted`
            (the known field names) when the field is unknown. Long values are not repeated.
    """
    mended = arguments
    try:
        mended = _mender(struct)(arguments, "")
        return msgspec.convert(mended, struct, strict=False)
    except msgspec.ValidationError as error:
        raise _explained(str(error), mended, struct) from None


Mend = Callable[[Any, str], Any]
"""Takes a value and its path; returns the value in the shape its type wants."""


@cache
def _mender(struct: type[msgspec.Struct]) -> Mend:
    """Compile what `convert` does before msgspec sees the arguments."""
    info = structure.type_info(struct)
    assert isinstance(info, structure.StructType)
    return _struct_mender(info, {})


def _mender_of(info: structure.Type, made: dict[type, Mend]) -> Mend | None:  # noqa: PLR0911 - a return a type
    """The mender of a type; None if values of that type are taken as they come."""
    match info:
        case structure.Metadata():
            return _mender_of(info.type, made)
        case structure.IntType():
            return _mend_int
        case structure.FloatType():
            return _mend_float
        case structure.BoolType():
            return _mend_bool
        case structure.ListType() | structure.VarTupleType() | structure.SetType():
            return _list_mender(_mender_of(info.item_type, made))
        case structure.DictType():
            return _dict_mender(_mender_of(info.value_type, made))
        case structure.StructType():
            return _struct_mender(info, made)
        case structure.UnionType():
            return _union_mender(info, made)
        case _:
            return None


def _struct_mender(info: structure.StructType, made: dict[type, Mend]) -> Mend:
    known = made.get(info.cls)
    if known is not None:
        return known
    fields: dict[str, tuple[Mend | None, bool]] = {}

    def mend(value: Any, path: str) -> Any:  # noqa: ANN401 - JSON
        value = _parsed(value, "{")
        if not isinstance(value, dict):
            return value
        mended = {}
        for name, item in value.items():
            child, null_is_absent = fields.get(name, (None, False))
            if item is None and null_is_absent:
                continue
            mended[name] = item if child is None else child(item, f"{path}.{name}")
        return mended

    made[info.cls] = mend
    refuses_null = getattr(info.cls, "refuses_null", False)
    for field in info.fields:
        optional = not (field.required or refuses_null or _takes(field.type, structure.NoneType))
        fields[field.encode_name] = (_mender_of(field.type, made), optional)
    return mend


def _list_mender(child: Mend | None) -> Mend:
    def mend(value: Any, path: str) -> Any:  # noqa: ANN401 - JSON
        value = _parsed(value, "[")
        if child is None or not isinstance(value, list):
            return value
        return [child(item, f"{path}[{index}]") for index, item in enumerate(value)]

    return mend


def _dict_mender(child: Mend | None) -> Mend:
    def mend(value: Any, path: str) -> Any:  # noqa: ANN401 - JSON
        value = _parsed(value, "{")
        if child is None or not isinstance(value, dict):
            return value
        return {name: child(item, f"{path}[...]") for name, item in value.items()}

    return mend


def _union_mender(info: structure.UnionType, made: dict[type, Mend]) -> Mend | None:
    """A union is mended as its one member that is not null; a string stays one if it may be."""
    members = [member for member in info.types if not isinstance(member, structure.NoneType)]
    if len(members) != 1 or _takes(info, structure.StrType):
        return None
    child = _mender_of(members[0], made)
    if child is None:
        return None
    return lambda value, path: None if value is None else child(value, path)


def _takes(info: structure.Type, wanted: type[structure.Type]) -> bool:
    match info:
        case structure.Metadata():
            return _takes(info.type, wanted)
        case structure.UnionType():
            return any(_takes(member, wanted) for member in info.types)
        case _:
            return isinstance(info, wanted | structure.AnyType)


def _parsed(value: Any, opening: str) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, str) and value.lstrip().startswith(opening):
        try:
            return msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return value
    return value


def _mend_int(value: Any, path: str) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, int) and not _INT_MIN <= value <= _INT_MAX:
        raise msgspec.ValidationError(f"Number out of range - at `${path}`")
    return value


def _mend_float(value: Any, path: str) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, str):
        value = value.strip()
        if value.lstrip("+-").lower() in {"nan", "inf", "infinity"}:
            raise msgspec.ValidationError(f"Number out of range - at `${path}`")
    elif isinstance(value, float) and not math.isfinite(value):
        raise msgspec.ValidationError(f"Number out of range - at `${path}`")
    return value


def _mend_bool(value: Any, path: str) -> Any:  # noqa: ANN401, ARG001 - JSON
    return value.strip() if isinstance(value, str) else value


# ---------------------------------------------------------------------------- refusals


def _explained(
    text: str, arguments: dict[str, Any], struct: type[msgspec.Struct]
) -> InvalidArgumentsError:
    """Turn msgspec's sentence into ours: field, what was got, what is accepted."""
    problem, _, place = text.partition(" - at `$")
    path = place.removesuffix("`")
    root = json_schema(struct)
    node, value = _locate(path, arguments, root)
    named = _short(problem.rpartition(" field `")[2].removesuffix("`"))
    field = f"{path}.{named}".removeprefix(".")
    if problem.startswith("Object contains unknown field"):
        accepted = list(_entered(node, root).get("properties", ()))
        return InvalidArgumentsError(
            f"`{field}` is not a known field; accepted: {', '.join(accepted) or 'none'}.",
            details={"field": field, "accepted": accepted},
        )
    if problem.startswith("Object missing required field"):
        expected = _described(_entered(node, root)["properties"][named], root)
        return InvalidArgumentsError(
            f"`{field}` is required: {expected}.",
            details={"field": field, "got": "nothing", "expected": expected},
        )
    field = path.removeprefix(".") or "arguments"
    expected, got = _described(node, root), _got(value)
    return InvalidArgumentsError(
        f"`{field}` must be {expected}; got {got}.",
        details={"field": field, "got": got, "expected": expected},
    )


_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")

_UNSEEN: Final = object()
"""Stands for a value msgspec did not say the key of."""


def _locate(path: str, value: Any, root: JsonSchema) -> tuple[JsonSchema, Any]:  # noqa: ANN401 - JSON
    """Follow a path such as `.tags[2]` to its schema and its value."""
    node = root
    for name, index in _STEP.findall(path):
        node = _entered(node, root)
        if name:
            node = node.get("properties", {}).get(name, {})
            value = value.get(name, _UNSEEN) if isinstance(value, dict) else _UNSEEN
        elif index == "...":
            node = node.get("additionalProperties", {})
            value = _UNSEEN
        else:
            node = node.get("items", {})
            value = value[int(index)] if isinstance(value, list) else _UNSEEN
    return node, value


def _entered(node: JsonSchema, root: JsonSchema) -> JsonSchema:
    """Follow a reference, also through the "or null" of an optional field."""
    members = [member for member in node.get("anyOf", ()) if member.get("type") != "null"]
    if len(members) == 1:
        node = members[0]
    if "$ref" in node:
        target: JsonSchema = root["$defs"][node["$ref"].removeprefix(_REFS)]
        return target
    return node


def _described(node: JsonSchema, root: JsonSchema) -> str:  # noqa: C901, PLR0911 - a return a type
    """Say what a schema accepts, limits included."""
    if "$ref" in node:
        return "an object"
    if "anyOf" in node:
        return " or ".join(_described(member, root) for member in node["anyOf"])
    if "enum" in node:
        return f"one of {', '.join(_json(value) for value in node['enum'])}"
    match node.get("type"):
        case "integer":
            return "an integer" + (_range(node) or " of 64 bits")
        case "number":
            return "a number" + (_range(node) or " that is finite")
        case "string":
            return "a string" + _size(node, "Length", "characters") + _pattern(node)
        case "boolean":
            return "true or false"
        case "null":
            return "null"
        case "array":
            members = _described(node["items"], root) if node.get("items") else "any value"
            return "a list" + _size(node, "Items", "items") + f", each {members}"
        case "object":
            return "an object"
        case _:
            return "any value"


def _range(node: JsonSchema) -> str:
    limits = {
        "minimum": "at least",
        "exclusiveMinimum": "above",
        "maximum": "at most",
        "exclusiveMaximum": "below",
    }
    said = [f"{words} {node[key]}" for key, words in limits.items() if key in node]
    return f" ({', '.join(said)})" if said else ""


def _size(node: JsonSchema, suffix: str, unit: str) -> str:
    limits = {f"min{suffix}": "at least", f"max{suffix}": "at most"}
    said = [f"{words} {node[key]}" for key, words in limits.items() if key in node]
    return f" of {' and '.join(said)} {unit}" if said else ""


def _pattern(node: JsonSchema) -> str:
    if "pattern" not in node:
        return ""
    examples = ", ".join(node.get("examples", ()))
    return f" like {examples}" if examples else f" matching {node['pattern']}"


def _got(value: object) -> str:
    match value:
        case str() if len(value) > _ECHO_CHARACTERS_MAX:
            return f"a string of {len(value)} characters"
        case list():
            return f"a list of {len(value)} items"
        case dict():
            return "an object"
        case int() | float() | str() | None:
            return _short(_json(value))
        case _:
            return "a value of another kind"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _short(text: str) -> str:
    return text if len(text) <= _NAME_CHARACTERS_MAX else f"{text[:_NAME_CHARACTERS_MAX]}…"
