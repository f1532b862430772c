"""`mnemolog undo`: one operation, or those that a filter matches, after a question."""

from __future__ import annotations

import argparse
import sys
from functools import partial

import msgspec

from projections.wording import counted
from server.app import App
from server.commands import UndoArgs
from server.results import UndoResult
from server.status import DONE, NOT_NOW, REFUSED, CommandError, usage_error
from server.tool import Call
from server.undo_many import given_filters
from server.verb import Work
from server.views import of_undo, of_undo_many


def fill_undo(parser: argparse.ArgumentParser) -> None:
    """Add the options that are no fields."""
    parser.add_argument(
        "--session",
        metavar="TEXT",
        dest="session_id",
        default=argparse.SUPPRESS,
        help="the same as --session-id",
    )
    parser.add_argument(
        "--yes",
        action="store_true",
        help="do not ask before undoing by a filter; needed where nobody can be asked",
    )


def run_undo(work: Work) -> int:
    """Undo; return the exit status."""
    args = work.args(UndoArgs)
    if not given_filters(args):
        if args.id is not None and args.id.isdecimal():
            raise usage_error(f"`{args.id}` is no id; a position goes with --position {args.id}")
        result = work.job.ask(lambda app, call: app.undo(args, call))
        work.show(result, of_undo(result))
        return DONE
    if not args.dry_run and not work.parsed.yes:
        _confirm(work, args)
    result = _undo_all(work, args)
    work.show(result, of_undo_many(result))
    if result.stopped is not None:
        return NOT_NOW
    return DONE if result.undone or result.dry_run else REFUSED


def _undo_all(work: Work, args: UndoArgs) -> UndoResult:
    """Undo until nothing is left; with an idempotency key one call is one request."""
    parts = [work.job.ask(lambda app, call: app.undo(args, call))]
    while (
        parts[-1].remaining_count
        and parts[-1].undone
        and parts[-1].stopped is None
        and args.idempotency_key is None
        and not work.job.interrupted
    ):
        parts.append(work.job.ask(partial(_go_on, args, parts[0].cause or "")))
    first, last = parts[0], parts[-1]
    if first is last:
        return first
    # What was undone before counts as undone already in a later call; the last says what is left.
    return msgspec.structs.replace(
        first,
        undone_count=sum(part.undone_count or 0 for part in parts),
        remaining_count=last.remaining_count,
        stopped=last.stopped,
    )


def _go_on(args: UndoArgs, cause: str, app: App, call: Call) -> UndoResult:
    return app.undo(args, call, cause=cause)


def _confirm(work: Work, args: UndoArgs) -> None:
    """Ask whether to undo; only a yes goes on."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise usage_error(
            "undoing by a filter needs --yes where nobody can be asked; --dry-run shows what "
            "would be undone"
        )
    trial = msgspec.structs.replace(args, dry_run=True, idempotency_key=None)
    found: UndoResult = work.job.ask(lambda app, call: app.undo(trial, call))
    left = f", {found.skipped_count} stay as they are" if found.skipped_count else ""
    count = (found.undone_count or 0) + (found.remaining_count or 0)
    sys.stderr.write(f"undo {counted(count, 'operation')}{left}? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CommandError(REFUSED, "not_confirmed", "nothing was undone")
