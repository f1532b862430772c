"""The ledger as one object: opening and creating it, its lock, and reading."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Event as StopEvent
from types import TracebackType

from msgspec import Struct

from ledger.clock import Clock
from ledger.codec import Codec
from ledger.errors import (
    LedgerDamagedError,
    LedgerNotFoundError,
    LedgerPutAsideError,
    LedgerReadOnlyError,
    LedgerUnreadableError,
    LedgerWriteError,
    WriteReason,
)
from ledger.identity import (
    Identity,
    decode_identity,
    encode_identity,
    new_identity,
)
from ledger.ids import IdSource
from ledger.instants import format_us
from ledger.layout import REPLACED, Layout
from ledger.live import LiveOptions, LiveSegment, Report
from ledger.lock import FileLock
from ledger.manifest import Manifest, encode_manifest, new_manifest
from ledger.osfile import TEMPORARY, OsFiles, read_file, write_reason
from ledger.reader import LogReader
from ledger.record import Position, Record
from ledger.segment import encode_header
from ledger.writer import Writer

_CREATE_TIMEOUT_S = 30.0


class LedgerOptions(Struct, frozen=True, kw_only=True):
    """How a ledger is kept.

    Attributes:
        segment_bytes_max: the live segment is rolled at this size (bytes) or above.
        segment_age_s_max: it is rolled at this age (seconds) or above, looked at after an append.
        codec: compression of segments sealed from now on.
    """

    segment_bytes_max: int = 16 * 1024 * 1024
    segment_age_s_max: int = 24 * 60 * 60
    codec: Codec = "zst"


class LedgerLock:
    """Holding the ledger's lock, as a context manager that yields the writer."""

    __slots__ = ("_lock", "_refusal", "_timeout_s", "_writer")

    def __init__(
        self, lock: FileLock, writer: Writer, timeout_s: float, refusal: WriteReason | None
    ) -> None:
        """Keep what is needed to take the lock; nothing is taken yet."""
        self._lock = lock
        self._writer = writer
        self._timeout_s = timeout_s
        self._refusal = refusal

    def __enter__(self) -> Writer:
        """Take the lock.

        Raises:
            LockTimeoutError: another writer kept it.
            LedgerForkedError: the ledger was opened before a fork.
            LedgerReadOnlyError: the ledger was opened read-only, or the lock file can be neither
                opened nor created.
        """
        if self._refusal is not None:
            raise LedgerReadOnlyError(self._refusal)
        self._lock.acquire(self._timeout_s)
        return self._writer

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the lock back; a group that was not committed is gone."""
        self._writer.expire()
        self._lock.release()


class Ledger:
    """One ledger, open. Reading takes no lock; appending happens inside `lock`."""

    def __init__(
        self,
        layout: Layout,
        identity: Identity,
        *,
        clock: Clock,
        ids: IdSource,
        options: LedgerOptions,
        files: OsFiles,
    ) -> None:
        """Use `Ledger.open`."""
        self.layout = layout
        self.identity = identity
        self.options = options
        self.clock = clock
        self.ids = ids
        self.files = files
        self.reader = LogReader(layout, identity)
        self.refusal = _refusal(layout, files)
        """Why nothing can be appended, as found when the ledger was opened; None if it can."""
        self._lock = FileLock(layout.lock, files)
        self._live = LiveSegment(
            layout=layout,
            identity=identity,
            reader=self.reader,
            lock=self._lock,
            files=files,
            clock=clock,
            options=LiveOptions(
                bytes_max=options.segment_bytes_max, age_s_max=options.segment_age_s_max
            ),
        )

    @classmethod
    def open(
        cls,
        root: Path,
        *,
        clock: Clock,
        ids: IdSource,
        options: LedgerOptions | None = None,
        files: OsFiles | None = None,
    ) -> Ledger:
        """Open the ledger in the directory `root` (`<home>/ledger`), creating it if it is absent.

        An existing ledger is opened without writing to it, so read-only media will do. If the
        system does not let this process write, or the file system knows no locks, `is_read_only`
        says so and `lock` refuses for the life of the object.

        Raises:
            LedgerFormatError: it is of a format this program does not speak.
            LedgerDamagedError: FORMAT is damaged, or missing although there are records.
            LedgerPutAsideError: it is absent, and a restore has put one aside.
            LedgerUnreadableError: the system refuses to read it.
            LedgerWriteError: it could not be created.
            LockTimeoutError: someone else is creating it and does not finish.
        """
        files = files or OsFiles()
        layout = Layout(root)
        identity = read_identity(layout)
        if identity is None:
            identity = _create(layout, clock=clock, ids=ids, files=files)
        for directory in (layout.root, layout.log, layout.quarantine):
            files.tighten(directory)
        return cls(
            layout, identity, clock=clock, ids=ids, options=options or LedgerOptions(), files=files
        )

    @classmethod
    def open_existing(
        cls,
        root: Path,
        *,
        clock: Clock,
        ids: IdSource,
        options: LedgerOptions | None = None,
        files: OsFiles | None = None,
    ) -> Ledger:
        """Open the ledger in the directory `root`, which must have one.

        Raises:
            LedgerNotFoundError: there is none.
            LedgerError: as `open`.
        """
        if not Layout(root).format.exists():
            raise LedgerNotFoundError(root)
        return cls.open(root, clock=clock, ids=ids, options=options, files=files)

    @property
    def is_read_only(self) -> bool:
        """Whether nothing can be appended; `refusal` says why."""
        return self.refusal is not None

    @property
    def id(self) -> str:
        """The ledger's random id."""
        return self.identity.ledger

    @property
    def key(self) -> bytes:
        """The HMAC key of idempotency digests, 32 bytes."""
        return bytes.fromhex(self.identity.key)

    @property
    def reports(self) -> list[Report]:
        """What was put right, or could not be, since the ledger was opened."""
        return self._live.reports

    def idempotency_digest(self, workspace: str, actor: str, key: str) -> str:
        """Return the 32 hex characters that stand for an actor's idempotency key in a header."""
        return self.identity.idempotency_digest(workspace, actor, key)

    def lock(self, timeout_s: float) -> LedgerLock:
        """Return the lock as a context manager that yields a Writer.

        Args:
            timeout_s: how long to wait for other writers, in seconds; 0 tries once.
        """
        writer = Writer(live=self._live, identity=self.identity, clock=self.clock)
        return LedgerLock(self._lock, writer, timeout_s, self.refusal)

    def read(self, after: Position, until_seq: int | None = None) -> Iterator[Record]:
        """Yield the records after a position, up to and with `until_seq`; see LogReader.read."""
        return self.reader.read(after, until_seq)

    def read_digests(self, until_seq: int | None = None) -> Iterator[bytes]:
        """Yield the digests of all records up to `until_seq`; see LogReader.read_digests."""
        return self.reader.read_digests(until_seq)

    def read_tolerant(
        self, after: Position, on_damage: Callable[[LedgerDamagedError], None]
    ) -> Iterator[Record]:
        """Yield every undamaged record after a position; see LogReader.read_tolerant."""
        return self.reader.read_tolerant(after, on_damage)

    def records_at(self, seqs: Iterable[int]) -> dict[int, Record]:
        """Return the records at some positions; see LogReader.records_at."""
        return self.reader.records_at(seqs)

    def position_at(self, *, seq: int | None = None, t_us: int | None = None) -> Position:
        """Return the point after the greatest record up to a seq, or of a time up to an instant.

        Args:
            seq: the greatest seq wanted.
            t_us: the latest time wanted, in microseconds since 1970-01-01 UTC.

        Raises:
            LedgerDamagedError: a segment that must be read is damaged.
        """
        return self.reader.position_at(seq=seq, t_us=t_us)

    def live_end(self) -> tuple[int, int]:
        """Return the newest segment's first seq and its size in bytes."""
        return self.reader.live_end()

    def has_more(self, position: Position) -> bool:
        """Return whether there is anything beyond a position, for the price of two `stat` calls."""
        return self.reader.has_more(position)

    def follow(self, after: Position, stop: StopEvent, poll_s: float) -> Iterator[Record]:
        """Yield the records after a position and then those that come, until `stop` is set.

        Args:
            after: where to begin.
            stop: ends the iteration; looked at once a round and while waiting.
            poll_s: how long to wait between looks, in seconds.

        Raises:
            LedgerDamagedError: as `read`.
        """
        cursor = after
        while not stop.is_set():
            if self.has_more(cursor):
                last: Record | None = None
                for last in self.read(cursor):
                    yield last
                if last is not None:
                    cursor = last.position
            stop.wait(poll_s)

    def replace_manifest(self, manifest: Manifest) -> None:
        """Put a new manifest in place. Only under the lock.

        Raises:
            OSError: it could not be made durable; the old one may still be there.
        """
        self.files.replace_file(self.layout.manifest, encode_manifest(manifest))

    def manifest(self) -> Manifest:
        """Return the manifest.

        Raises:
            LedgerDamagedError: it is missing or not intact.
        """
        return self.reader.manifest()

    def close(self) -> None:
        """Close the files; the lock must not be held. The object may be used again."""
        self._live.close()
        self._lock.close()


