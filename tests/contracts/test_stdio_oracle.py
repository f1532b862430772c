"""Our stdio core and the official SDK serve the same samples: valid requests get equal answers.

Set aside are what tells two processes apart (ids of crashes), the envelope `_meta`, and the prose
of errors; an error's code, and all data of a result, must be the same. Where the SDK is known to be
wrong, the request stands in `FAULTS` with the reason and our answer. `listChanged` is set aside
too: the SDK promises it to every modern client as soon as one can listen, we promise what we send.
"""

import json
from collections.abc import Iterator
from importlib.metadata import version
from itertools import count
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from server.protocol import LEGACY_VERSIONS
from tests.support.peer import (
    OURS,
    SDK,
    Json,
    Peer,
    call,
    cancelled,
    initialize,
    modern,
    notification,
    request,
    started,
)

_ids = count()


@pytest.fixture(scope="module")
def ours() -> Iterator[Peer]:
    with started(command=OURS) as peer:
        yield peer.handshake()
        peer.close_input()
        assert peer.exit_status() == 0


@pytest.fixture(scope="module")
def sdk_legacy() -> Iterator[Peer]:
    with started(command=SDK) as peer:
        yield peer.handshake()
        peer.close_input()
        assert peer.exit_status() == 0


@pytest.fixture(scope="module")
def sdk_modern() -> Iterator[Peer]:
    """The SDK serves one era a process; ours gets both eras' requests on one connection."""
    with started(command=SDK) as peer:
        assert "result" in peer.ask(modern("era", "server/discover"))
        yield peer
        peer.close_input()
        assert peer.exit_status() == 0


def normal(answer: Json) -> Json:
    """Drop what may differ."""
    answer = dict(answer)
    if "error" in answer:
        answer["error"] = answer["error"]["code"]
        return answer
    result = {key: value for key, value in answer["result"].items() if key != "_meta"}
    for capability in result.get("capabilities", {}).values():
        capability.pop("listChanged", None)
    if result.get("isError"):
        error = {**result["structuredContent"]["error"], "message": ""}
        result = {**result, "content": "the same as JSON", "structuredContent": error}
    elif "structuredContent" in result:
        (content,) = result["content"]
        result["content"] = [{**content, "text": json.loads(content["text"])}]
    answer["result"] = result
    return answer


def asked(peer: Peer, message: Json) -> list[Json]:
    """Send a request; returns all messages up to its answer."""
    peer.send(message)
    messages = [peer.receive()]
    while messages[-1].get("id") != message["id"]:
        messages.append(peer.receive())
    *notifications, answer = messages
    return [*notifications, normal(answer)]


CALLS: list[tuple[str, Json]] = [
    ("note", {"text": "plain"}),
    ("note", {"text": 'é \0 \u2028 😀 \\ "', "tags": ["a", ""], "meta": {"k": [1, None, 2.5]}}),
    (
        "note",
        {"text": "x", "limit": "5", "urgent": "true", "parts": '[{"name":"p","weight":"0.9"}]'},
    ),
    ("note", {"text": "x", "title": None, "tags": None}),
    ("note", {}),
    ("note", {"text": 5}),
    ("note", {"text": None}),
    ("note", {"text": "x", "bogus": 1}),
    ("note", {"text": "x", "limit": "ten"}),
    ("note", {"text": "x", "limit": 1e308}),
    ("note", {"text": "x", "limit": 51}),
    ("note", {"text": "x", "tags": "a"}),
    ("note", {"text": "x", "layer": "none"}),
    ("note", {"text": "x", "parts": [{"name": "p"}, {"name": "", "weight": 2}]}),
    ("find", {"note_id": "n-1"}),
    ("crash", {}),
    ("leave", {}),
    ("fill", {"characters": 100_000}),
    ("step", {"steps": []}),
]

