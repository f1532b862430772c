"""rebuild, verify, replay, digest, checkpoint: the commands that need the ledger and no server.

`mnemolog` and `tools/replay.py` are two doors to them. Each prints its result to standard output,
draws progress on standard error when that is a terminal, and returns the exit status: 0 done or
clean, 1 damage, 2 could not look or could not do it.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from ledger import (
    BackupDamagedError,
    Ledger,
    LedgerBehindError,
    LedgerDamagedError,
    LedgerError,
    LedgerNotFoundError,
    LedgerReadOnlyError,
    LedgerUnreadableError,
    Position,
    SystemClock,
    VerifyReport,
    format_us,
    parse_span,
    verify,
)
from projections.checkpoint import read_checkpoint
from projections.connection import (
    DAMAGE_ERRORS,
    STORAGE_ERRORS,
    Connection,
    StatementError,
    create_database,
)
from projections.copies import note_copy
from projections.digest import StateDigest, state_digest
from projections.errors import (
    ProgramOutdatedError,
    ProjectionError,
    ProjectionMissingError,
    ProjectionOutdatedError,
    ProjectionUnusableError,
)
from projections.filters import Filters
from projections.generation import Generation, Generations
from projections.integrity import find_damage
from projections.notary import add_against, add_checkpoint_commands, verifier_key
from projections.on_terminal import shown_phase, shown_progress
from projections.queries import workspace_rid
from projections.readonly import generations_at
from projections.rebuild import rebuild, replay
from projections.search import search_text
from projections.substring import flush_trigrams
from projections.text import parse_query
from projections.wording import counted

DONE, DAMAGE, FAILED = 0, 1, 2
"""Exit statuses."""

LOCK_TIMEOUT_S = 60.0

TRIGRAMS_PER_LOCK = 500
"""Memories indexed while the ledger's lock is held: some hundredths of a second."""

WORKSPACE = "default"
"""Whose past is searched unless another workspace is named."""

_SHOWN = 10

_HEAD = re.compile(
    r"\s*(?:ledger\s+)?(?:0|(?P<seq>[1-9][0-9]{0,17})\s+(?P<digest>[0-9a-f]{64}))\s*"
)

OpenLedger = Callable[[], Ledger]
"""Opens the ledger of the home that the door was given; LedgerNotFoundError if it has none."""


def add_commands(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
) -> list[argparse.ArgumentParser]:
    """Add the commands to a door's parser; return the parser of each."""
    rebuilding = commands.add_parser(
        "rebuild",
        help="build the projections anew from the ledger and swap them in",
        description="Reads every event into a new generation while the old one serves, then swaps. "
        "Prints the state digests before and after: they are equal unless the old one was damaged.",
    )
    rebuilding.set_defaults(command=_rebuild)
    verifying = commands.add_parser(
        "verify",
        help="check every byte of the ledger, and the projections",
        description="Exit status 0: clean; 1: damage, or bytes at the end that no append finished; "
        "2: could not look. Changes nothing.",
    )
    verifying.add_argument(
        "--digest",
        action="store_true",
        help="also replay the ledger from zero and compare the state digests",
    )
    verifying.add_argument(
        "--head",
        metavar="'SEQ DIGEST'",
        type=_head,
        help="a head noted earlier, as `digest` prints it in its first line: the ledger must still "
        "hold it, so that a cut of the newest records is seen",
    )
    add_against(verifying)
    verifying.add_argument("--json", action="store_true", help="print the report as JSON")
    verifying.set_defaults(command=_verify)
    replaying = commands.add_parser(
        "replay",
        help="look at the store as it was at a moment",
        description="Fills a scratch database with the events up to a ledger position or a time.",
    )
    replaying.add_argument(
        "--until",
        metavar="SEQ|TIME",
        help="ledger position, or ISO 8601 date or time in UTC (default: the end)",
    )
    replaying.add_argument("--into", metavar="FILE", type=Path, help="keep the database here")
    replaying.add_argument("--query", metavar="TEXT", help="search the store as it was then")
    replaying.add_argument("--workspace", metavar="NAME", help="workspace to search")
    replaying.set_defaults(command=_replay)
    digesting = commands.add_parser(
        "digest",
        help="print the state digests: the same text for the same state",
        description="One line for the ledger's position and one for each projection.",
    )
    digesting.set_defaults(command=_digest)
    return [rebuilding, verifying, replaying, digesting, *add_checkpoint_commands(commands)]


