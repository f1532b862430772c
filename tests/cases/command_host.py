"""Runs a command again and again, each time in a process of its own, without starting Python anew.

`python -m tests.cases.command_host SCRIPT` imports what the script will and reads requests, a line
of JSON each: arguments, environment and standard input. A fork then runs the very script. Answers
are lines of JSON: exit status, standard output and standard error.
"""

import importlib
import json
import os
import runpy
import sys
import tempfile
import traceback
from base64 import b64decode, b64encode
from typing import Any, NoReturn

WARM = (
    "server.shell", "server.verbs", "server.job", "projections.offline", "server.bootstrap",
    "concurrent.futures", "zoneinfo", "traceback",
)  # fmt: skip


def main() -> None:
    script = sys.argv[1]
    for module in WARM:
        importlib.import_module(module)
    # Standard input stays untouched for the forks; what is read ahead of it must not be theirs.
    with os.fdopen(os.dup(0), "rb") as requests:
        for line in requests:
            sys.stdout.write(json.dumps(_answer(script, json.loads(line))) + "\n")
            sys.stdout.flush()


def _answer(script: str, request: dict[str, Any]) -> dict[str, Any]:
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        given.write(b64decode(request["input"]))
        given.seek(0)
        process = os.fork()
        if process == 0:
            for target, file in enumerate((given, out, err)):
                os.dup2(file.fileno(), target)
            os.environ.update(request["environment"])
            _run(script, request["arguments"])
        _, status = os.waitpid(process, 0)
        shown = [_content(file.fileno()) for file in (out, err)]
    return {"status": os.waitstatus_to_exitcode(status), "out": shown[0], "err": shown[1]}


def _run(script: str, arguments: list[str]) -> NoReturn:
    sys.argv = [script, *arguments]
    status = 0
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 - as the interpreter would
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _content(descriptor: int) -> str:
    os.lseek(descriptor, 0, os.SEEK_SET)
    with os.fdopen(os.dup(descriptor), "rb") as file:
        return b64encode(file.read()).decode()


if __name__ == "__main__":
    main()
