"""A command line for every test of it."""

from pathlib import Path

import pytest

from tests.support.cli import Shell


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(tmp_path / "home", monkeypatch)
