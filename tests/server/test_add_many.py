"""Batches: each memory on its own, in order, answered one by one."""

from typing import Any

import pytest

from ledger import OsFiles
from server.commands import IDS_MAX
from server.errors import IdempotencyConflictError, InvalidArgumentsError
from server.results import AddResult
from tests.support.store import Client


def item(content: str, **fields: object) -> dict[str, Any]:
    return {"content": content, "layer": "semantic", **fields}


def added(client: Client, *items: object, **fields: object) -> list[AddResult]:
    results = client.add_many(*items, **fields).results
    found = [each.added for each in results if each.added is not None]
    assert len(found) == len(items)
    return found


def test_what_is_refused_stops_no_other_and_is_answered_in_its_place(client: Client) -> None:
    result = client.add_many(item("one"), {"content": "no layer"}, item("\u200b"), 7, item("two"))

    codes = [None if each.error is None else each.error.code for each in result.results]
    assert codes == [None, *["invalid_arguments"] * 3, None]
    assert [each.added is None for each in result.results] == [False, True, True, True, False]
    assert (result.added_count, result.refused_count) == (2, 3)
    assert [memory.content for memory in client.listed(order="oldest")] == ["one", "two"]


def test_a_refusal_names_the_field_of_its_item(client: Client) -> None:
    (refused,) = client.add_many(item("x", confidence=7)).results

    assert refused.error is not None
    assert refused.error.details["field"] == "confidence"


def test_an_item_that_is_no_object_is_named_by_its_place(client: Client) -> None:
    refused = client.add_many(item("x"), 7).results[1].error

    assert refused is not None
    assert refused.details["field"] == "memories[1]"
    assert refused.message.startswith("`memories[1]`")


def test_a_batch_of_refusals_writes_nothing(client: Client) -> None:
    before = client.position()

    result = client.add_many(None, {})

    assert (result.added_count, result.refused_count, client.position()) == (0, 2, before)


@pytest.mark.parametrize("count", [0, IDS_MAX + 1])
def test_a_batch_of_none_or_too_many_is_refused_whole(client: Client, count: int) -> None:
    with client.refused(InvalidArgumentsError, "`memories`"):
        client.add_many(*[item(str(number)) for number in range(count)])


def test_a_batch_shares_one_sync(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    client.add("the first one makes the workspace")
    synced: list[int] = []
    monkeypatch.setattr(OsFiles, "sync", lambda _, fd: synced.append(fd))

    added(client, *[item(f"note {number}") for number in range(IDS_MAX)])

    assert len(synced) == 1


def test_each_memory_is_an_operation_of_its_own_that_can_be_undone(client: Client) -> None:
    first, second = added(client, item("one"), item("two"))

    client.undo(position=first.position)

    assert [memory.id for memory in client.listed()] == [second.id]


def test_later_items_supersede_earlier_ones_of_the_same_file(client: Client) -> None:
    first, second = added(client, item("one", source_file="a"), item("two", source_file="a"))

    assert second.superseded_ids == (first.id,)
    assert [memory.id for memory in client.listed()] == [second.id]


def test_a_batch_sent_again_with_its_key_is_done_once(client: Client) -> None:
    items = [item("one"), {"content": "no layer"}, item("two")]
    first = client.add_many(*items, idempotency_key="k")
    before = client.position()

    again = client.add_many(*items, idempotency_key="k")

    assert client.position() == before
    assert (again.added_count, again.refused_count) == (0, 1)
    for old, new in zip(first.results, again.results, strict=True):
        assert (old.added is None) == (new.added is None)
        if old.added is not None and new.added is not None:
            assert (new.added.id, new.added.created) == (old.added.id, False)
            assert new.added.position == old.added.position


def test_a_batch_that_went_on_after_a_crash_adds_only_what_is_missing(client: Client) -> None:
    client.add_many(item("one"), idempotency_key="k")

    result = client.add_many(item("one"), item("two"), idempotency_key="k")

    assert result.added_count == 1
    assert [memory.content for memory in client.listed(order="oldest")] == ["one", "two"]


def test_an_item_keeps_a_key_of_its_own(client: Client) -> None:
    (first,) = added(client, item("one", idempotency_key="mine"), idempotency_key="k")

    assert client.add("one", idempotency_key="mine").id == first.id
    with client.refused(IdempotencyConflictError):
        client.add("another", idempotency_key="mine")


def test_two_items_with_one_key_are_one_memory_or_a_refusal(client: Client) -> None:
    result = client.add_many(
        item("one", idempotency_key="k"),
        item("one", idempotency_key="k"),
        item("two", idempotency_key="k"),
    )

    first, second, third = result.results
    assert first.added is not None
    assert second.added is not None
    assert (second.added.id, second.added.created) == (first.added.id, False)
    assert third.error is not None
    assert third.error.code == "idempotency_conflict"


def test_an_item_may_be_named_as_a_candidate_by_another_of_its_batch(client: Client) -> None:
    first, second = added(
        client,
        item("the boiler pressure is three bar", entity_name="boiler"),
        item("the boiler pressure is four bar", entity_name="boiler"),
    )

    assert [conflict.id for conflict in second.potential_conflicts] == [first.id]
    assert first.id not in [conflict.id for conflict in first.potential_conflicts]
