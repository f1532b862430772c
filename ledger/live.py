"""The live segment: the one file that grows, seen by whoever holds the ledger's lock."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import NoReturn

import msgspec
from msgspec import Struct

from ledger.clock import Clock
from ledger.errors import (
    LedgerBehindError,
    LedgerReadOnlyError,
    LedgerWriteError,
    WriteOutcome,
    WriteReason,
)
from ledger.identity import Identity
from ledger.instants import SECOND_US, format_us, parse_us
from ledger.layout import Layout
from ledger.lock import FileLock
from ledger.notes import NoteFloor
from ledger.osfile import OsFiles, read_exactly, write_reason
from ledger.quarantine import TornTail, keep_aside
from ledger.reader import LogReader
from ledger.record import LINE_END, LINE_END_BYTES, Position, Record
from ledger.segment import WalkEnd, encode_footer, encode_header, read_header, standstill, walk
from ledger.source import Source, ends_segment, open_segment


class RollFailed(Struct, frozen=True, kw_only=True):
    """Report: the live segment could not be rolled; what was committed is not touched by that.

    Attributes:
        segment: file of the segment, relative to the ledger directory.
        reason: what the system said.
        t_us: when, in microseconds since 1970-01-01 UTC.
    """

    segment: str
    reason: WriteReason
    t_us: int


Report = TornTail | RollFailed
"""Something that was put right, or could not be, without an error to the caller."""


class LiveOptions(Struct, frozen=True, kw_only=True):
    """When the live segment is rolled.

    Attributes:
        bytes_max: at this size or above.
        age_s_max: at this age in seconds or above, looked at after an append.
    """

    bytes_max: int
    age_s_max: int


class _Tip:
    """The live segment as this process last left it; `end` is None until it has been verified."""

    __slots__ = ("device", "end", "fd", "first", "inode", "opened_us", "path")

    def __init__(self, *, fd: int, path: Path, first: int) -> None:
        self.path = path
        self.first = first
        self.end: Position | None = None
        self.opened_us = 0
        self.take(fd)

    def take(self, fd: int) -> None:
        stat = os.fstat(fd)
        self.fd = fd
        self.device = stat.st_dev
        self.inode = stat.st_ino

    def is_at(self, stat: os.stat_result) -> bool:
        return stat.st_ino == self.inode and stat.st_dev == self.device

    @property
    def name(self) -> str:
        return f"log/{self.path.name}"


class LiveSegment:
    """Catches up with, appends to and rolls the live segment. Only under the ledger's lock."""

    def __init__(
        self,
        *,
        layout: Layout,
        identity: Identity,
        reader: LogReader,
        lock: FileLock,
        files: OsFiles,
        clock: Clock,
        options: LiveOptions,
    ) -> None:
        """Take the collaborators; nothing is opened yet."""
        self._layout = layout
        self._identity = identity
        self._reader = reader
        self._lock = lock
        self._files = files
        self._clock = clock
        self._options = options
        self._floor = NoteFloor(layout, identity.origin)
        self._tip: _Tip | None = None
        self.reports: list[Report] = []

    @property
    def end(self) -> Position:
        """The point after the last record, as of the last catch-up or append."""
        assert self._tip is not None, "catch up first"
        assert self._tip.end is not None, "catch up first"
        return self._tip.end

    def catch_up(self, known: Position | None) -> Iterable[Record]:
        """Make sure of everything up to the end and return the records after `known`.

        See the package's docstring: a torn tail is cut and kept, bytes that may not be synced are
        written again and synced, a read-only mark is cured.

        Raises:
            LedgerDamagedError: the live segment is damaged; nothing was changed.
            LedgerBehindError: the ledger does not hold `known`, or not all that its newest
                checkpoint has signed; nothing was changed.
            LedgerReadOnlyError: the ledger cannot be written at present.
            LedgerWriteError: a tail could not be made durable ("not_written").
            UnknownEventError: a record is of a type or version this program does not know.
        """
        tip, cure = self._tip, self._lock.marked
        if tip is not None and known is not None and not cure:
            end = tip.end
            if end is not None and known.seq == end.seq and known.digest == end.digest:
                with suppress(FileNotFoundError):
                    stat = os.stat(tip.path)  # noqa: PTH116 - the hot path of every write
                    # A rolled file has grown by its footer, so an equal size means no news.
                    if stat.st_size == end.offset and tip.is_at(stat):
                        return ()
        return self._load(known, cure=cure)

    def append(self, data: bytes, end: Position) -> Position:
        """Write a whole group and sync it; then roll if it is time.

        Args:
            data: the group's lines.
            end: the point after them.

        Returns:
            The point after them, in the new live segment if it rolled.

        Raises:
            LedgerWriteError: they could not be made durable.
        """
        tip, start = self._tip, self.end
        assert tip is not None
        try:
            self._files.write_all(tip.fd, data, start.offset)
        except OSError as error:
            self._fail(tip, start.offset, error, synced=False)
        try:
            self._files.sync(tip.fd)
        except OSError as error:
            self._fail(tip, start.offset, error, synced=True)
        tip.end = end
        age_us = self._clock.now_us() - tip.opened_us
        options = self._options
        if end.offset >= options.bytes_max or age_us >= options.age_s_max * SECOND_US:
            return self._try_roll(tip, end)
        return end

    def roll(self) -> Position:
        """Close the segment and begin the next now; nothing if it holds no record.

        Returns:
            The point after the last record, in the segment that is live from now on.

        Raises:
            LedgerWriteError: it could not be done. No record is touched by that; catch up again
                before anything else.
        """
        tip, end = self._tip, self.end
        assert tip is not None
        return end if end.seq < tip.first else self._roll(tip, end)

    def close(self) -> None:
        """Close the file; the next catch-up opens it again."""
        if self._tip is not None:
            self._files.close(self._tip.fd)
            self._tip = None

    # ------------------------------------------------------------------ catching up

    def _load(self, known: Position | None, *, cure: bool) -> Iterable[Record]:
        first = self._reader.newest_raw()
        source = Source(first=first, path=self._layout.raw(first), entry=None, newest=True)
        tip = self._reopen(source)
        trusted = tip.end
        start, data = self._begin(tip, source, known)
        records, end = _walk_all(data, start, known)
        rolled = ends_segment(source, data, start, end)
        if known is not None:
            _check_known(
                known,
                source=source,
                start=start,
                end=end,
                records=records,
                size=start.offset + len(data),
            )
            if records and records[0].seq == known.seq:
                del records[0]
        _check_floor(self._floor.size(), source=source, end=end, size=start.offset + len(data))
        whole = end.good.offset + end.footer_bytes
        synced = max(
            start.offset,
            trusted.offset if trusted is not None else 0,
            known.offset if known is not None and known.segment == first else 0,
        )
        self._settle(tip, whole, synced, data[whole - start.offset :], cure=cure)
        good = self._with_time(end.good, first, known)
        tip.end = good
        if rolled:
            try:
                self._create_next(good)
            except OSError as error:
                raise LedgerWriteError(outcome="not_written", reason=write_reason(error)) from error
        if (0 if known is None else known.seq) < first - 1:
            return chain(self._earlier(known or Position.start, source, start), records)
        return records

    def _reopen(self, source: Source) -> _Tip:
        tip = self._tip
        try:
            if tip is not None:
                if tip.first == source.first and tip.is_at(source.path.stat()):
                    return tip
                self.close()
            # Whoever made the names may have died before it had made them durable.
            for directory in (self._layout.log, self._layout.root, self._layout.root.parent):
                self._files.sync_names(directory)
            fd = self._files.open_write(source.path)
        except OSError as error:
            raise LedgerReadOnlyError(write_reason(error)) from error
        self._tip = tip = _Tip(fd=fd, path=source.path, first=source.first)
        return tip

    def _begin(self, tip: _Tip, source: Source, known: Position | None) -> tuple[Position, bytes]:
        """Return the point from which to look at the segment, and its content from there."""
        size = os.fstat(tip.fd).st_size
        base = None
        if known is not None and tip.end is not None:
            if known.seq >= tip.end.seq:
                base = tip.end
            elif known.segment == source.first and known.offset > 0:
                base = known
        if base is not None and base.offset <= size:
            back = LINE_END_BYTES if base.seq >= source.first else 0
            data = read_exactly(tip.fd, size - base.offset + back, base.offset - back)
            if not back or data[:back] == base.digest.encode() + LINE_END:
                return base, data[back:]
        data = read_exactly(tip.fd, size, 0)
        content, start = open_segment(source, data, self._identity.ledger)
        header, _ = read_header(data, ledger=self._identity.ledger, first=source.first)
        tip.opened_us = parse_us(header.t)
        return start, content

    def _with_time(self, good: Position, first: int, known: Position | None) -> Position:
        """Return `good` with the time of its record, which may stand in an earlier segment."""
        if good.t_us or good.seq == 0:
            return good
        if known is not None and known.seq == good.seq:
            return msgspec.structs.replace(good, t_us=known.t_us)
        t_us = self._reader.position_at(seq=first - 1).t_us
        return msgspec.structs.replace(good, t_us=t_us)

    def _earlier(self, after: Position, source: Source, start: Position) -> Iterator[Record]:
        """Yield the records after a position up to the live segment `source`."""
        seq, digest = after.seq, after.digest
        for record in self._reader.read(after, source.first - 1):
            seq, digest = record.seq, record.digest
            yield record
        if (seq, digest) != (source.first - 1, start.digest):
            raise source.damaged(
                seq=source.first, offset=0, reason="chain: it does not point to the record before"
            )

    # ------------------------------------------------------------------ making sure

    def _settle(self, tip: _Tip, whole: int, synced: int, rest: bytes, *, cure: bool) -> None:
        """Make bytes up to `whole` durable and keep `rest` aside.

        Args:
            tip: the live segment.
            whole: where its whole batches (and its footer) end.
            synced: up to where it is known to be durable.
            rest: the torn bytes after `whole`.
            cure: the ledger is marked read-only.
        """
        try:
            if rest:
                self._keep_aside(tip, whole, rest)
            if cure:
                self._replace(tip, whole)
                self._lock.unmark()
                return
        except OSError as error:
            reason = write_reason(error)
            if cure:
                raise LedgerReadOnlyError(reason) from error
            raise LedgerWriteError(outcome="not_written", reason=reason) from error
        if not rest and synced >= whole:
            return
        try:
            if rest:
                self._files.truncate(tip.fd, whole)
            if synced < whole:
                self._files.write_all(tip.fd, read_exactly(tip.fd, whole - synced, synced), synced)
            self._files.sync(tip.fd)
        except OSError as error:
            self._fail(tip, whole, error, synced=True)

    def _keep_aside(self, tip: _Tip, offset: int, rest: bytes) -> None:
        self.reports.append(
            keep_aside(
                self._layout,
                self._files,
                rest,
                of=tip.name,
                label=f"{tip.first:020d}",
                offset=offset,
                now_us=self._clock.now_us(),
            )
        )

    def _fail(self, tip: _Tip, offset: int, error: OSError, *, synced: bool) -> NoReturn:
        """Give up what stands beyond `offset` and raise; mark the ledger if even that fails."""
        outcome: WriteOutcome = "not_written"
        try:
            self._give_up(tip, offset, write_reason(error), synced=synced)
        except OSError:
            outcome = "unknown"
            self._mark()
        raise LedgerWriteError(outcome=outcome, reason=write_reason(error)) from error

    def _give_up(self, tip: _Tip, offset: int, reason: WriteReason, *, synced: bool) -> None:
        """Make sure that nothing stands beyond `offset`, without syncing the old descriptor."""
        if not synced and reason in {"disk_full", "file_too_large"}:
            # No sync has failed, so no page was given up: a cut is enough, and it takes no space.
            with suppress(OSError):
                self._cut(tip, offset)
                return
        self._replace(tip, offset)

    def _cut(self, tip: _Tip, offset: int) -> None:
        fd = self._files.open_write(tip.path)
        try:
            self._files.truncate(fd, offset)
            self._files.sync(fd)
        except OSError:
            self._files.close(fd)
            raise
        self._files.close(tip.fd)
        tip.take(fd)

    def _replace(self, tip: _Tip, offset: int) -> None:
        prefix = read_exactly(tip.fd, offset, 0)
        if len(prefix) != offset:
            raise OSError(errno.EIO, "the live segment is shorter than it was")
        self._files.replace_file(tip.path, prefix)
        fd = self._files.open_write(tip.path)
        self._files.close(tip.fd)
        tip.take(fd)

    def _mark(self) -> None:
        with suppress(OSError):
            self._lock.mark()
        self.close()

    # ------------------------------------------------------------------ rolling

    def _try_roll(self, tip: _Tip, end: Position) -> Position:
        """Close the segment and begin the next; a failure is reported and leaves `end`."""
        try:
            return self._roll(tip, end)
        except LedgerWriteError as error:
            self.reports.append(
                RollFailed(segment=tip.name, reason=error.reason, t_us=self._clock.now_us())
            )
            return end

    def _roll(self, tip: _Tip, end: Position) -> Position:
        footer = encode_footer(
            last=end.seq,
            count=end.seq - tip.first + 1,
            digest=end.digest,
            t=format_us(self._clock.now_us()),
        )
        synced = False
        try:
            self._files.write_all(tip.fd, footer, end.offset)
            synced = True
            self._files.sync(tip.fd)
        except OSError as error:
            try:
                self._give_up(tip, end.offset, write_reason(error), synced=synced)
            except OSError:
                self._mark()
            raise LedgerWriteError(outcome="not_written", reason=write_reason(error)) from error
        try:
            return self._create_next(end)
        except OSError as error:
            # The next catch-up meets the footer and tries again.
            self.close()
            raise LedgerWriteError(outcome="not_written", reason=write_reason(error)) from error

    def _create_next(self, end: Position) -> Position:
        first = end.seq + 1
        path = self._layout.raw(first)
        now_us = self._clock.now_us()
        header = encode_header(
            ledger=self._identity.ledger, first=first, prev=end.digest, t=format_us(now_us)
        )
        self._files.replace_file(path, header)
        fd = self._files.open_write(path)
        self.close()
        self._tip = tip = _Tip(fd=fd, path=path, first=first)
        tip.opened_us = now_us
        tip.end = Position(end.seq, end.digest, first, len(header), end.t_us)
        return tip.end


