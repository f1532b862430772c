"""A copy is put back whole, without what was erased since, and never over what is there unasked."""

import errno
import itertools
import shutil
from pathlib import Path

import pytest

from ledger import (
    Aside,
    BackupDamagedError,
    BackupRefusedError,
    ErasedRecord,
    Ledger,
    LedgerNotFoundError,
    LedgerPutAsideError,
    LedgerReadOnlyError,
    LedgerWriteError,
    LockTimeoutError,
    MemoryRedacted,
    OsFiles,
    Position,
    RandomIds,
    RedactionExplained,
    RedactionList,
    Restoration,
    RestoreReport,
    backup,
    erase_aside,
    remove_prepared,
    verify,
)
from ledger.lock import FileLock
from ledger.writer import Batch, NewEvent
from tests.support.bundles import note_at
from tests.support.ledgers import (
    ACTOR,
    SMALL,
    WORKSPACE,
    CountingIds,
    Crash,
    OrderedFiles,
    QuickFiles,
    TickingClock,
    append_each,
    close_opened,
    contents,
    live_path,
    open_ledger,
    open_sealer,
    tree,
)
from tests.support.redactions import REDACTION, digests, inflated, name, redact, said


@pytest.fixture(name="home")
def _home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture(name="copy")
def _copy(tmp_path: Path) -> Path:
    return tmp_path / "copy"


def restoration(
    source: Path, home: Path, *, replace: bool = False, files: OsFiles | None = None
) -> Restoration:
    return Restoration(
        source,
        home,
        replace=replace,
        clock=TickingClock(),
        ids=RandomIds(),
        files=files or QuickFiles(),
        lock_timeout_s=0.5,
    )


def restore(source: Path, home: Path, *, replace: bool = False) -> RestoreReport:
    with restoration(source, home, replace=replace) as prepared:
        return prepared.put_in_place()


def open_home(home: Path) -> Ledger:
    return open_ledger(home / "ledger", options=SMALL)


def listed(ledger: Ledger, *seqs: int) -> list[ErasedRecord]:
    return [
        ErasedRecord(ledger=ledger.id, redaction=REDACTION, seq=seq, digest=digest)
        for seq, digest in digests(ledger, seqs).items()
    ]


def test_a_copy_is_put_into_a_home_that_has_none(home: Path, copy: Path) -> None:
    ledger = open_ledger(copy / "ledger", options=SMALL)
    end = append_each(ledger, "one", "two")
    open_sealer(ledger).run()
    signed = note_at(ledger, 2)
    (copy / "ledger" / "checkpoints").write_bytes(signed)
    for path in copy.rglob("*"):
        path.chmod(0o755)
    before = tree(copy)

    report = restore(copy, home)

    assert report == RestoreReport(
        path=home / "ledger",
        ledger=ledger.id,
        events=2,
        last=report.copied,
        copied=report.copied,
        erased=0,
        redacted=0,
        replaced=None,
    )
    assert (report.last.seq, report.last.digest) == (end.seq, end.digest)
    assert contents(open_home(home)) == ["one", "two"]
    assert (home / "ledger" / "checkpoints").read_bytes() == signed
    assert tree(copy) == before
    assert all(path.stat().st_mode & 0o777 == 0o755 for path in copy.rglob("*"))
    assert sorted(path.name for path in home.iterdir()) == ["RESTORE", "ledger"]
    for path in home.rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600)
    assert append_each(open_home(home), "three", known=end).seq == 3


def test_bytes_at_the_end_that_may_have_been_a_record_are_not_left_out_in_silence(
    home: Path, copy: Path
) -> None:
    ledger = open_ledger(copy)
    append_each(ledger, "one", "two")
    data = live_path(ledger).read_bytes()
    live_path(ledger).write_bytes(data.replace(b"two", b"owt"))

    with pytest.raises(BackupDamagedError, match="torn_tail"):
        restore(copy, home)

    assert not home.exists()


def test_a_ledger_that_is_there_is_replaced_only_when_that_is_asked_for(
    home: Path, copy: Path
) -> None:
    ledger = open_home(home)
    append_each(ledger, "one")
    backup(ledger, copy)
    append_each(ledger, "two")
    before = tree(home / "ledger")

    with pytest.raises(BackupRefusedError) as caught:
        restore(copy, home)
    assert (caught.value.path, caught.value.reason) == (home, "ledger_exists")
    assert tree(home) == {f"ledger/{file}": data for file, data in before.items()}
    report = restore(copy, home, replace=True)

    assert report.replaced is not None
    assert report.replaced.parent == home
    assert report.replaced.name.startswith("ledger.replaced-20261130T")
    assert tree(report.replaced) == before
    assert contents(open_home(home)) == ["one"]
    assert contents(open_ledger(report.replaced)) == ["one", "two"]


