"""The result files as Markdown tables: what docs/benchmarks.md shows."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from bench import commands, proofs
from bench.measure import RESULTS, ROOT, load, median
from bench.work import KINDS

MILLION = 1_000_000
TARGETS = {
    "add": {500: 0.8, 10_000: 0.8, 100_000: 0.8},
    "add_entity": {100_000: 0.15},
    "update": {100_000: 0.06},
    "and2": {500: 0.5, 10_000: 0.5, 100_000: 0.5},
    "or4": {500: 0.5, 10_000: 0.5, 100_000: 0.5},
    "layer": {500: 0.5, 10_000: 0.5, 100_000: 0.5},
    "date": {500: 0.5, 10_000: 0.5, 100_000: 0.5},
    "exact": {100_000: 0.02},
}
"""Operation and size -> the greatest ratio to the peer's p50 that is aimed at."""

COLD_RATIO_MAX = 0.35
RESIDENT_MIB_MAX = 32
ADD_CPU_MS_MAX = 0.5
BYTES_PER_MEMORY_MAX = 2_000
REBUILD_PER_S_MIN = 20_000
PROOF_RESIDENT_MIB_MAX = 200

PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- results -->", "<!-- end of results -->"

Row = Sequence[object]


def run(options: argparse.Namespace) -> None:
    """Write results.md beside the result files."""
    sizes = list(options.sizes)
    parts = [
        "### Start\n",
        _table(
            ("store", "figure", "mnemolog", "mnemon-mcp", "ratio", "target"),
            [row for size in (0, *sizes) for row in _cold(size)],
        ),
        "\n### Calls\n",
        _table(
            (
                "operation",
                "memories",
                "p50 / p99 ms",
                "CPU ms",
                "peer p50 / p99 ms",
                "peer CPU ms",
                "p50 ratio",
                "target",
            ),
            [row for kind in KINDS for size in sizes for row in _calls(kind, size)],
        ),
        "\n### Throughput, 16 requests in flight\n",
        _table(
            ("work", "memories", "mnemolog, a second", "mnemon-mcp, a second", "ratio"),
            [row for size in sizes for row in _pipelined(size)],
        ),
        "\n### Rebuild, digest, verify\n",
        _table(
            ("events", "figure", "measured", "target"),
            [row for size in (*sizes, MILLION) for row in _rebuild(size)],
        ),
        "\n### Verify and checkpoints\n",
        _table(
            ("events", "work", "events a second", "CPU s", "peak resident MiB", "target"),
            [row for size in (*sizes, MILLION) for row in _proofs(size)],
        ),
        "\n### Whole commands\n",
        _table(
            ("events", "command", "s", "events a second", "CPU s", "peak resident MiB"),
            [row for size in (*sizes, MILLION) for row in _commands(size)],
        ),
        "\n### Disk\n",
        _table(
            ("memories", "figure", "mnemolog", "mnemon-mcp", "target"),
            [row for size in (*sizes, MILLION) for row in _disk(size)],
        ),
        "\n" + _state(sizes),
    ]
    text = "\n".join(parts)
    path = RESULTS / "results.md"
    path.write_text(text)
    print(f"wrote {path}")
    if options.docs:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        _, _, after = rest.partition(END)
        PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}")
        print(f"updated {PAGE}")


def _cold(size: int) -> list[Row]:
    result = load(f"cold-{size}")
    if result is None:
        return []
    figures = (
        ("tools_list_ms", "start to `tools/list`, ms", COLD_RATIO_MAX),
        ("core_tools_list_ms", "the same with MNEMOLOG_TOOLS=core, ms", None),
        ("first_search_ms", "start to the first search, ms", None),
        ("command_search_ms", "`mnemolog search` as a command, start to end, ms", None),
        ("tools_list_bytes", "answer to `tools/list`, bytes", None),
        ("core_tools_list_bytes", "the same with MNEMOLOG_TOOLS=core, bytes", None),
        ("resident_start_mib", "resident after `tools/list`, MiB", None),
        ("resident_open_mib", "resident after a search, MiB", None),
    )
    rows: list[Row] = []
    for key, text, target in figures:
        values = [result["servers"].get(name, {}).get(key) for name in ("mnemolog", "mnemon-mcp")]
        if values == [None, None] or (size and key.endswith("_bytes")):
            continue  # not measured, or the same whatever the store holds
        ratio = result.get("ratios", {}).get(key)
        aim = f"<= {target}" if target is not None else ""
        missed = target is not None and ratio is not None and ratio > target
        if key == "resident_start_mib":
            aim = f"< {RESIDENT_MIB_MAX} MiB"
            missed = values[0] is not None and values[0] >= RESIDENT_MIB_MAX
        rows.append((_count(size) if size else "empty", text, *values, ratio, _judged(aim, missed)))
    return rows


def _calls(kind: str, size: int) -> list[Row]:
    result = load(f"calls-{size}")
    measured = {} if result is None else result["operations"].get(kind, {})
    if "mnemolog" not in measured:
        return []
    cells: list[object] = [KINDS[kind].text, _count(size)]
    for name in ("mnemolog", "mnemon-mcp"):
        seen = measured.get(name)
        if seen is None:
            cells += ["fails" if result["errors"].get(name, {}).get(kind) else None, None]
        else:
            cells += [f"{_number(seen['p50_ms'])} / {_number(seen['p99_ms'])}", seen["cpu_ms"]]
    ratio, target = result["ratios"].get(kind), TARGETS.get(kind, {}).get(size)
    aim = f"<= {target}" if target is not None else ""
    missed = target is not None and ratio is not None and ratio > target
    if kind == "add":
        aim += f", CPU <= {ADD_CPU_MS_MAX} ms"
        missed = missed or measured["mnemolog"]["cpu_ms"] > ADD_CPU_MS_MAX
    return [(*cells, ratio, _judged(aim, missed))]


