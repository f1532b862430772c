"""The file an output goes to: there whole and on disk, or not there at all."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from server.status import REFUSED, CommandError

_NO_LINKS: Final = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""What file systems that know no hard links answer."""


@contextmanager
def output_file(path: Path, *, replace: bool) -> Iterator[Callable[[str], object]]:
    """Write a file of mode 0600 under a name beside it, which becomes its own after the block.

    Args:
        path: the file; a link to it is followed.
        replace: whether a file that is there may be replaced.

    Yields:
        What takes the text, piece by piece.

    Raises:
        CommandError: it is there, or what is there is no file.
        OSError: it cannot be written; nothing is left behind.

    """
    target = path.resolve()
    _check_free(path, target, replace=replace)
    beside = target.parent / f".mnemolog-{os.getpid()}-{time.monotonic_ns()}.part"
    try:
        fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    try:
        with os.fdopen(fd, "w", encoding="utf-8", newline="\n") as file:
            yield file.write
            file.flush()
            os.fsync(fd)
        if replace:
            beside.replace(target)
        else:
            _take_name(path, beside, target)
        _sync(target.parent)
    finally:
        with suppress(FileNotFoundError):
            beside.unlink()


def _check_free(path: Path, target: Path, *, replace: bool) -> None:
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise CommandError(
            REFUSED, "not_a_file", f"{path} is no file; leave out --output to write to a pipe"
        )
    if not replace:
        raise _taken(path)


def _take_name(path: Path, beside: Path, target: Path) -> None:
    """Give the file its name, unless another one has got it meanwhile."""
    try:
        os.link(beside, target)
    except FileExistsError:
        raise _taken(path) from None
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _check_free(path, target, replace=False)
        beside.replace(target)


def _taken(path: Path) -> CommandError:
    return CommandError(
        REFUSED, "exists", f"{path} exists; --force replaces it, or name another file"
    )


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
