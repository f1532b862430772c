"""The activity file: what was searched for, what was read by its id, and how often.

    <home>/activity.db              SQLite, mode 0600; no memory, not derived from the ledger
    <home>/activity.db.set-aside    a damaged or foreign file that was found in its place

It may be deleted at any time and never decides what a search finds. The log of searches and reads
is pruned by age; the counts are in a table of their own and stay. A file that is damaged, foreign
or of an older version is set aside and a new one begun; one of a newer version is left alone.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from projections.connection import (
    DAMAGE_ERRORS,
    CannotWrite,
    Connection,
    DatabaseError,
    StatementError,
    create_database,
)
from projections.errors import ActivityUnavailableError

APPLICATION_ID: Final = 0x6D_6C_61_63
"""Marks the file as ours: `mlac`."""

VERSION: Final = 1
"""Of the tables; another version is another file."""

BUSY_TIMEOUT_MS: Final = 250
"""Wait for another process's transaction; whoever has more time tries again."""

WAL_PAGES_MAX: Final = 1000
CACHE_KIB: Final = 1024
PRUNED_PER_TRANSACTION: Final = 1000
"""Rows deleted at a time, so that other processes get to write between."""

SET_ASIDE_MAX: Final = 9
"""Names tried for a file that is set aside: only a folder in the way takes one for good."""

_TABLES: Final = (
    """CREATE TABLE search (
        id INTEGER PRIMARY KEY, at_us INTEGER NOT NULL, workspace TEXT NOT NULL,
        actor TEXT NOT NULL, query TEXT NOT NULL, mode TEXT NOT NULL, filters TEXT NOT NULL,
        results INTEGER NOT NULL, hits TEXT NOT NULL, duration_ms REAL NOT NULL) STRICT""",
    "CREATE INDEX search_by_time ON search (at_us)",
    """CREATE TABLE read (
        id INTEGER PRIMARY KEY, at_us INTEGER NOT NULL, workspace TEXT NOT NULL,
        actor TEXT NOT NULL, memories TEXT NOT NULL) STRICT""",
    "CREATE INDEX read_by_time ON read (at_us)",
    """CREATE TABLE access (
        workspace TEXT NOT NULL, memory TEXT NOT NULL, count INTEGER NOT NULL,
        last_us INTEGER NOT NULL, PRIMARY KEY (workspace, memory)) STRICT, WITHOUT ROWID""",
)

_ADD_SEARCH: Final = "INSERT INTO search VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ADD_READ: Final = "INSERT INTO read VALUES (NULL, ?, ?, ?, ?)"
_COUNT: Final = """INSERT INTO access VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE
    SET count = count + excluded.count, last_us = max(last_us, excluded.last_us)"""

AnswerT = TypeVar("AnswerT")

_Stamp = tuple[int, int]
"""Device and inode: which file a name stands for."""


class LoggedSearch(msgspec.Struct, frozen=True, kw_only=True):
    """One search that was answered."""

    at_us: int
    workspace: str
    actor: str
    query: str
    mode: str
    filters: Mapping[str, object]
    """Arguments other than query and mode that are not their defaults; JSON values."""
    hits: Sequence[str]
    """Ids of the memories found, best first."""
    duration_ms: float


class LoggedRead(msgspec.Struct, frozen=True, kw_only=True):
    """One call that read memories by their ids."""

    at_us: int
    workspace: str
    actor: str
    memories: Sequence[str]


Logged = LoggedSearch | LoggedRead


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """How often a memory was found or read: once a call, however often the call names it."""

    memory_id: str
    count: int
    last_us: int


class ActivityTotals(msgspec.Struct, frozen=True, kw_only=True):
    """What the file holds of a workspace."""

    searches: int = 0
    reads: int = 0
    memories: int = 0
    """Memories that were ever found or read."""
    oldest_us: int | None = None
    """Time of the oldest search or read in the log; None: the log is empty."""
    problem: str | None = None
    """Why the file cannot be read; None: it can, or there is none."""


class _UnsoundError(Exception):
    """What is in the file's place is no activity file of this version or an earlier one."""


_UNSOUND: Final = (*DAMAGE_ERRORS, StatementError, _UnsoundError)
"""Reasons to set a file aside. Statements are constant: one that fails means other tables."""


