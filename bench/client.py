"""A raw MCP client over stdio: one JSON-RPC message a line, and nothing between it and the clock.

A server is described by a TOML file in `servers/`: the command, its environment, and for each
operation the tool and its arguments, or the method and its parameters where it is no call of a
tool. In arguments `"$field"` stands for that field of the operation; an absent field drops its key.
In command and environment `{home}` is the folder of the store and `$NAME` a variable of the
environment.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

HERE = Path(__file__).resolve().parent
PROTOCOL = "2025-06-18"
ANSWER_TO_WAIT_S = 3.0


class ToolError(RuntimeError):
    """A server refused a request, or is gone."""


class ServerSpec:
    """How to start a server and what its operations are called."""

    def __init__(self, name: str) -> None:
        """Read `servers/<name>.toml`."""
        self.raw = tomllib.loads((HERE / "servers" / f"{name}.toml").read_text())
        self.name: str = self.raw["name"]
        self.operations: dict[str, Any] = self.raw["operations"]

    def start(self, home: Path, **settings: str) -> Client:
        """Start the server on a store, with further variables in its environment."""
        home.mkdir(parents=True, exist_ok=True)
        variables = {"BIN": str(Path(sys.executable).parent), **os.environ}

        def expanded(text: str) -> str:
            text = text.replace("{home}", str(home))
            for name, value in variables.items():
                text = text.replace(f"${name}", value)
            return text

        environment = {name: expanded(value) for name, value in self.raw["env"].items()}
        command = [expanded(part) for part in self.raw["command"]]
        return Client(self, command, {**os.environ, **environment, **settings}, home)


class Client:
    """One server process and the pipe to it."""

    def __init__(
        self, spec: ServerSpec, command: list[str], environment: Mapping[str, str], folder: Path
    ) -> None:
        """Start the process."""
        self.spec = spec
        self._last_id = 0
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=folder,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input = self._process.stdin.fileno()
        self._output = self._process.stdout
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop the server."""
        self.close()

    def initialize(self) -> None:
        """Open the session."""
        self.request(
            "initialize",
            {
                "protocolVersion": PROTOCOL,
                "capabilities": {},
                "clientInfo": {"name": "bench", "version": "1"},
            },
        )
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def request(self, method: str, params: Any = None) -> tuple[Any, float]:  # noqa: ANN401 - JSON
        """Send a request; return its result and the seconds until it was decoded."""
        began = time.perf_counter()
        answer = self._read(self._send(method, params))
        seconds = time.perf_counter() - began
        if "error" in answer:
            raise ToolError(str(answer["error"])[:300])
        return answer["result"], seconds

    def operate(self, operation: str, fields: Mapping[str, Any]) -> tuple[Any, float]:
        """Do an operation; return the structured answer and the seconds it took."""
        result, seconds = self.request(*self._call(operation, fields))
        if result.get("isError"):
            raise ToolError(str(result.get("content"))[:300])
        return _payload(result), seconds

    def pipeline(self, operation: str, many: Iterable[Mapping[str, Any]], window: int) -> float:
        """Do many operations, `window` requests in flight; return the seconds for all.

        Raises:
            ToolError: one was refused.

        """
        requests = [self._call(operation, fields) for fields in many]
        began = time.perf_counter()
        in_flight = 0
        for request in requests:
            if in_flight == window:
                self._expect_success()
                in_flight -= 1
            self._send(*request)
            in_flight += 1
        for _ in range(in_flight):
            self._expect_success()
        return time.perf_counter() - began

    def close(self) -> None:
        """End the input, then be less polite."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        for impatience in (None, self._process.terminate, self._process.kill):
            if impatience is not None:
                impatience()
            try:
                self._process.wait(ANSWER_TO_WAIT_S)
                break
            except subprocess.TimeoutExpired:
                continue
        self._output.close()

    def _call(self, operation: str, fields: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        described = self.spec.operations[operation]
        arguments = {}
        for name, value in described["args"].items():
            if isinstance(value, str) and value.startswith("$"):
                given = fields.get(value[1:])
                if given is not None:
                    arguments[name] = given
            else:
                arguments[name] = value
        if "method" in described:
            return described["method"], arguments
        return "tools/call", {"name": described["tool"], "arguments": arguments}

    def _send(self, method: str, params: Any) -> int:  # noqa: ANN401 - JSON
        self._last_id += 1
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method}
        if params is not None:
            message["params"] = params
        self._write(message)
        return self._last_id

    def _write(self, message: Mapping[str, Any]) -> None:
        rest = json.dumps(message, ensure_ascii=False).encode() + b"\n"
        while rest:
            rest = rest[os.write(self._input, rest) :]

    def _read(self, wanted: int | None) -> dict[str, Any]:
        while True:
            line = self._output.readline()
            if not line:
                raise ToolError(f"{self.spec.name} is gone, exit status {self._process.poll()}")
            if line.startswith(b"{"):
                message: dict[str, Any] = json.loads(line)
                if "method" not in message and (wanted is None or message.get("id") == wanted):
                    return message

    def _expect_success(self) -> None:
        answer = self._read(None)
        if "error" in answer or answer["result"].get("isError"):
            raise ToolError(str(answer)[:300])


def _payload(result: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
    if "contents" in result:
        return json.loads(result["contents"][0]["text"])
    structured = result.get("structuredContent")
    return structured if structured is not None else json.loads(result["content"][0]["text"])