OTHERS: list[tuple[str, Json]] = [
    ("tools/list", {}),
    ("tools/list", {"cursor": "unknown"}),
    ("tools/list", {"cursor": None}),
    ("tools/call", {"name": "nope", "arguments": {}}),
    ("tools/call", {"name": "note"}),
    ("tools/call", {"name": "note", "arguments": None}),
    ("tools/call", {"name": "note", "arguments": []}),
    ("tools/call", {"name": 5}),
    ("tools/call", {}),
    ("ping", {}),
    ("server/discover", {}),
    ("nope", {}),
    ("resources/list", {}),
    ("resources/list", {"cursor": "unknown"}),
    ("resources/templates/list", {}),
    ("resources/templates/list", {"cursor": "unknown"}),
    ("resources/read", {"uri": "sample://board"}),
    ("resources/read", {"uri": "sample://still"}),
    ("resources/read", {"uri": "sample://busy"}),
    ("resources/read", {"uri": "sample://nope"}),
    ("resources/read", {"uri": "sample://page/second"}),
    ("resources/read", {"uri": "sample://page/%73econd"}),
    ("resources/read", {"uri": "sample://page/fourth"}),
    ("resources/read", {"uri": "sample://page/%ff"}),
    ("resources/read", {"uri": "sample://page/"}),
    ("resources/read", {"uri": ""}),
    ("resources/read", {"uri": 5}),
    ("resources/read", {}),
    ("resources/subscribe", {"uri": "sample://nope"}),
    ("resources/subscribe", {"uri": "sample://busy"}),
    ("resources/subscribe", {"uri": "sample://still"}),
    ("resources/subscribe", {"uri": "sample://still"}),
    ("resources/subscribe", {}),
    ("resources/unsubscribe", {"uri": "sample://still"}),
    ("resources/unsubscribe", {"uri": "sample://still"}),
    ("resources/unsubscribe", {"uri": "sample://nope"}),
    ("resources/unsubscribe", {"uri": None}),
    ("subscriptions/listen", {}),
    ("subscriptions/listen", {"notifications": None}),
    ("subscriptions/listen", {"notifications": []}),
    ("subscriptions/listen", {"notifications": {"toolsListChanged": 5}}),
    ("subscriptions/listen", {"notifications": {"resourceSubscriptions": "sample://board"}}),
    ("subscriptions/listen", {"notifications": {"resourceSubscriptions": [5]}}),
    ("prompts/list", {}),
    ("prompts/list", {"cursor": "unknown"}),
    ("prompts/get", {"name": "rest"}),
    ("prompts/get", {"name": "rest", "arguments": None}),
    ("prompts/get", {"name": "rest", "arguments": {"whom": "x"}}),
    ("prompts/get", {"name": "greet", "arguments": {"whom": "Ada"}}),
    ("prompts/get", {"name": "greet", "arguments": {"whom": "Ада \n", "language": "ru"}}),
    ("prompts/get", {"name": "greet", "arguments": {"language": "ru"}}),
    ("prompts/get", {"name": "greet", "arguments": {"whom": 5}}),
    ("prompts/get", {"name": "greet", "arguments": []}),
    ("prompts/get", {"name": "greet"}),
    ("prompts/get", {"name": "nope"}),
    ("prompts/get", {"name": None}),
    ("prompts/get", {}),
    *[
        ("completion/complete", {"ref": ref, "argument": argument})
        for ref in (
            {"type": "ref/prompt", "name": "greet"},
            {"type": "ref/prompt", "name": "nope"},
            {"type": "ref/prompt"},
            {"type": "ref/resource", "uri": "sample://page/{name}"},
            {"type": "ref/resource", "uri": "sample://board"},
            {"type": "ref/resource", "uri": "sample://page/first"},
            {"type": "ref/nope", "name": "greet"},
            None,
        )
        for argument in (
            {"name": "whom", "value": "a"},
            {"name": "language", "value": "é"},
            {"name": "language", "value": ""},
            {"name": "name", "value": ""},
            {"name": "name", "value": "SEC"},
            {"name": "name", "value": None},
            {"value": "a"},
            None,
        )
    ],
    (
        "completion/complete",
        {
            "ref": {"type": "ref/prompt", "name": "greet", "title": "Greet"},
            "argument": {"name": "language", "value": "f"},
            "context": {"arguments": {"whom": "Ada"}},
        },
    ),
    (
        "completion/complete",
        {
            "ref": {"type": "ref/prompt", "name": "greet"},
            "argument": {"name": "language", "value": "f"},
            "context": 5,
        },
    ),
    ("notifications/initialized", {}),
    ("tools/list", {"_meta": {"progressToken": 1.5}}),
    (
        "tools/call",
        {"name": "step", "arguments": {"steps": [1, 2.5]}, "_meta": {"progressToken": 0}},
    ),
    (
        "tools/call",
        {"name": "step", "arguments": {"steps": [1], "total": 2}, "_meta": {"progressToken": "t"}},
    ),
]

REQUESTS = [("tools/call", {"name": tool, "arguments": arguments}) for tool, arguments in CALLS]
REQUESTS += OTHERS


@pytest.mark.guarantee("G-SDK-1")
@pytest.mark.parametrize(("method", "params"), REQUESTS, ids=repr)
def test_legacy_requests_are_answered_as_the_sdk_answers_them(
    ours: Peer, sdk_legacy: Peer, method: str, params: Json
) -> None:
    message = request(next(_ids), method, **params)

    assert asked(ours, message) == asked(sdk_legacy, message)


