"""What is subscribed to, looked at again whenever the store has moved, whoever moved it.

One thread per process, and only while something is watched: it asks about once a second, and soon
after a write of this process, which ledger position the reads show. If that has moved, what is
watched is read again, and whose text is another one is told. Time alone tells nobody anything: a
memory that expires is noticed with the next write.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from msgspec import Struct

from server.errors import UseCaseError
from server.tool import Call

LOOK_S: Final = 1.0
"""How long a write of another process may stay unnoticed, in seconds."""

REST_S: Final = 0.1
REST_ROUNDS: Final = 4.0
"""How long the thread rests after a round, in seconds and in durations of the round, whichever is
longer: while somebody writes without end, looking takes a fifth of a processor at most."""


class Watch(Struct, eq=False):
    """One thing that is watched.

    Attributes:
        read: Makes its text.
        tell: Says that the text is another one than before.
        position: The position the reads had reached when it was last looked at.
        mark: The hash of the text it had then.
    """

    read: Callable[[Call], str]
    tell: Callable[[], None]
    position: int = -1
    mark: int = 0


class Watcher:
    """Tells of what changed.

    Args:
        position: Asks which ledger position the reads show; raises UseCaseError if it cannot now.
        log: Takes what an operator should read of a failure, as one text.
    """

    def __init__(self, position: Callable[[Call], int], *, log: Callable[[str], None]) -> None:
        self._position = position
        self._log = log
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._closed = threading.Event()
        self._watches: dict[int, Watch] = {}
        self._thread: threading.Thread | None = None
        self._call = Call()

    def look(self, watch: Watch, call: Call) -> None:
        """Look at something for the first time: from now on a change of it is one.

        Raises:
            UseCaseError: If it cannot be read.
        """
        watch.position = self._position(call)
        watch.mark = hash(watch.read(call))

    def add(self, *watches: Watch) -> None:
        """Watch what was looked at, and tell at once what has changed since."""
        with self._lock:
            if watches and self._thread is None and not self._closed.is_set():
                thread = threading.Thread(target=self._loop, name="watch", daemon=True)
                thread.start()
                self._thread = thread
            self._watches.update((id(watch), watch) for watch in watches)
        self._woken.set()

    def drop(self, *watches: Watch) -> None:
        """Watch no longer; the thread ends when nothing is left."""
        with self._lock:
            for watch in watches:
                self._watches.pop(id(watch), None)
        self._woken.set()

    def note_write(self) -> None:
        """Have a look soon: this process has written."""
        if self._watches:
            self._woken.set()

    def close(self, timeout_s: float) -> None:
        """Watch nothing any more, waiting at most so long for a reading that is under way."""
        self._closed.set()
        self._call.cancel()
        self._woken.set()
        with self._lock:
            self._watches.clear()
            thread = self._thread
        if thread is not None:
            thread.join(timeout_s)

    def run_once(self) -> None:
        """Look at everything that was last looked at before the store moved."""
        with self._lock:
            watches = tuple(self._watches.values())
        # What cannot be read now is looked at again in the next round.
        with suppress(UseCaseError):
            position = self._position(self._call)
            for watch in watches:
                if watch.position != position:
                    self._compare(watch, position)

    def _compare(self, watch: Watch, position: int) -> None:
        before, watch.position = watch.position, position
        try:
            mark = hash(watch.read(self._call))
        except UseCaseError:
            watch.position = before
            return
        if mark != watch.mark:
            watch.mark = mark
            if id(watch) in self._watches:  # and was not dropped while it was read
                watch.tell()

    def _loop(self) -> None:
        while True:
            self._woken.wait(LOOK_S)
            self._woken.clear()
            with self._lock:
                if not self._watches:
                    self._thread = None
                    return
            started = time.monotonic()
            try:
                self.run_once()
            except Exception as error:  # noqa: BLE001 - the next round may go well
                self._log(f"mnemolog: looking at what is subscribed to failed: {error!r}")
            self._closed.wait(max(REST_S, REST_ROUNDS * (time.monotonic() - started)))
