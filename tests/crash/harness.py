"""Real servers on a real home, and what the tests want to know about the home afterwards."""

import os
import random
import re
import secrets
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ledger import (
    AliasAdded,
    Ledger,
    MemoryAdded,
    MemoryDeleted,
    Position,
    RandomIds,
    SessionStarted,
    SystemClock,
)
from server.bootstrap import Store
from server.commands import AddArgs
from server.config import Config
from server.tool import Call
from tests.support.peer import HANG_SECONDS, Json, Peer, call, initialize, notification, readable

MNEMOLOG: Final = str(Path(sys.executable).parent / "mnemolog")
"""The installed command."""


def environment(home: Path, **settings: str) -> dict[str, str]:
    """Return a child's environment; heavy children are not traced for coverage."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("COVERAGE")}
    return {**kept, "MNEMOLOG_HOME": str(home), **settings}


class Server(Peer):
    """A client of one `mnemolog serve`; the handshake's answer is read when it comes."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        super().__init__(process)
        self.greeted = False
        """Whether the server has answered the handshake."""
        self.send(initialize("handshake"), notification("notifications/initialized"))

    @property
    def output(self) -> int:
        return self._out

    def receive(self) -> Json:
        return self._next() or super().receive()

    def call(self, tool: str, /, **arguments: object) -> Json:
        """Do a call that is alone on its way; return what the tool said, error or not."""
        self.send(call("alone", tool, **arguments))
        return structured(self.answer("alone"))

    def answer(self, request_id: object) -> Json:
        """Read until the answer to a request comes."""
        while (message := self.receive()).get("id") != request_id:
            pass
        return message

    def add(self, content: str, **arguments: object) -> Json:
        return self.call("memory_add", content=content, layer="semantic", **arguments)

    def total(self) -> int:
        total = self.call("memory_inspect")["total"]
        assert isinstance(total, int)
        return total

    def available(self, seconds: float) -> list[Json]:
        """Return the messages that come within so many seconds, or before the output ends."""
        moment = time.monotonic() + seconds
        messages = []
        while True:
            # Whatever the time: a line that stays in the buffer makes no descriptor readable.
            while b"\n" in self._buffer:
                if message := self._next():
                    messages.append(message)
            left = moment - time.monotonic()
            if left <= 0 or not readable([self._out], left) or not self._fill():
                return messages

    def remains(self) -> list[Json]:
        """Read whole messages up to the end of the output of a server that may have been killed."""
        while self._fill():
            pass
        self._buffer = self._buffer[: self._buffer.rfind(b"\n") + 1]
        messages = []
        while self._buffer:
            if message := self._next():
                messages.append(message)
        return messages

    def _next(self) -> Json | None:
        """Read the next message; None if it was the answer to the handshake."""
        message = super().receive()
        if message.get("id") != "handshake":
            return message
        self.greeted = True
        return None

    def _fill(self) -> bool:
        assert readable([self._out], HANG_SECONDS), "neither output nor its end"
        piece = os.read(self._out, 2**16)
        self._buffer += piece
        return bool(piece)


