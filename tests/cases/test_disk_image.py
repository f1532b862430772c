"""Group R on a disk: what a redaction leaves in the blocks of a file system.

Needs root, a loop device and ext4; the store is on a small image that is searched byte by byte.
"""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.cases.ways import program
from tests.crash.harness import run
from tests.support.traces import traces_beside

CANARY: Final = "zqcanary7781"
IMAGE_BYTES: Final = 64 << 20


def _done(*command: str) -> bool:
    if shutil.which(command[0]) is None:
        return False
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "disk.img"
    with path.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    # Without a journal's copy of data blocks, as ext4 is mounted by default (data=ordered).
    if not _done("mkfs.ext4", "-q", "-F", str(path)):
        pytest.skip("mkfs.ext4 is not installed")
    return path


@pytest.fixture
def disk(image: Path, tmp_path: Path) -> Iterator[Path]:
    """The image, mounted; unmounted at the end if the test has not done so."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if not _done("mount", "-o", "loop", str(image), str(folder)):
        pytest.skip("nothing may be mounted here")
    try:
        yield folder
    finally:
        _done("umount", str(folder))


def _held(image: Path) -> int:
    return image.read_bytes().count(CANARY.encode())


def test_r1_after_a_trim_no_block_of_the_disk_holds_the_words(image: Path, disk: Path) -> None:
    home = disk / "home"
    with program(home) as way:
        for number in range(20):
            way.add(f"filler {number}")
        secret = way.add(f"the password is {CANARY}", title=CANARY)
        way.update(secret, content=f"the new password is {CANARY}", title=CANARY)
        assert way.ask("redact", id=secret, reason="a password")["completed"] is True
        assert traces_beside(home, [CANARY]) == {}
    assert run(home, "verify").returncode == 0

    if not _done("fstrim", str(disk)):
        pytest.skip("the image cannot be trimmed here")
    assert _done("umount", str(disk))

    assert _held(image) == 0