def test_an_empty_folder_is_no_ledger(home: Path, copy: Path) -> None:
    append_each(open_ledger(copy), "one")
    (home / "ledger").mkdir(parents=True)

    assert restore(copy, home).replaced is None


def test_damage_of_the_copy_is_named_and_nothing_changed(home: Path, copy: Path) -> None:
    ledger = open_ledger(copy, options=SMALL)
    append_each(ledger, "one", "two")
    data = bytearray(ledger.layout.raw(2).read_bytes())
    data[300] ^= 1
    ledger.layout.raw(2).write_bytes(data)

    with pytest.raises(BackupDamagedError, match=r"in log/0+2\.jsonl at record 2") as caught:
        restore(copy, home)

    assert caught.value.path == copy
    assert not home.exists()


def test_where_there_is_no_ledger_there_is_nothing_to_put_back(home: Path, copy: Path) -> None:
    for source in (copy, copy / "ledger"):
        source.mkdir()
        with pytest.raises(LedgerNotFoundError):
            restore(copy, home)


@pytest.mark.guarantee("G-ERASE-4")
@pytest.mark.parametrize("known_from", ["list", "present", "both"])
def test_what_was_erased_since_stays_erased(home: Path, copy: Path, known_from: str) -> None:
    ledger = open_home(home)
    known = append_each(ledger, "one", "two", "three")
    why = RedactionExplained(salt="f" * 32, reason="secret reason")
    with ledger.lock(1) as writer:
        list(writer.catch_up(known))
        group = writer.group()
        group.add(Batch(WORKSPACE, ACTOR, [NewEvent("x" * 16, why)]))
        known = group.commit()
    backup(ledger, copy)
    append_each(ledger, "later", known=known)
    entries = listed(ledger, 2, 4, 5)
    redact(ledger, 2, 4, 5)
    if known_from != "present":
        RedactionList(home).add(entries)
    if known_from == "list":
        shutil.rmtree(home / "ledger")

    report = restore(copy, home, replace=True)

    assert (report.erased, report.redacted, report.copied.seq) == (2, 2, 4)
    restored = open_home(home)
    records = list(restored.read(Position.start))
    assert said(records) == ["one", None, "three"]
    named = [each.payload for each in records if isinstance(each.payload, MemoryRedacted)]
    assert [(each.redaction, [one.seq for one in each.targets]) for each in named] == [
        (REDACTION, [2]),
        (REDACTION, [4]),
    ]
    assert [(each.header.sub, each.header.sp, each.header.act) for each in records[4:]] == [
        (records[1].header.sub, 3, ACTOR),
        ("x" * 16, 4, ACTOR),
    ]
    assert {each.header.cause for each in records[4:]} == {REDACTION}
    everything = inflated(home / "ledger").values()
    assert not any(text in data for data in everything for text in (b"two", b"secret reason"))
    assert sorted(each.seq for each in RedactionList(home).entries()) == [2, 4, 5]
    assert verify(home / "ledger", report.last).notes == []
    again = restore(copy, home, replace=True)
    assert (again.events, again.erased) == (6, 2)


def test_a_redaction_that_the_copy_has_not_finished_is_finished(home: Path, copy: Path) -> None:
    ledger = open_home(home)
    known = append_each(ledger, "one", "two")
    targets = {**digests(ledger, [1]), 2: "0" * 64}
    name(ledger, targets, known)
    backup(ledger, copy)

    report = restore(copy, home, replace=True)

    assert (report.events, report.erased) == (3, 1)
    assert said(open_home(home).read(Position.start)) == [None, "two"]


