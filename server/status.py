"""Exit statuses of the command line: one table, and which refusal ends with which.

`docs/command-line.md` explains them to whoever writes a script.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from server.errors import DamagedError, InvalidArgumentsError, StoreError, UseCaseError

DONE: Final = 0
DAMAGE: Final = 1
WRONG_USAGE: Final = 2
REFUSED: Final = 3
NOT_NOW: Final = 4
FAULT: Final = 70
INTERRUPTED: Final = 130
PIPE_CLOSED: Final = 141

MEANINGS: Final = {
    DONE: "done; also when a search or a list found nothing",
    DAMAGE: "damage: of the ledger, or in `verify` of the projections, an unfinished tail or a "
    "checkpoint that the ledger does not extend; in `restore` of the backup; in `health` a store "
    "that is degraded; in `doctor` something to do; in `demo` a promise not kept; in `serve` a "
    "store that would not close",
    WRONG_USAGE: "wrong usage or setting, no store there, or (`verify`, `rebuild`, `replay`, "
    "`digest`, `checkpoint`, `backup`, `restore`, `doctor`) it could not be looked at or worked on",
    REFUSED: "refused: not found, changed since, nothing matched what was to be deleted or undone, "
    "a file or folder that exists; of a batch, at least one item; in `redact` done, but some "
    "process still keeps erased bytes on the disk",
    NOT_NOW: "the store, or the file written to, cannot do it now: busy, disk full, read-only, "
    "newer than this program",
    FAULT: "a fault of mnemolog itself; please report it",
    INTERRUPTED: "interrupted by Ctrl-C",
    PIPE_CLOSED: "whoever read the output closed it, as `head` does",
}
"""Status -> what it means."""


class CommandError(Exception):
    """A command that ends without its result.

    Attributes:
        status: Exit status.
        code: Stable name of the kind of failure.
        message: A sentence: what is wrong and what to do.
        details: JSON-compatible facts.
    """

    def __init__(
        self, status: int, code: str, message: str, details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.details = dict(details or {})


def no_store(home: Path) -> CommandError:
    """Return the error of a home that holds no store."""
    if home.exists() and not home.is_dir():
        text = f"{home} is no folder; --home or MNEMOLOG_HOME names the folder of a store"
        return CommandError(WRONG_USAGE, "no_store", text)
    return CommandError(
        WRONG_USAGE,
        "no_store",
        f"there is no store in {home}; `mnemolog add` begins one, and --home or MNEMOLOG_HOME "
        "names another",
    )


def usage_error(message: str) -> CommandError:
    """Return the error of a command line that cannot be understood."""
    return CommandError(WRONG_USAGE, "usage", message)


def status_of(error: UseCaseError) -> int:
    """Return the exit status of a refusal."""
    match error:
        case InvalidArgumentsError():
            return WRONG_USAGE
        case DamagedError():
            return DAMAGE
        case StoreError():
            return NOT_NOW
        case _:
            return REFUSED
