"""A rebuild that is killed: the projections in use are the old ones or the new ones, whole."""

import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.crash.harness import (
    MNEMOLOG,
    Server,
    assert_sound,
    dice,
    environment,
    filled,
    generations,
    run,
    serving,
)

MEMORIES = 1_500
MOMENTS = 20
SWEPT: Final = ("mkdir", "flock", "fdatasync", "fsync", "rename", "unlink", "unlinkat", "rmdir")
"""System calls by which a rebuild changes names or makes bytes durable; killed at each of them."""

SAMPLED: Final = ("pwrite64", "openat")
"""Those of which there are many: killed at some."""

SAMPLES = 6

NAMELESS: Final = {"flock", "fdatasync", "fsync", "pwrite64"}
"""Those that take a descriptor instead of a path."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    filled(tmp_path / "home", MEMORIES)
    return tmp_path / "home"


def _assert_whole(server: Server) -> None:
    assert server.total() == MEMORIES
    found = server.call("memory_search", query="harbour", limit=100)
    assert found["returned_count"] == 100
    assert found["has_more"] is True


def _assert_collected(home: Path) -> None:
    rebuilt = run(home, "rebuild")
    assert rebuilt.returncode == 0, rebuilt.stderr
    assert "before: the same digests" in rebuilt.stdout
    assert len(generations(home)) == 1, "a rebuild clears away what killed ones have left"
    assert_sound(home)


@pytest.mark.guarantee("G-TABLES-3")
@pytest.mark.crash
@pytest.mark.slow
def test_a_rebuild_killed_at_random_moments_leaves_a_whole_projection_in_use(home: Path) -> None:
    chance = dice()
    started = time.monotonic()
    assert run(home, "rebuild").returncode == 0
    whole_run = time.monotonic() - started
    with serving(home) as old:
        for _ in range(MOMENTS):
            rebuild = subprocess.Popen(
                [MNEMOLOG, "rebuild"], env=environment(home), stdout=subprocess.DEVNULL
            )
            try:
                rebuild.wait(chance.uniform(0, whole_run))
            except subprocess.TimeoutExpired:
                rebuild.kill()
            assert rebuild.wait() in {0, -signal.SIGKILL}
            _assert_whole(old)
            with serving(home) as fresh:
                _assert_whole(fresh)
    _assert_collected(home)


def _strace() -> str:
    program = shutil.which("strace")
    if program is None:
        pytest.skip("strace is not installed")
    probe = subprocess.run([program, "-qq", "true"], capture_output=True, check=False)
    if probe.returncode != 0:
        pytest.skip("strace may not trace here")
    return program


def _traced(strace: str, home: Path, *options: str) -> int:
    command = [strace, "-f", "-qq", *options, MNEMOLOG, "rebuild"]
    return subprocess.run(
        command, env=environment(home), capture_output=True, check=False
    ).returncode


def _points(strace: str, home: Path, log: Path) -> Iterator[tuple[str, int]]:
    """Yield the system calls of a whole rebuild at which to kill one."""
    names = ",".join((*SWEPT, *SAMPLED))
    assert _traced(strace, home, "-e", f"trace={names}", "-o", str(log)) == 0
    calls: Counter[str] = Counter()
    ours: dict[str, list[int]] = {}
    for line in log.read_text().splitlines():
        name = line.split(maxsplit=1)[1].partition("(")[0]
        calls[name] += 1
        # The interpreter that loads modules opens files as well; those are not the rebuild's.
        if str(home) in line or name in NAMELESS:
            ours.setdefault(name, []).append(calls[name])
    for name in SWEPT:
        for number in ours.get(name, []):
            yield name, number
    for name in SAMPLED:
        numbers = ours[name]
        for number in numbers[:: max(1, len(numbers) // SAMPLES)]:
            yield name, number


@pytest.mark.guarantee("G-TABLES-3")
@pytest.mark.crash
@pytest.mark.slow
def test_a_rebuild_killed_at_a_system_call_leaves_a_whole_projection_in_use(
    home: Path, tmp_path: Path
) -> None:
    strace = _strace()
    points = list(_points(strace, home, tmp_path / "trace"))
    assert len(points) > 2 * SAMPLES
    killed = 0
    with serving(home) as server:
        for name, number in points:
            inject = f"inject={name}:signal=KILL:when={number}"
            status = _traced(strace, home, "-e", f"trace={name}", "-e", inject, "-o", "/dev/null")
            assert status in {0, -signal.SIGKILL, 128 + signal.SIGKILL}
            killed += status != 0
            _assert_whole(server)
    # Where a call falls depends a little on what the last killed one has left.
    assert killed > len(points) // 2
    with serving(home) as fresh:
        _assert_whole(fresh)
    _assert_collected(home)