def test_a_present_ledger_that_is_another_or_damaged_tells_what_it_can(
    home: Path, copy: Path, tmp_path: Path
) -> None:
    ledger = open_home(home)
    append_each(ledger, "one", "two")
    backup(ledger, copy)
    redact(ledger, 2)
    live_path(ledger).write_bytes(b"bad")
    (home / "ledger" / "MANIFEST.json").write_bytes(b"bad")

    assert restore(copy, home, replace=True).erased == 1
    for damaged in (b"bad", b""):
        (home / "ledger" / "FORMAT").write_bytes(damaged)
        assert restore(copy, home, replace=True).erased == 1  # the list knows by now
    shutil.rmtree(home)
    stranger = open_ledger(home / "ledger", ids=CountingIds())
    stranger.ids.new_id()
    other = tmp_path / "other"
    moved = CountingIds()
    moved.new_id()
    append_each(open_ledger(other, ids=moved), "else")
    assert restore(other, home, replace=True).erased == 0
    assert contents(open_home(home)) == ["else"]


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.EINVAL, errno.ENOTSUP])
def test_a_file_system_that_cannot_exchange_names_renames_twice(
    home: Path, copy: Path, code: int
) -> None:
    ledger = open_home(home)
    append_each(ledger, "one")
    backup(ledger, copy)
    append_each(ledger, "two")
    files = OrderedFiles()
    files.fail("exchange", code)

    with restoration(copy, home, replace=True, files=files) as prepared:
        report = prepared.put_in_place()

    assert report.replaced is not None
    assert contents(open_ledger(report.replaced)) == ["one", "two"]
    assert contents(open_home(home)) == ["one"]


@pytest.mark.parametrize(
    "failures",
    [
        {"exchange": (errno.EIO, 0)},
        {"exchange": (errno.ENOSYS, 0), "rename": (errno.EIO, 2)},
        {"exchange": (errno.ENOSYS, 0), "rename": (errno.EIO, 3)},
        {"rename": (errno.EIO, 0)},
    ],
)
def test_a_swap_that_fails_leaves_the_ledger_that_was_there(
    home: Path, copy: Path, failures: dict[str, tuple[int, int]]
) -> None:
    ledger = open_home(home)
    append_each(ledger, "one")
    backup(ledger, copy)
    append_each(ledger, "two")
    files = OrderedFiles()

    with restoration(copy, home, replace=True, files=files) as prepared:
        for call, (code, skip) in failures.items():
            files.fail(call, code, skip=skip)
        with pytest.raises(LedgerWriteError):
            prepared.put_in_place()

    assert contents(open_home(home)) == ["one", "two"]
    assert sorted(path.name for path in home.iterdir()) == ["RESTORE", "ledger"]


def test_what_was_prepared_and_not_put_in_place_is_removed(home: Path, copy: Path) -> None:
    append_each(open_ledger(copy), "one")

    with restoration(copy, home) as prepared:
        assert contents(prepared.ledger) == ["one"]

    assert [path.name for path in home.iterdir()] == ["RESTORE"]


def test_one_restore_works_at_a_time_and_no_writer_beside_it(home: Path, copy: Path) -> None:
    ledger = open_home(home)
    append_each(ledger, "one")
    backup(ledger, copy)
    with restoration(copy, home, replace=True) as prepared:
        with pytest.raises(LockTimeoutError), restoration(copy, home, replace=True):
            pass
        for path in (ledger.layout.lock, ledger.layout.seal_lock):
            held = FileLock(path, QuickFiles())
            held.acquire(0)
            with pytest.raises(LockTimeoutError):
                prepared.put_in_place()
            held.release()
            held.close()
        prepared.put_in_place()


def test_a_writer_that_was_there_before_notices(home: Path, copy: Path) -> None:
    ledger = open_home(home)
    known = append_each(ledger, "one", "two")
    backup(ledger, copy)
    known = append_each(ledger, "three", known=known)
    restore(copy, home, replace=True)

    with pytest.raises(Exception, match="shorter"):
        append_each(ledger, "four", known=known)
    assert append_each(ledger, "three again").seq == 3
    assert verify(home / "ledger").ok


@pytest.mark.parametrize("call", ["create", "write", "sync", "make_directory", "open_lock"])
def test_a_restore_that_fails_leaves_nothing(home: Path, copy: Path, call: str) -> None:
    append_each(open_ledger(copy), "one")
    files = OrderedFiles()
    files.fail(call, errno.ENOSPC)

    with (
        pytest.raises((LedgerWriteError, LedgerReadOnlyError)),
        restoration(copy, home, files=files),
    ):
        pass

    assert not list(home.glob("ledger*"))


