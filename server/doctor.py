"""Examinations of a store from outside, one function a check; none of them changes anything.

They work where the store cannot be opened: each looks at files, and says what it found, how bad
that is and what to do.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from ledger import (
    Clock,
    Ledger,
    LedgerDamagedError,
    LedgerError,
    LedgerFormatError,
    OsFiles,
    Position,
    RandomIds,
    format_us,
    put_aside,
    verify,
)
from projections.activity import problem_of
from projections.copies import copies_from
from projections.holders import Holder, holders
from projections.inspection import GenerationsLook, look_at_generations
from projections.wording import counted
from server.findings import Examination, Finding, Level
from server.mounts import SHARED, FileSystemOf, file_system_of

FREE_BYTES_MIN: Final = 256 << 20
"""Free space below which a store is at risk: a rebuild needs room for a second generation."""

TEMP_BYTES_MIN: Final = 64 << 20
"""Free space of the temporary folder below which replays and read-only stores may fail."""

WAL_BYTES_WARN: Final = 64 << 20
"""Write-ahead log far beyond what the upkeep lets it be: some process keeps a read open."""

AHEAD_US_MAX: Final = 86_400_000_000
"""How far the last record may lie in the future before some clock must have been wrong."""

NAMED_MAX: Final = 5
"""Files that one finding names."""

ProjectionsOf = Callable[[Ledger], Path]
"""Returns where the projections of a ledger are."""


class _Looking(OsFiles):
    """The system's files for whoever only looks."""

    def tighten(self, path: Path) -> None:
        """Leave the folder as it is: what is wrong with it is to be found."""


def examine_home(
    home: Path | None,
    *,
    clock: Clock,
    projections_of: ProjectionsOf,
    full: bool = False,
    file_system: FileSystemOf = file_system_of,
    problems: Sequence[str] = (),
    warnings: Sequence[str] = (),
) -> Examination:
    """Run every check on a home.

    Args:
        home: the folder, absolute; None if the settings name none.
        clock: says what time it is.
        projections_of: says where the projections are.
        full: whether to read every byte of the ledger.
        file_system: tells the type of the file system of a folder.
        problems: what of the settings is not accepted, a sentence each.
        warnings: what looks like a setting and is none, a sentence each.

    """
    found = [*check_settings(problems, warnings)]
    if home is None:
        return Examination.of("", found, looked=False)
    looked, of_store = _guarded("home", lambda: _of_store(home, clock, projections_of, full=full))
    found += of_store
    if home.is_dir():
        for name, check in (
            ("file system", lambda: check_file_system(home, file_system)),
            ("permissions", lambda: check_permissions(home)),
            ("disk", lambda: check_disk(home)),
            ("copies", lambda: check_copies(home)),
        ):
            found += _guarded(name, check)[1]
    return Examination.of(str(home), found, looked=looked)


def _of_store(
    home: Path, clock: Clock, projections_of: ProjectionsOf, *, full: bool
) -> Iterator[Finding]:
    """Check what is inside; stops where the ledger cannot be looked at.

    Raises:
        _NoLookError: it cannot.

    """
    with closing(open_to_look(home, clock)) as ledger:
        now_us = clock.now_us()
        end, of_ledger = look_at_ledger(ledger)
        yield from of_ledger
        projections = projections_of(ledger)
        look = look_at_generations(projections)
        yield from check_mark(ledger.layout.lock)
        yield from check_writing(ledger)
        if full:
            yield from check_every_byte(ledger, look.checkpoint)
        yield from check_clock(ledger, end, now_us)
        yield from check_holders(home, look)
        yield from check_unfinished(ledger, look)
        yield from check_quarantine(ledger.layout.quarantine, now_us)
        yield from check_projections(look, ledger, end)
        yield from check_activity(projections.parent / "activity.db")


class _NoLookError(Exception):
    """The ledger cannot be looked at."""

    def __init__(self, finding: Finding, *, looked: bool = False) -> None:
        super().__init__(finding.text)
        self.finding = finding
        self.looked = looked


