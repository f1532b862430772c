"""A request that is sent again with its key is answered from what it did, and writes nothing."""

from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest

from server.errors import IdempotencyConflictError
from server.repeat import REPEATED
from tests.support.store import Client, Home

KEY: Final = "the-key"


def a_memory(client: Client) -> dict[str, Any]:
    return {"id": client.add("the heron wades").id}


def an_expired_memory(client: Client) -> dict[str, Any]:
    client.add("the heron wades", ttl_days=1)
    client.store.app._clock.advance(days=2)  # type: ignore[attr-defined]
    return {"cleanup": True}


def a_session(client: Client) -> dict[str, Any]:
    started = client.call("memory_session_start", {"client": "tests"})
    return {"id": msgspec.to_builtins(started)["id"], "summary": "the heron was seen"}


def an_alias(client: Client) -> dict[str, Any]:
    client.call("memory_alias", {"action": "add", "alias": "h", "entity_name": "heron"})
    return {"action": "remove", "alias": "h"}


def nothing(_: Client) -> dict[str, Any]:
    return {}


WRITES: Final = [
    ("memory_add", nothing, {"content": "the heron wades", "layer": "semantic"}),
    ("memory_update", a_memory, {"title": "Birds"}),
    ("memory_update", a_memory, {"supersede": True, "new_content": "the heron flies"}),
    ("memory_delete", a_memory, {}),
    ("memory_delete_many", a_memory, {"everything": True, "id": None}),
    ("memory_undo", a_memory, {}),
    ("memory_session_start", nothing, {"client": "tests", "project": "birds"}),
    ("memory_session_end", a_session, {}),
    ("memory_alias", nothing, {"action": "add", "alias": "h", "entity_name": "heron"}),
    ("memory_alias", an_alias, {}),
    ("memory_health", an_expired_memory, {}),
]

each_write = pytest.mark.parametrize(
    ("tool", "before", "arguments"),
    WRITES,
    ids=[f"{tool}-{number}" for number, (tool, _, _) in enumerate(WRITES)],
)


def asked(
    client: Client, before: Callable[[Client], dict[str, Any]], arguments: dict[str, Any]
) -> dict[str, Any]:
    """Return the arguments of the request; a field that is None is none of this tool."""
    together = {**before(client), **arguments, "idempotency_key": KEY}
    return {name: value for name, value in together.items() if value is not None}


@each_write
def test_a_repeat_names_what_was_done_and_writes_nothing(
    home: Home, tool: str, before: Callable[[Client], dict[str, Any]], arguments: dict[str, Any]
) -> None:
    client = home.open()
    request = asked(client, before, arguments)
    first = msgspec.to_builtins(client.call(tool, request))
    end = client.position()

    for seen in home.lives(client):
        again = msgspec.to_builtins(seen.call(tool, request))

        assert REPEATED in again["notes"]
        assert again["position"] == first["position"]
        for name in ("id", "new_id", "updated_id", "deleted_id", "ids", "memories", "started_at"):
            assert again.get(name) == first.get(name), name
        for name in ("created", "changed", "deleted", "undone", "deleted_count"):
            assert not again.get(name), name
        assert "summary" not in again
        assert seen.position() == end


@each_write
def test_the_key_of_another_request_is_refused(
    home: Home, tool: str, before: Callable[[Client], dict[str, Any]], arguments: dict[str, Any]
) -> None:
    client = home.open()
    client.add("something else", idempotency_key=KEY)
    request = asked(client, before, arguments)

    with client.refused(IdempotencyConflictError):
        client.call(tool, request)


def test_the_end_of_a_session_that_was_undone_since_is_repeated_without_its_time(
    home: Home,
) -> None:
    client = home.open()
    request = {**a_session(client), "idempotency_key": KEY}
    client.call("memory_session_end", request)
    client.undo(id=request["id"])

    again = msgspec.to_builtins(client.call("memory_session_end", request))

    assert REPEATED in again["notes"]
    assert "ended_at" not in again
    assert again["memories_count"] == 0


def test_a_session_that_was_undone_since_is_still_named_by_a_repeat(home: Home) -> None:
    client = home.open()
    request = {"client": "tests", "idempotency_key": KEY}
    first = msgspec.to_builtins(client.call("memory_session_start", request))
    client.undo(id=first["id"])

    again = msgspec.to_builtins(client.call("memory_session_start", request))

    assert again["id"] == first["id"]
    assert client.call("memory_session_list", {}).total == 0  # type: ignore[attr-defined]
