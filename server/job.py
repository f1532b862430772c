"""A job: what one command asks of a store, which is opened for it and closed after it.

Use cases run on a thread of their own, so that Ctrl-C takes a call back as a client would: a read
stops, and a write that has begun is finished or not begun at all.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, Generic, TypeVar

from server.app import App
from server.bootstrap import Store, ledger_folder
from server.config import Config
from server.copies import CopyKind, note_copy
from server.errors import StoreError
from server.status import CommandError, no_store, status_of
from server.terminal import Screen
from server.tool import Call

REBUILD_WAIT_S: Final = 86_400.0
"""Whoever typed the command sees the progress and can end the wait."""

QUIET_S: Final = 0.5
"""How long a rebuild may take before it is spoken of: that of an empty store takes no time."""

CANCEL_WAIT_S: Final = 2.0
"""How long a call that was taken back may go on; it stops at its next step."""

T = TypeVar("T")


class Job:
    """The store a command works on. Use it in the main thread."""

    def __init__(
        self, config: Config, screen: Screen, *, actor: str, repaired: bool, begins: bool
    ) -> None:
        """Bind to a home; nothing is opened before the first question.

        Args:
            config: where the store is.
            screen: is told what an operator should read, and how far a rebuild is.
            actor: who is to be recorded as the author of what is written.
            repaired: whether the command line held bytes that are not UTF-8.
            begins: whether a store is to be made where there is none.

        """
        self.interrupted = False
        self._config = config
        self._screen = screen
        self._actor = actor
        self._repaired = repaired
        self._begins = begins
        self._store: Store | None = None
        self._said: list[str] = []

    def ask(self, use: Callable[[App, Call], T]) -> T:
        """Run a use case and return what it answers.

        Raises:
            UseCaseError: it refuses, or the store cannot be opened.
            CommandError: there is no store.
            KeyboardInterrupt: it was interrupted and has not come to its end.

        """
        with _progress(self._screen) as report:
            call = Call(actor_name=self._actor, repaired=self._repaired, report=report)
            worker = _Worker(lambda: use(self._opened().app, call))
            worker.start()
            try:
                worker.done.wait()
            except KeyboardInterrupt:
                call.cancel()
                worker.done.wait(CANCEL_WAIT_S)
                if not worker.has_answer:
                    raise
                self.interrupted = True
        return worker.answer()

    def note_copy(self, kind: CopyKind, path: Path) -> None:
        """Note that what was read of the store until now is written to a file outside it."""
        position = self.ask(App.position)
        home = self._config.home.resolve()
        note_copy(home, kind=kind, path=path, position=position, log=self._screen.say)

    def close(self) -> None:
        """Close the store if it was opened."""
        if self._store is not None:
            self._store.upkeep.finish()
            self._store.upkeep.stop(0)
            self._store.close()

    def _opened(self) -> Store:
        if self._store is not None:
            return self._store
        if not self._begins and not _has_ledger(self._config):
            raise no_store(self._config.home)
        opening = True

        def log(text: str) -> None:
            if opening:
                self._said.append(text)
            else:
                self._screen.say(text)

        try:
            self._store = Store(self._config, rebuild_wait_s=REBUILD_WAIT_S, log=log)
        except StoreError as error:
            reason = self._said[-1].removeprefix("mnemolog: ") if self._said else error.message
            raise _unopened(error, reason) from error
        opening = False
        for text in self._said:
            self._screen.say(text)
        return self._store


def _has_ledger(config: Config) -> bool:
    try:
        return (ledger_folder(config) / "FORMAT").exists()
    except OSError:
        return True  # opening it will say what is wrong


class _Worker(threading.Thread, Generic[T]):
    """A thread with one answer."""

    def __init__(self, work: Callable[[], T]) -> None:
        super().__init__(name="job", daemon=True)
        # Waited for instead of `join`, which believes the thread ended once Ctrl-C interrupts it.
        self.done = threading.Event()
        self._work = work
        self._answers: list[T] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._answers.append(self._work())
        except BaseException as error:  # noqa: BLE001 - raised again in the main thread
            self._error = error
        finally:
            self.done.set()

    @property
    def has_answer(self) -> bool:
        return bool(self._answers)

    def answer(self) -> T:
        if self._error is not None:
            raise self._error
        return self._answers[0]


@contextmanager
def _progress(screen: Screen) -> Iterator[Callable[[float, float | None, str], None]]:
    """Show how far a rebuild is, once it takes long: a bar on a terminal, else one line."""
    started = time.monotonic()
    drawn: Callable[[str, int, int], None] | None = None
    with ExitStack() as stack:

        def report(done: float, total: float | None, message: str) -> None:
            nonlocal drawn
            if time.monotonic() - started < QUIET_S:
                return
            if drawn is None:
                drawn = _drawing(stack, screen, message)
            drawn("rebuild", int(done), int(total or 0))

        yield report


def _drawing(stack: ExitStack, screen: Screen, message: str) -> Callable[[str, int, int], None]:
    if not screen.draws_progress:
        screen.say(f"mnemolog: {message}")
        return lambda _phase, _done, _total: None
    from projections.progress_bar import draw  # noqa: PLC0415 - only a long rebuild pays for it

    return stack.enter_context(draw())


def _unopened(error: StoreError, reason: str) -> CommandError:
    message = reason if error.code == "store" else f"{error.message} ({reason})"
    return CommandError(status_of(error), error.code, message, error.details)
