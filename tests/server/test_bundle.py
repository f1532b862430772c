"""Audit bundles: what they hold, and that they are there whole or not at all."""

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledger import Ledger, LedgerDamagedError, Position, Signer
from server.bundle import Plan, UnaccountedError, write_bundle
from server.bundle_scope import Scope
from tests.support.bundles import (
    AGENT,
    ANA,
    BOILER,
    HERE,
    OTHER_AGENT,
    SECRET,
    THERE,
    checked,
    checkpoint_at,
    make_bundle,
    note_at,
    private_key,
    small_ledger,
)
from tests.support.ledgers import live_path, tree

END = 14


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return small_ledger(tmp_path / "ledger")


def seqs(folder: Path) -> list[int]:
    lines = (folder / "records.jsonl").read_bytes().splitlines()
    return [json.loads(line)["h"]["seq"] for line in lines]


def plan(ledger: Ledger, **changes: Any) -> Plan:
    fields: dict[str, Any] = {
        "checkpoint": checkpoint_at(ledger, END),
        "note": note_at(ledger, END),
        "key": Signer(ledger.identity.origin, private_key()).key.text,
        "earlier": None,
        "anchors": {},
        "selection": None,
        "redacted": {},
        "facts": {},
        **changes,
    }
    return Plan(**fields)


def test_a_whole_bundle_holds_every_line_of_the_ledger_as_it_stands_there(
    ledger: Ledger, tmp_path: Path
) -> None:
    make_bundle(ledger, tmp_path / "bundle")

    raw = live_path(ledger).read_bytes()
    assert raw[raw.index(b"\n") + 1 :] == (tmp_path / "bundle" / "records.jsonl").read_bytes()
    assert not (tmp_path / "bundle" / "proofs").exists()
    assert checked(tmp_path / "bundle").status == 0


@pytest.mark.parametrize(
    ("scope", "shown"),
    [
        (Scope(memory=ANA, to_seq=END), [1, 2, 3, 8, 14]),
        (Scope(memory=BOILER, to_seq=END), [1, 2, 4, 13]),
        # Its payload is missing; the redaction, its reason, its receipt and its actor are there.
        (Scope(memory=SECRET, to_seq=END), [1, 2, 5, 6, 10, 11, 12]),
        (Scope(workspace=THERE, to_seq=END), [1, 6, 7, 9]),
        (Scope(workspace=HERE, to_seq=END), [1, 2, 3, 4, 5, 6, 8, 10, 11, 12, 13, 14]),
        # What was redacted before says no more whom it was about.
        (Scope(entity_names=("Ana",), to_seq=END), [1, 2, 3, 8, 14]),
        (Scope(from_seq=4, to_seq=5), [1, 2, 4, 5, 6, 10, 11, 12]),
        (Scope(from_seq=14, to_seq=END), [1, 2, 14]),
        (Scope(memory=ANA, from_seq=8, to_seq=13), [1, 2, 8]),
    ],
    ids=str,
)
def test_a_part_holds_what_was_asked_for_who_did_it_and_why_something_is_missing(
    ledger: Ledger, tmp_path: Path, scope: Scope, shown: list[int]
) -> None:
    make_bundle(ledger, tmp_path / "bundle", scope)

    assert seqs(tmp_path / "bundle") == shown
    verdict = checked(tmp_path / "bundle")
    assert (verdict.status, verdict.problems) == (0, [])


def test_the_summary_says_what_was_redacted_by_whom_when_and_why(
    ledger: Ledger, tmp_path: Path
) -> None:
    summary = make_bundle(ledger, tmp_path / "bundle")

    assert summary == json.loads((tmp_path / "bundle" / "summary.json").read_bytes())
    assert (summary["records"], summary["size"], summary["redacted_positions"]) == (
        14,
        14,
        [[5, 5]],
    )
    assert summary["agents"] == {AGENT: "ana's editor", OTHER_AGENT: "bob"}
    (redaction,) = summary["redactions"]
    assert redaction["by"] == "bob"
    assert redaction["reason"] == "Ana asked"
    assert (redaction["records"], redaction["positions"]) == (1, [10])
    assert redaction["at"]
    assert redaction["completed_at"]


def test_what_a_redaction_names_is_left_out_although_it_is_not_erased_yet(
    ledger: Ledger, tmp_path: Path
) -> None:
    digest = {record.seq: record.digest for record in ledger.read(Position.start)}

    with pytest.raises(UnaccountedError) as caught:  # its redaction is beyond the checkpoint
        write_bundle(ledger, tmp_path / "b", plan(ledger, redacted={3: digest[3]}))

    assert caught.value.seq == 3
    assert sorted(tmp_path.iterdir()) == [tmp_path / "ledger"]


def test_an_earlier_checkpoint_comes_out_of_a_part_too(ledger: Ledger, tmp_path: Path) -> None:
    make_bundle(ledger, tmp_path / "bundle", Scope(memory=ANA, to_seq=END), earlier=5)

    verdict = checked(tmp_path / "bundle")

    assert verdict.status == 0
    assert "the earlier checkpoint (position 5) is of the same history" in verdict.proven


def test_folder_and_files_are_their_owners_alone(ledger: Ledger, tmp_path: Path) -> None:
    make_bundle(ledger, tmp_path / "bundle", Scope(memory=ANA, to_seq=END), earlier=3)

    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "bundle").iterdir()
    }
    assert stat.S_IMODE((tmp_path / "bundle").stat().st_mode) == 0o700
    assert set(modes) == {
        "VERIFY.md",
        "checkpoint",
        "earlier-checkpoint",
        "proofs",
        "public-key",
        "records.jsonl",
        "summary.json",
        "verify.py",
    }
    assert set(modes.values()) == {0o600}


def _file(path: Path) -> None:
    path.write_bytes(b"mine")


def _folder(path: Path) -> None:
    path.mkdir()


def _link(path: Path) -> None:
    path.symlink_to("nowhere")


@pytest.mark.parametrize("thing", [_file, _folder, _link])
def test_what_exists_is_not_touched(
    ledger: Ledger, tmp_path: Path, thing: Callable[[Path], None]
) -> None:
    thing(tmp_path / "bundle")
    before = tree(tmp_path)

    with pytest.raises(FileExistsError):
        make_bundle(ledger, tmp_path / "bundle")

    assert tree(tmp_path) == before
    assert len(list(tmp_path.iterdir())) == 2


def test_a_folder_that_appears_meanwhile_is_not_replaced(ledger: Ledger, tmp_path: Path) -> None:
    def tick(seq: int) -> None:
        if seq == END:
            (tmp_path / "bundle").mkdir()

    with pytest.raises(FileExistsError):
        write_bundle(ledger, tmp_path / "bundle", plan(ledger), tick=tick)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["bundle", "ledger"]
    assert list((tmp_path / "bundle").iterdir()) == []


def test_what_is_stopped_half_way_leaves_nothing_behind(ledger: Ledger, tmp_path: Path) -> None:
    def tick(seq: int) -> None:
        if seq == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_bundle(ledger, tmp_path / "bundle", plan(ledger), tick=tick)

    assert sorted(tmp_path.iterdir()) == [tmp_path / "ledger"]


def test_a_ledger_that_is_not_what_was_signed_is_not_exported(
    ledger: Ledger, tmp_path: Path
) -> None:
    other = checkpoint_at(ledger, END)
    wrong = type(other)(other.origin, END, b"\0" * 32)

    with pytest.raises(LedgerDamagedError, match="not what was signed"):
        write_bundle(ledger, tmp_path / "bundle", plan(ledger, checkpoint=wrong))

    assert not (tmp_path / "bundle").exists()
