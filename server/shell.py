"""One command from its words to its exit status.

Whatever goes wrong ends here: in one line on standard error that says what to do, and one status.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from server.config import Config, checkpoint_key, read_config
from server.errors import ConfigError, InvalidArgumentsError, UseCaseError
from server.options import in_commands, in_options, is_broken
from server.status import (
    FAULT,
    INTERRUPTED,
    NOT_NOW,
    PIPE_CLOSED,
    WRONG_USAGE,
    CommandError,
    status_of,
    usage_error,
)
from server.terminal import STANDARD_OUTPUT, Screen
from server.usage import OFFLINE, parse

Serve = Callable[[Mapping[str, str]], int]
"""Serves MCP with these settings in place of the environment's."""

_OVERRIDES: Final = {"home": "MNEMOLOG_HOME", "workspace": "MNEMOLOG_WORKSPACE"}

_NEVER_EMPTY: Final = {name: name for name in (*_OVERRIDES, "batch", "output")} | {
    "author": "actor"
}
"""Where a value is kept -> its option; no Struct checks these, and they cannot be empty."""


def run(arguments: Sequence[str], serve: Serve) -> int:
    """Run a command; return the exit status.

    Args:
        arguments: the words after the program's name.
        serve: serves MCP.

    """
    _prepare_streams()
    screen = Screen(as_json=_wants_json(arguments))
    status = _guarded(screen, lambda: _run(parse(arguments), arguments, screen, serve))
    return _guarded(screen, lambda: _finished(screen, status))


def _run(parsed: argparse.Namespace, arguments: Sequence[str], screen: Screen, serve: Serve) -> int:
    command = parsed.command_name
    if command in ("config", "demo"):
        return _run_alone(parsed)
    changes = _changes(parsed)
    if command == "serve":
        return serve(changes)
    if command == "doctor":
        from server.doctor_report import run_doctor

        return run_doctor(parsed, changes, screen)
    config = read_config(overrides=changes)
    if command in OFFLINE:
        return _run_offline(parsed, config, screen)
    if command == "activity":
        report: int = parsed.report(parsed, config, screen)
        return report
    repaired = any(map(is_broken, arguments))
    return _run_verb(parsed, config, screen, repaired=repaired)


def _run_alone(parsed: argparse.Namespace) -> int:
    """Run a command that needs no store."""
    if parsed.command_name == "config":
        from server.config_report import run_config

        return run_config(parsed)
    from server.demo import run_demo

    return run_demo(parsed.documents)


def _run_offline(parsed: argparse.Namespace, config: Config, screen: Screen) -> int:
    from projections.offline import run as run_offline
    from server.bootstrap import ledger_options, open_ledger, projections_folder

    if parsed.command_name == "restore":
        from projections.backups import run_restore

        return run_restore(
            parsed,
            config.home.resolve(),
            ledger_options(config),
            lambda ledger: projections_folder(config, ledger),
            screen.complain,
        )
    parsed.workspace = config.workspace  # `replay` searches it
    parsed.checkpoint_key = checkpoint_key()
    return run_offline(
        parsed,
        lambda: open_ledger(config),
        lambda ledger: projections_folder(config, ledger),
        screen.complain,
    )


def _run_verb(parsed: argparse.Namespace, config: Config, screen: Screen, *, repaired: bool) -> int:
    from server.job import Job
    from server.verb import Verb, Work

    verb = parsed.verb
    assert isinstance(verb, Verb)
    author = getattr(parsed, "author", "cli")
    job = Job(config, screen, actor=author, repaired=repaired, begins=verb.begins)
    try:
        status = verb.run(Work(parsed, job, screen, verb))
    except InvalidArgumentsError as error:
        raise in_options(error, verb.struct, verb.places) from error
    except KeyboardInterrupt:
        screen.say("mnemolog: interrupted")
        # A call that did not stop may hold what closing waits for, and a ledger needs no closing.
        os._exit(INTERRUPTED)
    finally:
        job.close()
    return INTERRUPTED if job.interrupted else status


def _guarded(screen: Screen, work: Callable[[], int]) -> int:  # noqa: PLR0911 - one table
    """Run what may fail; say why it did."""
    try:
        return work()
    except SystemExit as asked:  # for help or the version, which was printed
        return int(asked.code or 0)
    except CommandError as error:
        screen.complain(error.code, error.message, error.details)
        return error.status
    except ConfigError as error:
        screen.complain("setting", str(error))
        return WRONG_USAGE
    except UseCaseError as error:
        message = error.message if screen.as_json else in_commands(error.message)
        screen.complain(error.code, message, error.details)
        return status_of(error)
    except BrokenPipeError:
        _drop_output()
        return PIPE_CLOSED
    except OSError as error:
        if error.filename == STANDARD_OUTPUT:
            _drop_output()
        name = f"{error.filename}: " if error.filename else ""
        screen.complain("system", f"{name}{error.strerror or error}")
        return NOT_NOW
    except KeyboardInterrupt:
        screen.say("mnemolog: interrupted")
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - a traceback helps nobody who typed a command
        place = _place(error)
        text = f"{type(error).__name__} at {place}: {error}; this is a fault of mnemolog, report it"
        screen.complain("fault", text)
        return FAULT


def _place(error: Exception) -> str:
    """Say where an error came from, for a report."""
    import traceback

    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno}"


def _finished(screen: Screen, status: int) -> int:
    """Have all output leave the process while its failure can still be told."""
    screen.finish()
    return status


def _drop_output() -> None:
    """Let what cannot be written go nowhere, or Python would try it again at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def _prepare_streams() -> None:
    """Write UTF-8, whatever the locale; a stream that was closed is empty, or swallows all."""
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115 - for the whole process
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115 - for the whole process
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115 - for the whole process
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _wants_json(arguments: Sequence[str]) -> bool:
    for word in arguments:
        if word == "--":
            return False
        if word == "--json":
            return True
    return False


def _changes(parsed: argparse.Namespace) -> dict[str, str]:
    for place, option in _NEVER_EMPTY.items():
        if getattr(parsed, place, None) == "":
            raise usage_error(f"--{option} is empty; leave it out, or give it a value")
    given = {variable: getattr(parsed, option, None) for option, variable in _OVERRIDES.items()}
    return {variable: value for variable, value in given.items() if value is not None}
