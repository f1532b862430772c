"""A store as an object of a program: the use cases without a protocol.

    from server import AddArgs, SearchArgs, open_store

    with open_store("/path/of/a/home") as memory:
        memory.add(AddArgs(content="Deploys go out on Tuesdays", layer="procedural"))
        for found in memory.search(SearchArgs(query="deploy day")).memories:
            print(found.id, found.content)

Arguments and results are the Structs that the tools take and give; arguments are checked here as
they are there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

from server.audit_args import AuditArgs, AuditExportArgs, AuditShowArgs
from server.audit_results import AuditExportResult, AuditResult
from server.bootstrap import Store
from server.commands import (
    AddArgs,
    AddManyArgs,
    AliasArgs,
    AppendArgs,
    Args,
    DeleteArgs,
    DeleteManyArgs,
    ExportArgs,
    GetArgs,
    HealthArgs,
    InspectArgs,
    ListArgs,
    PatchArgs,
    SearchArgs,
    SessionEndArgs,
    SessionListArgs,
    SessionStartArgs,
    UndoArgs,
    UpdateArgs,
)
from server.config import Config, read_config
from server.diff import DiffArgs, DiffResult
from server.errors import InvalidArgumentsError
from server.redaction_args import RedactArgs
from server.results import (
    AddManyResult,
    AddResult,
    AliasResult,
    AppendResult,
    DeleteManyResult,
    DeleteResult,
    ExportResult,
    GetResult,
    HealthResult,
    InspectResult,
    ListResult,
    PatchResult,
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

UPKEEP_STOP_S = 2.0
"""How long a task of the upkeep may hold up closing."""

_SURROGATE = re.compile("[\ud800-\udfff]")

A = TypeVar("A", bound=Args)
R = TypeVar("R")


class MemoryStore:
    """An open store. Safe to use from several threads; belongs to the process that opened it.

    Every method raises a `UseCaseError` if it refuses (see `server.errors`); unless that says
    otherwise nothing was written. A write that has returned is on disk.
    """

    def __init__(self, config: Config, *, actor: str, log: Callable[[str], None]) -> None:
        """Use `open_store`."""
        self._actor = actor
        self._store = Store(config, log=log)
        self._store.upkeep.start()

    def __enter__(self) -> Self:
        """Return the store."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the store."""
        self.close()

    def close(self) -> None:
        """Close the store; a second call does nothing."""
        self._store.upkeep.stop(UPKEEP_STOP_S)
        self._store.close()

    @property
    def is_read_only(self) -> bool:
        """Whether this process can only read."""
        return self._store.is_read_only

    def add(self, args: AddArgs) -> AddResult:
        """Store a memory."""
        return self._do(self._store.app.add, args)

    def add_many(self, args: AddManyArgs) -> AddManyResult:
        """Store memories, each on its own: what is refused stops no other."""
        return self._do(self._store.app.add_many, args)

    def update(self, args: UpdateArgs) -> UpdateResult:
        """Change a memory in place, or supersede it."""
        return self._do(self._store.app.update, args)

    def patch(self, args: PatchArgs) -> PatchResult:
        """Replace pieces of a memory's text."""
        return self._do(self._store.app.patch, args)

    def append(self, args: AppendArgs) -> AppendResult:
        """Add text at the end of a memory's text."""
        return self._do(self._store.app.append, args)

    def delete(self, args: DeleteArgs) -> DeleteResult:
        """Delete a memory."""
        return self._do(self._store.app.delete, args)

    def delete_many(self, args: DeleteManyArgs) -> DeleteManyResult:
        """Delete the memories that satisfy a filter."""
        return self._do(self._store.app.delete_many, args)

    def undo(self, args: UndoArgs) -> UndoResult:
        """Undo an operation."""
        return self._do(self._store.app.undo, args)

    def redact(self, args: RedactArgs) -> RedactResult:
        """Erase what was stored for good, or only say what would be erased."""
        return self._do(self._store.app.redact, args)

    def search(self, args: SearchArgs) -> SearchResult:
        """Find memories by words, or by a piece of their text."""
        return self._do(self._store.app.search, args)

    def list(self, args: ListArgs) -> ListResult:
        """List the memories that satisfy filters."""
        return self._do(self._store.app.list, args)

    def get(self, args: GetArgs) -> GetResult:
        """Read memories by their ids."""
        return self._do(self._store.app.get, args)

    def inspect(self, args: InspectArgs) -> InspectResult:
        """Look at one memory, or count them."""
        return self._do(self._store.app.inspect, args)

    def export(self, args: ExportArgs) -> ExportResult:
        """Write memories as text, as many as fit one reply."""
        return self._do(self._store.app.export, args)

    def export_whole(self, args: ExportArgs) -> Iterator[str]:
        """Yield an export of every memory that satisfies the filters, whatever `limit` says."""
        return self._do(self._store.app.export_whole, args)

    def audit(self, args: AuditArgs) -> AuditResult:
        """Tell the history of one memory."""
        return self._do(self._store.app.audit, args)

    def audit_show(self, args: AuditShowArgs) -> AuditResult:
        """Tell who did what in the workspace."""
        return self._do(self._store.app.audit_show, args)

    def audit_export(self, args: AuditExportArgs) -> AuditExportResult:
        """Write a bundle of the ledger, or of a part of it, that a stranger can check."""
        return self._do(self._store.app.audit_export, args)

    def diff(self, args: DiffArgs) -> DiffResult:
        """Say what changed between two moments."""
        return self._do(self._store.app.diff, args)

    def health(self, args: HealthArgs) -> HealthResult:
        """Examine the store; delete what has expired, if asked to."""
        return self._do(self._store.app.health, args)

    def session_start(self, args: SessionStartArgs) -> SessionStartResult:
        """Begin a session."""
        return self._do(self._store.app.session_start, args)

    def session_end(self, args: SessionEndArgs) -> SessionEndResult:
        """End a session."""
        return self._do(self._store.app.session_end, args)

    def session_list(self, args: SessionListArgs) -> SessionListResult:
        """List sessions, newest first."""
        return self._do(self._store.app.session_list, args)

    def alias(self, args: AliasArgs) -> AliasResult:
        """Add, remove or list further names of entities."""
        return self._do(self._store.app.alias, args)

    def _do(self, use_case: Callable[[A, Call], R], args: A) -> R:
        """Check arguments, which a Struct's constructor does not, and run a use case."""
        try:
            given = msgspec.to_builtins(args)
        except (TypeError, RecursionError) as error:
            raise InvalidArgumentsError(f"The arguments are not JSON: {error}.") from error
        whole = _whole(given)
        call = Call(actor_name=self._actor, repaired=whole != given)
        return use_case(convert(whole, type(args)), call)


