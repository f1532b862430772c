"""What the read side can refuse.

ProjectionError
├── ProjectionMissingError    no generation is in use yet: it must be rebuilt from the ledger
├── ProjectionDamagedError    SQLite or FTS5 found damage: it must be rebuilt from the ledger
├── ProjectionUnusableError   of a read-only store, and not what the ledger says: replay it aside
├── ProjectionOutdatedError   written by an older program: it must be rebuilt from the ledger
├── ProgramOutdatedError      written by a newer program: this one must be restarted or upgraded
├── PastBusyError             a copy of the past is in the making and does not stop
└── ActivityUnavailableError  the activity file cannot be used; memories are not concerned
"""

from __future__ import annotations


class ProjectionError(Exception):
    """Base of everything the projections raise on purpose."""


class ProjectionMissingError(ProjectionError):
    """No generation is in use; the ledger has everything needed to build one."""


class ProjectionDamagedError(ProjectionError):
    """A generation is damaged; `detail` is what the check or the engine said."""

    def __init__(self, generation: str, detail: str) -> None:
        super().__init__(f"projection {generation} is damaged: {detail}")
        self.generation = generation
        self.detail = detail


class ProjectionUnusableError(ProjectionError):
    """A generation that cannot be brought up to the ledger, since nothing may be written to it."""

    def __init__(self, generation: str, detail: str) -> None:
        super().__init__(f"projection {generation} cannot be read as it stands: {detail}")
        self.generation = generation
        self.detail = detail


class ProjectionOutdatedError(ProjectionError):
    """A generation was written by an older version of a projector."""

    def __init__(self, generation: str, projector: str) -> None:
        super().__init__(f"projection {generation} was written by an older {projector} projector")
        self.generation = generation
        self.projector = projector


class ProgramOutdatedError(ProjectionError):
    """A generation was written by a newer version of a projector than this program knows."""

    def __init__(self, generation: str, projector: str) -> None:
        super().__init__(
            f"projection {generation} was written by a newer mnemolog (projector {projector}); "
            "restart or upgrade this program"
        )
        self.generation = generation
        self.projector = projector


class PastBusyError(ProjectionError):
    """Copies of the past could not be erased in time: one is in the making."""


class ActivityUnavailableError(ProjectionError):
    """The activity file cannot be used as it is; `detail` says why."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"the activity log cannot be used: {detail}")
        self.detail = detail
