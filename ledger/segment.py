"""The segment: a header line, records that follow one another, and a footer line once rolled."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator

from msgspec import Struct

from ledger.envelope import EnvelopeError, open_line, seal_line
from ledger.errors import InvalidInstantError, UnknownEventError
from ledger.instants import parse_us
from ledger.record import (
    BadRecordError,
    Header,
    Position,
    Record,
    decode_payload,
    is_canonical,
    open_record,
)

SEGMENT_FORMAT = 1
_HEADER = b"segment"
_FOOTER = b"footer"
SEQ_MAX = 2**63 - 1
"""Greater than any seq: "to the end"."""
FOOTER_OPEN = b'{"footer":'
_DIGEST_BYTES = 32


class SegmentHeader(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """First line of a segment.

    Attributes:
        format: version of the segment format.
        ledger: id of the ledger it belongs to.
        first: seq of its first record.
        prev: digest of the record before that (the genesis for record 1).
        t: when it was created, in record form.
    """

    format: int
    ledger: str
    first: int
    prev: str
    t: str


class SegmentFooter(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """Last line of a rolled segment.

    Attributes:
        last: seq of its last record.
        count: how many records it holds.
        digest: digest of the last one.
        t: when it was rolled, in record form.
    """

    last: int
    count: int
    digest: str
    t: str


def encode_header(*, ledger: str, first: int, prev: str, t: str) -> bytes:
    """Return the first line of a segment."""
    header = SegmentHeader(format=SEGMENT_FORMAT, ledger=ledger, first=first, prev=prev, t=t)
    return seal_line(_HEADER, header)


def encode_footer(*, last: int, count: int, digest: str, t: str) -> bytes:
    """Return the last line of a segment that is rolled."""
    return seal_line(_FOOTER, SegmentFooter(last=last, count=count, digest=digest, t=t))


def decode_footer(line: bytes) -> SegmentFooter:
    """Return what an intact footer line says.

    Raises:
        BadRecordError: it is not intact.
    """
    try:
        return open_line(_FOOTER, line, SegmentFooter)
    except EnvelopeError as error:
        raise BadRecordError("segment_footer", str(error)) from error


def read_header(data: bytes, *, ledger: str, first: int) -> tuple[SegmentHeader, int]:
    """Return the header of a segment's content and the length of its line.

    Raises:
        BadRecordError: it is not intact, or not the header of this segment of this ledger.
    """
    length = data.find(b"\n") + 1
    try:
        header = open_line(_HEADER, data[:length], SegmentHeader)
    except EnvelopeError as error:
        raise BadRecordError("segment_header", str(error)) from error
    found = (header.format, header.ledger, header.first)
    if found != (SEGMENT_FORMAT, ledger, first):
        raise BadRecordError("segment_header", f"it belongs elsewhere: {found}")
    try:
        parse_us(header.t)
    except InvalidInstantError as error:
        raise BadRecordError("segment_header", str(error)) from error
    return header, length


class Chain:
    """The rule by which one record follows another: order, links, whole groups and batches.

    Attributes:
        seq, digest: of the last record.
        left: records that are still missing from its batch.
        t: its time, empty if no record has been seen.
    """

    __slots__ = ("_batch", "_group", "_known", "_size", "digest", "left", "seq", "t")

    def __init__(self, seq: int, digest: str) -> None:
        """Begin after record `seq`, whatever its group and batch were."""
        self.seq = seq
        self.digest = digest
        self.left = 0
        self.t = ""
        self._group = 0
        self._batch = 0
        self._size = 0
        self._known = False

    def follow(self, header: Header, digest: str) -> None:
        """Take the next record.

        Raises:
            BadRecordError: it does not follow; the chain is as before.
        """
        seq = header.seq
        if seq != self.seq + 1:
            raise BadRecordError("order", f"record {seq} stands where {self.seq + 1} belongs")
        if header.prev != self.digest:
            raise BadRecordError("chain", f"record {seq} does not point to the one before it")
        if header.g == 0 and header.b == 0 and header.n == 1 and self.left == 0:
            # The usual record: alone in its batch, first of its group.
            self._group = self._batch = seq
            self._known = True
        else:
            self._follow_grouped(header)
        self.seq = seq
        self.digest = digest
        self.t = header.t

    def _follow_grouped(self, header: Header) -> None:
        seq, group, batch, size = header.seq, header.group, header.batch, header.n
        if not (0 < group <= batch <= seq < batch + size):
            raise BadRecordError("batch", f"record {seq} lies outside its own batch or group")
        if self._known:
            if self.left:
                if (group, batch, size) != (self._group, self._batch, self._size):
                    raise BadRecordError("batch", f"record {seq} breaks into a batch")
            elif batch != seq or group not in {seq, self._group}:
                raise BadRecordError("batch", f"record {seq} begins no batch")
        self._group, self._batch, self._size = group, batch, size
        self._known = True
        self.left = batch + size - 1 - seq


class WalkEnd(Struct, frozen=True, kw_only=True):
    """Where a walk over a segment's content stopped.

    Attributes:
        good: the point after the last whole batch.
        footer: the footer, if it came next.
        footer_bytes: length of its line.
        error: what stopped the walk before the end of the bytes; None also for an unfinished
            last line and an unfinished batch, which `good` leaves out.
        error_offset: where the bad line begins.
        error_seq: the record that belongs there.
    """

    good: Position
    footer: SegmentFooter | None
    footer_bytes: int
    error: BadRecordError | None
    error_offset: int
    error_seq: int


def standstill(start: Position) -> WalkEnd:
    """Return the end of a walk that has not begun."""
    return WalkEnd(
        good=start,
        footer=None,
        footer_bytes=0,
        error=None,
        error_offset=start.offset,
        error_seq=start.seq + 1,
    )


def walk(  # noqa: C901, PLR0912 - one loop on the rebuild's hot path
    data: bytes,
    start: Position,
    *,
    skip_to: int = 0,
    until: int = SEQ_MAX,
    whole: bool = True,
    canonical: bool = False,
    digests: bytearray | None = None,
) -> Generator[Record, None, WalkEnd]:
    """Yield the records of a segment's content in whole batches, every rule checked.

    Args:
        data: raw content of the segment from `start.offset`, past its header line.
        start: the point before the first line of `data`.
        skip_to: records up to this seq are checked but neither decoded nor yielded.
        until: stop after the record with this seq, even inside a batch.
        whole: hold a batch back until its last record has been seen.
        canonical: check also that header and payload are in the one form writers write.
        digests: is given those of all whole batches, 32 bytes a record.

    Returns:
        Where it stopped: at the end, at a footer, or at the first bad line.

    Raises:
        UnknownEventError: a record past `skip_to` is of an unknown type or version.
    """
    chain = Chain(start.seq, start.digest)
    base, segment = start.offset, start.segment
    good_pos, good_seq, good_digest, good_t = 0, start.seq, start.digest, ""
    footer: SegmentFooter | None = None
    footer_bytes = 0
    error: BadRecordError | None = None
    pending: list[Record] = []
    pos = 0
    while True:
        stop = data.find(b"\n", pos)
        if stop < 0:
            break
        line = data[pos:stop]
        try:
            if line[:10] == FOOTER_OPEN:
                footer = _close(chain, line, segment)
                footer_bytes = stop + 1 - pos
                break
            header, head, body, digest = open_record(line)
            chain.follow(header, digest)
            if digests is not None:
                digests += bytes.fromhex(digest)
            if header.seq > skip_to:
                if canonical:
                    _check_canonical(header, head, body)
                payload = decode_payload(header, body)
                record = Record(header, payload, digest, segment, base + stop + 1)
                if whole and (chain.left or pending):
                    pending.append(record)
                else:
                    yield record
        except BadRecordError as bad:
            error = bad
            break
        pos = stop + 1
        reached = chain.seq >= until
        if not chain.left or not whole or reached:
            good_pos, good_seq, good_digest, good_t = pos, chain.seq, digest, chain.t
            if pending:
                yield from pending
                pending.clear()
            if reached:
                break
    if digests is not None and chain.seq > good_seq:
        del digests[-(chain.seq - good_seq) * _DIGEST_BYTES :]
    t_us = _instant(good_t) if good_t else start.t_us
    return WalkEnd(
        good=Position(good_seq, good_digest, segment, base + good_pos, t_us),
        footer=footer,
        footer_bytes=footer_bytes,
        error=error,
        error_offset=base + pos,
        error_seq=chain.seq + 1,
    )


def _instant(t: str) -> int:
    """Return a record's time; 0 if it is none, which only `canonical` walks report."""
    try:
        return parse_us(t)
    except InvalidInstantError:
        return 0


