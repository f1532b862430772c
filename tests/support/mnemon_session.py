"""One scripted session that mnemon-mcp and mnemolog are both played, and how replies are compared.

`tests/contracts/mnemon-replies.json` holds mnemon-mcp's replies, so that the comparison needs no
npm; `MNEMOLOG_TEST_MNEMON=... python -m tests.support.mnemon_session` records them anew.
"""

import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from tests.support.mnemon import DIFFERENCES, Difference, mnemon
from tests.support.peer import ROOT, Json, Peer, call

RECORDED: Final = ROOT / "tests" / "contracts" / "mnemon-replies.json"

POLLS_MAX: Final = 100_000
"""Repeats of a call that waits for the second of an expiry to pass; some thousand are needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call.

    Attributes:
        title: What it shows.
        tool: Name of the tool.
        arguments: Its arguments; a string `$name` stands for the id that was kept under the name.
        keep: Fields of the reply that hold ids -> names to keep them under.
        differs: Names of the differences that must show in the reply.
        is_ordered: Whether the order of what is listed is compared.
        until: A list in the reply; the call is repeated until it holds something.
    """

    title: str
    tool: str
    arguments: Json
    keep: dict[str, str] = field(default_factory=dict)
    differs: tuple[str, ...] = ()
    is_ordered: bool = True
    until: str | None = None


def _step(
    title: str,
    tool: str,
    arguments: Json,
    keep: dict[str, str] | None = None,
    differs: tuple[str, ...] = (),
    **more: Any,
) -> Step:
    return Step(
        title=title, tool=tool, arguments=arguments, keep=keep or {}, differs=differs, **more
    )


def _add(name: str, content: str, layer: str = "semantic", **fields: object) -> Step:
    """Return a step that adds a memory and keeps its id under a name."""
    return _step(
        f"add {name}", "memory_add", {"content": content, "layer": layer, **fields}, {"id": name}
    )


def _search(title: str, query: str, *differs: str, **filters: object) -> Step:
    arguments = {"query": query, **filters}
    return _step(f"search {title}", "memory_search", arguments, differs=differs)


def _refused(title: str, tool: str, *differs: str, **arguments: object) -> Step:
    return _step(f"error {title}", tool, arguments, differs=differs)


_INSPECTED: Final = ("meta as an object", "columns of the database")

_SESSIONS_BEGIN: Final = (
    _step(
        "start a session",
        "memory_session_start",
        {"client": "agent", "project": "billing", "meta": {"branch": "main"}},
        {"id": "session"},
    ),
    _step("start another", "memory_session_start", {"client": "other"}, {"id": "other session"}),
)

_ADDED: Final = (
    _step(
        "add with every field",
        "memory_add",
        {
            "content": "Deploys of the billing service go out on Tuesdays",
            "layer": "procedural",
            "title": "Deploy day",
            "entity_type": "project",
            "entity_name": "billing",
            "event_at": "2026-05-04T10:00:00Z",
            "ttl_days": 3_000,
            "confidence": 0.9,
            "importance": 0.7,
            "scope": "work",
            "source": "meeting",
            "source_file": "notes/deploys.md",
            "session_id": "$session",
            "meta": {"room": 7, "people": ["Ann", "Bo"]},
            "valid_from": "2026-05-01",
            "valid_until": "2090-12-31",
        },
        {"id": "deploys"},
    ),
    _add(
        "production",
        "The production database listens on port 5433",
        importance=0.9,
        entity_name="database",
        entity_type="tool",
    ),
    _add(
        "staging",
        "The staging database listens on port 5434",
        importance=0.2,
        entity_name="database",
    ),
    _add(
        "migration",
        "The migration of the database took nine hours",
        "episodic",
        event_at="2026-03-04",
        confidence=0.2,
    ),
    _add("handbook", "Handbook of the service, first edition", "resource", source_file="hand.md"),
    _add(
        "second handbook",
        "Handbook of the service, second edition",
        "resource",
        source_file="hand.md",
    ),
    _add("tariffs", "Тарифы обновляются по вторникам"),
    _add("old price", "A seat costs 10", valid_from="2025-01-01", valid_until="2025-12-31"),
    _add("new price", "A seat costs 12", valid_from="2026-01-01"),
    _add("gone", "This errand lasts no time", title="Gone", ttl_days=1e-9),
    _add("half a day", "Lunch lasts half a day", ttl_days=0.5),
)

