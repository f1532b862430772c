"""Cursors: they go on with their own list, and nothing that is handed in instead does harm."""

import base64
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from server.commands import ExportArgs, ListArgs, SessionListArgs
from server.cursor import Cursor, encode_cursor, list_id
from server.errors import InvalidArgumentsError
from tests.support.store import MEMORY_DISK, Client, home_at

ORDERS: Final = ("newest", "oldest", "changed", "happened", "important")
HUGE: Final = 2**63


# The store is never changed, so all examples may share it.
shared = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@pytest.fixture(name="client")
def _client() -> Iterator[Client]:
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK) as folder, home_at(Path(folder)) as home:
        client = home.open()
        notes = [{"content": f"note {n}", "layer": "semantic", "tags": ["t"]} for n in range(7)]
        client.add_many(*notes)
        for number in range(3):
            client.session_start(f"editor {number}")
        yield client


def text_of(value: object) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(value)).decode().rstrip("=")


def list_(client: Client, cursor: str, **fields: Any) -> None:
    client.list_page(limit=2, cursor=cursor, **fields)


def export(client: Client, cursor: str) -> None:
    client.export("jsonl", limit=2, cursor=cursor)


def sessions(client: Client, cursor: str) -> None:
    client.session_list(limit=2, cursor=cursor)


CALLS: Final[tuple[Callable[[Client, str], None], ...]] = (list_, export, sessions)

LIST_IDS: Final = (
    *(list_id(ListArgs(order=order, limit=2)) for order in ORDERS),
    list_id(ExportArgs(format="jsonl")),
    list_id(SessionListArgs()),
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=5,
)
FORGED = st.tuples(st.sampled_from(LIST_IDS), JSON, JSON | st.lists(JSON, max_size=4))


@shared
@given(
    st.text(st.characters(codec="utf-8"), max_size=40)
    | st.binary(max_size=40).map(lambda raw: base64.urlsafe_b64encode(raw).decode())
    | JSON.map(text_of)
)
@example("=")
@example("A")
@example("é" * 4)
@example(text_of([]))
@example(text_of({}))
@example("W1tb" * 400)
def test_what_is_no_cursor_is_refused_by_name(client: Client, text: str) -> None:
    for call in CALLS:
        with client.refused(InvalidArgumentsError, "`cursor`"):
            call(client, text)


@shared
@given(FORGED, st.sampled_from(ORDERS))
@example((LIST_IDS[0], 7, []), "newest")
@example((LIST_IDS[0], 7, [1, 2, 3]), "newest")
@example((LIST_IDS[0], 7, ["x"]), "newest")
@example((LIST_IDS[0], 7, [HUGE]), "newest")
@example((LIST_IDS[0], HUGE, [1]), "newest")
@example((LIST_IDS[3], 7, [1, HUGE]), "happened")
@example((LIST_IDS[4], 7, ["x", 1]), "important")
@example((LIST_IDS[-2], 7, [1, 1]), "newest")
@example((LIST_IDS[-2], 7, ["semantic", -HUGE]), "newest")
@example((LIST_IDS[-1], 7, ["x"]), "newest")
@example((LIST_IDS[-1], 7, []), "newest")
def test_a_forged_cursor_is_refused_or_gives_a_page(
    client: Client, forged: tuple[str, Any, Any], order: str
) -> None:
    cursor = text_of(forged)
    for call in CALLS:
        with suppress(InvalidArgumentsError):
            call(client, cursor)
    with suppress(InvalidArgumentsError):
        list_(client, cursor, order=order)


@pytest.mark.parametrize(
    "other",
    [
        {"tags": ["t"]},
        {"order": "oldest"},
        {"layers": ["semantic"]},
        {"scope": "global"},
        {"entity_name": "Ana"},
        {"when": "2026"},
        {"include_superseded": True},
        {"include_expired": True},
        {"min_confidence": 0.0},
    ],
    ids=lambda other: next(iter(other)),
)
def test_a_cursor_of_other_filters_or_another_order_is_refused(
    client: Client, other: dict[str, Any]
) -> None:
    cursor = client.list_page(limit=2).next_cursor

    with client.refused(InvalidArgumentsError, "another list"):
        client.list_page(limit=2, cursor=cursor, **other)
    assert client.list_page(limit=3, cursor=cursor).returned_count == 3


def test_a_cursor_of_another_tool_is_refused(client: Client) -> None:
    cursors = {
        list_: client.list_page(limit=2).next_cursor,
        export: client.export("jsonl", limit=2).next_cursor,
        sessions: client.session_list(limit=2).next_cursor,
    }
    for call in CALLS:
        for origin, cursor in cursors.items():
            assert cursor is not None
            if call is origin:
                call(client, cursor)
                continue
            with client.refused(InvalidArgumentsError, "another list"):
                call(client, cursor)


def test_an_export_goes_on_in_the_format_it_began_in(client: Client) -> None:
    cursor = client.export("jsonl", limit=2).next_cursor

    with client.refused(InvalidArgumentsError, "another list"):
        client.export("json", limit=2, cursor=cursor)


def test_every_session_is_listed_once_over_all_pages(client: Client) -> None:
    whole = [session.id for session in client.session_list(limit=100).sessions]
    seen: list[str] = []
    cursor, has_more = None, True
    while has_more:
        page = client.session_list(limit=1, cursor=cursor)
        assert page.total == len(whole)
        seen += [session.id for session in page.sessions]
        cursor, has_more = page.next_cursor, page.has_more

    assert seen == whole
    assert len(whole) == 3


def test_a_cursor_says_where_its_page_ended(client: Client) -> None:
    args = ListArgs(order="oldest", limit=2)
    known = client.listed(order="oldest")

    cursor = encode_cursor(Cursor(list_id(args), 7, (known[3].version,)))

    page = client.list_page(order="oldest", limit=2, cursor=cursor)
    assert [memory.id for memory in page.memories] == [memory.id for memory in known[4:6]]