def _guarded(name: str, check: Callable[[], Iterable[Finding]]) -> tuple[bool, list[Finding]]:
    """Return whether a check came to its end, and what it found until then."""
    found: list[Finding] = []
    try:
        found.extend(iter(check()))  # kept up to where it fails
    except _NoLookError as error:
        return error.looked, [*found, error.finding]
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        text = f"{place}{error.strerror or error}"
        return False, [*found, Finding.error(name, text, "run doctor as the owner of the store")]
    return True, found


# ---------------------------------------------------------------------------- settings and home


def check_settings(problems: Sequence[str], warnings: Sequence[str]) -> Iterator[Finding]:
    """Say what is wrong with the settings."""
    if not problems:
        yield Finding.ok("settings", "accepted")
    for problem in problems:
        yield Finding.error(
            "settings", problem, "correct it; `mnemolog config show` lists all settings"
        )
    for warning in warnings:
        yield Finding.warning("settings", warning, "correct or remove the variable")


def open_to_look(home: Path, clock: Clock) -> Ledger:
    """Open a ledger without touching anything.

    Raises:
        _NoLookError: it cannot be opened; the finding says why.

    """
    if not home.exists():
        text = f"there is no store: {home} is not there"
        remedy = "`mnemolog add` begins one; --home or MNEMOLOG_HOME names another"
        raise _NoLookError(Finding.error("home", text, remedy))
    if not home.is_dir():
        text = f"there is no store: {home} is no folder"
        raise _NoLookError(Finding.error("home", text, "--home or MNEMOLOG_HOME names the folder"))
    try:
        root = home / "ledger"
        has_records = any((root / "log").glob("*.jsonl*"))
        if not root.exists() and (aside := put_aside(root)):
            text = f"there is no ledger, but a restore that was cut short has put {aside[-1]} aside"
            remedy = f"repeat the restore, or give that folder the name {root.name}"
            raise _NoLookError(Finding.error("home", text, remedy))
        if not (root / "FORMAT").exists() and not has_records:
            text = f"there is no store in {home}"
            remedy = "`mnemolog add` begins one; --home or MNEMOLOG_HOME names another"
            raise _NoLookError(Finding.error("home", text, remedy))
        if not (root / "FORMAT").exists():
            text = "FORMAT is missing, yet there are records"
            raise _NoLookError(Finding.error("format", text, _FROM_BACKUP), looked=True)
        return Ledger.open_existing(root, clock=clock, ids=RandomIds(), files=_Looking())
    except LedgerFormatError as error:
        remedy = "upgrade mnemolog, or use the program that wrote it"
        raise _NoLookError(Finding.error("format", str(error), remedy)) from error
    except LedgerDamagedError as error:
        raise _NoLookError(
            Finding.error("format", str(error), _FROM_BACKUP), looked=True
        ) from error
    except LedgerError as error:
        remedy = "run doctor as the owner of the store"
        raise _NoLookError(Finding.error("format", str(error), remedy)) from error


_FROM_BACKUP: Final = "put the file back from a backup; the records are untouched"


# ---------------------------------------------------------------------------- ledger


def look_at_ledger(ledger: Ledger) -> tuple[Position | None, list[Finding]]:
    """Return the end of the ledger, None if it cannot be found, and what a quick look found.

    Looked at are the manifest, the sizes of the sealed segments, and every byte of the newest one.
    """
    found: list[Finding] = []
    try:
        manifest = ledger.manifest()
        sealed = {entry.name: entry for entry in manifest.segments}
        for name, entry in sealed.items():
            path = ledger.layout.log / name
            size = path.stat().st_size if path.exists() else None
            if size != entry.file_bytes:
                what = "is missing" if size is None else f"has {size} bytes"
                text = f"sealed segment {name} {what}, {entry.file_bytes} were sealed"
                found.append(Finding.error("ledger", text, _RESTORE))
        end = ledger.position_at()
        torn = _torn_bytes(ledger, end)
    except LedgerDamagedError as error:
        return None, [*found, Finding.error("ledger", str(error), _RESTORE)]
    except LedgerError as error:
        return None, [*found, Finding.error("ledger", str(error), "upgrade mnemolog")]
    if torn:
        text = f"{torn} bytes at the end that no append has finished"
        remedy = "none if somebody is writing; else the next write sets them aside"
        found.append(Finding.note("ledger", f"{text}; {remedy}"))
    if not any(each.level == "error" for each in found):
        files = len(sealed) + len([*ledger.layout.log.glob("*.jsonl")])
        text = f"format {ledger.identity.version}, {end.seq} records in {files} segments"
        found.insert(0, Finding.ok("ledger", text))
    return end, found


