"""The Model Context Protocol over one connection, both eras of it, for every transport with lines.

Legacy (2024-11-05 to 2025-11-25): `initialize` opens the session and settles the version. Modern
(2026-07-28): each request says its version and its client in `params._meta`, and results say what
they are. Which era a request belongs to is read from the request itself, so clients may probe with
one and go on with the other on the same connection.

`Connection.receive` answers what is quick at once and hands back a `Job` for what is not. A request
gets at most one answer, and none after its cancellation was seen.
"""

import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from server import rpc
from server.errors import CallCancelledError, UseCaseError
from server.schema import convert, json_schema
from server.tool import Call, Tool

LEGACY_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Versions with a handshake, oldest first."""

MODERN_VERSIONS: Final = ("2026-07-28",)
"""Versions in which every request stands alone, oldest first."""

UNSUPPORTED_VERSION: Final = -32022

INSTRUCTIONS_CHARACTERS_MAX: Final = 2048
"""Some clients cut instructions and descriptions here."""

LIST_TTL_MS: Final = 300_000
"""How long a client may keep a list; the lists do not change while a server runs."""

_META: Final = "io.modelcontextprotocol/"
_META_VERSION: Final = _META + "protocolVersion"
_META_CAPABILITIES: Final = _META + "clientCapabilities"
_META_CLIENT: Final = _META + "clientInfo"
_META_SERVER: Final = _META + "serverInfo"

JsonObject = dict[str, Any]


class ServerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a server says of itself and what it offers.

    Attributes:
        name: Its name for machines.
        title: Its name for people.
        version: Its version.
        instructions: What it holds and when to use it; at most 2,048 characters.
        tools: The tools, in the order in which clients see them.
    """

    name: str
    title: str
    version: str
    instructions: str
    tools: tuple[Tool, ...]

    def __post_init__(self) -> None:
        """Refuse what clients would cut, or confuse."""
        assert len(self.instructions) <= INSTRUCTIONS_CHARACTERS_MAX
        assert len({tool.name for tool in self.tools}) == len(self.tools)
        for tool in self.tools:
            assert len(tool.description) <= INSTRUCTIONS_CHARACTERS_MAX, tool.name
            assert tool.args.__struct_config__.forbid_unknown_fields, tool.name


