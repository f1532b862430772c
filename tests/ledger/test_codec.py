"""Sealed frames: exactly what went in, or an error."""

import gzip
import tracemalloc

import pytest
import zstandard

from ledger.codec import Codec, CodecError, compress, inflate, inflate_prefix

RAW = b"".join(b'{"line":%d}\n' % number for number in range(3000))
CODECS: list[Codec] = ["zst", "gz"]


@pytest.mark.parametrize("codec", CODECS)
def test_what_was_compressed_inflates(codec: Codec) -> None:
    packed = compress(RAW, codec)

    assert len(packed) < len(RAW) / 2
    assert compress(RAW, codec) == packed
    assert inflate(packed, codec, len(RAW)) == RAW


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("cut", [1, 3, 4, 8, 100])
def test_a_cut_frame_is_an_error(codec: Codec, cut: int) -> None:
    packed = compress(RAW, codec)

    with pytest.raises(CodecError):
        inflate(packed[:-cut], codec, len(RAW))
    with pytest.raises(CodecError):
        inflate(packed[:cut], codec, len(RAW))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("more", [b"x", b"\0" * 8, None])
def test_anything_after_the_frame_is_an_error(codec: Codec, more: bytes | None) -> None:
    packed = compress(RAW, codec)
    rest = compress(RAW, codec) if more is None else more

    with pytest.raises(CodecError):
        inflate(packed + rest, codec, len(RAW))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("by", [-1, 1, -len(RAW)])
def test_another_size_than_expected_is_an_error(codec: Codec, by: int) -> None:
    with pytest.raises(CodecError):
        inflate(compress(RAW, codec), codec, len(RAW) + by)


def test_a_frame_without_a_size_is_an_error() -> None:
    packed = zstandard.ZstdCompressor(write_content_size=False).compress(RAW)

    with pytest.raises(CodecError):
        inflate(packed, "zst", len(RAW))


@pytest.mark.parametrize("codec", CODECS)
def test_a_flipped_byte_is_an_error(codec: Codec) -> None:
    packed = compress(RAW, codec)
    middle = len(packed) // 2
    bad = packed[:middle] + bytes([packed[middle] ^ 1]) + packed[middle + 1 :]

    with pytest.raises(CodecError):
        inflate(bad, codec, len(RAW))


def test_a_bomb_is_not_inflated() -> None:
    bomb = gzip.compress(bytes(10_000_000))

    with pytest.raises(CodecError, match="does not end"):
        inflate(bomb, "gz", 1000)


def rle_frame(claimed: int, blocks: int) -> bytes:
    """Return a zstd frame that claims a size; each block of 4 bytes becomes 128 KiB of zeros."""
    head = b"\x28\xb5\x2f\xfd\xc0\x58" + claimed.to_bytes(8, "little")
    body = b"".join(
        (1 << 20 | 2 | (number == blocks - 1)).to_bytes(3, "little") + b"\0"
        for number in range(blocks)
    )
    return head + body


@pytest.mark.parametrize("claimed", [1000, 2**30, 2**60])
def test_a_zstd_bomb_stays_in_bounded_memory(claimed: int) -> None:
    bomb = rle_frame(claimed, 4_000)  # half a gigabyte

    tracemalloc.start()
    try:
        for raw_bytes in {1000, min(claimed, 1000), 2**60}:
            with pytest.raises(CodecError):
                inflate(bomb, "zst", raw_bytes)
        assert len(inflate_prefix(bomb, "zst", 1000)) <= 1000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 32 << 20


@pytest.mark.parametrize("codec", CODECS)
def test_the_good_part_of_a_damaged_frame_can_be_had(codec: Codec) -> None:
    noisy = b"".join(number.to_bytes(4, "big") * 3 for number in range(0, 2**31, 2**14))
    packed = compress(noisy, codec)
    bad = packed[: len(packed) // 2] + bytes(64) + packed[len(packed) // 2 + 64 :]

    prefix = inflate_prefix(bad, codec, len(noisy))

    assert 0 < len(prefix) <= len(noisy)
    assert noisy.startswith(prefix[: len(prefix) // 2])
    assert inflate_prefix(packed, codec, len(noisy)) == noisy
    assert inflate_prefix(packed, codec, 10) == noisy[:10]
    assert inflate_prefix(packed[: len(packed) // 2], codec, len(noisy)) != b""
    assert inflate_prefix(b"nonsense", codec, 10) == b""
