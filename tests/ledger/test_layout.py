"""Names of segment files."""

from pathlib import Path

import pytest

from ledger.layout import Layout, SegmentName, parse_name


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("00000000000000021001.jsonl", SegmentName(first=21001)),
        ("00000000000000000001.g0.jsonl.zst", SegmentName(first=1, gen=0, codec="zst")),
        ("00000000000000000001.g12.jsonl.gz", SegmentName(first=1, gen=12, codec="gz")),
    ],
)
def test_a_segment_name_round_trips(name: str, parsed: SegmentName) -> None:
    assert parse_name(name) == parsed
    assert parsed.file == name


@pytest.mark.parametrize(
    "name",
    [
        "1.jsonl",
        "00000000000000000001.jsonl.tmp",
        "00000000000000000001.jsonl.zst",
        "00000000000000000001.g00.jsonl.zst",
        "00000000000000000001.g0.jsonl.zst.tmp",
        "00000000000000000001.g0.jsonl.lz4",
        "٠0000000000000000001.jsonl",
        "notes.txt",
    ],
)
def test_other_names_are_no_segments(name: str) -> None:
    assert parse_name(name) is None


def test_paths_hang_on_the_ledger_directory() -> None:
    layout = Layout(Path("/h/ledger"))

    assert layout.raw(7) == Path("/h/ledger/log/00000000000000000007.jsonl")
    assert layout.format == Path("/h/ledger/FORMAT")
