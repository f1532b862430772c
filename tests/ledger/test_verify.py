"""Verification: notices every byte, changes nothing, never gives up."""

import fcntl
import os
import shutil
from hashlib import sha256
from pathlib import Path

import pytest
from msgspec.structs import replace

from ledger import (
    Ledger,
    LedgerFormatError,
    LedgerNotFoundError,
    LedgerOptions,
    LedgerUnreadableError,
    Position,
    verify,
)
from ledger.envelope import seal_line
from ledger.events import MemoryDeleted
from ledger.identity import decode_identity, encode_identity
from ledger.lock import FileLock
from ledger.manifest import decode_manifest, encode_manifest
from ledger.record import Header, encode_line, open_record
from ledger.segment import encode_footer, encode_header
from tests.support.ledgers import (
    SMALL,
    append,
    append_each,
    contents,
    live_path,
    open_ledger,
    open_sealer,
    tree,
)


def make_all_kinds(root: Path) -> Position:
    """Make a ledger with a zstd, a gzip, a rolled and a live segment."""
    ledger = open_ledger(root, options=SMALL)
    end = append_each(ledger, "one")
    open_sealer(ledger).run()
    gzipped = open_ledger(root, options=LedgerOptions(segment_bytes_max=1, codec="gz"))
    end = append_each(gzipped, "two", known=end)
    open_sealer(gzipped).run()
    end = append_each(ledger, "three", known=end)
    return append_each(open_ledger(root), "four", known=end)


def kinds(root: Path, checkpoint: Position | None = None) -> list[str]:
    return [problem.kind for problem in verify(root, checkpoint).problems]


@pytest.fixture(name="root")
def _root(tmp_path: Path) -> Path:
    return tmp_path / "l"


def test_a_clean_ledger_of_every_kind_of_segment_is_clean(root: Path) -> None:
    end = make_all_kinds(root)
    before = tree(root)

    report = verify(root, end)

    assert (report.ok, report.events, report.segments) == (True, 4, 4)
    assert report.last == end
    assert (report.problems, report.notes, report.torn_bytes) == ([], [], 0)
    assert tree(root) == before


@pytest.mark.slow
@pytest.mark.guarantee("G-DAMAGE-1", "G-VERIFY-1")
def test_every_flipped_byte_is_noticed_and_nothing_is_changed(root: Path) -> None:
    end = make_all_kinds(root)
    missed = []
    for name, data in tree(root).items():
        path = root / name
        with path.open("r+b", buffering=0) as file:
            for at, byte in enumerate(data):
                flipped = bytes([byte ^ (1 << at % 8)])
                os.pwrite(file.fileno(), flipped, at)
                if verify(root, end).ok:
                    missed.append((name, at))
                assert path.read_bytes() == data[:at] + flipped + data[at + 1 :]
                os.pwrite(file.fileno(), data[at : at + 1], at)

    assert missed == []
    assert verify(root, end).ok


@pytest.mark.guarantee("G-DAMAGE-1", "G-VERIFY-1")
def test_every_truncation_is_noticed_and_nothing_is_changed(root: Path) -> None:
    end = make_all_kinds(root)
    missed = []
    for name, data in tree(root).items():
        path = root / name
        # Every length near an end of the file or of a line, and every fifth elsewhere.
        ends = [at for at in range(len(data)) if data[at : at + 1] == b"\n"]
        near = {at + by for at in (0, *ends, len(data)) for by in range(-6, 7)}
        for size in sorted(near | set(range(0, len(data), 5))):
            if not 0 <= size < len(data):
                continue
            path.write_bytes(data[:size])
            if verify(root, end).ok:
                missed.append((name, size))
            assert path.read_bytes() == data[:size]
        path.write_bytes(data)

    assert missed == []


@pytest.mark.guarantee("G-DAMAGE-1")
@pytest.mark.parametrize("extra", [b"\n", b"x", b"{}\n", bytes(100)])
def test_every_appended_byte_is_noticed(root: Path, extra: bytes) -> None:
    make_all_kinds(root)
    for name, data in tree(root).items():
        if name in {"LOCK", "SEAL"}:
            continue
        (root / name).write_bytes(data + extra)

        assert not verify(root).ok, name
        (root / name).write_bytes(data)


