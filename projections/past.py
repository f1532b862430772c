"""Copies of the past: databases of what was current at a moment, kept for the next who asks.

    <projections>/past/BUILD                       flock'd by whoever makes or removes copies
    <projections>/past/ERASE                       flock'd by whoever wants all of them gone
    <projections>/past/4711-0-g000007-k3v9q2xm/    position, last redaction, generation copied from
        memory.db                                  never changed once it is here
        IN_USE                                     flock'd, shared, while it is read
    <projections>/past/new-k3v9q2xm/               one in the making

A copy is found by its name, and the name holds all it depends on: what a position means never
changes but by a redaction, and a rebuild makes another generation. Copies are opened for one read
and closed after it, so that no process holds on to one that was erased. The one read last is the
last to go. All of it may be deleted at any time.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from ledger import OsFiles, RandomIds
from projections.connection import Connection, create_database
from projections.errors import PastBusyError
from projections.lock_files import alone, exclusively

COPIES_MAX = 16
"""Copies kept, whatever their size."""

BYTES_MAX = 512 << 20
"""Size of all copies together, in bytes; the newest one stays even if it is larger."""

ERASE_WAIT_S = 60.0
"""How long erasing waits for a copy in the making, which stops at its next thousand memories."""

_RETRY_S = 0.02
_ZEROS = bytes(1 << 20)
_DATABASE, _IN_USE = "memory.db", "IN_USE"
_NAME = re.compile(r"\d+-\d+-(g\d{6}-[a-z2-7]{16})")
_NEW = re.compile(r"new-[a-z2-7]{16}")

Fill = Callable[[Path, Callable[[], None]], None]
"""Fills an empty database; it must call what it is given at least once every thousand rows."""


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """What a copy depends on."""

    seq: int
    redaction: int
    """Position of the last redaction of the store when it was made; 0 for none."""
    generation: str

    @property
    def name(self) -> str:
        """Name of its folder."""
        return f"{self.seq}-{self.redaction}-{self.generation}"


class _ErasedError(Exception):
    """Somebody wants all copies gone, the one in the making included."""


class PastCopies:
    """The copies of one home, shared by its processes."""

    def __init__(
        self,
        projections: Path | None,
        files: OsFiles,
        *,
        copies_max: int = COPIES_MAX,
        bytes_max: int = BYTES_MAX,
    ) -> None:
        """Bind to a folder; it is created when something must be written into it.

        Args:
            projections: the folder of the generations; None: a temporary folder of this process,
                for a store that may not be written to.
            files: the system's file calls.
            copies_max: copies to keep.
            bytes_max: bytes to keep of all of them.

        """
        self._files = files
        self._ids = RandomIds()
        self._root = None if projections is None else projections / "past"
        self._temporary: Path | None = None
        self._copies_max = copies_max
        self._bytes_max = bytes_max

    @contextmanager
    def open(self, key: Key, fill: Fill, pause: Callable[[float], None]) -> Iterator[Connection]:
        """Lend a connection to the copy of a moment, making the copy if there is none.

        Args:
            key: the moment.
            fill: makes the copy; what it raises is passed on, and what it made is removed.
            pause: waits some seconds for another process that makes a copy; raises to give up.

        """
        while (copy := self._find(key)) is None:
            self._make(key, fill, pause)
        folder, in_use = copy
        try:
            connection = Connection(folder / _DATABASE, frozen=True)
            try:
                yield connection
            finally:
                connection.close()
        finally:
            os.close(in_use)

    def is_there(self, key: Key) -> bool:
        """Say whether a copy is there; one that was erased while it was read is not any more."""
        return (self._folder() / key.name / _DATABASE).exists()

    def drop(self, key: Key, pause: Callable[[float], None]) -> None:
        """Remove a copy that turned out to be damaged."""
        with self._building(pause):
            _remove(self._folder() / key.name)

    def close(self) -> None:
        """Remove what was made for this process alone."""
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None

    def _folder(self) -> Path:
        if self._root is not None:
            return self._root
        if self._temporary is None:
            import tempfile  # noqa: PLC0415 - most stores never need it

            self._temporary = Path(tempfile.mkdtemp(prefix="mnemolog-past-")).resolve()
        return self._temporary

    def _find(self, key: Key) -> tuple[Path, int] | None:
        """Return a copy's folder and its lock, held; None if there is no such copy."""
        folder = self._folder() / key.name
        try:
            in_use = os.open(folder / _IN_USE, os.O_RDWR | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            # Whoever holds it alone is removing the copy, which does not take long.
            fcntl.flock(in_use, fcntl.LOCK_SH)
            if os.fstat(in_use).st_nlink and (folder / _DATABASE).exists():
                os.utime(in_use)
                return folder, in_use
        except BaseException:
            os.close(in_use)
            raise
        os.close(in_use)
        return None

    def _make(self, key: Key, fill: Fill, pause: Callable[[float], None]) -> None:
        """Make a copy, one at a time in all processes, unless another has made it meanwhile."""
        root = self._folder()
        self._files.ensure_directory(root)
        with suppress(_ErasedError), self._building(pause):
            for path in _folders(root, _NEW):
                _remove(path)  # nobody is making it any more
            final = root / key.name
            if (final / _IN_USE).exists() and (final / _DATABASE).exists():
                return
            _remove(final)
            folder = root / f"new-{self._ids.new_id()}"
            self._files.ensure_directory(folder)
            try:
                os.close(os.open(folder / _IN_USE, os.O_CREAT | os.O_CLOEXEC, 0o600))
                database = folder / _DATABASE
                create_database(database)
                fill(database, self._stop_if_erasing)
                self._files.sync_file(database)
                self._files.rename_file(folder, final)
            except BaseException:
                _remove(folder)
                raise
            self._evict(key)
        while _is_locked(root / "ERASE"):
            pause(_RETRY_S)

    def _stop_if_erasing(self) -> None:
        if _is_locked(self._folder() / "ERASE"):
            raise _ErasedError

    def _evict(self, key: Key) -> None:
        """Remove copies that are of no use any more, and the least recently used beyond bounds."""
        kept: list[tuple[int, int, Path]] = []
        for path in _folders(self._folder(), _NAME):
            if path.name == key.name:
                continue
            match = _NAME.fullmatch(path.name)
            redaction = int(path.name.split("-", 2)[1])
            assert match is not None
            if match[1] != key.generation or redaction < key.redaction:
                _remove_unused(path)
                continue
            with suppress(FileNotFoundError):
                status = (path / _IN_USE).stat()
                kept.append((status.st_mtime_ns, _bytes_of(path), path))
        count = len(kept) + 1
        total = sum(size for _, size, _ in kept) + _bytes_of(self._folder() / key.name)
        for _, size, path in sorted(kept):
            if count <= self._copies_max and total <= self._bytes_max:
                return
            if _remove_unused(path):
                count, total = count - 1, total - size

    @contextmanager
    def _building(self, pause: Callable[[float], None]) -> Iterator[None]:
        root = self._folder()
        self._files.ensure_directory(root)
        with alone(root / "BUILD", lambda: pause(_RETRY_S)):
            yield


def erase_past(projections: Path, wait_s: float = ERASE_WAIT_S) -> int:
    """Remove every copy of the past of a home, overwriting each first; return how many there were.

    For a redaction, once the generation in use holds nothing of what is to go: copies made from
    then on hold nothing of it either. A copy in the making is given up by whoever makes it. A
    process that reads a copy notices and asks again.

    Args:
        projections: the folder of the generations.
        wait_s: how long to wait for a copy in the making, in seconds.

    Raises:
        PastBusyError: whoever makes a copy does not stop; nothing of the copies is certain.
        OSError: the system refuses.

    """
    root = projections / "past"
    if not root.is_dir():
        return 0
    deadline = time.monotonic() + wait_s

    def pause() -> None:
        if time.monotonic() > deadline:
            raise PastBusyError("a copy of the past is being made, and its maker does not stop")
        time.sleep(_RETRY_S)

    with alone(root / "ERASE", pause), alone(root / "BUILD", pause):
        folders = [*_folders(root, _NAME), *_folders(root, _NEW)]
        for folder in folders:
            _remove(folder)
    return len(folders)


def _is_locked(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _folders(root: Path, name: re.Pattern[str]) -> list[Path]:
    return [path for path in root.iterdir() if name.fullmatch(path.name)]


def _bytes_of(folder: Path) -> int:
    with suppress(FileNotFoundError):
        return (folder / _DATABASE).stat().st_size
    return 0


def _remove_unused(folder: Path) -> bool:
    """Remove a copy unless somebody reads it; say whether it is gone."""
    with suppress(FileNotFoundError), exclusively(folder / _IN_USE) as is_alone:
        if not is_alone:
            return False
        _remove(folder)
    return True


def _remove(folder: Path) -> None:
    """Remove a folder's files, their bytes first: a later redaction could not reach them any more.

    Where a file system writes every change to a new place that cannot help.
    """
    if not folder.exists():
        return
    for path in folder.iterdir():
        with suppress(FileNotFoundError), path.open("r+b", buffering=0) as file:
            left = os.fstat(file.fileno()).st_size
            while left > 0:
                left -= file.write(_ZEROS[:left])
            OsFiles().sync(file.fileno())
    shutil.rmtree(folder, ignore_errors=True)
