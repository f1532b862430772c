"""Aliases: names that can be reached from each other, in whatever direction, are one entity."""

from itertools import permutations

import pytest

from projections import aliases
from projections.aliases import list_aliases, names_of
from projections.connection import Connection
from projections.queries import workspace_rid
from server.errors import AliasConflictError, InvalidArgumentsError, NotFoundError
from server.tool import Call
from tests.support.store import Client, Home


def names(client: Client, name: str) -> tuple[str, ...]:
    def read(connection: Connection) -> tuple[str, ...]:
        return names_of(connection, workspace_rid(connection, "default"), name)

    return client.store.reads.run(Call(), read)


def join(client: Client, *pairs: tuple[str, str]) -> None:
    for name, entity in pairs:
        assert client.alias("add", alias=name, entity_name=entity).changed


@pytest.mark.parametrize("pairs", [*permutations([("b", "a"), ("c", "b"), ("d", "a")])])
def test_names_that_hang_together_are_one_entity_however_they_were_declared(
    client: Client, pairs: tuple[tuple[str, str], ...]
) -> None:
    join(client, *pairs)

    for name in "abcd":
        found = names(client, name)
        assert found[0] == name
        assert sorted(found) == ["a", "b", "c", "d"]
    assert names(client, "e") == ("e",)


def test_removing_a_link_parts_what_only_it_joined(client: Client) -> None:
    join(client, ("b", "a"), ("c", "b"))

    client.alias("remove", alias="c")

    assert sorted(names(client, "a")) == ["a", "b"]
    assert names(client, "c") == ("c",)


def test_names_are_exact_and_never_folded(client: Client) -> None:
    join(client, ("Ana", "Анна"))

    assert names(client, "ana") == ("ana",)
    assert names(client, "Ana ") == ("Ana ",)


@pytest.mark.parametrize(
    ("name", "entity"), [("a", "a"), ("a", "b"), ("a", "c"), ("b", "a"), ("c", "b")]
)
def test_what_is_joined_already_is_not_written_again(
    client: Client, name: str, entity: str
) -> None:
    join(client, ("b", "a"), ("c", "b"))
    before = client.position()

    result = client.alias("add", alias=name, entity_name=entity)

    assert (result.changed, bool(result.notes), client.position()) == (False, True, before)


def test_a_name_is_an_alias_of_one_name_only(client: Client) -> None:
    join(client, ("b", "a"))

    with client.refused(AliasConflictError, "'a'"):
        client.alias("add", alias="b", entity_name="z")
    client.alias("remove", alias="b")
    join(client, ("b", "z"))


def test_a_removed_alias_comes_back_by_undo_unless_the_name_is_taken(client: Client) -> None:
    join(client, ("b", "a"))
    removed = client.alias("remove", alias="b", entity_name="a")
    join(client, ("b", "z"))

    with client.refused(AliasConflictError, "'z'"):
        client.undo(position=removed.position)
    client.alias("remove", alias="b")
    client.undo(position=removed.position)

    assert sorted(names(client, "a")) == ["a", "b"]


@pytest.mark.parametrize("fields", [{"alias": "b"}, {"alias": "c", "entity_name": "z"}])
def test_removing_what_is_no_alias_is_refused(client: Client, fields: dict[str, str]) -> None:
    join(client, ("c", "a"))

    with client.refused(NotFoundError, fields["alias"]):
        client.call("memory_alias", {"action": "remove", **fields})


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"action": "add", "alias": "b"}, "entity_name"),
        ({"action": "add", "entity_name": "a"}, "alias"),
        ({"action": "remove"}, "alias"),
        ({"action": "add", "alias": "\u200b", "entity_name": "a"}, "alias"),
    ],
)
def test_a_name_that_is_missing_or_blank_is_named(
    client: Client, fields: dict[str, str], field: str
) -> None:
    with client.refused(InvalidArgumentsError, f"`{field}`"):
        client.call("memory_alias", {**fields})


def test_aliases_of_one_workspace_mean_nothing_in_another(home: Home, client: Client) -> None:
    join(client, ("b", "a"))
    other = home.open("other")
    memory = other.add("x", entity_name="b").id

    assert other.alias("list").aliases == ()
    assert other.found("x", entity_name="a") == []
    assert other.found("x", entity_name="b") == [memory]


def test_a_list_is_in_alphabetical_order_and_may_be_of_one_entity(client: Client) -> None:
    join(client, ("z", "b"), ("y", "b"), ("q", "a"))

    everything = [(one.entity_name, one.alias) for one in client.alias("list").aliases]
    assert everything == [("a", "q"), ("b", "y"), ("b", "z")]
    of_one = [(one.entity_name, one.alias) for one in client.alias("list", alias="y").aliases]
    assert of_one == [("b", "y"), ("b", "z")]


def test_no_more_names_are_looked_for_than_a_filter_can_hold(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aliases, "NAMES_MAX", 3)
    join(client, *[(f"alias {number}", "a") for number in range(5)])

    assert len(names(client, "a")) == 3

    def read(connection: Connection) -> int:
        return len(list_aliases(connection, workspace_rid(connection, "default"), None, 4))

    assert client.store.reads.run(Call(), read) == 4


def test_statistics_search_and_list_take_any_name_of_an_entity(client: Client) -> None:
    join(client, ("b", "a"))
    ids = {client.add(f"pump {name}", entity_name=name).id for name in "ab"}

    for name in "ab":
        assert {*client.found("pump", entity_name=name)} == ids
        assert {memory.id for memory in client.listed(entity_name=name)} == ids
        assert client.inspect(None, entity_name=name).total == 2
