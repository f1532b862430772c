"""Latency and CPU of each operation, the servers taking turns on stores of one size."""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from bench.client import Client, ToolError
from bench.corpus import QUERY_KINDS, Corpus
from bench.measure import (
    DATA,
    cpu_ms,
    median,
    percentile,
    priority,
    resident_mib,
    save,
    yardstick_cpu_ms,
    yardstick_sync_ms,
)
from bench.stores import servers, working_copy

WRITE_KINDS = ("add", "add_entity", "update", "supersede", "delete")
KINDS = (*WRITE_KINDS, *QUERY_KINDS)
BLOCK_S_MAX = 2.0
"""A block ends early after this time, so that a slow operation does not take the whole run."""

ERRORS_MAX = 5
WINDOW = 16
PIPELINED = 400


def run(options: argparse.Namespace) -> None:
    """Measure each size."""
    for size in options.sizes:
        save(f"calls-{size}", Run(size, options).measure())


class _Server:
    """A running server and what was seen of it."""

    def __init__(self, client: Client, size: int) -> None:
        self.client = client
        self.next_number = size
        self.ids: list[str] = []
        self.errors: dict[str, list[str]] = defaultdict(list)
        self.latencies: dict[str, list[float]] = defaultdict(list)
        self.cpu: dict[str, list[float]] = defaultdict(list)
        self.hits: dict[str, list[int]] = defaultdict(list)
        self.p50: dict[tuple[str, int], float] = {}
        self.pipelined: dict[str, float] = {}


class Run:
    """One interleaved run at one size."""

    def __init__(self, size: int, options: argparse.Namespace) -> None:
        """Prepare the queries: the same for every server."""
        self._size = size
        self._turns = options.turns
        self._block = options.block
        self._realtime = options.realtime
        self._corpus = Corpus()
        count = (self._turns + 1) * self._block
        self._queries = {
            kind: list(self._corpus.queries(kind, count, size)) for kind in QUERY_KINDS
        }

    def measure(self) -> dict[str, Any]:
        """Run it and return the result."""
        specs = servers()
        yardsticks: dict[str, list[float]] = {"cpu_ms": [], "sync_ms": []}
        with ExitStack() as stack:
            homes = [stack.enter_context(working_copy(spec, self._size)) for spec in specs]
            stack.enter_context(priority(realtime=self._realtime))
            running = {}
            for spec, home in zip(specs, homes, strict=True):
                client = stack.enter_context(spec.start(home))
                client.initialize()
                running[spec.name] = _Server(client, self._size)
            names = list(running)
            for turn in range(self._turns + 1):  # turn 0 warms up
                yardsticks["cpu_ms"].append(yardstick_cpu_ms())
                yardsticks["sync_ms"].append(yardstick_sync_ms(DATA))
                for kind in KINDS:
                    for name in names[turn % len(names) :] + names[: turn % len(names)]:
                        self._run_block(running[name], kind, turn)
            for server in running.values():
                self._pipeline(server)
            resident = {name: resident_mib(server.client.pid) for name, server in running.items()}
        result = self._result(running)
        result |= {"resident_end_mib": resident, "yardsticks": yardsticks}
        return result

    def _run_block(self, server: _Server, kind: str, turn: int) -> None:
        if len(server.errors[kind]) >= ERRORS_MAX:
            return
        operation = "search" if kind in QUERY_KINDS else kind.removesuffix("_entity")
        items = list(self._items(server, kind, turn))
        latencies, done = [], 0
        cpu_before, ends = cpu_ms(server.client.pid), time.perf_counter() + BLOCK_S_MAX
        for item in items:
            try:
                answer, seconds = server.client.operate(operation, item)
            except ToolError as error:
                server.errors[kind].append(str(error))
                continue
            latencies.append(seconds * 1e3)
            done += 1
            if operation == "search" and turn:
                server.hits[kind].append(len(answer["memories"]))
            elif operation == "add":
                server.ids.append(answer["id"])
            if time.perf_counter() > ends:
                break
        if turn and latencies:
            server.cpu[kind].append((cpu_ms(server.client.pid) - cpu_before) / done)
            server.latencies[kind] += latencies
            server.p50[kind, turn] = median(latencies)

    def _items(self, server: _Server, kind: str, turn: int) -> Iterator[dict[str, Any]]:
        if kind in QUERY_KINDS:
            yield from self._queries[kind][turn * self._block : (turn + 1) * self._block]
        elif kind in ("add", "add_entity"):
            yield from self._additions(server, self._block, with_entity=kind == "add_entity")
        else:
            for _ in range(min(self._block // 2, len(server.ids))):
                server.next_number += 1
                content = self._corpus.memory(server.next_number)["content"]
                yield {"id": server.ids.pop(0), "content": content}

    def _additions(
        self, server: _Server, count: int, *, with_entity: bool | None
    ) -> Iterator[dict[str, Any]]:
        while count:
            memory = self._corpus.memory(server.next_number)
            server.next_number += 1
            if with_entity in (None, memory["entity_name"] is not None):
                count -= 1
                yield memory

    def _pipeline(self, server: _Server) -> None:
        """Measure throughput with many requests in flight."""
        work = {
            "add": ("add", list(self._additions(server, PIPELINED, with_entity=None))),
            "add_plain": ("add", list(self._additions(server, PIPELINED, with_entity=False))),
            "search": ("search", self._queries["and2"][:PIPELINED]),
        }
        for name, (operation, items) in work.items():
            seconds = server.client.pipeline(operation, items, WINDOW)
            server.pipelined[name] = len(items) / seconds

    def _result(self, running: dict[str, _Server]) -> dict[str, Any]:
        ours = running["mnemolog"]
        theirs = running.get("mnemon-mcp")
        result: dict[str, Any] = {"size": self._size, "operations": {}, "ratios": {}}
        for kind in KINDS:
            result["operations"][kind] = {
                name: _summary(server, kind)
                for name, server in running.items()
                if server.latencies[kind]
            }
            if theirs is not None and theirs.latencies[kind]:
                result["ratios"][kind] = median(
                    [
                        ours.p50[kind, turn] / theirs.p50[kind, turn]
                        for turn in range(1, self._turns + 1)
                        if (kind, turn) in ours.p50 and (kind, turn) in theirs.p50
                    ]
                )
        result["pipelined_per_s"] = {name: server.pipelined for name, server in running.items()}
        result["errors"] = {
            name: {
                kind: [len(errors), errors[0]] for kind, errors in server.errors.items() if errors
            }
            for name, server in running.items()
        }
        print(f"{self._size} memories: {result['ratios']}", flush=True)
        return result


def _summary(server: _Server, kind: str) -> dict[str, float]:
    latencies, hits = server.latencies[kind], server.hits[kind]
    summary = {
        "calls": len(latencies),
        "p50_ms": percentile(latencies, 0.5),
        "p90_ms": percentile(latencies, 0.9),
        "p99_ms": percentile(latencies, 0.99),
        "cpu_ms": median(server.cpu[kind]),
    }
    if hits:
        summary["hits"] = sum(hits) / len(hits)
    return summary
