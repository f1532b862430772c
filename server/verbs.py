"""The commands on memories, and the table of them.

Most are one use case: options in, `Args` Struct to the use case, result to the screen. What the
command line adds is here too: standard input, batches, deletions that ask first, whole exports.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from server.app import App
from server.audit_verbs import AUDIT_VERBS
from server.batch import STDIN, BatchLine, read_batch, read_text
from server.commands import (
    DELETION_FILTERS,
    IDS_MAX,
    AddArgs,
    AddManyArgs,
    AliasArgs,
    DeleteArgs,
    DeleteManyArgs,
    ExportArgs,
    GetArgs,
    HealthArgs,
    InspectArgs,
    ListArgs,
    SearchArgs,
    SessionEndArgs,
    SessionListArgs,
    SessionStartArgs,
    UndoArgs,
    UpdateArgs,
)
from server.diff import DiffArgs
from server.diff_view import of_diff
from server.edit_verbs import EDIT_VERBS
from server.options import Place, given, in_commands
from server.output_file import output_file
from server.redaction_verbs import REDACT
from server.results import (
    AddedItem,
    AddManyResult,
    DeleteManyResult,
    GetResult,
    HealthResult,
)
from server.status import DAMAGE, DONE, REFUSED, CommandError, usage_error
from server.tool import Call
from server.undo_verb import fill_undo, run_undo
from server.verb import Verb, Work, looked_back, plain
from server.views import (
    of_add,
    of_alias,
    of_batch,
    of_delete,
    of_delete_many,
    of_get,
    of_health,
    of_inspect,
    of_list,
    of_search,
    of_session_end,
    of_session_list,
    of_session_start,
    of_update,
)

ACTOR: Final = "cli"
_CHOSEN_BY: Final = ({*DELETION_FILTERS} - {"ids"}) | {"everything"}
"""Fields that delete by a filter instead of by ids."""


# ---------------------------------------------------------------------------- add, update


def _add_extra(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--batch",
        metavar="FILE",
        help="store many: a file (- for standard input) with one memory a line, each a JSON object "
        "with the fields of memory_add; the options given hold for lines that do not say otherwise",
    )


def _add(work: Work) -> int:
    if work.parsed.batch is not None:
        return _add_batch(work, work.parsed.batch)
    if not hasattr(work.parsed, "content") or not work.parsed.content:
        raise usage_error(
            "say what to remember: mnemolog add CONTENT, with - for standard input, or --batch FILE"
        )
    content = " ".join(work.parsed.content)
    more = {"content": read_text()} if content == STDIN else {}
    args = work.args(AddArgs, **more)
    result = work.job.ask(lambda app, call: app.add(args, call))
    work.show(result, of_add(result))
    return DONE


def _add_batch(work: Work, source: str) -> int:
    common = {**work.verb.defaults, **given(work.parsed, AddArgs)}
    if common.pop("content", None) is not None:
        raise usage_error("pass either CONTENT or --batch, not both")
    results: list[AddedItem] = []
    notes: dict[str, None] = {}
    cause = ""
    count = added = 0
    refused = 0

    def show() -> None:
        whole = AddManyResult(
            cause=cause,
            results=tuple(results),
            added_count=added,
            refused_count=refused,
            notes=tuple(notes),
        )
        work.show(whole, of_batch(whole, count))

    try:
        with closing(read_batch(source, common)) as lines:
            for chunk in _chunks(lines):
                done = _add_chunk(work, chunk, cause)
                cause = done.cause
                count += len(done.results)
                added += done.added_count
                refused += done.refused_count
                notes |= dict.fromkeys(done.notes)
                results += done.results if work.screen.as_json else ()
                if work.job.interrupted:
                    break
    except KeyboardInterrupt:
        if count:
            show()
            work.screen.finish()  # the process may end without doing it
        raise
    show()
    return REFUSED if refused else DONE


def _add_chunk(work: Work, chunk: list[BatchLine], cause: str) -> AddManyResult:
    """Store the lines that could be read; tell of those that were not stored."""
    memories = tuple(line.memory for line in chunk if line.memory is not None)
    done = AddManyResult(cause=cause, results=(), added_count=0, refused_count=0)
    if memories:
        args = AddManyArgs(memories=memories)
        done = work.job.ask(lambda app, call: app.add_many(args, call, cause=cause))
    outcomes = iter(done.results)
    results = []
    for line in chunk:
        item = AddedItem(error=line.error) if line.memory is None else next(outcomes)
        results.append(item)
        if item.error is not None and not work.screen.as_json:
            work.screen.say(f"mnemolog: line {line.number}: {item.error.message}")
    return msgspec.structs.replace(
        done,
        results=tuple(results),
        refused_count=sum(item.error is not None for item in results),
    )


def _chunks(lines: Iterator[BatchLine]) -> Iterator[list[BatchLine]]:
    while chunk := list(islice(lines, IDS_MAX)):
        yield chunk


def _update(work: Work) -> int:
    more = {}
    for field in ("content", "new_content"):
        if getattr(work.parsed, field, None) == STDIN:
            more[field] = read_text()
    args = work.args(UpdateArgs, **more)
    result = work.job.ask(lambda app, call: app.update(args, call))
    work.show(result, of_update(result))
    return DONE


# ---------------------------------------------------------------------------- get, inspect, health


def _get(work: Work) -> int:
    args = work.args(GetArgs)
    result: GetResult = work.job.ask(lambda app, call: app.get(args, call))
    work.show(result, of_get(result))
    return REFUSED if result.missing else DONE


def _health(work: Work) -> int:
    args = work.args(HealthArgs)
    result: HealthResult = work.job.ask(lambda app, call: app.health(args, call))
    work.show(result, of_health(result))
    return DAMAGE if result.status == "degraded" else DONE


# ---------------------------------------------------------------------------- delete


def _delete_extra(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--expected-version",
        metavar="N",
        default=argparse.SUPPRESS,
        help="with one ID: delete it only if it is at this version",
    )
    parser.add_argument(
        "--yes",
        action="store_true",
        help="do not ask before deleting by a filter; needed where nobody can be asked",
    )


def _delete(work: Work) -> int:
    parsed = work.parsed
    ids = tuple(dict.fromkeys(given(parsed, DeleteManyArgs).get("ids", ())))
    by_filter = any(hasattr(parsed, field) for field in _CHOSEN_BY)
    if not ids and not by_filter:
        raise usage_error(
            "say what to delete: ids, a filter such as --scope, or --everything; --dry-run shows "
            "what would go"
        )
    if len(ids) == 1 and not by_filter and not hasattr(parsed, "dry_run"):
        one = work.args(DeleteArgs, id=ids[0])
        result = work.job.ask(lambda app, call: app.delete(one, call))
        work.show(result, of_delete(result))
        return DONE
    if hasattr(parsed, "expected_version"):
        raise usage_error("--expected-version goes with one ID and nothing else")
    args = work.args(DeleteManyArgs, **({"ids": ids} if ids else {}))
    if by_filter and not args.dry_run and not parsed.yes:
        _confirm(work, args)
    deleted = _delete_all(work, args)
    work.show(deleted, of_delete_many(deleted))
    missing = [each for each in ids if each not in deleted.ids]
    if not work.screen.as_json:
        for each in missing:
            work.screen.say(f"mnemolog: {each} is not there, or not of what was asked for")
        if not ids and not deleted.matched_count:
            work.screen.say("mnemolog: nothing matched")
    return REFUSED if missing or not deleted.matched_count else DONE


def _delete_all(work: Work, args: DeleteManyArgs) -> DeleteManyResult:
    """Delete until nothing is left; with an idempotency key one call is one request."""
    parts = [work.job.ask(lambda app, call: app.delete_many(args, call))]
    while parts[-1].remaining_count and not (
        args.dry_run or args.idempotency_key is not None or work.job.interrupted
    ):
        parts.append(work.job.ask(partial(_delete_more, args, parts[0].cause or "")))
    first, last = parts[0], parts[-1]
    if first is last:
        return first
    return msgspec.structs.replace(
        first,
        deleted_count=sum(part.deleted_count for part in parts),
        remaining_count=last.remaining_count,
        reactivated_ids=tuple(each for part in parts for each in part.reactivated_ids),
        position=last.position,
        notes=(
            *first.notes,
            f"in {len(parts)} operations; `mnemolog undo --cause {first.cause}` takes all back",
        ),
    )


def _delete_more(args: DeleteManyArgs, cause: str, app: App, call: Call) -> DeleteManyResult:
    return app.delete_many(args, call, cause=cause)


def _confirm(work: Work, args: DeleteManyArgs) -> None:
    """Ask whether to delete; only a yes goes on."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise usage_error(
            "deleting by a filter needs --yes where nobody can be asked; --dry-run shows what "
            "would go"
        )
    trial = msgspec.structs.replace(args, dry_run=True, idempotency_key=None)
    found = work.job.ask(lambda app, call: app.delete_many(trial, call)).matched_count
    sys.stderr.write(f"delete {found} memories (`mnemolog undo` brings them back)? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CommandError(REFUSED, "not_confirmed", "nothing was deleted")


# ---------------------------------------------------------------------------- export


def _export_extra(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output",
        metavar="FILE",
        help="write to a file of mode 0600, which is there whole or not at all (default: standard "
        "output)",
    )
    parser.add_argument("--force", action="store_true", help="replace the file if it is there")


def _export(work: Work) -> int:
    parsed, job, screen = work.parsed, work.job, work.screen
    args = work.args(ExportArgs)
    path = None if parsed.output in (None, STDIN) else Path(parsed.output)
    if screen.as_json:
        if path is not None:
            raise usage_error("--json prints one reply as memory_export gives it; no --output")
        result = job.ask(lambda app, call: app.export(args, call))
        screen.show(result, ())
        return DONE
    is_part = hasattr(parsed, "limit") or hasattr(parsed, "cursor")
    # Of a whole export the first reply is asked for what is wrong with the arguments or the store.
    first_args = args if is_part else msgspec.structs.replace(args, limit=1)
    first = job.ask(lambda app, call: app.export(first_args, call))

    def write_to(write: Callable[[str], object]) -> None:
        if is_part:
            write(_ended(first.content))
        else:
            job.ask(lambda app, call: _write_whole(app.export_whole(args, call), write, call))

    if path is None:
        write_to(screen.write)
        screen.finish()
    else:
        with output_file(path, replace=parsed.force) as write:
            write_to(write)
            job.note_copy("export", path)
    if first.known_at is not None:
        screen.say(looked_back(first.known_at))
    for note in first.notes:
        screen.say(f"note: {in_commands(note)}")
    if is_part and first.has_more:
        screen.say(f"{first.count} of {first.total}; next part: --cursor {first.next_cursor}")
    elif path is not None:
        screen.say(f"wrote {first.count if is_part else first.total} memories to {path}")
    return DONE


def _write_whole(pieces: Iterator[str], write: Callable[[str], object], call: Call) -> None:
    end = ""
    for piece in pieces:
        call.check()
        write(piece)
        end = piece[-1:] or end
    if end not in ("", "\n"):
        write("\n")


def _ended(text: str) -> str:
    return text if text.endswith("\n") or not text else text + "\n"


# ---------------------------------------------------------------------------- the table

_ID: Final = Place(field="id", metavar="ID")

VERBS: Final = (
    Verb(
        name="add",
        help="store a memory, or a file of them",
        description="The layer is semantic unless you say otherwise. What is stored about the same "
        "entity in similar words is named: it may no longer be true.",
        example="mnemolog add 'Deploys go out on Tuesdays' --layer procedural "
        "--entity-name billing-service\n"
        "git log -1 --format=%B | mnemolog add - --layer episodic --tag git\n"
        "mnemolog add --batch memories.jsonl --scope handbook",
        struct=AddArgs,
        run=_add,
        places=(Place(field="content", metavar="CONTENT", nargs="*"),),
        defaults={"layer": "semantic", "source": "cli"},
        fill_more=_add_extra,
        begins=True,
    ),
    Verb(
        name="get",
        help="show memories by their ids, whole",
        description="Exit status 3 if one of them is not there.",
        example="mnemolog get ID --include-versions",
        struct=GetArgs,
        run=_get,
        places=(Place(field="ids", metavar="ID", nargs="+"),),
    ),
    Verb(
        name="list",
        help="page through memories by filters",
        example="mnemolog list --entity-name billing-service --order important\n"
        "mnemolog list --when 'last 3 days' --tag decision",
        struct=ListArgs,
        run=plain(App.list, of_list),
    ),
    Verb(
        name="search",
        help="find memories by words, best first",
        description="Words given one by one are one query. Finding nothing is no failure.",
        example="mnemolog search deploy day --layer procedural\n"
        "mnemolog search 'deploy day' --as-of 2026-11-30 --json\n"
        "mnemolog search 'deploy day' --known-at 2026-10-31",
        struct=SearchArgs,
        run=plain(App.search, of_search),
        places=(Place(field="query", metavar="QUERY", nargs="+"),),
    ),
    Verb(
        name="update",
        help="change a memory, or put a new one in its place",
        description="--supersede keeps the old one as history, for facts that changed; without it "
        "the memory is changed in place, for corrections. A content of - is standard input; --tag "
        "replaces all tags, and --tag '[]' removes them.",
        example="mnemolog update ID --supersede --new-content 'Deploys go out on Wednesdays'\n"
        "mnemolog update ID --meta reviewed=yes --importance 0.9",
        struct=UpdateArgs,
        run=_update,
        places=(_ID,),
    ),
    *EDIT_VERBS,
    Verb(
        name="delete",
        help="delete memories by their ids or by a filter",
        description="Several ids, or all that a filter matches, are deleted in operations of up to "
        "1,000, each of which `mnemolog undo --position` takes back. Before deleting by a filter "
        "it asks.",
        example="mnemolog delete ID\nmnemolog delete --scope old-project --dry-run\n"
        "mnemolog delete --scope old-project --yes",
        struct=DeleteManyArgs,
        run=_delete,
        places=(Place(field="ids", metavar="ID", nargs="*"),),
        fill_more=_delete_extra,
    ),
    REDACT,
    Verb(
        name="undo",
        help="take an operation back",
        description="By the position that its answer named, by the id of a memory or session (the "
        "last operation on it), or all that a filter matches, newest first; what somebody else "
        "has changed since stays as it is and is named. Before undoing by a filter it asks.",
        example="mnemolog undo --position 4711\nmnemolog undo ID\n"
        "mnemolog undo --actor claude-code --from yesterday --dry-run\n"
        "mnemolog undo --cause CAUSE --yes",
        struct=UndoArgs,
        run=run_undo,
        places=(Place(field="id", metavar="ID", nargs="?"),),
        fill_more=fill_undo,
        author_option="--as",
    ),
    Verb(
        name="inspect",
        help="show a memory with its history, or count all memories",
        example="mnemolog inspect\nmnemolog inspect ID --include-history\n"
        "mnemolog inspect ID --known-at yesterday",
        struct=InspectArgs,
        run=plain(App.inspect, of_inspect),
        places=(Place(field="id", metavar="ID", nargs="?"),),
    ),
    Verb(
        name="diff",
        help="show what changed between two moments",
        description="FROM and TO are ledger positions, or dates and times in words or ISO 8601, "
        "whose ends are meant; without TO it is now. What was added and deleted again in between "
        "is counted and not shown.",
        example="mnemolog diff yesterday\nmnemolog diff 4711 4800 --entity billing-service\n"
        "mnemolog diff 2026-11-01 2026-11-30 --layer semantic --json",
        struct=DiffArgs,
        run=plain(App.diff, of_diff),
        places=(
            Place(field="since", metavar="FROM"),
            Place(field="until", metavar="TO", nargs="?"),
        ),
    ),
    Verb(
        name="export",
        help="write all memories, or those of a filter, as text",
        description="It is complete unless --limit or --cursor asks for a part; --json prints one "
        "part as memory_export gives it.",
        example="mnemolog export --format markdown --output memories.md\n"
        "mnemolog export --format jsonl | head",
        struct=ExportArgs,
        run=_export,
        defaults={"format": "json"},
        fill_more=_export_extra,
    ),
    *AUDIT_VERBS,
    Verb(
        name="health",
        help="say how the store is, and delete what has expired",
        description="Exit status 1 if the store is degraded.",
        example="mnemolog health\nmnemolog health --cleanup",
        struct=HealthArgs,
        run=_health,
    ),
    Verb(
        name="session start",
        help="begin a session and print its id",
        example="id=$(mnemolog session start --project billing)\n"
        'mnemolog add "Chose Postgres" --session-id "$id"',
        struct=SessionStartArgs,
        run=plain(App.session_start, of_session_start),
        defaults={"client": ACTOR},
        begins=True,
    ),
    Verb(
        name="session end",
        help="end a session",
        example="mnemolog session end ID --summary 'Moved billing to Postgres'",
        struct=SessionEndArgs,
        run=plain(App.session_end, of_session_end),
        places=(_ID,),
    ),
    Verb(
        name="session list",
        help="list sessions, newest first",
        example="mnemolog session list --active-only",
        struct=SessionListArgs,
        run=plain(App.session_list, of_session_list),
    ),
    Verb(
        name="alias add",
        help="give an entity a further name",
        example="mnemolog alias add k8s Kubernetes",
        struct=AliasArgs,
        run=plain(App.alias, partial(of_alias, done="added")),
        places=(
            Place(field="alias", metavar="ALIAS"),
            Place(field="entity_name", metavar="ENTITY"),
        ),
        defaults={"action": "add"},
        without=("action",),
        begins=True,
    ),
    Verb(
        name="alias remove",
        help="take a further name away",
        example="mnemolog alias remove k8s",
        struct=AliasArgs,
        run=plain(App.alias, partial(of_alias, done="removed")),
        places=(Place(field="alias", metavar="ALIAS"),),
        defaults={"action": "remove"},
        without=("action", "entity_name"),
    ),
    Verb(
        name="alias list",
        help="list further names, of all entities or of one",
        example="mnemolog alias list Kubernetes",
        struct=AliasArgs,
        run=plain(App.alias, of_alias),
        places=(Place(field="entity_name", metavar="ENTITY", nargs="?"),),
        defaults={"action": "list"},
        without=("action", "alias", "idempotency_key"),
    ),
)
"""Every command on memories, in the order of the help."""
