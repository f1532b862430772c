"""The commands on memories: what they print, what they do and what they end with."""

import json
import os
import signal
from collections.abc import Generator
from pathlib import Path
from typing import NoReturn

import msgspec
import pytest

from server import verbs
from server.activity import ActivityRecorder
from server.app import App
from server.batch import BatchLine
from server.config import Config
from server.errors import (
    BusyError,
    DamagedError,
    DiskFullError,
    InvalidArgumentsError,
    NotFoundError,
    UseCaseError,
    VersionConflictError,
)
from server.job import Job
from server.options import COMMANDS
from server.output_file import output_file
from server.status import CommandError, status_of
from server.terminal import Screen
from server.tool import Call
from tests.support.cli import Shell
from tests.support.reference import TOOLS
from tests.support.store import home_at


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(tmp_path / "home", monkeypatch)


# ---------------------------------------------------------------------------- adding


def test_what_is_added_is_found_listed_read_and_counted(cli: Shell) -> None:
    memory = cli.add("Deploys go out on Tuesdays", "--layer", "procedural", "--tag", "ops")

    assert cli("search", "deploy", "tuesday", "--json").json["memories"][0]["id"] == memory
    assert cli("list", "--tag", "ops", "--json").json["total"] == 1
    assert "Deploys go out on Tuesdays\n" in cli("get", memory).out
    assert "memories: 1\n" in cli("inspect").out


def test_words_given_one_by_one_are_one_content_and_one_query(cli: Shell) -> None:
    cli("add", "the", "office", "is", "in", "Lisbon")

    found = cli("search", "office", "lisbon", "--json").json["memories"]

    assert [each["content"] for each in found] == ["the office is in Lisbon"]


def test_a_memory_added_by_hand_is_semantic_and_says_where_it_comes_from(cli: Shell) -> None:
    cli.add("plain")

    (memory,) = cli("list", "--json").json["memories"]

    assert (memory["layer"], memory["source"]) == ("semantic", "cli")


def test_a_content_is_read_from_standard_input_without_its_last_newline(cli: Shell) -> None:
    memory = cli("add", "-", "--json", stdin=b"two\nlines\n\n").id

    (read,) = cli("get", memory, "--json").json["memories"]

    assert read["content"] == "two\nlines\n"


def test_standard_input_of_the_greatest_length_is_stored_whole_and_more_is_refused(
    cli: Shell,
) -> None:
    longest = "😀" * 100_000
    memory = cli("add", "-", "--json", stdin=longest.encode()).id
    refused = cli("add", "-", stdin=longest.encode() + b"\xf0\x9f\x98\x80")

    assert cli("get", memory, "--json").json["memories"][0]["content"] == longest
    assert refused.status == 2
    assert "100000" in refused.err.replace(",", "")


def test_standard_input_that_is_not_utf_8_is_refused(cli: Shell) -> None:
    refused = cli("add", "-", stdin=b"caf\xe9")

    assert refused.status == 2
    assert "UTF-8" in refused.err


def test_meta_is_taken_as_pairs_and_as_json(cli: Shell) -> None:
    memory = cli.add("x", "--meta", "a=1=2", "--meta", '{"n": 3, "deep": {"k": [true]}}')

    (read,) = cli("get", memory, "--json").json["memories"]

    assert read["meta"] == {"a": "1=2", "n": 3, "deep": {"k": [True]}}


@pytest.mark.parametrize("meta", ["alone", "=x", '{"a": ', '{"a": 1} x'])
def test_meta_of_another_form_is_refused(cli: Shell, meta: str) -> None:
    refused = cli("add", "x", "--meta", meta)

    assert refused.status == 2
    assert "--meta" in refused.err


def test_what_may_be_contradicted_is_named(cli: Shell) -> None:
    old = cli.add("The billing service deploys on Tuesdays", "--entity-name", "billing")

    told = cli("add", "The billing service deploys on Fridays", "--entity-name", "billing")

    assert "is it still true?" in told.out
    assert old in told.out


def test_the_actor_is_recorded_and_is_cli_unless_given(cli: Shell) -> None:
    first, second = cli.add("one"), cli.add("two", "--actor", "cron")

    versions = cli("get", first, second, "--include-versions", "--json").json["versions"]

    assert [versions[each][0]["actor"] for each in (first, second)] == ["cli", "cron"]


