"""The same cases through the installed command: what a client sends and gets, byte by byte."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.peer import Json, Peer, call, started

MNEMOLOG: Final = (os.fspath(Path(sys.executable).with_name("mnemolog")), "serve")


class Session:
    """One client of one server process."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self._ids = count(1)

    def ask(self, tool: str, /, **arguments: object) -> Json:
        """Call a tool that must do it; returns what it said."""
        said = self._said(self.peer.ask(call(next(self._ids), tool, **arguments)), is_error=False)
        assert "error" not in said
        return said

    def refused(self, tool: str, /, **arguments: object) -> Json:
        """Call a tool that must refuse; returns its error."""
        said = self._said(self.peer.ask(call(next(self._ids), tool, **arguments)), is_error=True)
        error = said["error"]
        assert isinstance(error, dict)
        for leak in ("Traceback", "SELECT", "sqlite", "apsw", ".py", "/home", "/tmp"):
            assert leak not in json.dumps(error)
        return error

    def raw(self, arguments: bytes, tool: str = "memory_add") -> Json:
        """Call a tool with arguments that are these very bytes."""
        head = call(next(self._ids), tool)
        line = json.dumps(head).encode().replace(b'"arguments": {}', b'"arguments": ' + arguments)
        answer = self.peer.ask(line + b"\n")
        said = answer["result"]["structuredContent"]
        assert isinstance(said, dict)
        return said

    def found(self, query: str, **filters: object) -> list[str]:
        return [
            found["id"] for found in self.ask("memory_search", query=query, **filters)["memories"]
        ]

    def total(self) -> int:
        return int(self.ask("memory_inspect")["total"])

    def _said(self, answer: Json, *, is_error: bool) -> Json:
        result = answer["result"]
        assert result.get("isError", False) is is_error
        (content,) = result["content"]
        assert json.loads(content["text"]) == result["structuredContent"]
        said = result["structuredContent"]
        assert isinstance(said, dict)
        return said


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MNEMOLOG_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@contextmanager
def session() -> Iterator[Session]:
    """A server, which must end by itself and cleanly once its input ends."""
    with started(command=MNEMOLOG, stderr=subprocess.DEVNULL) as peer:
        yield Session(peer.handshake())
        peer.close_input()
        assert peer.rest() == []
        assert peer.exit_status() == 0


def verified() -> bool:
    command = [MNEMOLOG[0], "verify", "--digest"]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def test_queries_full_of_signs_find_what_they_name() -> None:
    cases: dict[str, tuple[str, ...]] = {
        "Run the pre-flight-check before order ZX-40417 ships": (
            "pre-flight-check",
            "ZX-40417",
            "-40417",
        ),
        "status: blocked, see ns::core at 9:45": ("status: blocked", "ns::core", "9:45"),
        "The AND gate beside the NEAR field coil is NOT fitted; ANDROID build kept": (
            'latch "gate',
            "AND",
            "NOT fitted",
            "gate OR",
            "NEAR(gate",
            '"AND gate"',
            "ANDROID",
        ),
        "C++ v3.8.14 moved 70/140 MB/s, five o'clock, ping qa@example.test": (
            "C++",
            "v3.8.14",
            "70/140",
            "MB/s",
            "o'clock",
            "qa@example.test",
        ),
        "周二上线后服务器恢复正常": ("服务器", "恢复", "正常"),
        "Фёдор посадил клён у дома Матрёны": ("Федор", "клен", "Матрена", "ФЁДОР"),
        "ship it 🚀 before noon": ("🚀",),
    }
    with session() as client:
        ids = {
            text: client.ask("memory_add", content=text, layer="semantic")["id"] for text in cases
        }
        for text, queries in cases.items():
            for query in queries:
                assert client.found(query)[0] == ids[text]
        for query in (
            "x,y",
            "^nonesuch",
            "*",
            "nonesuch*",
            "(nonesuch",
            "{a1 b1}:c1",
            "!!!",
            "?",
            "—",
        ):
            assert client.found(query) == []
        for blank in ("", "   "):
            assert client.refused("memory_search", query=blank)["code"] == "invalid_arguments"
    assert verified()


