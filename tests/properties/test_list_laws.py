"""Any store, any filters: lists and exports hold what a scan would, each memory once."""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from projections.model import Memory
from server.commands import ExportArgs
from server.schema import convert
from server.tool import Call
from tests.properties.test_search_laws import LAYERS, filters, happened, histories, scan, stored
from tests.support.store import Client

ORDERS: Final[dict[str, Callable[[int, Memory], Any]]] = {
    "newest": lambda number, _: -number,
    "oldest": lambda number, _: number,
    "changed": lambda _, memory: -memory.version,
    "happened": lambda number, memory: (-happened(memory)[0], -number),
    "important": lambda number, memory: (-memory.importance, -number),
}
"""Order -> what the place of a memory in it follows from, given its number as it was added."""

more = st.fixed_dictionaries({}, optional={"include_expired": st.booleans()})
few = settings(max_examples=settings().max_examples // 2)


def in_order(memories: list[Memory], ids: list[str], order: str) -> list[str]:
    place = ORDERS[order]
    return [
        memory.id
        for memory in sorted(memories, key=lambda memory: place(ids.index(memory.id), memory))
    ]


@pytest.mark.guarantee("G-FILTER-1")
@few
@given(
    history=histories,
    wanted=filters,
    more=more,
    limit=st.integers(1, 7),
    order=st.sampled_from([*ORDERS]),
)
def test_a_list_holds_what_a_scan_finds_in_its_order(
    history: list[Any], wanted: dict[str, Any], more: dict[str, Any], limit: int, order: str
) -> None:
    asked = {**wanted, **more}
    with stored(history) as (home, client, ids):
        expected = in_order(scan(client, ids, asked, home.clock.us), ids, order)

        found = client.listed(limit=limit, order=order, **asked)

        assert [memory.id for memory in found] == expected
        assert client.list_page(limit=1, order=order, **asked).total == len(expected)
        assert home.rebuilt().listed(order=order, **asked) == found


@pytest.mark.guarantee("G-PAGE-1")
@few
@given(
    history=histories,
    wanted=filters,
    limit=st.integers(1, 5),
    order=st.sampled_from([*ORDERS]),
)
def test_what_is_added_between_pages_makes_none_of_the_others_come_twice_or_not_at_all(
    history: list[Any], wanted: dict[str, Any], limit: int, order: str
) -> None:
    with stored(history) as (_, client, ids):
        first = [memory.id for memory in client.listed(order=order, **wanted)]

        page = client.list_page(limit=limit, order=order, **wanted)
        seen = [memory.id for memory in page.memories]
        while page.has_more:
            for importance in (0.0, 0.5, 1.0):
                client.add("added meanwhile", importance=importance, event_at="2026-06-10")
            page = client.list_page(limit=limit, order=order, cursor=page.next_cursor, **wanted)
            assert page.total == len(first)
            seen += [memory.id for memory in page.memories]
            if len(seen) > 20 * len(first) + 20:
                break  # as many are added as are read: such a list has no end

        assert len(set(seen)) == len(seen)
        if not page.has_more:
            assert {*first} <= {*seen}
        assert [one for one in seen if one in ids] == [one for one in first if one in seen]


def pieces(client: Client, asked: dict[str, Any], limit: int) -> Iterator[str]:
    cursor = None
    while True:
        part = client.export(limit=limit, cursor=cursor, **asked)
        assert part.count <= limit
        yield part.content
        if not part.has_more:
            return
        assert part.count > 0
        cursor = part.next_cursor


@pytest.mark.guarantee("G-PAGE-1")
@few
@given(history=histories, wanted=filters, more=more, limit=st.integers(1, 7))
def test_an_export_in_pieces_holds_what_a_scan_finds_by_layer_and_newest_first(
    history: list[Any], wanted: dict[str, Any], more: dict[str, Any], limit: int
) -> None:
    asked = {**wanted, **more}
    with stored(history) as (home, client, ids):
        expected = scan(client, ids, asked, home.clock.us)
        by_layer = sorted(
            expected, key=lambda memory: (sorted(LAYERS).index(memory.layer), -ids.index(memory.id))
        )

        lines = "".join(pieces(client, {"export_format": "jsonl", **asked}, limit))
        arrays = pieces(client, {"export_format": "json", **asked}, limit)
        parsed = [memory for array in arrays for memory in json.loads(array)]

        assert [memory["id"] for memory in parsed] == [memory.id for memory in by_layer]
        assert lines.count("\n") == len(expected)
        assert [json.loads(line) for line in lines.split("\n")[:-1]] == parsed
        args = convert({"format": "jsonl", **asked}, ExportArgs)
        assert "".join(client.store.app.export_whole(args, Call())) == lines