def run(
    arguments: argparse.Namespace,
    open_ledger: OpenLedger,
    projections: Callable[[Ledger], Path],
    complain: Callable[[str, str], None],
) -> int:
    """Run the command that was parsed; return the exit status.

    A failure is told to `complain`: a code, and in words.
    """
    try:
        with (
            closing(open_ledger()) as ledger,
            closing(generations_at(projections(ledger), ledger)) as generations,
        ):
            return int(arguments.command(arguments, ledger, generations))
    except LedgerNotFoundError as error:
        complain("no_store", str(error))
    except LedgerUnreadableError as error:
        complain("system", str(error))
    except (LedgerDamagedError, LedgerBehindError, BackupDamagedError) as error:
        complain("damaged", str(error))
        return DAMAGE
    except (*DAMAGE_ERRORS, StatementError) as error:
        complain(
            "damaged",
            f"the projections are damaged ({error}); `mnemolog rebuild` mends them from the ledger",
        )
        return DAMAGE
    except BrokenPipeError:
        raise  # nobody reads any more, which is no failure of the store
    except (LedgerError, ProjectionError, *STORAGE_ERRORS, OSError, ValueError) as error:
        complain("system", str(error))
    return FAILED


def _rebuild(_: argparse.Namespace, ledger: Ledger, generations: Generations) -> int:
    if ledger.refusal is not None:
        raise LedgerReadOnlyError(ledger.refusal)
    with _current(generations) as old:
        before = None if old is None else _digest_if_sound(ledger, old)
        started = time.monotonic()
        with shown_progress() as progress, generations.rebuild_lock():
            report = rebuild(
                ledger,
                generations,
                lock_timeout_s=LOCK_TIMEOUT_S,
                known=None if before is None or old is None else read_checkpoint(old.writer),
                progress=progress,
            )
        seconds = time.monotonic() - started
    with generations.rebuild_lock():
        generations.collect()
    with _current(generations) as new:
        assert new is not None
        _index_trigrams(ledger, new, report.events)
        after = _digest_of(new)
    print(f"rebuilt {report.events} events in {seconds:.1f} s into {report.generation}")
    print(after.text(), end="")
    if before is None:
        print("before: no sound projection to compare with")
    elif before == after:
        print("before: the same digests")
    elif before.seq != after.seq:
        print(f"before: at position {before.seq}; events were appended meanwhile")
    else:
        print("before: OTHER digests at the same position; the old projection was wrong")
    return DONE


def _verify(arguments: argparse.Namespace, ledger: Ledger, generations: Generations) -> int:
    checkpoint, damage = None, None
    with _current(generations) as generation:
        if generation is not None:
            checkpoint = _checkpoint_if_readable(generation)
            with generation.readers.borrow() as connection, connection.transaction(write=False):
                damage = find_damage(connection)
            generation.is_doubtful &= damage is not None
            if damage is None and generation.gaps:
                damage = f"built while {len(generation.gaps)} parts of the ledger were unreadable"
        else:
            damage = _why_unusable(generations)
    known = [position for position in (checkpoint, arguments.head) if position is not None]
    with shown_phase("records") as progress:
        report = verify(
            ledger.layout.root,
            *known,
            against=arguments.against,
            key=verifier_key(arguments, ledger),
            progress=progress,
        )
    proven_to = max([report.signed, *(position.seq for position in known)])
    if damage is None and generation is not None and report.ok and arguments.digest:
        damage = _compare_with_replay(ledger, generations)
    if arguments.json:
        print(
            msgspec.json.encode(
                {"ledger": report, "projections": damage, "proven_to": proven_to}
            ).decode()
        )
    else:
        compared_with = [f"the checkpoints of {path}" for path in arguments.against]
        compared_with += ["the head"] if arguments.head is not None else []
        _print_report(
            report, damage, proven_to, compared_with, has_projection=generation is not None
        )
    if any(problem.kind == "unreadable" for problem in report.problems):
        return FAILED
    return DONE if report.ok and damage is None else DAMAGE


