"""The commands on memories: what they print, what they do and what they end with."""

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import NoReturn

import pytest

from server import verbs
from server.batch import BatchLine
from tests.support.cli import Shell

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
    *refused, last = done.err.splitlines()
    assert [line.split(": ")[1] for line in refused] == ["line 3", "line 4", "line 5"]
    assert last.startswith("to undo all of it: mnemolog undo --cause ")
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

    assert (cut.status, cut.out) == (130, "added 100\n")
    assert cut.err.endswith("mnemolog: interrupted\n")
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


def test_the_past_is_searched_in_the_workspace_that_is_set(
    cli: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.add("a heron")
    monkeypatch.setenv("MNEMOLOG_WORKSPACE", "pond")
    there = cli.add("a heron too")

    assert f"found: 1\n{there}" in cli("replay", "--query", "heron").out
    assert there not in cli("replay", "--query", "heron", "--workspace", "default").out
    assert "in 1 segment\n" in cli("verify").out


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
