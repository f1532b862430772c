"""Chains: what comes from one file stands in the order of what it tells of, and closes up."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest

from server import memory_decisions
from server.errors import UndoConflictError
from tests.support.chains import chain_faults
from tests.support.store import Client, Home

FILE = "notes/pump.md"


@pytest.fixture
def client(home: Home) -> Iterator[Client]:
    yield home.open()
    everything = home.open().listed(include_superseded=True, include_expired=True)
    assert chain_faults(everything) == []


def note(client: Client, event_at: str | None = None, **fields: Any) -> str:
    dated: dict[str, Any] = {} if event_at is None else {"event_at": event_at}
    return client.add(f"pump note of {event_at}", source_file=FILE, **dated, **fields).id


def links(client: Client, *ids: str) -> list[tuple[str | None, str | None]]:
    return [
        (memory.supersedes, memory.superseded_by) for memory in client.get(*ids).memories
    ]  # fmt: skip


def chain_of_five(client: Client) -> list[str]:
    """Oldest first."""
    ids = [client.add("version 0").id]
    for number in range(1, 5):
        ids.append(client.supersede(ids[-1], f"version {number}"))
    return ids


def two_heads_and_their_successor(home: Home, client: Client) -> tuple[str, str, str]:
    """A dated note and an undated one, of which none is the newer, and one that follows both."""
    undated = note(client)
    dated = client.add("an old note", source_file=FILE, event_at="2026-01-01")
    assert undated in " ".join(dated.notes)
    home.clock.advance(days=1)
    return undated, dated.id, note(client)


@pytest.mark.parametrize("months", [[1, 2, 3], [3, 2, 1], [2, 3, 1], [3, 1, 2], [2, 1, 3]])
def test_notes_of_one_file_stand_in_the_order_of_their_dates_however_they_arrive(
    client: Client, months: list[int]
) -> None:
    by_month = {month: note(client, f"2026-0{month}-01") for month in months}

    first, second, third = (by_month[month] for month in (1, 2, 3))
    assert links(client, first, second, third) == [
        (None, second),
        (first, third),
        (second, None),
    ]


def test_a_note_put_in_behind_a_newer_one_says_so_and_is_history(client: Client) -> None:
    newer = note(client, "2026-03")

    added = client.add("of February", source_file=FILE, event_at="2026-02")

    assert (added.superseded_by, added.superseded_ids, added.state) == (newer, (), "superseded")
    assert client.found("February") == []
    assert client.found("pump", as_of="2026-02-15") == []
    assert client.found("of", as_of="2026-02-15") == [added.id]


def test_a_note_of_another_scope_or_file_supersedes_nothing(client: Client) -> None:
    first = note(client)

    others = [note(client, scope="elsewhere"), client.add("x", source_file="other.md").id]

    assert links(client, first, *others) == [(None, None)] * 3


def test_several_heads_are_superseded_together(home: Home, client: Client) -> None:
    undated, dated, newest = two_heads_and_their_successor(home, client)

    assert links(client, undated, dated, newest) == [
        (None, newest),
        (None, newest),
        (dated, None),
    ]


def test_deleting_the_one_of_several_that_is_named_leaves_another_named(
    home: Home, client: Client
) -> None:
    undated, dated, newest = two_heads_and_their_successor(home, client)

    client.delete(dated)

    assert links(client, undated, newest) == [(None, newest), (undated, None)]


def test_deleting_what_superseded_several_makes_all_of_them_current(
    home: Home, client: Client
) -> None:
    undated, dated, newest = two_heads_and_their_successor(home, client)

    deleted = client.delete_many(ids=[newest])

    assert {*deleted.reactivated_ids} == {undated, dated}
    assert links(client, undated, dated) == [(None, None)] * 2


def test_a_deletion_is_not_undone_once_the_memory_to_return_to_is_deleted(
    home: Home, client: Client
) -> None:
    undated, dated, newest = two_heads_and_their_successor(home, client)
    deleted = client.delete(undated)
    gone = client.delete(newest)

    with client.refused(UndoConflictError, str(gone.position)):
        client.undo(position=deleted.position)
    client.undo(position=gone.position)
    client.undo(position=deleted.position)

    assert links(client, undated, dated, newest)[2] == (dated, None)


def every_set(size: int) -> list[tuple[int, ...]]:
    return [one for count in range(1, size + 1) for one in combinations(range(size), count)]


@pytest.mark.parametrize("gone", every_set(5), ids=str)
def test_a_chain_closes_up_around_any_set_of_gaps_and_opens_again(
    client: Client, gone: tuple[int, ...]
) -> None:
    ids = chain_of_five(client)
    before = links(client, *ids)

    deleted = client.delete_many(ids=[ids[number] for number in gone])

    left = [one for number, one in enumerate(ids) if number not in gone]
    if left:
        assert links(client, *left) == list(
            zip([None, *left[:-1]], [*left[1:], None], strict=True)
        )  # fmt: skip
    assert list(deleted.reactivated_ids) == ([left[-1]] if left and 4 in gone else [])
    client.undo(position=deleted.position)
    assert links(client, *ids) == before


def test_after_the_undo_of_a_bulk_deletion_each_version_holds_in_its_own_time(
    home: Home, client: Client
) -> None:
    first = client.add("the pump is grey").id
    home.clock.advance(days=10)
    second = client.supersede(first, "the pump is green")
    moment = home.clock.now()
    home.clock.advance(days=10)

    client.undo(position=client.delete_many(everything=True).position)

    assert client.found("pump", as_of=moment) == [second]
    assert home.rebuilt().found("pump", as_of=moment) == [second]


def test_adjacent_expired_links_are_cleaned_up_together_and_come_back_together(
    home: Home, client: Client
) -> None:
    first = note(client)
    second, third = note(client, ttl_days=1), note(client, ttl_days=2)
    fourth = note(client)
    home.clock.advance(days=3)

    cleaned = client.health(cleanup=True)

    assert (cleaned.cleaned_expired, cleaned.remaining_expired) == (2, 0)
    assert links(client, first, fourth) == [(None, fourth), (first, None)]
    client.undo(position=cleaned.position)
    back = [supersedes for supersedes, _ in links(client, first, second, third, fourth)]
    assert back == [None, first, second, third]


def test_more_than_one_call_deletes_says_what_remains(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_decisions, "DELETED_MAX", 3)
    ids = chain_of_five(client)

    first = client.delete_many(everything=True)

    assert (first.deleted_count, first.remaining_count, first.matched_count) == (3, 2, 5)
    assert links(client, *ids[3:]) == [(None, ids[4]), (ids[3], None)]
    second = client.delete_many(everything=True)
    assert (second.deleted_count, second.remaining_count) == (2, 0)
