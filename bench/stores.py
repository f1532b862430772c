"""Stores of a given size, built once and kept in the data folder."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from bench.client import HERE, ServerSpec
from bench.corpus import Corpus
from bench.measure import DATA, PEERS, save
from ledger import (
    AgentRegistered,
    Batch,
    Ledger,
    LedgerOptions,
    MemoryAdded,
    MemoryState,
    NewEvent,
    OsFiles,
    Position,
    RandomIds,
    Sealer,
    SystemClock,
    WorkspaceCreated,
)
from projections.generation import Generations
from projections.rebuild import rebuild
from projections.substring import flush_trigrams
from server.bootstrap import Store
from server.config import Config

GROUP = 1_000
"""Additions that are written and synced together when a ledger is built."""

LOCK_TIMEOUT_S = 60.0
SEGMENT_BYTES_MAX = 16 << 20


def servers() -> list[ServerSpec]:
    """Return what can be measured here: this project, and the peer if it is installed."""
    names = ["mnemolog", "mnemon-mcp"] if PEERS else ["mnemolog"]
    return [ServerSpec(name) for name in names]


def store(spec: ServerSpec, size: int) -> Path:
    """Return a finished store of the first `size` memories; it must not be changed."""
    folder = DATA / "stores" / f"{spec.name}-{size}"
    if folder.exists():
        return folder
    making = folder.with_suffix(".making")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(parents=True, mode=0o700)
    print(f"building a store of {size} memories for {spec.name}", flush=True)
    if spec.name == "mnemolog":
        save(f"build-{size}", build(making, size))
    else:
        _build_peer(making, size)
    making.rename(folder)
    return folder


def forget_our_stores() -> None:
    """Remove this project's stores: they hold what the program made that built them."""
    for folder in (DATA / "stores").glob("mnemolog-*"):
        shutil.rmtree(folder)


@contextmanager
def working_copy(spec: ServerSpec, size: int) -> Iterator[Path]:
    """Lend a copy of a store for measuring; size 0 is an empty folder."""
    copy = DATA / "work" / f"{spec.name}-{size}"
    shutil.rmtree(copy, ignore_errors=True)
    if size:
        shutil.copytree(store(spec, size), copy)
    else:
        copy.mkdir(parents=True, mode=0o700)
    try:
        yield copy
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def open_ledger(home: Path) -> Ledger:
    """Open the ledger of a home, creating it if need be."""
    return Ledger.open(
        home / "ledger",
        clock=SystemClock(),
        ids=RandomIds(),
        options=LedgerOptions(segment_bytes_max=SEGMENT_BYTES_MAX),
    )


def build(home: Path, size: int) -> dict[str, Any]:
    """Write a ledger in large groups, seal it, rebuild, do the upkeep; return the times.

    The substring index is filled, as `mnemolog rebuild` does, and left to nobody's background.
    """
    ledger = open_ledger(home)
    appended = append_events(ledger, size)
    began = time.perf_counter()
    sealer = Sealer(ledger)
    sealer.run()
    sealer.close()
    sealing = time.perf_counter() - began
    generations = Generations(home / "projections", OsFiles())
    rebuild(
        ledger,
        generations,
        lock_timeout_s=LOCK_TIMEOUT_S,
        known=None,
        progress=lambda _phase, _done, _total: None,
    )
    ledger.close()
    began = time.perf_counter()
    _index_substrings(generations)
    substrings = time.perf_counter() - began
    began = time.perf_counter()
    opened = Store(Config(home=home))
    opened.upkeep.run_once()
    opened.close()
    return {
        "events": size,
        "seal_s": sealing,
        "substrings_s": substrings,
        "upkeep_s": time.perf_counter() - began,
        **appended,
    }


def _index_substrings(generations: Generations) -> None:
    generation = generations.open_current()
    flushed = GROUP
    while flushed:
        with generation.changing():
            flushed = flush_trigrams(generation.writer, GROUP)
        with generation.readers.borrow() as connection:
            connection.checkpoint_wal()
    generation.close()


def append_events(ledger: Ledger, size: int, *, different: int | None = None) -> dict[str, float]:
    """Append a store's events; the times are those of the ledger alone.

    Args:
        ledger: where to; it is empty.
        size: how many memories.
        different: how many texts to make up before they are used again; None: all of them.

    """
    ids, corpus = RandomIds(), Corpus()
    workspace, agent = ids.new_id(), ids.new_id()
    introductions = [
        NewEvent(agent, AgentRegistered(salt=ids.new_salt(), name="bench")),
        NewEvent(workspace, WorkspaceCreated(salt=ids.new_salt(), name="default")),
    ]
    memories = corpus.memories(0, size)
    if different is not None:
        memories = cycle(list(corpus.memories(0, different)))
    wall, cpu = 0.0, 0.0
    end = Position.start
    for start in range(0, size, GROUP):
        additions = [
            NewEvent(ids.new_id(), MemoryAdded(salt=ids.new_salt(), memory=_state(memory)))
            for memory in islice(memories, min(GROUP, size - start))
        ]
        events = [*introductions, *additions]
        introductions = []
        wall_before, cpu_before = time.perf_counter(), time.process_time()
        with ledger.lock(LOCK_TIMEOUT_S) as writer:
            for _ in writer.catch_up(end):
                pass
            group = writer.group()
            for event in events:
                group.add(Batch(workspace=workspace, actor=agent, events=[event]))
            end = group.commit()
        wall += time.perf_counter() - wall_before
        cpu += time.process_time() - cpu_before
    return {"append_s": wall, "append_cpu_s": cpu}


def _state(memory: dict[str, Any]) -> MemoryState:
    return MemoryState(**{name: value for name, value in memory.items() if value is not None})


def _build_peer(home: Path, size: int) -> None:
    command = ["node", str(HERE / "peer_load.mjs"), f"{PEERS}/mnemon-mcp/dist"]
    with subprocess.Popen([*command, str(home / "memory.db")], stdin=subprocess.PIPE) as loader:
        assert loader.stdin is not None
        for memory in Corpus().memories(0, size):
            loader.stdin.write(json.dumps(memory, ensure_ascii=False).encode() + b"\n")
        loader.stdin.close()
    if loader.returncode:
        raise RuntimeError(f"the peer's store could not be built: exit {loader.returncode}")