def test_what_cannot_be_stored_is_refused_by_name_and_leaves_no_trace() -> None:
    refused: list[tuple[str, dict[str, Any]]] = [
        ("content", {"content": ""}),
        ("content", {"content": "  \n\t "}),
        ("content", {}),
        ("content", {"content": 5}),
        ("content", {"content": None}),
        ("content", {"content": "word " * 400_000}),
        ("layer", {"content": "x", "layer": "nonesuch"}),
        ("event_at", {"content": "x", "event_at": 1_718_000_000_123}),
        ("event_at", {"content": "x", "event_at": "2026-02-30"}),
        ("tags", {"content": "x", "tags": "a"}),
        ("importance", {"content": "x", "importance": 1.5}),
        ("contnt", {"content": "x", "contnt": "misspelt"}),
    ]
    with session() as client:
        kept = client.ask("memory_add", content="kept", layer="semantic")
        for field, arguments in refused:
            error = client.refused("memory_add", **{"layer": "semantic", **arguments})
            assert error["code"] == "invalid_arguments"
            assert field in error["message"]
        for arguments in ({"new_content": " ", "supersede": True}, {"content": ""}):
            error = client.refused("memory_update", id=kept["id"], **arguments)
            assert error["code"] == "invalid_arguments"
        for tool in ("memory_update", "memory_delete", "memory_inspect", "memory_undo"):
            assert client.refused(tool, id="no-such-id")["code"] == "not_found"
        for limit in ("ten", 1e308, 0, 101):
            assert "limit" in client.refused("memory_search", query="kept", limit=limit)["message"]
        inspected = client.ask("memory_inspect")
        assert (inspected["total"], inspected["position"]) == (1, kept["position"])
    assert verified()


def test_u5_half_an_emoji_is_replaced_and_the_reply_says_so() -> None:
    with session() as client:
        lone = client.raw(rb'{"content":"shipped \ud83e today","layer":"episodic"}')
        assert "U+FFFD" in lone["notes"][0]
        bytes_ = client.raw(b'{"content":"bytes \xff\xfe here","layer":"episodic"}')
        assert "U+FFFD" in bytes_["notes"][0]
        whole = client.raw(rb'{"content":"lunch \ud83e\udd6a today","layer":"episodic"}')
        assert "notes" not in whole
        assert client.found("shipped") == [lone["id"]]
        memory = client.ask("memory_inspect", id=lone["id"])["memory"]
        assert memory["content"] == "shipped \ufffd today"
        assert client.found("🥪") == [whole["id"]]
    assert verified()


def test_c4_a_retry_before_the_first_answer_and_after_a_restart_stores_once() -> None:
    request = {"content": "gate code rule", "layer": "procedural", "idempotency_key": "k1"}
    with session() as client:
        client.peer.send(
            call("first", "memory_add", **request), call("again", "memory_add", **request)
        )
        answers = [client.peer.receive()["result"]["structuredContent"] for _ in range(2)]
        (stored,) = {answer["id"] for answer in answers}
        assert sorted(answer["created"] for answer in answers) == [False, True]
    with session() as client:
        again = client.ask("memory_add", **request)
        assert (again["id"], again["created"]) == (stored, False)
        assert client.refused("memory_add", **{**request, "scope": "beta"})["code"] == (
            "idempotency_conflict"
        )
        assert client.total() == 1
    assert verified()


def test_s6_s2_and_undo_in_one_session() -> None:
    with session() as client:
        old = client.ask("memory_add", content="the depot is in Quarry Lane", layer="semantic")
        changed = client.ask(
            "memory_update", id=old["id"], supersede=True, new_content="the depot is in Orchard Row"
        )
        new = changed["new_id"]
        assert (client.found("Orchard"), client.found("Quarry")) == ([new], [])
        again = client.refused("memory_update", id=old["id"], supersede=True, new_content="x")
        assert (again["code"], again["details"]["superseded_by"]) == ("superseded", new)
        stale = client.refused(
            "memory_update", id=new, content="x", expected_version=old["version"]
        )
        assert (stale["code"], stale["details"]["version"]) == (
            "version_conflict",
            changed["version"],
        )
        deleted = client.ask("memory_delete", id=new)
        assert deleted["reactivated_id"] == old["id"]
        assert client.refused("memory_delete", id=new)["code"] == "not_found"
        assert (
            client.refused("memory_undo", position=changed["position"])["code"] == "undo_conflict"
        )
        client.ask("memory_undo", position=deleted["position"])
        assert client.found("depot") == [new]
        history = client.ask("memory_inspect", id=new, include_history=True)
        assert [version["status"] for version in history["versions"]] == [
            "active",
            "deleted",
            "active",
        ]
    assert verified()


def test_l3_damage_is_reported_at_start_reads_go_on_and_a_write_is_refused(home: Path) -> None:
    with session() as client:
        ids = [client.ask("memory_add", content=f"note {n}", layer="semantic")["id"] for n in "abc"]
    (segment,) = (home / "ledger" / "log").iterdir()
    segment.write_bytes(segment.read_bytes().replace(b"note b", b"note x"))

    with started(command=MNEMOLOG, stderr=subprocess.PIPE) as peer:
        damaged = Session(peer.handshake())
        assert damaged.found("note b") == [ids[1], ids[2], ids[0]]
        assert damaged.refused("memory_add", content="d", layer="semantic")["code"] == "damaged"
        assert peer.process.stderr is not None
        reported = next(line for line in peer.process.stderr if b"damaged" in line)
        assert segment.name.encode() in reported
        assert b"record 4" in reported
