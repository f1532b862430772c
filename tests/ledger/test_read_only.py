"""Ledgers that may only be read, and file systems without locks: found when they are opened."""

import errno
import os
import stat
from pathlib import Path

import pytest

from ledger import LedgerReadOnlyError, LedgerWriteError, OsFiles
from ledger.layout import Layout
from tests.support.ledgers import (
    QuickFiles,
    append_each,
    close_opened,
    contents,
    open_ledger,
    tree,
)


class Refusing(QuickFiles):
    """A system that lets nothing be written to below one folder."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def may_write(self, path: Path) -> bool:
        return not path.is_relative_to(self._root)


class Lockless(QuickFiles):
    """A file system whose locks fail."""

    def __init__(self, code: int) -> None:
        self._code = code

    def flock(self, fd: int, operation: int) -> None:
        raise OSError(self._code, f"no lock {operation} on {fd}")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A ledger of two records, closed."""
    append_each(open_ledger(tmp_path / "l"), "one", "two")
    close_opened()
    return tmp_path / "l"


@pytest.mark.parametrize("part", [".", "log", "log/00000000000000000001.jsonl"])
def test_a_ledger_of_which_a_part_may_not_be_written_is_read_and_not_appended_to(
    root: Path, part: str
) -> None:
    before = tree(root)
    ledger = open_ledger(root, files=Refusing(root / part))

    assert ledger.is_read_only
    assert contents(ledger) == ["one", "two"]
    with pytest.raises(LedgerReadOnlyError) as caught, ledger.lock(0):
        pass

    assert caught.value.reason == ledger.refusal == "read_only"
    assert tree(root) == before


@pytest.mark.parametrize(
    "code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EBADF]
)
def test_without_locks_a_ledger_is_read_and_not_appended_to(root: Path, code: int) -> None:
    ledger = open_ledger(root, files=Lockless(code))

    assert contents(ledger) == ["one", "two"]
    with pytest.raises(LedgerReadOnlyError) as caught, ledger.lock(0):
        pass

    assert caught.value.reason == "no_locks"


def test_without_locks_no_ledger_is_made(tmp_path: Path) -> None:
    with pytest.raises(LedgerReadOnlyError) as caught:
        open_ledger(tmp_path / "l", files=Lockless(errno.ENOLCK))

    assert caught.value.reason == "no_locks"
    assert not Layout(tmp_path / "l").format.exists()


def test_a_lock_that_fails_for_another_reason_is_no_lack_of_locks(root: Path) -> None:
    ledger = open_ledger(root, files=Lockless(errno.EIO))

    assert not ledger.is_read_only
    with pytest.raises(LedgerReadOnlyError) as caught, ledger.lock(0):
        pass

    assert caught.value.reason == "io_error"


def test_what_is_not_there_counts_as_writable(root: Path) -> None:
    files = OsFiles()

    assert files.may_write(root)
    assert files.may_write(root / "nothing")


def test_a_lock_file_is_opened_for_reading_where_it_may_not_be_written(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def refuse_writing(path: Path, flags: int, mode: int) -> int:
        if flags & os.O_RDWR:
            raise OSError(errno.EROFS, "read-only")
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", refuse_writing)
    fd = OsFiles().open_lock(root / "LOCK")
    monkeypatch.undo()

    assert os.pread(fd, 1, 0) == b""
    os.close(fd)


@pytest.mark.parametrize(
    ("before", "after"), [(0o755, 0o700), (0o777, 0o700), (0o700, 0o700), (0o555, 0o555)]
)
def test_a_folder_is_closed_to_others_unless_its_owner_may_not_write_either(
    root: Path, before: int, after: int
) -> None:
    (root / "log").chmod(before)

    open_ledger(root)

    assert stat.S_IMODE((root / "log").stat().st_mode) == after
    (root / "log").chmod(0o700)


def test_a_ledger_that_may_not_be_made_says_so(tmp_path: Path) -> None:
    class NoFolders(QuickFiles):
        def make_directory(self, path: Path) -> None:
            raise OSError(errno.EACCES, str(path))

    with pytest.raises(LedgerWriteError) as caught:
        open_ledger(tmp_path / "l", files=NoFolders())

    assert (caught.value.outcome, caught.value.reason) == ("not_written", "read_only")
