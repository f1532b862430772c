"""A redaction that is killed: `python -m tests.cases.dying_redaction FOLDER ID`.

FOLDER/before is a closed home. Each of a number of copies of it is redacted by a process that kills
itself as kill -9 would, each at another of the moments at which a redaction changes what is on the
disk. Prints copy -> exit status, as JSON.
"""

import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import projections.connection
from ledger import OsFiles
from server.bootstrap import Store
from server.commands import InspectArgs
from server.config import Config
from server.redaction_args import RedactArgs
from server.tool import Call

MOMENTS: Final = 20

STEPS: Final = (
    (OsFiles, "sync"),
    (OsFiles, "write_all"),
    (OsFiles, "replace_file"),
    (OsFiles, "remove_file"),
    (OsFiles, "sync_directory"),
    (projections.connection.Connection, "execute"),
    (projections.connection.Connection, "empty_wal"),
)


def main() -> None:
    folder, memory = Path(sys.argv[1]), sys.argv[2]
    total = _count(folder, memory)
    outcomes = {}
    for number in range(MOMENTS):
        name = f"killed-{number}"
        shutil.copytree(folder / "before", folder / name)
        outcomes[name] = _forked(folder / name, memory, total * number // MOMENTS + 1)
    sys.stdout.write(json.dumps(outcomes))


def _count(folder: Path, memory: str) -> int:
    """Return how many steps a whole redaction has."""
    shutil.copytree(folder / "before", folder / "whole")
    reading, writing = os.pipe()
    if os.fork() == 0:
        with _ending():
            os.write(writing, str(_redact(folder / "whole", memory, die_at=0)).encode())
    os.wait()
    os.close(writing)
    shutil.rmtree(folder / "whole")
    return int(os.read(reading, 100))


def _forked(home: Path, memory: str, die_at: int) -> int:
    child = os.fork()
    if child == 0:
        with _ending():
            _redact(home, memory, die_at=die_at)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@contextmanager
def _ending() -> Iterator[None]:
    """End this process with the block, whatever comes of it."""
    try:
        yield
    except BaseException:  # noqa: BLE001 - the process ends here
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _redact(home: Path, memory: str, *, die_at: int) -> int:
    """Redact; kill this process after so many steps, or return how many there were."""
    store = Store(Config(home=home), log=lambda _: None)
    store.app.inspect(InspectArgs(), Call())
    steps = 0

    def counted(step: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **more: Any) -> Any:
            nonlocal steps
            result = step(*arguments, **more)
            # A statement that only looks changes nothing on the disk.
            sql = next((each for each in arguments if isinstance(each, str)), "")
            steps += not sql.startswith(("SELECT", "PRAGMA", "BEGIN"))
            if die_at and steps == die_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return run

    for owner, name in STEPS:
        setattr(owner, name, counted(getattr(owner, name)))
    result = store.app.redact(RedactArgs(id=memory, reason="a test"), Call(actor_name="killed"))
    assert result.completed, result.held_by
    return steps


if __name__ == "__main__":
    main()