@pytest.mark.guarantee("G-DAMAGE-1")
def test_every_missing_file_is_noticed(root: Path) -> None:
    end = make_all_kinds(root)
    for name, data in tree(root).items():
        if name in {"LOCK", "SEAL"}:
            continue
        (root / name).unlink()

        assert not verify(root, end).ok, name
        (root / name).write_bytes(data)


def test_verification_goes_on_behind_damage(root: Path) -> None:
    make_all_kinds(root)
    (root / "FORMAT").write_bytes(b"x")
    (root / "MANIFEST.json").write_bytes(b"y")

    report = verify(root)

    assert report.events == 4
    assert [problem.kind for problem in report.problems] == ["format", "manifest"]


def test_a_sealed_file_that_is_cut_shows_what_is_left(root: Path) -> None:
    make_all_kinds(root)
    path = next((root / "log").glob("*.zst"))
    path.write_bytes(path.read_bytes()[:-1])

    report = verify(root)

    assert report.problems[0].kind == "sealed_file"
    assert report.last.seq == 4
    assert report.events >= 3


def test_bytes_no_append_finished_are_reported_as_a_torn_tail(root: Path) -> None:
    ledger = open_ledger(root)
    end = append_each(ledger, "one")
    with live_path(ledger).open("ab") as file:
        file.write(b'{"h":')
    before = tree(root)

    report = verify(root)

    assert (report.ok, report.torn_bytes, report.events) == (False, 5, 1)
    places = [(problem.kind, problem.seq, problem.offset) for problem in report.problems]
    assert places == [("torn_tail", 2, end.offset)]
    assert tree(root) == before
    (root / "LOCK").unlink()
    assert kinds(root) == ["torn_tail"]
    assert not (root / "LOCK").exists()


def test_the_tail_of_a_writer_at_work_is_not_judged(root: Path) -> None:
    ledger = open_ledger(root)
    append_each(ledger, "one")
    with live_path(ledger).open("ab") as file:
        file.write(b'{"h":')

    with ledger.lock(1):
        report = verify(root, lock_timeout_s=0)

    assert report.ok
    assert "a writer is at work" in report.notes[0]


def test_a_lock_that_cannot_be_opened_leaves_the_tail_reported(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_ledger(root)
    append_each(ledger, "one")
    with live_path(ledger).open("ab") as file:
        file.write(b'{"h":')

    def refuse(fd: int, operation: int) -> None:
        raise OSError(5, f"no locks on {fd}: {operation}")

    monkeypatch.setattr(fcntl, "flock", refuse)

    assert kinds(root) == ["torn_tail"]


def test_a_tail_that_was_finished_meanwhile_is_no_tear(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_ledger(root)
    append_each(ledger, "one")
    path = live_path(ledger)
    whole = path.read_bytes()
    path.write_bytes(whole[:-4])

    class Finishing(FileLock):
        def acquire(self, timeout_s: float) -> None:
            path.write_bytes(whole)
            super().acquire(timeout_s)

    monkeypatch.setitem(verify.__globals__, "FileLock", Finishing)

    assert kinds(root) == []


def test_damage_at_the_end_is_not_taken_for_a_tear(root: Path) -> None:
    ledger = open_ledger(root)
    append_each(ledger, "one", "two", "three")
    path = live_path(ledger)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], lines[1], lines[3]]))

    assert kinds(root) == ["order"]


def test_a_ledger_that_does_not_reach_the_checkpoint_says_so(root: Path) -> None:
    ledger = open_ledger(root)
    one = append_each(ledger, "one")
    two = append_each(ledger, "two", known=one)
    os.truncate(live_path(ledger), one.offset)

    assert kinds(root) == []
    assert kinds(root, one) == []
    assert kinds(root, Position.start) == []
    assert kinds(root, two) == ["checkpoint"]
    assert kinds(root, replace(one, digest="0" * 64)) == ["checkpoint"]


def rewrite_record(path: Path, index: int, change: object) -> None:
    """Replace a record of the live segment by a self-consistent other one, and all after it."""
    assert callable(change)
    lines = path.read_bytes().splitlines(keepends=True)
    made = lines[:index]
    prev = None
    for number, line in enumerate(lines[index:]):
        header, _, body, _ = open_record(line[:-1])
        if number == 0:
            header, body = change(header, body)
        if prev is not None:
            header = replace(header, prev=prev)
        new, prev = encode_line(header, body)
        made.append(new)
    path.write_bytes(b"".join(made))


