"""What mnemon-mcp 1.3.0 takes, in our own words, and where mnemolog differs from it on purpose.

`docs/coming-from-mnemon.md` prints `DIFFERENCES`; the tests `tests/contracts/test_mnemon_*.py` show
each of them. Where `MNEMOLOG_TEST_MNEMON` names the server's entry file, they ask it too.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import pytest

from tests.support.peer import Peer, started

SETTING: Final = "MNEMOLOG_TEST_MNEMON"

Kind = Literal["text", "date", "number", "boolean", "object", "choice", "choices"]


# ---------------------------------------------------------------------------- its tools


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One argument of a tool.

    Attributes:
        kind: What it holds; `choices` is a list of values, `date` begins with YYYY-MM-DD.
        low: Least length or number; None if there is none.
        high: Greatest length or number; None if there is none.
        above: Number that it must exceed; None if there is none.
        values: Values of a choice.
        required: Whether a call without it is refused.
    """

    kind: Kind
    low: float | None = None
    high: float | None = None
    above: float | None = None
    values: tuple[str, ...] = ()
    required: bool = False


_LAYERS: Final = ("episodic", "semantic", "procedural", "resource")
_ENTITY_TYPES: Final = ("user", "project", "person", "concept", "file", "rule", "tool")

_DATE: Final = Field(kind="date")
_SHARE: Final = Field(kind="number", low=0, high=1)
_FLAG: Final = Field(kind="boolean")
_OBJECT: Final = Field(kind="object")
_LAYER: Final = Field(kind="choice", values=_LAYERS)
_LAYER_LIST: Final = Field(kind="choices", values=_LAYERS)
_ID: Final = Field(kind="text", low=1, required=True)


def _text(high: int) -> Field:
    return Field(kind="text", high=high)


TOOLS: Final[dict[str, dict[str, Field]]] = {
    "memory_add": {
        "content": Field(kind="text", low=1, high=100_000, required=True),
        "layer": Field(kind="choice", values=_LAYERS, required=True),
        "title": _text(500),
        "entity_type": Field(kind="choice", values=_ENTITY_TYPES),
        "entity_name": _text(500),
        "event_at": _DATE,
        "ttl_days": Field(kind="number", above=0),
        "confidence": _SHARE,
        "importance": _SHARE,
        "scope": _text(200),
        "source": _text(200),
        "source_file": _text(1_000),
        "session_id": _text(200),
        "meta": _OBJECT,
        "valid_from": _DATE,
        "valid_until": _DATE,
    },
    "memory_search": {
        "query": Field(kind="text", low=1, high=10_000, required=True),
        "layers": _LAYER_LIST,
        "entity_name": _text(500),
        "scope": _text(200),
        "date_from": _DATE,
        "date_to": _DATE,
        "min_confidence": _SHARE,
        "min_importance": _SHARE,
        "include_superseded": _FLAG,
        "limit": Field(kind="number", low=1, high=100),
        "offset": Field(kind="number", low=0),
        "mode": Field(kind="choice", values=("fts", "exact", "vector", "hybrid")),
        "as_of": _DATE,
    },
    "memory_update": {
        "id": _ID,
        "content": _text(100_000),
        "title": _text(500),
        "confidence": _SHARE,
        "importance": _SHARE,
        "meta": _OBJECT,
        "supersede": _FLAG,
        "new_content": _text(100_000),
    },
    "memory_delete": {"id": _ID},
    "memory_inspect": {
        "id": Field(kind="text"),
        "layer": _LAYER,
        "entity_name": _text(500),
        "include_history": _FLAG,
    },
    "memory_export": {
        "format": Field(kind="choice", values=("json", "markdown", "claude-md"), required=True),
        "layers": _LAYER_LIST,
        "scope": _text(200),
        "include_superseded": _FLAG,
        "date_from": _DATE,
        "date_to": _DATE,
        "limit": Field(kind="number", low=1, high=10_000),
    },
    "memory_health": {"cleanup": _FLAG},
    "memory_session_start": {
        "client": Field(kind="text", low=1, high=200, required=True),
        "project": _text(500),
        "meta": _OBJECT,
    },
    "memory_session_end": {"id": _ID, "summary": _text(10_000)},
    "memory_session_list": {
        "limit": Field(kind="number", low=1, high=100),
        "client": _text(200),
        "project": _text(500),
        "active_only": _FLAG,
    },
}


