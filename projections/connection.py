"""The one place that opens SQLite.

Every connection has the same pragmas. A database file is created by us, empty and with mode 0600,
before SQLite sees it; from then on only SQLite opens it: closing any other descriptor of a live
database drops the process's POSIX locks (https://sqlite.org/howtocorrupt.html, section 2.2).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw

BUSY_TIMEOUT_MS = 30_000
"""Only checkpoints and the swap of generations ever contend: writers hold the ledger's lock."""

CACHE_KIB_SERVING = 16_384
CACHE_KIB_BUILDING = 262_144
MMAP_BYTES_MAX = 1 << 30
WAL_BYTES_KEPT = 4 << 20
STATEMENTS_CACHED = 128

_FROZEN = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI

DAMAGE_ERRORS = (apsw.CorruptError, apsw.NotADBError)
"""What SQLite raises on a damaged file; FTS5 reports its own damage through the first."""


STORAGE_ERRORS = (apsw.FullError, apsw.IOError, apsw.ReadOnlyError, apsw.CantOpenError)
"""What SQLite raises when the disk is full or will not be written to."""

CannotOpen = apsw.CantOpenError
"""What SQLite raises when a database, or the folder it is in, is gone."""

StatementError = apsw.SQLError
"""A statement that SQLite could not even prepare: in a sound generation, a bug."""

Interrupted = apsw.InterruptError
"""Raised by a statement that `Connection.interrupt` stopped."""

CannotWrite = apsw.ReadOnlyError
"""What SQLite raises when a database may only be read."""

DatabaseError = apsw.Error
"""Whatever SQLite raises, a lock that was not had in time included."""


