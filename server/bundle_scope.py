"""Which records of a ledger an audit bundle shows.

Besides those that were asked for, a part of a ledger shows what makes it readable and complete in
itself: the records that name its agents and workspaces, and for each payload that is missing the
redaction that says so, with its reason and its receipt.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from collections.abc import Set as AbstractSet
from typing import Final

import msgspec

from ledger import ContentEvent, Header, MemoryRedacted, Record

NAMING: Final = ("agent_registered", "workspace_created")
OF_REDACTIONS: Final = ("redaction_explained", "redaction_completed")


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for: every condition that is given holds.

    Attributes:
        workspace: Id of a workspace; None for all.
        memory: Id of a memory.
        entity_names: Names of one entity.
        from_seq, to_seq: First and last position.
    """

    workspace: str | None = None
    memory: str | None = None
    entity_names: tuple[str, ...] = ()
    from_seq: int = 1
    to_seq: int

    def is_whole(self, size: int) -> bool:
        """Return whether it leaves out no record of a ledger of this size."""
        return self == Scope(to_seq=self.to_seq) and self.to_seq >= size


class Selection:
    """The records of a scope. It studies all records first, then says which of them are shown."""

    def __init__(
        self, scope: Scope, subjects: AbstractSet[str] | None, redacted: Container[int]
    ) -> None:
        """Begin with no record.

        Args:
            scope: what was asked for.
            subjects: ids of the memories about the entity that was asked for; None for no entity.
            redacted: positions of the records whose payload is erased or to be erased.
        """
        self.count = 0
        """Records of the scope itself."""
        self._scope = scope
        self._subjects = subjects
        self._redacted = redacted
        self._named: set[str] = set()
        self._missing: set[int] = set()
        self._accounts: set[int] = set()

    def study(self, record: Record) -> None:
        """Look at the next record."""
        header = record.header
        is_held = self._holds(header)
        if is_held:
            self.count += 1
            if record.payload is None or header.seq in self._redacted:
                self._missing.add(header.seq)
        payload = record.payload
        if isinstance(payload, MemoryRedacted):
            is_held |= any(target.seq in self._missing for target in payload.targets)
            if is_held:
                self._accounts.add(header.seq)
                self._named.add(payload.redaction)
        if is_held or (header.type in OF_REDACTIONS and header.sub in self._named):
            self._named |= {header.act, header.ws}

    def shows(self, header: Header) -> bool:
        """Return whether a record is shown, once all were studied."""
        return (
            self._holds(header)
            or header.seq in self._accounts
            or (header.sub in self._named and header.type in (*NAMING, *OF_REDACTIONS))
        )

    def _holds(self, header: Header) -> bool:
        scope = self._scope
        return (
            scope.from_seq <= header.seq <= scope.to_seq
            and scope.workspace in (None, header.ws)
            and scope.memory in (None, header.sub)
            and (self._subjects is None or header.sub in self._subjects)
        )


def subjects_about(
    records: Iterable[Record], scope: Scope, redacted: Container[int]
) -> frozenset[str]:
    """Return the ids of the memories that were about the scope's entity at any time."""
    names = frozenset(scope.entity_names)
    return frozenset(
        record.header.sub
        for record in records
        if isinstance(record.payload, ContentEvent)
        and record.payload.memory.entity_name in names
        and record.seq not in redacted
        and scope.workspace in (None, record.header.ws)
    )
