"""FORMAT: what this ledger is, written once when it is created."""

from __future__ import annotations

import hmac
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

from ledger.envelope import EnvelopeError, open_line, open_loose, seal_line
from ledger.errors import LedgerDamagedError, LedgerFormatError
from ledger.ids import IdSource

FORMAT_VERSION = 1
HASH_NAME = "sha256"
_NAME = b"format"


class Identity(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of FORMAT.

    Attributes:
        version: the format's version.
        ledger: the ledger's random id.
        hash: name of the hash function of every digest.
        genesis: `prev` of record 1, 64 hex characters.
        origin: first line of the ledger's signed checkpoints.
        key: 64 hex characters; the HMAC key of idempotency digests, so that a header never
            shows a key that a client chose.
    """

    version: int
    ledger: str
    hash: str
    genesis: str
    origin: str
    key: str

    def idempotency_digest(self, workspace: str, actor: str, key: str) -> str:
        """Return 32 hex characters that stand for an idempotency key of one actor."""
        message = msgspec.json.encode([workspace, actor, key])
        return hmac.digest(bytes.fromhex(self.key), message, "sha256").hex()[:32]


def new_identity(ids: IdSource) -> Identity:
    """Return the identity of a ledger that is being created."""
    ledger = ids.new_id()
    return Identity(
        version=FORMAT_VERSION,
        ledger=ledger,
        hash=HASH_NAME,
        genesis=genesis_of(ledger),
        origin=f"mnemolog/{ledger}",
        key=ids.new_salt() + ids.new_salt(),
    )


def genesis_of(ledger: str) -> str:
    """Return `prev` of record 1: SHA-256(0x03 || ledger id)."""
    return sha256(b"\x03" + ledger.encode()).hexdigest()


def encode_identity(identity: Identity) -> bytes:
    """Return the bytes of FORMAT."""
    return seal_line(_NAME, identity)


def decode_identity(data: bytes, path: Path) -> Identity:
    """Return what the bytes of FORMAT say.

    Raises:
        LedgerFormatError: FORMAT is intact and of a version or hash this program does not speak.
        LedgerDamagedError: FORMAT is not intact.
    """
    try:
        fields = open_loose(_NAME, data)
        version, name = fields.get("version"), fields.get("hash")
        if (version, name) != (FORMAT_VERSION, HASH_NAME):
            raise LedgerFormatError(
                path, found=f"{version}/{name}", supported=f"{FORMAT_VERSION}/{HASH_NAME}"
            )
        return open_line(_NAME, data, Identity)
    except EnvelopeError as error:
        raise LedgerDamagedError(
            segment="FORMAT", seq=0, offset=0, reason=f"format: {error}"
        ) from error
