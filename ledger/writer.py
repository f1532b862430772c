"""The writer: what the holder of the ledger's lock may do."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from ledger.clock import Clock
from ledger.errors import InvalidPayloadError
from ledger.events import Event
from ledger.identity import Identity
from ledger.instants import format_us
from ledger.live import LiveSegment
from ledger.record import (
    Header,
    Position,
    Record,
    encode_line,
    encode_payload,
    event_name,
)


class NewEvent(Struct, frozen=True, gc=False):
    """An event that is to be recorded.

    Attributes:
        subject: id of what it is about.
        payload: the event.
        previous_seq: seq of the subject's previous record, 0 for none.
    """

    subject: str
    payload: Event
    previous_seq: int = 0


class Batch(Struct, frozen=True, gc=False):
    """The events of one command: all or none survive.

    Attributes:
        workspace, actor: ids.
        events: one at least.
        session: id of the session, or empty.
        cause: id shared by the batches of one bulk command, or empty.
        undo: first seq of the batch that this one undoes, or 0.
        ik: keyed digest of the idempotency key (`Ledger.idempotency_digest`), or empty.
    """

    workspace: str
    actor: str
    events: list[NewEvent]
    session: str = ""
    cause: str = ""
    undo: int = 0
    ik: str = ""


class Group:
    """Batches that become durable with one sync. Nothing is written before `commit`."""

    def __init__(self, *, live: LiveSegment, identity: Identity, clock: Clock) -> None:
        """Begin after the end of the live segment."""
        self._live = live
        self._genesis = identity.genesis
        self._clock = clock
        self._first = live.end.seq + 1
        self._ends = [live.end]
        self._lines: list[list[bytes]] = []

    @property
    def end(self) -> Position:
        """The point after the last added batch."""
        return self._ends[-1]

    def add(self, batch: Batch) -> list[Record]:
        """Append a batch to the group; stamp, encode and chain its records.

        Returns:
            The records as every reader will see them once the group is committed.

        Raises:
            InvalidPayloadError: JSON cannot hold a payload unchanged, or there is no event.
            RecordTooLargeError: a record would pass RECORD_BYTES_MAX. The group is as before.
        """
        if not batch.events:
            raise InvalidPayloadError("a batch has one event at least")
        start = self.end
        now_us = self._clock.now_us()
        t = format_us(now_us)
        first, count = start.seq + 1, len(batch.events)
        prev, offset = start.digest or self._genesis, start.offset
        back = now_us < start.t_us
        lines: list[bytes] = []
        records: list[Record] = []
        for seq, event in enumerate(batch.events, first):
            body, commitment, payload = encode_payload(event.payload)
            name, version = event_name(payload)
            header = Header(
                seq=seq,
                g=0 if seq == self._first else self._first,
                b=0 if seq == first else first,
                n=count,
                t=t,
                type=name,
                v=version,
                ws=batch.workspace,
                sub=event.subject,
                sp=event.previous_seq,
                act=batch.actor,
                ses=batch.session,
                cause=batch.cause,
                undo=batch.undo,
                ik=batch.ik,
                back=back,
                pc=commitment,
                prev=prev,
            )
            line, prev = encode_line(header, body)
            offset += len(line)
            lines.append(line)
            records.append(Record(header, payload, prev, start.segment, offset))
            back = False
        self._lines.append(lines)
        self._ends.append(Position(first + count - 1, prev, start.segment, offset, now_us))
        return records

    def __bool__(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self._lines)

    def withdraw(self) -> None:
        """Drop the batch that was added last."""
        self._lines.pop()
        self._ends.pop()

    def commit(self) -> Position:
        """Write the group, sync it, and return the point after it. An empty group writes nothing.

        Raises:
            LedgerWriteError: it could not be made durable; see its `outcome`. The group is spent.
        """
        if not self._lines:
            return self.end
        data = b"".join([line for lines in self._lines for line in lines])
        end = self.end
        self._lines.clear()
        return self._live.append(data, end)


class Writer:
    """The right to append, while the lock is held.

    `catch_up` comes first; groups follow one after the other.
    """

    def __init__(self, *, live: LiveSegment, identity: Identity, clock: Clock) -> None:
        """Stand on the live segment."""
        self._live = live
        self._identity = identity
        self._clock = clock
        self._open = True

    @property
    def end(self) -> Position:
        """The point after the last record, once caught up."""
        return self._live.end

    def catch_up(self, known: Position | None) -> Iterable[Record]:
        """Return the records after `known` (None = all) after making sure of them.

        Every one of them must be taken before anything is appended. Nothing new costs one `stat`.

        Raises:
            LedgerDamagedError: bytes are damaged; nothing was changed.
            LedgerBehindError: the ledger does not hold `known`; nothing was changed.
            LedgerReadOnlyError: the ledger cannot be written at present.
            LedgerWriteError: an unfinished tail could not be settled ("not_written").
            UnknownEventError: a record is of a type or version this program does not know.
        """
        assert self._open, "the lock has been given back"
        return self._live.catch_up(known)

    def secure(self, known: Position | None) -> Position:
        """Make sure of everything up to the end, as `catch_up` does, and return the end.

        Raises:
            LedgerError: as `catch_up`.
        """
        self.catch_up(known)
        return self.end

    def group(self) -> Group:
        """Return an empty group that begins at the end."""
        assert self._open, "the lock has been given back"
        return Group(live=self._live, identity=self._identity, clock=self._clock)

    def roll(self) -> Position:
        """Close the live segment and begin the next now, whatever its size and age.

        What is to be erased must not stand in the live segment, the one file that is written to.

        Returns:
            The point after the last record, in the new live segment; the old one if it holds no
            record, for then there is nothing to do.

        Raises:
            LedgerWriteError: it could not be done. No record is touched by that; catch up again
                before anything else.
        """
        assert self._open, "the lock has been given back"
        return self._live.roll()

    def expire(self) -> None:
        """Refuse all further use: the lock is about to be given back."""
        self._open = False
