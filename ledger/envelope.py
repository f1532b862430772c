"""A line that carries its own digest: FORMAT, MANIFEST.json, segment headers and footers.

`{"<name>":<inner>,"d":"<64 hex>"}` and a newline, with d = SHA-256(0x01 || inner) over the bytes
as written. The line is exactly these parts, so none of its bytes is unprotected.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, TypeVar

import msgspec

T = TypeVar("T", bound=msgspec.Struct)

_DIGEST_OPEN = b',"d":"'
_CLOSE = b'"}\n'
_TAIL_BYTES = len(_DIGEST_OPEN) + 64 + len(_CLOSE)


class EnvelopeError(ValueError):
    """A line is not exactly what its digest says."""


def seal_line(name: bytes, value: msgspec.Struct) -> bytes:
    """Return `value` as a line named `name`, newline included."""
    inner = msgspec.json.encode(value)
    digest = sha256(b"\x01" + inner).hexdigest().encode()
    return b'{"' + name + b'":' + inner + _DIGEST_OPEN + digest + _CLOSE


def open_line(name: bytes, line: bytes, kind: type[T]) -> T:
    """Return the value of a line, newline included.

    Raises:
        EnvelopeError: the line is not exactly an intact one of that name and kind.
    """
    inner = open_inner(name, line)
    try:
        value = msgspec.json.decode(inner, type=kind)
    except msgspec.MsgspecError as error:
        raise EnvelopeError(f"{name.decode()}: {error}") from error
    if msgspec.json.encode(value) != inner:
        raise EnvelopeError(f"{name.decode()}: not in the form it is written in")
    return value


def open_loose(name: bytes, line: bytes) -> dict[str, Any]:
    """Return the value of an intact line whose fields may be those of a newer format.

    Raises:
        EnvelopeError: the line is not intact.
    """
    try:
        return msgspec.json.decode(open_inner(name, line), type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise EnvelopeError(f"{name.decode()}: {error}") from error


def open_inner(name: bytes, line: bytes) -> bytes:
    """Return the raw inner bytes of an intact line.

    Raises:
        EnvelopeError: framing or digest is wrong.
    """
    prefix = b'{"' + name + b'":'
    inner = line[len(prefix) : -_TAIL_BYTES]
    digest = sha256(b"\x01" + inner).hexdigest().encode()
    if line != prefix + inner + _DIGEST_OPEN + digest + _CLOSE:
        raise EnvelopeError(f"{name.decode()}: the line does not match its digest")
    return inner
