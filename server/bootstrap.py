"""The composition root: the one module that builds the object graph."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ledger import (
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
from projections.generation import Generations
from server.app import App
from server.commit import Committer
from server.config import Config
from server.reads import ReadSide
from server.refusal import refusal_of
from server.stdio import log
from server.upkeep import Upkeep

CODECS: dict[str, Codec] = {"zstd": "zst", "gzip": "gz"}
"""Name of a compression in the settings -> the ledger's name for it."""

REBUILD_WAIT_S = 10.0
"""How long a call waits for a rebuild before it is told to come back."""


class Store:
    """An open store: its ledger, its generations and the use cases over them."""

    def __init__(
        self,
        config: Config,
        *,
        rebuild_wait_s: float = REBUILD_WAIT_S,
        clock: Clock | None = None,
        ids: IdSource | None = None,
        log: Callable[[str], None] = log,
    ) -> None:
        """Open a home, creating what is not there.

        Args:
            config: where and how.
            rebuild_wait_s: how long a call waits for a rebuild before it is told to come back.
            clock: dates events, expiry and age; the machine's unless given.
            ids: mints ids and salts; random ones unless given.
            log: takes what an operator should read, a text each.

        Raises:
            StoreError: the store cannot be opened; the message says why.

        """
        files, clock, ids = OsFiles(), clock or SystemClock(), ids or RandomIds()
        try:
            self.ledger = Ledger.open(
                ledger_folder(config),
                clock=clock,
                ids=ids,
                files=files,
                options=LedgerOptions(
                    segment_bytes_max=config.segment_bytes, codec=CODECS[config.compression]
                ),
            )
        except (LedgerError, OSError) as error:
            log(f"mnemolog: {error}")
            raise refusal_of(error) from error
        self.reads = ReadSide(
            self.ledger,
            Generations(projections_folder(config), files),
            lock_timeout_s=config.lock_timeout_s,
            rebuild_wait_s=rebuild_wait_s,
            log=log,
        )
        committer = Committer(
            self.ledger, self.reads, clock=clock, ids=ids, lock_timeout_s=config.lock_timeout_s
        )
        self.upkeep = Upkeep(self.ledger, self.reads, committer, log=log)
        self.app = App(
            committer,
            self.reads,
            clock=clock,
            workspace=config.workspace,
            after_write=self.upkeep.note_write,
        )

    def close(self) -> None:
        """Close the store; what was acknowledged is on disk already."""
        self.reads.close()
        self.ledger.close()


def ledger_folder(config: Config) -> Path:
    """Return where a home's ledger is."""
    return config.home / "ledger"


def projections_folder(config: Config) -> Path:
    """Return where a home's projections are."""
    return config.home / "projections"


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
        options=LedgerOptions(
            segment_bytes_max=config.segment_bytes, codec=CODECS[config.compression]
        ),
    )
