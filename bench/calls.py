"""Latency and CPU of each operation, the servers taking turns on stores of one size."""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from contextlib import ExitStack
from itertools import islice
from typing import Any

from bench.client import Client, ToolError
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
from bench.work import ALIAS, COMPARED, ENTITY, OWN, Fields, Held, Kind, Work

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
        self.held = Held(size)
        self.errors: dict[str, list[str]] = defaultdict(list)
        self.latencies: dict[str, list[float]] = defaultdict(list)
        self.cpu: dict[str, list[float]] = defaultdict(list)
        self.hits: dict[str, list[int]] = defaultdict(list)
        self.p50: dict[tuple[str, int], float] = {}
        self.pipelined: dict[str, float] = {}

    def do(self, kind: Kind, fields: Fields) -> tuple[Any, float]:
        """Do one piece of work; return the last answer and the seconds all of it took."""
        if kind.operation != "session":
            return self.client.operate(kind.operation, fields)
        begun, start_s = self.client.operate("session_start", fields)
        summary = f"worked on {fields['project']}"
        ended, end_s = self.client.operate("session_end", {"id": begun["id"], "summary": summary})
        return ended, start_s + end_s

    def note(self, kind: Kind, answer: Any) -> None:  # noqa: ANN401 - JSON
        """Remember what was found or added."""
        if kind.is_search:
            self.hits[kind.name].append(len(answer["memories"]))
        elif kind.name == "add_file":
            self.held.heads.append(answer["id"])
        elif kind.operation == "add":
            self.held.ids.append(answer["id"])


class Run:
    """One run at one size: interleaved as far as both servers do the same."""

    def __init__(self, size: int, options: argparse.Namespace) -> None:
        """Prepare the requests."""
        self._size = size
        self._turns = options.turns
        self._realtime = options.realtime
        self._work = Work(size, options.turns + 1, options.block)

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
                for kind in COMPARED:
                    for name in names[turn % len(names) :] + names[: turn % len(names)]:
                        self._run_block(running[name], kind, turn)
            for server in running.values():
                self._pipeline(server)
            self._run_own(running["mnemolog"])
            resident = {name: resident_mib(server.client.pid) for name, server in running.items()}
        result = self._result(running)
        result |= {"resident_end_mib": resident, "yardsticks": yardsticks}
        return result

    def _run_own(self, ours: _Server) -> None:
        """Measure what no peer does, a kind after the other."""
        ours.client.operate("alias_add", {"alias": ALIAS, "entity_name": ENTITY})
        for kind in OWN:
            for turn in range(self._turns + 1):
                self._run_block(ours, kind, turn)

    def _run_block(self, server: _Server, kind: Kind, turn: int) -> None:
        if len(server.errors[kind.name]) >= ERRORS_MAX:
            return
        requests = self._work.requests(kind, turn, server.held, server.client)
        latencies = []
        cpu_before, ends = cpu_ms(server.client.pid), time.perf_counter() + BLOCK_S_MAX
        for fields in requests:
            try:
                answer, seconds = server.do(kind, fields)
            except ToolError as error:
                server.errors[kind.name].append(str(error))
                continue
            latencies.append(seconds * 1e3 / kind.memories)
            server.note(kind, answer)
            if time.perf_counter() > ends:
                break
        if turn and latencies:
            done = len(latencies) * kind.memories
            server.cpu[kind.name].append((cpu_ms(server.client.pid) - cpu_before) / done)
            server.latencies[kind.name] += latencies
            server.p50[kind.name, turn] = median(latencies)

    def _pipeline(self, server: _Server) -> None:
        """Measure throughput with many requests in flight."""

        def additions(*, with_entity: bool | None) -> list[Fields]:
            return list(
                islice(self._work.additions(server.held, with_entity=with_entity), PIPELINED)
            )

        searches = [
            query for turn in range(self._turns + 1) for query in self._work.queries("and2", turn)
        ]
        work = {
            "add": ("add", additions(with_entity=None)),
            "add_plain": ("add", additions(with_entity=False)),
            "search": ("search", searches[:PIPELINED]),
        }
        for name, (operation, items) in work.items():
            seconds = server.client.pipeline(operation, items, WINDOW)
            server.pipelined[name] = len(items) / seconds

    def _result(self, running: dict[str, _Server]) -> dict[str, Any]:
        ours = running["mnemolog"]
        theirs = running.get("mnemon-mcp")
        result: dict[str, Any] = {"size": self._size, "operations": {}, "ratios": {}}
        for kind in (*COMPARED, *OWN):
            result["operations"][kind.name] = {
                name: _summary(server, kind.name)
                for name, server in running.items()
                if server.latencies[kind.name]
            }
            if theirs is not None and theirs.latencies[kind.name]:
                result["ratios"][kind.name] = median(
                    [
                        ours.p50[kind.name, turn] / theirs.p50[kind.name, turn]
                        for turn in range(1, self._turns + 1)
                        if (kind.name, turn) in ours.p50 and (kind.name, turn) in theirs.p50
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
