"""The tables of a generation, and the projector versions that decide whether it may be used.

A table is derived from the ledger and nothing else. A change of any table, of the text analysis or
of what `projector.apply` does raises a version below; there are no migrations, only a rebuild.

Times are integer microseconds since 1970-01-01 UTC; spans are half open. `rid` is the ledger
position of the event that added a memory, so it grows with time and is never used twice.
"""

from __future__ import annotations

import re

from projections.connection import Connection
from projections.errors import (
    ProgramOutdatedError,
    ProjectionDamagedError,
    ProjectionOutdatedError,
)
from projections.text import ANALYSIS_VERSION

VERSIONS = {
    "memories": 2,
    "sessions": 2,
    "aliases": 2,
    "redactions": 1,
    "text": ANALYSIS_VERSION,
    "substring": 1,
}
"""Projector name -> version."""

BM25_WEIGHTS = "3.0, 1.0, 2.0"
"""Of the index's columns title, content and entity, in the order they are declared."""

TABLES = (
    "CREATE TABLE projector(name TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID",
    # One row: how far the ledger has been applied, committed together with what was applied.
    """CREATE TABLE checkpoint(
        one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, digest TEXT NOT NULL,
        segment INTEGER NOT NULL, offset INTEGER NOT NULL, t_us INTEGER NOT NULL)""",
    "CREATE TABLE workspaces(rid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL UNIQUE)",
    "CREATE TABLE agents(rid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL UNIQUE)",
    # What could not be read of a damaged ledger when this was built; empty for a whole one.
    "CREATE TABLE gaps(detail TEXT NOT NULL)",
    # The ledger's table of contents, without texts: what undo, audit and time travel look things up in.
    """CREATE TABLE events(
        seq INTEGER PRIMARY KEY, batch INTEGER NOT NULL, type TEXT NOT NULL, subject INTEGER NOT NULL,
        actor INTEGER NOT NULL, t_us INTEGER NOT NULL, undo INTEGER, session INTEGER, cause INTEGER)""",
    # Ids of sessions and causes, which many events name: `events` holds a number of a byte or two.
    "CREATE TABLE origins(rid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE)",
    "CREATE TABLE idempotency(digest TEXT PRIMARY KEY, batch INTEGER NOT NULL, request TEXT) WITHOUT ROWID",
    # By which an erased record's request is found; that is part of applying an event.
    "CREATE INDEX idempotency_batch ON idempotency(batch) WHERE request IS NOT NULL",
    # Short columns first: filters then read a row's first page only, whatever its text's length.
    """CREATE TABLE memories(
        rid INTEGER PRIMARY KEY, id TEXT NOT NULL, workspace INTEGER NOT NULL,
        superseded_by TEXT, supersedes TEXT, layer TEXT NOT NULL,
        importance REAL NOT NULL, confidence REAL NOT NULL,
        created_us INTEGER NOT NULL, updated_us INTEGER NOT NULL,
        happened_from INTEGER NOT NULL, happened_to INTEGER NOT NULL,
        true_from INTEGER, true_until INTEGER, expires_us INTEGER,
        version INTEGER NOT NULL, last_seq INTEGER NOT NULL, agent INTEGER NOT NULL,
        scope TEXT NOT NULL, entity_type TEXT, entity_name TEXT, title TEXT,
        source TEXT NOT NULL, source_file TEXT, session_id TEXT,
        event_at TEXT, valid_from TEXT, valid_until TEXT, expires_at TEXT,
        tags TEXT, meta TEXT, content TEXT NOT NULL)""",
    # What events are applied by, so these cannot wait for a rebuild's end like the other indexes.
    "CREATE UNIQUE INDEX memories_id ON memories(id)",
    "CREATE INDEX memories_superseded_by ON memories(superseded_by) WHERE superseded_by IS NOT NULL",
    # Every state a memory has had and has no more, with the ledger interval in which it was current;
    # a tombstone's interval is open. The current state is the row in `memories`.
    """CREATE TABLE memory_versions(
        rid INTEGER NOT NULL, from_seq INTEGER NOT NULL, to_seq INTEGER, version INTEGER NOT NULL,
        status TEXT NOT NULL, state TEXT, PRIMARY KEY (rid, from_seq)) WITHOUT ROWID""",
    "CREATE TABLE tombstones(rid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, workspace INTEGER NOT NULL, seq INTEGER NOT NULL)",
    # A row stays when its subject is withdrawn or removed (gone = 1), so that undo finds it again;
    # it is blank once its last state was erased (gone = 2 unless it was 1).
    """CREATE TABLE sessions(
        rid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, workspace INTEGER NOT NULL,
        last_seq INTEGER NOT NULL, gone INTEGER NOT NULL, started_us INTEGER NOT NULL, ended_us INTEGER,
        client TEXT NOT NULL, project TEXT, summary TEXT, meta TEXT)""",
    """CREATE TABLE aliases(
        rid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, workspace INTEGER NOT NULL,
        last_seq INTEGER NOT NULL, gone INTEGER NOT NULL, name TEXT NOT NULL, entity TEXT NOT NULL)""",
    "CREATE UNIQUE INDEX aliases_name ON aliases(workspace, name) WHERE NOT gone",
    # Every state a session or an alias has had, the present one included; NULL: withdrawn,
    # removed or erased.
    """CREATE TABLE subject_versions(
        rid INTEGER NOT NULL, from_seq INTEGER NOT NULL, state TEXT, PRIMARY KEY (rid, from_seq)) WITHOUT ROWID""",
    # `reason` is NULL once it was itself erased, `completed_seq` until the erasing is done.
    """CREATE TABLE redactions(
        rid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, workspace INTEGER NOT NULL,
        last_seq INTEGER NOT NULL, completed_seq INTEGER, reason TEXT)""",
    # The records whose payloads are erased, or are being erased; `redaction` is a rid.
    "CREATE TABLE redaction_targets(seq INTEGER PRIMARY KEY, redaction INTEGER NOT NULL, digest TEXT NOT NULL)",
    """CREATE VIRTUAL TABLE memories_fts USING fts5(
        title, content, entity, content='', contentless_delete=1, tokenize='ascii')""",
    f"INSERT INTO memories_fts(memories_fts, rank) VALUES('rank', 'bm25({BM25_WEIGHTS})')",
    "CREATE VIRTUAL TABLE terms USING fts5vocab(memories_fts, row)",
    "CREATE VIRTUAL TABLE postings USING fts5vocab(memories_fts, instance)",
    """CREATE VIRTUAL TABLE trigrams USING fts5(
        content, content='', contentless_delete=1, detail=none, tokenize='trigram case_sensitive 1')""",
    "CREATE TABLE trigrams_pending(rid INTEGER PRIMARY KEY)",
)

