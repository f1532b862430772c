"""The methods over tools: `tools/list` and `tools/call`."""

from collections.abc import Callable

import msgspec

from server import rpc
from server.errors import CallCancelledError, UseCaseError
from server.method import (
    LIST_TTL_MS,
    JsonObject,
    Method,
    Request,
    object_param,
    require_first_page,
    text_param,
)
from server.tool import Tool
from server.tool_entry import entries_of


class ToolMethods:
    """Lists and calls the tools.

    Args:
        tools: The tools, in the order in which clients see them.
        crashed: Logs a failure nobody foresaw; returns what the client may know of it.
    """

    def __init__(self, tools: tuple[Tool, ...], crashed: Callable[[BaseException], str]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._crashed = crashed
        self._listed: msgspec.Raw | None = None

    def table(self) -> dict[str, Method]:
        """Return the methods by name."""
        return {
            "tools/list": Method(
                run=self._list, ttl_ms=LIST_TTL_MS, capability=("tools", {"listChanged": False})
            ),
            "tools/call": Method(run=self._call, slow=True),
        }

    def _list(self, request: Request) -> JsonObject:
        require_first_page(request)
        if self._listed is None:
            self._listed = entries_of(tuple(self._tools.values()))
        return {"tools": self._listed}

    def _call(self, request: Request) -> JsonObject:
        name = text_param(request.params, "name")
        arguments = object_param(request.params, "arguments")
        tool = self._tools.get(name)
        if tool is None:
            raise rpc.RpcError(rpc.INVALID_PARAMS, f"Unknown tool: {rpc.echo(name)}.")
        from server.schema import convert  # noqa: PLC0415 - the list of tools needs none of it

        try:
            result = tool.run(convert(arguments, tool.args), request.call)
            return _result(msgspec.json.encode(result), is_error=False)
        except UseCaseError as error:
            return _error(error.code, error.message, error.details)
        except BaseException as error:  # noqa: BLE001 - the model has to learn that it failed
            if request.call.cancelled:
                # What was interrupted says so in many ways; none of them is news.
                return _error(CallCancelledError.code, "The call was cancelled.", {})
            return _error("internal_error", self._crashed(error), {})


def _result(body: bytes, *, is_error: bool) -> JsonObject:
    """The same JSON twice: some clients show the model one of the two, some the other."""
    return {
        "content": [{"type": "text", "text": body.decode()}],
        "structuredContent": msgspec.Raw(body),
        "isError": is_error,
    }


def _error(code: str, message: str, details: JsonObject) -> JsonObject:
    error: JsonObject = {"code": code, "message": message}
    if details:
        error["details"] = details
    return _result(msgspec.json.encode({"error": error}), is_error=True)
