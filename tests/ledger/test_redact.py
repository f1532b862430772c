"""Redaction: payloads go, digests and chain stay, and nothing else changes."""

import errno
import re
import shutil
import threading
from pathlib import Path

import pytest

from ledger import (
    AgentRegistered,
    Batch,
    Ledger,
    LedgerDamagedError,
    LedgerOptions,
    LedgerReadOnlyError,
    LedgerWriteError,
    LockTimeoutError,
    NewEvent,
    Position,
    RedactionCompleted,
    RedactionRefusedError,
    Redactor,
    WorkspaceCreated,
    verify,
)
from ledger.codec import Codec
from ledger.record import erase_payload
from tests.support.ledgers import (
    ACTOR,
    SMALL,
    WORKSPACE,
    OrderedFiles,
    append,
    append_each,
    contents,
    live_path,
    open_ledger,
    open_sealer,
    tree,
)
from tests.support.redactions import (
    digests,
    inflated,
    name,
    open_redactor,
    raw_lines,
    redact,
    said,
)


@pytest.fixture(name="root")
def _root(tmp_path: Path) -> Path:
    return tmp_path / "l"


def make_all_kinds(root: Path, codec: Codec = "zst") -> Ledger:
    """Make a ledger of six texts: two sealed segments, one rolled, one live."""
    options = LedgerOptions(segment_bytes_max=1, codec=codec)
    ledger = open_ledger(root, options=options)
    known = append(ledger, [["one", "two"]])
    known = append_each(ledger, "three", known=known)
    open_sealer(ledger).run()
    known = append_each(ledger, "four", known=known)
    last = open_ledger(root, options=LedgerOptions(codec=codec))
    append(last, [["five"]], [["six"]], known=known)
    return last


def names(root: Path) -> list[str]:
    return sorted(path.name.lstrip("0") for path in (root / "log").iterdir())


@pytest.mark.parametrize("codec", ["zst", "gz"])
def test_payloads_go_from_sealed_rolled_and_live_segments(root: Path, codec: Codec) -> None:
    ledger = make_all_kinds(root, codec)
    lines = raw_lines(root)
    assert names(root) == [
        f"1.g0.jsonl.{codec}",
        f"3.g0.jsonl.{codec}",
        "4.jsonl",
        "5.jsonl",
    ]

    rewritten = redact(ledger, 2, 4, 5)

    assert rewritten == [1, 4, 5]
    assert said(ledger.read(Position.start)) == ["one", None, "three", None, None, "six"]
    assert names(root) == [
        f"1.g1.jsonl.{codec}",
        f"3.g0.jsonl.{codec}",
        f"4.g1.jsonl.{codec}",
        f"5.g1.jsonl.{codec}",
        "8.jsonl",
    ]
    after = raw_lines(root)
    for seq, line in lines.items():
        if seq in {2, 4, 5}:
            head, tail = line.split(b',"p":')[0], line[-72:]
            assert after[seq] == head + b',"p":null' + tail
        else:
            assert after[seq] == line
    assert not any(
        text in data for data in inflated(root).values() for text in (b"two", b"four", b"five")
    )
    report = verify(root)
    assert (report.ok, report.redacted, report.notes, report.events) == (True, 3, [], 7)


def test_a_second_redaction_writes_the_next_generation(root: Path) -> None:
    ledger = make_all_kinds(root)
    redact(ledger, 2)

    assert redact(ledger, 1, 2) == [1]

    assert said(ledger.read(Position.start))[:3] == [None, None, "three"]
    assert names(root)[0] == "1.g2.jsonl.zst"
    assert verify(root).redacted == 2


def test_erasing_again_changes_nothing(root: Path) -> None:
    ledger = make_all_kinds(root)
    redact(ledger, 2, 5)
    before = tree(root)
    targets = digests(ledger, [2, 5])

    assert open_redactor(ledger).rewrite(targets) == []
    assert open_redactor(ledger).rewrite({}) == []
    assert open_redactor(ledger).clean() == []

    assert tree(root) == before