class Request(msgspec.Struct, eq=False):
    """One request from its arrival to its answer.

    Attributes:
        id: What to answer to.
        method: The method it asks for.
        params: Its parameters.
        meta: `params._meta`; empty if there is none.
        modern: Whether it belongs to the modern era.
        call: What the handler of a slow method is given.
        silenced: Whether its client took it back, so that it gets no answer.
        progress: The last progress that was sent.
    """

    id: rpc.RequestId
    method: "Method"
    params: JsonObject
    meta: JsonObject
    modern: bool
    call: Call
    silenced: bool = False
    progress: float = float("-inf")


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the table of methods.

    Attributes:
        run: Makes the result; raises rpc.RpcError to refuse.
        legacy: Whether the method exists in the legacy era.
        modern: Whether it exists in the modern era.
        before_handshake: Whether a legacy client may use it before `initialize`.
        slow: Whether it runs as a `Job`, beside the reading of further requests.
        cached: Whether a modern client may keep the result for LIST_TTL_MS.
        capability: The capability a server with this method announces, with its value.
    """

    run: Callable[[Request], JsonObject]
    legacy: bool = True
    modern: bool = True
    before_handshake: bool = False
    slow: bool = False
    cached: bool = False
    capability: tuple[str, JsonObject] | None = None


class Job(msgspec.Struct, frozen=True):
    """A slow request that waits to be run, on any thread.

    Attributes:
        run: Does the work and sends the answer; never raises.
    """

    run: Callable[[], None]


class Connection:
    """One client's connection. `receive` is for one thread at a time, the rest for any.

    Args:
        info: The server to be.
        write: Sends whole lines to the client; it is never called twice at once.
        log: Takes what an operator should read of a failure, as one text.
    """

    def __init__(
        self, info: ServerInfo, *, write: Callable[[bytes], None], log: Callable[[str], None]
    ) -> None:
        self._info = info
        self._write = write
        self._log = log
        self._tools = {tool.name: tool for tool in info.tools}
        self._identity: JsonObject = {
            "name": info.name,
            "title": info.title,
            "version": info.version,
        }
        self._methods = self._table()
        self._capabilities = dict(
            method.capability for method in self._methods.values() if method.capability
        )
        self._tool_list: msgspec.Raw | None = None
        self._handshaken = False
        self._client_name = ""
        self._running: dict[rpc.RequestId, Request] = {}
        # Writing comes first where both are held: an answer is sent, and its request forgotten, in
        # one step that no cancellation and no progress can come between.
        self._writing = threading.Lock()
        self._state = threading.Lock()

    def _table(self) -> Mapping[str, Method]:
        return {
            "initialize": Method(run=self._initialize, modern=False, before_handshake=True),
            "ping": Method(run=lambda _: {}, modern=False, before_handshake=True),
            "server/discover": Method(run=self._discover, legacy=False, cached=True),
            "tools/list": Method(
                run=self._list_tools, cached=True, capability=("tools", {"listChanged": False})
            ),
            "tools/call": Method(run=self._call_tool, slow=True),
        }

    # ------------------------------------------------------------------ messages

    def receive(self, line: bytes) -> Job | None:
        """Take one line from the client.

        Returns:
            A job if the answer takes work; None if everything is done.
        """
        try:
            message = rpc.parse(line)
        except rpc.RpcError as error:
            self._refuse(error.request_id, error)
            return None
        if message is None:
            return None
        if message.id is None:
            self._notified(message)
            return None
        request = self._accepted(message, message.id)
        if request is None:
            return None
        if not request.method.slow:
            self._send(self._answer(request))
            return None
        with self._state:
            self._running[request.id] = request
        return Job(lambda: self._run(request))

    def overlong(self, limit_bytes: int) -> None:
        """Answer a line that was too long to be read."""
        text = f"A line may have at most {limit_bytes} bytes."
        self._refuse(None, rpc.RpcError(rpc.INVALID_REQUEST, text))

    def cancel_all(self) -> None:
        """Take back every running call; what they still answer is sent."""
        with self._state:
            requests = list(self._running.values())
        for request in requests:
            request.call.cancel()

    def _notified(self, message: rpc.Message) -> None:
        """Act on a notification; those that mean nothing here are ignored, as JSON-RPC says."""
        if message.method != "notifications/cancelled":
            return
        request_id = message.params.get("requestId")
        if type(request_id) is not int and type(request_id) is not str:
            return
        with self._state:
            request = self._running.get(request_id)
            if request is None:
                return
            request.silenced = True
        request.call.cancel()

    def _accepted(self, message: rpc.Message, request_id: rpc.RequestId) -> Request | None:
        """Find out what is asked for; None if it was refused."""
        try:
            request = self._routed(message, request_id)
        except rpc.RpcError as error:
            self._refuse(request_id, error)
            return None
        if request_id in self._running:
            # Refused without the id: the one answer this id gets belongs to the first request.
            text = f"The id {rpc.echo(str(request_id))} belongs to a request that still runs."
            self._refuse(None, rpc.RpcError(rpc.INVALID_REQUEST, text))
            return None
        return request

    def _routed(self, message: rpc.Message, request_id: rpc.RequestId) -> Request:
        """Find a request's era and method.

        Raises:
            rpc.RpcError: If there is no such method, or it may not be used now.
        """
        meta = message.params.get("_meta", {})
        if type(meta) is not dict:
            raise rpc.RpcError(rpc.INVALID_PARAMS, "`params._meta` must be an object.")
        # `initialize` is the legacy handshake whatever envelope it comes in.
        modern = _META_VERSION in meta and message.method != "initialize"
        client_name = _envelope_client(meta) if modern else self._client_name
        method = self._methods.get(message.method)
        if method is None or not (method.modern if modern else method.legacy):
            name = rpc.echo(message.method)
            raise rpc.RpcError(rpc.METHOD_NOT_FOUND, "Method not found.", data=name)
        if not (modern or self._handshaken or method.before_handshake):
            raise rpc.RpcError(
                rpc.INVALID_PARAMS,
                "Send `initialize` first, or say the protocol version in `params._meta` "
                f'under "{_META_VERSION}".',
            )
        token = meta.get("progressToken")
        if token is not None and type(token) is not int and type(token) is not str:
            text = "`progressToken` must be a string or an integer."
            raise rpc.RpcError(rpc.INVALID_PARAMS, text)

        def report(done: float, total: float | None, text: str) -> None:
            self._report(request, done, total, text)

        call = Call(
            actor_name=client_name,
            repaired=message.repaired,
            report=None if token is None else report,
        )
        request = Request(request_id, method, message.params, meta, modern, call)
        return request

    def _answer(self, request: Request) -> bytes:
        """Run a request's method and encode what comes of it. Never raises."""
        try:
            result = request.method.run(request)
            if request.modern:
                result["resultType"] = "complete"
                result["_meta"] = {_META_SERVER: self._identity}
                if request.method.cached:
                    result["ttlMs"] = LIST_TTL_MS
                    result["cacheScope"] = "private"
            return rpc.result_line(request.id, result)
        except rpc.RpcError as error:
            return rpc.error_line(request.id, error)
        except BaseException as error:  # noqa: BLE001 - every request is answered
            text = self._crashed(error)
            return rpc.error_line(request.id, rpc.RpcError(rpc.INTERNAL_ERROR, text))

    def _refuse(self, request_id: rpc.RequestId | None, error: rpc.RpcError) -> None:
        self._send(rpc.error_line(request_id, error))

    def _send(self, line: bytes) -> None:
        with self._writing:
            self._write(line)

    # ------------------------------------------------------------------ slow requests

    def _run(self, request: Request) -> None:
        line = b"" if request.silenced else self._answer(request)
        with self._writing:
            with self._state:
                del self._running[request.id]
            if not request.silenced:
                self._write(line)

    def _report(self, request: Request, done: float, total: float | None, text: str) -> None:
        params: JsonObject = {"progressToken": request.meta["progressToken"], "progress": done}
        if total is not None:
            params["total"] = total
        if text:
            params["message"] = text
        line = rpc.notification_line("notifications/progress", params)
        with self._writing:
            with self._state:
                runs = self._running.get(request.id) is request and not request.silenced
            # Asked this way round, a progress that is not a number is not sent either.
            if runs and done > request.progress:
                request.progress = done
                self._write(line)

    def _crashed(self, error: BaseException) -> str:
        """Log a failure nobody foresaw; returns what the client may know of it."""
        import traceback  # noqa: PLC0415 - only a failure pays for it

        reference = os.urandom(4).hex().upper()
        trace = "".join(traceback.format_exception(error))
        self._log(f"internal error (ref {reference})\n{trace}")
        return f"internal error (ref {reference})"

    # ------------------------------------------------------------------ methods

    def _initialize(self, request: Request) -> JsonObject:
        params = request.params
        version = params.get("protocolVersion")
        client = params.get("clientInfo")
        if not isinstance(version, str):
            raise rpc.RpcError(rpc.INVALID_PARAMS, "`protocolVersion` must be a string.")
        if not isinstance(params.get("capabilities"), dict):
            raise rpc.RpcError(rpc.INVALID_PARAMS, "`capabilities` must be an object.")
        self._client_name = _client_name(client)
        self._handshaken = True
        return {
            "protocolVersion": version if version in LEGACY_VERSIONS else LEGACY_VERSIONS[-1],
            "capabilities": self._capabilities,
            "serverInfo": self._identity,
            "instructions": self._info.instructions,
        }

    def _discover(self, _: Request) -> JsonObject:
        return {
            "supportedVersions": list(MODERN_VERSIONS),
            "capabilities": self._capabilities,
            "instructions": self._info.instructions,
        }

    def _list_tools(self, request: Request) -> JsonObject:
        if request.params.get("cursor") is not None:
            raise rpc.RpcError(rpc.INVALID_PARAMS, "Unknown cursor: the list has one page.")
        if self._tool_list is None:
            listed = [_tool_entry(tool) for tool in self._info.tools]
            self._tool_list = msgspec.Raw(msgspec.json.encode(listed))
        return {"tools": self._tool_list}

    def _call_tool(self, request: Request) -> JsonObject:
        name = request.params.get("name")
        arguments = request.params.get("arguments")
        if not isinstance(name, str):
            raise rpc.RpcError(rpc.INVALID_PARAMS, "`name` must be a string.")
        if arguments is None:
            arguments = {}
        elif not isinstance(arguments, dict):
            raise rpc.RpcError(rpc.INVALID_PARAMS, "`arguments` must be an object.")
        tool = self._tools.get(name)
        if tool is None:
            raise rpc.RpcError(rpc.INVALID_PARAMS, f"Unknown tool: {rpc.echo(name)}.")
        try:
            result = tool.run(convert(arguments, tool.args), request.call)
            return _tool_result(msgspec.json.encode(result), is_error=False)
        except UseCaseError as error:
            return _tool_error(error.code, error.message, error.details)
        except BaseException as error:  # noqa: BLE001 - the model has to learn that it failed
            if request.call.cancelled:
                # What was interrupted says so in many ways; none of them is news.
                return _tool_error(CallCancelledError.code, "The call was cancelled.", {})
            return _tool_error("internal_error", self._crashed(error), {})


