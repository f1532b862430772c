"""The tail rule: tears may be cut, damage may not."""

from pathlib import Path

import pytest

from ledger import Position
from ledger.tail import find_damage
from tests.support.ledgers import (
    SMALL,
    TickingClock,
    append,
    append_each,
    live_path,
    open_ledger,
)


@pytest.fixture(name="lines")
def _lines(tmp_path: Path) -> list[bytes]:
    """Header, record 1, and a group of records 2, 3-4 and 5, then record 6."""
    ledger = open_ledger(tmp_path / "l")
    append(ledger, [["one"]], [["two"], ["three", "four"], ["five"]], [["six"]])
    return live_path(ledger).read_bytes().splitlines(keepends=True)


def position_after(lines: list[bytes], count: int) -> Position:
    digest = lines[count][-67:-3].decode()
    return Position(count, digest, 1, sum(map(len, lines[: count + 1])))


def test_an_unfinished_group_is_a_tear(lines: list[bytes]) -> None:
    good = position_after(lines, 1)
    group = lines[2:6]
    tears = [
        b"",
        b"\n",
        b"".join(group)[:-1],
        b"".join(group[1:]).join([bytes(len(group[0])), b""]),
        bytes(len(group[0])) + b"".join(group[1:]),
        group[0] + bytes(40) + b"".join(group[2:]),
        bytes(5000),
    ]

    for tear in tears:
        assert find_damage(tear, good) is None


def test_an_unfinished_batch_behind_whole_ones_is_a_tear(lines: list[bytes]) -> None:
    assert find_damage(lines[3] + lines[4][:-9], position_after(lines, 2)) is None
    assert find_damage(bytes(9) + lines[4] + lines[5], position_after(lines, 2)) is None


def test_a_record_of_a_later_group_is_a_proof(lines: list[bytes]) -> None:
    good = position_after(lines, 1)

    proof = find_damage(bytes(7) + b"\n" + lines[6], good)

    assert proof is not None
    assert proof.offset == good.offset + 8
    assert "record 6 of a later write" in proof.reason


@pytest.mark.parametrize(
    ("at", "what"), [(6, "a second time"), (5, "does not stand where it was written")]
)
def test_a_record_out_of_its_place_is_a_proof(lines: list[bytes], at: int, what: str) -> None:
    good = position_after(lines, at)

    proof = find_damage(b"x\n" + lines[6], good)

    assert proof is not None
    assert what in proof.reason


def test_a_record_of_another_history_is_a_proof(lines: list[bytes], tmp_path: Path) -> None:
    other = open_ledger(tmp_path / "other", clock=TickingClock(5))
    append_each(other, "a", "b")
    foreign = live_path(other).read_bytes().splitlines(keepends=True)[2]

    proof = find_damage(foreign, position_after(lines, 1))

    assert proof is not None
    assert "another history" in proof.reason


def test_a_footer_is_a_proof(lines: list[bytes], tmp_path: Path) -> None:
    rolled = open_ledger(tmp_path / "r", options=SMALL)
    append_each(rolled, "a")
    footer = rolled.layout.raw(1).read_bytes().splitlines(keepends=True)[-1]
    good = position_after(lines, 1)

    assert find_damage(b"x\n" + footer, good) is not None
    assert find_damage(b"x\n" + footer.replace(b"1", b"2"), good) is None