def test_a_live_segment_without_the_payload_stays_the_live_one(root: Path) -> None:
    ledger = open_ledger(root)
    known = append_each(ledger, "one", "two")
    targets = digests(ledger, [1])
    name(ledger, targets, known)
    # As in a copy whose end lies in a segment that was redacted.
    lines = live_path(ledger).read_bytes().split(b"\n")
    lines[1] = erase_payload(lines[1])
    live_path(ledger).write_bytes(b"\n".join(lines))
    before = names(root)

    assert open_redactor(open_ledger(root)).rewrite(targets) == []

    assert names(root) == before


def test_appending_goes_on_after_a_redaction(root: Path) -> None:
    ledger = make_all_kinds(root)
    known = name(ledger, digests(ledger, [5, 6]))
    open_redactor(ledger).rewrite(digests(ledger, [5, 6]))

    known = append_each(ledger, "seven", known=known)
    end = append_each(open_ledger(root, options=SMALL), "eight", known=known)
    open_sealer(ledger).run()

    assert said(ledger.read(Position.start))[3:] == ["four", None, None, "seven", "eight"]
    assert verify(root, known, end).ok


@pytest.mark.parametrize("where", ["sealed", "rolled", "live"])
def test_what_is_not_the_record_that_was_meant_is_refused(root: Path, where: str) -> None:
    ledger = make_all_kinds(root)
    before = tree(root)
    seq = {"sealed": 2, "rolled": 4, "live": 6}[where]
    good = digests(ledger, [1])
    redactor = open_redactor(ledger)

    with pytest.raises(RedactionRefusedError, match="nothing has been changed") as caught:
        redactor.rewrite({**good, seq: "0" * 64})
    assert (caught.value.seq, caught.value.reason) == (seq, "other")
    assert caught.value.found == digests(ledger, [seq])[seq]
    for unknown in (0, -1, 7, 2**62):
        with pytest.raises(RedactionRefusedError) as caught:
            redactor.rewrite({**good, unknown: "0" * 64})
        assert (caught.value.seq, caught.value.reason) == (unknown, "unknown")

    after = tree(root)
    assert {file: after[file] for file in before} == before
    assert set(after) - set(before) == {"SEAL"} - set(before)


def test_what_is_kept_for_ever_is_refused(root: Path) -> None:
    ledger = open_ledger(root)
    known = append_each(ledger, "one")
    known = name(ledger, digests(ledger, [1]), known)
    events = [
        NewEvent(WORKSPACE, WorkspaceCreated(salt="a", name="home")),
        NewEvent(ACTOR, AgentRegistered(salt="b", name="agent")),
        NewEvent("r" * 16, RedactionCompleted(salt="c")),
    ]
    with ledger.lock(1) as writer:
        list(writer.catch_up(known))
        group = writer.group()
        group.add(Batch(WORKSPACE, ACTOR, events))
        group.commit()

    kinds = ["memory_redacted", "workspace_created", "agent_registered", "redaction_completed"]
    for seq, kind in enumerate(kinds, 2):
        with pytest.raises(RedactionRefusedError) as caught:
            open_redactor(ledger).rewrite(digests(ledger, [1, seq]))
        assert (caught.value.seq, caught.value.reason, caught.value.found) == (seq, "kept", kind)
    assert names(root) == ["1.jsonl"]


def test_a_damaged_segment_is_not_rewritten(root: Path) -> None:
    ledger = make_all_kinds(root)
    targets = digests(ledger, [1, 4])
    data = bytearray(ledger.layout.raw(4).read_bytes())
    data[100] ^= 1
    ledger.layout.raw(4).write_bytes(data)

    with pytest.raises(LedgerDamagedError):
        open_redactor(ledger).rewrite(targets)

    assert said(ledger.read(Position.start, 1)) == ["one"]


