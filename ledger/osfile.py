"""The operating system's file calls, in one object that tests can replace.

Everything the ledger does to a disk goes through `OsFiles`: the first group of methods are single
calls (what a recording or failing double overrides), the second group are built from them.
Descriptors are close-on-exec, files 0600 and directories 0700 from the moment of creation.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
from contextlib import suppress
from pathlib import Path

from ledger.errors import WriteReason

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700
TEMPORARY = ".tmp"
"""Suffix of a file in the making."""

_EXCHANGE = 2
"""Flag of renameat2 (Linux) and renamex_np (macOS): change places."""
_HERE = -100
"""AT_FDCWD of Linux: relative names count from the current folder."""

_REASONS: dict[int | None, WriteReason] = {
    errno.ENOSPC: "disk_full",
    errno.EDQUOT: "disk_full",
    errno.EFBIG: "file_too_large",
    errno.EROFS: "read_only",
    errno.EACCES: "read_only",
    errno.EPERM: "read_only",
}


def write_reason(error: OSError) -> WriteReason:
    """Return why a write failed, as one of the stable words of `WriteReason`."""
    return _REASONS.get(error.errno, "io_error")


def lacks_locks(error: OSError) -> bool:
    """Say whether `flock` failed because the file system has no locks to give.

    EBADF is what NFS says to an exclusive lock through a descriptor that cannot write.
    """
    return error.errno in {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EBADF}


class OsFiles:
    """The real file system. Every method may raise OSError."""

    def open_write(self, path: Path) -> int:
        """Open an existing file for reading and writing."""
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def create(self, path: Path) -> int:
        """Create or empty a file for reading and writing, mode 0600."""
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        return os.open(path, flags, FILE_MODE)

    def open_lock(self, path: Path) -> int:
        """Open a lock file, creating it with mode 0600.

        For writing, because NFS locks nothing exclusively through another descriptor; if that is
        refused, for reading, so that a lock file that carries the read-only mark can be locked.
        """
        flags = os.O_CREAT | os.O_CLOEXEC
        try:
            return os.open(path, os.O_RDWR | flags, FILE_MODE)
        except OSError:
            return os.open(path, os.O_RDONLY | flags, FILE_MODE)

    def open_directory(self, path: Path) -> int:
        """Open a directory, for `sync_directory` after a change in it."""
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self, fd: int) -> None:
        """Close a descriptor."""
        os.close(fd)

    def make_directory(self, path: Path) -> None:
        """Create one directory, mode 0700."""
        path.mkdir(DIRECTORY_MODE)

    def write(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        """Write at an offset; return how many bytes were taken, which may be fewer than given."""
        return os.pwrite(fd, data, offset)

    def truncate(self, fd: int, size: int) -> None:
        """Cut a file to `size` bytes."""
        os.ftruncate(fd, size)

    def sync(self, fd: int) -> None:
        """Make a file's bytes and size durable."""
        if sys.platform == "darwin":  # pragma: no cover - another platform's call
            # fsync there stops at the drive's own cache.
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        else:
            os.fdatasync(fd)

    def sync_directory(self, fd: int) -> None:
        """Make the names in a directory durable."""
        os.fsync(fd)

    def rename(self, source: Path, target: Path) -> None:
        """Rename over whatever the target names."""
        os.rename(source, target)  # noqa: PTH104 - one call, one test double

    def exchange(self, one: Path, two: Path) -> None:
        """Let two names change places in one step.

        Python has no call for it, so this asks the C library; ENOSYS where that has none either.
        """
        import ctypes  # noqa: PLC0415 - only a restore needs it

        library = ctypes.CDLL(None, use_errno=True)
        names = os.fsencode(one), os.fsencode(two)
        if sys.platform == "darwin":  # pragma: no cover - another platform's call
            call, arguments = "renamex_np", (*names, _EXCHANGE)
        else:
            call, arguments = "renameat2", (_HERE, names[0], _HERE, names[1], _EXCHANGE)
        function = getattr(library, call, None)
        if function is None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        if function(*arguments) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), str(one))

    def unlink(self, path: Path) -> None:
        """Remove a name."""
        os.unlink(path)  # noqa: PTH108 - one call, one test double

    def change_mode(self, fd: int, mode: int) -> None:
        """Set the permission bits of an open file."""
        os.fchmod(fd, mode)

    def flock(self, fd: int, operation: int) -> None:
        """Apply or remove an advisory lock on an open file."""
        fcntl.flock(fd, operation)

    def may_write(self, path: Path) -> bool:
        """Say whether the system would let this process change a file or a directory.

        Nothing is opened or changed. What is not there may be written for all that is known.
        """
        return os.access(path, os.W_OK) or not path.exists()

    def has_locks(self, path: Path) -> bool:
        """Say whether the file system of an existing file knows `flock`; it is locked by nobody."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            return not lacks_locks(error)
        finally:
            self.close(fd)
        return True

    def tighten(self, path: Path) -> None:
        """Close a directory to everybody but its owner, where the system allows.

        One that its owner may not write to either was made so on purpose and stays as it is.
        """
        with suppress(OSError):
            mode = path.stat().st_mode
            if mode & 0o077 and mode & 0o200:
                path.chmod(DIRECTORY_MODE)

    def write_all(self, fd: int, data: bytes, offset: int) -> None:
        """Write every byte at an offset, however many calls it takes."""
        done = self.write(fd, data, offset)
        if done == len(data):
            return
        view = memoryview(data)
        while done < len(data):
            taken = self.write(fd, view[done:], offset + done)
            if taken == 0:
                raise OSError(errno.EIO, "the system takes no more bytes")
            done += taken

    def write_file(self, path: Path, data: bytes) -> None:
        """Create or replace a file with `data` and sync it; its name is not yet durable."""
        fd = self.create(path)
        try:
            self.write_all(fd, data, 0)
            self.sync(fd)
        finally:
            self.close(fd)

    def replace_file(self, path: Path, data: bytes) -> None:
        """Put `data` at `path` so that a crash leaves the old file or the new one, whole.

        The temporary name is the path's own with `.tmp`; it is removed if the call fails.
        """
        temporary = temporary_path(path)
        try:
            self.write_file(temporary, data)
            self.rename_file(temporary, path)
        except OSError:
            with suppress(OSError):
                self.unlink(temporary)
            raise

    def rename_file(self, source: Path, target: Path) -> None:
        """Rename and make the new name durable."""
        # Opened before the change, so that an error on the way to the disk is seen by this one.
        directory = self.open_directory(target.parent)
        try:
            self.rename(source, target)
            self.sync_directory(directory)
        finally:
            self.close(directory)

    def remove_file(self, path: Path) -> None:
        """Remove a name, if it is there, and make that durable."""
        directory = self.open_directory(path.parent)
        try:
            with suppress(FileNotFoundError):
                self.unlink(path)
            self.sync_directory(directory)
        finally:
            self.close(directory)

    def sync_file(self, path: Path) -> None:
        """Make the bytes of a file durable that somebody else has written."""
        fd = self.open_write(path)
        try:
            self.sync(fd)
        finally:
            self.close(fd)

    def sync_names(self, path: Path) -> None:
        """Make the names in a directory durable that another process may have left unsynced."""
        directory = self.open_directory(path)
        try:
            self.sync_directory(directory)
        finally:
            self.close(directory)

    def sync_ancestors(self, path: Path) -> None:
        """Make the names of a directory and of those it is in durable, as far as its mount goes.

        For directories that a process may have made that died before it had synced them. One that
        may not be read was made by somebody else.
        """
        device = path.stat().st_dev
        for parent in path.parents:
            if parent.stat().st_dev != device:
                return
            with suppress(PermissionError):
                self.sync_names(parent)

    def ensure_directory(self, path: Path) -> None:
        """Create a directory and its missing parents, each durable in its own parent."""
        if path.is_dir():
            return
        self.ensure_directory(path.parent)
        parent = self.open_directory(path.parent)
        try:
            with suppress(FileExistsError):
                self.make_directory(path)
            self.sync_directory(parent)
        finally:
            self.close(parent)


def temporary_path(path: Path) -> Path:
    """Return the name under which a file is made before it gets its own."""
    return path.with_name(path.name + TEMPORARY)


def read_exactly(fd: int, size: int, offset: int) -> bytes:
    """Return up to `size` bytes from `offset`; fewer only where the file ends."""
    data = os.pread(fd, size, offset)
    if len(data) == size or not data:
        return data
    parts = [data]
    done = len(data)
    while done < size:
        more = os.pread(fd, size - done, offset + done)
        if not more:
            break
        parts.append(more)
        done += len(more)
    return b"".join(parts)


def read_file(path: Path) -> bytes:
    """Return a whole file."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return read_exactly(fd, os.fstat(fd).st_size, 0)
    finally:
        os.close(fd)
