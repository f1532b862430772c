"""Group S, expiry: hidden at once from all that is now, there for all that was then."""

import json

import pytest

from server.resources import make_resources, make_templates
from server.results import ExportResult, GetResult, HealthResult, ListResult
from server.tool import Call
from tests.support.store import Client, Home

MODES = ("fts", "exact")


def _listed(client: Client, **filters: object) -> list[str]:
    page = client.call("memory_list", filters)
    assert isinstance(page, ListResult)
    assert page.total == len(page.memories)
    return [memory.id for memory in page.memories]


def _exported(client: Client, **filters: object) -> str:
    part = client.call("memory_export", {"format": "jsonl", **filters})
    assert isinstance(part, ExportResult)
    return part.content


def _resources(client: Client) -> dict[str, str]:
    """Return what every resource holds that lists memories."""
    fixed = {
        resource.uri: resource.read(Call()) for resource in make_resources(lambda: client.store.app)
    }
    values = {"layer": "resource", "name": "heron"}
    of = make_templates(lambda: client.store.app, lambda: client.store.suggestions)
    return fixed | {each.prefix: each.read(values[each.variable], Call()) for each in of}


@pytest.mark.guarantee("G-EXPIRY-1")
def test_s3_what_has_expired_is_hidden_now_and_shown_as_of_then(home: Home, client: Client) -> None:
    home.clock.set("2026-06-15T12:00:00.000000Z")
    stored = client.add(
        "the heron password is teal", ttl_days=2 / 86_400, layer="resource", entity_name="heron"
    ).id
    home.clock.set("2026-06-15T12:00:01.999999Z")
    assert client.found("heron") == _listed(client) == [stored]
    assert all(stored in text for uri, text in _resources(client).items() if uri[-5:] != "stats")
    home.clock.set("2026-06-15T12:00:02.000000Z")
    for seen in home.lives(client):
        for filters in ({}, {"layers": ["resource"]}, {"entity_name": "heron"}):
            for mode in MODES:
                assert seen.found("heron", mode=mode, **filters) == []
            assert _listed(seen, **filters) == []
            assert _exported(seen, **filters) == ""
        for mode in MODES:
            assert seen.found("heron", mode=mode, include_superseded=True) == []
            assert seen.found("heron", mode=mode, as_of="2026-06-15T12:00:01") == [stored]
            assert seen.found("heron", mode=mode, as_of="2026-06-15T12:00:02") == []
        assert _listed(seen, as_of="2026-06-15T12:00:01") == [stored]
        assert not any(stored in text for text in _resources(seen).values())
        assert seen.store.suggestions.complete("entity", "her", Call()).values == ()


def test_s3_get_list_export_and_statistics_mark_what_has_expired(
    home: Home, client: Client
) -> None:
    stored = client.add("the heron password is teal", ttl_days=1).id
    home.clock.advance(days=2)
    for seen in home.lives(client):
        assert seen.inspect(stored).status == "expired"
        got = seen.call("memory_get", {"ids": [stored]})
        assert isinstance(got, GetResult)
        assert [memory.status for memory in got.memories] == ["expired"]
        assert _listed(seen, include_expired=True) == [stored]
        assert json.loads(_exported(seen, include_expired=True))["status"] == "expired"
        layers = seen.inspect().layer_stats
        assert layers is not None
        assert (layers["semantic"].active, layers["semantic"].expired) == (0, 1)


def test_s3_a_successor_of_what_has_expired_is_live(home: Home, client: Client) -> None:
    old = client.add("the heron password is teal", ttl_days=1).id
    home.clock.advance(days=2)
    new = client.supersede(old, "the heron password is ochre")
    assert client.found("heron") == [new]
    memory = client.inspect(new).memory
    assert memory is not None
    assert memory.expires_at is None


def test_s3_a_cleanup_deletes_what_has_expired_and_chains_close_up(
    home: Home, client: Client
) -> None:
    kept = client.add("the heron is grey").id
    ids = [client.add("the heron password 0", ttl_days=1).id]
    for number in range(1, 4):
        ids.append(client.supersede(ids[-1], f"the heron password {number}"))
    live = client.add("the heron nests", ttl_days=9).id
    home.clock.advance(days=2)
    cleaned = client.call("memory_health", {"cleanup": True})
    assert isinstance(cleaned, HealthResult)
    assert (cleaned.cleaned_expired, cleaned.expired_count) == (4, 0)
    assert cleaned.orphaned_chains == ()
    for seen in home.lives(client):
        assert {*seen.found("heron", include_superseded=True)} == {kept, live}
        for memory_id in ids:
            assert seen.inspect(memory_id).status == "deleted"
    client = home.open()
    client.undo(position=cleaned.position)
    chain = client.inspect(ids[0], include_history=True).superseded_chain
    assert chain is not None
    assert [memory.id for memory in chain] == ids[::-1]
