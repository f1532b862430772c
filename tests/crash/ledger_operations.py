"""What is done to a ledger while the power is cut, and what must hold of it afterwards."""

import errno
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import pytest

from ledger import (
    Ledger,
    LedgerOptions,
    LedgerWriteError,
    Position,
    Sealer,
    verify,
)
from tests.crash.states import Found
from tests.support.ledgers import (
    SMALL,
    CountingIds,
    QuickFiles,
    TickingClock,
    batch,
    content_of,
)
from tests.support.recorder import KilledHere, Recorder, RecordingFiles

LEDGER = "home/ledger"
FAR = LedgerOptions()
"""Nothing rolls."""

GZIP = LedgerOptions(segment_bytes_max=1, codec="gz")
_REPEATED = 8
"""One of so many states goes on although one like it has done so."""

_SEALED = 4
"""One of so many states is also rolled and sealed after the cut."""

PADDING = "x" * 150
"""Makes a record longer than a sector."""


class Expected(NamedTuple):
    """What may be found after a cut.

    Attributes:
        histories: what the ledger's memories say, in order.
        known: positions that the projections may have seen, None for lost projections.
    """

    histories: frozenset[tuple[str, ...]]
    known: tuple[Position | None, ...]


class Scene:
    """A ledger on recorded files, and what its callers have been told."""

    def __init__(self, base: Path, options: LedgerOptions) -> None:
        self.root = base / LEDGER
        self.options = options
        self.clock = TickingClock()
        self.ids = CountingIds()
        self.found: tuple[str, ...] = ()
        self.known: list[Position] = []
        self.recorder: Recorder | None = None
        self.files: QuickFiles = QuickFiles()
        self._recording = RecordingFiles
        self.ledger: Ledger | None = None

    def record(self, base: Path, files: type[RecordingFiles] = RecordingFiles) -> None:
        """Record from here on."""
        self.close()
        self.recorder = Recorder(base)
        self._recording = files
        self.start()
        self.tell()

    def start(self, kill_at: int | None = None) -> None:
        """Let another process take over."""
        self.close()
        assert self.recorder is not None
        self.files = self._recording(self.recorder, kill_at=kill_at)

    def open(self) -> Ledger:
        if self.ledger is None:
            self.ledger = Ledger.open(
                self.root,
                clock=self.clock,
                ids=self.ids,
                options=self.options,
                files=self.files,
            )
        return self.ledger

    def close(self) -> None:
        if self.ledger is not None:
            self.ledger.close()
            self.ledger = None

    def tell(self, *further: tuple[str, ...]) -> None:
        """Say what is there, and what may be there besides."""
        if self.recorder is None:
            return
        known = (None, *dict.fromkeys([*self.known[:1], *self.known[-2:]]))
        self.recorder.tell(Expected(frozenset([self.found, *further]), known))

    def append(self, *batches: Iterable[str]) -> None:
        """Commit one group of batches of texts."""
        prefixes = [self.found]
        with self.open().lock(1) as writer:
            list(writer.catch_up(self.known[-1] if self.known else None))
            group = writer.group()
            for texts in batches:
                group.add(batch(*texts))
                prefixes.append((*prefixes[-1], *texts))
            self.tell(*prefixes)
            end = group.commit()
        self.found = prefixes[-1]
        self.known.append(end)
        self.tell()

    def catch_up(self) -> None:
        """Make sure of what is there, and take it for granted from then on."""
        ledger = self.open()
        with ledger.lock(1) as writer:
            records = list(writer.catch_up(None))
            end = writer.end
        self.found = tuple(map(content_of, records))
        self.known = [*self.known, end] if end.seq else []
        self.tell()

    def seal(self) -> None:
        sealer = Sealer(self.open())
        try:
            sealer.run()
        finally:
            sealer.close()

    def tear(self, torn: bytes) -> None:
        """Have a process die in the middle of a write; what it wrote is durable by now."""
        with max((self.root / "log").glob("*.jsonl")).open("ab") as file:
            file.write(torn)


