"""What can go wrong with a ledger, as one tree.

    LedgerError
    ├── LedgerNotFoundError        there is no ledger at that path
    ├── LedgerUnreadableError      it is there but may not be looked at
    ├── LedgerFormatError          it is of a newer or a foreign format
    ├── LedgerDamagedError         its bytes are not what was written
    ├── LedgerBehindError          it is shorter or other than what the caller has already seen
    ├── LedgerReadOnlyError        nothing may be appended at present
    ├── LedgerWriteError           an append failed; `outcome` says what became of it
    ├── LedgerForkedError          the object was made by another process
    ├── LockTimeoutError           another writer kept the lock past the deadline
    ├── UnknownEventError          an event type or version this program does not know
    ├── BackupRefusedError         a copy must not be made there, or put back there
    ├── BackupDamagedError         a copy is not what it should be; each problem is named
    ├── RedactionRefusedError      a record that was to be erased may not be, or is not there
    ├── RecordTooLargeError        one record would pass the limit
    ├── NoteError                  text that is not a signed note, or not a key (also a ValueError)
    ├── InvalidPayloadError        a payload that JSON cannot hold unchanged (also a ValueError)
    └── InvalidInstantError        text that is not an instant (also a ValueError)

Facts are attributes; no caller needs to parse a message.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

_PROBLEMS_SHOWN = 3

WriteReason = Literal["disk_full", "file_too_large", "read_only", "no_locks", "io_error"]
"""Why bytes could not be made durable; "no_locks": the file system knows no flock."""

WriteOutcome = Literal["not_written", "unknown"]
"""What became of a group whose append failed: surely absent, or to be found out by a retry."""


class LedgerError(Exception):
    """Base of everything this package raises on purpose."""


class LedgerNotFoundError(LedgerError):
    """There is no ledger at the path."""

    def __init__(self, path: Path) -> None:
        """Keep the path that was looked at."""
        super().__init__(f"there is no ledger at {path}")
        self.path = path


class LedgerPutAsideError(LedgerError):
    """There is no ledger at the path, but one that a restore has put aside.

    A restore was cut short between two renames, on a file system that cannot exchange two names.
    To begin an empty ledger would hide it.
    """

    def __init__(self, path: Path, aside: str) -> None:
        """Keep the path that was looked at and the name of the folder beside it."""
        super().__init__(
            f"there is no ledger at {path}, but a restore has put {aside} aside: repeat the "
            f"restore, or give that folder the name {path.name}"
        )
        self.path = path
        self.aside = aside


class LedgerUnreadableError(LedgerError):
    """The ledger is there but the system does not let this process look at it."""

    def __init__(self, path: Path, reason: str) -> None:
        """Keep the path and the system's reason."""
        super().__init__(f"the ledger at {path} cannot be read: {reason}")
        self.path = path
        self.reason = reason


class LedgerFormatError(LedgerError):
    """The ledger is of a format this program does not speak."""

    def __init__(self, path: Path, *, found: str, supported: str) -> None:
        """Keep what was found and what would have been understood."""
        super().__init__(f"the ledger at {path} has format {found}; this program knows {supported}")
        self.path = path
        self.found = found
        self.supported = supported


class LedgerDamagedError(LedgerError):
    """Bytes of the ledger are not what was written, and they are not a torn tail.

    Attributes:
        segment: file name, relative to the ledger directory.
        seq: the record that should stand there, 0 where none applies.
        offset: bytes from the start of the segment's raw content.
        reason: one word of the rule that was broken, with details behind a colon.
        remedy: what a person can do about it.
    """

    def __init__(self, *, segment: str, seq: int, offset: int, reason: str) -> None:
        """Keep where the damage is and what it is."""
        remedy = (
            f"restore {segment} from a backup; its digests prove the copy. "
            "Undamaged records stay readable and nothing has been changed."
        )
        super().__init__(
            f"the ledger is damaged in {segment} at record {seq}, byte {offset}: {reason}. {remedy}"
        )
        self.segment = segment
        self.seq = seq
        self.offset = offset
        self.reason = reason
        self.remedy = remedy


class LedgerBehindError(LedgerError):
    """The ledger is shorter or other than the position the caller has already seen.

    Attributes:
        known_seq: the record the caller knows.
        end_seq: the last record the ledger holds.
        reason: "shorter" or "other".
    """

    def __init__(
        self, *, known_seq: int, end_seq: int, reason: Literal["shorter", "other"]
    ) -> None:
        """Keep both ends."""
        super().__init__(
            f"the ledger is {reason} than what is known of it: record {known_seq} was seen, "
            f"the ledger now ends at {end_seq}. It may have been restored from an older copy; "
            "nothing is written until that is settled."
        )
        self.known_seq = known_seq
        self.end_seq = end_seq
        self.reason = reason


class PublishedBehindError(LedgerBehindError):
    """A file outside holds a checkpoint that the ledger does not extend."""

    def __init__(self, path: Path, behind: LedgerBehindError) -> None:
        """Keep the file and what was found."""
        super().__init__(known_seq=behind.known_seq, end_seq=behind.end_seq, reason=behind.reason)
        text = (
            f"{path} holds a checkpoint over {behind.known_seq} records that this ledger does not "
            f"extend: it is {behind.reason}, and ends at {behind.end_seq}. The file is as it was. "
            "If an older copy was put back on purpose, publish to a new file and keep this one: it "
            f"proves what there was. If not, `mnemolog verify --against {path}` says more."
        )
        self.args = (text,)
        self.path = path


