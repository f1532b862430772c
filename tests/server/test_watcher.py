"""What is watched is told of once a change of it can be read, and the thread lives no longer."""

import threading
from collections.abc import Iterator

import pytest

from server.errors import BusyError
from server.tool import Call
from server.watcher import Watch, Watcher

HANG_SECONDS = 60.0


class Shelf:
    """Some texts, a position that moves with every change, and what was told."""

    def __init__(self) -> None:
        self.position = 0
        self.texts = {"a": "one", "b": "two"}
        self.told: list[str] = []
        self.reads: list[str] = []
        self.logged: list[str] = []
        self.fault: Exception | None = None
        self.watcher = Watcher(self._at, log=self.logged.append)

    def _at(self, _: Call) -> int:
        if isinstance(self.fault, BusyError):
            raise self.fault
        return self.position

    def put(self, name: str, text: str) -> None:
        self.texts[name] = text
        self.position += 1

    def watch(self, name: str) -> Watch:
        def read(call: Call) -> str:
            call.check()
            self.reads.append(name)
            if self.fault is not None:
                raise self.fault
            return self.texts[name]

        watch = Watch(read, lambda: self.told.append(name))
        self.watcher.look(watch, Call())
        return watch


class Still(Watcher):
    """A watcher whose rounds are run by hand."""

    def _loop(self) -> None:
        pass


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    shelf = Shelf()
    shelf.watcher = Still(shelf._at, log=shelf.logged.append)
    yield shelf
    shelf.watcher.close(HANG_SECONDS)


def test_only_what_changed_is_told_and_once(shelf: Shelf) -> None:
    shelf.watcher.add(shelf.watch("a"), shelf.watch("b"))
    shelf.put("b", "three")

    shelf.watcher.run_once()
    shelf.watcher.run_once()

    assert shelf.told == ["b"]


def test_a_change_between_the_first_look_and_the_watching_is_told(shelf: Shelf) -> None:
    watch = shelf.watch("a")
    shelf.put("a", "changed")

    shelf.watcher.add(watch)
    shelf.watcher.run_once()

    assert shelf.told == ["a"]


def test_nothing_is_read_while_the_store_stands(shelf: Shelf) -> None:
    shelf.watcher.add(shelf.watch("a"))
    shelf.reads.clear()

    shelf.watcher.run_once()

    assert shelf.reads == []


def test_what_is_dropped_is_neither_read_nor_told(shelf: Shelf) -> None:
    watch = shelf.watch("a")
    shelf.watcher.add(watch)
    shelf.watcher.drop(watch)
    shelf.watcher.drop(watch)
    shelf.reads.clear()
    shelf.put("a", "changed")

    shelf.watcher.run_once()

    assert (shelf.reads, shelf.told) == ([], [])


def test_what_is_dropped_while_it_is_read_is_not_told(shelf: Shelf) -> None:
    watch = shelf.watch("a")
    shelf.watcher.add(watch)
    read = watch.read

    def drop_and_read(call: Call) -> str:
        shelf.watcher.drop(watch)
        return read(call)

    watch.read = drop_and_read
    shelf.put("a", "changed")

    shelf.watcher.run_once()

    assert shelf.told == []


def test_what_cannot_be_read_now_is_told_when_it_can(shelf: Shelf) -> None:
    shelf.watcher.add(shelf.watch("a"))
    shelf.put("a", "changed")
    shelf.fault = BusyError("later")
    shelf.watcher.run_once()
    shelf.fault = None

    shelf.watcher.run_once()

    assert shelf.told == ["a"]


def test_one_reading_that_is_refused_keeps_nobody_else_waiting(shelf: Shelf) -> None:
    broken = Watch(lambda _: shelf.texts["a"], lambda: shelf.told.append("never"))
    shelf.watcher.look(broken, Call())

    def refuse(_: Call) -> str:
        raise BusyError("for ever")

    broken.read = refuse
    shelf.watcher.add(broken, shelf.watch("b"))
    shelf.put("b", "changed")

    shelf.watcher.run_once()

    assert shelf.told == ["b"]


