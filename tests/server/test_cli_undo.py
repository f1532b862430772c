"""`mnemolog undo` by a filter: what it asks, prints and ends with."""

from pathlib import Path

import pytest

from server import undo_many
from server.commit import Committer
from server.errors import BusyError
from tests.server.test_cli_process import in_terminal
from tests.support.cli import Shell, installed


def test_undoing_by_a_filter_needs_a_yes_where_nobody_can_be_asked(cli: Shell) -> None:
    cli.add("kept")
    asked = cli("undo", "--actor", "cli")
    shown = cli("undo", "--actor", "cli", "--dry-run")
    done = cli("undo", "--actor", "cli", "--yes", "--as", "eve", "--json")

    assert (asked.status, "--yes" in asked.err) == (2, True)
    assert (shown.status, shown.out.splitlines()[0]) == (0, "1 of 1 operation would be undone")
    assert done.json["undone_count"] == 1
    assert cli("undo", "--actor", "eve", "--yes", "--json").json["undone_count"] == 1
    assert cli("list", "--json").json["total"] == 1


@pytest.mark.parametrize(("answer", "status", "left"), [(b"y\n", 0, 0), (b"n\n", 3, 1)])
def test_undoing_by_a_filter_asks_on_a_terminal(
    tmp_path: Path, answer: bytes, status: int, left: int
) -> None:
    installed(tmp_path, "add", "kept")
    ended, shown = in_terminal(tmp_path, ["undo", "--actor", "cli"], answer=answer)

    assert (ended, "undo 1 operation? [y/N]" in shown) == (status, True)
    assert installed(tmp_path, "list", "--json").json["total"] == left


def test_what_is_left_is_listed_with_its_reason(cli: Shell) -> None:
    first = cli.add("first", "--actor", "ann")
    cli.add("second", "--actor", "ann")
    cli("update", first, "--content", "changed", "--actor", "bob")
    done = cli("undo", "--actor", "ann", "--yes")
    again = cli("undo", "--actor", "ann", "--yes")

    lines = done.out.splitlines()
    assert lines[0] == "1 of 2 operations undone"
    assert lines[-1].split("\t")[1:] == ["changed later", "6"]
    assert "left as they are: 1 changed later" in done.err
    assert "takes all of it back" in done.err
    assert again.status == 3


def test_a_batch_is_undone_by_the_cause_that_it_printed(cli: Shell) -> None:
    lines = b"".join(b'{"content": "note %d"}\n' % number for number in range(130))
    added = cli("add", "--batch", "-", stdin=lines)
    cause = added.err.split()[-1]
    undone = cli("undo", "--cause", cause, "--yes")

    assert undone.out.splitlines()[0] == "130 of 130 operations undone"
    assert "and 30 more" in undone.out
    assert cli("list", "--json").json["total"] == 0


def test_a_session_can_be_named_in_short(cli: Shell) -> None:
    session = cli("session", "start", "--json").id
    cli.add("kept", "--session-id", session)

    assert cli("undo", "--session", session, "--dry-run", "--json").json["undone_count"] == 2


def test_more_than_one_call_undoes_is_undone_in_several(
    cli: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(undo_many, "UNDONE_MAX", 2)
    for number in range(5):
        cli.add(f"note {number}")
    trial = cli("undo", "--from", "1", "--dry-run")
    keyed = cli("undo", "--from", "1", "--to", "3", "--yes", "--idempotency-key", "k")
    repeated = cli("undo", "--from", "1", "--to", "3", "--yes", "--idempotency-key", "k")
    done = cli("undo", "--from", "1", "--yes", "--json").json

    assert "3 more match" in trial.err
    assert keyed.status == 0
    assert "1 operation undone by this key before" in repeated.out
    assert (done["undone_count"], done["remaining_count"]) == (4, 0)
    assert cli("undo", "--cause", done["cause"], "--yes", "--json").json["undone_count"] == 4


def test_what_stopped_it_is_said_and_is_the_status(
    cli: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(undo_many.ROUND_OPERATIONS_MAX + 1):
        cli.add(f"note {number}")
    submit_all = Committer.submit_all

    def busy(committer: Committer, commands: list[object]) -> object:
        if len(commands) == 1:
            return [BusyError("Another process holds the lock.")]
        return submit_all(committer, commands)  # type: ignore[arg-type]

    monkeypatch.setattr(Committer, "submit_all", busy)
    done = cli("undo", "--actor", "cli", "--yes")

    assert done.status == 4
    assert "stopped: Another process holds the lock." in done.err


def test_a_dry_run_of_one_operation_says_what_would_change(cli: Shell) -> None:
    memory = cli.add("kept")
    shown = cli("undo", memory, "--dry-run")

    assert shown.out.splitlines() == ["position 3 would be undone", f"would change: {memory}"]
    assert cli("undo", "--as", "").status == 2


def test_a_position_in_the_place_of_an_id_is_told_its_option(cli: Shell) -> None:
    cli.add("kept")

    refused = cli("undo", "3")

    assert (refused.status, "a position goes with --position 3" in refused.err) == (2, True)
    assert cli("undo", "--position", "3").status == 0
