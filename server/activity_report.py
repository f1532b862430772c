"""`mnemolog activity`: what was searched for, what is read most, and forgetting all of it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from ledger import LedgerError, LedgerNotFoundError, format_us
from projections.activity import Access, ActivityLog, ActivityTotals, LoggedSearch, clear_activity
from projections.errors import ActivityUnavailableError
from server.bootstrap import activity_file, open_ledger, projections_folder
from server.config import Config
from server.status import DONE, NOT_NOW, CommandError, no_store, usage_error
from server.terminal import ID_COLUMN, Prose, Screen, Table, minute_of

SHOWN = 20
SHOWN_MAX = 1_000


class SearchedFor(msgspec.Struct, frozen=True, kw_only=True):
    """A search."""

    at: str
    actor: str
    query: str
    mode: str
    filters: dict[str, object]
    hits: Sequence[str]
    """Ids of the memories found, best first."""
    duration_ms: float


class MostRead(msgspec.Struct, frozen=True, kw_only=True):
    """How often a memory was found or read."""

    id: str
    count: int
    last_at: str


class ActivityReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What `mnemolog activity --json` prints."""

    workspace: str
    searches_count: int
    reads_count: int
    memories_count: int
    oldest_at: str | None = None
    searches: tuple[SearchedFor, ...] | None = None
    memories: tuple[MostRead, ...] | None = None


class Cleared(msgspec.Struct, frozen=True):
    """What `mnemolog activity --clear --json` prints."""

    cleared: bool


def fill_activity(parser: argparse.ArgumentParser) -> None:
    """Add the options of `mnemolog activity` to its parser."""
    parser.add_argument(
        "--memories",
        action="store_true",
        help="list the memories found or read most often instead of the last searches",
    )
    parser.add_argument(
        "--limit",
        metavar="N",
        type=int,
        default=SHOWN,
        help=f"most lines, 1 to {SHOWN_MAX:,} (default: {SHOWN})",
    )
    parser.add_argument(
        "--clear",
        action="store_true",
        help="forget all of it, of every workspace; memories are not touched",
    )


def run_activity(parsed: argparse.Namespace, config: Config, screen: Screen) -> int:
    """Show or clear the activity; returns the exit status.

    Raises:
        CommandError: the file cannot be read or cleared.

    """
    path = _path(config)
    if parsed.clear:
        try:
            clear_activity(path)
        except ActivityUnavailableError as error:
            raise _unavailable(str(error)) from error
        screen.show(Cleared(cleared=True), [Prose("cleared the activity of every workspace")])
        return DONE
    if not 1 <= parsed.limit <= SHOWN_MAX:
        raise usage_error(f"--limit is a number from 1 to {SHOWN_MAX:,}")
    log = ActivityLog(path, config.workspace)
    totals = log.totals()
    if totals.problem is not None:
        raise _unavailable(totals.problem)
    report = _report(config.workspace, totals)
    if parsed.memories:
        found = tuple(map(_most_read, log.most_read(parsed.limit)))
        report = msgspec.structs.replace(report, memories=found)
    else:
        searches = tuple(map(_searched_for, log.searches(parsed.limit)))
        report = msgspec.structs.replace(report, searches=searches)
    screen.show(report, [_table(report)], _notes(report, config))
    return DONE


def _path(config: Config) -> Path:
    try:
        with closing(open_ledger(config)) as ledger:
            return activity_file(projections_folder(config, ledger))
    except LedgerNotFoundError:
        raise no_store(config.home) from None
    except (LedgerError, OSError) as error:
        raise _unavailable(str(error)) from error


def _unavailable(problem: str) -> CommandError:
    return CommandError(NOT_NOW, "activity_unavailable", f"activity log: {problem}")


def _report(workspace: str, totals: ActivityTotals) -> ActivityReport:
    return ActivityReport(
        workspace=workspace,
        searches_count=totals.searches,
        reads_count=totals.reads,
        memories_count=totals.memories,
        oldest_at=None if totals.oldest_us is None else format_us(totals.oldest_us),
    )


def _searched_for(search: LoggedSearch) -> SearchedFor:
    return SearchedFor(
        at=format_us(search.at_us),
        actor=search.actor,
        query=search.query,
        mode=search.mode,
        filters=dict(search.filters),
        hits=search.hits,
        duration_ms=search.duration_ms,
    )


def _most_read(access: Access) -> MostRead:
    return MostRead(id=access.memory_id, count=access.count, last_at=format_us(access.last_us))


def _table(report: ActivityReport) -> Table:
    if report.memories is not None:
        rows = [(each.id, str(each.count), minute_of(each.last_at)) for each in report.memories]
        return Table((ID_COLUMN, "times", "last"), rows)
    return Table(
        ("at", "actor", "found", "ms", "query"),
        [
            (
                minute_of(each.at),
                each.actor,
                str(len(each.hits)),
                f"{each.duration_ms:.1f}",
                each.query,
            )
            for each in report.searches or ()
        ],
    )


def _notes(report: ActivityReport, config: Config) -> list[str]:
    since = f" since {minute_of(report.oldest_at)}" if report.oldest_at else ""
    counted = (
        f"{report.searches_count} searches and {report.reads_count} reads{since}; "
        f"{report.memories_count} memories were ever found or read"
    )
    if config.activity:
        return [counted]
    return [counted, "nothing is recorded at present: MNEMOLOG_ACTIVITY is off"]