class Connection:
    """One SQLite connection: execute, fetch, transaction."""

    def __init__(
        self,
        path: Path,
        *,
        building: bool = False,
        frozen: bool = False,
        busy_timeout_ms: int = BUSY_TIMEOUT_MS,
    ) -> None:
        """Open an existing database.

        Args:
            path: the database file; it must exist.
            building: journal and syncs off, for a file that nobody else can see yet.
            frozen: read a file that nobody changes, without locks and without a file beside it.
                Its path must be absolute.
            busy_timeout_ms: how long a statement waits for another connection's lock.

        """
        # As a URI, in which `#`, `?` and `%` of the path are escaped.
        self._raw = apsw.Connection(
            f"{path.as_uri()}?immutable=1" if frozen else str(path),
            flags=(_FROZEN if frozen else apsw.SQLITE_OPEN_READWRITE) | apsw.SQLITE_OPEN_NOFOLLOW,
            statementcachesize=STATEMENTS_CACHED,
        )
        self._raw.set_busy_timeout(busy_timeout_ms)
        # Erased rows must not linger in free pages, so this is on before the first page is written.
        self.execute("PRAGMA secure_delete=ON")
        self.execute("PRAGMA temp_store=MEMORY")
        self.execute("PRAGMA trusted_schema=OFF")
        if building:
            self.execute("PRAGMA journal_mode=OFF")
            self.execute("PRAGMA synchronous=OFF")
            self.execute("PRAGMA locking_mode=EXCLUSIVE")
            self.execute(f"PRAGMA cache_size=-{CACHE_KIB_BUILDING}")
            return
        self.execute(f"PRAGMA cache_size=-{CACHE_KIB_SERVING}")
        self.execute(f"PRAGMA mmap_size={MMAP_BYTES_MAX}")
        if not frozen:
            self.execute("PRAGMA journal_mode=WAL")
            # A commit does not sync: the ledger is the durable copy. Checkpoints do sync, and they
            # run in the background, not inside somebody's commit.
            self.execute("PRAGMA synchronous=NORMAL")
            self.execute("PRAGMA wal_autocheckpoint=0")
            self.execute(f"PRAGMA journal_size_limit={WAL_BYTES_KEPT}")

    def execute(self, sql: str, params: Sequence[Any] = ()) -> apsw.Cursor:
        """Run one statement; iterate the result for its rows."""
        return self._raw.execute(sql, params)

    def executemany(self, sql: str, rows: Iterator[Sequence[Any]]) -> None:
        """Run one statement for each row of parameters."""
        self._raw.executemany(sql, rows)

    def one(self, sql: str, params: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """Return the first row, or None."""
        row: tuple[Any, ...]
        for row in self._raw.execute(sql, params):
            return row
        return None

    def value(self, sql: str, params: Sequence[Any] = ()) -> Any:  # noqa: ANN401 - a SQLite value
        """Return the first column of the first row, or None."""
        row = self.one(sql, params)
        return None if row is None else row[0]

    def integer(self, sql: str, params: Sequence[Any] = ()) -> int | None:
        """Return the first column of the first row, an integer, or None."""
        value = self.value(sql, params)
        assert value is None or isinstance(value, int)
        return value

    def changes_total(self) -> int:
        """Return how many rows this connection has changed since it was opened."""
        return self._raw.total_changes()

    def database_bytes(self) -> int:
        """Return the size of the database."""
        pages, page_bytes = self.integer("PRAGMA page_count"), self.integer("PRAGMA page_size")
        return (pages or 0) * (page_bytes or 0)

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[None]:
        """Run a block in one transaction; any exception rolls it back."""
        self._raw.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        try:
            yield
            self._raw.execute("COMMIT")
        except BaseException:
            if not self._raw.get_autocommit():
                self._raw.execute("ROLLBACK")
            raise

    def keep(self) -> None:
        """Commit what a write transaction has done so far and go on in a new one."""
        self._raw.execute("COMMIT")
        self._raw.execute("BEGIN IMMEDIATE")

    def find_room(self) -> None:
        """Write the open transaction's changes out, so that a full disk shows before its end."""
        self._raw.cache_flush()

    def interrupt(self) -> None:
        """Make a statement that runs on another thread fail with `Interrupted`."""
        self._raw.interrupt()

    def checkpoint_wal(self) -> None:
        """Copy the write-ahead log into the database as far as readers allow, waiting for nobody.

        Once all of it is copied and no reader looks at it, the next write starts it anew.
        """
        with suppress(apsw.BusyError):  # another connection is at it
            self._raw.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def empty_wal(self) -> None:
        """Copy the write-ahead log as `checkpoint_wal` does and cut it, if no reader looks at it.

        Waits for nobody: a reader that has a transaction open keeps the log as it is.
        """
        self._raw.set_busy_timeout(0)
        try:
            with suppress(apsw.BusyError):
                self._raw.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        finally:
            self._raw.set_busy_timeout(BUSY_TIMEOUT_MS)

    def leave_wal(self) -> None:
        """Let `close` leave the write-ahead log, even if nobody else has the database open."""
        self._raw.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)

    def close(self) -> None:
        """Close; a second call does nothing."""
        self._raw.close()


class ConnectionPool:
    """Read connections, last returned first used, so that one busy caller keeps one warm cache."""

    def __init__(self, path: Path, *, frozen: bool = False) -> None:
        """Remember the database; connections are opened when first needed."""
        self._path = path
        self._frozen = frozen
        self._free: list[Connection] = []
        self._mutex = threading.Lock()
        self._closed = False

    @contextmanager
    def borrow(self) -> Iterator[Connection]:
        """Lend a connection to the calling thread."""
        with self._mutex:
            connection = self._free.pop() if self._free else None
        if connection is None:
            connection = Connection(self._path, frozen=self._frozen)
        try:
            yield connection
        finally:
            with self._mutex:
                keep = not self._closed
                if keep:
                    self._free.append(connection)
            if not keep:
                connection.close()

    def close(self) -> None:
        """Close the free connections now and the lent ones when they come back."""
        with self._mutex:
            self._closed = True
            free, self._free = self._free, []
        for connection in free:
            connection.close()


def create_database(path: Path) -> None:
    """Make an empty database file that only its owner may read.

    Raises:
        FileExistsError: the file is there already.

    """
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