_SEARCHED: Final = (
    _search("by a word, best first", "database"),
    _search("by several words", "production database port", "looser matches"),
    _search("by several words that one holds", "migration nine"),
    _search("by inflections", "listening databases"),
    _search("by inflections in Russian", "тариф вторник"),
    _search("with a word that nothing holds", "migration quux"),
    _search("for nothing", "zebra"),
    _search("in a layer", "database", layers=["episodic"]),
    _search("in no layer named", "database", layers=[]),
    _search("about an entity", "database", entity_name="database"),
    _search("in a scope", "deploys", scope="work"),
    _search("in a scope without it", "deploys", scope="global"),
    _search("between dates", "database", date_from="2026-03-01", date_to="2026-03-31"),
    _search("to a day, included", "database", date_from="2026-03-04", date_to="2026-03-04"),
    _search("by confidence", "database", min_confidence=0.5),
    _search("by importance", "database", min_importance=0.5),
    _search("as of a date", "seat", as_of="2025-06-01"),
    _search("as of the last day", "seat", as_of="2025-12-31"),
    _search("as of a later date", "seat", as_of="2026-06-01"),
    _search("for an exact text", "on port 54", mode="exact"),
    _search("for an exact text in capitals", "ON PORT 54", mode="exact"),
    _search("for an exact sign", "100%", mode="exact"),
    _search("exactly in Cyrillic capitals", "ТАРИФЫ", "letters in exact search", mode="exact"),
    _search("for a first page", "database", limit=1),
    _search("for a second page", "database", limit=1, offset=1),
    _search("for the last page", "database", limit=2, offset=2),
    _search("for what was superseded", "first edition handbook"),
    _search("with what was superseded", "first edition handbook", include_superseded=True),
    _search("for what has expired", "errand"),
    _search("for what lasts half a day", "lunch", "parts of days"),
    _search("for the beginning of a word", "migrat produc", "beginnings of words"),
    _search("for a date in Russian", "database в марте 2026", "dates within a query"),
    _search("in an empty scope", "deploys", scope=""),
    _search("about an empty entity", "deploys", entity_name=""),
    _search("for signs", "?!", "queries without words"),
    _search("for white space", "  "),
)

_CHANGED: Final = (
    _step(
        "change in place",
        "memory_update",
        {
            "id": "$migration",
            "content": "The migration of the database took eight hours",
            "title": "Migration",
            "confidence": 0.25,
            "importance": 0.6,
            "meta": {"rows": 10, "tables": 3},
        },
    ),
    _step("merge meta", "memory_update", {"id": "$migration", "meta": {"rows": 12, "by": "Bo"}}),
    _step("inspect the change", "memory_inspect", {"id": "$migration"}, differs=_INSPECTED),
    _step("change nothing", "memory_update", {"id": "$migration"}),
    _step(
        "supersede",
        "memory_update",
        {
            "id": "$deploys",
            "supersede": True,
            "new_content": "Deploys of the billing service go out on Fridays",
            "confidence": 1,
            "meta": {"room": 9},
        },
        {"new_id": "friday deploys"},
    ),
    _step(
        "inspect a successor",
        "memory_inspect",
        {"id": "$friday deploys", "include_history": True},
        differs=(*_INSPECTED, "whole chains", "valid_from of successors"),
    ),
    _search("for a successor", "deploys"),
    _search("for what a successor replaced", "deploys", "the past", as_of="2026-06-01"),
    _step(
        "supersede with content",
        "memory_update",
        {"id": "$friday deploys", "supersede": True, "content": "Deploys go out every day"},
        {"new_id": "daily deploys"},
    ),
    _refused(
        "of superseding twice", "memory_update", id="$deploys", supersede=True, new_content="No"
    ),
    _refused("of an update to nothing", "memory_update", "blank text", id="$staging", content=""),
    _refused(
        "of new_content alone",
        "memory_update",
        "new_content alone",
        id="$staging",
        new_content="Not stored",
    ),
    _refused("of an update of nobody", "memory_update", id="nobody", content="No"),
)

