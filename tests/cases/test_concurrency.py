"""W: several processes on one store, searches beside a held lock, and the write-ahead log."""

import multiprocessing
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnContext
from pathlib import Path
from typing import Final

import pytest

from projections.connection import Connection
from server.bootstrap import Store
from server.commands import AddArgs, SearchArgs
from server.config import Config
from server.errors import StoreError
from server.results import HealthResult
from server.tool import Call
from server.upkeep import WAL_BYTES_MAX, WAL_BYTES_PINNED
from tests.crash.harness import assert_sound, code, contents, run, serving
from tests.support.peer import HANG_SECONDS
from tests.support.store import MEMORY_DISK, Client, Home, home_at

EACH: Final = 200
IN_TURN: Final = 300
SEARCHES: Final = 2_000
PINNED_WRITES: Final = 2_500


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder for a home where syncs are quick."""
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK) as folder:
        yield Path(folder).resolve() / "home"


@pytest.fixture
def home(place: Path) -> Iterator[Home]:
    with home_at(place) as home:
        yield home


@pytest.fixture(scope="module")
def spawning() -> SpawnContext:
    """The making of processes; its helper, once started, stays as long as this process."""
    resource_tracker.ensure_running()
    return multiprocessing.get_context("spawn")


def add(store: Store, content: str) -> None:
    store.app.add(AddArgs(content=content, layer="semantic"), Call(actor_name="loop"))


def add_and_search(home: str, name: str, rounds: int) -> None:
    """Do what a program does that has the store open as a library; any refusal ends it."""
    store = Store(Config(home=Path(home)))
    store.upkeep.start()
    for number in range(rounds):
        add(store, f"{name} saw the ferry {number}")
        found = store.app.search(SearchArgs(query="ferry", limit=1), Call())
        assert found.memories
    store.upkeep.stop(HANG_SECONDS)
    store.close()


def open_for_each(home: str, name: str, rounds: int) -> None:
    """Store memories as short-lived programs do, each of which opens and closes the store."""
    for number in range(rounds):
        store = Store(Config(home=Path(home)))
        add(store, f"{name} saw the ferry {number}")
        store.close()


def serve_and_search(home: Path, name: str, rounds: int) -> None:
    with serving(home) as server:
        for number in range(rounds):
            assert code(server.add(f"{name} saw the ferry {number}")) == ""
            assert server.call("memory_search", query="ferry", limit=1)["memories"]
        server.close_input()
        assert server.exit_status() == 0


def assert_all_there(home: Path, names: tuple[str, ...], rounds: int) -> None:
    """Everything was stored once, in a sequence without gap, and a rebuild says the same."""
    written = contents(home)
    wanted = {f"{name} saw the ferry {number}" for name in names for number in range(rounds)}
    assert written.counts == dict.fromkeys(wanted, 1)
    assert written.seqs == list(range(1, len(written.seqs) + 1))
    rebuilt = run(home, "rebuild")
    assert "before: the same digests" in rebuilt.stdout, rebuilt.stdout + rebuilt.stderr
    assert_sound(home)


@pytest.mark.guarantee("G-MANY-1")
@pytest.mark.slow
def test_w1_four_processes_store_and_search_at_once_and_none_hears_of_a_lock(
    place: Path, spawning: SpawnContext
) -> None:
    loops = [
        spawning.Process(target=add_and_search, args=(str(place), name, EACH))
        for name in ("loop one", "loop two")
    ]
    for process in loops:
        process.start()
    with ThreadPoolExecutor(2) as threads:
        servers = [
            threads.submit(serve_and_search, place, name, EACH)
            for name in ("server one", "server two")
        ]
        for served in servers:
            served.result()
    for process in loops:
        process.join(HANG_SECONDS)

    assert [process.exitcode for process in loops] == [0, 0]
    assert_all_there(place, ("loop one", "loop two", "server one", "server two"), EACH)


@pytest.mark.guarantee("G-MANY-1")
@pytest.mark.slow
def test_w2_a_long_lived_process_and_many_short_ones_count_in_one_sequence(
    place: Path, spawning: SpawnContext
) -> None:
    short = spawning.Process(target=open_for_each, args=(str(place), "short", IN_TURN))
    short.start()
    with serving(place) as server:
        for number in range(IN_TURN):
            assert code(server.add(f"long saw the ferry {number}")) == ""
        short.join(HANG_SECONDS)
        assert short.exitcode == 0
        assert server.total() == 2 * IN_TURN

    assert_all_there(place, ("long", "short"), IN_TURN)


@pytest.mark.guarantee("G-MANY-2")
def test_w3_searches_are_answered_while_the_lock_is_held(home: Home) -> None:
    memory_id = home.open().add("the ferry is late").id
    client = home.reopened()
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with other.ledger.lock(HANG_SECONDS):
            held.set()
            done.wait(HANG_SECONDS)

    other = Store(Config(home=home.path))
    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert held.wait(HANG_SECONDS)
        assert client.found("ferry") == [memory_id]
        assert client.found("ferry", mode="exact") == [memory_id]
        assert client.found("absent") == []
        assert client.content(memory_id) == "the ferry is late"
        impatient = Store(Config(home=home.path, lock_timeout_s=0.1))
        with pytest.raises(StoreError) as refused:
            add(impatient, "not now")
        impatient.close()
    finally:
        done.set()
        holder.join(HANG_SECONDS)
        other.close()
    assert refused.value.code == "busy"


def sizes(home: Home) -> dict[str, int]:
    """Return the size of every file of the ledger and the projections."""
    return {
        str(path): path.stat().st_size
        for folder in ("ledger", "projections")
        for path in (home.path / folder).rglob("*")
        if path.is_file()
    }


@pytest.mark.guarantee("G-QUIET-1")
def test_w3_two_thousand_searches_add_no_event_and_grow_no_file(home: Home) -> None:
    client = home.open()
    for number in range(50):
        client.add(f"the ferry is late again {number}")
    position = client.position()
    client.search("ferry", limit=5)
    before = sizes(home)

    for number in range(SEARCHES):
        assert client.search(f"ferry {number}", limit=5).memories

    assert sizes(home) == before
    assert client.position() == position


def wal_bytes(client: Client) -> int:
    return client.store.reads.current(Call()).wal_bytes()


@pytest.mark.guarantee("G-ROOM-1")
@pytest.mark.slow
def test_w4_a_log_that_a_reader_pins_is_told_and_shrinks_once_the_reader_lets_go(
    home: Home,
) -> None:
    client = home.open()
    client.add("the first ferry")
    client.store.upkeep.start()
    reader = Connection(home.database)
    with reader.transaction(write=False):
        assert reader.value("SELECT count(*) FROM memories") == 1
        for number in range(PINNED_WRITES):
            client.add(f"ferry {number} " + "and the harbour master waited " * 20)
        assert wal_bytes(client) > WAL_BYTES_PINNED
        health = client.call("memory_health", {})
        assert isinstance(health, HealthResult)
        assert health.projections.wal_bytes > WAL_BYTES_PINNED
        assert reader.value("SELECT count(*) FROM memories") == 1
    client.add("the last ferry")
    deadline = time.monotonic() + HANG_SECONDS
    while wal_bytes(client) > WAL_BYTES_MAX and time.monotonic() < deadline:
        client.search("ferry", limit=1)
    reader.close()

    assert wal_bytes(client) <= WAL_BYTES_MAX
    assert client.inspect().total == PINNED_WRITES + 2
