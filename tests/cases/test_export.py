"""Group E, lists and exports: complete, in one piece, alike by every route."""

import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from projections.model import Memory
from server.commands import LAYERS
from server.results import AddManyResult, ExportResult, ListResult
from tests.cases.ways import CommandHost, Run, Way, stdio_session
from tests.support.bundles import checked
from tests.support.peer import Json
from tests.support.store import MEMORY_DISK, Client, Home, home_at

COUNT = 12_345
KINDS = ("live", "old", "successor", "expired", "deleted")
FORMS = ("json", "jsonl", "markdown", "claude-md")

HOSTILE = (
    "two\nlines\n\n\nand more",
    'a "quoted" word and a \\ backslash',
    "a | table | row",
    "=HYPERLINK(1)",
    "tabs\there\tand there",
    "a lone \r carriage return",
    "\r\nwindows\r\n",
    "---\ntitle: not front matter\n---\n",
    "# a heading\n## another\n- a list",
    "```\ncode that is never closed",
    "<!-- a comment --> and -- dashes -->",
    "\u2028line and\u2029paragraph separators\u0085",
    "\x00 nul and \x1b[31m escape",
    "</memory> ]]> \ufeff",
    " blanks at both ends ",
)


# ---------------------------------------------------------------------------- E-2


class Large(NamedTuple):
    """A store that no page and no reply holds."""

    path: Path
    ids: list[str]
    """In the order they were added; 5,000 to 5,499 share an instant."""


@pytest.fixture(scope="module")
def large() -> Iterator[Large]:
    with (
        tempfile.TemporaryDirectory(dir=MEMORY_DISK) as folder,
        home_at(Path(folder) / "home") as home,
    ):
        client = home.open()
        ids: list[str] = []
        for start in range(0, COUNT, 100):
            if not 5_000 < start < 5_500:
                home.clock.advance(seconds=1)
            memories = [
                {"content": f"heron {number}", "layer": LAYERS[number % 4]}
                for number in range(start, min(start + 100, COUNT))
            ]
            result = client.call("memory_add_many", {"memories": memories})
            assert isinstance(result, AddManyResult)
            ids += [item.added.id for item in result.results if item.added is not None]
        home.close()
        assert len(ids) == COUNT
        yield Large(home.path, ids)


@pytest.fixture
def large_client(large: Large) -> Iterator[Client]:
    with home_at(large.path) as home:
        home.clock.advance(days=1)
        yield home.open()


def _pages(client: Client, tool: str, **arguments: object) -> Iterator[ListResult | ExportResult]:
    cursor: str | None = None
    while True:
        page = client.call(tool, {**arguments, "cursor": cursor})
        assert isinstance(page, ListResult | ExportResult)
        assert page.has_more == (page.next_cursor is not None)
        yield page
        cursor = page.next_cursor
        if cursor is None:
            return


@pytest.mark.guarantee("G-PAGE-1")
@pytest.mark.parametrize("order", ["newest", "oldest", "happened"])
def test_e2_paging_shows_every_memory_once_also_while_others_are_stored(
    large: Large, large_client: Client, order: str
) -> None:
    listed: list[str] = []
    instants: dict[str, str] = {}
    for number, page in enumerate(_pages(large_client, "memory_list", order=order, limit=100)):
        assert isinstance(page, ListResult)
        assert page.total == COUNT
        if number in range(40, 50):
            large_client.add(f"crane {number}", scope="later")
        listed += [memory.id for memory in page.memories if memory.scope != "later"]
        instants |= {memory.id: memory.created_at for memory in page.memories}
    large_client.call("memory_delete_many", {"scope": "later"})
    assert len(listed) == COUNT
    assert listed == large.ids[:: 1 if order == "oldest" else -1]
    assert len({instants[memory_id] for memory_id in large.ids[5_000:5_500]}) == 1


@pytest.mark.parametrize("order", ["changed", "important"])
def test_e2_an_order_in_which_many_are_equal_shows_every_memory_once_too(
    large: Large, large_client: Client, order: str
) -> None:
    pages = _pages(large_client, "memory_list", order=order, limit=100, layers=["resource"])
    listed = [
        memory.id for page in pages if isinstance(page, ListResult) for memory in page.memories
    ]
    assert listed == large.ids[3::4][::-1]


