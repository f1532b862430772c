"""Looking back: what `known_at` means, and reads of the store as it was then.

A question by id is answered from the generation in use, whose versions say when each was current.
What looks through many memories reads a copy of the moment, which the first who asks has to wait
for: `projections.past` keeps it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from ledger import Clock, format_us
from projections.connection import (
    DAMAGE_ERRORS,
    STORAGE_ERRORS,
    CannotOpen,
    Connection,
    Interrupted,
    create_database,
)
from projections.moment import (
    Moment,
    end_of,
    last_redaction,
    moment_at,
    moment_of,
    redacted_since,
)
from projections.past import Key, PastCopies
from projections.past_build import fill_indexes, fill_tables
from projections.queries import workspace_rid
from server.commands import POSITION_MAX
from server.decision import position_said, read_range
from server.errors import BusyError, CallCancelledError, InvalidArgumentsError
from server.reads import READ_ATTEMPTS, ReadSide
from server.refusal import refusal_of
from server.results import KnownAt
from server.tool import Call

_SHARES: Final = {"memories": (0, 20), "text": (20, 55), "substrings": (75, 25)}
"""Phase of making a copy -> percent at its start, and percent it adds."""

T = TypeVar("T")


class Then(msgspec.Struct, frozen=True, kw_only=True):
    """A moment that a call looks back at."""

    seq: int
    """Ledger position of the last event that was known."""
    at_us: int
    """The instant that dates expiry and age, in microseconds."""
    known_at: KnownAt
    notes: tuple[str, ...]


class PastSide:
    """Reads of one workspace as it was."""

    def __init__(
        self,
        reads: ReadSide,
        copies: PastCopies,
        *,
        clock: Clock,
        workspace: str,
        zone: str,
        wait_s: float,
    ) -> None:
        """Bind to the read side and the copies.

        Args:
            reads: reads the generation in use.
            copies: of moments.
            clock: tells what lies in the future.
            workspace: name of the workspace that is read.
            zone: name of the time zone that dates in words are meant in.
            wait_s: how long a call waits for another process that makes a copy, in seconds.

        """
        self._reads = reads
        self._copies = copies
        self._clock = clock
        self._workspace = workspace
        self._zone = zone
        self._wait_s = wait_s

    def moment(self, known_at: str | int, call: Call, field: str = "known_at") -> Then:
        """Understand a moment: a ledger position, or a date or time.

        Args:
            known_at: digits are a position, everything else is a time, whose end is meant.
            call: the running call.
            field: name of the argument, for a refusal.

        Raises:
            InvalidArgumentsError: it is neither, or a position that the ledger has not reached.

        """
        seq = known_at if isinstance(known_at, int) else position_said(known_at)
        if seq is not None:
            return self._reads.run(call, lambda connection: self._at(connection, seq, field))
        assert isinstance(known_at, str)
        now_us = self._clock.now_us()
        span = read_range(field, known_at, now_us=now_us, zone=self._zone)
        said = () if span.said is None else (span.said,)
        return self._reads.run(
            call, lambda connection: self._of(connection, span.to_us - 1, now_us, said)
        )

    def run(self, call: Call, then: Then, read: Callable[[Connection], T]) -> T:
        """Run a read on the copy of a moment.

        Raises:
            BusyError: another process makes a copy and takes long over it.
            CallCancelledError: the call was taken back.
            StoreError: there is no room for a copy; or as `ReadSide.run`.

        """
        pause = self._pauses(call)
        for attempt in range(READ_ATTEMPTS):
            key = self._key(call, then)
            fill = self._filling(call, then.seq)
            try:
                with (
                    self._copies.open(key, fill, pause) as connection,
                    call.on_cancel(connection.interrupt),
                    connection.transaction(write=False),
                ):
                    result = read(connection)
                if self._copies.is_there(key):
                    return result
            except Interrupted as error:
                raise CallCancelledError("The call was cancelled.") from error
            except (*DAMAGE_ERRORS, CannotOpen):
                # Damaged, or erased while it was read.
                if attempt == READ_ATTEMPTS - 1:
                    raise
                self._copies.drop(key, pause)
            except (OSError, *STORAGE_ERRORS) as error:
                raise refusal_of(error) from error
        raise BusyError("Copies of the past are erased while they are read. Try again.")

    def _at(self, connection: Connection, seq: int, field: str) -> Then:
        end = end_of(connection)
        if not 0 <= seq <= min(end, POSITION_MAX):
            raise InvalidArgumentsError(
                f"`{field}` is position {seq:.0f}, but the ledger ends at position {end}. Digits "
                "are a position; a year is written as `the year 2026`, or with its last day."
                if seq < 1e15
                else f"`{field}` is beyond the end of the ledger, position {end}.",
                details={"field": field, "position": end},
            )
        moment = moment_at(connection, seq)
        return self._then(connection, moment, moment.t_us, ())

    def _of(self, connection: Connection, t_us: int, now_us: int, said: tuple[str, ...]) -> Then:
        moment = moment_of(connection, t_us)
        latest_us = max(now_us, moment.t_us)
        if t_us > latest_us:
            said = (*said, "that moment is not over yet: this is what is known now")
        return self._then(connection, moment, min(t_us, latest_us), said)

    def _then(
        self, connection: Connection, moment: Moment, at_us: int, said: tuple[str, ...]
    ) -> Then:
        workspace = workspace_rid(connection, self._workspace)
        if workspace is None or workspace > moment.seq:
            said = (*said, "at that moment nothing had been stored in this workspace yet")
        return Then(
            seq=moment.seq,
            at_us=at_us,
            known_at=KnownAt(
                position=moment.seq,
                at=None if not moment.seq and not at_us else format_us(at_us),
                redacted_since=redacted_since(connection, workspace, moment.seq),
            ),
            notes=said,
        )

    def _key(self, call: Call, then: Then) -> Key:
        generation = self._reads.current(call).name
        redaction = self._reads.run(call, last_redaction)
        return Key(seq=then.seq, redaction=redaction, generation=generation)

    def _filling(self, call: Call, seq: int) -> Callable[[Path, Callable[[], None]], None]:
        def fill(database: Path, tick: Callable[[], None]) -> None:
            def progress(phase: str, done: int, total: int) -> None:
                tick()
                call.check()
                start, share = _SHARES[phase]
                call.progress(
                    start + share * done // max(total, done), 100, "indexing the store as it was"
                )

            def tables(connection: Connection) -> None:
                # Read anew from the start if the generation was damaged or swapped out.
                database.unlink()
                create_database(database)
                fill_tables(connection, database, seq, progress)

            self._reads.run(call, tables)
            fill_indexes(database, progress)

        return fill

    def _pauses(self, call: Call) -> Callable[[float], None]:
        deadline = time.monotonic() + self._wait_s

        def pause(seconds: float) -> None:
            call.check()
            if time.monotonic() > deadline:
                raise BusyError(
                    "Another process is indexing the store as it was at some moment, and one at a "
                    "time does. Try again in some seconds."
                )
            time.sleep(seconds)

        return pause