def test_leftovers_that_may_hold_erased_texts_are_removed(root: Path) -> None:
    ledger = make_all_kinds(root)
    log = root / "log"
    old = {path.name: path.read_bytes() for path in log.iterdir()}
    redact(ledger, 2, 4)
    (root / "quarantine" / "torn").write_bytes(b'{"h":{"seq":2},"p":{"content":"tw')
    (root / "quarantine" / "folder").mkdir()
    (log / "x.tmp").write_bytes(b"two")
    for number in (1, 4):
        for file, data in old.items():
            if int(file.partition(".")[0]) == number:
                (log / file).write_bytes(data)
    (log / f"{1:020d}.g7.jsonl.gz").write_bytes(b"made, and never named")

    removed = open_redactor(ledger).clean()

    assert [re.sub("0{19}", "", file) for file in removed] == [
        "log/x.tmp",
        "log/1.g0.jsonl.zst",
        "log/1.g7.jsonl.gz",
        "log/4.jsonl",
        "quarantine/torn",
    ]
    assert names(root) == [
        "1.g1.jsonl.zst",
        "3.g0.jsonl.zst",
        "4.g1.jsonl.zst",
        "5.jsonl",
    ]
    assert verify(root).ok


def test_without_a_folder_for_torn_bytes_there_is_nothing_to_clean(root: Path) -> None:
    ledger = make_all_kinds(root)
    (root / "quarantine").rmdir()

    assert redact(ledger, 1) == [1]


def test_an_old_generation_stays_while_the_new_one_is_bad(root: Path) -> None:
    ledger = make_all_kinds(root)
    old = root / "log" / f"{1:020d}.g0.jsonl.zst"
    data = old.read_bytes()
    redact(ledger, 2)
    old.write_bytes(data)
    new = root / "log" / f"{1:020d}.g1.jsonl.zst"
    good = new.read_bytes()

    new.write_bytes(b"bad")
    with pytest.raises(LedgerDamagedError):
        open_redactor(ledger).clean()
    assert old.exists()
    new.unlink()
    assert open_redactor(ledger).clean() == []
    assert old.exists()
    new.write_bytes(good)
    assert open_redactor(ledger).clean() == [f"log/{old.name}"]


@pytest.mark.parametrize(
    "call", ["create", "write", "sync", "rename", "sync_directory", "unlink", "open_write"]
)
@pytest.mark.parametrize("skip", [0, 1, 2, 5])
def test_a_redaction_that_fails_can_be_run_again(root: Path, call: str, skip: int) -> None:
    make_all_kinds(root)
    files = OrderedFiles()
    ledger = open_ledger(root, files=files)
    targets = digests(ledger, [2, 4, 6])
    known = name(ledger, targets)
    files.fail(call, errno.ENOSPC, skip=skip)
    redactor = open_redactor(ledger)

    reasons = set()
    try:
        redactor.rewrite(targets)
    except (LedgerWriteError, LedgerReadOnlyError) as error:
        reasons.add(error.reason)
    files.heal()

    assert reasons <= {"disk_full"}
    assert verify(root, known).ok
    redactor.rewrite(targets)
    assert said(ledger.read(Position.start)) == ["one", None, "three", None, "five", None]
    report = verify(root, known)
    assert (report.ok, report.redacted, report.notes) == (True, 3, [])
    assert append_each(ledger, "seven", known=known).seq == 8


@pytest.mark.parametrize("call", ["write", "sync"])
def test_a_roll_that_cannot_be_undone_leaves_the_ledger_read_only(root: Path, call: str) -> None:
    files = OrderedFiles()
    ledger = open_ledger(root, files=files)
    known = append_each(ledger, "one")
    with ledger.lock(1) as writer:
        list(writer.catch_up(known))
        files.fail(call, errno.EIO, times=9)
        files.fail("create", errno.EIO, times=9)
        with pytest.raises(LedgerWriteError):
            writer.roll()
    files.heal()

    assert append_each(ledger, "two", known=known).seq == 2
    assert verify(root).ok


