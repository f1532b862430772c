"""The command line as a script has it: words in, exit status and two texts out."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest

from server.shell import run

_INSTALLED: Final = Path(sys.executable).with_name("mnemolog")

COMMAND: Final = (
    [str(_INSTALLED)]
    if _INSTALLED.exists()
    else [sys.executable, "-c", "from server.cli import main; main()"]
)
"""The command that is installed beside this interpreter."""

HANG_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command ended with."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one line of JSON on standard output."""
        (line,) = self.out.splitlines()
        return json.loads(line)

    @property
    def error(self) -> Any:
        """The error that stands as one line of JSON on standard error."""
        (line,) = self.err.splitlines()
        return json.loads(line)["error"]

    @property
    def id(self) -> str:
        """The id in a result of `--json`."""
        return str(self.json["id"])


def environment(home: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment, but for what is set of mnemolog."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("MNEMOLOG_")}
    return {**kept, "MNEMOLOG_HOME": str(home), **settings}


def installed(home: Path, *words: str | bytes, stdin: bytes = b"", **settings: str) -> Outcome:
    """Run the installed command in a process of its own."""
    done = subprocess.run(
        [*COMMAND, *words],
        env=environment(home, settings),
        input=stdin,
        capture_output=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


class Shell:
    """Runs commands on one home in this process."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in [name for name in os.environ if name.startswith("MNEMOLOG_")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("MNEMOLOG_HOME", str(home))
        self.home = home
        self._monkeypatch = monkeypatch

    def __call__(self, *words: str, stdin: bytes = b"") -> Outcome:
        out, err = (io.TextIOWrapper(io.BytesIO(), write_through=True) for _ in range(2))
        with self._monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            try:
                status = run(words, serve=_serve)
            except SystemExit as end:  # after a help
                status = int(str(end.code))
        texts = [stream.buffer.getvalue().decode() for stream in (out, err)]
        return Outcome(status, *texts)

    def add(self, content: str, *words: str) -> str:
        """Store a memory; return its id."""
        return self("add", content, *words, "--json").id


def _serve(_: Mapping[str, str]) -> NoReturn:
    raise AssertionError("no test serves in its own process")
