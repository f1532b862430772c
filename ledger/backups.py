"""The backup: a folder that opens alone as a ledger and holds all that had been acknowledged.

The end is taken under the ledger's lock; everything up to it is then copied while others go on
appending, sealing and redacting. The copy is made under another name, checked byte by byte, and
gets its own name last, so that what was cut short is not mistaken for a backup.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ledger.errors import (
    BackupDamagedError,
    BackupRefusedError,
    LedgerReadOnlyError,
    LedgerWriteError,
)
from ledger.identity import Identity, encode_identity
from ledger.layout import PREPARED, Layout
from ledger.manifest import SealedSegment, encode_manifest, new_manifest
from ledger.notes import parse_notes
from ledger.osfile import OsFiles, read_file, write_reason
from ledger.reader import LogReader
from ledger.record import Position
from ledger.segment import SEQ_MAX, walk_to_end
from ledger.source import Source, ends_segment, load, missing_segment, open_segment
from ledger.store import Ledger
from ledger.verify import VerifyReport, verify

Progress = Callable[[str, int, int], None]
"""Takes a phase, and how many of how many things are done."""


class BackupReport(Struct, frozen=True, kw_only=True):
    """What a backup holds.

    Attributes:
        path: the folder.
        ledger: id of the ledger.
        events: how many records it holds.
        redacted: how many of them have no payload any more.
        segments: in how many files.
        size: bytes of all its files.
        last: the point after its last record.
    """

    path: Path
    ledger: str
    events: int
    redacted: int
    segments: int
    size: int
    last: Position


def backup(
    ledger: Ledger,
    target: Path,
    progress: Progress = lambda _phase, _done, _total: None,
    *,
    lock_timeout_s: float = 30.0,
) -> BackupReport:
    """Copy a ledger to a new folder, and verify the copy.

    A ledger that cannot be written is copied up to its last whole batch.

    Args:
        ledger: may be in use by any number of processes.
        target: must not exist; its folder is made if it is missing.
        progress: told of each segment.
        lock_timeout_s: how long to wait, in seconds, for the ledger's lock.

    Raises:
        BackupRefusedError: the target exists, or lies inside the ledger.
        BackupDamagedError: the copy does not verify, so the ledger is damaged.
        LedgerDamagedError: the ledger is damaged where it was to be copied.
        LedgerWriteError: the target cannot be written.
        LockTimeoutError: a writer kept the ledger's lock.
    """
    target = target.absolute()
    if target.exists() or target.is_symlink():
        raise BackupRefusedError(target, reason="target_exists")
    if ledger.layout.root.resolve() in target.resolve().parents:
        raise BackupRefusedError(target, reason="inside_ledger")
    partial = target.with_name(f"{target.name}{PREPARED}{ledger.ids.new_id()}")
    files = ledger.files
    try:
        report = _copy_consistently(ledger, partial, progress, lock_timeout_s)
        files.rename_file(partial, target)
    except (Exception, KeyboardInterrupt) as error:
        shutil.rmtree(partial, ignore_errors=True)
        if isinstance(error, OSError):
            raise LedgerWriteError(outcome="not_written", reason=write_reason(error)) from error
        raise
    sizes = [path.stat().st_size for path in target.rglob("*") if path.is_file()]
    return BackupReport(
        path=target,
        ledger=ledger.id,
        events=report.events,
        redacted=report.redacted,
        segments=report.segments,
        size=sum(sizes),
        last=report.last,
    )


def _copy_consistently(
    ledger: Ledger, partial: Path, progress: Progress, lock_timeout_s: float
) -> VerifyReport:
    copy = LedgerCopy(ledger.layout, ledger.identity, partial, files=ledger.files)
    before: Position | None = None
    while True:
        # Before the end is taken, so that no checkpoint lies beyond it.
        copy.take_notes()
        end = _durable_end(ledger, lock_timeout_s)
        copy.take(end, progress)
        progress("verify", 0, 1)
        report = verify(partial, end)
        progress("verify", 1, 1)
        if report.ok:
            return report
        if {problem.kind for problem in report.problems} != {"payload_missing"} or end == before:
            raise BackupDamagedError(ledger.layout.root, report.problems)
        # A payload went meanwhile, and what names it comes after the end: so take what follows.
        before = end


def _durable_end(ledger: Ledger, lock_timeout_s: float) -> Position:
    try:
        with ledger.lock(lock_timeout_s) as writer:
            return writer.secure(None)
    except LedgerReadOnlyError:
        # What was acknowledged is all there; whole batches of others may be as well.
        return ledger.position_at()


class LedgerCopy:
    """A folder that becomes a copy of a ledger up to a position.

    Each segment but the last is copied as it is. The one that holds the end is written raw up to
    there, whatever it is in the original: it is the live one of the copy. FORMAT comes last, so
    that a folder with FORMAT is whole.
    """

    def __init__(
        self, original: Layout, identity: Identity, folder: Path, *, files: OsFiles
    ) -> None:
        """Copy the ledger at `original` to `folder`, which is made when something is taken."""
        self._original = original
        self._identity = identity
        self._reader = LogReader(original, identity)
        self._layout = Layout(folder)
        self._files = files
        self._whole: set[str] = set()

    def take_notes(self) -> None:
        """Copy the signed checkpoints, if there are any, without a last one that is not whole.

        Raises:
            OSError: they cannot be read or written.
        """
        with suppress(FileNotFoundError):
            notes = read_file(self._original.checkpoints)
            torn = parse_notes(notes).torn
            if torn is not None:
                notes = notes[: torn.offset]
            self._make_folders()
            self._files.write_file(self._layout.checkpoints, notes)

    def take(self, end: Position, progress: Progress) -> None:
        """Copy everything up to a position; what an earlier call has copied is not copied again.

        Raises:
            LedgerDamagedError: a file that must be copied is missing, or the last one is damaged.
            OSError: a file cannot be read or written.
        """
        self._make_folders()
        entries = None
        missed: set[str] = set()
        while entries is None:
            try:
                entries = self._take_segments(end, progress)
            except FileNotFoundError as error:
                # Sealed or rewritten since it was listed, and then another file is in force.
                name = str(error.filename)
                if name in missed:
                    raise missing_segment(end.seq) from error
                missed.add(name)
                self._reader.forget()
        manifest = replace(new_manifest(self._identity.ledger), segments=tuple(entries))
        self._files.replace_file(self._layout.manifest, encode_manifest(manifest))
        self._files.sync_names(self._layout.log)
        self._files.replace_file(self._layout.format, encode_identity(self._identity))

    def _take_segments(self, end: Position, progress: Progress) -> list[SealedSegment]:
        sources = [each for each in self._reader.sources() if each.first <= end.seq + 1]
        if not sources:
            raise missing_segment(1)
        *earlier, last = sources
        for done, source in enumerate(earlier):
            progress("copy", done, len(sources))
            self._take_whole(source)
        self._take_until(last, end)
        progress("copy", len(sources), len(sources))
        names = {source.path.name for source in earlier} | {self._layout.raw(last.first).name}
        for path in self._layout.log.iterdir():
            # Of an earlier call, and replaced in the original since.
            if path.name not in names:
                self._files.unlink(path)
        return [source.entry for source in earlier if source.entry is not None]

    def _take_whole(self, source: Source) -> None:
        """Copy a file that never changes under its name."""
        name = source.path.name
        if name in self._whole:
            return
        data = read_file(source.path)
        self._files.write_file(self._layout.log / name, data)
        self._whole.add(name)

    def _take_until(self, source: Source, end: Position) -> None:
        raw = load(source)
        content, start = open_segment(source, raw, self._identity.ledger)
        size = start.offset
        if end.seq >= source.first:
            walked = walk_to_end(content, start, skip_to=SEQ_MAX, until=end.seq)
            if (walked.good.seq, walked.good.digest) != (end.seq, end.digest):
                ends_segment(source, content, start, walked)
                raise source.damaged(
                    seq=end.seq, offset=walked.good.offset, reason="order: the record is not there"
                )
            size = walked.good.offset
        path = self._layout.raw(source.first)
        self._files.write_file(path, raw[:size])
        self._whole.discard(path.name)

    def _make_folders(self) -> None:
        self._files.ensure_directory(self._layout.log)