def test_a_segment_is_rolled_when_asked(root: Path) -> None:
    ledger = open_ledger(root)
    with ledger.lock(1) as writer:
        list(writer.catch_up(None))
        assert writer.roll() == writer.end
    assert names(root) == ["1.jsonl"]
    known = append_each(ledger, "one")

    with ledger.lock(1) as writer:
        list(writer.catch_up(known))
        end = writer.roll()
        assert writer.roll() == end == writer.end

    assert (end.seq, end.digest, end.segment, end.t_us) == (1, known.digest, 2, known.t_us)
    assert names(root) == ["1.jsonl", "2.jsonl"]
    assert ledger.has_more(known) is False
    append_each(ledger, "two", known=end)
    assert contents(ledger) == ["one", "two"]


def test_one_redactor_works_at_a_time_and_not_beside_a_sealer(root: Path) -> None:
    ledger = make_all_kinds(root)
    sealer = open_sealer(ledger)
    sealer._lock.acquire(0)
    redactor = Redactor(ledger, lock_timeout_s=0)

    for refused in (redactor.clean, lambda: redactor.rewrite({}), lambda: redactor.find([b"x"])):
        with pytest.raises(LockTimeoutError):
            refused()

    sealer._lock.release()
    redactor.clean()
    redactor.close()


def test_a_ledger_that_cannot_be_written_is_not_redacted(root: Path) -> None:
    class ReadOnly(OrderedFiles):
        def may_write(self, path: Path) -> bool:
            return path == Path()

    ledger = make_all_kinds(root)
    targets = digests(ledger, [1])

    with pytest.raises(LedgerReadOnlyError):
        open_redactor(open_ledger(root, files=ReadOnly())).rewrite(targets)


def test_what_was_erased_is_found_wherever_it_still_is(root: Path, tmp_path: Path) -> None:
    ledger = make_all_kinds(root)
    beside = tmp_path / "notes"
    beside.write_bytes(b"forty-four")
    redactor = open_redactor(ledger)

    report = redactor.find([b"two", b"four", b"five", b"nowhere"], [beside])

    assert {
        needle: [(each.path.name.lstrip("0"), each.seqs) for each in findings]
        for needle, findings in report.found.items()
    } == {
        b"two": [("1.g0.jsonl.zst", (2,))],
        b"four": [("4.jsonl", (4,)), ("notes", ())],
        b"five": [("5.jsonl", (5,))],
    }
    assert (report.files, report.unread) == (len(tree(root)) + 1, [])
    redact(ledger, 2, 4, 5)
    assert set(redactor.find([b"two", b"four", b"five"]).found) == set()


def test_readers_see_a_payload_or_none_while_segments_are_rewritten(root: Path) -> None:
    ledger = open_ledger(root, options=SMALL)
    texts = [f"text {number}" for number in range(12)]
    append_each(ledger, *texts)
    open_sealer(ledger).run()
    stop = threading.Event()
    wrong: list[object] = []
    rounds = threading.Semaphore(0)

    def read() -> None:
        reader = open_ledger(root)
        positions = [record.position for record in reader.read(Position.start)]
        while not stop.is_set():
            try:
                for start in (Position.start, positions[4], positions[9]):
                    seen = said(reader.read(start, 12))
                    expected = texts[start.seq :]
                    if any(a not in {None, b} for a, b in zip(seen, expected, strict=True)):
                        wrong.append(seen)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is what the test is for
                wrong.append(error)
            rounds.release()

    readers = [threading.Thread(target=read) for _ in range(3)]
    for thread in readers:
        thread.start()
    for seq in range(1, 13):
        redact(ledger, seq)
    assert all(rounds.acquire(timeout=60) for _ in range(6))
    stop.set()
    for thread in readers:
        thread.join()

    assert wrong == []
    assert said(ledger.read(Position.start)) == [None] * 12