def launch(
    home: Path, *, prefix: Sequence[str] = (), settings: Mapping[str, str] | None = None
) -> Server:
    """Start a server that the caller ends."""
    return Server(
        subprocess.Popen(
            [*prefix, MNEMOLOG, "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(home, **(settings or {})),
            bufsize=0,
        )
    )


def end(server: Server, number: signal.Signals = signal.SIGKILL) -> int:
    """Send a signal, wait for the end and close the pipes; return the exit status."""
    server.process.send_signal(number)
    status = server.exit_status()
    for stream in (server.process.stdin, server.process.stdout):
        if stream is not None:
            stream.close()
    return status


@contextmanager
def serving(
    home: Path, *, prefix: Sequence[str] = (), settings: Mapping[str, str] | None = None
) -> Iterator[Server]:
    """Start a server; it is gone when the block is left."""
    server = launch(home, prefix=prefix, settings=settings)
    try:
        yield server
    finally:
        end(server)


def structured(answer: Json) -> Json:
    """Return what a tool said."""
    assert "result" in answer, answer
    content = answer["result"]["structuredContent"]
    assert isinstance(content, dict)
    assert answer["result"]["isError"] == ("error" in content)
    return content


def code(said: Json) -> str:
    """Return the error code in what a tool said, empty if it is no error."""
    return str(said["error"]["code"]) if "error" in said else ""


def run(home: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a command of mnemolog to its end."""
    return subprocess.run(
        [MNEMOLOG, *arguments],
        env=environment(home),
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS * 2,
    )


def assert_sound(home: Path) -> None:
    """Bring the projections up to date; they must equal a replay, and the ledger must be clean."""
    digest = run(home, "digest")
    assert digest.returncode == 0, digest.stderr
    verified = run(home, "verify", "--digest")
    assert verified.returncode == 0, verified.stdout + verified.stderr


class Contents:
    """What a home holds by the ledger, read on from where the last look ended."""

    def __init__(self, home: Path) -> None:
        self._root = home / "ledger"
        self._after = Position.start
        self.counts: Counter[str] = Counter()
        self.ids: dict[str, str] = {}
        """Content -> id of the memory that was added with it."""
        self.deleted: set[str] = set()
        """Ids of memories."""
        self.sessions: list[str] = []
        """Ids, each as often as it was begun."""
        self.aliases: list[str] = []
        """Names, each as often as it was added."""
        self.seqs: list[int] = []

    def refresh(self) -> None:
        if not (self._root / "FORMAT").exists():
            return
        ledger = Ledger.open_existing(self._root, clock=SystemClock(), ids=RandomIds())
        for record in ledger.read(self._after):
            self._after = record.position
            self.seqs.append(record.seq)
            match record.payload:
                case MemoryAdded(memory=memory):
                    self.counts[memory.content] += 1
                    self.ids[memory.content] = record.header.sub
                case MemoryDeleted():
                    self.deleted.add(record.header.sub)
                case SessionStarted():
                    self.sessions.append(record.header.sub)
                case AliasAdded(alias=alias):
                    self.aliases.append(alias.name)
                case _:
                    pass
        ledger.close()


class Acknowledged:
    """What a client was told is stored."""

    def __init__(self) -> None:
        self.ids: dict[str, str] = {}
        """Content -> id of the memory."""
        self.deleted: set[str] = set()
        self.sessions: list[str] = []
        self.aliases: list[str] = []

    def take(self, said: Json, contents: Sequence[str]) -> None:
        """Take an answer to a request for these memories, or for something else."""
        if "results" in said:
            added = [item["added"] for item in said["results"]]
        elif "layer" in said:
            added = [said]
        else:
            added = []
        assert len(added) == len(contents), said
        for content, one in zip(contents, added, strict=True):
            assert content not in self.ids
            self.ids[content] = one["id"]
        if "deleted_count" in said:
            assert said["deleted_count"] == len(said["ids"])
            self.deleted.update(said["ids"])
        elif "started_at" in said:
            self.sessions.append(said["id"])
        elif "aliases" in said:
            self.aliases += [alias["alias"] for alias in said["aliases"]]


def contents(home: Path) -> Contents:
    """Read a home's ledger from its start."""
    found = Contents(home)
    found.refresh()
    return found


def filled(home: Path, count: int) -> None:
    """Make a home that holds `note 0` to `note <count - 1>`."""
    store = Store(Config(home=home))
    for number in range(count):
        args = AddArgs(content=f"note {number} of the harbour master", layer="semantic")
        store.app.add(args, Call(actor_name="filler"))
    store.close()


def live_segment(home: Path) -> Path:
    """Return the newest raw segment of a home."""
    return max((home / "ledger" / "log").glob("*.jsonl"))


def dice() -> random.Random:
    """Return a source of random moments; CRASH_SEED, printed on failure, repeats a run."""
    seed = os.environ.get("CRASH_SEED") or secrets.token_hex(4)
    sys.stdout.write(f"CRASH_SEED={seed}\n")
    return random.Random(seed)


def generations(home: Path) -> set[str]:
    """Return the names of the generations on disk."""
    names = {path.name for path in (home / "projections").iterdir()}
    return {name for name in names if re.fullmatch(r"g\d{6}-[a-z2-7]{16}", name)}
