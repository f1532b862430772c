"""JSON-RPC 2.0 on lines: one line of bytes to a `Message`, and answers back to lines.

Helpful where nothing has to be guessed: text that is not Unicode (a lone surrogate, bytes that are
not UTF-8) is replaced by U+FFFD and the message marked `repaired`.
"""

import re
from typing import Any, Final, NoReturn

import msgspec

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603

_ECHO_CHARACTERS_MAX: Final = 64
_SURROGATE: Final = re.compile("[\ud800-\udfff]")

RequestId = int | str
"""What tells requests apart. It is sent back as it came: 1 and "1" are two ids."""


class RpcError(Exception):
    """A request that gets an error for an answer.

    Attributes:
        code: The JSON-RPC error code.
        message: What is wrong, for whoever wrote the client.
        data: More, as JSON-compatible data; None for nothing.
        request_id: The id to answer to; None if none could be read.
    """

    def __init__(
        self, code: int, message: str, *, data: object = None, request_id: RequestId | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.request_id = request_id


class Message(msgspec.Struct, frozen=True):
    """A request, or a notification if there is no id.

    Attributes:
        method: Its method, known or not.
        params: Its parameters; empty if there are none.
        id: The id to answer to; None for a notification.
        repaired: Whether text in it was replaced because it was not Unicode.
    """

    method: str
    params: dict[str, Any]
    id: RequestId | None = None
    repaired: bool = False


_encoder = msgspec.json.Encoder()
_decode = msgspec.json.Decoder().decode


def parse(line: bytes) -> Message | None:
    """Read one line.

    Returns:
        The message, or None if it asks for nothing: it is a response.

    Raises:
        RpcError: PARSE_ERROR if the line is not JSON, INVALID_REQUEST if it is not a JSON-RPC
            message, INVALID_PARAMS if its parameters are not an object.
    """
    fields, repaired = _decoded(line)
    if type(fields) is not dict:
        raise RpcError(INVALID_REQUEST, "A message is one JSON object; batches are not supported.")
    request_id = fields.get("id")
    if type(request_id) is not int and type(request_id) is not str:
        request_id = None
    method = fields.get("method")
    if fields.get("jsonrpc") != "2.0":
        text = 'A message must say "jsonrpc": "2.0".'
        raise RpcError(INVALID_REQUEST, text, request_id=request_id)
    if type(method) is not str:
        if method is None and ("result" in fields or "error" in fields):
            return None
        raise RpcError(INVALID_REQUEST, "`method` must be a string.", request_id=request_id)
    if request_id is None and "id" in fields:
        raise RpcError(INVALID_REQUEST, "`id` must be a string or an integer.")
    params = fields.get("params")
    if params is None:
        return Message(method, {}, request_id, repaired)
    if type(params) is dict:
        return Message(method, params, request_id, repaired)
    if request_id is None:
        return None
    raise RpcError(INVALID_PARAMS, "`params` must be an object.", request_id=request_id)


def result_line(request_id: RequestId, result: object) -> bytes:
    """Encode the answer to a request, newline included.

    Raises:
        TypeError: If the result holds something that has no JSON form.
        UnicodeEncodeError: If it holds text that is not Unicode.
    """
    return _encoder.encode({"jsonrpc": "2.0", "id": request_id, "result": result}) + b"\n"


def error_line(request_id: RequestId | None, error: RpcError) -> bytes:
    """Encode an error for an answer, newline included."""
    body: dict[str, object] = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    return _encoder.encode({"jsonrpc": "2.0", "id": request_id, "error": body}) + b"\n"


def notification_line(method: str, params: dict[str, Any]) -> bytes:
    """Encode a notification to the client, newline included.

    Raises:
        TypeError: If the parameters hold something that has no JSON form.
        UnicodeEncodeError: If they hold text that is not Unicode.
    """
    return _encoder.encode({"jsonrpc": "2.0", "method": method, "params": params}) + b"\n"


def echo(text: str) -> str:
    """Shorten a name a client sent to what an error message may repeat of it."""
    if len(text) <= _ECHO_CHARACTERS_MAX:
        return text
    return f"{text[:_ECHO_CHARACTERS_MAX]}…"


def _decoded(line: bytes) -> tuple[Any, bool]:
    try:
        return _decode(line), False
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return _decode_repaired(line), True


def _decode_repaired(line: bytes) -> object:
    # The standard library reads lone surrogates, which msgspec rightly refuses. It is loaded only
    # here because almost no session ever needs it.
    import json  # noqa: PLC0415 - only a broken line pays for it

    try:
        text = line.decode("utf-8", "replace")
        fields = json.loads(text, parse_constant=_refuse_number, parse_float=_finite)
        return _scrub(fields)
    except (ValueError, RecursionError):
        raise RpcError(PARSE_ERROR, "The line is not valid JSON.") from None


def _refuse_number(literal: str) -> NoReturn:
    raise ValueError(literal)


def _finite(literal: str) -> float:
    number = float(literal)
    if number - number != 0:
        raise ValueError(literal)
    return number


def _scrub(value: object) -> object:
    match value:
        case str():
            return _SURROGATE.sub("\ufffd", value)
        case list():
            return [_scrub(item) for item in value]
        case dict():
            return {_scrub(key): _scrub(item) for key, item in value.items()}
        case _:
            return value
