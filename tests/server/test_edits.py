"""memory_patch and memory_append: edits of a memory's text."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.commands import CONTENT_CHARS_MAX, PATCHES_MAX
from server.errors import (
    AnchorError,
    IdempotencyConflictError,
    InvalidArgumentsError,
    NotFoundError,
    RedactedError,
    UseCaseError,
    VersionConflictError,
)
from server.results import AppendResult, PatchResult
from tests.support.cli import Shell
from tests.support.store import Client, scratch_home


def patch(client: Client, memory_id: str, *patches: dict[str, Any], **more: object) -> PatchResult:
    result = client.call("memory_patch", {"id": memory_id, "patches": list(patches), **more})
    assert isinstance(result, PatchResult)
    return result


def append(client: Client, memory_id: str, text: str, **more: object) -> AppendResult:
    result = client.call("memory_append", {"id": memory_id, "text": text, **more})
    assert isinstance(result, AppendResult)
    return result


def one(old: str, new: str, *, everywhere: bool = False) -> dict[str, Any]:
    return {"old_string": old, "new_string": new, "replace_all": everywhere}


def content_of(client: Client, memory_id: str) -> str:
    memory = client.inspect(memory_id).memory
    assert memory is not None
    return memory.content


# ---------------------------------------------------------------------------- patching


def test_patches_work_one_after_the_other(client: Client) -> None:
    added = client.add("Deploys go out on Tuesday, at ten")

    done = patch(client, added.id, one("Tuesday", "Wednesday"), one("Wednesday, at", "Friday at"))

    assert content_of(client, added.id) == "Deploys go out on Friday at ten"
    assert (done.patched_id, done.changed, done.patches_applied, done.replacements) == (
        added.id, True, 2, 2,
    )  # fmt: skip
    assert (done.version, done.position) == (added.position + 1, added.position + 1)
    assert done.content_chars == len("Deploys go out on Friday at ten")
    assert client.search("friday").memories
    assert not client.search("tuesday").memories


def test_all_are_done_or_none(client: Client) -> None:
    added = client.add("one two three")

    with client.refused(AnchorError, "`patches[1].old_string`") as caught:
        patch(client, added.id, one("one", "1"), one("one", "2"), one("three", "3"))

    assert caught.value.details == {"index": 1, "matches": 0}
    assert content_of(client, added.id) == "one two three"


def test_more_than_one_place_is_told_and_replaced_only_if_asked(client: Client) -> None:
    added = client.add("v1 and v1 and v1")

    with client.refused(AnchorError, "3 times", "replace_all") as caught:
        patch(client, added.id, one("v1", "v2"))
    done = patch(client, added.id, one("v1", "v2", everywhere=True))

    assert caught.value.details == {"index": 0, "matches": 3}
    assert (done.replacements, content_of(client, added.id)) == (3, "v2 and v2 and v2")


@pytest.mark.parametrize(
    ("content", "old", "differs"),
    [
        ("first\r\nsecond", "first\nsecond", "line ends"),
        ("cafe\u0301 noir", "caf\u00e9 noir", "Unicode"),
        ("a  wide\tspace", "a wide space", "in blanks"),
        ("Deploy Day", "deploy day", "in case"),
        ("Deploy  Day", "deploy day", "blanks and case"),
        ("nothing alike", "at all", "is not there. It is compared"),
    ],
)
def test_what_nearly_fits_is_named(client: Client, content: str, old: str, differs: str) -> None:
    added = client.add(content)
    with client.refused(AnchorError, differs):
        patch(client, added.id, one(old, "x"))


@pytest.mark.parametrize(
    "patches",
    [
        [],
        [one("", "x")],
        [one("text", "text")],
        [one("the text", "")],
        [one("text", "\u200b "), one("the ", " ")],
        [one("text", "x" * CONTENT_CHARS_MAX)],
        [one("text", "x")] * (PATCHES_MAX + 1),
        [{"old_string": "text"}],
        [{**one("text", "x"), "regex": True}],
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(client: Client, patches: list[dict[str, Any]]) -> None:
    added = client.add("the text")
    with client.refused(InvalidArgumentsError):
        patch(client, added.id, *patches)
    assert content_of(client, added.id) == "the text"


def test_a_patch_that_comes_out_the_same_writes_nothing(client: Client) -> None:
    added = client.add("here and there")
    done = patch(client, added.id, one("here and", "x"), one("x", "here and"))
    assert (done.changed, done.position, done.version) == (False, None, added.version)
    assert client.position() == added.position


pieces = st.text("ab \u0301\r\n😀", min_size=1, max_size=4)


@given(
    pieces.filter(str.strip).map("c{}".format),
    st.lists(st.tuples(pieces, pieces, st.booleans()), min_size=1),
)
def test_the_result_is_that_of_str_replace(
    content: str, wanted: list[tuple[str, str, bool]]
) -> None:
    expected: str | None = content
    for old, new, everywhere in wanted:
        count = 0 if expected is None else expected.count(old)
        fits = old != new and (count == 1 or (count > 1 and everywhere))
        expected = expected.replace(old, new) if expected is not None and fits else None
    with scratch_home() as home:
        client = home.open()
        added = client.add(content)
        patches = [one(old, new, everywhere=everywhere) for old, new, everywhere in wanted]
        if expected is None:
            with client.refused(UseCaseError):
                patch(client, added.id, *patches)
        else:
            patch(client, added.id, *patches)
            assert content_of(client, added.id) == expected


# ---------------------------------------------------------------------------- appending


def test_text_is_added_after_a_blank_line_or_what_is_given(client: Client) -> None:
    added = client.add("first")

    append(client, added.id, "second")
    done = append(client, added.id, "third", separator=" / ")

    assert content_of(client, added.id) == "first\n\nsecond / third"
    assert (done.appended_id, done.changed, done.content_chars) == (added.id, True, 21)
    assert done.version == done.position == client.position()


@pytest.mark.parametrize("text", ["", " \n", "x" * CONTENT_CHARS_MAX])
def test_nothing_and_too_much_are_not_appended(client: Client, text: str) -> None:
    added = client.add("first")
    with client.refused(InvalidArgumentsError):
        append(client, added.id, text)


# ---------------------------------------------------------------------------- as any change

EDITS = (
    ("memory_patch", {"patches": [one("text", "words")]}),
    ("memory_append", {"text": "more"}),
)


@pytest.mark.parametrize(("tool", "edit"), EDITS)
def test_an_edit_is_checked_repeated_and_undone_as_a_change(
    client: Client, tool: str, edit: dict[str, Any]
) -> None:
    added = client.add("the text")
    with client.refused(VersionConflictError):
        client.call(tool, {"id": added.id, "expected_version": added.version + 1, **edit})
    once = {"id": added.id, "expected_version": added.version, "idempotency_key": "k", **edit}

    done: Any = client.call(tool, once)
    again: Any = client.call(tool, once)
    with client.refused(IdempotencyConflictError):
        client.call(tool, {**once, "expected_version": done.version})

    assert (done.changed, again.changed) == (True, False)
    assert (again.version, again.position, again.state) == (done.version, done.position, "active")
    assert again.notes
    client.call("memory_undo", {"position": done.position})
    assert content_of(client, added.id) == "the text"


@pytest.mark.parametrize(("tool", "edit"), EDITS)
def test_what_is_gone_is_not_edited(client: Client, tool: str, edit: dict[str, Any]) -> None:
    deleted, erased = client.add("the text"), client.add("the text")
    client.delete(deleted.id)
    client.call("memory_redact", {"id": erased.id, "reason": "asked for"})

    for memory_id, error in (
        ("aaaaaaaaaaaaaaaa", NotFoundError),
        (deleted.id, NotFoundError),
        (erased.id, RedactedError),
    ):
        with client.refused(error):
            client.call(tool, {"id": memory_id, **edit})


# ---------------------------------------------------------------------------- the command line


def test_the_command_line_patches_and_appends(cli: Shell, tmp_path: Any) -> None:
    memory_id = cli.add("Deploys go out on Tuesday or Tuesday")
    file = tmp_path / "patches.json"
    file.write_text('[{"old_string": "Friday or", "new_string": "Monday or"}]')

    ambiguous = cli("patch", memory_id, "--old", "Tuesday", "--new", "Friday")
    done = cli("patch", memory_id, "--old", "Tuesday", "--new", "Friday", "--all")
    from_file = cli("patch", memory_id, "--patches", str(file), "--json")
    same = cli("patch", memory_id, "--old", "or", "--new", "x", "--old", "x", "--new", "or")
    added = cli("append", memory_id, "never at night")
    piped = cli("append", memory_id, "-", "--separator", "; ", stdin=b"nor at noon\n")

    assert (ambiguous.status, "2 times" in ambiguous.err) == (3, True)
    assert (done.status, done.out.startswith(f"changed {memory_id} in 2 places at")) == (0, True)
    assert from_file.json["replacements"] == 1
    assert same.out == f"nothing was changed in {memory_id}\n"
    assert added.out.startswith(f"added to {memory_id} at position ")
    assert piped.status == 0
    (memory,) = cli("get", memory_id, "--json").json["memories"]
    assert memory["content"] == (
        "Deploys go out on Monday or Friday\n\nnever at night; nor at noon"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--old", "x"),
        ("--old", "x", "--new", "y", "--new", "z"),
        ("--old", "x", "--new", "y", "--patches", "-"),
        ("--patches", "-"),
    ],
)
def test_half_a_patch_is_wrong_usage(cli: Shell, arguments: tuple[str, ...]) -> None:
    memory_id = cli.add("the x")
    refused = cli("patch", memory_id, *arguments, stdin=b'{"no": "array"}')
    assert refused.status == 2
    assert "patch" in refused.err
