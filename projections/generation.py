"""Generations: whole copies of the projections, of which `CURRENT` names the one in use.

    <home>/projections/CURRENT                  one line: the name of a generation
    <home>/projections/REBUILD                  flock'd by whoever rebuilds because it must
    <home>/projections/REDACT                   flock'd by whoever erases what was redacted
    <home>/projections/g000007-k3v9q2xm/memory.db
    <home>/projections/g000007-k3v9q2xm/IN_USE  flock'd, shared, by every process that has it open

A rebuild fills a new generation while the old one serves and then replaces `CURRENT`; names are
never used again, so a write-ahead log can never meet another database. A generation that `CURRENT`
does not name is removed when nobody holds `IN_USE`. All of it may be deleted at any time.

Of a store that cannot be written to, the generation in use is read as it stands, *frozen*: without
a lock, and without a file beside the database. Module `readonly` says when that will do.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ledger import Ledger, LedgerError, OsFiles, Position, RandomIds, Writer
from projections.checkpoint import read_checkpoint, write_checkpoint
from projections.connection import CannotOpen, Connection, ConnectionPool, create_database
from projections.errors import ProjectionMissingError
from projections.lock_files import exclusively
from projections.projector import Projector
from projections.schema import check_versions

_NAME = re.compile(r"g(\d{6})-[a-z2-7]{16}")
_FOLDER = re.compile(r"(g\d{6}|new)-[a-z2-7]{16}")
_DATABASE = "memory.db"

ROOM_BYTES_MIN = 64 << 20
"""Free space below which a transaction makes sure of its room before it is promised."""

Stamp = tuple[int, ...] | None
"""What changes when `CURRENT` is replaced: its inode and modification time; None without one."""


class Generation:
    """One generation, open: a connection that writes, a pool that reads, a projector.

    `is_doubtful` asks for a thorough check when there is time: the process that used it last was
    cut off, or an empty answer was given out on a sample's word.
    """

    def __init__(self, folder: Path, *, frozen: bool = False) -> None:
        """Open a generation and hold it in use.

        Args:
            folder: where it is; the path must be absolute.
            frozen: read it as it stands; `writer` can then only read.

        Raises:
            FileNotFoundError: it was removed meanwhile.
            ProgramOutdatedError, ProjectionOutdatedError: another version of the program wrote it.
            ProjectionDamagedError: tables are missing.

        """
        self.name = folder.name
        self._database = folder / _DATABASE
        self._wal = folder / f"{_DATABASE}-wal"
        self._as_found = self._look() if frozen else None
        access = os.O_RDONLY if frozen else os.O_RDWR
        self._in_use = os.open(folder / "IN_USE", access | os.O_CLOEXEC)
        try:
            self.is_doubtful = self._peek() if frozen else self._hold()
            self.writer = Connection(self._database, frozen=frozen)
            try:
                check_versions(self.writer, self.name)
                gaps = self.writer.execute("SELECT detail FROM gaps")
                self.gaps = tuple(detail for (detail,) in gaps)
            except BaseException:
                self.writer.close()
                raise
        except BaseException:
            os.close(self._in_use)
            raise
        self.readers = ConnectionPool(self._database, frozen=frozen)
        self.projector = Projector(self.writer)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Run a block in one write transaction; what it had changed is forgotten if it fails."""
        try:
            with self.writer.transaction(write=True):
                yield
        except BaseException:
            self.projector.forget_changes()
            raise

    def catch_up(self, writer: Writer) -> bool:
        """Apply what the ledger holds beyond the checkpoint; call it in a write transaction.

        Returns:
            Whether there was anything.

        Raises:
            LedgerDamagedError, LedgerBehindError: see `Writer.catch_up`.

        """
        known = read_checkpoint(self.writer)
        for record in writer.catch_up(known):
            self.projector.apply(record)
        if writer.end == known:
            return False
        self.projector.flush_indexes()
        write_checkpoint(self.writer, writer.end)
        return True

    def follow(self, ledger: Ledger) -> None:
        """Apply what the ledger holds beyond the checkpoint, in a copy that only this process has.

        For a ledger that is read without its lock.

        Raises:
            LedgerError: it cannot be read; what came before that was applied.

        """
        end: Position | None = None
        unreadable: LedgerError | None = None
        with self.changing():
            try:
                for record in ledger.read(read_checkpoint(self.writer) or Position.start):
                    self.projector.apply(record)
                    end = record.position
            except LedgerError as error:
                unreadable = error
            if end is not None:
                self.projector.flush_indexes()
                write_checkpoint(self.writer, end)
        if unreadable is not None:
            raise unreadable

    def is_as_found(self) -> bool:
        """Say whether a frozen generation is what it was when it was opened; True for any other."""
        try:
            return self._as_found is None or self._as_found == self._look()
        except FileNotFoundError:
            return False

    def is_disk_tight(self) -> bool:
        """Say whether a transaction might not find room on the disk."""
        status = os.fstatvfs(self._in_use)
        return status.f_bavail * status.f_frsize < ROOM_BYTES_MIN

    def wal_bytes(self) -> int:
        """Return the size of the write-ahead log."""
        try:
            return self._wal.stat().st_size
        except FileNotFoundError:
            return 0

    def close(self) -> None:
        """Close the connections and let go of the generation.

        The write-ahead log of a doubtful one stays, so that whoever opens it next doubts it too.
        """
        self.readers.close()
        if self.is_doubtful:
            self.writer.leave_wal()
        self.writer.close()
        os.close(self._in_use)

    def _look(self) -> tuple[int, ...]:
        """Return what changes when the database does."""
        status = self._database.stat()
        return status.st_ino, status.st_size, status.st_mtime_ns, self.wal_bytes()

    def _peek(self) -> bool:
        """Keep others from removing it, if this file system has locks; a frozen log is empty."""
        with suppress(OSError):
            fcntl.flock(self._in_use, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False

    def _hold(self) -> bool:
        """Take the shared lock; say whether the last process to use this generation was cut off.

        The last clean close removes the write-ahead log. A log that is there while nobody has the
        generation open was left by a crash.
        """
        try:
            fcntl.flock(self._in_use, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            alone = False
        else:
            alone = True
        left_over = alone and self._wal.exists()
        fcntl.flock(self._in_use, fcntl.LOCK_SH)
        return left_over


class Generations:
    """The folder of generations."""

    def __init__(self, root: Path, files: OsFiles) -> None:
        """Bind to a folder; it is created when something must be written into it."""
        self._files = files
        self._ids = RandomIds()
        self._move_to(root)

    def _move_to(self, root: Path) -> None:
        self._root = root
        self._current = str(root / "CURRENT")

    def stamp(self) -> Stamp:
        """Identify the present content of `CURRENT` at the price of one `stat`."""
        try:
            status = os.stat(self._current)  # noqa: PTH116 - asked at every call
        except (FileNotFoundError, NotADirectoryError):
            return None
        return status.st_ino, status.st_mtime_ns

    def open_current(self, *, frozen: bool = False) -> Generation:
        """Open the generation in use, perhaps to read it as it stands.

        Raises:
            ProjectionMissingError: there is none, or what `CURRENT` names is gone.
            ProgramOutdatedError, ProjectionOutdatedError, ProjectionDamagedError: see `Generation`.

        """
        while True:
            name = self.current()
            if name is None:
                raise ProjectionMissingError("no projection is in use")
            try:
                generation = Generation(self._root / name, frozen=frozen)
            except PermissionError:
                raise
            except (OSError, CannotOpen) as error:
                if name != self.current():
                    continue  # swapped and removed between the two reads
                raise ProjectionMissingError(f"projection {name} cannot be opened") from error
            if name == self.current():
                return generation
            generation.close()

    def current(self) -> str | None:
        """Return the name of the generation in use; None when there is none."""
        try:
            name = (self._root / "CURRENT").read_text().removesuffix("\n")
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError, UnicodeDecodeError):
            return None
        return name if _NAME.fullmatch(name) and (self._root / name / _DATABASE).exists() else None

    def close(self) -> None:
        """Remove what was made for this process alone: nothing."""

    @contextmanager
    def new(self) -> Iterator[Path]:
        """Make a generation for the block to fill; yields the path of its empty database.

        It is held in use for the block, and removed after it unless `publish` made it current.
        """
        self._files.ensure_directory(self._root)
        # It gets its name once it is held, so that nobody's clean-up can come between.
        nameless = self._root / f"new-{self._ids.new_id()}"
        self._files.ensure_directory(nameless)
        with exclusively(nameless / "IN_USE"):
            numbers = [int(match[1]) for match in map(_NAME.fullmatch, self._names()) if match]
            folder = self._root / f"g{max(numbers, default=0) + 1:06}-{self._ids.new_id()}"
            nameless.rename(folder)
            create_database(folder / _DATABASE)
            try:
                yield folder / _DATABASE
            finally:
                if folder.name != self.current():
                    shutil.rmtree(folder)

    def publish(self, database: Path) -> None:
        """Put a finished, closed database into use; the previous generation is let go.

        Everything reaches the disk before `CURRENT` names it.
        """
        connection = Connection(database)  # leaves the file in WAL mode
        connection.close()
        self.sync(database)
        self._files.sync_names(database.parent)
        self._files.replace_file(self._root / "CURRENT", f"{database.parent.name}\n".encode())

    def sync(self, database: Path) -> None:
        """Bring a database that no other process can know of to the disk.

        Its locks guard against nobody, so closing a descriptor of it here drops nothing of worth.
        """
        self._files.sync_file(database)

    def drop(self) -> None:
        """Have no generation in use, so that the next process to open the store builds one anew."""
        if self.stamp() is not None:
            self._files.remove_file(self._root / "CURRENT")
        self.collect()

    def collect(self) -> list[str]:
        """Remove every generation that is neither in use nor current; return their names."""
        removed = []
        current = self.current()
        for name in filter(_FOLDER.fullmatch, self._names()):
            if name == current:
                continue
            # Another process may be removing the same one.
            with (
                suppress(FileNotFoundError, NotADirectoryError),
                exclusively(self._root / name / "IN_USE") as alone,
            ):
                if alone and name != self.current():
                    shutil.rmtree(self._root / name, ignore_errors=True)
                    removed.append(name)
        return removed

    def left_over(self) -> list[str]:
        """Return the names of generations that are there and not current: some process has them."""
        current = self.current()
        return [name for name in self._names() if _FOLDER.fullmatch(name) and name != current]

    @contextmanager
    def erase_lock(self) -> Iterator[bool]:
        """Try to be the one process that erases; yields whether it is."""
        self._files.ensure_directory(self._root)
        with exclusively(self._root / "REDACT") as alone:
            yield alone

    @property
    def root(self) -> Path:
        """The folder of generations."""
        return self._root

    def _names(self) -> list[str]:
        return sorted(path.name for path in self._root.iterdir())

    @contextmanager
    def rebuild_lock(self) -> Iterator[None]:
        """Let one process at a time rebuild; the others wait and then find it done."""
        self._files.ensure_directory(self._root)
        descriptor = os.open(self._root / "REBUILD", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)
