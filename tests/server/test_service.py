"""The served store as a client meets it: lists at once, then resources, news and completions."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from server.config import Config
from server.service import CORE_TOOLS, offered
from tests.support.peer import ROOT, Json, Peer, call, modern, request
from tests.support.reference import TOOLS
from tests.support.store import home_at

UPDATED = "notifications/resources/updated"


@contextmanager
def served(home: Path, **settings: str) -> Iterator[Peer]:
    environment: Mapping[str, str] = {
        **{name: value for name, value in os.environ.items() if "MNEMOLOG" not in name},
        "MNEMOLOG_HOME": str(home),
        **settings,
    }
    process = subprocess.Popen(
        [sys.executable, "-c", "from server.cli import main; main()", "serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env=environment,
        bufsize=0,
    )
    peer = Peer(process)
    try:
        yield peer
        peer.close_input()
        assert peer.exit_status() == 0
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            stream.close()


def test_the_lists_are_made_without_what_opens_a_store() -> None:
    code = """
import sys
import json
from pathlib import Path
from server import service, protocol
from server.config import Config

def no_store():
    raise AssertionError

info = protocol.ServerInfo(
    name="n", title="t", version="1", instructions="", tools=service.make_tools(no_store),
    resources=service.make_resources(no_store),
    templates=service.make_templates(no_store, no_store), prompts=service.make_prompts(no_store),
)
connection = protocol.Connection(info, write=lambda line: None, log=print)
for method in ("server/discover", "tools/list", "resources/list", "prompts/list"):
    version = "io.modelcontextprotocol/"
    meta = {version + "protocolVersion": "2026-07-28", version + "clientCapabilities": {}}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta}}
    connection.receive(json.dumps(message).encode())
heavy = ("apsw", "ledger", "server.app", "server.bootstrap", "server.suggest")
print([name for name in heavy if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )

    assert done.stdout == "[]\n"


def test_few_tools_are_offered_to_who_wants_few(tmp_path: Path) -> None:
    full = Config(home=tmp_path)
    core = Config(home=tmp_path, tools="core")

    assert offered(TOOLS, full) == TOOLS
    assert {tool.name for tool in offered(TOOLS, core)} == CORE_TOOLS


def test_a_client_with_few_tools_still_has_resources_and_prompts(tmp_path: Path) -> None:
    with served(tmp_path, MNEMOLOG_TOOLS="core") as peer:
        tools = peer.ask(modern(1, "tools/list"))["result"]["tools"]
        resources = peer.ask(modern(2, "resources/list"))["result"]["resources"]
        templates = peer.ask(modern(3, "resources/templates/list"))["result"]["resourceTemplates"]
        prompts = peer.ask(modern(4, "prompts/list"))["result"]["prompts"]

    assert {tool["name"] for tool in tools} == CORE_TOOLS
    assert [resource["uri"] for resource in resources] == ["memory://stats", "memory://recent"]
    assert [template["uriTemplate"] for template in templates] == [
        "memory://layer/{layer}",
        "memory://entity/{name}",
    ]
    assert [prompt["name"] for prompt in prompts] == ["recall", "context-load", "journal"]


@pytest.mark.guarantee("G-NEWS-1")
def test_a_subscriber_is_told_of_its_own_writes_and_of_those_of_others(tmp_path: Path) -> None:
    uri = "memory://layer/procedural"
    with served(tmp_path) as peer, home_at(tmp_path) as home:
        peer.handshake()
        assert peer.ask(request(1, "resources/subscribe", uri=uri))["result"] == {}
        another = {"content": "of another layer", "layer": "semantic"}
        assert "result" in peer.ask(call(2, "memory_add", **another))

        peer.send(call(3, "memory_add", content="own", layer="procedural"))
        own = [peer.receive(), peer.receive()]
        home.open().add("of somebody else", "procedural")
        others = peer.receive()

    update = {"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": uri}}
    assert update in own
    assert others == update


def test_a_listener_is_told_and_answered_when_the_server_ends(tmp_path: Path) -> None:
    wanted = {"resourceSubscriptions": ["memory://entity/Ada", "memory://layer/nope"]}
    add: Json = {"content": "x", "layer": "semantic", "entity_name": "Ada"}
    with served(tmp_path) as peer:
        acknowledged = peer.ask(modern("news", "subscriptions/listen", notifications=wanted))
        peer.send(modern(1, "tools/call", name="memory_add", arguments=add))
        messages = [peer.receive(), peer.receive()]
        peer.close_input()
        (end,) = peer.rest()

    granted = acknowledged["params"]["notifications"]
    assert granted == {"resourceSubscriptions": ["memory://entity/Ada"]}
    assert UPDATED in {message.get("method") for message in messages}
    assert end["id"] == "news"
    assert end["result"]["resultType"] == "complete"


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("memory://nope", "no such resource"),
        ("memory://layer/nope", "no such layer"),
        ("memory://entity/", "no such resource"),
        ("file:///etc/passwd", "no such resource"),
    ],
)
def test_what_is_no_resource_is_named_in_the_error(tmp_path: Path, uri: str, words: str) -> None:
    with served(tmp_path) as peer:
        error = peer.ask(modern(1, "resources/read", uri=uri))["error"]

    assert error["code"] == -32602
    assert error["data"]["uri"] == uri
    assert words in error["message"]


def test_completions_come_from_the_store(tmp_path: Path) -> None:
    with home_at(tmp_path) as home:
        home.open().add("x", entity_name="Ada")
    ref = {"type": "ref/resource", "uri": "memory://entity/{name}"}
    with served(tmp_path) as peer:
        asked = modern(1, "completion/complete", ref=ref, argument={"name": "name", "value": "a"})
        completion = peer.ask(asked)["result"]["completion"]

    assert completion == {"values": ["Ada"], "total": 1, "hasMore": False}
