"""What a use case refuses to do, said so that a caller can act on it.

UseCaseError
├── InvalidArgumentsError      an argument is missing, unknown, of the wrong type or out of range
├── CallCancelledError         the client took its call back, or the server is shutting down
├── NotFoundError              no such memory or operation in this workspace
├── RedactedError              it was redacted: nothing of it is left to work on
├── VersionConflictError       the memory has moved since the caller looked
├── SupersededError            only the newest memory of a chain can be superseded
├── UndoConflictError          later operations touched the same memories
├── SessionEndedError          the session has ended already
├── AliasConflictError         the name stands for another entity already
├── IdempotencyConflictError   the key was used for another request
├── FolderExistsError          what is to be written into a new folder would meet another one
└── StoreError                 the store cannot do it now
    ├── BusyError              another process kept the lock for too long
    ├── RebuildingError        the projections are being rebuilt
    ├── DiskFullError          nothing was written: no room
    ├── ReadOnlyError          nothing was written: the ledger may not be written to
    ├── DamagedError           the ledger is damaged; reading goes on, writing does not
    ├── OutdatedError          a newer mnemolog owns the store
    └── OutcomeUnknownError    the write failed half way; a retry with the same key finds out

ConfigError                    a setting is not accepted; the process does not start

Each has a stable `code`, a `message` written for the caller, and `details`: the facts as data. None
of them carries a path, a query or a traceback.
"""

from collections.abc import Mapping
from typing import Any, ClassVar


class UseCaseError(Exception):
    """A refusal the caller can do something about.

    Attributes:
        code: Stable name of the kind of refusal; callers branch on it, never on the message.
        message: One or two sentences: what is wrong and what would be accepted.
        details: JSON-compatible facts, such as the field at fault; empty if there are none.
    """

    code: ClassVar[str] = "refused"

    def __init__(self, message: str, *, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details: dict[str, Any] = dict(details or {})


class InvalidArgumentsError(UseCaseError):
    """The arguments do not fit the tool; `details["field"]` names the one at fault."""

    code = "invalid_arguments"


class CallCancelledError(UseCaseError):
    """The call was taken back before it was done; nothing more should be started for it."""

    code = "cancelled"


class NotFoundError(UseCaseError):
    """There is no such memory or operation in this workspace; nothing was changed."""

    code = "not_found"


class RedactedError(UseCaseError):
    """The memory was redacted; `details` holds when and by whom where that is known."""

    code = "redacted"


class VersionConflictError(UseCaseError):
    """The memory has moved since the caller looked; `details` holds its current version."""

    code = "version_conflict"


class AnchorError(UseCaseError):
    """A patch's text is not in the memory, or is there more than once.

    `details` holds the `index` of the patch and how many `matches` there are.
    """

    code = "anchor"


class SupersededError(UseCaseError):
    """The memory has been superseded already; `details["superseded_by"]` is its successor."""

    code = "superseded"


class UndoConflictError(UseCaseError):
    """The operation cannot be undone; `details["later"]` holds the positions in the way."""

    code = "undo_conflict"


class SessionEndedError(UseCaseError):
    """The session has ended already; `details["ended_at"]` says when."""

    code = "session_ended"


class AliasConflictError(UseCaseError):
    """The name stands for another entity already; `details["entity_name"]` is that entity."""

    code = "alias_conflict"


class IdempotencyConflictError(UseCaseError):
    """The idempotency key was used for a request that differs from this one."""

    code = "idempotency_conflict"


class FolderExistsError(UseCaseError):
    """The folder that was to be made exists already; nothing was written."""

    code = "exists"


class StoreError(UseCaseError):
    """The store cannot do it now, whatever the arguments."""

    code = "store"


class BusyError(StoreError):
    """Another process kept the ledger's lock for too long; nothing was written."""

    code = "busy"


class RebuildingError(StoreError):
    """The projections are being rebuilt; `details["percent"]` says how far that is."""

    code = "rebuilding"


class DiskFullError(StoreError):
    """There is no room; nothing was written."""

    code = "disk_full"


class ReadOnlyError(StoreError):
    """The ledger may not be written to; nothing was written."""

    code = "read_only"


class DamagedError(StoreError):
    """The ledger is damaged; what is whole stays readable, and nothing more is written."""

    code = "damaged"


class OutdatedError(StoreError):
    """A newer mnemolog wrote the projections; this process must be restarted."""

    code = "outdated"


class OutcomeUnknownError(StoreError):
    """Whether the write happened is not known; a retry with the same idempotency key finds out."""

    code = "outcome_unknown"


class ConfigError(Exception):
    """A setting is not accepted."""
