"""The audit export: chooses what a bundle shows, has it signed, and writes it.

Nothing that a redaction names ever leaves the store: payloads that are not erased yet are left out
as if they were, and if a redaction comes while a bundle is written, the bundle is written anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from ledger import (
    Checkpoint,
    Clock,
    Ledger,
    LedgerError,
    NoteError,
    Position,
    Record,
    SignedCheckpoint,
    Signer,
    create_checkpoint,
    ensure_signer,
    format_us,
    list_checkpoints,
    read_published,
)
from projections.aliases import names_of
from projections.connection import Connection
from projections.queries import memory_rid, workspace_rid
from projections.redactions import redacted_records
from server.audit import no_such_memory, positions
from server.audit_args import AuditExportArgs
from server.audit_results import AuditExportResult
from server.bundle import Plan, UnaccountedError, write_bundle
from server.bundle_scope import Scope, Selection, subjects_about
from server.copies import note_copy
from server.errors import (
    BusyError,
    DamagedError,
    FolderExistsError,
    InvalidArgumentsError,
    NotFoundError,
)
from server.reads import ReadSide
from server.refusal import refusal_of
from server.tool import Call
from server.version import VERSION

ATTEMPTS: Final = 3
"""Bundles that are written before it is given up: a redaction may come while one is written."""

EARLIER_MAX: Final = 64
"""Kept checkpoints, the newest, that a part can be compared with; of a given file it is all."""

PROGRESS_RECORDS: Final = 1_000


class AuditExports:
    """Writes audit bundles of one open store."""

    def __init__(
        self,
        ledger: Ledger,
        reads: ReadSide,
        *,
        clock: Clock,
        home: Path,
        key_file: Callable[[], Path],
        workspace: str,
        zone: str,
        lock_timeout_s: float,
    ) -> None:
        """Bind to the sides of the store.

        Args:
            ledger: is exported.
            reads: knows names and redactions.
            clock: dates the bundle.
            home: folder of the store, where it is noted that there is a bundle.
            key_file: names the file of the key that signs; made if it is not there.
            workspace: name of the workspace that parts are taken from.
            zone: name of the time zone that dates in words are meant in.
            lock_timeout_s: how long to wait for the ledger's lock, in seconds.

        """
        self._ledger = ledger
        self._reads = reads
        self._clock = clock
        self._home = home
        self._key_file = key_file
        self._workspace = workspace
        self._zone = zone
        self._lock_timeout_s = lock_timeout_s

    def export(self, args: AuditExportArgs, call: Call) -> AuditExportResult:
        """Write a bundle.

        Raises:
            UseCaseError: it was refused; nothing was written.
            OSError: the folder cannot be written; nothing is left of it.

        """
        target = Path(args.folder).absolute()
        if os.path.lexists(target):
            raise _exists(target)
        for attempt in range(ATTEMPTS):
            try:
                return self._export(args, target, call)
            except UnaccountedError as error:
                if attempt == ATTEMPTS - 1:
                    raise DamagedError(
                        f"The payload of record {error.seq} is missing and no redaction names it; "
                        "`mnemolog verify` tells more. Nothing was exported."
                    ) from error
            except _ChangedError as error:
                if attempt == ATTEMPTS - 1:
                    raise BusyError(
                        "Redactions came again and again while the bundle was written; nothing "
                        "was exported. Try again."
                    ) from error
            except FileExistsError as error:
                raise _exists(target) from error
            except NoteError as error:
                raise InvalidArgumentsError(
                    f"`checkpoint`: {error}.", details={"field": "checkpoint"}
                ) from error
            except LedgerError as error:
                raise refusal_of(error) from error
        raise AssertionError("an attempt ends")

    def _export(self, args: AuditExportArgs, target: Path, call: Call) -> AuditExportResult:
        signer = ensure_signer(self._ledger, self._key_file(), lock_timeout_s=self._lock_timeout_s)
        made = create_checkpoint(
            self._ledger,
            signer,
            lock_timeout_s=self._lock_timeout_s,
            progress=_progress(call, "signing the ledger for an audit"),
        )
        size = made.checkpoint.size
        asked = self._reads.run(call, lambda connection: self._asked(connection, args, size))
        earlier = self._earlier(args, signer, made.checkpoint)
        newest = max(earlier, key=lambda each: each.checkpoint.size, default=None)
        plan = Plan(
            checkpoint=made.checkpoint,
            note=made.data,
            key=signer.key.text,
            earlier=None if newest is None else newest.data,
            anchors={each.checkpoint.size: each.checkpoint.root for each in earlier},
            selection=self._selection(asked, size, call),
            redacted=asked.redacted,
            facts={
                "program": f"mnemolog {VERSION}",
                "origin": made.checkpoint.origin,
                "made_at": format_us(self._clock.now_us()),
                "earlier_checkpoint": None if newest is None else newest.checkpoint.size,
                "scope": asked.said,
            },
        )

        def before_it_is_named() -> None:
            if self._reads.run(call, redacted_records) != asked.redacted:
                raise _ChangedError
            note_copy(self._home, kind="audit", path=target, position=size, clock=self._clock)

        tick = _progress(call, "writing the records")
        summary = write_bundle(
            self._ledger,
            target,
            plan,
            tick=lambda seq: tick(seq, size) if seq % PROGRESS_RECORDS == 0 else None,
            before_it_is_named=before_it_is_named,
        )
        return AuditExportResult(
            folder=str(target),
            position=size,
            is_whole=plan.selection is None,
            records=summary["records"],
            redacted_records=summary["redacted_records"],
            public_key=signer.key.text,
            earlier_position=summary["earlier_checkpoint"],
        )

    def _asked(self, connection: Connection, args: AuditExportArgs, size: int) -> _Asked:
        """Understand what is asked for, in the workspace as it is now."""
        rid = workspace_rid(connection, self._workspace)
        low, high = positions(
            connection, args.from_, args.to, now_us=self._clock.now_us(), zone=self._zone
        )
        names = () if args.entity is None else names_of(connection, rid, args.entity)
        is_of_workspace = args.only_workspace or args.memory is not None or args.entity is not None
        workspace_id = connection.value("SELECT id FROM workspaces WHERE rid = ?", (rid,))
        if is_of_workspace and workspace_id is None:
            raise NotFoundError("Nothing was ever stored in this workspace.")
        if args.memory is not None and memory_rid(connection, rid, args.memory) is None:
            raise no_such_memory(args.memory)
        said = {
            "workspace": self._workspace if is_of_workspace else None,
            "memory": args.memory,
            "entity": args.entity,
            "entity_names": names or None,
            "from": low,
            "to": min(high, size),
        }
        return _Asked(
            scope=Scope(
                workspace=workspace_id if is_of_workspace else None,
                memory=args.memory,
                entity_names=names,
                from_seq=low,
                to_seq=min(high, size),
            ),
            said={name: value for name, value in said.items() if value is not None},
            redacted=redacted_records(connection),
        )

    def _selection(self, asked: _Asked, size: int, call: Call) -> Selection | None:
        """Choose the records of a part; None for the whole.

        Raises:
            NotFoundError: no record is of it.
        """
        scope = asked.scope
        if scope.is_whole(size):
            return None
        subjects = None
        if scope.entity_names:
            records = self._records(size, call, "looking for the entity")
            subjects = subjects_about(records, scope, asked.redacted)
        selection = Selection(scope, subjects, asked.redacted)
        for record in self._records(size, call, "choosing the records"):
            selection.study(record)
        if not selection.count:
            raise NotFoundError(
                "The ledger holds no record of this; nothing was exported.",
                details=asked.said,
            )
        return selection

    def _records(self, size: int, call: Call, message: str) -> Iterator[Record]:
        progress = _progress(call, message)
        for record in self._ledger.read(Position.start, size):
            if record.seq % PROGRESS_RECORDS == 0:
                progress(record.seq, size)
            yield record

    def _earlier(
        self, args: AuditExportArgs, signer: Signer, checkpoint: Checkpoint
    ) -> list[SignedCheckpoint]:
        """Return earlier checkpoints that the bundle can be compared with.

        Raises:
            NoteError: the file that was given holds none of this ledger and key.
        """
        if args.checkpoint is not None:
            path = Path(args.checkpoint)
            notes = read_published(path, checkpoint.origin, signer.key)
        else:
            notes = [
                each
                for each in list_checkpoints(self._ledger)
                if each.checkpoint.origin == checkpoint.origin
                and signer.key.judge(each.note) == "good"
            ]
        known = {
            each.checkpoint.size: each
            for each in notes
            if each.checkpoint.size < checkpoint.size or args.checkpoint is not None
        }
        sizes = sorted(known)
        if args.checkpoint is None:
            sizes = sizes[-EARLIER_MAX:]
        return [known[size] for size in sizes]


class _ChangedError(Exception):
    """A redaction came while a bundle was written."""


class _Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for, understood."""

    scope: Scope
    said: dict[str, Any]
    redacted: dict[int, str]


def _progress(call: Call, message: str) -> Callable[[int, int], None]:
    def progress(done: int, total: int) -> None:
        call.check()
        call.progress(done, total, message)

    return progress


def _exists(target: Path) -> FolderExistsError:
    return FolderExistsError(
        f"{target} exists; name a new folder. Nothing was written.", details={"field": "folder"}
    )
