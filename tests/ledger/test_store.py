"""The ledger as one object: creating, opening, following, writing groups."""

import shutil
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

from ledger import (
    InvalidPayloadError,
    LedgerDamagedError,
    LedgerFormatError,
    LedgerNotFoundError,
    LedgerReadOnlyError,
    LedgerUnreadableError,
    LedgerWriteError,
    Position,
    RandomIds,
    RecordTooLargeError,
    RollFailed,
    SystemClock,
)
from ledger import Ledger as FrontDoorLedger
from ledger.identity import encode_identity
from tests.support.ledgers import (
    ACTOR,
    SMALL,
    WORKSPACE,
    Crash,
    OrderedFiles,
    append,
    append_each,
    batch,
    content_of,
    contents,
    live_path,
    open_ledger,
    open_sealer,
    to_be_closed,
    tree,
)


@pytest.fixture(name="root")
def _root(tmp_path: Path) -> Path:
    return tmp_path / "home" / "ledger"


def test_a_new_ledger_is_empty_and_private(root: Path) -> None:
    ledger = open_ledger(root)

    assert contents(ledger) == []
    assert len(ledger.id) == 16
    assert len(ledger.key) == 32
    assert ledger.manifest().segments == ()
    assert ledger.reports == []
    assert sorted(tree(root)) == ["FORMAT", "LOCK", "MANIFEST.json", f"log/{1:020d}.jsonl"]


def test_the_front_door_opens_with_the_real_clock_and_ids(root: Path) -> None:
    ledger = to_be_closed(FrontDoorLedger.open(root, clock=SystemClock(), ids=RandomIds()))
    end = append_each(ledger, "one")
    ledger.close()

    again = FrontDoorLedger.open(root, clock=SystemClock(), ids=RandomIds())

    assert (again.id, again.key) == (ledger.id, ledger.key)
    assert contents(again) == ["one"]
    assert append_each(ledger, "two", known=end).seq == 2
    ledger.close()
    ledger.close()


def test_opening_an_existing_ledger_changes_nothing(root: Path) -> None:
    append_each(open_ledger(root), "one")
    files = OrderedFiles()

    open_ledger(root, files=files)

    assert files.calls == []


def test_an_existing_ledger_can_be_asked_for(root: Path) -> None:
    with pytest.raises(LedgerNotFoundError) as caught:
        FrontDoorLedger.open_existing(root, clock=SystemClock(), ids=RandomIds())
    assert caught.value.path == root
    made = open_ledger(root)

    found = FrontDoorLedger.open_existing(root, clock=SystemClock(), ids=RandomIds())

    assert found.id == made.id


def test_directories_of_a_foreign_making_are_closed_to_others(root: Path) -> None:
    open_ledger(root)
    root.chmod(0o755)
    (root / "log").chmod(0o777)

    open_ledger(root)

    assert root.stat().st_mode & 0o777 == 0o700
    assert (root / "log").stat().st_mode & 0o777 == 0o700
    shutil.rmtree(root / "quarantine")
    open_ledger(root)


def test_two_that_create_at_once_get_one_ledger(root: Path) -> None:
    ids: list[str] = []

    class Late(OrderedFiles):
        def open_lock(self, path: Path) -> int:
            if not ids:
                ids.append(open_ledger(root).id)
            return super().open_lock(path)

    assert open_ledger(root, files=Late()).id == ids[0]


def test_a_format_that_vanished_is_not_replaced_over_records(root: Path) -> None:
    append_each(open_ledger(root), "one")
    (root / "FORMAT").unlink()
    before = tree(root)

    with pytest.raises(LedgerDamagedError, match="yet there are records"):
        open_ledger(root)

    assert tree(root) == before


def test_what_a_dead_creation_left_is_taken_over(root: Path) -> None:
    counting = OrderedFiles()
    open_ledger(root.parent / "other", files=counting)
    # The last calls rename FORMAT and sync its directory; `home` is there already now.
    with pytest.raises(Crash):
        open_ledger(root, files=OrderedFiles(crash_at=len(counting.calls) - 4))
    assert not (root / "FORMAT").exists()
    (root / "log" / "x.tmp").write_bytes(b"")

    assert contents(open_ledger(root)) == []


def test_a_damaged_or_newer_format_is_told_apart(root: Path) -> None:
    ledger = open_ledger(root)
    path = root / "FORMAT"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(LedgerDamagedError, match="FORMAT"):
        open_ledger(root)

    path.write_bytes(encode_identity(replace(ledger.identity, hash="sha3")))
    with pytest.raises(LedgerFormatError) as caught:
        open_ledger(root)
    assert caught.value.path == path

    path.unlink()
    path.mkdir()
    with pytest.raises(LedgerUnreadableError):
        open_ledger(root)


@pytest.mark.parametrize("call", ["make_directory", "open_lock", "write", "sync", "rename"])
def test_a_ledger_that_cannot_be_created_says_so(root: Path, call: str) -> None:
    files = OrderedFiles()
    files.fail(call, 28)

    with pytest.raises((LedgerWriteError, LedgerReadOnlyError)) as caught:
        open_ledger(root, files=files)

    assert isinstance(caught.value, LedgerWriteError | LedgerReadOnlyError)
    assert caught.value.reason == "disk_full"
    assert contents(open_ledger(root)) == []


def test_the_idempotency_digest_is_keyed_and_belongs_to_one_actor(root: Path) -> None:
    ledger = open_ledger(root)
    digest = ledger.idempotency_digest(WORKSPACE, ACTOR, "key")

    assert len(digest) == 32
    assert digest == open_ledger(root).idempotency_digest(WORKSPACE, ACTOR, "key")
    assert digest != ledger.idempotency_digest(ACTOR, WORKSPACE, "key")
    assert digest != ledger.idempotency_digest(WORKSPACE, ACTOR, "key2")
    other = FrontDoorLedger.open(root.parent / "other", clock=SystemClock(), ids=RandomIds())
    assert digest != other.idempotency_digest(WORKSPACE, ACTOR, "key")