@pytest.mark.guarantee("G-SDK-1")
@pytest.mark.parametrize(("method", "params"), REQUESTS, ids=repr)
def test_modern_requests_are_answered_as_the_sdk_answers_them(
    ours: Peer, sdk_modern: Peer, method: str, params: Json
) -> None:
    message = modern(next(_ids), method, **params)

    assert asked(ours, message) == asked(sdk_modern, message)


ENVELOPES: list[Json] = [
    {"protocolVersion": "2030-01-01"},
    {"protocolVersion": "2025-11-25"},
    {"protocolVersion": ""},
    {"protocolVersion": 5},
    {"clientCapabilities": 5},
    {"clientInfo": 4},
    {"clientInfo": {"name": "only"}},
    {"clientInfo": None},
    {"another": {"key": 1}},
]


@pytest.mark.parametrize("change", ENVELOPES, ids=repr)
@pytest.mark.parametrize("method", ["server/discover", "tools/list"])
def test_envelopes_are_judged_as_the_sdk_judges_them(
    ours: Peer, sdk_modern: Peer, method: str, change: Json
) -> None:
    meta = {f"io.modelcontextprotocol/{key}": value for key, value in change.items()}
    message = modern(next(_ids), method, _meta=meta)

    ours.send(message)
    sdk_modern.send(message)
    answers = [ours.receive(), sdk_modern.receive()]

    assert normal(answers[0]) == normal(answers[1])
    assert answers[0].get("error", {}).get("data") == answers[1].get("error", {}).get("data") or (
        answers[0]["error"]["code"] == -32602
    )


def test_modern_results_are_stamped_alike(ours: Peer, sdk_modern: Peer) -> None:
    message = modern(next(_ids), "resources/read", uri="sample://still")

    assert ours.ask(message)["result"] == sdk_modern.ask(message)["result"]


def test_no_news_of_lists_is_promised_since_they_do_not_change(ours: Peer) -> None:
    result = ours.ask(modern(next(_ids), "server/discover"))["result"]

    assert result["capabilities"] == {
        "tools": {"listChanged": False},
        "resources": {"subscribe": True, "listChanged": False},
        "prompts": {"listChanged": False},
        "completions": {},
    }


# ---------------------------------------------------------------------------- subscriptions


def received(peer: Peer, count: int) -> list[Json]:
    """Read so many messages: what answers and what notifies come in an order of their own."""
    messages = [peer.receive() for _ in range(count)]
    return sorted(messages, key=lambda message: str(message.get("id", "")))


def test_a_legacy_subscription_is_told_until_it_ends() -> None:
    said = []
    for command in (OURS, SDK):
        with started(command=command) as peer:
            peer.handshake()
            messages = asked(peer, request(1, "resources/subscribe", uri="sample://board"))
            messages += received(peer.send(call(2, "turn")), 2)
            messages += asked(peer, request(3, "resources/unsubscribe", uri="sample://board"))
            messages += asked(peer, call(4, "turn"))
            peer.close_input()
            said.append((messages, peer.rest(), peer.exit_status()))

    assert said[0] == said[1]
    messages, rest, _ = said[0]
    assert messages[1] == notification("notifications/resources/updated", uri="sample://board")
    assert rest == []


LISTENS: list[Json] = [
    {},
    {"resourceSubscriptions": []},
    {"resourceSubscriptions": None, "toolsListChanged": None},
    {"resourceSubscriptions": ["sample://board"]},
    {"resourceSubscriptions": ["sample://still", "sample://board"], "toolsListChanged": True},
    {"resourceSubscriptions": ["sample://nope", "sample://page/first"]},
    {"promptsListChanged": True, "resourcesListChanged": False, "unknown": [1]},
]


@pytest.mark.parametrize("wanted", LISTENS, ids=repr)
@pytest.mark.parametrize("request_id", [7, "seven"])
def test_a_request_to_listen_is_acknowledged_and_told_until_it_is_taken_back(
    wanted: Json, request_id: object
) -> None:
    told = "sample://board" in (wanted.get("resourceSubscriptions") or ())
    said = []
    for command in (OURS, SDK):
        with started(command=command) as peer:
            peer.send(modern(request_id, "subscriptions/listen", notifications=wanted))
            messages = [peer.receive()]
            turn = modern("turn", "tools/call", name="turn", arguments={})
            messages += received(peer.send(turn), 1 + told)
            peer.send(cancelled(request_id))
            messages += received(peer.send({**turn, "id": "again"}), 1)
            said.append(messages)

    assert said[0] == said[1]
    acknowledged = said[0][0]
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": request_id}
    assert [message["method"] for message in said[0] if "method" in message] == [
        "notifications/subscriptions/acknowledged",
        *(["notifications/resources/updated"] if told else []),
    ]