def test_a_workspace_and_a_home_can_be_named_by_option(cli: Shell, tmp_path: Path) -> None:
    cli.add("here")
    cli.add("there", "--workspace", "other")
    cli.add("elsewhere", "--home", str(tmp_path / "second"))

    def contents(*words: str) -> list[str]:
        return [each["content"] for each in cli(*words, "--json").json["memories"]]

    assert contents("list") == ["here"]
    assert contents("list", "--workspace", "other") == ["there"]
    assert contents("list", "--home", str(tmp_path / "second")) == ["elsewhere"]
    assert contents("--home", str(tmp_path / "second"), "list") == ["elsewhere"]


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("list", "--home"),
        ("list", "--workspace"),
        ("list", "--actor"),
        ("add", "--batch"),
        ("export", "--output"),
    ],
)
def test_an_option_whose_variable_was_empty_is_refused(
    cli: Shell, command: str, option: str
) -> None:
    refused = cli(command, option, "")

    assert (refused.status, f"{option} is empty" in refused.err) == (2, True)


# ---------------------------------------------------------------------------- batches


def test_a_batch_stores_what_it_can_and_tells_of_each_line_that_it_cannot(cli: Shell) -> None:
    lines = b'{"content": "a"}\n\nno\n[1]\n{"content": "b", "layer": "x"}\n{"content": "c"}'

    done = cli("add", "--batch", "-", "--scope", "s", stdin=lines)

    assert done.status == 3
    assert done.out == "added 2, refused 3\n"
    assert [line.split(": ")[1] for line in done.err.splitlines()] == ["line 3", "line 4", "line 5"]
    assert cli("list", "--scope", "s", "--json").json["total"] == 2


def test_a_batch_in_json_has_a_result_for_every_line(cli: Shell) -> None:
    done = cli("add", "--batch", "-", "--json", stdin=b'{"content": "a"}\nno\n')

    first, second = done.json["results"]

    assert first["added"]["created"]
    assert second["error"]["details"] == {"line": 2}
    assert (done.json["added_count"], done.json["refused_count"], done.status) == (1, 1, 3)


def test_a_batch_of_more_than_one_call_is_stored_whole_in_order(cli: Shell, tmp_path: Path) -> None:
    file = tmp_path / "batch.jsonl"
    file.write_text("".join(json.dumps({"content": f"note {n}"}) + "\n" for n in range(250)))

    done = cli("add", "--batch", str(file), "--layer", "episodic", "--json")

    ids = [item["added"]["id"] for item in done.json["results"]]
    assert (done.status, done.json["added_count"], len(set(ids))) == (0, 250, 250)
    assert cli("get", ids[249], "--json").json["memories"][0]["content"] == "note 249"


def test_options_hold_for_lines_that_do_not_say_otherwise(cli: Shell) -> None:
    lines = b'{"content": "a"}\n{"content": "b", "scope": "own", "layer": "episodic"}\n'
    cli("add", "--batch", "-", "--scope", "given", stdin=lines)

    memories = cli("list", "--order", "oldest", "--json").json["memories"]

    assert [(each["scope"], each["layer"]) for each in memories] == [
        ("given", "semantic"),
        ("own", "episodic"),
    ]


def test_a_batch_repeated_with_its_key_stores_nothing_twice(cli: Shell) -> None:
    words = ("add", "--batch", "-", "--idempotency-key", "k")
    lines = b'{"content": "a"}\n{"content": "b"}\n'

    first, again = cli(*words, stdin=lines), cli(*words, stdin=lines)

    assert (first.out, again.out) == ("added 2\n", "added 0, stored before 2\n")
    assert again.status == 0


def interrupted_lines(*_: object) -> Generator[BatchLine]:
    for number in range(150):
        yield BatchLine(number=number, memory={"content": f"note {number}", "layer": "semantic"})
    raise KeyboardInterrupt


def end(status: int) -> NoReturn:
    raise SystemExit(status)


