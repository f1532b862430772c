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
from typing import Final

import msgspec

from server import rpc
from server.errors import UseCaseError
from server.method import LIST_TTL_MS, META, JsonObject, Method, Request, refusal
from server.prompt import Prompt
from server.prompt_methods import CompletionMethods, PromptMethods
from server.resource import Resource, ResourceTemplate
from server.resource_methods import ResourceMethods
from server.tool import Call, Tool
from server.tool_methods import ToolMethods
from server.watcher import Watcher

LEGACY_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Versions with a handshake, oldest first."""

MODERN_VERSIONS: Final = ("2026-07-28",)
"""Versions in which every request stands alone, oldest first."""

UNSUPPORTED_VERSION: Final = -32022

INSTRUCTIONS_CHARACTERS_MAX: Final = 2048
"""Some clients cut instructions and descriptions here."""

_META_VERSION: Final = META + "protocolVersion"
_META_CAPABILITIES: Final = META + "clientCapabilities"
_META_CLIENT: Final = META + "clientInfo"
_META_SERVER: Final = META + "serverInfo"


class ServerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a server says of itself and what it offers.

    Attributes:
        name: Its name for machines.
        title: Its name for people.
        version: Its version.
        instructions: What it holds and when to use it; at most 2,048 characters.
        tools: The tools, in the order in which clients see them.
        resources: The resources, likewise; without any and without templates there are no methods
            for them.
        templates: The templates of resources, likewise.
        prompts: The prompts, likewise.
    """

    name: str
    title: str
    version: str
    instructions: str
    tools: tuple[Tool, ...]
    resources: tuple[Resource, ...] = ()
    templates: tuple[ResourceTemplate, ...] = ()
    prompts: tuple[Prompt, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what clients would cut, or confuse."""
        assert len(self.instructions) <= INSTRUCTIONS_CHARACTERS_MAX
        assert len({tool.name for tool in self.tools}) == len(self.tools)
        assert len({each.uri for each in self.resources}) == len(self.resources)
        assert len({each.prefix for each in self.templates}) == len(self.templates)
        assert len({each.name for each in self.prompts}) == len(self.prompts)
        for tool in self.tools:
            assert len(tool.description) <= INSTRUCTIONS_CHARACTERS_MAX, tool.name
            assert tool.args.__struct_config__.forbid_unknown_fields, tool.name


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
        watcher: Looks for changes of what clients subscribe to; without one they cannot subscribe.
        log_debug: Takes a line about each request; None to have none.
    """

    def __init__(
        self,
        info: ServerInfo,
        *,
        write: Callable[[bytes], None],
        log: Callable[[str], None],
        watcher: Watcher | None = None,
        log_debug: Callable[[str], None] | None = None,
    ) -> None:
        self._info = info
        self._write = write
        self._log = log
        self._log_debug = log_debug
        self._identity: JsonObject = {
            "name": info.name,
            "title": info.title,
            "version": info.version,
        }
        self._methods = self._table(watcher)
        self._capabilities = dict(
            method.capability for method in self._methods.values() if method.capability
        )
        self._handshaken = False
        self._client_name = ""
        self._running: dict[rpc.RequestId, Request] = {}
        # Writing comes first where both are held: an answer is sent, and its request forgotten, in
        # one step that no cancellation and no progress can come between.
        self._writing = threading.Lock()
        self._state = threading.Lock()

    def _table(self, watcher: Watcher | None) -> Mapping[str, Method]:
        info = self._info
        methods = {
            "initialize": Method(run=self._initialize, modern=False, before_handshake=True),
            "ping": Method(run=lambda _: {}, modern=False, before_handshake=True),
            "server/discover": Method(run=self._discover, legacy=False, ttl_ms=LIST_TTL_MS),
        }
        methods |= ToolMethods(info.tools, self._crashed).table()
        if info.resources or info.templates:
            methods |= ResourceMethods(
                info.resources, info.templates, watcher=watcher, channel=self
            ).table()
        if info.prompts:
            methods |= PromptMethods(info.prompts).table()
        if info.prompts or info.templates:
            methods |= CompletionMethods(info.prompts, info.resources, info.templates).table()
        if self._log_debug is not None:
            from server.request_log import logged  # noqa: PLC0415 - most servers log no requests

            return logged(methods, {tool.name for tool in info.tools}, self._log_debug)
        return methods

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
            answer = self._answer(request)
            assert answer is not None, "only a slow request may stay open"
            self._send(answer)
            return None
        with self._state:
            self._running[request.id] = request
        return Job(lambda: self._run(request))

    def overlong(self, limit_bytes: int) -> None:
        """Answer a line that was too long to be read."""
        text = f"A line may have at most {limit_bytes} bytes."
        self._refuse(None, rpc.RpcError(rpc.INVALID_REQUEST, text))

    def cancel_all(self) -> None:
        """Take back every running call and open request; what they still answer is sent."""
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

    def _answer(self, request: Request) -> bytes | None:
        """Run a request's method and encode what comes of it; None if it stays open."""
        try:
            result = request.method.run(request)
            return None if result is None else self._result_line(request, result)
        except rpc.RpcError as error:
            return rpc.error_line(request.id, error)
        except UseCaseError as error:
            return rpc.error_line(request.id, refusal(error))
        except BaseException as error:  # noqa: BLE001 - every request is answered
            text = self._crashed(error)
            return rpc.error_line(request.id, rpc.RpcError(rpc.INTERNAL_ERROR, text))

    def _result_line(self, request: Request, result: JsonObject) -> bytes:
        if request.modern:
            result["resultType"] = "complete"
            result["_meta"] = {_META_SERVER: self._identity, **result.get("_meta", {})}
            if request.method.ttl_ms is not None:
                result["ttlMs"] = request.method.ttl_ms
                result["cacheScope"] = "private"
        return rpc.result_line(request.id, result)

    def _refuse(self, request_id: rpc.RequestId | None, error: rpc.RpcError) -> None:
        if self._log_debug is not None:
            self._log_debug(f"mnemolog: a message was refused: error {error.code}")
        self._send(rpc.error_line(request_id, error))

    def _send(self, line: bytes) -> None:
        with self._writing:
            self._write(line)

    # ------------------------------------------------------------------ slow requests

    def announce(self, method: str, params: JsonObject) -> None:
        """Send a notification that belongs to no request."""
        self._send(rpc.notification_line(method, params))

    def notify(self, request: Request, method: str, params: JsonObject) -> None:
        """Send a notification that belongs to a request; dropped once that was answered."""
        line = rpc.notification_line(method, params)
        with self._writing:
            if self._runs(request):
                self._write(line)

    def finish(self, request: Request, result: JsonObject) -> None:
        """Answer a request that was left open, or only forget it if its client took it back."""
        self._finish(request, self._result_line(request, result))

    def _run(self, request: Request) -> None:
        line = b"" if request.silenced else self._answer(request)
        if line is not None:
            self._finish(request, line)

    def _finish(self, request: Request, line: bytes) -> None:
        """Send a request's answer unless it had one, or its client took it back."""
        with self._state:
            if request.silenced:
                # Not to wait for the output: whoever takes a request back reads the input.
                self._forget(request)
                return
        with self._writing:
            with self._state:
                runs = self._forget(request)
            if runs and not request.silenced:
                self._write(line)

    def _forget(self, request: Request) -> bool:
        """Say whether a request was unanswered, which it is no more; the caller has the state."""
        if self._running.get(request.id) is not request:
            return False
        del self._running[request.id]
        return True

    def _runs(self, request: Request) -> bool:
        with self._state:
            return self._running.get(request.id) is request and not request.silenced

    def _report(self, request: Request, done: float, total: float | None, text: str) -> None:
        params: JsonObject = {"progressToken": request.meta["progressToken"], "progress": done}
        if total is not None:
            params["total"] = total
        if text:
            params["message"] = text
        line = rpc.notification_line("notifications/progress", params)
        with self._writing:
            # Asked this way round, a progress that is not a number is not sent either.
            if self._runs(request) and done > request.progress:
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
