"""Group E, a ledger whose newest records were cut off: what shows it, and what cannot be proven."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cases.ways import CommandHost, Run
from tests.support.store import Home


@pytest.fixture
def head(home: Home, run: Run) -> str:
    """Ten memories, and the head as it was noted then; records 1 and 2 are not memories."""
    client = home.open()
    for number in range(10):
        client.add(f"heron number {number}")
    home.close()
    return run("digest").out.decode().splitlines()[0]


def _cut(home: Home, records: int) -> None:
    (segment,) = home.segments
    segment.write_bytes(b"".join(segment.read_bytes().splitlines(keepends=True)[:-records]))


def _without_projections(home: Home) -> None:
    shutil.rmtree(home.path / "projections")


@pytest.mark.guarantee("G-HEAD-1")
@pytest.mark.parametrize(
    ("records", "missing"), [(1, b"record 12 is missing"), (3, b"records 10 to 12 are missing")]
)
def test_e1_a_noted_head_shows_a_cut_and_names_what_is_missing(
    home: Home, run: Run, head: str, records: int, missing: bytes
) -> None:
    assert run("verify", "--head", head).status == 0
    _cut(home, records)
    _without_projections(home)
    before = home.segments[0].read_bytes()

    found = run("verify", "--head", head)

    assert found.status == 1
    assert missing + b", and the last was seen before" in found.out
    (problem,) = json.loads(run("verify", "--head", head, "--json").out)["ledger"]["problems"]
    assert (problem["kind"], problem["seq"]) == ("checkpoint", 12)
    assert home.segments[0].read_bytes() == before


def test_e1_alone_verify_says_what_it_cannot_prove(home: Home, run: Run, head: str) -> None:
    assert b"not proven: that no record after 12 was cut off at the end" in run("verify").out
    _cut(home, 3)
    _without_projections(home)

    found = run("verify")

    assert found.status == 0
    assert b"not proven: that no record after 0 was cut off at the end" in found.out
    assert json.loads(run("verify", "--json").out)["proven_to"] == 0
    shown = run("verify", "--head", head.removeprefix("ledger "), "--json")
    assert json.loads(shown.out)["proven_to"] == 12


@pytest.mark.usefixtures("head")
def test_e1_the_projections_are_an_anchor_of_the_stores_own(home: Home, run: Run) -> None:
    _cut(home, 3)

    found = run("verify")

    assert found.status == 1
    assert b"12" in found.out + found.err


def test_e1_the_projections_of_the_cut_ledger_do_not_stand_in_for_a_head(
    home: Home, run: Run, head: str
) -> None:
    _cut(home, 3)
    home.rebuilt()
    home.close()

    assert run("verify").status == 0
    assert run("verify", "--head", head).status == 1


@pytest.mark.guarantee("G-HEAD-1")
def test_e1_a_head_of_another_history_is_not_held(home: Home, run: Run, head: str) -> None:
    _cut(home, 3)
    client = home.rebuilt()
    for number in range(5):
        client.add(f"crane number {number}")
    home.close()

    found = run("verify", "--head", head)

    assert found.status == 1
    assert b"record 12 is not the one that was seen" in found.out


def test_e1_a_crash_tail_is_told_apart_from_a_cut(home: Home, run: Run, head: str) -> None:
    (segment,) = home.segments
    whole = segment.read_bytes()
    segment.write_bytes(whole + whole.splitlines(keepends=True)[-1][:50])

    torn = json.loads(run("verify", "--head", head, "--json").out)["ledger"]

    assert [problem["kind"] for problem in torn["problems"]] == ["torn_tail"]
    assert torn["torn_bytes"] == 50


@pytest.mark.parametrize(
    "head", ["", "12", "ledger", "twelve abc", "12 abc", "-1 " + "0" * 64, "12 " + "Z" * 64]
)
def test_e1_what_is_no_head_is_refused(host: CommandHost, tmp_path: Path, head: str) -> None:
    refused = host.run(tmp_path, "verify", f"--head={head}")

    assert refused.status == 2
    assert b"no head" in refused.err


def test_e1_the_head_of_an_empty_store_is_held_by_every_later_one(home: Home, run: Run) -> None:
    home.open()
    home.close()
    head = run("digest").out.decode().splitlines()[0]
    client = home.open()
    client.add("heron")
    home.close()

    assert run("verify", "--head", head).status == 0


# ---------------------------------------------------------------------------- checkpoints


@pytest.fixture
def published(run: Run, head: str, folder: Path) -> Path:
    """A checkpoint of the ten, kept where the store is not; the store keeps it too."""
    del head
    assert run("checkpoint", "create").status == 0
    assert run("checkpoint", "publish-to", str(folder / "published")).status == 0
    return folder / "published"


def _without_own_checkpoints(home: Home) -> None:
    (home.path / "ledger" / "checkpoints").unlink()


def test_e1_a_published_checkpoint_shows_a_cut_and_names_what_is_missing(
    home: Home, run: Run, published: Path
) -> None:
    assert run("verify", "--against", str(published)).status == 0
    _cut(home, 3)
    _without_projections(home)
    _without_own_checkpoints(home)
    assert run("verify").status == 0

    found = run("verify", "--against", str(published))

    assert found.status == 1
    assert b"records 10 to 12 are missing, and the checkpoint has signed up to 12" in found.out
    report = json.loads(run("verify", "--against", str(published), "--json").out)
    (problem,) = report["ledger"]["problems"]
    assert (problem["kind"], problem["segment"]) == ("checkpoint", str(published))
    assert report["proven_to"] == 12


@pytest.mark.usefixtures("published")
def test_e1_the_stores_own_checkpoint_shows_the_cut_to_verify_alone(home: Home, run: Run) -> None:
    _cut(home, 3)
    _without_projections(home)

    found = run("verify")

    assert found.status == 1
    assert b"records 10 to 12 are missing" in found.out
    assert b"not proven: that no record after 12 was cut off at the end" in found.out


@pytest.mark.usefixtures("published")
def test_e1_what_is_left_of_a_cut_store_is_read_and_nothing_is_written(
    home: Home, run: Run
) -> None:
    _cut(home, 3)
    _without_projections(home)
    before = home.segments[0].read_bytes()

    listed = run("list", "--json")
    refused = run("add", "a bittern")

    assert listed.status == 0
    assert json.loads(listed.out)["total"] == 7
    assert refused.status == 1
    assert b"record 12 was seen, the ledger now ends at 9" in refused.err
    assert home.segments[0].read_bytes() == before


def test_e1_a_crash_tail_is_no_cut_to_a_checkpoint(home: Home, run: Run, published: Path) -> None:
    (segment,) = home.segments
    whole = segment.read_bytes()
    segment.write_bytes(whole + whole.splitlines(keepends=True)[-1][:50])
    against = ("--against", str(published), "--json")

    torn = json.loads(run("verify", *against).out)["ledger"]
    assert [problem["kind"] for problem in torn["problems"]] == ["torn_tail"]

    segment.write_bytes(whole[:-50])  # in the middle of what was signed
    cut = json.loads(run("verify", *against).out)["ledger"]
    assert "checkpoint" in [problem["kind"] for problem in cut["problems"]]
    assert "record 12 is missing" in str(cut["problems"])


def test_e1_a_history_written_anew_and_signed_anew_does_not_extend_what_was_published(
    home: Home, run: Run, published: Path
) -> None:
    _cut(home, 3)
    _without_own_checkpoints(home)
    client = home.rebuilt()
    for number in range(5):
        client.add(f"crane number {number}")
    home.close()
    assert run("checkpoint", "create").status == 0
    assert run("verify").status == 0

    found = run("verify", "--against", str(published))
    refused = run("checkpoint", "publish-to", str(published))

    assert found.status == 1
    assert b"records 1 to 12 are not those that were signed" in found.out
    assert refused.status == 1


def test_e1_an_earlier_export_shows_a_cut_and_names_what_is_missing(
    home: Home, run: Run, head: str, folder: Path
) -> None:
    assert head
    assert run("audit", "export", str(folder / "export")).status == 0
    kept = str(folder / "export" / "checkpoint")
    assert run("verify", "--against", kept).status == 0
    _cut(home, 3)
    _without_projections(home)
    (home.path / "ledger" / "checkpoints").unlink()

    assert run("verify").status == 0
    found = run("verify", "--against", kept)

    assert found.status == 1
    assert b"records 10 to 12 are missing" in found.out
