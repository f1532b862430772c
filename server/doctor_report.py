"""`mnemolog doctor`: what is wrong with a store, and what to do about it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from ledger import SystemClock
from server.bootstrap import projections_folder
from server.config import Config, survey, unknown_variables
from server.doctor import examine_home
from server.findings import Examination, Finding
from server.terminal import Screen, harmless, one_line

FINE: Final = 0
SOMETHING_TO_DO: Final = 1
COULD_NOT_LOOK: Final = 2

_LEVEL_CHARS: Final = 7
_CHECK_CHARS: Final = 11


def fill_doctor(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "--full", action="store_true", help="read every byte of the ledger, as `verify` does"
    )
    parser.add_argument(
        "--json", action="store_true", help="print the findings as one line of JSON"
    )


def run_doctor(parsed: argparse.Namespace, changes: Mapping[str, str], screen: Screen) -> int:
    """Examine the store that the settings name; return the exit status.

    Args:
        parsed: what was given.
        changes: variable -> the value it has instead of the environment's.
        screen: takes the findings.

    """
    found = survey(overrides=changes)
    home = found.readings["home"].value
    examination = examine_home(
        home.resolve() if isinstance(home, Path) else None,
        clock=SystemClock(),
        projections_of=lambda ledger: projections_folder(
            Config(home=ledger.layout.root.parent), ledger
        ),
        full=parsed.full,
        problems=found.problems,
        warnings=unknown_variables(),
    )
    if screen.as_json:
        screen.write(harmless(msgspec.json.encode(examination).decode()) + "\n")
    else:
        screen.write(_text(examination))
    if not examination.looked:
        return COULD_NOT_LOOK
    return FINE if examination.level in ("ok", "note") else SOMETHING_TO_DO


def _text(examination: Examination) -> str:
    last = {
        "ok": "all is well",
        "note": "all is well; there is something worth knowing",
        "warning": "there is something to do",
        "error": "something is broken",
    }[examination.level]
    lines = [f"home: {one_line(examination.home)}"]
    lines += [line for finding in examination.findings for line in _lines(finding)]
    return "\n".join([*lines, last if examination.looked else "could not look", ""])


def _lines(finding: Finding) -> list[str]:
    head = f"{finding.level:{_LEVEL_CHARS}}  {finding.check:{_CHECK_CHARS}}"
    lines = [f"{head}  {one_line(finding.text)}"]
    if finding.remedy:
        lines.append(f"{'':{_LEVEL_CHARS + _CHECK_CHARS + 4}}-> {one_line(finding.remedy)}")
    return lines