_STATISTICS: Final = (
    _step("statistics", "memory_inspect", {}, differs=("statistics",)),
    _step("inspect nobody", "memory_inspect", {"id": "nobody"}),
)

_SOURCE_FILES: Final = (
    _add("readme", "Readme of the work", "resource", scope="work", source_file="README.md"),
    _step(
        "add from the same file name in another scope",
        "memory_add",
        {
            "content": "Readme of the hobby",
            "layer": "resource",
            "scope": "home",
            "source_file": "README.md",
        },
        {"id": "hobby"},
        differs=("source files and scopes",),
    ),
    _add("june", "Log of June", "episodic", source_file="log.md", event_at="2026-06-01"),
    _step(
        "add an older entry of the same file",
        "memory_add",
        {
            "content": "Log of May",
            "layer": "episodic",
            "source_file": "log.md",
            "event_at": "2026-05-01",
        },
        {"id": "may"},
        differs=("source files and dates",),
    ),
)

_EXPORTED: Final = (
    _step(
        "export json",
        "memory_export",
        {"format": "json", "layers": ["procedural", "semantic"]},
        differs=("expired in exports",),
        is_ordered=False,
    ),
    _step(
        "export a scope",
        "memory_export",
        {"format": "json", "scope": "work", "layers": ["procedural"]},
    ),
    _step(
        "export with what was superseded",
        "memory_export",
        {"format": "json", "scope": "work", "layers": ["procedural"], "include_superseded": True},
        is_ordered=False,
    ),
    _step(
        "export between dates",
        "memory_export",
        {"format": "json", "date_from": "2026-03-01", "date_to": "2026-03-31"},
    ),
    _step("export one", "memory_export", {"format": "json", "layers": ["procedural"], "limit": 1}),
    _step(
        "export markdown",
        "memory_export",
        {"format": "markdown", "layers": ["procedural"]},
        differs=("headings of exports",),
    ),
    _step("export claude-md", "memory_export", {"format": "claude-md", "layers": ["procedural"]}),
    _step("export nothing", "memory_export", {"format": "json", "scope": "nowhere"}),
)

_DELETED: Final = (
    _step(
        "delete the middle of a chain",
        "memory_delete",
        {"id": "$friday deploys"},
        differs=("deleting",),
    ),
    _step(
        "inspect the end of that chain",
        "memory_inspect",
        {"id": "$daily deploys"},
        differs=(*_INSPECTED, "valid_from of successors"),
    ),
    _step(
        "delete the end of a chain",
        "memory_delete",
        {"id": "$daily deploys"},
        differs=("deleting",),
    ),
    _step(
        "inspect what is current again",
        "memory_inspect",
        {"id": "$deploys"},
        differs=_INSPECTED,
    ),
    _search("for what is current again", "deploys"),
    _search("for what was deleted", "Friday"),
    _refused("of deleting nobody", "memory_delete", id="nobody"),
    _refused(
        "of inspecting what was deleted", "memory_inspect", "deleted memories", id="$daily deploys"
    ),
)

_HEALTH: Final = (
    _step(
        "delete what is expired in one and not in the other",
        "memory_delete",
        {"id": "$half a day"},
        differs=("deleting",),
    ),
    _step("health", "memory_health", {}, differs=("active memories",), until="expired"),
    _step("clean up", "memory_health", {"cleanup": True}, differs=("reports of a cleaning",)),
    _step(
        "inspect what was cleaned up",
        "memory_inspect",
        {"id": "$gone"},
        differs=("deleted memories",),
    ),
    _step("health after it", "memory_health", {"cleanup": False}),
)