def read_identity(layout: Layout) -> Identity | None:
    """Return what FORMAT says, None if there is no FORMAT.

    Raises:
        LedgerFormatError: it is of a format this program does not speak.
        LedgerDamagedError: it is damaged.
        LedgerUnreadableError: the system refuses to read it.
    """
    try:
        data = read_file(layout.format)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LedgerUnreadableError(layout.format, str(error)) from error
    return decode_identity(data, layout.format)


def _create(layout: Layout, *, clock: Clock, ids: IdSource, files: OsFiles) -> Identity:
    """Create the ledger; FORMAT comes last, so a ledger with FORMAT is whole."""
    if aside := put_aside(layout.root):
        raise LedgerPutAsideError(layout.root, aside[-1])
    try:
        for directory in (layout.root, layout.log, layout.quarantine):
            files.ensure_directory(directory)
        # An earlier creation may have died between making a directory and syncing its name.
        files.sync_ancestors(layout.root)
        lock = FileLock(layout.lock, files)
        with closing(lock):
            lock.acquire(_CREATE_TIMEOUT_S)
            try:
                identity = read_identity(layout)
                if identity is None:
                    _refuse_remains(layout)
                    identity = new_identity(ids)
                    _fill(layout, identity, clock, files)
                return identity
            finally:
                lock.release()
    except OSError as error:
        raise LedgerWriteError(outcome="not_written", reason=write_reason(error)) from error