@pytest.mark.parametrize("exchanges", [True, False])
def test_a_restore_that_is_killed_leaves_the_old_ledger_or_the_new_one(
    tmp_path: Path, *, exchanges: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    template, copy = tmp_path / "template", tmp_path / "copy"
    ledger = open_home(template)
    append_each(ledger, "one", "two")
    backup(ledger, copy)
    append_each(ledger, "three")
    redact(ledger, 1)
    for crash_at in itertools.count():
        close_opened()
        home = tmp_path / "home"
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(template, home)
        files = OrderedFiles(crash_at)
        if not exchanges:
            files.fail("exchange", errno.ENOSYS)
        with monkeypatch.context() as patched:
            # A process that is killed tidies nothing up; only its locks go.
            patched.setattr(shutil, "rmtree", lambda *_args, **_kwargs: None)
            try:
                with restoration(copy, home, replace=True, files=files) as prepared:
                    prepared.put_in_place()
            except Crash:
                crashed = True
            else:
                crashed = False

        standing = [path for path in home.glob("ledger*") if "partial" not in path.name]
        ends = [said(open_ledger(path).read(Position.start))[-1] for path in standing]
        assert "three" in ends
        if (home / "ledger").exists():
            assert said(open_home(home).read(Position.start)) in (
                [None, "two", "three"],
                [None, "two"],
            )
        else:
            assert not exchanges
        close_opened()
        report = restore(copy, home, replace=True)
        assert report.events == 3
        assert not list(home.glob("*partial*"))
        if not crashed:
            assert crash_at > 20
            break


def aside_of(home: Path, copy: Path) -> tuple[Ledger, Path]:
    """A home whose ledger was put back from a copy, and what was put aside."""
    append_each(open_home(home), "one", "two")
    close_opened()
    shutil.copytree(home / "ledger", copy)
    report = restore(copy, home, replace=True)
    assert report.replaced is not None
    return open_home(home), report.replaced


def test_what_is_put_aside_loses_what_the_list_names(home: Path, copy: Path) -> None:
    ledger, aside = aside_of(home, copy)
    kept = RedactionList(home)
    assert erase_aside(ledger, kept, lock_timeout_s=1) == Aside()
    kept.add(listed(ledger, 1))
    (home / "ledger.partial-0").mkdir()

    found = erase_aside(ledger, kept, lock_timeout_s=1)

    assert found == Aside(erased=(aside.name,))
    assert erase_aside(ledger, kept, lock_timeout_s=1) == Aside()
    report = verify(aside)
    assert (report.ok, report.redacted) == (True, 1)
    assert not (home / "ledger.partial-0").exists()
    shutil.rmtree(aside)
    assert erase_aside(ledger, kept, lock_timeout_s=1) == Aside()


def test_what_is_put_aside_and_unreadable_is_named(home: Path, copy: Path) -> None:
    ledger, aside = aside_of(home, copy)
    (aside / "FORMAT").write_bytes(b"nothing of the kind")
    assert erase_aside(ledger, RedactionList(home), lock_timeout_s=1) == Aside(unread=(aside.name,))


def test_a_folder_that_cannot_be_removed_is_a_write_error(
    home: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, _ = aside_of(home, copy)
    (home / "ledger.partial-0").mkdir()

    def refuse(_: Path) -> None:
        raise OSError(errno.EIO, "no")

    monkeypatch.setattr(shutil, "rmtree", refuse)
    with pytest.raises(LedgerWriteError):
        erase_aside(ledger, RedactionList(home), lock_timeout_s=1)
    with pytest.raises(LedgerWriteError):
        remove_prepared(ledger)


def test_what_a_restore_left_is_removed_unless_one_is_at_work(home: Path, copy: Path) -> None:
    ledger, aside = aside_of(home, copy)
    assert remove_prepared(ledger) == []
    (home / "ledger.partial-0").mkdir()

    with restoration(copy, home, replace=True) as prepared:
        assert remove_prepared(ledger) == []
        assert prepared.ledger.layout.root.exists()
    (home / "ledger.partial-1").mkdir()

    assert remove_prepared(ledger) == ["ledger.partial-1"]
    assert not list(home.glob("ledger.partial-*"))
    assert aside.exists()


def test_no_ledger_begins_where_a_restore_was_cut_short(home: Path, copy: Path) -> None:
    ledger, aside = aside_of(home, copy)
    ledger.close()
    shutil.rmtree(home / "ledger")

    with pytest.raises(LedgerPutAsideError, match=f"put {aside.name} aside: repeat the restore"):
        open_home(home)

    assert not (home / "ledger").exists()
    aside.rename(home / "ledger")
    open_home(home)
