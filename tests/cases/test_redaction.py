"""Groups R, S-2 and E-4: what is redacted is gone from every file, and says so until it is."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from ledger import Position, RedactionExplained
from tests.cases.dying_redaction import MOMENTS
from tests.cases.ways import MNEMOLOG, Program, Stdio, Way, stdio_session
from tests.crash.harness import run as run_command
from tests.support.peer import HANG_SECONDS, ROOT, Json, started
from tests.support.store import Client, Home, home_at
from tests.support.traces import parts_of, traces_beside, traces_of

CANARY: Final = "zqcanary7781"
SECRET: Final = f"the password is {CANARY} indeed"
READER: Final = """
import sys, apsw
connection = apsw.Connection(sys.argv[1])
connection.execute("BEGIN")
list(connection.execute("SELECT count(*) FROM memories"))
print("reading", flush=True)
sys.stdin.read()
"""


def redact(way: Way, /, **arguments: object) -> Json:
    return way.ask("redact", **{"reason": "it was a password", **arguments})


# ----------------------------------------------------------------------------


@pytest.mark.guarantee("G-ERASE-1")
def test_r1_no_file_holds_the_words_once_the_reply_has_come(way: Way, folder: Path) -> None:
    for number in range(50):
        way.add(f"filler {number} about harbours and pumps")
    secret = way.add(SECRET)
    other = way.add("another memory of the same day")
    assert way.found(CANARY) == [secret]

    reply = redact(way, id=secret)

    assert reply["completed"] is True, reply
    assert reply["memories"] == [secret]
    assert traces_beside(folder, parts_of(CANARY)) == {}
    assert way.found(CANARY) == []
    assert way.get(other)["content"] == "another memory of the same day"
    (missing,) = way.ask("get", ids=[secret], include_versions=True)["missing"]
    assert missing["reason"] == "redacted"
    (redaction,) = missing["redacted"]
    assert redaction["reason"] == "it was a password"
    assert redaction["completed"] is True


# ----------------------------------------------------------------------------


@contextmanager
def _reading(home: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that holds a read transaction of the generation in use."""
    name = (home / "projections" / "CURRENT").read_text().strip()
    database = home / "projections" / name / "memory.db"
    with subprocess.Popen(
        [sys.executable, "-c", READER, str(database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"reading\n"
        yield process
        assert process.stdin is not None
        process.stdin.close()


@pytest.mark.guarantee("G-ERASE-1", "G-ERASE-3")
def test_r2_it_is_not_complete_while_a_reader_keeps_the_log_and_completes_by_itself(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEMOLOG_HOME", str(folder / "home"))
    with started(command=(MNEMOLOG, "serve"), stderr=subprocess.DEVNULL) as peer:
        killed = Stdio(peer.handshake())
        secret = killed.add(SECRET)
        peer.process.send_signal(signal.SIGKILL)
        peer.exit_status()
    assert list((folder / "home" / "projections").rglob("memory.db-wal"))
    with stdio_session() as way:
        way.total()
        with _reading(folder / "home"):
            reply = redact(way, id=secret)

            assert reply["completed"] is False
            assert "read of the store open" in " ".join(reply["held_by"])
            assert way.found(CANARY) == []
            assert "redaction" in " ".join(way.ask("health")["issues"])
        _wait_until_completed(way, secret)
    assert traces_of(folder, parts_of(CANARY)) == {}
    with home_at(folder / "home") as home:
        client = home.open()
        assert client.found(CANARY) == []
        assert client.get(secret).missing[0].reason == "redacted"


def _wait_until_completed(way: Way, memory: str) -> None:
    deadline = time.monotonic() + HANG_SECONDS
    while not way.ask("inspect", id=memory)["redacted"][0]["completed"]:
        assert time.monotonic() < deadline, "it does not complete by itself"


# ----------------------------------------------------------------------------


def _ten(client: Client) -> tuple[str, ...]:
    """Ten memories; the third was superseded twice and came from its file once more."""
    for number in range(9):
        client.add(f"memory {number}")
    first = client.add(f"{SECRET} first", source_file="diary.md").id
    second = client.supersede(first, f"{SECRET} second")
    third = client.supersede(second, f"{SECRET} third")
    fourth = client.add(f"{SECRET} fourth", source_file="diary.md").id
    return first, second, third, fourth


@pytest.mark.guarantee("G-ERASE-5")
def test_r3_all_wordings_of_a_fact_go_and_a_marker_stays(home: Home, client: Client) -> None:
    wordings = _ten(client)

    result = client.redact(wordings[1])

    assert result.completed
    assert set(result.memories) == {*wordings}
    assert client.found("memory", include_superseded=True) != []
    client = home.rebuilt()
    assert client.found(CANARY, include_superseded=True) == []
    before = (result.position or 0) - 1
    for mode in ("fts", "exact"):
        assert client.found(CANARY, mode=mode, as_of="2026-06-15", include_superseded=True) == []
        assert client.found(CANARY, mode=mode, known_at=before, include_superseded=True) == []
    assert len(client.found("memory", known_at=before)) == 9
    assert client.inspect(wordings[3], known_at=before).status == "redacted"
    page = client.search("memory", known_at=before)
    assert page.known_at is not None
    assert page.known_at.redacted_since == len(wordings)
    for memory in wordings:
        seen = client.inspect(memory, include_history=True)
        assert seen.status == "redacted"
        assert seen.redacted[0].by == "tester"
        assert seen.versions is not None
        assert {(each.status, each.content) for each in seen.versions} == {("redacted", None)}
    report = home.verify()
    assert report.ok
    assert report.redacted == result.records


@pytest.mark.guarantee("G-ERASE-3")
def test_r3_killed_at_any_moment_it_is_the_old_or_the_new_and_is_finished(folder: Path) -> None:
    with home_at(folder / "before") as home:
        first = _ten(home.open())[0]
    command = [sys.executable, "-m", "tests.cases.dying_redaction", str(folder), first]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    outcomes = json.loads(done.stdout)
    assert len(outcomes) == MOMENTS
    begun = 0
    for name, status in outcomes.items():
        assert status in {-signal.SIGKILL, 0}
        with home_at(folder / name) as home:
            client = home.open()
            client.store.upkeep.run_once()
            seen = client.inspect(first)
            begun += seen.memory is None
            assert home.verify().ok
            if seen.memory is not None:
                assert client.content(first).startswith(SECRET)
                assert client.redact(first).completed
            assert client.inspect(first).redacted[0].completed
        assert traces_of(folder / name, parts_of(CANARY)) == {}, name
        shutil.rmtree(folder / name)
    assert begun > 0
    assert {*outcomes.values()} == {-signal.SIGKILL}


@pytest.mark.guarantee("G-ERASE-5")
def test_r3_a_reason_that_says_too_much_is_erased_too(home: Home, client: Client) -> None:
    first = client.add("something").id
    done = client.redact(first, reason=SECRET)
    assert done.position is not None
    reasons = [
        record.seq
        for record in client.store.ledger.read(Position.start)
        if isinstance(record.payload, RedactionExplained)
    ]

    client.redact(event=reasons[0], reason="a reason that was a secret")

    (redaction,) = client.inspect(first).redacted
    assert (redaction.by, redaction.reason) == ("tester", None)
    assert home.verify().ok
    home.close()
    assert traces_of(home.path, parts_of(CANARY)) == {}


# ----------------------------------------------------------------------------


EVERYWHERE: Final[dict[str, Any]] = {
    "title": CANARY,
    "tags": [CANARY, "plain"],
    "meta": {CANARY: "key", "value": CANARY, "deep": [{"x": CANARY}]},
    "scope": CANARY,
    "source": CANARY,
    "source_file": f"/notes/{CANARY}.md",
    "entity_name": CANARY,
}


@pytest.mark.guarantee("G-ERASE-1")
def test_r5_it_goes_from_every_field_and_every_file(way: Way, folder: Path) -> None:
    secret = way.add(SECRET, **EVERYWHERE)
    way.search(CANARY)
    way.listed(scope=CANARY)
    way.refusal("add", content=SECRET, layer="semantic", event_at=f"{CANARY}-02-30")
    way.refusal("update", id=CANARY, content=SECRET)

    reply = redact(way, id=secret)

    assert reply["completed"] is True, reply
    assert CANARY not in json.dumps(reply)
    assert traces_beside(folder, parts_of(CANARY)) == {}
    assert CANARY not in json.dumps(way.ask("health"))
    assert CANARY not in json.dumps(way.ask("inspect", id=secret, include_history=True))


def test_r5_no_log_holds_what_was_stored_or_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEMOLOG_HOME", str(folder / "home"))
    monkeypatch.setenv("MNEMOLOG_LOG_LEVEL", "debug")
    log = folder / "log"
    with (
        log.open("wb") as errors,
        started(command=(MNEMOLOG, "serve"), stderr=errors.fileno()) as peer,
    ):
        way = Stdio(peer.handshake())
        secret = way.add(SECRET, **EVERYWHERE)
        way.search(CANARY)
        way.refusal("add", content=SECRET, layer="semantic", event_at=f"{CANARY}-02-30")
        redact(way, id=secret)
        way.refusal("update", id=secret, content=CANARY)
        way.close()
    assert log.read_bytes()
    assert traces_of(folder, [CANARY]) == {}


# ---------------------------------------------------------------------------- S-2


@pytest.mark.parametrize(
    "what",
    [
        {"id": ""},
        {"id": "no-such-id"},
        {"event": 4711},
        {"entity": "Nobody"},
        {"filter": {"scope": "nowhere"}},
        {"reason": "   ", "id": "x"},
        {},
    ],
    ids=str,
)
def test_s2_redacting_nothing_says_that_nothing_was_changed(
    way: Way, what: dict[str, object]
) -> None:
    memory = way.add("a memory that stays")
    before = way.ask("inspect")["position"]

    refused = way.refusal("redact", **{"reason": "a test", **what})

    assert refused.code in {"invalid_arguments", "not_found", "usage"}
    if refused.code == "not_found":
        assert "nothing was changed" in refused.message
    assert way.ask("inspect")["position"] == before
    assert way.get(memory)["content"] == "a memory that stays"


def test_s2_redacting_twice_says_that_nothing_was_changed(way: Way) -> None:
    memory = way.add(SECRET)
    redact(way, id=memory)

    again = way.refusal("redact", id=memory, reason="again")
    updated = way.refusal("update", id=memory, content="new")
    undone = way.refusal("undo", id=memory)

    assert again.code == "not_found"
    assert "redacted already; nothing was changed" in again.message
    assert (updated.code, undone.code) == ("redacted", "redacted")
    assert "nothing was changed" in updated.message


# ---------------------------------------------------------------------------- E-4


def test_e4_every_route_of_export_leaves_out_what_was_redacted(way: Way) -> None:
    secret = way.add(SECRET, title=CANARY)
    kept = way.add("what stays")
    newer = way.supersede(kept, "what stays now")
    redact(way, id=secret)

    for form in ("json", "jsonl", "markdown", "claude-md"):
        written = way.export(form, include_superseded=True, include_expired=True)
        assert CANARY not in written
        assert "what stays now" in written
    assert way.listed(include_superseded=True) == [newer, kept]
    assert isinstance(way, Program | Way)


def test_r1_the_command_line_says_how_far_it_has_come(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEMOLOG_HOME", os.fspath(folder / "home"))
    memory = run_command(folder / "home", "add", SECRET).stdout.split()[1]

    asked = run_command(folder / "home", "redact", memory, "--reason", "x")
    shown = run_command(folder / "home", "redact", memory, "--reason", "x", "--dry-run")
    done = run_command(folder / "home", "redact", memory, "--reason", "x", "--yes")

    assert asked.returncode == 2
    assert "--yes" in asked.stderr
    assert CANARY in shown.stdout
    assert "would be erased" in shown.stdout + shown.stderr
    assert done.returncode == 0, done.stderr
    assert "redacted 1 record of 1 memory at position" in done.stdout
    assert ", 1 of them redacted\n" in run_command(folder / "home", "verify").stdout
    assert traces_of(folder, parts_of(CANARY)) == {}


# ----------------------------------------------------------------------------


@pytest.mark.guarantee("G-ERASE-4")
def test_r4_an_older_copy_that_is_put_back_is_redacted_again(folder: Path) -> None:
    with home_at(folder / "home") as home:
        client = home.open()
        for number in range(5):
            client.add(f"memory {number}")
        secret = client.add(SECRET).id
        home.close()
        shutil.copytree(home.path / "ledger", folder / "copy")
        client = home.open()
        assert client.redact(secret).completed
        home.close()
        shutil.rmtree(home.path / "ledger")
        shutil.rmtree(home.path / "projections")
        (folder / "copy").rename(home.path / "ledger")
        client = home.open()
        assert client.content(secret) == SECRET

        client.store.upkeep.run_once()

        seen = client.inspect(secret)
        assert seen.status == "redacted"
        assert seen.redacted[0].completed
        assert home.verify().ok
    assert traces_of(folder / "home", parts_of(CANARY)) == {}
