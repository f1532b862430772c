"""A client that sees every byte: it talks JSON lines to a server process and parses each answer."""

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

OURS: Final = (sys.executable, "-m", "tests.support.stdio_server")
SDK: Final = (sys.executable, "-m", "tests.support.sdk_server")

ROOT: Final = Path(__file__).parent.parent.parent
HANG_SECONDS: Final = 60.0
"""Far more than anything takes; a test that waits so long has failed."""

META: Final = "io.modelcontextprotocol/"
ENVELOPE: Final[dict[str, Any]] = {
    META + "protocolVersion": "2026-07-28",
    META + "clientCapabilities": {},
    META + "clientInfo": {"name": "modern-peer", "version": "1"},
}

Json = dict[str, Any]


def request(request_id: object, method: str, **params: object) -> Json:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def modern(request_id: object, method: str, *, _meta: Json | None = None, **params: object) -> Json:
    return request(request_id, method, **params, _meta={**ENVELOPE, **(_meta or {})})


def call(request_id: object, tool: str, /, **arguments: object) -> Json:
    return request(request_id, "tools/call", name=tool, arguments=arguments)


def notification(method: str, **params: object) -> Json:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def cancelled(request_id: object) -> Json:
    return notification("notifications/cancelled", requestId=request_id)


def initialize(request_id: object, version: object = "2025-11-25") -> Json:
    return request(
        request_id,
        "initialize",
        protocolVersion=version,
        capabilities={},
        clientInfo={"name": "legacy-peer", "version": "1"},
    )


class Peer:
    """The client end of one server process."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self._buffer = b""

    @property
    def _in(self) -> int:
        assert self.process.stdin is not None
        return self.process.stdin.fileno()

    @property
    def _out(self) -> int:
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def send(self, *messages: Json | list[Any] | bytes | None) -> Self:
        """Write lines; bytes go as they are, without a newline."""
        data = b"".join(
            message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
            for message in messages
        )
        while data:
            data = data[os.write(self._in, data) :]
        return self

    def receive(self) -> Json:
        """Read the next line, which must be a message."""
        line = self._line()
        assert line is not None, "the server has closed its output"
        message = json.loads(line)
        assert isinstance(message, dict)
        assert message["jsonrpc"] == "2.0"
        return message

    def ask(self, *messages: Json | list[Any] | bytes | None) -> Json:
        """Send, and read the one answer."""
        return self.send(*messages).receive()

    def handshake(self, version: str = "2025-11-25") -> Self:
        answer = self.ask(initialize("handshake", version))
        assert answer["result"]["protocolVersion"] == version
        return self.send(notification("notifications/initialized"))

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def rest(self) -> list[Json]:
        """Read until the server closes its output."""
        lines = iter(self._line, None)
        return [json.loads(line) for line in lines]

    def exit_status(self) -> int:
        return self.process.wait(HANG_SECONDS)

    def _line(self) -> bytes | None:
        pieces = [self._buffer]
        while b"\n" not in pieces[-1]:
            assert readable([self._out], HANG_SECONDS), "no answer"
            piece = os.read(self._out, 2**16)
            if not piece:
                assert not b"".join(pieces), "the last line has no end"
                return None
            pieces.append(piece)
        line, _, self._buffer = b"".join(pieces).partition(b"\n")
        return line


def readable(descriptors: Iterable[int], seconds: float) -> list[int]:
    """Wait so long for something to read, or the end of it; return where there is."""
    waiting = select.poll()
    for descriptor in descriptors:
        waiting.register(descriptor, select.POLLIN)
    return [descriptor for descriptor, _ in waiting.poll(seconds * 1000)]


@contextmanager
def started(
    *options: str, command: Sequence[str] = OURS, stderr: int | None = None
) -> Iterator[Peer]:
    """Start a server process; it is gone when the block is left."""
    process = subprocess.Popen(
        [*command, *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        cwd=ROOT,
        bufsize=0,
    )
    try:
        yield Peer(process)
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
