"""The power is cut at every moment of everything that is done to a ledger and to its home."""

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ledger import Ledger, OsFiles
from ledger.live import LiveSegment
from ledger.manifest import Manifest
from ledger.osfile import temporary_path
from projections.generation import Generations
from server.redaction import Redactions
from tests.crash.harness import environment
from tests.crash.home_operations import (
    HOME_OPERATIONS,
    Remembered,
    check_home,
    record_home,
)
from tests.crash.ledger_operations import (
    OPERATIONS,
    Expected,
    check,
    record,
    record_killed,
)
from tests.crash.states import (
    SEED,
    STATES_MAX,
    BadStateError,
    chosen,
    folder,
    states_of,
    try_all,
)
from tests.crash.try_states import try_home, try_killed, try_operation
from tests.support.recorder import Recorder, RecordingFiles

NAMES = [operation.name for operation in OPERATIONS]
SHARE = STATES_MAX // 18
SHARE_KILLED = STATES_MAX // 50
SHARE_HOME = STATES_MAX // 200


def _in_a_process(kind: str, name: str, count: int) -> int:
    command = [sys.executable, "-m", "tests.crash.try_states", kind, name, str(count)]
    done = subprocess.run(
        command, env=environment(Path("unused")), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    sys.stdout.write(f"{done.stdout.strip()} states of {name} ({kind})\n")
    return int(done.stdout)


@pytest.mark.guarantee("G-POWER-1")
@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_power_cut_at_any_moment_leaves_a_ledger_that_keeps_its_promises(name: str) -> None:
    assert _in_a_process("ledger", name, SHARE) > 100


@pytest.mark.guarantee("G-POWER-1", "G-ACK-2")
@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_power_cut_after_a_process_was_killed_and_another_went_on_loses_nothing(
    name: str,
) -> None:
    assert _in_a_process("killed", name, SHARE_KILLED) > 20


@pytest.mark.guarantee("G-POWER-1")
@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.parametrize("name", [operation.name for operation in HOME_OPERATIONS])
def test_a_power_cut_leaves_a_home_whose_tables_equal_a_replay_of_its_ledger(name: str) -> None:
    assert _in_a_process("home", name, SHARE_HOME) > 20


def test_the_states_of_an_operation_are_tried_in_this_process_too() -> None:
    assert try_operation("append", 30) >= 20
    assert try_killed("append a batch", 30) >= 10
    assert try_home("add", 20) >= 10


# ---------------------------------------------------------------------------- mutants


class _NoSync(RecordingFiles):
    def sync(self, fd: int) -> None:
        pass


class _NoDirectorySync(RecordingFiles):
    def sync_directory(self, fd: int) -> None:
        pass


class _RenameFirst(RecordingFiles):
    def replace_file(self, path: Path, data: bytes) -> None:
        temporary = temporary_path(path)
        fd = self.create(temporary)
        self.write_all(fd, data, 0)
        self.rename_file(temporary, path)
        self.sync(fd)
        self.close(fd)


class _InPlace(RecordingFiles):
    def replace_file(self, path: Path, data: bytes) -> None:
        self.write_file(path, data)


class _SyncFirst(RecordingFiles):
    """The directory is synced before the change in it."""

    def rename_file(self, source: Path, target: Path) -> None:
        self.sync_names(target.parent)
        self.rename(source, target)


def _unlink_before_the_manifest(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Ledger.replace_manifest

    def replace(self: Ledger, manifest: Manifest) -> None:
        self.files.remove_file(self.layout.raw(manifest.segments[-1].first))
        real(self, manifest)

    monkeypatch.setattr(Ledger, "replace_manifest", replace)


def _keep_nothing_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LiveSegment, "_keep_aside", lambda *_: None)


def _roll_without_a_footer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LiveSegment, "_try_roll", lambda live, _tip, end: live._create_next(end))


def _publish_unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Generations, "sync", lambda _self, _database: None)