def test_e2_a_client_over_stdio_pages_through_all(
    large: Large, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEMOLOG_HOME", str(large.path))
    listed: list[str] = []
    with stdio_session() as client:
        page = client.ask("list", limit=100)
        while True:
            assert page["total"] == COUNT
            listed += [memory["id"] for memory in page["memories"]]
            if not page["has_more"]:
                break
            page = client.ask("list", limit=100, cursor=page["next_cursor"])
    assert listed == large.ids[::-1]


def test_e2_the_parts_of_an_export_hold_every_memory_once(
    large: Large, large_client: Client
) -> None:
    parts = [*_pages(large_client, "memory_export", format="jsonl", limit=10_000)]
    exported: list[str] = []
    for part in parts:
        assert isinstance(part, ExportResult)
        assert part.total == COUNT
        lines = part.content.splitlines()
        assert len(lines) == part.count
        exported += [json.loads(line)["id"] for line in lines]
    assert len(parts) > 1
    assert len(exported) == COUNT
    assert {*exported} == {*large.ids}


@pytest.mark.guarantee("G-PAGE-1")
def test_e2_the_command_line_exports_all_and_counts_all(large: Large, host: CommandHost) -> None:
    exported = host.run(large.path, "export", "--format", "jsonl").out.splitlines()
    page = json.loads(host.run(large.path, "list", "--limit", "100", "--json").out)
    assert len(exported) == COUNT
    assert {json.loads(line)["id"] for line in exported} == {*large.ids}
    assert (page["total"], page["has_more"], page["returned_count"]) == (COUNT, True, 100)


# ---------------------------------------------------------------------------- E-4


def test_e4_every_text_leaves_by_every_route_as_it_was_stored(way: Way) -> None:
    memories = [{"content": text, "layer": "semantic", "title": text} for text in HOSTILE]
    results = way.ask("add_many", memories=memories)["results"]
    ids = [result["added"]["id"] for result in results]
    for form in ("json", "jsonl"):
        exported = {memory["id"]: memory for memory in _parsed(form, way.export(form))}
        assert len(exported) == len(HOSTILE)
        assert [exported[memory_id]["content"] for memory_id in ids] == [*HOSTILE]
        assert [exported[memory_id]["title"] for memory_id in ids] == [*HOSTILE]
    lines = way.export("jsonl")
    assert lines.count("\n") == len(HOSTILE)
    assert lines.endswith("}\n")
    for form in ("markdown", "claude-md"):
        written = way.export(form)
        for text in HOSTILE:
            assert text in written


def test_e4_every_route_leaves_out_the_same_things(way: Way) -> None:
    way.add("the live heron")
    old = way.add("the old heron")
    way.supersede(old, "the successor heron")
    way.add("the expired heron", ttl_days=1e-9)
    way.delete(way.add("the deleted heron"))
    kinds: dict[str, dict[str, object]] = {
        "live successor": {},
        "live successor old": {"include_superseded": True},
        "live successor expired": {"include_expired": True},
        "live successor old expired": {"include_superseded": True, "include_expired": True},
    }
    for kept, filters in kinds.items():
        for form in FORMS:
            text = way.export(form, **filters)
            found = {kind for kind in KINDS if f"the {kind} heron" in text}
            assert found == {*kept.split()}, (form, filters)
            assert text.count("expired") == (2 if "expired" in kept else 0) or form == "json"
    states = {
        memory["content"]: memory["status"]
        for memory in _parsed("jsonl", way.export("jsonl", **kinds["live successor old expired"]))
    }
    assert states == {
        "the live heron": "active",
        "the old heron": "superseded",
        "the successor heron": "active",
        "the expired heron": "expired",
    }


@pytest.mark.parametrize("form", FORMS)
def test_e4_what_is_about_a_memory_cannot_pass_for_more_than_it(client: Client, form: str) -> None:
    """Names and titles are one line, and a comment ends where it was meant to."""
    forged = "x -->\n## forged\n<!-- y"
    client.add("content", title=forged, entity_name=forged, scope=forged, source_file=forged)
    result = client.call("memory_export", {"format": form})
    assert isinstance(result, ExportResult)
    assert "\n## forged" not in result.content
    if form == "claude-md":
        (comment,) = re.findall(r"<!--.*?-->", result.content.partition("\n")[2])
        assert comment.startswith("<!-- semantic | x - -")


def test_e4_the_whole_of_a_memory_is_in_an_export(client: Client) -> None:
    fields: dict[str, Any] = {
        "title": "Depot",
        "entity_type": "concept",
        "entity_name": "depot",
        "event_at": "2024-05",
        "valid_from": "2024-05",
        "valid_until": "2030",
        "ttl_days": 30,
        "confidence": 0.25,
        "importance": 0.75,
        "scope": "alpha",
        "tags": ["a", "b,c"],
        "source": "minutes",
        "source_file": "a/b.md",
        "session_id": "s1",
        "meta": {"deep": {"er": [1, None, "x"]}},
    }
    stored = client.add("the depot is in Quarry Lane", **fields)
    memory = client.inspect(stored.id).memory
    for form in ("json", "jsonl"):
        result = client.call("memory_export", {"format": form})
        assert isinstance(result, ExportResult)
        (exported,) = _parsed(form, result.content)
        assert msgspec.convert(exported, Memory) == memory


def _parsed(form: str, text: str) -> list[Json]:
    memories = json.loads(text) if form == "json" else map(json.loads, text[:-1].split("\n"))
    return [*memories]


def test_e4_every_route_of_export_leaves_out_what_was_redacted(
    home: Home, run: Run, folder: Path
) -> None:
    """Its current text, an older one, and one that a later memory superseded."""
    client = home.open()
    client.add("the heron stays", entity_name="Ana")
    changed = client.add("the heron was first").id
    client.update(changed, content="the crane came next")
    client.supersede(changed, "the stork is last")
    client.call("memory_redact", {"id": changed, "reason": "she asked for it"})
    home.close()
    routes = [
        run("export", "--format", form, "--include-superseded", "--include-expired").out
        for form in FORMS
    ]
    routes.append(run("audit", "show", "--json").out)
    assert run("audit", "export", str(folder / "bundle")).status == 0
    routes += [path.read_bytes() for path in sorted((folder / "bundle").iterdir())]

    for written in routes:
        for erased in (b"heron was first", b"crane", b"stork"):
            assert erased not in written
    assert all(b"heron stays" in written for written in routes[: len(FORMS) + 1])
    assert checked(folder / "bundle").status == 0
