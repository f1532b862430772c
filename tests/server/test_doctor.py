"""Each check of the doctor on the condition that it looks for, in real files; none changes any."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from ledger import Clock, Ledger, OsFiles, WriteReason
from projections import inspection
from projections.connection import Connection
from projections.copies import COPIES_FILE, note_copy
from projections.holders import Holder, holders
from projections.inspection import GenerationsLook, look_at_generations
from server import doctor
from server.bootstrap import Store, open_ledger
from server.config import Config
from server.doctor import (
    WAL_BYTES_WARN,
    check_activity,
    check_holders,
    check_projections,
    check_unfinished,
    examine_home,
)
from server.findings import Examination, Finding
from tests.support.cli import Shell
from tests.support.home_files import entries
from tests.support.store import Client, FakeClock, home_at

HANG_SECONDS: Final = 30


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with sealed segments and a clean end; copied for each test."""
    path = tmp_path_factory.mktemp("sound") / "home"
    with home_at(path) as home:
        client = home.open()
        for number in range(5):
            client.add(content=f"note {number}", layer="semantic")
        client.search("note")
    return path


@pytest.fixture
def path(sound: Path, tmp_path: Path) -> Path:
    shutil.copytree(sound, tmp_path / "home")
    return tmp_path / "home"


def examined(path: Path, *, clock: FakeClock | None = None, **more: Any) -> Examination:
    """Examine a home, and make sure that nothing was changed."""
    before = fingerprint(path)
    found = examine_home(
        path,
        clock=clock or FakeClock(),
        projections_of=lambda ledger: ledger.layout.root.parent / "projections",
        **more,
    )
    assert fingerprint(path) == before
    return found


def fingerprint(path: Path) -> dict[str, tuple[int, str]]:
    """Return mode and content of everything below a folder."""
    if not path.is_dir():
        return {}
    return {
        str(each): (
            each.lstat().st_mode,
            hashlib.sha256(each.read_bytes()).hexdigest()
            if each.is_file() and os.access(each, os.R_OK)
            else "",
        )
        for each in entries(path)
    }


def bad(found: Examination) -> list[Finding]:
    return [each for each in found.findings if each.level != "ok"]


def test_a_sound_store_is_well(path: Path) -> None:
    found = examined(path)
    full = examined(path, full=True)

    assert (found.level, found.looked, bad(found)) == ("ok", True, [])
    assert bad(full) == []
    assert {each.check for each in full.findings} - {each.check for each in found.findings} == {
        "verify"
    }


# ---------------------------------------------------------------------------- no look


def _missing(path: Path) -> None:
    shutil.rmtree(path)


def _a_file(path: Path) -> None:
    shutil.rmtree(path)
    path.touch()


def _empty(path: Path) -> None:
    shutil.rmtree(path / "ledger")


def _newer_format(path: Path) -> None:
    file = path / "ledger" / "FORMAT"
    inner = file.read_bytes()[len(b'{"format":') : -len(b',"d":""}\n') - 64]
    inner = inner.replace(b'"version":1', b'"version":2')
    digest = hashlib.sha256(b"\x01" + inner).hexdigest().encode()
    file.write_bytes(b'{"format":' + inner + b',"d":"' + digest + b'"}\n')


def _broken_format(path: Path) -> None:
    (path / "ledger" / "FORMAT").write_bytes(b"{}\n")


def _lost_format(path: Path) -> None:
    (path / "ledger" / "FORMAT").unlink()


def _half_restored(path: Path) -> None:
    (path / "ledger").rename(path / "ledger.replaced-20261130T120000.000000Z")


@pytest.mark.guarantee("G-HEALTH-1")
@pytest.mark.parametrize(
    ("damage", "looked", "check", "says"),
    [
        (_half_restored, False, "home", "a restore that was cut short"),
        (_missing, False, "home", "is not there"),
        (_a_file, False, "home", "is no folder"),
        (_empty, False, "home", "there is no store"),
        (_newer_format, False, "format", "format"),
        (_broken_format, True, "format", "FORMAT"),
        (_lost_format, True, "format", "FORMAT is missing"),
    ],
)
def test_a_store_that_cannot_be_opened_is_told_apart(
    path: Path, damage: Callable[[Path], None], *, looked: bool, check: str, says: str
) -> None:
    damage(path)
    found = examined(path)

    (broken,) = [each for each in found.findings if each.level == "error"]
    assert (broken.check, found.looked) == (check, looked)
    assert says in broken.text
    assert broken.remedy


