"""The composition root: the one module that builds the object graph."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ledger import (
    KEY_NAME,
    Clock,
    Codec,
    IdSource,
    Ledger,
    LedgerError,
    LedgerOptions,
    OsFiles,
    RandomIds,
    SystemClock,
)
from projections.activity import ActivityLog
from projections.past import PastCopies
from projections.readonly import generations_at
from projections.text import forget_words
from server.activity import ActivityRecorder
from server.app import App
from server.audit_export import AuditExports
from server.commit import Committer
from server.config import Config, checkpoint_key
from server.mounts import SHARED, FileSystemOf, file_system_of, local_folder
from server.past_reads import PastSide
from server.reads import ReadSide
from server.redaction import Redactions
from server.refusal import refusal_of
from server.stdio import log, silence
from server.suggest import Suggestions
from server.undo_many import UndoMany
from server.upkeep import Upkeep

CODECS: dict[str, Codec] = {"zstd": "zst", "gzip": "gz"}
"""Name of a compression in the settings -> the ledger's name for it."""

REBUILD_WAIT_S = 10.0
"""How long a call waits for a rebuild before it is told to come back."""


ACTIVITY_CLOSE_S = 2.0
"""How long notes of the last calls may hold up closing."""


class Store:
    """An open store: its ledger, its generations and the use cases over them."""

    def __init__(
        self,
        config: Config,
        *,
        rebuild_wait_s: float = REBUILD_WAIT_S,
        clock: Clock | None = None,
        ids: IdSource | None = None,
        files: OsFiles | None = None,
        file_system: FileSystemOf = file_system_of,
        log: Callable[[str], None] = log,
        on_write: Callable[[], None] = lambda: None,
    ) -> None:
        """Open a home, creating what is not there; one that cannot be written to can be read.

        Args:
            config: where and how.
            rebuild_wait_s: how long a call waits for a rebuild before it is told to come back.
            clock: dates events, expiry and age; the machine's unless given.
            ids: mints ids and salts; random ones unless given.
            files: the system's file calls; the real ones unless given.
            file_system: tells the type of the file system of a folder.
            log: takes what an operator should read, a text each; at level info of the settings
                also what the store does.
            on_write: called once a write is acknowledged; must not take time.

        Raises:
            StoreError: the store cannot be opened; the message says why.

        """
        files, clock, ids = files or OsFiles(), clock or SystemClock(), ids or RandomIds()
        self._log_info = log if config.logs("info") else silence
        try:
            self.ledger = Ledger.open(
                ledger_folder(config),
                clock=clock,
                ids=ids,
                files=files,
                options=ledger_options(config),
            )
        except (LedgerError, OSError) as error:
            log(f"mnemolog: {config.home} cannot be used: {error}")
            raise refusal_of(error) from error
        projections = projections_folder(config, self.ledger, file_system)
        _warn(config, self.ledger, projections, log)
        files.tighten(projections)
        self.reads = ReadSide(
            self.ledger,
            generations_at(projections, self.ledger),
            lock_timeout_s=config.lock_timeout_s,
            rebuild_wait_s=rebuild_wait_s,
            log=log,
            log_info=self._log_info,
        )
        committer = Committer(
            self.ledger,
            self.reads,
            clock=clock,
            ids=ids,
            zone=config.time_zone,
            lock_timeout_s=config.lock_timeout_s,
        )
        self.suggestions = Suggestions(self.reads, clock=clock, workspace=config.workspace)

        def after_write() -> None:
            self.upkeep.note_write()
            on_write()

        self.activity_path = activity_file(projections)
        self.recorder = ActivityRecorder(
            self.activity_path,
            clock=clock,
            log=log,
            enabled=config.activity and not self.is_read_only,
        )
        self._copies = PastCopies(None if self.is_read_only else projections, files)
        past = PastSide(
            self.reads,
            self._copies,
            clock=clock,
            workspace=config.workspace,
            zone=config.time_zone,
            wait_s=rebuild_wait_s,
        )

        def erase_later() -> None:
            self.upkeep.wake()

        def forget() -> None:
            self.suggestions.forget()
            forget_words()

        self.redactions = Redactions(
            self.ledger,
            committer,
            self.reads,
            clock=clock,
            home=config.home.resolve(),
            zone=config.time_zone,
            activity_path=self.activity_path,
            recorder=self.recorder,
            lock_timeout_s=config.lock_timeout_s,
            forget=forget,
            on_left=erase_later,
            log_info=self._log_info,
        )
        self.upkeep = Upkeep(
            self.ledger,
            self.reads,
            committer,
            erase=self.redactions.resume,
            log=log,
            log_info=self._log_info,
        )
        self.app = App(
            self.ledger,
            committer,
            self.reads,
            past=past,
            redactions=self.redactions,
            audit_exports=AuditExports(
                self.ledger,
                self.reads,
                clock=clock,
                home=config.home.resolve(),
                key_file=lambda: checkpoint_key() or config.home.resolve() / KEY_NAME,
                workspace=config.workspace,
                zone=config.time_zone,
                lock_timeout_s=config.lock_timeout_s,
            ),
            clock=clock,
            undo_many=UndoMany(
                self.ledger,
                committer,
                self.reads,
                clock=clock,
                ids=ids,
                workspace=config.workspace,
                zone=config.time_zone,
            ),
            workspace=config.workspace,
            zone=config.time_zone,
            recorder=self.recorder,
            activity=ActivityLog(self.activity_path, config.workspace),
            after_write=after_write,
        )
        self._log_info(f"mnemolog: opened the store in {config.home}")

    @property
    def is_read_only(self) -> bool:
        """Whether nothing can be written: found when the store was opened, and so until it is."""
        return self.ledger.is_read_only

    def close(self) -> None:
        """Close the store; what was acknowledged is on disk already."""
        self.recorder.close(ACTIVITY_CLOSE_S)
        self.reads.close()
        self._copies.close()
        self.ledger.close()
        self._log_info("mnemolog: closed the store")


def activity_file(projections: Path) -> Path:
    """Return where the activity log is: beside the projections, on a disk of this machine."""
    return projections.parent / "activity.db"


def ledger_folder(config: Config) -> Path:
    """Return where a home's ledger is."""
    return config.home.resolve() / "ledger"


def ledger_options(config: Config) -> LedgerOptions:
    """Return how the settings want the ledger kept."""
    return LedgerOptions(segment_bytes_max=config.segment_bytes, codec=CODECS[config.compression])


def projections_folder(
    config: Config, ledger: Ledger, file_system: FileSystemOf = file_system_of
) -> Path:
    """Return where a home's projections are: in it, or on this machine if it is on the network."""
    home = config.home.resolve()
    if file_system(home) in SHARED:
        return local_folder(ledger.id, file_system) / "projections"
    return home / "projections"


def _warn(config: Config, ledger: Ledger, projections: Path, log: Callable[[str], None]) -> None:
    """Tell an operator what is unusual about a home."""
    home = config.home.resolve()
    if ledger.is_read_only:
        log(f"mnemolog: {home} is opened read-only ({ledger.refusal})")
    if projections.parent != home:
        log(f"mnemolog: {home} is on a network drive; its projections are kept in {projections}")
    if home.stat().st_mode & 0o077:
        log(f"mnemolog: {home} is open to other users; `chmod 700` closes it")


def open_ledger(config: Config) -> Ledger:
    """Open the ledger that a home has.

    Raises:
        LedgerNotFoundError: it has none.
        LedgerError: it cannot be opened.

    """
    return Ledger.open_existing(
        ledger_folder(config),
        clock=SystemClock(),
        ids=RandomIds(),
        options=ledger_options(config),
    )
