"""Suggestions for what is being typed: names that the store knows, and where its reads stand."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Literal

from ledger import Clock
from projections.checkpoint import read_checkpoint
from projections.connection import Connection
from projections.names import Names, entity_names, scopes
from projections.queries import workspace_rid
from server.completion import COMPLETION_VALUES_MAX, Completion
from server.reads import ReadSide
from server.tool import Call

Kind = Literal["entity", "scope"]
"""Entities' names and aliases, or scopes."""

_LOOKS: Mapping[Kind, Callable[[Connection, int | None], Names]] = {
    "entity": entity_names,
    "scope": scopes,
}


class Suggestions:
    """Completes names of one workspace.

    The names are read anew only if the store has moved since: some tenths of a second for 100,000
    memories, which somebody who types is ready to wait after a write.
    """

    def __init__(self, reads: ReadSide, *, clock: Clock, workspace: str) -> None:
        """Bind to the read side and a workspace.

        Args:
            reads: runs the reads.
            clock: says which memories have expired.
            workspace: name of the workspace.

        """
        self._reads = reads
        self._clock = clock
        self._workspace = workspace
        self._lock = threading.Lock()
        self._known: dict[Kind, tuple[int, Names]] = {}

    def position(self, call: Call) -> int:
        """Return the ledger position that reads show.

        Raises:
            UseCaseError: the store cannot be read now.

        """
        return self._reads.run(call, _position)

    def complete(self, kind: Kind, prefix: str, call: Call) -> Completion:
        """Return the names of a kind that begin with a prefix, letter case aside.

        Raises:
            UseCaseError: the store cannot be read now.

        """
        names = self._reads.run(call, lambda connection: self._names(connection, kind))
        found = names.beginning_with(prefix, self._clock.now_us())
        return Completion(values=tuple(found[:COMPLETION_VALUES_MAX]), total=len(found))

    def forget(self) -> None:
        """Drop the names that are kept in memory."""
        with self._lock:
            self._known.clear()

    def _names(self, connection: Connection, kind: Kind) -> Names:
        position = _position(connection)
        with self._lock:
            known = self._known.get(kind)
        if known is not None and known[0] == position:
            return known[1]
        names = _LOOKS[kind](connection, workspace_rid(connection, self._workspace))
        with self._lock:
            self._known[kind] = (position, names)
        return names


def _position(connection: Connection) -> int:
    checkpoint = read_checkpoint(connection)
    return 0 if checkpoint is None else checkpoint.seq
