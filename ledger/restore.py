"""The restore: a copy of a ledger is put back into a home, and what was erased stays erased.

It is prepared in a folder beside the ledger: copied from a source that is only read, verified,
and rid of every text that a redaction has taken away since the copy was made. Then it takes the
ledger's name in one step; what had that name is kept aside.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from msgspec import Struct

from ledger.backups import LedgerCopy, Progress
from ledger.clock import Clock
from ledger.errors import (
    BackupDamagedError,
    BackupRefusedError,
    LedgerDamagedError,
    LedgerError,
    LedgerNotFoundError,
    LedgerWriteError,
    LockTimeoutError,
)
from ledger.events import MemoryRedacted, RedactedRecord
from ledger.ids import IdSource
from ledger.instants import stamp
from ledger.layout import PREPARED, REPLACED, Layout
from ledger.lock import FileLock
from ledger.osfile import OsFiles, write_reason
from ledger.reader import LogReader
from ledger.record import Position, Record
from ledger.redact import Redactor
from ledger.redactions import (
    ErasedRecord,
    Outstanding,
    RedactionList,
    named_in,
    outstanding,
    standing_of,
)
from ledger.store import Ledger, LedgerOptions, read_identity
from ledger.verify import VerifyReport, verify
from ledger.writer import Batch, NewEvent

LEDGER = "ledger"
"""Name of a ledger's folder in its home."""

_PREPARED = f"{LEDGER}{PREPARED}"
_REPLACED = f"{LEDGER}{REPLACED}"
_LOCK = "RESTORE"


class RestoreReport(Struct, frozen=True, kw_only=True):
    """What was put back.

    Attributes:
        path: the ledger's folder.
        ledger: its id.
        events: how many records it holds now.
        last: the point after the last of them.
        copied: the point up to which they come from the copy; what follows says what was erased.
        erased: how many payloads of the copy were erased, because a redaction had taken them away.
        redacted: how many records have no payload in all.
        replaced: where the ledger is that was there before; None if there was none.
    """

    path: Path
    ledger: str
    events: int
    last: Position
    copied: Position
    erased: int
    redacted: int
    replaced: Path | None


class Aside(Struct, frozen=True, kw_only=True):
    """What was done about what restores had left in a home.

    Attributes:
        erased: names of the ledgers put aside that held something of what had to go.
        unread: names of those that are damaged, so that nobody can say what they hold.
    """

    erased: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


