"""backup and restore as they are typed: what they print, and how they end."""

import json
import shutil
from pathlib import Path

import pytest

from projections.copies import copies_from
from tests.support.cli import Shell


@pytest.fixture(name="shell")
def _shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(tmp_path / "home", monkeypatch)


@pytest.fixture(name="copy")
def _copy(tmp_path: Path) -> Path:
    return tmp_path / "copy"


def test_a_backup_says_what_it_holds_and_is_noted(shell: Shell, copy: Path) -> None:
    shell.add("the ferry leaves at noon")

    made = shell("backup", str(copy))

    head = shell("digest").out.splitlines()[0]
    assert made.status == 0
    assert made.err == ""
    lines = made.out.splitlines()
    assert lines[:2] == [f"backup: {copy}", head]
    assert lines[2].startswith("3 events in 1 segments, ")
    (noted,) = copies_from(shell.home, 3)
    assert (noted.kind, noted.path, noted.position, noted.exists) == ("backup", copy, 3, True)
    again = shell("backup", str(copy), "--json")
    assert (again.status, again.out) == (2, "")
    assert "is there already" in again.error["message"]


def test_a_restore_says_what_it_did_and_what_became_of_the_rest(shell: Shell, copy: Path) -> None:
    secret = shell.add("the code is zqcanary7781")
    assert shell("backup", str(copy), "--json").json["last"]["seq"] == 3
    shell("redact", secret, "--reason", "asked for", "--yes")

    done = shell("restore", str(copy), "--replace")

    assert done.status == 0
    lines = done.out.splitlines()
    (aside,) = shell.home.glob("ledger.replaced-*")
    assert lines[0] == f"restored: {shell.home / 'ledger'}, 4 events, verified"
    assert lines[2:] == [
        "erased from it: 1 events that a redaction had taken away",
        f"put aside: {aside}; delete it once you do not need it",
        "the projections are built anew at the next start",
    ]
    assert not (shell.home / "projections" / "CURRENT").exists()
    assert [each.path for each in copies_from(shell.home, 0)] == [copy, aside]
    assert shell("digest").out.splitlines()[0] == lines[1]
    assert shell("list").out == ""
    later = shell("backup", str(copy.with_name("later")))
    assert "; 1 of the events are redacted" in later.out


def test_a_restore_into_an_empty_home_prints_its_report(shell: Shell, copy: Path) -> None:
    shell.add("the ferry leaves at noon")
    shell("backup", str(copy))
    shutil.rmtree(shell.home)

    done = shell("restore", str(copy), "--json")

    report = done.json
    assert (report["events"], report["erased"], report["replaced"]) == (3, 0, None)
    assert report["path"] == str(shell.home / "ledger")
    assert "noon" in shell("list").out
    assert shell("verify").status == 0


def test_a_restore_that_cannot_be_done_says_why(shell: Shell, copy: Path, tmp_path: Path) -> None:
    shell.add("the ferry leaves at noon")
    shell.add("the last")
    shell("backup", str(copy))

    missing = shell("restore", str(tmp_path / "nowhere"), "--json")
    refused = shell("restore", str(copy), "--json")
    segment = copy / "log" / f"{1:020d}.jsonl"
    segment.write_bytes(segment.read_bytes().replace(b"noon", b"dusk"))
    damaged = shell("restore", str(copy), "--replace", "--json")

    assert (missing.status, missing.error["code"]) == (2, "no_store")
    assert (refused.status, refused.error["code"]) == (2, "system")
    assert "put aside only if that is asked for" in refused.error["message"]
    assert (damaged.status, damaged.error["code"]) == (1, "damaged")
    assert "commitment in log/00000000000000000001.jsonl at record 3" in damaged.error["message"]
    assert "noon" in shell("list").out


def test_a_damaged_ledger_is_not_backed_up(shell: Shell, copy: Path) -> None:
    shell.add("the ferry leaves at noon")
    segment = shell.home / "ledger" / "log" / f"{1:020d}.jsonl"
    lines = segment.read_bytes().split(b"\n")
    middle = lines[3].index(b'"p":')
    lines[3] = lines[3][:middle] + b'"p":null' + lines[3][-72:]
    segment.write_bytes(b"\n".join(lines))

    made = shell("backup", str(copy), "--json")

    assert (made.status, made.error["code"]) == (1, "damaged")
    assert "payload_missing" in made.error["message"]
    assert not copy.exists()


def test_without_a_store_there_is_nothing_to_back_up(shell: Shell, copy: Path) -> None:
    made = shell("backup", str(copy), "--json")

    assert (made.status, made.error["code"]) == (2, "no_store")
    assert json.loads(made.err)