def commit_to(header: Header, body: bytes) -> tuple[Header, bytes]:
    return replace(header, pc=sha256(b"\x02" + body).hexdigest()), body


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda h, p: (replace(h, back=True), p), "clock"),
        (lambda h, p: (replace(h, t="2026-11-30"), p), "header"),
        (lambda h, p: (h, p[:0] + b"null"), "payload_missing"),
        (lambda h, p: (replace(h, prev="0" * 64), p), "chain"),
        (lambda h, p: (replace(h, g=1, b=1, n=2), p), "batch"),
        (lambda h, p: commit_to(h, p.replace(b'{"salt":', b'{"salt":"","salt":')), "canonical"),
        (lambda h, p: commit_to(h, p.replace(b"{", b"{ ", 1)), "canonical"),
        (lambda h, p: commit_to(h, p + b"1"), "payload"),
        (lambda h, p: (replace(h, type="dream_dreamt"), p), "unknown_event"),
        (lambda h, p: (replace(h, n=3), p), "batch"),
        (lambda h, p: (replace(h, b=1), p), "batch"),
    ],
)
def test_a_record_that_writers_never_write_is_reported(
    root: Path, change: object, kind: str
) -> None:
    ledger = open_ledger(root)
    append_each(ledger, "one", "two", "three")
    whole = live_path(ledger).read_bytes()
    # In the middle, and as the last record.
    for index in (2, 3):
        live_path(ledger).write_bytes(whole)
        rewrite_record(live_path(ledger), index, change)

        assert not verify(root).ok
        if index == 2 or kind not in {"batch", "chain"}:
            assert kind in kinds(root)


def test_a_manifest_that_lies_about_a_segment_is_reported(root: Path) -> None:
    make_all_kinds(root)
    path = root / "MANIFEST.json"
    ledger_id = decode_identity((root / "FORMAT").read_bytes(), root).ledger
    manifest = decode_manifest(path.read_bytes(), ledger=ledger_id)
    entries = (replace(manifest.segments[0], digest="0" * 64), manifest.segments[1])
    path.write_bytes(encode_manifest(replace(manifest, segments=entries)))

    assert kinds(root) == ["manifest"]


def test_a_segment_that_does_not_point_back_is_reported(root: Path) -> None:
    ledger = open_ledger(root, options=SMALL)
    append_each(ledger, "one")
    path = live_path(ledger)
    t = "2026-11-30T20:29:33.123456Z"
    path.write_bytes(encode_header(ledger=ledger.id, first=2, prev="0" * 64, t=t))

    assert kinds(root) == ["chain"]


def test_a_footer_that_miscounts_is_reported(root: Path) -> None:
    ledger = open_ledger(root, options=SMALL)
    end = append_each(ledger, "one")
    path = ledger.layout.raw(1)
    lines = path.read_bytes().splitlines(keepends=True)
    t = "2026-11-30T20:29:33.123456Z"
    for last, count, digest in ((1, 2, end.digest), (2, 1, end.digest), (1, 1, "0" * 64)):
        footer = encode_footer(last=last, count=count, digest=digest, t=t)
        path.write_bytes(b"".join([*lines[:2], footer]))

        assert kinds(root) == ["segment_footer"]


def test_a_file_that_cannot_be_read_is_a_problem_not_an_error(root: Path) -> None:
    make_all_kinds(root)
    path = root / "log" / "00000000000000000003.jsonl"
    path.unlink()
    path.mkdir()

    assert kinds(root)[0] == "unreadable"


def test_what_else_lies_about_is_noted(root: Path) -> None:
    ledger = open_ledger(root, options=SMALL)
    append_each(ledger, "one")
    raw = ledger.layout.raw(1).read_bytes()
    open_sealer(ledger).run()
    ledger.layout.raw(1).write_bytes(raw)
    (root / "log" / "x.tmp").write_bytes(b"")
    (root / "quarantine" / "y.torn").write_bytes(b"123")

    report = verify(root)

    assert report.ok
    assert len(report.notes) == 3
    shutil.rmtree(root / "quarantine")
    assert len(verify(root).notes) == 2


