"""A request: the arguments of a write, and what makes two of them the same."""

from __future__ import annotations

import msgspec

from server.commands import (
    AddArgs,
    AliasArgs,
    AppendArgs,
    DeleteArgs,
    DeleteManyArgs,
    HealthArgs,
    InternalArgs,
    PatchArgs,
    SessionEndArgs,
    SessionStartArgs,
    UndoArgs,
    UpdateArgs,
)
from server.redaction_args import RedactArgs

WriteArgs = (
    AddArgs
    | UpdateArgs
    | DeleteArgs
    | DeleteManyArgs
    | PatchArgs
    | AppendArgs
    | UndoArgs
    | SessionStartArgs
    | SessionEndArgs
    | AliasArgs
    | HealthArgs
    | RedactArgs
    | InternalArgs
)
"""The arguments of what changes the store."""

_KINDS: dict[type[WriteArgs], bytes] = {
    AddArgs: b"add ",
    UpdateArgs: b"update ",
    PatchArgs: b"patch ",
    AppendArgs: b"append ",
    DeleteArgs: b"delete ",
    DeleteManyArgs: b"delete_many ",
    UndoArgs: b"undo ",
    SessionStartArgs: b"session_start ",
    SessionEndArgs: b"session_end ",
    AliasArgs: b"alias ",
    HealthArgs: b"health ",
    RedactArgs: b"redact ",
    InternalArgs: b"internal ",
}


def request_digest_input(args: WriteArgs) -> bytes:
    """Return what two requests must share to be the same request.

    The kind and the fields that say something, so that a field that comes to be later does not make
    an old request another; not the key itself.
    """
    fields = msgspec.to_builtins(args)
    fields.pop("idempotency_key", None)
    return _KINDS[type(args)] + msgspec.json.encode(fields, order="sorted")
