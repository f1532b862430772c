"""The demo: what the store promises, shown on real input by a real server and a real client.

Each step says in plain words what it does and what it saw; the first that sees something else ends
the demo with exit status 1.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

from server.config import child_environment, public_data
from server.demo_notes import NOTES

DOCUMENT_PIECE_CHARS_MAX = 4_000
DOCUMENT_PIECES_MAX = 400
CONVERSATION_TURNS_MAX = 400
KILL_ROUNDS = 5
KILL_AFTER_ACKNOWLEDGED_MAX = 60

Json = dict[str, Any]


class DemoError(Exception):
    """Something was not as promised."""


def run_demo(documents: str | None) -> int:
    """Run the demo in a folder of its own, which is removed afterwards; return the exit status."""
    if documents is not None and not Path(documents).is_dir():
        print(f"mnemolog: {documents} is no folder", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="mnemolog-demo-") as folder:
        home = Path(folder) / "home"
        try:
            anyio.run(_story, home, gather_input(None if documents is None else Path(documents)))
        except DemoError as error:
            print(f"\nFAILED: {error}")
            return 1
    print("\nEverything was as promised.")
    return 0


def gather_input(documents: Path | None) -> list[Json]:
    """Collect what is stored: notes, a folder's documents, a conversation if one is at hand."""
    memories: list[Json] = list(NOTES)
    folder = documents or Path.cwd()
    pieces = [
        {
            "layer": "resource",
            "content": piece,
            "meta": {"file": path.relative_to(folder).as_posix()},
        }
        for path in sorted([*folder.glob("*.md"), *folder.glob("docs/**/*.md")])
        for piece in split_document(path.read_text(encoding="utf-8", errors="replace"))
    ][:DOCUMENT_PIECES_MAX]
    turns = list(_conversation())[:CONVERSATION_TURNS_MAX]
    print(
        f"Input: {len(NOTES)} bundled notes, {len(pieces)} pieces of documents in "
        f"{folder.name or '/'}, {len(turns)} turns of a conversation."
    )
    return [*memories, *pieces, *turns]


def split_document(text: str) -> Iterator[str]:
    """Split a document at its blank lines into pieces that are worth a memory each."""
    for piece in text.split("\n\n"):
        for start in range(0, len(piece), DOCUMENT_PIECE_CHARS_MAX):
            part = piece[start : start + DOCUMENT_PIECE_CHARS_MAX]
            if part.strip():
                yield part


def _conversation() -> Iterator[Json]:
    folder = public_data()
    path = None if folder is None else folder / "locomo.json"
    if path is None or not path.is_file():
        return
    for turn in json.loads(path.read_bytes())["collections"][0]["docs"]:
        yield {"layer": "episodic", "content": turn["text"], "scope": "conversation"}


async def _story(home: Path, memories: list[Json]) -> None:
    async with _client(home) as client:
        ids = await _store(client, memories)
        await _search(client)
        await _supersede_and_undo(client)
    acknowledged = await anyio.to_thread.run_sync(_kill_during_writes, home)
    async with _client(home) as client:
        await _find_acknowledged(client, ids, acknowledged)
    _rebuild_from_zero(home)
    _verify(home)


def _client(home: Path) -> Client:
    command, *arguments = _command("serve")
    return Client(
        StdioServerParameters(
            command=command, args=arguments, env=child_environment(home), cwd=home.parent
        )
    )


async def _store(client: Client, memories: list[Json]) -> list[str]:
    _say(1, "A client starts the server as a child process and stores the input over MCP.")
    tools = [tool.name for tool in (await client.list_tools()).tools]
    _saw(f"the server offers {', '.join(tools)}")
    ids = [str((await _call(client, "memory_add", memory))["id"]) for memory in memories]
    _expect(len(set(ids)) == len(memories), "two memories got one id")
    _saw(f"{len(ids)} memories acknowledged; each was on disk before its answer came")
    return ids


async def _search(client: Client) -> None:
    _say(2, "It searches in English, Russian and Chinese, with words in other forms than stored.")
    for query, expected in (
        ("deploying billing", "billing service go out on Tuesdays"),
        ("настройки сетей", "Фёдор отвечает за настройку сети"),
        ("Федор", "Фёдор отвечает"),
        ("服务器", "服务器恢复正常"),
    ):
        found = await _call(client, "memory_search", {"query": query, "limit": 3})
        contents = [memory["content"] for memory in found["memories"]]
        _expect(any(expected in content for content in contents), f"{query!r} did not find it")
        _saw(f"{query!r} finds: {contents[0][:60]}")
    exact = await _call(client, "memory_search", {"query": "order ZX-404", "mode": "exact"})
    _expect(exact["returned_count"] >= 1, "the exact search found nothing")
    _saw(f"'order ZX-404' in mode exact finds: {exact['memories'][0]['content']}")