def test_a_batch_that_is_interrupted_says_what_was_stored(
    cli: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(verbs, "read_batch", interrupted_lines)
        patch.setattr(os, "_exit", end)
        cut = cli("add", "--batch", "-")

    assert (cut.status, cut.out, cut.err) == (130, "added 100\n", "mnemolog: interrupted\n")
    assert cli("list", "--json").json["total"] == 100


def test_a_mark_of_the_byte_order_at_the_beginning_of_a_batch_is_no_part_of_it(cli: Shell) -> None:
    mark = b"\xef\xbb\xbf"

    done = cli("add", "--batch", "-", stdin=mark + b'{"content": "a"}\r\n' + mark + b"{}\r\n")

    assert done.out == "added 1, refused 1\n"
    assert "line 2" in done.err


def test_a_line_too_long_for_any_memory_is_refused_and_the_next_one_is_read(cli: Shell) -> None:
    long = b'{"content": "' + b"x" * (9 << 20) + b'"}\n'

    done = cli("add", "--batch", "-", stdin=long + b'{"content": "short"}\n')

    assert done.out == "added 1, refused 1\n"
    assert "too long" in done.err


@pytest.mark.parametrize(
    "words", [("add",), ("add", "x", "--batch", "-"), ("add", "--batch", "/nowhere/at all")]
)
def test_adding_without_one_source_is_wrong_usage(cli: Shell, words: tuple[str, ...]) -> None:
    refused = cli(*words)

    assert (refused.status, refused.out, len(refused.err.splitlines())) == (2, "", 1)


# ---------------------------------------------------------------------------- revising


def test_a_memory_is_changed_in_place_and_superseded(cli: Shell) -> None:
    memory = cli.add("Deploys on Tuesdays", "--tag", "a", "--tag", "b")

    assert cli("update", memory, "--tag", "[]", "--meta", "k=v").status == 0
    (read,) = cli("get", memory, "--json").json["memories"]
    changed = cli("update", memory, "--supersede", "--new-content", "-", "--json", stdin=b"Fridays")
    (new,) = cli("get", changed.json["new_id"], "--json").json["memories"]

    assert ("tags" not in read, read["meta"]) == (True, {"k": "v"})
    assert (new["content"], new["supersedes"]) == ("Fridays", memory)


def test_a_tag_in_brackets_is_a_tag_unless_it_is_json(cli: Shell) -> None:
    cli.add("x", "--tag", "[wip]")
    cli.add("y", "--tag", '["a", "b"]')

    assert cli("list", "--tag", "[wip]", "--json").json["total"] == 1
    assert cli("list", "--tag", "b", "--tag", "a", "--json").json["total"] == 1


def test_an_update_of_what_moved_meanwhile_is_refused_with_3(cli: Shell) -> None:
    memory = cli.add("x")

    refused = cli("update", memory, "--content", "y", "--expected-version", "1", "--json")

    assert (refused.status, refused.error["code"]) == (3, "version_conflict")


def test_a_deletion_is_undone_by_position_and_by_id(cli: Shell) -> None:
    memory = cli.add("x")
    deleted = cli("delete", memory, "--json").json

    assert cli("undo", "--position", str(deleted["position"])).status == 0
    assert cli("delete", memory).out.startswith(f"deleted {memory} at position ")
    assert cli("undo", memory).status == 0
    assert cli("list", "--json").json["total"] == 1


def test_several_ids_are_deleted_in_one_operation_and_missing_ones_are_named(cli: Shell) -> None:
    ids = [cli.add(text) for text in ("a", "b")]

    done = cli("delete", *ids, "missing")

    assert (done.status, "missing is not there" in done.err) == (3, True)
    assert cli("list", "--json").json["total"] == 0
    assert cli("undo", ids[0]).status == 0
    assert cli("list", "--json").json["total"] == 2


def test_deleting_by_filter_needs_a_yes(cli: Shell) -> None:
    kept, gone = cli.add("a"), cli.add("b", "--scope", "old")

    refused = cli("delete", "--scope", "old")
    shown = cli("delete", "--scope", "old", "--dry-run")
    done = cli("delete", "--scope", "old", "--yes")

    assert (refused.status, "--yes" in refused.err) == (2, True)
    assert (shown.status, shown.out) == (0, f"{gone}\n")
    assert (done.status, done.out.split(" at ")[0]) == (0, "deleted 1")
    assert [each["id"] for each in cli("list", "--json").json["memories"]] == [kept]


def test_a_filter_that_matches_nothing_ends_with_3_and_nothing_asked_for_with_2(cli: Shell) -> None:
    cli.add("a")

    nothing, unasked = cli("delete", "--scope", "none", "--yes"), cli("delete")
    contradiction = cli("delete", "--everything", "--scope", "x", "--yes")

    assert [each.status for each in (nothing, unasked, contradiction)] == [3, 2, 2]
    assert cli("list", "--json").json["total"] == 1


def test_everything_is_deleted_in_as_many_operations_as_it_takes(cli: Shell) -> None:
    lines = b"".join(b'{"content": "note %d"}\n' % number for number in range(1_100))
    cli("add", "--batch", "-", stdin=lines)

    done = cli("delete", "--everything", "--yes", "--json").json

    assert (done["deleted_count"], done["remaining_count"]) == (1_100, 0)
    assert "2 operations" in done["notes"][0]
    assert cli("list", "--json").json["total"] == 0


# ---------------------------------------------------------------------------- looking


def test_a_list_says_its_total_and_how_to_go_on(cli: Shell) -> None:
    ids = {cli.add(f"note {number}") for number in range(3)}

    first = cli("list", "--limit", "2")
    words = first.err.split()
    second = cli("list", "--limit", "2", "--cursor", words[words.index("--cursor") + 1])

    assert first.err.startswith("2 of 3; next page: --cursor ")
    assert {line.split("\t")[0] for line in (first.out + second.out).splitlines()} == ids


def test_a_search_says_how_to_go_on_and_finding_nothing_is_no_failure(cli: Shell) -> None:
    for number in range(3):
        cli.add(f"river {number}")

    page, nothing = cli("search", "river", "--limit", "2"), cli("search", "ocean")

    assert "--offset 2" in page.err
    assert (nothing.status, nothing.out, nothing.err) == (0, "", "nothing found\n")


def test_a_piped_line_is_one_memory_with_tabs_between(cli: Shell) -> None:
    memory = cli.add("a\tb\nc", "--entity-name", "the\tthing")

    (line,) = cli("list").out.splitlines()

    assert line.split("\t")[0] == memory
    assert line.split("\t")[2:] == ["semantic", "the thing", "a b c"]


def test_history_is_shown_of_a_deleted_memory_too(cli: Shell) -> None:
    memory = cli.add("first")
    cli("update", memory, "--content", "second")
    cli("delete", memory)

    told = cli("inspect", memory, "--include-history")

    assert told.status == 0
    assert "status: deleted" in told.out
    assert {"first", "second"} <= set(told.out.split())


def test_what_is_missing_is_named_and_what_is_there_is_shown(cli: Shell) -> None:
    there, gone = cli.add("there"), cli.add("gone")
    cli("delete", gone)

    told = cli("get", there, gone, "never")

    assert told.status == 3
    assert "there\n" in told.out
    assert f"{gone}: it was deleted" in told.err
    assert "never: there is no such memory" in told.err


def test_health_is_told_and_cleans_up(cli: Shell) -> None:
    told = cli("health")
    assert told.status == 2  # no store yet

    cli.add("x")
    told = cli("health", "--cleanup")

    assert told.status == 0
    assert "status: healthy" in told.out
    assert "expired and deleted now: 0" in told.out


def test_sessions_are_begun_listed_and_ended(cli: Shell) -> None:
    session = cli("session", "start", "--project", "billing").out.strip()
    cli.add("learned", "--session-id", session)

    going_on = cli("session", "list", "--active-only").out
    ended = cli("session", "end", session, "--summary", "done")
    again = cli("session", "end", session, "--json")

    assert going_on.split("\t")[0] == session
    assert "memories: 1" in ended.out
    assert cli("session", "list", "--active-only").out == ""
    assert (again.status, again.error["code"]) == (3, "session_ended")


def test_aliases_are_added_listed_used_and_removed(cli: Shell) -> None:
    assert cli("alias", "add", "k8s", "Kubernetes").out == "added: k8s -> Kubernetes\n"
    cli.add("pods", "--entity-name", "Kubernetes")

    assert cli("alias", "add", "Kubernetes", "k8s").out == "nothing was changed\n"
    assert cli("alias", "list", "Kubernetes").out == "k8s\tKubernetes\n"
    assert cli("list", "--entity-name", "k8s", "--json").json["total"] == 1
    assert cli("alias", "add", "k8s", "Other").status == 3
    assert cli("alias", "remove", "k8s").out == "removed: k8s -> Kubernetes\n"
    assert "`mnemolog alias list`" in cli("alias", "remove", "k8s").err
    assert cli("alias", "list").out == ""


# ---------------------------------------------------------------------------- export


def test_an_export_without_a_limit_is_complete(cli: Shell) -> None:
    lines = b"".join(b'{"content": "note %d"}\n' % number for number in range(450))
    cli("add", "--batch", "-", stdin=lines)

    exported = cli("export")
    part = cli("export", "--limit", "2", "--format", "jsonl")

    assert len(json.loads(exported.out)) == 450
    assert len(part.out.splitlines()) == 2
    assert "2 of 450; next part: --cursor " in part.err


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


# ---------------------------------------------------------------------------- JSON and errors


def test_json_is_what_a_client_of_the_server_gets(cli: Shell) -> None:
    memory = cli.add("Deploys on Tuesdays", "--entity-name", "billing")

    printed = {
        "memory_get": cli("get", memory, "--json").json,
        "memory_list": cli("list", "--json").json,
        "memory_inspect": cli("inspect", memory, "--include-history", "--json").json,
        "memory_export": cli("export", "--json", "--format", "markdown").json,
    }
    with home_at(cli.home) as home:
        client = home.open()
        arguments: dict[str, dict[str, object]] = {
            "memory_get": {"ids": [memory]},
            "memory_list": {},
            "memory_inspect": {"id": memory, "include_history": True},
            "memory_export": {"format": "markdown"},
        }
        answers = {tool: client.call(tool, given) for tool, given in arguments.items()}

    assert printed == {
        tool: json.loads(msgspec.json.encode(answer)) for tool, answer in answers.items()
    }


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (("list", "--limt", "3"), 2, "usage"),
        (("add", "x", "--confidence", "2"), 2, "invalid_arguments"),
        (("update", "none", "--content", "x"), 3, "not_found"),
        (("list", "--workspace", " "), 2, "setting"),
        (("list", "--cursor", "x"), 2, "invalid_arguments"),
    ],
)
def test_an_error_is_one_line_in_words_or_in_json(
    cli: Shell, words: tuple[str, ...], status: int, code: str
) -> None:
    cli.add("x")

    in_words, in_json = cli(*words), cli(*words, "--json")

    assert (in_words.status, in_json.status) == (status, status)
    assert (in_words.out, in_json.out) == ("", "")
    assert in_words.err.startswith("mnemolog: ")
    assert len(in_words.err.splitlines()) == 1
    assert in_json.error["code"] == code


