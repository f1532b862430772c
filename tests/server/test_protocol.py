"""The protocol without a transport: lines in, lines out, jobs run by hand."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from server.protocol import Connection, ServerInfo
from server.tool import Call, Tool
from tests.support import sample_tools
from tests.support.peer import Json, call, cancelled, initialize, modern, request


class Broken(Struct):
    value: Any


def broken(_: sample_tools.Nothing, __: Call) -> Broken:
    return Broken("\ud800")


def interrupted(_: sample_tools.Nothing, call: Call) -> Broken:
    call.cancel()
    raise KeyError("interrupted")


def tool(
    run: Callable[[Any, Call], Struct],
    *,
    args: type[Struct] = sample_tools.Nothing,
    description: str = "",
) -> Tool:
    return Tool(
        name=run.__name__,
        title="T",
        description=description,
        args=args,
        result=Broken,
        read_only=True,
        destructive=False,
        idempotent=True,
        run=run,
    )


def info(*tools: Tool, instructions: str = "") -> ServerInfo:
    return ServerInfo(
        name="n",
        title="t",
        version="1",
        instructions=instructions,
        tools=(*sample_tools.TOOLS, *tools),
    )


class Line:
    """A connection whose answers pile up in `sent` and whose log does in `logged`."""

    def __init__(self, *tools: Tool) -> None:
        self.sent: list[Json] = []
        self.logged: list[str] = []
        self.connection = Connection(
            info(*tools),
            write=lambda data: self.sent.append(json.loads(data)),
            log=self.logged.append,
        )

    def ask(self, message: Json) -> Json:
        job = self.connection.receive(json.dumps(message).encode())
        if job is not None:
            job.run()
        return self.sent[-1]

    def error(self, message: Json) -> Json:
        error: Json = self.ask(message)["result"]["structuredContent"]["error"]
        return error


@pytest.fixture
def line() -> Line:
    ready = Line(tool(broken), tool(interrupted))
    ready.ask(initialize(0))
    return ready


def test_only_what_exists_is_announced(line: Line) -> None:
    assert line.sent[-1]["result"]["capabilities"] == {"tools": {"listChanged": False}}


def test_the_list_of_tools_is_the_same_each_time(line: Line) -> None:
    first, second = line.ask(request(1, "tools/list")), line.ask(request(1, "tools/list"))

    assert first == second
    assert msgspec.json.encode(first) == msgspec.json.encode(second)


def test_a_result_without_a_json_form_is_an_error_that_is_logged(line: Line) -> None:
    error = line.error(call(1, "broken"))

    assert error["code"] == "internal_error"
    assert "UnicodeEncodeError" in line.logged[0]


def test_what_a_cancelled_tool_raises_is_no_news(line: Line) -> None:
    assert line.error(call(1, "interrupted"))["code"] == "cancelled"
    assert line.logged == []


def test_a_job_cancelled_before_it_starts_never_starts(line: Line) -> None:
    sent = len(line.sent)
    job = line.connection.receive(json.dumps(call(1, "crash")).encode())
    line.connection.receive(json.dumps(cancelled(1)).encode())
    assert job is not None

    job.run()

    assert line.sent[sent:] == []
    assert line.logged == []


def test_a_failing_method_is_an_internal_error_with_a_reference(line: Line) -> None:
    def fail(_: object) -> Json:
        raise ZeroDivisionError

    line.connection._methods = {
        name: msgspec.structs.replace(method, run=fail)
        for name, method in line.connection._methods.items()
    }

    answer = line.ask(request(1, "ping"))

    assert answer["error"]["code"] == -32603
    assert answer["error"]["message"].startswith("internal error (ref ")
    assert "ZeroDivisionError" in line.logged[0]


def test_a_handshake_that_is_refused_changes_nothing() -> None:
    line = Line()
    wrong: list[Json] = [{}, {"protocolVersion": "2025-11-25"}, {"protocolVersion": 5}]
    wrong.append({"protocolVersion": "2025-11-25", "capabilities": {}})
    wrong.append({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "n"}})

    codes = [line.ask(request(1, "initialize", **params))["error"]["code"] for params in wrong]

    assert codes == [-32602] * len(wrong)
    assert line.ask(request(2, "tools/list"))["error"]["code"] == -32602


def test_a_modern_client_may_stay_nameless(line: Line) -> None:
    nameless = modern(1, "tools/call", name="note", arguments={"text": "x"})
    del nameless["params"]["_meta"]["io.modelcontextprotocol/clientInfo"]

    assert "actor" not in line.ask(nameless)["result"]["structuredContent"]


def test_an_incomplete_envelope_is_told_what_it_lacks(line: Line) -> None:
    incomplete = modern(1, "tools/list")
    del incomplete["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]

    error = line.ask(incomplete)["error"]

    assert error["code"] == -32602
    assert "clientCapabilities" in error["message"]


def test_meta_that_is_no_object_is_refused(line: Line) -> None:
    assert line.ask(request(1, "tools/list", _meta=5))["error"]["code"] == -32602


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: info(instructions="x" * 2049),
        lambda: info(tool(broken), tool(broken)),
        lambda: info(tool(broken, description="x" * 2049)),
        lambda: info(tool(broken, args=sample_tools.Done)),
    ],
    ids=["long instructions", "same name twice", "long description", "unknown fields let in"],
)
def test_a_server_clients_would_misread_is_not_built(wrong: Callable[[], ServerInfo]) -> None:
    with pytest.raises(AssertionError):
        wrong()
