"""The record: one event as one line, and the table of stored event names.

`{"h":<header>,"p":<payload>,"d":"<64 hex>"}` and a newline. Digests cover bytes as written:
`d` = SHA-256(0x00 || h), `h.pc` = SHA-256(0x02 || p).
"""

from __future__ import annotations

from hashlib import sha256
from typing import ClassVar

import msgspec
from msgspec import Struct

from ledger.errors import InvalidPayloadError, RecordTooLargeError, UnknownEventError
from ledger.events import (
    AgentRegistered,
    AliasAdded,
    AliasRemoved,
    Event,
    MemoryAdded,
    MemoryDeleted,
    MemoryRedacted,
    MemoryRelinked,
    MemoryRestored,
    MemoryUpdated,
    RedactionCompleted,
    RedactionExplained,
    SessionEnded,
    SessionRestored,
    SessionStarted,
    SessionWithdrawn,
    WorkspaceCreated,
)
from ledger.instants import parse_us

RECORD_BYTES_MAX = 8 * 1024 * 1024
"""Longest line, newline included: a bound for readers, far above what a memory may hold."""

EVENTS: dict[tuple[str, int], type[Event]] = {
    ("workspace_created", 1): WorkspaceCreated,
    ("agent_registered", 1): AgentRegistered,
    ("memory_added", 1): MemoryAdded,
    ("memory_updated", 1): MemoryUpdated,
    ("memory_relinked", 1): MemoryRelinked,
    ("memory_deleted", 1): MemoryDeleted,
    ("memory_restored", 1): MemoryRestored,
    ("session_started", 1): SessionStarted,
    ("session_ended", 1): SessionEnded,
    ("session_restored", 1): SessionRestored,
    ("session_withdrawn", 1): SessionWithdrawn,
    ("alias_added", 1): AliasAdded,
    ("alias_removed", 1): AliasRemoved,
    ("memory_redacted", 1): MemoryRedacted,
    ("redaction_explained", 1): RedactionExplained,
    ("redaction_completed", 1): RedactionCompleted,
}
"""Stored name and version of each event. Entries are added, never changed."""

NEVER_ERASED = frozenset(
    {"workspace_created", "agent_registered", "memory_redacted", "redaction_completed"}
)
"""Events whose payload no redaction may take away: later records cannot be understood without the
first two, and the others say what was erased."""

_NAMES = {kind: name for name, kind in EVENTS.items()}
_OPEN = b'{"h":'
_MIDDLE = b'},"p":'
_DIGEST = b',"d":"'
_CLOSE = b'"}'
_TAIL = -(len(_DIGEST) + 64 + len(_CLOSE))
_HEX = -(64 + len(_CLOSE))
LINE_END = _CLOSE + b"\n"
"""What follows a record's digest."""
LINE_END_BYTES = 64 + len(LINE_END)
"""Bytes from a record's digest to the end of its line."""

assert len(_OPEN) == 5
assert (_TAIL, _HEX) == (-72, -66)


class BadRecordError(ValueError):
    """A line is not the record it should be.

    Attributes:
        kind: the broken rule, one stable word.
        detail: what was found.
    """

    def __init__(self, kind: str, detail: str) -> None:
        """Keep rule and finding."""
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail


class Header(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False
):
    """What stays of a record for ever; nothing in it is personal.

    Attributes:
        seq: position in the ledger's one total order, from 1.
        g: first seq of the write group, 0 when it is this record.
        b: first seq of the batch, 0 when it is this record.
        n: number of records in the batch.
        t: time of the append in record form.
        type, v: the event's stored name and version.
        ws: id of the workspace.
        sub: id of the subject.
        sp: seq of the subject's previous record, 0 for none.
        act: id of the actor.
        ses: id of the session.
        cause: id shared by the batches of one bulk command: minted, or with an idempotency key
            a keyed digest like `ik`.
        undo: first seq of the batch that this one undoes.
        ik: keyed digest of the idempotency key, 32 hex characters.
        back: the clock showed an earlier time than at the record before.
        pc: commitment to the payload.
        prev: digest of the record before.
    """

    seq: int
    g: int = 0
    b: int = 0
    n: int = 1
    t: str
    type: str
    v: int = 1
    ws: str
    sub: str
    sp: int = 0
    act: str
    ses: str = ""
    cause: str = ""
    undo: int = 0
    ik: str = ""
    back: bool = False
    pc: str
    prev: str

    @property
    def group(self) -> int:
        """First seq of the write group."""
        return self.g or self.seq

    @property
    def batch(self) -> int:
        """First seq of the batch."""
        return self.b or self.seq


class Position(Struct, frozen=True, gc=False):
    """A point between two records.

    Attributes:
        seq: the last record before the point, 0 at the start.
        digest: that record's digest, empty at the start.
        segment: first seq of the segment the offset counts in.
        offset: raw bytes of that segment before the point, its header line included.
        t_us: time of the last record, in microseconds since 1970-01-01 UTC, 0 at the start.
    """

    start: ClassVar[Position]

    seq: int
    digest: str
    segment: int
    offset: int
    t_us: int = 0


