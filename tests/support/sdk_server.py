"""The sample tools on the official SDK: `python -m tests.support.sdk_server`."""

import os
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types
import msgspec
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from server.errors import UseCaseError
from server.schema import convert, json_schema
from server.tool import Call, Tool
from tests.support import sample_tools

_TOOLS = {tool.name: tool for tool in sample_tools.TOOLS}


async def _list(
    _: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    if params is not None and params.cursor is not None:
        raise MCPError(code=types.INVALID_PARAMS, message="unknown cursor")
    return types.ListToolsResult(tools=[_described(tool) for tool in sample_tools.TOOLS])


def _described(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=json_schema(tool.args),
        output_schema=json_schema(tool.result),
        annotations=types.ToolAnnotations(
            read_only_hint=tool.read_only,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent,
            open_world_hint=False,
        ),
    )


async def _call(
    context: ServerRequestContext[Any], params: types.CallToolRequestParams
) -> types.CallToolResult:
    tool = _TOOLS.get(params.name)
    if tool is None:
        raise MCPError(code=types.INVALID_PARAMS, message="unknown tool")

    def report(done: float, total: float | None, text: str) -> None:
        anyio.from_thread.run(context.session.report_progress, done, total, text or None)

    client = context.session.client_params
    call = Call(actor_name=client.client_info.name if client else "", report=report)
    try:
        result = await anyio.to_thread.run_sync(
            lambda: tool.run(convert(params.arguments or {}, tool.args), call)
        )
    except UseCaseError as error:
        body: dict[str, Any] = {"code": error.code, "message": error.message}
        if error.details:
            body["details"] = error.details
        return _result({"error": body}, is_error=True)
    except BaseException:  # noqa: BLE001 - the sample tools fail in every way
        return _result({"error": {"code": "internal_error", "message": ""}}, is_error=True)
    return _result(msgspec.to_builtins(result), is_error=False)


def _result(content: dict[str, Any], *, is_error: bool) -> types.CallToolResult:
    text = msgspec.json.encode(content).decode()
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)],
        structured_content=content,
        is_error=is_error,
    )


async def _serve() -> None:
    hint = CacheHint(ttl_ms=300_000, scope="private")
    server: Server[Any] = Server(
        sample_tools.NAME,
        title=sample_tools.TITLE,
        version=sample_tools.VERSION,
        instructions=sample_tools.INSTRUCTIONS,
        on_list_tools=_list,
        on_call_tool=_call,
        cache_hints={"tools/list": hint, "server/discover": hint},
    )
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
    # What the tools left in a buffer must not follow the messages.
    os._exit(0)


if __name__ == "__main__":
    anyio.run(_serve)
