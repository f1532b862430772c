"""The grammar of the command line: its commands in groups, their help, and what a mistake meant.

Only the command that was typed gets its options, and only its modules are loaded; the list of all
has a line for each.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

from server import __version__
from server.options import Place
from server.status import CommandError, usage_error
from server.terminal import standard_output

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

GROUPS: Final = (
    ("Remember and recall", ("add", "search", "list", "get")),
    ("Revise and forget", ("update", "patch", "append", "delete", "redact", "undo")),
    ("Look closer", ("inspect", "diff", "health", "activity", "audit", "export")),
    ("Organise", ("session", "alias")),
    (
        "The store itself",
        ("doctor", "backup", "restore", "rebuild", "verify", "checkpoint", "replay", "digest"),
    ),
    ("Set up and serve", ("serve", "config", "demo")),
)
"""Heading -> commands, as the help lists them."""

COMMANDS: Final = tuple(name for _, names in GROUPS for name in names)

FAMILIES: Final = {
    "audit": "tell who changed what, and prove it to others",
    "session": "begin, end and list sessions of work",
    "alias": "keep further names of entities",
}
"""Commands of two words: what their first word is about."""

OFFLINE: Final = (
    "rebuild",
    "verify",
    "checkpoint",
    "replay",
    "digest",
    "backup",
    "restore",
)

_NAME_CHARS: Final = 10
_LINE: Final = 79

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001 - no other name
"""What takes a parser for each command."""


class CommandParser(argparse.ArgumentParser):
    """A parser whose mistakes are errors of one line, and whose help ends with examples."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - argparse's own
        settings.setdefault("allow_abbrev", False)
        settings.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(**settings)

    def error(self, message: str) -> NoReturn:
        """Refuse the command line.

        Raises:
            CommandError: always.

        """
        raise usage_error(f"{message}; see `{self.prog} --help`")

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        # argparse's own keeps silent where nothing more can be written. Only help and the version
        # are printed, and those to standard output.
        with standard_output():
            (file or sys.stdout).write(message)

    def options(self) -> list[str]:
        """Return every option, long and short."""
        return list(self._option_string_actions)


class _TopParser(CommandParser):
    """The parser of the whole line; its help lists the commands in groups."""

    listing: Commands

    def format_help(self) -> str:
        said = {choice.dest: choice.help for choice in self.listing._choices_actions}  # noqa: SLF001 - argparse has no public way
        lines = ["usage: mnemolog COMMAND [OPTIONS]", "", self.description or ""]
        for heading, names in GROUPS:
            lines += ["", f"{heading}:"]
            lines += [f"    {name:{_NAME_CHARS}} {said[name]}" for name in names if name in said]
        return "\n".join([*lines, "", self.epilog or "", ""])


_CLASS: Final[type[argparse.ArgumentParser]] = CommandParser


