"""Redactions for tests of the ledger: naming, erasing, and looking for what is left."""

import gzip
from collections.abc import Iterable
from pathlib import Path

import zstandard

from ledger import (
    Batch,
    Ledger,
    MemoryRedacted,
    NewEvent,
    Position,
    Record,
    RedactedRecord,
    Redactor,
)
from tests.support.ledgers import ACTOR, WORKSPACE, to_be_closed

REDACTION = "rrrrrrrrrrrrrrrr"


def open_redactor(ledger: Ledger) -> Redactor:
    """Make a ledger's redactor, closed after the test."""
    return to_be_closed(Redactor(ledger, lock_timeout_s=5))


def digests(ledger: Ledger, seqs: Iterable[int]) -> dict[int, str]:
    """Return what a redactor is given to erase records."""
    return {seq: record.digest for seq, record in ledger.records_at(seqs).items()}


def naming(targets: dict[int, str], number: int = 0) -> Batch:
    """Return the batch that names records as redacted."""
    named = tuple(RedactedRecord(seq=seq, digest=targets[seq]) for seq in sorted(targets))
    event = MemoryRedacted(salt=f"{number:032x}", redaction=REDACTION, targets=named)
    return Batch(WORKSPACE, ACTOR, [NewEvent("m" * 16, event)])


def name(ledger: Ledger, targets: dict[int, str], known: Position | None = None) -> Position:
    """Append the record that names some as redacted; return the end."""
    with ledger.lock(5) as writer:
        for _ in writer.catch_up(known):
            pass
        group = writer.group()
        group.add(naming(targets))
        return group.commit()


def redact(ledger: Ledger, *seqs: int) -> list[int]:
    """Name records and erase them; return the segments that were rewritten."""
    targets = digests(ledger, seqs)
    name(ledger, targets)
    return open_redactor(ledger).rewrite(targets)


def said(records: Iterable[Record]) -> list[str | None]:
    """Return what memories say, None where it is erased; other events are left out."""
    return [
        None if record.payload is None else record.payload.memory.content
        for record in records
        if record.header.type == "memory_added"
        and (record.payload is None or hasattr(record.payload, "memory"))
    ]


def inflated(root: Path) -> dict[str, bytes]:
    """Return every file below a directory, segments inflated, with nothing of the package."""
    found = {}
    for path in sorted(root.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            if path.suffix == ".zst":
                data = zstandard.ZstdDecompressor().decompress(data)
            elif path.suffix == ".gz":
                data = gzip.decompress(data)
            found[str(path.relative_to(root))] = data
    return found


def raw_lines(root: Path) -> dict[int, bytes]:
    """Return the line of every record below a ledger's directory, by its seq."""
    lines = {}
    for file, data in inflated(root / "log").items():
        first = int(file.partition(".")[0])
        records = [line for line in data.split(b"\n") if line.startswith(b'{"h":')]
        lines.update(dict(enumerate(records, first)))
    return lines
