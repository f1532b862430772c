"""JSON, errors and statuses of the command line, and what Ctrl-C leaves."""

import json
import os
import signal
from pathlib import Path

import msgspec
import pytest

from server import verbs
from server.app import App
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
from server.status import status_of
from server.terminal import Screen
from server.tool import Call
from tests.support.cli import Shell
from tests.support.reference import TOOLS
from tests.support.store import home_at

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
        words = command.strip("`").removeprefix("mnemolog ")
        assert words.partition(" --")[0] in names or words == "alias"


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
    assert f"{cli.home} cannot be used" in told.err


@pytest.mark.parametrize("words", [("list",), ("activity",)])
def test_a_home_that_is_no_folder_is_called_so(cli: Shell, words: tuple[str, ...]) -> None:
    cli.home.write_text("a file")

    told = cli(*words, "--json")

    assert (told.status, told.error["code"]) == (2, "no_store")
    assert f"{cli.home} is no folder" in told.error["message"]


def test_verify_without_a_store_says_so_in_json_too(cli: Shell) -> None:
    told = cli("verify", "--json")

    assert (told.status, told.out, told.error["code"]) == (2, "", "no_store")


def test_a_demo_on_documents_that_are_not_there_is_refused(cli: Shell) -> None:
    told = cli("demo", "--documents", str(cli.home / "none"))

    assert (told.status, told.out) == (2, "")
    assert "is no folder" in told.err


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
    assert "RuntimeError at test_cli_errors.py:" in told.err
    assert len(told.err.splitlines()) == 1


def test_bytes_that_are_no_text_are_replaced_and_said(cli: Shell) -> None:
    done = cli("add", "caf\udce9", "--json")

    assert "U+FFFD" in done.json["notes"][0]
    assert cli("get", done.id, "--json").json["memories"][0]["content"] == "caf\ufffd"
    assert cli("delete", "caf\udce9").status == 3


def test_a_position_that_no_ledger_reaches_is_refused(cli: Shell) -> None:
    cli.add("x")

    assert cli("undo", "--position", str(2**63 - 1)).status == 3
    told = cli("undo", "--position", str(2**63))
    assert (told.status, "`--position`" in told.err) == (2, True)


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
