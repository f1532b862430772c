"""Measure mnemolog, side by side with its peer where there is one.

    python -m bench.run all [--realtime] [--million]

Run it from the root of the repository. README.md beside this file says what is needed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bench import calls, cold, commands, own, proofs, report
from bench.measure import machine, save
from bench.stores import forget_our_stores, servers, store

SIZES = (500, 10_000, 100_000)


def main() -> None:
    """Run one part, or all of them and the report."""
    parser = argparse.ArgumentParser(description="Measure mnemolog beside its peer.")
    parts = parser.add_subparsers(required=True, metavar="PART")
    measured = {
        "load": (load, "build the stores (done by the other parts as needed)"),
        "cold": (cold.run, "start to the first answers, and resident memory"),
        "calls": (calls.run, "latency, CPU and throughput of each operation"),
        "rebuild": (own.run_rebuild, "rebuild, digest and verify"),
        "verify": (proofs.run, "verify and checkpoints of a large ledger, and their memory"),
        "commands": (commands.run, "whole commands that read all of a ledger, and their memory"),
        "disk": (own.run_disk, "bytes a memory"),
        "report": (report.run, "write results.md from the result files"),
        "all": (run_all, "everything above"),
    }
    for name, (function, text) in measured.items():
        part = parts.add_parser(name, help=text)
        part.set_defaults(run=function)
        part.add_argument("--sizes", type=_sizes, default=SIZES, metavar="N,N,...")
        part.add_argument("--starts", type=int, default=9, help="cold starts of each server")
        part.add_argument("--turns", type=int, default=5, help="blocks of each operation")
        part.add_argument("--block", type=int, default=40, help="calls of a block")
        part.add_argument(
            "--realtime", action="store_true", help="measure before all other work (needs root)"
        )
        part.add_argument(
            "--million", action="store_true", help="also rebuild from 1,000,000 events"
        )
        part.add_argument(
            "--fresh", action="store_true", help="build mnemolog's stores anew (after a change)"
        )
        part.add_argument("--docs", action="store_true", help="put the report in docs as well")
    once = parts.add_parser("rebuild-once", help="rebuild one home, print the measures as JSON")
    once.set_defaults(run=own.run_rebuild_once)
    once.add_argument("home", type=Path)
    look = parts.add_parser("verify-once", help="do one thing to a ledger, print the measures")
    look.set_defaults(run=proofs.run_once)
    look.add_argument("what", choices=proofs.WORK)
    look.add_argument("home", type=Path)
    options = parser.parse_args()
    if getattr(options, "fresh", False):
        forget_our_stores()
    options.run(options)


def load(options: argparse.Namespace) -> None:
    """Build every store that is not there."""
    for size in options.sizes:
        for spec in servers():
            store(spec, size)


def run_all(options: argparse.Namespace) -> None:
    """Run every part, and write the report."""
    load(options)
    save("machine", machine())
    for part in (
        cold.run,
        calls.run,
        own.run_rebuild,
        proofs.run,
        commands.run,
        own.run_disk,
        report.run,
    ):
        part(options)


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(size.replace("_", "")) for size in text.split(","))


if __name__ == "__main__":
    main()
