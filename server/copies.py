"""Noting the files that the use cases write outside the store (`projections.copies` keeps them)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from ledger import Clock, SystemClock
from projections import copies
from projections.copies import Copy, copies_from
from server.stdio import log as to_standard_error

__all__ = ["Copy", "CopyKind", "copies_from", "note_copy"]

CopyKind = Literal["export", "audit", "backup", "replay"]
"""What such a file is."""


def note_copy(
    home: Path,
    *,
    kind: CopyKind,
    path: Path,
    position: int,
    clock: Clock | None = None,
    log: Callable[[str], None] = to_standard_error,
) -> None:
    """Note that a file which may hold memories is written outside the store; never raises.

    Best called once its content is known and before it gets its name: a crash between the two must
    not leave a file that nobody knows of.

    Args:
        home: folder of the store.
        kind: what the file is.
        path: the file or folder.
        position: ledger position up to which it may hold memories.
        clock: dates the note; the machine's unless given.
        log: is told if the note cannot be made.

    """
    now_us = (clock or SystemClock()).now_us()
    copies.note_copy(home, kind=kind, path=path, position=position, now_us=now_us, warn=log)
