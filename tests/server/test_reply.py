"""Replies: what may be cut, and what is said of it."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.model import Memory
from server.commands import CONTENT_CHARS_MAX
from server.reply import REPLY_CONTENT_CHARS_MAX, Budget, cut_notes, fitted
from tests.support.store import START, Client

SHORT = 40
LENGTHS = st.sampled_from([1, SHORT, 30_000, 60_000, CONTENT_CHARS_MAX])
ENTRIES = st.lists(st.tuples(LENGTHS, st.sampled_from([0, 40, 60_000, 150_000])), max_size=8)


def memory(content: str, meta: str) -> Memory:
    return Memory(
        id="m",
        layer="semantic",
        content=content,
        meta={"text": meta} if meta else {},
        scope="",
        confidence=1.0,
        importance=0.5,
        source="test",
        created_at=START,
        updated_at=START,
        status="active",
        version=1,
    )


def size(entry: Memory) -> int:
    return len(entry.content) + (len(msgspec.json.encode(entry.meta)) if entry.meta else 0)


@pytest.mark.guarantee("G-REPLY-1")
@given(ENTRIES)
def test_a_reply_is_bounded_and_marks_all_that_it_cut_and_nothing_else(
    lengths: list[tuple[int, int]],
) -> None:
    given_entries = [memory("x" * content, "y" * meta) for content, meta in lengths]
    budget = Budget()

    shown = fitted(given_entries, budget)

    assert len(shown) == len(given_entries)
    assert shown[:1] == tuple(given_entries[:1])
    whole = [entry for entry in shown if not entry.content_cut]
    # Of what is as short as a beginning nothing can be cut.
    sizes = [size(entry) for entry in whole if entry.meta or len(entry.content) > SHORT]
    assert sum(sizes) <= max([REPLY_CONTENT_CHARS_MAX, *sizes[:1]])
    for entry, before in zip(shown, given_entries, strict=True):
        assert entry.content_cut == (entry != before)
        assert not entry.content_cut or (entry.meta == {} and len(entry.content) < 1_000)
    assert budget.cut == len(shown) - len(whole)
    assert bool(cut_notes(budget)) == bool(budget.cut)


def test_a_list_counts_meta_too(client: Client) -> None:
    for number in range(5):
        client.add(f"note {number}", meta={"text": "y" * 40_000})

    page = client.list_page(limit=10)

    assert [memory.content_cut for memory in page.memories] == [False, False, True, True, True]
    assert [bool(memory.meta) for memory in page.memories] == [True, True, False, False, False]
    assert len(msgspec.json.encode(page)) < 2 * REPLY_CONTENT_CHARS_MAX
    assert any("content_cut" in note for note in page.notes)


def test_a_search_marks_no_content_that_it_shows_whole(client: Client) -> None:
    client.add("heron " * 16_600)
    short = client.add("a short note of a heron").id

    found = client.search("heron").memories

    assert {memory.id: memory.content_cut for memory in found}[short] is False
