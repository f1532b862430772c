"""A home and a client of its own for every case."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.store import Client, Home, home_at, live_digest, replayed_digest


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with home_at(tmp_path / "home") as home:
        yield home


@pytest.fixture
def client(home: Home, tmp_path: Path) -> Iterator[Client]:
    """A client; after the case its store must verify and equal a rebuild."""
    client = home.open()
    yield client
    home.close()
    client = home.open()
    assert live_digest(client).text() == replayed_digest(client, tmp_path / "replayed.db").text()
    assert home.verify().problems == []