class Operation(NamedTuple):
    """Something that is done to a ledger.

    Attributes:
        name: says what.
        before: makes the ledger, all of it durable.
        during: is recorded.
        options: when to roll and how to compress.
    """

    name: str
    before: Callable[[Scene], None]
    during: Callable[[Scene], None]
    options: LedgerOptions = FAR


def _nothing(_: Scene) -> None:
    pass


def _three(scene: Scene) -> None:
    for text in ("one", "two", "three"):
        scene.append([text])


def _create(scene: Scene) -> None:
    scene.open()
    scene.append(["one"])


def _append(scene: Scene) -> None:
    scene.append([f"four {PADDING}"])
    scene.append(["five"])


def _append_a_batch(scene: Scene) -> None:
    scene.append(["four a", f"four b {PADDING}", "four c"])


def _append_groups(scene: Scene) -> None:
    scene.append(["four"], ["five a", "five b"], [f"six {PADDING}"])
    scene.append(["seven"], ["eight"])


def _torn(scene: Scene) -> None:
    _three(scene)
    scene.close()
    scene.tear(b'{"h":{"seq":4,"n":1,' + b"t" * 600)


def _repair(scene: Scene) -> None:
    scene.catch_up()
    scene.append(["four"])


def _append_a_large_group(scene: Scene) -> None:
    scene.append(*([f"{number} {PADDING}"] for number in range(8)))


def _roll(scene: Scene) -> None:
    scene.append(["four"], ["five"])
    scene.append(["six"])


def _seal(scene: Scene) -> None:
    scene.seal()
    scene.append(["four"])


def _replace(scene: Scene) -> None:
    """A sync fails: the live segment is replaced."""
    _fail(scene, {"sync": [errno.EIO]})
    scene.append(["four"])


def _cut_back(scene: Scene) -> None:
    """A write finds no space: what it wrote is cut off."""
    _fail(scene, {"write": [errno.ENOSPC]})
    scene.append(["four"])


def _mark(scene: Scene) -> None:
    """Nothing can be written any more: the ledger is marked read-only, then cured by another."""
    _fail(scene, {"sync": [errno.EIO], "create": [errno.EIO]}, outcome="unknown")
    scene.start()
    scene.catch_up()
    scene.append(["four"])


def _fail(scene: Scene, errors: dict[str, list[int]], outcome: str = "not_written") -> None:
    scene.catch_up()
    files = scene.files
    assert isinstance(files, RecordingFiles)
    with scene.open().lock(1) as writer:
        list(writer.catch_up(scene.known[-1]))
        group = writer.group()
        group.add(batch("lost"))
        for call, codes in errors.items():
            files.failing[call] = [OSError(code, "as ordered") for code in codes]
        scene.tell((*scene.found, "lost"))
        with pytest.raises(LedgerWriteError) as caught:
            group.commit()
        assert caught.value.outcome == outcome
    scene.close()
    if outcome == "not_written":
        scene.tell()


OPERATIONS = [
    Operation("create", _nothing, _create),
    Operation("append", _three, _append),
    Operation("append a batch", _three, _append_a_batch),
    Operation("append groups", _three, _append_groups),
    Operation("append a large group", _three, _append_a_large_group),
    Operation("repair a torn tail", _torn, _repair),
    Operation("roll", _three, _roll, SMALL),
    Operation("seal", _three, _seal, SMALL),
    Operation("seal with gzip", _three, _seal, GZIP),
    Operation("replace after a failed sync", _three, _replace),
    Operation("cut back on a full disk", _three, _cut_back),
    Operation("mark and cure", _three, _mark),
]
"""What is recorded. To add one is to say what comes before it and what is done."""


def record(
    operation: Operation, base: Path, files: type[RecordingFiles] = RecordingFiles
) -> Recorder:
    """Do an operation in a folder; return what happened there."""
    scene = Scene(base, operation.options)
    operation.before(scene)
    scene.record(base, files)
    operation.during(scene)
    scene.close()
    assert scene.recorder is not None
    return scene.recorder