def _leave_what_is_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Redactions, "_purge_aside", lambda _self, _job: [])


def _mutate_nothing(_: pytest.MonkeyPatch) -> None:
    pass


Mutation = Callable[[pytest.MonkeyPatch], None]


def _first_bad(name: str, files: type[RecordingFiles] = RecordingFiles) -> str | None:
    operation = next(each for each in OPERATIONS if each.name == name)
    with folder() as base:
        recording = record(operation, base, files)
    return _first_bad_of(recording, 0)


def _first_bad_of(recording: Recorder, since: int) -> str | None:
    try:
        for states in states_of(recording, Expected, limit=8, since=since):
            try_all(states[:24], check, recording)
    except BadStateError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("append", _NoSync),
        ("repair a torn tail", _NoSync),
        ("seal", _NoSync),
        ("create", _NoDirectorySync),
        ("roll", _NoDirectorySync),
        ("seal", _NoDirectorySync),
        ("create", _RenameFirst),
        ("roll", _RenameFirst),
        ("seal", _InPlace),
        ("replace after a failed sync", _InPlace),
        ("seal", _SyncFirst),
    ],
)
def test_a_step_left_out_or_out_of_order_is_caught(name: str, files: type[RecordingFiles]) -> None:
    assert _first_bad(name, files) is not None


@pytest.mark.parametrize(
    ("name", "mutation"),
    [
        ("seal", _unlink_before_the_manifest),
        ("repair a torn tail", _keep_nothing_aside),
        ("roll", _roll_without_a_footer),
    ],
)
def test_a_fault_in_the_ledgers_own_steps_is_caught(
    monkeypatch: pytest.MonkeyPatch, name: str, mutation: Mutation
) -> None:
    mutation(monkeypatch)

    assert _first_bad(name) is not None


def _first_bad_after_kills(name: str, first: int = 0) -> str | None:
    operation = next(each for each in OPERATIONS if each.name == name)
    for kill_at in range(first, 100):
        with folder() as base:
            found = record_killed(operation, base, kill_at)
        if found is None:
            return None
        bad = _first_bad_of(*found)
        if bad is not None:
            return bad
    raise AssertionError("the operation does not end")


@pytest.mark.parametrize(
    ("name", "method", "first"),
    [("create", "sync_ancestors", 0), ("seal", "sync_names", 9)],
)
def test_what_a_killed_process_left_unsynced_and_nobody_synced_is_caught(
    monkeypatch: pytest.MonkeyPatch, name: str, method: str, first: int
) -> None:
    monkeypatch.setattr(OsFiles, method, lambda _self, _path: None)

    assert _first_bad_after_kills(name, first) is not None


def test_a_tail_that_is_believed_without_a_sync_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(LiveSegment, "_settle", lambda *_, **__: None)

    assert _first_bad_after_kills("append") is not None


@pytest.mark.parametrize(
    ("name", "mutation", "files"),
    [
        ("rebuild", _publish_unsynced, RecordingFiles),
        ("add", _mutate_nothing, _NoSync),
        ("restore", _mutate_nothing, _NoSync),
        ("redact what was put aside", _leave_what_is_aside, RecordingFiles),
    ],
)
def test_a_fault_in_what_surrounds_the_ledger_is_caught(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    mutation: Mutation,
    files: type[RecordingFiles],
) -> None:
    operation = next(each for each in HOME_OPERATIONS if each.name == name)
    mutation(monkeypatch)
    with folder() as base:
        recording = record_home(operation, base, files)

    states = chosen(states_of(recording, Remembered, limit=24), 500)
    random.Random(SEED).shuffle(states)
    with pytest.raises(BadStateError):
        try_all(states, check_home, recording)


def test_the_unharmed_ledger_passes_what_catches_the_others() -> None:
    assert [_first_bad(name) for name in ("create", "seal")] == [None] * 2
    assert _first_bad_after_kills("append") is None
