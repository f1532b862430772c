"""`mnemolog config check` and `config show`: what is set, from where, and what is wrong with it.

`check` exits with 0 if the settings are fine and 2 if they are not. `show` prints every setting all
the same, and then what is wrong, on standard error.
"""

from __future__ import annotations

import argparse
import sys

import msgspec

from server.config import Reading, Survey, survey, unknown_variables
from server.form import written

FINE, NOT_FINE = 0, 2


def add_config_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `config`; what is parsed is for `run_config`."""
    parser = commands.add_parser(
        "config", help="check the settings, or show each of them and where it comes from"
    )
    parser.add_argument(
        "action",
        choices=("check", "show"),
        help="check: say whether the settings are fine, and all that is wrong; show: list them",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, for machines")


def run_config(arguments: argparse.Namespace) -> int:
    """Check or show the settings of this process; returns the exit status."""
    found = survey()
    report = _check if arguments.action == "check" else _show
    report(found, as_json=arguments.json)
    return NOT_FINE if found.problems else FINE


def _check(found: Survey, *, as_json: bool) -> None:
    warnings = unknown_variables()
    file = written(found.readings["config"].value)
    if as_json:
        _print_json(
            {
                "ok": not found.problems,
                "file": file or None,
                "problems": found.problems,
                "warnings": warnings,
            }
        )
        return
    print(f"file: {_printable(file) or 'none'}")
    for problem in found.problems:
        print(f"problem: {_printable(problem)}")
    for warning in warnings:
        print(f"warning: {warning}")
    print("the settings are not accepted" if found.problems else "the settings are fine")


def _show(found: Survey, *, as_json: bool) -> None:
    readings = list(found.readings.values())
    if as_json:
        _print_json(
            {"settings": [_entry(reading) for reading in readings], "problems": found.problems}
        )
        return
    width = max(len(reading.setting.variable) for reading in readings)
    for reading in readings:
        print(f"{reading.setting.variable:{width}}  {reading.source:11}  {_shown(reading)}")
    for problem in found.problems:
        print(f"mnemolog: {_printable(problem)}", file=sys.stderr)


def _entry(reading: Reading) -> dict[str, object]:
    setting, value = reading.setting, reading.value
    return {
        "variable": setting.variable,
        "key": setting.key if setting.in_file else None,
        "value": value if isinstance(value, int | float) else written(value) or None,
        "source": reading.source,
    }


def _shown(reading: Reading) -> str:
    if reading.value is None:
        return "none" if reading.source == "default" else "not accepted"
    return _printable(written(reading.value))


def _printable(text: str) -> str:
    """Return a text as it is, or quoted if it would steer the terminal."""
    return text if text.isprintable() else repr(text)


def _print_json(report: object) -> None:
    print(msgspec.json.encode(report).decode())
