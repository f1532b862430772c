"""The audits: what was done to one memory, and who did what in a workspace."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ledger import Clock, Ledger, LedgerError, MemoryDeleted, Record
from projections.aliases import names_of
from projections.audit import (
    AuditFilters,
    AuditPage,
    find_entries,
)
from projections.audit_model import AuditEntry
from projections.connection import Connection
from projections.moment import last_until
from projections.queries import memory_rid, workspace_rid
from projections.redaction_model import Redaction
from projections.redactions import redactions_of
from server.audit_args import AuditArgs, AuditShowArgs
from server.audit_results import AuditResult
from server.commands import POSITION_MAX
from server.cursor import Cursor, decode_cursor, encode_cursor, list_id
from server.decision import position_said, read_range
from server.errors import InvalidArgumentsError, NotFoundError
from server.reads import ReadSide
from server.reply import gap_notes
from server.tool import Call


class Audits:
    """The audits of one workspace of an open store."""

    def __init__(
        self, ledger: Ledger, reads: ReadSide, *, clock: Clock, workspace: str, zone: str
    ) -> None:
        """Bind to the sides of the store.

        Args:
            ledger: holds what the tables do not.
            reads: runs the reads.
            clock: dates words like `yesterday`.
            workspace: name of the workspace that is looked at.
            zone: name of the time zone that dates in words are meant in.
        """
        self._ledger = ledger
        self._reads = reads
        self._clock = clock
        self._workspace = workspace
        self._zone = zone

    def history(self, args: AuditArgs, call: Call) -> AuditResult:
        """Tell the history of one memory.

        Raises:
            NotFoundError: there was never such a memory in this workspace.
        """

        def read(connection: Connection) -> tuple[AuditPage, list[Redaction]]:
            workspace = workspace_rid(connection, self._workspace)
            rid = memory_rid(connection, workspace, args.id)
            if rid is None:
                raise no_such_memory(args.id)
            filters = AuditFilters(workspace=workspace, memory=args.id)
            return self._find(connection, filters, args), redactions_of(connection, rid)

        page, redactions = self._reads.run(call, read)
        return self._result(page, args, redactions, call)

    def show(self, args: AuditShowArgs, call: Call) -> AuditResult:
        """Tell who did what in the workspace.

        Raises:
            NotFoundError: there was never such a memory in this workspace.
            InvalidArgumentsError: a date is none.
        """

        def read(connection: Connection) -> tuple[AuditPage, list[Redaction]]:
            rid = workspace_rid(connection, self._workspace)
            low, high = positions(
                connection, args.from_, args.to, now_us=self._clock.now_us(), zone=self._zone
            )
            filters = AuditFilters(
                workspace=rid,
                memory=args.memory,
                entity_names=names_of(connection, rid, args.entity) if args.entity else (),
                actor=args.actor or None,
                types=args.types,
                session_id=args.session,
                from_seq=low,
                to_seq=high,
            )
            redactions: list[Redaction] = []
            if args.memory is not None:
                memory = memory_rid(connection, rid, args.memory)
                if memory is None:
                    raise no_such_memory(args.memory)
                redactions = redactions_of(connection, memory)
            return self._find(connection, filters, args), redactions

        page, redactions = self._reads.run(call, read)
        return self._result(page, args, redactions, call)

    def _find(
        self, connection: Connection, filters: AuditFilters, args: AuditArgs | AuditShowArgs
    ) -> AuditPage:
        cursor = None if args.cursor is None else decode_cursor(args.cursor, args, tuple[int])
        return find_entries(
            connection,
            filters,
            after=None if cursor is None else int(cursor.after[0]),
            limit=args.limit,
            newest=not args.oldest_first,
        )

    def _result(
        self,
        page: AuditPage,
        args: AuditArgs | AuditShowArgs,
        redactions: Sequence[Redaction],
        call: Call,
    ) -> AuditResult:
        notes = [*gap_notes(self._reads.current(call).gaps)]
        entries = page.entries
        if page.deletions:
            try:
                records = self._ledger.records_at(page.deletions.values())
            except (LedgerError, OSError) as error:
                notes.append(f"reasons of deletions are left out: {error}")
            else:
                entries = tuple(
                    _with_reason(entry, records.get(page.deletions.get(entry.position, 0)))
                    for entry in entries
                )
        last = entries[-1].position if entries else 0
        return AuditResult(
            entries=entries,
            returned_count=len(entries),
            has_more=page.has_more,
            next_cursor=(
                encode_cursor(Cursor(list_id(args), 0, (last,))) if page.has_more else None
            ),
            redactions=tuple(redactions),
            notes=tuple(notes),
        )


def _with_reason(entry: AuditEntry, deletion: Record | None) -> AuditEntry:
    """Add the reason of a deletion, which only the ledger knows."""
    if deletion is None or not isinstance(deletion.payload, MemoryDeleted):
        return entry
    return msgspec.structs.replace(entry, reason=entry.reason or deletion.payload.reason)


def positions(
    connection: Connection, first: str | None, last: str | None, *, now_us: int, zone: str
) -> tuple[int, int]:
    """Return the ledger positions that two points mean, both included.

    The second is less than the first where nothing was done between them.

    Args:
        connection: in a read transaction.
        first: a position in digits, or a date or moment, of which all is meant.
        last: likewise.
        now_us: the present.
        zone: name of the time zone that dates in words are meant in.

    Raises:
        InvalidArgumentsError: a point is neither, or the last one lies before the first.
    """
    low, high = 1, POSITION_MAX
    begin_us, end_us = None, None
    if first is not None:
        low = _position("from", first)
        if low == 0:
            begin_us = read_range("from", first, now_us=now_us, zone=zone).from_us
            low = last_until(connection, begin_us - 1) + 1
    if last is not None:
        high = _position("to", last)
        if high == 0:
            end_us = read_range("to", last, now_us=now_us, zone=zone).to_us
            high = last_until(connection, end_us - 1)
    # A range of time in which nothing was done is no wrong order.
    if begin_us is None and end_us is None:
        is_backwards = high < low
    else:
        is_backwards = begin_us is not None and end_us is not None and end_us <= begin_us
    if is_backwards:
        raise InvalidArgumentsError(
            "`to` lies before `from`; nothing can have been done then.", details={"field": "to"}
        )
    return low, high


def _position(field: str, text: str) -> int:
    """Return the position that a text says; 0 if it says none."""
    position = position_said(text)
    if position is None:
        return 0
    if not 1 <= position <= POSITION_MAX:
        raise InvalidArgumentsError(
            f"`{field}` is no ledger position; accepted: 1 to {POSITION_MAX}, or a date.",
            details={"field": field},
        )
    return position


def no_such_memory(memory_id: str) -> NotFoundError:
    """Return the refusal of an id that no memory of the workspace ever had."""
    return NotFoundError(
        "There was never a memory with this id in this workspace. Ids come from memory_add and "
        "memory_search.",
        details={"id": memory_id},
    )