def test_what_cannot_be_read_cannot_be_looked_at(shelf: Shelf) -> None:
    shelf.fault = BusyError("not now")

    with pytest.raises(BusyError):
        shelf.watch("a")


# ---------------------------------------------------------------------------- the thread


class Running(Shelf):
    """A shelf whose watcher has its thread; `wait` waits until something was told."""

    def __init__(self) -> None:
        super().__init__()
        self._event = threading.Event()

    def wait(self) -> list[str]:
        assert self._event.wait(HANG_SECONDS)
        self._event.clear()
        return self.told

    def watch(self, name: str) -> Watch:
        watch = super().watch(name)
        tell = watch.tell

        def tell_and_wake() -> None:
            tell()
            self._event.set()

        watch.tell = tell_and_wake
        return watch


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "watch"]


def test_a_write_is_told_by_a_thread_that_ends_with_the_last_watch() -> None:
    shelf = Running()
    assert threads() == []
    watch = shelf.watch("a")
    shelf.watcher.add(watch)
    (thread,) = threads()
    shelf.put("a", "changed")
    shelf.watcher.note_write()
    assert shelf.wait() == ["a"]

    shelf.watcher.drop(watch)

    thread.join(HANG_SECONDS)
    assert not thread.is_alive()


def test_a_watch_after_the_last_one_starts_a_thread_again() -> None:
    shelf = Running()
    watch = shelf.watch("a")
    shelf.watcher.add(watch)
    (thread,) = threads()
    shelf.watcher.drop(watch)
    thread.join(HANG_SECONDS)

    shelf.watcher.add(watch)
    shelf.put("a", "changed")
    shelf.watcher.note_write()

    assert shelf.wait() == ["a"]
    shelf.watcher.close(HANG_SECONDS)
    assert threads() == []


def test_a_write_of_somebody_else_is_noticed_without_being_noted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("server.watcher.LOOK_S", 0.001)
    shelf = Running()
    looks = threading.Semaphore(0)

    def position(_: Call) -> int:
        looks.release()
        return shelf.position

    shelf.watcher._position = position
    shelf.watcher.add(shelf.watch("a"))
    for _ in range(3):  # the first look, the one at the beginning, and one because time has passed
        assert looks.acquire(timeout=HANG_SECONDS)

    shelf.put("a", "changed elsewhere")

    assert shelf.wait() == ["a"]
    shelf.watcher.close(HANG_SECONDS)


def test_a_reading_that_fails_is_logged_and_the_thread_goes_on() -> None:
    shelf = Running()
    shelf.watcher.add(shelf.watch("a"))
    shelf.fault = ZeroDivisionError("boom")
    logged = threading.Semaphore(0)

    def log(text: str) -> None:
        shelf.logged.append(text)
        logged.release()

    shelf.watcher._log = log
    shelf.put("a", "changed")
    shelf.watcher.note_write()
    assert logged.acquire(timeout=HANG_SECONDS)
    shelf.fault = None

    shelf.put("a", "changed again")
    shelf.watcher.note_write()

    assert shelf.wait() == ["a"]
    assert "boom" in shelf.logged[0]
    shelf.watcher.close(HANG_SECONDS)


def test_closing_interrupts_a_reading_and_lets_nothing_start_again() -> None:
    reading, finish = threading.Event(), threading.Event()
    slow = [False]

    def read(call: Call) -> str:
        if slow[0]:
            reading.set()
            with call.on_cancel(finish.set):
                finish.wait()
            call.check()
        return "text"

    position = iter(range(10))
    watcher = Watcher(lambda _: next(position), log=lambda _: None)
    watch = Watch(read, lambda: None)
    watcher.look(watch, Call())
    slow[0] = True
    watcher.add(watch)
    assert reading.wait(HANG_SECONDS)

    watcher.close(HANG_SECONDS)
    watcher.add(watch)

    assert threads() == []
