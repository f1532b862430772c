"""Generations: a doubt about one outlives whoever does not settle it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger import OsFiles
from projections.generation import Generations
from server.bootstrap import open_ledger
from server.config import Config
from tests.support.store import Home, home_at


@pytest.fixture
def crashed(tmp_path: Path) -> Iterator[Home]:
    """A home as a killed process leaves it, with a write-ahead log."""
    with home_at(tmp_path / "alive") as alive:
        alive.open().add("heron one")
        shutil.copytree(alive.path, tmp_path / "crashed")
    for shared in (tmp_path / "crashed").glob("projections/*/memory.db-shm"):
        shared.unlink()
    with home_at(tmp_path / "crashed") as home:
        yield home


def generations(home: Home) -> Generations:
    return Generations(home.path / "projections", OsFiles())


def test_a_doubt_that_nobody_settled_is_there_for_the_next(crashed: Home) -> None:
    for _ in range(2):
        generation = generations(crashed).open_current()
        assert generation.is_doubtful
        ledger = open_ledger(Config(home=crashed.path))
        with ledger.lock(0) as writer, generation.changing():
            generation.catch_up(writer)
        ledger.close()
        generation.close()

    client = crashed.open()
    assert len(client.found("heron")) == 1
    client.store.upkeep.run_once()
    crashed.close()
    settled = generations(crashed).open_current()
    assert not settled.is_doubtful
    settled.close()


def test_a_generation_that_is_gone_is_not_as_it_was_found(crashed: Home) -> None:
    crashed.open().search("heron")
    crashed.close()
    frozen = generations(crashed).open_current(frozen=True)
    assert frozen.is_as_found()

    crashed.database.unlink()

    assert not frozen.is_as_found()
    frozen.close()