# ---------------------------------------------------------------------------- differences


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Something that is not as it was, on purpose.

    Attributes:
        name: What the tests call it.
        theirs: What mnemon-mcp does.
        ours: What mnemolog does.
        reason: Why.
        paths: Places in replies of the scripted session where it may show, as patterns of
            `fnmatch`; none if it shows elsewhere.
    """

    name: str
    theirs: str
    ours: str
    reason: str
    paths: tuple[str, ...] = ()


SCHEMA_DIFFERENCES: Final = (
    Difference(
        name="date forms",
        theirs="A date begins with YYYY-MM-DD; days that do not exist, such as 2026-02-31, pass.",
        ours="ISO 8601 also without day or month, and words such as `yesterday`; what is no date "
        "is refused.",
        reason="Agents write dates in many ways, and a date that does not exist sorts wrongly for "
        "ever.",
        paths=("error",),
    ),
    Difference(
        name="whole numbers",
        theirs="`limit` and `offset` may have a fraction.",
        ours="They are whole: 10 and 10.0 are taken, 10.5 is refused.",
        reason="There is no half memory.",
        paths=("error",),
    ),
    Difference(
        name="far offsets",
        theirs="`offset` has no limit.",
        ours="`offset` is at most 10,000.",
        reason="A search ranks every match before the page it gives; memory_list pages through "
        "everything with a cursor.",
    ),
    Difference(
        name="lengths of ids",
        theirs="An `id` may have any length.",
        ours="An `id` has at most 200 characters.",
        reason="No id is as long, and what is not looked up need not be carried.",
    ),
    Difference(
        name="vector modes",
        theirs="`mode` may be `vector` or `hybrid`, with an embedding provider.",
        ours="`mode` is `fts` or `exact`.",
        reason="There are no vectors yet.",
    ),
    Difference(
        name="unknown fields",
        theirs="A field that the tool does not have is dropped without a word.",
        ours="It is refused; the error lists the fields there are.",
        reason="A misspelt filter that is dropped answers another question.",
        paths=("error",),
    ),
)
"""Those that show in what is accepted."""

SESSION_DIFFERENCES: Final = (
    Difference(
        name="numbers in strings",
        theirs='`"limit": "3"` is refused.',
        ours="Numbers, booleans, lists and objects are also taken as strings that hold them.",
        reason="Models send them so, and what is meant is plain.",
        paths=("error",),
    ),
    Difference(
        name="blank text",
        theirs="Text that is only white space is stored, and an update to an empty text too.",
        ours="Refused; the stored text stays.",
        reason="Nobody can find a blank memory, and an update that empties one loses it.",
        paths=("error",),
    ),
    Difference(
        name="new_content alone",
        theirs="`new_content` without `supersede` is dropped; the reply says nothing.",
        ours="Refused, with what to pass instead.",
        reason="The caller would take the change for done.",
        paths=("error",),
    ),
    Difference(
        name="queries without words",
        theirs="A query of signs alone is an error.",
        ours="It finds nothing, and a note says why.",
        reason="Whatever text an agent searches for, the search works.",
        paths=("error",),
    ),
    Difference(
        name="beginnings of words",
        theirs="Every word of a query also finds longer words that begin with it.",
        ours="A word finds its inflections; `exact` finds pieces of words.",
        reason="`car` should not find `cardinal`.",
        paths=("memories", "returned_count"),
    ),
    Difference(
        name="dates within a query",
        theirs="Russian dates within `query` become filters by date.",
        ours="`query` is only words; dates in words, English and Russian, go into `when`, "
        "`date_from`, `date_to` and `as_of`.",
        reason="Text that is looked for is never syntax.",
        paths=("memories", "returned_count"),
    ),
    Difference(
        name="letters in exact search",
        theirs="`exact` ignores the case of the letters A to Z only.",
        ours="`exact` ignores the case and the form of all letters.",
        reason="Other alphabets have capitals too.",
        paths=("memories", "returned_count"),
    ),
    Difference(
        name="looser matches",
        theirs="Where few memories hold all words, those that hold any of them follow.",
        ours="Those that hold the two rarest words come first.",
        reason="A memory with two of three words is nearer than one with one.",
        paths=("memories",),
    ),
    Difference(
        name="parts of days",
        theirs="The fraction of `ttl_days` is cut off: 0.5 expires at once.",
        ours="0.5 is twelve hours.",
        reason="The number is a number of days, and fractions are accepted.",
        paths=("memories", "returned_count"),
    ),
    Difference(
        name="meta as an object",
        theirs="`meta` of memory_inspect is a string that holds JSON.",
        ours="It is the object that was stored.",
        reason="Nobody has to decode it twice.",
        paths=("*meta",),
    ),
    Difference(
        name="columns of the database",
        theirs="memory_inspect shows `access_count`, `last_accessed` and `embedding_model`.",
        ours="Accesses are kept beside the memories, in the activity of the store.",
        reason="Reading a memory does not change it.",
        paths=("*access_count", "*last_accessed", "*embedding_model"),
    ),
    Difference(
        name="whole chains",
        theirs="`superseded_chain` holds what came before the memory.",
        ours="It holds the whole chain, the memory and what came after it too, newest first.",
        reason="Whoever has an old id finds what is true now.",
        paths=("superseded_chain",),
    ),
    Difference(
        name="statistics",
        theirs="`layer_stats` of memory_inspect counts expired memories as active, and has "
        "`never_accessed` and `stale_count`.",
        ours="It counts the expired by themselves; memory_health has `stale_count`.",
        reason="Expired memories are not active ones, and accesses are no part of a memory.",
        paths=("layer_stats.*",),
    ),
    Difference(
        name="valid_from of successors",
        theirs="A successor takes over `valid_from` and `valid_until`.",
        ours="It is valid from now on, until whenever, unless the call says otherwise.",
        reason="What replaces a fact was not true before, so `as_of` can tell them apart.",
        paths=("memory.valid_from", "memory.valid_until"),
    ),
    Difference(
        name="the past",
        theirs="`as_of` leaves out what has been superseded since.",
        ours="`as_of` finds what was true then, superseded or not.",
        reason="That is the question.",
        paths=("memories", "returned_count"),
    ),
    Difference(
        name="source files and scopes",
        theirs="A new memory of a `source_file` supersedes those of every scope.",
        ours="It supersedes those of its own scope.",
        reason="README.md of one project does not replace README.md of another.",
        paths=("superseded_ids",),
    ),
    Difference(
        name="source files and dates",
        theirs="What is added last supersedes, whatever it tells of.",
        ours="What tells of an earlier `event_at` is stored as superseded, and the reply names "
        "what stays current.",
        reason="Importing old notes late must not hide the new ones.",
        paths=("superseded_ids",),
    ),
    Difference(
        name="unknown sessions",
        theirs="A `session_id` that was not started is an error; the memory is not stored.",
        ours="The memory is stored with it, and a note says so.",
        reason="A memory is worth more than a link.",
        paths=("error",),
    ),
    Difference(
        name="deleting",
        theirs="With sqlite-vec installed and no embedding provider memory_delete deletes, and "
        "answers with an error.",
        ours="It answers with what it did.",
        reason="An agent that is told of a failure tries again.",
        paths=("error",),
    ),
    Difference(
        name="deleted memories",
        theirs="memory_inspect of a deleted memory is an error, as of one that never was.",
        ours="It says that the memory is deleted; `include_history` shows its versions.",
        reason="Whoever finds an old id can see what became of it.",
        paths=("error",),
    ),
    Difference(
        name="active memories",
        theirs="memory_health counts expired memories as active until they are cleaned up.",
        ours="It counts them as expired.",
        reason="No search finds them any more.",
        paths=("stats.total_active", "stats.by_layer.*"),
    ),
    Difference(
        name="reports of a cleaning",
        theirs="memory_health with `cleanup` describes the store as it was before.",
        ours="It describes the store as it is now; `cleaned_expired` says what was done.",
        reason="A reply says what is.",
        paths=("issues", "stats.*", "expired", "status"),
    ),
    Difference(
        name="expired in exports",
        theirs="memory_export holds expired memories that were not cleaned up.",
        ours="It leaves them out unless `include_expired` is set.",
        reason="What has expired is hidden everywhere at once.",
        paths=("count", "content"),
    ),
    Difference(
        name="headings of exports",
        theirs="In markdown, a layer's heading counts its memories.",
        ours="It does not; each memory says more of itself: scope, source file, validity, id.",
        reason="An export is written as it is read, at any size.",
        paths=("content",),
    ),
    Difference(
        name="unknown tools",
        theirs="Calling a tool that does not exist gives a result with an error.",
        ours="It gives an error of the protocol.",
        reason="The protocol says so.",
        paths=("protocol",),
    ),
)
"""Those that show in replies of the scripted session."""

FORM_DIFFERENCES: Final = (
    Difference(
        name="ids",
        theirs="32 hexadecimal digits.",
        ours="16 letters and digits.",
        reason="Agents repeat ids, and half the length is half the tokens.",
    ),
    Difference(
        name="times",
        theirs="To the second.",
        ours="To the microsecond.",
        reason="Two memories of one second have an order.",
    ),
    Difference(
        name="absent fields",
        theirs="A field without a value is null.",
        ours="It is left out.",
        reason="It costs tokens and says nothing.",
    ),
    Difference(
        name="scores",
        theirs="1.0 times the weights for `exact`; for words, BM25 with the weights of other "
        "columns (below).",
        ours="Between 0 and 1, with a title worth 3, an entity 2 and a content 1; compare scores "
        "of one reply only.",
        reason="The weights are applied to the columns they are meant for.",
    ),
    Difference(
        name="errors",
        theirs="A sentence; of some errors only that there was one.",
        ours="`code`, `message` and `details`, with the field, what was got and what is accepted.",
        reason="A caller can mend its call without guessing.",
    ),
    Difference(
        name="undo",
        theirs="What was deleted is gone, cleaned up expired memories too.",
        ours="memory_undo takes every operation back.",
        reason="Agents delete by mistake.",
    ),
    Difference(
        name="aliases",
        theirs="An alias leads to its entity, but what was stored under the alias is not found by "
        "the entity's name; no tool sets one.",
        ours="All names of an entity find the memories of all of them; memory_alias keeps them.",
        reason="Which name a memory was stored under is chance.",
    ),
)
"""Those of form, and those that tests of their own show."""

DIFFERENCES: Final = (*SCHEMA_DIFFERENCES, *SESSION_DIFFERENCES, *FORM_DIFFERENCES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault of mnemon-mcp 1.3.0 that mnemolog must not have.

    Attributes:
        theirs: What happens there.
        ours: What happens here.
    """

    theirs: str
    ours: str


