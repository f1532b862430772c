"""What the files of a home are, who may use them, and how they come to be."""

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ledger import OsFiles
from projections.readonly import ReadOnlyGenerations
from server.bootstrap import Store
from server.config import Config
from tests.support.store import Client, Home


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def entries(root: Path) -> list[Path]:
    return [root, *sorted(root.rglob("*"))]


def open_to_others(root: Path) -> dict[str, str]:
    """Return what below a folder others may use, with its mode; all of it must be files or folders.

    Files beside a database come and go.
    """
    found = {}
    for path in entries(root):
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            continue
        expected = 0o700 if stat.S_ISDIR(mode) else 0o600
        if stat.S_IMODE(mode) != expected:
            found[str(path.relative_to(root.parent))] = stat.filemode(mode)
    return found


def unheard(_text: str) -> None:
    """Take what an operator would read."""


def strace(*options: str) -> list[str]:
    """Return a command that runs another under strace; skips where that may not be."""
    program = shutil.which("strace")
    if program is None:
        pytest.skip("strace is not installed")
    if subprocess.run([program, "-qq", "true"], capture_output=True, check=False).returncode:
        pytest.skip("strace may not trace here")
    return [program, "-f", "-qq", *options]


def torn(home: Path) -> None:
    with max((home / "ledger" / "log").iterdir()).open("ab") as segment:
        segment.write(b'{"h":{"half')


class ReadOnlyFiles(OsFiles):
    """A system that lets nothing of a home be written to."""

    def may_write(self, path: Path) -> bool:
        return not path.exists()


@contextmanager
def viewing(
    home: Home, files: OsFiles | None = None, said: list[str] | None = None
) -> Iterator[Client]:
    """Open a home to read only."""
    store = Store(
        Config(home=home.path),
        clock=home.clock,
        files=files or ReadOnlyFiles(),
        log=(said if said is not None else []).append,
    )
    try:
        yield Client(store)
    finally:
        store.close()


def is_aside(client: Client) -> bool:
    """Say whether a store reads from a copy of its own."""
    kept = client.store.reads._generations
    assert isinstance(kept, ReadOnlyGenerations)
    return kept._remove_copy is not None
