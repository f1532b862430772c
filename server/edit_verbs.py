"""`mnemolog patch` and `mnemolog append`: edits of a memory's text."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

import msgspec

from projections.wording import counted
from server.batch import STDIN, read_text
from server.commands import AppendArgs, PatchArgs
from server.options import Place
from server.results import AppendResult, PatchResult
from server.status import DONE, usage_error
from server.terminal import Prose
from server.verb import Verb, Work
from server.views import View

_ID: Final = Place(field="id", metavar="ID")


def _fill_patch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--old",
        metavar="TEXT",
        action="append",
        default=[],
        help="a piece of the memory's text, exactly as it stands there; goes with --new, and may "
        "be repeated with it",
    )
    parser.add_argument(
        "--new", metavar="TEXT", action="append", default=[], help="what takes its place"
    )
    parser.add_argument(
        "--all", action="store_true", help="replace it wherever it stands, not in one place only"
    )
    parser.add_argument(
        "--patches",
        metavar="FILE",
        help="take the patches from a file (- for standard input): a JSON array of objects with "
        "old_string, new_string and replace_all",
    )


def _patches(given: argparse.Namespace) -> list[Any]:
    """Return the patches of a command line, for the Struct to check."""
    if given.patches is not None:
        if given.old or given.new or given.all:
            raise usage_error("pass either --old and --new, or --patches, not both")
        return _read_patches(given.patches)
    if not given.old or len(given.old) != len(given.new):
        raise usage_error("say what to replace by what: --old TEXT --new TEXT, or --patches FILE")
    return [
        {"old_string": old, "new_string": new, "replace_all": given.all}
        for old, new in zip(given.old, given.new, strict=True)
    ]


def _read_patches(source: str) -> list[Any]:
    try:
        text = read_text() if source == STDIN else Path(source).read_text("utf-8")
        return msgspec.json.decode(text, type=list[Any])
    except (UnicodeDecodeError, msgspec.DecodeError) as error:
        raise usage_error(f"{source}: not a JSON array of patches: {error}") from error


def _patch(work: Work) -> int:
    args = work.args(PatchArgs, patches=_patches(work.parsed))
    result = work.job.ask(lambda app, call: app.patch(args, call))
    work.show(result, _of_patch(result))
    return DONE


def _append(work: Work) -> int:
    more = {"text": read_text()} if work.parsed.text == STDIN else {}
    args = work.args(AppendArgs, **more)
    result = work.job.ask(lambda app, call: app.append(args, call))
    work.show(result, _of_append(result))
    return DONE


def _of_patch(result: PatchResult) -> View:
    if not result.changed:
        return View([Prose(f"nothing was changed in {result.patched_id}")])
    places = counted(result.replacements, "place")
    text = f"changed {result.patched_id} in {places} at position {result.position}"
    return View([Prose(text)])


def _of_append(result: AppendResult) -> View:
    if not result.changed:
        return View([Prose(f"nothing was changed in {result.appended_id}")])
    return View([Prose(f"added to {result.appended_id} at position {result.position}")])


EDIT_VERBS: Final = (
    Verb(
        name="patch",
        help="replace pieces of a memory's text",
        description="Each piece must stand in the text exactly once, unless --all is given; each "
        "patch works on what the one before it left, and all of them are done or none. The old "
        "text stays in the memory's history.",
        example="mnemolog patch ID --old Tuesday --new Wednesday\n"
        "mnemolog patch ID --old v1 --new v2 --all --expected-version 4711\n"
        "mnemolog patch ID --patches patches.json",
        struct=PatchArgs,
        run=_patch,
        places=(_ID,),
        without=("patches",),
        fill_more=_fill_patch,
    ),
    Verb(
        name="append",
        help="add text at the end of a memory",
        description="A TEXT of - is standard input. A blank line comes between, or what "
        "--separator says.",
        example="mnemolog append ID 'Since May also on Fridays'\n"
        "mnemolog append ID - --separator '' < more.txt",
        struct=AppendArgs,
        run=_append,
        places=(_ID, Place(field="text", metavar="TEXT")),
    ),
)
"""The commands, for the table of commands."""
