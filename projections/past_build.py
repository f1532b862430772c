"""Filling a database with the memories that were current at a ledger position.

What is read is the generation in use, not the ledger: a state was current in an interval, and the
intervals are kept. The result holds what a search, a list or statistics read, and its rows are
those of a replay up to that position: memories, workspaces, agents, aliases and the indexes. Events
and versions are left out; questions by id need no copy (module `intervals`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ledger import AliasState, Position
from projections.checkpoint import write_checkpoint
from projections.connection import Connection
from projections.erasure import ERASED, GONE
from projections.projector import Projector
from projections.schema import create_indexes, create_tables
from projections.states import decode_alias, decode_state
from projections.substring import flush_trigrams
from projections.text_index import index_everything

PROGRESS_EVERY = 1_000

Progress = Callable[[str, int, int], None]
"""Called with the phase ("memories", "text", "substrings"), how many are done, and of how many."""

_CURRENT_STILL = "SELECT * FROM memories WHERE last_seq <= ?"

_CURRENT_THEN = """
    SELECT v.rid, coalesce(m.id, t.id), coalesce(m.workspace, t.workspace), added.actor,
        added.t_us, moved.t_us, v.version, v.from_seq, v.state
    FROM memory_versions v
        LEFT JOIN memories m ON m.rid = v.rid LEFT JOIN tombstones t ON t.rid = v.rid
        JOIN events added ON added.seq = v.rid JOIN events moved ON moved.seq = v.version
    WHERE v.from_seq <= ?1 AND (v.to_seq > ?1 OR v.to_seq IS NULL) AND v.state IS NOT NULL"""

_ALIASES = """
    SELECT a.rid, a.id, a.workspace, coalesce((SELECT max(e.seq) FROM events e
            WHERE e.subject = a.rid AND e.subject <> e.seq AND e.seq <= ?1), a.rid),
        last.state, ended.type, said.state
    FROM aliases a
        JOIN subject_versions last ON last.rid = a.rid AND last.from_seq = (
            SELECT max(from_seq) FROM subject_versions WHERE rid = a.rid AND from_seq <= ?1)
        JOIN events ended ON ended.seq = last.from_seq
        LEFT JOIN subject_versions said ON said.rid = a.rid AND said.from_seq = (
            SELECT max(v.from_seq) FROM subject_versions v JOIN events e ON e.seq = v.from_seq
            WHERE v.rid = a.rid AND v.from_seq <= ?1 AND e.type = 'alias_added')"""
"""Each alias as it stood, and what it last said if that is not erased."""


def fill_tables(source: Connection, database: Path, seq: int, progress: Progress) -> None:
    """Fill the tables of an empty database with the rows that were current at a position.

    Args:
        source: the generation in use, in a read transaction.
        database: an empty database that nobody else can see.
        seq: the end of an operation; `moment.moment_at` finds it.
        progress: told about every thousand memories; what it raises stops the work.

    """
    copy = Connection(database, building=True)
    try:
        copy.execute("BEGIN")
        create_tables(copy)
        _copy_names(source, copy, seq)
        total = source.integer("SELECT count(*) FROM memories WHERE last_seq <= ?", (seq,)) or 0
        width = len(list(copy.execute("PRAGMA table_info(memories)")))
        copy.executemany(
            f"INSERT INTO memories VALUES({', '.join('?' * width)})",
            _watched(source.execute(_CURRENT_STILL, (seq,)), total, progress),
        )
        projector = Projector(copy)
        for row in _watched(source.execute(_CURRENT_THEN, (seq,)), total, progress):
            rid, memory_id, workspace, agent, created_us, updated_us, version, last_seq, text = row
            projector.place(
                (rid, memory_id, workspace, agent, created_us, updated_us),
                (version, last_seq),
                decode_state(text),
            )
        projector.settle()
        write_checkpoint(copy, Position(seq=seq, digest="", segment=0, offset=0))
        create_indexes(copy)
        copy.execute("COMMIT")
    finally:
        copy.close()


def fill_indexes(database: Path, progress: Progress) -> None:
    """Fill the text index and the substring index from the memories table."""
    copy = Connection(database, building=True)
    try:
        copy.execute("BEGIN")
        count = copy.integer("SELECT count(*) FROM memories") or 0
        for done in index_everything(copy, count):
            if done % PROGRESS_EVERY == 0:
                progress("text", done, count)
        copy.execute("INSERT INTO trigrams_pending SELECT rid FROM memories")
        done = 0
        while flushed := flush_trigrams(copy, PROGRESS_EVERY):
            done += flushed
            progress("substrings", done, count)
        copy.execute("COMMIT")
    finally:
        copy.close()


def _copy_names(source: Connection, copy: Connection, seq: int) -> None:
    """Copy workspaces, agents and aliases; what a name had been is known from its versions."""
    for table in ("workspaces", "agents"):
        rows = source.execute(f"SELECT * FROM {table} WHERE rid <= ?", (seq,))
        copy.executemany(f"INSERT INTO {table} VALUES(?, ?, ?)", iter(rows))
    for rid, alias_id, workspace, last_seq, now, ended_by, said in source.execute(_ALIASES, (seq,)):
        gone = 0
        if now is None:
            gone = GONE if ended_by == "alias_removed" else ERASED
        alias = AliasState(name="", entity="") if said is None else decode_alias(said)
        copy.execute(
            "INSERT INTO aliases VALUES(?, ?, ?, ?, ?, ?, ?)",
            (rid, alias_id, workspace, last_seq, gone, alias.name, alias.entity),
        )


def _watched(
    rows: Iterator[tuple[Any, ...]], total: int, progress: Progress
) -> Iterator[tuple[Any, ...]]:
    for done, row in enumerate(rows, 1):
        if done % PROGRESS_EVERY == 0:
            progress("memories", done, total)
        yield row
