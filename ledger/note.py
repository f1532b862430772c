"""Signed notes and checkpoints, in the forms of C2SP (signed-note and tlog-checkpoint).

A note is a text and, after an empty line, a signature line for each key that signed it:

    mnemolog/k3v9q2xmaaaaaaaa                        origin of the ledger, as in FORMAT
    1204                                             how many records
    W8aQ3YAlG9dJvN0cGrUN3m2RbNwvHYkPYIpd9Y0QnQo=     root of the tree over their digests

    — mnemolog/k3v9q2xmaaaaaaaa <base64 of key id and signature>

Only Ed25519 (signature type 0x01) is signed and checked. A key id is the first four bytes of
SHA-256(name || 0x0A || 0x01 || public key); a verifier key is the text
`<name>+<key id, 8 hex>+<base64 of 0x01 and the public key>`. Signatures by other keys are passed
over, as the form demands, so notes may carry those of witnesses.

The library that signs and checks is loaded when something is signed or checked, not before.
"""

from __future__ import annotations

import binascii
from hashlib import sha256
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from ledger.errors import NoteError
from ledger.merkle import HASH_BYTES

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

NOTE_BYTES_MAX = 64 * 1024
"""Longest note that is read; one of ours has some 230 bytes."""

SIZE_MAX = 2**63 - 1
DASH = "— "
"""Begins a signature line: an em dash and a space."""

_ED25519 = b"\x01"
_KEY_ID_BYTES = 4
_PUBLIC_BYTES = 32

Verdict = Literal["good", "bad", "unsigned"]
"""Of a key on a note: its signature holds, does not hold, or is not there."""


class Checkpoint(Struct, frozen=True):
    """What a ledger was at a size.

    Attributes:
        origin: the ledger's origin, as in FORMAT.
        size: how many records, 0 to SIZE_MAX.
        root: root of the tree over their digests, 32 bytes.
    """

    origin: str
    size: int
    root: bytes

    def text(self) -> str:
        """Return the text that is signed."""
        return f"{self.origin}\n{self.size}\n{to_base64(self.root)}\n"


class Signature(Struct, frozen=True):
    """One signature line of a note.

    Attributes:
        name: of the key.
        key_id: first bytes of a digest of the key, 4 bytes.
        value: the signature's bytes.
    """

    name: str
    key_id: bytes
    value: bytes


class Note(Struct, frozen=True):
    """A text and who signed it; nothing in it may be believed before a key says "good".

    Attributes:
        text: what is signed, with its last newline.
        signatures: at least one.
    """

    text: str
    signatures: tuple[Signature, ...]

    def encode(self) -> bytes:
        """Return the note's bytes."""
        lines = [
            f"{DASH}{each.name} {to_base64(each.key_id + each.value)}\n" for each in self.signatures
        ]
        return f"{self.text}\n{''.join(lines)}".encode()

    def checkpoint(self) -> Checkpoint:
        """Return what the text says as a checkpoint.

        Raises:
            NoteError: it is none.
        """
        lines = self.text[:-1].split("\n")
        if len(lines) < 3 or not all(lines):
            raise NoteError(
                "the note is no checkpoint: it needs origin, size and root, a line each"
            )
        origin, size, root = lines[:3]
        digits = size.isascii() and size.isdecimal() and str(int(size[:20])) == size
        if not digits or int(size) > SIZE_MAX:
            raise NoteError(f"the checkpoint's size is {size[:40]!r}; accepted: 0 to {SIZE_MAX}")
        digest = from_base64(root)
        if digest is None or len(digest) != HASH_BYTES:
            raise NoteError("the checkpoint's root is not the base64 of 32 bytes")
        return Checkpoint(origin, int(size), digest)


