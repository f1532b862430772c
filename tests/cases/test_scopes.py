"""Case X-3: scopes and tags match exactly, in whatever is done with them."""

from typing import Any

import pytest

from tests.cases.ways import Way
from tests.support.store import Client, Home

pytestmark = pytest.mark.guarantee("G-FILTER-1")

ALIKE = (
    "reed", "reed-bed", "reed_bed", "reedXbed", "re%", "re*", "re?d", "r", "REED", "Reed", "réed",
    "re\u0301ed", "reed ", " reed", "reed,bed", "reed:bed", "reed/bed", "[reed]", "^reed$", ".*",
    'reed"', "reed'", "'reed'", "reed\\", "ｒｅｅｄ", "reed\u200b", "тростник", "芦",
)  # fmt: skip
"""Names of which none is another, although some tool takes it for a pattern of one."""


@pytest.fixture
def kept(client: Client) -> dict[str, str]:
    """A memory of each name, which is its scope, its tag and its entity; by name."""
    return {
        name: client.add("a note", scope=name, tags=[name, "all"], entity_name=name).id
        for name in ALIKE
    }


@pytest.mark.parametrize("field", ["scope", "entity_name", "tags"])
def test_x3_a_name_is_matched_exactly_by_search_list_count_and_export(
    client: Client, kept: dict[str, str], field: str
) -> None:
    for name, memory_id in kept.items():
        wanted: dict[str, Any] = {field: [name] if field == "tags" else name}
        for mode in ("fts", "exact"):
            assert client.found("note", mode=mode, **wanted) == [memory_id]
        assert [memory.id for memory in client.listed(**wanted)] == [memory_id]
        assert client.list_page(**wanted).total == 1
        assert client.export("jsonl", **wanted).total == 1
        if field != "tags":
            assert client.delete_many(dry_run=True, **wanted).ids == (memory_id,)


def test_x3_tags_are_all_of_them_and_each_a_whole_one(client: Client, kept: dict[str, str]) -> None:
    assert {*client.found("note", tags=["all"])} == {*kept.values()}
    for name, memory_id in kept.items():
        assert client.found("note", tags=["all", name]) == [memory_id]
    assert client.found("note", tags=["reed", "reed-bed"]) == []
    assert client.found("note", tags=["reed,all"]) == []
    assert client.found("note", tags=["al"]) == []


@pytest.mark.parametrize("field", ["scope", "entity_name", "tags"])
def test_x3_deleting_by_a_name_takes_its_own_and_leaves_the_rest(
    home: Home, client: Client, kept: dict[str, str], field: str
) -> None:
    left = dict(kept)
    for name in ALIKE[::3]:
        wanted: dict[str, Any] = {field: [name] if field == "tags" else name}
        assert client.delete_many(**wanted).ids == (left.pop(name),)
    for seen in home.lives(client):
        assert {*seen.found("note")} == {*left.values()}


def test_x3_a_file_is_superseded_in_its_own_scope_only(client: Client) -> None:
    names = ("reed", "re%", "re_d", "REED")
    for name in names:
        client.add("the first", scope=name, source_file="a.md")
    client.add("the second", scope="re%", source_file="a.md")

    current = {(memory.scope, memory.content) for memory in client.listed()}

    assert current == {("reed", "the first"), ("re%", "the second"), ("re_d", "the first")} | {
        ("REED", "the first")
    }


def test_x3_workspaces_match_exactly_too(home: Home) -> None:
    clients = {name: home.open(name) for name in ("reed", "reed-bed", "re%", "re_d", "REED")}
    ids = {name: client.add("a note").id for name, client in clients.items()}

    for name, client in clients.items():
        assert client.found("note") == [ids[name]]
        assert client.inspect().total == 1


def test_x3_a_name_is_matched_exactly_by_every_way_in(way: Way) -> None:
    names = ("reed", "reed-bed", "re%", "re_d", "REED", "[reed]", "a,b", "тростник")
    ids = {name: way.add("a note", scope=name, tags=[name]) for name in names}

    for name, memory_id in ids.items():
        assert way.found("note", scope=name) == [memory_id]
        assert way.listed(scope=name) == [memory_id]
        assert way.listed(tags=[name]) == [memory_id]
    assert way.ask("delete_many", scope="re%")["ids"] == [ids["re%"]]
    assert way.total() == len(names) - 1


def test_x3_a_scope_that_is_not_there_is_told_apart_from_one_without_hits(way: Way) -> None:
    way.add("a note", scope="reed")
    way.add("a note of another time", scope="re%")

    nothing = way.ask("search", query="kingfisher", scope="reed")
    nowhere = way.ask("search", query="note", scope="rushes")
    listed = way.ask("list", scope="rushes")
    later = way.ask("list", scope="reed", when="2020")

    for answer in (nothing, later):
        assert answer["returned_count"] == 0
        assert not [note for note in answer.get("notes", ()) if "scope" in note]
    for answer in (nowhere, listed):
        assert answer["returned_count"] == 0
        assert answer["notes"] == ["no memory of this workspace has the scope 'rushes'"]
