"""A home whose projections a newer program has made."""

from pathlib import Path

import pytest

from projections.connection import Connection
from server.errors import OutdatedError
from tests.support.cli import Shell
from tests.support.store import Home


def files(home: Path) -> dict[str, bytes]:
    """Return what the ledger and the projections are made of, but for empty files and indexes."""
    return {
        str(path): path.read_bytes()
        for folder in ("ledger", "projections")
        for path in (home / folder).rglob("*")
        if path.is_file() and path.name not in {"REBUILD", "memory.db-shm", "memory.db-wal"}
    }


@pytest.mark.guarantee("G-TABLES-4")
def test_what_a_newer_program_made_is_neither_read_nor_replaced(home: Home, cli: Shell) -> None:
    home.open().add("heron one")
    home.close()
    connection = Connection(home.database)
    connection.execute("UPDATE projector SET version = version + 1 WHERE name = 'memories'")
    connection.close()
    before = files(home.path)

    client = home.open()
    for use in (
        lambda: client.search("heron"),
        client.inspect,
        lambda: client.add("heron two"),
        client.health,
    ):
        with pytest.raises(OutdatedError, match="newer"):
            use()
    home.close()
    for words in (("rebuild",), ("verify",), ("digest",), ("search", "heron"), ("add", "x")):
        finished = cli(*words)
        assert finished.status in {2, 4}, words
        assert "newer" in finished.err

    assert files(home.path) == before