Position.start = Position(seq=0, digest="", segment=1, offset=0)


class Record(Struct, frozen=True, gc=False):
    """One event of the ledger.

    Attributes:
        header: what stays for ever.
        payload: the event; None once it has been redacted.
        digest: the record's digest, to which the next record points.
        segment: first seq of the segment it stands in.
        end: raw bytes of that segment up to and with this record.
    """

    header: Header
    payload: Event | None
    digest: str
    segment: int
    end: int

    @property
    def seq(self) -> int:
        """Position in the total order."""
        return self.header.seq

    @property
    def position(self) -> Position:
        """The point after this record."""
        header = self.header
        return Position(header.seq, self.digest, self.segment, self.end, parse_us(header.t))


_encode = msgspec.json.Encoder().encode
_decode_header = msgspec.json.Decoder(Header).decode
_DECODERS = {name: msgspec.json.Decoder(kind).decode for name, kind in EVENTS.items()}


def event_name(payload: Event) -> tuple[str, int]:
    """Return the stored name and version of a payload."""
    return _NAMES[type(payload)]


def encode_payload(payload: Event) -> tuple[bytes, str, Event]:
    """Return a payload's bytes, its commitment, and the payload as a reader will see it.

    Raises:
        InvalidPayloadError: JSON cannot hold it unchanged (a NaN, a lone surrogate, an integer
            of more than 64 bits).
    """
    decode = _DECODERS[_NAMES[type(payload)]]
    try:
        seen = decode(_encode(payload))
    except (msgspec.MsgspecError, UnicodeError, OverflowError, TypeError, RecursionError) as error:
        raise InvalidPayloadError(f"the payload cannot be stored: {error}") from error
    if seen != payload:
        raise InvalidPayloadError("the payload would not come back as it was given")
    # Encoded from what was read back: 1 given for 1.0 must not differ from its own re-encoding.
    body = _encode(seen)
    return body, sha256(b"\x02" + body).hexdigest(), seen


def encode_line(header: Header, body: bytes) -> tuple[bytes, str]:
    """Return a record's line and its digest.

    Raises:
        RecordTooLargeError: the line would be longer than RECORD_BYTES_MAX.
    """
    head = _encode(header)
    digest = sha256(b"\x00" + head).hexdigest()
    line = b"".join((_OPEN, head, b',"p":', body, _DIGEST, digest.encode(), b'"}\n'))
    if len(line) > RECORD_BYTES_MAX:
        raise RecordTooLargeError(size=len(line), limit=RECORD_BYTES_MAX)
    return line, digest


def open_record(line: bytes) -> tuple[Header, bytes, bytes, str]:
    """Return header, raw header, raw payload and digest of a line (without its newline).

    The line is then known to be self-consistent: three raw parts, digest and commitment right
    (a redacted payload commits to nothing). Whether the payload is a known event is not looked at.

    Raises:
        BadRecordError: it is not.
    """
    # A header holds no nested object, so the first `},"p":` ends it; and the decoders below
    # refuse whatever is not exactly one value.
    middle = line.find(_MIDDLE) + 1
    if (
        not middle
        or line[:5] != _OPEN
        or line[_TAIL:_HEX] != _DIGEST
        or line[-2:] != _CLOSE
        or len(line) >= RECORD_BYTES_MAX
    ):
        raise BadRecordError("framing", "the line is not of three parts")
    head = line[5:middle]
    body = line[middle + 5 : _TAIL]
    digest = sha256(b"\x00" + head).hexdigest()
    if line[_HEX:-2] != digest.encode():
        raise BadRecordError("digest", "the header does not match its digest")
    try:
        header = _decode_header(head)
    except msgspec.MsgspecError as error:
        raise BadRecordError("header", str(error)) from error
    if body != b"null" and sha256(b"\x02" + body).hexdigest() != header.pc:
        raise BadRecordError("commitment", "the payload does not match its commitment")
    return header, head, body, digest


def decode_payload(header: Header, body: bytes) -> Event | None:
    """Return the event of a record, None if it is redacted.

    Raises:
        UnknownEventError: the type or version is not in the table.
        BadRecordError: the payload is not an event of that type.
    """
    decode = _DECODERS.get((header.type, header.v))
    if decode is None:
        raise UnknownEventError(name=header.type, version=header.v, seq=header.seq)
    if body == b"null":
        return None
    try:
        return decode(body)
    except msgspec.MsgspecError as error:
        raise BadRecordError("payload", str(error)) from error


def erase_payload(line: bytes) -> bytes:
    """Return a record's line (without its newline) with its payload gone.

    Header and digest stay as they are, so the chain does.

    Raises:
        BadRecordError: it is no record.
    """
    _, head, _, _ = open_record(line)
    return b"".join((_OPEN, head, b',"p":null', line[_TAIL:]))


def is_canonical(header: Header, head: bytes, payload: Event | None, body: bytes) -> bool:
    """Return whether both parts are in the one form that writers write (no repeated key)."""
    return _encode(header) == head and _encode(payload) == body
