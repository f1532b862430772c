"""The sample tools on our own transport: `python -m tests.support.stdio_server [option...]`.

`closed=FILE` is written at the end, `bound=SECONDS` shortens the bounds on shutting down,
`close=fail` and `close=hang` are ways for closing to go wrong.
"""

import sys
import threading
from pathlib import Path
from typing import NoReturn

from server import stdio


def main() -> NoReturn:
    pipes = stdio.claim()
    from server.protocol import Connection, ServerInfo  # noqa: PLC0415
    from tests.support import sample_tools  # noqa: PLC0415

    info = ServerInfo(
        name=sample_tools.NAME,
        title=sample_tools.TITLE,
        version=sample_tools.VERSION,
        instructions=sample_tools.INSTRUCTIONS,
        tools=sample_tools.TOOLS,
    )
    connection = Connection(info, write=pipes.write, log=stdio.log)

    options = dict(argument.split("=", 1) for argument in sys.argv[1:])
    if "bound" in options:
        stdio.DRAIN_SECONDS = stdio.CLOSE_SECONDS = float(options["bound"])  # type: ignore[misc]

    def close() -> None:
        if "closed" in options:
            Path(options["closed"]).write_text("closed")
        if options.get("close") == "fail":
            raise OSError("the disk is gone")
        if options.get("close") == "hang":
            threading.Event().wait()

    stdio.serve(connection, pipes, on_close=close)


if __name__ == "__main__":
    main()