_RESTORE: Final = (
    "`mnemolog verify` names all damage; put the file back from a backup, then `mnemolog rebuild`"
)


def _torn_bytes(ledger: Ledger, end: Position) -> int:
    """Count the bytes after the last record of the newest segment."""
    first, size = ledger.live_end()
    if end.seq >= first:
        return size - end.offset
    with ledger.layout.raw(first).open("rb") as segment:
        return size - len(segment.readline())  # it holds its header line and no record yet


def check_every_byte(ledger: Ledger, known: Position | None) -> Iterator[Finding]:
    """Verify the whole ledger."""
    report = verify(ledger.layout.root, known)
    for problem in report.problems[:NAMED_MAX]:
        place = f"{problem.segment} seq {problem.seq} offset {problem.offset}"
        yield Finding.error("verify", f"{problem.kind} in {place}: {problem.detail}", _RESTORE)
    if report.ok:
        yield Finding.ok("verify", f"every byte of {report.events} records is as it was written")


def check_mark(lock: Path) -> Iterator[Finding]:
    """Say whether a writer left the ledger read-only after a write that failed."""
    if lock.exists() and not lock.stat().st_mode & 0o200:
        yield Finding.error(
            "writing",
            "a write failed and could not be taken back, so the ledger is marked read-only",
            "make room on the disk or mend it; the next write then removes the mark by itself",
        )


def check_writing(ledger: Ledger) -> Iterator[Finding]:
    """Say whether this process could write."""
    match ledger.refusal:
        case None:
            yield Finding.ok("writing", "this process may write")
        case "no_locks":
            yield Finding.warning(
                "writing",
                "the file system knows no locks, so the store can only be read",
                "move the home to a file system with flock",
            )
        case reason:
            yield Finding.warning(
                "writing",
                f"this process can only read the store ({reason})",
                "none if that is meant; else mend the owner and the mode of the files",
            )


def check_clock(ledger: Ledger, end: Position | None, now_us: int) -> Iterator[Finding]:
    """Compare the clock with the times of the last records."""
    if end is None or not end.seq:
        return
    ahead_us = end.t_us - now_us
    if ahead_us > 0:
        level: Level = "warning" if ahead_us > AHEAD_US_MAX else "note"
        yield Finding(
            check="clock",
            level=level,
            text=f"the clock shows {format_us(now_us)}, before the last record's time, "
            f"{format_us(end.t_us)}",
            remedy="set the clock; order does not depend on it, times and expiry do",
        )
        return
    first, _ = ledger.live_end()
    backwards = 0
    try:
        start = ledger.position_at(seq=first - 1)
        backwards = sum(record.header.back for record in ledger.read(start))
    except LedgerError:
        return  # said elsewhere
    if backwards:
        text = f"the clock went back {backwards} times in the newest segment"
        yield Finding.note("clock", text)
    else:
        yield Finding.ok("clock", "after the last record's time")


def check_quarantine(folder: Path, now_us: int) -> Iterator[Finding]:
    """Count the torn bytes that were set aside."""
    files = [each.stat() for each in folder.iterdir()] if folder.is_dir() else []
    if files:
        oldest_us = min(each.st_mtime_ns for each in files) // 1_000
        days = max(0, now_us - oldest_us) // 86_400_000_000
        size = sum(each.st_size for each in files)
        yield Finding.note(
            "quarantine",
            f"{counted(len(files), 'unfinished end')}, {size} bytes, the oldest {days} days "
            "old; they were never acknowledged and may be deleted",
        )
    else:
        yield Finding.ok("quarantine", "no unfinished end was ever set aside")


