"""Commands that read the whole ledger, as a user runs them: time, CPU and peak memory of each.

Each is a child process from its start to its end, so the interpreter's start is part of it. Unlike
`proofs` it works on a copy of a store with projections, which some of the commands read.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from bench.measure import priority, save
from bench.stores import servers, working_copy

MILLION: Final = 1_000_000
OURS: Final = "mnemolog"

COMMANDS: Final = {
    "create": ("checkpoint create", ("checkpoint", "create")),
    "verify": ("verify", ("verify",)),
    "against": ("verify --against an older checkpoint", ("verify", "--against", "{old}")),
    "prove": ("checkpoint prove, one record", ("checkpoint", "prove", "1")),
    "extend": ("checkpoint extend, from an older one", ("checkpoint", "extend", "{old}")),
    "export": ("audit export of the whole", ("audit", "export", "{work}/whole")),
    "export_workspace": (
        "audit export --workspace",
        ("audit", "export", "{work}/part", "--workspace", "default"),
    ),
    "show": ("audit show, the newest 20", ("audit", "show")),
    "show_type": ("audit show --type deleted", ("audit", "show", "--type", "deleted")),
    "show_memory": ("audit show --memory", ("audit", "show", "--memory", "{memory}")),
}
"""What is run, in this order, and what it is called; the names in braces are filled in."""

_RUN: Final = """
import json, os, sys, time
began = time.perf_counter()
out = os.open(os.devnull, os.O_WRONLY)
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ,
                     file_actions=[(os.POSIX_SPAWN_DUP2, out, 1)])
_, status, usage = os.wait4(pid, 0)
wall = time.perf_counter() - began
cpu = usage.ru_utime + usage.ru_stime
print(json.dumps([wall, cpu, usage.ru_maxrss, os.waitstatus_to_exitcode(status)]))
"""
"""What starts a command and waits for it. On Linux a child's peak begins with that of the process
that started it, so it must be a small one, not this one, which may have built a store. In KiB."""


def run(options: argparse.Namespace) -> None:
    """Measure each size from 10,000 on."""
    spec = next(spec for spec in servers() if spec.name == OURS)
    for size in [size for size in options.sizes if size >= 10_000] + [MILLION] * options.million:
        with working_copy(spec, size) as home:
            result = _measure(home, size, options)
        save(f"commands-{size}", result)
        print(f"commands, {size} events: {result}", flush=True)


def _measure(home: Path, size: int, options: argparse.Namespace) -> dict[str, Any]:
    work = home.with_name(f"{home.name}-commands")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    old = work / "old"
    old.write_bytes(_output(home, "checkpoint", "create"))
    # An older checkpoint is one that the ledger has grown since.
    added = json.loads(_output(home, "add", "one more", "--layer", "semantic", "--json"))
    filled = {"old": str(old), "work": str(work), "memory": added["id"]}
    result: dict[str, Any] = {"size": size}
    with priority(realtime=options.realtime):
        for key, (_, words) in COMMANDS.items():
            result[key] = _timed(home, [word.format_map(filled) for word in words])
    shutil.rmtree(work)
    return result


def _timed(home: Path, words: list[str]) -> dict[str, float]:
    """Run a command to its end; its own resource usage tells CPU and the most memory it had."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _RUN, *_command(*words)],
        env=os.environ | {"MNEMOLOG_HOME": str(home)},
        stdout=subprocess.PIPE,
        check=True,
    )
    wall, cpu, resident_kib, code = json.loads(done.stdout)
    if code:
        raise RuntimeError(f"mnemolog {' '.join(words)}: exit status {code}")
    return {"wall_s": wall, "cpu_s": cpu, "peak_resident_mib": resident_kib / 1024}


def _output(home: Path, *words: str) -> bytes:
    env = os.environ | {"MNEMOLOG_HOME": str(home)}
    return subprocess.run(_command(*words), env=env, stdout=subprocess.PIPE, check=True).stdout


def _command(*words: str) -> list[str]:
    return [str(Path(sys.executable).with_name("mnemolog")), *words]
