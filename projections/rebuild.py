"""Filling a database from the ledger: a new generation to serve, or a look at the past."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ledger import Ledger, LedgerBehindError, Position, Record
from projections.checkpoint import write_checkpoint
from projections.connection import Connection
from projections.generation import Generations
from projections.projector import Projector
from projections.schema import create_indexes, create_tables
from projections.text_index import index_everything

Progress = Callable[[str, int, int], None]
"""Called with the phase ("events", "text", ...), how many are done and how many there are."""

PROGRESS_EVERY = 1_000


class RebuildReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a rebuild did."""

    generation: str
    events: int
    """Events applied; less than the ledger's last position only if damage was passed over."""
    position: Position
    gaps: tuple[str, ...] = ()
    """What could not be read from the ledger; empty unless damage was to be passed over."""


def rebuild(
    ledger: Ledger,
    generations: Generations,
    *,
    lock_timeout_s: float,
    known: Position | None,
    progress: Progress,
) -> RebuildReport:
    """Build a generation from the first event on and put it into use.

    Readers and writers go on with the old one meanwhile; the ledger's lock is held only to secure
    the end of the ledger first, and to apply what was written meanwhile last.

    Args:
        ledger: where the events are.
        generations: where the generation goes.
        lock_timeout_s: how long to wait for the ledger's lock, each time, in seconds.
        known: the position of the generation in use: everything up to it is durable. None: unknown.
        progress: told about every thousand events.

    Of a read-only ledger no lock is taken, and the generation is the caller's own.

    Raises:
        LedgerDamagedError: the ledger is damaged; see `salvage`.
        LockTimeoutError: the ledger's lock was not to be had in time.

    """
    while not ledger.is_read_only:
        with ledger.lock(lock_timeout_s) as writer:
            durable = writer.secure(known)
        try:
            with generations.new() as database, _building(database) as connection:
                records = ledger.read(Position.start, durable.seq)
                projector = _fill(connection, records, durable.seq, progress)
                generations.sync(database)  # the bulk, so that the lock is not held for it
                with ledger.lock(lock_timeout_s) as writer:
                    connection.execute("BEGIN")
                    for record in writer.catch_up(durable):
                        projector.apply(record)
                    projector.flush_indexes()
                    connection.execute("COMMIT")
                    end = writer.end
                    _finish(connection, end)
                    generations.publish(database)
        except LedgerBehindError:
            # The end that was read is not the ledger's any more: a failed write was taken back.
            known = None
            continue
        generations.collect()
        return RebuildReport(generation=database.parent.name, events=end.seq, position=end)
    end = ledger.position_at()
    with generations.new() as database:
        replay(ledger, database, end, progress)
        generations.publish(database)
    generations.collect()
    return RebuildReport(generation=database.parent.name, events=end.seq, position=end)


def salvage(
    ledger: Ledger, generations: Generations, progress: Progress, *, missing: str | None = None
) -> RebuildReport:
    """Build a generation from what is undamaged of a damaged ledger and put it into use.

    It serves reads; the damage keeps everybody from writing, so the ledger's lock is not needed.

    Args:
        ledger: where the events are.
        generations: where the generation goes.
        progress: told about every thousand events.
        missing: what is known to be missing at the end, where no damage shows it.

    """
    gaps: list[str] = [] if missing is None else [missing]
    total = ledger.live_end()[0]
    with generations.new() as database, _building(database) as connection:
        applied = _Applied()
        records = applied.watch(
            ledger.read_tolerant(Position.start, lambda damage: gaps.append(str(damage)))
        )
        _fill(connection, records, total, progress)
        connection.executemany("INSERT INTO gaps VALUES(?)", ((gap,) for gap in gaps))
        _finish(connection, applied.end)
        generations.publish(database)
    generations.collect()
    return RebuildReport(
        generation=database.parent.name,
        events=applied.count,
        position=applied.end,
        gaps=tuple(gaps),
    )


def replay(ledger: Ledger, database: Path, until: Position, progress: Progress) -> None:
    """Fill an empty database with the store as it was at a position.

    Raises:
        LedgerDamagedError: the ledger is damaged before that position.

    """
    with _building(database) as connection:
        _fill(connection, ledger.read(Position.start, until.seq), until.seq, progress)
        _finish(connection, until)


class _Applied:
    """Counts records on their way and keeps the end of the last."""

    def __init__(self) -> None:
        self.count = 0
        self.end = Position.start

    def watch(self, records: Iterator[Record]) -> Iterator[Record]:
        for record in records:
            yield record
            self.count += 1
            self.end = record.position


def _finish(connection: Connection, end: Position) -> None:
    write_checkpoint(connection, end)
    connection.close()


@contextmanager
def _building(database: Path) -> Iterator[Connection]:
    connection = Connection(database, building=True)
    try:
        yield connection
    finally:
        connection.close()


def _fill(
    connection: Connection, records: Iterator[Record], total: int, progress: Progress
) -> Projector:
    """Create the tables, apply the records, index the result."""
    connection.execute("BEGIN")
    create_tables(connection)
    projector = Projector(connection)
    with _without_gc():
        for done, record in enumerate(records, 1):
            projector.apply(record)
            if done % PROGRESS_EVERY == 0:
                progress("events", done, total)
        projector.forget_changes()
        create_indexes(connection)
        memories = connection.value("SELECT count(*) FROM memories")
        for done in index_everything(connection, memories):
            if done % PROGRESS_EVERY == 0:
                progress("text", done, memories)
        # Trigrams are a third of the price of a rebuild and only exact search wants them, which
        # does without meanwhile: they stay pending for the upkeep.
        connection.execute("INSERT INTO trigrams_pending SELECT rid FROM memories")
    connection.execute("COMMIT")
    return projector


@contextmanager
def _without_gc() -> Iterator[None]:
    """Pause the cycle collector: millions of short-lived records hold no cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