def _walk_all(data: bytes, start: Position, known: Position | None) -> tuple[list[Record], WalkEnd]:
    """Return the records from `known`'s own record on, and where the walk ended."""
    end = standstill(start)

    def steps() -> Iterator[Record]:
        nonlocal end
        end = yield from walk(data, start, skip_to=0 if known is None else known.seq - 1)

    records = list(steps())
    return records, end


def _check_known(
    known: Position,
    *,
    source: Source,
    start: Position,
    end: WalkEnd,
    records: list[Record],
    size: int,
) -> None:
    """Raise unless the live segment, as walked, agrees with the position the caller knows."""
    good = end.good
    if known.seq > good.seq:
        if known.segment == source.first and size >= known.offset:
            # The bytes are there, so it was not cut; they are bad although they were durable.
            raise source.damaged(
                seq=end.error_seq,
                offset=end.error_offset,
                reason=str(end.error or "batch: it is not whole"),
            )
        raise LedgerBehindError(known_seq=known.seq, end_seq=good.seq, reason="shorter")
    if known.seq < start.seq or not known.digest:
        return
    found = start.digest if known.seq == start.seq else records[0].digest
    if known.digest != found:
        raise LedgerBehindError(known_seq=known.seq, end_seq=good.seq, reason="other")


def _check_floor(floor: int, *, source: Source, end: WalkEnd, size: int) -> None:
    """Raise unless the ledger, as walked, holds as many records as a checkpoint has signed."""
    good = end.good
    if good.seq >= floor:
        return
    if size > good.offset:
        why = end.error or "batch: it is not whole"
        raise source.damaged(
            seq=end.error_seq,
            offset=end.error_offset,
            reason=f"{why}; a checkpoint has signed {floor} records",
        )
    raise LedgerBehindError(known_seq=floor, end_seq=good.seq, reason="shorter")
