"""What a redaction does about copies: of the past, put aside by a restore, and outside the home."""

import json
import shutil
from pathlib import Path
from typing import Final

import pytest

from ledger import (
    MemoryRedacted,
    Position,
    RandomIds,
    RedactionCompleted,
    Restoration,
    backup,
    verify,
)
from projections.copies import note_copy
from server import redaction
from tests.support.store import Client, Home
from tests.support.traces import parts_of, traces_beside, traces_of

CANARY: Final = "zqcanary7781"
SECRET: Final = f"the password is {CANARY} indeed"


def backed_up(client: Client, target: Path) -> Path:
    backup(client.store.ledger, target, lambda *_: None, lock_timeout_s=5.0)
    return target


def restored(home: Home, source: Path) -> Client:
    """Put a backup in place of the ledger, and open the store again."""
    home.close()
    with Restoration(
        source, home.path, replace=True, clock=home.clock, ids=RandomIds()
    ) as restoration:
        restoration.put_in_place()
    shutil.rmtree(home.path / "projections")
    return home.open()


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The upkeep does not wait between two attempts."""
    monkeypatch.setattr(redaction, "RETRY_S_MAX", 0.0)


@pytest.fixture(name="aside")
def _aside(home: Home, client: Client, tmp_path: Path) -> tuple[Client, str, Path]:
    """A store that was restored, a secret it holds, and the ledger that was put aside."""
    secret = client.add(SECRET).id
    copy = backed_up(client, tmp_path / "copy")
    client.add(f"{SECRET} once more, after the backup")
    client = restored(home, copy)
    (folder,) = home.path.glob("ledger.replaced-*")
    return client, secret, folder


def test_copies_of_the_past_go_with_what_they_hold(home: Home, client: Client) -> None:
    secret = client.add(SECRET).id
    moment = client.position()
    assert client.found(CANARY, known_at=moment) == [secret]
    past = home.path / "projections" / "past"
    assert list(past.glob("*/*.db"))

    assert client.redact(secret).completed

    assert not list(past.glob("*/*.db"))
    assert client.found("password", known_at=moment) == []
    assert traces_beside(home.path, parts_of(CANARY)) == {}


def test_what_was_written_since_the_first_erased_record_is_listed(
    home: Home, client: Client, tmp_path: Path
) -> None:
    client.add("the ferry leaves at noon")
    before = client.position()
    secret = client.add(SECRET).id
    first = client.position()
    client.update(secret, content=f"{SECRET} changed")
    for name, position in (("before", before), ("at", first), ("later", client.position())):
        (tmp_path / name).write_text("something")
        note_copy(
            home.path,
            kind="export",
            path=tmp_path / name,
            position=position,
            now_us=home.clock.us,
            warn=pytest.fail,
        )
    wanted = tuple(f"export: {tmp_path / name}" for name in ("at", "later"))

    assert client.redact(secret, dry_run=True).outside == wanted
    assert client.redact(secret).outside == wanted
    assert (tmp_path / "at").read_text() == "something"


def test_a_ledger_that_a_restore_put_aside_loses_it_too_and_still_verifies(
    home: Home, aside: tuple[Client, str, Path]
) -> None:
    client, secret, folder = aside
    assert traces_beside(folder, [CANARY]) != {}

    dry = client.redact(secret, dry_run=True)
    result = client.redact(secret)

    assert dry.outside == result.outside == ()
    # What it alone holds is no part of the store that is redacted: it is named until it is gone.
    assert not result.completed
    assert all(folder.name in each for each in result.held_by)
    report = verify(folder)
    assert (report.ok, report.redacted) == (True, 1)
    shutil.rmtree(folder)
    client.store.upkeep.run_once()
    assert client.inspect(secret).redacted[0].completed
    home.close()
    assert traces_of(home.path, parts_of(CANARY)) == {}


def test_a_ledger_put_aside_that_holds_no_more_is_no_obstacle(
    home: Home, client: Client, tmp_path: Path
) -> None:
    secret = client.add(SECRET).id
    client = restored(home, backed_up(client, tmp_path / "copy"))
    (folder,) = home.path.glob("ledger.replaced-*")

    result = client.redact(secret)

    assert result.completed
    assert f"erased too in {folder.name}, which a restore put aside" in result.notes
    report = verify(folder)
    assert (report.ok, report.redacted) == (True, 1)
    assert traces_beside(home.path, parts_of(CANARY)) == {}
    assert client.redact(client.add("of something else").id).notes.count("aside") == 0


def test_one_that_is_damaged_keeps_it_from_being_completed(
    home: Home, aside: tuple[Client, str, Path]
) -> None:
    client, secret, folder = aside
    (folder / "FORMAT").write_bytes(b"nothing of the kind")

    result = client.redact(secret)

    assert not result.completed
    assert f"{folder.name} was put aside by a restore and is damaged" in result.held_by[0]
    assert client.found(CANARY) == []
    shutil.rmtree(folder)
    client.store.upkeep.run_once()
    assert client.inspect(secret).redacted[0].completed
    assert traces_beside(home.path, parts_of(CANARY)) == {}


def test_what_a_killed_restore_left_is_removed(home: Home, client: Client) -> None:
    secret = client.add(SECRET).id
    left = home.path / "ledger.partial-0123456789abcdef"
    shutil.copytree(home.path / "ledger", left)

    assert client.redact(secret).completed

    assert not left.exists()
    assert traces_beside(home.path, parts_of(CANARY)) == {}


def test_a_redaction_that_a_restore_carried_over_is_finished_with_a_receipt(
    home: Home, client: Client, tmp_path: Path
) -> None:
    secret, other = client.add(SECRET).id, client.add(f"{SECRET} again", entity_name="Ana").id
    copy = backed_up(client, tmp_path / "copy")
    client.redact(secret)
    client.redact(other)
    ids = [client.inspect(each).redacted[0].id for each in (secret, other)]
    client = restored(home, copy)

    client.store.upkeep.run_once()

    records = [*client.store.ledger.read(Position.start)]
    carried = [each for each in records if isinstance(each.payload, MemoryRedacted)]
    assert [each.header.cause for each in carried] == ids
    receipts = [each for each in records if isinstance(each.payload, RedactionCompleted)]
    assert [each.header.sub for each in receipts] == ids
    for memory, carried_over in zip((secret, other), ids, strict=True):
        seen = client.inspect(memory)
        assert seen.status == "redacted"
        (known,) = seen.redacted
        assert (known.id, known.completed, known.reason, known.by) == (carried_over, True, None, "")
    known_at = client.inspect(known_at=carried[0].seq - 1).known_at
    assert known_at is not None
    assert known_at.redacted_since == 2
    assert home.verify().problems == []
    end = client.position()
    client = home.rebuilt()
    client.store.upkeep.run_once()
    assert client.position() == end
    assert client.inspect(secret).redacted[0].completed
    home.close()
    assert traces_of(home.path, parts_of(CANARY)) == {}
    assert CANARY in json.dumps(traces_of(copy, [CANARY]))
