"""The journal of files that were written outside the store."""

import json
import os
import stat
from multiprocessing import get_context, resource_tracker
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import format_us
from projections.copies import (
    COMPACT_BYTES_MIN,
    COPIES_FILE,
    GONE_DAYS_MAX,
    LINE_BYTES_MAX,
    copies_from,
    note_copy,
)
from tests.support.ledgers import START_US as NOW_US

DAY_US = 86_400_000_000

LONG = "/".join(["x" * 200] * 7)
"""So that few notes fill the journal."""


def unwarned(text: str) -> None:
    raise AssertionError(text)


def note(
    home: Path, path: Path, position: int, *, kind: str = "export", at_us: int = NOW_US
) -> None:
    note_copy(home, kind=kind, path=path, position=position, now_us=at_us, warn=unwarned)


def paths(home: Path, position: int = 0) -> list[Path]:
    return [copy.path for copy in copies_from(home, position)]


def test_what_was_written_at_a_position_or_after_it_is_named(tmp_path: Path) -> None:
    written = tmp_path / "b.json"
    written.touch()
    note(tmp_path, tmp_path / "a.json", 4)
    note(tmp_path, written, 7, kind="backup")
    note(tmp_path, tmp_path / "c.db", 9, kind="replay")

    found = copies_from(tmp_path, 7)

    assert [(copy.kind, copy.path.name, copy.position, copy.exists) for copy in found] == [
        ("backup", "b.json", 7, True),
        ("replay", "c.db", 9, False),
    ]
    assert {copy.at for copy in found} == {format_us(NOW_US)}


def test_a_home_that_never_wrote_a_file_names_none(tmp_path: Path) -> None:
    assert copies_from(tmp_path, 0) == []


def test_the_journal_is_for_its_owner_only(tmp_path: Path) -> None:
    note(tmp_path, tmp_path / "a", 1)

    assert stat.S_IMODE((tmp_path / COPIES_FILE).stat().st_mode) == 0o600


def test_a_file_written_again_is_named_once_with_the_greater_position(tmp_path: Path) -> None:
    note(tmp_path, tmp_path / "a", 5)
    note(tmp_path, tmp_path / "b", 1)
    note(tmp_path, tmp_path / "a", 3)

    assert [(copy.path.name, copy.position) for copy in copies_from(tmp_path, 0)] == [
        ("b", 1),
        ("a", 5),
    ]


def test_a_relative_path_is_noted_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    note(tmp_path, Path("a.json"), 1)

    assert paths(tmp_path) == [tmp_path / "a.json"]


def test_a_path_of_other_bytes_than_utf_8_comes_back_as_it_was(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9\n"))
    note(tmp_path, path, 1)

    assert paths(tmp_path) == [path]


FOREIGN = {
    "torn": b'{"kind":"export","path":"/x","se',
    "empty": b"\n\n",
    "not utf-8": b"\xff\xfe\n",
    "another object": b'{"a":1}\n',
    "no object": b"[]\n",
    "a relative path": b'{"kind":"export","path":"x","seq":1,"t":"2026-06-15T12:00:00.000000Z"}\n',
    "no time": b'{"kind":"export","path":"/x","seq":1,"t":"yesterday"}\n',
    "nested": b"[" * 10_000 + b"\n",
    "endless": b"x" * (LINE_BYTES_MAX + 1) + b"\n",
    "a NUL": b'{"kind":"export","path":"/x\\u0000y","seq":1,"t":"2026-06-15T12:00:00.000000Z"}\n',
}


@pytest.mark.parametrize("foreign", FOREIGN.values(), ids=FOREIGN.keys())
def test_a_line_that_cannot_be_read_hides_no_other(tmp_path: Path, foreign: bytes) -> None:
    note(tmp_path, tmp_path / "a", 1)
    with (tmp_path / COPIES_FILE).open("ab") as journal:
        journal.write(foreign)
    note(tmp_path, tmp_path / "b", 2)

    assert {tmp_path / "a", tmp_path / "b"} <= set(paths(tmp_path))


@given(st.binary(max_size=300), st.integers(0, 400))
def test_whatever_the_journal_holds_reading_and_noting_go_on(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, cut: int
) -> None:
    home = tmp_path_factory.mktemp("home")
    note(home, home / "a", 1)
    whole = (home / COPIES_FILE).read_bytes()
    (home / COPIES_FILE).write_bytes(whole[:cut] + data)
    note(home, home / "b", 2)

    assert home / "b" in paths(home)


def _blocked(home: Path) -> None:
    (home / COPIES_FILE).mkdir()


def _linked(home: Path) -> None:
    (home / COPIES_FILE).symlink_to(home / "elsewhere")


def _missing(home: Path) -> None:
    home.rmdir()


@pytest.mark.parametrize("obstacle", [_blocked, _linked, _missing])
def test_what_cannot_be_noted_is_warned_of_and_no_error(tmp_path: Path, obstacle: object) -> None:
    home = tmp_path / "home"
    home.mkdir()
    assert callable(obstacle)
    obstacle(home)
    said: list[str] = []
    note_copy(home, kind="export", path=tmp_path / "a", position=1, now_us=0, warn=said.append)

    assert len(said) == 1
    assert "a redaction will not name it" in said[0]


def _fill(home: Path, names: list[str], *, at_us: int) -> None:
    """Note files until the journal is compacted once more."""
    for name in names:
        note(home, home / name / LONG, 1, at_us=at_us)


def test_files_that_are_gone_for_long_are_forgotten_when_the_journal_grows(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.touch()
    note(tmp_path, here, 1)
    note(tmp_path, tmp_path / "gone", 1)
    count = COMPACT_BYTES_MIN // 1_500
    _fill(tmp_path, [f"a{n}" for n in range(count)], at_us=NOW_US)
    missed = [json.loads(line) for line in (tmp_path / COPIES_FILE).read_bytes().splitlines()]
    assert tmp_path / "gone" in paths(tmp_path)
    assert any(line.get("gone") for line in missed)

    _fill(tmp_path, [f"b{n}" for n in range(count)], at_us=NOW_US + (GONE_DAYS_MAX + 1) * DAY_US)

    left = paths(tmp_path)
    assert here in left
    assert tmp_path / "gone" not in left
    assert tmp_path / "a0" / LONG not in left
    assert (tmp_path / COPIES_FILE).stat().st_size < 2 * COMPACT_BYTES_MIN


def test_a_file_that_came_back_is_kept(tmp_path: Path) -> None:
    back = tmp_path / "back"
    count = COMPACT_BYTES_MIN // 1_500
    note(tmp_path, back, 1)
    _fill(tmp_path, [f"a{n}" for n in range(count)], at_us=NOW_US)
    back.touch()
    _fill(tmp_path, [f"b{n}" for n in range(count)], at_us=NOW_US + 2 * GONE_DAYS_MAX * DAY_US)

    assert back in paths(tmp_path)


def _note_many(home: Path, name: str) -> None:
    for number in range(30):
        note(home, home / f"{name}{number}" / LONG, number)


@pytest.fixture(scope="module", autouse=True)
def _helper_of_spawning() -> None:
    """Start it before descriptors are counted: it stays as long as this process."""
    resource_tracker.ensure_running()


def test_processes_that_note_at_once_lose_nothing(tmp_path: Path) -> None:
    """The journal is compacted on the way."""
    context = get_context("spawn")
    writers = [context.Process(target=_note_many, args=(tmp_path, name)) for name in ("a", "b")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)

    assert [writer.exitcode for writer in writers] == [0, 0]
    assert len(paths(tmp_path)) == 60
