"""Faults of mnemon-mcp 1.3.0 that mnemolog does not have, and differences that are of form.

Where mnemon-mcp is installed, each fault is shown on it as well.
"""

import json
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final, Self

import apsw
import pytest

from projections.connection import Connection
from server.errors import InvalidArgumentsError, NotFoundError
from server.results import AddManyResult, AliasResult, ExportResult, HealthResult
from tests.support.mnemon import FORM_DIFFERENCES, mnemon
from tests.support.peer import Json, Peer, call, started
from tests.support.store import Client, Home, flush_substrings, home_at

SMALL: Final = 60
LARGE: Final = 480
GROWTH_MAX: Final = 1.5
"""What the work may grow by while the store grows eightfold, for it not to be linear in size."""

TITLE: Final = {"title": "About the zebra", "content": "It is an animal of the plains"}
CONTENT: Final = {"title": "About the plains", "content": "It is an animal, the zebra"}
FILLER: Final = ("Bread is baked at night", "Tea is served at five", "Snow falls in January")

SHOWN: Final[set[str]] = set()


def shows(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Note which difference a test shows."""
    SHOWN.add(name)
    return lambda test: test


@pytest.fixture
def theirs(tmp_path: Path) -> Iterator[Peer]:
    with mnemon(tmp_path) as peer:
        yield peer


def result(peer: Peer, tool: str, **arguments: object) -> Any:
    answer = peer.ask(call(1, tool, **arguments))["result"]
    assert not answer.get("isError"), answer
    return json.loads(answer["content"][0]["text"])


def ids(reply: Json) -> list[str]:
    return [memory["id"] for memory in reply["memories"]]


# ---------------------------------------------------------------------------- weights


def test_a_match_in_a_title_counts_more_than_one_in_a_content(client: Client) -> None:
    for text in FILLER:
        client.add(text)
    title, content = client.add(layer="semantic", **TITLE).id, client.add(**CONTENT).id

    assert client.found("zebra") == [title, content]


def test_in_theirs_a_match_in_a_title_counts_less(theirs: Peer) -> None:
    for text in FILLER:
        result(theirs, "memory_add", content=text, layer="semantic")
    title, content = (
        result(theirs, "memory_add", layer="semantic", **fields)["id"]
        for fields in (TITLE, CONTENT)
    )

    assert ids(result(theirs, "memory_search", query="zebra")) == [content, title]


# ---------------------------------------------------------------------------- deleting


def test_deleting_needs_no_embedding_provider(client: Client) -> None:
    memory = client.add("Not wanted").id

    assert client.delete(memory).deleted
    assert client.found("wanted") == []


def test_theirs_deletes_and_says_that_it_failed(theirs: Peer) -> None:
    memory = result(theirs, "memory_add", content="Not wanted", layer="semantic")["id"]

    answer = theirs.ask(call(2, "memory_delete", id=memory))["result"]

    assert answer["isError"]
    assert ids(result(theirs, "memory_search", query="wanted")) == []


# ---------------------------------------------------------------------------- work by size


class Work:
    """Counts the steps of SQLite's virtual machine on the connections opened in its block.

    SQLite looks at the count where a program jumps, so it is the loops that are counted.
    """

    def __init__(self) -> None:
        self.steps = 0
        self._connections: list[apsw.Connection] = []

    def __enter__(self) -> Self:
        apsw.connection_hooks.append(self._connections.append)
        return self

    def __exit__(self, *_: object) -> None:
        apsw.connection_hooks.remove(self._connections.append)

    def of(self, run: Callable[[], object]) -> int:
        """Return the steps that something takes on the connections that are open already."""
        before = self.steps
        self._watch(self._step)
        run()
        self._watch(None)
        return self.steps - before

    def _watch(self, step: Callable[[], bool] | None) -> None:
        for connection in self._connections:
            with suppress(apsw.ConnectionClosedError):
                connection.set_progress_handler(step, 1)

    def _step(self) -> bool:
        self.steps += 1
        return False


def filled(client: Client, size: int) -> str:
    """Fill a store; return the id of one of its memories, the only one that holds `needle`."""
    memories = [
        {"content": f"Memory number {number} of the store", "layer": "semantic"}
        for number in range(size)
    ]
    for start in range(0, size, SMALL):
        added = client.call("memory_add_many", {"memories": memories[start : start + SMALL]})
        assert isinstance(added, AddManyResult)
        assert added.refused_count == 0
    return client.add("A needle in the hay").id


def steps_of(size: int, home: Home, run: Callable[[Client, str], object]) -> int:
    with Work() as work:
        client = home.open()
        memory = filled(client, size)
        flush_substrings(client)
        run(client, memory)
        # The second time, what is only done once has been done.
        steps = work.of(lambda: run(client, memory))
        home.close()
    return steps


@pytest.mark.parametrize(
    "run",
    [
        lambda client, memory: client.update(memory, content=f"A needle, {client.position()}"),
        lambda client, _: client.supersede(client.add("A needle").id, "A needle, again"),
        lambda client, _: client.delete(client.add("A needle").id),
        lambda client, _: client.search("needle", mode="exact"),
    ],
    ids=["update", "supersede", "delete", "exact search"],
)
def test_the_work_does_not_grow_with_the_store(
    tmp_path: Path, run: Callable[[Client, str], object]
) -> None:
    with home_at(tmp_path / "small") as small, home_at(tmp_path / "large") as large:
        few, many = steps_of(SMALL, small, run), steps_of(LARGE, large, run)

    assert 0 < many < few * GROWTH_MAX


def their_database(folder: Path, size: int) -> Path:
    folder.mkdir()
    with mnemon(folder) as peer:
        for number in range(size):
            result(peer, "memory_add", content=f"Memory {number} of the store", layer="semantic")
        peer.close_input()
        peer.exit_status()
    return folder / "memory.db"


def test_in_theirs_the_work_of_a_change_grows_with_the_store(tmp_path: Path) -> None:
    steps = []
    for size in (20, 200):
        database = their_database(tmp_path / str(size), size)
        with Work() as work, closing(apsw.Connection(str(database))) as connection:
            memory = connection.execute("SELECT id FROM memories LIMIT 1").get
            change = "UPDATE memories SET stemmed_content = 'needle' WHERE id = ?"
            steps.append(work.of(lambda: connection.execute(change, (memory,))))  # noqa: B023 - run at once

    assert steps[1] > steps[0] * GROWTH_MAX


def test_theirs_has_no_index_of_pieces_of_words(tmp_path: Path) -> None:
    database = their_database(tmp_path / "home", 1)
    with closing(sqlite3.connect(database)) as connection:
        tables = [sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master") if sql]

    assert sum("fts5" in sql for sql in tables) == 1
    assert not any("trigram" in sql for sql in tables)


# ---------------------------------------------------------------------------- durability


def traced(log: Path) -> tuple[str, ...]:
    """Return a command that runs another and notes its syncs; skips where that may not be."""
    program = shutil.which("strace")
    if program is None:
        pytest.skip("strace is not installed")
    if subprocess.run([program, "-qq", "true"], capture_output=True, check=False).returncode:
        pytest.skip("strace may not trace here")
    calls = "trace=fsync,fdatasync,sync_file_range,msync"
    return (program, "-f", "-qq", "-y", "-e", calls, "-o", str(log))


def syncs_of_a_write(peer: Peer, log: Path) -> list[str]:
    """Return the syncs between a request to add and its answer, in a store that is in use."""
    result(peer, "memory_add", content="The first write may start a file", layer="semantic")
    before = len(log.read_text().splitlines())
    result(peer, "memory_add", content="Is it on disk?", layer="semantic")
    return [line for line in log.read_text().splitlines()[before:] if "sync" in line]


@pytest.mark.guarantee("G-ACK-1")
def test_in_a_store_opened_again_a_write_is_synced_before_the_answer(
    home: Home, tmp_path: Path
) -> None:
    home.open().add("The store is there")
    home.close()
    log = tmp_path / "trace"
    command = (
        "env",
        f"MNEMOLOG_HOME={home.path}",
        *traced(log),
        sys.executable,
        "-c",
        "from server.cli import main; main()",
        "serve",
    )

    with started(command=command) as peer:
        syncs = syncs_of_a_write(peer.handshake(), log)
        peer.close_input()
        assert peer.exit_status() == 0

    assert any("/ledger/log/" in sync for sync in syncs), syncs


def test_in_theirs_opened_again_no_write_is_synced(tmp_path: Path) -> None:
    their_database(tmp_path / "home", 1)
    log = tmp_path / "trace"

    with mnemon(tmp_path / "home", prefix=traced(log)) as peer:
        syncs = syncs_of_a_write(peer, log)

    assert syncs == []


# ---------------------------------------------------------------------------- searches


@pytest.mark.guarantee("G-QUIET-1")
def test_a_search_writes_nothing_to_ledger_and_memories(home: Home) -> None:
    client = home.open()
    client.add("What is looked for")
    watcher = Connection(home.database)
    before = watcher.value("PRAGMA data_version"), [path.read_bytes() for path in home.segments]

    for mode in ("fts", "exact"):
        assert client.search("looked", mode=mode).returned_count == 1

    after = watcher.value("PRAGMA data_version"), [path.read_bytes() for path in home.segments]
    client.add("A write is noticed")
    noticed = watcher.value("PRAGMA data_version")
    watcher.close()
    assert after == before
    assert noticed != before[0]


def commits(wal: Path) -> int:
    """Count the commits that a write-ahead log of SQLite holds."""
    data = wal.read_bytes()
    page_bytes, salt = struct.unpack(">8xI4x8s", data[:24])
    frames = range(32, len(data), 24 + page_bytes)
    headers = [struct.unpack(">4xI8s", data[start : start + 16]) for start in frames]
    return sum(pages > 0 and of == salt for pages, of in headers)


def test_theirs_commits_twice_in_a_search(tmp_path: Path, theirs: Peer) -> None:
    result(theirs, "memory_add", content="What is looked for", layer="semantic")
    before = commits(tmp_path / "memory.db-wal")

    result(theirs, "memory_search", query="looked")

    assert commits(tmp_path / "memory.db-wal") - before == 2


# ---------------------------------------------------------------------------- form


@shows("ids")
@shows("times")
@shows("absent fields")
def test_ids_are_short_times_exact_and_what_is_absent_is_left_out(home: Home) -> None:
    client = home.open()
    memory = client.add("A note").id
    export = client.call("memory_export", {"format": "json"})
    assert isinstance(export, ExportResult)

    (exported,) = json.loads(export.content)

    assert re.fullmatch("[a-z2-7]{16}", memory)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", exported["created_at"])
    assert exported["id"] == memory
    assert None not in exported.values()
    assert "title" not in exported


@shows("scores")
@pytest.mark.parametrize("mode", ["fts", "exact"])
def test_scores_fall_and_lie_between_0_and_1(client: Client, mode: str) -> None:
    for share in (0.1, 0.5, 1.0):
        client.add("A note", importance=share)

    scores = [memory.score for memory in client.search("note", mode=mode).memories]

    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)


@shows("errors")
def test_an_error_names_the_field_and_what_is_accepted(client: Client) -> None:
    with client.refused(InvalidArgumentsError, "importance", "at most 1", "2") as refused:
        client.add("A note", importance=2)

    assert refused.value.details["field"] == "importance"
    with client.refused(NotFoundError):
        client.delete("nobody")


@shows("undo")
def test_what_was_deleted_or_cleaned_up_comes_back(home: Home) -> None:
    client = home.open()
    deleted, expired = client.add("Deleted").id, client.add("Expired", ttl_days=1).id
    home.clock.advance(days=2)
    deletion = client.delete(deleted).position
    cleaned = client.call("memory_health", {"cleanup": True})
    assert isinstance(cleaned, HealthResult)
    assert cleaned.cleaned_expired == 1

    client.undo(position=cleaned.position)
    client.undo(position=deletion)

    assert client.content(deleted) == "Deleted"
    assert client.content(expired) == "Expired"


@shows("aliases")
def test_a_name_finds_what_was_stored_under_any_name_of_the_entity(client: Client) -> None:
    long = client.add("Clusters are upgraded in May", entity_name="Kubernetes").id
    short = client.add("Clusters are in Frankfurt", entity_name="k8s").id
    named = client.call(
        "memory_alias", {"action": "add", "alias": "k8s", "entity_name": "Kubernetes"}
    )
    assert isinstance(named, AliasResult)

    for name in ("Kubernetes", "k8s"):
        assert set(client.found("clusters", entity_name=name)) == {long, short}


def test_theirs_finds_by_an_entity_only_what_was_stored_under_its_own_name(tmp_path: Path) -> None:
    with mnemon(tmp_path) as peer:
        text = {"layer": "semantic", "content": "Clusters are upgraded in May"}
        long = result(peer, "memory_add", entity_name="Kubernetes", **text)["id"]
        result(peer, "memory_add", entity_name="k8s", **text)
        with closing(sqlite3.connect(tmp_path / "memory.db")) as connection, connection:
            connection.execute("INSERT INTO entity_aliases VALUES('Kubernetes', 'k8s')")

        for name in ("Kubernetes", "k8s"):
            found = ids(result(peer, "memory_search", query="clusters", entity_name=name))
            assert found == [long]


def test_every_difference_of_form_is_shown() -> None:
    assert {each.name for each in FORM_DIFFERENCES} == SHOWN
