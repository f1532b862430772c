"""The official SDK's clients, which check every message against the protocol, drive our server."""

import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal

import anyio
import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.client.session import MessageHandlerFnT
from mcp.client.stdio import StdioServerParameters
from mcp.client.subscriptions import ResourceUpdated
from mcp.shared.exceptions import MCPError

from tests.support import sample_resources, sample_tools
from tests.support.peer import HANG_SECONDS, OURS, ROOT

Mode = Literal["legacy", "auto", "2026-07-28"]
MODES: tuple[Mode, ...] = ("legacy", "auto", "2026-07-28")

each_mode = pytest.mark.parametrize("mode", MODES)


def in_session(
    mode: Mode,
    work: Callable[[Client], Awaitable[None]],
    on_message: MessageHandlerFnT | None = None,
) -> None:
    async def run() -> None:
        command, *arguments = OURS
        server = StdioServerParameters(command=command, args=arguments, cwd=ROOT)
        with anyio.fail_after(HANG_SECONDS):
            async with Client(server, mode=mode, message_handler=on_message) as client:
                await work(client)

    anyio.run(run)


@each_mode
def test_tools_are_listed_in_our_order_with_all_hints(mode: Mode) -> None:
    async def work(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == [
            *(tool.name for tool in sample_tools.TOOLS),
            "turn",
        ]
        for tool in tools:
            assert tool.annotations is not None
            assert None not in tool.annotations.model_dump(exclude={"title"}).values()

    in_session(mode, work)


@each_mode
def test_a_result_fits_its_schema_and_says_the_same_twice(mode: Mode) -> None:
    async def work(client: Client) -> None:
        result = await client.call_tool("note", {"text": "é", "limit": "7"})
        assert not result.is_error
        assert result.structured_content is not None
        assert result.structured_content["note"]["limit"] == 7
        (content,) = result.content
        assert content.type == "text"
        assert json.loads(content.text) == result.structured_content

    in_session(mode, work)


@each_mode
def test_a_refusal_is_a_result_the_model_can_read(mode: Mode) -> None:
    async def work(client: Client) -> None:
        result = await client.call_tool("note", {"text": "x", "limit": 99})
        assert result.is_error
        assert result.structured_content is not None
        assert result.structured_content["error"]["details"]["field"] == "limit"

    in_session(mode, work)


@each_mode
def test_an_unknown_tool_is_a_protocol_error(mode: Mode) -> None:
    async def work(client: Client) -> None:
        with pytest.raises(MCPError) as refused:
            await client.call_tool("nope", {})
        assert refused.value.error.code == -32602

    in_session(mode, work)


@each_mode
def test_progress_arrives(mode: Mode) -> None:
    async def work(client: Client) -> None:
        steps: list[float] = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            assert (total, message) == (None, f"at {progress}")
            steps.append(progress)

        await client.call_tool("step", {"steps": [1, 2, 2, 3]}, progress_callback=note)
        assert steps == [1, 2, 3]

    in_session(mode, work)


@each_mode
def test_calls_overtake_each_other_and_a_cancelled_one_is_told(mode: Mode, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    async def work(client: Client) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "obey", {"gate": str(gate)})
            opened = await anyio.to_thread.run_sync(gate.open)
            assert not (await client.call_tool("note", {"text": "meanwhile"})).is_error
            group.cancel_scope.cancel()
        with opened:
            assert await anyio.to_thread.run_sync(opened.read) == "cancelled"
        assert not (await client.call_tool("note", {"text": "after"})).is_error

    in_session(mode, work)


@each_mode
def test_instructions_and_identity_arrive(mode: Mode) -> None:
    async def work(client: Client) -> None:
        await client.list_tools()
        if mode != "2026-07-28":  # a pinned version asks the server nothing
            assert client.instructions == sample_tools.INSTRUCTIONS
            assert client.server_info is not None
            assert client.server_info.version == sample_tools.VERSION

    in_session(mode, work)


@each_mode
def test_resources_are_listed_and_read(mode: Mode) -> None:
    async def work(client: Client) -> None:
        listed = (await client.list_resources()).resources
        assert [resource.uri for resource in listed] == [
            resource.uri for resource in sample_resources.RESOURCES
        ]
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "sample://page/{name}"
        (content,) = (await client.read_resource("sample://page/second")).contents
        assert isinstance(content, types.TextResourceContents)
        assert (content.mime_type, content.text) == ("text/html", "<second>")

    in_session(mode, work)


@each_mode
def test_a_missing_resource_is_a_protocol_error_that_names_it(mode: Mode) -> None:
    async def work(client: Client) -> None:
        with pytest.raises(MCPError) as refused:
            await client.read_resource("sample://nope")
        assert refused.value.error.code == -32602
        assert refused.value.error.data == {"uri": "sample://nope"}

    in_session(mode, work)


@each_mode
def test_prompts_are_listed_written_and_completed(mode: Mode) -> None:
    async def work(client: Client) -> None:
        greet, rest = (await client.list_prompts()).prompts
        assert greet.arguments is not None
        assert [argument.required for argument in greet.arguments] == [True, False]
        assert rest.arguments == []
        written = await client.get_prompt("greet", {"whom": "Ada"})
        (message,) = written.messages
        assert isinstance(message.content, types.TextContent)
        assert message.content.text == "Greet Ada in any language."
        ref = types.PromptReference(name="greet")
        found = await client.complete(ref, {"name": "language", "value": "f"}, {"whom": "Ada"})
        assert (found.completion.values, found.completion.total, found.completion.has_more) == (
            ["fa", "fb", "fc"],
            5_000,
            True,
        )
        page = types.ResourceTemplateReference(uri="sample://page/{name}")
        found = await client.complete(page, {"name": "name", "value": "S"})
        assert found.completion.values == ["second"]

    in_session(mode, work)


@pytest.mark.filterwarnings("ignore:resources/:mcp.MCPDeprecationWarning")
def test_a_legacy_subscriber_is_told() -> None:
    told = anyio.Event()

    async def on_message(message: object) -> None:
        assert isinstance(message, types.ResourceUpdatedNotification)
        assert message.params.uri == "sample://board"
        told.set()

    async def work(client: Client) -> None:
        await client.subscribe_resource("sample://board")
        await client.call_tool("turn", {})
        await told.wait()
        await client.unsubscribe_resource("sample://board")

    in_session("legacy", work, on_message)


@pytest.mark.guarantee("G-NEWS-1")
@pytest.mark.parametrize("mode", ["auto", "2026-07-28"])
def test_a_modern_listener_is_told_and_may_listen_again(mode: Mode) -> None:
    async def work(client: Client) -> None:
        for _ in range(2):
            wanted = ["sample://board", "sample://nope"]
            async with client.listen(resource_subscriptions=wanted) as news:
                assert news.honored.resource_subscriptions == ["sample://board"]
                await client.call_tool("turn", {})
                assert await anext(news) == ResourceUpdated(uri="sample://board")

    in_session(mode, work)


def test_the_client_of_the_1x_sdk_works() -> None:
    python = os.environ.get("MNEMOLOG_TEST_SDK1_PYTHON")
    if not python:
        pytest.skip("MNEMOLOG_TEST_SDK1_PYTHON names no interpreter with mcp 1.x")
    script = ROOT / "tests" / "support" / "sdk1_client.py"

    done = subprocess.run(
        [python, script, sys.executable, ROOT],
        stdout=subprocess.PIPE,
        check=True,
        timeout=HANG_SECONDS,
    )

    saw = json.loads(done.stdout)
    assert saw["noted"]["actor"] == "mcp"
    assert saw["noted"]["note"]["text"] == "from 1.x"
    first = ("version", "instructions", "tools", "refused", "steps")
    assert {key: saw[key] for key in first} == {
        "version": "2025-11-25",
        "instructions": sample_tools.INSTRUCTIONS,
        "tools": [*(tool.name for tool in sample_tools.TOOLS), "turn"],
        "refused": True,
        "steps": [[1, None, "at 1.0"], [2, None, "at 2.0"]],
    }
    assert {key: saw[key] for key in saw.keys() - {*first, "noted"}} == {
        "resources": [resource.uri for resource in sample_resources.RESOURCES],
        "templates": ["sample://page/{name}"],
        "read": "<second>",
        "prompts": ["greet", "rest"],
        "written": "Greet Ada in any language.",
        "completed": ["fa", "fb", "fc"],
        "updated": ["sample://board"],
    }
