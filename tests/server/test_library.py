"""A program opens a store and uses it without a protocol."""

import re
from pathlib import Path

import pytest

import server
from server import (
    AddArgs,
    AddManyArgs,
    AliasArgs,
    ConfigError,
    DeleteArgs,
    DeleteManyArgs,
    DiffArgs,
    ExportArgs,
    GetArgs,
    HealthArgs,
    InspectArgs,
    ListArgs,
    MemoryStore,
    SearchArgs,
    SessionEndArgs,
    SessionListArgs,
    SessionStartArgs,
    UndoArgs,
    UpdateArgs,
    open_store,
)
from server.errors import InvalidArgumentsError, StoreError
from server.tools import make_tools
from tests.support.reference import ROOT


def test_what_a_program_stores_is_there_when_it_opens_the_store_again(tmp_path: Path) -> None:
    with open_store(tmp_path, actor="nightly") as memory:
        added = memory.add(AddArgs(content="the heron is teal", layer="semantic"))

    with open_store(tmp_path) as memory:
        (version,) = memory.inspect(InspectArgs(id=added.id, include_history=True)).versions or ()
        assert version.content == "the heron is teal"
        assert version.actor == "nightly"


def test_every_use_case_can_be_reached(tmp_path: Path) -> None:
    with open_store(tmp_path) as memory:
        session = memory.session_start(SessionStartArgs(client="tests"))
        first = memory.add(AddArgs(content="herons wade", layer="semantic", session_id=session.id))
        many = memory.add_many(AddManyArgs(memories=({"content": "x1", "layer": "semantic"},)))
        changed = memory.update(UpdateArgs(id=first.id, title="Birds"))
        memory.alias(AliasArgs(action="add", alias="h", entity_name="heron"))

        assert memory.search(SearchArgs(query="heron")).returned_count == 1
        assert memory.list(ListArgs()).total == 2
        assert memory.get(GetArgs(ids=(first.id,))).memories[0].title == "Birds"
        assert memory.export(ExportArgs(format="jsonl")).count == 2
        assert "".join(memory.export_whole(ExportArgs(format="jsonl", limit=1))).count("\n") == 2
        assert memory.health(HealthArgs()).status == "healthy"
        assert memory.diff(DiffArgs(since=first.position)).until.position >= first.position
        assert memory.session_end(SessionEndArgs(id=session.id)).memories_count == 1
        assert memory.session_list(SessionListArgs()).total == 1
        assert memory.undo(UndoArgs(position=changed.position)).undone
        assert memory.delete(DeleteArgs(id=first.id)).deleted
        assert memory.delete_many(DeleteManyArgs(everything=True)).deleted_count == 1
        assert many.added_count == 1
        assert not memory.is_read_only


_NO_TOOLS = ("close", "is_read_only", "export_whole", "audit_show", "audit_export", "diff")
"""Methods of no tool: for people and programs, which can have long answers and write files."""


def test_the_methods_are_named_like_the_tools() -> None:
    tools = make_tools(lambda: pytest.fail("no tool is run here"))

    names = {tool.name.removeprefix("memory_") for tool in tools}

    assert names == {
        name for name in vars(MemoryStore) if not name.startswith("_") and name not in _NO_TOOLS
    }


def test_arguments_are_checked_as_those_of_a_tool_are(tmp_path: Path) -> None:
    with open_store(tmp_path) as memory:
        with pytest.raises(InvalidArgumentsError, match="confidence"):
            memory.add(AddArgs(content="x", layer="semantic", confidence=7.0))
        with pytest.raises(InvalidArgumentsError, match="scope"):
            memory.delete_many(DeleteManyArgs(scope=None))  # type: ignore[arg-type]

        assert memory.list(ListArgs()).total == 0


def test_only_text_that_is_no_unicode_counts_as_repaired(tmp_path: Path) -> None:
    with open_store(tmp_path) as memory:
        whole = memory.add(AddArgs(content="herons wade", layer="semantic", tags=("bird", "water")))
        found = memory.search(SearchArgs(query="heron", tags=("bird",)))
        broken = memory.add(AddArgs(content="herons", layer="semantic", tags=("half \ud83e",)))

    assert whole.notes == found.notes == ()
    assert "U+FFFD" in broken.notes[0]


def test_workspaces_do_not_see_each_other(tmp_path: Path) -> None:
    with open_store(tmp_path, workspace="one") as one, open_store(tmp_path) as other:
        one.add(AddArgs(content="herons wade", layer="semantic"))

        assert other.list(ListArgs()).total == 0


def test_a_wrong_setting_and_a_store_that_cannot_be_opened_say_so(tmp_path: Path) -> None:
    (tmp_path / "ledger").write_text("not a folder")

    with pytest.raises(ConfigError, match="MNEMOLOG_WORKSPACE"):
        open_store(tmp_path, workspace=" ")
    with pytest.raises(StoreError):
        open_store(tmp_path)


def test_closing_twice_is_closing_once(tmp_path: Path) -> None:
    memory = open_store(tmp_path)

    memory.close()
    memory.close()


def test_the_package_offers_the_names_that_it_lists() -> None:
    assert all(getattr(server, name) is not None for name in server.__all__)
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = server.nothing_of_the_kind


def test_the_example_of_the_document_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "python.md").read_text("utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)

    exec(compile(example, "docs/python.md", "exec"), {})

    first, second, third = capsys.readouterr().out.splitlines()
    assert first == "['Deploys go out on Tuesdays']"
    assert second == "1 3"
    assert third.startswith("invalid_arguments `content` is blank")


def test_every_name_on_the_page_is_a_name_of_the_package() -> None:
    named = set(re.findall(r"`(\w+Args)`", (ROOT / "docs" / "python.md").read_text()))
    assert "PatchArgs" in named
    assert named <= set(server.__all__)
