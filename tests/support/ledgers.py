"""Ledgers for tests: a clock that is told the time, ids that count, files that fail on order."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol, TypeVar

from ledger import (
    Batch,
    Ledger,
    LedgerOptions,
    MemoryAdded,
    MemoryState,
    NewEvent,
    OsFiles,
    Position,
    Record,
    Sealer,
)

START_US = 1_796_072_604_000_000
WORKSPACE = "aaaaaaaaaaaaaaaa"
ACTOR = "bbbbbbbbbbbbbbbb"
SMALL = LedgerOptions(segment_bytes_max=1)
"""Every append rolls."""


class TickingClock:
    """One millisecond a look; `now` can be set."""

    def __init__(self, now: int = START_US) -> None:
        self.now = now

    def now_us(self) -> int:
        self.now += 1000
        return self.now


class CountingIds:
    """Ids and salts that count from one."""

    def __init__(self) -> None:
        self._count = 0

    def new_id(self) -> str:
        self._count += 1
        digits = [(self._count >> (5 * place)) & 31 for place in range(16)]
        return "".join("abcdefghijklmnopqrstuvwxyz234567"[digit] for digit in reversed(digits))

    def new_salt(self) -> str:
        self._count += 1
        return f"{self._count:032x}"


class Crash(BaseException):
    """The process died here."""


class QuickFiles(OsFiles):
    """The real files without waiting for the disk: a test's process outlives its ledger."""

    def sync(self, fd: int) -> None:
        os.fstat(fd)

    def sync_directory(self, fd: int) -> None:
        os.fstat(fd)


class OrderedFiles(QuickFiles):
    """Quick files, until told otherwise.

    `calls` lists the names of the changing calls. A rule set by `fail` raises an OSError; the call
    numbered `crash_at` (from 0) raises Crash instead of being made, a write after half its bytes.
    """

    def __init__(self, crash_at: int | None = None) -> None:
        self.calls: list[str] = []
        self.crash_at = crash_at
        self._rules: dict[str, list[tuple[int, int, int | None]]] = {}

    def fail(
        self, call: str, code: int, *, times: int = 1, skip: int = 0, short: int | None = None
    ) -> None:
        """Let the next calls of a name fail; a write takes `short` bytes of the first before."""
        rules = self._rules.setdefault(call, [])
        rules.extend([(0, 0, None)] * skip)
        if short is not None:
            rules.append((-1, 0, short))
        rules.extend([(code, 0, None)] * times)

    def heal(self) -> None:
        """Forget all rules."""
        self._rules.clear()

    def _enter(self, call: str) -> int | None:
        number = len(self.calls)
        self.calls.append(call)
        if number == self.crash_at:
            raise Crash
        rules = self._rules.get(call)
        if not rules:
            return None
        code, _, short = rules.pop(0)
        if code > 0:
            raise OSError(code, os.strerror(code))
        return short

    def open_write(self, path: Path) -> int:
        self._enter("open_write")
        return super().open_write(path)

    def open_lock(self, path: Path) -> int:
        self._enter("open_lock")
        return super().open_lock(path)

    def create(self, path: Path) -> int:
        self._enter("create")
        return super().create(path)

    def make_directory(self, path: Path) -> None:
        self._enter("make_directory")
        super().make_directory(path)

    def write(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        try:
            short = self._enter("write")
        except Crash:
            super().write(fd, data[: len(data) // 2], offset)
            raise
        return super().write(fd, data if short is None else data[:short], offset)

    def truncate(self, fd: int, size: int) -> None:
        self._enter("truncate")
        super().truncate(fd, size)

    def sync(self, fd: int) -> None:
        self._enter("sync")
        super().sync(fd)

    def sync_directory(self, fd: int) -> None:
        self._enter("sync_directory")
        super().sync_directory(fd)

    def rename(self, source: Path, target: Path) -> None:
        self._enter("rename")
        super().rename(source, target)

    def exchange(self, one: Path, two: Path) -> None:
        self._enter("exchange")
        super().exchange(one, two)

    def unlink(self, path: Path) -> None:
        self._enter("unlink")
        super().unlink(path)

    def change_mode(self, fd: int, mode: int) -> None:
        self._enter("change_mode")
        super().change_mode(fd, mode)


class Closable(Protocol):
    """What keeps descriptors until it is closed."""

    def close(self) -> None: ...


ClosableT = TypeVar("ClosableT", bound=Closable)

_OPENED: list[Closable] = []


def to_be_closed(opened: ClosableT) -> ClosableT:
    """Have something closed by the next `close_opened`, at the latest after the test."""
    _OPENED.append(opened)
    return opened


def close_opened() -> None:
    """Close what was opened so far; tests with very many rounds call it in each."""
    while _OPENED:
        _OPENED.pop().close()


def open_ledger(
    root: Path,
    *,
    options: LedgerOptions | None = None,
    files: OsFiles | None = None,
    clock: TickingClock | None = None,
    ids: CountingIds | None = None,
) -> Ledger:
    """Open a ledger, closed after the test, with test doubles for whatever is not given."""
    return to_be_closed(
        Ledger.open(
            root,
            clock=clock or TickingClock(),
            ids=ids or CountingIds(),
            options=options,
            files=files or QuickFiles(),
        )
    )


def open_sealer(ledger: Ledger) -> Sealer:
    """Make a ledger's sealer, closed after the test."""
    return to_be_closed(Sealer(ledger))


def added(content: str, number: int = 0) -> NewEvent:
    """Return the event of a memory that says `content`."""
    state = MemoryState(content=content, layer="semantic")
    return NewEvent(f"m{number:015d}", MemoryAdded(salt=f"{number:032x}", memory=state))


def batch(*contents: str, session: str = "", cause: str = "", undo: int = 0, ik: str = "") -> Batch:
    """Return a batch with one new memory a text."""
    events = [added(text, number) for number, text in enumerate(contents)]
    return Batch(WORKSPACE, ACTOR, events, session, cause, undo, ik)


def append(
    ledger: Ledger, *groups: Iterable[Iterable[str]], known: Position | None = None
) -> Position:
    """Append groups of batches of texts, each group under its own lock; return the end."""
    for batches in groups:
        with ledger.lock(5) as writer:
            for _ in writer.catch_up(known):
                pass
            group = writer.group()
            for contents in batches:
                group.add(batch(*contents))
            known = group.commit()
    assert known is not None
    return known


def append_each(ledger: Ledger, *contents: str, known: Position | None = None) -> Position:
    """Append texts, each in its own group; return the end."""
    return append(ledger, *[[[text]] for text in contents], known=known)


def content_of(record: Record) -> str:
    """Return what a record's memory says."""
    assert isinstance(record.payload, MemoryAdded)
    return record.payload.memory.content


def contents(ledger: Ledger, after: Position = Position.start) -> list[str]:
    """Return what all memories say, in order."""
    return [content_of(record) for record in ledger.read(after)]


def live_path(ledger: Ledger) -> Path:
    """Return the live segment's file."""
    return ledger.layout.raw(ledger.live_end()[0])


def tree(root: Path) -> dict[str, bytes]:
    """Return every file below a directory with its bytes."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
