"""A store in this process, on a home of its own, with a clock that stands until it is moved."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import pytest

from ledger import Position, VerifyReport, format_us, parse_us, verify
from projections.connection import Connection, create_database
from projections.digest import StateDigest, state_digest
from projections.generation import Generation
from projections.model import Memory
from projections.rebuild import replay
from projections.substring import flush_trigrams
from server.bootstrap import Store
from server.config import Config
from server.errors import UseCaseError
from server.results import (
    AddManyResult,
    AddResult,
    AliasResult,
    DeleteManyResult,
    DeleteResult,
    ExportResult,
    Found,
    GetResult,
    HealthResult,
    InspectResult,
    ListResult,
    RedactResult,
    SearchResult,
    SessionEndResult,
    SessionListResult,
    SessionStartResult,
    UndoResult,
    UpdateResult,
)
from server.schema import convert
from server.tool import Call
from server.tools import make_tools

START: Final = "2026-06-15T12:00:00.000000Z"
DAY_US: Final = 86_400_000_000

MEMORY_DISK: Final = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""A folder where a sync costs nothing, for tests that sync very often; None: the usual one."""

ErrorT = TypeVar("ErrorT", bound=UseCaseError)
ResultT = TypeVar("ResultT", bound=msgspec.Struct)


class FakeClock:
    """A clock that shows what it was set to."""

    def __init__(self, start: str = START) -> None:
        self.us = parse_us(start)

    def now_us(self) -> int:
        return self.us

    def now(self) -> str:
        return format_us(self.us)

    def set(self, instant: str) -> None:
        self.us = parse_us(instant)

    def advance(self, *, days: float = 0, seconds: float = 0) -> None:
        self.us += round(days * DAY_US + seconds * 1e6)


class Client:
    """Calls the tools of an open store as a client's JSON would, but for the transport."""

    def __init__(self, store: Store, name: str = "tester") -> None:
        self.store = store
        self.name = name
        self._tools = {tool.name: tool for tool in make_tools(lambda: store.app)}

    def call(self, tool: str, arguments: dict[str, Any]) -> msgspec.Struct:
        found = self._tools[tool]
        return found.run(convert(arguments, found.args), Call(actor_name=self.name))

    def add(self, content: str, layer: str = "semantic", **fields: object) -> AddResult:
        result = self.call("memory_add", {"content": content, "layer": layer, **fields})
        assert isinstance(result, AddResult)
        return result

    def search(self, query: str, **filters: object) -> SearchResult:
        result = self.call("memory_search", {"query": query, **filters})
        assert isinstance(result, SearchResult)
        assert result.returned_count == len(result.memories)
        return result

    def update(self, memory_id: str, **fields: object) -> UpdateResult:
        result = self.call("memory_update", {"id": memory_id, **fields})
        assert isinstance(result, UpdateResult)
        return result

    def supersede(self, memory_id: str, content: str, **fields: object) -> str:
        """Put a new memory in a memory's place; returns the new one's id."""
        result = self.update(memory_id, supersede=True, new_content=content, **fields)
        assert result.new_id is not None
        return result.new_id

    def delete(self, memory_id: str, **fields: object) -> DeleteResult:
        result = self.call("memory_delete", {"id": memory_id, **fields})
        assert isinstance(result, DeleteResult)
        return result

    def inspect(self, memory_id: str | None = None, **fields: object) -> InspectResult:
        result = self.call("memory_inspect", {"id": memory_id, **fields})
        assert isinstance(result, InspectResult)
        return result

    def add_many(self, *memories: object, **fields: object) -> AddManyResult:
        result = self._called(AddManyResult, "memory_add_many", {"memories": [*memories], **fields})
        assert len(result.results) == len(memories)
        return result

    def get(self, *ids: str, **fields: object) -> GetResult:
        return self._called(GetResult, "memory_get", {"ids": [*ids], **fields})

    def list_page(self, **fields: object) -> ListResult:
        result = self._called(ListResult, "memory_list", fields)
        assert result.returned_count == len(result.memories)
        assert result.has_more == (result.next_cursor is not None)
        return result

    def listed(self, *, limit: int = 100, **filters: object) -> list[Memory]:
        """Return the memories of all pages of a list."""
        page = self.list_page(limit=limit, **filters)
        memories = [*page.memories]
        while page.has_more:
            assert page.returned_count == limit
            page = self.list_page(limit=limit, cursor=page.next_cursor, **filters)
            memories += page.memories
        return memories

    def delete_many(self, **fields: object) -> DeleteManyResult:
        return self._called(DeleteManyResult, "memory_delete_many", fields)

    def redact(self, memory_id: str | None = None, **fields: object) -> RedactResult:
        arguments = {"reason": "asked for", **fields}
        if memory_id is not None:
            arguments["id"] = memory_id
        return self._called(RedactResult, "memory_redact", arguments)

    def export(self, export_format: str = "json", **fields: object) -> ExportResult:
        return self._called(ExportResult, "memory_export", {"format": export_format, **fields})

    def health(self, **fields: object) -> HealthResult:
        return self._called(HealthResult, "memory_health", fields)

    def session_start(self, client: str = "editor", **fields: object) -> SessionStartResult:
        return self._called(
            SessionStartResult, "memory_session_start", {"client": client, **fields}
        )

    def session_end(self, session_id: str, **fields: object) -> SessionEndResult:
        return self._called(SessionEndResult, "memory_session_end", {"id": session_id, **fields})

    def session_list(self, **fields: object) -> SessionListResult:
        return self._called(SessionListResult, "memory_session_list", fields)

    def alias(self, action: str, **fields: object) -> AliasResult:
        return self._called(AliasResult, "memory_alias", {"action": action, **fields})

    def _called(self, kind: type[ResultT], tool: str, arguments: dict[str, Any]) -> ResultT:
        result = self.call(tool, arguments)
        assert isinstance(result, kind)
        return result

    def undo(self, **fields: object) -> UndoResult:
        result = self.call("memory_undo", fields)
        assert isinstance(result, UndoResult)
        return result

    def found(self, query: str, **filters: Any) -> list[str]:
        """Return the ids of all pages of a search."""
        return [memory.id for memory in self.pages(query, **filters)]

    def pages(self, query: str, *, limit: int = 100, **filters: Any) -> list[Found]:
        memories: list[Found] = []
        offset: int | None = 0
        while offset is not None:
            page = self.search(query, limit=limit, offset=offset, **filters)
            assert page.has_more == (page.next_offset is not None)
            assert page.returned_count == limit or not page.has_more
            memories += page.memories
            offset = page.next_offset
        return memories

    def content(self, memory_id: str) -> str:
        memory = self.inspect(memory_id).memory
        assert memory is not None
        return memory.content

    def position(self) -> int:
        """Return the ledger's end, read from the ledger itself."""
        return self.store.ledger.position_at().seq

    @contextmanager
    def refused(self, error: type[ErrorT], *words: str) -> Iterator["pytest.ExceptionInfo[ErrorT]"]:
        """Expect a refusal that says these words and has written nothing."""
        before = self.position()
        with pytest.raises(error) as caught:
            yield caught
        for word in words:
            assert word in caught.value.message
        assert self.position() == before


