"""Names in use: of what lives, found by prefix whatever the letter case."""

from collections.abc import Callable

import pytest

from projections.names import Names, entity_names, scopes
from projections.queries import workspace_rid
from server.tool import Call
from tests.support.store import Client, Home


def look(
    home: Home, client: Client, prefix: str = "", *, of: Callable[..., Names] = entity_names
) -> list[str]:
    workspace = "default" if client.name == "tester" else client.name
    names = client.store.reads.run(
        Call(), lambda connection: of(connection, workspace_rid(connection, workspace))
    )
    return names.beginning_with(prefix, home.clock.us)


@pytest.mark.parametrize(
    ("prefix", "found"),
    [
        ("", ["ann", "Anna K.", "bob", "ⅷ", "ёж", "Ёлка"]),
        ("AN", ["ann", "Anna K."]),
        ("anna", ["Anna K."]),
        ("anna k.", ["Anna K."]),
        ("anna k. ", []),
        ("е", ["ёж", "Ёлка"]),
        ("ЁЛ", ["Ёлка"]),
        ("viii", ["ⅷ"]),
        ("c", []),
        ("\U0010ffff", []),
    ],
)
def test_a_prefix_finds_names_in_alphabetical_order(prefix: str, found: list[str]) -> None:
    names = Names((name, 1) for name in ("Ёлка", "bob", "Anna K.", "ёж", "ann", "ⅷ"))

    assert names.beginning_with(prefix, 0) == found


def test_each_name_is_there_once_and_only_in_its_workspace(home: Home) -> None:
    client = home.open()
    other = home.open("other", name="other")
    for name in ("Ada", "Ada", "Bob"):
        client.add("x", entity_name=name, scope=f"of {name}")
    other.add("x", entity_name="Eve", scope="of Eve")
    client.add("about nobody")

    assert look(home, client) == ["Ada", "Bob"]
    assert look(home, client, of=scopes) == ["global", "of Ada", "of Bob"]
    assert look(home, other) == ["Eve"]


def test_a_workspace_that_was_never_written_to_has_no_names(home: Home) -> None:
    home.open().add("x", entity_name="Ada")
    other = home.open("other", name="other")

    assert look(home, other) == look(home, other, of=scopes) == []


def test_a_name_goes_with_its_last_living_memory(home: Home) -> None:
    client = home.open()
    expiring = {"entity_name": "Expired", "scope": "a week"}
    client.add("x", **expiring, ttl_days=7)
    client.add("x", **expiring, ttl_days=3)
    client.add("x", entity_name="Kept", ttl_days=3)
    client.add("x", entity_name="Kept")
    deleted = client.add("x", entity_name="Deleted")
    client.delete(deleted.id)

    home.clock.advance(days=5)
    assert look(home, client) == ["Expired", "Kept"]

    home.clock.advance(days=2)
    assert look(home, client) == ["Kept"]
    assert look(home, client, of=scopes) == ["global"]


def test_an_alias_is_in_use_while_any_name_of_its_entity_is(home: Home) -> None:
    client = home.open()
    client.add("x", entity_name="Ada", ttl_days=7)
    pairs = {"Countess": "Ada", "AAL": "Countess", "Nobody": "Noone"}
    for alias, name in pairs.items():
        client.call("memory_alias", {"action": "add", "alias": alias, "entity_name": name})

    assert look(home, client) == ["AAL", "Ada", "Countess"]

    home.clock.advance(days=8)
    assert look(home, client) == []
