"""Similar memories: what a new one may contradict, found with work that does not grow."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from ledger import (
    AgentRegistered,
    Batch,
    MemoryAdded,
    MemoryState,
    NewEvent,
    Position,
    WorkspaceCreated,
)
from projections import similar
from projections.connection import Connection, create_database
from projections.filters import Filters
from projections.queries import find_memory, workspace_rid
from projections.rebuild import replay
from projections.similar import Similar, find_similar
from server.results import AddResult
from server.tool import Call
from tests.support.ledgers import ACTOR, WORKSPACE, open_ledger
from tests.support.store import Client, Home

NOW: Final = "2027-01-01T00:00:00.000000Z"
NOW_US: Final = 1_798_761_600_000_000
WORDS_EACH: Final = 8
STEPS_AT_ONCE: Final = 10

Make = Callable[[int, int], MemoryState]


def candidates(result: AddResult) -> list[str]:
    return [conflict.id for conflict in result.potential_conflicts]


def note(content: str, **fields: object) -> MemoryState:
    return MemoryState(content=content, layer="semantic", entity_name="Ana", **fields)  # type: ignore[arg-type]


# ---------------------------------------------------------------------------- bounds


def built(folder: Path, count: int, make: Make) -> Connection:
    """Make tables that hold so many memories of one entity."""
    ledger = open_ledger(folder / "ledger")
    salt = "0" * 32
    with ledger.lock(5) as writer:
        for _ in writer.catch_up(Position.start):
            pass
        group = writer.group()
        introductions = [
            NewEvent(WORKSPACE, WorkspaceCreated(salt=salt, name="default")),
            NewEvent(ACTOR, AgentRegistered(salt=salt, name="agent")),
        ]
        group.add(Batch(WORKSPACE, ACTOR, introductions))
        added = [
            NewEvent(f"m{number:06d}", MemoryAdded(salt=salt, memory=make(number, count)))
            for number in range(count)
        ]
        group.add(Batch(WORKSPACE, ACTOR, added))
        end = group.commit()
    create_database(folder / "memory.db")
    replay(ledger, folder / "memory.db", end, lambda _phase, _done, _total: None)
    return Connection(folder / "memory.db")


def worked(connection: Connection, memory_id: str) -> tuple[int, list[Similar]]:
    """Look for what is similar to a memory; return the steps SQLite took, and what was found."""
    rid = workspace_rid(connection, "default")
    memory = find_memory(connection, rid, memory_id, NOW)
    assert memory is not None
    steps = 0

    def count() -> bool:
        nonlocal steps
        steps += STEPS_AT_ONCE
        return False

    connection._raw.set_progress_handler(count, STEPS_AT_ONCE)
    filters = Filters(workspace=rid, now_us=NOW_US, entity_names=("Ana",))
    found = find_similar(connection, memory, filters, limit=3)
    connection._raw.set_progress_handler(None)
    return steps, found


def of_words(count: int, **fields: object) -> Make:
    """Make memories of words that are the rarer the more of them there are."""
    choose = random.Random(20260615)

    def make(_number: int, _count: int) -> MemoryState:
        words = [f"w{choose.randrange(count)}" for _ in range(WORDS_EACH)]
        return note(" ".join(words), **fields)

    return make


def superseded_but_the_last(number: int, count: int) -> MemoryState:
    following = f"m{number + 1:06d}" if number < count - 1 else None
    return note("the pump pressure is low", superseded_by=following)


def expired_but_the_last(number: int, count: int) -> MemoryState:
    gone = "2026-01-01T00:00:00.000000Z" if number < count - 1 else None
    return note("the pump pressure is low", expires_at=gone)


@pytest.mark.parametrize(
    "make",
    [of_words(20), of_words(400), superseded_but_the_last, expired_but_the_last],
    ids=["common words", "rarer words", "superseded", "expired"],
)
def test_ten_times_as_many_memories_are_no_more_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Make
) -> None:
    monkeypatch.setattr(similar, "ROWS_MAX", 100)
    monkeypatch.setattr(similar, "EXAMINED_MAX", 100)
    steps = {}
    for count in (150, 1_500):
        folder = tmp_path / str(count)
        folder.mkdir()
        connection = built(folder, count, make)
        steps[count], _ = worked(connection, f"m{count - 1:06d}")
        connection.close()

    assert 0 < steps[1_500] < 2 * steps[150] + 100 * 20


def test_where_every_word_is_common_the_newest_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(similar, "ROWS_MAX", 3)
    connection = built(tmp_path, 30, lambda _number, _count: note("the pump pressure is low"))

    _, found = worked(connection, "m000029")

    connection.close()
    assert [one.memory.id for one in found] == ["m000028", "m000027", "m000026"]
    assert {one.similarity for one in found} == {1.0}


# ---------------------------------------------------------------------------- what is similar


def test_what_is_said_again_in_other_words_of_one_entity_is_named(client: Client) -> None:
    first = client.add("the boiler pressure is three bar", entity_name="boiler").id
    client.add("the roof is green", entity_name="boiler")

    found = client.add("boiler pressure was four bar", entity_name="boiler")

    (conflict,) = found.potential_conflicts
    assert conflict.id == first
    assert "three bar" in conflict.snippet
    assert 0.25 <= conflict.similarity < 1


def test_the_same_said_of_another_entity_or_of_none_is_not_named(client: Client) -> None:
    client.add("the pressure is three bar", entity_name="boiler")
    client.add("the pressure is three bar")

    assert candidates(client.add("the pressure is three bar", entity_name="pump")) == []
    assert candidates(client.add("the pressure is three bar")) == []


def test_an_alias_is_the_same_entity_in_either_direction(client: Client) -> None:
    client.alias("add", alias="котёл", entity_name="boiler")
    first = client.add("the pressure is three bar", entity_name="котёл").id
    second = client.add("the pressure is four bar", entity_name="boiler")
    third = client.add("the pressure is five bar", entity_name="котёл")

    assert candidates(second) == [first]
    assert {*candidates(third)} == {first, second.id}
    client.alias("remove", alias="котёл")
    assert second.id not in candidates(client.add("the pressure is six", entity_name="котёл"))


def test_names_of_the_entity_are_no_evidence(client: Client) -> None:
    client.alias("add", alias="Anna Petrova", entity_name="Ana")
    client.add("Ana Petrova Anna likes tea", entity_name="Ana")

    assert candidates(client.add("Anna Petrova Ana sails", entity_name="Ana")) == []


def test_superseded_and_expired_and_deleted_ones_are_not_named(home: Home, client: Client) -> None:
    old = client.add("the pressure is three bar", entity_name="boiler").id
    current = client.supersede(old, "the pressure is four bar")
    client.add("the pressure is two bar", entity_name="boiler", ttl_days=1)
    client.delete(client.add("the pressure is one bar", entity_name="boiler").id)
    home.clock.advance(days=2)

    assert candidates(client.add("the pressure is nine bar", entity_name="boiler")) == [current]


def test_what_a_new_memory_supersedes_and_what_supersedes_it_are_no_contradictions(
    client: Client,
) -> None:
    fields = {"entity_name": "boiler", "source_file": "boiler.md"}
    client.call("memory_add", {"content": "pressure three", "layer": "semantic", **fields})

    found = client.call("memory_add", {"content": "pressure four", "layer": "semantic", **fields})

    assert isinstance(found, AddResult)
    assert found.potential_conflicts == ()


def test_a_memory_of_another_workspace_is_not_named(home: Home, client: Client) -> None:
    home.open("other").add("the pressure is three bar", entity_name="boiler")

    assert candidates(client.add("the pressure is three bar", entity_name="boiler")) == []


def test_two_memories_are_similar_to_each_other_to_the_same_degree(client: Client) -> None:
    contents = [
        "the boiler pressure is three bar today",
        "boiler pressure was four bar",
        "the pump is green and the boiler is grey",
        "Насос стоит у бойлера и показывает четыре",
    ]
    ids = [client.add(content, entity_name="boiler").id for content in contents]

    def similarities(connection: Connection) -> dict[tuple[str, str], float]:
        rid = workspace_rid(connection, "default")
        filters = Filters(workspace=rid, now_us=NOW_US, entity_names=("boiler",))
        pairs = {}
        for memory_id in ids:
            memory = find_memory(connection, rid, memory_id, NOW)
            assert memory is not None
            for found in find_similar(connection, memory, filters, limit=10):
                pairs[memory_id, found.memory.id] = found.similarity
        return pairs

    pairs = client.store.reads.run(Call(), similarities)
    assert pairs
    assert all(one != other for one, other in pairs)
    assert {(other, one): share for (one, other), share in pairs.items()} == pairs


def test_at_most_three_are_named_most_similar_first(client: Client) -> None:
    for number in range(6):
        client.add(f"the boiler pressure is bar {'x ' * number}", entity_name="boiler")

    found = client.add("the boiler pressure is bar", entity_name="boiler").potential_conflicts

    assert len(found) == 3
    shares = [conflict.similarity for conflict in found]
    assert shares == sorted(shares, reverse=True)


@pytest.mark.parametrize("content", ["🚀", '"', "a" * 90_000, "x " * 40_000, "AND OR NOT", "\x00a"])
def test_any_text_can_be_compared(client: Client, content: str) -> None:
    client.add(content, entity_name="x")

    again = client.add(content, entity_name="x")

    assert again.created
    assert len(again.potential_conflicts) <= 1
