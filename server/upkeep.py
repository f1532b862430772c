"""Work that nobody should wait for: copying the write-ahead log, trigrams, sealing, a doubt.

One background thread, woken after writes. Nothing is lost when it does not run: every task only
makes the store smaller or faster, and the next process takes over what this one left.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable

from ledger import Ledger, LedgerError, Sealer, remove_prepared
from projections.connection import STORAGE_ERRORS
from projections.generation import Generation
from projections.substring import are_trigrams_due, flush_trigrams
from projections.text_index import merge_indexes
from server.commit import Committer
from server.errors import UseCaseError
from server.reads import ReadSide
from server.tool import Call

WAL_BYTES_MAX = 4 << 20
"""Size of the write-ahead log past which it is copied into the database."""

WAL_BYTES_PINNED = 4 * WAL_BYTES_MAX
"""Size that it reaches only while some reader keeps it from starting anew; it is cut afterwards."""

WAL_LOOK_S = 1.0
"""How often a log that some reader keeps, or what could not be erased, is looked at again."""

TRIGRAMS_PER_LOCK = 16
"""Memories indexed while the ledger's lock is held: about two milliseconds."""

HOLDS_PER_ROUND = 8
"""Such holds in a round, before other work is looked at."""

PAUSE_S = 0.005
"""Between two such holds, in seconds."""

WRITES_PER_ROUND = 64
"""Writes between two looks at what is due."""

MERGE_PAGES = 100
"""Pages of an index merged in one round."""

UPKEEP_LOCK_TIMEOUT_S = 1.0


class Upkeep:
    """Keeps an open store in shape."""

    def __init__(
        self,
        ledger: Ledger,
        reads: ReadSide,
        committer: Committer,
        *,
        erase: Callable[[], bool],
        log: Callable[[str], None],
        log_info: Callable[[str], None],
    ) -> None:
        """Bind to a store; nothing runs before `start` or `run_once`.

        Args:
            ledger: is sealed.
            reads: gives the generation that is looked after.
            committer: lends the right to write.
            erase: goes on with redactions that are not completed; says whether any is left.
            log: takes what an operator should read.
            log_info: takes what was done.

        """
        self._log = log
        self._log_info = log_info
        self._ledger = ledger
        self._reads = reads
        self._committer = committer
        self._woken = threading.Event()
        self._writes = 0
        self._is_wal_pinned = False
        self._erase = erase
        self._is_erasing = False
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._sealer = Sealer(ledger, lock_timeout_s=UPKEEP_LOCK_TIMEOUT_S)

    def start(self) -> None:
        """Start the thread; its first round takes over what earlier processes left."""
        self._woken.set()
        self._thread = threading.Thread(target=self._loop, name="upkeep", daemon=True)
        self._thread.start()

    def note_write(self) -> None:
        """Count a write; every so many there may be something to do."""
        # A race loses a count, which does not matter.
        self._writes += 1
        if self._writes % WRITES_PER_ROUND == 0:
            self._woken.set()

    def wake(self) -> None:
        """Ask for a round soon."""
        self._woken.set()

    def finish(self) -> None:
        """Do a round if anything was written: for a process that ends and never started the thread.

        Without it a store that only short processes use would never be looked after.
        """
        if self._writes:
            self._try(self.run_once)
        else:
            self._try(self._go_on_erasing)

    def stop(self, timeout_s: float) -> None:
        """Let the thread finish its task, at most so long."""
        self._stopping.set()
        self._woken.set()
        if self._thread is not None:
            self._thread.join(timeout_s)
        self._sealer.close()

    def run_once(self) -> None:
        """Do a round: everything that is due, a bounded part of what would take long."""
        generation = self._reads.current(Call())
        if generation.is_doubtful and self._reads.believe(Call(), thorough=True):
            generation.is_doubtful = False
        if self._ledger.is_read_only:
            return
        self._reads.mend()
        self._go_on_erasing()
        self._copy_wal(generation)
        self._index_trigrams()
        self._merge_indexes()
        for segment in self._sealer.run():
            self._log_info(f"mnemolog: sealed {segment.name}")
        for name in remove_prepared(self._ledger):
            self._log_info(f"mnemolog: removed {name}, which a restore that was cut short had left")

    def _go_on_erasing(self) -> None:
        self._is_erasing = self._erase()

    def _copy_wal(self, generation: Generation) -> None:
        wal_bytes = generation.wal_bytes()
        self._is_wal_pinned = wal_bytes > WAL_BYTES_PINNED
        if wal_bytes <= WAL_BYTES_MAX:
            return
        with generation.readers.borrow() as connection:
            connection.checkpoint_wal()
            # What was written meanwhile, with the writers held up for a moment: only a log that is
            # copied to its end starts anew, and steady writers would never let it.
            with self._ledger.lock(UPKEEP_LOCK_TIMEOUT_S):
                if self._is_wal_pinned:
                    connection.empty_wal()
                else:
                    connection.checkpoint_wal()
        self._is_wal_pinned = generation.wal_bytes() > WAL_BYTES_PINNED
        self._log_info(f"mnemolog: copied {wal_bytes} bytes of the write-ahead log")

    def _index_trigrams(self) -> None:
        """Index what is pending, once it is worth a bulk.

        The first look of a process also checks its ledger's live segment, so that damage is
        reported before somebody writes.
        """
        done = total = 0

        def flush(generation: Generation) -> None:
            nonlocal done
            due = are_trigrams_due(generation.writer)
            done = flush_trigrams(generation.writer, TRIGRAMS_PER_LOCK) if due else 0

        for _ in range(HOLDS_PER_ROUND):
            held = self._committer.exclusively(flush, lock_timeout_s=UPKEEP_LOCK_TIMEOUT_S)
            total += done if held else 0
            # A lock that is taken again at once starves whoever waits for it.
            if not held or not done or self._stopping.wait(PAUSE_S):
                break
        else:
            self._woken.set()  # there may be more
        if total:
            self._log_info(f"mnemolog: indexed the substrings of {total} memories")

    def _merge_indexes(self) -> None:
        """Merge the small segments that single writes leave in the indexes."""
        self._committer.exclusively(
            lambda generation: merge_indexes(generation.writer, MERGE_PAGES),
            lock_timeout_s=UPKEEP_LOCK_TIMEOUT_S,
        )

    def _loop(self) -> None:
        while True:
            is_round = self._woken.wait(
                WAL_LOOK_S if self._is_wal_pinned or self._is_erasing else None
            )
            self._woken.clear()
            if self._stopping.is_set():
                return
            self._try(self.run_once if is_round else self._look_at_wal)

    def _look_at_wal(self) -> None:
        if self._is_erasing:
            self._go_on_erasing()
        self._copy_wal(self._reads.current(Call()))

    def _try(self, work: Callable[[], None]) -> None:
        try:
            work()
        except (UseCaseError, LedgerError, *STORAGE_ERRORS) as error:
            self._log(f"mnemolog: {error} (upkeep is put off)")
        except Exception:  # noqa: BLE001 - upkeep must not take the process down
            self._log(f"mnemolog: upkeep failed:\n{traceback.format_exc()}")