def test_errors_name_options_and_commands_instead_of_fields_and_tools(cli: Shell) -> None:
    memory = cli.add("x")
    cli("delete", memory)

    assert "`--event-at`" in cli("add", "x", "--event-at", "someday").err
    assert "`--tag`" in cli("add", "x", "--tag", "").err
    assert "`QUERY`" in cli("search", " ").err
    assert "`mnemolog undo`" in cli("update", memory, "--content", "y").err


def test_every_tool_has_its_command() -> None:
    names = {verb.name for verb in verbs.VERBS}

    assert set(COMMANDS) == {tool.name for tool in TOOLS}
    for command in COMMANDS.values():
        words = command.strip("`").removeprefix("mnemolog ").removesuffix(" --batch")
        assert words in names or words == "alias"


@pytest.mark.parametrize(
    ("words", "nearest"),
    [
        (("serch", "x"), "search"),
        (("search", "x", "--entity-nam", "y"), "--entity-name"),
        (("session", "list", "--activ-only"), "--active-only"),
    ],
)
def test_a_slip_is_told_what_is_nearest(cli: Shell, words: tuple[str, ...], nearest: str) -> None:
    refused = cli(*words)

    assert refused.status == 2
    assert f"the nearest is {nearest}" in refused.err


def test_a_slip_that_is_near_to_nothing_is_told_where_to_look(cli: Shell) -> None:
    command, option = cli("xyzzy"), cli("rebuild", "--json-lines-please")

    assert "`mnemolog --help` lists them" in command.err
    assert "see `mnemolog rebuild --help`" in option.err
    assert "`mnemolog --help`" not in option.err


