"""Reading on behind damage: what a segment still holds, and where it does not."""

from __future__ import annotations

from collections.abc import Generator

from msgspec import Struct

from ledger.record import BadRecordError, Position, Record, open_record
from ledger.segment import SEQ_MAX, WalkEnd, standstill, walk


class Flaw(Struct, frozen=True, kw_only=True):
    """One place where a segment is not what was written.

    Attributes:
        kind: the broken rule, one stable word.
        seq: the record that belongs there.
        offset: where in the segment the bad bytes begin.
        detail: what was found.
    """

    kind: str
    seq: int
    offset: int
    detail: str


def salvage(
    data: bytes, start: Position, *, whole: bool = False, canonical: bool = False
) -> Generator[Record | Flaw, None, WalkEnd]:
    """Yield the records of a segment's content and a flaw for each place that is bad.

    After a flaw it goes on at the next line that is a consistent record not met before.

    Args:
        data: raw content of the segment from `start.offset`.
        start: the point before it; with an empty digest the first record is believed.
        whole: hold a batch back until its last record has been seen.
        canonical: check also that parts are in the one form writers write.

    Returns:
        Where the last stretch stopped; its `error` is None or has been yielded as a flaw.

    Raises:
        UnknownEventError: not `canonical` and a record is of an unknown type or version.
    """
    base = start.offset
    unseen = _Unseen(start.seq + 1)
    begin = start if start.digest else _next_record(data, 0, start, unseen)
    end = standstill(start)
    bad_at = -1
    while begin is not None:
        end = yield from walk(data[begin.offset - base :], begin, whole=whole, canonical=canonical)
        unseen.remove(begin.seq + 1, end.good.seq)
        if end.error is None:
            break
        bad = end.error
        yield Flaw(kind=bad.kind, seq=end.error_seq, offset=end.error_offset, detail=bad.detail)
        at = end.error_offset - base
        # The bad line may itself be a good record that only stands in the wrong place.
        if end.error_offset == bad_at:
            at = data.find(b"\n", at) + 1 or len(data)
        bad_at = end.error_offset
        begin = _next_record(data, at, start, unseen)
    return end


class _Unseen:
    """The seqs that no walk has met yet, as closed ranges."""

    def __init__(self, first: int) -> None:
        self._ranges = [(first, SEQ_MAX)]

    def __contains__(self, seq: int) -> bool:
        return any(low <= seq <= high for low, high in self._ranges)

    def remove(self, first: int, last: int) -> None:
        """Take out first..last, which lie in one range (or are none)."""
        if last < first:
            return
        kept: list[tuple[int, int]] = []
        for low, high in self._ranges:
            kept.extend(
                (a, b)
                for a, b in ((low, min(high, first - 1)), (max(low, last + 1), high))
                if a <= b
            )
        self._ranges = kept


def _next_record(data: bytes, at: int, start: Position, unseen: _Unseen) -> Position | None:
    """Return the point before the next consistent record that has not been met."""
    while True:
        stop = data.find(b"\n", at)
        if stop < 0:
            return None
        try:
            header, _, _, _ = open_record(data[at:stop])
        except BadRecordError:
            pass
        else:
            if header.seq in unseen:
                return Position(
                    header.seq - 1, header.prev, start.segment, start.offset + at, start.t_us
                )
        at = stop + 1
