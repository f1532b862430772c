"""Rebuild, verify and look into the past without a server.

    python tools/replay.py --home FOLDER rebuild
    python tools/replay.py --home FOLDER verify --digest
    python tools/replay.py --home FOLDER replay --until 2026-11-30T12:00 --query "deploy day"
    python tools/replay.py --home FOLDER digest
    python tools/replay.py --home FOLDER checkpoint list

The same commands as `mnemolog rebuild | verify | replay | digest | checkpoint`, for a home given by
name.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ledger import Ledger, RandomIds, SystemClock
from projections.offline import add_commands, run


def open_ledger(home: Path) -> Ledger:
    """Open the ledger of a home, which must have one."""
    return Ledger.open_existing(home / "ledger", clock=SystemClock(), ids=RandomIds())


def complain(_: str, message: str) -> None:
    """Say on standard error what failed."""
    print(f"replay.py: {message}", file=sys.stderr)


def main(arguments: list[str]) -> int:
    """Run one command; return its exit status."""
    parser = argparse.ArgumentParser(prog="replay.py", description=__doc__.splitlines()[0])
    parser.add_argument("--home", type=Path, required=True, help="folder of the store")
    add_commands(parser.add_subparsers(required=True))
    parsed = parser.parse_args(arguments)
    home = parsed.home.expanduser().resolve()
    return run(parsed, lambda: open_ledger(home), lambda _: home / "projections", complain)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
