"""Facts as they would be if some operations had been undone, for a trial that writes nothing."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import itemgetter

from ledger import AliasAdded, AliasRemoved, AliasState, NewEvent
from projections.connection import Connection
from projections.facts import Facts, StandingAlias, Touched, not_undone

_BATCH = itemgetter(0)


class Supposition(Facts):
    """Rows of one workspace, less the operations that are supposed to be undone.

    It knows what decides whether an operation can be undone: which later operations still count,
    and which names are taken. The states of memories are those of the rows.
    """

    def __init__(self, connection: Connection, workspace: int | None) -> None:
        """Bind to a connection in a read transaction; nothing is supposed yet."""
        super().__init__(connection, workspace)
        self._counting: dict[int, list[tuple[int, int | None]]] = {}
        """Subject -> its operations but the first, and what each undoes, oldest first; without
        those that are supposed to be undone."""
        self._aliases: dict[str, AliasState | None] = {}
        """Aliases that an undo would have put back (their state) or removed (None)."""

    def suppose_undone(
        self, position: int, touched: Sequence[Touched], events: Sequence[NewEvent]
    ) -> None:
        """Suppose that an operation is undone.

        Args:
            position: of the operation, on which nothing later counts.
            touched: what it touched.
            events: what would undo it.

        """
        for subject in touched:
            counting = self._counting_on(subject.now.rid)
            place = bisect_left(counting, position, key=_BATCH)
            # Its undo would take it away, and whatever it had undone would count again.
            del counting[place : place + 1]
        for event in events:
            if isinstance(event.payload, AliasAdded):
                self._aliases[event.subject] = event.payload.alias
            elif isinstance(event.payload, AliasRemoved):
                self._aliases[event.subject] = None

    def alias(self, name: str) -> StandingAlias | None:
        """Look up what a name would be an alias of."""
        for alias_id, state in self._aliases.items():
            if state is not None and state.name == name:
                return StandingAlias(id=alias_id, rid=0, last_seq=0, state=state)
        found = super().alias(name)
        return None if found is None or found.id in self._aliases else found

    def _later(self, rid: int, first_seq: int) -> tuple[int, ...]:
        counting = self._counting_on(rid)
        return not_undone(counting[bisect_right(counting, first_seq, key=_BATCH) :])

    def _counting_on(self, rid: int) -> list[tuple[int, int | None]]:
        if rid not in self._counting:
            self._counting[rid] = self._operations_after(rid, rid)
        return self._counting[rid]
