"""Cold start: from the start of the process to the answer a client waits for."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.client import ServerSpec
from bench.corpus import Corpus
from bench.measure import median, percentile, priority, resident_mib, save
from bench.stores import servers, working_copy

Samples = dict[str, list[float]]


def run(options: argparse.Namespace) -> None:
    """Measure each size, the servers taking turns."""
    for size in (0, *options.sizes):
        save(f"cold-{size}", _measure(size, options))


def _measure(size: int, options: argparse.Namespace) -> dict[str, Any]:
    specs = servers()
    samples: dict[str, Samples] = {spec.name: defaultdict(list) for spec in specs}
    query = next(Corpus().queries("and2", 1, max(size, 1)))
    with ExitStack() as stack:
        homes = {spec.name: stack.enter_context(working_copy(spec, size)) for spec in specs}
        stack.enter_context(priority(realtime=options.realtime))
        for turn in range(options.starts + 1):
            for spec in specs[turn % len(specs) :] + specs[: turn % len(specs)]:
                start = _start(spec, homes[spec.name], query)
                if spec.name == "mnemolog":
                    start |= _own_starts(spec, homes[spec.name], query)
                if turn:  # the first one warms the page cache
                    for name, value in start.items():
                        samples[spec.name][name].append(value)
    result: dict[str, Any] = {"size": size, "starts": options.starts, "servers": {}}
    for name, measured in samples.items():
        result["servers"][name] = {key: median(values) for key, values in measured.items()}
        result["servers"][name]["tools_list_p90_ms"] = percentile(measured["tools_list_ms"], 0.9)
    if len(specs) == 2:
        ours, theirs = (samples[spec.name] for spec in specs)
        result["ratios"] = {
            key: median([a / b for a, b in zip(ours[key], theirs[key], strict=True)])
            for key in theirs
        }
    print(f"cold start, {size} memories: {result['servers']}", flush=True)
    return result


def _start(spec: ServerSpec, home: Path, query: dict[str, Any]) -> dict[str, float]:
    with spec.start(home) as client:
        client.initialize()
        initialized = time.perf_counter()
        tools, _ = client.request("tools/list")
        listed = time.perf_counter()
        resident_start = resident_mib(client.pid)
        client.operate("search", query)
        found = time.perf_counter()
        return {
            "initialize_ms": (initialized - client.started) * 1e3,
            "tools_list_ms": (listed - client.started) * 1e3,
            "first_search_ms": (found - client.started) * 1e3,
            "tools_list_bytes": _json_bytes(tools),
            "resident_start_mib": resident_start,
            "resident_open_mib": resident_mib(client.pid),
        }


def _own_starts(spec: ServerSpec, home: Path, query: dict[str, Any]) -> dict[str, float]:
    """Measure the starts that no peer has: with few tools, and a search as a command."""
    with spec.start(home, MNEMOLOG_TOOLS="core") as client:
        client.initialize()
        tools, _ = client.request("tools/list")
        measured = {
            "core_tools_list_ms": (time.perf_counter() - client.started) * 1e3,
            "core_tools_list_bytes": _json_bytes(tools),
        }
    command = [str(Path(sys.executable).parent / "mnemolog"), "search", "--json", query["query"]]
    if any((home / "ledger").glob("*")):  # a search does not make a store
        began = time.perf_counter()
        subprocess.run(
            command,
            env={**os.environ, "MNEMOLOG_HOME": str(home)},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        measured["command_search_ms"] = (time.perf_counter() - began) * 1e3
    return measured


def _json_bytes(value: Any) -> float:  # noqa: ANN401 - JSON
    return float(len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()))