# ---------------------------------------------------------------------------- pieces


def _envelope_client(meta: JsonObject) -> str:
    """Check a modern request's envelope; returns the client's name, empty if it gave none.

    Raises:
        rpc.RpcError: If the envelope is incomplete or names a version we do not speak.
    """
    version = meta[_META_VERSION]
    if _META_CAPABILITIES not in meta:
        raise rpc.RpcError(rpc.INVALID_PARAMS, f'`params._meta` lacks "{_META_CAPABILITIES}".')
    if not isinstance(version, str):
        raise rpc.RpcError(rpc.INVALID_PARAMS, f'"{_META_VERSION}" must be a string.')
    if version not in MODERN_VERSIONS:
        raise rpc.RpcError(
            UNSUPPORTED_VERSION,
            "Unsupported protocol version.",
            data={"supported": list(MODERN_VERSIONS), "requested": rpc.echo(version)},
        )
    if not isinstance(meta[_META_CAPABILITIES], dict):
        raise rpc.RpcError(rpc.INVALID_PARAMS, f'"{_META_CAPABILITIES}" must be an object.')
    client = meta.get(_META_CLIENT)
    return "" if client is None else _client_name(client)


def _client_name(client: object) -> str:
    if isinstance(client, dict):
        name = client.get("name")
        if isinstance(name, str) and isinstance(client.get("version"), str):
            return name
    raise rpc.RpcError(rpc.INVALID_PARAMS, "`clientInfo` must have a `name` and a `version`.")


def _tool_entry(tool: Tool) -> JsonObject:
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": json_schema(tool.args),
        "outputSchema": json_schema(tool.result),
        "annotations": {
            "readOnlyHint": tool.read_only,
            "destructiveHint": tool.destructive,
            "idempotentHint": tool.idempotent,
            "openWorldHint": False,
        },
    }


def _tool_result(body: bytes, *, is_error: bool) -> JsonObject:
    """The same JSON twice: some clients show the model one of the two, some the other."""
    return {
        "content": [{"type": "text", "text": body.decode()}],
        "structuredContent": msgspec.Raw(body),
        "isError": is_error,
    }


def _tool_error(code: str, message: str, details: JsonObject) -> JsonObject:
    error: JsonObject = {"code": code, "message": message}
    if details:
        error["details"] = details
    return _tool_result(msgspec.json.encode({"error": error}), is_error=True)
