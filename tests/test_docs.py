"""The documents say what the code does."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import ledger
from server import config
from server.app import App
from server.bootstrap import Store
from server.cli import SUPPORTED_PLATFORMS
from server.commands import AddArgs, InspectArgs, SearchArgs, UpdateArgs
from server.config import Config
from server.errors import InvalidArgumentsError
from server.tool import Call
from tests.support import reference
from tests.support.reference import ROOT

README = (ROOT / "README.md").read_text("utf-8")
DOCUMENTS = reference.documents()
CALL = Call(actor_name="docs")
COMMAND = [sys.executable, "-c", "from server.cli import main; main()"]


def names(paths: list[Path]) -> list[str]:
    return [path.relative_to(ROOT).as_posix() for path in paths]


def mnemolog(home: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=ROOT,
        env={**os.environ, "MNEMOLOG_HOME": str(home), **settings},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@contextmanager
def opened(home: Path) -> Iterator[App]:
    store = Store(Config(home=home))
    try:
        yield store.app
    finally:
        store.close()


def store_of_one(home: Path) -> Path:
    """Make a store that holds one memory; return its live segment."""
    call = {"name": "memory_add", "arguments": {"content": "a note", "layer": "semantic"}}
    lines = [
        {
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "docs", "version": "1"},
            },
        },
        {"id": 2, "method": "tools/call", "params": call},
    ]
    subprocess.run(
        [*COMMAND, "serve"],
        cwd=ROOT,
        env={**os.environ, "MNEMOLOG_HOME": str(home)},
        input="".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines),
        stdout=subprocess.DEVNULL,
        text=True,
        timeout=60,
        check=True,
    )
    (segment,) = (home / "ledger" / "log").iterdir()
    return segment


# ---------------------------------------------------------------------------- made parts


@pytest.mark.parametrize("document", DOCUMENTS, ids=names(DOCUMENTS))
def test_every_made_part_is_what_the_code_makes_of_it(document: Path) -> None:
    held = document.read_text("utf-8")

    assert held == reference.remade(document), "run: python -m tests.support.reference"


def test_every_part_that_can_be_made_stands_in_a_document() -> None:
    made = [name for document in DOCUMENTS for name in reference.made_parts(document)]

    assert sorted(made) == sorted(reference.PARTS)


def test_the_format_page_holds_the_specification_whole() -> None:
    page = (ROOT / "docs" / "format.md").read_text("utf-8")

    assert (ledger.__doc__ or "").strip() in page


# ---------------------------------------------------------------------------- names


def test_the_readme_names_every_command_and_no_other(tmp_path: Path) -> None:
    listed = re.findall(r"^    (\w+) ", mnemolog(tmp_path, "--help").stdout, re.MULTILINE)

    assert sorted(re.findall(r"^\| `mnemolog (\w+)` \|", README, re.MULTILINE)) == sorted(listed)


def test_the_readme_names_every_setting_that_is_read() -> None:
    source = Path(config.__file__).read_text("utf-8")

    assert set(re.findall(r"\bMNEMOLOG_\w+", source)) == set(
        re.findall(r"^\| `(MNEMOLOG_\w+)` \|", README, re.MULTILINE)
    )


def test_the_readme_lists_the_tools_in_the_order_clients_see_them() -> None:
    assert re.findall(r"^\| `(memory_\w+)` \|", README, re.MULTILINE) == [
        tool.name for tool in reference.TOOLS
    ]


def test_the_commands_that_the_readme_prints_exist() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")

    for target in re.findall(r"^\$ make (\w+)$", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for document in DOCUMENTS:
        for command in re.findall(r"^\$ mnemolog (\w+)", document.read_text("utf-8"), re.MULTILINE):
            assert f"| `mnemolog {command}` |" in README


def test_the_configuration_of_each_client_starts_the_server() -> None:
    blocks = re.findall(r"```json\n(.*?)```", README, re.DOTALL)
    (codex,) = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    servers = [next(iter(json.loads(block).values()))["mnemolog"] for block in blocks]
    servers.append(tomllib.loads(codex)["mcp_servers"]["mnemolog"])

    assert [[server["command"], *server["args"]] for server in servers] == [
        ["mnemolog", "serve"]
    ] * 3


def test_every_event_of_the_format_is_on_its_page() -> None:
    page = (ROOT / "docs" / "format.md").read_text("utf-8")
    events = {
        "_".join(re.findall("[A-Z][a-z]+", kind.__name__)).lower()
        for kind in vars(ledger).values()
        if isinstance(kind, type)
        and issubclass(kind, ledger.Event)
        and kind not in (ledger.Event, ledger.ContentEvent, ledger.SessionEvent)
    }

    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == events


@pytest.mark.parametrize("document", DOCUMENTS, ids=names(DOCUMENTS))
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[\w-]*)?\)", document.read_text("utf-8")):
        assert (document.parent / target).exists(), target


# ---------------------------------------------------------------------------- promises


def test_decisions_are_numbered_without_gaps_and_all_listed() -> None:
    folder = ROOT / "docs" / "adr"
    decisions = sorted(path.name for path in folder.glob("[0-9]*.md"))
    index = (folder / "README.md").read_text("utf-8")

    assert [name[:4] for name in decisions] == [f"{i:04}" for i in range(1, len(decisions) + 1)]
    assert re.findall(r"\]\((\d{4}[\w-]*\.md)\)", index) == decisions


@pytest.mark.parametrize(
    "decision", sorted((ROOT / "docs" / "adr").glob("[0-9]*.md")), ids=lambda path: path.stem
)
def test_every_decision_names_what_was_rejected_and_what_follows(decision: Path) -> None:
    text = decision.read_text("utf-8")
    sections = re.findall(r"^## (.+)$", text, re.MULTILINE)

    assert sections == ["Context", "Options", "Decision", "Consequences"]
    assert len(re.findall(r"^- \*\*", text.split("## Options")[1], re.MULTILINE)) >= 2


@pytest.mark.guarantee("G-REPEAT-1")
def test_a_repeat_writes_nothing_after_a_restart_and_a_rebuild_too(tmp_path: Path) -> None:
    args = AddArgs(content="Once is enough", layer="semantic", idempotency_key="k-1")
    with opened(tmp_path) as app:
        first = app.add(args, CALL)
    assert mnemolog(tmp_path, "rebuild").returncode == 0
    with opened(tmp_path) as app:
        again = app.add(args, CALL)
        total = app.inspect(InspectArgs(), CALL).total

    assert (again.id, again.position, again.created) == (first.id, first.position, False)
    assert total == 1


@pytest.mark.guarantee("G-REPLY-1")
def test_a_full_reply_cuts_contents_to_snippets_and_says_so(tmp_path: Path) -> None:
    text = "river " * 8_000
    with opened(tmp_path) as app:
        for _ in range(4):
            app.add(AddArgs(content=text, layer="resource"), CALL)
        page = app.search(SearchArgs(query="river", limit=3), CALL)
        rest = app.search(SearchArgs(query="river", limit=3, offset=page.next_offset or 0), CALL)

    assert [found.content_cut for found in page.memories] == [False, False, True]
    assert sum(len(found.content) for found in page.memories) < 100_000
    assert any("cut" in note for note in page.notes)
    assert page.has_more
    assert (rest.returned_count, rest.has_more) == (1, False)


@pytest.mark.guarantee("G-INPUT-1")
def test_wrong_input_is_refused_by_field_and_nothing_is_written(tmp_path: Path) -> None:
    with opened(tmp_path) as app:
        with pytest.raises(InvalidArgumentsError, match=r"event_at.*expected a date") as refused:
            app.add(AddArgs(content="x", layer="semantic", event_at="2026-02-31"), CALL)
        position = app.inspect(InspectArgs(), CALL).position

    assert refused.value.details == {"field": "event_at"}
    assert position == 0


def test_everything_in_a_home_is_its_owners_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    store_of_one(home)

    modes = {path: path.stat().st_mode & 0o777 for path in [home, *home.rglob("*")]}

    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}


@pytest.mark.guarantee("G-ASOF-1")
def test_a_fact_that_changed_is_found_as_it_was_on_the_day_before(tmp_path: Path) -> None:
    with opened(tmp_path) as app:
        old = app.add(AddArgs(content="The office is in Berlin", layer="semantic"), CALL)
        change = UpdateArgs(id=old.id, supersede=True, new_content="The office is in Lisbon")
        app.update(change, CALL)
        then = app.search(SearchArgs(query="office", as_of="2020-01-01"), CALL)
        now = app.search(SearchArgs(query="office"), CALL)

    assert [found.content for found in then.memories] == ["The office is in Berlin"]
    assert [found.content for found in now.memories] == ["The office is in Lisbon"]


# ---------------------------------------------------------------------------- exit statuses


@pytest.mark.guarantee("G-VERIFY-1")
@pytest.mark.parametrize("command", ["verify", "rebuild", "replay", "digest"])
def test_without_a_store_a_command_says_so_and_exits_with_2(tmp_path: Path, command: str) -> None:
    finished = mnemolog(tmp_path / "none", command)

    assert finished.returncode == 2
    assert "there is no ledger" in finished.stderr
    assert not (tmp_path / "none").exists()


@pytest.mark.guarantee("G-SETTINGS-1")
def test_wrong_usage_and_a_wrong_setting_exit_with_2(tmp_path: Path) -> None:
    usage = mnemolog(tmp_path, "nonsense")
    setting = mnemolog(tmp_path, "serve", MNEMOLOG_COMPRESSION="lz4")

    assert (usage.returncode, setting.returncode) == (2, 2)
    assert "zstd, gzip" in setting.stderr


@pytest.mark.guarantee("G-VERIFY-1")
def test_a_clean_store_a_damaged_one_and_a_torn_one_have_the_statuses_that_are_printed(
    tmp_path: Path,
) -> None:
    segment = store_of_one(tmp_path)
    clean = segment.read_bytes()
    statuses = [mnemolog(tmp_path, "verify", "--digest").returncode]
    segment.write_bytes(clean + b'{"h":{"se')
    statuses.append(mnemolog(tmp_path, "verify").returncode)
    segment.write_bytes(clean.replace(b"a note", b"a note"[::-1]))
    statuses.append(mnemolog(tmp_path, "verify").returncode)

    assert statuses == [0, 1, 1]


def test_the_backup_that_operations_describes_restores_the_same_state(tmp_path: Path) -> None:
    home, copy = tmp_path / "home", tmp_path / "copy"
    store_of_one(home)
    subprocess.run(["cp", "-a", home / "ledger", tmp_path / "backup"], check=True)
    copy.mkdir()
    subprocess.run(["cp", "-a", tmp_path / "backup", copy / "ledger"], check=True)

    rebuilt = mnemolog(copy, "rebuild")

    assert rebuilt.returncode == 0
    assert mnemolog(copy, "digest").stdout == mnemolog(home, "digest").stdout


@pytest.mark.guarantee("G-FORMAT-1")
def test_the_check_by_hand_on_the_format_page_accepts_a_ledger_and_notices_a_change(
    tmp_path: Path,
) -> None:
    page = (ROOT / "docs" / "format.md").read_text("utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    segment = store_of_one(tmp_path)
    check = [sys.executable, "-c", program, str(segment)]

    accepted = subprocess.run(check, capture_output=True, text=True, check=False)
    segment.write_bytes(segment.read_bytes().replace(b"a note", b"b note"))
    noticed = subprocess.run(check, capture_output=True, text=True, check=False)

    assert accepted.returncode == 0
    assert accepted.stdout.startswith("good up to ")
    assert noticed.returncode == 1


def test_the_systems_that_the_readme_excludes_are_those_the_program_refuses() -> None:
    assert "Windows is not supported" in README
    assert SUPPORTED_PLATFORMS == ("linux", "darwin")
