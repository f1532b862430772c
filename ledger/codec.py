"""Compression of sealed segments: zstd by default, gzip selectable, both always readable.

An inflated segment is believed only if its frame ended, nothing follows it, and its size is the
one the manifest gives: python-zstandard alone takes a cut file for a short one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Literal

Codec = Literal["zst", "gz"]
"""Suffix of a sealed segment's file name, which names its compression."""

ZSTD_LEVEL = 3
GZIP_LEVEL = 6
_GZIP_WBITS = 31

INFLATED_BYTES_MAX = 1 << 30
"""Most that a segment may hold, whatever its manifest entry and its frame say."""

_STEP_BYTES: dict[Codec, int] = {"zst": 64, "gz": 4096}
"""Bytes of a frame that are inflated at once; they become a few megabytes at most."""


class CodecError(ValueError):
    """A sealed segment's bytes do not inflate to what they should."""


def compress(raw: bytes, codec: Codec) -> bytes:
    """Return `raw` as one frame with checksum and content size."""
    # Imported here: a session that never seals or reads sealed segments does not pay for it.
    if codec == "gz":
        import gzip  # noqa: PLC0415 - see above

        return gzip.compress(raw, GZIP_LEVEL, mtime=0)
    import zstandard  # noqa: PLC0415 - see above

    compressor = zstandard.ZstdCompressor(
        level=ZSTD_LEVEL, write_checksum=True, write_content_size=True
    )
    return compressor.compress(raw)


def inflate(data: bytes, codec: Codec, raw_bytes: int) -> bytes:
    """Return the content of a sealed segment, which must be exactly `raw_bytes` long.

    No more than that is ever held, whatever the frame claims.

    Raises:
        CodecError: the frame is bad, cut, followed by something, of another size, or to hold
            more than INFLATED_BYTES_MAX.
    """
    if raw_bytes > INFLATED_BYTES_MAX:
        raise CodecError(f"it is to hold {raw_bytes} bytes; the limit is {INFLATED_BYTES_MAX}")
    raw = _inflate_gzip(data, raw_bytes) if codec == "gz" else _inflate_zstd(data, raw_bytes)
    if len(raw) != raw_bytes:
        raise CodecError(f"it holds {len(raw)} bytes, the manifest says {raw_bytes}")
    return raw


def _inflate_gzip(data: bytes, raw_bytes: int) -> bytes:
    import zlib  # noqa: PLC0415 - see compress

    inflater = zlib.decompressobj(wbits=_GZIP_WBITS)
    try:
        # One byte more than wanted, so that a frame that is too long shows.
        raw = inflater.decompress(data, raw_bytes + 1)
    except zlib.error as error:
        raise CodecError(str(error)) from error
    if len(raw) > raw_bytes or not inflater.eof:
        raise CodecError("the frame does not end where it should")
    if inflater.unused_data:
        raise CodecError(f"{len(inflater.unused_data)} bytes follow the frame")
    return raw


def _inflate_zstd(data: bytes, raw_bytes: int) -> bytes:
    import zstandard  # noqa: PLC0415 - see compress

    try:
        claimed = zstandard.frame_content_size(data)
        if claimed != raw_bytes:
            raise CodecError(f"the frame claims {claimed} bytes, the manifest says {raw_bytes}")
        inflater = zstandard.ZstdDecompressor().decompressobj()
        raw = inflater.decompress(data)
    except zstandard.ZstdError as error:
        raise CodecError(str(error)) from error
    if not inflater.eof:
        raise CodecError("the frame does not end where it should")
    if inflater.unused_data:
        raise CodecError(f"{len(inflater.unused_data)} bytes follow the frame")
    return raw


def inflate_chunks(chunks: Iterable[bytes], codec: Codec) -> Iterator[bytes]:
    """Yield the content of a compressed file piece by piece, whatever its length.

    Raises:
        CodecError: the frame is bad, cut or followed by something; what was good was yielded.
    """
    step = _STEP_BYTES[codec]
    inflater: Any
    failures: tuple[type[Exception], ...]
    if codec == "gz":
        import zlib  # noqa: PLC0415 - see compress

        inflater, failures = zlib.decompressobj(wbits=_GZIP_WBITS), (zlib.error,)
    else:
        import zstandard  # noqa: PLC0415 - see compress

        # An object that has met its end refuses more with EOFError.
        inflater = zstandard.ZstdDecompressor().decompressobj()
        failures = (zstandard.ZstdError, EOFError)
    try:
        for chunk in chunks:
            # Small steps, for a frame may inflate to a thousand times its size.
            for at in range(0, len(chunk), step):
                if piece := inflater.decompress(chunk[at : at + step]):
                    yield piece
    except failures as error:
        raise CodecError(str(error)) from error
    if not inflater.eof or inflater.unused_data:
        raise CodecError("the frame does not end where the file does")


def inflate_prefix(data: bytes, codec: Codec, raw_bytes: int) -> bytes:
    """Return as much of a damaged sealed segment as still inflates, at most `raw_bytes`."""
    parts: list[bytes] = []
    size = 0
    with suppress(CodecError):
        for piece in inflate_chunks((data,), codec):
            parts.append(piece)
            size += len(piece)
            if size >= raw_bytes:
                break
    return b"".join(parts)[:raw_bytes]