_SESSIONS_END: Final = (
    _step("end a session", "memory_session_end", {"id": "$session", "summary": "Deploys agreed"}),
    _step("list sessions", "memory_session_list", {}, is_ordered=False),
    _step("list sessions of a client", "memory_session_list", {"client": "agent"}),
    _step("list sessions of a project", "memory_session_list", {"project": "billing", "limit": 5}),
    _step("list sessions that go on", "memory_session_list", {"active_only": True}),
    _refused("of ending a session twice", "memory_session_end", id="$session"),
    _refused("of ending no session", "memory_session_end", id="nobody"),
)

_ERRORS: Final = (
    _step(
        "add to an unknown session",
        "memory_add",
        {"content": "Kept or not", "layer": "episodic", "session_id": "nobody-started-this"},
        differs=("unknown sessions",),
    ),
    _refused("of a missing field", "memory_add", content="No layer"),
    _refused("of an unknown layer", "memory_add", content="No", layer="other"),
    _refused("of empty content", "memory_add", content="", layer="semantic"),
    _refused("of blank content", "memory_add", "blank text", content=" \n", layer="semantic"),
    _refused(
        "of a number out of range", "memory_add", content="No", layer="semantic", importance=2
    ),
    _refused("of time that is over", "memory_add", content="No", layer="semantic", ttl_days=0),
    _refused("of no date", "memory_add", content="No", layer="semantic", event_at="someday"),
    _refused(
        "of a day that does not exist",
        "memory_add",
        "date forms",
        content="Stored by one",
        layer="semantic",
        event_at="2026-02-31",
    ),
    _refused(
        "of a field that does not exist",
        "memory_add",
        "unknown fields",
        content="Stored by one",
        layer="semantic",
        colour="red",
    ),
    _refused("of a small limit", "memory_search", query="seat", limit=0),
    _refused("of a great limit", "memory_search", query="seat", limit=101),
    _refused("of a negative offset", "memory_search", query="seat", offset=-1),
    _refused("of a broken limit", "memory_search", "whole numbers", query="seat", limit=1.5),
    _refused(
        "of a limit in a string", "memory_search", "numbers in strings", query="seat", limit="3"
    ),
    _refused("of vectors", "memory_search", query="seat", mode="vector"),
    _refused("of a hybrid", "memory_search", query="seat", mode="hybrid"),
    _refused("of an unknown format", "memory_export", format="yaml"),
    _refused("of an empty id", "memory_inspect", "statistics", id=""),
    _refused("of an unknown tool", "memory_forget", "unknown tools"),
)

STEPS: Final = (
    *_SESSIONS_BEGIN,
    *_ADDED,
    *_SEARCHED,
    *_CHANGED,
    *_STATISTICS,
    *_EXPORTED,
    *_DELETED,
    *_HEALTH,
    *_SOURCE_FILES,
    *_SESSIONS_END,
    *_ERRORS,
)


# ---------------------------------------------------------------------------- playing


def play(peer: Peer) -> Iterator[Json]:
    """Play the session to a server; yield each reply in a form that two servers can share."""
    names: dict[str, str] = {}
    for number, step in enumerate(STEPS):
        arguments = {key: _named(value, names) for key, value in step.arguments.items()}
        reply = _reply(peer.ask(call(number, step.tool, **arguments)))
        for _ in range(POLLS_MAX):
            if step.until is None or reply["result"][step.until]:
                break
            reply = _reply(peer.ask(call(number, step.tool, **arguments)))
        for key, name in step.keep.items():
            names[name] = reply["result"][key]
        yield _shared(reply, {memory_id: f"${name}" for name, memory_id in names.items()}, step)


def _named(value: object, names: dict[str, str]) -> object:
    return names[value[1:]] if isinstance(value, str) and value[:1] == "$" else value


def _reply(answer: Json) -> Json:
    if "error" in answer:
        return {"error": True, "protocol": "error"}
    result = answer["result"]
    if result.get("isError"):
        return {"error": True, "protocol": "result"}
    (content,) = result["content"]
    return {"error": False, "protocol": "result", "result": json.loads(content["text"])}


_NUMBERS = frozenset({"score", "query_time_ms", "duration_minutes"})
"""Fields that say something else each time."""

