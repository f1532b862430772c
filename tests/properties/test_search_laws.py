"""Any store, any filters: a search finds what a scan of every memory would, and pages cut it up."""

import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import parse_span, parse_us
from projections.model import Memory
from projections.text import analyze, fold, parse_query
from server.results import Found
from tests.support.store import MEMORY_DISK, Client, Home, flush_substrings

WORDS: Final = (
    "boiler",
    "boilers",
    "pump",
    "Pump",
    "насос",
    "насосы",
    "Фёдор",
    "федор",
    "服务器",
    "服务",
    "器",
    "🚀",
    "e\u0301t\u00e9",
    "70/140",
    "x-42",
    "the",
    "AND",
    "\x00",
    "ab",
)
DATES: Final = (
    "2026-05-01",
    "2026-06-10",
    "2026-06-10T10:00",
    "2026-06-10T12:00:00+02:00",
    "2026-06-14",
)
MOMENTS: Final = (*DATES, "2026-06-12", "2026-06-13T12:00:00", "2026-06-16", "2026-07-01")
LAYERS: Final = ("episodic", "semantic", "procedural", "resource")
SCOPES: Final = ("fern", "fern-lab", "f_rn", "fe%", "FERN", "")
TAGS: Final = ("port", "report", "50%", "red_box", "redXbox", "a,b", "[x]")
NAMES: Final = ("Ana", "ana", "Фёдор", "")
FILES: Final = ("notes/a.md", "Notes/a.md", "")
SESSIONS: Final = ("s-1", "S-1", "%")
WHEN: Final = {"2026": "2026", "2026-06": "2026-06", "June 2026": "2026-06"}
"""What `when` says -> the date whose whole it means."""

texts = (
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=5)
    .map(" ".join)
    .filter(lambda text: text.strip("\x00 "))
)
memories = st.fixed_dictionaries(
    {"content": texts, "layer": st.sampled_from(LAYERS)},
    optional={
        "title": texts,
        "entity_name": st.sampled_from(NAMES),
        "scope": st.sampled_from(SCOPES),
        "tags": st.lists(st.sampled_from(TAGS), max_size=3),
        "event_at": st.sampled_from(DATES),
        "valid_from": st.sampled_from(DATES[:3]),
        "valid_until": st.sampled_from(DATES[2:]),
        "ttl_days": st.sampled_from([0.5, 1, 3, 400]),
        "confidence": st.sampled_from([0, 0.3, 0.8, 1]),
        "importance": st.sampled_from([0, 0.5, 1]),
        "source_file": st.sampled_from(FILES),
        "session_id": st.sampled_from(SESSIONS),
    },
)
steps = st.tuples(
    st.sampled_from(
        [
            *("add", "add", "add", "add", "add"),
            *("supersede", "edit", "delete", "wait", "flush"),
            *("name", "rename", "delete and undo"),
        ]
    ),
    memories,
    st.integers(0, 30),
)
filters = st.fixed_dictionaries(
    {},
    optional={
        "layers": st.lists(st.sampled_from(LAYERS), max_size=3),
        "entity_name": st.sampled_from(NAMES),
        "scope": st.sampled_from(SCOPES),
        "tags": st.lists(st.sampled_from(TAGS), max_size=2),
        "date_from": st.sampled_from(DATES),
        "date_to": st.sampled_from(MOMENTS[-2:]),
        "as_of": st.sampled_from(MOMENTS),
        "min_confidence": st.sampled_from([0, 0.3, 0.9]),
        "min_importance": st.sampled_from([0.5, 1]),
        "include_superseded": st.booleans(),
        "session_id": st.sampled_from(SESSIONS),
        "source_file": st.sampled_from(FILES),
        "when": st.sampled_from([*WHEN]),
    },
)
queries = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join).filter(str.strip)
substrings = st.one_of(
    queries, st.sampled_from(["oil", "р н", "ум", "0", "器 ", "É", "p P", "т", '"'])
)


@contextmanager
def stored(
    history: list[tuple[str, dict[str, Any], int]],
) -> Iterator[tuple[Home, Client, list[str]]]:
    """A store with such a history, and the ids of the memories that are in it."""
    folder = Path(tempfile.mkdtemp(prefix="laws-", dir=MEMORY_DISK))
    home = Home(folder / "home")
    try:
        client = home.open()
        home.open("other").add("boiler pump насос 服务器 🚀 ab")  # must never be seen
        yield home, client, _play(home, client, history)
    finally:
        home.close()
        shutil.rmtree(folder)


