"""The commands of docs/coming-from-mnemon.md bring the memories over."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.mnemon import mnemon
from tests.support.peer import ROOT, Json, Peer, call

PAGE: Final = (ROOT / "docs" / "coming-from-mnemon.md").read_text("utf-8")
FROM_DATABASE, FROM_EXPORT = (
    block.removeprefix("$ ") for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
)

WHOLE: Final[Json] = {
    "content": "Deploys go out on Tuesdays:\n1. tag 2. push 'now' \"or never\"",
    "layer": "procedural",
    "title": "Deploy day",
    "entity_type": "project",
    "entity_name": "billing",
    "event_at": "2026-05-04T10:00:00Z",
    "confidence": 0.9,
    "importance": 0.7,
    "scope": "work",
    "source": "meeting",
    "source_file": "notes/deploys.md",
    "meta": {"room": 7, "people": ["Ann", "Бо"]},
    "valid_from": "2026-05-01",
    "valid_until": "2090-12-31",
}
NOT_IN_EXPORTS: Final = {"meta", "valid_from", "valid_until"}

SECTIONS: Final = ("Section one", "Section two")
"""Contents of memories that come from one file."""

COLUMNS: Final = (
    "id",
    "superseded_by",
    "session_id",
    "created_at",
    "expires_at",
    *WHOLE,
)


def rows() -> list[Json]:
    """Return memories as the columns of their table hold them."""
    plain = {
        "id": "b",
        "layer": "semantic",
        "content": "Plain",
        "source": "api",
        "scope": "global",
        "confidence": 0.8,
        "importance": 0.5,
        "meta": "{}",
        "created_at": "2025-01-02T03:04:05Z",
    }
    return [
        {
            **WHOLE,
            "meta": json.dumps(WHOLE["meta"]),
            "id": "a",
            "created_at": "2026-05-05T00:00:00Z",
        },
        {**plain, "session_id": "s-1", "expires_at": "2090-01-01T00:00:00Z"},
        {**plain, "id": "c", "content": "Old", "superseded_by": "b"},
        {**plain, "id": "d", "content": "Expired", "expires_at": "2025-02-01T00:00:00Z"},
        {**plain, "id": "e", "content": " "},
        {**plain, "id": "f", "content": "Section one", "source_file": "kb.md"},
        {**plain, "id": "g", "content": "Section two", "source_file": "kb.md"},
    ]


def made_database(path: Path) -> None:
    """Make a database whose table has the columns that are read."""
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE memories({', '.join(COLUMNS)})")
        connection.executemany(
            f"INSERT INTO memories VALUES({', '.join('?' * len(COLUMNS))})",
            [[row.get(column) for column in COLUMNS] for row in rows()],
        )


def run(command: str, home: Path) -> "subprocess.CompletedProcess[str]":
    """Run a command of the page in a shell, with a user's home."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", command],
        cwd=home,
        env={**os.environ, "PATH": path, "HOME": str(home), "MNEMOLOG_HOME": str(home / "store")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def needs(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def stored(home: Path) -> dict[str, Json]:
    """Return what the store holds, by content."""
    exported = run("mnemolog export --format jsonl", home)
    assert exported.returncode == 0, exported.stderr
    memories = [json.loads(line) for line in exported.stdout.splitlines()]
    return {memory["content"]: memory for memory in memories}


def shared(memory: Json, names: Iterable[str]) -> Json:
    return {name: memory.get(name) for name in names}


def check(finished: "subprocess.CompletedProcess[str]", home: Path) -> None:
    """Check what was brought over from the database."""
    memories = stored(home)

    assert set(memories) - set(SECTIONS) == {WHOLE["content"], "Plain"}, finished.stderr
    assert shared(memories[WHOLE["content"]], WHOLE) == WHOLE
    assert memories["Plain"]["session_id"]
    assert memories["Plain"]["expires_at"].startswith("20")
    assert memories["Plain"]["event_at"]
    assert "expires_at" not in memories[WHOLE["content"]]


def check_sections(home: Path) -> None:
    """Check that what comes from one file has not replaced each other."""
    memories = stored(home)
    for content in SECTIONS:
        assert memories[content]["meta"] == {"source_file": "kb.md"}
        assert memories[content]["status"] == "active"
        assert "source_file" not in memories[content]


def read_with_python(command: str) -> str:
    """Return the command with another program to read the database, which is always there."""
    reader = (
        "import os, sqlite3, sys; "
        "database = sqlite3.connect(os.path.expanduser(sys.argv[1])); "
        "[print(line) for (line,) in database.execute(sys.argv[2])]"
    )
    return command.replace("sqlite3 ", f"'{sys.executable}' -c '{reader}' ", 1)


def test_what_is_current_in_the_database_comes_over_whole_and_once(tmp_path: Path) -> None:
    made_database(tmp_path / ".mnemon-mcp" / "memory.db")

    first = run(read_with_python(FROM_DATABASE), tmp_path)
    again = run(read_with_python(FROM_DATABASE), tmp_path)

    assert first.stdout == "added 4, refused 1\n"
    assert "`content` is blank" in first.stderr
    assert again.stdout == "added 0, stored before 3, refused 2\n"
    assert "key was used for a different request" in again.stderr
    check(first, tmp_path)
    check_sections(tmp_path)
    assert stored(tmp_path)["Plain"]["event_at"] == "2025-01-02T03:04:05Z"


def test_an_export_comes_over_but_for_what_it_lacks(tmp_path: Path) -> None:
    needs("jq")
    hidden = {"session_id", "expires_at", *NOT_IN_EXPORTS}
    exported = [
        {name: row.get(name) for name in COLUMNS if name not in hidden}
        for row in rows()
        if row["id"] in "abfg"
    ]
    (tmp_path / "export.json").write_text(json.dumps(exported, indent=2))

    first = run(FROM_EXPORT, tmp_path)
    again = run(FROM_EXPORT, tmp_path)

    memories = stored(tmp_path)
    names = [name for name in WHOLE if name not in NOT_IN_EXPORTS]
    assert (first.returncode, again.returncode) == (0, 0), first.stderr
    assert set(memories) == {WHOLE["content"], "Plain", *SECTIONS}
    check_sections(tmp_path)
    assert shared(memories[WHOLE["content"]], names) == shared(WHOLE, names)
    assert memories["Plain"]["event_at"] == "2025-01-02T03:04:05Z"


def ask(peer: Peer, tool: str, **arguments: object) -> Any:
    return json.loads(peer.ask(call(1, tool, **arguments))["result"]["content"][0]["text"])


def test_a_store_of_the_server_itself_comes_over_by_either_way(tmp_path: Path) -> None:
    needs("jq", "sqlite3")
    folder = tmp_path / ".mnemon-mcp"
    folder.mkdir()
    with mnemon(folder) as peer:
        session = ask(peer, "memory_session_start", client="agent")["id"]
        ask(peer, "memory_add", **WHOLE)
        plain = {"content": "Plain", "layer": "semantic", "session_id": session, "ttl_days": 900}
        ask(peer, "memory_add", **plain)
        ask(peer, "memory_add", content="Expired", layer="semantic", ttl_days=0.1)
        text = ask(peer, "memory_export", format="json", limit=10_000)["content"]
        peer.close_input()
        assert peer.exit_status() == 0
    (tmp_path / "export.json").write_text(text)

    finished = run(FROM_DATABASE, tmp_path)

    assert finished.returncode == 0, finished.stderr
    check(finished, tmp_path)

    other = run(f"export MNEMOLOG_HOME=$HOME/other\n{FROM_EXPORT}", tmp_path)

    assert other.returncode == 0, other.stderr
    assert other.stdout == "added 3\n"
