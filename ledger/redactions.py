"""The list of redactions, kept beside the ledger: what has been erased, without a word of it.

A ledger that is put back from an older copy holds its erased texts again and does not know it. The
list, `<home>/redactions`, does. One envelope line (`redaction`) for each erased record, added and
synced before the record is erased, mode 0600, never cut. What stands after the last whole line was
never acknowledged and counts for nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from ledger.envelope import EnvelopeError, open_line, seal_line
from ledger.errors import LedgerWriteError
from ledger.events import MemoryRedacted
from ledger.lock import FileLock
from ledger.osfile import OsFiles, read_file, write_reason
from ledger.record import NEVER_ERASED, Position, Record
from ledger.store import Ledger

FILE_NAME = "redactions"
_NAME = b"redaction"


class ErasedRecord(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A record that a redaction has erased, or is about to.

    Attributes:
        ledger: id of the ledger.
        redaction: id of the redaction.
        seq: the record's position.
        digest: its digest.
    """

    ledger: str
    redaction: str
    seq: int
    digest: str

    @property
    def key(self) -> tuple[int, str]:
        """What tells it from every other record of its ledger."""
        return self.seq, self.digest


class RedactionList:
    """The list of one home; many processes may add to it."""

    def __init__(
        self, home: Path, *, files: OsFiles | None = None, lock_timeout_s: float = 30.0
    ) -> None:
        """Use the file in the directory `home`, which need not exist yet."""
        self.path = home / FILE_NAME
        self._files = files or OsFiles()
        self._timeout_s = lock_timeout_s

    def entries(self) -> list[ErasedRecord]:
        """Return what the list says, in the order in which it was added, damaged lines left out.

        Raises:
            OSError: the system refuses to read it.
        """
        return [entry for entry in self._lines() if entry is not None]

    def damaged(self) -> int:
        """Return how many whole lines are not what was written.

        Raises:
            OSError: as `entries`.
        """
        return sum(entry is None for entry in self._lines())

    def add(self, entries: Iterable[ErasedRecord]) -> int:
        """Add and sync what the list does not say yet; return how many that was.

        Raises:
            LedgerWriteError: it could not be made durable; erase nothing then.
            LedgerReadOnlyError: the file can be neither opened nor created.
            LockTimeoutError: another process was adding and did not finish.
        """
        wanted = list(entries)
        if not wanted:
            return 0
        with self._locked():
            try:
                return self._add(wanted)
            except OSError as error:
                raise LedgerWriteError(outcome="not_written", reason=write_reason(error)) from error

    def _add(self, entries: Iterable[ErasedRecord]) -> int:
        data = read_file(self.path)
        known = set(self.entries())
        new = [entry for entry in dict.fromkeys(entries) if entry not in known]
        if not new:
            return 0
        whole = data.rfind(b"\n") + 1
        fd = self._files.open_write(self.path)
        try:
            if whole < len(data):
                self._files.truncate(fd, whole)
            self._files.write_all(fd, b"".join(seal_line(_NAME, entry) for entry in new), whole)
            self._files.sync(fd)
        finally:
            self._files.close(fd)
        # The lock has created the file; its name must last too.
        self._files.sync_names(self.path.parent)
        return len(new)

    def _lines(self) -> Iterator[ErasedRecord | None]:
        """Yield each whole line's entry, None for one that is damaged."""
        try:
            data = read_file(self.path)
        except FileNotFoundError:
            return
        for line in data.split(b"\n")[:-1]:
            try:
                yield open_line(_NAME, line + b"\n", ErasedRecord)
            except EnvelopeError:
                yield None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        lock = FileLock(self.path, self._files)
        try:
            lock.acquire(self._timeout_s)
            try:
                yield
            finally:
                lock.release()
        finally:
            lock.close()


class Outstanding(Struct, frozen=True, kw_only=True):
    """A record that stands in a ledger although the list says that it was erased.

    Attributes:
        redaction: id of the redaction.
        record: the record, payload included.
    """

    redaction: str
    record: Record


def outstanding(ledger: Ledger, entries: Iterable[ErasedRecord]) -> list[Outstanding]:
    """Return the listed records that stand in `ledger` with their payload and are named by none.

    That is so after an older copy was put back. What a `memory_redacted` of the ledger names is
    not in it: that redaction is resumed like any other. Entries of other ledgers and of other
    histories of this one (another digest) are passed over.

    Raises:
        LedgerDamagedError: a segment that must be read is damaged.
    """
    mine = {each.key: each for each in entries if each.ledger == ledger.id}
    standing = standing_of(ledger, mine)
    if standing:
        for named in named_in(ledger.read(Position.start), ledger.id):
            standing.pop(named.key, None)
    return [
        Outstanding(redaction=mine[key].redaction, record=standing[key]) for key in sorted(standing)
    ]


def named_in(records: Iterable[Record], ledger: str) -> Iterator[ErasedRecord]:
    """Yield what the redactions among some records of a ledger name."""
    for record in records:
        if isinstance(record.payload, MemoryRedacted):
            for target in record.payload.targets:
                yield ErasedRecord(
                    ledger=ledger,
                    redaction=record.payload.redaction,
                    seq=target.seq,
                    digest=target.digest,
                )


def standing_of(
    ledger: Ledger, wanted: Collection[tuple[int, str]]
) -> dict[tuple[int, str], Record]:
    """Return those of some records, by seq and digest, whose payload stands and may be erased.

    Raises:
        LedgerDamagedError: a segment that must be read is damaged.
    """
    found = ledger.records_at({seq for seq, _ in wanted})
    return {
        (seq, digest): record
        for seq, digest in wanted
        if (record := found.get(seq)) is not None
        and record.digest == digest
        and record.payload is not None
        and record.header.type not in NEVER_ERASED
    }