def test_too_many_subscriptions_are_refused_alike() -> None:
    codes = []
    for command in (OURS, SDK):
        with started(command=command) as peer:
            for index in range(100):
                peer.ask(modern(index, "subscriptions/listen", notifications={}))
            refused = peer.ask(modern(100, "subscriptions/listen", notifications={}))
            codes.append(refused["error"]["code"])

    assert codes == [-32603, -32603]


def test_versions_are_negotiated_as_the_sdk_does() -> None:
    requested = [*LEGACY_VERSIONS, "2026-07-28", "2098-06-30", "", 5, None]
    with started(command=OURS) as peer, started(command=SDK) as oracle:
        for version_asked in requested:
            message = initialize(next(_ids), version_asked)
            assert normal(peer.ask(message)) == normal(oracle.ask(message))


def test_initializing_twice_is_fine_for_both() -> None:
    for command in (OURS, SDK):
        with started(command=command) as peer:
            assert peer.handshake().handshake().ask(request(1, "ping"))["result"] == {}


# ---------------------------------------------------------------------------- generated requests

_texts = st.text(st.characters(codec="utf-8"), max_size=20)
_numbers = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
_scalars = st.none() | st.booleans() | _numbers | _texts
_json = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3)
)
_notes = st.fixed_dictionaries(
    {"text": _texts | _json},
    optional={
        "layer": st.sampled_from(["semantic", "episodic", "procedural"]) | _json,
        "title": _texts | _json,
        "tags": st.lists(_texts, max_size=6) | _json,
        "meta": st.dictionaries(_texts, _json, max_size=3) | _json,
        "limit": st.integers(-1, 60) | _json,
        "urgent": st.booleans() | _json,
    },
)


@pytest.mark.guarantee("G-SDK-1")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(arguments=_notes, is_modern=st.booleans())
def test_generated_calls_are_answered_as_the_sdk_answers_them(
    ours: Peer, sdk_legacy: Peer, sdk_modern: Peer, arguments: Json, *, is_modern: bool
) -> None:
    make, oracle = (modern, sdk_modern) if is_modern else (request, sdk_legacy)
    message = make(next(_ids), "tools/call", name="note", arguments=arguments)

    assert asked(ours, message) == asked(oracle, message)


# ---------------------------------------------------------------------------- the SDK's faults


class Fault(NamedTuple):
    """A line the SDK does not answer as it should, why that is wrong, and our answer."""

    name: str
    line: bytes
    code: int | None
    reason: str


FAULTS = (
    Fault("malformed", b'{"jsonrpc":\n', -32700, "dropped; the client waits for ever"),
    Fault("no message", b'{"id":1}\n', -32600, "dropped; JSON-RPC asks for an error"),
    Fault("batch", b"[]\n", -32600, "dropped; JSON-RPC asks for an error"),
    Fault("null id", b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n', -32600, "dropped"),
    Fault("fraction", b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}\n', -32600, "dropped"),
    Fault(
        "positional",
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}\n',
        -32602,
        "dropped; a request with an id is to be answered",
    ),
    Fault(
        "lone surrogate",
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call",'
        b'"params":{"name":"note","arguments":{"text":"\\ud800"}}}\n',
        None,
        "dropped; an emoji cut in half by a client is no reason to lose a note",
    ),
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_what_the_sdk_drops_we_answer(ours: Peer, fault: Fault) -> None:
    answer = ours.ask(fault.line)

    assert answer.get("error", {}).get("code") == fault.code


@pytest.mark.skipif(not version("mcp").startswith("2.3."), reason="known for mcp 2.3 only")
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_sdk_still_has_its_faults(sdk_legacy: Peer, fault: Fault) -> None:
    after = request(next(_ids), "ping")

    assert sdk_legacy.ask(fault.line, after)["id"] == after["id"]


@pytest.mark.skipif(not version("mcp").startswith("2.3."), reason="known for mcp 2.3 only")
def test_the_sdk_still_locks_a_connection_to_the_era_of_its_first_request(
    sdk_modern: Peer,
) -> None:
    assert sdk_modern.ask(initialize(next(_ids)))["error"]["code"] == -32022


def test_neither_answers_notifications_it_does_not_know(ours: Peer, sdk_legacy: Peer) -> None:
    after = request(next(_ids), "ping")
    unknown = [notification("notifications/unknown"), cancelled(10**6), notification("nope", x=1)]

    assert ours.ask(*unknown, after) == sdk_legacy.ask(*unknown, after)


def test_a_call_before_the_handshake_is_refused_alike() -> None:
    message = call(1, "note", text="x")

    answers: list[Any] = []
    for command in (OURS, SDK):
        with started(command=command) as peer:
            answers.append(normal(peer.ask(message)))
    assert answers[0] == answers[1]
    assert answers[0]["error"] == -32602
