"""The kinds of work that are measured, and the requests each is made of."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from bench.client import Client
from bench.corpus import QUERY_KINDS, Corpus
from bench.stores import GROUP

Fields = dict[str, Any]

BATCH = 100
"""Memories of a memory_add_many, and of what a memory_delete_many deletes."""

FILES = 8
"""Source files that are added from again and again, so that each addition supersedes the last."""

READ_AT_ONCE = 10
ENTITIES = 50
"""Entities that are listed: the ones with the most memories."""

FIRST_LOOK_MAX = 10_000
"""Memories at a moment up to which the first look at it is measured: thousands a second."""

ENTITY, ALIAS = "entity-0", "the bench's other name"


@dataclass(frozen=True)
class Kind:
    """One kind of work.

    Attributes:
        name: Of its figures in the result files.
        text: What a table says it is.
        operation: What is asked of a server.
        share: Its calls in a block, as a share of the block.
        memories: Memories of one call; times are given for one of them.
    """

    name: str
    text: str
    operation: str
    share: float = 1.0
    memories: int = 1

    @property
    def is_search(self) -> bool:
        """Whether the number of results is noted."""
        return self.operation == "search"


COMPARED = (
    Kind("add", "add, durable", "add"),
    Kind("add_entity", "add with an entity, durable", "add"),
    Kind("add_file", "add that supersedes what its file held, durable", "add"),
    Kind("update", "update in place, durable", "update", 0.5),
    Kind("supersede", "supersede, durable", "supersede", 0.5),
    Kind("delete", "delete, durable", "delete", 0.5),
    Kind("session", "session started and ended, durable", "session", 0.5),
    Kind("and2", "search, 2 words", "search"),
    Kind("or4", "search, 4 words of 2 memories", "search"),
    Kind("layer", "search, 2 words in a layer", "search"),
    Kind("date", "search, 2 words in 90 days", "search"),
    Kind("exact", "exact phrase of 3 words", "search"),
    Kind("inspect", "inspect with history", "inspect"),
    Kind("health", "health", "health", 0.25),
    Kind("export_json", "export of 500, json", "export", 0.25),
    Kind("export_claude", "export of 500, claude-md", "export", 0.25),
)
"""What both servers do, taking turns."""

OWN = (
    Kind("list_newest", "list, the newest 20", "list"),
    Kind("list_entity", "list, 20 of an entity", "list"),
    Kind("get", "get, 10 ids", "get"),
    Kind("search_alias", "search, 4 words, an entity by an alias", "search"),
    Kind("recent", "resource memory://recent", "recent"),
    Kind("past", "search, 2 words, known_at the middle", "search"),
    Kind("past_first", "the same, of a moment not asked for before", "search", 0.05),
    Kind("alias_add", "alias, durable", "alias_add", 0.5),
    Kind("add_many", f"add_many of {BATCH}, durable, a memory", "add_many", 0.125, BATCH),
    Kind("delete_many", f"delete_many of {BATCH}, durable, a memory", "delete_many", 0.125, BATCH),
)
"""What this project alone does: reads first, since the writes make the store grow."""

KINDS = {kind.name: kind for kind in (*COMPARED, *OWN)}


@dataclass
class Held:
    """What is known of the store that a server holds.

    Attributes:
        next_number: Of the next memory of the corpus to add.
        ids: Of memories added while measuring, without those superseded or deleted since.
        heads: Id of the last memory of each source file.
        named: Sessions, aliases and the like named so far.
    """

    next_number: int
    ids: list[str] = field(default_factory=list)
    heads: deque[str] = field(default_factory=lambda: deque(maxlen=FILES))
    named: int = 0

    def name(self) -> int:
        """Return a number that nothing was named by yet."""
        self.named += 1
        return self.named


class Work:
    """The requests of each kind on a store of one size; the queries are the same for each server.

    Args:
        size: Memories of the store.
        turns: Blocks of each kind.
        block: Calls of a block whose share is 1.
    """

    def __init__(self, size: int, turns: int, block: int) -> None:
        self._block = block
        self._middle = size // 2
        self._corpus = Corpus()
        self._queries = {
            kind: list(self._corpus.queries(kind, turns * block, size)) for kind in QUERY_KINDS
        }

    def requests(self, kind: Kind, turn: int, held: Held, client: Client) -> list[Fields]:
        """Return the requests of a block, what they need being there; `turn` counts from 0."""
        count = max(1, round(self._block * kind.share))
        match kind.name:
            case "add" | "add_entity":
                made = self.additions(held, with_entity=kind.name == "add_entity")
            case "add_file":
                made = self._from_files(held)
            case "update" | "supersede" | "delete":
                made = self._changes(held, min(count, len(held.ids)))
            case "delete_many":
                made = self._fill_sessions(held, client, count)
            case "past":
                made = ({**query, "known_at": self._middle} for query in self.queries("and2", turn))
            case "past_first":
                made = self._first_looks(turn)
            case _ if kind.name in self._queries:
                made = iter(self.queries(kind.name, turn))
            case "search_alias":
                made = ({**query, "entity_name": ALIAS} for query in self.queries("or4", turn))
            case _:
                made = self._others(kind.name, held)
        return list(islice(made, count))

    def queries(self, kind: str, turn: int) -> list[Fields]:
        """Return a block of queries."""
        return self._queries[kind][turn * self._block : (turn + 1) * self._block]

    def _first_looks(self, turn: int) -> Iterator[Fields]:
        """Yield a search of a moment that nobody has asked for; none where that takes very long.

        Stores are built in groups of that many, and a moment is the end of an operation.
        """
        if self._middle <= FIRST_LOOK_MAX:
            (query, *_) = self.queries("and2", turn)
            yield {**query, "known_at": self._middle + turn * GROUP}

    def additions(self, held: Held, *, with_entity: bool | None) -> Iterator[Fields]:
        """Yield memories to add, for ever; None: whether they have an entity or not."""
        while True:
            memory = self._corpus.memory(held.next_number)
            held.next_number += 1
            if with_entity in (None, memory["entity_name"] is not None):
                yield memory

    def _from_files(self, held: Held) -> Iterator[Fields]:
        for memory in self.additions(held, with_entity=False):
            file = f"notes/{held.next_number % FILES}.md"
            yield {**memory, "event_at": None, "scope": "files", "source_file": file}

    def _changes(self, held: Held, count: int) -> Iterator[Fields]:
        for memory in islice(self.additions(held, with_entity=None), count):
            yield {"id": held.ids.pop(0), "content": memory["content"]}

    def _fill_sessions(self, held: Held, client: Client, count: int) -> Iterator[Fields]:
        for _ in range(count):
            session = f"session-{held.name()}"
            memories = [
                {**memory, "session_id": session}
                for memory in islice(self.additions(held, with_entity=None), BATCH)
            ]
            client.operate("add_many", {"memories": [_without_nones(each) for each in memories]})
            yield {"session_id": session}

    def _others(self, name: str, held: Held) -> Iterator[Fields]:
        """Yield requests that depend on little."""
        while True:
            match name:
                case "session":
                    yield {"client": "bench", "project": f"project-{held.name() % 20}"}
                case "inspect":
                    yield {"id": held.heads[held.name() % len(held.heads)]}
                case "export_json" | "export_claude":
                    yield {"format": "json" if name == "export_json" else "claude-md"}
                case "list_entity":
                    yield {"entity_name": f"entity-{held.name() % ENTITIES}"}
                case "get":
                    start = held.name() % max(1, len(held.ids) - READ_AT_ONCE)
                    yield {"ids": held.ids[start : start + READ_AT_ONCE]}
                case "alias_add":
                    number = held.name()
                    yield {"alias": f"name {number}", "entity_name": f"entity-{number % ENTITIES}"}
                case "add_many":
                    memories = islice(self.additions(held, with_entity=None), BATCH)
                    yield {"memories": [_without_nones(memory) for memory in memories]}
                case _:
                    yield {}


def _without_nones(memory: Fields) -> Fields:
    return {name: value for name, value in memory.items() if value is not None}
