"""Checkpoints: what they show of a ledger that was cut, rolled back or written anew."""

from __future__ import annotations

import errno
import shutil
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import example, given
from hypothesis import strategies as st

from ledger import (
    Checkpoint,
    Ledger,
    LedgerBehindError,
    LedgerDamagedError,
    LedgerUnreadableError,
    LedgerWriteError,
    NoteError,
    Position,
    Problem,
    Signer,
    VerifyReport,
    create_checkpoint,
    grow_tree,
    list_checkpoints,
    newest_checkpoint,
    parse_note,
    prove_extension,
    prove_record,
    publish_checkpoint,
    read_published,
    verify,
    verify_consistency,
    verify_inclusion,
)
from ledger.note import from_base64
from ledger.notes import NoteFloor, parse_notes
from tests.support.full_tree import FullTree
from tests.support.ledgers import (
    SMALL,
    CountingIds,
    Crash,
    OrderedFiles,
    append_each,
    batch,
    close_opened,
    live_path,
    open_ledger,
    open_sealer,
    tree,
)

PRIVATE = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
SIGNER = Signer("mnemolog/aaaaaaaaaaaaaaab", PRIVATE)
NOTE = SIGNER.sign(Checkpoint(SIGNER.key.name, 12, bytes(32))).encode()
"""A note for laws that need no ledger."""


def signer_of(ledger: Ledger) -> Signer:
    return Signer(ledger.identity.origin, PRIVATE)


def sign(ledger: Ledger) -> Checkpoint:
    return create_checkpoint(ledger, signer_of(ledger), lock_timeout_s=5.0).checkpoint


def fill(ledger: Ledger, *texts: str) -> Position:
    return append_each(ledger, *texts, known=None)


def cut(ledger: Ledger, keep: int) -> None:
    """Cut the live segment, which is the only one, after `keep` records."""
    lines = live_path(ledger).read_bytes().splitlines(keepends=True)
    live_path(ledger).write_bytes(b"".join(lines[: keep + 1]))


def rewrite(ledger: Ledger, *texts: str) -> None:
    """Write another history of the same ledger, with all its hashes right."""
    cut(ledger, 0)
    own = ledger.layout.checkpoints
    aside = own.with_name("aside")
    own.rename(aside)
    again = open_ledger(ledger.layout.root)
    fill(again, *texts)
    aside.rename(own)


def check(ledger: Ledger, *against: Path, key: Signer | None = None) -> VerifyReport:
    signer = key or signer_of(ledger)
    return verify(ledger.layout.root, against=against, key=signer.key)


def only(report: VerifyReport) -> Problem:
    (problem,) = report.problems
    return problem


@pytest.fixture(name="ledger")
def _ledger(tmp_path: Path) -> Ledger:
    ledger = open_ledger(tmp_path / "ledger")
    fill(ledger, "one", "two", "three", "four", "five")
    return ledger


@pytest.fixture(name="outside")
def _outside(tmp_path: Path) -> Path:
    return tmp_path / "published"


# ---------------------------------------------------------------------------- making


def test_a_checkpoint_is_over_every_record_and_signed(ledger: Ledger) -> None:
    made = create_checkpoint(ledger, signer_of(ledger), lock_timeout_s=5.0)

    digests = [bytes.fromhex(record.digest) for record in ledger.read(Position.start)]
    assert made.checkpoint == Checkpoint(ledger.identity.origin, 5, FullTree(digests).root())
    assert made.is_new
    assert ledger.layout.checkpoints.read_bytes() == made.data
    assert stat.S_IMODE(ledger.layout.checkpoints.stat().st_mode) == 0o600
    assert signer_of(ledger).key.judge(parse_note(made.data)) == "good"
    assert (check(ledger).ok, check(ledger).signed) == (True, 5)


def test_an_empty_ledger_has_a_checkpoint_too(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "ledger")
    assert sign(ledger).size == 0
    fill(ledger, "one")
    assert sign(ledger).size == 1
    assert check(ledger).ok


