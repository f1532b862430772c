"""What a caller is told when the store cannot do it: one table from foreign errors to ours."""

from __future__ import annotations

from ledger import (
    LedgerBehindError,
    LedgerDamagedError,
    LedgerError,
    LedgerFormatError,
    LedgerPutAsideError,
    LedgerReadOnlyError,
    LedgerWriteError,
    LockTimeoutError,
    write_reason,
)
from server.errors import (
    BusyError,
    DamagedError,
    DiskFullError,
    OutcomeUnknownError,
    ReadOnlyError,
    StoreError,
)


def refusal_of(error: Exception) -> StoreError:  # noqa: C901, PLR0911 - one table
    """Return what a caller is told of an error of the ledger, of SQLite or of the system.

    Nothing in it is a path or the text of another library.
    """
    match error:
        case LockTimeoutError():
            return BusyError(
                "Another process kept the store's lock for too long; nothing was written. Try "
                "again."
            )
        case LedgerWriteError(outcome="unknown"):
            return OutcomeUnknownError(
                f"Writing failed half way ({error.reason}); whether it was stored is not known. "
                "Repeat the request with the same idempotency_key once the cause is mended.",
                details={"reason": error.reason},
            )
        case LedgerWriteError(reason="disk_full") | LedgerReadOnlyError(reason="disk_full"):
            return DiskFullError("The disk is full; nothing was written. Free some space.")
        case LedgerReadOnlyError(reason="no_locks"):
            return ReadOnlyError(
                "The store is on a file system without working locks (flock); nothing was "
                "written. Reading goes on. Move the store to a disk of this machine.",
                details={"reason": error.reason},
            )
        case LedgerWriteError() | LedgerReadOnlyError():
            return ReadOnlyError(
                f"The ledger cannot be written to ({error.reason}); nothing was written.",
                details={"reason": error.reason},
            )
        case LedgerDamagedError() | LedgerBehindError():
            return DamagedError(f"{error} Nothing was written; reading goes on.")
        case LedgerPutAsideError():
            return StoreError(
                "A restore of this store was cut short, and there is no ledger: repeat the "
                f"restore, or give the folder {error.aside} the name {error.path.name}."
            )
        case LedgerFormatError():
            return StoreError(
                "The ledger is of a format that this program does not speak; upgrade it."
            )
        case LedgerError():
            return StoreError("The ledger cannot be used now; the server's log says why.")
        case OSError() if write_reason(error) != "disk_full":
            return ReadOnlyError(
                "The store may not be written to or read by this process "
                f"({write_reason(error)}); nothing was written.",
                details={"reason": write_reason(error)},
            )
        case _:
            # The tables could not be written; the ledger was not asked to.
            return DiskFullError(
                "The disk is full or failing; nothing was written. Free some space."
            )
