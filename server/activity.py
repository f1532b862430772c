"""The recorder of activity: what was searched for and read goes to the activity file, beside calls.

A call only puts a note into a bounded queue; one background thread writes the notes, many in one
transaction. What cannot be written is dropped and said in one line: activity is no memory.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from ledger import Clock
from projections.activity import ActivityFile, Logged, LoggedRead, LoggedSearch
from projections.connection import DatabaseError
from projections.errors import ActivityUnavailableError
from server.commands import SearchArgs

KEPT_US: Final = 90 * 86_400_000_000
"""How long a search or a read stays in the log; counts stay."""

PRUNE_INTERVAL_S: Final = 3600.0

NOTES_MAX: Final = 1024
"""Notes that wait for the thread; a further one displaces the oldest."""

LINGER_S: Final = 0.25
"""From a note to its transaction, so that notes made together are written together."""

ATTEMPTS_MAX: Final = 40
PAUSE_S: Final = 0.25
"""Between two attempts: a file that stays busy or full is given up after 10 to 20 seconds."""


_PLAIN: Final = SearchArgs(query="")
"""A search with every filter as it is by default."""


class SearchNote(msgspec.Struct, frozen=True, kw_only=True):
    """A search as its call notes it: what takes time to work out is left to the thread."""

    at_us: int
    workspace: str
    actor: str
    args: SearchArgs
    hits: Sequence[str]
    duration_ms: float


class ActivityRecorder:
    """Records activity while the program runs. Thread-safe; only `flush` and `close` ever wait.

    It never raises. Where the file may not be written, or is a newer program's, it switches itself
    off.
    """

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock,
        log: Callable[[str], None],
        enabled: bool = True,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Bind to a file; nothing is opened, made or started before the first note.

        Args:
            path: the activity file; its folder must exist by the first note.
            clock: dates notes and decides what is too old to keep.
            log: takes what an operator should read, a text each.
            enabled: False: nothing is ever recorded or made.
            monotonic: seconds, for the time between two prunings.

        """
        self._file = ActivityFile(path, log=log)
        self._clock = clock
        self._log = log
        self._monotonic = monotonic
        self._is_on = enabled
        self._prune_at_s: float | None = None
        self._is_failing = False
        self._thread: threading.Thread | None = None
        # The thread holds this only to take the notes and to say that they are written.
        self._changed = threading.Condition()
        self._notes: deque[SearchNote | LoggedRead] = deque()
        self._is_writing = False
        self._dropped = 0
        self._hurry = threading.Event()
        self._abandoned = threading.Event()

    @property
    def dropped(self) -> int:
        """Notes that were lost so far: displaced in the queue, or not written in time."""
        return self._dropped

    def note_search(
        self,
        *,
        workspace: str,
        actor: str,
        args: SearchArgs,
        hits: Sequence[str],
        duration_ms: float,
    ) -> None:
        """Note a search that was answered; `hits` are the ids found, best first."""
        if self._is_on:
            self._put(
                SearchNote(
                    at_us=self._clock.now_us(),
                    workspace=workspace,
                    actor=actor,
                    args=args,
                    hits=hits,
                    duration_ms=duration_ms,
                )
            )

    def note_read(self, ids: Sequence[str], *, workspace: str, actor: str) -> None:
        """Note that memories were read by their ids."""
        if self._is_on and ids:
            self._put(
                LoggedRead(
                    at_us=self._clock.now_us(), workspace=workspace, actor=actor, memories=ids
                )
            )

    def flush(self, timeout_s: float) -> bool:
        """Wait until all notes so far are written or dropped, at most so long; return whether."""
        with self._changed:
            self._hurry.set()
            is_idle = self._changed.wait_for(
                lambda: not self._notes and not self._is_writing, timeout_s
            )
            if self._is_on:
                self._hurry.clear()
        return is_idle

    def close(self, timeout_s: float) -> None:
        """Take no more notes, write those there are, at most so long, and close the file."""
        with self._changed:
            self._is_on = False
            self._hurry.set()
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout_s)
        self._abandoned.set()

    def _put(self, note: SearchNote | LoggedRead) -> None:
        with self._changed:
            if not self._is_on:
                return
            if len(self._notes) == NOTES_MAX:
                self._notes.popleft()
                self._dropped += 1
            self._notes.append(note)
            if self._thread is not None:
                self._changed.notify_all()
                return
            thread = threading.Thread(target=self._loop, name="activity", daemon=True)
            # No thread may be had: the note stays, and the next one tries again.
            with suppress(RuntimeError):
                thread.start()
                self._thread = thread

    def _loop(self) -> None:
        while self._wait():
            self._hurry.wait(LINGER_S)
            with self._changed:
                notes = list(self._notes)
                self._notes.clear()
                self._is_writing = True
            try:
                self._write([_logged(note) for note in notes])
                self._prune()
            except ActivityUnavailableError as error:
                self._switch_off(error, len(notes))
            except Exception:  # noqa: BLE001 - the next notes may fare better
                self._drop(len(notes), f"failed:\n{traceback.format_exc()}")
        self._file.close()

    def _wait(self) -> bool:
        """Wait for notes; return False when there are none and there will be none."""
        with self._changed:
            self._is_writing = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._notes or not self._is_on)
            return bool(self._notes)

    def _write(self, calls: Sequence[Logged]) -> None:
        problem: Exception | None = None
        for attempt in range(ATTEMPTS_MAX):
            if attempt and self._abandoned.wait(PAUSE_S):
                break
            try:
                self._file.write(calls)
            except (DatabaseError, OSError) as error:
                problem = error
                self._file.close()
            else:
                self._is_failing = False
                return
        self._drop(len(calls), str(problem))

    def _prune(self) -> None:
        if self._prune_at_s is not None and self._monotonic() < self._prune_at_s:
            return
        self._prune_at_s = self._monotonic() + PRUNE_INTERVAL_S
        # Busy or failing: what is old waits for the next time.
        with suppress(DatabaseError, OSError):
            self._file.prune(self._clock.now_us() - KEPT_US, go_on=lambda: not self._hurry.is_set())

    def _drop(self, count: int, reason: str) -> None:
        with self._changed:
            self._dropped += count
        if not self._is_failing:
            self._is_failing = True
            self._log(f"mnemolog: activity log: {reason} ({count} entries are dropped)")

    def _switch_off(self, error: ActivityUnavailableError, count: int) -> None:
        with self._changed:
            self._is_on = False
            self._dropped += count + len(self._notes)
            self._notes.clear()
        self._log(f"mnemolog: {error}; nothing more is recorded")


def _logged(note: SearchNote | LoggedRead) -> Logged:
    if isinstance(note, LoggedRead):
        return note
    return LoggedSearch(
        at_us=note.at_us,
        workspace=note.workspace,
        actor=note.actor,
        query=note.args.query,
        mode=note.args.mode,
        filters=filters_of(note.args),
        hits=note.hits,
        duration_ms=note.duration_ms,
    )


def filters_of(args: SearchArgs) -> dict[str, object]:
    """Return the arguments of a search, query and mode excepted, that are not their defaults."""
    return {
        name: msgspec.to_builtins(value)
        for name in args.__struct_fields__
        if name not in {"query", "mode"} and (value := getattr(args, name)) != getattr(_PLAIN, name)
    }
