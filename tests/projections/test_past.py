"""Copies of the past: made once, shared, bounded, never half there, gone when they are erased."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Event as ProcessEvent
from pathlib import Path
from typing import Final

import pytest

from ledger import OsFiles
from projections.connection import DAMAGE_ERRORS, Connection
from projections.errors import PastBusyError
from projections.past import Key, PastCopies, erase_past

GENERATION: Final = "g000001-" + "a" * 16
TEXT: Final = "the heron password is teal"
_WAIT_S: Final = 30.0

processes = multiprocessing.get_context("fork")


class TooLongError(Exception):
    """Nothing came of waiting."""


def key(seq: int, *, redaction: int = 0, generation: str = GENERATION) -> Key:
    return Key(seq=seq, redaction=redaction, generation=generation)


def patience() -> Callable[[float], None]:
    deadline = time.monotonic() + _WAIT_S

    def pause(seconds: float) -> None:
        if time.monotonic() > deadline:
            raise TooLongError
        time.sleep(seconds)

    return pause


class Maker:
    """Fills copies with a text and counts them."""

    def __init__(self, rows: int = 1) -> None:
        self.made = 0
        self.rows = rows

    def __call__(self, database: Path, tick: Callable[[], None]) -> None:
        tick()
        self.made += 1
        connection = Connection(database, building=True)
        try:
            connection.execute("CREATE TABLE notes(text TEXT)")
            rows = ((f"{TEXT} {number}",) for number in range(self.rows))
            connection.executemany("INSERT INTO notes VALUES(?)", rows)
        finally:
            connection.close()


@pytest.fixture
def projections(tmp_path: Path) -> Path:
    return tmp_path / "projections"


@pytest.fixture
def maker() -> Maker:
    return Maker()


def copies(projections: Path, **bounds: int) -> PastCopies:
    return PastCopies(projections, OsFiles(), **bounds)


def names(projections: Path) -> set[str]:
    folder = projections / "past"
    return {path.name for path in folder.iterdir() if path.is_dir()} if folder.is_dir() else set()


def read(from_: PastCopies, which: Key, fill: Maker) -> int:
    with from_.open(which, fill, patience()) as connection:
        count = connection.integer("SELECT count(*) FROM notes")
    assert count is not None
    return count


# ---------------------------------------------------------------------------- made once


def test_a_copy_is_made_by_who_asks_first_and_found_by_all_others(
    projections: Path, maker: Maker
) -> None:
    for _ in range(3):
        assert read(copies(projections), key(7), maker) == 1

    assert maker.made == 1
    assert names(projections) == {key(7).name}


def test_copies_and_their_folders_are_their_owner_s_alone(projections: Path, maker: Maker) -> None:
    read(copies(projections), key(7), maker)

    for path in (projections / "past").rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.parametrize(
    "other", [key(8), key(7, redaction=9), key(7, generation="g000002-" + "b" * 16)]
)
def test_another_position_redaction_or_generation_is_another_copy(
    projections: Path, maker: Maker, other: Key
) -> None:
    read(copies(projections), key(7), maker)
    read(copies(projections), other, maker)

    assert maker.made == 2


def test_a_copy_whose_making_fails_is_not_there_and_is_made_by_the_next(
    projections: Path, maker: Maker
) -> None:
    def fail(database: Path, _tick: Callable[[], None]) -> None:
        database.write_bytes(TEXT.encode())
        raise ZeroDivisionError

    kept = copies(projections)
    with pytest.raises(ZeroDivisionError), kept.open(key(7), fail, patience()):
        pass

    assert names(projections) == set()
    assert read(kept, key(7), maker) == 1


def test_what_a_killed_maker_left_is_removed_by_the_next(projections: Path, maker: Maker) -> None:
    begun = processes.Event()
    child = processes.Process(target=_begin_and_hang, args=(projections, begun))
    child.start()
    assert begun.wait(_WAIT_S)
    assert child.pid is not None
    left = names(projections)
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    assert len(left) == 1

    assert read(copies(projections), key(8), maker) == 1
    assert names(projections) == {key(8).name}


def _begin_and_hang(projections: Path, begun: ProcessEvent) -> None:
    def fill(_database: Path, _tick: Callable[[], None]) -> None:
        begun.set()
        signal.pause()

    with copies(projections).open(key(7), fill, patience()):
        pass


def test_processes_that_ask_at_once_wait_for_one_of_them(projections: Path) -> None:
    made, go = projections.parent / "made", processes.Event()
    children = [
        processes.Process(target=_make_noted, args=(projections, made, go)) for _ in range(4)
    ]
    for child in children:
        child.start()
    go.set()
    for child in children:
        child.join(_WAIT_S)

    assert [child.exitcode for child in children] == [0] * 4
    assert made.read_text() == "made\n"


def _make_noted(projections: Path, made: Path, go: ProcessEvent) -> None:
    def fill(database: Path, tick: Callable[[], None]) -> None:
        with made.open("a") as file:
            file.write("made\n")
        Maker()(database, tick)

    go.wait(_WAIT_S)
    with copies(projections).open(key(7), fill, patience()) as connection:
        assert connection.integer("SELECT count(*) FROM notes") == 1


def test_who_will_not_wait_for_another_maker_gives_up(projections: Path, maker: Maker) -> None:
    with being_made(projections) as finish:

        def give_up(_seconds: float) -> None:
            raise TooLongError

        with pytest.raises(TooLongError), copies(projections).open(key(8), maker, give_up):
            pass
        finish()


@contextmanager
def being_made(projections: Path, which: Key | None = None) -> Iterator[Callable[[], None]]:
    """Keep a copy in the making on another thread until the block ends or says `finish`."""
    begun, finished = threading.Event(), threading.Event()
    maker = Maker()

    def fill(database: Path, tick: Callable[[], None]) -> None:
        begun.set()
        if not maker.made:
            while not finished.is_set():
                tick()
                time.sleep(0.001)
        maker(database, tick)

    def make() -> None:
        with copies(projections).open(which or key(7), fill, patience()):
            pass

    thread = threading.Thread(target=make)
    thread.start()
    assert begun.wait(_WAIT_S)
    try:
        yield finished.set
    finally:
        finished.set()
        thread.join(_WAIT_S)
        assert not thread.is_alive()


# ---------------------------------------------------------------------------- bounds


def test_the_copy_read_last_is_the_last_to_go(projections: Path, maker: Maker) -> None:
    kept = copies(projections, copies_max=2)
    for seq in (1, 2):
        read(kept, key(seq), maker)
        _age(projections, key(seq), seconds=10 - seq)
    read(kept, key(1), maker)

    read(kept, key(3), maker)

    assert names(projections) == {key(1).name, key(3).name}


def _age(projections: Path, which: Key, *, seconds: float) -> None:
    path = projections / "past" / which.name / "IN_USE"
    moment = time.time() - seconds  # noqa: TID251 - a file's time is the machine's
    os.utime(path, (moment, moment))


def test_all_copies_together_take_so_many_bytes_at_most(projections: Path) -> None:
    maker = Maker(rows=2_000)
    read(copies(projections), key(1), maker)
    size = (projections / "past" / key(1).name / "memory.db").stat().st_size
    kept = copies(projections, bytes_max=2 * size)

    for seq in (2, 3, 4):
        read(kept, key(seq), maker)

    assert len(names(projections)) == 2


def test_a_copy_larger_than_all_may_be_stays_until_the_next(
    projections: Path, maker: Maker
) -> None:
    kept = copies(projections, bytes_max=1)
    read(kept, key(1), maker)
    assert names(projections) == {key(1).name}

    read(kept, key(2), maker)
    assert names(projections) == {key(2).name}


def test_what_is_read_is_not_removed_meanwhile_and_goes_with_the_next(
    projections: Path, maker: Maker
) -> None:
    kept, others = copies(projections, copies_max=1), copies(projections, copies_max=1)
    with kept.open(key(1), maker, patience()) as connection:
        read(others, key(2), maker)
        assert connection.integer("SELECT count(*) FROM notes") == 1
        assert names(projections) == {key(1).name, key(2).name}

    read(others, key(3), maker)
    assert names(projections) == {key(3).name}


def test_copies_of_before_a_redaction_and_of_another_generation_go_with_the_next(
    projections: Path, maker: Maker
) -> None:
    kept = copies(projections)
    read(kept, key(1), maker)
    read(kept, key(2, generation="g000002-" + "b" * 16), maker)
    read(kept, key(3), maker)

    read(kept, key(3, redaction=9), maker)

    assert names(projections) == {key(3, redaction=9).name}


# ---------------------------------------------------------------------------- erasing


def test_erasing_removes_every_copy_and_overwrites_its_bytes(
    projections: Path, maker: Maker, tmp_path: Path
) -> None:
    for seq in (1, 2):
        read(copies(projections), key(seq), maker)
    kept = tmp_path / "kept.db"
    os.link(projections / "past" / key(1).name / "memory.db", kept)
    assert TEXT.encode() in kept.read_bytes()

    assert erase_past(projections) == 2

    assert names(projections) == set()
    assert set(kept.read_bytes()) == {0}


def test_what_is_evicted_is_overwritten_too(
    projections: Path, maker: Maker, tmp_path: Path
) -> None:
    kept = copies(projections, copies_max=1)
    read(kept, key(1), maker)
    os.link(projections / "past" / key(1).name / "memory.db", tmp_path / "kept.db")
    read(kept, key(2), maker)

    assert set((tmp_path / "kept.db").read_bytes()) == {0}


def test_erasing_where_there_is_nothing_does_nothing(projections: Path) -> None:
    assert erase_past(projections) == 0
    assert not projections.exists()


def test_a_copy_in_the_making_is_given_up_and_made_anew(projections: Path) -> None:
    with being_made(projections):
        erase_past(projections)
    assert names(projections) == {key(7).name}


def test_erasing_gives_up_on_a_maker_that_does_not_stop(projections: Path, maker: Maker) -> None:
    begun, finished = threading.Event(), threading.Event()

    def fill(database: Path, tick: Callable[[], None]) -> None:
        begun.set()
        finished.wait(_WAIT_S)
        maker(database, lambda: None)
        del tick

    def make() -> None:
        with copies(projections).open(key(7), fill, patience()):
            pass

    thread = threading.Thread(target=make)
    thread.start()
    assert begun.wait(_WAIT_S)
    with pytest.raises(PastBusyError, match="does not stop"):
        erase_past(projections, wait_s=0)
    finished.set()
    thread.join(_WAIT_S)
    assert not thread.is_alive()


def test_who_reads_a_copy_that_is_erased_can_tell(projections: Path) -> None:
    maker = Maker(rows=200_000)
    kept = copies(projections)
    with kept.open(key(1), maker, patience()) as connection:
        assert connection.integer("SELECT count(*) FROM notes WHERE rowid < 9") == 8
        erase_past(projections)
        assert not kept.is_there(key(1))
        with pytest.raises(DAMAGE_ERRORS):
            connection.integer("SELECT count(*) FROM notes WHERE text LIKE '%nothing%'")


def test_a_copy_that_is_damaged_is_dropped_and_made_anew(projections: Path, maker: Maker) -> None:
    kept = copies(projections)
    read(kept, key(1), maker)
    (projections / "past" / key(1).name / "memory.db").write_bytes(b"x" * 8192)
    with pytest.raises(DAMAGE_ERRORS):
        read(kept, key(1), maker)

    kept.drop(key(1), patience())

    assert read(kept, key(1), maker) == 1


@pytest.mark.parametrize("lost", ["memory.db", "IN_USE"])
def test_a_copy_with_a_file_missing_is_made_anew(
    projections: Path, maker: Maker, lost: str
) -> None:
    kept = copies(projections)
    read(kept, key(1), maker)
    (projections / "past" / key(1).name / lost).unlink()

    assert read(kept, key(1), maker) == 1
    assert maker.made == 2


# ---------------------------------------------------------------------------- read-only stores


def test_copies_of_a_store_that_may_not_be_written_to_are_this_process_s_alone(
    maker: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    kept = PastCopies(None, OsFiles())
    assert read(kept, key(1), maker) == 1
    assert read(kept, key(1), maker) == 1
    assert maker.made == 1
    assert len(list(tmp_path.iterdir())) == 1

    kept.close()
    kept.close()

    assert list(tmp_path.iterdir()) == []