def test_the_same_state_is_signed_once_but_by_each_key(ledger: Ledger) -> None:
    sign(ledger)
    again = create_checkpoint(ledger, signer_of(ledger), lock_timeout_s=5.0)
    assert not again.is_new
    assert len(list_checkpoints(ledger)) == 1

    other = Signer(ledger.identity.origin, OTHER)
    assert create_checkpoint(ledger, other, lock_timeout_s=5.0).is_new
    assert [each.checkpoint.size for each in list_checkpoints(ledger)] == [5, 5]
    assert newest_checkpoint(ledger) == list_checkpoints(ledger)[1]


def test_checkpoints_follow_a_ledger_through_rolling_and_sealing(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "ledger", options=SMALL)
    for text in ("one", "two", "three"):
        fill(ledger, text)
        sign(ledger)
        open_sealer(ledger).run()
        assert check(ledger).ok
    assert [each.checkpoint.size for each in list_checkpoints(ledger)] == [1, 2, 3]


def test_who_waits_is_told_how_far_it_is(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "ledger")
    with ledger.lock(5) as writer:
        writer.secure(None)
        group = writer.group()
        group.add(batch(*("heron" for _ in range(1_500))))
        group.commit()
    told: list[tuple[int, int]] = []
    create_checkpoint(
        ledger,
        signer_of(ledger),
        lock_timeout_s=5.0,
        progress=lambda done, total: told.append((done, total)),
    )
    verify(ledger.layout.root, progress=lambda done, total: told.append((done, total)))
    size = live_path(ledger).stat().st_size
    assert told == [(1000, 1500), (1000, size // 1000)]


# ---------------------------------------------------------------------------- laws of damage


@pytest.mark.guarantee("G-CHECKPOINT-1")
@pytest.mark.parametrize("keep", range(5))
@pytest.mark.parametrize("where", ["its own", "published"])
def test_a_cut_at_any_record_is_seen_and_named(
    ledger: Ledger, outside: Path, keep: int, where: str
) -> None:
    sign(ledger)
    publish_checkpoint(ledger, signer_of(ledger).key, outside)
    against = [outside] if where == "published" else []
    if against:
        ledger.layout.checkpoints.unlink()
    cut(ledger, keep)

    problem = only(check(ledger, *against))

    missing = "record 5 is" if keep == 4 else f"records {keep + 1} to 5 are"
    assert problem.kind == "checkpoint"
    assert problem.segment == (str(outside) if against else "checkpoints")
    assert (problem.seq, problem.detail) == (
        5,
        f"{missing} missing, and the checkpoint has signed up to 5",
    )


@pytest.mark.guarantee("G-CHECKPOINT-1")
@pytest.mark.parametrize("changed", range(1, 6))
def test_a_history_written_anew_is_seen_though_all_its_hashes_are_right(
    ledger: Ledger, outside: Path, changed: int
) -> None:
    sign(ledger)
    publish_checkpoint(ledger, signer_of(ledger).key, outside)
    texts = ["one", "two", "three", "four", "five", "six"]
    texts[changed - 1] = "never"
    rewrite(ledger, *texts)
    own = ledger.layout.checkpoints.read_bytes()
    assert verify(ledger.layout.root).problems[0].kind == "checkpoint"
    ledger.layout.checkpoints.unlink()
    assert check(ledger).ok

    problem = only(check(ledger, outside))

    assert (problem.kind, problem.segment) == ("checkpoint", str(outside))
    assert problem.detail == "records 1 to 5 are not those that were signed"
    # Whoever signs the new history cannot publish it beside the old one.
    sign(ledger)
    with pytest.raises(LedgerBehindError, match="other"):
        publish_checkpoint(ledger, signer_of(ledger).key, outside)
    # Nor will an honest program sign what contradicts what it has signed.
    ledger.layout.checkpoints.write_bytes(own)
    with pytest.raises(LedgerBehindError, match="other"):
        sign(ledger)


def test_several_checkpoints_bound_what_was_written_anew(ledger: Ledger, outside: Path) -> None:
    sign(ledger)
    fill(ledger, "six", "seven")
    sign(ledger)
    fill(ledger, "eight")
    sign(ledger)
    shutil.copy(ledger.layout.checkpoints, outside)
    cut(ledger, 5)
    ledger.layout.checkpoints.unlink()
    again = open_ledger(ledger.layout.root)
    fill(again, "6", "7")

    other = (7, "records 6 to 7 are not those that were signed")
    missing = (8, "record 8 is missing, and the checkpoint has signed up to 8")
    found = check(ledger, outside).problems
    assert [(each.seq, each.detail) for each in found] == [other, missing]
    fill(again, "8")
    found = check(ledger, outside).problems
    assert [(each.seq, each.detail) for each in found] == [other]


@pytest.mark.guarantee("G-CHECKPOINT-1")
def test_an_older_copy_that_was_put_back_is_seen(
    ledger: Ledger, outside: Path, tmp_path: Path
) -> None:
    sign(ledger)
    shutil.copytree(ledger.layout.root, tmp_path / "older")
    fill(ledger, "six")
    sign(ledger)
    publish_checkpoint(ledger, signer_of(ledger).key, outside)
    older = open_ledger(tmp_path / "older")

    assert check(older).ok
    problem = only(check(older, outside))
    assert problem.detail == "record 6 is missing, and the checkpoint has signed up to 6"


def test_a_checkpoint_of_another_ledger_is_none_of_this_one(
    ledger: Ledger, outside: Path, tmp_path: Path
) -> None:
    ids = CountingIds()
    ids.new_id()
    other = open_ledger(tmp_path / "other", ids=ids)
    fill(other, "one")
    outside.write_bytes(create_checkpoint(other, signer_of(other), lock_timeout_s=5.0).data)

    problem = only(check(ledger, outside))
    assert problem.kind == "note"
    assert "another ledger" in problem.detail
    shutil.copy(outside, ledger.layout.checkpoints)
    assert "another ledger" in only(check(ledger)).detail
    assert "another ledger" in only(verify(ledger.layout.root)).detail
    # It is no floor either, and does not keep the ledger from a checkpoint of its own.
    assert sign(ledger).size == 5
    with pytest.raises(NoteError, match="another ledger"):
        publish_checkpoint(ledger, signer_of(ledger).key, outside)


def test_another_key_is_refused_outside_and_noted_inside(ledger: Ledger, outside: Path) -> None:
    sign(ledger)
    publish_checkpoint(ledger, signer_of(ledger).key, outside)
    other = Signer(ledger.identity.origin, OTHER)

    report = check(ledger, outside, key=other)

    assert (only(report).kind, only(report).segment) == ("note", str(outside))
    assert other.key.text in only(report).detail
    assert report.notes == [
        "checkpoints: 1 of 1 signatures not checked: this key did not make them"
    ]
    with pytest.raises(NoteError, match="not signed by this key"):
        publish_checkpoint(ledger, other.key, outside)


def test_without_a_key_only_the_records_are_compared(ledger: Ledger, outside: Path) -> None:
    sign(ledger)
    publish_checkpoint(ledger, signer_of(ledger).key, outside)

    report = verify(ledger.layout.root)
    assert report.ok
    assert report.notes == ["checkpoints: 1 of 1 signatures not checked: there is no key"]
    assert "no key" in only(verify(ledger.layout.root, against=[outside])).detail


@given(st.data())
def test_no_changed_byte_of_a_published_checkpoint_passes(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(NOTE) - 1))
    changed = bytearray(NOTE)
    changed[at] ^= data.draw(st.integers(1, 255))
    found = parse_notes(bytes(changed))
    good = [each for each in found.notes if SIGNER.key.judge(each.note) == "good"]
    assert not good


@pytest.mark.parametrize("where", ["size", "root", "signature"])
def test_an_altered_checkpoint_is_a_problem_and_no_anchor(
    ledger: Ledger, outside: Path, where: str
) -> None:
    sign(ledger)
    lines = ledger.layout.checkpoints.read_text().splitlines(keepends=True)
    at = {"size": 1, "root": 2, "signature": 4}[where]
    lines[at] = lines[at].replace("5", "6") if where == "size" else _swapped(lines[at])
    outside.write_text("".join(lines))

    problem = only(check(ledger, outside))
    assert (problem.kind, problem.segment) == ("note", str(outside))
    assert "does not hold" in problem.detail
    shutil.copy(outside, ledger.layout.checkpoints)
    assert [each.kind for each in check(ledger).problems] == ["note"]


def _swapped(line: str) -> str:
    """Change a base64 line's middle."""
    at = len(line) - 20
    return line[:at] + ("A" if line[at] != "A" else "B") + line[at + 1 :]


# ---------------------------------------------------------------------------- a file's own damage


@pytest.mark.parametrize(
    "rest", [b"mnemolog", b"\0" * 512, b"mnemolog/a\n5\nAAAA\n\n\xe2\x80\x94 m"]
)
def test_a_torn_end_is_told_passed_over_and_kept_aside(ledger: Ledger, rest: bytes) -> None:
    sign(ledger)
    whole = ledger.layout.checkpoints.read_bytes()
    ledger.layout.checkpoints.write_bytes(whole + rest)
    fill(ledger, "six")

    problem = only(check(ledger))
    assert (problem.kind, problem.segment, problem.offset) == (
        "torn_note",
        "checkpoints",
        len(whole),
    )
    assert newest_checkpoint(ledger).checkpoint.size == 5

    assert sign(ledger).size == 6
    assert [each.checkpoint.size for each in list_checkpoints(ledger)] == [5, 6]
    report = check(ledger)
    assert report.ok
    (kept,) = ledger.layout.quarantine.iterdir()
    assert kept.read_bytes() == rest
    assert report.notes == [f"quarantine/{kept.name}: {len(rest)} torn bytes kept"]
    assert [each.segment for each in ledger.reports] == ["checkpoints"]


def test_a_torn_end_is_told_where_there_is_no_lock_to_take(ledger: Ledger) -> None:
    ledger.layout.checkpoints.write_bytes(b"torn")
    ledger.layout.lock.unlink()
    assert only(verify(ledger.layout.root)).kind == "torn_note"


@given(st.integers(0, len(NOTE) - 1))
@example(1)
def test_a_tear_anywhere_leaves_what_was_before_it(length: int) -> None:
    found = parse_notes(NOTE + NOTE[:length])
    assert [each.data for each in found.notes] == [NOTE]
    assert found.flaws == []
    torn = 0 if found.torn is None else found.torn.size
    assert torn == length


@given(st.lists(st.sampled_from([b"", b"\n", b"junk\n", b"\n\njunk\n\n", b"\xff\n"]), max_size=4))
def test_notes_are_found_among_whatever_stands_between(between: list[bytes]) -> None:
    found = parse_notes(b"".join(junk + NOTE for junk in between) + NOTE)
    assert [each.data for each in found.notes] == [NOTE] * (len(between) + 1)
    assert found.torn is None
    assert len(found.flaws) == sum(1 for junk in between if junk.strip())


def test_a_flaw_among_checkpoints_is_a_problem_and_the_others_count(
    ledger: Ledger, outside: Path
) -> None:
    sign(ledger)
    whole = ledger.layout.checkpoints.read_bytes()
    ledger.layout.checkpoints.write_bytes(b"junk\n" + whole)
    outside.write_bytes(whole + b"junk\n")

    report = check(ledger, outside)

    assert [(each.kind, each.segment, each.offset) for each in report.problems] == [
        ("note", "checkpoints", 0),
        ("note", str(outside), len(whole)),
    ]
    assert report.signed == 5
    with pytest.raises(NoteError, match="no file of checkpoints"):
        publish_checkpoint(ledger, signer_of(ledger).key, outside)


def test_a_file_of_garbage_is_read_in_reasonable_time() -> None:
    garbage = b"a\n" * 100_000
    assert parse_notes(garbage).torn is not None


def test_files_that_are_not_there_or_hold_no_checkpoint_are_refused(
    ledger: Ledger, outside: Path
) -> None:
    key = signer_of(ledger).key
    with pytest.raises(NoteError, match="is not there"):
        check(ledger, outside)
    with pytest.raises(NoteError, match="there is no file"):
        read_published(outside, ledger.identity.origin, key)
    outside.write_bytes(b"")
    with pytest.raises(NoteError, match="holds no checkpoint"):
        check(ledger, outside)
    with pytest.raises(NoteError, match="holds no checkpoint"):
        read_published(outside, ledger.identity.origin, key)
    with pytest.raises(NoteError, match="no checkpoint yet"):
        publish_checkpoint(ledger, key, outside)


def test_a_file_that_cannot_be_read_is_an_error(ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(LedgerUnreadableError):
        check(ledger, tmp_path)
    loop = ledger.layout.checkpoints
    loop.symlink_to(loop)
    with pytest.raises(LedgerUnreadableError):
        list_checkpoints(ledger)
    with pytest.raises(LedgerUnreadableError):
        NoteFloor(ledger.layout, ledger.identity.origin).size()


def test_a_ledger_without_its_format_is_compared_with_its_checkpoints(ledger: Ledger) -> None:
    sign(ledger)
    ledger.layout.format.unlink()
    cut(ledger, 4)

    assert [each.kind for each in check(ledger).problems] == ["format", "checkpoint"]


def test_what_damage_keeps_from_being_compared_is_said(ledger: Ledger) -> None:
    sign(ledger)
    fill(ledger, "six")
    data = live_path(ledger).read_bytes()
    live_path(ledger).write_bytes(data.replace(b"two", b"TWO"))

    report = check(ledger)

    assert [each.kind for each in report.problems] == ["commitment"]
    assert "a checkpoint of 5 records was not compared: some of them cannot be read" in report.notes
    with pytest.raises(LedgerDamagedError):
        sign(ledger)


# ---------------------------------------------------------------------------- the floor


def test_a_writer_refuses_a_ledger_that_is_shorter_than_what_was_signed(ledger: Ledger) -> None:
    sign(ledger)
    cut(ledger, 3)
    before = tree(ledger.layout.root)

    with pytest.raises(LedgerBehindError, match="shorter") as caught:
        fill(open_ledger(ledger.layout.root), "four again")

    assert (caught.value.known_seq, caught.value.end_seq) == (5, 3)
    assert tree(ledger.layout.root) == before


@pytest.mark.parametrize("damage", ["half of it is there", "a bit is flipped"])
def test_bad_bytes_below_what_was_signed_are_damage_and_no_tear(
    ledger: Ledger, damage: str
) -> None:
    sign(ledger)
    path = live_path(ledger)
    data = path.read_bytes()
    path.write_bytes(
        data[:-50] if damage == "half of it is there" else data.replace(b've"', b'vE"')
    )
    assert path.read_bytes() != data
    with pytest.raises(LedgerDamagedError, match="a checkpoint has signed 5 records"):
        fill(open_ledger(ledger.layout.root), "six")
    assert "checkpoint" in [each.kind for each in check(ledger).problems]


def test_a_crash_tail_above_what_was_signed_is_a_tear(ledger: Ledger) -> None:
    sign(ledger)
    fill(ledger, "six")
    path = live_path(ledger)
    path.write_bytes(path.read_bytes()[:-50])

    assert [each.kind for each in check(ledger).problems] == ["torn_tail"]
    fill(open_ledger(ledger.layout.root), "six again")
    assert check(ledger).ok


def test_the_floor_is_read_again_when_its_file_has_changed(ledger: Ledger) -> None:
    floor = NoteFloor(ledger.layout, ledger.identity.origin)
    assert floor.size() == 0
    sign(ledger)
    assert (floor.size(), floor.size()) == (5, 5)
    fill(ledger, "six")
    sign(ledger)
    assert floor.size() == 6
    ledger.layout.checkpoints.write_bytes(b"")
    assert floor.size() == 0


# ---------------------------------------------------------------------------- failing writes


@pytest.mark.parametrize("call", ["write", "sync"])
def test_a_checkpoint_that_could_not_be_written_is_not_there(tmp_path: Path, call: str) -> None:
    files = OrderedFiles()
    ledger = open_ledger(tmp_path / "ledger", files=files)
    fill(ledger, "one")
    sign(ledger)
    before = ledger.layout.checkpoints.read_bytes()
    end = fill(ledger, "two")

    files.fail(call, errno.ENOSPC)
    with pytest.raises(LedgerWriteError, match="disk_full") as caught:
        create_checkpoint(ledger, signer_of(ledger), lock_timeout_s=5.0, known=end)
    assert caught.value.outcome == "not_written"
    assert ledger.layout.checkpoints.read_bytes() == before

    assert sign(ledger).size == 2


def test_what_became_of_a_checkpoint_may_be_unknown(tmp_path: Path) -> None:
    files = OrderedFiles()
    ledger = open_ledger(tmp_path / "ledger", files=files)
    fill(ledger, "one")
    sign(ledger)
    end = fill(ledger, "two")
    files.fail("sync", errno.EIO, times=2)
    with pytest.raises(LedgerWriteError) as caught:
        create_checkpoint(ledger, signer_of(ledger), lock_timeout_s=5.0, known=end)
    assert caught.value.outcome == "unknown"


def test_a_first_checkpoint_that_could_not_be_written_leaves_no_file(tmp_path: Path) -> None:
    files = OrderedFiles()
    ledger = open_ledger(tmp_path / "ledger", files=files)
    end = fill(ledger, "one")
    files.fail("rename", errno.EIO)
    with pytest.raises(LedgerWriteError):
        create_checkpoint(ledger, signer_of(ledger), lock_timeout_s=5.0, known=end)
    assert not ledger.layout.checkpoints.exists()


@pytest.mark.parametrize("which", ["the first", "a later one"])
def test_after_a_crash_at_any_step_the_ledger_opens_and_the_next_checkpoint_is_made(
    tmp_path: Path, which: str
) -> None:
    step, crashed = 0, True
    while crashed:
        root = tmp_path / str(step)
        ledger = open_ledger(root)
        fill(ledger, "one")
        if which == "a later one":
            sign(ledger)
        end = fill(ledger, "two")
        acknowledged = [each.data for each in list_checkpoints(ledger)]

        crashed = False
        dying = open_ledger(root, files=OrderedFiles(crash_at=step))
        try:
            made = create_checkpoint(dying, signer_of(dying), lock_timeout_s=5.0, known=end)
            acknowledged.append(made.data)
        except Crash:
            crashed = True
        close_opened()

        kinds = {each.kind for each in check(ledger).problems}
        assert kinds <= {"torn_note"}
        assert [each.data for each in list_checkpoints(ledger)][: len(acknowledged)] == acknowledged
        again = open_ledger(root)
        assert sign(again).size == 2
        assert check(again).ok
        assert len(list_checkpoints(again)) == (1 if which == "the first" else 2)
        step += 1
    assert step > 3


# ---------------------------------------------------------------------------- publishing


def test_publishing_makes_a_file_for_all_to_read_and_adds_to_it(
    ledger: Ledger, outside: Path
) -> None:
    key = signer_of(ledger).key
    sign(ledger)
    assert publish_checkpoint(ledger, key, outside).is_new
    assert stat.S_IMODE(outside.stat().st_mode) == 0o644
    assert not publish_checkpoint(ledger, key, outside).is_new
    outside.chmod(0o600)
    fill(ledger, "six")
    sign(ledger)
    assert publish_checkpoint(ledger, key, outside).is_new

    assert stat.S_IMODE(outside.stat().st_mode) == 0o600
    assert outside.read_bytes() == ledger.layout.checkpoints.read_bytes()
    notes = read_published(outside, ledger.identity.origin, key)
    assert [each.checkpoint.size for each in notes] == [5, 6]
    assert sorted(path.name for path in outside.parent.iterdir()) == ["ledger", "published"]


def test_publishing_follows_a_link(ledger: Ledger, outside: Path) -> None:
    sign(ledger)
    target = outside.with_name("target")
    outside.symlink_to(target)
    publish_checkpoint(ledger, signer_of(ledger).key, outside)
    assert outside.is_symlink()
    assert target.read_bytes() == ledger.layout.checkpoints.read_bytes()


def test_publishing_refuses_a_file_that_knows_more(ledger: Ledger, outside: Path) -> None:
    sign(ledger)
    shutil.copytree(ledger.layout.root, outside.with_name("older"))
    fill(ledger, "six")
    sign(ledger)
    publish_checkpoint(ledger, signer_of(ledger).key, outside)
    older = open_ledger(outside.with_name("older"))
    before = outside.read_bytes()

    with pytest.raises(LedgerBehindError, match="shorter"):
        publish_checkpoint(older, signer_of(older).key, outside)
    assert outside.read_bytes() == before


@pytest.mark.parametrize("call", ["write", "sync", "change_mode", "rename"])
def test_publishing_leaves_the_file_as_it_was_if_it_cannot_be_written(
    tmp_path: Path, outside: Path, call: str
) -> None:
    files = OrderedFiles()
    ledger = open_ledger(tmp_path / "ledger", files=files)
    fill(ledger, "one")
    sign(ledger)
    publish_checkpoint(ledger, signer_of(ledger).key, outside)
    before = outside.read_bytes()
    fill(ledger, "two")
    sign(ledger)

    files.fail(call, errno.ENOSPC)
    with pytest.raises(OSError, match="No space"):
        publish_checkpoint(ledger, signer_of(ledger).key, outside)

    assert outside.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger", "published"]


# ---------------------------------------------------------------------------- proofs


@pytest.mark.guarantee("G-CHECKPOINT-2")
def test_a_proof_of_a_record_is_checked_from_its_text_alone(ledger: Ledger) -> None:
    sign(ledger)
    fill(ledger, "six")
    for record in list(ledger.read(Position.start))[:5]:
        proof = prove_record(ledger, record.seq)
        lines, _, note = proof.text.partition("\n\n")
        heading, index, *hashes = lines.split("\n")
        checkpoint = parse_note(note.encode()).checkpoint()
        assert heading == "c2sp.org/tlog-proof@v1"
        assert index == f"index {record.seq - 1}"
        assert signer_of(ledger).key.judge(parse_note(note.encode())) == "good"
        path = [from_base64(each) or b"" for each in hashes]
        assert path == proof.hashes
        leaf = bytes.fromhex(record.digest)
        assert verify_inclusion(leaf, record.seq - 1, checkpoint.size, path, checkpoint.root)


def test_a_proof_may_lead_to_an_earlier_checkpoint(ledger: Ledger) -> None:
    sign(ledger)
    fill(ledger, "six")
    sign(ledger)
    first, second = list_checkpoints(ledger)
    assert prove_record(ledger, 2, checkpoint=first).checkpoint.size == 5
    assert prove_record(ledger, 6, checkpoint=second).checkpoint.size == 6
    with pytest.raises(NoteError, match="covers records 1 to 5, and 6 is none"):
        prove_record(ledger, 6, checkpoint=first)
    with pytest.raises(NoteError, match="and 0 is none"):
        prove_record(ledger, 0)


@pytest.mark.guarantee("G-CHECKPOINT-2")
def test_an_extension_is_checked_from_its_text_alone(ledger: Ledger) -> None:
    sign(ledger)
    fill(ledger, "six", "seven")
    sign(ledger)
    old, new = list_checkpoints(ledger)

    proof = prove_extension(ledger, old)

    lines, _, note = proof.text.partition("\n\n")
    heading, *hashes = lines.split("\n")
    assert (heading, note.encode()) == ("old 5", new.data)
    path = [from_base64(each) or b"" for each in hashes]
    assert verify_consistency(5, old.checkpoint.root, 7, new.checkpoint.root, path)
    assert prove_extension(ledger, new).hashes == []


def test_a_ledger_proves_nothing_from_checkpoints_it_does_not_extend(ledger: Ledger) -> None:
    sign(ledger)
    old = newest_checkpoint(ledger)
    rewrite(ledger, "other")
    with pytest.raises(LedgerBehindError):
        prove_record(ledger, 1, checkpoint=old)
    with pytest.raises(LedgerBehindError):
        prove_extension(ledger, old)


def test_the_newest_checkpoint_does_not_extend_a_later_one(ledger: Ledger) -> None:
    sign(ledger)
    whole = ledger.layout.checkpoints.read_bytes()
    fill(ledger, "six")
    sign(ledger)
    later = newest_checkpoint(ledger)
    ledger.layout.checkpoints.write_bytes(whole)
    with pytest.raises(NoteError, match="the newest checkpoint has 5 records, the old one 6"):
        prove_extension(ledger, later)


def test_nothing_is_signed_over_records_that_are_gone_before_they_were_read(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_digests = ledger.read_digests
    monkeypatch.setattr(ledger, "read_digests", lambda _: read_digests(4))
    with pytest.raises(LedgerBehindError) as caught:
        create_checkpoint(ledger, signer_of(ledger), lock_timeout_s=5.0)
    assert (caught.value.known_seq, caught.value.end_seq) == (5, 4)
    assert list_checkpoints(ledger) == []


def test_a_tree_ends_where_it_is_told_to(ledger: Ledger) -> None:
    assert [grow_tree(ledger, size).size for size in (0, 3, 5, 9)] == [0, 3, 5, 5]
