"""What only this project does: rebuild from its ledger and verify it; and the bytes on disk."""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.client import ServerSpec
from bench.measure import DATA, folder_bytes, load, peak_resident_mib, priority, save
from bench.stores import LOCK_TIMEOUT_S, open_ledger, servers, store
from ledger import OsFiles
from projections.generation import Generations
from projections.rebuild import rebuild

MILLION = 1_000_000


def run_rebuild(options: argparse.Namespace) -> None:
    """Time rebuild, verify and digest, each in a process of its own."""
    for size in _sizes(options):
        home = store(ServerSpec("mnemolog"), size)
        result: dict[str, Any] = {"size": size, "build": load(f"build-{size}")}
        with priority(realtime=options.realtime):
            for name in ("digest", "verify"):
                result[name] = _timed([str(Path(sys.executable).parent / "mnemolog"), name], home)
            result["rebuild"] = json.loads(
                subprocess.run(
                    [sys.executable, "-m", "bench.run", "rebuild-once", str(home)],
                    check=True,
                    stdout=subprocess.PIPE,
                ).stdout
            )
        save(f"rebuild-{size}", result)
        print(f"rebuild, {size} events: {result['rebuild']}", flush=True)


def run_rebuild_once(options: argparse.Namespace) -> None:
    """Rebuild a store's projections into a scratch folder; print the measures as JSON."""
    scratch = DATA / "work" / "rebuild"
    shutil.rmtree(scratch, ignore_errors=True)
    ledger = open_ledger(options.home)
    phases: dict[str, list[float]] = {}
    began, cpu_began = time.perf_counter(), _cpu_s()

    def progress(phase: str, done: int, _total: int) -> None:
        phases[phase] = [done, time.perf_counter() - began]

    report = rebuild(
        ledger,
        Generations(scratch, OsFiles()),
        lock_timeout_s=LOCK_TIMEOUT_S,
        known=None,
        progress=progress,
    )
    seconds, cpu = time.perf_counter() - began, _cpu_s() - cpu_began
    shutil.rmtree(scratch)
    print(
        json.dumps(
            {
                "events": report.events,
                "wall_s": seconds,
                "cpu_s": cpu,
                "events_per_s": report.events / seconds,
                "events_per_cpu_s": report.events / cpu,
                "phase_ends_s": {phase: end for phase, (_, end) in phases.items()},
                "peak_resident_mib": peak_resident_mib(os.getpid()),
            }
        )
    )


def run_disk(options: argparse.Namespace) -> None:
    """Count the bytes a memory takes on disk."""
    for size in _sizes(options):
        result: dict[str, Any] = {"size": size}
        for spec in servers() if size < MILLION else [ServerSpec("mnemolog")]:
            home = store(spec, size)
            result[spec.name] = {"bytes_per_memory": folder_bytes(home) / size}
            if spec.name == "mnemolog":
                result[spec.name] |= _our_bytes(home, size)
        save(f"disk-{size}", result)
        print(f"disk, {size} memories: {result}", flush=True)


def _our_bytes(home: Path, size: int) -> dict[str, float]:
    ledger = open_ledger(home)
    sealed = ledger.manifest().segments
    ledger.close()
    result = {"projection_bytes_per_memory": folder_bytes(home / "projections") / size}
    if sealed:
        events = sum(segment.count for segment in sealed)
        result |= {
            "sealed_bytes_per_event": sum(segment.file_bytes for segment in sealed) / events,
            "raw_bytes_per_event": sum(segment.raw_bytes for segment in sealed) / events,
        }
    return result


def _timed(command: list[str], home: Path) -> dict[str, float]:
    """Run a command on a store; return its seconds and CPU seconds."""
    began = time.perf_counter()
    with subprocess.Popen(
        command, env={**os.environ, "MNEMOLOG_HOME": str(home)}, stdout=subprocess.DEVNULL
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command} ended with status {process.returncode}")
    return {
        "wall_s": time.perf_counter() - began,
        "cpu_s": usage.ru_utime + usage.ru_stime,
    }


def _cpu_s() -> float:
    """Return the CPU seconds of this process and of its workers that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _sizes(options: argparse.Namespace) -> list[int]:
    return [size for size in options.sizes if size >= 10_000] + [MILLION] * options.million
