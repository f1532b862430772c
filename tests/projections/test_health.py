"""Health of memories: what has expired, hangs loose, is old or doubtful."""

import shutil

import msgspec
import pytest

from ledger import Batch, MemoryRelinked, NewEvent
from projections import health
from projections.connection import Connection
from projections.queries import workspace_rid
from server.errors import UseCaseError
from server.tool import Call
from tests.support.store import Client, Home


def relink(client: Client, memory_id: str, **links: str) -> None:
    """Write links that no decision would."""
    ledger = client.store.ledger

    def parties(connection: Connection) -> tuple[str, str]:
        row = connection.one("SELECT w.id, a.id FROM workspaces w, agents a")
        assert row is not None
        return row[0], row[1]

    workspace, actor = client.store.reads.run(Call(), parties)
    with ledger.lock(5.0) as writer:
        for _ in writer.catch_up(ledger.position_at()):
            pass
        group = writer.group()
        payload = MemoryRelinked(salt="0" * 32, **links)
        group.add(Batch(workspace, actor, [NewEvent(memory_id, payload, 0)]))
        group.commit()


def test_a_store_in_order_is_healthy(client: Client) -> None:
    client.supersede(client.add("the pump is grey").id, "the pump is green")

    seen = client.health()

    assert (seen.issues, seen.status) == ((), "healthy")
    assert (seen.stats.total_active, seen.stats.total_superseded) == (1, 1)
    assert sum(seen.stats.by_layer.values()) == 1
    assert (seen.cleaned_expired, seen.remaining_expired, seen.position) == (None, None, None)


def test_a_ledger_that_was_put_back_to_an_older_one_takes_no_writes_which_is_said(
    home: Home, client: Client
) -> None:
    client.add("one")
    home.close()
    shutil.copytree(home.path / "ledger", home.path / "older")
    home.open().add("two")
    home.close()
    shutil.rmtree(home.path / "ledger")
    (home.path / "older").rename(home.path / "ledger")
    client = home.open()

    seen = client.health()

    assert seen.status == "degraded"
    assert "older than what the projections hold" in seen.issues[0]
    with pytest.raises(UseCaseError):
        client.add("three")


def test_what_has_expired_is_named_first_expired_first_and_counted(
    home: Home, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "LISTED_MAX", 2)
    ids = [client.add(f"note {days}", ttl_days=days).id for days in (3, 1, 2, 9)]
    home.clock.advance(days=5)

    seen = client.health()

    assert [entry.id for entry in seen.expired] == [ids[1], ids[2]]
    assert seen.expired_count == 3
    assert seen.status == "warning"


def test_the_moment_of_expiry_is_expired_already(home: Home, client: Client) -> None:
    memory = client.add("note", ttl_days=1)
    shown = client.get(memory.id).memories[0]
    assert shown.expires_at is not None

    home.clock.set(shown.expires_at)
    assert client.health().expired_count == 1
    home.clock.advance(seconds=-0.000001)
    assert client.health().expired_count == 0


def test_superseded_memories_that_have_expired_are_cleaned_up_too(
    home: Home, client: Client
) -> None:
    first = client.add("note", ttl_days=1, source_file="a").id
    second = client.add("note again", source_file="a").id
    home.clock.advance(days=2)

    seen = client.health(cleanup=True)

    assert (seen.cleaned_expired, seen.expired_count) == (1, 0)
    assert client.get(first).missing[0].reason == "deleted"
    assert client.get(second).memories[0].supersedes is None


def test_a_link_to_what_is_not_there_and_a_loop_are_named(home: Home, client: Client) -> None:
    orphan, one, two = (client.add(f"note {number}").id for number in range(3))
    relink(client, orphan, supersedes="nobody")
    relink(client, one, superseded_by=two, supersedes=two)
    relink(client, two, superseded_by=one, supersedes=one)

    seen = home.rebuilt().health()

    assert [(link.id, link.missing_supersedes) for link in seen.orphaned_chains] == [
        (orphan, "nobody")
    ]  # fmt: skip
    assert {*seen.looped_ids} == {one, two}
    assert len(seen.issues) >= 2


def test_old_memories_that_nobody_read_are_stale_and_superseded_ones_are_not(
    home: Home, client: Client
) -> None:
    client.add("unread")
    read = client.add("read").id
    client.supersede(client.add("old").id, "new")
    home.clock.advance(days=8)
    client.add("young")

    def look(connection: Connection) -> int:
        rid, now_us = workspace_rid(connection, "default"), home.clock.us
        found = health.memory_health(connection, rid, now_us=now_us, read_ids=[read])
        return found.stale_count

    assert client.store.reads.run(Call(), look) == 2  # "unread" and "new"


def test_doubtful_memories_are_counted_while_they_are_current(client: Client) -> None:
    client.add("doubtful", confidence=0.29)
    client.add("just enough", confidence=0.3)
    old = client.add("doubtful and replaced", confidence=0.1).id
    new = client.supersede(old, "certain")
    client.update(new, confidence=1.0)

    assert client.health().low_confidence_count == 1


def test_a_workspace_without_memories_is_healthy(client: Client) -> None:
    def look(connection: Connection) -> health.MemoryHealth:
        return health.memory_health(connection, None, now_us=0, read_ids=())

    seen = client.store.reads.run(Call(), look)
    assert not any(msgspec.structs.astuple(seen))
    assert client.health().expired_count == 0


def test_what_the_doctor_finds_is_an_issue_with_what_to_do(home: Home, client: Client) -> None:
    client.add("kept")
    home.path.chmod(0o755)
    leftover = home.path / "ledger" / "FORMAT.tmp"
    leftover.touch(0o600)
    warned = client.health()

    assert warned.status == "warning"
    assert any("FORMAT.tmp; delete them" in each for each in warned.issues)
    assert any("other users may use" in each and "chmod" in each for each in warned.issues)
