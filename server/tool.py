"""A tool: one use case as a client sees it, and the running call its handler is given.

Handlers are plain functions from an argument Struct and a `Call` to a result Struct. They know
neither the protocol nor the transport, so every way in can serve them.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from msgspec import Struct

from server.errors import CallCancelledError


class Call:
    """One running call, as its handler sees it. Safe to use from several threads.

    Args:
        actor_name: What the client calls itself; empty if it did not say.
        repaired: Whether the request held text that is not Unicode (a lone surrogate, bytes that
            are not UTF-8), each piece of which was replaced by U+FFFD.
        report: Passes progress on to the client; None if the client asked for none.
    """

    __slots__ = ("_callbacks", "_cancelled", "_lock", "_report", "actor_name", "repaired")

    def __init__(
        self,
        *,
        actor_name: str = "",
        repaired: bool = False,
        report: Callable[[float, float | None, str], None] | None = None,
    ) -> None:
        self.actor_name = actor_name
        self.repaired = repaired
        self._report = report
        self._cancelled = False
        self._callbacks: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    @property
    def cancelled(self) -> bool:
        """Whether the call was taken back."""
        return self._cancelled

    def check(self) -> None:
        """Stop here if the call was taken back.

        Raises:
            CallCancelledError: If it was.
        """
        if self._cancelled:
            raise CallCancelledError("The call was cancelled.")

    def cancel(self) -> None:
        """Take the call back: `cancelled` becomes true and the callbacks run. Twice is once."""
        with self._lock:
            if self._cancelled:
                return
            self._cancelled = True
            for callback in self._callbacks:
                callback()

    def on_cancel(self, callback: Callable[[], None]) -> "CancelGuard":
        """Have `callback` run, from another thread, if the call is taken back inside the block.

        The callback must be quick, must not raise and must not use this call. Once the block is
        left it does not run, nor is it still running: interrupting a database connection from it
        cannot hit the connection's next user.

        Returns:
            A context manager. Entering it raises CallCancelledError if the call was taken back.
        """
        return CancelGuard(self, callback)

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Tell the client how far the call is; does nothing if it did not ask.

        Args:
            done: Work done so far, in any unit. A value not above the last one is not sent.
            total: The whole work in the same unit, if known.
            message: A short sentence for a person.
        """
        if self._report is not None:
            self._report(done, total, message)

    def _enter(self, callback: Callable[[], None]) -> None:
        with self._lock:
            self.check()
            self._callbacks.append(callback)

    def _leave(self, callback: Callable[[], None]) -> None:
        with self._lock:
            self._callbacks.remove(callback)


class CancelGuard:
    """The block in which a callback answers for a call's cancellation."""

    __slots__ = ("_call", "_callback")

    def __init__(self, call: Call, callback: Callable[[], None]) -> None:
        self._call = call
        self._callback = callback

    def __enter__(self) -> Self:
        """Register the callback."""
        self._call._enter(self._callback)  # noqa: SLF001 - one noun in two classes
        return self

    def __exit__(self, *_: object) -> None:
        """Forget the callback, waiting for it if it is running."""
        self._call._leave(self._callback)  # noqa: SLF001 - as above


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A use case with the words and hints a client shows for it.

    Attributes:
        name: `[a-z0-9_]`, at most 37 characters.
        title: Its name for people.
        description: What it does, when to call it, what comes back; at most 2,048 characters.
        args: The Struct its arguments are converted to.
        result: The Struct its handler returns.
        read_only: Whether it changes nothing.
        destructive: Whether it may take something away, rather than only add.
        idempotent: Whether the same call twice leaves the same state as once.
        run: The handler. It raises UseCaseError for what the caller can mend.
    """

    name: str
    title: str
    description: str
    args: type[Struct]
    result: type[Struct]
    read_only: bool
    destructive: bool
    idempotent: bool
    run: Callable[[Any, Call], Struct]
