"""The ways in, behind one face: the program itself, a server over stdio, and the command line.

A case that is asked of each of them is written once. What a way answers is the JSON that a client
of it sees; what it refuses is the error's JSON.
"""

import json
import os
import subprocess
import sys
from abc import ABC, abstractmethod
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple, get_type_hints

import msgspec

from server.commands import ExportArgs
from server.errors import UseCaseError
from server.library import MemoryStore, open_store
from tests.support.peer import ROOT, Json, Peer, call, started

MNEMOLOG: Final = os.fspath(Path(sys.executable).with_name("mnemolog"))

LEAKS: Final = ("Traceback", "SELECT", "sqlite", "apsw", ".py", "memories_fts", "/tmp", "/dev/shm")
"""What no client may see of the inside, or of the machine."""


class RefusedError(Exception):
    """A call was refused.

    Attributes:
        code: Stable name of the kind of refusal.
        message: What is wrong, for people.
        details: Facts.
    """

    def __init__(self, error: Json) -> None:
        super().__init__(error["message"])
        self.code: str = error["code"]
        self.message: str = error["message"]
        self.details: Json = error.get("details", {})
        for leak in LEAKS:
            assert leak not in json.dumps(error)


class Way(ABC):
    """One way in, to a store of its own."""

    @abstractmethod
    def ask(self, tool: str, /, **arguments: object) -> Json:
        """Call a tool by its name without `memory_`; returns what it answers.

        Raises:
            RefusedError: it refused.
        """

    @abstractmethod
    def export(self, form: str, **filters: object) -> str:
        """Return an export whole."""

    def refusal(self, tool: str, /, **arguments: object) -> RefusedError:
        """Call a tool that must refuse."""
        try:
            answer = self.ask(tool, **arguments)
        except RefusedError as refused:
            return refused
        raise AssertionError(f"not refused: {arguments} but answered: {answer}")

    def add(self, content: str, layer: str = "semantic", **fields: object) -> str:
        """Store a memory; returns its id."""
        return str(self.ask("add", content=content, layer=layer, **fields)["id"])

    def search(self, query: str, **filters: object) -> Json:
        return self.ask("search", query=query, **filters)

    def found(self, query: str, **filters: object) -> list[str]:
        return [found["id"] for found in self.search(query, **filters)["memories"]]

    def search_each(self, queries: Iterable[str]) -> dict[str, Json]:
        """Search for each of many texts."""
        return {query: self.search(query) for query in queries}

    def found_each(self, queries: Iterable[str]) -> dict[str, list[str]]:
        return {
            query: [found["id"] for found in answer["memories"]]
            for query, answer in self.search_each(queries).items()
        }

    def update(self, memory_id: str, **fields: object) -> Json:
        return self.ask("update", id=memory_id, **fields)

    def supersede(self, memory_id: str, content: str, **fields: object) -> str:
        return str(self.update(memory_id, supersede=True, new_content=content, **fields)["new_id"])

    def delete(self, memory_id: str) -> Json:
        return self.ask("delete", id=memory_id)

    def get(self, memory_id: str) -> Json:
        """Read a memory; empty if it is not there."""
        memories = self.ask("get", ids=[memory_id])["memories"]
        return memories[0] if memories else {}

    def listed(self, **filters: object) -> list[str]:
        """Return the ids of a first page."""
        return [memory["id"] for memory in self.ask("list", **filters)["memories"]]

    def total(self) -> int:
        """Return how many memories there are, superseded and expired ones included."""
        return int(self.ask("inspect")["total"])


class Program(Way):
    """The store as an object of a program, as `server.open_store` gives it."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def ask(self, tool: str, /, **arguments: object) -> Json:
        use = getattr(self._store, tool)
        struct = get_type_hints(use)["args"]
        try:
            answer = use(struct(**arguments))
        except TypeError as error:
            raise RefusedError({"code": "usage", "message": str(error)}) from error
        except UseCaseError as error:
            said = {"code": error.code, "message": error.message, "details": error.details}
            raise RefusedError(said) from error
        return msgspec.json.decode(msgspec.json.encode(answer), type=Json)

    def export(self, form: str, **filters: object) -> str:
        args = msgspec.convert({"format": form, **filters}, ExportArgs)
        return "".join(self._store.export_whole(args))


class Stdio(Way):
    """A client of a server process."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self._ids = count(1)

    def ask(self, tool: str, /, **arguments: object) -> Json:
        return self._said(self.peer.ask(call(next(self._ids), f"memory_{tool}", **arguments)))

    def raw(self, arguments: bytes, tool: str = "add") -> Json:
        """Call a tool with arguments that are these very bytes."""
        head = json.dumps(call(next(self._ids), f"memory_{tool}")).encode()
        line = head.replace(b'"arguments": {}', b'"arguments": ' + arguments)
        return self._said(self.peer.ask(line + b"\n"))

    def export(self, form: str, **filters: object) -> str:
        return str(self.ask("export", format=form, limit=10_000, **filters)["content"])

    def close(self) -> None:
        """End the server's input; it must then end by itself and cleanly."""
        self.peer.close_input()
        assert self.peer.rest() == []
        assert self.peer.exit_status() == 0

    @staticmethod
    def _said(answer: Json) -> Json:
        result = answer["result"]
        (content,) = result["content"]
        said = result["structuredContent"]
        assert json.loads(content["text"]) == said
        assert result.get("isError", False) is ("error" in said)
        if "error" in said:
            raise RefusedError(said["error"])
        assert isinstance(said, dict)
        return said


