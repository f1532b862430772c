"""Cursors: where a page ended, as text that a client hands back without looking into it."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Annotated

import msgspec

from server.errors import InvalidArgumentsError

Number = Annotated[int, msgspec.Meta(ge=-(2**63 - 1), le=2**63 - 1)]
"""What a column of the tables holds, and its negative."""

Key = tuple[Number | float | str, ...]


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """The end of a page."""

    list_id: str
    """Digest of what was asked for: a cursor goes on with its own list only."""
    total: Number
    after: Key


_decode = msgspec.json.Decoder(Cursor).decode


def list_id(args: msgspec.Struct) -> str:
    """Return a digest of a list's arguments; page size and cursor are no part of what it is."""
    fields = msgspec.to_builtins(args)
    for name in ("limit", "cursor"):
        fields.pop(name, None)
    text = type(args).__name__.encode() + msgspec.json.encode(fields, order="sorted")
    return hashlib.sha256(text).hexdigest()[:16]


def encode_cursor(cursor: Cursor) -> str:
    """Return a cursor's text."""
    return base64.urlsafe_b64encode(msgspec.json.encode(cursor)).decode().rstrip("=")


def decode_cursor(text: str, args: msgspec.Struct, key: type[Key]) -> Cursor:
    """Return the cursor of a text.

    Args:
        text: what the client handed back.
        args: of the call.
        key: the type of the key in the order that the list has.

    Raises:
        InvalidArgumentsError: it is none, or one of another list.

    """
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        cursor = _decode(raw)
        is_other = cursor.list_id != list_id(args)
        if not is_other:
            msgspec.convert(cursor.after, key)
    except (binascii.Error, ValueError, UnicodeError) as error:
        raise InvalidArgumentsError(
            "`cursor` is no cursor; pass `next_cursor` of the page before, unchanged.",
            details={"field": "cursor"},
        ) from error
    if is_other:
        raise InvalidArgumentsError(
            "`cursor` belongs to another list; pass the same filters and order as for its page.",
            details={"field": "cursor"},
        )
    return cursor
