"""Clocks, counters of a process, statistics, result files."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("MNEMOLOG_BENCH_DATA", ROOT / "build" / "bench"))
RESULTS = Path(os.environ.get("MNEMOLOG_BENCH_RESULTS", DATA / "results"))
PEERS = os.environ.get("MNEMOLOG_BENCH_PEERS", "")
"""The node_modules folder that holds the peer; empty leaves the peer out."""

_CPU_CLOCK_OF_PROCESS = 2


def cpu_ms(pid: int) -> float:
    """Return the CPU milliseconds that all threads of a process have used, ended ones included."""
    # Linux makes the clock of any process from its id; see clock_getcpuclockid(3).
    return time.clock_gettime_ns((~pid << 3) | _CPU_CLOCK_OF_PROCESS) / 1e6


def resident_mib(pid: int) -> float:
    """Return the resident memory of a process in MiB."""
    return _status_mib(pid, "VmRSS")


def peak_resident_mib(pid: int) -> float:
    """Return the greatest resident memory that a process has had, in MiB."""
    # Not ru_maxrss: that begins with what the parent had when it forked.
    return _status_mib(pid, "VmHWM")


def _status_mib(pid: int, field: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("Linux shows the memory of every process")


def folder_bytes(folder: Path) -> int:
    """Return what the files of a folder take on disk, in bytes."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def percentile(values: Sequence[float], share: float) -> float:
    """Return the nearest-rank percentile; `share` is 0 to 1."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered) + 0.5) - 1))]


def median(values: Sequence[float]) -> float:
    """Return the median."""
    return statistics.median(values)


def yardstick_cpu_ms() -> float:
    """Time a fixed job: how fast this machine is just now."""
    began = time.perf_counter()
    total = 0
    for number in range(200_000):
        total += number * number & 7
    hashlib.sha256(b"x" * 4_000_000).digest()
    return (time.perf_counter() - began) * 1e3


def yardstick_sync_ms(folder: Path) -> float:
    """Time an fdatasync after appending 500 bytes, the median of 20."""
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        times = []
        for _ in range(20):
            file.write(b"x" * 500)
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - began) * 1e3)
    return median(times)


@contextmanager
def priority(*, realtime: bool) -> Iterator[None]:
    """Run a block, and what it starts, before all ordinary work of the machine, if wanted."""
    if not realtime:
        yield
        return
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def machine() -> dict[str, Any]:
    """Describe what is measured on, in the words of the results."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def save(name: str, result: Any) -> None:  # noqa: ANN401 - JSON
    """Write a result file."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


def load(name: str) -> Any:  # noqa: ANN401 - JSON
    """Read a result file; None when that was not measured."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None
