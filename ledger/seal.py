"""The sealer: compresses rolled segments, off the path of every append.

One at a time over all processes (flock on SEAL). A crash at any step leaves a ledger that opens;
the next run tidies up and goes on.
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256

from ledger.codec import Codec, CodecError, compress, inflate
from ledger.errors import LedgerWriteError, LockTimeoutError
from ledger.layout import SegmentName
from ledger.lock import FileLock
from ledger.manifest import SealedSegment
from ledger.osfile import read_file, temporary_path, write_reason
from ledger.record import Position
from ledger.segment import SEQ_MAX, walk_to_end
from ledger.source import Source, ends_segment, open_segment
from ledger.store import Ledger
from ledger.tidy import tidy_log

_GENERATION = 0


class Sealer:
    """Seals the rolled segments of one ledger."""

    def __init__(self, ledger: Ledger, *, lock_timeout_s: float = 30.0) -> None:
        """Work on `ledger`; wait up to `lock_timeout_s` seconds for its lock at each segment."""
        self._ledger = ledger
        self._layout = ledger.layout
        self._timeout_s = lock_timeout_s
        self._lock = FileLock(ledger.layout.seal_lock, ledger.files)

    def pending(self) -> list[int]:
        """Return the first seq of each rolled segment that is not sealed yet, in order.

        Raises:
            LedgerDamagedError: the manifest is damaged.
        """
        sources = self._ledger.reader.sources()
        return [each.first for each in sources if each.entry is None and not each.newest]

    def run(self) -> list[SealedSegment]:
        """Seal every pending segment; return their entries. Nothing if another sealer is at it.

        Raises:
            LedgerDamagedError: a segment is damaged; it stays as it is.
            LedgerWriteError: the disk refuses; what was sealed before stays sealed.
            LockTimeoutError: a writer kept the ledger's lock.
        """
        try:
            self._lock.acquire(0)
        except LockTimeoutError:
            return []
        try:
            tidy_log(self._ledger, self._timeout_s)
            return [self._seal(first) for first in self.pending()]
        except OSError as error:
            raise LedgerWriteError(outcome="not_written", reason=write_reason(error)) from error
        finally:
            self._lock.release()

    def close(self) -> None:
        """Close the lock's file."""
        self._lock.close()

    def _seal(self, first: int) -> SealedSegment:
        path = self._layout.raw(first)
        source = Source(first=first, path=path, entry=None, newest=False)
        raw = read_file(path)
        content, start = open_segment(source, raw, self._ledger.id)
        end = walk_to_end(content, start, skip_to=SEQ_MAX)
        ends_segment(source, content, start, end)
        entry = write_sealed(self._ledger, raw, start, end.good, gen=_GENERATION)
        with self._ledger.lock(self._timeout_s):
            name_sealed(self._ledger, entry)
            self._ledger.files.remove_file(path)
        return entry


def write_sealed(
    ledger: Ledger, raw: bytes, start: Position, end: Position, *, gen: int
) -> SealedSegment:
    """Write a segment compressed, read it back and compare; return its entry, not yet in force.

    Args:
        ledger: whose segment; the caller holds the SEAL lock.
        raw: the segment's content, header line and footer included.
        start: the point before its first record.
        end: the point after its last.
        gen: which generation of the segment it is.

    Raises:
        LedgerWriteError: what was read back is not what was written.
        OSError: the disk refuses.
    """
    codec = ledger.options.codec
    name = SegmentName(first=start.segment, gen=gen, codec=codec).file
    target = ledger.layout.log / name
    temporary = temporary_path(target)
    ledger.files.write_file(temporary, compress(raw, codec))
    written = read_file(temporary)
    if not _inflates_to(written, codec=codec, raw=raw):
        with suppress(OSError):
            ledger.files.unlink(temporary)
        raise LedgerWriteError(outcome="not_written", reason="io_error")
    ledger.files.rename_file(temporary, target)
    return SealedSegment(
        name=name,
        gen=gen,
        first=start.segment,
        last=end.seq,
        prev=start.digest,
        digest=end.digest,
        count=end.seq - start.seq,
        raw_bytes=len(raw),
        file_bytes=len(written),
        sha256=sha256(written).hexdigest(),
    )


def name_sealed(ledger: Ledger, entry: SealedSegment) -> None:
    """Put a sealed segment's entry in force. Only under the SEAL lock and the ledger's.

    Raises:
        OSError: it could not be made durable; the old manifest may still be there.
    """
    ledger.reader.forget()
    ledger.replace_manifest(ledger.manifest().with_segment(entry))


def _inflates_to(packed: bytes, *, codec: Codec, raw: bytes) -> bool:
    try:
        return inflate(packed, codec, len(raw)) == raw
    except CodecError:
        return False
