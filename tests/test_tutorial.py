"""The tutorial says nothing that does not work."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.reference import ROOT

TUTORIAL = ROOT / "docs" / "tutorial.md"


@pytest.mark.slow
@pytest.mark.guarantee("G-PAST-1")
@pytest.mark.skipif(shutil.which("jq") is None, reason="the tutorial uses jq")
def test_every_command_of_the_tutorial_does_what_it_says(tmp_path: Path) -> None:
    blocks = re.findall(r"```console\n(.*?)```", TUTORIAL.read_text("utf-8"), re.DOTALL)
    commands = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
    script = "\n".join(f"printf '%s\\n' {_quoted(line)}\n{line}" for line in commands)

    done = subprocess.run(
        ["/bin/sh", "-e", "-c", script],
        cwd=tmp_path,
        env={
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    shown = _by_command(done.stdout, commands)
    assert "Tuesdays" in shown['mnemolog search "deploy day"'][0]
    assert "Thursdays" in shown['mnemolog search "deploy day"'][1]
    assert "Tuesdays" not in shown['mnemolog search "deploy day"'][1]
    assert "Thursdays" in shown['mnemolog search "deploy day"'][2]
    assert "PostgreSQL" in shown["mnemolog list --entity-name billing"][0]
    assert "Ben" in shown['mnemolog search "on call"'][0]
    assert "Ana" not in shown['mnemolog search "on call"'][0]
    assert "Ana" in shown['mnemolog search "covers" --as-of 2026-11-15'][0]
    assert "Ana" not in shown['mnemolog search "covers" --as-of 2026-12-15'][0]
    assert "tests pass" in shown["mnemolog session list"][0]
    assert "2" in shown["mnemolog delete --scope import --yes"][0]
    assert "Tuesdays" in shown['mnemolog search "deploy day" --known-at 3'][0]
    assert " added " in shown["mnemolog diff 3 --limit 3"][0]
    assert "Tuesdays" in shown["mnemolog diff 0 3"][0]
    assert "clean" in shown["mnemolog verify"][0]
    assert "Tuesdays" in shown['mnemolog replay --until 3 --query "deploy day"'][0]
    assert (tmp_path / "memories.md").stat().st_mode & 0o777 == 0o600


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _by_command(output: str, commands: list[str]) -> dict[str, list[str]]:
    """Take the output apart at the echoed commands; a command may stand there more than once."""
    shown: dict[str, list[str]] = {}
    rest = output
    for command, following in zip(commands, [*commands[1:], None], strict=True):
        _, _, rest = rest.partition(command + "\n")
        said = rest if following is None else rest.partition(following + "\n")[0]
        shown.setdefault(command, []).append(said)
    return shown
