"""A look at the generations from outside, which changes nothing: no lock, no file, no upkeep."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from ledger import OsFiles, Position
from projections.checkpoint import read_checkpoint
from projections.connection import CannotOpen, DatabaseError
from projections.errors import (
    ProgramOutdatedError,
    ProjectionError,
    ProjectionOutdatedError,
)
from projections.generation import Generation, Generations
from projections.holders import Holder, holders
from projections.redactions import unfinished

State = Literal["none", "read", "newer", "older", "damaged", "left", "unreadable"]
"""none: there is none in use; read: it could be read; newer, older: another version of the program
wrote it; left: its write-ahead log was left by a crash, so that reading it would change it;
unreadable: this process may not read it now."""


class GenerationsLook(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen."""

    name: str | None = None
    """The generation in use."""
    state: State = "none"
    detail: str = ""
    checkpoint: Position | None = None
    """How far the ledger is applied, if that could be read."""
    gaps: int = 0
    """Parts of a damaged ledger that it lacks."""
    redactions: int = 0
    """Redactions that were begun and are not completed."""
    wal_bytes: int = 0
    users: tuple[Holder, ...] = ()
    others: dict[str, tuple[Holder, ...]] = {}
    """Generations that are not in use any more -> the processes that hold them still."""
    half_made: tuple[str, ...] = ()
    """What a rebuild that was cut off left, or one that runs now."""
    rebuilding: tuple[Holder, ...] = ()


def look_at_generations(root: Path) -> GenerationsLook:
    """Look at the generations in a folder.

    Raises:
        OSError: the folder cannot be read.

    """
    if not root.exists():
        return GenerationsLook()
    names = sorted(path.name for path in root.iterdir() if path.is_dir())
    name = Generations(root, OsFiles()).current()
    shared = GenerationsLook(
        name=name,
        others={
            each: tuple(holders(root / each / "IN_USE") or ())
            for each in names
            if each.startswith("g") and each != name
        },
        half_made=tuple(each for each in names if each.startswith("new-")),
        rebuilding=tuple(holders(root / "REBUILD") or ()),
    )
    return shared if name is None else _look_at_current(root / name, shared)


def _look_at_current(folder: Path, look: GenerationsLook) -> GenerationsLook:
    wal = folder / "memory.db-wal"
    users = tuple(holders(folder / "IN_USE") or ())
    has_log = wal.exists()
    look = msgspec.structs.replace(
        look, users=users, wal_bytes=wal.stat().st_size if has_log else 0
    )
    if has_log and not users:
        return msgspec.structs.replace(look, state="left")
    try:
        # Where nobody has it open it is read as it stands, without a file beside it.
        generation = Generation(folder, frozen=not has_log)
    except (ProjectionError, DatabaseError, OSError) as error:
        return msgspec.structs.replace(look, state=_state_for(error), detail=str(error))
    try:
        with generation.writer.transaction(write=False):
            return msgspec.structs.replace(
                look,
                state="read",
                checkpoint=read_checkpoint(generation.writer),
                gaps=len(generation.gaps),
                redactions=len(unfinished(generation.writer)),
            )
    except DatabaseError as error:
        return msgspec.structs.replace(look, state="damaged", detail=str(error))
    finally:
        generation.is_doubtful = True  # so that closing copies no log into the database
        generation.close()


def _state_for(error: Exception) -> State:
    match error:
        case ProgramOutdatedError():
            return "newer"
        case ProjectionOutdatedError():
            return "older"
        case OSError() | CannotOpen():
            return "unreadable"
        case _:
            return "damaged"
