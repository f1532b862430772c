"""The stdio transport: lines in on one descriptor, lines out on another, calls on threads.

`claim` takes standard input and output away from everyone else, so it comes before any import that
might print. `serve` then runs until the client leaves or a signal comes, and ends the process.

A thread that holds the reading lock takes the next line. What is quick it answers itself; for a
call it lets go of the lock, so that the next thread reads on, and runs the call where it is. A lone
client therefore never waits for a hand-over between threads. This module imports nothing that is
slow to load.
"""

import gc
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Final, NoReturn, Protocol

LINE_BYTES_MAX: Final = 16 * 2**20
"""The longest line that is read; a longer one gets an error for an answer."""

CALLS_MAX: Final = 64
"""Calls that run at once. While so many run, a further one leaves the pipe unread."""

DRAIN_SECONDS: Final = 5.0
"""How long running calls may go on after the end of input or a signal."""

CLOSE_SECONDS: Final = 5.0
"""How long cancelled calls and closing may take after that, before the process ends anyhow."""

_READ_BYTES: Final = 2**16
_SPARE_THREADS: Final = 4
_STDERR_PIECE_BYTES: Final = 4096
"""What a pipe that polls as writable takes without blocking."""

_END: Final = ord("e")
_LOST: Final = ord("l")
_DONE: Final = ord("d")
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Runnable(Protocol):
    """Work that ends with an answer."""

    @property
    def run(self) -> Callable[[], None]:
        """Do the work; never raises."""
        ...


class Peer(Protocol):
    """The protocol behind the transport."""

    def receive(self, line: bytes) -> Runnable | None:
        """Take a line; returns what is left to do for it."""
        ...

    def overlong(self, limit_bytes: int) -> None:
        """Take note of a line that was longer than the limit and skipped."""
        ...

    def cancel_all(self) -> None:
        """Take back all running work."""
        ...


class Pipes:
    """The two descriptors the messages travel on.

    Args:
        read_fd: Where lines come from.
        write_fd: Where lines go.
    """

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self.read_fd = read_fd
        self._write_fd = write_fd
        self._lost = False
        self.on_lost: Callable[[], None] = lambda: None

    def write(self, data: bytes) -> None:
        """Write all of it. If nobody reads any more, `on_lost` runs, once, and data is dropped."""
        if self._lost:
            return
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._write_fd, rest) :]
        except OSError:
            self._lost = True
            self.on_lost()

    def abandoned(self) -> bool:
        """Whether nobody can write to us any more, even if lines are still unread."""
        poll = select.poll()
        poll.register(self.read_fd, 0)
        return bool(poll.poll(0))


def claim() -> Pipes:
    """Take standard input and output for messages alone.

    Whatever reads descriptor 0 from now on finds it empty, whatever writes to descriptor 1 (also a
    C library or a child) writes to standard error.
    """
    pipes = Pipes(os.dup(0), os.dup(1))
    # A client written for an event loop may hand over a descriptor that does not block.
    os.set_blocking(pipes.read_fd, True)
    os.set_blocking(1, True)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    return pipes


def log(text: str, fd: int = 2) -> None:
    """Write to standard error what it takes at once; the rest is dropped, not waited for."""
    data = text.rstrip("\n").encode("utf-8", "replace") + b"\n"
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    for start in range(0, len(data), _STDERR_PIECE_BYTES):
        if not poll.poll(0):
            return
        try:
            os.write(fd, data[start : start + _STDERR_PIECE_BYTES])
        except OSError:
            return


def silence(text: str) -> None:
    """Take a text of a level that is not logged."""


def serve(peer: Peer, pipes: Pipes, *, on_close: Callable[[], None]) -> NoReturn:
    """Serve until the input ends, the output breaks, or SIGTERM or SIGINT comes; then exit.

    Running calls are drained for DRAIN_SECONDS, then taken back. The exit status is 0, or 1 if
    closing did not come to an end in CLOSE_SECONDS.

    Args:
        peer: The protocol.
        pipes: What `claim` returned.
        on_close: Closes what the calls use; runs after the last call, on the main thread.
    """
    news = _News()
    news.listen_to_signals()
    pool = _Pool(peer, pipes, news)
    pipes.on_lost = lambda: news.put(_LOST)
    gc.freeze()
    pool.start()
    news.get(None)
    _drain(pool, news, DRAIN_SECONDS)
    watchdog = threading.Timer(CLOSE_SECONDS, os._exit, (1,))
    watchdog.daemon = True
    watchdog.start()
    peer.cancel_all()
    _drain(pool, news, CLOSE_SECONDS / 5)
    status = 0
    try:
        on_close()
    except Exception as error:  # noqa: BLE001 - the process ends here either way
        log(f"closing failed: {error!r}")
        status = 1
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)


def _drain(pool: "_Pool", news: "_News", seconds: float) -> None:
    """Wait until nothing runs any more; a (further) signal ends the wait."""
    deadline = time.monotonic() + seconds
    while pool.stop() > 0:
        event = news.get(max(0.0, deadline - time.monotonic()))
        if event is None or event in _SIGNALS:
            return