def _play(home: Home, client: Client, history: list[tuple[str, dict[str, Any], int]]) -> list[str]:
    ids: list[str] = []
    for action, fields, number in history:
        chosen = ids[number % len(ids)] if ids else None
        if action == "wait":
            home.clock.advance(days=number / 10)
        elif action == "flush":
            flush_substrings(client)
        elif action in {"name", "rename"}:
            _name(client, number, remove=action == "rename")
        elif action == "add" or chosen is None:
            if _lasts(fields):
                ids.append(client.add(**fields).id)
        elif action == "delete":
            client.delete(chosen)
            ids.remove(chosen)
        elif action == "delete and undo":
            everything = client.delete_many(everything=True)
            client.undo(position=everything.position)
        else:
            ids += _change(client, chosen, fields, supersede=action == "supersede")
    return ids


def _change(client: Client, chosen: str, fields: dict[str, Any], *, supersede: bool) -> list[str]:
    """Edit a memory or put another in its place; return the new ids."""
    if not supersede:
        names = [name for name in ("content", "title", "tags") if name in fields]
        client.update(chosen, **{name: fields[name] for name in names})
        return []
    memory = client.inspect(chosen).memory
    assert memory is not None
    return [] if memory.superseded_by else [client.supersede(chosen, fields["content"])]


