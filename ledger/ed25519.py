"""Ed25519 by the library `cryptography`, and its private keys as PKCS #8 in PEM (RFC 8410).

The library takes long to load, so this module is imported when something is signed or checked.
"""

from __future__ import annotations

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from ledger.errors import NoteError


def holds(public: bytes, text: bytes, signature: bytes) -> bool:
    """Return whether a signature is one of a text by a public key of 32 bytes."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, text)
    except InvalidSignature:
        return False
    return True


def new_private_key() -> Ed25519PrivateKey:
    """Return a key that nobody has had."""
    return Ed25519PrivateKey.generate()


def to_pem(private: Ed25519PrivateKey) -> bytes:
    """Return a key as the bytes of a file."""
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def from_pem(data: bytes) -> Ed25519PrivateKey:
    """Return the key that the bytes of a file hold.

    Raises:
        NoteError: they hold none that can be used; the text says what they hold.
    """
    try:
        private = load_pem_private_key(data, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise NoteError(f"no key that can be used: {error}") from error
    if not isinstance(private, Ed25519PrivateKey):
        raise NoteError("a key of another kind; accepted: Ed25519")
    return private
