"""Any history, any scope: the bundle verifies, and no more after any single change."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import Position
from server.bundle_scope import Scope
from tests.support.bundles import make_bundle, report_of
from tests.support.store import MEMORY_DISK, Client, Home

ENTITIES = (None, "Ana", "boiler")

commands = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from(ENTITIES), st.text("ab\n\x00é🚀", max_size=5)),
        st.tuples(st.just("update"), st.integers(0, 9), st.text("cd", max_size=3)),
        st.tuples(st.just("supersede"), st.integers(0, 9), st.just("newer")),
        st.tuples(st.just("delete"), st.integers(0, 9), st.just("")),
        st.tuples(st.just("undo"), st.integers(0, 9), st.just("")),
        st.tuples(st.just("redact"), st.integers(0, 9), st.just("asked for")),
    ),
    max_size=8,
)
places = st.integers(1, 25)
scopes = st.fixed_dictionaries(
    {},
    optional={
        "workspace": st.integers(0, 1),
        "memory": st.integers(0, 9),
        "entity": st.sampled_from(ENTITIES[1:]),
        "from_seq": places,
        "to_seq": places,
    },
)
changes = st.tuples(
    st.sampled_from(["flip", "drop", "repeat", "swap", "cut"]), st.integers(0), st.integers(0, 7)
)


def run(clients: tuple[Client, Client], history: list[tuple[Any, ...]]) -> list[str]:
    """Do what can be done of a history, by turns in two workspaces; return the ids."""
    ids: list[tuple[int, str]] = []
    for number, (command, which, text) in enumerate(history):
        if command == "add":
            added = clients[number % 2].add(f"{number} {text}", entity_name=which)
            ids.append((number % 2, added.id))
            continue
        if not ids:
            continue
        workspace, memory = ids[which % len(ids)]
        client = clients[workspace]
        try:
            match command:
                case "update":
                    client.update(memory, content=f"{number} {text}")
                case "supersede":
                    ids.append((workspace, client.supersede(memory, f"{number} {text}")))
                case "delete":
                    client.delete(memory)
                case "undo":
                    client.undo(id=memory)
                case _:
                    client.call("memory_redact", {"id": memory, "reason": text})
        except Exception as error:  # noqa: BLE001 - what is refused leaves no event
            assert hasattr(error, "code"), error  # noqa: PT017 - a refusal, and nothing else
    return [memory for _, memory in ids]


def changed(data: bytes, change: tuple[str, int, int]) -> bytes:
    kind, at, bit = change
    lines = data.splitlines(keepends=True)
    line = at % len(lines)
    match kind:
        case "flip":
            flipped = bytearray(data)
            flipped[at % len(data)] ^= 1 << bit
            return bytes(flipped)
        case "drop":
            del lines[line]
        case "repeat":
            lines.insert(line, lines[line])
        case "swap":
            lines[line - 1], lines[line] = lines[line], lines[line - 1]
        case _:
            return data[: at % len(data)]
    return b"".join(lines)


@pytest.mark.guarantee("G-AUDIT-1", "G-AUDIT-2")
@settings(max_examples=20, deadline=None)
@given(
    commands,
    scopes,
    st.integers(0, 10),
    st.lists(
        st.tuples(st.sampled_from(["records.jsonl", "proofs", "checkpoint"]), changes),
        min_size=12,
        max_size=12,
    ),
)
def test_any_bundle_verifies_and_no_more_after_any_change(
    history: list[tuple[Any, ...]],
    asked: dict[str, Any],
    earlier: int,
    edits: list[tuple[str, tuple[str, int, int]]],
) -> None:
    with tempfile.TemporaryDirectory(prefix="bundle-", dir=MEMORY_DISK) as name:
        folder = Path(name)
        home = Home(folder / "home")
        try:
            clients = home.open(), home.open("other", name="bob")
            ids = run(clients, history)
            ledger = clients[0].store.ledger
            headers = [record.header for record in ledger.read(Position.start)]
            workspaces = sorted({header.ws for header in headers})
            size = len(headers)
            if "memory" in asked and ids:
                asked["memory"] = ids[asked["memory"] % len(ids)]
            else:
                asked.pop("memory", None)
            if "workspace" in asked and workspaces:
                asked["workspace"] = workspaces[asked["workspace"] % len(workspaces)]
            else:
                asked.pop("workspace", None)
            if entity := asked.pop("entity", None):
                asked["entity_names"] = (entity,)
            scope = Scope(**{"to_seq": size, **asked})
            make_bundle(ledger, folder / "b", scope, earlier=min(earlier, size))
        finally:
            home.close()

        report = report_of(folder / "b")
        assert report.problems == []

        for file, change in edits:
            path = folder / "b" / file
            data = path.read_bytes() if path.exists() else b""
            if not data:
                continue
            new = changed(data, change)
            if new == data:
                continue
            path.write_bytes(new)
            assert report_of(folder / "b").problems_count, (file, change)
            path.write_bytes(data)
