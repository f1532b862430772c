"""The search for erased bytes: whatever the file, whatever the piece it is read in."""

import gzip
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from ledger import Finding, find_erased, text_needles
from ledger import needles as needles_module
from ledger.codec import CodecError, inflate_chunks
from ledger.needles import _lines, _windows

SEGMENT = f"{1:020d}.jsonl"


def lines(*texts: bytes) -> bytes:
    """Return what looks like the lines of records."""
    return b"".join(
        b'{"h":{"seq":%d,"x":1},"p":"%b"}\n' % (seq, text) for seq, text in enumerate(texts, 1)
    )


@given(st.lists(st.binary(max_size=9)), st.binary(min_size=1, max_size=6), st.integers(0, 8))
def test_a_window_shows_whatever_the_bytes_hold(
    chunks: list[bytes], needle: bytes, more: int
) -> None:
    whole = b"".join(chunks)
    overlap = len(needle) - 1 + more

    assert any(needle in window for window in _windows(chunks, overlap)) == (needle in whole)
    if b"\n" not in needle:
        assert any(needle in piece for piece in _lines(chunks, overlap)) == (needle in whole)


@given(st.lists(st.sampled_from([b"", b"a", b"bb", b"ccc"]), max_size=6), st.integers(1, 30))
def test_pieces_are_whole_lines(texts: list[bytes], size: int) -> None:
    whole = lines(*texts)
    chunks = [whole[at : at + size] for at in range(0, len(whole), size)]

    pieces = list(_lines(chunks, 3))

    assert b"".join(pieces) == whole
    assert all(piece.endswith(b"\n") for piece in pieces)


@pytest.mark.parametrize("suffix", ["", ".zst", ".gz"])
@pytest.mark.parametrize("is_segment", [False, True])
def test_records_are_named_inside_segments_and_files_elsewhere(
    tmp_path: Path, suffix: str, *, is_segment: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(needles_module, "_CHUNK_BYTES", 7)
    data = b"header gone\n" + lines(b"one", b"two two", b"three", b"two") + b"no line two"
    packed = {
        "": data,
        ".zst": zstandard.ZstdCompressor().compress(data),
        ".gz": gzip.compress(data),
    }[suffix]
    segment = SEGMENT if not suffix else f"{1:020d}.g0.jsonl{suffix}"
    path = tmp_path / (segment if is_segment else f"notes{suffix}")
    path.write_bytes(packed)

    report = find_erased([path], {b"two", b"gone", b"nowhere"})

    seqs = {b"two": (0, 2, 4), b"gone": (0,)} if is_segment else {b"two": (), b"gone": ()}
    assert report.found == {
        needle: [Finding(path=path, seqs=where)] for needle, where in seqs.items()
    }
    assert (report.files, report.unread) == (1, [])


def test_a_line_longer_than_any_record_is_searched_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(needles_module, "_CHUNK_BYTES", 7)
    monkeypatch.setattr(needles_module, "RECORD_BYTES_MAX", 50)
    path = tmp_path / SEGMENT
    path.write_bytes(lines(b"a" * 100 + b"needle" + b"b" * 100, b"needle"))

    report = find_erased([path], [b"needle"])

    assert report.found == {b"needle": [Finding(path=path, seqs=(0, 2))]}


@pytest.mark.parametrize("codec", ["zst", "gz"])
@pytest.mark.parametrize("damage", ["cut", "more", "bad"])
def test_a_file_that_does_not_inflate_is_reported_and_searched_as_far_as_it_does(
    tmp_path: Path, codec: str, damage: str
) -> None:
    data = lines(b"one", b"two")
    compressor = zstandard.ZstdCompressor(write_checksum=True)
    packed = compressor.compress(data) if codec == "zst" else gzip.compress(data)
    broken = {"cut": packed[:-3], "more": packed + b"x", "bad": packed[:-4] + b"abcd"}[damage]
    path = tmp_path / f"{1:020d}.g0.jsonl.{codec}"
    path.write_bytes(broken)

    report = find_erased([path, tmp_path / "gone"], [b"one"])

    assert (report.files, report.unread) == (0, [path, tmp_path / "gone"])
    if damage == "more":
        assert report.found == {b"one": [Finding(path=path, seqs=(1,))]}
    with pytest.raises(CodecError):
        list(inflate_chunks([broken], "zst" if codec == "zst" else "gz"))


def test_a_caller_may_read_files_in_a_way_of_its_own(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"needle")
    two.write_bytes(b"needle")

    report = find_erased(
        [one, two], [b"needle"], lambda path: [b"nee", b"le"] if path == one else None
    )

    assert report.found == {b"needle": [Finding(path=two)]}
    assert report.files == 2


def test_without_needles_files_are_only_counted(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"x")

    assert find_erased([tmp_path / "one"], []).files == 1


def test_a_text_is_looked_for_as_it_is_and_as_json_writes_it() -> None:
    assert text_needles("plain") == {b"plain"}
    assert text_needles('ё"\n') == {'ё"\n'.encode(), 'ё\\"\\n'.encode(), b'\\u0451\\"\\n'}
