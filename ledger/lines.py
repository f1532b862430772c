"""Lines: a record as the very bytes that stand in the ledger, for whoever takes them elsewhere."""

from __future__ import annotations

from hashlib import sha256

import msgspec

from ledger.errors import LedgerDamagedError
from ledger.record import Record, encode_line

_encode = msgspec.json.Encoder().encode


def line_of(record: Record) -> bytes:
    """Return a record's line, newline included: byte for byte the one in the ledger.

    Writers write each record in one form, so it is made again and compared by its digests. A
    record whose payload is None gives the line of a redacted one.

    Raises:
        LedgerDamagedError: it stands in the ledger in another form, which no writer writes.
    """
    header = record.header
    body = _encode(record.payload)
    line, digest = encode_line(header, body)
    is_same = digest == record.digest and (
        record.payload is None or sha256(b"\x02" + body).hexdigest() == header.pc
    )
    if not is_same:
        raise LedgerDamagedError(
            segment=f"{record.segment:020}",
            seq=record.seq,
            offset=record.end,
            reason="canonical: a part is not in the form it is written in",
        )
    return line
