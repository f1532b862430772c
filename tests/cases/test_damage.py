"""Cases L-3 and L-7: a damaged ledger, and damaged indexes over a sound one.

Damage is named, never repaired in silence, and never looks like "nothing found".
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from projections.connection import Connection
from server.errors import DamagedError
from server.results import HealthResult
from tests.cases.ways import Run
from tests.support.store import Home, flush_substrings, live_digest

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


# ---------------------------------------------------------------------------- L-3, the ledger


def _flip(lines: list[bytes]) -> bytes:
    line = bytearray(lines[5])
    line[len(line) // 2] ^= 1
    return b"".join([*lines[:5], line, *lines[6:]])


def _remove(lines: list[bytes]) -> bytes:
    return b"".join([*lines[:5], *lines[6:]])


def _swap(lines: list[bytes]) -> bytes:
    return b"".join([*lines[:5], lines[6], lines[5], *lines[7:]])


def _zero(lines: list[bytes]) -> bytes:
    data = bytearray(b"".join(lines))
    middle = sum(map(len, lines[:5])) + 10
    data[middle : middle + 1024] = bytes(1024)
    return bytes(data)


def _repeat(lines: list[bytes]) -> bytes:
    return b"".join([*lines[:6], lines[5], *lines[6:]])


Harm = Callable[[list[bytes]], bytes]
HARMS = (_flip, _remove, _swap, _zero, _repeat)


def _harmed(home: Home, harm: Harm) -> bytes:
    """Ten memories in the ledger, then the harm to its middle; returns the segment's bytes."""
    client = home.open()
    for number, word in enumerate(WORDS):
        client.add(f"heron {word} {number}")
    home.close()
    (segment,) = home.segments
    lines = segment.read_bytes().splitlines(keepends=True)
    assert len(lines) == 13  # the header, workspace and agent, ten memories
    segment.write_bytes(harm(lines))
    return segment.read_bytes()


@pytest.mark.guarantee("G-DAMAGE-2")
@pytest.mark.parametrize("rebuilt", [False, True], ids=["projections kept", "projections gone"])
@pytest.mark.parametrize("harm", HARMS)
def test_l3_over_a_damaged_ledger_reads_go_on_and_writes_are_refused_by_place(
    home: Home,
    harm: Harm,
    rebuilt: bool,  # noqa: FBT001 - a parameter of the case
) -> None:
    before = _harmed(home, harm)
    client = home.rebuilt() if rebuilt else home.open()
    found = client.search("heron", limit=100)
    if rebuilt:
        # Records that are out of their places are readable; what was destroyed is not.
        assert 5 <= found.returned_count <= (10 if harm in (_swap, _repeat) else 9)
        assert found.notes
        assert "damaged" in found.notes[0]
    else:
        assert found.returned_count == 10
    ends = [client.search(f"heron {word}", limit=1).memories[0] for word in ("zero", "nine")]
    assert [client.content(memory.id) for memory in ends] == ["heron zero 0", "heron nine 9"]
    kept = ends[0].id
    for write in (
        lambda: client.add("written over damage"),
        lambda: client.update(kept, content="written over damage"),
        lambda: client.delete(kept),
    ):
        with pytest.raises(DamagedError) as caught:
            write()
        assert "log/00000000000000000001.jsonl at record" in caught.value.message
        assert "Nothing was written; reading goes on" in caught.value.message
    health = client.call("memory_health", {})
    assert isinstance(health, HealthResult)
    assert health.status == "degraded"
    assert "parts of the ledger are damaged" in health.issues[0]
    assert client.found("written") == []
    assert home.segments[0].read_bytes() == before
    assert list((home.path / "ledger" / "quarantine").iterdir()) == []


@pytest.mark.guarantee("G-VERIFY-1")
@pytest.mark.parametrize("harm", HARMS)
def test_l3_verify_names_the_place_changes_nothing_and_exits_with_1(
    home: Home, harm: Harm, run: Run
) -> None:
    before = _harmed(home, harm)
    verified = run("verify", "--json")
    assert verified.status == 1
    report = json.loads(verified.out)["ledger"]
    assert not report["ok"]
    place = report["problems"][0]
    assert place["segment"] == "log/00000000000000000001.jsonl"
    assert 5 <= place["seq"] <= 6
    assert place["kind"] != "torn_tail"
    assert home.segments[0].read_bytes() == before


