"""The resources over a real store: what they hold, what they leave out and say so."""

import json
from urllib.parse import quote

import pytest

from server.errors import NotFoundError
from server.resources import make_resources, make_templates
from server.tool import Call
from tests.support.peer import Json
from tests.support.store import Client, Home


def read(client: Client, uri: str) -> Json:
    store = client.store
    found = {resource.uri: resource for resource in make_resources(lambda: store.app)}.get(uri)
    for template in make_templates(lambda: store.app, lambda: store.suggestions):
        found = found or template.match(uri)
    assert found is not None, uri
    assert found.mime_type == "application/json"
    text: Json = json.loads(found.read(Call()))
    return text


def contents(listing: Json) -> list[str]:
    assert listing["returned_count"] == len(listing["memories"])
    assert "not instructions" in listing["about"]
    return [memory["content"] for memory in listing["memories"]]


def test_statistics_count_what_each_layer_holds(client: Client) -> None:
    client.add("one")
    added = client.add("two", "episodic", entity_name="Ada")

    stats = read(client, "memory://stats")

    assert stats["total"] == 2
    assert stats["position"] == added.position
    assert stats["layer_stats"]["episodic"]["top_entities"] == [{"entity_name": "Ada", "count": 1}]
    assert list(stats["layer_stats"]) == ["episodic", "semantic", "procedural", "resource"]


@pytest.mark.parametrize("uri", ["memory://recent", "memory://layer/semantic"])
def test_listings_hold_what_lives_newest_first(home: Home, client: Client, uri: str) -> None:
    client.add("first")
    old = client.add("superseded")
    client.supersede(old.id, "second")
    client.add("expired", ttl_days=1)
    deleted = client.add("deleted")
    client.delete(deleted.id)
    home.clock.advance(days=2)
    client.add("third")

    listing = read(client, uri)

    assert contents(listing) == ["third", "second", "first"]
    assert (listing["total"], listing["has_more"]) == (3, False)
    assert "notes" not in listing


def test_recent_is_of_every_layer_and_says_how_many_more_there_are(client: Client) -> None:
    for number in range(23):
        client.add(f"memory {number}", ["semantic", "episodic"][number % 2])

    listing = read(client, "memory://recent")

    assert contents(listing) == [f"memory {number}" for number in range(22, 2, -1)]
    assert (listing["total"], listing["has_more"]) == (23, True)
    assert any("3 more" in note and "memory_list" in note for note in listing["notes"])


def test_a_layer_is_its_own_and_names_itself(client: Client) -> None:
    client.add("fact")
    client.add("rule", "procedural")

    listing = read(client, "memory://layer/procedural")

    assert contents(listing) == ["rule"]
    assert listing["layer"] == "procedural"
    assert contents(read(client, "memory://layer/episodic")) == []


@pytest.mark.parametrize("name", ["nope", "Semantic", "semantic/", "semantic%00"])
def test_an_unknown_layer_is_refused_with_those_there_are(client: Client, name: str) -> None:
    with pytest.raises(NotFoundError, match="episodic, semantic, procedural, resource"):
        read(client, f"memory://layer/{name}")


@pytest.mark.parametrize("name", ["Ada", "Ада Л. / № 1", "100 %", "a+b c", "?#&="])
def test_an_entity_is_read_by_its_percent_encoded_name(client: Client, name: str) -> None:
    client.add("about it", entity_name=name)
    client.add("about another", entity_name="Bob")

    listing = read(client, f"memory://entity/{quote(name, safe='')}")

    assert contents(listing) == ["about it"]
    assert listing["entity_name"] == name


def test_an_entity_is_read_by_any_of_its_names(client: Client) -> None:
    client.add("by the name", entity_name="Ada")
    client.add("by the alias", entity_name="Countess")
    client.call("memory_alias", {"action": "add", "alias": "Countess", "entity_name": "Ada"})

    for name in ("Ada", "Countess"):
        assert contents(read(client, f"memory://entity/{name}")) == ["by the alias", "by the name"]


def test_an_entity_nobody_wrote_about_is_an_empty_list(client: Client) -> None:
    listing = read(client, "memory://entity/Nobody")

    assert contents(listing) == []
    assert listing["total"] == 0


def test_content_is_bounded_as_in_a_reply_and_what_is_cut_is_said(client: Client) -> None:
    for letter in "abc":
        client.add(letter * 50_000, entity_name="Long")

    listing = read(client, "memory://entity/Long")

    assert [len(content) for content in contents(listing)[:2]] == [50_000, 50_000]
    cut = listing["memories"][2]
    assert cut["content_cut"]
    assert len(cut["content"]) < 1_000
    assert any("content_cut" in note for note in listing["notes"])


def test_a_layer_shows_a_hundred_at_most(client: Client) -> None:
    for number in range(103):
        client.add(f"memory {number}")

    listing = read(client, "memory://layer/semantic")

    assert len(contents(listing)) == 100
    assert any("3 more" in note for note in listing["notes"])


# ---------------------------------------------------------------------------- completion


def completed(client: Client, variable: str, prefix: str) -> tuple[tuple[str, ...], int]:
    store = client.store
    templates = make_templates(lambda: store.app, lambda: store.suggestions)
    (template,) = (template for template in templates if template.variable == variable)
    found = template.complete(prefix, Call())
    return found.values, found.total


def test_layers_are_completed(client: Client) -> None:
    assert completed(client, "layer", "S") == (("semantic",), 1)
    assert completed(client, "layer", "")[1] == 4
    assert completed(client, "layer", "x") == ((), 0)


def test_names_are_completed_a_hundred_at_most_with_how_many_there_are(client: Client) -> None:
    for number in range(104):
        client.add("x", entity_name=f"Name {number:03}")

    values, total = completed(client, "name", "name")

    assert values == tuple(f"Name {number:03}" for number in range(100))
    assert total == 104
    assert completed(client, "name", "Name 10")[0] == tuple(f"Name 10{digit}" for digit in range(4))


def test_what_was_just_written_is_completed_and_what_was_deleted_is_not(
    home: Home, client: Client
) -> None:
    ada = client.add("x", entity_name="Ada")
    assert completed(client, "name", "") == (("Ada",), 1)

    home.open(name="another").add("x", entity_name="Bob")
    assert completed(client, "name", "") == (("Ada", "Bob"), 2)

    client.delete(ada.id)
    assert completed(client, "name", "") == (("Bob",), 1)


def test_what_expired_since_the_last_look_is_not_completed(home: Home, client: Client) -> None:
    client.add("x", entity_name="Ada", ttl_days=1)
    assert completed(client, "name", "a")[1] == 1

    home.clock.advance(days=2)

    assert completed(client, "name", "a") == ((), 0)
