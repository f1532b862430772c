"""What the audits give back."""

from __future__ import annotations

from projections.audit_model import AuditEntry
from projections.redaction_model import Redaction
from server.results import Result


class AuditResult(Result, frozen=True, kw_only=True):
    """A page of who did what, when and why."""

    entries: tuple[AuditEntry, ...]
    returned_count: int
    has_more: bool
    next_cursor: str | None = None
    redactions: tuple[Redaction, ...] = ()
    """Of one memory: what was erased of it, when and by whom."""


class AuditExportResult(Result, frozen=True, kw_only=True):
    """What an audit bundle holds."""

    folder: str
    position: int
    """Ledger position that its checkpoint was signed at."""
    is_whole: bool
    records: int
    redacted_records: int
    """Records whose payload is erased."""
    public_key: str
    """To be given to whoever checks the bundle, by another way than the bundle."""
    earlier_position: int | None = None
    """Of the earlier checkpoint that it extends."""
