"""Reading without a lock, while others write, roll and seal."""

import os
import re
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from ledger import (
    Header,
    LedgerBehindError,
    LedgerDamagedError,
    LedgerUnreadableError,
    Position,
    UnknownEventError,
    verify,
)
from ledger import reader as reader_module
from ledger import source as source_module
from ledger.record import LINE_END_BYTES, encode_line, open_record
from ledger.segment import encode_header
from tests.support.ledgers import (
    SMALL,
    append,
    append_each,
    content_of,
    contents,
    live_path,
    open_ledger,
    open_sealer,
)


@pytest.fixture(name="root")
def _root(tmp_path: Path) -> Path:
    return tmp_path / "l"


def no_damage(error: LedgerDamagedError) -> None:
    """Fail: nothing is damaged here."""
    raise AssertionError(error)


def test_a_rolled_segment_without_its_footer_is_damage(root: Path) -> None:
    ledger = open_ledger(root, options=SMALL)
    append_each(ledger, "a", "b")
    path = ledger.layout.raw(1)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))

    with pytest.raises(LedgerDamagedError, match="ends without one"):
        contents(ledger)
    assert [problem.kind for problem in verify(root).problems] == ["segment_footer"]


def test_reading_goes_on_while_segments_roll_and_are_sealed(root: Path) -> None:
    ledger, writer = open_ledger(root), open_ledger(root, options=SMALL)
    known = append_each(writer, "a", "b")
    steps = ledger.read(Position.start)

    found = [content_of(next(steps))]
    known = append_each(writer, "c", known=known)
    open_sealer(writer).run()
    found += [content_of(record) for record in steps]

    assert found == ["a", "b", "c"]
    assert list(ledger.read(known)) == []


