"""The search for erased bytes: which files still hold them, and inside segments which records.

Reads every file from its first byte to its last, sealed segments inflated, in bounded memory. It
compares bytes as they are: no case folding, no other encoding than the one that is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from ledger.codec import Codec, CodecError, inflate_chunks
from ledger.layout import parse_name
from ledger.record import RECORD_BYTES_MAX

_CHUNK_BYTES = 1 << 20
_CODECS: dict[str, Codec] = {".zst": "zst", ".gz": "gz"}
_SEQ = re.compile(rb'\{"h":\{"seq":([0-9]{1,19})[,}]')

ReadChunks = Callable[[Path], Iterable[bytes] | None]
"""Gives a file's bytes in a way of its own, or None: read it as it stands."""


class Finding(Struct, frozen=True, kw_only=True):
    """One file that holds what was searched for.

    Attributes:
        path: the file.
        seqs: in a segment, the records; 0 stands for a line that is no record.
    """

    path: Path
    seqs: tuple[int, ...] = ()


class SearchReport(Struct, frozen=True, kw_only=True):
    """What a search found.

    Attributes:
        found: by needle, the files that hold it; a needle that is nowhere is not in it.
        files: how many files were read to their end.
        unread: files that were not, because they were gone, the system refuses, or they do not
            inflate. Nothing is known of what was not read.
    """

    found: dict[bytes, list[Finding]]
    files: int
    unread: list[Path]


def text_needles(text: str) -> set[bytes]:
    """Return the bytes by which files may hold a text: as it is, or inside a JSON string.

    JSON is taken as the ledger writes it and as writers do that keep to ASCII.
    """
    import json  # noqa: PLC0415 - a session that redacts nothing does not pay for it

    return {text.encode(), msgspec.json.encode(text)[1:-1], json.dumps(text)[1:-1].encode()}


def find_erased(
    paths: Iterable[Path], needles: Collection[bytes], read: ReadChunks | None = None
) -> SearchReport:
    """Search files for needles, one file after the other.

    It takes about a second for each needle and gigabyte.

    Args:
        paths: the files. A database that this process has open must not be read as it stands:
            closing the descriptor would drop SQLite's locks. Leave it out, or give `read`.
        needles: what to search for, each one byte long at least; no line feed in those that are
            to be found in segments.
        read: asked first for the bytes of each file.
    """
    found: dict[bytes, list[Finding]] = {}
    unread: list[Path] = []
    files = 0
    overlap = max(map(len, needles), default=1) - 1
    for path in paths:
        name = parse_name(path.name)
        seqs: dict[bytes, set[int]] = {}
        try:
            chunks = None if read is None else read(path)
            if chunks is None:
                chunks = _chunks(path)
            if name is None:
                for window in _windows(chunks, overlap):
                    seqs.update((needle, set()) for needle in needles if needle in window)
            else:
                for window in _lines(chunks, overlap):
                    for needle in needles:
                        _find_records(window, needle, seqs)
        except (OSError, CodecError):
            unread.append(path)
        else:
            files += 1
        for needle, where in seqs.items():
            found.setdefault(needle, []).append(Finding(path=path, seqs=tuple(sorted(where))))
    return SearchReport(found=found, files=files, unread=unread)


def _chunks(path: Path) -> Iterator[bytes]:
    codec = _CODECS.get(path.suffix)
    raw = _raw_chunks(path)
    yield from raw if codec is None else inflate_chunks(raw, codec)


def _raw_chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk


def _windows(chunks: Iterable[bytes], overlap: int) -> Iterator[bytes]:
    """Yield the bytes in pieces that overlap by what the longest needle may have in the last."""
    kept = b""
    for chunk in chunks:
        window = kept + chunk
        yield window
        kept = window[max(len(window) - overlap, 0) :]


def _lines(chunks: Iterable[bytes], overlap: int) -> Iterator[bytes]:
    """Yield the bytes in pieces of whole lines; a line that is too long for one, overlapping."""
    rest = b""
    for chunk in chunks:
        rest += chunk
        end = rest.rfind(b"\n") + 1
        if end:
            yield rest[:end]
            rest = rest[end:]
        elif len(rest) > RECORD_BYTES_MAX:
            yield rest
            rest = rest[max(len(rest) - overlap, 0) :]
    if rest:
        yield rest


def _find_records(window: bytes, needle: bytes, seqs: dict[bytes, set[int]]) -> None:
    at = window.find(needle)
    while at >= 0:
        record = _SEQ.match(window, window.rfind(b"\n", 0, at) + 1)
        seqs.setdefault(needle, set()).add(0 if record is None else int(record[1]))
        end = window.find(b"\n", at)
        at = window.find(needle, end) if end >= 0 else -1