def _pipelined(size: int) -> list[Row]:
    result = load(f"calls-{size}")
    if result is None:
        return []
    rates = result["pipelined_per_s"]
    names = {"add_plain": "add", "add": "add, 3 of 10 with an entity", "search": "search, 2 words"}
    rows: list[Row] = []
    for key, text in names.items():
        ours, theirs = (rates.get(name, {}).get(key) for name in ("mnemolog", "mnemon-mcp"))
        ratio = ours / theirs if ours is not None and theirs is not None else None
        rows.append((text, _count(size), ours, theirs, ratio))
    return rows


def _rebuild(size: int) -> list[Row]:
    result = load(f"rebuild-{size}")
    if result is None:
        return []
    count, rebuilt, built = _count(size), result["rebuild"], result["build"]
    rate = rebuilt["events_per_s"]
    aim = _judged(f">= {_count(REBUILD_PER_S_MIN)} at 1,000,000", rate < REBUILD_PER_S_MIN)
    rows: list[Row] = [
        (count, "rebuild, events a second", rate, aim),
        (count, "rebuild, peak resident MiB of the main process", rebuilt["peak_resident_mib"], ""),
        (count, "digest, s", result["digest"]["wall_s"], ""),
        (count, "verify, s", result["verify"]["wall_s"], ""),
    ]
    if built is not None:
        append = built["events"] / built["append_s"]
        rows.append((count, "ledger, appends a second in groups of 1,000, synced", append, ""))
    return rows


def _proofs(size: int) -> list[Row]:
    result = load(f"verify-{size}")
    if result is None:
        return []
    rows: list[Row] = []
    for key, text in proofs.WORK.items():
        seen = result.get(key)
        if seen is None:  # measured before there was such a thing
            continue
        resident = seen["peak_resident_mib"]
        aim = _judged(f"< {PROOF_RESIDENT_MIB_MAX} MiB", resident >= PROOF_RESIDENT_MIB_MAX)
        rows.append(
            (_count(size), text, seen["events"] / seen["wall_s"], seen["cpu_s"], resident, aim)
        )
    return rows


def _commands(size: int) -> list[Row]:
    result = load(f"commands-{size}")
    if result is None:
        return []
    rows: list[Row] = []
    for key, (text, _) in commands.COMMANDS.items():
        seen = result[key]
        wall, resident = seen["wall_s"], seen["peak_resident_mib"]
        is_whole = not key.startswith("show")  # a page of the newest reads no whole ledger
        pace = size / wall if is_whole else None
        rows.append((_count(size), f"`{text}`", wall, pace, seen["cpu_s"], resident))
    return rows


def _disk(size: int) -> list[Row]:
    result = load(f"disk-{size}")
    if result is None:
        return []
    ours, theirs = result["mnemolog"], result.get("mnemon-mcp", {})
    projection, sealed = ours["projection_bytes_per_memory"], ours.get("sealed_bytes_per_event")
    rows: list[Row] = [
        (
            _count(size),
            "projections, bytes a memory",
            projection,
            theirs.get("bytes_per_memory"),
            "",
        )
    ]
    if sealed is not None:
        whole = projection + sealed
        aim = _judged(f"< {_count(BYTES_PER_MEMORY_MAX)}", whole >= BYTES_PER_MEMORY_MAX)
        rows += [
            (
                _count(size),
                "ledger as written, bytes an event",
                ours["raw_bytes_per_event"],
                None,
                "",
            ),
            (_count(size), "ledger once sealed, bytes an event", sealed, None, ""),
            (_count(size), "projections and sealed ledger", whole, None, aim),
        ]
    return rows


def _state(sizes: Sequence[int]) -> str:
    """Say what was measured on, and how fast it was at that time."""
    machine = load("machine") or {}
    runs = [result for size in sizes if (result := load(f"calls-{size}"))]
    cpu = [value for result in runs for value in result["yardsticks"]["cpu_ms"]]
    sync = [value for result in runs for value in result["yardsticks"]["sync_ms"]]
    text = (
        f"Machine: {machine.get('cores')} cores, {machine.get('memory_gib')} GiB, "
        f"{machine.get('system')}, Python {machine.get('python')}."
    )
    if cpu:
        text += (
            f" Yardsticks during the calls: a fixed CPU job {_number(min(cpu))} to "
            f"{_number(max(cpu))} ms (median {_number(median(cpu))}), an fdatasync "
            f"{_number(min(sync))} to {_number(max(sync))} ms (median {_number(median(sync))})."
        )
    return text + "\n"


def _judged(aim: str, missed: bool) -> str:  # noqa: FBT001 - one word, privately
    aim = aim.removeprefix(", ")
    return f"{aim}: **missed**" if aim and missed else aim


def _table(head: Sequence[str], rows: Sequence[Row]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return _number(value) if isinstance(value, float) else str(value)


def _number(value: float) -> str:
    """Write a number with as many digits as mean something."""
    if value >= 1_000:
        return _count(round(value))
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}" if value >= 0.1 else f"{value:.2g}"


def _count(value: int) -> str:
    return f"{value:,}"
