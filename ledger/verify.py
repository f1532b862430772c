"""Verification: a walk over every byte of a ledger, with a report. It changes nothing.

Kinds of problems (stable words):
    format, manifest          the file is not intact, or says what is not so
    segment_missing           records that no segment holds
    segment_header, segment_footer, sealed_file, unreadable
    framing, digest, header, commitment, payload, canonical, order, chain, batch, unknown_event
                              the rule a record breaks
    payload_missing           a payload is gone and no redaction names it, or it is of a type that
                              none may take away
    clock                     the flag for a clock that went back is wrong
    torn_tail                 bytes at the end that no append finished; the next writer keeps them
                              aside
    checkpoint                the ledger does not extend a position or a checkpoint: records are
                              missing at the end, or are others
    note                      a checkpoint that cannot be believed, or bytes that are none
    torn_note                 bytes at the end of the ledger's own checkpoints that no append
                              finished; the next one keeps them aside
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from ledger.accounting import RedactionAccount
from ledger.anchors import Anchor, Anchors, Evidence, weigh
from ledger.envelope import EnvelopeError, open_line
from ledger.errors import (
    LedgerDamagedError,
    LedgerError,
    LedgerNotFoundError,
    LedgerUnreadableError,
    LockTimeoutError,
    NoteError,
)
from ledger.events import MemoryRedacted
from ledger.identity import FORMAT_VERSION, HASH_NAME, Identity, genesis_of
from ledger.layout import Layout, parse_name
from ledger.lock import MARKED_MODE, FileLock
from ledger.merkle import HASH_BYTES
from ledger.note import VerifierKey
from ledger.notes import NoteFile, read_notes
from ledger.osfile import OsFiles, read_file
from ledger.reader import LogReader
from ledger.record import Position, Record
from ledger.salvage import Flaw, salvage
from ledger.segment import SEQ_MAX, SegmentHeader, WalkEnd, standstill, walk_to_end
from ledger.source import Source, load, load_prefix, open_segment
from ledger.store import read_identity
from ledger.tail import find_damage

_FIND_TRIES = 20
_PROGRESS_EVERY = 1_000
_RECORD_BYTES_GUESS = 1_000
"""Of the newest segment only the size is known beforehand."""

Progress = Callable[[int, int], None]
"""Called with how many records have been looked at, and about how many there are."""


class Problem(Struct, frozen=True, kw_only=True):
    """One thing that is not as it was written.

    Attributes:
        kind: a stable word, see the module's docstring.
        segment: file, relative to the ledger directory.
        seq: the record concerned, 0 where none applies.
        offset: bytes from the start of the segment's raw content.
        detail: what was found, for people.
    """

    kind: str
    segment: str
    seq: int
    offset: int
    detail: str


class VerifyReport(Struct, frozen=True, kw_only=True):
    """What a verification found.

    Attributes:
        ok: there is no problem.
        events: how many records are good.
        segments: how many segments were looked at.
        last: the point after the last good record.
        problems: what is wrong, in the order of the ledger.
        torn_bytes: how many unfinished bytes stand at the end.
        redacted: how many payloads are gone by a redaction.
        notes: what is worth knowing and no problem.
        signed: up to which record a checkpoint, its own or one that was given, would have shown
            a cut; 0 without any.
    """

    ok: bool
    events: int
    segments: int
    last: Position
    problems: list[Problem]
    torn_bytes: int
    notes: list[str]
    redacted: int = 0
    signed: int = 0


def verify(
    root: Path,
    *known: Position | None,
    against: Iterable[Path] = (),
    key: VerifierKey | None = None,
    lock_timeout_s: float = 5.0,
    progress: Progress | None = None,
) -> VerifyReport:
    """Check every byte of the ledger in the directory `root`; see the module's docstring.

    Args:
        root: the ledger's directory (`<home>/ledger`).
        known: positions that the ledger must hold, their `seq` and `digest` at least.
        against: files of checkpoints that the ledger must extend, beside its own.
        key: whose signature the checkpoints must have. Without one no signature is checked, which
            is a problem of those of `against`.
        progress: told about every thousand records.
        lock_timeout_s: how long to wait, in seconds, for a writer that may be at work on what
            looks like a torn tail.

    Raises:
        LedgerNotFoundError: there is no ledger.
        LedgerUnreadableError: its directories cannot be listed, or a file of checkpoints be read.
        LedgerFormatError: it is of a format this program does not speak.
        NoteError: a file of `against` is not there, or holds no checkpoint at all.
    """
    verifier = _Verifier(Layout(root), [each for each in known if each], lock_timeout_s)
    return verifier.run(against, key, progress or _no_progress)


class _Found(Struct, kw_only=True):
    """What a look at one segment gave."""

    problems: list[Problem]
    events: int
    last: Position
    last_t: str
    torn: int
    torn_at: int = 0
    erasures: list[Record]
    digests: bytearray


class _Verifier:
    """One verification: collects problems while it goes from segment to segment."""

    def __init__(self, layout: Layout, known: list[Position], lock_timeout_s: float) -> None:
        self._layout = layout
        self._known = known
        self._digests = {position.seq: "" for position in known}
        self._lock_timeout_s = lock_timeout_s
        self._problems: list[Problem] = []
        self._notes: list[str] = []
        self._events = 0
        self._total = 0
        self._segments = 0
        self._torn = 0
        self._last = Position.start
        self._last_t = ""
        self._account = RedactionAccount()
        self._lock = FileLock(layout.lock, OsFiles())
        self._lock_state = "untried"

    def run(
        self, against: Iterable[Path], key: VerifierKey | None, progress: Progress
    ) -> VerifyReport:
        identity = self._read_format()
        self._identity = identity
        self._reader = LogReader(self._layout, identity)
        self._progress = progress
        try:
            # Before the records, so that none of them can be newer than the walk's end.
            self._anchors = Anchors(self._read_anchors(against, key))
            self._walk_segments()
        finally:
            if self._lock_state == "held":
                self._lock.release()
            self._lock.close()
        self._account_for_redactions()
        self._check_known()
        self._check_anchors()
        self._look_around()
        return VerifyReport(
            ok=not self._problems,
            events=self._events,
            segments=self._segments,
            last=self._last,
            problems=self._problems,
            torn_bytes=self._torn,
            notes=self._notes,
            redacted=self._account.redacted,
            signed=self._anchors.signed,
        )

    # ------------------------------------------------------------------ what it is

    def _read_format(self) -> Identity:
        try:
            identity = read_identity(self._layout)
        except LedgerDamagedError as error:
            self._add_error(error)
            return self._guess_identity()
        if identity is None:
            if not self._file_names():
                raise LedgerNotFoundError(self._layout.root)
            self._add("format", "FORMAT", detail="the file is missing")
            return self._guess_identity()
        return identity

    def _guess_identity(self) -> Identity:
        """Return an identity to go on with, from the first segment that still tells its ledger."""
        ledger = ""
        for name in self._file_names():
            if name.endswith(".jsonl"):
                line = read_file(self._layout.log / name).partition(b"\n")[0] + b"\n"
                try:
                    ledger = open_line(b"segment", line, SegmentHeader).ledger
                    break
                except EnvelopeError:
                    continue
        return Identity(
            version=FORMAT_VERSION,
            ledger=ledger,
            hash=HASH_NAME,
            genesis=genesis_of(ledger),
            origin="",
            key="",
        )

    def _file_names(self) -> list[str]:
        try:
            return sorted(os.listdir(self._layout.log))  # noqa: PTH208 - names are enough
        except FileNotFoundError:
            return []
        except OSError as error:
            raise LedgerUnreadableError(self._layout.log, str(error)) from error

    # ------------------------------------------------------------------ the segments

    def _walk_segments(self) -> None:
        done = vanished = 0
        sources: list[Source] = []
        while True:
            if not sources:
                listed = self._reader.sources(self._add_error)
                self._total = self._total or _guess_total(listed)
                sources = [each for each in listed if each.first > done]
                if not sources:
                    break
            source = sources.pop(0)
            try:
                found = self._look(source)
            except FileNotFoundError:
                # Sealed or rewritten between two looks, or really gone.
                self._reader.forget()
                vanished += 1
                if vanished < _FIND_TRIES:
                    sources.clear()
                    continue
                self._add("segment_missing", source.name, seq=source.first, detail="file is gone")
            else:
                if found.torn and self._lock_state == "untried":
                    # Perhaps a writer at work: look again while no writer can be.
                    self._take_lock()
                    sources.clear()
                    continue
                self._accept(source, found)
            done, vanished = source.first, 0
        if not done:
            self._add("segment_missing", "log", seq=1, detail="there is no segment")

    def _look(self, source: Source) -> _Found:
        found = _Found(
            problems=[],
            events=0,
            last=self._last,
            last_t=self._last_t,
            torn=0,
            erasures=[],
            digests=bytearray(),
        )
        expected = self._last.seq + 1
        if source.first > expected:
            detail = f"records {expected} to {source.first - 1} are in no segment"
            found.problems.append(_problem("segment_missing", source, expected, 0, detail))
        try:
            data = load(source)
        except LedgerDamagedError as error:
            found.problems.append(_from_error(error))
            data = load_prefix(source)
        except LedgerUnreadableError as error:
            found.problems.append(_problem("unreadable", source, source.first, 0, error.reason))
            return found
        try:
            content, start = open_segment(source, data, self._identity.ledger)
        except LedgerDamagedError as error:
            found.problems.append(_from_error(error))
            length = data.find(b"\n") + 1
            content, start = data[length:], Position(source.first - 1, "", source.first, length)
        else:
            before = self._last.digest or self._identity.genesis
            if source.first == expected and start.digest != before:
                detail = "the segment does not point to the record before it"
                found.problems.append(_problem("chain", source, source.first, 0, detail))
        if source.newest and source.entry is None and start.digest:
            found.torn = _torn_bytes(content, start)
            content = content[: len(content) - found.torn]
            found.torn_at = start.offset + len(content)
        end = self._look_at_records(source, content, start, found)
        found.problems.extend(_look_at_end(source, content, start, end, clean=not found.problems))
        return found

    def _look_at_records(
        self, source: Source, content: bytes, start: Position, found: _Found
    ) -> WalkEnd:
        end = standstill(start)

        def steps() -> Iterator[Record | Flaw]:
            nonlocal end
            end = yield from salvage(content, start, whole=True, canonical=True)

        last: Record | None = None
        seq, t = self._last.seq, self._last_t
        for item in steps():
            if isinstance(item, Flaw):
                found.problems.append(
                    _problem(item.kind, source, item.seq, item.offset, item.detail)
                )
                continue
            header = item.header
            found.events += 1
            if item.payload is None or isinstance(item.payload, MemoryRedacted):
                found.erasures.append(item)
            if item.seq == seq + 1 and header.back != (header.t < t):
                detail = "the flag for a clock that went back is wrong"
                found.problems.append(_problem("clock", source, item.seq, item.end, detail))
            if item.seq == self._anchors.size + len(found.digests) // HASH_BYTES + 1:
                found.digests += bytes.fromhex(item.digest)
            if found.events % _PROGRESS_EVERY == 0:
                self._progress(self._events + found.events, self._total)
            if item.seq in self._digests:
                self._digests[item.seq] = item.digest
            seq, t, last = item.seq, header.t, item
        if last is not None:
            found.last, found.last_t = last.position, t
        return end

    def _accept(self, source: Source, found: _Found) -> None:
        self._segments += 1
        self._events += found.events
        self._last, self._last_t = found.last, found.last_t
        self._account.take(found.erasures, source.name, len(self._problems))
        self._anchors.take(found.digests)
        for problem in found.problems:
            self._add_problem(problem)
        if not found.torn:
            return
        if self._lock_state == "busy":
            self._notes.append(
                f"{source.name}: a writer is at work, its last bytes were not judged"
            )
            return
        self._torn = found.torn
        self._add(
            "torn_tail",
            source.name,
            seq=found.last.seq + 1,
            offset=found.torn_at,
            detail=f"{found.torn} bytes at the end that no append finished",
        )

    def _take_lock(self) -> None:
        self._lock_state = "refused"
        if not self._layout.lock.exists():
            return
        try:
            self._lock.acquire(self._lock_timeout_s)
            self._lock_state = "held"
        except LockTimeoutError:
            self._lock_state = "busy"
        except LedgerError:
            # It cannot be opened, so no writer can be at work either.
            self._lock_state = "refused"

    # ------------------------------------------------------------------ the rest

    def _account_for_redactions(self) -> None:
        # The redaction that names a record comes later, so this is known at the end only.
        for at, missing in reversed(self._account.unlawful()):
            problem = Problem(
                kind="payload_missing",
                segment=missing.segment,
                seq=missing.seq,
                offset=missing.offset,
                detail=missing.why,
            )
            self._problems.insert(at, problem)
        if self._account.unfinished:
            self._notes.append(
                f"redaction is not finished: {self._account.unfinished} payloads that were to be "
                "erased stand still"
            )

    def _check_known(self) -> None:
        for known in self._known:
            found, end = self._digests[known.seq], self._last.seq
            if known.seq == 0 or known.digest == found:
                continue
            if found:
                detail = f"record {known.seq} is not the one that was seen"
            elif known.seq > end:
                is_one = known.seq == end + 1
                missing = (
                    f"record {known.seq} is" if is_one else f"records {end + 1} to {known.seq} are"
                )
                detail = f"{missing} missing, and the last was seen before"
            else:
                detail = f"record {known.seq} was seen before and is not there"
            self._add("checkpoint", "log", seq=known.seq, detail=detail)

    # ------------------------------------------------------------------ checkpoints

    def _read_anchors(self, against: Iterable[Path], key: VerifierKey | None) -> Iterator[Anchor]:
        origin, own = self._identity.origin, self._own_notes()
        if own is not None:
            name = self._layout.checkpoints.name
            yield from self._weighed(weigh(name, own, origin, key, is_own=True))
        for path in against:
            found = read_notes(path)
            if found is None or not found.notes:
                why = "is not there" if found is None else "holds no checkpoint"
                raise NoteError(f"{path} {why}")
            yield from self._weighed(weigh(str(path), found, origin, key, is_own=False))

    def _own_notes(self) -> NoteFile | None:
        found = read_notes(self._layout.checkpoints)
        if found is not None and found.torn is not None:
            # Perhaps one is being made: look again while none can be.
            self._take_lock()
            found = read_notes(self._layout.checkpoints)
            if self._lock_state == "held":
                self._lock.release()
            self._lock_state = "untried"
        return found

    def _weighed(self, evidence: Evidence) -> list[Anchor]:
        for doubt in evidence.doubts:
            seq, offset, detail = doubt.size, doubt.offset, doubt.detail
            self._add(doubt.kind, evidence.source, seq=seq, offset=offset, detail=detail)
        self._notes.extend(evidence.remarks)
        return evidence.anchors

    def _check_anchors(self) -> None:
        end = self._last.seq
        for each in self._anchors.broken(end):
            self._add("checkpoint", each.source, seq=each.size, detail=each.detail)
        for size in self._anchors.uncompared(end):
            self._notes.append(
                f"a checkpoint of {size} records was not compared: some of them cannot be read"
            )

    def _look_around(self) -> None:
        names = self._file_names()
        for name in names:
            parsed = parse_name(name)
            if parsed is None:
                self._notes.append(f"log/{name}: not a segment; left by a crash or by hand")
            elif parsed.codec and self._layout.raw(parsed.first).name in names:
                self._notes.append(f"log/{name}: exists raw too; the next sealing tidies up")
        # A copy whose files are all 0444 bears no mark.
        lock = self._layout.lock
        if lock.exists() and lock.stat().st_mode & 0o777 == MARKED_MODE:
            self._notes.append(
                "LOCK: marked read-only after a failed write; the next writer cures it"
            )
        if self._layout.quarantine.is_dir():
            self._notes.extend(
                f"quarantine/{path.name}: {path.stat().st_size} torn bytes kept"
                for path in sorted(self._layout.quarantine.iterdir())
            )

    def _add(self, kind: str, segment: str, *, detail: str, seq: int = 0, offset: int = 0) -> None:
        self._add_problem(
            Problem(kind=kind, segment=segment, seq=seq, offset=offset, detail=detail)
        )

    def _add_error(self, error: LedgerDamagedError) -> None:
        self._add_problem(_from_error(error))

    def _add_problem(self, problem: Problem) -> None:
        # The manifest is read again at each segment; its damage is one problem.
        if problem not in self._problems:
            self._problems.append(problem)


def _guess_total(sources: list[Source]) -> int:
    """Return about how many records segments hold."""
    if not sources:
        return 0
    newest = sources[-1]
    total = newest.first - 1
    with suppress(OSError):
        total += newest.path.stat().st_size // _RECORD_BYTES_GUESS
    return total


def _no_progress(_done: int, _total: int) -> None:
    """Tell nobody."""


def _problem(kind: str, source: Source, seq: int, offset: int, detail: str) -> Problem:
    return Problem(kind=kind, segment=source.name, seq=seq, offset=offset, detail=detail)


def _from_error(error: LedgerDamagedError) -> Problem:
    kind, _, detail = error.reason.partition(": ")
    return Problem(
        kind=kind, segment=error.segment, seq=error.seq, offset=error.offset, detail=detail
    )


def _torn_bytes(content: bytes, start: Position) -> int:
    """Return how many bytes at the end of the live segment are a tear."""
    end = walk_to_end(content, start, skip_to=SEQ_MAX)
    rest = content[end.good.offset - start.offset :]
    if end.footer is not None or find_damage(rest, end.good) is not None:
        return 0
    return len(rest)


def _look_at_end(
    source: Source, content: bytes, start: Position, end: WalkEnd, *, clean: bool
) -> Iterator[Problem]:
    """Yield what is wrong behind a segment's last record."""
    good = end.good
    if end.footer is None:
        raw_live = source.newest and source.entry is None
        if end.error is None and not raw_live:
            yield _problem(
                "segment_footer", source, end.error_seq, good.offset, "the segment ends without one"
            )
        return
    if good.offset - start.offset + end.footer_bytes != len(content):
        yield _problem("framing", source, good.seq, good.offset, "bytes after the footer")
    entry = source.entry
    if entry is not None and clean:
        says = (entry.last, entry.prev, entry.digest, entry.count)
        if says != (good.seq, start.digest, good.digest, good.seq - source.first + 1):
            yield _problem("manifest", source, good.seq, 0, "its entry does not fit its content")
