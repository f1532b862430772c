"""What an erased payload is to the tables, whichever comes first: the row or the erasing.

A record whose payload is gone must leave, in a replay, the very rows that erasing it leaves while
live. A state that was erased is a gap in the history: one version with status `redacted` and no
state, from its event up to the next event that carries a state or a deletion. A memory whose
present state is such a gap is no memory any more but a tombstone.
"""

from __future__ import annotations

from projections.connection import Connection

REDACTED = "redacted"
"""Status of a version whose state was erased."""

GONE, ERASED = 1, 2
"""Values of `gone` of a session or an alias: withdrawn or removed, or its last state erased."""

CONTENT_TYPES = ("memory_added", "memory_updated", "memory_restored")
"""Events that carry a memory's whole state."""

SUBJECT_TYPES = ("session_started", "session_ended", "session_restored", "alias_added")
"""Events that carry the whole state of a session or an alias."""

_BEGINS_VERSION = (*CONTENT_TYPES, "memory_deleted")

_BLANK = {
    "sessions": "started_us = 0, ended_us = NULL, client = '', project = NULL, summary = NULL, "
    "meta = NULL",
    "aliases": "name = '', entity = ''",
}


def close_memory(
    connection: Connection, rid: int, memory_id: str, workspace: int, seq: int
) -> None:
    """Make a memory a tombstone from an event on whose state is erased.

    Its present state, if it has one, must be closed already.
    """
    connection.execute("DELETE FROM memories WHERE rid = ?", (rid,))
    end_gap(connection, rid, seq)
    connection.execute(
        "INSERT OR REPLACE INTO tombstones VALUES(?, ?, ?, ?)", (rid, memory_id, workspace, seq)
    )
    connection.execute(
        "INSERT INTO memory_versions VALUES(?, ?, NULL, ?, ?, NULL)", (rid, seq, seq, REDACTED)
    )


def end_gap(connection: Connection, rid: int, seq: int) -> None:
    """Let the version without an end, which only a tombstone has, end at an event."""
    connection.execute(
        "UPDATE memory_versions SET to_seq = ? WHERE rid = ? AND to_seq IS NULL", (seq, rid)
    )


def erase_state(connection: Connection, rid: int, seq: int) -> bool:
    """Erase the state that a memory had from an event on; say whether it was its present one."""
    if _type(connection, rid, seq) not in CONTENT_TYPES:
        return False
    current = connection.one("SELECT last_seq, id, workspace FROM memories WHERE rid = ?", (rid,))
    begun = [
        from_seq
        for (from_seq,) in connection.execute(
            "SELECT from_seq FROM memory_versions WHERE rid = ? AND from_seq > ?", (rid, seq)
        )
    ]
    if current is not None and current[0] > seq:
        begun.append(current[0])
    end = min(
        (each for each in begun if _type(connection, rid, each) in _BEGINS_VERSION), default=None
    )
    connection.execute(
        "DELETE FROM memory_versions WHERE rid = ? AND from_seq >= ? AND (?3 IS NULL OR "
        "from_seq < ?3)",
        (rid, seq, end),
    )
    is_present = end is None and current is not None
    if is_present:
        assert current is not None
        last_seq, memory_id, workspace = current
        connection.execute("DELETE FROM memories WHERE rid = ?", (rid,))
        connection.execute(
            "INSERT INTO tombstones VALUES(?, ?, ?, ?)", (rid, memory_id, workspace, last_seq)
        )
    connection.execute(
        "INSERT INTO memory_versions VALUES(?, ?, ?, ?, ?, NULL)", (rid, seq, end, seq, REDACTED)
    )
    return is_present


def erase_row(connection: Connection, table: str, rid: int, seq: int) -> None:
    """Erase the state that a session or an alias had from an event on."""
    connection.execute(
        "UPDATE subject_versions SET state = NULL WHERE rid = ? AND from_seq = ?", (rid, seq)
    )
    latest = connection.integer(
        "SELECT max(v.from_seq) FROM subject_versions v JOIN events e ON e.seq = v.from_seq "
        f"WHERE v.rid = ? AND e.type IN ({', '.join('?' * len(SUBJECT_TYPES))})",
        (rid, *SUBJECT_TYPES),
    )
    if latest == seq:
        blank_row(connection, table, rid)


def blank_row(connection: Connection, table: str, rid: int) -> None:
    """Take everything out of the row of a session or an alias but that it is there."""
    connection.execute(
        f"UPDATE {table} SET {_BLANK[table]}, gone = CASE gone WHEN {GONE} THEN {GONE} "
        f"ELSE {ERASED} END WHERE rid = ?",
        (rid,),
    )


def _type(connection: Connection, rid: int, seq: int) -> str | None:
    kind: str | None = connection.value(
        "SELECT type FROM events WHERE seq = ? AND subject = ?", (seq, rid)
    )
    return kind
