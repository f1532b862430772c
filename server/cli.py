"""The command line.

`mnemolog serve`, or bare `mnemolog` when standard input is not a terminal, is the stdio server:
that start imports nothing that it does not need.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

USAGE_ERROR = 2
SUPPORTED_PLATFORMS = ("linux", "darwin")


def main() -> None:
    """Run the command that the process was started with."""
    if sys.platform not in SUPPORTED_PLATFORMS:
        sys.exit("mnemolog runs on Linux and macOS; other systems are not supported yet")
    arguments = sys.argv[1:]
    if arguments == ["serve"] or (not arguments and not sys.stdin.isatty()):
        _serve()
    sys.exit(_run(arguments))


def _serve() -> None:
    """Serve MCP over stdio until the client leaves; does not return."""
    # Standard output is taken before anything that might print is imported.
    from server import stdio  # noqa: PLC0415

    pipes = stdio.claim()
    from server.config import read_config  # noqa: PLC0415
    from server.errors import ConfigError  # noqa: PLC0415

    try:
        config = read_config()
    except ConfigError as error:
        stdio.log(f"mnemolog: {error}")
        sys.exit(USAGE_ERROR)
    from server.service import serve_stdio  # noqa: PLC0415

    serve_stdio(config, pipes)


def _run(arguments: Sequence[str]) -> int:
    import argparse  # noqa: PLC0415 - 10 ms that the server does not need

    from projections.offline import add_commands, run  # noqa: PLC0415
    from server import __version__  # noqa: PLC0415
    from server.bootstrap import open_ledger, projections_folder  # noqa: PLC0415
    from server.config import read_config  # noqa: PLC0415
    from server.errors import ConfigError  # noqa: PLC0415

    parser = argparse.ArgumentParser(
        prog="mnemolog",
        description="Long-term memory for AI agents; an append-only ledger is the truth.",
        epilog="The store is in MNEMOLOG_HOME (default: the user data folder). Exit status: 0 done "
        "or clean, 1 damage, 2 wrong usage or could not look.",
    )
    parser.add_argument("--version", action="version", version=f"mnemolog {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    commands.add_parser("serve", help="serve MCP over standard input and output")
    demo = commands.add_parser(
        "demo", help="show on real input what the store promises, and check it"
    )
    demo.add_argument(
        "--documents",
        metavar="FOLDER",
        help="store this folder's Markdown files (default: the current folder's, or a bundled set)",
    )
    demo.set_defaults(demo=True)
    add_commands(commands)
    parsed = parser.parse_args(arguments)
    if getattr(parsed, "demo", False):
        from server.demo import run_demo  # noqa: PLC0415

        return run_demo(parsed.documents)
    try:
        config = read_config()
    except ConfigError as error:
        print(f"mnemolog: {error}", file=sys.stderr)
        return USAGE_ERROR
    return run(parsed, lambda: open_ledger(config), projections_folder(config))