def test_l3_once_the_segment_is_restored_writing_goes_on_and_nothing_is_lost(
    home: Home, run: Run
) -> None:
    harmed = _harmed(home, _flip)
    line = harmed.splitlines(keepends=True)[5]
    client = home.rebuilt()
    assert client.search("heron").notes
    with pytest.raises(DamagedError):
        client.add("refused")
    home.close()
    mended = bytearray(line)
    mended[len(line) // 2] ^= 1
    home.segments[0].write_bytes(harmed.replace(line, bytes(mended)))
    assert run("rebuild").status == 0
    client = home.open()
    client.add("heron ten 10")
    assert len(client.found("heron")) == 11
    home.close()
    assert home.verify().problems == []


# ---------------------------------------------------------------------------- L-7, the indexes


def _sql(*statements: str) -> Callable[[Path], None]:
    def harm(database: Path) -> None:
        connection = Connection(database)
        try:
            for statement in statements:
                connection.execute(statement)
        finally:
            connection.close()

    return harm


def _overwrite_pages(database: Path) -> None:
    data = bytearray(database.read_bytes())
    for page in range(4, len(data) // 4096, 2):
        data[page * 4096 : (page + 1) * 4096] = b"\xa5" * 4096
    database.write_bytes(data)


def _cut(database: Path) -> None:
    data = database.read_bytes()
    database.write_bytes(data[: len(data) // 2])


BROKEN_INDEXES = {
    "rows overwritten": _sql("UPDATE memories_fts_data SET block = zeroblob(40) WHERE id > 10"),
    "rows swapped for noise": _sql(
        "UPDATE memories_fts_data SET block = randomblob(200) WHERE id > 10"
    ),
    "segments deleted": _sql("DELETE FROM memories_fts_data WHERE id > 10"),
    "structure deleted": _sql("DELETE FROM memories_fts_data WHERE id = 10"),
    "all deleted": _sql("INSERT INTO memories_fts(memories_fts) VALUES('delete-all')"),
    "one row deleted": _sql("DELETE FROM memories_fts WHERE rowid = 3"),
    "emptied with its sizes kept": _sql(
        "CREATE TEMP TABLE sizes AS SELECT * FROM memories_fts_docsize",
        "INSERT INTO memories_fts(memories_fts) VALUES('delete-all')",
        "INSERT INTO memories_fts_docsize SELECT * FROM sizes",
    ),
    "words of others": _sql(
        "INSERT OR REPLACE INTO memories_fts(rowid, content) SELECT rid, 'x' FROM memories"
    ),
    "table dropped": _sql("DROP TABLE memories_fts"),
    "pages overwritten": _overwrite_pages,
    "file cut": _cut,
    "file emptied": lambda database: database.write_bytes(b""),
    "file replaced": lambda database: database.write_bytes(b"not a database, but long enough" * 99),
}


def _filled(home: Home) -> tuple[list[str], str]:
    client = home.open()
    ids = [client.add(f"heron {word} {number}").id for number, word in enumerate(WORDS)]
    flush_substrings(client)
    digest = live_digest(client).text()
    client.store.upkeep.run_once()
    home.close()
    assert not home.database.with_name("memory.db-wal").exists()
    return ids, digest


@pytest.mark.guarantee("G-TABLES-2")
@pytest.mark.parametrize("harm", BROKEN_INDEXES.values(), ids=BROKEN_INDEXES)
def test_l7_a_broken_text_index_never_answers_nothing_as_if_it_were_true(
    home: Home, harm: Callable[[Path], None]
) -> None:
    ids, digest = _filled(home)
    harm(home.database)
    client = home.open()
    assert client.found("zero") == [ids[0]]
    assert client.found("three") == [ids[3]]
    assert {*client.found("heron")} == {*ids}
    assert live_digest(client).text() == digest


@pytest.mark.parametrize("harm", BROKEN_INDEXES.values(), ids=BROKEN_INDEXES)
def test_l7_a_broken_text_index_blocks_no_deletion(
    home: Home, harm: Callable[[Path], None]
) -> None:
    ids, _ = _filled(home)
    harm(home.database)
    client = home.open()
    assert client.delete(ids[3]).deleted
    assert client.inspect(ids[3]).status == "deleted"
    assert client.found("three") == []
    assert client.found("zero") == [ids[0]]
    assert {*client.found("heron")} == {*ids} - {ids[3]}


@pytest.mark.parametrize("harm", BROKEN_INDEXES.values(), ids=BROKEN_INDEXES)
def test_l7_verify_finds_a_broken_text_index_and_one_rebuild_mends_it(
    home: Home, harm: Callable[[Path], None], run: Run
) -> None:
    ids, digest = _filled(home)
    harm(home.database)
    verified = run("verify")
    assert verified.status == 1
    assert b"ledger: clean" in verified.out
    assert b"projections: damaged" in verified.out
    for _ in range(2):
        rebuilt = run("rebuild")
        assert rebuilt.status == 0
        assert digest.encode() in rebuilt.out
        assert run("verify", "--digest").status == 0
    assert home.open().found("three") == [ids[3]]


BROKEN_TRIGRAMS = {
    "all deleted": _sql("INSERT INTO trigrams(trigrams) VALUES('delete-all')"),
    "rows overwritten": _sql("UPDATE trigrams_data SET block = zeroblob(40) WHERE id > 10"),
    "emptied with its sizes kept": _sql(
        "CREATE TEMP TABLE sizes AS SELECT * FROM trigrams_docsize",
        "INSERT INTO trigrams(trigrams) VALUES('delete-all')",
        "INSERT INTO trigrams_docsize SELECT * FROM sizes",
    ),
    "sizes deleted": _sql("DELETE FROM trigrams_docsize"),
}


@pytest.mark.parametrize("harm", BROKEN_TRIGRAMS.values(), ids=BROKEN_TRIGRAMS)
def test_l7_a_broken_substring_index_is_found_and_mended_too(
    home: Home, harm: Callable[[Path], None], run: Run
) -> None:
    ids, _ = _filled(home)
    harm(home.database)
    verified = run("verify")
    assert verified.status == 1
    assert b"projections: damaged" in verified.out
    client = home.open()
    assert client.found("thre", mode="exact") == [ids[3]]
    assert client.delete(ids[3]).deleted
    assert {*client.found("eron", mode="exact")} == {*ids} - {ids[3]}
    home.close()
    assert run("rebuild").status == 0
    assert run("verify", "--digest").status == 0


@pytest.mark.guarantee("G-TABLES-2")
def test_l7_projections_that_are_deleted_come_back(home: Home) -> None:
    ids, digest = _filled(home)
    client = home.rebuilt()
    assert client.found("three") == [ids[3]]
    assert live_digest(client).text() == digest
