"""The live segment: appends that fail, the read-only mark and its cure, rolling, other writers."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from ledger import (
    LedgerBehindError,
    LedgerDamagedError,
    LedgerOptions,
    LedgerReadOnlyError,
    LedgerWriteError,
    Position,
    RollFailed,
    TornTail,
    verify,
)
from tests.support.ledgers import (
    SMALL,
    OrderedFiles,
    TickingClock,
    append,
    append_each,
    batch,
    content_of,
    contents,
    live_path,
    open_ledger,
    tree,
)


@pytest.mark.guarantee("G-ACK-3")
@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (errno.ENOSPC, "disk_full"),
        (errno.EDQUOT, "disk_full"),
        (errno.EFBIG, "file_too_large"),
        (errno.EROFS, "read_only"),
        (errno.EIO, "io_error"),
    ],
)
def test_a_failed_write_is_surely_not_written_and_the_next_append_works(
    tmp_path: Path, code: int, reason: str
) -> None:
    files = OrderedFiles()
    ledger = open_ledger(tmp_path / "l", files=files)
    known = append_each(ledger, "one")
    files.fail("write", code, short=100)

    with pytest.raises(LedgerWriteError) as caught:
        append_each(ledger, "lost", known=known)

    assert (caught.value.outcome, caught.value.reason) == ("not_written", reason)
    assert live_path(ledger).stat().st_size == known.offset
    known = append_each(ledger, "two", known=known)
    assert contents(open_ledger(tmp_path / "l")) == ["one", "two"]
    assert verify(tmp_path / "l", known).ok


def test_a_short_write_without_an_error_is_continued(tmp_path: Path) -> None:
    files = OrderedFiles()
    ledger = open_ledger(tmp_path / "l", files=files)
    files.fail("write", 0, times=0, short=100)

    append_each(ledger, "one")

    assert contents(ledger) == ["one"]
    assert files.calls.count("write") == 5


@pytest.mark.guarantee("G-ACK-3")
def test_after_a_failed_sync_the_old_file_is_never_synced_again(tmp_path: Path) -> None:
    files = OrderedFiles()
    ledger = open_ledger(tmp_path / "l", files=files)
    known = append_each(ledger, "one")
    inode = live_path(ledger).stat().st_ino
    files.fail("sync", errno.EIO)

    with pytest.raises(LedgerWriteError) as caught:
        append_each(ledger, "lost", known=known)

    assert caught.value.outcome == "not_written"
    assert live_path(ledger).stat().st_ino != inode
    assert contents(ledger) == ["one"]
    append_each(ledger, "two", known=known)
    assert contents(ledger) == ["one", "two"]


@pytest.mark.guarantee("G-ACK-3")
def test_another_process_follows_a_replaced_live_segment(tmp_path: Path) -> None:
    files = OrderedFiles()
    ledger, other = open_ledger(tmp_path / "l", files=files), open_ledger(tmp_path / "l")
    known = append_each(ledger, "one")
    append_each(other, known=known)
    with other.lock(1) as writer:
        writer.catch_up(known)
    files.fail("sync", errno.EIO)
    with pytest.raises(LedgerWriteError):
        append_each(ledger, "lost", known=known)

    known = append_each(other, "two", known=known)
    append_each(ledger, "three", known=known)

    assert contents(other) == ["one", "two", "three"]


def fail_twice(files: OrderedFiles) -> None:
    """Let the sync of the group fail, and the sync of the copy."""
    files.fail("sync", errno.EIO, times=2)


@pytest.mark.guarantee("G-ACK-3")
def test_if_the_copy_fails_too_the_ledger_is_read_only_for_every_process(tmp_path: Path) -> None:
    files, others = OrderedFiles(), OrderedFiles()
    ledger, other = (
        open_ledger(tmp_path / "l", files=files),
        open_ledger(tmp_path / "l", files=others),
    )
    known = append_each(ledger, "one")
    fail_twice(files)

    with pytest.raises(LedgerWriteError) as caught:
        append_each(ledger, "perhaps", known=known)

    assert (caught.value.outcome, caught.value.reason) == ("unknown", "io_error")
    assert ledger.layout.lock.stat().st_mode & 0o777 == 0o400
    assert any("read-only" in note for note in verify(tmp_path / "l").notes)
    others.fail("create", errno.ENOSPC)
    with pytest.raises(LedgerReadOnlyError) as refused:
        append_each(other, "no", known=known)
    assert refused.value.reason == "disk_full"
    assert contents(other) == ["one", "perhaps"]


def test_the_next_writer_cures_the_mark_and_believes_whole_batches(tmp_path: Path) -> None:
    files = OrderedFiles()
    ledger, other = open_ledger(tmp_path / "l", files=files), open_ledger(tmp_path / "l")
    known = append_each(ledger, "one")
    inode = live_path(ledger).stat().st_ino
    fail_twice(files)
    with pytest.raises(LedgerWriteError):
        append_each(ledger, "perhaps", known=known)

    with other.lock(1) as writer:
        records = list(writer.catch_up(known))
        end = writer.end

    assert [content_of(record) for record in records] == ["perhaps"]
    assert ledger.layout.lock.stat().st_mode & 0o777 == 0o600
    assert live_path(other).stat().st_ino != inode
    append_each(ledger, "two", known=end)
    assert contents(other) == ["one", "perhaps", "two"]


def test_the_mark_is_cured_by_the_process_that_set_it(tmp_path: Path) -> None:
    files = OrderedFiles()
    ledger = open_ledger(tmp_path / "l", files=files)
    known = append_each(ledger, "one")
    files.fail("write", errno.ENOSPC, short=50, times=1)
    files.fail("truncate", errno.EIO)
    files.fail("create", errno.ENOSPC)
    with pytest.raises(LedgerWriteError) as caught:
        append_each(ledger, "torn", known=known)
    assert caught.value.outcome == "unknown"

    append_each(ledger, "two", known=known)

    assert contents(ledger) == ["one", "two"]
    assert [type(report) for report in ledger.reports] == [TornTail]
    assert verify(tmp_path / "l").ok


def test_even_a_mark_that_cannot_be_set_leaves_the_outcome_unknown(tmp_path: Path) -> None:
    files = OrderedFiles()
    ledger = open_ledger(tmp_path / "l", files=files)
    known = append_each(ledger, "one")
    fail_twice(files)
    files.fail("change_mode", errno.EIO)

    with pytest.raises(LedgerWriteError) as caught:
        append_each(ledger, "perhaps", known=known)

    assert caught.value.outcome == "unknown"


def test_a_cure_whose_mark_cannot_be_removed_is_no_cure(tmp_path: Path) -> None:
    files = OrderedFiles()
    ledger = open_ledger(tmp_path / "l", files=files)
    known = append_each(ledger, "one")
    fail_twice(files)
    with pytest.raises(LedgerWriteError):
        append_each(ledger, "perhaps", known=known)
    files.fail("change_mode", errno.EROFS)

    with pytest.raises(LedgerReadOnlyError):
        append_each(ledger, "two", known=known)

    assert append_each(ledger, "two", known=known).seq == 3


@pytest.mark.guarantee("G-ACK-2")
def test_bytes_of_a_dead_writer_are_synced_again_before_they_are_believed(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "l")
    known = append_each(ledger, "one")
    append_each(ledger, "two", known=known)
    files = OrderedFiles()
    again = open_ledger(tmp_path / "l", files=files)

    with again.lock(1) as writer:
        records = list(writer.catch_up(known))
        files.calls.clear()
        assert writer.catch_up(writer.end) == ()

    assert [content_of(record) for record in records] == ["two"]
    assert files.calls == []
    third = OrderedFiles()
    with open_ledger(tmp_path / "l", files=third).lock(1) as writer:
        writer.catch_up(known)
    assert third.calls[-2:] == ["write", "sync"]


@pytest.mark.guarantee("G-ACK-2")
@pytest.mark.parametrize("call", ["write", "sync"])
def test_a_tail_that_cannot_be_synced_again_moves_to_a_new_file(tmp_path: Path, call: str) -> None:
    ledger = open_ledger(tmp_path / "l")
    known = append_each(ledger, "one")
    append_each(ledger, "two", known=known)
    files = OrderedFiles()
    again = open_ledger(tmp_path / "l", files=files)
    files.fail(call, errno.EIO)

    with pytest.raises(LedgerWriteError) as caught, again.lock(1) as writer:
        writer.catch_up(known)

    assert caught.value.outcome == "not_written"
    with again.lock(1) as writer:
        assert [content_of(record) for record in writer.catch_up(known)] == ["two"]


@pytest.mark.guarantee("G-TAIL-1")
def test_a_tear_that_cannot_be_kept_aside_is_not_cut(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "l")
    known = append_each(ledger, "one")
    end = append_each(ledger, "two", known=known)
    os.truncate(live_path(ledger), end.offset - 1)
    files = OrderedFiles()
    again = open_ledger(tmp_path / "l", files=files)
    files.fail("create", errno.ENOSPC)

    with pytest.raises(LedgerWriteError) as caught, again.lock(1) as writer:
        writer.catch_up(known)

    assert (caught.value.outcome, caught.value.reason) == ("not_written", "disk_full")
    assert live_path(ledger).stat().st_size == end.offset - 1
    assert not list((tmp_path / "l" / "quarantine").iterdir())


def test_a_prefix_that_shrank_meanwhile_is_not_copied_as_good(tmp_path: Path) -> None:
    files = OrderedFiles()
    ledger = open_ledger(tmp_path / "l", files=files)
    known = append_each(ledger, "one")
    with ledger.lock(1) as writer:
        writer.catch_up(known)
        group = writer.group()
        group.add(batch("two"))
        os.truncate(live_path(ledger), 10)
        files.fail("write", errno.EIO)
        with pytest.raises(LedgerWriteError) as caught:
            group.commit()

    assert caught.value.outcome == "unknown"


# ------------------------------------------------------------------ rolling


def test_a_segment_rolls_at_its_size(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "l", options=SMALL)

    end = append_each(ledger, "one", "two")

    assert end.seq == 2
    assert (end.segment, end.offset) == ledger.live_end()
    assert [source.first for source in ledger.reader.sources()] == [1, 2, 3]
    assert not ledger.has_more(end)
    assert contents(ledger) == ["one", "two"]


def test_a_segment_rolls_at_its_age(tmp_path: Path) -> None:
    clock = TickingClock()
    ledger = open_ledger(tmp_path / "l", clock=clock)
    known = append_each(ledger, "one")
    clock.now += 24 * 3600 * 1_000_000

    end = append_each(ledger, "two", known=known)

    assert end.segment == 3


@pytest.mark.parametrize(
    ("call", "skip"), [("write", 1), ("sync", 1), ("create", 0), ("rename", 0), ("open_write", 0)]
)
def test_a_roll_that_fails_does_not_fail_the_commit(tmp_path: Path, call: str, skip: int) -> None:
    files = OrderedFiles()
    ledger = open_ledger(tmp_path / "l", files=files, options=SMALL)
    with ledger.lock(1) as writer:
        writer.catch_up(None)
        group = writer.group()
        group.add(batch("one"))
        files.fail(call, errno.ENOSPC, skip=skip)
        end = group.commit()

    assert end.seq == 1
    assert [type(report) for report in ledger.reports] == [RollFailed]
    assert contents(ledger) == ["one"]
    end = append_each(ledger, "two", known=end)
    assert verify(tmp_path / "l", end).ok
    assert contents(ledger) == ["one", "two"]


def test_a_roll_that_fails_twice_marks_the_ledger_but_the_commit_stands(tmp_path: Path) -> None:
    files = OrderedFiles()
    ledger = open_ledger(tmp_path / "l", files=files, options=SMALL)
    with ledger.lock(1) as writer:
        writer.catch_up(None)
        group = writer.group()
        group.add(batch("one"))
        files.fail("sync", errno.EIO, skip=1, times=2)
        end = group.commit()

    assert end.seq == 1
    assert ledger.layout.lock.stat().st_mode & 0o777 == 0o400
    end = append_each(ledger, "two", known=end)
    assert verify(tmp_path / "l", end).ok


def test_the_next_writer_finishes_a_roll_that_was_begun(tmp_path: Path) -> None:
    files = OrderedFiles()
    ledger = open_ledger(tmp_path / "l", files=files, options=SMALL)
    with ledger.lock(1) as writer:
        writer.catch_up(None)
        group = writer.group()
        group.add(batch("one"))
        files.fail("create", errno.ENOSPC)
        end = group.commit()
    assert contents(ledger) == ["one"]
    files.fail("create", errno.ENOSPC)
    with pytest.raises(LedgerWriteError) as caught, ledger.lock(1) as writer:
        writer.catch_up(end)
    assert caught.value.reason == "disk_full"

    other = open_ledger(tmp_path / "l")
    with other.lock(1) as writer:
        assert list(writer.catch_up(end)) == []
        assert writer.end.segment == 2


def test_bytes_after_a_footer_are_damage(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "l", options=SMALL)
    end = append_each(ledger, "one")
    (tmp_path / "l" / "log" / "00000000000000000002.jsonl").unlink()
    with live_path(ledger).open("ab") as file:
        file.write(b"x")

    with pytest.raises(LedgerDamagedError, match="after the footer"), ledger.lock(1) as writer:
        writer.catch_up(end)


# ------------------------------------------------------------------ several writers


def test_two_writers_take_turns_and_see_each_other(tmp_path: Path) -> None:
    one, two = open_ledger(tmp_path / "l", options=SMALL), open_ledger(tmp_path / "l")
    known = append_each(one, "a")
    known = append_each(two, "b", known=known)
    known = append_each(one, "c", known=known)
    known = append_each(two, "d", known=known)

    assert contents(one) == ["a", "b", "c", "d"]
    assert verify(tmp_path / "l", known).ok


def test_catching_up_from_an_older_segment_reads_through_all_later_ones(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "l", options=SMALL)
    known = append_each(ledger, "a")
    append_each(ledger, "b", "c", known=known)

    for start, expected in ((None, ["a", "b", "c"]), (known, ["b", "c"]), (Position.start, None)):
        with open_ledger(tmp_path / "l").lock(1) as writer:
            records = list(writer.catch_up(start))
            end = writer.end
        assert [content_of(record) for record in records] == (expected or ["a", "b", "c"])
        assert end.seq == 3


def test_a_position_in_either_form_is_the_same_place(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "l", options=SMALL)
    end = append_each(ledger, "a", "b")
    before_footer = list(ledger.read(Position.start))[-1].position
    assert before_footer != end

    for known in (end, before_footer):
        other = open_ledger(tmp_path / "l")
        with other.lock(1) as writer:
            assert list(writer.catch_up(known)) == []
            assert writer.end == end
        assert not other.has_more(known)
        assert list(other.read(known)) == []


def test_a_position_behind_what_this_process_saw_is_caught_up_from_there(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "l")
    one = append_each(ledger, "a")
    two = append_each(ledger, "b", "c", known=one)

    for known, expected in ((one, ["b", "c"]), (two, []), (Position.start, ["a", "b", "c"])):
        with ledger.lock(1) as writer:
            records = list(writer.catch_up(known))
        assert [content_of(record) for record in records] == expected


def test_a_position_ahead_of_what_this_process_saw_is_checked_on_the_way(tmp_path: Path) -> None:
    ledger, other = open_ledger(tmp_path / "l"), open_ledger(tmp_path / "l")
    one = append_each(ledger, "a")
    two = append_each(other, "b", known=one)
    three = append_each(other, "c", known=two)

    with ledger.lock(1) as writer:
        assert [content_of(record) for record in writer.catch_up(two)] == ["c"]
        assert writer.end == three


@pytest.mark.parametrize("other_segment", [True, False])
def test_a_ledger_shorter_than_known_refuses(tmp_path: Path, *, other_segment: bool) -> None:
    options = SMALL if other_segment else None
    ledger = open_ledger(tmp_path / "l", options=options)
    known = append_each(ledger, "a")
    shutil.copytree(tmp_path / "l", tmp_path / "old")
    end = append_each(ledger, "b", known=known)
    before = tree(tmp_path / "old")

    with (
        pytest.raises(LedgerBehindError) as caught,
        open_ledger(tmp_path / "old").lock(1) as writer,
    ):
        writer.catch_up(end)

    assert (caught.value.reason, caught.value.known_seq, caught.value.end_seq) == ("shorter", 2, 1)
    assert tree(tmp_path / "old") == before


@pytest.mark.parametrize("same_object", [True, False])
@pytest.mark.parametrize("more", [0, 1])
def test_another_history_refuses(tmp_path: Path, *, same_object: bool, more: int) -> None:
    ledger = open_ledger(tmp_path / "l")
    known = append_each(ledger, "a")
    shutil.copytree(tmp_path / "l", tmp_path / "twin")
    mine = append_each(ledger, "b", known=known)
    twin = open_ledger(tmp_path / "twin", clock=TickingClock(99))
    other = append_each(twin, "other", *["more"] * more, known=known)
    assert other.seq == 2 + more

    if not same_object:
        twin = open_ledger(tmp_path / "twin")
    with pytest.raises(LedgerBehindError) as caught, twin.lock(1) as writer:
        writer.catch_up(mine)
    assert caught.value.reason == "other"


def test_another_history_at_a_segment_boundary_refuses(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "l", options=SMALL)
    known = append_each(ledger, "a")
    shutil.copytree(tmp_path / "l", tmp_path / "twin")
    mine = append_each(ledger, "b", known=known)
    append_each(open_ledger(tmp_path / "twin", options=SMALL), "other", known=known)

    with pytest.raises(LedgerBehindError), open_ledger(tmp_path / "twin").lock(1) as writer:
        writer.catch_up(mine)


def test_a_live_file_that_was_cut_under_the_writer_refuses(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "l")
    known = append_each(ledger, "a")
    end = append_each(ledger, "b", known=known)
    os.truncate(live_path(ledger), known.offset)

    with pytest.raises(LedgerBehindError) as caught, ledger.lock(1) as writer:
        writer.catch_up(end)
    assert caught.value.reason == "shorter"


def test_a_live_segment_that_does_not_follow_the_one_before_is_damage(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "l", options=SMALL)
    append_each(ledger, "a")
    shutil.copytree(tmp_path / "l", tmp_path / "twin")
    append_each(ledger, "b")
    append_each(open_ledger(tmp_path / "twin", options=SMALL), "other")
    name = "00000000000000000003.jsonl"
    shutil.copy(tmp_path / "twin" / "log" / name, tmp_path / "l" / "log" / name)

    with pytest.raises(LedgerDamagedError), open_ledger(tmp_path / "l").lock(1) as writer:
        list(writer.catch_up(None))
    with pytest.raises(LedgerDamagedError):
        contents(open_ledger(tmp_path / "l"))


def test_a_ledger_without_any_live_segment_is_damage(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "l")
    append_each(ledger, "a")
    live_path(ledger).unlink()

    for call in (ledger.live_end, lambda: contents(ledger)):
        with pytest.raises(LedgerDamagedError, match="segment_missing"):
            call()
    with pytest.raises(LedgerDamagedError, match="segment_missing"), ledger.lock(1) as writer:
        writer.catch_up(None)


def test_a_live_segment_that_may_not_be_written_refuses(tmp_path: Path) -> None:
    files = OrderedFiles()
    ledger = open_ledger(tmp_path / "l", files=files)
    files.fail("open_write", errno.EROFS)

    with pytest.raises(LedgerReadOnlyError) as caught, ledger.lock(1) as writer:
        writer.catch_up(None)

    assert caught.value.reason == "read_only"


def test_the_time_of_the_last_record_is_known_in_an_empty_live_segment(tmp_path: Path) -> None:
    clock = TickingClock()
    ledger = open_ledger(tmp_path / "l", options=SMALL, clock=clock)
    end = append_each(ledger, "a")
    clock.now -= 1_000_000_000

    with open_ledger(tmp_path / "l").lock(1) as writer:
        list(writer.catch_up(None))
        assert writer.end == end
    late = open_ledger(tmp_path / "l", clock=clock)
    append(late, [["b"], ["c"]])

    records = list(late.read(Position.start))
    assert [record.header.back for record in records] == [False, True, False]
    assert verify(tmp_path / "l").ok


def test_size_alone_rolls_only_when_it_is_reached(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "l", options=LedgerOptions(segment_bytes_max=100_000))

    append_each(ledger, "a", "b")

    assert ledger.live_end()[0] == 1
