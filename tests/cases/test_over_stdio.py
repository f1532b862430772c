"""What takes a server process: types that no Struct lets in, bytes, retries in flight, zones."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cases.ways import MNEMOLOG, Stdio, mnemolog, stdio_session
from tests.support.peer import call, started


@pytest.fixture(autouse=True)
def home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MNEMOLOG_HOME", str(folder / "home"))
    return folder / "home"


def verified() -> bool:
    return mnemolog("verify", "--digest").status == 0


@pytest.mark.guarantee("G-INPUT-1")
def test_what_cannot_be_stored_is_refused_by_name_and_leaves_no_trace() -> None:
    refused: list[tuple[str, dict[str, Any]]] = [
        ("content", {}),
        ("content", {"content": 5}),
        ("content", {"content": None}),
        ("layer", {"content": "x", "layer": "nonesuch"}),
        ("event_at", {"content": "x", "event_at": 1_718_000_000_123}),
        ("event_at", {"content": "x", "event_at": "2026-02-30"}),
        ("tags", {"content": "x", "tags": "a"}),
        ("importance", {"content": "x", "importance": 1.5}),
        ("contnt", {"content": "x", "contnt": "misspelt"}),
    ]
    with stdio_session() as client:
        kept = client.ask("add", content="kept", layer="semantic")
        for field, arguments in refused:
            refusal = client.refusal("add", **{"layer": "semantic", **arguments})
            assert refusal.code == "invalid_arguments"
            assert field in refusal.message
        for tool in ("update", "delete", "inspect", "undo"):
            assert client.refusal(tool, id="no-such-id").code == "not_found"
        for limit in ("ten", 1e308, 0, 101):
            assert "limit" in client.refusal("search", query="kept", limit=limit).message
        inspected = client.ask("inspect")
        assert (inspected["total"], inspected["position"]) == (1, kept["position"])
    assert verified()


def test_u5_half_an_emoji_is_replaced_and_the_reply_says_so() -> None:
    with stdio_session() as client:
        lone = client.raw(rb'{"content":"shipped \ud83e today","layer":"episodic"}')
        assert "U+FFFD" in lone["notes"][0]
        bytes_ = client.raw(b'{"content":"bytes \xff\xfe here","layer":"episodic"}')
        assert "U+FFFD" in bytes_["notes"][0]
        whole = client.raw(rb'{"content":"lunch \ud83e\udd6a today","layer":"episodic"}')
        assert "notes" not in whole
        assert client.found("shipped") == [lone["id"]]
        assert client.get(lone["id"])["content"] == "shipped \ufffd today"
        assert client.found("🥪") == [whole["id"]]
    assert verified()


def test_u5_half_an_emoji_in_one_item_of_a_batch_stops_no_other() -> None:
    items = b",".join(
        b'{"content":"%s","layer":"episodic"}' % content
        for content in (b"crate one", rb"crate two \udcb4 here", b"crate three")
    )
    with stdio_session() as client:
        batch = client.raw(b'{"memories":[%s]}' % items, "add_many")
        assert "U+FFFD" in batch["notes"][0]
        ids = [result["added"]["id"] for result in batch["results"]]
        assert {*client.found("crate")} == {*ids}
        assert client.get(ids[1])["content"] == "crate two \ufffd here"
        assert mnemolog("rebuild").status == 0
        assert {*client.found("crate")} == {*ids}
    assert verified()


def test_c4_a_retry_before_the_first_answer_and_after_a_restart_stores_once() -> None:
    request = {"content": "gate code rule", "layer": "procedural", "idempotency_key": "k1"}
    with stdio_session() as client:
        client.peer.send(
            call("first", "memory_add", **request), call("again", "memory_add", **request)
        )
        answers = [client.peer.receive()["result"]["structuredContent"] for _ in range(2)]
        (stored,) = {answer["id"] for answer in answers}
        assert sorted(answer["created"] for answer in answers) == [False, True]
    with stdio_session() as client:
        again = client.ask("add", **request)
        assert (again["id"], again["created"]) == (stored, False)
        assert client.refusal("add", **{**request, "scope": "beta"}).code == "idempotency_conflict"
        assert client.total() == 1
    assert verified()


@pytest.mark.guarantee("G-STALE-1")
def test_s6_s2_and_undo_in_one_session() -> None:
    with stdio_session() as client:
        old = client.ask("add", content="the depot is in Quarry Lane", layer="semantic")
        changed = client.update(
            old["id"], supersede=True, new_content="the depot is in Orchard Row"
        )
        new = changed["new_id"]
        stale = client.refusal("update", id=new, content="x", expected_version=old["version"])
        assert (stale.code, stale.details["version"]) == ("version_conflict", changed["version"])
        deleted = client.delete(new)
        assert deleted["reactivated_id"] == old["id"]
        assert client.refusal("undo", position=changed["position"]).code == "undo_conflict"
        client.ask("undo", position=deleted["position"])
        assert client.found("depot") == [new]
        history = client.ask("inspect", id=new, include_history=True)
        assert [version["status"] for version in history["versions"]] == [
            "active",
            "deleted",
            "active",
        ]
    assert verified()


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/Los_Angeles"])
def test_d2_days_in_words_are_those_of_the_stated_zone_wherever_the_program_runs(
    monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    monkeypatch.setenv("TZ", zone)
    monkeypatch.setenv("MNEMOLOG_TIME_ZONE", "Asia/Tokyo")
    with stdio_session() as client:
        stored = client.add("the night train left", event_at="2025-03-10T23:30:00Z")
        assert client.found("train", when="11 March 2025") == [stored]
        assert client.found("train", when="10 March 2025") == []
        assert "Asia/Tokyo" in client.search("train", when="11 March 2025")["notes"][0]
        assert client.found("train", when="2025-03-10") == [stored]
        assert client.get(stored)["event_at"] == "2025-03-10T23:30:00Z"
    shown = json.loads(mnemolog("list", "--when", "11 March 2025", "--json").out)
    assert [memory["id"] for memory in shown["memories"]] == [stored]


@pytest.mark.guarantee("G-DAMAGE-3")
def test_l3_damage_is_reported_at_start_and_by_health_reads_go_on_and_a_write_is_refused(
    home: Path,
) -> None:
    with stdio_session() as client:
        ids = [client.add(f"note {n}") for n in "abc"]
    (segment,) = (home / "ledger" / "log").iterdir()
    segment.write_bytes(segment.read_bytes().replace(b"note b", b"note x"))

    with started(command=(MNEMOLOG, "serve"), stderr=subprocess.PIPE) as peer:
        damaged = Stdio(peer.handshake())
        assert damaged.found("note b") == [ids[1], ids[2], ids[0]]
        assert damaged.refusal("add", content="d", layer="semantic").code == "damaged"
        assert peer.process.stderr is not None
        reported = next(line for line in peer.process.stderr if b"damaged" in line)
        assert segment.name.encode() in reported
        assert b"record 4" in reported
        health = damaged.ask("health")
        assert health["status"] == "degraded"
        assert "1 parts of the ledger are damaged" in health["issues"][0]
