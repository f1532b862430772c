"""A home and a client of its own for every case, and each way in to a home."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases.ways import WAYS, CommandHost, Run, Way, command_host
from tests.support.store import MEMORY_DISK, Client, Home, home_at, live_digest, replayed_digest


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder where a sync costs little: what a case is about is seldom the disk."""
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK) as name:
        yield Path(name)


@pytest.fixture
def home(folder: Path) -> Iterator[Home]:
    with home_at(folder / "home") as home:
        yield home


@pytest.fixture
def client(home: Home) -> Iterator[Client]:
    """A client; after the case its store must verify and equal a rebuild."""
    client = home.open()
    yield client
    home.close()
    _assert_sound(home)


@pytest.fixture(scope="session")
def host() -> Iterator[CommandHost]:
    with command_host() as host:
        yield host


@pytest.fixture
def run(host: CommandHost, home: Home) -> Run:
    """The command line on the home of the test."""
    return lambda *arguments: host.run(home.path, *arguments)


@pytest.fixture(params=WAYS, ids=lambda name: name.replace(" ", "-"))
def way(
    request: pytest.FixtureRequest,
    host: CommandHost,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Way]:
    """A way in; after the case its store must verify and equal a rebuild."""
    monkeypatch.setenv("MNEMOLOG_HOME", str(folder / "home"))
    with WAYS[request.param](host, folder / "home") as way:
        yield way
    with home_at(folder / "home") as home:
        _assert_sound(home)


def _assert_sound(home: Home) -> None:
    client = home.open()
    replayed = replayed_digest(client, home.path / "replayed.db")
    assert live_digest(client).text() == replayed.text()
    assert home.verify().problems == []
