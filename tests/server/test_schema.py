"""Schemas out, arguments in."""

import json
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Meta, Struct, UnsetType

from server.errors import InvalidArgumentsError
from server.schema import convert, json_schema


class Inner(Struct, forbid_unknown_fields=True):
    """Words for programmers, not for clients."""

    weight: Annotated[float, Meta(gt=0, lt=1)] = 0.5
    next: "Inner | None" = None


class Arguments(Struct, forbid_unknown_fields=True):
    """Words for programmers, not for clients."""

    text: Annotated[str, Meta(description="What to keep.", min_length=1, max_length=5)]
    title: str | None = None
    order: Literal["newest", "oldest", "best"] = "newest"
    maybe: Literal["z", "a"] | None = None
    level: Literal[3, 1, 2] = 1
    limit: Annotated[int, Meta(ge=1, le=50)] = 10
    score: float = 0.0
    exact: bool = False
    tags: Annotated[list[str], Meta(max_length=3)] = []
    pair: tuple[int, ...] = ()
    meta: dict[str, Any] = {}
    counts: dict[str, int] = {}
    inner: Inner | None = None
    inners: list[Inner] = []
    code: Annotated[str, Meta(pattern="^[a-z]+$")] = "a"
    either: int | str = 0
    anything: Any = None
    change: str | UnsetType | None = UNSET
    big: int = 0


class Root(Struct):
    child: "Root | None" = None


def accepted(**arguments: object) -> Arguments:
    return convert({"text": "t", **arguments}, Arguments)


def refusal(**arguments: object) -> InvalidArgumentsError:
    with pytest.raises(InvalidArgumentsError) as caught:
        accepted(**arguments)
    return caught.value


# ---------------------------------------------------------------------------- schema


def test_the_root_is_an_object_without_references_or_combinators() -> None:
    schema = json_schema(Arguments)

    assert schema["type"] == "object"
    assert schema["required"] == ["text"]
    assert schema["additionalProperties"] is False
    assert set(schema) == {"type", "properties", "required", "additionalProperties", "$defs"}
    assert list(schema["properties"]) == list(Arguments.__struct_fields__)


def test_enumerations_keep_their_declared_order_and_say_their_type() -> None:
    properties = json_schema(Arguments)["properties"]

    assert properties["order"] == {
        "type": "string",
        "enum": ["newest", "oldest", "best"],
        "default": "newest",
    }
    assert properties["maybe"]["anyOf"] == [
        {"type": "string", "enum": ["z", "a"]},
        {"type": "null"},
    ]
    assert properties["level"]["enum"] == [3, 1, 2]


def test_a_field_called_title_stays_and_the_titles_of_schemas_go() -> None:
    schema = json_schema(Arguments)

    assert schema["properties"]["title"]["anyOf"][0] == {"type": "string"}
    assert "Words for programmers" not in json.dumps(schema)
    assert "title" not in schema["$defs"]["Inner"]


def test_descriptions_and_limits_arrive() -> None:
    properties = json_schema(Arguments)["properties"]

    assert properties["text"] == {
        "description": "What to keep.",
        "type": "string",
        "minLength": 1,
        "maxLength": 5,
    }
    assert properties["pair"]["default"] == []


def test_only_local_references_are_used_also_by_a_recursive_root() -> None:
    schema = json_schema(Root)

    assert schema["properties"]["child"]["anyOf"][0] == {"$ref": "#/$defs/Root"}
    assert set(schema["$defs"]) == {"Root"}
    assert "required" not in schema


def test_a_struct_without_fields_still_has_properties() -> None:
    class Empty(Struct, forbid_unknown_fields=True):
        pass

    assert json_schema(Empty) == {"type": "object", "properties": {}, "additionalProperties": False}


# ---------------------------------------------------------------------------- accepted


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"limit": "5"}, {"limit": 5}),
        ({"limit": " 5 "}, {"limit": 5}),
        ({"limit": 5.0}, {"limit": 5}),
        ({"score": "0.9"}, {"score": 0.9}),
        ({"exact": "true"}, {"exact": True}),
        ({"exact": " False"}, {"exact": False}),
        ({"tags": '["a", "b"]'}, {"tags": ["a", "b"]}),
        ({"tags": ' ["a"]'}, {"tags": ["a"]}),
        ({"pair": "[1, 2]"}, {"pair": (1, 2)}),
        ({"pair": ["1"]}, {"pair": (1,)}),
        ({"meta": '{"k": [1]}'}, {"meta": {"k": [1]}}),
        ({"counts": {"k": "7"}}, {"counts": {"k": 7}}),
        ({"inner": '{"weight": "0.25"}'}, {"inner": Inner(0.25)}),
        ({"inner": {"next": '{"weight": 0.25}'}}, {"inner": Inner(next=Inner(0.25))}),
        ({"inners": '[{"weight": 0.25}]'}, {"inners": [Inner(0.25)]}),
        ({"limit": None, "tags": None, "exact": None}, {}),
        ({"title": "[1]"}, {"title": "[1]"}),
        ({"title": "null"}, {"title": "null"}),
        ({"either": "[1]"}, {"either": "[1]"}),
        ({"anything": "[1]"}, {"anything": "[1]"}),
        ({"anything": {"a": [None]}}, {"anything": {"a": [None]}}),
        ({"change": None}, {"change": None}),
        ({"big": 2**63 - 1}, {"big": 2**63 - 1}),
    ],
    ids=repr,
)
def test_plain_mistakes_are_understood(
    arguments: dict[str, object], expected: dict[str, Any]
) -> None:
    assert accepted(**arguments) == Arguments("t", **expected)