def test_a_segment_sealed_between_the_look_and_the_opening_is_found_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_ledger(root, options=SMALL)
    append_each(ledger, "a", "b")
    load = source_module.load
    sealed: list[object] = []

    def load_late(*arguments: object) -> bytes:
        if not sealed:
            sealed.extend(open_sealer(ledger).run())
        return load(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(reader_module, "load", load_late)

    assert contents(open_ledger(root)) == ["a", "b"]


def test_a_segment_that_stays_away_is_missing(root: Path) -> None:
    ledger = open_ledger(root, options=SMALL)
    end = append_each(ledger, "a", "b", "c")
    open_sealer(ledger).run()
    (root / "log" / f"{2:020d}.g0.jsonl.zst").unlink()

    with pytest.raises(LedgerDamagedError, match="segment_missing"):
        contents(ledger)
    assert list(ledger.read(end)) == []


@pytest.mark.parametrize("gone", [1, 2])
def test_a_raw_segment_that_is_gone_is_missing(root: Path, gone: int) -> None:
    ledger = open_ledger(root, options=SMALL)
    append_each(ledger, "a", "b", "c")
    ledger.layout.raw(gone).unlink()
    found: list[LedgerDamagedError] = []

    with pytest.raises(LedgerDamagedError, match="segment_missing"):
        contents(ledger)
    records = list(ledger.read_tolerant(Position.start, found.append))

    assert [record.seq for record in records] == [seq for seq in (1, 2, 3) if seq != gone]
    assert [error.seq for error in found] == [gone]


def test_a_tear_that_is_cut_and_written_over_under_a_reader_is_no_damage(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_ledger(root)
    append_each(ledger, "a", "b", "c", "d")
    path = live_path(ledger)
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    mixed = b"".join([*lines[:2], lines[2][:9], b"\n", *lines[3:]])
    looks = [mixed[len(lines[0]) :]]
    load = source_module.load

    def load_mixed(source: object, offset: int = 0) -> bytes:
        return lines[0] + looks.pop() if looks else load(source, offset)  # type: ignore[arg-type]

    monkeypatch.setattr(reader_module, "load", load_mixed)

    assert contents(ledger) == ["a", "b", "c", "d"]


def test_a_position_of_another_history_is_refused(root: Path, tmp_path: Path) -> None:
    ledger = open_ledger(root, options=SMALL)
    end = append_each(ledger, "a", "b")
    one, two = (record.position for record in ledger.read(Position.start))
    strangers = [
        replace(one, digest="0" * 64),
        replace(two, digest="0" * 64),
        replace(end, digest="0" * 64, segment=2, offset=two.offset),
        Position(9, "0" * 64, 9, 400),
        Position(1, "0" * 64, 9, 400),
    ]

    for stranger in strangers:
        with pytest.raises(LedgerBehindError):
            list(ledger.read(stranger))
    live = open_ledger(tmp_path / "live")
    known = append_each(live, "x")
    for stranger, reason in (
        (replace(known, seq=5, offset=known.offset + 100), "shorter"),
        (replace(known, digest="0" * 64), "other"),
        (replace(known, digest="0" * 64, segment=7), "other"),
    ):
        with pytest.raises(LedgerBehindError) as caught:
            list(live.read(stranger))
        assert caught.value.reason == reason


def test_a_record_is_found_again_wherever_it_stands(root: Path) -> None:
    ledger = open_ledger(root)
    append_each(ledger, "a", "b", "c")
    two = list(ledger.read(Position.start))[1].position

    for moved in (
        replace(two, offset=5),
        replace(two, offset=two.offset - 10),
        replace(two, offset=two.offset + 10_000),
        replace(two, segment=7),
        replace(two, segment=2, offset=0),
    ):
        assert contents(ledger, moved) == ["c"]


def test_a_digest_in_a_text_is_not_taken_for_the_end_of_a_record(root: Path) -> None:
    ledger = open_ledger(root)
    one = append_each(ledger, "a")
    text = f'{one.digest}"}}\n'
    append_each(ledger, text, known=one)
    data = live_path(ledger).read_bytes()
    quotes = [match.start() for match in re.finditer(one.digest.encode(), data)]

    assert len(quotes) == 3  # the record's own, the next one's link to it, the text
    for quoted in quotes:
        assert contents(ledger, replace(one, offset=quoted + LINE_END_BYTES)) == [text]


def test_what_belongs_where_a_position_is_may_be_damaged(root: Path) -> None:
    ledger = open_ledger(root)
    append_each(ledger, "a", "b", "c")
    two = list(ledger.read(Position.start))[1].position
    data = bytearray(live_path(ledger).read_bytes())
    data[two.offset - LINE_END_BYTES - 40] ^= 1
    live_path(ledger).write_bytes(data)

    with pytest.raises(LedgerDamagedError):
        contents(ledger, replace(two, offset=two.offset - 1))


def test_records_are_looked_up_by_their_positions(root: Path) -> None:
    ledger = open_ledger(root, options=SMALL)
    end = append_each(ledger, "a", "b")
    append(open_ledger(root), [["c", "d"]], known=end)
    every = {record.seq: record for record in ledger.read(Position.start)}
    open_sealer(ledger).run()

    assert ledger.records_at([]) == {}
    assert ledger.records_at([0, -3, 9]) == {}
    assert ledger.records_at([4, 1, 1, 7]) == {1: every[1], 4: every[4]}
    assert ledger.records_at(range(9)) == every


def test_digests_are_read_as_records_are(root: Path) -> None:
    ledger = open_ledger(root, options=SMALL)
    end = append_each(ledger, "a", "b")
    end = append(open_ledger(root), [["c", "d"], ["e"]], known=end)
    open_sealer(ledger).run()
    append(open_ledger(root), [["f", "g", "h"]], known=end)
    every = [bytes.fromhex(record.digest) for record in ledger.read(Position.start)]
    for last in range(10):
        assert b"".join(ledger.read_digests(last)) == b"".join(every[:last])

    # Of a batch that is not whole nothing is read.
    path = live_path(ledger)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    assert b"".join(ledger.read_digests()) == b"".join(every[:5])


def test_reading_digests_sees_damage_where_it_is(root: Path) -> None:
    ledger = open_ledger(root)
    append_each(ledger, "a", "b", "c")
    path = live_path(ledger)
    path.write_bytes(path.read_bytes().replace(b'"content":"b"', b'"content":"x"'))
    with pytest.raises(LedgerDamagedError, match="commitment"):
        list(ledger.read_digests())


def test_looking_up_records_reads_only_the_segments_that_hold_them(root: Path) -> None:
    ledger = open_ledger(root, options=SMALL)
    append_each(ledger, "a", "b", "c")
    ledger.layout.raw(2).write_bytes(b"bad")

    assert sorted(ledger.records_at([1, 3])) == [1, 3]
    with pytest.raises(LedgerDamagedError):
        ledger.records_at([2])
    ledger.layout.raw(1).unlink()
    with pytest.raises(LedgerDamagedError, match="segment_missing"):
        ledger.records_at([1])


@pytest.mark.guarantee("G-FORMAT-3")
def test_an_event_of_a_newer_program_stops_the_reader(root: Path) -> None:
    ledger = open_ledger(root)
    append_each(ledger, "a", "b")
    path = live_path(ledger)
    lines = path.read_bytes().splitlines(keepends=True)
    header, _, body, _ = open_record(lines[2][:-1])
    newer: Header = replace(header, type="dream_dreamt")
    path.write_bytes(b"".join([*lines[:2], encode_line(newer, body)[0]]))

    steps = ledger.read(Position.start)
    assert content_of(next(steps)) == "a"
    with pytest.raises(UnknownEventError):
        next(steps)
    with pytest.raises(UnknownEventError), ledger.lock(1) as writer:
        list(writer.catch_up(None))
    known = next(iter(ledger.read(Position.start, 1))).position
    with pytest.raises(UnknownEventError):
        list(ledger.read_tolerant(known, no_damage))


def test_the_cheap_look_sees_every_append_roll_and_nothing_else(root: Path) -> None:
    ledger, writer = open_ledger(root), open_ledger(root, options=SMALL)
    known = Position.start
    assert not ledger.has_more(known)
    for text in "abc":
        end = append_each(writer, text)
        assert ledger.has_more(known)
        assert not ledger.has_more(end)
        before = list(ledger.read(known))[-1].position
        assert not ledger.has_more(before)
        known = end
    assert ledger.has_more(Position.start)
    assert ledger.live_end() == (known.segment, known.offset)


def test_two_changes_within_one_tick_of_the_directory_clock_are_seen(root: Path) -> None:
    ledger, writer = open_ledger(root), open_ledger(root, options=SMALL)
    first = ledger.live_end()[0]
    stat = (root / "log").stat()
    end = append_each(writer, "a")
    os.utime(root / "log", ns=(stat.st_atime_ns, stat.st_mtime_ns))

    assert ledger.live_end()[0] == first
    assert not ledger.has_more(end)


def test_a_live_segment_that_vanishes_all_the_time_is_missing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_ledger(root)
    monkeypatch.setattr(ledger.reader, "newest_raw", lambda: 77)

    with pytest.raises(LedgerDamagedError, match="segment_missing"):
        ledger.live_end()


def test_what_the_system_refuses_is_unreadable(root: Path) -> None:
    ledger = open_ledger(root, options=SMALL)
    append_each(ledger, "a")
    found: list[LedgerDamagedError] = []
    raw = ledger.layout.raw(1)
    raw.unlink()
    raw.mkdir()
    with pytest.raises(LedgerUnreadableError):
        contents(ledger)
    assert list(ledger.read_tolerant(Position.start, found.append)) == []
    assert [error.reason.partition(":")[0] for error in found] == ["unreadable"]

    (root / "MANIFEST.json").unlink()
    (root / "MANIFEST.json").mkdir()
    with pytest.raises(LedgerUnreadableError):
        open_ledger(root).manifest()
    shutil.rmtree(root / "log")
    with pytest.raises(LedgerUnreadableError):
        ledger.reader.names()


def test_a_missing_or_damaged_manifest_stops_strict_readers_only(root: Path) -> None:
    ledger = open_ledger(root, options=SMALL)
    append_each(ledger, "a", "b")
    open_sealer(ledger).run()
    for damage in (b"x", None):
        path = root / "MANIFEST.json"
        path.unlink()
        if damage is not None:
            path.write_bytes(damage)
        found: list[LedgerDamagedError] = []
        again = open_ledger(root)

        with pytest.raises(LedgerDamagedError, match=r"MANIFEST\.json"):
            contents(again)
        records = again.read_tolerant(Position.start, found.append)
        assert [content_of(record) for record in records] == ["a", "b"]
        assert [error.segment for error in found] == ["MANIFEST.json"]


def test_the_rest_of_a_damaged_sealed_segment_stays_readable(root: Path) -> None:
    ledger = open_ledger(root)
    append(ledger, [[f"memory {number}"] for number in range(200)])
    append_each(open_ledger(root, options=SMALL), "last")
    open_sealer(ledger).run()
    path = next((root / "log").glob("*.zst"))
    path.write_bytes(path.read_bytes()[:-4])
    found: list[LedgerDamagedError] = []

    records = list(ledger.read_tolerant(Position.start, found.append))

    assert len(records) > 100
    assert found[0].reason.startswith("sealed_file")
    path.unlink()
    path.mkdir()
    found.clear()
    assert list(ledger.read_tolerant(Position.start, found.append)) == []


def test_a_damaged_segment_header_costs_no_record_of_a_tolerant_read(root: Path) -> None:
    ledger = open_ledger(root)
    append_each(ledger, "a", "b")
    path = live_path(ledger)
    path.write_bytes(b"x" + path.read_bytes()[1:])
    found: list[LedgerDamagedError] = []

    records = ledger.read_tolerant(Position.start, found.append)

    assert [content_of(record) for record in records] == ["a", "b"]
    assert found[0].reason.startswith("segment_header")
    with pytest.raises(LedgerDamagedError, match="segment_header"):
        contents(ledger)


def test_a_tolerant_read_after_a_position_skips_what_came_before(root: Path) -> None:
    ledger = open_ledger(root, options=SMALL)
    append_each(ledger, "a", "b", "c")
    position = ledger.position_at(seq=2)

    records = ledger.read_tolerant(position, no_damage)

    assert [content_of(record) for record in records] == ["c"]


def test_a_segment_header_must_be_one(root: Path) -> None:
    ledger = open_ledger(root, options=SMALL)
    append_each(ledger, "a")
    prev = ledger.position_at().digest
    path = live_path(ledger)
    t = "2026-11-30T20:29:33.123456Z"
    for bad in (
        encode_header(ledger="other", first=2, prev=prev, t=t),
        encode_header(ledger=ledger.id, first=3, prev=prev, t=t),
        encode_header(ledger=ledger.id, first=2, prev=prev, t="now"),
        b"",
    ):
        path.write_bytes(bad)
        with pytest.raises(LedgerDamagedError, match="segment_header"):
            contents(ledger)


def test_sealed_segments_with_no_live_one_after_them_are_damage(root: Path) -> None:
    ledger = open_ledger(root, options=SMALL)
    append_each(ledger, "a", "b")
    live_path(ledger).unlink()

    assert contents(ledger) == ["a", "b"]
    open_sealer(ledger).run()
    ledger.layout.raw(2).unlink()
    with pytest.raises(LedgerDamagedError), ledger.lock(1) as writer:
        writer.catch_up(None)
