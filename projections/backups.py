"""backup and restore: the commands that copy a ledger out of a home and put one back.

Like the other offline commands they print their result to standard output, draw progress on
standard error when that is a terminal, and return the exit status: 0 done, 1 damage, 2 could not
do it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec

from ledger import (
    BackupDamagedError,
    BackupReport,
    Ledger,
    LedgerDamagedError,
    LedgerError,
    LedgerNotFoundError,
    LedgerOptions,
    RandomIds,
    Restoration,
    RestoreReport,
    SystemClock,
    backup,
)
from projections.copies import note_copy
from projections.generation import Generations
from projections.offline import DAMAGE, DONE, FAILED, LOCK_TIMEOUT_S
from projections.on_terminal import shown_progress
from projections.readonly import generations_at

Complain = Callable[[str, str], None]
"""Takes a code, and in words, what went wrong."""

NAMES = ("backup", "restore")


def add_commands(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
) -> list[argparse.ArgumentParser]:
    """Add the two commands to a door's parser; return their own."""
    backing_up = commands.add_parser(
        "backup",
        help="copy the ledger to a new folder while others go on writing, and verify the copy",
        description="The folder holds everything that was acknowledged before the command began "
        "and opens alone: `mnemolog restore` puts it back, and `mnemolog verify --home` checks a "
        "home that holds it as `ledger`. Exit status 0: done; 1: the ledger is damaged; 2: not "
        "done.",
    )
    backing_up.add_argument("target", metavar="FOLDER", type=Path, help="must not exist yet")
    backing_up.add_argument("--json", action="store_true", help="print the report as JSON")
    backing_up.set_defaults(command=_backup)
    restoring = commands.add_parser(
        "restore",
        help="put a backup back into the home, without what was erased since",
        description="Verifies the backup, which is only read, applies every redaction that the "
        "home knows of, and puts it in place. The projections are built anew at the next start. "
        "Exit status 0: done; 1: the backup is damaged; 2: not done.",
    )
    restoring.add_argument(
        "source", metavar="FOLDER", type=Path, help="a backup, or a home with a ledger"
    )
    restoring.add_argument(
        "--replace",
        action="store_true",
        help="put the ledger that is there aside, as `ledger.replaced-TIME`, which you may delete",
    )
    restoring.add_argument("--json", action="store_true", help="print the report as JSON")
    restoring.set_defaults(command=None)
    return [backing_up, restoring]


def _backup(arguments: argparse.Namespace, ledger: Ledger, _: Generations) -> int:
    target: Path = arguments.target
    home = ledger.layout.root.parent
    if not ledger.is_read_only and not target.exists():
        # Noted before it is there, so that none is forgotten; and again once its end is known.
        _note(home, target, ledger.position_at().seq)
    with shown_progress() as progress:
        report = backup(ledger, target, progress, lock_timeout_s=LOCK_TIMEOUT_S)
    if not ledger.is_read_only:
        _note(home, report.path, report.last.seq)
    if arguments.json:
        print(msgspec.json.encode(report, enc_hook=str).decode())
    else:
        _print_backup(report)
    return DONE


def run_restore(
    arguments: argparse.Namespace,
    home: Path,
    options: LedgerOptions,
    projections: Callable[[Ledger], Path],
    complain: Complain,
) -> int:
    """Run `restore`; return the exit status.

    Args:
        arguments: as parsed.
        home: where the ledger goes.
        options: how it is kept from then on.
        projections: says where the projections of a ledger of this home are.
        complain: is told of a failure.
    """
    try:
        with (
            shown_progress() as progress,
            Restoration(
                arguments.source,
                home,
                replace=arguments.replace,
                clock=SystemClock(),
                ids=RandomIds(),
                options=options,
                lock_timeout_s=LOCK_TIMEOUT_S,
                progress=progress,
            ) as restoration,
            closing(
                generations_at(projections(restoration.ledger), restoration.ledger)
            ) as generations,
        ):
            report = put_back(restoration, generations)
    except LedgerNotFoundError as error:
        complain("no_store", str(error))
        return FAILED
    except (BackupDamagedError, LedgerDamagedError) as error:
        complain("damaged", str(error))
        return DAMAGE
    except (LedgerError, OSError) as error:
        complain("system", str(error))
        return FAILED
    if report.replaced is not None:
        _note(home, report.replaced, report.last.seq)
    if arguments.json:
        print(msgspec.json.encode(report, enc_hook=str).decode())
    else:
        _print_restore(report)
    return DONE


def put_back(restoration: Restoration, generations: Generations) -> RestoreReport:
    """Put a prepared ledger in its place; the next to open the store rebuilds the projections.

    Raises:
        LedgerError: as `Restoration.put_in_place`.
        OSError: the projections cannot be dropped.
    """
    with generations.rebuild_lock():
        # Before the ledger is there, so that none of them ever meets it.
        generations.drop()
        return restoration.put_in_place()


def _note(home: Path, path: Path, seq: int) -> None:
    note_copy(
        home,
        kind="backup",
        path=path,
        position=seq,
        now_us=SystemClock().now_us(),
        warn=lambda text: print(text, file=sys.stderr),
    )


def _print_backup(report: BackupReport) -> None:
    print(f"backup: {report.path}")
    print(f"ledger {report.last.seq} {report.last.digest}")
    print(
        f"{report.events} events in {report.segments} segments, {report.size} bytes, verified"
        + (f"; {report.redacted} of the events are redacted" if report.redacted else "")
    )
    print("what is erased later stands in this backup; `mnemolog restore` leaves it out")


def _print_restore(report: RestoreReport) -> None:
    print(f"restored: {report.path}, {report.events} events, verified")
    print(f"ledger {report.last.seq} {report.last.digest}")
    if report.erased:
        print(f"erased from it: {report.erased} events that a redaction had taken away")
    if report.replaced is not None:
        print(f"put aside: {report.replaced}; delete it once you do not need it")
    print("the projections are built anew at the next start")