def test_the_callers_arguments_are_left_alone() -> None:
    arguments: dict[str, Any] = {"text": "t", "tags": '["a"]', "limit": None}

    convert(arguments, Arguments)

    assert arguments == {"text": "t", "tags": '["a"]', "limit": None}


# ---------------------------------------------------------------------------- refused


INT = "an integer (at least 1, at most 50)"
FINITE = "a number that is finite"
LIST = "a list of at most 3 items, each a string"
TEXT = "a string of at least 1 and at most 5 characters"
WEIGHT = "a number (above 0, below 1)"


@pytest.mark.guarantee("G-INPUT-1")
@pytest.mark.parametrize(
    ("arguments", "field", "expected", "got"),
    [
        ({"limit": "ten"}, "limit", INT, '"ten"'),
        ({"limit": 99}, "limit", INT, "99"),
        ({"limit": 1e308}, "limit", INT, "1e308"),
        ({"limit": True}, "limit", INT, "true"),
        ({"big": 2**63}, "big", "an integer of 64 bits", "9223372036854775808"),
        ({"score": "nan"}, "score", FINITE, '"nan"'),
        ({"score": "-Infinity"}, "score", FINITE, '"-Infinity"'),
        ({"score": "1e999"}, "score", FINITE, '"1e999"'),
        ({"score": float("inf")}, "score", FINITE, "null"),
        ({"exact": "yes"}, "exact", "true or false", '"yes"'),
        ({"tags": "a"}, "tags", LIST, '"a"'),
        ({"tags": "[a"}, "tags", LIST, '"[a"'),
        ({"tags": list("abcd")}, "tags", LIST, "a list of 4 items"),
        ({"tags": "[1]"}, "tags[0]", "a string", "1"),
        ({"text": ""}, "text", TEXT, '""'),
        ({"text": None}, "text", TEXT, "null"),
        ({"text": "x" * 9999}, "text", TEXT, "a string of 9999 characters"),
        ({"title": 5}, "title", "a string or null", "5"),
        ({"order": "worst"}, "order", 'one of "newest", "oldest", "best"', '"worst"'),
        ({"maybe": "b"}, "maybe", 'one of "z", "a" or null', '"b"'),
        ({"level": 4}, "level", "one of 3, 1, 2", "4"),
        ({"code": "A"}, "code", "a string matching ^[a-z]+$", '"A"'),
        ({"meta": []}, "meta", "an object", "a list of 0 items"),
        ({"counts": {"k": "v"}}, "counts[...]", "an integer of 64 bits", "a value of another kind"),
        ({"inner": {"weight": 1}}, "inner.weight", WEIGHT, "1"),
        ({"inner": {"next": {"weight": 1}}}, "inner.next.weight", WEIGHT, "1"),
        ({"inners": [{}, 5]}, "inners[1]", "an object", "5"),
        ({"inners": {}}, "inners", "a list, each an object", "an object"),
        ({"either": []}, "either", "an integer of 64 bits or a string", "a list of 0 items"),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_a_refusal_names_the_field_what_was_got_and_what_is_accepted(
    arguments: dict[str, object], field: str, expected: str, got: str
) -> None:
    error = refusal(**arguments)

    assert error.code == "invalid_arguments"
    assert error.message == f"`{field}` must be {expected}; got {got}."
    assert error.details == {"field": field, "expected": expected, "got": got}


def test_a_missing_field_is_named_with_what_it_takes() -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        convert({}, Arguments)

    assert caught.value.message == (
        "`text` is required: a string of at least 1 and at most 5 characters."
    )
    assert caught.value.details["got"] == "nothing"


def test_a_field_that_takes_anything_may_still_be_required() -> None:
    class Needy(Struct, forbid_unknown_fields=True):
        value: Any

    with pytest.raises(InvalidArgumentsError, match="`value` is required: any value"):
        convert({}, Needy)


def test_an_unknown_field_is_refused_with_all_that_are_known() -> None:
    error = refusal(tag=["a"])

    assert error.message.startswith("`tag` is not a known field; accepted: text, title, order,")
    assert error.details["accepted"] == list(Arguments.__struct_fields__)
    assert refusal(inner={"bogus": 1}).details == {
        "field": "inner.bogus",
        "accepted": ["weight", "next"],
    }


def test_fields_that_do_not_exist_are_named_even_if_there_are_none() -> None:
    class Empty(Struct, forbid_unknown_fields=True):
        pass

    with pytest.raises(InvalidArgumentsError, match="accepted: none"):
        convert({"x": 1}, Empty)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(
    arguments=st.dictionaries(
        st.sampled_from(Arguments.__struct_fields__) | st.text(max_size=300), _json, max_size=4
    )
)
def test_arguments_of_any_kind_are_converted_or_refused_in_a_few_words(
    arguments: dict[str, Any],
) -> None:
    message = ""
    try:
        assert convert(arguments, Arguments).text is not None
    except InvalidArgumentsError as error:
        message = error.message

    assert len(message) < 400
