"""One segment file as it is to be read: raw, or sealed as the manifest says."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from ledger.codec import Codec, CodecError, inflate_prefix
from ledger.errors import LedgerDamagedError, LedgerUnreadableError
from ledger.layout import SegmentName, parse_name
from ledger.manifest import SealedSegment
from ledger.osfile import read_exactly, read_file
from ledger.record import BadRecordError, Position
from ledger.segment import WalkEnd, read_header
from ledger.tail import find_damage

_ORPHAN_BYTES_MAX = 1 << 30
"""Most that is inflated of a sealed file for which no manifest gives the size."""


class Source(Struct, frozen=True, kw_only=True):
    """Where a segment is and what is known of it beforehand.

    Attributes:
        first: seq of its first record.
        path: its file.
        entry: what the manifest says of it, None if it is raw.
        newest: no later segment was there when it was found.
    """

    first: int
    path: Path
    entry: SealedSegment | None
    newest: bool

    @property
    def name(self) -> str:
        """Its file, relative to the ledger directory."""
        return f"log/{self.path.name}"

    def damaged(self, *, seq: int, offset: int, reason: str) -> LedgerDamagedError:
        """Return the error that names a place in this segment."""
        return LedgerDamagedError(segment=self.name, seq=seq, offset=offset, reason=reason)


def missing_segment(seq: int) -> LedgerDamagedError:
    """Return the error for a record that no segment holds."""
    return LedgerDamagedError(
        segment=f"log/{SegmentName(first=seq).file}",
        seq=seq,
        offset=0,
        reason="segment_missing: no segment holds this record, yet it or a later one was written",
    )


def load(source: Source, offset: int = 0) -> bytes:
    """Return a segment's raw content from an offset.

    Raises:
        FileNotFoundError: it has been sealed or replaced meanwhile.
        LedgerDamagedError: a sealed file is not what was sealed.
        LedgerUnreadableError: the system refuses to read it.
    """
    try:
        if source.entry is not None:
            return source.entry.open(read_file(source.path))[offset:]
        if source.path.suffix != ".jsonl":
            # Without its manifest entry a sealed file can only speak for itself.
            return load_prefix(source)[offset:]
        fd = os.open(source.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return read_exactly(fd, max(os.fstat(fd).st_size - offset, 0), offset)
        finally:
            os.close(fd)
    except CodecError as error:
        raise source.damaged(seq=source.first, offset=0, reason=f"sealed_file: {error}") from error
    except FileNotFoundError:
        raise
    except OSError as error:
        raise LedgerUnreadableError(source.path, str(error)) from error


def load_prefix(source: Source) -> bytes:
    """Return as much of a damaged sealed segment as still inflates."""
    name = parse_name(source.path.name)
    limit = _ORPHAN_BYTES_MAX if source.entry is None else source.entry.raw_bytes
    codec: Codec = "gz" if name is not None and name.codec == "gz" else "zst"
    try:
        return inflate_prefix(read_file(source.path), codec, limit)
    except OSError:
        return b""


def open_segment(source: Source, data: bytes, ledger: str) -> tuple[bytes, Position]:
    """Return a segment's content past its header line, and the point before its first record.

    Raises:
        LedgerDamagedError: the header is not intact, or not of this segment of this ledger.
    """
    try:
        header, length = read_header(data, ledger=ledger, first=source.first)
    except BadRecordError as error:
        raise source.damaged(seq=source.first, offset=0, reason=str(error)) from error
    return data[length:], Position(source.first - 1, header.prev, source.first, length)


def ends_segment(source: Source, data: bytes, start: Position, end: WalkEnd) -> bool:
    """Return whether a walk over the whole of `data` met the segment's footer.

    False means that it is the live one and that nothing but a torn tail follows.

    Raises:
        LedgerDamagedError: what follows the last whole batch may not be there.
    """
    at = end.good.offset - start.offset + end.footer_bytes
    if end.footer is not None:
        if at != len(data):
            raise source.damaged(
                seq=end.good.seq, offset=start.offset + at, reason="framing: bytes after the footer"
            )
        return True
    if source.newest and source.entry is None:
        proof = find_damage(data[at:], end.good)
        if proof is None:
            return False
        raise source.damaged(
            seq=end.error_seq,
            offset=end.error_offset,
            reason=f"{_reason(end)}; at byte {proof.offset} {proof.reason}",
        )
    raise source.damaged(seq=end.error_seq, offset=end.error_offset, reason=_reason(end))


def _reason(end: WalkEnd) -> str:
    if end.error is not None:
        return str(end.error)
    return "segment_footer: the segment ends without one"