def test_what_may_not_be_read_is_said(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Path) -> GenerationsLook:
        raise PermissionError(13, "Permission denied", str(path / "projections"))

    monkeypatch.setattr(doctor, "look_at_generations", refuse)
    found = examined(path)

    assert not found.looked
    assert "Permission denied" in bad(found)[0].text
    assert any(each.check == "disk" for each in found.findings)


# ---------------------------------------------------------------------------- conditions


def _log(path: Path) -> Path:
    return max((path / "ledger" / "log").iterdir())


def _statement(path: Path, sql: str) -> None:
    connection = Connection(_generation(path) / "memory.db")
    connection.execute(sql)
    connection.close()


def _torn(path: Path) -> None:
    with _log(path).open("ab") as log:
        log.write(b'{"h":{"seq')


def _damaged(path: Path) -> None:
    data = bytearray(_log(path).read_bytes())
    data[data.index(b"note 1")] ^= 1
    _log(path).write_bytes(data)


def _broken_manifest(path: Path) -> None:
    (path / "ledger" / "MANIFEST.json").write_bytes(b"{}")


def _marked(path: Path) -> None:
    (path / "ledger" / "LOCK").chmod(0o400)


def _quarantined(path: Path) -> None:
    file = path / "ledger" / "quarantine" / "x.torn"
    file.write_bytes(b"half")
    file.chmod(0o600)
    os.utime(file, (1_781_000_000, 1_781_000_000))


def _temporary(path: Path) -> None:
    for name in ("ledger/FORMAT.tmp", "ledger/log/1.tmp", "copies.jsonl.tmp"):
        OsFiles().write_file(path / name, b"")


def _generation(path: Path) -> Path:
    return path / "projections" / (path / "projections" / "CURRENT").read_text().strip()


def _without_projections(path: Path) -> None:
    shutil.rmtree(path / "projections")


def _damaged_projections(path: Path) -> None:
    database = _generation(path) / "memory.db"
    database.write_bytes(b"no database" * 1000)


def _newer_projections(path: Path) -> None:
    _statement(path, "UPDATE projector SET version = 999 WHERE name = 'memories'")


def _older_projections(path: Path) -> None:
    _statement(path, "UPDATE projector SET version = 0 WHERE name = 'memories'")


def _gaps(path: Path) -> None:
    _statement(path, "INSERT INTO gaps VALUES('lost')")


def _behind(path: Path) -> None:
    with closing(open_ledger(Config(home=path))) as ledger:
        known = ledger.position_at(seq=3)
    _statement(
        path,
        "UPDATE checkpoint SET (seq, digest, segment, offset) = "
        f"({known.seq}, '{known.digest}', {known.segment}, {known.offset})",
    )


def _put_back(path: Path) -> None:
    _statement(path, "UPDATE checkpoint SET seq = 99")


def _another_ledger(path: Path) -> None:
    _statement(path, "UPDATE checkpoint SET digest = 'f'")


def _left_log(path: Path) -> None:
    OsFiles().write_file(_generation(path) / "memory.db-wal", b"")


def _old_generation(path: Path) -> None:
    (path / "projections" / "g000000-aaaaaaaaaaaaaaaa").mkdir(mode=0o700)


def _half_made(path: Path) -> None:
    (path / "projections" / "new-aaaaaaaaaaaaaaaa").mkdir(mode=0o700)


def _redactions(path: Path) -> None:
    _statement(
        path,
        "INSERT INTO redactions SELECT 1000, 'a redaction', min(rid), 1000, NULL, NULL "
        "FROM workspaces",
    )


def _open_to_others(path: Path) -> None:
    (path / "ledger" / "log").chmod(0o755)
    _log(path).chmod(0o644)


def _settings_of_others(path: Path) -> None:
    (path / "config.toml").touch()
    (path / "config.toml").chmod(0o666)


def _broken_activity(path: Path) -> None:
    OsFiles().write_file(path / "activity.db", b"no database" * 100)