def make_parser(only: str | None = None) -> CommandParser:
    """Return the parser of the command line.

    Args:
        only: the one command whose options are needed; None: all of them.

    """
    parser = _TopParser(
        prog="mnemolog",
        description="Long-term memory for AI agents; an append-only ledger is the truth.",
        epilog=_paragraphs(
            "`mnemolog COMMAND --help` shows options and examples. The store is the folder that "
            "--home or MNEMOLOG_HOME names (default: in the user's data folder). Exit status: 0 "
            "done, 1 damage, 2 wrong usage or setting, 3 refused, 4 not possible now; "
            "docs/command-line.md has them all."
        ),
    )
    _add_home(parser)
    parser.add_argument("--version", action="version", version=f"mnemolog {__version__}")
    commands = parser.add_subparsers(
        required=True, metavar="COMMAND", dest="command_name", parser_class=_CLASS
    )
    parser.listing = commands

    def wanted(*names: str) -> bool:
        return only is None or only in names

    if wanted("serve"):
        _add_home(commands.add_parser("serve", help="serve MCP over standard input and output"))
    if wanted("demo"):
        _add_demo(commands)
    if wanted("config"):
        from server.config_report import add_config_command

        add_config_command(commands)
    if wanted(*OFFLINE):
        from projections import backups, offline

        for made in (*offline.add_commands(commands), *backups.add_commands(commands)):
            _add_home(made)
    if wanted("activity"):
        _add_activity(commands)
    if wanted("doctor"):
        _add_doctor(commands)
    if only is None or only not in ("serve", "demo", "config", "activity", "doctor", *OFFLINE):
        _add_verbs(commands, only)
    return parser


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse a command line.

    Raises:
        CommandError: it cannot be understood; the message names what is nearest.
        SystemExit: it asked for help or for the version, which was printed.

    """
    if arguments and arguments[0] == "--":
        arguments = arguments[1:]  # what follows is no option, as a command never is
    only = next((word for word in arguments if not word.startswith("-")), None)
    if only is not None and arguments[0] == only and only not in COMMANDS:
        hint = _nearest(only, COMMANDS) or "`mnemolog --help` lists them"
        raise usage_error(f"there is no command {only!r}; {hint}")
    parser = make_parser(only if arguments and arguments[0] == only else None)
    parsed, unknown = parser.parse_known_args(arguments)
    # A bare `--` only says that what follows is no option, and may be left over.
    if unknown := [word for word in unknown if word != "--"]:
        raise _not_understood(parsed, unknown)
    return parsed


def command_parser(parser: CommandParser, name: str) -> CommandParser:
    """Return the parser of a command, of one or two words."""
    for word in name.split():
        actions = parser._actions  # noqa: SLF001 - as above
        kind = argparse._SubParsersAction  # noqa: SLF001 - as above
        (commands,) = [action for action in actions if isinstance(action, kind)]
        parser = commands.choices[word]
    return parser


def _not_understood(parsed: argparse.Namespace, unknown: Sequence[str]) -> CommandError:
    name = " ".join(filter(None, [parsed.command_name, getattr(parsed, "action_name", None)]))
    parser = command_parser(make_parser(parsed.command_name), name)
    word = next((word for word in unknown if word.startswith("-")), unknown[0])
    option = word.partition("=")[0]
    if not word.startswith("-"):
        hint = "words that belong together go side by side, or into quotes"
        return usage_error(f"{word!r} is one word too many; {hint}; see `{parser.prog} --help`")
    if option in parser.options():
        return usage_error(f"{option} goes after the command: {parser.prog} {option}")
    hints = [
        _nearest(option, parser.options()),
        "a text that begins with a dash goes after --",
        f"see `{parser.prog} --help`",
    ]
    said = "; ".join(filter(None, hints))
    return usage_error(f"mnemolog {name} has no option {option}; {said}")


def _nearest(word: str, known: Sequence[str]) -> str:
    import difflib

    near = difflib.get_close_matches(word[:64], known, n=1)
    return f"the nearest is {near[0]}" if near else ""


# ---------------------------------------------------------------------------- commands


def _add_demo(commands: Commands) -> None:
    demo = commands.add_parser(
        "demo", help="show on real input what the store promises, and check it"
    )
    demo.add_argument(
        "--documents",
        metavar="FOLDER",
        help="store this folder's Markdown files (default: the current folder's, or a bundled set)",
    )


def _add_activity(commands: Commands) -> None:
    from server.activity_report import fill_activity, run_activity

    parser = commands.add_parser(
        "activity",
        help="show what was searched for and what is read most, or forget it",
        description="Show the last searches of the workspace, newest first, and how much there is.",
        epilog=_examples("mnemolog activity --memories --limit 5\nmnemolog activity --clear"),
    )
    fill_activity(parser)
    _add_common(parser, author=None)
    parser.set_defaults(report=run_activity)


def _add_doctor(commands: Commands) -> None:
    from server.doctor_report import fill_doctor

    parser = commands.add_parser(
        "doctor",
        help="look for all that is not as it should be, and say what to do",
        description="Looks at the settings, the ledger, locks, projections, disk, permissions and "
        "clock; changes nothing. Exit status 0: all is well; 1: there is something to do; 2: the "
        "ledger could not be looked at.",
    )
    fill_doctor(parser)
    _add_home(parser)


def _add_verbs(commands: Commands, only: str | None) -> None:
    from server.verbs import VERBS

    families: dict[str, Commands] = {}
    for verb in VERBS:
        family, _, action = verb.name.partition(" ")
        if only not in (None, family):
            continue
        if action and family not in families:
            parent = commands.add_parser(
                family, help=FAMILIES[family], description=FAMILIES[family].capitalize() + "."
            )
            families[family] = parent.add_subparsers(
                required=True, metavar="ACTION", dest="action_name", parser_class=_CLASS
            )
        among, name = (families[family], action) if action else (commands, family)
        parser = among.add_parser(
            name,
            help=verb.help,
            usage=_usage(verb.name, verb.places),
            description=_paragraphs(f"{verb.help[0].upper()}{verb.help[1:]}.", verb.description),
            epilog=_examples(verb.example),
        )
        verb.fill(parser)
        _add_common(parser, author=verb.author_option)
        parser.set_defaults(verb=verb)


def _usage(name: str, places: Sequence[Place]) -> str:
    shapes = {None: "{}", "?": "[{}]", "*": "[{} ...]", "+": "{} [{} ...]"}
    words = [shapes[place.nargs].format(place.metavar, place.metavar) for place in places]
    return " ".join(["mnemolog", name, "[OPTIONS]", *words])


def _add_common(parser: argparse.ArgumentParser, *, author: str | None) -> None:
    common = parser.add_argument_group("where and how")
    common.add_argument(
        "--json",
        action="store_true",
        help="print the result as one line of JSON, and an error on standard error likewise",
    )
    common.add_argument("--workspace", metavar="NAME", help="instead of MNEMOLOG_WORKSPACE")
    if author is not None:
        common.add_argument(
            author,
            dest="author",
            metavar="NAME",
            default="cli",
            help="who is recorded as the author (default: cli)",
        )
    _add_home(common)


def _add_home(parser: argparse._ActionsContainer) -> None:
    # Absent unless given, so that one before the command is not overruled by none after it.
    parser.add_argument(
        "--home", metavar="FOLDER", default=argparse.SUPPRESS, help="instead of MNEMOLOG_HOME"
    )


def _paragraphs(*texts: str) -> str:
    return "\n".join(textwrap.fill(text, _LINE) for text in texts if text)


def _examples(lines: str) -> str:
    return "Examples:\n" + "\n".join(f"  {line}" for line in lines.splitlines())
