"""The tail rule: are bad bytes at the end a tear that may be cut, or damage that may not?

Pure. A write group becomes durable as one; while it is on its way its sectors may land in any
order. So bytes after the last whole batch are a tear, unless something among them proves that
what is missing had been durable before, or that they were never written there by an append:

* a record of a later write group: what came before its group had been synced;
* a footer: it is written after its records were synced;
* a record that is already there, or that follows the last good one but stands elsewhere or points
  elsewhere: appends put that record at the end of the good bytes, nowhere else.
"""

from __future__ import annotations

from msgspec import Struct

from ledger.record import BadRecordError, Header, Position, open_record
from ledger.segment import FOOTER_OPEN, decode_footer


class Proof(Struct, frozen=True, kw_only=True):
    """Why bytes are damage and not a tear.

    Attributes:
        offset: where in the segment the proving line begins.
        reason: what it proves.
    """

    offset: int
    reason: str


def find_damage(rest: bytes, good: Position) -> Proof | None:
    """Return the proof that `rest` is damage, or None if it is a tear (or empty).

    Args:
        rest: everything in the live segment after `good`.
        good: the point after the last whole batch.
    """
    pos = 0
    while True:
        stop = rest.find(b"\n", pos)
        if stop < 0:
            return None
        reason = _damning(rest[pos:stop], good, at_good=pos == 0)
        if reason is not None:
            return Proof(offset=good.offset + pos, reason=reason)
        pos = stop + 1


def _damning(line: bytes, good: Position, *, at_good: bool) -> str | None:
    try:
        if line[:10] == FOOTER_OPEN:
            decode_footer(line + b"\n")
            return "a footer follows bad bytes"
        header, _, _, _ = open_record(line)
    except BadRecordError:
        return None
    return _damning_record(header, good, at_good=at_good)


def _damning_record(header: Header, good: Position, *, at_good: bool) -> str | None:
    seq = header.seq
    if header.group > good.seq + 1:
        return f"record {seq} of a later write follows bad bytes"
    if seq <= good.seq:
        return f"record {seq} stands there a second time"
    if seq == good.seq + 1 and not at_good:
        return f"record {seq} does not stand where it was written"
    if seq == good.seq + 1 and header.prev != good.digest:
        return f"record {seq} belongs to another history"
    return None
