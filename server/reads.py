"""The generation in use: opened, swapped, doubted and rebuilt behind every reader's back.

A read is a function of a connection. It runs in one transaction on the newest generation; if SQLite
or FTS5 finds damage, the projections are rebuilt and the read runs again. While a rebuild is under
way callers wait for it a bounded time and are then told how far it is: never an empty answer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from ledger import Ledger, LedgerDamagedError, LedgerError
from projections.checkpoint import read_checkpoint
from projections.connection import (
    DAMAGE_ERRORS,
    STORAGE_ERRORS,
    CannotOpen,
    Connection,
    Interrupted,
    StatementError,
)
from projections.errors import ProgramOutdatedError, ProjectionError, ProjectionUnusableError
from projections.generation import Generation, Generations
from projections.integrity import find_damage
from projections.rebuild import Progress, rebuild, salvage
from server.errors import (
    BusyError,
    CallCancelledError,
    OutdatedError,
    RebuildingError,
)
from server.refusal import refusal_of
from server.tool import Call

CHECKED_AT_ONCE_BYTES_MAX = 32 << 20
"""Size of a generation that can be checked whole while a caller waits: some tenths of a second."""

READ_ATTEMPTS = 3
"""A generation may be swapped out between two steps of a read, and the next one be damaged."""

_PHASE_SHARES = {"events": (0, 30), "text": (30, 70)}
"""Phase of a rebuild -> percent at its start, and percent it adds."""

T = TypeVar("T")


class ReadSide:
    """Gives every reader and writer of this process the generation in use."""

    def __init__(
        self,
        ledger: Ledger,
        generations: Generations,
        *,
        lock_timeout_s: float,
        rebuild_wait_s: float,
        log: Callable[[str], None],
        log_info: Callable[[str], None],
    ) -> None:
        """Bind to a ledger and its generations; nothing is opened yet."""
        self._log = log
        self._log_info = log_info
        self._ledger = ledger
        self._generations = generations
        self._lock_timeout_s = lock_timeout_s
        self._rebuild_wait_s = rebuild_wait_s
        self._mutex = threading.RLock()
        self._generation: Generation | None = None
        self._stamp: object = None
        self._retired: list[Generation] = []
        self._verified: str | None = None
        self._rebuild: _Rebuild | None = None

    @property
    def generations(self) -> Generations:
        """The folder of generations that this side reads from."""
        return self._generations

    def run(self, call: Call, read: Callable[[Connection], T]) -> T:
        """Run a read in one transaction; a cancelled call interrupts it.

        Raises:
            CallCancelledError: the call was taken back.
            RebuildingError: the projections are being rebuilt and that takes longer.
            OutdatedError: a newer program owns the projections.
            BusyError: others write to a store that this process may only read.

        """
        for attempt in range(READ_ATTEMPTS):
            generation = self.current(call)
            try:
                with (
                    generation.readers.borrow() as connection,
                    call.on_cancel(connection.interrupt),
                    connection.transaction(write=False),
                ):
                    result = read(connection)
                if generation.is_as_found():
                    return result
            except Interrupted as error:
                raise CallCancelledError("The call was cancelled.") from error
            except (*DAMAGE_ERRORS, CannotOpen) as error:
                # Cannot be opened: swapped out since, or its files are gone.
                if attempt == READ_ATTEMPTS - 1:
                    raise
                self.report_damage(generation, str(error))
        raise BusyError("The store changes while it is read, and may not be locked. Try again.")

    def current(self, call: Call) -> Generation:
        """Return the generation in use, waiting for a rebuild if there must be one.

        Raises:
            RebuildingError, OutdatedError: as `run`.

        """
        while True:
            generation = self.ready()
            if generation is not None:
                return generation
            running = self._rebuild
            assert running is not None, "without a generation there is a rebuild"
            self._wait(running, call)

    def ready(self) -> Generation | None:
        """Return the generation in use, at the price of one `stat` when it has not changed.

        Never waits, so it may be called under the ledger's lock; None while there is a rebuild.

        Raises:
            OutdatedError: as `run`.
            ReadOnlyError: this process may not open it.

        """
        with self._mutex:
            try:
                if (
                    self._generation is None
                    or self._generations.stamp() != self._stamp
                    or not self._generation.is_as_found()
                ):
                    self._open()
            except OSError as error:
                raise refusal_of(error) from error
            return self._generation

    def believe(self, call: Call, *, thorough: bool = False) -> bool:
        """Check the generation in use unless this process has; say whether it was sound.

        Called before an empty result is given out: an index can lose rows and not know. Where
        reading all of it would take long a sample must do, and the upkeep reads all of it later. A
        damaged generation is reported, so that the caller's next read waits for its rebuild.
        """
        generation = self.current(call)
        if self._verified == generation.name and not thorough:
            return True
        with generation.readers.borrow() as connection, call.on_cancel(connection.interrupt):
            try:
                thorough = thorough or connection.database_bytes() <= CHECKED_AT_ONCE_BYTES_MAX
                generation.is_doubtful |= not thorough
                with connection.transaction(write=False):
                    damage = find_damage(connection, thorough=thorough)
            except Interrupted as error:
                raise CallCancelledError("The call was cancelled.") from error
        if damage is None:
            self._verified = generation.name
            return True
        self.report_damage(generation, damage)
        return False

    def mend(self) -> None:
        """Rebuild a generation that was salvaged from a damaged ledger, once the ledger is whole.

        Raises:
            LedgerError: it is not.

        """
        generation = self.ready()
        if generation is None or not generation.gaps:
            return
        with self._generations.rebuild_lock():
            if self._generations.current() == generation.name:
                self._rebuild_strictly(lambda _phase, _done, _total: None)

    def renew(self) -> None:
        """Build the projections anew from the ledger; the caller holds no lock of either.

        Raises:
            LedgerError: the ledger cannot be read or locked.

        """
        with self._generations.rebuild_lock():
            self._rebuild_strictly(lambda _phase, _done, _total: None)

    def report_damage(self, generation: Generation, detail: str) -> None:
        """Stop using a damaged generation and begin to rebuild."""
        with self._mutex:
            if self._generation is not generation:
                return
            self._retire()
            if self._generations.stamp() != self._stamp:
                return  # it was swapped out, and its files may be gone: no damage
            self._log(
                f"mnemolog: projection {generation.name} is damaged ({detail}); rebuilding it from "
                "the ledger"
            )
            self._start_rebuild()

    def reopen(self) -> None:
        """Open the generation in use anew before the next use: it lacks what the ledger has."""
        with self._mutex:
            self._retire()

    def close_retired(self) -> None:
        """Close the generations that were swapped out; the caller holds the right to write."""
        with self._mutex:
            retired, self._retired = self._retired, []
        for generation in retired:
            generation.close()

    def close(self) -> None:
        """Close everything; a rebuild under way ends with the process."""
        with self._mutex:
            self._retire()
        self.close_retired()
        self._generations.close()

    def _open(self) -> None:
        if self._rebuild is not None and not self._rebuild.done.is_set():
            return
        stamp = self._generations.stamp()
        self._retire()
        try:
            generation = self._generations.open_current()
            try:
                self._catch_up(generation)
            except BaseException:
                generation.close()
                raise
        except ProjectionUnusableError as error:
            self._log(f"mnemolog: {error}; reading from a copy in a temporary folder instead")
            self._start_rebuild()
            return
        except ProgramOutdatedError as error:
            raise OutdatedError(f"The store is newer than this program: {error}.") from error
        except (ProjectionError, *DAMAGE_ERRORS, StatementError):
            self._start_rebuild()
            return
        self._generation, self._stamp = generation, stamp

    def _catch_up(self, generation: Generation) -> None:
        """Apply what a process that was cut off had appended but not applied, if nobody else is."""
        known = read_checkpoint(generation.writer)
        # Whoever holds the lock does the same before anything else, and what keeps this process
        # from writing does not keep it from reading: the next write says what is wrong.
        with suppress(LedgerError, OSError, *STORAGE_ERRORS):
            if known is not None and not self._ledger.has_more(known):
                return
            with self._ledger.lock(0.0) as writer, generation.changing():
                generation.catch_up(writer)

    def _retire(self) -> None:
        if self._generation is None:
            return
        if self._ledger.is_read_only:
            self._generation.close()  # nobody writes to it
        else:
            self._retired.append(self._generation)
        self._generation = None

    def _start_rebuild(self) -> None:
        if self._rebuild is not None and not self._rebuild.done.is_set():
            return
        broken = self._generations.stamp()
        self._rebuild = _Rebuild(lambda progress: self._rebuild_once(broken, progress), self._log)
        self._rebuild.start()

    def _rebuild_once(self, broken: object, progress: Progress) -> None:
        with self._generations.rebuild_lock():
            if self._generations.stamp() != broken:
                return  # another process did it while this one waited
            try:
                self._rebuild_strictly(progress)
            except LedgerDamagedError as error:
                self._log(f"mnemolog: {error}")
                report = salvage(self._ledger, self._generations, progress)
                self._log(
                    f"mnemolog: serving the {report.events} events that can be read; "
                    f"{len(report.gaps)} parts of the ledger cannot"
                )

    def _rebuild_strictly(self, progress: Progress) -> None:
        self._log_info("mnemolog: rebuilding the projections from the ledger")
        report = rebuild(
            self._ledger,
            self._generations,
            lock_timeout_s=self._lock_timeout_s,
            known=None,
            progress=progress,
        )
        self._log_info(f"mnemolog: rebuilt {report.events} events into {report.generation}")

    def _wait(self, running: _Rebuild, call: Call) -> None:
        with call.on_cancel(running.wake):
            finished = running.wait(self._rebuild_wait_s, call)
        call.check()
        if not finished:
            raise RebuildingError(
                f"The projections are being rebuilt from the ledger, {running.percent} % done; "
                "nothing is lost. Try again in some seconds.",
                details={"percent": running.percent},
            )
        error = running.error
        if isinstance(error, (LedgerError, OSError, *STORAGE_ERRORS)):
            raise refusal_of(error) from error
        if error is not None:
            raise error


class _Rebuild:
    """A rebuild on a thread of its own, with waiters."""

    def __init__(self, work: Callable[[Progress], None], log: Callable[[str], None]) -> None:
        self._log = log
        self.percent = 0
        self.error: BaseException | None = None
        self.done = threading.Event()
        self._changed = threading.Condition()
        self._work = work

    def start(self) -> None:
        threading.Thread(target=self._run, name="rebuild", daemon=True).start()

    def wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def wait(self, seconds: float, call: Call) -> bool:
        """Wait for the end, passing progress on to the call; say whether it came in time."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while not self.done.is_set() and not call.cancelled:
                call.progress(self.percent, 100, "rebuilding the projections from the ledger")
                if not self._changed.wait(min(deadline - time.monotonic(), threading.TIMEOUT_MAX)):
                    break
        return self.done.is_set()

    def _run(self) -> None:
        try:
            self._work(self._progress)
        except Exception as error:  # noqa: BLE001 - handed to whoever waits
            self._log(f"mnemolog: the rebuild failed: {error}")
            self.error = error
        finally:
            self.done.set()
            self.wake()

    def _progress(self, phase: str, done: int, total: int) -> None:
        start, share = _PHASE_SHARES[phase]
        percent = start + share * done // max(total, 1)
        if percent != self.percent:
            self.percent = percent
            self.wake()