async def _supersede_and_undo(client: Client) -> None:
    _say(3, "A fact changes: the new one supersedes the old one. Then that is undone.")
    query = {"query": "billing service deploys", "limit": 1}
    old = (await _call(client, "memory_search", query))["memories"][0]
    text = "Deploys of the billing service go out on Thursdays after 14:00."
    change = {"id": old["id"], "supersede": True, "new_content": text}
    changed = await _call(client, "memory_update", change)
    now = (await _call(client, "memory_search", query))["memories"][0]
    _expect(now["id"] == changed["new_id"], "search does not see the new fact")
    _saw(f"search now answers: {now['content']}")
    chain = await _call(client, "memory_inspect", {"id": now["id"], "include_history": True})
    _expect(len(chain["superseded_chain"]) == 2, "the old fact is not in the chain")
    await _call(client, "memory_undo", {"position": changed["position"]})
    again = (await _call(client, "memory_search", query))["memories"][0]
    _expect(again["id"] == old["id"], "the undo did not bring the old fact back")
    _saw(f"after the undo it answers: {again['content']}")


def _kill_during_writes(home: Path) -> list[str]:
    _say(4, f"{KILL_ROUNDS} times a server is killed with SIGKILL at a random moment of writing.")
    acknowledged: list[str] = []
    for number in range(KILL_ROUNDS):
        kept = _write_until_killed(home, number)
        acknowledged += kept
    _saw(f"{len(acknowledged)} writes had been acknowledged before the kills")
    return acknowledged


def _write_until_killed(home: Path, number: int) -> list[str]:
    """Write one memory after another; a second thread kills the server at a random moment."""
    process = subprocess.Popen(  # noqa: S603 - our own command
        _command("serve"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=child_environment(home),
        cwd=home.parent,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    enough = threading.Event()
    limit = random.randint(1, KILL_AFTER_ACKNOWLEDGED_MAX)  # noqa: S311 - any moment will do

    def kill() -> None:
        enough.wait()
        process.send_signal(signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    acknowledged: list[str] = []
    try:
        _request(process, 0, "initialize", _HANDSHAKE)
        for written in range(1, 1_000_000):
            content = (
                f"Kill round {number}, note {written}: written while the server was being killed."
            )
            arguments = {"content": content, "layer": "episodic", "scope": "killed"}
            reply = _request(
                process, written, "tools/call", {"name": "memory_add", "arguments": arguments}
            )
            acknowledged.append(reply["structuredContent"]["id"])
            if written == limit:
                enough.set()
    except (BrokenPipeError, EOFError):
        pass  # killed
    finally:
        enough.set()
        killer.join()
        process.wait()
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()
    return acknowledged


_HANDSHAKE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "demo-writer", "version": "1"},
}


def _request(
    process: subprocess.Popen[bytes], request_id: int, method: str, parameters: Json
) -> Json:
    assert process.stdin is not None
    assert process.stdout is not None
    message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": parameters}
    process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    result = json.loads(line)["result"]
    assert isinstance(result, dict)
    return result


async def _find_acknowledged(client: Client, ids: list[str], acknowledged: list[str]) -> None:
    _say(5, "The server starts again and every acknowledged memory is looked up.")
    for memory_id in [*ids, *acknowledged]:
        found = await _call(client, "memory_inspect", {"id": memory_id})
        _expect(found["memory"]["id"] == memory_id, f"{memory_id} is lost")
    total = (await _call(client, "memory_inspect", {}))["total"]
    more = total - len(ids) - len(acknowledged)
    _expect(0 <= more <= KILL_ROUNDS, f"{more} memories more than acknowledged")
    _saw(
        f"all {len(ids) + len(acknowledged)} are there, and {more} more whose answer a kill cut off"
    )


def _rebuild_from_zero(home: Path) -> None:
    _say(6, "The projections are deleted and rebuilt from the ledger.")
    before = _run(home, "digest")
    shutil.rmtree(home / "projections")
    rebuilt = _run(home, "rebuild").splitlines()[0]
    after = _run(home, "digest")
    _expect(before == after, "the digests differ")
    _saw(rebuilt)
    _saw(f"{len(after.splitlines()) - 1} state digests before and after are equal")


def _verify(home: Path) -> None:
    _say(7, "Every byte of the ledger is verified.")
    for line in _run(home, "verify").splitlines():
        _saw(line)


def _run(home: Path, command: str) -> str:
    finished = subprocess.run(  # noqa: S603 - our own command
        _command(command),
        env=child_environment(home),
        cwd=home.parent,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    said = finished.stdout + finished.stderr
    _expect(finished.returncode == 0, f"`mnemolog {command}` exits {finished.returncode}: {said}")
    return finished.stdout


def _command(*arguments: str) -> list[str]:
    """Return the installed command, or this interpreter where there is none on the way."""
    installed = Path(sys.executable).with_name("mnemolog")
    if installed.exists():
        return [str(installed), *arguments]
    return [sys.executable, "-c", "from server.cli import main; main()", *arguments]


async def _call(client: Client, tool: str, arguments: Json) -> Json:
    result = await client.call_tool(tool, arguments)
    _expect(not result.is_error, f"{tool} answers {result.content}")
    assert isinstance(result.structured_content, dict)
    return result.structured_content


def _say(step: int, text: str) -> None:
    print(f"\n{step}. {text}", flush=True)


def _saw(text: str) -> None:
    print(f"   {text}", flush=True)


def _expect(held: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as an assertion
    if not held:
        raise DemoError(otherwise)