def _copied(path: Path) -> None:
    note_copy(path, kind="export", path=_log(path), position=1, now_us=0, warn=print)


def _unreadable_copies(path: Path) -> None:
    (path / COPIES_FILE).symlink_to(path / "elsewhere")


@pytest.mark.guarantee("G-HEALTH-1")
@pytest.mark.parametrize(
    ("condition", "check", "level", "says"),
    [
        (_torn, "ledger", "note", "10 bytes at the end"),
        (_damaged, "ledger", "error", "damaged"),
        (_broken_manifest, "ledger", "error", "MANIFEST"),
        (_marked, "writing", "error", "marked read-only"),
        (_quarantined, "quarantine", "note", "1 unfinished end, 4 bytes, the oldest 6 days old"),
        (_temporary, "unfinished", "warning", "FORMAT.tmp"),
        (_without_projections, "projections", "note", "there are none"),
        (_damaged_projections, "projections", "error", "is damaged"),
        (_newer_projections, "projections", "error", "newer mnemolog"),
        (_older_projections, "projections", "note", "older"),
        (_gaps, "projections", "error", "1 parts of a damaged ledger"),
        (_behind, "projections", "note", "records behind the ledger"),
        (_put_back, "projections", "error", "hold record 99"),
        (_another_ledger, "projections", "error", "or another one"),
        (_left_log, "projections", "note", "left by a crash"),
        (_old_generation, "projections", "note", "old generation g000000"),
        (_half_made, "unfinished", "note", "half-made"),
        (_redactions, "unfinished", "warning", "1 redaction not completed"),
        (
            _open_to_others,
            "permissions",
            "warning",
            "other users may use 2 of the home: ledger/log",
        ),
        (_settings_of_others, "permissions", "warning", "config.toml"),
        (_broken_activity, "activity", "warning", "is not used"),
        (_copied, "copies", "note", "1 file outside may hold memories"),
        (_unreadable_copies, "copies", "error", "copies.jsonl"),
    ],
)
def test_a_condition_is_found_and_nothing_else(
    path: Path, condition: Callable[[Path], None], check: str, level: str, says: str
) -> None:
    condition(path)
    found = examined(path)

    assert [(each.check, each.level) for each in bad(found)] == [(check, level)]
    assert says in bad(found)[0].text
    assert bool(bad(found)[0].remedy) == (level in ("warning", "error"))
    assert (found.level, found.looked) == (level, True)


def test_what_stands_in_the_middle_of_the_log_is_seen_only_by_a_full_look(tmp_path: Path) -> None:
    path = tmp_path / "home"
    with home_at(path) as home:
        store = Store(Config(home=path, segment_bytes=4096), clock=home.clock)
        for number in range(12):
            Client(store).add(content=f"note {number} " + "x" * 600, layer="semantic")
        store.upkeep.finish()
        store.upkeep.stop(5.0)
        store.close()
    sealed = min((path / "ledger" / "log").glob("*.zst"))
    data = bytearray(sealed.read_bytes())
    data[100] ^= 1
    sealed.write_bytes(data)

    quick, full = examined(path), examined(path, full=True)
    sealed.write_bytes(data[:-1])
    shorter = examined(path)
    sealed.unlink()
    gone = examined(path)

    assert quick.level in ("ok", "note")
    assert {each.check for each in full.findings if each.level == "error"} == {"verify"}
    assert "were sealed" in next(each.text for each in bad(shorter) if each.level == "error")
    assert "is missing" in next(each.text for each in bad(gone) if each.level == "error")


def test_segments_that_wait_to_be_sealed_are_noted(path: Path) -> None:
    with closing(open_ledger(Config(home=path, segment_bytes=4096))) as ledger:
        look = GenerationsLook()
        (ledger.layout.log / f"{99:020d}.jsonl").touch()
        found = [*check_unfinished(ledger, look)]

    assert [(each.level, each.text[:15]) for each in found] == [("note", "1 full segment ")]


@pytest.mark.guarantee("G-HEALTH-1")
@pytest.mark.parametrize(
    ("days", "level"), [(-0.5, "note"), (-2, "warning"), (1, "ok"), (40_000, "ok")]
)
def test_a_clock_before_the_last_record_is_found(path: Path, days: float, level: str) -> None:
    clock = FakeClock()
    clock.advance(days=days)
    found = examined(path, clock=clock)

    assert [each.level for each in found.findings if each.check == "clock"] == [level]