FAULTS: Final = (
    Fault(
        theirs="BM25's weights 3, 1 and 2 (title, content, entity) fall on the columns id, title "
        "and content: a match in a title counts less than one in a content.",
        ours="A match in a title counts most.",
    ),
    Fault(
        theirs="memory_delete answers with an error without an embedding provider where sqlite-vec "
        "is installed, which is the usual installation.",
        ours="No tool needs an embedding provider.",
    ),
    Fault(
        theirs="Changing a text reads the whole text index to find the memory's row.",
        ours="A change costs the same whatever the size of the store.",
    ),
    Fault(
        theirs="An exact search reads every memory.",
        ours="It reads those that the trigrams of the text allow.",
    ),
    Fault(
        theirs="In a store that was opened again an acknowledged write is not synced to disk; a "
        "power failure may lose it.",
        ours="Every write is synced before the answer.",
    ),
    Fault(
        theirs="Every search writes to the database twice, before the answer.",
        ours="A search writes nothing to ledger and memories.",
    ),
)


# ---------------------------------------------------------------------------- the server itself


def installed() -> Path:
    """Return the entry file of the mnemon-mcp that is to be asked; skips if none is named."""
    entry = os.environ.get(SETTING)
    if entry is None:
        pytest.skip(f"{SETTING} names no entry file of mnemon-mcp 1.3.0")
    return Path(entry)