def test_whoever_keeps_a_position_goes_on_from_it_after_a_redaction(root: Path) -> None:
    ledger = make_all_kinds(root)
    positions = [Position.start, *(record.position for record in ledger.read(Position.start))]
    follower = ledger.follow(positions[2], threading.Event(), 0)
    assert said([next(follower)]) == ["three"]
    untouched = open_ledger(root)

    redact(ledger, 1, 2, 5)

    expected = [None, None, "three", "four", None, "six"]
    for reader in (ledger, untouched, open_ledger(root)):
        for position in positions:
            assert said(reader.read(position)) == expected[position.seq :]
            assert reader.has_more(position)
    assert said([next(follower), next(follower)]) == ["four", None]
    for position in positions:
        with untouched.lock(1) as writer:
            assert said(writer.catch_up(position)) == expected[position.seq :]
        assert verify(root, position).ok


def test_a_reader_that_stands_in_a_segment_goes_on_when_it_is_rewritten(root: Path) -> None:
    ledger = open_ledger(root)
    append_each(ledger, "one", "two", "three")
    reading = ledger.read(Position.start)
    seen = [next(reading)]

    redact(ledger, 1, 3)
    seen += list(reading)

    assert said(seen) == ["one", "two", "three"]


def test_a_copy_that_was_rolled_elsewhere_is_followed(root: Path, tmp_path: Path) -> None:
    ledger = open_ledger(root)
    append_each(ledger, "one", "two", "three")
    copy = tmp_path / "copy"
    shutil.copytree(root, copy)
    redact(ledger, 1)
    positions = [record.position for record in ledger.read(Position.start)]

    elsewhere = open_ledger(copy)
    redact(elsewhere, 3)

    for position in positions[:3]:
        assert said(elsewhere.read(position)) == ["one", "two", None][position.seq :]


@pytest.mark.guarantee("G-ERASE-2")
def test_a_payload_may_be_missing_only_where_a_redaction_names_it(root: Path) -> None:
    ledger = make_all_kinds(root)
    targets = digests(ledger, [1, 4, 5])
    open_redactor(ledger).rewrite(targets)

    report = verify(root)
    assert [(one.kind, one.seq, one.segment[-12:]) for one in report.problems] == [
        ("payload_missing", 1, "g1.jsonl.zst"),
        ("payload_missing", 4, "g1.jsonl.zst"),
        ("payload_missing", 5, "g1.jsonl.zst"),
    ]
    assert report.redacted == 0
    known = name(ledger, {1: targets[1], 4: "0" * 64, 5: targets[5]})
    report = verify(root)
    assert [(one.kind, one.seq) for one in report.problems] == [("payload_missing", 4)]
    assert report.redacted == 2
    name(ledger, {4: targets[4]}, known)
    assert verify(root).ok


@pytest.mark.guarantee("G-ERASE-2")
def test_a_payload_that_is_kept_for_ever_is_never_missing_lawfully(root: Path) -> None:
    ledger = open_ledger(root)
    known = append_each(ledger, "one")
    targets = digests(ledger, [1])
    known = name(ledger, targets, known)
    name(ledger, digests(ledger, [2]), known)
    lines = live_path(ledger).read_bytes().split(b"\n")
    head, tail = lines[2].split(b',"p":')[0], lines[2][-72:]
    lines[2] = head + b',"p":null' + tail
    live_path(ledger).write_bytes(b"\n".join(lines))

    (problem,) = verify(root).problems

    assert (problem.kind, problem.seq) == ("payload_missing", 2)
    assert problem.detail == "a payload of memory_redacted is never erased, and this one is missing"


def test_a_redaction_that_is_not_finished_is_noted(root: Path) -> None:
    ledger = make_all_kinds(root)
    targets = digests(ledger, [1, 4, 5])
    name(ledger, targets)
    open_redactor(ledger).rewrite({1: targets[1]})

    report = verify(root)

    assert report.ok
    assert report.redacted == 1
    assert report.notes == [
        "redaction is not finished: 2 payloads that were to be erased stand still"
    ]