class LedgerReadOnlyError(LedgerError):
    """Nothing can be appended now; reading goes on."""

    def __init__(self, reason: WriteReason) -> None:
        """Keep the reason of the last failed attempt to become writable."""
        super().__init__(f"the ledger is read-only at present ({reason})")
        self.reason = reason


class LedgerWriteError(LedgerError):
    """An append, or another change of the ledger or of a copy, could not be made durable.

    Attributes:
        outcome: "not_written": the events are surely not in the ledger. "unknown": they may be;
            a retry with the same idempotency key finds out.
        reason: what the system said.
    """

    def __init__(self, *, outcome: WriteOutcome, reason: WriteReason) -> None:
        """Keep what became of the group and why."""
        super().__init__(f"the write failed ({reason}); outcome: {outcome}")
        self.outcome = outcome
        self.reason = reason


class LedgerForkedError(LedgerError):
    """The object was made before a fork and would share its lock with the parent."""

    def __init__(self) -> None:
        """Say what to do instead."""
        super().__init__("this ledger was opened by another process; open it again after a fork")


class LockTimeoutError(LedgerError):
    """Another writer kept the lock until the deadline."""

    def __init__(self, timeout_s: float) -> None:
        """Keep the time that was waited."""
        super().__init__(f"the ledger was locked by another writer for {timeout_s:g} s")
        self.timeout_s = timeout_s


class UnknownEventError(LedgerError):
    """A record holds an event type or version that this program does not know."""

    def __init__(self, *, name: str, version: int, seq: int) -> None:
        """Keep the event and its place."""
        super().__init__(
            f"record {seq} holds event {name} v{version}, which this program does not know; "
            "a newer mnemolog wrote it"
        )
        self.name = name
        self.version = version
        self.seq = seq


BackupRefusal = Literal["target_exists", "inside_ledger", "ledger_exists"]
"""Why a copy is not made or put back: something is at the target already; the target lies inside
the ledger that is to be copied; the home has a ledger and it was not said that it goes."""


class BackupRefusedError(LedgerError):
    """A copy must not be made at the path, or put back there.

    Attributes:
        path: the target.
        reason: a word of `BackupRefusal`.
    """

    def __init__(self, path: Path, *, reason: BackupRefusal) -> None:
        """Keep where, and why."""
        said = {
            "target_exists": "something is there already; name a folder that does not exist",
            "inside_ledger": "a backup cannot lie inside the ledger that it is of",
            "ledger_exists": "the home has a ledger; it is put aside only if that is asked for",
        }
        super().__init__(f"{path}: {said[reason]}; nothing was written")
        self.path = path
        self.reason = reason


class FoundProblem(Protocol):
    """What a verification found wrong; `ledger.verify.Problem` is it."""

    @property
    def kind(self) -> str:
        """A stable word."""

    @property
    def segment(self) -> str:
        """The file."""

    @property
    def seq(self) -> int:
        """The record."""

    @property
    def detail(self) -> str:
        """What was found."""


class BackupDamagedError(LedgerError):
    """A ledger that was to be copied or put back is not what was written.

    Attributes:
        path: its folder.
        problems: what is wrong, each as `kind in file at record seq: what was found`.
    """

    def __init__(self, path: Path, problems: Sequence[FoundProblem]) -> None:
        """Keep where and what; the message names the first problems."""
        self.path = path
        self.problems = tuple(
            f"{each.kind} in {each.segment} at record {each.seq}: {each.detail}"
            for each in problems
        )
        shown = "; ".join(self.problems[:_PROBLEMS_SHOWN])
        more = len(self.problems) - _PROBLEMS_SHOWN
        super().__init__(
            f"the ledger at {path} is damaged: {shown}"
            + (f"; and {more} more" if more > 0 else "")
            + ". `mnemolog verify` lists everything"
        )


RedactionRefusal = Literal["unknown", "other", "kept"]
"""Why a record is not erased: there is none at that position; there is another one than was meant;
its type is one that is kept for ever."""


class RedactionRefusedError(LedgerError):
    """A record that was to be erased may not be, or is not the one that was meant.

    Attributes:
        seq: its position.
        reason: a word of `RedactionRefusal`.
        found: the digest that stands there ("other"), the event's stored name ("kept"), or empty.
    """

    def __init__(self, *, seq: int, reason: RedactionRefusal, found: str = "") -> None:
        """Keep the position, why, and what was found there."""
        said = {
            "unknown": "the ledger holds no such record",
            "other": f"its digest is {found}, which is not the one that was given",
            "kept": f"a payload of {found} is never erased",
        }
        super().__init__(f"record {seq} is not erased: {said[reason]}; nothing has been changed")
        self.seq = seq
        self.reason = reason
        self.found = found


class RecordTooLargeError(LedgerError):
    """One record would be longer than the format allows."""

    def __init__(self, *, size: int, limit: int) -> None:
        """Keep both numbers, in bytes."""
        super().__init__(f"a record of {size} bytes passes the limit of {limit}")
        self.size = size
        self.limit = limit


class NoteError(LedgerError, ValueError):
    """Bytes that are not a signed note, not a checkpoint, or not a key."""


class InvalidPayloadError(LedgerError, ValueError):
    """A payload would not come back from JSON as it was given."""


class InvalidInstantError(LedgerError, ValueError):
    """Text that is not an instant or a date."""
