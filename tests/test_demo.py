"""The demo and the door without a server, run as their users run them."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOTE = "# A note\n\nThe greenhouse is watered at six.\n\nThe pump is in the cellar.\n"


def run(*command: str, **settings: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_demo_shows_each_promise_and_ends_well(tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text(NOTE)

    shown = run(
        str(Path(sys.executable).with_name("mnemolog")),
        "demo",
        "--documents",
        str(tmp_path),
        MNEMOLOG_HOME=str(tmp_path / "untouched"),
    )

    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "3 pieces of documents" in shown.stdout
    assert "state digests before and after are equal" in shown.stdout
    assert shown.stdout.rstrip().endswith("Everything was as promised.")
    assert not (tmp_path / "untouched").exists()


def test_the_door_without_a_server_does_the_same_as_the_command(tmp_path: Path) -> None:
    home = tmp_path / "home"
    script = str(ROOT / "tools" / "replay.py")
    missing = run(sys.executable, script, "--home", str(home), "verify", PYTHONPATH=str(ROOT))
    assert missing.returncode == 2
    assert not home.exists()

    command = str(Path(sys.executable).with_name("mnemolog"))
    request = (
        '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
        '"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}\n'
        '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"memory_add",'
        '"arguments":{"content":"the boiler pump","layer":"semantic"}}}\n'
    )
    environment = {**os.environ, "MNEMOLOG_HOME": str(home)}
    subprocess.run(
        [command], input=request, env=environment, capture_output=True, text=True, check=True
    )

    for name, said in (
        ("rebuild", "the same digests"),
        ("verify", "ledger: clean"),
        ("digest", "text "),
    ):
        done = run(sys.executable, script, "--home", str(home), name, PYTHONPATH=str(ROOT))
        assert (done.returncode, done.stderr) == (0, "")
        assert said in done.stdout