def _head(text: str) -> Position:
    """Read a head as the digests show it.

    Raises:
        argparse.ArgumentTypeError: it is none.

    """
    match = _HEAD.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"{text[:100]!r} is no head; expected the first line of `mnemolog digest`"
        )
    return Position(seq=int(match["seq"] or 0), digest=match["digest"] or "", segment=0, offset=0)


def _print_report(
    report: VerifyReport,
    damage: str | None,
    proven_to: int,
    compared_with: list[str],
    *,
    has_projection: bool,
) -> None:
    for problem in report.problems:
        place = f"{problem.segment} seq {problem.seq} offset {problem.offset}"
        print(f"ledger: {problem.kind} in {place}: {problem.detail}")
    for note in report.notes:
        print(f"ledger: note: {note}")
    state = "clean" if report.ok else counted(len(report.problems), "problem")
    redacted = f", {report.redacted} of them redacted" if report.redacted else ""
    print(
        f"ledger: {state}; {counted(report.events, 'event')} in "
        f"{counted(report.segments, 'segment')}{redacted}"
    )
    if report.ok and compared_with:
        print(f"ledger: proven: it extends {' and '.join(compared_with)}")
    unproven = (
        f"ledger: not proven: that no record after {proven_to} was cut off at the end, nor who "
        "wrote them"
    )
    if not compared_with:
        unproven += (
            ", nor that nobody has taken away what this store itself remembers; `--against` "
            "compares with a checkpoint published earlier, `--head` with a head that "
            "`mnemolog digest` printed"
        )
    print(unproven)
    if damage is not None:
        print(f"projections: damaged: {damage}; `mnemolog rebuild` mends them from the ledger")
    else:
        print("projections: clean" if has_projection else "projections: none to check")


def _compare_with_replay(ledger: Ledger, generations: Generations) -> str | None:
    """Return how the projections differ from a replay from zero to the same position."""
    with _current(generations) as generation:
        assert generation is not None
        live = _digest_of(generation)
    until = ledger.position_at(seq=live.seq)
    with _scratch(None) as database:
        with shown_progress() as progress:
            replay(ledger, database, until, progress)
        replayed = _digest_of_file(database)
    names = [
        name for name in live.projections if live.projections[name] != replayed.projections[name]
    ]
    return f"{', '.join(names)} differ from a replay of the ledger" if names else None


def _replay(arguments: argparse.Namespace, ledger: Ledger, _: Generations) -> int:
    until, at_us = _moment(ledger, arguments.until)
    with _scratch(arguments.into) as database:
        if arguments.into is not None:
            _note_copy(ledger, arguments.into, until)
        with shown_progress() as progress:
            replay(ledger, database, until, progress)
        when = f", at {format_us(at_us)}" if at_us else ""
        print(f"the store as it was at position {until.seq}{when}")
        print(_digest_of_file(database).text(), end="")
        connection = Connection(database)
        try:
            _print_past(connection, at_us, arguments)
        finally:
            connection.close()
        if arguments.into is not None:
            print(f"database: {arguments.into}")
    return DONE


def _note_copy(ledger: Ledger, database: Path, until: Position) -> None:
    note_copy(
        ledger.layout.root.parent,
        kind="replay",
        path=database,
        position=until.seq,
        now_us=SystemClock().now_us(),
        warn=lambda text: print(text, file=sys.stderr),
    )


def _print_past(connection: Connection, at_us: int, arguments: argparse.Namespace) -> None:
    if arguments.query is None:
        count = connection.value("SELECT count(*) FROM memories")
        print(f"memories: {count}")
        return
    name = arguments.workspace or WORKSPACE
    workspace = workspace_rid(connection, name)
    if workspace is None:
        print(f"there was no workspace {name!r}")
        return
    query = parse_query(arguments.query)
    if not query:
        print("the query holds no word, number or symbol to search for")
        return
    filters = Filters(workspace=workspace, now_us=at_us)
    page = search_text(connection, query, filters, limit=_SHOWN, offset=0)
    print(f"found: {len(page.hits)}{' or more' if page.has_more else ''}")
    for hit in page.hits:
        line = " ".join(hit.memory.content.split())
        print(f"{hit.memory.id}  {hit.score:.3g}  {line[:100]}")