def test_times_that_went_back_are_counted(tmp_path: Path) -> None:
    with home_at(tmp_path / "home") as home:
        client = home.open()
        client.add(content="a", layer="semantic")
        home.clock.advance(seconds=-60)
        client.add(content="b", layer="semantic")
    later = FakeClock()
    found = examined(tmp_path / "home", clock=later)

    assert [each.text for each in bad(found)] == [
        "the clock went back 1 times in the newest segment"
    ]


def test_an_empty_store_is_well(tmp_path: Path) -> None:
    with home_at(tmp_path / "home") as home:
        home.open().inspect()

    assert examined(tmp_path / "home").level == "ok"


@pytest.mark.guarantee("G-HEALTH-1")
@pytest.mark.parametrize(
    ("least", "level"), [("FREE_BYTES_MIN", "error"), ("TEMP_BYTES_MIN", "warning")]
)
def test_a_disk_without_room_is_found(
    path: Path, monkeypatch: pytest.MonkeyPatch, least: str, level: str
) -> None:
    monkeypatch.setattr(doctor, least, 1 << 62)
    (found,) = bad(examined(path))

    assert (found.check, found.level) == ("disk", level)
    assert "MiB are left" in found.text


def test_a_network_drive_is_noted(path: Path) -> None:
    (found,) = bad(examined(path, file_system=lambda _: "nfs4"))
    assert (found.check, found.level) == ("file system", "note")


def test_files_of_another_user_are_found(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 54_321)
    (found,) = bad(examined(path))

    assert (found.check, found.level) == ("permissions", "warning")
    assert "belong to another user" in found.text
    assert "more" in found.text


@pytest.mark.parametrize(
    ("reason", "says"), [("no_locks", "knows no locks"), ("read_only", "only read")]
)
def test_a_store_that_can_only_be_read_is_found(
    path: Path, monkeypatch: pytest.MonkeyPatch, reason: WriteReason, says: str
) -> None:
    opened = doctor.open_to_look

    def refused(home: Path, clock: Clock) -> Ledger:
        ledger = opened(home, clock)
        ledger.refusal = reason
        return ledger

    monkeypatch.setattr(doctor, "open_to_look", refused)
    (found,) = bad(examined(path))

    assert (found.check, found.level) == ("writing", "warning")
    assert says in found.text


def test_settings_that_are_wrong_are_found_without_a_home() -> None:
    found = examine_home(
        None,
        clock=FakeClock(),
        projections_of=lambda ledger: ledger.layout.root,
        problems=["MNEMOLOG_HOME is ''"],
        warnings=["MNEMOLOG_HOM is no setting"],
    )

    assert (found.looked, found.level) == (False, "error")
    assert [each.level for each in found.findings] == ["error", "warning"]


# ---------------------------------------------------------------------------- who has it open