class Home:
    """A folder that stores are opened on, one after another or at once."""

    def __init__(self, path: Path, clock: FakeClock | None = None) -> None:
        self.path = path
        self.clock = clock or FakeClock()
        self._open: list[Store] = []

    def open(
        self, workspace: str = "default", *, name: str = "tester", time_zone: str = "UTC"
    ) -> Client:
        config = Config(home=self.path, workspace=workspace, time_zone=time_zone)
        store = Store(config, clock=self.clock)
        self._open.append(store)
        return Client(store, name)

    def close(self) -> None:
        while self._open:
            store = self._open.pop()
            store.upkeep.stop(5.0)
            store.close()

    def reopened(self, workspace: str = "default") -> Client:
        """Close every store of this home and open one again."""
        self.close()
        return self.open(workspace)

    def rebuilt(self, workspace: str = "default") -> Client:
        """Delete the projections and open a store, which must then rebuild them."""
        self.close()
        for path in sorted((self.path / "projections").rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        return self.open(workspace)

    def lives(self, client: Client) -> Iterator[Client]:
        """Yield a client, then one of the store reopened, then one of the store rebuilt.

        Each closes the one before it.
        """
        yield client
        yield self.reopened()
        yield self.rebuilt()

    @property
    def segments(self) -> list[Path]:
        return sorted((self.path / "ledger" / "log").iterdir())

    @property
    def database(self) -> Path:
        generation = (self.path / "projections" / "CURRENT").read_text().strip()
        return self.path / "projections" / generation / "memory.db"

    def verify(self, known: Position | None = None) -> VerifyReport:
        return verify(self.path / "ledger", known)


@contextmanager
def home_at(path: Path) -> Iterator[Home]:
    """A home whose stores are closed after the block."""
    home = Home(path)
    try:
        yield home
    finally:
        home.close()


@contextmanager
def scratch_home() -> Iterator[Home]:
    """Yield a home on a disk in memory, for one example of a law; it is removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="laws-", dir=MEMORY_DISK))
    try:
        with home_at(folder / "home") as home:
            yield home
    finally:
        shutil.rmtree(folder)


def live_digest(client: Client) -> StateDigest:
    return client.store.reads.run(Call(), state_digest)


def replayed_digest(client: Client, database: Path) -> StateDigest:
    """Replay the ledger from zero into a new file, and digest what came of it."""
    ledger = client.store.ledger
    database.unlink(missing_ok=True)
    create_database(database)
    replay(ledger, database, ledger.position_at(), lambda _phase, _done, _total: None)
    connection = Connection(database)
    try:
        return state_digest(connection)
    finally:
        connection.close()
        database.unlink()


def flush_substrings(client: Client) -> None:
    """Index the trigrams that wait, as upkeep does once there are enough."""

    def flush(generation: Generation) -> None:
        flush_trigrams(generation.writer, 1_000_000)

    done = client.store.upkeep._committer.exclusively(flush, lock_timeout_s=5.0)
    assert done
