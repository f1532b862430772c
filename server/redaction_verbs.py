"""The command `redact`: a filter's fields as options, and a question before it is done."""

from __future__ import annotations

import argparse
import sys
from typing import Any, Final

import msgspec

from projections.wording import counted
from server.commands import Args
from server.options import Place, given
from server.redaction_args import RedactArgs, RedactFilter
from server.results import RedactResult
from server.status import DONE, REFUSED, CommandError, usage_error
from server.terminal import ID_COLUMN, Block, Facts, Prose, Table
from server.verb import Verb, Work
from server.views import View

_FILTER: Final = RedactFilter.__struct_fields__
_ALONE: Final = tuple(
    name for name in RedactArgs.__struct_fields__ if name not in ("filter", "chain")
)


def _options() -> type[Args]:
    """Return the arguments as the command line has them: the filter's fields beside the others."""
    own = {field.name: field for field in msgspec.structs.fields(RedactArgs)}
    fields: list[Any] = [
        (name, own[name].type, own[name].default) for name in _ALONE if name != "reason"
    ]
    fields += [
        (field.name, field.type, field.default) for field in msgspec.structs.fields(RedactFilter)
    ]
    fields.append(("reason", own["reason"].type))
    made = msgspec.defstruct(
        "RedactOptions", fields, bases=(Args,), frozen=True, kw_only=True, module=__name__
    )
    assert issubclass(made, Args)
    return made


RedactOptions: Final = _options()


def _extra(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--no-chain",
        action="store_true",
        help="with ID: this memory alone, and not the others of its supersede chain",
    )
    parser.add_argument(
        "--yes",
        action="store_true",
        help="do not ask before erasing; needed where nobody can be asked",
    )


def _redact(work: Work) -> int:
    parsed = work.parsed
    fields = given(parsed, RedactOptions)
    chosen = {name: fields.pop(name) for name in _FILTER if name in fields}
    if "reason" not in fields:
        raise usage_error("say why: --reason TEXT is kept in the history and tells no content")
    if not chosen and not {"id", "event", "entity"} & {*fields}:
        raise usage_error(
            "say what to erase: an ID, --event, --entity, or a filter such as --scope; --dry-run "
            "shows what would go"
        )
    more = {**fields, **({"filter": chosen} if chosen else {})}
    more |= {"chain": False} if parsed.no_chain else {}
    args = work.args(RedactArgs, **more)
    if not args.dry_run and not parsed.yes:
        _confirm(work, args)
    result: RedactResult = work.job.ask(lambda app, call: app.redact(args, call))
    work.show(result, of_redact(result))
    return DONE if result.completed or args.dry_run else REFUSED


def _confirm(work: Work, args: RedactArgs) -> None:
    """Ask whether to erase; only a yes goes on."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise usage_error(
            "erasing needs --yes where nobody can be asked; --dry-run shows what would go"
        )
    trial = msgspec.structs.replace(args, dry_run=True, idempotency_key=None)
    found = work.job.ask(lambda app, call: app.redact(trial, call))
    sys.stderr.write(f"erase {_said(found)} for good? Nothing brings it back. [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CommandError(REFUSED, "not_confirmed", "nothing was erased")


def of_redact(result: RedactResult) -> View:
    """Say what was erased, or would be."""
    rows = [
        (
            each.id,
            each.kind,
            str(each.records),
            each.status or "",
            "stays" if each.remains else "goes",
            each.snippet or "",
        )
        for each in result.subjects
    ]
    table: list[Block] = (
        [Table((ID_COLUMN, "kind", "records", "status", "memory", "text"), rows)] if rows else []
    )
    said = _said(result)
    if result.state == "dry_run":
        return View(table, [f"{said} would be erased"])
    blocks: list[Block] = [
        Prose(f"redacted {said} at position {result.position}"),
        Facts(
            [
                ("redaction", result.redaction_id),
                ("completed", "yes" if result.completed else "no, not yet"),
                ("files searched", result.files if result.searched else None),
                ("current again", ", ".join(result.reactivated_ids) or None),
            ]
        ),
    ]
    blocks += [Prose(f"- kept by: {each}") for each in result.held_by]
    if result.also_in:
        blocks.append(Prose(f"some of the text also stands in: {', '.join(result.also_in)}"))
    blocks += [Prose(f"- outside the store, not changed: {each}") for each in result.outside]
    return View(blocks)


REDACT: Final = Verb(
    name="redact",
    help="erase memories for good, from every file of the store",
    description="By the ID of a memory (with its supersede chain), by the position of one record, "
    "by an entity, or by a filter. It cannot be undone and asks first. Exit status 3 while some "
    "process keeps erased bytes on the disk: the store then finishes by itself.",
    example="mnemolog redact ID --reason 'a password' --dry-run\n"
    "mnemolog redact --entity 'Ana Petrova' --reason 'she asked for it' --yes\n"
    "mnemolog redact --scope old-client --reason 'end of contract'",
    struct=RedactOptions,
    run=_redact,
    places=(Place(field="id", metavar="ID", nargs="?"),),
    fill_more=_extra,
)
"""The command, for the table of commands."""


def _said(result: RedactResult) -> str:
    return f"{counted(result.records, 'record')} of {counted(result.memories_count, 'memory')}"
