"""A method of the protocol and one request for it: what a connection and its methods share."""

from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec

from server import rpc
from server.errors import InvalidArgumentsError, NotFoundError, UseCaseError
from server.tool import Call

LIST_TTL_MS: Final = 300_000
"""How long a client may keep a list; the lists do not change while a server runs."""

META: Final = "io.modelcontextprotocol/"
"""What the protocol's own keys of `_meta` begin with."""

JsonObject = dict[str, Any]


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
        run: Makes the result; None leaves a slow request open, to be answered by
            `Channel.finish`. Raises rpc.RpcError or UseCaseError to refuse.
        legacy: Whether the method exists in the legacy era.
        modern: Whether it exists in the modern era.
        before_handshake: Whether a legacy client may use it before `initialize`.
        slow: Whether it runs as a job, beside the reading of further requests.
        ttl_ms: How long a modern client may keep the result, in milliseconds; None if results of
            this method say nothing of it.
        capability: The capability a server with this method announces, with its value.
    """

    run: Callable[[Request], JsonObject | None]
    legacy: bool = True
    modern: bool = True
    before_handshake: bool = False
    slow: bool = False
    ttl_ms: int | None = None
    capability: tuple[str, JsonObject] | None = None


class Channel(Protocol):
    """What a method may send beside its answer; each may be called from any thread."""

    def announce(self, method: str, params: JsonObject) -> None:
        """Send a notification that belongs to no request."""
        ...

    def notify(self, request: Request, method: str, params: JsonObject) -> None:
        """Send a notification that belongs to a request; dropped once that was answered."""
        ...

    def finish(self, request: Request, result: JsonObject) -> None:
        """Answer a request that was left open, or only forget it if its client took it back."""
        ...


def text_param(params: JsonObject, name: str) -> str:
    """Return a parameter that must be a string.

    Raises:
        rpc.RpcError: If it is not.
    """
    value = params.get(name)
    if not isinstance(value, str):
        raise rpc.RpcError(rpc.INVALID_PARAMS, f"`{name}` must be a string.")
    return value


def object_param(params: JsonObject, name: str) -> JsonObject:
    """Return a parameter that must be an object; an absent one is empty.

    Raises:
        rpc.RpcError: If it is not.
    """
    value = params.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise rpc.RpcError(rpc.INVALID_PARAMS, f"`{name}` must be an object.")
    return value


def require_first_page(request: Request) -> None:
    """Check that a request for a list asks for the one page there is.

    Raises:
        rpc.RpcError: If it has a cursor.
    """
    if request.params.get("cursor") is not None:
        raise rpc.RpcError(rpc.INVALID_PARAMS, "Unknown cursor: the list has one page.")


def refusal(error: UseCaseError, **facts: str) -> rpc.RpcError:
    """Say a use case's refusal as the protocol does where there is no result to say it in.

    Args:
        error: The refusal.
        facts: What else goes into the error's `data`, beside the code and the details.
    """
    known = isinstance(error, InvalidArgumentsError | NotFoundError)
    return rpc.RpcError(
        rpc.INVALID_PARAMS if known else rpc.INTERNAL_ERROR,
        error.message,
        data={**error.details, "code": error.code, **facts},
    )