HOLD: Final = """
import fcntl, sys
file = open(sys.argv[1])
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="the system tells no locks")
def test_whoever_holds_a_lock_is_named_and_one_who_is_suspended_is_warned_of(path: Path) -> None:
    lock = path / "ledger" / "LOCK"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        if holders(lock) == []:
            pytest.skip("the file system tells another device than the list of locks")
        (held,) = bad(examined(path))
        os.kill(process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        (stopped,) = bad(examined(path))
        os.kill(process.pid, signal.SIGCONT)
        process.communicate(timeout=HANG_SECONDS)
    assert bad(examined(path)) == []

    assert (held.check, held.level) == ("locks", "note")
    assert str(process.pid) in held.text
    assert (stopped.check, stopped.level) == ("locks", "warning")
    assert f"kill -CONT {process.pid}" in stopped.remedy


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="the system tells no locks")
def test_a_store_in_use_is_looked_at_and_left_alone(tmp_path: Path) -> None:
    with home_at(tmp_path / "home") as home:
        client = home.open()
        client.add(content="in use", layer="semantic")
        if not holders(home.database.with_name("IN_USE")):
            pytest.skip("the file system tells another device than the list of locks")
        found = examine_home(
            home.path, clock=home.clock, projections_of=lambda _: home.path / "projections"
        )
        wal = home.database.with_name("memory.db-wal")

        assert found.level == "note"
        assert [each.check for each in bad(found)] == ["locks"]
        assert str(os.getpid()) in bad(found)[0].text
        assert wal.exists()
        client.add(content="still", layer="semantic")
        assert client.found("still")


def test_a_system_without_a_list_of_locks_tells_of_none(path: Path) -> None:
    assert holders(path / "ledger" / "LOCK", path / "no list") is None
    assert holders(path / "no file") is None


def test_a_process_that_has_ended_is_named_by_its_number(path: Path, tmp_path: Path) -> None:
    lock = path / "ledger" / "LOCK"
    status = lock.stat()
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
    table = tmp_path / "locks"
    table.write_text(
        f"1: FLOCK  ADVISORY  WRITE 999999999 {device}:{status.st_ino} 0 EOF\n"
        f"1: -> FLOCK  ADVISORY  WRITE 999999998 {device}:{status.st_ino} 0 EOF\n"
        f"2: POSIX  ADVISORY  WRITE 999999997 {device}:{status.st_ino} 0 EOF\n"
        "3: what nobody knows\n"
    )
    found = holders(lock, table)

    assert found is not None
    assert [(each.pid, each.name, each.is_stopped) for each in found] == [(999_999_999, "", False)]


def test_a_generation_that_may_not_be_read_is_told_apart(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(inspection, "Generation", refuse)
    assert look_at_generations(path / "projections").state == "unreadable"
    (found,) = bad(examined(path))
    assert (found.check, found.level) == ("projections", "warning")


def test_damage_that_only_reading_shows_is_damage(path: Path) -> None:
    _statement(path, "DROP TABLE checkpoint")
    _statement(path, "CREATE TABLE checkpoint(other)")
    assert look_at_generations(path / "projections").state == "damaged"


def test_a_log_that_grows_and_who_reads_are_named(path: Path) -> None:
    user = Holder(pid=os.getpid(), name="python", is_stopped=False)
    look = GenerationsLook(
        name="g1",
        state="read",
        wal_bytes=WAL_BYTES_WARN + 1,
        others={"g0": (user,)},
        rebuilding=(user,),
    )
    with closing(open_ledger(Config(home=path))) as ledger:
        found = [*check_projections(look, ledger, None), *check_holders(path, look)]

    texts = " ".join(each.text for each in found)
    assert "the write-ahead log has 64 MiB" in texts
    assert f"old generation g0, held by {user.pid}" in texts
    assert f"the rebuild lock: held by {user.pid}" in texts


def test_activity_that_was_set_aside_is_noted(tmp_path: Path) -> None:
    (tmp_path / "activity.db.set-aside").touch()
    (found,) = check_activity(tmp_path / "activity.db")
    assert found.level == "note"


# ---------------------------------------------------------------------------- the command


def test_the_command_prints_a_line_a_check_and_what_to_do(cli: Shell, tmp_path: Path) -> None:
    nothing = cli("doctor")
    cli.add("kept")
    well = cli("doctor", "--full")
    (tmp_path / "home").chmod(0o755)
    open_to_all = cli("doctor")
    as_json = cli("doctor", "--json")

    assert (nothing.status, nothing.out.splitlines()[-1]) == (2, "could not look")
    assert (well.status, well.out.splitlines()[-1]) == (0, "all is well")
    assert (open_to_all.status, open_to_all.out.splitlines()[-1]) == (1, "there is something to do")
    assert "-> `chmod -R go= " in open_to_all.out
    assert as_json.status == 1
    assert as_json.json["level"] == "warning"
    assert {each["check"] for each in as_json.json["findings"]} >= {"ledger", "permissions"}


def test_the_command_works_where_the_settings_do_not(
    cli: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.add("kept")
    monkeypatch.setenv("MNEMOLOG_SEGMENT_BYTES", "many")
    monkeypatch.setenv("MNEMOLOG_SEGMENT_BYTE", "1")
    found = cli("doctor", "--json")

    assert found.status == 1
    settings = [each["level"] for each in found.json["findings"] if each["check"] == "settings"]
    assert settings == ["error", "warning"]