def walk_to_end(
    data: bytes,
    start: Position,
    *,
    skip_to: int,
    until: int = SEQ_MAX,
    digests: bytearray | None = None,
) -> WalkEnd:
    """Return where a walk ends, without its records."""
    end = standstill(start)

    def steps() -> Iterator[Record]:
        nonlocal end
        end = yield from walk(data, start, skip_to=skip_to, until=until, digests=digests)

    deque(steps(), maxlen=0)
    return end


def _close(chain: Chain, line: bytes, first: int) -> SegmentFooter:
    footer = decode_footer(line + b"\n")
    if (footer.last, footer.digest) != (chain.seq, chain.digest) or chain.left:
        raise BadRecordError("segment_footer", f"it closes record {footer.last}")
    if footer.count != footer.last - first + 1:
        raise BadRecordError("segment_footer", f"it counts {footer.count} records")
    return footer


def _check_canonical(header: Header, head: bytes, body: bytes) -> None:
    try:
        payload = decode_payload(header, body)
    except UnknownEventError as error:
        raise BadRecordError("unknown_event", str(error)) from error
    if not is_canonical(header, head, payload, body):
        raise BadRecordError("canonical", "a part is not in the form it is written in")
    try:
        parse_us(header.t)
    except InvalidInstantError as error:
        raise BadRecordError("header", str(error)) from error