class _News:
    """What the main thread waits for, as bytes in a pipe: a signal's number, or a letter.

    A signal that comes just before a thread starts to wait for a lock does not wake it; one that
    leaves a byte in a pipe cannot be missed.
    """

    def __init__(self) -> None:
        self._read_fd, self._write_fd = os.pipe()
        os.set_blocking(self._write_fd, False)

    def listen_to_signals(self) -> None:
        """Have SIGINT and SIGTERM leave their numbers, and do nothing else."""
        signal.set_wakeup_fd(self._write_fd)
        for number in _SIGNALS:
            signal.signal(number, lambda *_: None)

    def put(self, event: int) -> None:
        """Leave one piece of news."""
        os.write(self._write_fd, bytes((event,)))

    def get(self, seconds: float | None) -> int | None:
        """Wait for the next piece; None if there was none in time."""
        readable, _, _ = select.select([self._read_fd], [], [], seconds)
        return os.read(self._read_fd, 1)[0] if readable else None


class _Pool:
    """The threads.

    They tell of the end of input and, once stopped, of each call that ends.
    """

    def __init__(self, peer: Peer, pipes: Pipes, news: _News) -> None:
        self._peer = peer
        self._pipes = pipes
        self._news = news
        self._lines = _Lines(pipes.read_fd)
        self._reading = threading.Lock()
        self._state = threading.Lock()
        self._slots = threading.Semaphore(CALLS_MAX)
        self._waiting = 0
        self._running = 0
        self._stopped = False

    def start(self) -> None:
        """Start the first thread; it starts the others as they are needed."""
        threading.Thread(target=self._work, daemon=True).start()

    def stop(self) -> int:
        """Take no more calls; returns how many still run."""
        with self._state:
            self._stopped = True
            return self._running

    def _work(self) -> None:
        while True:
            with self._state:
                if self._waiting >= _SPARE_THREADS:
                    return
                self._waiting += 1
            with self._reading:
                with self._state:
                    self._waiting -= 1
                job = self._next_job()
                if job is None:
                    return
                with self._state:
                    alone = self._waiting == 0
            if alone:
                self._start_next()
            self._run(job)

    def _start_next(self) -> None:
        try:
            self.start()
        except RuntimeError as error:
            # No more threads to be had: this one reads on when its call is done.
            log(f"cannot start a thread: {error}")

    def _next_job(self) -> Runnable | None:
        """Read until there is a call to run; None when there will be no more."""
        while not self._stopped:
            try:
                line = self._lines.next()
            except _OverlongError:
                self._peer.overlong(LINE_BYTES_MAX)
                continue
            if line is None:
                self._stopped = True
                self._news.put(_END)
                return None
            if not line or line.isspace():
                continue
            job = self._peer.receive(line)
            if job is not None and self._admitted():
                return job
        return None

    def _admitted(self) -> bool:
        """Wait for a free slot; False if the server stopped before there was one."""
        while not self._slots.acquire(timeout=DRAIN_SECONDS):
            # No call has ended for a while. With the client gone, none of them may ever end.
            if self._stopped or self._pipes.abandoned():
                self._news.put(_END)
                return False
        with self._state:
            if self._stopped:
                return False
            self._running += 1
            return True

    def _run(self, job: Runnable) -> None:
        try:
            job.run()
        finally:
            self._slots.release()
            with self._state:
                self._running -= 1
                if self._stopped:
                    self._news.put(_DONE)


class _OverlongError(Exception):
    """A line was longer than LINE_BYTES_MAX. It is skipped."""


class _Lines:
    """Lines of a descriptor. Each byte is searched once and copied at most twice."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._chunk = b""
        self._start = 0
        self._parts: list[bytes] = []
        self._parts_bytes = 0

    def next(self) -> bytes | None:
        """Wait for the next line; returns it without its newline, or None at the end.

        Raises:
            _OverlongError: If the line is too long; it is skipped.
        """
        while True:
            end = self._chunk.find(b"\n", self._start)
            if end >= 0:
                return self._taken(end)
            self._keep(self._chunk[self._start :])
            try:
                self._chunk = os.read(self._fd, _READ_BYTES)
            except OSError:
                self._chunk = b""
            self._start = 0
            if not self._chunk:
                return self._taken(0) if self._parts_bytes else None

    def _keep(self, part: bytes) -> None:
        self._parts_bytes += len(part)
        if self._parts_bytes > LINE_BYTES_MAX:
            self._parts.clear()
        elif part:
            self._parts.append(part)

    def _taken(self, end: int) -> bytes:
        part = self._chunk[self._start : end]
        self._start = end + 1
        if not self._parts_bytes:
            return part
        self._keep(part)
        line, size = b"".join(self._parts), self._parts_bytes
        self._parts.clear()
        self._parts_bytes = 0
        if size > LINE_BYTES_MAX:
            raise _OverlongError
        return line
