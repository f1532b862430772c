"""Verify and checkpoints of a large ledger: how fast, and in how much memory."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from bench.measure import DATA, peak_resident_mib, priority, save
from bench.stores import LOCK_TIMEOUT_S, append_events, open_ledger
from ledger import (
    KEY_NAME,
    Ledger,
    Sealer,
    Signer,
    create_checkpoint,
    ensure_signer,
    prove_record,
    verify,
)
from server.bundle import Plan, write_bundle

MILLION = 1_000_000
DIFFERENT = 20_000
"""Texts that are made up; making up more takes longer than all that is measured."""

WORK: Final = {
    "verify": "verify, its checkpoint and signature included",
    "create": "checkpoint create",
    "prove": "checkpoint prove, one record",
    "export": "audit export of the whole, its checkpoint included",
    "check": "the bundle's own verify.py",
}
"""What is measured, each in a process of its own."""


def run(options: argparse.Namespace) -> None:
    """Measure each size from 10,000 on."""
    for size in [size for size in options.sizes if size >= 10_000] + [MILLION] * options.million:
        home = _home(size)
        result: dict[str, Any] = {"size": size}
        with priority(realtime=options.realtime):
            for what in WORK:
                command = [sys.executable, "-m", "bench.run", "verify-once", what, str(home)]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
                result[what] = json.loads(done.stdout)
        save(f"verify-{size}", result)
        print(f"verify, {size} events: {result}", flush=True)


def run_once(options: argparse.Namespace) -> None:
    """Do one thing to a ledger; print the measures as JSON."""
    home: Path = options.home
    ledger = open_ledger(home)
    began, cpu_began = time.perf_counter(), time.process_time()
    events = _do(options.what, ledger, home)
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu_began
    ledger.close()
    resident = peak_resident_mib(os.getpid())
    measures = {"events": events, "wall_s": wall, "cpu_s": cpu, "peak_resident_mib": resident}
    print(json.dumps(measures))


def _do(what: str, ledger: Ledger, home: Path) -> int:
    """Do it; return over how many events."""
    if what == "check":
        return _check(home)
    signer = _signer(ledger, home)
    if what == "export":
        return _export(ledger, signer, home)
    if what == "create":
        return create_checkpoint(ledger, signer, lock_timeout_s=LOCK_TIMEOUT_S).checkpoint.size
    if what == "prove":
        return prove_record(ledger, 1).checkpoint.size
    report = verify(home / "ledger", key=signer.key)
    if not report.ok or report.signed != report.last.seq:
        raise RuntimeError(f"the ledger is not as it was made: {report.problems[:3]}")
    return report.events


def _export(ledger: Ledger, signer: Signer, home: Path) -> int:
    """Write a bundle of everything, as `audit export` does; it is left for `check`."""
    bundle = _bundle(home)
    shutil.rmtree(bundle, ignore_errors=True)
    bundle.parent.mkdir(parents=True, exist_ok=True)
    made = create_checkpoint(ledger, signer, lock_timeout_s=LOCK_TIMEOUT_S)
    plan = Plan(
        checkpoint=made.checkpoint,
        note=made.data,
        key=signer.key.text,
        earlier=None,
        anchors={},
        selection=None,
        redacted={},
        facts={},
    )
    return int(write_bundle(ledger, bundle, plan)["records"])


def _check(home: Path) -> int:
    """Check the bundle as its `verify.py` does it, in this process."""
    from server.bundle_files import verify as script  # noqa: PLC0415 - one measure needs it

    report = script.Report()
    script.check(_bundle(home), script.Wanted("", ""), report, lambda _: None)
    if report.problems_count:
        raise RuntimeError(f"the bundle is not as it was made: {report.problems[:3]}")
    return int(report.proven[0].split()[0])


def _bundle(home: Path) -> Path:
    return DATA / "work" / f"bundle-of-{home.name}"


def _home(size: int) -> Path:
    """Return a home with a ledger of so many memories, sealed and signed, and nothing else."""
    home = DATA / "stores" / f"ledger-{size}"
    if home.exists():
        return home
    making = home.with_suffix(".making")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(parents=True, mode=0o700)
    print(f"building a ledger of {size} memories", flush=True)
    ledger = open_ledger(making)
    append_events(ledger, size, different=DIFFERENT)
    sealer = Sealer(ledger)
    sealer.run()
    sealer.close()
    create_checkpoint(ledger, _signer(ledger, making), lock_timeout_s=LOCK_TIMEOUT_S)
    ledger.close()
    making.rename(home)
    return home


def _signer(ledger: Ledger, home: Path) -> Signer:
    return ensure_signer(ledger, home / KEY_NAME, lock_timeout_s=LOCK_TIMEOUT_S)