_NAMES = frozenset(re.findall(r"CREATE (?:VIRTUAL )?TABLE (\w+)", " ".join(TABLES)))

INDEXES = (
    "CREATE INDEX memories_entity ON memories(entity_name) WHERE entity_name IS NOT NULL",
    "CREATE INDEX memories_happened ON memories(happened_from)",
    "CREATE INDEX memories_source_file ON memories(source_file) WHERE source_file IS NOT NULL",
    "CREATE INDEX memories_session ON memories(session_id) WHERE session_id IS NOT NULL",
    "CREATE INDEX aliases_entity ON aliases(workspace, entity) WHERE NOT gone",
    "CREATE INDEX events_subject ON events(subject) WHERE subject <> seq",
    "CREATE INDEX events_undo ON events(undo) WHERE undo IS NOT NULL",
)
"""Created last by a rebuild."""


def create_tables(connection: Connection) -> None:
    """Create the tables of an empty database and note the versions that fill them."""
    for statement in TABLES:
        connection.execute(statement)
    connection.executemany("INSERT INTO projector VALUES(?, ?)", iter(VERSIONS.items()))


def create_indexes(connection: Connection) -> None:
    """Create the secondary indexes."""
    for statement in INDEXES:
        connection.execute(statement)


def check_versions(connection: Connection, generation: str) -> None:
    """Compare the versions that filled a generation with this program's.

    Raises:
        ProgramOutdatedError: a newer program wrote it.
        ProjectionOutdatedError: an older program wrote it, so it wants a rebuild.
        ProjectionDamagedError: tables are missing.

    """
    present = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    if "projector" not in present:
        raise ProjectionDamagedError(generation, "it holds no tables")
    found = dict(connection.execute("SELECT name, version FROM projector"))
    for name, version in found.items():
        if version > VERSIONS.get(name, 0):
            raise ProgramOutdatedError(generation, name)
    for name, version in VERSIONS.items():
        if found.get(name, 0) < version:
            raise ProjectionOutdatedError(generation, name)
    if missing := _NAMES - present:
        raise ProjectionDamagedError(
            generation, f"tables are missing: {', '.join(sorted(missing))}"
        )
