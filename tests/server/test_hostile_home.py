"""What a home can be like when somebody else had a hand in it: refusals are typed, reads go on."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from projections.connection import Connection
from server.commands import CONTENT_CHARS_MAX
from server.commit import COMMANDS_PER_ROUND_MAX
from server.config import read_config
from server.errors import ConfigError, StoreError
from server.reply import REPLY_CONTENT_CHARS_MAX
from server.shell import run
from tests.support.store import FakeClock, Home, home_at


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    monkeypatch.setenv("MNEMOLOG_HOME", str(tmp_path / "home"))
    with home_at(tmp_path / "home") as home:
        yield home


def command(*words: str) -> int:
    return run(words, lambda _: pytest.fail("nothing is served here"))


def ruin(home: Home, table: str) -> None:
    """Overwrite the root page of a table or an index."""
    connection = Connection(home.database)
    page = connection.integer("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,))
    size = connection.integer("PRAGMA page_size")
    connection.close()
    assert page is not None
    assert size is not None
    with home.database.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)


@pytest.mark.parametrize("table", ["checkpoint", "memories_id", "events"])
def test_damage_met_while_opening_is_mended_like_any_other(home: Home, table: str) -> None:
    client = home.open()
    ids = [client.add(f"boiler note {number}").id for number in range(40)]
    home.close()
    ruin(home, table)

    client = home.open()

    assert sorted(client.found("boiler")) == sorted(ids)
    added = client.add("boiler again").id
    assert added in client.found("again")


def test_reading_goes_on_without_the_log_and_writing_is_refused(home: Home) -> None:
    memory_id = home.open().add("the boiler pump").id
    home.close()
    log = home.path / "ledger" / "log"
    log.rename(home.path / "elsewhere")

    client = home.open()

    assert client.found("boiler") == [memory_id]
    with pytest.raises(StoreError):
        client.add("another")
    home.close()
    (home.path / "elsewhere").rename(log)


def test_a_current_that_is_a_folder_is_refused_by_type(home: Home) -> None:
    home.open().add("the boiler pump")
    home.close()
    current = home.path / "projections" / "CURRENT"
    current.unlink()
    current.mkdir()

    with pytest.raises(StoreError):
        home.open().search("boiler")


def test_projections_that_are_a_file_are_refused_by_type(home: Home) -> None:
    home.path.mkdir()
    (home.path / "projections").write_text("not a folder")

    with pytest.raises(StoreError):
        home.open().add("the boiler pump")


def test_a_file_named_like_a_generation_hinders_no_rebuild(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    home.open().add("the boiler pump")
    home.close()
    foreign = home.path / "projections" / "g000009-aaaaaaaaaaaaaaaa"
    foreign.write_text("not a folder")

    assert command("rebuild") == 0

    assert "the same digests" in capsys.readouterr().out
    assert foreign.is_file()


def test_digest_of_damaged_projections_says_so_and_exits_with_1(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    home.open().add("the boiler pump")
    home.close()
    ruin(home, "checkpoint")

    assert command("digest") == 1

    assert "mnemolog rebuild" in capsys.readouterr().err


def test_a_history_fits_a_reply_and_says_what_was_cut(home: Home) -> None:
    client = home.open()
    memory_id = client.add("x" * CONTENT_CHARS_MAX).id
    for number in range(4):
        client.update(memory_id, content=f"{number} " + "y" * (CONTENT_CHARS_MAX - 10))

    seen = client.inspect(memory_id, include_history=True)

    assert seen.versions is not None
    assert seen.superseded_chain is not None
    chain = [(memory.content, memory.content_cut) for memory in seen.superseded_chain]
    versions = [(version.content or "", version.content_cut) for version in seen.versions]
    parts = [*chain, *versions]
    assert sum(len(content) for content, cut in parts if not cut) <= REPLY_CONTENT_CHARS_MAX
    assert sum(cut for _, cut in parts) == 5
    assert any("content_cut" in note for note in seen.notes)


def test_deleting_a_predecessor_does_not_stretch_its_successor_into_the_past(home: Home) -> None:
    client = home.open()
    berlin = client.add("the office is in Berlin").id
    lisbon = client.supersede(berlin, "the office is in Lisbon")
    assert client.found("office", as_of="2020-01-01") == [berlin]

    client.delete(berlin)

    assert client.found("office", as_of="2020-01-01") == []
    assert client.found("office") == [lisbon]


@pytest.mark.guarantee("G-PAST-1")
def test_a_replay_judges_expiry_by_the_time_that_was_asked(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    home.clock = FakeClock()
    home.open().add("a short life was lived", ttl_days=1)
    home.close()

    assert command("replay", "--until", "2099-01-01", "--query", "lived") == 0
    assert "found: 0" in capsys.readouterr().out
    assert command("replay", "--until", "3", "--query", "lived") == 0
    assert "found: 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--query", " "], "holds no word"),
        (["--query", "?!"], "holds no word"),
        (["--query", "x", "--workspace", "nope"], "no workspace 'nope'"),
    ],
)
def test_a_replay_says_why_it_finds_nothing(
    home: Home, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    home.open().add("something")
    home.close()

    assert command("replay", *options) == 0
    assert said in capsys.readouterr().out


def test_a_filter_may_repeat_a_layer_any_number_of_times(home: Home) -> None:
    client = home.open()
    memory_id = client.add("the boiler pump").id

    assert client.found("boiler", layers=["semantic"] * 40_000) == [memory_id]


def test_more_callers_than_a_round_holds_are_all_answered(home: Home) -> None:
    client = home.open()
    callers = COMMANDS_PER_ROUND_MAX + 40
    ids: list[str] = []
    together = threading.Barrier(callers)

    def add(number: int) -> None:
        together.wait()
        ids.append(client.add(f"note {number}").id)

    threads = [threading.Thread(target=add, args=(number,)) for number in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(ids)) == callers
    assert client.inspect().total == callers


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MNEMOLOG_HOME", "~nosuchuser/x"),
        ("MNEMOLOG_HOME", "/tmp/\udcff"),
        ("MNEMOLOG_HOME", "a\0b"),
        ("MNEMOLOG_WORKSPACE", "\udcff"),
        ("MNEMOLOG_WORKSPACE", " "),
        ("MNEMOLOG_SEGMENT_BYTES", "65535"),
        ("MNEMOLOG_SEGMENT_BYTES", "ten"),
        ("MNEMOLOG_COMPRESSION", "lzma"),
        ("MNEMOLOG_LOCK_TIMEOUT_S", "nan"),
    ],
)
def test_a_setting_that_is_not_accepted_is_named(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        read_config({"MNEMOLOG_HOME": "/nowhere", name: value})
