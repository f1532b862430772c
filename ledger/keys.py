"""The file that holds a ledger's signing key.

It is PKCS #8 in PEM (RFC 8410), which `openssl pkey -in checkpoint.key -pubout` reads and
`openssl genpkey -algorithm ed25519` writes. The key's name in notes is the ledger's origin.
"""

from __future__ import annotations

from pathlib import Path

from ledger.errors import LedgerUnreadableError, LedgerWriteError, NoteError
from ledger.note import Signer
from ledger.osfile import read_file, write_reason
from ledger.store import Ledger

KEY_NAME = "checkpoint.key"
"""The key's file in a home, unless the settings name another."""


def read_signer(path: Path, origin: str) -> Signer | None:
    """Return the signer whose key is in a file; None if there is no file.

    Args:
        path: the key's file.
        origin: of the ledger; the key's name in its notes.

    Raises:
        NoteError: the file holds no Ed25519 private key that can be used.
        LedgerUnreadableError: the system refuses to read it.
    """
    try:
        data = read_file(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LedgerUnreadableError(path, str(error)) from error
    from ledger.ed25519 import from_pem  # noqa: PLC0415 - see its docstring

    try:
        private = from_pem(data)
    except NoteError as error:
        raise NoteError(f"{path} holds {error}") from error
    return Signer(origin, private)


def ensure_signer(ledger: Ledger, path: Path, *, lock_timeout_s: float) -> Signer:
    """Return the signer whose key is in a file; make key and file, mode 0600, if there is none.

    Args:
        ledger: the ledger whose notes it signs; its lock keeps two makers apart.
        path: the key's file.
        lock_timeout_s: how long to wait for that lock, in seconds.

    Raises:
        NoteError: the file holds no Ed25519 private key that can be used.
        LedgerReadOnlyError: there is none and nothing can be written.
        LedgerWriteError: it could not be written.
        LockTimeoutError: another writer kept the lock.
    """
    signer = read_signer(path, ledger.identity.origin)
    if signer is not None:
        return signer
    with ledger.lock(lock_timeout_s):
        signer = read_signer(path, ledger.identity.origin)
        if signer is None:
            signer, data = _new_signer(ledger.identity.origin)
            try:
                ledger.files.replace_file(path, data)
            except OSError as error:
                raise LedgerWriteError(outcome="not_written", reason=write_reason(error)) from error
    return signer


def _new_signer(origin: str) -> tuple[Signer, bytes]:
    from ledger.ed25519 import new_private_key, to_pem  # noqa: PLC0415 - see its docstring

    private = new_private_key()
    return Signer(origin, private), to_pem(private)
