"""E-3, R-4 and F-1: copies of a store that is in use, and putting one back."""

import json
import shutil
import signal
import subprocess
import threading
from pathlib import Path
from typing import Final

import pytest

from ledger import verify
from tests.cases.ways import CommandHost
from tests.crash.harness import MNEMOLOG, assert_sound, contents, environment, serving
from tests.support.home_files import open_to_others, umask
from tests.support.peer import HANG_SECONDS

BACKUPS: Final = 20
EACH: Final = 8
"""Memories that each writer may store for each backup: they are stored while it is made."""
SMALL_SEGMENTS: Final = {"MNEMOLOG_SEGMENT_BYTES": "65536"}
SECRET: Final = "zqcanary7781"
KILLS_MAX: Final = 40


class Writer:
    """A client of its own server, which stores as many memories as it is allowed to."""

    def __init__(self, home: Path, name: str) -> None:
        self.acknowledged: list[str] = []
        self.failed: list[BaseException] = []
        self._home = home
        self._name = name
        self._allowed = threading.Semaphore(0)
        self._stop = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            with serving(self._home, settings=SMALL_SEGMENTS) as server:
                number = 0
                while self._allowed.acquire(timeout=HANG_SECONDS) and not self._stop:
                    text = f"{self._name} ferry {number} " + "left the quay " * 40
                    assert "error" not in server.add(text)
                    self.acknowledged.append(text)
                    number += 1
        except BaseException as error:  # noqa: BLE001 - whatever it is, the case fails by it
            self.failed.append(error)

    def go_on(self) -> None:
        self._allowed.release(EACH)

    def stop(self) -> None:
        self._stop = True
        self._allowed.release()
        self._thread.join(HANG_SECONDS)
        assert self.failed == []


def added(host: CommandHost, home: Path, *arguments: str) -> str:
    """Store a memory; return its id."""
    done = host.run(home, "add", *arguments, "--json")
    assert done.status == 0, done.err
    return str(json.loads(done.out)["id"])


def kill_one(home: Path, folder: Path) -> Path:
    """Kill a backup while it copies; return what it has left."""
    for attempt in range(KILLS_MAX):
        target = folder / f"killed-{attempt}"
        command = [MNEMOLOG, "backup", str(target)]
        with subprocess.Popen(
            command, env=environment(home), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            while process.poll() is None and not list(folder.glob("*.partial-*/log/*")):
                pass
            process.send_signal(signal.SIGKILL)
        for left in folder.glob("killed-*.partial-*"):
            assert not target.exists()
            if not (left / "FORMAT").exists():
                return left
            shutil.rmtree(left)  # all was there but the name: too late to be a case of it
    pytest.fail("no backup was caught at its work")


def test_e3_each_backup_holds_what_was_acknowledged_before_it_began(
    folder: Path, host: CommandHost
) -> None:
    home, copies = folder / "home", folder / "copies"
    copies.mkdir()
    added(host, home, "the first")
    writers = [Writer(home, "one"), Writer(home, "two")]
    expected: dict[Path, set[str]] = {}
    try:
        for number in range(BACKUPS):
            for writer in writers:
                writer.go_on()
            target = copies / f"backup {number}"
            before = {text for writer in writers for text in writer.acknowledged}
            made = host.run(home, "backup", str(target), "--json")
            assert made.status == 0, made.err
            expected[target] = before
        left = kill_one(home, copies)
    finally:
        for writer in writers:
            writer.stop()

    assert open_to_others(copies / "backup 0") == {}
    elsewhere = home
    for target, acknowledged in expected.items():
        assert open_to_others(target) == {}
        elsewhere = folder / f"home of {target.name}"
        assert host.run(elsewhere, "restore", str(target)).status == 0
        report = verify(elsewhere / "ledger")
        assert (report.ok, report.notes) == (True, [])
        assert acknowledged <= contents(elsewhere).counts.keys()
    assert len(list((elsewhere / "ledger" / "log").iterdir())) > 2
    assert_sound(elsewhere)
    refused = host.run(folder / "never", "restore", str(left))
    assert refused.status in {1, 2}
    assert not (folder / "never" / "ledger").exists()


def test_r4_a_backup_that_is_put_back_does_not_bring_a_redacted_memory_back(
    folder: Path, host: CommandHost
) -> None:
    home, copy = folder / "home", folder / "copy"
    assert host.run(home, "add", "the ferry leaves at noon").status == 0
    secret = added(host, home, f"the code is {SECRET}", "--tag", SECRET)
    assert host.run(home, "backup", str(copy)).status == 0
    original = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    assert any(SECRET.encode() in data for data in original.values())
    assert host.run(home, "redact", secret, "--reason", "asked for", "--yes").status == 0
    assert host.run(home, "add", "later than the copy").status == 0

    refused = host.run(home, "restore", str(copy))
    assert refused.status == 2
    assert b"put aside only if that is asked for" in refused.err
    restored = host.run(home, "restore", str(copy), "--replace", "--json")

    assert restored.status == 0, restored.err
    assert json.loads(restored.out)["erased"] == 1
    listed = host.run(home, "list").out
    assert b"noon" in listed
    assert b"later" not in listed
    # Before a search for it, which the activity log notes.
    for path in home.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes()
    shown = (listed, host.run(home, "search", SECRET).out, host.run(home, "inspect", secret).out)
    assert not any(SECRET.encode() in out for out in shown)
    report = verify(home / "ledger")
    assert (report.ok, report.redacted) == (True, 1)
    assert_sound(home)
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == original
    assert str(copy) in (home / "copies.jsonl").read_text()
    assert host.run(home, "add", "and on it goes").status == 0


def test_r4_it_stays_out_of_a_home_that_has_lost_its_ledger(
    folder: Path, host: CommandHost
) -> None:
    home, copy = folder / "home", folder / "copy"
    secret = added(host, home, f"the code is {SECRET}")
    assert host.run(home, "backup", str(copy)).status == 0
    assert host.run(home, "redact", secret, "--reason", "asked for", "--yes").status == 0
    shutil.rmtree(home / "ledger")

    assert host.run(home, "restore", str(copy)).status == 0

    for path in home.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes()
    assert_sound(home)


def test_r4_a_server_that_ran_meanwhile_goes_on_with_what_was_put_back(
    folder: Path, host: CommandHost
) -> None:
    home, copy = folder / "home", folder / "copy"
    with serving(home) as server:
        server.add("the ferry leaves at noon")
        assert host.run(home, "backup", str(copy)).status == 0
        server.add("later than the copy")
        assert host.run(home, "restore", str(copy), "--replace").status == 0

        server.add("said after it")

        found = server.call("memory_list")["memories"]
    assert sorted(memory["content"] for memory in found) == [
        "said after it",
        "the ferry leaves at noon",
    ]
    assert_sound(home)


@pytest.mark.parametrize("mask", [0o022, 0o000])
def test_f1_files_of_a_backup_and_of_what_is_put_back_are_their_owners_alone(
    folder: Path, host: CommandHost, mask: int
) -> None:
    home, copy = folder / "home", folder / "made" / "copy"
    assert host.run(home, "add", "the ferry leaves at noon").status == 0

    with umask(mask):
        assert host.run(home, "backup", str(copy)).status == 0
        assert host.run(home, "restore", str(copy), "--replace").status == 0

    assert open_to_others(copy) == {}
    assert open_to_others(home) == {}
