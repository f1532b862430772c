"""Exports: parts join, programs can parse them, and no name makes a heading of its own."""

import json
from typing import Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from projections.model import Memory
from server import recall
from server.commands import ExportArgs
from server.export import UNTITLED, write_export
from server.tool import Call
from tests.support.store import Client

LAYERS: Final = ("episodic", "procedural", "resource", "semantic")
HOSTILE: Final = (
    "two\nlines",
    "lone\rreturn",
    "a\r\n# heading",
    "x -->\n# out of the comment",
    "--->",
    "---",
    "=",
    "===\n===",
    "# heading",
    "\u2028# heading",
    "\x85## heading",
    "\x0b\x0c# heading",
    "| a | b |",
    "> quote",
    "- item",
    "<!--",
    "<script>",
    "```",
    "    indented",
    "]: x",
    "\n",
    "\x00",
    "",
)
names = st.one_of(
    st.sampled_from(HOSTILE),
    st.lists(st.sampled_from(["-", ">", "#", "=", "\n", "\r", " ", "<!--", "`", "|", "a"])).map(
        "".join
    ),
)


def memory(number: int, title: str | None, **fields: object) -> Memory:
    known = {
        "id": f"id{number}",
        "layer": "semantic",
        "content": "plain words",
        "scope": "global",
        "confidence": 0.8,
        "importance": 0.5,
        "source": "api",
        "created_at": "2026-06-15T12:00:00.000000Z",
        "updated_at": "2026-06-15T12:00:00.000000Z",
        "status": "active",
        "version": number,
    }
    return Memory(**{**known, "title": title, **fields})  # type: ignore[arg-type]


def headings(text: str) -> list[str]:
    """Return the tags of the headings that a Markdown reader sees."""
    tokens = MarkdownIt("commonmark").parse(text)
    return [token.tag for token in tokens if token.type == "heading_open"]


def comments(text: str) -> list[str]:
    tokens = MarkdownIt("commonmark").parse(text)
    return [token.content for token in tokens if token.type == "html_block"]


@settings(max_examples=settings().max_examples * 2)
@given(st.lists(st.tuples(names, names, names), min_size=1, max_size=3))
@example([(title, title, title) for title in HOSTILE])
def test_a_memory_has_one_heading_whatever_its_names_are(
    named: list[tuple[str, str, str]],
) -> None:
    memories = [
        memory(
            number,
            title,
            entity_name=entity,
            scope=scope,
            source_file=scope,
            tags=(entity, scope) if entity and scope else (),
        )
        for number, (title, entity, scope) in enumerate(named)
    ]

    for_people = "".join(write_export("markdown", memories, len(memories)))
    for_context = "".join(write_export("claude-md", memories, len(memories)))

    assert headings(for_people) == ["h1", "h2", *["h3"] * len(memories)]
    assert headings(for_context) == ["h2"] * len(memories)
    said = comments(for_context)
    assert len(said) == len(memories)
    assert all(one.index("-->") == len(one.rstrip()) - 3 for one in said)


@pytest.mark.parametrize("title", [None, "", "\n", " \r\n "])
def test_a_memory_without_a_title_is_called_untitled(title: str | None) -> None:
    for export_format in ("markdown", "claude-md"):
        text = "".join(write_export(export_format, [memory(1, title)], 1))
        assert f"# {UNTITLED}\n" in text


@given(st.lists(names, max_size=4))
def test_programs_can_parse_what_is_written_for_them(titles: list[str]) -> None:
    memories = [memory(number, title, content=title) for number, title in enumerate(titles)]

    array = "".join(write_export("json", memories, len(memories)))
    lines = "".join(write_export("jsonl", memories, len(memories)))

    parsed = json.loads(array)
    assert [each["content"] for each in parsed] == titles
    assert [json.loads(line) for line in lines.split("\n")[:-1]] == parsed
    assert lines.count("\n") == len(titles)
    assert "\r" not in lines


def test_an_export_of_nothing_is_valid_in_every_format(client: Client) -> None:
    assert json.loads(client.export("json").content) == []
    assert client.export("jsonl").content == ""
    assert client.export("claude-md").content == ""
    assert headings(client.export("markdown").content) == ["h1"]


def test_an_export_goes_layer_by_layer_and_newest_first(client: Client) -> None:
    ids = {layer: [] for layer in LAYERS}  # type: dict[str, list[str]]
    for number in range(9):
        layer = LAYERS[number * 7 % 4]
        ids[layer].insert(0, client.add(f"note {number}", layer=layer).id)

    exported = json.loads(client.export("json").content)

    assert [one["id"] for one in exported] == [one for layer in LAYERS for one in ids[layer]]


@pytest.mark.parametrize("limit", [1, 2, 3, 200])
def test_parts_joined_are_the_whole_when_pages_of_reading_are_small(
    client: Client, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(recall, "EXPORT_PAGE", 2)
    for number in range(7):
        client.add(f"note {number}", layer=LAYERS[number % 4])

    parts, cursor, has_more = [], None, True
    while has_more:
        part = client.export("jsonl", limit=limit, cursor=cursor)
        assert part.total == 7
        parts.append(part.content)
        cursor, has_more = part.next_cursor, part.has_more

    args = ExportArgs(format="jsonl", limit=1)
    assert "".join(parts) == "".join(client.store.app.export_whole(args, Call()))
    assert "".join(parts).count("\n") == 7


def test_a_part_is_as_long_as_a_reply_may_be_and_the_next_goes_on_after_it(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall, "EXPORT_CHARS_MAX", 2_000)
    ids = [client.add("x" * 700).id for _ in range(5)]
    long = client.add("y" * 5_000).id

    counts, seen, cursor, has_more = [], [], None, True
    while has_more:
        part = client.export("json", cursor=cursor)
        counts.append(part.count)
        seen += [one["id"] for one in json.loads(part.content)]
        cursor, has_more = part.next_cursor, part.has_more

    assert seen == [long, *reversed(ids)]
    assert counts == [1, 1, 1, 1, 1, 1]


def test_large_meta_fields_end_a_part_as_long_contents_do(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall, "EXPORT_CHARS_MAX", 2_000)
    for number in range(3):
        client.add(f"note {number}", meta={"page": "x" * 1_500})

    part = client.export("json")

    assert (part.count, part.total, part.has_more) == (1, 3, True)


def test_what_is_marked_in_an_export_is_what_is_not_current(client: Client) -> None:
    old = client.add("the pump is grey", ttl_days=1).id
    new = client.supersede(old, "the pump is green")
    client.add("a draft", layer="episodic", ttl_days=0.0001)
    client.store.app._clock.advance(days=2)  # type: ignore[attr-defined]

    assert json.loads(client.export("json").content) == []
    text = client.export("markdown", include_superseded=True, include_expired=True).content
    assert text.count("**Status:** superseded") == 1
    assert text.count("**Status:** expired") == 2
    assert f"**Id:** {new}" in text
    brief = client.export("claude-md", include_superseded=True, include_expired=True).content
    assert brief.count(" | expired -->") == 2