def test_nothing_there_is_not_found(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(LedgerNotFoundError) as caught:
            verify(path)
        assert caught.value.path == path


def test_a_newer_format_is_refused(root: Path) -> None:
    ledger = open_ledger(root)
    (root / "FORMAT").write_bytes(encode_identity(replace(ledger.identity, version=2)))

    with pytest.raises(LedgerFormatError) as caught:
        verify(root)
    assert (caught.value.found, caught.value.supported) == ("2/sha256", "1/sha256")


def test_a_directory_that_cannot_be_listed_is_unreadable(root: Path) -> None:
    append_each(open_ledger(root), "one")
    shutil.rmtree(root / "log")
    (root / "log").write_bytes(b"")

    with pytest.raises(LedgerUnreadableError) as caught:
        verify(root)
    assert caught.value.path == root / "log"
    (root / "FORMAT").unlink()
    with pytest.raises(LedgerUnreadableError):
        verify(root)


def test_a_ledger_without_any_segment_says_so(root: Path) -> None:
    ledger = open_ledger(root)
    live_path(ledger).unlink()

    assert kinds(root) == ["segment_missing"]


def test_a_sealed_file_that_is_none_is_reported_without_a_manifest_too(root: Path) -> None:
    make_all_kinds(root)
    (root / "MANIFEST.json").unlink()
    path = next((root / "log").glob("*.gz"))
    path.unlink()
    path.mkdir()

    assert kinds(root)[:2] == ["manifest", "segment_header"]


def test_without_format_and_header_the_ledger_is_guessed_or_not(root: Path) -> None:
    ledger = open_ledger(root, options=SMALL)
    append_each(ledger, "one")
    (root / "FORMAT").unlink()
    first = ledger.layout.raw(1)
    first.write_bytes(b"x" + first.read_bytes())
    assert kinds(root) == ["format", "segment_header"]

    live_path(ledger).write_bytes(b"nothing\n")
    assert "segment_header" in kinds(root)


def test_a_segment_sealed_between_two_looks_is_looked_at_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_ledger(root, options=SMALL)
    end = append_each(ledger, "one", "two")
    namespace = verify.__globals__
    load = namespace["load"]
    sealed: list[object] = []

    def load_late(source: object, *rest: object) -> object:
        if not sealed:
            sealed.extend(open_sealer(ledger).run())
        return load(source, *rest)

    monkeypatch.setitem(namespace, "load", load_late)

    report = verify(root, end)
    assert report.ok
    assert report.events == 2


def test_an_empty_ledger_is_clean(root: Path) -> None:
    ledger = open_ledger(root)

    report = verify(root)

    assert (report.ok, report.events, report.last) == (True, 0, Position.start)
    assert contents(ledger) == []


def test_a_damaged_batch_is_left_out_whole(root: Path) -> None:
    ledger = open_ledger(root)
    append(ledger, [["one"]], [["two a", "two b", "two c"]], [["three"]])
    path = live_path(ledger)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], *lines[4:]]))

    report = verify(root)

    assert [problem.kind for problem in report.problems] == ["order"]
    assert report.last.seq == 5


def test_a_foreign_segment_is_reported(root: Path, tmp_path: Path) -> None:
    ledger = open_ledger(root, options=SMALL)
    append_each(ledger, "one")
    header = seal_line(b"segment", MemoryDeleted(salt="0"))
    live_path(ledger).write_bytes(header)

    assert kinds(root) == ["segment_header"]
    assert isinstance(ledger, Ledger)
    assert tmp_path.exists()


def test_a_record_that_was_seen_and_cannot_be_read_any_more_is_named(root: Path) -> None:
    ledger = open_ledger(root)
    append_each(ledger, "one")
    seen = append_each(ledger, "two", known=Position.start)
    append_each(ledger, "three", known=seen)
    path = live_path(ledger)
    path.write_bytes(path.read_bytes().replace(b'"two"', b'"tw\xff"'))

    found = [problem for problem in verify(root, seen).problems if problem.kind == "checkpoint"]

    assert [(problem.seq, problem.detail) for problem in found] == [
        (2, "record 2 was seen before and is not there")
    ]
