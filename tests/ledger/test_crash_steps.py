"""The process dies at each call that changes the disk; then the ledger is opened again."""

import itertools
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ledger import Ledger, LedgerOptions, LedgerWriteError, Position, verify
from tests.support.ledgers import (
    SMALL,
    Crash,
    OrderedFiles,
    append,
    append_each,
    batch,
    close_opened,
    contents,
    live_path,
    open_ledger,
    open_sealer,
)
from tests.support.redactions import (
    digests,
    inflated,
    name,
    open_redactor,
    raw_lines,
    said,
)

Step = Callable[[Ledger], object]


def prepare(root: Path) -> tuple[Position, list[str]]:
    ledger = open_ledger(root, options=SMALL)
    end = append_each(ledger, "one", "two", "three")
    return end, ["one", "two", "three"]


def append_and_roll(ledger: Ledger) -> object:
    return append(ledger, [["four a", "four b"], ["five"]])


def cut_a_tear(ledger: Ledger) -> object:
    with live_path(ledger).open("ab") as file:
        file.write(b'{"h":{"seq":4')
    return append_each(ledger, "four a")


def seal_all(ledger: Ledger) -> object:
    return open_sealer(ledger).run()


def seal_all_gzip(ledger: Ledger) -> object:
    gzipped = open_ledger(ledger.layout.root, files=ledger.files, options=LedgerOptions(codec="gz"))
    return open_sealer(gzipped).run()


def fail_and_replace(ledger: Ledger) -> object:
    assert isinstance(ledger.files, OrderedFiles)
    with ledger.lock(1) as writer:
        list(writer.catch_up(None))
        ledger.files.fail("sync", 5)
        group = writer.group()
        group.add(batch("lost"))
        with pytest.raises(LedgerWriteError):
            group.commit()
    return append_each(ledger, "four a")


STEPS: list[Step] = [append_and_roll, cut_a_tear, seal_all, seal_all_gzip, fail_and_replace]


@pytest.mark.guarantee("G-ACK-1", "G-BATCH-1")
@pytest.mark.parametrize("step", STEPS, ids=lambda step: str(step.__name__))
def test_a_ledger_opens_and_goes_on_whenever_its_process_dies(tmp_path: Path, step: Step) -> None:
    template = tmp_path / "template"
    known, texts = prepare(template)
    for crash_at in itertools.count():
        close_opened()
        root = tmp_path / "l"
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(template, root)
        files = OrderedFiles(crash_at)
        dead = open_ledger(root, options=SMALL, files=files)
        try:
            step(dead)
        except Crash:
            crashed = True
        else:
            crashed = False

        report = verify(root, known)
        assert [problem.kind for problem in report.problems] in ([], ["torn_tail"])
        ledger = open_ledger(root, options=SMALL)
        end = append_each(ledger, "after", known=known)
        found = contents(ledger)
        assert found[:3] == texts
        assert found[-1] == "after"
        assert found[3:-1] in ([], ["four a"], ["lost"], ["four a", "four b"]) or found[3:-1] == [
            "four a",
            "four b",
            "five",
        ]
        open_sealer(ledger).run()
        assert open_sealer(ledger).pending() == []
        assert verify(root, end).problems == []
        assert contents(ledger) == found
        assert not list((root / "log").glob("*.tmp"))
        if not crashed:
            assert crash_at > 5
            break


def test_a_ledger_is_created_whole_or_not_at_all(tmp_path: Path) -> None:
    for crash_at in itertools.count():
        close_opened()
        root = tmp_path / "home" / "ledger"
        shutil.rmtree(tmp_path / "home", ignore_errors=True)
        try:
            open_ledger(root, files=OrderedFiles(crash_at))
        except Crash:
            crashed = True
        else:
            crashed = False

        ledger = open_ledger(root)
        end = append_each(ledger, "one")
        assert contents(ledger) == ["one"]
        assert verify(root, end).ok
        if not crashed:
            assert crash_at > 10
            break


@pytest.mark.parametrize("where", ["sealed", "rolled", "live"])
def test_a_redaction_is_finished_whenever_its_process_dies(tmp_path: Path, where: str) -> None:
    template = tmp_path / "template"
    known, texts = prepare(template)
    if where == "sealed":
        open_sealer(open_ledger(template)).run()
    if where == "live":
        known = append_each(open_ledger(template), "four", known=known)
        texts = [*texts, "four"]
    (template / "quarantine" / "torn").write_bytes(b"half of tw")
    targets = digests(open_ledger(template), [2, len(texts)])
    known = name(open_ledger(template), targets, known)
    before = raw_lines(template)
    for crash_at in itertools.count():
        close_opened()
        root = tmp_path / "l"
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(template, root)
        dead = open_ledger(root, files=OrderedFiles(crash_at))
        try:
            open_redactor(dead).rewrite(targets)
        except Crash:
            crashed = True
        else:
            crashed = False

        kinds = [problem.kind for problem in verify(root, known).problems]
        assert kinds in ([], ["torn_tail"])
        ledger = open_ledger(root)
        found = said(ledger.read(Position.start))
        assert all(now in {None, then} for now, then in zip(found, texts, strict=True))
        end = append_each(ledger, "after", known=known)
        open_redactor(ledger).rewrite(targets)
        report = verify(root, end)
        assert (report.problems, report.notes, report.redacted) == ([], [], 2)
        after = raw_lines(root)
        assert {seq: line for seq, line in before.items() if seq not in targets} == {
            seq: after[seq] for seq in before if seq not in targets
        }
        assert not any(b"two" in data for data in inflated(root).values())
        assert list((root / "quarantine").iterdir()) == []
        if not crashed:
            assert crash_at > 15
            break


@pytest.mark.guarantee("G-FILES-1")
@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_every_file_is_private_from_its_creation(tmp_path: Path, umask: int) -> None:
    modes: set[tuple[str, int]] = set()

    class Watching(OrderedFiles):
        def _enter(self, call: str) -> int | None:
            for path in root.rglob("*"):
                kind = "directory" if path.is_dir() else "file"
                modes.add((kind, path.stat().st_mode & 0o777))
            return super()._enter(call)

    root = tmp_path / "l"
    before = os.umask(umask)
    try:
        ledger = open_ledger(root, options=SMALL, files=Watching())
        append_each(ledger, "one", "two")
        with live_path(ledger).open("ab") as file:
            file.write(b"torn")
        append_each(ledger, "three")
        open_sealer(ledger).run()
    finally:
        os.umask(before)

    assert modes == {("directory", 0o700), ("file", 0o600)}