def _digest(_: argparse.Namespace, ledger: Ledger, generations: Generations) -> int:
    stamp = generations.stamp()
    with _current(generations) as generation:
        if generation is not None:
            _bring_up_to_date(ledger, generation)
            print(_digest_of(generation).text(), end="")
            return DONE
    with shown_progress() as progress, generations.rebuild_lock():
        if generations.stamp() == stamp:  # else another process did it meanwhile
            rebuild(
                ledger, generations, lock_timeout_s=LOCK_TIMEOUT_S, known=None, progress=progress
            )
    with _current(generations) as generation:
        assert generation is not None
        print(_digest_of(generation).text(), end="")
    return DONE


def _moment(ledger: Ledger, text: str | None) -> tuple[Position, int]:
    """Return the position that is meant, and the time (us) at which things are looked at."""
    if text is not None and not (text.isascii() and text.isdecimal()):
        at_us = parse_span(text)[1] - 1
        return ledger.position_at(t_us=at_us), at_us
    until = ledger.position_at(seq=None if text is None else int(text))
    return until, until.t_us


@contextmanager
def _current(generations: Generations) -> Iterator[Generation | None]:
    """Open the generation in use, or None if there is none that this program can use.

    Raises:
        ProgramOutdatedError: a newer program wrote it.

    """
    try:
        generation = generations.open_current()
    except ProgramOutdatedError:
        raise
    except (ProjectionError, *DAMAGE_ERRORS):
        yield None
        return
    try:
        yield generation
    finally:
        generation.close()


def _why_unusable(generations: Generations) -> str | None:
    """Say why the generation in use cannot be opened; None if there is none or it is older."""
    try:
        generations.open_current().close()
    except ProjectionMissingError as error:
        return None if generations.stamp() is None else str(error)
    except (ProjectionOutdatedError, ProjectionUnusableError):
        return None
    except (ProjectionError, *DAMAGE_ERRORS) as error:
        return str(error)
    return None


def _bring_up_to_date(ledger: Ledger, generation: Generation) -> None:
    if ledger.is_read_only:
        return  # it was opened at the ledger's end
    with ledger.lock(LOCK_TIMEOUT_S) as writer, generation.changing():
        generation.catch_up(writer)


def _index_trigrams(ledger: Ledger, generation: Generation, events: int) -> None:
    """Fill the substring index of the new generation, which serves meanwhile."""
    with shown_progress() as progress:
        done, flushed = 0, 1
        while flushed:
            with ledger.lock(LOCK_TIMEOUT_S) as writer, generation.changing():
                generation.catch_up(writer)
                flushed = flush_trigrams(generation.writer, TRIGRAMS_PER_LOCK)
            done += flushed
            progress("substrings", done, events)


def _digest_if_sound(ledger: Ledger, generation: Generation) -> StateDigest | None:
    try:
        _bring_up_to_date(ledger, generation)
        return _digest_of(generation)
    except DAMAGE_ERRORS:
        return None


def _checkpoint_if_readable(generation: Generation) -> Position | None:
    try:
        return read_checkpoint(generation.writer)
    except DAMAGE_ERRORS:
        return None


def _digest_of(generation: Generation) -> StateDigest:
    with generation.readers.borrow() as connection, connection.transaction(write=False):
        return state_digest(connection)


def _digest_of_file(database: Path) -> StateDigest:
    connection = Connection(database)
    try:
        with connection.transaction(write=False):
            return state_digest(connection)
    finally:
        connection.close()


@contextmanager
def _scratch(path: Path | None) -> Iterator[Path]:
    """Make an empty database, at a path or in a folder that goes away after the block."""
    if path is not None:
        try:
            create_database(path)
        except FileExistsError:
            raise ValueError(f"{path} exists; name a file that does not") from None
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="mnemolog-") as folder:
        database = Path(folder) / "past.db"
        create_database(database)
        yield database
