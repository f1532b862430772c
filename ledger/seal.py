"""The sealer: compresses rolled segments, off the path of every append.

One at a time over all processes (flock on SEAL). A crash at any step leaves a ledger that opens;
the next run tidies up and goes on.
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256

from ledger.codec import Codec, CodecError, compress, inflate
from ledger.errors import LedgerWriteError, LockTimeoutError
from ledger.layout import SegmentName, parse_name
from ledger.lock import FileLock
from ledger.manifest import SealedSegment
from ledger.osfile import read_file, temporary_path, write_reason
from ledger.segment import SEQ_MAX, walk_to_end
from ledger.source import Source, ends_segment, load, open_segment
from ledger.store import Ledger

_GENERATION = 0


class Sealer:
    """Seals the rolled segments of one ledger."""

    def __init__(self, ledger: Ledger, *, lock_timeout_s: float = 30.0) -> None:
        """Work on `ledger`; wait up to `lock_timeout_s` seconds for its lock at each segment."""
        self._ledger = ledger
        self._layout = ledger.layout
        self._files = ledger.files
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
            self._tidy()
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

        codec = self._ledger.options.codec
        name = SegmentName(first=first, gen=_GENERATION, codec=codec).file
        target = self._layout.log / name
        temporary = temporary_path(target)
        packed = compress(raw, codec)
        self._files.write_file(temporary, packed)
        written = read_file(temporary)
        if not _inflates_to(written, codec=codec, raw=raw):
            with suppress(OSError):
                self._files.unlink(temporary)
            raise LedgerWriteError(outcome="not_written", reason="io_error")
        self._files.rename_file(temporary, target)
        entry = SealedSegment(
            name=name,
            gen=_GENERATION,
            first=first,
            last=end.good.seq,
            prev=start.digest,
            digest=end.good.digest,
            count=end.good.seq - first + 1,
            raw_bytes=len(raw),
            file_bytes=len(written),
            sha256=sha256(written).hexdigest(),
        )
        with self._ledger.lock(self._timeout_s):
            self._ledger.replace_manifest(self._ledger.manifest().with_segment(entry))
            self._files.remove_file(path)
        return entry

    def _tidy(self) -> None:
        """Remove what a sealer or writer left that died between two steps."""
        log = self._layout.log
        entries = os.listdir(log)  # noqa: PTH208 - names are all that is needed
        names = {parsed for name in entries if (parsed := parse_name(name)) is not None}
        raw = {name.first for name in names if not name.codec}
        manifest = self._ledger.manifest()
        sealed = {entry.first: entry for entry in manifest.segments}
        rubbish = [log / name for name in entries if name.endswith(".tmp")]
        for name in names:
            entry = sealed.get(name.first)
            # A sealed file without entry goes only if its raw twin is there.
            if name.codec and name.first in raw and (entry is None or entry.name != name.file):
                rubbish.append(log / name.file)
        twins = [entry for first, entry in sealed.items() if first in raw]
        if not rubbish and not twins:
            return
        with self._ledger.lock(self._timeout_s):
            for path in rubbish:
                self._files.remove_file(path)
            if twins:
                # Whoever put that manifest there may have died before its name was durable.
                self._files.sync_names(self._layout.root)
            for entry in twins:
                source = Source(first=entry.first, path=log / entry.name, entry=entry, newest=False)
                # Raises if the sealed file is bad: then the raw one is the copy that heals it.
                load(source)
                self._files.remove_file(self._layout.raw(entry.first))


def _inflates_to(packed: bytes, *, codec: Codec, raw: bytes) -> bool:
    try:
        return inflate(packed, codec, len(raw)) == raw
    except CodecError:
        return False
