"""Where the ledger's files are and what they are called."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

SEQ_DIGITS = 20

PREPARED = ".partial-"
"""After a ledger's name: a copy in the making, to be given that name."""

REPLACED = ".replaced-"
"""After a ledger's name: what had that name until a restore put it aside."""

_NAME = re.compile(
    r"(?P<first>\d{20})(?:\.g(?P<gen>0|[1-9]\d*)\.jsonl\.(?P<codec>zst|gz)|\.jsonl)", re.ASCII
)


class SegmentName(Struct, frozen=True, gc=False):
    """What a segment's file name says.

    Attributes:
        first: seq of the segment's first record.
        gen: generation of a sealed segment (each redaction adds one), -1 for a raw one.
        codec: "zst" or "gz" for a sealed segment, "" for a raw one.
    """

    first: int
    gen: int = -1
    codec: str = ""

    @property
    def file(self) -> str:
        """The file name."""
        if not self.codec:
            return f"{self.first:020d}.jsonl"
        return f"{self.first:020d}.g{self.gen}.jsonl.{self.codec}"


def parse_name(name: str) -> SegmentName | None:
    """Return what a file name in `log/` says, or None if it names no segment."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    if match["codec"] is None:
        return SegmentName(first=int(match["first"]))
    return SegmentName(first=int(match["first"]), gen=int(match["gen"]), codec=match["codec"])


class Layout:
    """The paths of one ledger, from its directory (`<home>/ledger`)."""

    __slots__ = (
        "checkpoints",
        "format",
        "lock",
        "log",
        "manifest",
        "quarantine",
        "root",
        "seal_lock",
    )

    def __init__(self, root: Path) -> None:
        """Derive every path from the ledger's directory."""
        self.root = root
        self.format = root / "FORMAT"
        self.lock = root / "LOCK"
        self.seal_lock = root / "SEAL"
        self.manifest = root / "MANIFEST.json"
        self.log = root / "log"
        self.checkpoints = root / "checkpoints"
        self.quarantine = root / "quarantine"

    def raw(self, first: int) -> Path:
        """Return the path of the raw segment that begins with record `first`."""
        return self.log / SegmentName(first=first).file
