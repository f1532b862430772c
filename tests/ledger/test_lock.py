"""The lock: one writer, over threads and processes."""

import errno
import multiprocessing
import os
import threading
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnContext
from pathlib import Path

import pytest

from ledger import (
    LedgerForkedError,
    LedgerOptions,
    LedgerReadOnlyError,
    LockTimeoutError,
    OsFiles,
    verify,
)
from ledger.lock import FileLock
from tests.support.ledgers import OrderedFiles, append_each, contents, open_ledger, to_be_closed


def new_lock(path: Path, files: OsFiles | None = None) -> FileLock:
    return to_be_closed(FileLock(path, files or OsFiles()))


def test_a_second_holder_waits_until_the_deadline(tmp_path: Path) -> None:
    one, two = new_lock(tmp_path / "LOCK"), new_lock(tmp_path / "LOCK")
    one.acquire(0)

    for timeout_s in (0, 0.01):
        with pytest.raises(LockTimeoutError) as caught:
            two.acquire(timeout_s)
        assert caught.value.timeout_s == timeout_s
    with pytest.raises(LockTimeoutError):
        one.acquire(0)

    one.release()
    two.acquire(0)
    two.release()
    two.close()
    two.close()
    two.acquire(0)


def test_a_waiting_thread_gets_the_lock_when_it_is_free(tmp_path: Path) -> None:
    lock = new_lock(tmp_path / "LOCK")
    other = new_lock(tmp_path / "LOCK")
    lock.acquire(0)
    got = threading.Event()

    def wait() -> None:
        other.acquire(30)
        got.set()

    thread = threading.Thread(target=wait)
    thread.start()
    lock.release()

    assert got.wait(30)
    thread.join(30)


def test_a_lock_file_that_was_replaced_is_locked_under_its_new_inode(tmp_path: Path) -> None:
    path = tmp_path / "LOCK"
    one, two = new_lock(path), new_lock(path)
    one.acquire(0)
    one.release()
    path.unlink()
    two.acquire(0)

    with pytest.raises(LockTimeoutError):
        one.acquire(0)

    two.release()
    one.acquire(0)
    path.unlink()
    one.release()
    one.acquire(0)
    assert path.exists()


def test_a_lock_that_cannot_be_opened_or_locked_refuses(tmp_path: Path) -> None:
    files = OrderedFiles()
    lock = new_lock(tmp_path / "LOCK", files)
    files.fail("open_lock", errno.EROFS)
    with pytest.raises(LedgerReadOnlyError) as caught:
        lock.acquire(0)
    assert caught.value.reason == "read_only"

    class NoLocks(OsFiles):
        def flock(self, fd: int, operation: int) -> None:
            raise OSError(errno.ENOLCK, f"no locks on {fd}: {operation}")

    with pytest.raises(LedgerReadOnlyError):
        new_lock(tmp_path / "LOCK", NoLocks()).acquire(0)
    lock.acquire(0)


def test_the_mark_is_seen_by_every_holder_even_as_root(tmp_path: Path) -> None:
    one, two = new_lock(tmp_path / "LOCK"), new_lock(tmp_path / "LOCK")
    one.acquire(0)
    assert not one.marked
    one.mark()
    one.release()

    two.acquire(0)
    assert two.marked
    two.unmark()
    assert not two.marked
    two.release()


def test_a_lock_made_by_another_process_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = new_lock(tmp_path / "LOCK")
    monkeypatch.setattr(os, "getpid", lambda: -1)

    with pytest.raises(LedgerForkedError):
        lock.acquire(0)


def test_a_ledger_is_not_usable_after_a_fork(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "l")
    append_each(ledger, "one")
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()

    def child() -> None:
        try:
            with ledger.lock(0):
                queue.put("locked")
        except LedgerForkedError:
            queue.put("refused")

    process = context.Process(target=child)
    process.start()
    assert queue.get() == "refused"
    process.join(30)


def append_many(root: str, name: str, count: int, segment_bytes_max: int) -> None:
    options = LedgerOptions(segment_bytes_max=segment_bytes_max)
    ledger = open_ledger(Path(root), options=options)
    known = None
    for number in range(count):
        known = append_each(ledger, f"{name}{number}", known=known)


@pytest.fixture(scope="module")
def spawning() -> SpawnContext:
    """The making of processes; its helper, once started, stays as long as this process."""
    resource_tracker.ensure_running()
    return multiprocessing.get_context("spawn")


@pytest.mark.guarantee("G-MANY-1")
def test_processes_that_append_at_once_lose_and_double_nothing(
    tmp_path: Path, spawning: SpawnContext
) -> None:
    root = str(tmp_path / "l")
    names = ["a", "b", "c"]
    processes = [
        spawning.Process(target=append_many, args=(root, name, 15, 5000)) for name in names
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0, 0, 0]

    found = contents(open_ledger(Path(root)))

    assert sorted(found) == sorted(f"{name}{number}" for name in names for number in range(15))
    for name in names:
        mine = [text for text in found if text.startswith(name)]
        assert mine == [f"{name}{number}" for number in range(15)]
    assert verify(Path(root)).ok
