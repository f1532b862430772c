"""Nothing here speaks to a network."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.crash.harness import MNEMOLOG, environment, serving
from tests.support.home_files import strace

COMMANDS = (
    ("add", "the heron is late", "--layer", "episodic"),
    ("search", "heron", "--json"),
    ("export", "--format", "jsonl"),
    ("health",),
    ("verify", "--digest"),
    ("rebuild",),
)


def reached(log: Path) -> list[str]:
    """Return the calls that a trace shows of sockets which lead off this process's machine."""
    return [line for line in log.read_text().splitlines() if re.search(r"AF_INET|AF_PACKET", line)]


@pytest.mark.guarantee("G-NET-1")
def test_neither_a_session_nor_a_command_opens_a_connection(tmp_path: Path) -> None:
    home, log = tmp_path / "home", tmp_path / "trace"
    traced = strace("-e", "trace=%network", "-o", str(log))
    with serving(home, prefix=traced) as server:
        server.add("the heron stands still")
        assert server.call("memory_search", query="heron")["returned_count"] == 1
        assert server.call("memory_health")["status"] == "healthy"
        server.close_input()
        assert server.exit_status() == 0
    assert reached(log) == []
    for words in COMMANDS:
        command = [*traced, MNEMOLOG, *words]
        subprocess.run(command, env=environment(home), check=True, capture_output=True)
        assert reached(log) == [], words


def test_a_connection_would_be_seen(tmp_path: Path) -> None:
    log = tmp_path / "trace"
    traced = strace("-e", "trace=%network", "-o", str(log))
    program = "import socket; socket.socket().connect_ex(('127.0.0.1', 9))"

    subprocess.run([*traced, "python3", "-c", program], check=True)

    assert reached(log) != []