def test_two_dashes_may_stand_where_no_word_follows(cli: Shell) -> None:
    cli("add", "x")

    assert cli("list", "--json", "--").status == 0
    assert cli("list", "--", "x").status == 2
    assert "has no option --" not in cli("list", "--", "x").err
    assert cli("--", "list").status == 0


def test_a_query_that_begins_with_a_dash_goes_after_two(cli: Shell) -> None:
    cli("add", "--json", "--", "--force", "is", "dangerous")

    refused = cli("search", "x", "--force")
    found = cli("search", "--json", "--", "--force")

    assert (refused.status, "after --" in refused.err) == (2, True)
    assert found.json["memories"][0]["content"] == "--force is dangerous"


def test_an_option_before_the_command_is_told_its_place(cli: Shell) -> None:
    refused = cli("--json", "list")

    assert refused.status == 2
    assert "goes after the command" in refused.error["message"]


def test_a_word_too_many_is_pointed_out(cli: Shell) -> None:
    refused = cli("search", "deploy", "--limit", "3", "day")

    assert (refused.status, "'day'" in refused.err) == (2, True)


@pytest.mark.parametrize("name", [verb.name for verb in verbs.VERBS] + ["activity"])
def test_the_help_of_every_command_has_an_example(cli: Shell, name: str) -> None:
    shown = cli(*name.split(), "--help")

    assert shown.status == 0
    assert "Examples:\n  " in shown.out
    assert f"mnemolog {name}" in shown.out.split("Examples:")[1]
    assert max(map(len, shown.out.split("Examples:")[0].splitlines())) <= 80


