"""A bundle against a file of several checkpoints, as `checkpoint publish-to` keeps them."""

from pathlib import Path

import pytest

from ledger import Ledger
from server.bundle_scope import Scope
from tests.support.bundles import (
    ANA,
    Verdict,
    checked,
    make_bundle,
    note_at,
    small_ledger,
)

END = 14


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("note-files")


@pytest.fixture(scope="module")
def ledger(folder: Path) -> Ledger:
    ledger = small_ledger(folder / "ledger")
    make_bundle(ledger, folder / "whole")
    make_bundle(ledger, folder / "memory", Scope(memory=ANA, to_seq=END), earlier=6)
    return ledger


@pytest.fixture(scope="module")
def foreign(folder: Path) -> bytes:
    """A checkpoint of another ledger."""
    return note_at(small_ledger(folder / "foreign-ledger", seed=100), 6)


def compared(folder: Path, notes: bytes, bundle: str = "whole") -> Verdict:
    kept = folder / "kept"
    kept.write_bytes(notes)
    return checked(folder / bundle, "--checkpoint", str(kept))


@pytest.mark.parametrize("between", [b"", b"\n", b"\n\n"])
def test_each_of_the_file_is_compared(folder: Path, ledger: Ledger, between: bytes) -> None:
    verdict = compared(folder, between.join(note_at(ledger, size) for size in (3, 6, END)))

    assert verdict.status == 0
    assert [text for text in verdict.proven if text.startswith("the given")] == [
        f"the given checkpoint no. {number} (position {size}) is of the same history"
        for number, size in ((1, 3), (2, 6), (3, END))
    ]


def test_those_of_other_ledgers_are_passed_over(
    folder: Path, ledger: Ledger, foreign: bytes
) -> None:
    verdict = compared(folder, foreign + note_at(ledger, 6) + foreign)

    assert verdict.status == 0
    assert "the given checkpoint (position 6) is of the same history" in verdict.proven


def test_a_file_of_other_ledgers_alone_proves_nothing(folder: Path, foreign: bytes) -> None:
    assert compared(folder, foreign + foreign).kinds == ["signature"]


@pytest.mark.parametrize("at", [0, 1, 2])
def test_one_that_was_altered_is_named(folder: Path, ledger: Ledger, at: int) -> None:
    notes = [note_at(ledger, size) for size in (3, 6, END)]
    notes[at] = notes[at].replace(b"\n%d\n" % (3, 6, END)[at], b"\n4\n", 1)

    verdict = compared(folder, b"".join(notes))

    assert verdict.kinds == ["signature"]
    assert f"the given checkpoint no. {at + 1}" in verdict.problems[0]["detail"]


@pytest.mark.parametrize("rest", [b"mnemolog/", b"\n\nwords\n", b"\xe2\x80\x94 a AAAA"])
def test_an_end_that_is_no_note_is_named(folder: Path, ledger: Ledger, rest: bytes) -> None:
    origin = ledger.identity.origin.encode()
    notes = note_at(ledger, 3) + note_at(ledger, 6)

    assert compared(folder, notes + origin + b"\n" + rest).kinds == ["checkpoint"]


def test_a_part_that_leads_to_some_only_is_not_called_compared(
    folder: Path, ledger: Ledger
) -> None:
    verdict = compared(folder, note_at(ledger, 5) + note_at(ledger, 6), "memory")

    assert verdict.status == 2
    assert "holds no proof for the size 5 of the given checkpoint no. 1" in verdict.cannot_look