def test_a_group_is_seen_alike_by_its_writer_and_by_every_reader(root: Path) -> None:
    ledger = open_ledger(root)
    with ledger.lock(1) as writer:
        list(writer.catch_up(None))
        group = writer.group()
        assert not group
        made = group.add(batch("a"))
        assert group
        made += group.add(batch("b", "c", session="s", cause="c", undo=1, ik="k"))
        dropped = group.add(batch("no"))
        group.withdraw()
        made += group.add(batch("d"))
        end = group.commit()
        assert writer.end == end
        assert group.commit() == end

    assert list(ledger.read(Position.start)) == made
    assert made[-1].position == end
    assert dropped[0].seq == made[-1].seq
    assert [record.header.group for record in made] == [1, 1, 1, 1]
    assert [record.header.batch for record in made] == [1, 2, 2, 4]
    assert [record.header.n for record in made] == [1, 2, 2, 1]
    assert made[2].header.ik == "k"


def test_a_group_that_is_not_committed_leaves_nothing(root: Path) -> None:
    ledger = open_ledger(root)
    before = tree(root)
    with ledger.lock(1) as writer:
        writer.catch_up(None)
        writer.group().add(batch("a"))

    assert tree(root) == before


def test_a_batch_that_cannot_be_stored_leaves_the_group_as_it_was(root: Path) -> None:
    ledger = open_ledger(root)
    with ledger.lock(1) as writer:
        writer.catch_up(None)
        group = writer.group()
        group.add(batch("a"))
        with pytest.raises(RecordTooLargeError):
            group.add(batch("fine", "x" * 9_000_000))
        with pytest.raises(InvalidPayloadError):
            group.add(batch("\ud800"))
        with pytest.raises(InvalidPayloadError):
            group.add(batch())
        group.add(batch("b"))
        group.commit()

    assert contents(ledger) == ["a", "b"]


def test_a_writer_is_of_no_use_once_the_lock_is_given_back(root: Path) -> None:
    ledger = open_ledger(root)
    with ledger.lock(1) as writer:
        pass

    with pytest.raises(AssertionError):
        writer.catch_up(None)
    with pytest.raises(AssertionError):
        writer.group()


def test_appending_needs_a_catch_up_first(root: Path) -> None:
    ledger = open_ledger(root)
    with ledger.lock(1) as writer, pytest.raises(AssertionError, match="catch up first"):
        writer.group()


def test_securing_returns_the_end_without_the_records(root: Path) -> None:
    ledger = open_ledger(root)
    end = append_each(ledger, "a", "b")

    with open_ledger(root).lock(1) as writer:
        assert writer.secure(None) == end
        assert writer.secure(end) == end


def test_a_record_can_be_found_by_seq_and_by_time(root: Path) -> None:
    ledger = open_ledger(root, options=SMALL)
    append(ledger, [["a"], ["b"]], [["c"]], [["d"]])
    open_sealer(ledger).run()
    records = list(ledger.read(Position.start))

    for record in records:
        assert ledger.position_at(seq=record.seq) == record.position
        t_us = record.position.t_us
        assert ledger.position_at(t_us=t_us) == record.position
        assert ledger.position_at(t_us=t_us - 1).seq == record.seq - 1
        assert ledger.position_at(seq=99, t_us=t_us) == record.position
    assert ledger.position_at() == records[-1].position
    assert ledger.position_at(seq=0) == Position.start
    assert ledger.position_at(t_us=-(10**30)) == Position.start
    assert ledger.position_at(t_us=10**30).seq == 4


def test_reading_stops_at_the_seq_that_is_asked_for(root: Path) -> None:
    ledger = open_ledger(root, options=SMALL)
    append(ledger, [["a"]], [["b", "c", "d"]], [["e"]])

    for until in range(7):
        records = list(ledger.read(Position.start, until))
        assert [record.seq for record in records] == list(range(1, min(until, 5) + 1))
    second = list(ledger.read(Position.start, 2))[-1].position
    assert [record.seq for record in ledger.read(second)] == [3, 4, 5]
    assert [record.seq for record in ledger.read(second, 3)] == [3]


def test_following_yields_what_is_there_and_what_comes(root: Path) -> None:
    ledger = open_ledger(root, options=SMALL)
    known = append_each(ledger, "a")

    class Waking(threading.Event):
        rounds = 0

        def wait(self, timeout: float | None = None) -> bool:
            nonlocal known
            assert timeout == 0.01
            self.rounds += 1
            if self.rounds == 1:
                known = append_each(ledger, "b", "c", known=known)
            elif self.rounds == 3:
                with live_path(ledger).open("ab") as file:
                    file.write(b"torn")
            elif self.rounds == 5:
                self.set()
            return self.is_set()

    steps = ledger.follow(Position.start, Waking(), 0.01)
    seen = [content_of(record) for record in steps]

    assert seen == ["a", "b", "c"]


def test_what_a_report_tells_is_kept_until_the_ledger_is_closed(root: Path) -> None:
    files = OrderedFiles()
    ledger = open_ledger(root, files=files, options=SMALL)
    with ledger.lock(1) as writer:
        writer.catch_up(None)
        group = writer.group()
        group.add(batch("a"))
        files.fail("create", 28)
        group.commit()

    report = ledger.reports[0]
    assert isinstance(report, RollFailed)
    assert (report.segment, report.reason) == (f"log/{1:020d}.jsonl", "disk_full")
    assert live_path(ledger).exists()