@contextmanager
def mnemon(home: Path, *, prefix: tuple[str, ...] = ()) -> Iterator[Peer]:
    """Start mnemon-mcp on a store in a folder, as `npm install` leaves it: without embeddings.

    Args:
        home: Folder that holds the store, `memory.db`.
        prefix: A command that runs another.
    """
    command = (
        "env",
        "-i",
        f"PATH={os.environ['PATH']}",
        f"HOME={home}",
        f"MNEMON_DB_PATH={home / 'memory.db'}",
        *prefix,
        "node",
        str(installed()),
    )
    with (
        (home / "mnemon.log").open("a") as log,
        started(command=command, stderr=log.fileno()) as it,
    ):
        yield it.handshake()


def field_of(schema: dict[str, Any], *, required: bool) -> Field:
    """Say what a property of one of its JSON Schemas takes."""
    if "enum" in schema:
        return Field(kind="choice", values=tuple(schema["enum"]), required=required)
    match schema["type"]:
        case "array":
            return Field(kind="choices", values=tuple(schema["items"]["enum"]), required=required)
        case "string" if "pattern" in schema:
            return Field(kind="date", required=required)
        case "string":
            low, high = schema.get("minLength"), schema.get("maxLength")
            return Field(kind="text", low=low, high=high, required=required)
        case "number":
            return Field(
                kind="number",
                low=schema.get("minimum"),
                high=schema.get("maximum"),
                above=schema.get("exclusiveMinimum"),
                required=required,
            )
        case kind:
            return Field(kind=kind, required=required)
