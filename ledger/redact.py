"""The redactor: takes payloads out of segments, and what half-written copies there are of them.

It is given positions with digests and asks nobody whether they may go: the `memory_redacted` that
names them has been appended before. One at a time over all processes, and never beside a sealer
(flock on SEAL). Killed at any step it leaves a ledger that opens and has lost nothing else; the
next call finishes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from ledger.errors import LedgerReadOnlyError, LedgerWriteError, RedactionRefusedError
from ledger.lock import FileLock
from ledger.needles import ReadChunks, SearchReport, find_erased
from ledger.osfile import write_reason
from ledger.record import NEVER_ERASED, Position, erase_payload, open_record
from ledger.seal import name_sealed, write_sealed
from ledger.segment import SEQ_MAX, walk_to_end
from ledger.source import Source, ends_segment, load, open_segment
from ledger.store import Ledger
from ledger.tidy import tidy_log

_FIRST_GENERATION = 1
"""Of a segment that was never sealed with its payloads."""


class _Content(Struct, frozen=True, kw_only=True):
    """A segment, read and checked.

    Attributes:
        lines: without their line feeds: header, records in order, footer if it has one, rest.
        start, end: the points before its first record and after its last.
    """

    lines: list[bytes]
    start: Position
    end: Position

    def line(self, seq: int) -> bytes:
        """Return the line of a record."""
        return self.lines[seq - self.start.seq]


class Redactor:
    """Erases payloads of one ledger."""

    def __init__(self, ledger: Ledger, *, lock_timeout_s: float = 30.0) -> None:
        """Work on `ledger`; wait up to `lock_timeout_s` seconds for each lock."""
        self._ledger = ledger
        self._layout = ledger.layout
        self._timeout_s = lock_timeout_s
        self._lock = FileLock(ledger.layout.seal_lock, ledger.files)

    def rewrite(self, targets: Mapping[int, str]) -> list[int]:
        """Erase the payloads of records, and everything that `clean` removes.

        Every target is checked before anything is changed. A payload that is gone already counts
        as erased, so calling again changes nothing, or finishes what an earlier call could not.
        The caller must not hold the ledger's lock.

        Args:
            targets: seq -> digest of the records. All may be in any segment; if one is in the
                live segment, that is rolled first.

        Returns:
            The first seq of each segment that was rewritten now, in order.

        Raises:
            RedactionRefusedError: a record is not there, is another one, or is of a type that is
                kept for ever. Nothing was changed.
            LedgerDamagedError: a segment that holds a target is damaged.
            LedgerReadOnlyError: the ledger cannot be written.
            LedgerWriteError: the disk refuses; what was rewritten before stays so.
            LockTimeoutError: a sealer, another redaction or a writer kept a lock.
        """
        with self._alone():
            tidy_log(self._ledger, self._timeout_s)
            standing = self._standing(targets)
            for first, seqs in standing.items():
                self._rewrite(first, seqs)
            self._clean()
            return list(standing)

    def clean(self) -> list[str]:
        """Remove what may hold pieces of erased texts and no reader needs.

        These are unfinished files, replaced generations of segments, and the torn bytes kept in
        `quarantine/`: a tear may hold half a text, which no search would find.

        Returns:
            What was removed, relative to the ledger directory.

        Raises:
            LedgerError: as `rewrite`.
        """
        with self._alone():
            return [*tidy_log(self._ledger, self._timeout_s), *self._clean()]

    def find(
        self,
        needles: Collection[bytes],
        beside: Iterable[Path] = (),
        read: ReadChunks | None = None,
    ) -> SearchReport:
        """Search every file of the ledger, and some beside it, while no segment changes its name.

        Args:
            needles: see `find_erased`.
            beside: further files.
            read: see `find_erased`.

        Raises:
            LockTimeoutError: a sealer or another redaction was at work.
            LedgerReadOnlyError: the ledger cannot be written.
        """
        with self._alone():
            own = sorted(path for path in self._layout.root.rglob("*") if path.is_file())
            return find_erased([*own, *beside], needles, read)

    def close(self) -> None:
        """Close the lock's file."""
        self._lock.close()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if self._ledger.refusal is not None:
            raise LedgerReadOnlyError(self._ledger.refusal)
        self._lock.acquire(self._timeout_s)
        try:
            yield
        except OSError as error:
            raise LedgerWriteError(outcome="not_written", reason=write_reason(error)) from error
        finally:
            self._lock.release()

    def _standing(self, targets: Mapping[int, str]) -> dict[int, list[int]]:
        """Check all targets; return by segment those whose payload stands. Rolls if it must."""
        sources = self._ledger.reader.sources()
        firsts = [source.first for source in sources]
        wanted: dict[int, list[int]] = {}
        for seq in sorted(targets):
            at = bisect_right(firsts, seq)
            if at == 0:
                raise RedactionRefusedError(seq=seq, reason="unknown")
            wanted.setdefault(at - 1, []).append(seq)
        standing: dict[int, list[int]] = {}
        for at, seqs in wanted.items():
            source = sources[at]
            if source.newest and source.entry is None:
                # Last of all, so that a refusal leaves the segment as it is.
                left = self._check_live(source, seqs, targets)
            else:
                left = _check(self._load(source), seqs, targets)
            if left:
                standing[source.first] = left
        return standing

    def _check_live(self, source: Source, seqs: list[int], targets: Mapping[int, str]) -> list[int]:
        with self._ledger.lock(self._timeout_s) as writer:
            writer.secure(None)
            left = _check(self._load(source), seqs, targets)
            if left:
                writer.roll()
            return left

    def _load(self, source: Source) -> _Content:
        raw = load(source)
        content, start = open_segment(source, raw, self._ledger.id)
        end = walk_to_end(content, start, skip_to=SEQ_MAX)
        ends_segment(source, content, start, end)
        return _Content(lines=raw.split(b"\n"), start=start, end=end.good)

    def _rewrite(self, first: int, seqs: list[int]) -> None:
        (source,) = (each for each in self._ledger.reader.sources() if each.first == first)
        content = self._load(source)
        lines, start = content.lines, content.start
        for seq in seqs:
            lines[seq - start.seq] = erase_payload(content.line(seq))
        raw = b"\n".join(lines)
        body = raw[start.offset :]
        end = walk_to_end(body, start, skip_to=SEQ_MAX)
        assert (end.good.seq, end.good.digest) == (content.end.seq, content.end.digest)
        assert end.good.offset - start.offset + end.footer_bytes == len(body)
        gen = _FIRST_GENERATION if source.entry is None else source.entry.gen + 1
        entry = write_sealed(self._ledger, raw, start, end.good, gen=gen)
        with self._ledger.lock(self._timeout_s):
            name_sealed(self._ledger, entry)
            self._ledger.files.remove_file(source.path)

    def _clean(self) -> list[str]:
        """Remove what is kept in quarantine."""
        folder = self._layout.quarantine
        if not folder.is_dir() or not any(folder.iterdir()):
            return []
        with self._ledger.lock(self._timeout_s):
            kept = sorted(path for path in folder.iterdir() if path.is_file())
            for path in kept:
                self._ledger.files.remove_file(path)
        return [f"{folder.name}/{path.name}" for path in kept]


def _check(content: _Content, seqs: list[int], targets: Mapping[int, str]) -> list[int]:
    """Return the records whose payload stands.

    Raises:
        RedactionRefusedError: one may not be erased, or is not the one that was meant.
    """
    standing: list[int] = []
    for seq in seqs:
        if seq > content.end.seq:
            raise RedactionRefusedError(seq=seq, reason="unknown")
        header, _, body, digest = open_record(content.line(seq))
        if digest != targets[seq]:
            raise RedactionRefusedError(seq=seq, reason="other", found=digest)
        if header.type in NEVER_ERASED:
            raise RedactionRefusedError(seq=seq, reason="kept", found=header.type)
        if body != b"null":
            standing.append(seq)
    return standing
