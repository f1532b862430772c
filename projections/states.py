"""States as they are kept in rows: how they are written into columns and read back."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import msgspec

from ledger import AliasState, MemoryState, SessionState

STATE_FIELDS = MemoryState.__struct_fields__
"""The fields of a memory as events carry them; the columns of the same names hold them."""

_JSON_INDEXES = tuple(STATE_FIELDS.index(name) for name in ("tags", "meta"))

ACTIVE, SUPERSEDED, DELETED = "active", "superseded", "deleted"
"""Statuses of a version."""

encode_json = msgspec.json.Encoder().encode
"""Encode what a column holds as JSON."""

_decode_state = msgspec.json.Decoder(MemoryState).decode
_decode_session = msgspec.json.Decoder(SessionState).decode
_decode_alias = msgspec.json.Decoder(AliasState).decode
_decode_tags = msgspec.json.Decoder(tuple[str, ...]).decode
_decode_meta = msgspec.json.Decoder(dict[str, Any]).decode
_state_fields = attrgetter(*STATE_FIELDS)


def decode_state(text: str) -> MemoryState:
    """Decode the state of a row of `memory_versions`."""
    return _decode_state(text)


def decode_session(text: str) -> SessionState:
    """Decode the state of a session in `subject_versions`."""
    return _decode_session(text)


def decode_alias(text: str) -> AliasState:
    """Decode the state of an alias in `subject_versions`."""
    return _decode_alias(text)


def state_values(state: MemoryState) -> list[Any]:
    """Return the values of the columns that `STATE_FIELDS` names."""
    values = list(_state_fields(state))
    for index in _JSON_INDEXES:
        values[index] = encode_json(values[index]).decode() if values[index] else None
    return values


def state_from_columns(row: Sequence[Any]) -> MemoryState:
    """Build a state from columns named and ordered as `STATE_FIELDS`."""
    return MemoryState(**state_fields(row))


def state_fields(row: Sequence[Any]) -> dict[str, Any]:
    """Return the fields of a state from columns named and ordered as `STATE_FIELDS`."""
    fields = dict(zip(STATE_FIELDS, row, strict=True))
    fields["tags"] = () if fields["tags"] is None else _decode_tags(fields["tags"])
    fields["meta"] = {} if fields["meta"] is None else _decode_meta(fields["meta"])
    return fields
