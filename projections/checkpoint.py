"""How far a generation has applied the ledger; committed together with what was applied."""

from __future__ import annotations

from ledger import Position
from projections.connection import Connection


def read_checkpoint(connection: Connection) -> Position | None:
    """Return the position applied last, or None in a generation that has applied nothing."""
    row = connection.one("SELECT seq, digest, segment, offset, t_us FROM checkpoint")
    if row is None:
        return None
    seq, digest, segment, offset, t_us = row
    return Position(seq=seq, digest=digest, segment=segment, offset=offset, t_us=t_us)


def write_checkpoint(connection: Connection, position: Position) -> None:
    """Note a position; call it in the transaction that applied the records up to it."""
    connection.execute(
        "INSERT OR REPLACE INTO checkpoint VALUES(1, ?, ?, ?, ?, ?)",
        (position.seq, position.digest, position.segment, position.offset, position.t_us),
    )