_INSTANTS = frozenset(
    {"created_at", "updated_at", "started_at", "ended_at", "expires_at", "last_accessed"}
)
"""Fields that the server's clock fills."""

_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")

_LISTS = ("memories", "content", "sessions")


def _shared(reply: Json, names: dict[str, str], step: Step) -> Json:
    result = reply.get("result")
    if result is None:
        return reply
    shared = _stripped(result, names)
    assert isinstance(shared, dict)
    if step.tool == "memory_export":
        text = result["content"]
        shared["content"] = (
            _stripped(json.loads(text), names)
            if step.arguments["format"] == "json"
            else [line for line in text.splitlines() if line.strip()]
        )
    if "issues" in shared:
        # What they say is for people.
        shared["issues"] = len(shared["issues"])
    if not step.is_ordered:
        for name in _LISTS:
            if name in shared:
                shared[name].sort(key=lambda item: item["id"])
    return {**reply, "result": shared}


def _stripped(value: object, names: dict[str, str], key: str = "") -> object:
    """Put names in the place of ids, and words in the place of what differs each time."""
    match value:
        case dict():
            return {name: _stripped(item, names, name) for name, item in value.items()}
        case list():
            return [_stripped(item, names) for item in value]
        case str() if key in _INSTANTS:
            assert _INSTANT.fullmatch(value), value
            return "<instant>"
        case str():
            return names.get(value, "<id>" if key == "id" else value)
        case int() | float() if key in _NUMBERS:
            return "<number>"
        case _:
            return value


# ---------------------------------------------------------------------------- comparing


def compared(theirs: Json, ours: Json) -> list[str]:
    """Return the places in which a reply of ours does not say what a reply of theirs says.

    What ours says besides is no difference, and an absent value is as good as null.
    """
    places = [key for key in ("error", "protocol") if theirs[key] != ours[key]]
    if not places and not theirs["error"]:
        places += _places(theirs["result"], ours["result"], "")
    return places


def _places(theirs: object, ours: object, path: str) -> Iterator[str]:
    match theirs, ours:
        case dict(), dict():
            for key, value in theirs.items():
                yield from _places(value, ours.get(key), f"{path}.{key}".lstrip("."))
        case list(), list() if path == "content" and all(isinstance(line, str) for line in theirs):
            if not set(theirs) <= set(ours):
                yield path
        case list(), list():
            if _ids(theirs) != _ids(ours):
                yield path
                return
            for index, (their, our) in enumerate(zip(theirs, ours, strict=True)):
                yield from _places(their, our, f"{path}[{index}]")
        case _:
            is_absent = theirs in (None, [], {}) and ours in (None, [], {})
            if not is_absent and theirs != ours:
                yield path


def _ids(items: list[Any]) -> list[object]:
    """Return what tells the items of a list apart."""
    return [item.get("id") if isinstance(item, dict) else item for item in items]


def explained(step: Step, places: list[str]) -> tuple[set[str], list[str]]:
    """Return the names of a step's differences that show, and the places none of them explains."""
    named: list[Difference] = [each for each in DIFFERENCES if each.name in step.differs]
    shown = {each.name for each in named if any(_covers(each, place) for place in places)}
    left = [place for place in places if not any(_covers(each, place) for each in named)]
    return shown, left


def _covers(difference: Difference, place: str) -> bool:
    return any(fnmatchcase(place, pattern) for pattern in difference.paths)


def recorded() -> list[Json]:
    """Return mnemon-mcp's replies, in the order of the steps."""
    by_title = json.loads(RECORDED.read_text("utf-8"))
    return [by_title[step.title] for step in STEPS]


def asked() -> list[Json]:
    """Play the session to the mnemon-mcp that is installed."""
    with tempfile.TemporaryDirectory() as home, mnemon(Path(home)) as peer:
        return list(play(peer))


if __name__ == "__main__":
    replies = {step.title: reply for step, reply in zip(STEPS, asked(), strict=True)}
    text = json.dumps(replies, ensure_ascii=False, indent=1)
    RECORDED.write_text(text + "\n", "utf-8")
