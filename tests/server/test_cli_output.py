"""What the command line writes elsewhere: exports to files, and the activity that is kept."""

import json
import os
from pathlib import Path

import pytest

from projections.copies import COPIES_FILE, copies_from
from server.activity import ActivityRecorder
from server.output_file import output_file
from server.status import CommandError
from tests.support.cli import Shell

# ---------------------------------------------------------------------------- export


def test_an_export_without_a_limit_is_complete(cli: Shell) -> None:
    lines = b"".join(b'{"content": "note %d"}\n' % number for number in range(450))
    cli("add", "--batch", "-", stdin=lines)

    exported = cli("export")
    part = cli("export", "--limit", "2", "--format", "jsonl")

    assert len(json.loads(exported.out)) == 450
    assert len(part.out.splitlines()) == 2
    assert "2 of 450; next part: --cursor " in part.err


@pytest.mark.guarantee("G-OUTPUT-1")
def test_an_export_goes_to_a_file_of_its_owner_and_replaces_none_unless_forced(
    cli: Shell, tmp_path: Path
) -> None:
    cli.add("kept")
    file = tmp_path / "out.md"

    first = cli("export", "--format", "markdown", "--output", str(file))
    before = file.read_text()
    refused = cli("export", "--format", "jsonl", "--output", str(file))
    after = file.read_text()
    forced = cli("export", "--format", "jsonl", "--output", str(file), "--force")

    assert (first.status, first.out, file.stat().st_mode & 0o777) == (0, "", 0o600)
    assert (refused.status, "--force" in refused.err, before == after) == (3, True, True)
    assert (forced.status, json.loads(file.read_text())["content"]) == (0, "kept")
    assert [path.name for path in tmp_path.iterdir()].count("out.md") == 1
    assert not list(tmp_path.glob(".mnemolog-*"))


def test_files_that_may_hold_memories_are_noted_in_the_home(cli: Shell, tmp_path: Path) -> None:
    cli.add("kept")
    at = cli("inspect", "--json").json["position"]
    cli("export", "--output", str(tmp_path / "out.json"))
    cli("export", "--output", str(tmp_path))
    cli("export")
    cli("replay", "--until", "1", "--into", str(tmp_path / "past.db"))

    found = copies_from(tmp_path / "home", 0)

    assert [(copy.kind, copy.path.name, copy.position, copy.exists) for copy in found] == [
        ("export", "out.json", at, True),
        ("replay", "past.db", 1, True),
    ]


def test_an_export_that_cannot_be_noted_is_written_all_the_same(cli: Shell, tmp_path: Path) -> None:
    cli.add("kept")
    (tmp_path / "home" / COPIES_FILE).mkdir()

    exported = cli("export", "--output", str(tmp_path / "out.json"))

    assert exported.status == 0
    assert "could not be noted" in exported.err
    assert "kept" in (tmp_path / "out.json").read_text()


def test_an_export_to_what_is_no_file_is_refused(cli: Shell, tmp_path: Path) -> None:
    cli.add("x")

    nowhere = tmp_path / "no" / "folder"

    statuses = [
        cli("export", "--output", str(tmp_path), "--force").status,
        cli("export", "--output", os.devnull, "--force").status,
    ]
    unwritable = cli("export", "--output", str(nowhere))

    assert statuses == [3, 3]
    assert unwritable.err == f"mnemolog: {nowhere}: No such file or directory\n"
    assert unwritable.status == 4


def write_half(target: Path, failure: BaseException) -> None:
    with output_file(target, replace=True) as write:
        write("half")
        (part,) = target.parent.glob(".mnemolog-*")
        assert part.stat().st_mode & 0o777 == 0o600
        raise failure


@pytest.mark.guarantee("G-OUTPUT-1")
@pytest.mark.parametrize("failure", [KeyboardInterrupt(), OSError(), CommandError(4, "x", "x")])
@pytest.mark.parametrize("before", [{}, {"out": "old"}])
def test_a_file_that_is_not_finished_is_never_in_place(
    tmp_path: Path, failure: BaseException, before: dict[str, str]
) -> None:
    for name, text in before.items():
        (tmp_path / name).write_text(text)

    with pytest.raises(type(failure)):
        write_half(tmp_path / "out", failure)

    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == before


def write_late(target: Path) -> None:
    with output_file(target, replace=False) as write:
        write("ours")
        target.write_text("theirs")


@pytest.mark.guarantee("G-OUTPUT-1")
def test_a_file_that_came_to_be_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    target = tmp_path / "out"

    with pytest.raises(CommandError, match="exists"):
        write_late(target)

    assert target.read_text() == "theirs"
    assert len(list(tmp_path.iterdir())) == 1


# ---------------------------------------------------------------------------- activity


def test_activity_is_shown_and_forgotten(cli: Shell) -> None:
    memory = cli.add("river")
    cli("search", "river")
    cli("get", memory)

    searches = cli("activity", "--json").json
    read = cli("activity", "--memories", "--limit", "5").out
    cleared = cli("activity", "--clear")

    assert [(each["query"], each["hits"]) for each in searches["searches"]] == [("river", [memory])]
    assert f"{memory}\t2\t" in read
    assert "every workspace" in cleared.out
    assert cli("activity", "--json").json["searches_count"] == 0
    assert cli("list", "--json").json["total"] == 1


def test_activity_that_cannot_be_read_is_said(cli: Shell) -> None:
    cli.add("x")
    (cli.home / "activity.db").mkdir()

    told = cli("activity")

    assert (told.status, told.out) == (4, "")
    assert "activity log" in told.err
    assert cli("activity", "--limit", "0").status == 2


def test_activity_that_is_off_is_said(cli: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMOLOG_ACTIVITY", "off")
    cli.add("x")

    assert "is off" in cli("activity").err


def test_the_notes_of_a_command_are_written_before_it_ends(
    cli: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[float] = []
    close = ActivityRecorder.close

    def watched(recorder: ActivityRecorder, timeout_s: float) -> None:
        close(recorder, timeout_s)
        closed.append(timeout_s)

    monkeypatch.setattr(ActivityRecorder, "close", watched)
    cli.add("x")

    assert len(closed) == 1
