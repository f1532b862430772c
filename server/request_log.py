"""What the log says of a request at level debug: its name, how it ended, how long it took.

Never what was asked or answered, and no name that a client made up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Mapping

import msgspec

from server import rpc
from server.errors import UseCaseError
from server.method import JsonObject, Method, Request

Run = Callable[[Request], JsonObject | None]


def logged(
    methods: Mapping[str, Method], tools: Container[object], log: Callable[[str], None]
) -> dict[str, Method]:
    """Return the methods, each of which then leaves a line in the log for every request.

    Args:
        methods: Name -> method.
        tools: Names of the tools there are.
        log: Takes the lines.
    """
    return {
        name: msgspec.structs.replace(method, run=_logged(name, method.run, tools, log))
        for name, method in methods.items()
    }


def _logged(name: str, run: Run, tools: Container[object], log: Callable[[str], None]) -> Run:
    def logged_run(request: Request) -> JsonObject | None:
        outcome = "failed"
        start = time.perf_counter()
        try:
            result = run(request)
            outcome = _outcome(result)
        except rpc.RpcError as error:
            outcome = f"error {error.code}"
            raise
        except UseCaseError as error:
            outcome = error.code
            raise
        finally:
            took_ms = (time.perf_counter() - start) * 1_000
            log(f"mnemolog: {_subject(name, request, tools)}: {outcome} in {took_ms:.1f} ms")
        return result

    return logged_run


def _subject(name: str, request: Request, tools: Container[object]) -> str:
    tool = request.params.get("name")
    if name == "tools/call" and isinstance(tool, str):
        return f"{name} {tool if tool in tools else 'of an unknown tool'}"
    return name


def _outcome(result: JsonObject | None) -> str:
    if result is None:
        return "left open"
    if not result.get("isError"):
        return "ok"
    code: str = msgspec.json.decode(result["structuredContent"])["error"]["code"]
    return code
