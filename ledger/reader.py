"""The reading side: records across sealed, rolled and live segments, in order and checked.

Takes no lock. A segment that is sealed while it is being looked for is found again under its new
name. What a writer has not finished is not read, and not cut.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TypeVar

from ledger.errors import LedgerBehindError, LedgerDamagedError, LedgerUnreadableError
from ledger.identity import Identity
from ledger.instants import MAX_US, MIN_US, format_us
from ledger.layout import Layout, SegmentName, parse_name
from ledger.manifest import Manifest, decode_manifest
from ledger.osfile import read_file
from ledger.record import LINE_END, LINE_END_BYTES, Position, Record
from ledger.salvage import Flaw, salvage
from ledger.segment import SEQ_MAX, WalkEnd, encode_header, walk, walk_to_end
from ledger.source import (
    Source,
    ends_segment,
    load,
    load_prefix,
    missing_segment,
    open_segment,
)

_FIND_TRIES = 20
"""How often a segment is looked for again when it moves meanwhile; each seal moves it once."""
_TAIL_TRIES = 3

Seen = TypeVar("Seen")
_Look = Callable[[bytes, Position, int], Generator[Seen, None, WalkEnd]]
"""Goes over a segment's content from a point to a last record, and yields what it sees."""


class LogReader:
    """Reads the records of one ledger."""

    def __init__(self, layout: Layout, identity: Identity) -> None:
        """Read the ledger at `layout`, which must be the one of `identity`."""
        self._layout = layout
        self._identity = identity
        self._manifest: tuple[tuple[int, int, int], Manifest] | None = None
        self._log = str(layout.log)
        self._newest: tuple[int, int, str] | None = None

    def read(self, after: Position, until_seq: int | None = None) -> Iterator[Record]:
        """Yield the records after a position, in order, up to and with `until_seq`.

        Ends at the last whole batch. What it yields may not be synced yet unless a writer has
        said so; `until_seq` keeps to what is known to be.

        Raises:
            LedgerDamagedError: bytes are not what was written. Everything before was yielded.
            LedgerBehindError: the ledger does not hold that position.
            LedgerUnreadableError: the system refuses to read a file.
            UnknownEventError: a record is of a type or version this program does not know.
        """
        return self._pass(after, until_seq, _records)

    def read_digests(self, until_seq: int | None = None) -> Iterator[bytes]:
        """Yield the digests of all records from the first, up to and with `until_seq`.

        Each piece is the digests of some records, 32 bytes each, one after the other. Every rule
        on framing, digests, commitments and order is checked; payloads are not decoded, which
        makes it faster than `read`.

        Raises:
            LedgerDamagedError: bytes are not what was written. Everything before was yielded.
            LedgerUnreadableError: the system refuses to read a file.
        """
        return self._pass(Position.start, until_seq, _digests)

    def _pass(self, after: Position, until_seq: int | None, look: _Look[Seen]) -> Iterator[Seen]:
        """Yield what a look at each segment gives, from one to the next."""
        last = SEQ_MAX if until_seq is None else until_seq
        cursor, seen, left, tries = after, False, False, 0
        data = b""
        while cursor.seq < last:
            # A segment is let go before the next is loaded: each takes some megabytes.
            entered, data = None, b""
            entered = self._enter(cursor, seen=seen, left=left)
            if entered is None:
                return
            source, data, start = entered
            end: WalkEnd = yield from look(data, start, last)
            if end.good.seq >= last:
                return
            try:
                left = ends_segment(source, data, start, end)
            except LedgerDamagedError:
                # A writer may have cut and appended between two looks at the same file.
                if not source.newest or tries == _TAIL_TRIES:
                    raise
                tries += 1
                left = False
            else:
                if not left:
                    return
            cursor, seen = end.good, True

    def read_tolerant(
        self, after: Position, on_damage: Callable[[LedgerDamagedError], None]
    ) -> Iterator[Record]:
        """Yield every undamaged record after a position; report what lies between.

        Records come in the order in which they stand. After bad bytes it goes on at the next
        record that is consistent in itself. A torn tail is no damage and not reported.

        Raises:
            UnknownEventError: a record is of a type or version this program does not know.
            LedgerUnreadableError: the log directory cannot be listed.
        """
        expected, flawed = 1, False
        sources = self.sources(on_damage)
        for at, source in enumerate(sources):
            if at + 1 < len(sources) and sources[at + 1].first <= after.seq + 1:
                expected = sources[at + 1].first
                continue
            if source.first > expected and not flawed:
                on_damage(missing_segment(expected))
            expected, flawed = source.first, False
            for item in self._salvage(source):
                if isinstance(item, LedgerDamagedError):
                    on_damage(item)
                    flawed = True
                    continue
                expected = item.seq + 1
                if item.seq > after.seq:
                    yield item

    def position_at(self, *, seq: int | None = None, t_us: int | None = None) -> Position:
        """Return the point after the greatest record up to `seq`, of a time up to `t_us`.

        Without either: the end. Before everything: Position.start.

        Raises:
            LedgerDamagedError: a segment that must be read is damaged.
        """
        last = SEQ_MAX if seq is None else seq
        latest = None if t_us is None else format_us(min(max(t_us, MIN_US), MAX_US))
        for source in reversed(self.sources()):
            if source.first > last:
                continue
            found: Record | None = None
            for record in self.read(Position(source.first - 1, "", source.first, 0), last):
                # The record form's text order is time order.
                if latest is None or record.header.t <= latest:
                    found = record
            if found is not None:
                return found.position
            last = source.first - 1
        return Position.start

    def records_at(self, seqs: Iterable[int]) -> dict[int, Record]:
        """Return the records at some positions; what the ledger does not hold is absent.

        Only the segments that hold one of them are read.

        Raises:
            LedgerDamagedError: a segment that must be read is damaged before the last of them.
            LedgerUnreadableError: the system refuses to read a file.
            UnknownEventError: a record is of a type or version this program does not know.
        """
        left = sorted({seq for seq in seqs if seq > 0}, reverse=True)
        found: dict[int, Record] = {}
        while left:
            firsts = [source.first for source in self.sources()]
            at = bisect_right(firsts, left[-1])
            if at == 0:
                raise missing_segment(left[-1])
            first, bound = firsts[at - 1], firsts[at] if at < len(firsts) else SEQ_MAX
            here: list[int] = []
            while left and left[-1] < bound:
                here.append(left.pop())
            wanted = frozenset(here)
            for record in self.read(Position(first - 1, "", first, 0), here[-1]):
                if record.seq in wanted:
                    found[record.seq] = record
        return found

    def live_end(self) -> tuple[int, int]:
        """Return the newest segment's first seq and its size in bytes, for two `stat` calls."""
        for _ in range(_FIND_TRIES):
            mtime = os.stat(self._log).st_mtime_ns  # noqa: PTH116 - polled by requests
            newest = self._newest
            if newest is None or newest[0] != mtime:
                first = self.newest_raw()
                self._newest = newest = (mtime, first, str(self._layout.raw(first)))
            try:
                return newest[1], os.stat(newest[2]).st_size  # noqa: PTH116 - polled by requests
            except FileNotFoundError:
                self._newest = None
        raise missing_segment(0)

    def has_more(self, position: Position) -> bool:
        """Return whether the ledger holds bytes beyond a position, without reading them."""
        first, size = self.live_end()
        if first < position.segment:
            # Two changes within one tick of the directory's clock look like one.
            self._newest = None
            first, size = self.live_end()
        if first == position.segment and position.offset > 0:
            return size > position.offset
        if first != position.seq + 1:
            return True
        prev = self._identity.genesis
        header = encode_header(ledger=self._identity.ledger, first=first, prev=prev, t="." * 27)
        return size > len(header)

    def newest_raw(self) -> int:
        """Return the first seq of the newest raw segment, the live one.

        Raises:
            LedgerDamagedError: there is none.
        """
        firsts = [name.first for name in self.names() if not name.codec]
        if not firsts:
            raise missing_segment(1)
        return max(firsts)

    def names(self) -> list[SegmentName]:
        """Return the names of all segment files.

        Raises:
            LedgerUnreadableError: the directory cannot be listed.
        """
        try:
            found = [parse_name(name) for name in os.listdir(self._layout.log)]  # noqa: PTH208 - names, not paths
        except OSError as error:
            raise LedgerUnreadableError(self._layout.log, str(error)) from error
        return [name for name in found if name is not None]

    def sources(
        self, on_damage: Callable[[LedgerDamagedError], None] | None = None
    ) -> list[Source]:
        """Return every segment in order, each as the manifest says it is to be read.

        A damaged manifest is passed to `on_damage` if there is one; then nothing counts as
        sealed that also exists raw, and each sealed file must speak for itself.

        Raises:
            LedgerDamagedError: the manifest is damaged and `on_damage` is None.
            LedgerUnreadableError: a directory or the manifest cannot be read.
        """
        # Names first: a segment that is sealed in between is then found by both.
        names = self.names()
        found = {name.first: name for name in sorted(names, key=_raw_last)}
        try:
            sealed = {entry.first: entry for entry in self.manifest().segments}
        except LedgerDamagedError as error:
            if on_damage is None:
                raise
            on_damage(error)
            sealed = {}
        else:
            found = {name.first: name for name in names if not name.codec}
        newest = max([*found, *sealed], default=0)
        return [
            Source(
                first=first,
                path=self._layout.log
                / (sealed[first].name if first in sealed else found[first].file),
                entry=sealed.get(first),
                newest=first == newest,
            )
            for first in sorted({*found, *sealed})
        ]

    def manifest(self) -> Manifest:
        """Return the manifest, read again only if its file has changed.

        Raises:
            LedgerDamagedError: it is missing or not intact.
            LedgerUnreadableError: the system refuses to read it.
        """
        path = self._layout.manifest
        try:
            stat = path.stat()
            key = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
            if self._manifest is None or self._manifest[0] != key:
                data = read_file(path)
                self._manifest = (key, decode_manifest(data, ledger=self._identity.ledger))
        except FileNotFoundError as error:
            raise LedgerDamagedError(
                segment=path.name, seq=0, offset=0, reason="manifest: the file is missing"
            ) from error
        except OSError as error:
            raise LedgerUnreadableError(path, str(error)) from error
        return self._manifest[1]

    def forget(self) -> None:
        """Read the manifest again when it is next needed, however unchanged its file looks.

        Files that replace one another within one tick of the file system's clock may share size
        and inode; so whoever finds a file missing, or is about to change the manifest, asks again.
        """
        self._manifest = None

    def _enter(
        self, cursor: Position, *, seen: bool, left: bool
    ) -> tuple[Source, bytes, Position] | None:
        """Return the segment with the record after `cursor`, its content and where that starts.

        Args:
            cursor: where to go on.
            seen: the cursor comes from this read, not from the caller.
            left: a footer came at the cursor.
        """
        for _ in range(_FIND_TRIES):
            sources = [each for each in self.sources() if each.first <= cursor.seq + 1]
            if not sources:
                raise missing_segment(cursor.seq + 1)
            source = sources[-1]
            if left and source.first <= cursor.seq:
                if source.newest:
                    return None
                raise missing_segment(cursor.seq + 1)
            try:
                if source.first == cursor.seq + 1 and source.first != cursor.segment:
                    return self._enter_new(source, cursor, seen=seen)
                return self._enter_inside(source, cursor)
            except FileNotFoundError:
                self.forget()
        raise missing_segment(cursor.seq + 1)

    def _enter_new(
        self, source: Source, cursor: Position, *, seen: bool
    ) -> tuple[Source, bytes, Position]:
        data, start = open_segment(source, load(source), self._identity.ledger)
        expected = cursor.digest if cursor.seq else self._identity.genesis
        if expected and start.digest != expected:
            if not seen:
                raise LedgerBehindError(
                    known_seq=cursor.seq, end_seq=source.first - 1, reason="other"
                )
            raise source.damaged(
                seq=source.first, offset=0, reason="chain: it does not point to the record before"
            )
        return source, data, start

    def _enter_inside(self, source: Source, cursor: Position) -> tuple[Source, bytes, Position]:
        if cursor.segment != source.first:
            return self._find_inside(source, cursor)
        if cursor.offset == 0 or cursor.seq < source.first:
            return self._enter_new(source, cursor, seen=False)
        data = load(source, max(cursor.offset - LINE_END_BYTES, 0))
        # A line feed stands nowhere but at the end of a line, so this is the record's own digest.
        if data[:LINE_END_BYTES] != cursor.digest.encode() + LINE_END:
            return self._find_inside(source, cursor)
        return source, data[LINE_END_BYTES:], cursor

    def _find_inside(self, source: Source, cursor: Position) -> tuple[Source, bytes, Position]:
        """Enter a segment behind a record whose place in it is not where the cursor says.

        A redaction has rewritten the segment since, or the ledger is a restored copy that was
        rolled elsewhere: the record is the same one if its digest is.
        """
        data, start = open_segment(source, load(source), self._identity.ledger)
        end = walk_to_end(data, start, skip_to=SEQ_MAX, until=cursor.seq)
        found = end.good
        if found.seq != cursor.seq:
            # Raises if what belongs there is damaged and not just missing.
            ends_segment(source, data, start, end)
            raise LedgerBehindError(known_seq=cursor.seq, end_seq=found.seq, reason="shorter")
        if cursor.digest and found.digest != cursor.digest:
            raise LedgerBehindError(known_seq=cursor.seq, end_seq=source.first - 1, reason="other")
        return source, data[found.offset - start.offset :], found

    def _salvage(self, source: Source) -> Iterator[Record | LedgerDamagedError]:
        """Yield what a segment still holds, and an error for each place that is damaged."""
        try:
            data = load(source)
        except LedgerDamagedError as error:
            yield error
            data = load_prefix(source)
        except LedgerUnreadableError as error:
            yield source.damaged(seq=source.first, offset=0, reason=f"unreadable: {error.reason}")
            return
        try:
            content, start = open_segment(source, data, self._identity.ledger)
        except LedgerDamagedError as error:
            yield error
            length = data.find(b"\n") + 1
            content = data[length:]
            start = Position(source.first - 1, "", source.first, length)
        for item in salvage(content, start):
            if isinstance(item, Flaw):
                yield source.damaged(
                    seq=item.seq, offset=item.offset, reason=f"{item.kind}: {item.detail}"
                )
            else:
                yield item


def _records(data: bytes, start: Position, last: int) -> Generator[Record, None, WalkEnd]:
    return walk(data, start, until=last)


def _digests(data: bytes, start: Position, last: int) -> Generator[bytes, None, WalkEnd]:
    digests = bytearray()
    end = walk_to_end(data, start, skip_to=SEQ_MAX, until=last, digests=digests)
    yield bytes(digests)
    return end


def _raw_last(name: SegmentName) -> tuple[int, bool, int]:
    return name.first, not name.codec, name.gen
