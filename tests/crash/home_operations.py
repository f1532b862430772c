"""What is done to a whole home while the power is cut: ledger, tables and the swap of tables."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ledger import Ledger, MemoryAdded, Position, RandomIds, backup, verify
from projections.generation import Generations
from projections.rebuild import rebuild
from server.bootstrap import Store
from server.config import Config
from tests.crash.states import Found
from tests.support.ledgers import CountingIds, QuickFiles
from tests.support.recorder import Recorder, RecordingFiles
from tests.support.store import Client, FakeClock, live_digest, replayed_digest

BACKUP = "backup"


class Remembered(NamedTuple):
    """The sets of contents, one of which must be found after a cut."""

    contents: frozenset[frozenset[str]]
    has_backup: bool = False


class HomeScene:
    """A home on recorded files, and what its callers have been told."""

    def __init__(self, base: Path) -> None:
        self.home = base / "home"
        self.ids = CountingIds()
        self.clock = FakeClock()
        self.files: QuickFiles = QuickFiles()
        self.recorder: Recorder | None = None
        self.stored: frozenset[str] = frozenset()
        self.client: Client | None = None
        self.has_backup = False

    def record(self, base: Path, files: type[RecordingFiles] = RecordingFiles) -> None:
        """Record from here on."""
        self.close()
        self.recorder = Recorder(base)
        self.files = files(self.recorder, looks=True)
        self.tell()

    def tell(self, *further: frozenset[str]) -> None:
        if self.recorder is not None:
            self.recorder.look()
            self.recorder.tell(Remembered(frozenset([self.stored, *further]), self.has_backup))

    def open(self) -> Client:
        if self.client is None:
            self.client = Client(open_store(self.home, self.files, self.clock, self.ids))
        return self.client

    def close(self) -> None:
        if self.client is not None:
            self.client.store.close()
            self.client = None
        if self.recorder is not None:
            self.tell()

    def add(self, *texts: str) -> None:
        """Store memories with one call and one sync, each of them on its own."""
        client = self.open()
        self.tell(*(self.stored | set(texts[:count]) for count in range(1, len(texts) + 1)))
        client.add_many(*({"content": text, "layer": "semantic"} for text in texts))
        self.stored |= set(texts)
        self.tell()

    def redact(self, text: str) -> None:
        """Erase a memory."""
        client = self.open()
        (found,) = (memory for memory in client.listed() if memory.content == text)
        self.tell(self.stored - {text})
        client.redact(found.id, reason="it was asked for")
        self.stored -= {text}
        self.tell()

    def back_up(self) -> None:
        """Copy the ledger beside the home."""
        backup(self.open().store.ledger, self.home.parent / BACKUP)
        self.has_backup = True
        self.tell()

    def rebuild(self) -> None:
        """Make the tables anew and put them into use."""
        ledger = Ledger.open(self.home / "ledger", clock=self.clock, ids=self.ids, files=self.files)
        try:
            generations = Generations(self.home / "projections", self.files)
            rebuild(ledger, generations, lock_timeout_s=1.0, known=None, progress=lambda *_: None)
        finally:
            ledger.close()
        self.tell()


class HomeOperation(NamedTuple):
    """Something that is done to a home; see `ledger_operations.Operation`."""

    name: str
    before: Callable[[HomeScene], None]
    during: Callable[[HomeScene], None]


def _nothing(_: HomeScene) -> None:
    pass


def _some(scene: HomeScene) -> None:
    scene.add("heron at the weir", "crane in the field")


def _open_first(scene: HomeScene) -> None:
    scene.add("heron at the weir")


def _add(scene: HomeScene) -> None:
    for number in range(3):
        scene.add(f"stork number {number}")


def _add_several(scene: HomeScene) -> None:
    scene.add("stork in the nest", "egret on the bank")


def _rebuild(scene: HomeScene) -> None:
    scene.rebuild()


def _rebuild_twice(scene: HomeScene) -> None:
    scene.rebuild()
    scene.rebuild()
    scene.add("stork in the nest")


def _back_up(scene: HomeScene) -> None:
    scene.back_up()
    scene.add("stork in the nest")


def _redact(scene: HomeScene) -> None:
    scene.redact("heron at the weir")
    scene.add("stork in the nest")


HOME_OPERATIONS = [
    HomeOperation("open a new home", _nothing, _open_first),
    HomeOperation("add", _some, _add),
    HomeOperation("add several", _some, _add_several),
    HomeOperation("rebuild", _some, _rebuild),
    HomeOperation("redact", _some, _redact),
    HomeOperation("back up", _some, _back_up),
    HomeOperation("rebuild twice and add", _some, _rebuild_twice),
]
"""What is recorded. To add one is to say what comes before it and what is done."""


def open_store(
    home: Path, files: QuickFiles, clock: FakeClock, ids: CountingIds | RandomIds
) -> Store:
    """Open a store without the activity log, which is no part of the promises."""
    return Store(
        Config(home=home, activity=False), clock=clock, ids=ids, files=files, log=lambda _: None
    )


def record_home(
    operation: HomeOperation, base: Path, files: type[RecordingFiles] = RecordingFiles
) -> Recorder:
    """Do an operation in a folder; return what happened there."""
    scene = HomeScene(base)
    operation.before(scene)
    scene.record(base, files)
    operation.during(scene)
    scene.close()
    assert scene.recorder is not None
    return scene.recorder


def check_home(base: Path, found: Found[Remembered]) -> None:
    """Open a store after a cut and hold it to what its callers had been told."""
    home = base / "home"
    client = Client(open_store(home, QuickFiles(), FakeClock(), RandomIds()))
    try:
        client.store.upkeep.run_once()  # a redaction that was cut short goes on
        listed = frozenset(memory.content for memory in client.listed())
        records = list(client.store.ledger.read(Position.start))
        stored = frozenset(
            record.payload.memory.content
            for record in records
            if isinstance(record.payload, MemoryAdded)
        )
        assert stored in found.expected.contents, f"the ledger holds {sorted(stored)}"
        assert listed == stored, f"{sorted(stored)} are stored and {sorted(listed)} are listed"
        head = f"{records[-1].digest}{sorted(stored)}" if records else client.store.ledger.id
        assert live_digest(client).text() == _replayed(client, head, base)
        client.add("ibis after the cut")
        assert len(client.search("ibis").memories) == 1
        assert {memory.content for memory in client.listed()} == {*stored, "ibis after the cut"}
    finally:
        client.store.upkeep.stop(1.0)
        client.store.close()
    report = verify(home / "ledger")
    assert report.problems == [], report.problems
    if found.expected.has_backup:
        report = verify(base / BACKUP)
        assert report.problems == [], report.problems
        assert report.events > 0


_DIGESTS: dict[str, str] = {}


def _replayed(client: Client, head: str, base: Path) -> str:
    """Replay a ledger, once for each of its heads."""
    if head not in _DIGESTS:
        _DIGESTS[head] = replayed_digest(client, base / "replayed.db").text()
    return _DIGESTS[head]
