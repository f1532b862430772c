"""Lists: pages by key, in orders without ties, that agree with counts."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from projections.connection import Connection
from projections.filters import Filters
from projections.listing import KEY_TYPES, ORDERS, count_memories, list_memories, select_ids
from projections.queries import workspace_rid
from server.tool import Call
from tests.support.store import Client, home_at

LAYERS = ("episodic", "semantic", "procedural", "resource")


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with home_at(tmp_path / "home") as home:
        client = home.open()
        for number in range(8):  # every value that an order goes by occurs twice
            client.add(
                f"note {number}",
                layer=LAYERS[number % 4],
                importance=number % 3 / 2,
                event_at=f"2026-01-0{number % 4 + 1}",
            )
        yield client


def filters(client: Client, connection: Connection) -> Filters:
    rid = workspace_rid(connection, "default")
    return Filters(workspace=rid, now_us=client.store.app._clock.now_us())


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("limit", [1, 3, 8])
def test_a_page_goes_on_after_the_key_of_the_last_memory_before_it(
    client: Client, order: str, limit: int
) -> None:
    def walk(connection: Connection) -> tuple[list[str], list[str]]:
        here, seen, after, has_more = filters(client, connection), [], None, True
        whole = list_memories(connection, here, order=order, after=None, limit=100)
        while has_more:
            page = list_memories(connection, here, order=order, after=after, limit=limit)
            assert len(page.keys) == len(page.memories) <= limit
            seen += [memory.id for memory in page.memories]
            after, has_more = page.keys[-1], page.has_more
        return [memory.id for memory in whole.memories], seen

    whole, seen = client.store.reads.run(Call(), walk)
    assert seen == whole
    assert len(set(seen)) == 8


def test_every_order_has_a_type_of_key_that_its_own_keys_are_of(client: Client) -> None:
    def keys(connection: Connection) -> None:
        for order in ORDERS:
            page = list_memories(
                connection, filters(client, connection), order=order, after=None, limit=8
            )
            for key in page.keys:
                assert msgspec.convert(list(key), KEY_TYPES[order]) == key
            assert len(set(page.keys)) == 8

    assert {*ORDERS} == {*KEY_TYPES}
    client.store.reads.run(Call(), keys)


def test_the_count_and_the_ids_are_those_of_the_list(client: Client) -> None:
    def read(connection: Connection) -> tuple[int, list[str], list[str]]:
        here = msgspec.structs.replace(filters(client, connection), layers=LAYERS[:2])
        page = list_memories(connection, here, order="oldest", after=None, limit=100)
        ids = select_ids(connection, here, 100)
        return count_memories(connection, here), ids, [memory.id for memory in page.memories]

    count, ids, listed = client.store.reads.run(Call(), read)
    assert (count, ids) == (4, listed)


def test_a_page_that_ends_with_the_list_says_that_nothing_follows(client: Client) -> None:
    assert client.list_page(limit=8).has_more is False
    assert client.list_page(limit=7).has_more is True


def test_a_workspace_that_nothing_was_written_to_has_an_empty_list(client: Client) -> None:
    client.delete_many(everything=True)

    page = client.list_page()

    assert (page.total, page.memories, page.has_more) == (0, (), False)


def test_what_is_changed_comes_first_in_the_order_of_changes(client: Client) -> None:
    oldest = client.listed(order="oldest")[0].id

    client.update(oldest, title="touched")

    assert client.listed(order="changed")[0].id == oldest
    assert client.listed(order="newest")[-1].id == oldest