def _whole(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return JSON with each lone surrogate replaced by U+FFFD, as every way in does it."""
    match value:
        case str():
            return _SURROGATE.sub("\ufffd", value)
        case list() | tuple():
            # What was a tuple stays one, or it would count as repaired.
            return type(value)(_whole(item) for item in value)
        case dict():
            return {_whole(name): _whole(item) for name, item in value.items()}
        case _:
            return value


def open_store(
    home: str | os.PathLike[str] | None = None,
    *,
    workspace: str | None = None,
    actor: str = "program",
    log: Callable[[str], None] = lambda _: None,
) -> MemoryStore:
    """Open a store, creating what is not there.

    Args:
        home: folder of the store; else what the settings say (MNEMOLOG_HOME and the rest).
        workspace: workspace to read and write; else what the settings say.
        actor: who the history names for what is written, 1 to 200 characters.
        log: takes what an operator should read, a text each.

    Raises:
        ConfigError: a setting is not accepted.
        StoreError: the store cannot be opened; the message says why.

    """
    given = {"MNEMOLOG_HOME": home, "MNEMOLOG_WORKSPACE": workspace}
    overrides = {name: os.fspath(value) for name, value in given.items() if value is not None}
    return MemoryStore(read_config(overrides=overrides), actor=actor, log=log)
