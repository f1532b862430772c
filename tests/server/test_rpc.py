"""JSON-RPC lines: what is read, what is repaired, what is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server import rpc
from server.rpc import Message, RpcError


def refused(line: bytes) -> tuple[int, object]:
    with pytest.raises(RpcError) as caught:
        rpc.parse(line)
    return caught.value.code, caught.value.request_id


def test_a_request_has_an_id_and_a_notification_none() -> None:
    assert rpc.parse(b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}') == Message(
        "m", {"a": 1}, 1
    )
    assert rpc.parse(b'{"jsonrpc":"2.0","method":"m"}') == Message("m", {})
    assert rpc.parse(b'{"jsonrpc":"2.0","id":"1","method":"m","params":null}\r') == Message(
        "m", {}, "1"
    )


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}',
        b'{"jsonrpc":"2.0","method":"m","params":[1]}',
    ],
)
def test_responses_and_malformed_notifications_ask_for_nothing(line: bytes) -> None:
    assert rpc.parse(line) is None


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"\xff\xfe",
        b"NaN",
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1e999}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":-Infinity}}',
        b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b"}",
        b"[" * 100_000,
    ],
    ids=lambda line: repr(line[:60]),
)
def test_what_is_not_json_is_a_parse_error_without_an_id(line: bytes) -> None:
    assert refused(line) == (rpc.PARSE_ERROR, None)


@pytest.mark.parametrize(
    ("line", "request_id"),
    [
        (b"null", None),
        (b"5", None),
        (b"[]", None),
        (b"{}", None),
        (b'{"id":1,"method":"m"}', 1),
        (b'{"jsonrpc":"1.0","id":"a","method":"m"}', "a"),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', 1),
        (b'{"jsonrpc":"2.0","id":1}', 1),
        (b'{"jsonrpc":"2.0"}', None),
        (b'{"jsonrpc":"2.0","id":null,"method":"m"}', None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"m"}', None),
        (b'{"jsonrpc":"2.0","id":true,"method":"m"}', None),
        (b'{"jsonrpc":"2.0","id":[1],"method":"m"}', None),
    ],
)
def test_what_is_no_message_is_an_invalid_request(line: bytes, request_id: object) -> None:
    assert refused(line) == (rpc.INVALID_REQUEST, request_id)


def test_parameters_by_position_are_invalid() -> None:
    line = b'{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}'

    assert refused(line) == (rpc.INVALID_PARAMS, 1)


@pytest.mark.parametrize("broken", [b"\\ud800", b"\\udfff", b"\xff", b"\xc3"], ids=repr)
def test_each_broken_piece_of_text_becomes_one_replacement_character(broken: bytes) -> None:
    line = b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"k#":["a#b",{"c":1.5}]}}'

    message = rpc.parse(line.replace(b"#", broken))

    assert message == Message("m", {"k\ufffd": ["a\ufffdb", {"c": 1.5}]}, 1, repaired=True)


def test_whole_characters_beside_a_broken_one_stay() -> None:
    line = b'{"jsonrpc":"2.0","method":"m","params":{"a":"\\ud83d\\ude00\\ud83d"}}'

    message = rpc.parse(line)

    assert message is not None
    assert message.params == {"a": "😀\ufffd"}


_ids = st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(codec="utf-8"))


@given(request_id=_ids, params=st.dictionaries(st.text(st.characters(codec="utf-8")), st.floats()))
def test_answers_are_one_line_of_json_with_the_id_they_answer(
    request_id: rpc.RequestId, params: dict[str, float]
) -> None:
    lines = [
        rpc.result_line(request_id, params),
        rpc.error_line(request_id, RpcError(1, "m\n", data={"k": "\n"})),
    ]

    for line in lines:
        assert line.index(b"\n") == len(line) - 1
        assert json.loads(line)["id"] == request_id


def test_an_error_says_no_more_than_it_has() -> None:
    assert json.loads(rpc.error_line(None, RpcError(-1, "no"))) == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -1, "message": "no"},
    }


def test_a_long_name_is_not_echoed_whole() -> None:
    assert rpc.echo("short") == "short"
    assert rpc.echo("x" * 1000) == "x" * 64 + "…"
