"""The journal of copies: files that mnemolog wrote beside the store and that may hold memories.

Exports, audit bundles, backups and replayed databases belong to whoever asked for them, so nothing
here ever touches them. But whoever has a memory erased must hear where else it may stand, and
nobody remembers an export of last year. The journal is `<home>/copies.jsonl`, one JSON object a
line: kind, path, seq (the ledger position up to which the file may hold memories), t (when it was
written) and gone (when it was first missed, if it was).

It is a help and not a truth: it is no part of the ledger, its loss loses no memory, a line that
cannot be read is skipped, and a file that cannot be noted is still written.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from ledger import OsFiles, format_us, parse_us

COPIES_FILE: Final = "copies.jsonl"
"""Name of the journal in a home."""

LINE_BYTES_MAX: Final = 64 * 1024
"""Longest line that is believed: room for the longest path there is, every byte escaped."""

COMPACT_BYTES_MIN: Final = 64 * 1024
"""Size below which the journal is never compacted; from there on at each doubling."""

GONE_DAYS_MAX: Final = 90
"""How long a missed file stays in the journal: it may be on a drive that is not plugged in."""

_US_PER_DAY: Final = 86_400_000_000
_REOPENINGS_MAX: Final = 16


class Copy(msgspec.Struct, frozen=True, kw_only=True):
    """A file or folder that was written outside the ledger and may hold memories.

    Attributes:
        kind: export, audit, backup or replay.
        path: where it was written, absolute.
        position: ledger position up to which it may hold memories.
        at: when it was written, an instant in record form.
        exists: whether something is there now; what cannot be looked at counts as there.
    """

    kind: str
    path: Path
    position: int
    at: str
    exists: bool


class _Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the journal."""

    kind: str
    path: str
    seq: int
    t: str
    gone: str | None = None


def note_copy(
    home: Path,
    *,
    kind: str,
    path: Path,
    position: int,
    now_us: int,
    warn: Callable[[str], None],
) -> None:
    """Note that a file is written; never raises, since the file is what was asked for.

    Args:
        home: folder of the store, which must be there.
        kind: export, audit, backup or replay.
        path: file or folder that is or will be written; one noted before is noted anew.
        position: ledger position up to which it may hold memories.
        now_us: the time, in microseconds since 1970-01-01 UTC.
        warn: is told if the note cannot be made.

    """
    try:
        line = _Line(kind=kind, path=str(path.resolve()), seq=position, t=format_us(now_us))
        _append(home / COPIES_FILE, _line_bytes(line), now_us)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        warn(
            f"mnemolog: {path} may hold memories, and that could not be noted in "
            f"{home / COPIES_FILE} ({reason}); a redaction will not name it"
        )


def copies_from(home: Path, position: int) -> list[Copy]:
    """Return what was written at or after a ledger position, oldest first, each path once.

    Args:
        home: folder of the store.
        position: what was written before it cannot hold what was stored at it.

    Raises:
        OSError: the journal is there and cannot be read.

    """
    try:
        fd = os.open(home / COPIES_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return []
    with os.fdopen(fd, "rb") as journal:
        lines = _read(journal.read())
    return [
        Copy(
            kind=line.kind,
            path=Path(line.path),
            position=line.seq,
            at=line.t,
            exists=not _is_gone(line.path),
        )
        for line in lines
        if line.seq >= position
    ]


def _append(journal: Path, data: bytes, now_us: int) -> None:
    with _locked(journal) as fd:
        before = os.fstat(fd).st_size
        if before and os.pread(fd, 1, before - 1) != b"\n":
            data = b"\n" + data  # what a crash tore off stays a line of its own
        files = OsFiles()
        files.write_all(fd, data, before)
        files.sync(fd)
        after = before + len(data)
        if after >= COMPACT_BYTES_MIN and before.bit_length() != after.bit_length():
            _compact(journal, os.pread(fd, after, 0), now_us)


@contextmanager
def _locked(journal: Path) -> Iterator[int]:
    """Open the journal for one writer alone, creating it; what was replaced meanwhile is let go."""
    for _ in range(_REOPENINGS_MAX):
        is_new = not journal.exists()
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(journal, flags, 0o600)
        try:
            with suppress(OSError):  # a file system without locks: two lines at once are rare
                fcntl.flock(fd, fcntl.LOCK_EX)
            if not os.path.samestat(os.fstat(fd), os.stat(journal)):  # noqa: PTH116 - a pair
                continue
            if is_new:
                OsFiles().sync_names(journal.parent)
            yield fd
            return
        finally:
            os.close(fd)
    raise OSError(None, "it is replaced again and again")


def _compact(journal: Path, data: bytes, now_us: int) -> None:
    """Drop what has been gone for long, and note what is missed for the first time."""
    kept = []
    for line in _read(data):
        if not _is_gone(line.path):
            kept.append(msgspec.structs.replace(line, gone=None))
        elif line.gone is None:
            kept.append(msgspec.structs.replace(line, gone=format_us(now_us)))
        elif now_us - parse_us(line.gone) < GONE_DAYS_MAX * _US_PER_DAY:
            kept.append(line)
    OsFiles().replace_file(journal, b"".join(map(_line_bytes, kept)))


def _read(data: bytes) -> list[_Line]:
    """Return the lines that can be read, oldest first; of one path the newest."""
    by_path: dict[str, _Line] = {}
    for raw in data.split(b"\n"):
        try:
            line = _line(raw)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            continue
        earlier = by_path.pop(line.path, None)
        if earlier is not None and earlier.seq > line.seq:
            # An older state was written in its place; what was there may still have another name.
            line = msgspec.structs.replace(line, seq=earlier.seq)
        by_path[line.path] = line
    return list(by_path.values())


def _line(raw: bytes) -> _Line:
    if len(raw) >= LINE_BYTES_MAX:
        raise ValueError("too long")
    line = msgspec.convert(json.loads(raw), _Line)
    if not Path(line.path).is_absolute():
        raise ValueError("not a path that was noted")
    for instant in (line.t, line.gone or line.t):
        parse_us(instant)
    return line


def _is_gone(path: str) -> bool:
    try:
        os.stat(path)  # noqa: PTH116 - Path.exists takes a refusal for an absence
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return True
    except OSError:
        return False
    return False


def _line_bytes(line: _Line) -> bytes:
    # The library's JSON, because a path may hold bytes that are no UTF-8.
    return json.dumps(msgspec.to_builtins(line)).encode() + b"\n"
