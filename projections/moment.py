"""Moments: ledger positions at which the store is looked at as it was.

Nobody has ever seen half an operation, so a moment stands at the end of one: a position inside a
batch means the batch's last event.
"""

from __future__ import annotations

import msgspec

from projections.checkpoint import read_checkpoint
from projections.connection import Connection


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """A point between two operations, and what there is to know of it."""

    seq: int
    """Ledger position of the last event before it; 0 before the first."""
    t_us: int
    """Time of that event, in microseconds; 0 before the first."""


def end_of(connection: Connection) -> int:
    """Return the ledger position applied last."""
    checkpoint = read_checkpoint(connection)
    return 0 if checkpoint is None else checkpoint.seq


def moment_at(connection: Connection, seq: int) -> Moment:
    """Return the moment after the operation that a position belongs to."""
    row = connection.one(
        "SELECT seq, batch, t_us FROM events WHERE seq <= ? ORDER BY seq DESC LIMIT 1", (seq,)
    )
    if row is None:
        return Moment(seq=0, t_us=0)
    last, batch, t_us = row
    following = connection.execute(
        "SELECT seq, batch, t_us FROM events WHERE seq > ? ORDER BY seq", (last,)
    )
    for later, its_batch, its_t_us in following:
        if its_batch != batch:
            break  # a batch's events are neighbours
        last, t_us = later, its_t_us
    return Moment(seq=last, t_us=t_us)


def moment_of(connection: Connection, t_us: int) -> Moment:
    """Return the moment of the greatest position whose time is not after an instant.

    The clock may have gone back, so later positions are looked at too: it reads from the end of the
    ledger back to the moment.

    Args:
        connection: in a read transaction.
        t_us: microseconds since 1970-01-01 UTC.

    """
    return moment_at(connection, last_until(connection, t_us))


def last_until(connection: Connection, t_us: int) -> int:
    """Return the greatest position of an event that is not later than an instant; 0 if none is."""
    sql = "SELECT seq FROM events WHERE t_us <= ? ORDER BY seq DESC LIMIT 1"
    return connection.integer(sql, (t_us,)) or 0


def redacted_since(connection: Connection, workspace: int | None, seq: int) -> int:
    """Count what redactions after a position took away of what was there at it, in one workspace.

    Each memory, session, alias and reason counts once a redaction; one of which the redaction took
    nothing but what it said later does not. What is known of no workspace any more counts in each.
    """
    count = connection.integer(
        "SELECT count(*) FROM events e WHERE e.type = 'memory_redacted' AND e.seq > ?1 "
        "AND coalesce("
        "(SELECT workspace FROM memories WHERE rid = e.subject), "
        "(SELECT workspace FROM tombstones WHERE rid = e.subject), "
        "(SELECT workspace FROM sessions WHERE rid = e.subject), "
        "(SELECT workspace FROM aliases WHERE rid = e.subject), "
        "(SELECT workspace FROM redactions WHERE rid = e.subject), ?2) IS ?2 "
        "AND (e.subject = e.seq OR EXISTS (SELECT 1 FROM redaction_targets t WHERE t.seq <= ?1 "
        "AND (t.redaction = e.batch OR NOT EXISTS (SELECT 1 FROM events begun "
        "WHERE begun.seq = e.batch AND begun.type = 'redaction_explained')) AND t.seq IN "
        "(SELECT e.subject UNION ALL SELECT seq FROM events WHERE subject = e.subject "
        "AND subject <> seq)))",
        (seq, workspace),
    )
    return count or 0


def last_redaction(connection: Connection) -> int:
    """Return the position of the last redaction of any workspace; 0 if there was none."""
    return connection.integer("SELECT max(seq) FROM events WHERE type = 'memory_redacted'") or 0
