"""The lock: one writer at a time, over threads and processes.

A mutex inside the process and `flock` on a file that is never unlinked. The kernel frees it when
its holder dies. The file's permission bits carry the read-only mark: setting it takes no space on
a full disk, and every process sees it as soon as it has the lock.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import time
from pathlib import Path

from ledger.errors import LedgerForkedError, LedgerReadOnlyError, LockTimeoutError
from ledger.osfile import FILE_MODE, OsFiles, lacks_locks, write_reason

MARKED_MODE = 0o400
_FIRST_WAIT_S = 0.000_5
_LONGEST_WAIT_S = 0.005


class FileLock:
    """A lock on one path, usable by the process that made it."""

    def __init__(self, path: Path, files: OsFiles) -> None:
        """Remember the path; nothing is opened yet."""
        self._path = path
        self._files = files
        self._mutex = threading.Lock()
        self._pid = os.getpid()
        self._fd = -1

    def acquire(self, timeout_s: float) -> None:
        """Take the lock, waiting up to `timeout_s` seconds (0 = one try).

        Raises:
            LockTimeoutError: someone else held it until then.
            LedgerForkedError: this process did not make the object.
            LedgerReadOnlyError: the lock file cannot be opened or created, or the file system
                knows no locks ("no_locks").
        """
        if os.getpid() != self._pid:
            raise LedgerForkedError
        deadline = time.monotonic() + timeout_s
        if not self._mutex.acquire(timeout=timeout_s):
            raise LockTimeoutError(timeout_s)
        try:
            self._acquire_file(deadline, timeout_s)
        except BaseException:
            self._mutex.release()
            raise

    def release(self) -> None:
        """Give the lock back; only its holder may call this."""
        self._files.flock(self._fd, fcntl.LOCK_UN)
        self._mutex.release()

    @property
    def marked(self) -> bool:
        """Whether a writer left the ledger read-only. Only for the holder of the lock."""
        return not os.fstat(self._fd).st_mode & 0o200

    def mark(self) -> None:
        """Leave the ledger read-only for every process. Only for the holder of the lock."""
        self._files.change_mode(self._fd, MARKED_MODE)

    def unmark(self) -> None:
        """Make the ledger writable again. Only for the holder of the lock."""
        self._files.change_mode(self._fd, FILE_MODE)

    def close(self) -> None:
        """Close the file; the lock must not be held."""
        if self._fd >= 0:
            self._files.close(self._fd)
            self._fd = -1

    def _acquire_file(self, deadline: float, timeout_s: float) -> None:
        wait_s = _FIRST_WAIT_S
        while True:
            if self._fd < 0:
                try:
                    self._fd = self._files.open_lock(self._path)
                except OSError as error:
                    raise LedgerReadOnlyError(write_reason(error)) from error
            if self._try_flock():
                if self._is_current():
                    return
                # Someone replaced the file; a lock on the old one excludes nobody.
                self.close()
                continue
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise LockTimeoutError(timeout_s)
            time.sleep(min(wait_s, left_s))
            wait_s = min(wait_s * 1.5, _LONGEST_WAIT_S)

    def _try_flock(self) -> bool:
        try:
            self._files.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in {errno.EWOULDBLOCK, errno.EINTR}:
                return False
            reason = "no_locks" if lacks_locks(error) else write_reason(error)
            raise LedgerReadOnlyError(reason) from error
        return True

    def _is_current(self) -> bool:
        try:
            named = os.stat(self._path)  # noqa: PTH116 - the hot path of every write
        except FileNotFoundError:
            return False
        held = os.fstat(self._fd)
        return (named.st_ino, named.st_dev) == (held.st_ino, held.st_dev)