def _name(client: Client, number: int, *, remove: bool) -> None:
    """Make a name the further name of another one, or no more that."""
    name, entity = NAMES[number % 3], NAMES[number // 3 % 3]
    known = {alias.alias for alias in client.alias("list").aliases}
    if remove and name in known:
        client.alias("remove", alias=name)
    elif not remove and name not in known:
        client.alias("add", alias=name, entity_name=entity)


def _lasts(fields: dict[str, Any]) -> bool:
    """Whether the dates leave a fact any time to hold, which is asked of every memory."""
    if "valid_from" not in fields or "valid_until" not in fields:
        return True
    return parse_span(fields["valid_from"])[0] < parse_span(fields["valid_until"])[1]


def happened(memory: Memory) -> tuple[int, int]:
    created = parse_us(memory.created_at)
    return (created, created + 1) if memory.event_at is None else parse_span(memory.event_at)


def held_from(memory: Memory) -> float:
    if memory.valid_from is not None:
        return parse_span(memory.valid_from)[0]
    if memory.supersedes is not None and memory.event_at is not None:
        return parse_span(memory.event_at)[0]
    return float("-inf")


def held_until(memory: Memory, successor: Memory | None) -> float:
    ends = [float("inf")]
    if memory.valid_until is not None:
        ends.append(parse_span(memory.valid_until)[1])
    if memory.expires_at is not None:
        ends.append(parse_us(memory.expires_at))
    if successor is not None:
        start = held_from(successor)
        ends.append(parse_us(successor.created_at) if start == float("-inf") else start)
    return min(ends)


def satisfies(
    memory: Memory,
    wanted: dict[str, Any],
    all_: dict[str, Memory],
    now_us: int,
    names: set[str],
) -> bool:
    if "as_of" in wanted:
        moment = parse_span(wanted["as_of"])[1] - 1
        successor = None if memory.superseded_by is None else all_[memory.superseded_by]
        in_time = held_from(memory) <= moment < held_until(memory, successor)
    else:
        expired = memory.expires_at is not None and parse_us(memory.expires_at) <= now_us
        superseded = memory.superseded_by is not None
        in_time = (not expired or wanted.get("include_expired", False)) and (
            not superseded or wanted.get("include_superseded", False)
        )
    begins, ends = happened(memory)
    then = parse_span(WHEN[wanted["when"]]) if "when" in wanted else (begins, ends)
    return (
        in_time
        and (not wanted.get("layers") or memory.layer in wanted["layers"])
        and ("entity_name" not in wanted or memory.entity_name in names)
        and ends > then[0]
        and begins < then[1]
        and all(
            getattr(memory, name) == wanted[name]
            for name in ("scope", "session_id", "source_file")
            if name in wanted
        )
        and {*wanted.get("tags", ())} <= {*memory.tags}
        and ("date_from" not in wanted or ends > parse_span(wanted["date_from"])[0])
        and ("date_to" not in wanted or begins < parse_span(wanted["date_to"])[1])
        and memory.confidence >= wanted.get("min_confidence", 0)
        and memory.importance >= wanted.get("min_importance", 0)
    )


def holds_a_word(memory: Memory, query: str) -> bool:
    text = " ".join([memory.title or "", memory.content, memory.entity_name or ""])
    found = [token.term for token in analyze(text)]
    return any(term.matches(word) for term in parse_query(query).terms for word in found)


def scan(client: Client, ids: list[str], wanted: dict[str, Any], now_us: int) -> list[Memory]:
    """Every memory that satisfies the filters, without any index."""
    all_ = {memory_id: client.inspect(memory_id).memory for memory_id in ids}
    known = {memory_id: memory for memory_id, memory in all_.items() if memory is not None}
    assert len(known) == len(ids)
    wanted = {name: value for name, value in wanted.items() if value != ""}  # no filter
    names = _names_of(client, wanted.get("entity_name", ""))
    return [memory for memory in known.values() if satisfies(memory, wanted, known, now_us, names)]


def _names_of(client: Client, name: str) -> set[str]:
    pairs = [{alias.alias, alias.entity_name} for alias in client.alias("list").aliases]
    names = {name}
    for _ in pairs:
        names = names.union(*(pair for pair in pairs if pair & names))
    return names


def scored(memories: list[Found]) -> list[tuple[str, float]]:
    return [(memory.id, memory.score) for memory in memories]


histories = st.lists(steps, min_size=1, max_size=25)


@pytest.mark.guarantee("G-FILTER-1")
@settings(max_examples=settings().max_examples // 2)
@given(history=histories, query=queries, wanted=filters, limit=st.integers(1, 7))
def test_a_word_search_finds_what_a_scan_finds(
    history: list[Any], query: str, wanted: dict[str, Any], limit: int
) -> None:
    with stored(history) as (home, client, ids):
        expected = {
            memory.id
            for memory in scan(client, ids, wanted, home.clock.us)
            if holds_a_word(memory, query)
        }
        found = client.pages(query, limit=limit, **wanted)
        assert sorted(memory.id for memory in found) == sorted(expected)
        # Pages of another size cut the same list; it begins with the best.
        assert scored(found) == scored(client.pages(query, **wanted))
        # A rebuilt store gives the same hits and scores.
        assert scored(home.rebuilt().pages(query, limit=limit, **wanted)) == scored(found)


@pytest.mark.guarantee("G-FILTER-1")
@settings(max_examples=settings().max_examples // 2)
@given(history=histories, text=substrings, wanted=filters, limit=st.integers(1, 7))
def test_an_exact_search_finds_what_a_scan_finds_whatever_waits_to_be_indexed(
    history: list[Any], text: str, wanted: dict[str, Any], limit: int
) -> None:
    with stored(history) as (home, client, ids):
        expected = {
            memory.id
            for memory in scan(client, ids, wanted, home.clock.us)
            if fold(text) in fold(memory.content)
        }
        found = client.pages(text, limit=limit, mode="exact", **wanted)
        assert sorted(memory.id for memory in found) == sorted(expected)
        flush_substrings(client)
        assert scored(client.pages(text, mode="exact", **wanted)) == scored(found)
        rebuilt = home.rebuilt()
        assert scored(rebuilt.pages(text, mode="exact", **wanted)) == scored(found)


def test_pages_of_any_size_cut_one_list_when_there_are_hundreds_of_hits() -> None:
    choose = random.Random(20260615)
    vocabulary = ["tidal", "gauge", "buoy", "harbour", "anchor"]
    with stored([]) as (_, client, _ids):
        notes = [
            {
                "content": " ".join(choose.choices(vocabulary, k=choose.randint(1, 6))),
                "layer": "semantic",
                "importance": choose.randint(0, 10) / 10,
            }
            for _ in range(320)
        ]
        ids: list[str] = []
        for start in range(0, len(notes), 80):
            batch = client.add_many(*notes[start : start + 80]).results
            ids += [each.added.id for each in batch if each.added is not None]
        assert len(ids) == len(notes)
        for query in ("tidal", "tidal gauge buoy", "harbour nonesuch", "anchor tidal"):
            whole = scored(client.pages(query, limit=100))
            assert len({memory_id for memory_id, _ in whole}) == len(whole)
            assert {memory_id for memory_id, _ in whole} <= {*ids}
            for limit in (4, 33, 64):
                assert scored(client.pages(query, limit=limit)) == whole
            for offset in (0, 9, 60, 99, 100, 150):
                page = client.search(query, limit=20, offset=offset).memories
                assert [memory.id for memory in page] == [
                    one for one, _ in whole[offset : offset + 20]
                ]
