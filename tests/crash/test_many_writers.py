"""Eight servers on one home, and a rebuild that swaps the projections under all of them."""

import signal
import threading
from collections import ChainMap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from server.upkeep import WAL_BYTES_MAX
from tests.crash.harness import (
    Acknowledged,
    Server,
    assert_sound,
    contents,
    end,
    filled,
    generations,
    launch,
    run,
    serving,
    structured,
)
from tests.support.peer import Json, call

WRITERS = 8
WRITES = 1_000
WINDOW = 24
"""Requests of one client that are on their way at once."""

SEARCH_EVERY = 100
REBUILDS_MIN = 3
CREATIONS = 5
STEADY_WRITES = 2_000


def _request(writer: int, number: int) -> Json:
    content = _content(writer, number)
    key = {"idempotency_key": f"{writer}/{number}"} if number % 2 else {}
    return call(number, "memory_add", content=content, layer="episodic", **key)


def _mixed(writer: int, number: int) -> tuple[Json, list[str]]:
    """Return a request, one of eight of another kind, and the contents that it stores."""
    content, file = _content(writer, number), f"log of {writer}.md"
    key = {"idempotency_key": f"{writer}/{number}"} if number % 3 else {}
    match number % 50:
        case 0:
            texts = [f"{content} ({part})" for part in range(3)]
            memories = [{"content": text, "layer": "episodic"} for text in texts]
            return call(number, "memory_add_many", memories=memories, **key), texts
        case 10 | 11:
            fields = {"layer": "episodic", "source_file": file, **key}
            return call(number, "memory_add", content=content, **fields), [content]
        case 20:
            return call(number, "memory_session_start", client=content, **key), []
        case 30:
            names = {"alias": content, "entity_name": f"ferry {writer} {number}"}
            return call(number, "memory_alias", action="add", **names, **key), []
        case 40:
            return call(number, "memory_delete_many", source_file=file, **key), []
        case _:
            return _request(writer, number), [content]


def _content(writer: int, number: int) -> str:
    return f"writer {writer} saw the ferry for the {number}. time"


def _write_all(server: Server, writer: int) -> Acknowledged:
    """Send every write, keeping a window full, and now and then search."""
    told = Acknowledged()
    waiting: dict[object, list[str]] = {}
    sent = searches = 0
    while waiting or sent < WRITES:
        while sent < WRITES and len(waiting) < WINDOW:
            message, waiting[sent] = _mixed(writer, sent)
            server.send(message)
            if sent % SEARCH_EVERY == SEARCH_EVERY - 1:
                server.send(call(f"search {sent}", "memory_search", query="ferry", limit=1))
                searches += 1
            sent += 1
        answer = server.receive()
        said = structured(answer)
        assert "error" not in said, said
        if isinstance(answer["id"], str):
            assert said["memories"], "an empty answer from a store that holds what is asked for"
            searches -= 1
            continue
        told.take(said, waiting.pop(answer["id"]))
    for _ in range(searches):
        assert structured(server.receive())["memories"]
    return told


def _rebuild_until(home: Path, done: threading.Event) -> int:
    count = 0
    while count < REBUILDS_MIN or not done.is_set():
        rebuilt = run(home, "rebuild")
        assert rebuilt.returncode == 0, rebuilt.stdout + rebuilt.stderr
        assert "OTHER digests" not in rebuilt.stdout
        count += 1
    return count


@pytest.mark.guarantee("G-MANY-1")
@pytest.mark.slow
def test_what_eight_processes_write_at_once_is_there_once_while_a_ninth_swaps_projections(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    filled(home, 1)
    done = threading.Event()
    with ThreadPoolExecutor(WRITERS + 1) as threads:
        servers = [threads.submit(_serve_and_write, home, writer) for writer in range(WRITERS)]
        rebuilds = threads.submit(_rebuild_until, home, done)
        try:
            told = [server.result() for server in servers]
        finally:
            done.set()
        assert rebuilds.result() >= REBUILDS_MIN
    written = contents(home)
    acknowledged = ChainMap(*(one.ids for one in told))
    assert len(acknowledged) > WRITERS * WRITES * 0.9
    assert {text: id_ for text, id_ in written.ids.items() if text.startswith("writer")} == dict(
        acknowledged
    )
    assert written.deleted == {id_ for one in told for id_ in one.deleted}
    assert sorted(written.sessions) == sorted(id_ for one in told for id_ in one.sessions)
    assert sorted(written.aliases) == sorted(name for one in told for name in one.aliases)
    assert written.deleted
    assert len(written.sessions) == len(written.aliases) == WRITERS * WRITES // 50
    assert set(written.counts.values()) == {1}
    assert written.seqs == list(range(1, len(written.seqs) + 1))
    assert_sound(home)
    assert run(home, "rebuild").returncode == 0
    assert len(generations(home)) == 1


@pytest.mark.guarantee("G-MANY-1")
@pytest.mark.crash
@pytest.mark.slow
def test_eight_processes_that_find_no_home_make_one_between_them(tmp_path: Path) -> None:
    for attempt in range(CREATIONS):
        home = tmp_path / f"home {attempt}"
        servers = [launch(home) for _ in range(WRITERS)]
        for number, server in enumerate(servers):
            server.send(call("first", "memory_add", content=str(number), layer="semantic"))
        ids = {structured(server.answer("first"))["id"] for server in servers}
        assert {server.total() for server in servers} == {WRITERS}
        assert {end(server, signal.SIGTERM) for server in servers} == {0}
        written = contents(home)
        assert set(written.ids.values()) == ids
        assert written.counts == {str(number): 1 for number in range(WRITERS)}
        assert_sound(home)


@pytest.mark.guarantee("G-ROOM-1")
@pytest.mark.slow
def test_steady_writing_does_not_let_the_write_ahead_log_grow_without_end(tmp_path: Path) -> None:
    home = tmp_path / "home"
    filled(home, 1)
    largest = 0
    with serving(home) as one, serving(home) as two:
        for number in range(STEADY_WRITES + WINDOW):
            for server in (one, two):
                if number < STEADY_WRITES:
                    server.send(_request(1 + (server is two), number))
                if number >= WINDOW:
                    assert "error" not in structured(server.receive())
            if number % SEARCH_EVERY == 0:
                logs = (home / "projections").glob("*/memory.db-wal")
                largest = max([largest, *(log.stat().st_size for log in logs)])
    assert largest < 4 * WAL_BYTES_MAX


def _serve_and_write(home: Path, writer: int) -> Acknowledged:
    with serving(home) as server:
        acknowledged = _write_all(server, writer)
        server.close_input()
        assert server.exit_status() == 0
        return acknowledged