class VerifierKey(Struct, frozen=True):
    """The public half of a key, with its name.

    Attributes:
        name: without spaces and plus signs.
        public: the Ed25519 public key, 32 bytes.
    """

    name: str
    public: bytes

    @property
    def key_id(self) -> bytes:
        """What signature lines call the key by, 4 bytes."""
        content = self.name.encode() + b"\n" + _ED25519 + self.public
        return sha256(content).digest()[:_KEY_ID_BYTES]

    @property
    def text(self) -> str:
        """The verifier key as text, which `parse_key` reads."""
        return f"{self.name}+{self.key_id.hex()}+{to_base64(_ED25519 + self.public)}"

    def judge(self, note: Note) -> Verdict:
        """Return whether this key signed a note."""
        mine = [
            each for each in note.signatures if (each.name, each.key_id) == (self.name, self.key_id)
        ]
        if not mine:
            return "unsigned"
        # One that does not hold spoils the note, whatever the others say.
        return "good" if all(self._holds(note.text, each.value) for each in mine) else "bad"

    def _holds(self, text: str, signature: bytes) -> bool:
        from ledger.ed25519 import holds  # noqa: PLC0415 - see its docstring

        return holds(self.public, text.encode(), signature)


class Signer:
    """A key that signs, with its name."""

    __slots__ = ("_private", "key")

    def __init__(self, name: str, private: Ed25519PrivateKey) -> None:
        """Sign with this key as `name`.

        Raises:
            NoteError: it cannot be a name.
        """
        _check_name(name)
        self._private = private
        self.key = VerifierKey(name, private.public_key().public_bytes_raw())
        """The public half."""

    def sign(self, checkpoint: Checkpoint) -> Note:
        """Return the checkpoint as a note of this key."""
        text = checkpoint.text()
        value = self._private.sign(text.encode())
        return Note(text, (Signature(self.key.name, self.key.key_id, value),))


def parse_note(data: bytes) -> Note:
    """Return the note that `data` is, exactly.

    Raises:
        NoteError: it is none.
    """
    if len(data) > NOTE_BYTES_MAX:
        raise NoteError(f"{len(data)} bytes are no note; accepted: up to {NOTE_BYTES_MAX}")
    try:
        content = data.decode()
    except UnicodeDecodeError as error:
        raise NoteError("the note is not UTF-8") from error
    if any(character < " " and character != "\n" for character in content):
        raise NoteError("the note holds control characters")
    text, gap, lines = content.rpartition("\n\n")
    if not gap or not text or not lines.endswith("\n"):
        raise NoteError("the note is not a text, an empty line and signature lines")
    signatures = tuple(_parse_signature(line) for line in lines[:-1].split("\n"))
    return Note(f"{text}\n", signatures)


def parse_key(text: str) -> VerifierKey:
    """Return the verifier key that `text` is.

    Raises:
        NoteError: it is none.
    """
    name, _, rest = text.strip().partition("+")
    key_id, _, encoded = rest.partition("+")
    _check_name(name)
    content = from_base64(encoded)
    if content is None or len(content) != 1 + _PUBLIC_BYTES or content[:1] != _ED25519:
        raise NoteError(f"{text[:100]!r} is no verifier key; expected NAME+HASH+KEY, of Ed25519")
    key = VerifierKey(name, content[1:])
    if key.key_id.hex() != key_id:
        raise NoteError(f"the verifier key's hash is {key_id[:20]!r}, not {key.key_id.hex()}")
    return key


def to_base64(data: bytes) -> str:
    """Return standard base64 with padding."""
    return binascii.b2a_base64(data, newline=False).decode()


def from_base64(text: str) -> bytes | None:
    """Return what standard base64 with padding says; None if `text` is not exactly that."""
    try:
        data = binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        return None
    # Bits that no byte needs must be zero, or two texts would say the same.
    return data if to_base64(data) == text else None


def _parse_signature(line: str) -> Signature:
    name, _, encoded = line.removeprefix(DASH).partition(" ")
    content = from_base64(encoded)
    if not line.startswith(DASH) or content is None or len(content) <= _KEY_ID_BYTES:
        raise NoteError("a signature line is not a dash, a name and base64")
    _check_name(name)
    return Signature(name, content[:_KEY_ID_BYTES], content[_KEY_ID_BYTES:])


def _check_name(name: str) -> None:
    if not name or "+" in name or any(character.isspace() for character in name):
        raise NoteError(f"{name[:100]!r} is no key name; accepted: no spaces and no plus signs")
