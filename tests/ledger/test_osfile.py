"""File calls: whole writes, durable names, private modes."""

import ctypes
import errno
import os
from pathlib import Path

import pytest

from ledger import OsFiles
from ledger.osfile import read_exactly, read_file, write_reason
from tests.support.ledgers import OrderedFiles


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (errno.ENOSPC, "disk_full"),
        (errno.EDQUOT, "disk_full"),
        (errno.EFBIG, "file_too_large"),
        (errno.EROFS, "read_only"),
        (errno.EACCES, "read_only"),
        (errno.EIO, "io_error"),
        (errno.EINVAL, "io_error"),
    ],
)
def test_a_failed_write_has_one_of_four_reasons(code: int, reason: str) -> None:
    assert write_reason(OSError(code, "")) == reason


def test_a_write_goes_on_until_every_byte_is_taken(tmp_path: Path) -> None:
    class Slow(OsFiles):
        def write(self, fd: int, data: bytes | memoryview, offset: int) -> int:
            return super().write(fd, data[:3], offset)

    Slow().write_file(tmp_path / "f", b"0123456789")

    assert read_file(tmp_path / "f") == b"0123456789"


def test_a_system_that_takes_nothing_is_an_error(tmp_path: Path) -> None:
    class Stuck(OsFiles):
        def write(self, fd: int, data: bytes | memoryview, offset: int) -> int:
            return 0 * fd * len(data) * offset

    with pytest.raises(OSError, match="takes no more"):
        Stuck().write_file(tmp_path / "f", b"0123456789")


@pytest.mark.parametrize("call", ["create", "write", "sync", "rename", "sync_directory"])
def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, call: str) -> None:
    files = OrderedFiles()
    path = tmp_path / "f"
    files.replace_file(path, b"old")
    files.fail(call, errno.EIO)

    with pytest.raises(OSError, match="Input/output"):
        files.replace_file(path, b"new")

    assert path.read_bytes() == (b"new" if call == "sync_directory" else b"old")
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_removing_what_is_not_there_is_no_error(tmp_path: Path) -> None:
    OsFiles().remove_file(tmp_path / "absent")

    assert not list(tmp_path.iterdir())


def test_missing_parents_are_made_and_each_is_synced_into_its_own(tmp_path: Path) -> None:
    files = OrderedFiles()

    files.ensure_directory(tmp_path / "a" / "b")

    assert files.calls == ["make_directory", "sync_directory"] * 2
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700


def test_a_directory_that_another_process_makes_meanwhile_will_do(tmp_path: Path) -> None:
    class Racing(OsFiles):
        def make_directory(self, path: Path) -> None:
            path.mkdir()
            super().make_directory(path)

    Racing().ensure_directory(tmp_path / "a")

    assert (tmp_path / "a").is_dir()


def test_reading_ends_where_the_file_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"0123456789")
    fd = os.open(path, os.O_RDONLY)
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, at: pread(fd, min(size, 4), at))
    try:
        assert read_exactly(fd, 10, 0) == b"0123456789"
        assert read_exactly(fd, 99, 2) == b"23456789"
        assert read_exactly(fd, 5, 10) == b""
    finally:
        os.close(fd)


def test_two_names_change_places(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "twö"
    one.mkdir()
    (one / "inside").write_bytes(b"1")
    two.write_bytes(b"2")

    OsFiles().exchange(one, two)

    assert one.read_bytes() == b"2"
    assert (two / "inside").read_bytes() == b"1"


def test_what_the_system_says_of_an_exchange_is_passed_on(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()

    with pytest.raises(OSError, match="one") as caught:
        OsFiles().exchange(tmp_path / "one", tmp_path / "missing")

    assert caught.value.errno == errno.ENOENT


def test_a_library_without_the_call_is_said_to_lack_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda *_args, **_kwargs: object())

    with pytest.raises(OSError) as caught:  # noqa: PT011 - the code tells
        OsFiles().exchange(tmp_path / "one", tmp_path / "two")

    assert caught.value.errno == errno.ENOSYS


class _Watching(OrderedFiles):
    """Notes which directories are opened; one of them may not be read."""

    def __init__(self, closed: Path) -> None:
        super().__init__()
        self.closed = closed
        self.opened: list[Path] = []

    def open_directory(self, path: Path) -> int:
        if path == self.closed:
            raise PermissionError
        self.opened.append(path)
        return super().open_directory(path)


def test_the_names_of_all_parents_are_synced_but_of_those_that_may_not_be_read(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a" / "b" / "c"
    path.mkdir(parents=True)
    files = _Watching(tmp_path / "a")

    files.sync_ancestors(path)

    assert files.opened[:2] == [tmp_path / "a" / "b", tmp_path]
    assert files.calls == ["sync_directory"] * len(files.opened)


def test_the_names_of_another_mount_are_not_synced() -> None:
    files = _Watching(Path("nowhere"))

    files.sync_ancestors(Path("/dev"))
    files.sync_ancestors(Path("/"))

    assert files.opened == []
