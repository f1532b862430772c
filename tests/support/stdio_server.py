"""The samples on our own transport: `python -m tests.support.stdio_server [option...]`.

`closed=FILE` is written at the end, `drain=SECONDS` and `closing=SECONDS` are the bounds on
shutting down, `close=fail` and `close=hang` are ways for closing to go wrong.
"""

import sys
import threading
from pathlib import Path
from typing import NoReturn

from server import stdio


def main() -> NoReturn:
    pipes = stdio.claim()
    from server.protocol import Connection, ServerInfo  # noqa: PLC0415 - after standard output was taken
    from server.watcher import Watcher  # noqa: PLC0415 - after standard output was taken
    from tests.support import sample_resources, sample_tools  # noqa: PLC0415 - after standard output was taken

    info = ServerInfo(
        name=sample_tools.NAME,
        title=sample_tools.TITLE,
        version=sample_tools.VERSION,
        instructions=sample_tools.INSTRUCTIONS,
        tools=(*sample_tools.TOOLS, sample_resources.TURN),
        resources=sample_resources.RESOURCES,
        templates=sample_resources.TEMPLATES,
        prompts=sample_resources.PROMPTS,
    )
    board = sample_resources.BOARD
    watcher = Watcher(board.position, log=stdio.log)
    board.on_turn = watcher.note_write
    connection = Connection(info, write=pipes.write, log=stdio.log, watcher=watcher)

    options = dict(argument.split("=", 1) for argument in sys.argv[1:])
    if "drain" in options:
        stdio.DRAIN_SECONDS = float(options["drain"])  # type: ignore[misc]
    if "closing" in options:
        stdio.CLOSE_SECONDS = float(options["closing"])  # type: ignore[misc]

    def close() -> None:
        watcher.close(1.0)
        if "closed" in options:
            Path(options["closed"]).write_text("closed")
        if options.get("close") == "fail":
            raise OSError("the disk is gone")
        if options.get("close") == "hang":
            threading.Event().wait()

    stdio.serve(connection, pipes, on_close=close)


if __name__ == "__main__":
    main()
