"""What is done to a whole home while the power is cut: ledger, tables and the swap of tables."""

import errno
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from ledger import (
    IdSource,
    Ledger,
    MemoryAdded,
    Position,
    RandomIds,
    Record,
    Restoration,
    backup,
    verify,
)
from projections.backups import put_back
from projections.generation import Generations
from projections.rebuild import rebuild
from server.bootstrap import Store
from server.config import Config
from server.errors import StoreError
from tests.crash.states import Found
from tests.support.ledgers import CountingIds, QuickFiles
from tests.support.recorder import Recorder, RecordingFiles
from tests.support.redactions import inflated
from tests.support.store import Client, FakeClock, live_digest, replayed_digest

BACKUP = "backup"
_SHORT = 3
"""Letters of a word that is in many a file."""


class Remembered(NamedTuple):
    """What must be found after a cut.

    Attributes:
        contents: sets of contents, one of which the store holds.
        has_backup: whether the backup is there.
        kept: contents that the ledger holds that was replaced, or is about to be.
        erased: contents of which no file of the home holds a word once the store forgot them.
        restored: what the store holds once a restore that is at work is repeated; None: none is.
    """

    contents: frozenset[frozenset[str]]
    has_backup: bool = False
    kept: frozenset[str] = frozenset()
    erased: frozenset[str] = frozenset()
    restored: frozenset[str] | None = None


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
        self.backed_up: frozenset[str] = frozenset()
        self.kept: frozenset[str] = frozenset()
        self.erased: frozenset[str] = frozenset()

    def record(self, base: Path, files: type[RecordingFiles] = RecordingFiles) -> None:
        """Record from here on."""
        self.close()
        self.recorder = Recorder(base)
        self.files = files(self.recorder, looks=True)
        self.tell()

    def tell(self, *further: frozenset[str], restored: frozenset[str] | None = None) -> None:
        if self.recorder is not None:
            self.recorder.look()
            self.recorder.tell(
                Remembered(
                    frozenset([self.stored, *further]),
                    self.has_backup,
                    self.kept,
                    self.erased,
                    restored,
                )
            )

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
        self.kept -= {text}
        self.erased |= {text}
        self.tell(self.stored - {text})
        client.redact(found.id, reason="it was asked for")
        self.stored -= {text}
        self.tell()

    def back_up(self) -> None:
        """Copy the ledger beside the home."""
        backup(self.open().store.ledger, self.home.parent / BACKUP)
        self.has_backup = True
        self.backed_up = self.stored
        self.tell()

    def restore(self, *, exchanges: bool = True) -> None:
        """Put the backup back into the home; a ledger that is there is kept aside."""
        self.close()
        files = self.files
        if not exchanges and isinstance(files, RecordingFiles):
            files.failing["exchange"] = [OSError(errno.EINVAL, "no such call here")]
        self.kept = self.stored
        restored = self.backed_up - self.erased
        self.tell(restored, restored=restored)
        restore(self.home, files, self.clock, self.ids)
        self.stored = restored
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


def _backed_up(scene: HomeScene) -> None:
    """A backup, and since then a memory more and one less."""
    scene.add("heron at the weir", "crane in the field")
    scene.back_up()
    scene.add("egret on the bank")
    scene.redact("heron at the weir")


def _restore(scene: HomeScene) -> None:
    scene.restore()
    scene.add("stork in the nest")


def _restore_without_an_exchange(scene: HomeScene) -> None:
    scene.restore(exchanges=False)


def _put_aside(scene: HomeScene) -> None:
    """A restore has put a ledger aside that holds what is to be erased."""
    scene.add("heron at the weir", "crane in the field")
    scene.back_up()
    scene.add("egret on the bank")
    scene.restore()


HOME_OPERATIONS = [
    HomeOperation("open a new home", _nothing, _open_first),
    HomeOperation("add", _some, _add),
    HomeOperation("add several", _some, _add_several),
    HomeOperation("rebuild", _some, _rebuild),
    HomeOperation("redact", _some, _redact),
    HomeOperation("back up", _some, _back_up),
    HomeOperation("rebuild twice and add", _some, _rebuild_twice),
    HomeOperation("restore", _backed_up, _restore),
    HomeOperation("restore without an exchange", _backed_up, _restore_without_an_exchange),
    HomeOperation("redact what was put aside", _put_aside, _redact),
]
"""What is recorded. To add one is to say what comes before it and what is done."""


def open_store(
    home: Path, files: QuickFiles, clock: FakeClock, ids: CountingIds | RandomIds
) -> Store:
    """Open a store without the activity log, which is no part of the promises."""
    return Store(
        Config(home=home, activity=False), clock=clock, ids=ids, files=files, log=lambda _: None
    )


def restore(home: Path, files: QuickFiles, clock: FakeClock, ids: IdSource) -> None:
    """Put the backup beside a home back into it."""
    with (
        Restoration(
            home.parent / BACKUP, home, replace=True, clock=clock, ids=ids, files=files
        ) as restoration,
        closing(Generations(home / "projections", files)) as generations,
    ):
        put_back(restoration, generations)


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
    home, expected = base / "home", found.expected
    may_be = expected.contents
    has_ledger = (home / "ledger").exists()
    if not has_ledger and any(home.glob("ledger.replaced-*")):
        with pytest.raises(StoreError, match="repeat the restore"):
            open_store(home, QuickFiles(), FakeClock(), RandomIds())
    if expected.restored is not None and (found.key[0] % 2 or not has_ledger):
        restore(home, QuickFiles(), FakeClock(), RandomIds())
        may_be = frozenset([expected.restored])
    client = Client(open_store(home, QuickFiles(), FakeClock(), RandomIds()))
    try:
        client.store.upkeep.run_once()  # a redaction that was cut short goes on
        listed = frozenset(memory.content for memory in client.listed())
        records = list(client.store.ledger.read(Position.start))
        stored = _contents(records)
        assert stored in may_be, f"the ledger holds {sorted(stored)}"
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
    _assert_kept(home, expected.kept)
    _assert_erased(home, expected.erased - stored)
    if expected.has_backup:
        report = verify(base / BACKUP)
        assert report.problems == [], report.problems
        assert report.events > 0


def _contents(records: Iterable[Record]) -> frozenset[str]:
    return frozenset(
        record.payload.memory.content
        for record in records
        if isinstance(record.payload, MemoryAdded)
    )


def _assert_kept(home: Path, kept: frozenset[str]) -> None:
    """Assert that the ledger in use, or one that was put aside, holds all of this."""
    found = []
    for path in [home / "ledger", *home.glob("ledger.replaced-*")]:
        report = verify(path)
        assert report.problems == [], report.problems
        ledger = Ledger.open_existing(path, clock=FakeClock(), ids=RandomIds(), files=QuickFiles())
        try:
            found.append(_contents(ledger.read(Position.start)))
        finally:
            ledger.close()
    assert any(kept <= each for each in found), f"{sorted(kept)} are not in one of {found}"


def _assert_erased(home: Path, erased: frozenset[str]) -> None:
    words = {word.encode() for text in erased for word in text.split() if len(word) > _SHORT}
    if words:
        left = {
            (name, word) for name, data in inflated(home).items() for word in words if word in data
        }
        assert not left, f"erased words are still there: {left}"


_DIGESTS: dict[str, str] = {}


def _replayed(client: Client, head: str, base: Path) -> str:
    """Replay a ledger, once for each of its heads."""
    if head not in _DIGESTS:
        _DIGESTS[head] = replayed_digest(client, base / "replayed.db").text()
    return _DIGESTS[head]
