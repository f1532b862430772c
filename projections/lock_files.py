"""Lock files: taken with flock, and let go by closing them or by the end of the process."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def exclusively(path: Path) -> Iterator[bool]:
    """Try to hold a lock file alone for the block; yields whether it is held."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


@contextmanager
def alone(path: Path, pause: Callable[[], None]) -> Iterator[None]:
    """Hold a lock file alone for the block.

    Args:
        path: the file.
        pause: called between two tries; raises to give up.

    """
    while True:
        with exclusively(path) as is_alone:
            if is_alone:
                yield
                return
        pause()