class ActivityFile:
    """The file as a writer has it: opened or made when first needed, and again when replaced.

    Not thread-safe. Its methods raise ActivityUnavailableError where trying again is of no use, and
    DatabaseError or OSError where it may be.
    """

    def __init__(self, path: Path, *, log: Callable[[str], None]) -> None:
        """Remember where the file is; its folder must exist by the first write.

        Args:
            path: the file.
            log: takes what an operator should read: that a file was set aside.

        """
        self._path = path
        self._log = log
        self._connection: Connection | None = None
        self._stamp: _Stamp | None = None

    def write(self, calls: Sequence[Logged]) -> None:
        """Add calls to the log and to the counts, all or nothing.

        Raises:
            ActivityUnavailableError: the file is a newer program's, or may not be written.
            DatabaseError, OSError: not now.

        """
        searches = [_search_row(call) for call in calls if isinstance(call, LoggedSearch)]
        reads = [_read_row(call) for call in calls if isinstance(call, LoggedRead)]
        counts = _counts(calls)

        def insert(connection: Connection) -> None:
            with connection.transaction(write=True):
                connection.executemany(_ADD_SEARCH, iter(searches))
                connection.executemany(_ADD_READ, iter(reads))
                connection.executemany(_COUNT, iter(counts))

        self._run(insert)

    def prune(self, before_us: int, *, go_on: Callable[[], bool] = lambda: True) -> None:
        """Delete what was logged before an instant, a bounded number of rows at a time.

        Args:
            before_us: microseconds since 1970-01-01 UTC.
            go_on: asked after each transaction; False stops, and the next pruning goes on.

        Raises:
            ActivityUnavailableError, DatabaseError, OSError: as `write`.

        """
        for table in ("search", "read"):
            while self._delete_some(table, before_us) == PRUNED_PER_TRANSACTION and go_on():
                pass
        _remove_set_aside(self._path, before_us)

    def _delete_some(self, table: str, before_us: int) -> int:
        deleted = 0

        def delete(connection: Connection) -> None:
            nonlocal deleted
            with connection.transaction(write=True):
                connection.execute(
                    f"DELETE FROM {table} WHERE id IN "
                    f"(SELECT id FROM {table} WHERE at_us < ? LIMIT ?)",
                    (before_us, PRUNED_PER_TRANSACTION),
                )
                deleted = connection.integer("SELECT changes()") or 0

        self._run(delete)
        return deleted

    def close(self) -> None:
        """Close the file; the next write opens it again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _run(self, work: Callable[[Connection], None]) -> None:
        try:
            try:
                work(self._connected())
            except _UNSOUND as error:
                self._replace(error)
                work(self._connected())
        except CannotWrite as error:
            raise ActivityUnavailableError(str(error)) from error
        except _UnsoundError as error:
            raise ActivityUnavailableError(f"{self._path}: {error}") from error
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise ActivityUnavailableError(str(error)) from error
            raise

    def _connected(self) -> Connection:
        """Return a connection to the file that has the name now: it may have been deleted."""
        stamp = _stamp(self._path)
        if self._connection is not None and stamp == self._stamp:
            return self._connection
        self.close()
        if stamp is None:
            with _alone(self._path.parent):
                if _stamp(self._path) is None:
                    _create(self._path)
            stamp = _stamp(self._path)
        self._stamp = stamp
        self._connection = _open(self._path)
        return self._connection

    def _replace(self, reason: Exception) -> None:
        """Set the file aside, unless somebody else has done so."""
        self.close()
        with _alone(self._path.parent):
            if self._stamp is None or _stamp(self._path) != self._stamp:
                return
            name = _set_aside(self._path)
        self._log(f"mnemolog: activity log: {reason}; set aside as {name}, a new one is begun")


class ActivityLog:
    """The file as a reader has it: absent or unreadable, it answers as if it were empty."""

    def __init__(self, path: Path, workspace: str) -> None:
        """Remember the file and whose activity is asked for; nothing is opened or made."""
        self._path = path
        self._workspace = workspace

    def searches(self, limit: int) -> list[LoggedSearch]:
        """Return the latest searches, newest first, at most `limit`."""
        return self._answer(
            lambda connection: [
                LoggedSearch(
                    at_us=at_us,
                    workspace=self._workspace,
                    actor=actor,
                    query=query,
                    mode=mode,
                    filters=json.loads(filters),
                    hits=tuple(json.loads(hits)),
                    duration_ms=duration_ms,
                )
                for at_us, actor, query, mode, filters, hits, duration_ms in connection.execute(
                    "SELECT at_us, actor, query, mode, filters, hits, duration_ms FROM search "
                    "WHERE workspace = ? ORDER BY at_us DESC, id DESC LIMIT ?",
                    (self._workspace, limit),
                )
            ],
            empty=lambda _: [],
        )

    def most_read(self, limit: int) -> list[Access]:
        """Return the memories found or read most often, latest first among equals."""
        return self._answer(
            lambda connection: [
                Access(memory_id=memory, count=count, last_us=last_us)
                for memory, count, last_us in connection.execute(
                    "SELECT memory, count, last_us FROM access WHERE workspace = ? "
                    "ORDER BY count DESC, last_us DESC, memory LIMIT ?",
                    (self._workspace, limit),
                )
            ],
            empty=lambda _: [],
        )

    def read_since(self, since_us: int) -> set[str]:
        """Return the ids of the memories found or read at an instant or later."""
        return self._answer(
            lambda connection: {
                memory
                for (memory,) in connection.execute(
                    "SELECT memory FROM access WHERE workspace = ? AND last_us >= ?",
                    (self._workspace, since_us),
                )
            },
            empty=lambda _: set(),
        )

    def totals(self) -> ActivityTotals:
        """Return how much there is, and what is wrong with the file if it cannot be read."""
        return self._answer(
            lambda connection: _totals(connection, self._workspace),
            empty=lambda problem: ActivityTotals(problem=problem),
        )

    def _answer(
        self,
        ask: Callable[[Connection], AnswerT],
        *,
        empty: Callable[[str | None], AnswerT],
    ) -> AnswerT:
        """Return what the file says, or the empty answer, which is told why it cannot be read."""
        try:
            if _stamp(self._path) is None:
                return empty(None)
            # On read-only media a file is read as it stands.
            connection = _open(self._path, frozen=not os.access(self._path.parent, os.W_OK))
            try:
                with connection.transaction(write=False):
                    return ask(connection)
            finally:
                connection.close()
        except (ActivityUnavailableError, _UnsoundError, DatabaseError, OSError) as error:
            return empty(str(error))


def problem_of(path: Path) -> str | None:
    """Say what is wrong with the file, if anything; nothing is written, not even beside it."""
    try:
        if _stamp(path) is None or _companion(path, "-wal").exists():
            return None  # not there, or in use by those who will say
        _open(path, frozen=True).close()
    except (ActivityUnavailableError, _UnsoundError, DatabaseError, OSError) as error:
        return str(error)
    return None


def clear_activity(path: Path) -> None:
    """Forget the activity of all workspaces, counts and files set aside included.

    Rows are overwritten, not only unlinked; a file that cannot be read as ours is removed.

    Raises:
        ActivityUnavailableError: the file is a newer program's, busy, or may not be written.

    """
    _purge(path, lambda: _erase(path))


def forget_queries(path: Path, memories: Collection[str]) -> None:
    """Take the words out of the log of searches, and memories out of the counts.

    A query may hold words of what is erased. That a search was made, when and what it found stays.
    Files set aside are removed.

    Args:
        path: the activity file.
        memories: ids of those that are no more.

    Raises:
        ActivityUnavailableError: the file is a newer program's, busy, or may not be written.

    """
    _purge(path, lambda: _forget(path, memories))


def _purge(path: Path, forget: Callable[[], None]) -> None:
    """Take something out of the file; one that cannot be read, or was set aside, goes whole."""
    try:
        if _stamp(path) is not None:
            try:
                forget()
            except _UNSOUND:
                with _alone(path.parent):
                    _remove(path)
        _remove_set_aside(path)
    except (DatabaseError, OSError) as error:
        raise ActivityUnavailableError(str(error)) from error


def _forget(path: Path, memories: Collection[str]) -> None:
    connection = _open(path)
    try:
        with connection.transaction(write=True):
            connection.execute("UPDATE search SET query = '', filters = '{}'")
            connection.executemany(
                "DELETE FROM access WHERE memory = ?", iter([(each,) for each in memories])
            )
        busy = connection.integer("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()
    if busy:
        raise ActivityUnavailableError("some process reads the activity log")


def _erase(path: Path) -> None:
    connection = _open(path)
    try:
        with connection.transaction(write=True):
            for table in ("search", "read", "access"):
                connection.execute(f"DELETE FROM {table}")
        # The write-ahead log holds the rows as well.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()


def _counts(calls: Iterable[Logged]) -> list[tuple[str, str, int, int]]:
    """Return workspace, memory, how often and when last, in the order of the table's key."""
    counts: dict[tuple[str, str], tuple[int, int]] = {}
    for call in calls:
        workspace = _clean(call.workspace)
        for memory in set(_ids(call)):
            key = workspace, _clean(memory)
            count, last_us = counts.get(key, (0, call.at_us))
            counts[key] = count + 1, max(last_us, call.at_us)
    return sorted((*key, *counted) for key, counted in counts.items())