def put_aside(root: Path) -> list[str]:
    """Return the names of the ledgers that restores have put aside for this one, oldest first."""
    try:
        names = os.listdir(root.parent)  # noqa: PTH208 - names are all that is needed
    except FileNotFoundError:
        return []
    return sorted(name for name in names if name.startswith(f"{root.name}{REPLACED}"))


def _fill(layout: Layout, identity: Identity, clock: Clock, files: OsFiles) -> None:
    header = encode_header(
        ledger=identity.ledger, first=1, prev=identity.genesis, t=format_us(clock.now_us())
    )
    files.replace_file(layout.manifest, encode_manifest(new_manifest(identity.ledger)))
    files.replace_file(layout.raw(1), header)
    files.replace_file(layout.format, encode_identity(identity))


def _refuse_remains(layout: Layout) -> None:
    """Raise if records exist without a FORMAT: creating one would hide them."""
    for name in os.listdir(layout.log):  # noqa: PTH208 - names are all that is needed
        path = layout.log / name
        if name.endswith(TEMPORARY):
            continue
        data = read_file(path)
        if path == layout.raw(1) and data.startswith(b'{"segment":') and data.count(b"\n") == 1:
            # A creation that died before FORMAT leaves just this.
            continue
        raise LedgerDamagedError(
            segment="FORMAT", seq=0, offset=0, reason="format: missing, yet there are records"
        )


def _refusal(layout: Layout, files: OsFiles) -> WriteReason | None:
    """Say why nothing can be appended to an existing ledger; asks the system, changes nothing."""
    newest = max(layout.log.glob("*.jsonl"), default=layout.log)
    if not all(map(files.may_write, (layout.root, layout.log, newest))):
        return "read_only"
    return None if files.has_locks(layout.format) else "no_locks"
