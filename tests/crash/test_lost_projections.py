"""Projections that are deleted or overwritten under running servers."""

import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.crash.harness import (
    Server,
    assert_sound,
    code,
    contents,
    filled,
    generations,
    run,
    serving,
)

MEMORIES = 300
SWAPS = 6
PAGE = 4096


def _delete_folder(home: Path) -> None:
    shutil.rmtree(home / "projections")


def _delete_pointer(home: Path) -> None:
    (home / "projections" / "CURRENT").unlink()


def _delete_generation(home: Path) -> None:
    for name in generations(home):
        shutil.rmtree(home / "projections" / name)


def _delete_database(home: Path) -> None:
    for name in generations(home):
        (home / "projections" / name / "memory.db").unlink()


def _point_nowhere(home: Path) -> None:
    (home / "projections" / "CURRENT").write_text("g000009-aaaaaaaaaaaaaaaa\n")


def _overwrite(home: Path) -> None:
    """Write noise over every page of the database but keep its size."""
    for name in generations(home):
        database = home / "projections" / name / "memory.db"
        size = database.stat().st_size
        descriptor = os.open(database, os.O_WRONLY)
        os.pwrite(descriptor, os.urandom(size - PAGE), PAGE)
        os.close(descriptor)


DAMAGES: list[Callable[[Path], None]] = [
    _delete_folder,
    _delete_pointer,
    _delete_generation,
    _delete_database,
    _point_nowhere,
    _overwrite,
]


def _assert_serves(server: Server, count: int) -> None:
    """Either it answers in full or it says that it rebuilds, and then it answers in full."""
    found = server.call("memory_search", query="harbour", limit=100)
    while code(found) == "rebuilding":
        found = server.call("memory_search", query="harbour", limit=100)
    assert "error" not in found, found
    assert found["returned_count"] == 100
    assert server.total() == count


@pytest.fixture
def home(tmp_path: Path) -> Path:
    filled(tmp_path / "home", MEMORIES)
    return tmp_path / "home"


@pytest.mark.guarantee("G-TABLES-2")
@pytest.mark.crash
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__.strip("_"))
@pytest.mark.parametrize("first", ["read", "write"])
def test_projections_lost_under_two_servers_are_rebuilt_and_never_answer_with_nothing(
    home: Path, damage: Callable[[Path], None], first: str
) -> None:
    with serving(home) as one, serving(home) as two:
        for server in (one, two):
            _assert_serves(server, MEMORIES)
        damage(home)
        count = MEMORIES
        if first == "write":
            said = one.add("a note of the harbour master after the loss")
            while code(said) == "rebuilding":
                said = one.add("a note of the harbour master after the loss")
            assert "error" not in said, said
            count += 1
        for server in (one, two, one, two):
            _assert_serves(server, count)
        for number, server in enumerate((one, two)):
            assert "error" not in server.add(f"note {number} of the harbour master, later")
        for server in (one, two):
            _assert_serves(server, count + 2)
            server.close_input()
            assert server.exit_status() == 0
    with serving(home) as fresh:
        _assert_serves(fresh, count + 2)
    assert_sound(home)


@pytest.mark.crash
def test_swaps_by_two_rebuilds_at_once_never_show_in_an_answer(home: Path) -> None:
    with serving(home) as one, serving(home) as two, ThreadPoolExecutor(2) as threads:
        rebuilds = [threads.submit(run, home, "rebuild") for _ in range(SWAPS)]
        writes = 0
        while not all(rebuild.done() for rebuild in rebuilds):
            for server in (one, two):
                assert "error" not in server.add(f"note {writes} of the harbour master, new")
                writes += 1
                _assert_serves(server, MEMORIES + writes)
        for rebuild in rebuilds:
            assert rebuild.result().returncode == 0, rebuild.result().stderr
    assert len(contents(home).ids) == MEMORIES + writes
    assert run(home, "rebuild").returncode == 0
    assert len(generations(home)) == 1
    assert_sound(home)
