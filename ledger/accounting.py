"""Redaction accounting: is every missing payload one that a redaction names?

Records are taken in the order of the ledger and the account is closed after the last, for what
takes a payload away comes after it. It holds one entry for each record that is redacted or named,
whatever the ledger's size.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from ledger.events import MemoryRedacted
from ledger.record import NEVER_ERASED, Record


class MissingPayload(Struct, frozen=True, kw_only=True, gc=False):
    """A record without its payload.

    Attributes:
        seq, digest: of the record.
        segment: file, relative to the ledger directory.
        offset: where the record ends in the segment's raw content.
        kept: the stored name of its event, if no redaction may take that away.
    """

    seq: int
    digest: str
    segment: str
    offset: int
    kept: str = ""

    @property
    def why(self) -> str:
        """Why it may not be missing."""
        if self.kept:
            return f"a payload of {self.kept} is never erased, and this one is missing"
        return "the payload is missing and no redaction names it"


class RedactionAccount:
    """What is missing, and what the redactions of the ledger name."""

    __slots__ = ("_missing", "_named")

    def __init__(self) -> None:
        """Begin with nothing."""
        self._missing: list[tuple[int, MissingPayload]] = []
        self._named: set[tuple[int, str]] = set()

    def take(self, records: Iterable[Record], segment: str, place: int = 0) -> None:
        """Take the records of a segment; only redactions and those without payload matter.

        Args:
            records: in order.
            segment: their file, relative to the ledger directory.
            place: comes back with what turns out to be unlawful.
        """
        for record in records:
            if isinstance(record.payload, MemoryRedacted):
                self._named.update((each.seq, each.digest) for each in record.payload.targets)
            elif record.payload is None:
                kind = record.header.type
                missing = MissingPayload(
                    seq=record.seq,
                    digest=record.digest,
                    segment=segment,
                    offset=record.end,
                    kept=kind if kind in NEVER_ERASED else "",
                )
                self._missing.append((place, missing))

    @property
    def redacted(self) -> int:
        """How many payloads are missing lawfully."""
        return len(self._missing) - len(self.unlawful())

    @property
    def unfinished(self) -> int:
        """How many records are named whose payload was not missing where they were met."""
        return len(self._named - {(each.seq, each.digest) for _, each in self._missing})

    def unlawful(self) -> list[tuple[int, MissingPayload]]:
        """Return what is missing and may not be, each with the place given to `take`."""
        return [
            (place, each)
            for place, each in self._missing
            if each.kept or (each.seq, each.digest) not in self._named
        ]
