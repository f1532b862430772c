"""MANIFEST.json: which segments are sealed, and what each of them must be.

If a segment exists both raw and sealed, the manifest decides: what it names is read sealed, all
else raw.
"""

from __future__ import annotations

from hashlib import sha256

from msgspec import Struct

from ledger.codec import Codec, CodecError, inflate
from ledger.envelope import EnvelopeError, open_line, seal_line
from ledger.errors import LedgerDamagedError
from ledger.layout import SegmentName

MANIFEST_VERSION = 1
_NAME = b"manifest"


class SealedSegment(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """What the manifest says of one sealed segment.

    Attributes:
        name: its file in `log/`.
        gen: its generation.
        first, last: seq of its first and last record.
        prev: digest of the record before its first.
        digest: digest of its last record.
        count: how many records it holds.
        raw_bytes: length of its content, inflated.
        file_bytes: length of its file.
        sha256: SHA-256 of its file, 64 hex characters.
    """

    name: str
    gen: int
    first: int
    last: int
    prev: str
    digest: str
    count: int
    raw_bytes: int
    file_bytes: int
    sha256: str

    @property
    def codec(self) -> Codec:
        """The compression of its file."""
        return "gz" if self.name.endswith(".gz") else "zst"

    def open(self, data: bytes) -> bytes:
        """Return the content of the sealed file whose bytes are `data`.

        Raises:
            CodecError: they are not the bytes that were sealed.
        """
        if len(data) != self.file_bytes:
            raise CodecError(f"the file has {len(data)} bytes, {self.file_bytes} were sealed")
        if sha256(data).hexdigest() != self.sha256:
            raise CodecError("the file does not match its digest")
        return inflate(data, self.codec, self.raw_bytes)


class Manifest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of MANIFEST.json.

    Attributes:
        version: the manifest's format.
        ledger: id of the ledger it belongs to.
        segments: the sealed segments in order.
    """

    version: int
    ledger: str
    segments: tuple[SealedSegment, ...] = ()

    def with_segment(self, entry: SealedSegment) -> Manifest:
        """Return the manifest with one entry added, or replaced by its new generation."""
        others = [other for other in self.segments if other.first != entry.first]
        segments = tuple(sorted([*others, entry], key=lambda each: each.first))
        return Manifest(version=self.version, ledger=self.ledger, segments=segments)


def new_manifest(ledger: str) -> Manifest:
    """Return the manifest of a ledger with nothing sealed."""
    return Manifest(version=MANIFEST_VERSION, ledger=ledger)


def encode_manifest(manifest: Manifest) -> bytes:
    """Return the bytes of MANIFEST.json."""
    return seal_line(_NAME, manifest)


def decode_manifest(data: bytes, *, ledger: str) -> Manifest:
    """Return what the bytes of MANIFEST.json say.

    Raises:
        LedgerDamagedError: they are not intact, or of another ledger.
    """
    try:
        manifest = open_line(_NAME, data, Manifest)
    except EnvelopeError as error:
        raise _damaged(str(error)) from error
    if (manifest.version, manifest.ledger) != (MANIFEST_VERSION, ledger):
        raise _damaged(f"it belongs elsewhere: {manifest.version}, {manifest.ledger}")
    for entry in manifest.segments:
        codec = entry.name.rpartition(".")[2]
        if entry.name != SegmentName(first=entry.first, gen=entry.gen, codec=codec).file:
            raise _damaged(f"{entry.name} does not fit its own entry")
    return manifest


def _damaged(reason: str) -> LedgerDamagedError:
    return LedgerDamagedError(
        segment="MANIFEST.json", seq=0, offset=0, reason=f"manifest: {reason}"
    )