def record_killed(operation: Operation, base: Path, kill_at: int) -> tuple[Recorder, int] | None:
    """Do an operation in a process that dies at a call, and let another process go on.

    Returns:
        What happened, and at which step the other process began; None if nobody died.
    """
    scene = Scene(base, operation.options)
    operation.before(scene)
    scene.record(base)
    scene.start(kill_at)
    assert scene.recorder is not None
    try:
        operation.during(scene)
    except KilledHere:
        since = len(scene.recorder.steps)
        scene.start()
        scene.seal()
        scene.catch_up()
        scene.append(["next"])
        scene.seal()
        return scene.recorder, since
    else:
        return None
    finally:
        scene.close()


def check(base: Path, found: Found[Expected]) -> None:
    """Open a ledger after a cut and hold it to what its callers had been told.

    Most cuts leave, once the tail is repaired, one of a few ledgers. What follows from it is the
    same each time, so it is gone through once for each of them, and again for some by lot.
    """
    root = base / LEDGER
    expected, pick = found.expected, found.key[0]
    if f"{LEDGER}/FORMAT" in found.state:
        report = verify(root)
        assert {problem.kind for problem in report.problems} <= {"torn_tail"}, report.problems
        before = report.events
    else:
        before = 0
    known = expected.known[pick % len(expected.known)]
    files, clock = QuickFiles(), TickingClock()
    options = SMALL if pick % _SEALED == 0 else FAR
    ledger = Ledger.open(root, clock=clock, ids=CountingIds(), options=options, files=files)
    try:
        with ledger.lock(1) as writer:
            after = [content_of(record) for record in writer.catch_up(known)]
            assert writer.end.seq == before, f"{before} events were read, then {writer.end.seq}"
            if f"{LEDGER}/FORMAT" in found.state:
                _assert_kept(base, found)
            settled = _settled(root), writer.end, known, options is SMALL
            history = _HISTORIES.get(settled)
            if history is None or found.key[1] % _REPEATED == 0:
                group = writer.group()
                group.add(batch("after a", "after b"))
                end = group.commit()
            else:
                end = None
        if end is not None:
            history = _go_on(ledger, end, known)
            _HISTORIES[settled] = history
    finally:
        ledger.close()
    assert history in expected.histories, f"holds {history}"
    assert history is not None
    assert tuple(after) == history[known.seq if known else 0 :], "records did not come in order"


def _go_on(ledger: Ledger, end: Position, known: Position | None) -> tuple[str, ...]:
    """Seal if the ledger is one that rolls, read everything; return what was there before."""
    if ledger.options is SMALL:
        _seal_all(ledger)
    contents = tuple(map(content_of, ledger.read(Position.start)))
    assert contents[-2:] == ("after a", "after b")
    report = verify(ledger.layout.root, end, known)
    assert report.problems == [], report.problems
    return contents[:-2]


def _settled(root: Path) -> bytes:
    """Return what tells a ledger from others, whatever it has in quarantine."""
    digest = blake2b(digest_size=16)
    for folder in (str(root), f"{root}/log"):
        for name in sorted(os.listdir(folder)):  # noqa: PTH208 - one of the steps of each state
            with suppress(IsADirectoryError):
                fd = os.open(f"{folder}/{name}", os.O_RDONLY)
                try:
                    content = os.read(fd, 1 << 20)
                finally:
                    os.close(fd)
                digest.update(f"{name}\0{len(content)}\0".encode())
                digest.update(content)
    return digest.digest()


_HISTORIES: dict[tuple[bytes, Position, Position | None, bool], tuple[str, ...]] = {}


def _seal_all(ledger: Ledger) -> None:
    sealer = Sealer(ledger)
    try:
        sealer.run()
        assert sealer.pending() == []
    finally:
        sealer.close()
    assert not list(ledger.layout.log.glob("*.tmp"))


def _assert_kept(base: Path, found: Found[Expected]) -> None:
    """Assert that whatever the opening cut off a segment is in the quarantine."""
    for path, (content, _) in found.state.items():
        if not path.endswith(".jsonl") or content is None:
            continue
        left = (base / path).read_bytes()
        if left == content:
            continue
        assert content.startswith(left), "bytes were changed"
        kept = [file.read_bytes() for file in (base / LEDGER / "quarantine").glob("*.torn")]
        assert content[len(left) :] in kept, "torn bytes were not kept"
