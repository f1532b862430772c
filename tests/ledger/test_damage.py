"""What the ledger makes of files that are not as it left them."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ledger import (
    LedgerDamagedError,
    LedgerOptions,
    Position,
    TornTail,
    verify,
)
from tests.support.ledgers import (
    append,
    append_each,
    close_opened,
    contents,
    live_path,
    open_ledger,
    open_sealer,
    tree,
)

TEXTS = [f"memory {number}" for number in range(1, 11)]

Damage = Callable[[list[bytes]], bytes]
"""Makes the bytes of a segment from its lines (header line first)."""


def flip(data: bytes, at: int, bit: int = 0) -> bytes:
    return data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :]


def flipped_bit(lines: list[bytes]) -> bytes:
    return b"".join([*lines[:3], flip(lines[3], len(lines[3]) // 2), *lines[4:]])


def deleted_record(lines: list[bytes]) -> bytes:
    return b"".join([*lines[:3], *lines[4:]])


def swapped_records(lines: list[bytes]) -> bytes:
    return b"".join([*lines[:3], lines[4], lines[3], *lines[5:]])


def swapped_last_records(lines: list[bytes]) -> bytes:
    return b"".join([*lines[:9], lines[10], lines[9]])


def zeroed_middle(lines: list[bytes]) -> bytes:
    data = b"".join(lines)
    start = len(b"".join(lines[:3])) + 17
    return data[:start] + bytes(1024) + data[start + 1024 :]


def torn_middle(lines: list[bytes]) -> bytes:
    return b"".join([*lines[:3], lines[3][:40], *lines[4:]])


def repeated_record(lines: list[bytes]) -> bytes:
    return b"".join([*lines[:4], lines[3], *lines[4:]])


def repeated_last_record(lines: list[bytes]) -> bytes:
    return b"".join([*lines, lines[10]])


def repeated_record_before_last(lines: list[bytes]) -> bytes:
    return b"".join([*lines[:10], lines[9], lines[10]])


def repeated_key(lines: list[bytes]) -> bytes:
    line = lines[3].replace(b'{"h":{"seq":3,', b'{"h":{"seq":3,"seq":3,')
    return b"".join([*lines[:3], line, *lines[4:]])


def payload_taken_out(lines: list[bytes]) -> bytes:
    start, end = lines[3].index(b',"p":') + 5, lines[3].rindex(b',"d":')
    return b"".join([*lines[:3], lines[3][:start] + b"{}" + lines[3][end:], *lines[4:]])


def added_key(lines: list[bytes]) -> bytes:
    return b"".join([*lines[:3], lines[3].replace(b',"d":', b',"x":1,"d":'), *lines[4:]])


DAMAGES: list[Damage] = [
    flipped_bit,
    deleted_record,
    swapped_records,
    swapped_last_records,
    zeroed_middle,
    torn_middle,
    repeated_record,
    repeated_last_record,
    repeated_record_before_last,
    repeated_key,
    payload_taken_out,
    added_key,
]


def damage_file(path: Path, damage: Damage) -> None:
    path.write_bytes(damage(path.read_bytes().splitlines(keepends=True)))


@pytest.mark.guarantee("G-DAMAGE-2")
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: str(damage.__name__))
@pytest.mark.parametrize("known", [True, False])
def test_damage_is_never_cut_and_stops_every_append(
    tmp_path: Path, damage: Damage, *, known: bool
) -> None:
    ledger = open_ledger(tmp_path / "l")
    end = append_each(ledger, *TEXTS)
    damage_file(live_path(ledger), damage)
    before = tree(tmp_path)

    again = open_ledger(tmp_path / "l")
    with pytest.raises(LedgerDamagedError) as caught, again.lock(1) as writer:
        writer.catch_up(end if known else None)

    assert caught.value.segment == "log/00000000000000000001.jsonl"
    assert caught.value.seq > 0
    assert tree(tmp_path) == before
    assert again.reports == []
    report = verify(tmp_path / "l")
    assert not report.ok
    assert report.problems[0].segment == "log/00000000000000000001.jsonl"
    assert tree(tmp_path) == before


@pytest.mark.guarantee("G-DAMAGE-2")
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: str(damage.__name__))
def test_undamaged_records_stay_readable(tmp_path: Path, damage: Damage) -> None:
    ledger = open_ledger(tmp_path / "l")
    append_each(ledger, *TEXTS)
    damage_file(live_path(ledger), damage)
    found: list[LedgerDamagedError] = []

    seqs = {record.seq for record in ledger.read_tolerant(Position.start, found.append)}

    lost = set(range(1, 11)) - seqs
    assert found
    assert lost <= {3, 4, 5}
    with pytest.raises(LedgerDamagedError):
        contents(ledger)


@pytest.mark.guarantee("G-DAMAGE-2")
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: str(damage.__name__))
@pytest.mark.parametrize("seal", [True, False])
def test_damage_in_an_older_segment_is_found_and_never_sealed_over(
    tmp_path: Path, damage: Damage, *, seal: bool
) -> None:
    ledger = open_ledger(tmp_path / "l")
    end = append_each(ledger, *TEXTS)
    small = open_ledger(tmp_path / "l", options=LedgerOptions(segment_bytes_max=1))
    end = append_each(small, "last of the first segment", known=end)
    end = append_each(open_ledger(tmp_path / "l"), "first of the second", known=end)
    old = tmp_path / "l" / "log" / "00000000000000000001.jsonl"

    def keep_footer(lines: list[bytes]) -> bytes:
        return damage(lines[:11]) + b"".join(lines[11:])

    damage_file(old, keep_footer)
    before = tree(tmp_path)

    if seal:
        sealer = open_sealer(open_ledger(tmp_path / "l"))
        assert sealer.pending() == [1]
        if damage is not repeated_key:
            with pytest.raises(LedgerDamagedError):
                sealer.run()
    report = verify(tmp_path / "l", end)

    assert not report.ok
    assert report.last.seq == 12
    with pytest.raises(LedgerDamagedError):
        contents(ledger)
    if seal is False:
        assert tree(tmp_path) == before


@pytest.mark.guarantee("G-TAIL-1")
def test_a_tear_at_every_byte_of_the_last_record_keeps_the_others(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "l")
    four = append_each(ledger, *TEXTS[:4])
    five = append_each(ledger, TEXTS[4], known=four)
    path = live_path(ledger)
    whole = path.read_bytes()

    for size in range(four.offset, five.offset + 1):
        close_opened()
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        shutil.copytree(tmp_path / "l", tmp_path / "copy")
        os.truncate(tmp_path / "copy" / "log" / path.name, size)
        copy = open_ledger(tmp_path / "copy")

        torn = size not in {four.offset, five.offset}
        assert verify(tmp_path / "copy").ok is not torn
        with copy.lock(1) as writer:
            records = list(writer.catch_up(four))
            end = writer.end

        assert len(records) == (1 if size == five.offset else 0)
        assert end.seq == 4 + len(records)
        assert verify(tmp_path / "copy").ok
        kept = list((tmp_path / "copy" / "quarantine").iterdir())
        assert [report.size for report in copy.reports if isinstance(report, TornTail)] == (
            [size - four.offset] if torn else []
        )
        assert [path.read_bytes() for path in kept] == ([whole[four.offset : size]] if torn else [])


@pytest.mark.guarantee("G-TAIL-1")
def test_records_appended_after_a_tear_survive_the_next_opening(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "l")
    four = append_each(ledger, *TEXTS[:4])
    five = append_each(ledger, TEXTS[4], known=four)
    os.truncate(live_path(ledger), five.offset - 7)

    end = append_each(open_ledger(tmp_path / "l"), "x", "y", known=four)

    for _ in range(2):
        again = open_ledger(tmp_path / "l")
        assert contents(again) == [*TEXTS[:4], "x", "y"]
        assert verify(tmp_path / "l", end).ok


def test_a_torn_record_that_was_known_to_be_durable_is_damage(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "l")
    end = append_each(ledger, *TEXTS)
    path = live_path(ledger)
    path.write_bytes(flip(path.read_bytes(), end.offset - 10))
    before = tree(tmp_path)

    with pytest.raises(LedgerDamagedError) as caught, open_ledger(tmp_path / "l").lock(1) as writer:
        writer.catch_up(end)

    assert caught.value.seq == 10
    assert tree(tmp_path) == before


@pytest.mark.guarantee("G-BATCH-1")
def test_whole_batches_of_a_partly_written_group_stay(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "l")
    known = append_each(ledger, "before")
    append(ledger, [["one"], ["two a", "two b"], ["three a", "three b"]], known=known)
    path = live_path(ledger)
    os.truncate(path, path.stat().st_size - 1)

    again = open_ledger(tmp_path / "l")
    with again.lock(1) as writer:
        records = list(writer.catch_up(known))

    assert [record.seq for record in records] == [2, 3, 4]
    assert contents(again) == ["before", "one", "two a", "two b"]


def test_a_hole_in_the_last_group_is_a_tear_though_good_records_follow_it(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "l")
    known = append_each(ledger, "before")
    append(ledger, [["one"], ["two"], ["three"], ["four"]], known=known)
    path = live_path(ledger)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], bytes(len(lines[3])), *lines[4:]]))

    again = open_ledger(tmp_path / "l")
    append_each(again, "after", known=known)

    assert contents(again) == ["before", "one", "after"]
    assert verify(tmp_path / "l").ok


def test_a_reader_stops_before_a_torn_tail_and_leaves_it(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "l")
    append(ledger, [["one"]], [["two a", "two b"]])
    path = live_path(ledger)
    os.truncate(path, path.stat().st_size - 1)
    before = tree(tmp_path)

    assert contents(ledger) == ["one"]
    assert tree(tmp_path) == before