def check_unfinished(ledger: Ledger, look: GenerationsLook) -> Iterator[Finding]:
    """Say what was begun and not brought to its end."""
    layout = ledger.layout
    leftovers = [
        each
        for folder in (layout.root, layout.log, layout.root.parent)
        for each in (*folder.glob("*.tmp"), *folder.glob(".mnemolog-*.part"))
    ]
    if leftovers:
        text = f"temporary files that a crash left: {_named(leftovers, layout.root.parent)}"
        yield Finding.warning("unfinished", text, "delete them while no server runs")
    raw = sorted(layout.log.glob("*.jsonl"))
    if len(raw) > 1:
        waiting = counted(len(raw) - 1, "full segment")
        text = f"{waiting} not compressed yet; a running server does it"
        yield Finding.note("unfinished", text)
    if look.redactions:
        yield Finding.warning(
            "unfinished",
            f"{counted(look.redactions, 'redaction')} not completed: nothing of it is shown, but "
            "some process may keep erased bytes on the disk",
            "start a server, which goes on with it, and close the other programs that use this "
            "store",
        )
    if look.half_made and not look.rebuilding:
        text = f"half-made generations: {', '.join(look.half_made)}; the next rebuild removes them"
        yield Finding.note("unfinished", text)
    if not (leftovers or len(raw) > 1 or look.redactions or look.half_made):
        yield Finding.ok("unfinished", "nothing")


def check_holders(home: Path, look: GenerationsLook) -> Iterator[Finding]:
    """Say who holds the locks; the system frees those of a process that has ended."""
    ledger = home / "ledger"
    held = {
        "the writers' lock": holders(ledger / "LOCK"),
        "the sealer's lock": holders(ledger / "SEAL"),
        "the rebuild lock": list(look.rebuilding),
        "the projections": list(look.users),
    }
    calm = True
    for what, by in held.items():
        for holder in by or ():
            if holder.is_stopped:
                calm = False
                yield Finding.warning(
                    "locks",
                    f"{what}: held by process {_said(holder)}, which is suspended",
                    f"let it go on (`kill -CONT {holder.pid}`) or end it; others wait for it",
                )
        if by and what != "the projections" and not any(each.is_stopped for each in by):
            calm = False
            yield Finding.note("locks", f"{what}: held by {', '.join(map(_said, by))}")
    if look.users:
        calm = False
        yield Finding.note("locks", f"in use by {', '.join(map(_said, look.users))}")
    if calm:
        yield Finding.ok("locks", "nobody is seen to hold one")


# ---------------------------------------------------------------------------- projections


def check_projections(
    look: GenerationsLook, ledger: Ledger, end: Position | None
) -> Iterator[Finding]:
    """Say how the projections are and how far they have come."""
    yield from _state_of(look)
    known = look.checkpoint
    if known is not None and end is not None:
        yield from _compare(known, ledger, end)
    if look.gaps:
        text = f"they lack {look.gaps} parts of a damaged ledger"
        yield Finding.error("projections", text, _RESTORE)
    if look.wal_bytes > WAL_BYTES_WARN:
        text = f"the write-ahead log has {look.wal_bytes >> 20} MiB: some process keeps a read open"
        yield Finding.warning("projections", text, "end the process that reads for so long")
    for name, users in look.others.items():
        by = f"held by {', '.join(map(_said, users))}" if users else "in use by nobody"
        yield Finding.note(
            "projections", f"old generation {name}, {by}; the next rebuild removes it"
        )


def _state_of(look: GenerationsLook) -> Iterator[Finding]:
    match look.state:
        case "none":
            yield Finding.note(
                "projections", "there are none; the next use builds them from the ledger"
            )
        case "read":
            yield Finding.ok("projections", f"generation {look.name}")
        case "older":
            yield Finding.note("projections", f"{look.detail}; the next use rebuilds them")
        case "newer":
            yield Finding.error(
                "projections", look.detail, "upgrade mnemolog and restart its clients"
            )
        case "left":
            yield Finding.note(
                "projections",
                f"generation {look.name} was left by a crash, or by a process that cannot be seen "
                "from here; the next use checks it",
            )
        case "damaged":
            text = f"generation {look.name} is damaged: {look.detail}"
            yield Finding.error("projections", text, "`mnemolog rebuild` makes them anew")
        case _:
            text = f"generation {look.name} cannot be read now: {look.detail}"
            yield Finding.warning("projections", text, "run doctor as the owner of the store")