class Restoration:
    """A copy that is ready to take the ledger's place, as a context manager.

    What was prepared and not put in place is removed at the end of the block.

    Attributes:
        ledger: the prepared ledger, open in the folder where it was prepared.
    """

    def __init__(
        self,
        source: Path,
        home: Path,
        *,
        replace: bool,
        clock: Clock,
        ids: IdSource,
        files: OsFiles | None = None,
        options: LedgerOptions | None = None,
        lock_timeout_s: float = 30.0,
        progress: Progress = lambda _phase, _done, _total: None,
    ) -> None:
        """Take what is needed; the work begins with the block.

        Args:
            source: a ledger's folder, or the home of one. It is only read.
            home: where the ledger is to be `<home>/ledger`; made if it is missing.
            replace: whether a ledger that is there may be put aside.
            clock: dates the records that say what was erased.
            ids: mints their salts.
            files: the system's file calls; the real ones unless given.
            options: how the ledger is kept.
            lock_timeout_s: how long to wait, in seconds, for each lock.
            progress: told of each segment.
        """
        self._source = Layout(source if (source / "FORMAT").exists() else _inner(source))
        self._home = home.absolute()
        self._present = Layout(self._home / LEDGER)
        self._may_replace = replace
        self._clock = clock
        self._ids = ids
        self._files = files or OsFiles()
        self._options = options
        self._timeout_s = lock_timeout_s
        self._progress = progress
        self._erased = 0
        self._undo = ExitStack()

    def __enter__(self) -> Self:
        """Copy, verify and redact; nothing of the home is changed but its list of redactions.

        Raises:
            LedgerNotFoundError: the source holds no ledger.
            BackupDamagedError: the source is damaged, or ends in bytes that no append finished.
            BackupRefusedError: the home has a ledger and `replace` is not given.
            LedgerError: the source cannot be read, or the home not written.
            LockTimeoutError: another restore is at work in this home.
        """
        with self._undo:
            try:
                self._prepare()
            except OSError as error:
                raise LedgerWriteError(outcome="not_written", reason=write_reason(error)) from error
            self._undo = self._undo.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove what is still there of what was prepared."""
        self._undo.close()

    def put_in_place(self) -> RestoreReport:
        """Give the prepared ledger its name.

        Raises:
            BackupDamagedError: it is not what it should be.
            LockTimeoutError: a writer kept the lock of the ledger that is there.
            LedgerWriteError: the disk refuses. The ledger in place is the old one or the new one.
        """
        prepared = self.ledger.layout.root
        self.ledger.close()
        report = self._verified(prepared, self._copied)
        try:
            replaced = self._swap(prepared)
        except OSError as error:
            raise LedgerWriteError(outcome="not_written", reason=write_reason(error)) from error
        return RestoreReport(
            path=self._present.root,
            ledger=self.ledger.id,
            events=report.events,
            last=report.last,
            copied=self._copied,
            erased=self._erased,
            redacted=report.redacted,
            replaced=replaced,
        )

    # ------------------------------------------------------------------ preparing

    def _prepare(self) -> None:
        if _is_there(self._present.root) and not self._may_replace:
            raise BackupRefusedError(self._home, reason="ledger_exists")
        report = self._verified(self._source.root, None)
        identity = read_identity(self._source)
        assert identity is not None, "it has been verified"
        self._files.ensure_directory(self._home)
        self._lock_home()
        self._copied = report.last
        prepared = self._home / f"{_PREPARED}{self._ids.new_id()}"
        self._undo.callback(shutil.rmtree, prepared, ignore_errors=True)
        copy = LedgerCopy(self._source, identity, prepared, files=self._files)
        copy.take_notes()
        copy.take(report.last, self._progress)
        self.ledger = Ledger.open_existing(
            prepared, clock=self._clock, ids=self._ids, files=self._files, options=self._options
        )
        self._undo.callback(self.ledger.close)
        self._redact()

    def _lock_home(self) -> None:
        """Be the only restore in this home, and remove what one left that was cut short."""
        lock = FileLock(self._home / _LOCK, self._files)
        self._undo.callback(lock.close)
        lock.acquire(self._timeout_s)
        self._undo.callback(lock.release)
        for path in self._home.glob(f"{_PREPARED}*"):
            shutil.rmtree(path)

    def _verified(self, root: Path, known: Position | None) -> VerifyReport:
        self._progress("verify", 0, 1)
        report = verify(root, known)
        self._progress("verify", 1, 1)
        # An unfinished end counts too: it may be a record that was acknowledged and went bad since.
        if not report.ok:
            raise BackupDamagedError(root, report.problems)
        return report

    # ------------------------------------------------------------------ what was erased since

    def _redact(self) -> None:
        kept = RedactionList(self._home, files=self._files, lock_timeout_s=self._timeout_s)
        kept.add(self._known_to_the_present())
        self._erased = _erase_listed(self.ledger, kept, self._timeout_s)

    def _known_to_the_present(self) -> Iterable[ErasedRecord]:
        """Yield what the ledger that is there knows of redactions, as far as it can be read."""
        with suppress(LedgerError):
            identity = read_identity(self._present)
            if identity is None or identity.ledger != self.ledger.id:
                return
            reader = LogReader(self._present, identity)
            records = reader.read_tolerant(Position.start, _never_mind)
            yield from named_in(records, identity.ledger)

    # ------------------------------------------------------------------ taking the place

    def _swap(self, prepared: Path) -> Path | None:
        present = self._present.root
        if not _is_there(present):
            self._files.rename_file(prepared, present)
            return None
        aside = self._home / f"{_REPLACED}{stamp(self._clock.now_us())}"
        if aside.exists():
            aside = aside.with_name(f"{aside.name}-{self._ids.new_id()}")
        with ExitStack() as held:
            # First the sealer's, as whoever seals or redacts does.
            for path in (self._present.seal_lock, self._present.lock):
                if path.exists():
                    lock = FileLock(path, self._files)
                    held.callback(lock.close)
                    lock.acquire(self._timeout_s)
                    held.callback(lock.release)
            folder = self._files.open_directory(self._home)
            held.callback(self._files.close, folder)
            self._change_places(prepared, present, aside)
            self._files.sync_directory(folder)
        return aside

    def _change_places(self, prepared: Path, present: Path, aside: Path) -> None:
        """Give the prepared ledger the name of the present one, and that one a name aside."""
        # The prepared one takes the name that nothing ever removes, then the two change names: so
        # at no moment is there no ledger, and whatever dies here loses none.
        self._files.rename(prepared, aside)
        try:
            self._files.exchange(aside, present)
        except OSError as error:
            self._files.rename(aside, prepared)
            if error.errno not in {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP}:
                raise
        else:
            return
        # A file system that cannot exchange: for a moment there is no ledger.
        self._files.rename(present, aside)
        try:
            self._files.rename(prepared, present)
        except OSError:
            self._files.rename(aside, present)
            raise


def erase_aside(ledger: Ledger, kept: RedactionList, *, lock_timeout_s: float) -> Aside:
    """Take what a home's list of redactions names out of what restores have left in that home.

    A ledger that was put aside is one for reading and putting back, so it is treated as a copy
    that is put back is: it comes to name what it has lost, and verifies. Folders that a killed
    restore left are removed.

    Args:
        ledger: the one in use, `<home>/ledger`.
        kept: the list; entries of other ledgers concern none of these folders.
        lock_timeout_s: how long to wait, in seconds, for each lock.

    Raises:
        LockTimeoutError: a restore is at work in this home, or somebody uses what was put aside.
        LedgerError: the system refuses.
    """
    home = ledger.layout.root.parent
    left = [*home.glob(f"{_PREPARED}*"), *sorted(home.glob(f"{_REPLACED}*"))]
    if not left:
        return Aside()
    erased, unread = [], []
    lock = FileLock(home / _LOCK, ledger.files)
    with ExitStack() as held:
        held.callback(lock.close)
        lock.acquire(lock_timeout_s)
        held.callback(lock.release)
        for path in left:
            try:
                if path.name.startswith(_PREPARED):
                    shutil.rmtree(path)
                elif _erase_one_aside(path, ledger, kept, lock_timeout_s):
                    erased.append(path.name)
            except (LedgerDamagedError, LedgerNotFoundError):
                unread.append(path.name)
            except OSError as error:
                raise LedgerWriteError(outcome="not_written", reason=write_reason(error)) from error
    return Aside(erased=tuple(erased), unread=tuple(unread))


def remove_prepared(ledger: Ledger) -> list[str]:
    """Remove what restores of this home prepared and left when they were cut short.

    It is a copy of a backup, perhaps from before something was erased. A restore that is at work is
    left alone.

    Args:
        ledger: the one in use, `<home>/ledger`.

    Returns:
        The names of the folders that are removed.

    Raises:
        LedgerError: the system refuses.
    """
    home = ledger.layout.root.parent
    if not any(home.glob(f"{_PREPARED}*")):
        return []
    lock = FileLock(home / _LOCK, ledger.files)
    with ExitStack() as held:
        held.callback(lock.close)
        try:
            lock.acquire(0)
        except LockTimeoutError:
            return []
        held.callback(lock.release)
        removed = []
        try:
            for path in sorted(home.glob(f"{_PREPARED}*")):
                shutil.rmtree(path)
                removed.append(path.name)
        except OSError as error:
            raise LedgerWriteError(outcome="not_written", reason=write_reason(error)) from error
    return removed


def _erase_one_aside(path: Path, ledger: Ledger, kept: RedactionList, timeout_s: float) -> bool:
    """Erase what is listed in one ledger that was put aside; say whether it held any of it."""
    aside = Ledger.open_existing(
        path, clock=ledger.clock, ids=ledger.ids, files=ledger.files, options=ledger.options
    )
    try:
        if not any(entry.ledger == aside.id for entry in kept.entries()):
            return False
        return _erase_listed(aside, kept, timeout_s) > 0
    finally:
        aside.close()


def _inner(source: Path) -> Path:
    """Return the ledger's folder of a home.

    Raises:
        LedgerNotFoundError: it has none.
    """
    if not (source / LEDGER / "FORMAT").exists():
        raise LedgerNotFoundError(source)
    return source / LEDGER


def _is_there(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


def _never_mind(_: LedgerDamagedError) -> None:
    """Go on behind damage."""


def _subject(each: Outstanding) -> tuple[str, str, str]:
    return each.redaction, each.record.header.ws, each.record.header.sub


def _erase_listed(ledger: Ledger, kept: RedactionList, timeout_s: float) -> int:
    """Name what the list says was erased and stands, and erase it; return how much that was."""
    back = outstanding(ledger, kept.entries())
    if back:
        _name(ledger, back, timeout_s)
    named = {each.key for each in named_in(ledger.read(Position.start), ledger.id)}
    standing = dict(standing_of(ledger, named).keys())
    redactor = Redactor(ledger, lock_timeout_s=timeout_s)
    try:
        redactor.rewrite(standing)
    finally:
        redactor.close()
    return len(standing)


def _name(ledger: Ledger, back: list[Outstanding], timeout_s: float) -> None:
    """Append that these records are erased, one event a subject and redaction.

    The actor is the erased record's own, which this ledger surely knows; the cause is the
    redaction, which shows that it was carried over.
    """
    with ledger.lock(timeout_s) as writer:
        previous: dict[str, int] = {}
        for record in writer.catch_up(None):
            previous[record.header.sub] = record.seq
        named: dict[tuple[str, str, str], list[Record]] = {}
        for each in back:
            named.setdefault(_subject(each), []).append(each.record)
        group = writer.group()
        for (redaction, workspace, subject), records in named.items():
            event = MemoryRedacted(
                salt=ledger.ids.new_salt(),
                redaction=redaction,
                targets=tuple(RedactedRecord(seq=each.seq, digest=each.digest) for each in records),
            )
            group.add(
                Batch(
                    workspace,
                    records[0].header.act,
                    [NewEvent(subject, event, previous[subject])],
                    cause=redaction,
                )
            )
            previous[subject] = group.end.seq
        group.commit()