def _ids(call: Logged) -> Sequence[str]:
    return call.hits if isinstance(call, LoggedSearch) else call.memories


def _search_row(search: LoggedSearch) -> tuple[int | str | float, ...]:
    return (
        search.at_us,
        _clean(search.workspace),
        _clean(search.actor),
        _clean(search.query),
        search.mode,
        json.dumps(search.filters),
        len(search.hits),
        json.dumps(search.hits),
        search.duration_ms,
    )


def _read_row(read: LoggedRead) -> tuple[int | str, ...]:
    return (
        read.at_us,
        _clean(read.workspace),
        _clean(read.actor),
        json.dumps(read.memories),
    )


def _clean(text: str) -> str:
    """Return a text as UTF-8 can hold it: a command line may give any bytes."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def _totals(connection: Connection, workspace: str) -> ActivityTotals:
    rows = [
        connection.one(f"SELECT count(*), min(at_us) FROM {table} WHERE workspace = ?", [workspace])
        for table in ("search", "read")
    ]
    (searches, first_search), (reads, first_read) = (row or (0, None) for row in rows)
    memories = connection.integer("SELECT count(*) FROM access WHERE workspace = ?", [workspace])
    return ActivityTotals(
        searches=searches,
        reads=reads,
        memories=memories or 0,
        oldest_us=min((us for us in (first_search, first_read) if us is not None), default=None),
    )


def _open(path: Path, *, frozen: bool = False) -> Connection:
    """Open the file, perhaps only to read it, and make sure that it is ours."""
    if not stat.S_ISREG(path.lstat().st_mode):
        raise _UnsoundError("it is no file")
    connection = Connection(path, frozen=frozen, busy_timeout_ms=BUSY_TIMEOUT_MS)
    try:
        # A mapped file that somebody cuts short kills the process that looks at it.
        connection.execute("PRAGMA mmap_size=0")
        connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
        connection.execute(f"PRAGMA wal_autocheckpoint={WAL_PAGES_MAX}")
        _check_identity(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_identity(connection: Connection) -> None:
    if connection.integer("PRAGMA application_id") != APPLICATION_ID:
        raise _UnsoundError("it is another program's file")
    version = connection.integer("PRAGMA user_version") or 0
    if version > VERSION:
        raise ActivityUnavailableError(
            "it was written by a newer mnemolog; restart or upgrade this program"
        )
    if version < VERSION:
        raise _UnsoundError("it is of an older version")


def _create(path: Path) -> None:
    """Make the file with its tables, under another name until it is whole."""
    # A log left behind by a file that was deleted alone would be read as the new file's.
    _remove(path)
    new = path.with_name(f"{path.name}.new")
    _remove(new)
    create_database(new)
    connection = Connection(new)
    try:
        with connection.transaction(write=True):
            for table in _TABLES:
                connection.execute(table)
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version={VERSION}")
    finally:
        connection.close()
    new.rename(path)


def _set_aside(path: Path) -> str:
    """Rename the file, over one set aside earlier; return its new name."""
    for number in range(1, SET_ASIDE_MAX + 1):
        aside = _aside(path, number)
        try:
            path.rename(aside)
        except OSError as error:
            if error.errno not in (errno.EISDIR, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST):
                raise
            continue
        _companion(aside, "-wal").unlink(missing_ok=True)  # of the one set aside before
        with suppress(FileNotFoundError):
            _companion(path, "-wal").rename(_companion(aside, "-wal"))
        _companion(path, "-shm").unlink(missing_ok=True)
        return aside.name
    raise ActivityUnavailableError(f"{path} is damaged and there is no name to set it aside under")


def _aside(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.set-aside" + (f"-{number}" if number > 1 else ""))


def _remove_set_aside(path: Path, before_us: int | None = None) -> None:
    """Remove files that were set aside, if last changed before an instant; folders stay."""
    for number in range(1, SET_ASIDE_MAX + 1):
        aside = _aside(path, number)
        with suppress(FileNotFoundError):
            info = aside.lstat()
            if not stat.S_ISDIR(info.st_mode) and (
                before_us is None or info.st_mtime_ns // 1000 < before_us
            ):
                _remove(aside)


def _remove(path: Path) -> None:
    """Remove a database and its companions, as far as they are there."""
    for name in (path, _companion(path, "-wal"), _companion(path, "-shm")):
        name.unlink(missing_ok=True)


def _companion(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _stamp(path: Path) -> _Stamp | None:
    try:
        info = path.lstat()
    except FileNotFoundError:
        return None
    return info.st_dev, info.st_ino


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold off other processes that would make, replace or remove the file.

    Raises:
        BlockingIOError: one of them is at it.

    """
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(fd)