def test_a_command_that_reads_makes_no_store(cli: Shell) -> None:
    told = cli("list")

    assert (told.status, "mnemolog add" in told.err) == (2, True)
    assert not cli.home.exists()


def test_a_home_that_cannot_be_opened_is_said_in_one_line(cli: Shell) -> None:
    cli.home.write_text("a file")

    told = cli("add", "x")

    assert (told.status, len(told.err.splitlines())) == (4, 1)
    assert "Traceback" not in told.err


def test_a_store_of_another_format_is_told_with_the_reason(cli: Shell) -> None:
    cli.add("x")
    (cli.home / "ledger" / "FORMAT").write_text("nonsense")

    told = cli("list", "--json")

    assert told.status in (1, 4)
    assert "log says why" not in told.error["message"]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (DamagedError, 1),
        (InvalidArgumentsError, 2),
        (NotFoundError, 3),
        (VersionConflictError, 3),
        (BusyError, 4),
        (DiskFullError, 4),
    ],
)
def test_every_kind_of_refusal_has_its_status(error: type[UseCaseError], status: int) -> None:
    assert status_of(error("x")) == status


def test_a_fault_is_one_line_that_says_where_and_asks_for_a_report(
    cli: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("boom")

    cli.add("x")
    monkeypatch.setattr("server.job.Store.__init__", broken)

    told = cli("list")

    assert told.status == 70
    assert "RuntimeError at test_cli.py:" in told.err
    assert len(told.err.splitlines()) == 1


def test_bytes_that_are_no_text_are_replaced_and_said(cli: Shell) -> None:
    done = cli("add", "caf\udce9", "--json")

    assert "U+FFFD" in done.json["notes"][0]
    assert cli("get", done.id, "--json").json["memories"][0]["content"] == "caf\ufffd"


# ---------------------------------------------------------------------------- rebuilding, Ctrl-C


def test_a_rebuild_that_takes_long_is_spoken_of_on_standard_error(
    cli: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = cli.add("kept")
    for path in sorted((cli.home / "projections").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    monkeypatch.setattr("server.job.QUIET_S", 0.0)

    listed = cli("list")

    assert listed.status == 0
    assert "rebuilding" in listed.err
    assert listed.out.startswith(memory)


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(
        Config(home=tmp_path / "home"),
        Screen(as_json=False),
        actor="tester",
        repaired=False,
        begins=True,
    )


def interrupt_and_wait(_: App, call: Call) -> str:
    """Press Ctrl-C, and go on once the call was taken back."""
    os.kill(os.getpid(), signal.SIGINT)
    while not call.cancelled:
        pass
    return "done"


def test_ctrl_c_takes_a_call_back(job: Job) -> None:
    def stop(app: App, call: Call) -> None:
        interrupt_and_wait(app, call)
        call.check()

    with pytest.raises(KeyboardInterrupt):
        job.ask(stop)
    job.close()


def test_what_was_done_all_the_same_is_answered_after_ctrl_c(job: Job) -> None:
    answer = job.ask(interrupt_and_wait)
    job.close()

    assert (answer, job.interrupted) == ("done", True)


def test_a_job_that_asks_nothing_opens_nothing(job: Job, tmp_path: Path) -> None:
    job.close()

    assert list(tmp_path.iterdir()) == []
