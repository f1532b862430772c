"""Examinations of a store: its ledger, its projections and its disk."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ledger import Ledger, LedgerBehindError, LedgerDamagedError, LedgerError, Position
from projections.checkpoint import read_checkpoint
from projections.connection import Connection
from projections.generation import Generation
from projections.health import MemoryHealth
from projections.inspection import GenerationsLook
from projections.redactions import unfinished
from server.doctor import (
    FREE_BYTES_MIN,
    WAL_BYTES_WARN,
    check_clock,
    check_holders,
    check_mark,
    check_permissions,
    check_temporary,
    check_unfinished,
)
from server.findings import Finding
from server.results import (
    DiskHealth,
    HealthResult,
    HealthStatistics,
    LedgerHealth,
    ProjectionsHealth,
)

ISSUES_WARNING_MAX = 2
"""Issues up to which a store is not yet called degraded; the first seed's figure."""


class StoreHealth(msgspec.Struct, frozen=True, kw_only=True):
    """What was found of the store, whatever is in it."""

    ledger: LedgerHealth
    is_put_back: bool
    """Whether the ledger is older than what the projections hold."""
    projections: ProjectionsHealth
    disk: DiskHealth
    findings: tuple[Finding, ...] = ()
    """What the doctor found that the fields above do not say: warnings and errors."""


def examine(
    ledger: Ledger, generation: Generation, connection: Connection, *, now_us: int
) -> StoreHealth:
    """Look at a store; call it in a read transaction of the generation."""
    checkpoint = read_checkpoint(connection)
    sizes = [path.stat().st_size for path in _files(ledger.layout.log)]
    usage = shutil.disk_usage(ledger.layout.root)
    refusal = _refusal(ledger, checkpoint)
    return StoreHealth(
        ledger=LedgerHealth(
            position=0 if checkpoint is None else checkpoint.seq,
            files=len(sizes),
            size_bytes=sum(sizes),
            quarantined_files=len(_files(ledger.layout.quarantine)),
            damaged_parts=len(generation.gaps) or int(isinstance(refusal, LedgerDamagedError)),
            read_only=ledger.is_read_only,
        ),
        is_put_back=isinstance(refusal, LedgerBehindError),
        projections=ProjectionsHealth(
            generation=generation.name,
            is_behind=checkpoint is None or ledger.has_more(checkpoint),
            size_bytes=connection.database_bytes(),
            wal_bytes=generation.wal_bytes(),
            trigrams_pending=connection.integer("SELECT count(*) FROM trigrams_pending") or 0,
        ),
        disk=DiskHealth(free_bytes=usage.free, total_bytes=usage.total),
        findings=tuple(
            found
            for found in _doctors(ledger, checkpoint, connection, now_us)
            if found.level in ("warning", "error")
        ),
    )


def _doctors(
    ledger: Ledger, end: Position | None, connection: Connection, now_us: int
) -> Iterator[Finding]:
    home = ledger.layout.root.parent
    look = GenerationsLook(redactions=len(unfinished(connection)))
    yield from check_mark(ledger.layout.lock)
    yield from check_clock(ledger, end, now_us)
    yield from check_holders(home, look)
    yield from check_unfinished(ledger, look)
    yield from check_permissions(home)
    yield from check_temporary()


def diagnosis(
    memories: MemoryHealth, store: StoreHealth, statistics: HealthStatistics
) -> HealthResult:
    """Say what is not as it should be, and how bad that is."""
    issues, is_grave = _issues(memories, store)
    status = "healthy"
    if issues:
        is_degraded = is_grave or len(issues) > ISSUES_WARNING_MAX
        status = "degraded" if is_degraded else "warning"
    return HealthResult(
        status=status,
        issues=issues,
        stats=statistics,
        expired=memories.expired,
        expired_count=memories.expired_count,
        orphaned_chains=memories.orphans,
        looped_ids=memories.loops,
        stale_count=memories.stale_count,
        low_confidence_count=memories.low_confidence_count,
        ledger=store.ledger,
        projections=store.projections,
        disk=store.disk,
    )


def _issues(memories: MemoryHealth, store: StoreHealth) -> tuple[tuple[str, ...], bool]:
    """Return what is to be mended, the grave things first, and whether there are any of those."""
    ledger, projections = store.ledger, store.projections
    grave = [
        (
            ledger.damaged_parts,
            (
                f"{ledger.damaged_parts} parts of the ledger are damaged and nothing can be "
                "written; `mnemolog verify` names them"
            ),
        ),
        (
            store.is_put_back,
            (
                "the ledger is older than what the projections hold, or another one, and nothing "
                "can be written; `mnemolog verify` tells more"
            ),
        ),
        (
            store.disk.free_bytes < FREE_BYTES_MIN,
            f"the disk has {store.disk.free_bytes >> 20} MiB left; free some space",
        ),
    ]
    minor = [
        (ledger.read_only, "the store may only be read by this process"),
        (
            ledger.quarantined_files,
            (
                f"{ledger.quarantined_files} unfinished ends of the ledger were set aside in "
                "ledger/quarantine; they were never acknowledged"
            ),
        ),
        (
            projections.is_behind,
            "the projections lack events of the ledger; the next write applies them",
        ),
        (
            projections.wal_bytes > WAL_BYTES_WARN,
            (
                f"the write-ahead log has {projections.wal_bytes >> 20} MiB; some process keeps a "
                "read open"
            ),
        ),
        (
            memories.expired_count,
            f"{memories.expired_count} expired memories wait for a cleanup",
        ),
        (memories.orphans, f"{len(memories.orphans)} memories supersede one that is not there"),
        (memories.loops, f"{len(memories.loops)} memories stand in chains without a newest one"),
        (
            memories.stale_count,
            f"{memories.stale_count} memories were not found or read for 30 days",
        ),
        (
            memories.low_confidence_count,
            f"{memories.low_confidence_count} memories have a confidence below 0.3",
        ),
    ]
    found = [(f"{each.text}; {each.remedy}", each.level == "error") for each in store.findings]
    grave += [(True, text) for text, is_error in found if is_error]
    minor += [(True, text) for text, is_error in found if not is_error]
    issues = tuple(text for is_so, text in (*grave, *minor) if is_so)
    return issues, any(is_so for is_so, _ in grave)


def _refusal(ledger: Ledger, known: Position | None) -> LedgerError | None:
    """Return why a writer would be refused, as far as that can be told without waiting for others.

    Projections that were built before the damage know nothing of it.
    """
    try:
        with ledger.lock(0) as writer:
            for _ in writer.catch_up(known or Position.start):
                pass
    except LedgerError as error:
        return error
    return None


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []
