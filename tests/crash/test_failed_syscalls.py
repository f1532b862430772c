"""Writes and syncs of the ledger's live segment that the system refuses, in a running server."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.crash.harness import assert_sound, code, contents, live_segment, serving

WRITES = 40
"""Several for each of the server's threads: strace counts the calls of each on its own."""


def _strace() -> str:
    program = shutil.which("strace")
    if program is None:
        pytest.skip("strace is not installed")
    probe = subprocess.run([program, "-qq", "true"], capture_output=True, check=False)
    if probe.returncode != 0:
        pytest.skip("strace may not trace here")
    return program


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with serving(tmp_path / "home") as server:
        server.add("before")
    return tmp_path / "home"


@pytest.mark.guarantee("G-ACK-3")
@pytest.mark.crash
@pytest.mark.parametrize("when", ["1", "2", "1..2", "3+"])
@pytest.mark.parametrize(
    ("syscall", "error", "expected"),
    [
        ("fdatasync", "EIO", "read_only"),
        ("pwrite64", "ENOSPC", "disk_full"),
        ("pwrite64", "EFBIG", "read_only"),
        ("pwrite64", "EIO", "read_only"),
    ],
)
def test_a_failed_write_to_the_live_segment_is_refused_and_the_next_one_works(
    home: Path, syscall: str, error: str, expected: str, when: str
) -> None:
    inject = f"inject={syscall}:error={error}:when={when}"
    options = ["-f", "-qq", "-o", "/dev/null", "-e", f"trace={syscall}", "-e", inject]
    prefix = [_strace(), *options, "-P", str(live_segment(home))]
    acknowledged = {"before": contents(home).ids["before"]}
    codes = []
    with serving(home, prefix=prefix) as server:
        for number in range(WRITES):
            said = server.add(f"note {number}")
            codes.append(code(said))
            if "error" not in said:
                acknowledged[f"note {number}"] = said["id"]
        assert server.total() == len(acknowledged)
        server.close_input()
        assert server.exit_status() == 0
    assert {expected} <= set(codes) <= {expected, ""}, codes
    refused = codes.index(expected)
    if not when.endswith("+"):
        assert "" in codes[refused:], "the ledger did not get well"
    assert contents(home).ids == acknowledged
    with serving(home) as fresh:
        assert fresh.total() == len(acknowledged)
        assert "error" not in fresh.add("after")
    assert_sound(home)


@pytest.mark.guarantee("G-ACK-3")
@pytest.mark.crash
def test_when_nothing_can_be_synced_the_outcome_is_unknown_and_a_repetition_finds_out(
    home: Path,
) -> None:
    options = ["-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync"]
    prefix = [_strace(), *options, "-e", "inject=fdatasync:error=EIO:when=1+"]
    with serving(home, prefix=prefix) as server:
        assert code(server.add("lost or not", idempotency_key="once")) == "outcome_unknown"
        assert code(server.add("another")) == "read_only"
        assert "error" not in server.call("memory_search", query="before")
        with serving(home) as other:
            # It finds the mark, mends the segment, and goes on.
            said = other.add("lost or not", idempotency_key="once")
            assert "error" not in said
    assert contents(home).counts == {"before": 1, "lost or not": 1}
    assert_sound(home)
