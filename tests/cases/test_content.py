"""Group C, content limits and duplicates."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from server.errors import IdempotencyConflictError, InvalidArgumentsError, NotFoundError
from server.results import AddManyResult
from tests.support.store import Client, Home


def batch(client: Client, memories: Sequence[Any], **fields: object) -> AddManyResult:
    result = client.call("memory_add_many", {"memories": memories, **fields})
    assert isinstance(result, AddManyResult)
    return result


BLANKS = ("", " ", "  \n\t ", "\u3000\u2003", "\x1c\x1f", "\u0085")


@pytest.mark.parametrize("blank", BLANKS)
def test_c1_blank_content_is_refused_everywhere_and_nothing_is_written(
    client: Client, blank: str
) -> None:
    stored = client.add("the depot is in Quarry Lane")
    with client.refused(InvalidArgumentsError, "`content`"):
        client.add(blank)
    with client.refused(InvalidArgumentsError, "`content`"):
        client.update(stored.id, content=blank)
    with client.refused(InvalidArgumentsError, "`new_content`"):
        client.update(stored.id, supersede=True, new_content=blank)
    with client.refused(InvalidArgumentsError, "`content`"):
        client.update(stored.id, supersede=True, content=blank)
    assert client.inspect().total == 1
    assert client.content(stored.id) == "the depot is in Quarry Lane"


def test_c1_the_first_refused_write_leaves_an_empty_ledger(client: Client) -> None:
    with client.refused(InvalidArgumentsError):
        client.add(" ")
    assert client.position() == 0
    assert client.inspect().total == 0


def test_c2_too_long_a_text_is_refused_with_the_limit(client: Client) -> None:
    with client.refused(InvalidArgumentsError, "`content`", "100000"):
        client.add("word " * 400_000 + "the heron password hint is teal")


def test_c2_the_end_of_the_longest_text_is_found_and_all_of_it_comes_back(client: Client) -> None:
    end = " the heron password hint is teal"
    text = ("The quay was quiet. " * 5_000)[: 100_000 - len(end)] + end
    stored = client.add(text).id
    assert len(text) == 100_000
    found = client.search("heron teal hint").memories
    assert [memory.id for memory in found] == [stored]
    assert found[0].content == text
    assert "heron password hint" in found[0].snippet
    assert client.found("hint is teal", mode="exact") == [stored]
    assert client.content(stored) == text


def test_c1_a_batch_of_blanks_writes_nothing(client: Client) -> None:
    memories = [{"content": blank, "layer": "semantic"} for blank in BLANKS]
    result = batch(client, memories)
    assert (result.added_count, result.refused_count) == (0, len(BLANKS))
    for item in result.results:
        assert item.added is None
        assert item.error is not None
        assert "`content`" in item.error.message
    assert client.position() == 0


def test_c1_what_is_wrong_with_one_item_of_a_batch_is_told_for_it_alone(client: Client) -> None:
    good = {"content": "ok", "layer": "semantic"}
    wrong: list[Any] = [
        {**good, "content": None},
        {**good, "layer": "nonesuch"},
        {**good, "event_at": "last blursday"},
        {**good, "ttl_days": 1e300},
        {**good, "valid_from": "2026", "valid_until": "2025"},
        {**good, "contnt": "x"},
        {"layer": "semantic"},
        5,
        None,
        [],
        "content",
    ]
    memories = [each for item in wrong for each in (item, good)]
    result = batch(client, memories)
    assert (result.added_count, result.refused_count) == (len(wrong), len(wrong))
    assert [item.error is None for item in result.results] == [False, True] * len(wrong)
    for item in result.results[::2]:
        assert item.error is not None
        assert item.error.code == "invalid_arguments"
    assert len(client.found("ok")) == client.inspect().total == len(wrong)
    no_batches: tuple[object, ...] = ([], [good] * 101, {}, None)
    for given in no_batches:
        with client.refused(InvalidArgumentsError, "`memories`"):
            client.call("memory_add_many", {"memories": given})


def test_c3_one_long_word_disturbs_nothing(home: Home, client: Client) -> None:
    choose = random.Random(3)
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    run = "".join(choose.choices(letters, k=90_000))
    contents = ("ok one", run, "ok two", run * 2)
    result = batch(client, [{"content": each, "layer": "semantic"} for each in contents])
    assert (result.added_count, result.refused_count) == (3, 1)
    refused = result.results[3].error
    assert refused is not None
    assert "100000" in refused.message
    first, big, second = (item.added.id for item in result.results if item.added is not None)
    for seen in home.lives(client):
        assert seen.inspect().total == 3
        assert {*seen.found("ok")} == {first, second}
        assert seen.found(run[70_000:70_050], mode="exact") == [big]
        assert seen.content(big) == run


def test_c4_a_batch_repeated_with_its_key_stores_only_what_was_not_stored(
    home: Home, client: Client
) -> None:
    contents = ("gate code rule", "", "gate code 7")
    memories = [{"content": content, "layer": "semantic"} for content in contents]
    first = batch(client, memories, idempotency_key="k1")
    ids = [item.added.id for item in first.results if item.added is not None]
    memories[1]["content"] = "gate code 8"
    for number, seen in enumerate(home.lives(client)):
        again = batch(seen, memories, idempotency_key="k1")
        assert again.added_count == int(number == 0)
        repeated = [again.results[index].added for index in (0, 2)]
        assert [each and (each.id, each.created) for each in repeated] == [
            (memory_id, False) for memory_id in ids
        ]
        assert seen.inspect().total == 3


def test_c4_a_key_within_a_batch_stores_once(client: Client) -> None:
    memory = {"content": "gate code rule", "layer": "semantic", "idempotency_key": "k1"}
    result = batch(client, [memory, memory, {**memory, "content": "another"}])
    first, again, other = result.results
    assert first.added is not None
    assert again.added is not None
    assert (again.added.id, again.added.created) == (first.added.id, False)
    assert other.error is not None
    assert other.error.code == "idempotency_conflict"
    assert client.inspect().total == result.added_count == 1


@pytest.mark.guarantee("G-REPEAT-1")
def test_c4_a_key_stores_once_whatever_is_repeated_when(home: Home, client: Client) -> None:
    first = client.add("gate code rule", idempotency_key="k1")
    position = client.position()
    for seen in home.lives(client):
        again = seen.add("gate code rule", idempotency_key="k1")
        assert (again.id, again.created, again.position) == (first.id, False, first.position)
        assert again.notes
        assert seen.position() == position
        assert seen.inspect().total == 1


def test_c4_without_a_key_or_in_another_scope_nothing_is_merged(client: Client) -> None:
    ids = {
        client.add("gate code rule").id,
        client.add("gate code rule").id,
        client.add("gate code rule", scope="alpha").id,
        client.add("gate code rule", scope="alpha", idempotency_key="k1").id,
    }
    assert len(ids) == 4
    assert {*client.found("gate")} == ids


def test_c4_a_key_used_for_something_else_is_a_conflict(client: Client) -> None:
    stored = client.add("gate code rule", idempotency_key="k1")
    with client.refused(IdempotencyConflictError):
        client.add("gate code rule", scope="alpha", idempotency_key="k1")
    with client.refused(IdempotencyConflictError):
        client.delete(stored.id, idempotency_key="k1")
    with client.refused(IdempotencyConflictError):
        client.undo(id=stored.id, idempotency_key="k1")


def test_c4_keys_belong_to_one_workspace_and_one_agent(home: Home, client: Client) -> None:
    ids = {
        client.add("gate code rule", idempotency_key="k1").id,
        home.open("other").add("gate code rule", idempotency_key="k1").id,
        home.open(name="another agent").add("gate code rule", idempotency_key="k1").id,
    }
    assert len(ids) == 3


def test_c4_a_repeat_says_what_became_of_the_memory_since(client: Client) -> None:
    first = client.add("gate code rule", idempotency_key="k1")
    new = client.supersede(first.id, "gate code 7", idempotency_key="k2")
    assert client.add("gate code rule", idempotency_key="k1").state == "superseded"
    client.delete(new, idempotency_key="k3")
    assert client.add("gate code rule", idempotency_key="k1").state == "active"
    repeated = client.update(
        first.id, supersede=True, new_content="gate code 7", idempotency_key="k2"
    )
    assert (repeated.new_id, repeated.state, repeated.changed) == (new, "deleted", False)
    gone = client.delete(new, idempotency_key="k3")
    assert (gone.deleted_id, gone.deleted) == (new, False)


def test_c5_what_was_deleted_can_be_stored_again_and_again(home: Home, client: Client) -> None:
    gone: list[str] = []
    for _ in range(3):
        stored = client.add("gate code rule").id
        assert client.found("gate") == [stored]
        client.delete(stored)
        gone.append(stored)
    live = client.add("gate code rule").id
    for seen in home.lives(client):
        assert seen.found("gate") == seen.found("gate code", mode="exact") == [live]
        assert seen.inspect().total == 1
        for memory_id in gone:
            assert seen.inspect(memory_id).status == "deleted"
            with seen.refused(NotFoundError, "was deleted"):
                seen.update(memory_id, content="x")


@pytest.mark.parametrize(("before", "after"), [(1, True), (0, False), (True, 1), (2, 2.0)])
def test_c5_a_meta_field_that_becomes_equal_but_of_another_kind_is_changed_and_put_back(
    client: Client, before: object, after: object
) -> None:
    memory = client.add("the pump is grey", meta={"done": before}).id

    update = client.update(memory, meta={"done": after})

    assert update.changed
    assert repr(client.get(memory).memories[0].meta) == repr({"done": after})
    client.undo(position=update.position)
    assert repr(client.get(memory).memories[0].meta) == repr({"done": before})


@pytest.mark.parametrize("value", [float("nan"), "\ud800"], ids=["nan", "half a character"])
def test_c5_a_meta_field_that_cannot_be_stored_is_refused_in_a_change_too(
    client: Client, value: object
) -> None:
    memory = client.add("the pump is grey", meta={"state": None}).id

    with client.refused(InvalidArgumentsError, "cannot be stored"):
        client.update(memory, meta={"state": value})
    assert client.get(memory).memories[0].meta == {"state": None}
