"""State digests: equal texts mean equal logical rows, however they came to be.

Each projection is hashed over its rows in key order, values and types included. Of an index the
logical content counts (which term stands where, in FTS5's own order), not how SQLite laid it out.
What has no logical content of its own is left out: `checkpoint` is the position, and the trigram
index is a function of the folded texts that the memories digest covers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from projections.checkpoint import read_checkpoint
from projections.connection import Connection

_PROJECTIONS = {
    "workspaces": "SELECT * FROM workspaces ORDER BY rid",
    "agents": "SELECT * FROM agents ORDER BY rid",
    "events": "SELECT * FROM events ORDER BY seq",
    "origins": "SELECT * FROM origins ORDER BY rid",
    "idempotency": "SELECT * FROM idempotency ORDER BY digest",
    "memories": "SELECT * FROM memories ORDER BY rid",
    "versions": "SELECT * FROM memory_versions ORDER BY rid, from_seq",
    "sessions": "SELECT * FROM sessions ORDER BY rid",
    "aliases": "SELECT * FROM aliases ORDER BY rid",
    "subjects": "SELECT * FROM subject_versions ORDER BY rid, from_seq",
    "tombstones": "SELECT * FROM tombstones ORDER BY rid",
    "redactions": "SELECT * FROM redactions ORDER BY rid",
    "targets": "SELECT * FROM redaction_targets ORDER BY seq",
    "text": "SELECT term, doc, col, offset FROM postings",
}


class StateDigest(msgspec.Struct, frozen=True, kw_only=True):
    """The digests of a generation at one ledger position."""

    seq: int
    """Ledger position applied last; 0 for an empty store."""
    ledger: str
    """Digest of the record at that position; empty for an empty store."""
    projections: dict[str, str]
    """Projection -> SHA-256, 64 hex digits."""

    def text(self) -> str:
        """One line a projection; the same text for the same state."""
        lines = [f"ledger {self.seq} {self.ledger}"]
        lines += [f"{name} {digest}" for name, digest in self.projections.items()]
        return "\n".join(lines) + "\n"


def state_digest(connection: Connection) -> StateDigest:
    """Hash the logical rows; call it in a read transaction."""
    checkpoint = read_checkpoint(connection)
    return StateDigest(
        seq=0 if checkpoint is None else checkpoint.seq,
        ledger="" if checkpoint is None or checkpoint.seq == 0 else checkpoint.digest,
        projections={
            name: _hash_rows(connection.execute(sql)) for name, sql in _PROJECTIONS.items()
        },
    )


def _hash_rows(rows: Iterable[tuple[object, ...]]) -> str:
    digest, encode = hashlib.sha256(), msgspec.json.Encoder().encode
    for row in rows:
        digest.update(encode(row))
        digest.update(b"\n")
    return digest.hexdigest()
