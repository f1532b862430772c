"""The differences between two moments: what became of each subject, filtered, paged and shown."""

from typing import Any

import pytest

from server import diff
from server.diff import DiffArgs, DiffResult
from server.diff_view import LINE_CHARS_MAX, LINES_MAX, of_diff
from server.errors import CallCancelledError, InvalidArgumentsError
from server.schema import convert
from server.terminal import Prose
from server.tool import Call
from tests.support.store import Client, Home


def compared(client: Client, since: Any, until: Any = None, **fields: Any) -> DiffResult:
    args = convert({"since": since, "until": until, **fields}, DiffArgs)
    result = client.store.app.diff(args, Call(actor_name="tester"))
    assert result.returned_count == len(result.differences)
    assert result.has_more == (result.next_offset is not None)
    return result


def became(result: DiffResult) -> dict[str, str]:
    return {each.id: each.what for each in result.differences}


def shown(result: DiffResult) -> str:
    view = of_diff(result)
    texts = [block.text for block in view.blocks if isinstance(block, Prose)]
    return "\n".join([*texts, *view.notes])


@pytest.mark.guarantee("G-KNOWN-2")
def test_each_memory_says_what_became_of_it(client: Client) -> None:
    changed, superseded, deleted, kept, back = (
        client.add(f"heron {number}").id for number in range(5)
    )
    gone = client.delete(back).position
    start = client.position()
    client.update(changed, content="grey heron", importance=0.9)
    new = client.supersede(superseded, "white heron")
    client.delete(deleted)
    client.undo(position=gone)
    passing = client.add("a heron that flew by").id
    client.delete(passing)

    result = compared(client, start)

    assert became(result) == {
        changed: "changed",
        superseded: "superseded",
        new: "added",
        deleted: "deleted",
        back: "restored",
    }
    assert result.counts == {
        "memory": {
            "added": 1,
            "changed": 1,
            "deleted": 1,
            "passing": 1,
            "restored": 1,
            "superseded": 1,
        }
    }
    by_id = {each.id: each for each in result.differences}
    assert by_id[changed].before == {"content": "heron 0", "importance": 0.5}
    assert by_id[changed].after == {"content": "grey heron", "importance": 0.9}
    assert by_id[deleted].before["content"] == "heron 2"
    assert by_id[back].after["content"] == "heron 4"
    assert by_id[superseded].after == {"superseded_by": new}
    assert kept not in by_id
    positions = [each.position for each in result.differences]
    assert positions == sorted(positions)


def test_what_is_current_again_is_reactivated(client: Client) -> None:
    old = client.add("heron").id
    new = client.supersede(old, "grey heron")
    start = client.position()
    client.delete(new)

    assert became(compared(client, start)) == {old: "reactivated", new: "deleted"}


def test_sessions_and_aliases_are_compared_too(client: Client) -> None:
    before = client.session_start("editor").id
    client.alias("add", alias="k8s", entity_name="Kubernetes")
    start = client.position()
    client.session_end(before, summary="all done")
    begun = client.session_start("shell").id
    client.alias("remove", alias="k8s")
    client.alias("add", alias="pg", entity_name="Postgres")

    result = compared(client, start)

    assert [(each.kind, each.what) for each in result.differences] == [
        ("session", "changed"),
        ("session", "added"),
        ("alias", "deleted"),
        ("alias", "added"),
    ]
    assert became(result)[begun] == "added"
    assert result.differences[0].after["summary"] == "all done"
    assert result.differences[2].before == {"name": "k8s", "entity": "Kubernetes"}


def test_a_redaction_is_named_without_a_word_of_what_it_took(client: Client) -> None:
    stored = client.add("heron").id
    other = client.add("egret").id
    start = client.position()
    client.redact(stored)

    result = compared(client, start)

    assert became(result) == {stored: "redacted"}
    assert result.counts == {"memory": {"redacted": 1}}
    assert result.since.redacted_since == 1
    assert became(compared(client, start, memory=other)) == {}
    assert became(compared(client, start, memory=stored)) == {stored: "redacted"}
    assert "heron" not in shown(result)
    assert "1 redaction since" in shown(result)


def test_a_gap_at_the_second_moment_is_a_redaction_and_no_deletion(client: Client) -> None:
    stored = client.add("heron").id
    session = client.session_start("editor").id
    client.alias("add", alias="k8s", entity_name="Kubernetes")
    start = client.position()
    client.redact(event=client.update(stored, content="egret").position)
    middle = client.position()
    client.session_end(session, summary="all egrets")
    client.redact(event=client.position())
    (alias,) = client.redact(entity="Kubernetes").memories

    result = compared(client, start, middle)
    assert became(result) == {stored: "redacted"}
    assert result.differences[0].before["content"] == "heron"
    assert result.total == 1
    later = compared(client, middle)
    assert became(later) == {session: "redacted", alias: "redacted"}
    assert became(compared(client, 0)) == {stored: "redacted", session: "redacted"} | {
        alias: "redacted"
    }
    assert "egret" not in shown(result) + shown(later)


def test_what_is_erased_before_and_after_is_no_difference_but_the_redaction(
    client: Client,
) -> None:
    session = client.session_start("editor").id
    client.redact(session)
    start = client.position()
    other = client.session_start("editor").id
    client.redact(other)

    result = compared(client, start)

    assert became(result) == {other: "redacted"}
    assert result.counts == {"session": {"redacted": 1}}


