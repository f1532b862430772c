"""Deleted tokens leave the text indexes in rounds, whatever is under way or written between."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from projections.connection import Connection
from projections.token_erasing import TokenErasing

INDEXES: Final = {
    "memories_fts": "title, content, entity, content='', contentless_delete=1, tokenize='ascii'",
    "trigrams": "content, content='', contentless_delete=1, detail=none, "
    "tokenize='trigram case_sensitive 1'",
}
SECRET: Final = {"memories_fts": "qzxvjsecret", "trigrams": "жъщ"}
"""A token that nothing else holds; all of it stands in a page, without a shared beginning."""

LETTERS: Final = "abcdefghiklmnoprstu"
ROWS: Final = 300
SECRET_EVERY: Final = 50
"""FTS5 merges by itself once a tenth of a segment is deleted, which is not what is tested."""


@pytest.fixture(name="database", scope="module")
def _database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a database of both indexes in many segments, a few rows with the secret."""
    path = tmp_path_factory.mktemp("tokens") / "base.db"
    path.touch()
    connection = Connection(path)
    for index, columns in INDEXES.items():
        connection.execute(f"CREATE VIRTUAL TABLE {index} USING fts5({columns})")
    draw = random.Random(7)
    for rowid in range(ROWS):
        for index, secret in SECRET.items():
            _insert(
                connection, index, rowid, _text(draw) + (f" {secret}" * (rowid % SECRET_EVERY == 0))
            )
    connection.empty_wal()
    connection.close()
    return path


@pytest.fixture(name="connection")
def _connection(database: Path, tmp_path: Path) -> Iterator[Connection]:
    path = tmp_path / "tokens.db"
    path.write_bytes(database.read_bytes())
    connection = Connection(path)
    yield connection
    connection.close()


def _text(draw: random.Random) -> str:
    return " ".join("".join(draw.choices(LETTERS, k=draw.randint(3, 8))) for _ in range(25))


def _insert(connection: Connection, index: str, rowid: int, text: str) -> None:
    connection.execute(f"INSERT INTO {index}(rowid, content) VALUES(?, ?)", (rowid, text))


def _merge(connection: Connection, index: str, pages: int) -> None:
    connection.execute(f"INSERT INTO {index}({index}, rank) VALUES('merge', ?)", (pages,))


def _forget(connection: Connection) -> None:
    with connection.transaction(write=True):
        for index in INDEXES:
            for rowid in range(0, ROWS, SECRET_EVERY):
                connection.execute(f"DELETE FROM {index} WHERE rowid = ?", (rowid,))


def _held(connection: Connection, index: str) -> int:
    """Return how often the pages of an index hold its secret."""
    secret = SECRET[index].encode()
    blocks = connection.execute(f"SELECT block FROM {index}_data")
    return sum(bytes(block).count(secret) for (block,) in blocks)


def _nothing(_: Connection, __: int) -> None:
    """Write nothing between two rounds."""


def _writes(connection: Connection, number: int) -> None:
    """Write new rows between two rounds, and delete old ones."""
    draw = random.Random(number)
    for index in INDEXES:
        for step in range(6):
            _insert(connection, index, 1_000 + number * 10 + step, _text(draw))
        rowid = draw.randrange(ROWS)
        connection.execute(f"DELETE FROM {index} WHERE rowid = ?", (rowid,))


def _erase(
    connection: Connection,
    between: Callable[[Connection, int], None],
    rounds_max: int | None = None,
) -> int:
    """Erase to the end, or so many rounds of it; return how many rounds there were."""
    erasing, rounds = TokenErasing(), 0
    while rounds != rounds_max:
        rounds += 1
        assert rounds < 10_000
        with connection.transaction(write=True):
            if not erasing.advance(connection, 1):
                break
        between(connection, rounds)
    return rounds


def _check_gone(connection: Connection, tmp_path: Path) -> None:
    assert {index: _held(connection, index) for index in INDEXES} == dict.fromkeys(INDEXES, 0)
    connection.empty_wal()
    image = (tmp_path / "tokens.db").read_bytes()
    assert [secret for secret in SECRET.values() if secret.encode() in image] == []
    for index in INDEXES:
        connection.execute(f"INSERT INTO {index}({index}) VALUES('integrity-check')")


@pytest.mark.parametrize("between", [_nothing, _writes])
@pytest.mark.parametrize("under_way", [0, 1, 5, 12, 20])
def test_no_page_of_the_file_holds_a_deleted_token(
    connection: Connection,
    tmp_path: Path,
    between: Callable[[Connection, int], None],
    under_way: int,
) -> None:
    for number in range(under_way):
        for index in INDEXES:
            _merge(connection, index, 1 if number else -1)
    assert all(_held(connection, index) for index in INDEXES)
    _forget(connection)

    rounds = _erase(connection, between)

    assert rounds >= len(INDEXES)
    _check_gone(connection, tmp_path)


@pytest.mark.parametrize("done", [1, 4, 9, 15])
def test_who_was_stopped_between_two_rounds_begins_again_and_finishes(
    connection: Connection, tmp_path: Path, done: int
) -> None:
    _forget(connection)
    _erase(connection, _writes, done)

    _erase(connection, _writes)

    _check_gone(connection, tmp_path)


def test_an_empty_index_needs_no_work(tmp_path: Path) -> None:
    path = tmp_path / "tokens.db"
    path.touch()
    connection = Connection(path)
    for index, columns in INDEXES.items():
        connection.execute(f"CREATE VIRTUAL TABLE {index} USING fts5({columns})")
    erasing = TokenErasing()

    assert erasing.advance(connection) is True  # the second index is still to be looked at
    assert erasing.advance(connection) is False
    assert erasing.advance(connection) is False
    connection.close()