@contextmanager
def stdio_session() -> Iterator[Stdio]:
    """A server of the home that the environment names."""
    with started(command=(MNEMOLOG, "serve"), stderr=subprocess.DEVNULL) as peer:
        session = Stdio(peer.handshake())
        yield session
        session.close()


@contextmanager
def program(home: Path) -> Iterator[Program]:
    """A store of this process."""
    with open_store(home) as store:
        yield Program(store)


class Finished(NamedTuple):
    """A command that has ended."""

    status: int
    out: bytes
    err: bytes


def mnemolog(*arguments: str) -> Finished:
    """Run the installed command on the home that the environment names."""
    done = subprocess.run([MNEMOLOG, *arguments], check=False, capture_output=True, input=b"")
    return Finished(done.returncode, done.stdout, done.stderr)


Run = Callable[..., Finished]
"""Runs the command on the home of a test."""


class CommandHost:
    """Runs the installed command on a home, as often as asked; see `tests.cases.command_host`."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    def run(self, home: Path, *arguments: str, given: bytes = b"") -> Finished:
        request = {
            "arguments": arguments,
            "environment": {"MNEMOLOG_HOME": str(home)},
            "input": b64encode(given).decode(),
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return Finished(answer["status"], b64decode(answer["out"]), b64decode(answer["err"]))


@contextmanager
def command_host() -> Iterator[CommandHost]:
    command = [sys.executable, "-m", "tests.cases.command_host", MNEMOLOG]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    ) as process:
        yield CommandHost(process)
        assert process.stdin is not None
        process.stdin.close()


class CommandLine(Way):
    """The installed command, a process for each call."""

    _PLACED: Final[dict[str, tuple[str, ...]]] = {
        "add": ("content",),
        "alias": ("alias", "entity_name"),
        "delete": ("id",),
        "get": ("ids",),
        "inspect": ("id",),
        "redact": ("id",),
        "search": ("query",),
        "session_end": ("id",),
        "undo": ("id",),
        "update": ("id",),
    }
    """Tool -> fields that are given by their place."""

    def __init__(self, host: CommandHost, home: Path) -> None:
        self._host = host
        self._home = home

    def ask(self, tool: str, /, **arguments: object) -> Json:
        given = b""
        words = tool.split("_")
        match tool:
            case "add_many":
                words = ["add", "--batch", "-"]
                memories = arguments.pop("memories")
                assert isinstance(memories, list)
                given = b"".join(json.dumps(memory).encode() + b"\n" for memory in memories)
            case "delete_many":
                words = ["delete", "--yes"]
            case "redact":
                words = ["redact", *([] if arguments.get("dry_run") else ["--yes"])]
                chosen = arguments.pop("filter", {})
                assert isinstance(chosen, dict)
                arguments |= chosen
                words += [] if arguments.pop("chain", True) else ["--no-chain"]
            case "alias":
                words = ["alias", str(arguments.pop("action"))]
            case "add" if len(str(arguments["content"])) > 1_000 or "\0" in str(
                arguments["content"]
            ):
                given = str(arguments["content"]).encode() + b"\n"
                arguments["content"] = "-"
        placed = [arguments.pop(field, None) for field in self._PLACED.get(tool, ())]
        options = [word for option in arguments.items() for word in _option(*option)]
        finished = self._host.run(
            self._home,
            *words,
            *options,
            "--json",
            *_places(placed),
            given=given,
        )
        if finished.out:
            assert finished.status in (0, 1, 3)
            return msgspec.json.decode(finished.out, type=Json)
        assert finished.status in (2, 3, 4)
        raise RefusedError(json.loads(finished.err.splitlines()[-1])["error"])

    def export(self, form: str, **filters: object) -> str:
        options = [word for option in filters.items() for word in _option(*option)]
        finished = self._host.run(self._home, "export", "--format", form, *options)
        assert finished.status == 0
        return finished.out.decode()


def _places(values: list[object]) -> list[str]:
    """Return the words that stand by themselves, which may begin with a dash."""
    words = [
        str(word)
        for value in values
        if value is not None
        for word in (value if isinstance(value, list) else [value])
    ]
    return ["--", *words] if words else []


def _option(name: str, value: object) -> list[str]:
    """Return the words that give a field a value."""
    option = "--" + name.replace("_", "-")
    match value:
        case None:
            return []
        case True:
            return [option]
        case []:
            return [f"{option.removesuffix('s')}=[]"]
        case list():
            return [f"{option.removesuffix('s')}={item}" for item in value]
        case dict():
            return [f"{option}={json.dumps(value)}"]
        case _:
            return [f"{option}={value}"]


WAYS: Final[dict[str, Callable[[CommandHost, Path], AbstractContextManager[Way]]]] = {
    "program": lambda _, home: program(home),
    "stdio": lambda *_: stdio_session(),
    "command line": lambda host, home: nullcontext(CommandLine(host, home)),
}
"""Name -> opens the way in to a home, which the environment names as well."""
