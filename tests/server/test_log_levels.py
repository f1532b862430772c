"""What a server writes to standard error at each level, and what it never writes."""

import json
import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from server.errors import NotFoundError
from server.method import JsonObject, Method, Request
from server.request_log import Run, logged
from server.rpc import RpcError
from server.tool import Call
from tests.support.peer import ROOT, Json, call, initialize, request

SERVE = [sys.executable, "-c", "from server.cli import main; main()", "serve"]
SECRET = "swordfish"
NUMBER = re.compile(r"\d+\.\d ms$", re.MULTILINE)


def served(home: Path, level: str, *lines: Json | bytes) -> tuple[list[Json], list[str]]:
    """Serve these lines after a handshake; returns the answers and what was logged."""
    sent = [initialize(0), *lines]
    data = b"\n".join(
        line if isinstance(line, bytes) else json.dumps(line).encode() for line in sent
    )
    environment = {name: text for name, text in os.environ.items() if "MNEMOLOG" not in name}
    done = subprocess.run(
        SERVE,
        input=data,
        capture_output=True,
        cwd=ROOT,
        env={**environment, "MNEMOLOG_HOME": str(home), "MNEMOLOG_LOG_LEVEL": level},
        check=True,
        timeout=60,
    )
    logged_lines = NUMBER.sub("N ms", done.stderr.decode()).splitlines()
    return [json.loads(line) for line in done.stdout.splitlines()], logged_lines


def requests() -> list[Json | bytes]:
    return [
        call(1, "memory_add", content=SECRET, layer="semantic"),
        call(2, "memory_add", content=SECRET, layer=SECRET),
        call(3, SECRET, content=SECRET),
        request(4, SECRET, name=SECRET),
        f'{{"{SECRET}"'.encode(),
    ]


def test_a_server_that_fares_well_logs_nothing_by_default(tmp_path: Path) -> None:
    answers, lines = served(tmp_path, "warning", *requests())

    assert len(answers) == 6
    assert lines == []


def test_at_level_info_it_logs_what_the_store_does(tmp_path: Path) -> None:
    answers, lines = served(tmp_path, "info", *requests())

    assert len(answers) == 6
    assert lines[0] == f"mnemolog: opened the store in {tmp_path}"
    assert "mnemolog: rebuilding the projections from the ledger" in lines
    assert any(line.startswith("mnemolog: rebuilt 0 events into g") for line in lines)
    assert lines[-1] == "mnemolog: closed the store"
    assert not any("memory_add" in line for line in lines)


@pytest.mark.guarantee("G-LOG-1")
def test_at_level_debug_it_logs_every_request_and_never_what_was_said(tmp_path: Path) -> None:
    answers, lines = served(tmp_path, "debug", *requests())

    assert len(answers) == 6
    assert {line for line in lines if " ms" in line} == {
        "mnemolog: initialize: ok in N ms",
        "mnemolog: tools/call memory_add: ok in N ms",
        "mnemolog: tools/call memory_add: invalid_arguments in N ms",
        "mnemolog: tools/call of an unknown tool: error -32602 in N ms",
    }
    assert "mnemolog: a message was refused: error -32601" in lines
    assert "mnemolog: a message was refused: error -32700" in lines
    assert "mnemolog: closed the store" in lines
    assert SECRET not in "".join(lines)


# ---------------------------------------------------------------------------- outcomes


def refuse(_: Request) -> JsonObject:
    raise NotFoundError(SECRET)


def refuse_by_protocol(_: Request) -> JsonObject:
    raise RpcError(-32602, SECRET)


def fail(_: Request) -> JsonObject:
    raise OSError(SECRET)


@pytest.mark.parametrize(
    ("run", "outcome"),
    [
        (lambda _: {}, "ok"),
        (lambda _: None, "left open"),
        (refuse, "not_found"),
        (refuse_by_protocol, "error -32602"),
        (fail, "failed"),
    ],
    ids=["answers", "stays open", "refuses", "refuses by protocol", "fails"],
)
def test_the_log_says_how_a_request_ended(run: Run, outcome: str) -> None:
    lines: list[str] = []
    method = Method(run=run)
    table = logged({"resources/read": method}, (), lines.append)
    asked = Request(1, method, {"name": SECRET}, {}, modern=False, call=Call())

    with suppress(NotFoundError, RpcError, OSError):
        table["resources/read"].run(asked)

    assert [NUMBER.sub("N ms", line) for line in lines] == [
        f"mnemolog: resources/read: {outcome} in N ms"
    ]
