"""The command line.

`mnemolog serve`, or bare `mnemolog` when standard input is not a terminal, is the stdio server:
that start imports nothing that it does not need.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import NoReturn

USAGE_ERROR = 2
INTERRUPTED = 130
SUPPORTED_PLATFORMS = ("linux", "darwin")


def main() -> None:
    """Run the command that the process was started with."""
    if sys.platform not in SUPPORTED_PLATFORMS:
        sys.exit("mnemolog runs on Linux and macOS; other systems are not supported yet")
    _fill_descriptors()
    arguments = sys.argv[1:]
    if arguments == ["serve"] or (not arguments and not os.isatty(0)):
        _serve({})
    try:
        from server.shell import run

        status = run(arguments, _serve)
    except KeyboardInterrupt:
        status = INTERRUPTED
    sys.exit(status)


def _fill_descriptors() -> None:
    """Put nothing where a standard stream is closed.

    The next file that is opened would otherwise take its number.
    """
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one


def _serve(changes: Mapping[str, str]) -> NoReturn:
    """Serve MCP over stdio until the client leaves.

    Args:
        changes: variables that count instead of the environment's.

    """
    # Standard output is taken before anything that might print is imported.
    from server import stdio

    pipes = stdio.claim()
    from server.config import read_config
    from server.errors import ConfigError

    try:
        config = read_config(overrides=changes)
    except ConfigError as error:
        stdio.log(f"mnemolog: {error}")
        sys.exit(USAGE_ERROR)
    from server.service import serve_stdio

    serve_stdio(config, pipes)