def _compare(known: Position, ledger: Ledger, end: Position) -> Iterator[Finding]:
    try:
        there = ledger.position_at(seq=known.seq).digest if known.seq <= end.seq else ""
    except LedgerError:
        return  # said elsewhere
    if known.seq and there != known.digest:
        yield Finding.error(
            "projections",
            f"they hold record {known.seq}, which the ledger has not: it is older than they are, "
            "or another one, and nothing can be written",
            "put the right ledger back; or, if the ledger is right, delete the projections",
        )
    elif known.seq < end.seq:
        text = f"{end.seq - known.seq} records behind the ledger; the next use applies them"
        yield Finding.note("projections", text)


def check_activity(path: Path) -> Iterator[Finding]:
    """Say whether the log of searches can be used; nothing depends on it."""
    problem = problem_of(path)
    aside = sorted(path.parent.glob(f"{path.name}.set-aside*"))
    if problem is not None:
        remedy = "delete activity.db while no server runs"
        yield Finding.warning("activity", f"the log of searches is not used: {problem}", remedy)
    if aside:
        yield Finding.note(
            "activity", f"set aside, because they could not be read: {_named(aside)}"
        )
    if problem is None and not aside:
        yield Finding.ok("activity", "fine" if path.exists() else "nothing noted yet")


# ---------------------------------------------------------------------------- the system


def check_file_system(home: Path, file_system: FileSystemOf) -> Iterator[Finding]:
    """Say what the home is on."""
    kind = file_system(home)
    if kind in SHARED:
        text = f"the home is on a network drive ({kind}); projections are kept on this machine"
        yield Finding.note("file system", text)
    else:
        yield Finding.ok("file system", kind or "not known")


def check_permissions(home: Path) -> Iterator[Finding]:
    """Find what others may use, and what belongs to somebody else."""
    is_open, foreign = [], []
    for path in (home, *sorted(home.rglob("*"))):
        try:
            status = path.lstat()
        except FileNotFoundError:
            continue  # files beside a database come and go
        if stat.S_ISLNK(status.st_mode):
            continue
        # What others may read of the settings is for whoever wrote them to say.
        closed = 0o022 if path == home / "config.toml" else 0o077
        if status.st_mode & closed:
            is_open.append(path)
        if status.st_uid != os.geteuid():
            foreign.append(path)
    if is_open:
        text = f"other users may use {len(is_open)} of the home: {_named(is_open, home)}"
        yield Finding.warning("permissions", text, f"`chmod -R go= '{home}'`")
    if foreign:
        text = f"{len(foreign)} belong to another user: {_named(foreign, home)}"
        yield Finding.warning("permissions", text, "`chown` them to the user that runs mnemolog")
    if not is_open and not foreign:
        yield Finding.ok("permissions", "only its owner may use the home")


def check_disk(home: Path) -> Iterator[Finding]:
    """Say how much room there is."""
    free = shutil.disk_usage(home).free
    if free < FREE_BYTES_MIN:
        yield Finding.error("disk", f"{free >> 20} MiB are left for the store", "free some space")
    else:
        yield Finding.ok("disk", f"{free >> 20} MiB free")
    yield from check_temporary()


def check_temporary() -> Iterator[Finding]:
    """Say whether the temporary folder lacks room."""
    folder = Path(tempfile.gettempdir())
    temporary = shutil.disk_usage(folder).free
    if temporary < TEMP_BYTES_MIN:
        text = f"{temporary >> 20} MiB are left in the temporary folder {folder}"
        yield Finding.warning("disk", text, "free some space there, or set TMPDIR")


def check_copies(home: Path) -> Iterator[Finding]:
    """Count the files with memories that were written elsewhere."""
    copies = [copy for copy in copies_from(home, 0) if copy.exists]
    if copies:
        text = f"{counted(len(copies), 'file')} outside may hold memories: "
        yield Finding.note("copies", text + _named([copy.path for copy in copies]))
    else:
        yield Finding.ok("copies", "no file that was written elsewhere is known")


def _said(holder: Holder) -> str:
    return f"{holder.pid} ({holder.name})" if holder.name else str(holder.pid)


def _named(paths: Sequence[Path], home: Path | None = None) -> str:
    """Name the first of some files, below a folder if that is given."""
    shown = [
        str(path if home is None or path == home else path.relative_to(home))
        for path in paths[:NAMED_MAX]
    ]
    more = len(paths) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
