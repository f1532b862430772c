"""Group S, deletion: nothing stays behind, and nothing goes that was not meant."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from ledger import Position
from projections.connection import Connection
from server.errors import InvalidArgumentsError
from server.results import AddResult, DeleteManyResult, HealthResult, SessionEndResult
from server.tool import Call
from tests.support.store import Client, Home

TAGS = ["port", "red_box", "50%"]


def deleted(client: Client, **arguments: object) -> DeleteManyResult:
    result = client.call("memory_delete_many", arguments)
    assert isinstance(result, DeleteManyResult)
    return result


# ---------------------------------------------------------------------------- S-4


def _rows(home: Home, rid: int, memory_id: str) -> dict[str, int]:
    """Count what each table of the current view holds of a memory."""
    connection = Connection(home.database)
    try:
        counts = {
            "memories": ("SELECT count(*) FROM memories WHERE id = ?", memory_id),
            "links": (
                "SELECT count(*) FROM memories WHERE ?1 IN (supersedes, superseded_by)",
                memory_id,
            ),
            "documents": ("SELECT count(*) FROM memories_fts_docsize WHERE id = ?", rid),
            "postings": ("SELECT count(*) FROM postings WHERE doc = ?", rid),
            "trigrams": ("SELECT count(*) FROM trigrams_docsize WHERE id = ?", rid),
            "pending": ("SELECT count(*) FROM trigrams_pending WHERE rid = ?", rid),
        }
        return {name: connection.value(sql, (value,)) for name, (sql, value) in counts.items()}
    finally:
        connection.close()


def _cleanup(home: Home, client: Client) -> None:
    home.clock.advance(days=10)
    result = client.call("memory_health", {"cleanup": True})
    assert isinstance(result, HealthResult)
    assert result.cleaned_expired == 1


ROUTES: dict[str, Callable[[Home, Client, AddResult], object]] = {
    "delete": lambda _, client, added: client.delete(added.id),
    "undo by position": lambda _, client, added: client.undo(position=added.position),
    "undo by id": lambda _, client, added: client.undo(id=added.id),
    "several ids": lambda _, client, added: deleted(client, ids=[added.id, "no-such-id"]),
    "by tag": lambda _, client, _added: deleted(client, tags=["red_box"]),
    "by layer and entity": lambda _, client, _added: deleted(
        client, layers=["episodic"], entity_name="zqentity"
    ),
    "by file": lambda _, client, _added: deleted(client, source_file="zq.md"),
    "by session": lambda _, client, _added: deleted(client, session_id="zqsession"),
    "by date": lambda _, client, _added: deleted(client, date_from="2020", date_to="May 2020"),
    "cleanup": lambda home, client, _: _cleanup(home, client),
}


@pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)
def test_s4_nothing_of_a_deleted_memory_steers_a_search(
    home: Home, client: Client, route: Callable[[Home, Client, AddResult], object]
) -> None:
    client.add("an ordinary note", tags=["port"])
    added = client.add(
        "the zqcanary note",
        layer="episodic",
        tags=TAGS,
        title="zqtitle",
        entity_name="zqentity",
        source_file="zq.md",
        session_id="zqsession",
        event_at="2020-05",
        ttl_days=5,
    )
    route(home, client, added)
    for mode in ("fts", "exact"):
        assert client.found("zqcanary", mode=mode, include_superseded=True) == []
    assert client.found("zqtitle") == client.found("zqentity") == []
    assert len(client.found("note", tags=["port"])) == 1
    assert client.found("note", tags=["red_box"]) == []
    assert {*_rows(home, added.version, added.id).values()} == {0}
    assert client.store.suggestions.complete("entity", "zq", Call()).values == ()
    assert client.inspect().total == 1
    types = [record.header.type for record in client.store.ledger.read(Position.start)]
    assert types[-1] == "memory_deleted"


@pytest.mark.parametrize("which", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)])
def test_s4_deleting_part_of_a_chain_leaves_no_link_to_it(
    home: Home, client: Client, which: tuple[int, ...]
) -> None:
    ids = [client.add("the depot is in Quarry Lane").id]
    ids += [client.supersede(ids[-1], "the depot is in Orchard Row")]
    ids += [client.supersede(ids[-1], "the depot is in Station Road")]
    gone = [ids[index] for index in which]
    rest = [memory_id for memory_id in ids if memory_id not in gone]
    result = deleted(client, ids=gone)
    assert result.deleted_count == len(gone)
    for seen in home.lives(client):
        assert {*seen.found("depot", include_superseded=True)} == {*rest}
        assert seen.found("depot") == rest[-1:]
        for memory_id in gone:
            assert _rows(home, 0, memory_id)["links"] == 0
    home.open().undo(position=result.position)
    assert home.open().found("depot") == [ids[2]]


def test_s4_a_session_counts_no_deleted_memory(client: Client) -> None:
    session = client.call("memory_session_start", {"client": "tester"}).id  # type: ignore[attr-defined]
    ids = [client.add(f"note {number}", session_id=session).id for number in range(3)]
    client.delete(ids[0])
    ended = client.call("memory_session_end", {"id": session})
    assert isinstance(ended, SessionEndResult)
    assert ended.memories_count == 2


def test_s2_deleting_what_is_not_there_counts_nothing_and_writes_nothing(client: Client) -> None:
    gone = client.add("gone").id
    client.delete(gone)
    kept = client.add("kept").id
    before = client.position()
    none = deleted(client, ids=["no-such-id", gone])
    assert (none.deleted_count, none.matched_count, none.ids) == (0, 0, ())
    assert (none.position, client.position()) == (None, before)
    assert deleted(client, ids=["no-such-id", kept, kept]).deleted_count == 1


# ---------------------------------------------------------------------------- S-5


@pytest.fixture
def scopes(client: Client) -> Client:
    for scope, count in (("alpha", 3), ("beta", 5)):
        for number in range(count):
            client.add(f"note {number}", scope=scope, tags=[scope])
    return client


@pytest.mark.guarantee("G-DELETE-1")
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"scope": None},
        {"scope": None, "layers": ["semantic"]},
        {"scpe": "alpha"},
        {"scope": "alpha", "scpe": "alpha"},
        {"layers": []},
        {"tags": []},
        {"ids": []},
        {"ids": None},
        {"everything": False},
        {"everything": None},
        {"everything": "false"},
        {"everything": "maybe"},
        {"everything": True, "scope": "alpha"},
        {"everything": True, "ids": ["x"]},
        {"everything": True, "scope": None},
        {"dry_run": True},
        {"filter": {}},
        {"filter": {"scope": "alpha"}},
        {"date_from": "last blursday"},
        {"date_from": ""},
    ],
    ids=str,
)
def test_s5_an_empty_a_null_and_a_misspelt_filter_are_refused(
    scopes: Client, arguments: dict[str, Any]
) -> None:
    with scopes.refused(InvalidArgumentsError):
        scopes.call("memory_delete_many", arguments)
    assert scopes.inspect().total == 8


@pytest.mark.guarantee("G-DELETE-1")
def test_s5_deleting_a_scope_leaves_the_others(home: Home, scopes: Client) -> None:
    before = scopes.position()
    dry = deleted(scopes, scope="alpha", dry_run=True)
    assert (dry.dry_run, dry.matched_count, dry.deleted_count) == (True, 3, 0)
    assert (dry.remaining_count, len(dry.ids), scopes.position()) == (3, 3, before)
    done = deleted(scopes, scope="alpha")
    assert (done.deleted_count, done.matched_count, done.remaining_count) == (3, 3, 0)
    assert {*done.ids} == {*dry.ids}
    again = deleted(scopes, scope="alpha")
    assert (again.deleted_count, again.matched_count, again.position) == (0, 0, None)
    for seen in home.lives(scopes):
        assert len(seen.found("note")) == len(seen.found("note", scope="beta")) == 5
        assert seen.found("note", scope="alpha") == []
    client = home.open()
    client.undo(position=done.position)
    assert len(client.found("note", scope="alpha")) == 3


def test_s5_a_scope_that_holds_nothing_deletes_nothing(scopes: Client) -> None:
    for scope in ("", "ALPHA", "alph", "alpha ", "%", "*", "gamma"):
        assert deleted(scopes, scope=scope).deleted_count == 0
    assert scopes.inspect().total == 8


def test_s5_filters_narrow_each_other(scopes: Client) -> None:
    assert deleted(scopes, scope="alpha", tags=["beta"]).deleted_count == 0
    assert deleted(scopes, scope="alpha", date_to="2020").deleted_count == 0
    assert scopes.inspect().total == 8


def test_s5_everything_is_one_workspace(home: Home, scopes: Client) -> None:
    other = home.open("other")
    kept = other.add("note").id
    assert deleted(scopes, everything=True).deleted_count == 8
    assert scopes.inspect().total == 0
    assert other.found("note") == [kept]


def test_s5_more_than_one_call_deletes_is_told(client: Client) -> None:
    for _ in range(11):
        memories = [{"content": "note", "layer": "semantic"}] * 100
        client.call("memory_add_many", {"memories": memories})
    first = deleted(client, scope="global")
    assert (first.deleted_count, first.matched_count, first.remaining_count) == (1_000, 1_100, 100)
    second = deleted(client, scope="global")
    assert (second.deleted_count, second.remaining_count) == (100, 0)


def test_s5_a_misspelt_field_of_a_single_deletion_is_refused(client: Client) -> None:
    kept = client.add("kept", scope="beta").id
    for arguments in (
        {},
        {"id": None},
        {"scope": "alpha"},
        {"id": kept, "scpe": "alpha"},
        {"ids": [kept]},
    ):
        with client.refused(InvalidArgumentsError):
            client.call("memory_delete", arguments)
    assert client.inspect(kept).status == "active"


def test_s5_dates_with_nothing_between_them_are_refused(scopes: Client) -> None:
    with scopes.refused(InvalidArgumentsError, "date_to"):
        scopes.call("memory_delete_many", {"date_from": "2026-02", "date_to": "2026-01"})


def test_s4_everyone_who_is_current_again_is_named(client: Client) -> None:
    one = client.add("v1", source_file="f").id
    gone = client.call("memory_delete_many", {"ids": [one]})
    two = client.add("v2", source_file="f").id
    client.undo(position=msgspec.to_builtins(gone)["position"])
    both = client.add("v3", source_file="f")
    assert set(both.superseded_ids) == {one, two}

    deleted = client.delete(both.id)

    assert deleted.reactivated_id is not None
    assert set(client.found("v1")) | set(client.found("v2")) == {one, two}
    (note,) = deleted.notes
    assert {deleted.reactivated_id, note.rpartition(" ")[2]} == {one, two}