def test_nothing_differs_between_a_moment_and_itself(client: Client) -> None:
    client.add("heron")

    result = compared(client, 3, 3)

    assert (result.differences, result.total, result.counts) == ((), 0, {})
    assert "nothing differs" in shown(result)


def test_what_was_changed_and_changed_back_does_not_differ(client: Client) -> None:
    stored = client.add("heron").id
    start = client.position()
    client.undo(position=client.update(stored, content="egret").position)

    assert became(compared(client, start)) == {}


def test_filters_hold_at_either_moment(client: Client) -> None:
    client.alias("add", alias="k8s", entity_name="Kubernetes")
    start = client.position()
    stored = client.add("heron", entity_name="Kubernetes", scope="zoo").id
    other = client.add("egret", layer="procedural").id
    session = client.session_start("shell").id
    client.alias("add", alias="kube", entity_name="Kubernetes")
    client.alias("add", alias="pg", entity_name="Postgres")
    passing = client.add("passing", scope="zoo").id
    client.delete(passing)

    assert set(became(compared(client, start, entity="kube")).values()) == {"added"}
    assert len(became(compared(client, start, entity="kube"))) == 2
    assert became(compared(client, start, scope="zoo")) == {stored: "added"}
    assert compared(client, start, scope="zoo").counts == {"memory": {"added": 1, "passing": 1}}
    assert became(compared(client, start, layer="procedural")) == {other: "added"}
    assert became(compared(client, start, memory=other)) == {other: "added"}
    assert became(compared(client, start, memory=other, scope="zoo")) == {}
    assert session in became(compared(client, start))


def test_only_the_own_workspace_is_compared(home: Home, client: Client) -> None:
    client.add("heron")
    home.open("other").add("egret")
    home.open("other").session_start("shell")

    assert len(compared(client, 0).differences) == 1
    assert compared(home.open("third"), 0).differences == ()


def test_pages_are_cut_from_one_list_and_say_what_was_cut(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [client.add(f"heron {number} " + "x" * 1_000).id for number in range(7)]
    pages, offset = [], 0
    while True:
        page = compared(client, 0, limit=3, offset=offset)
        assert page.total == 7
        pages.append([each.id for each in page.differences])
        if page.next_offset is None:
            break
        assert f"of 7 differences; more: --offset {page.next_offset}" in shown(page)
        offset = page.next_offset
    assert [each for page in pages for each in page] == ids
    assert [len(page) for page in pages] == [3, 3, 1]
    assert "1 of 7 differences" in shown(page)

    monkeypatch.setattr(diff, "CHARS_MAX", 10)
    assert compared(client, 0).next_offset == 1


def test_moments_are_times_too_and_the_later_one_is_now_unless_said(
    home: Home, client: Client
) -> None:
    first = client.add("heron").id
    home.clock.advance(days=2)
    second = client.add("egret").id

    assert became(compared(client, "yesterday")) == {second: "added"}
    assert became(compared(client, "2026-06-14", "2026-06-15")) == {first: "added"}
    result = compared(client, "2026-06-15")
    assert (result.since.position, result.until.position) == (3, 4)
    assert result.since.at == "2026-06-15T23:59:59.999999Z"


@pytest.mark.parametrize(
    ("since", "until", "words"),
    [
        (4, 3, ("`since` is position 4", "position 3", "earlier moment first")),
        (9, None, ("`since` is position 9", "ends at position 4")),
        (3, 9, ("`until` is position 9",)),
        ("soonish", None, ("`since`", "not understood")),
        (3, "soonish", ("`until`", "not understood")),
    ],
)
def test_what_cannot_be_compared_is_refused_and_named(
    client: Client, since: object, until: object, words: tuple[str, ...]
) -> None:
    client.add("heron")
    client.add("egret")
    with client.refused(InvalidArgumentsError, *words):
        compared(client, since, until)


def test_a_cancelled_comparison_stops(client: Client) -> None:
    client.add("heron")
    call = Call()
    call.cancel()
    with pytest.raises(CallCancelledError):
        client.store.app.diff(DiffArgs(since=0), call)


def test_people_see_a_patch_of_each_text(client: Client) -> None:
    stored = client.add("one\ntwo\nthree", title="Counting", entity_name="numbers").id
    start = client.position()
    client.update(stored, content="one\n2\nthree", tags=["a", "b"], meta={"checked": True})

    text = shown(compared(client, start))

    assert f"~ memory {stored} changed (position {start + 1})" in text
    assert "      -two\n      +2" in text
    assert "    tags: none -> a, b" in text
    assert '    meta: {} -> {"checked":true}' in text
    added = shown(compared(client, 0, start))
    assert f"+ memory {stored} added [semantic, numbers]" in added
    assert "    title: Counting" in added
    assert "    + two" in added
    client.delete(stored)
    assert f"- memory {stored} deleted" in shown(compared(client, start))


def test_people_see_the_beginning_of_long_texts_and_how_much_is_left_out(client: Client) -> None:
    client.add("\n".join(f"line {number}" for number in range(LINES_MAX + 5)), title="t" * 500)
    client.add("x" * (LINE_CHARS_MAX + 100))

    text = shown(compared(client, 0))

    assert "5 more lines" in text
    assert "more characters" in text
    assert "t" * (LINE_CHARS_MAX + 1) not in text
