"""The redaction use case: what is to go is decided, and then erased until no file holds it.

The intent is durable first, as one operation; from then on nothing is found or shown. What comes
after it only takes bytes off the disk, in steps that may be repeated: ledger, projections, activity
log, search, receipt. Whoever is killed between two of them leaves the rest to the next upkeep.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from ledger import (
    Clock,
    ErasedRecord,
    Ledger,
    LedgerError,
    LedgerWriteError,
    LockTimeoutError,
    Record,
    RedactionList,
    Redactor,
    erase_aside,
    outstanding,
)
from projections.activity import forget_queries
from projections.connection import STORAGE_ERRORS, Connection
from projections.errors import ActivityUnavailableError, PastBusyError
from projections.facts import Facts
from projections.generation import Generation
from projections.past import erase_past
from projections.queries import workspace_rid
from projections.redactions import contents_at, redacted_records, targets_of, unfinished
from projections.snippet import snippet
from projections.subjects import ids_at
from projections.token_erasing import TokenErasing
from server.activity import ActivityRecorder
from server.commands import IDS_MAX, InternalArgs
from server.commit import Command, Committer, Decide
from server.copies import copies_from
from server.errors import BusyError, UseCaseError
from server.reads import ReadSide
from server.redaction_args import RedactArgs
from server.redaction_decisions import (
    AgainArgs,
    CompleteArgs,
    CompleteResult,
    PlanMovedError,
    decide_again,
    decide_completed,
    decide_redact,
    describe,
    repeat_completed,
    repeat_redact,
)
from server.redaction_needles import Needles, needles_of
from server.redaction_plan import Plan, check, make_plan
from server.redaction_search import Found, search_store
from server.refusal import refusal_of
from server.results import RedactResult
from server.tool import Call

PLANS_MAX: Final = 10
"""A plan is made anew when the store moved under it."""

READERS_WAIT_S: Final = 2.0
"""How long a redaction waits for readers that keep the write-ahead log, before it says so."""

READERS_LOOK_S: Final = 0.02

MERGE_PAUSE_S: Final = 0.005
"""How long writers have the lock to themselves between two rounds of erasing tokens."""

ACTIVITY_FLUSH_S: Final = 2.0

RETRY_S_MAX: Final = 300.0
"""Longest wait of the upkeep between two attempts at what some process keeps, in seconds."""

UPKEEP_ACTOR: Final = "mnemolog"
"""Who writes the receipt of a redaction that another process began."""

AGAIN: Final = "erased before; an older copy of the ledger had brought it back"
"""Reason of a redaction that the list of redactions asks for."""

STAYS: Final = (
    "of each record stay its position, time, type, ids and actor; names of agents and workspaces "
    "are never erased"
)


class Erased(msgspec.Struct, kw_only=True):
    """How far the erasing of a redaction has come."""

    completed: bool = False
    position: int | None = None
    held_by: tuple[str, ...] = ()
    found: Found | None = None
    aside: tuple[str, ...] = ()
    """Ledgers put aside by a restore from which it was erased too."""


class _Job(msgspec.Struct, kw_only=True):
    """What this process knows of a redaction; gone with it."""

    needles: Needles | None = None
    segments: set[int] = set()
    aside: set[str] = set()
    """Ledgers put aside by a restore that held some of it."""
    merged: set[str] = set()
    """Generations whose text indexes were written anew since."""
    is_renewed: bool = False
    """The projections were built anew since."""
    attempts: int = 0
    not_before_s: float = 0.0
    """When the upkeep tries again, on the monotonic clock."""


class Redactions:
    """Redacts in one open store, and finishes what other processes began."""

    def __init__(
        self,
        ledger: Ledger,
        committer: Committer,
        reads: ReadSide,
        *,
        clock: Clock,
        home: Path,
        zone: str,
        activity_path: Path,
        recorder: ActivityRecorder,
        lock_timeout_s: float,
        forget: Callable[[], None],
        on_left: Callable[[], None],
        log_info: Callable[[str], None],
    ) -> None:
        """Bind to an open store; nothing is opened or started.

        Args:
            ledger: of which payloads are erased.
            committer: appends the intent and the receipt.
            reads: the projections, which are purged.
            clock: dates words such as `yesterday` in a filter.
            home: every file of it is searched.
            zone: name of the time zone that dates in words are meant in.
            activity_path: the activity file.
            recorder: is made to write what it holds before that file is purged.
            lock_timeout_s: how long to wait for each lock.
            forget: drops what this process keeps in memory of names and words.
            on_left: called when a redaction could not be completed at once.
            log_info: is told of what was done, without a word of a memory.

        """
        self._ledger = ledger
        self._committer = committer
        self._reads = reads
        self._clock = clock
        self._home = home
        self._zone = zone
        self._activity_path = activity_path
        self._recorder = recorder
        self._lock_timeout_s = lock_timeout_s
        self._forget = forget
        self._on_left = on_left
        self._log_info = log_info
        self._list = RedactionList(home, files=ledger.files, lock_timeout_s=lock_timeout_s)
        self._jobs: dict[str, _Job] = {}
        self._mutex = threading.Lock()
        self._is_list_known = False

    # ------------------------------------------------------------------ asked for

    def preview(self, args: RedactArgs, workspace: str, call: Call) -> RedactResult:
        """Say what a redaction would erase."""
        check(args)

        def look(connection: Connection) -> RedactResult:
            rid = workspace_rid(connection, workspace)
            plan = self._plan(args, connection, rid)
            facts = Facts(connection, rid)
            subjects = []
            for each in plan.subjects[:IDS_MAX]:
                said = contents_at(connection, each.rid, each.targets)
                text = next((said[seq] for seq in reversed(said) if said[seq]), "")
                subjects.append(describe(each, facts, text=snippet(text, ()) if text else None))
            return RedactResult(
                state="dry_run",
                completed=False,
                memories=tuple(each.id for each in plan.subjects[:IDS_MAX]),
                memories_count=len(plan.subjects),
                records=len(plan.seqs),
                subjects=tuple(subjects),
                outside=outside_copies(self._home, min(plan.seqs)),
                notes=(*plan.notes, STAYS),
            )

        return self._reads.run(call, look)

    def redact(
        self, args: RedactArgs, command: Callable[..., Command], workspace: str, call: Call
    ) -> RedactResult:
        """Erase, and say how far that has come."""
        check(args)
        # Held from before the intent, so that nobody who does not know the texts completes it.
        with self._alone() as alone:
            result, needles = self._intend(args, command, workspace, call)
            assert result.redaction_id is not None
            assert result.position is not None
            if result.completed:
                return result
            if needles is not None:
                with self._mutex:
                    self._jobs.setdefault(result.redaction_id, _Job()).needles = needles
            erased = Erased(held_by=(_ELSEWHERE,))
            if alone:
                actor = call.actor_name or UPKEEP_ACTOR
                erased = self._try(result.position, result.redaction_id, workspace, actor)
        found = erased.found
        notes = [STAYS]
        if not erased.completed:
            self._on_left()
            notes.append(
                "nothing of it is found or shown any more; erasing the last bytes goes on by itself"
            )
        notes += [f"erased too in {name}, which a restore put aside" for name in erased.aside]
        if needles is not None and needles.is_cut:
            notes.append("there is more text than was searched for")
        return msgspec.structs.replace(
            result,
            completed=erased.completed,
            completed_position=erased.position,
            held_by=erased.held_by,
            searched=found is not None,
            files=0 if found is None else found.files,
            also_in=() if found is None else found.also_in,
            outside=outside_copies(self._home, self._first_target(result.position, call)),
            notes=(*result.notes, *notes),
        )

    def _intend(
        self, args: RedactArgs, command: Callable[..., Command], workspace: str, call: Call
    ) -> tuple[RedactResult, Needles | None]:
        """Append the intent; return the reply so far, and what to search for."""
        for _ in range(PLANS_MAX):
            records: Mapping[int, Record] = {}
            try:
                plan = self._reads.run(
                    call,
                    lambda connection: self._plan(
                        args, connection, workspace_rid(connection, workspace)
                    ),
                )
            except UseCaseError:
                if args.idempotency_key is None:
                    raise  # else it may be that it was done before, which the key tells
            else:
                records = self._records(plan.seqs)
            digests = {seq: record.digest for seq, record in records.items()}
            try:
                result = self._committer.submit(
                    command(args, partial(decide_redact, digests=digests), repeat_redact, call)
                )
            except PlanMovedError:
                continue
            assert isinstance(result, RedactResult)
            return result, needles_of(records.values()) if result.subjects else None
        raise BusyError("The store changes faster than a redaction is planned. Try again.")

    def _first_target(self, rid: int, call: Call) -> int:
        targets = self._reads.run(call, lambda connection: targets_of(connection, rid))
        return min(targets, default=rid)

    def _plan(self, args: RedactArgs, connection: Connection, workspace: int | None) -> Plan:
        return make_plan(args, connection, workspace, now_us=self._clock.now_us(), zone=self._zone)

    def _records(self, seqs: tuple[int, ...]) -> Mapping[int, Record]:
        try:
            return self._ledger.records_at(seqs)
        except LedgerError as error:
            raise refusal_of(error) from error

    # ------------------------------------------------------------------ erasing

    def resume(self) -> bool:
        """Go on with every redaction that is not completed; say whether any is left.

        Raises:
            UseCaseError: the store cannot be read now.

        """
        if self._ledger.is_read_only:
            return False
        self._erase_again()
        pending = self._reads.run(Call(), unfinished)
        if not pending:
            return False
        with self._reads.generations.erase_lock() as alone:
            left = len(pending)
            for each in pending if alone else ():
                left -= self._resume(*each)
            return left > 0

    def _erase_again(self) -> None:
        """Once a process: begin a redaction of what the list names and the ledger holds again.

        That is so after an older copy of the ledger was put back.
        """
        if self._is_list_known:
            return
        entries = [each for each in self._list.entries() if each.ledger == self._ledger.id]
        known = self._reads.run(Call(), redacted_records).items()
        again = [each for each in entries if each.key not in known]
        standing = outstanding(self._ledger, again) if again else []
        by_workspace: dict[str, dict[int, str]] = {}
        for each in standing:
            record = each.record
            by_workspace.setdefault(record.header.ws, {})[record.seq] = record.digest
        for workspace_id, digests in by_workspace.items():
            name = self._reads.run(Call(), partial(_workspace_name, workspace_id))
            if name is not None:
                args = AgainArgs(digests=digests, reason=AGAIN)
                self._write(args, decide_again, name, UPKEEP_ACTOR)
        self._is_list_known = True

    def _resume(self, rid: int, redaction: str, workspace: str) -> bool:
        with self._mutex:
            job = self._jobs.get(redaction)
        if job is not None and time.monotonic() < job.not_before_s:
            return False
        return self._try(rid, redaction, workspace, UPKEEP_ACTOR).completed

    def _try(self, rid: int, redaction: str, workspace: str, actor: str) -> Erased:
        """Take what a redaction erases off the disk, as far as that can be done now."""
        with self._mutex:
            job = self._jobs.setdefault(redaction, _Job())
        try:
            erased = self._erase(rid, redaction, workspace, actor, job)
        except (LedgerError, *STORAGE_ERRORS, OSError) as error:
            erased = Erased(held_by=(_as_held(error),))
        except UseCaseError as error:
            erased = Erased(held_by=(error.message,))
        with self._mutex:
            if erased.completed:
                self._jobs.pop(redaction, None)
            else:
                job.attempts += 1
                job.not_before_s = time.monotonic() + min(2.0**job.attempts, RETRY_S_MAX) / 2
        if erased.completed:
            self._log_info(f"mnemolog: redaction {redaction} is completed")
        return erased

    def _erase(self, rid: int, redaction: str, workspace: str, actor: str, job: _Job) -> Erased:
        self._forget()
        targets = self._reads.run(Call(), lambda connection: targets_of(connection, rid))
        self._list.add(
            ErasedRecord(ledger=self._ledger.id, redaction=redaction, seq=seq, digest=digest)
            for seq, digest in targets.items()
        )
        redactor = Redactor(self._ledger, lock_timeout_s=self._lock_timeout_s)
        try:
            job.segments |= set(redactor.rewrite(targets))
            held = [
                *self._purge_aside(job),
                *self._purge_projections(job),
                *self._purge_activity(rid),
            ]
            found = None if held else self._search(redactor, job)
            if (
                found is not None
                and not job.is_renewed
                and any(name.startswith("projections/") for name in found.holding)
            ):
                # A page that was rebuilt long ago may keep a piece; a new database has none.
                self._reads.renew()
                job.is_renewed = True
                held = self._purge_projections(job)
                found = None if held else self._search(redactor, job)
        finally:
            redactor.close()
        if found is not None:
            held += [f"{name} still holds some of it" for name in found.holding]
            held += [f"{name} could not be searched" for name in found.unread]
        if held:
            return Erased(held_by=tuple(dict.fromkeys(held)), found=found)
        return Erased(
            completed=True,
            position=self._complete(redaction, workspace, actor, job, found),
            found=found,
            aside=tuple(sorted(job.aside)),
        )

    def _purge_aside(self, job: _Job) -> list[str]:
        """Erase in what restores left in the home; say what of it cannot be read."""
        found = erase_aside(self._ledger, self._list, lock_timeout_s=self._lock_timeout_s)
        job.aside |= set(found.erased)
        return [f"{name} {_UNREAD_ASIDE}" for name in found.unread]

    def _purge_projections(self, job: _Job) -> list[str]:
        """Purge the generation in use and remove the others; say what keeps some of them."""
        generations = self._reads.generations
        self._reads.current(Call())  # waits for a rebuild, which wants the same lock
        with generations.rebuild_lock():
            generation = self._reads.ready()
            if generation is None:
                return ["the projections are being rebuilt; it is tried again"]
            if generation.name not in job.merged:
                if not self._erase_tokens(generation):
                    return ["another process kept the store's lock; it is tried again"]
                job.merged.add(generation.name)
            held = []
            try:
                erase_past(generations.root)
            except PastBusyError:
                held.append(_PAST)
            self._committer.exclusively(lambda _: None, lock_timeout_s=self._lock_timeout_s)
            if not self._empty_wal(generation):
                held.append(_READER)
            generations.collect()
            if generations.left_over():
                held.append(_OLD_GENERATION)
        return held

    def _erase_tokens(self, generation: Generation) -> bool:
        """Write the text indexes anew, letting writers in between; False: it cannot be now."""
        erasing = TokenErasing()
        is_more = True

        def advance(each: Generation) -> None:
            nonlocal is_more
            is_more = erasing.advance(each.writer)

        while True:
            if not self._committer.exclusively(advance, lock_timeout_s=self._lock_timeout_s):
                return False
            if not is_more:
                return True
            # What is copied here need not be copied under the lock, where the log is cut.
            with generation.readers.borrow() as connection:
                connection.checkpoint_wal()
            # A lock that is taken again at once starves whoever waits for it.
            time.sleep(MERGE_PAUSE_S)

    def _empty_wal(self, generation: Generation) -> bool:
        """Cut the write-ahead log to nothing; False: a reader of some process keeps it."""
        deadline = time.monotonic() + READERS_WAIT_S
        while True:
            with (
                generation.readers.borrow() as connection,
                self._ledger.lock(self._lock_timeout_s),
            ):
                connection.empty_wal()
                if generation.wal_bytes() == 0:
                    return True
            if time.monotonic() > deadline:
                return False
            time.sleep(READERS_LOOK_S)

    def _purge_activity(self, rid: int) -> list[str]:
        """Take words and counts out of the activity log; say what keeps it."""
        gone = self._reads.run(Call(), lambda connection: _gone_memories(connection, rid))
        self._recorder.flush(ACTIVITY_FLUSH_S)
        try:
            forget_queries(self._activity_path, gone)
        except ActivityUnavailableError:
            return ["the activity log is in use; `mnemolog activity --clear` empties it"]
        return []

    def _search(self, redactor: Redactor, job: _Job) -> Found | None:
        """Search every file; None: the texts are not known any more."""
        needles = job.needles
        if needles is None:
            return None
        folders = (self._home, self._reads.generations.root.parent)
        return self._reads.run(
            Call(), lambda connection: search_store(redactor, folders, needles, connection)
        )

    def _complete(
        self, redaction: str, workspace: str, actor: str, job: _Job, found: Found | None
    ) -> int:
        args = CompleteArgs(
            redaction=redaction,
            segments=tuple(sorted(job.segments)),
            files=0 if found is None else found.files,
            searched=found is not None,
            remains=("texts_in_other_records",) if found is not None and found.also_in else (),
        )
        done = self._write(args, decide_completed, workspace, actor)
        assert isinstance(done, CompleteResult)
        return done.position

    def _write(
        self, args: InternalArgs, decide: Decide, workspace: str, actor: str
    ) -> msgspec.Struct:
        """Write what nobody asked for by name."""
        return self._committer.submit(
            Command(
                args=args,
                decide=decide,
                repeat=repeat_completed,
                workspace=workspace,
                actor=actor,
                call=Call(),
            )
        )

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        """Be the one that erases, over all threads and processes; wait for another a while."""
        deadline = time.monotonic() + self._lock_timeout_s
        while True:
            with self._reads.generations.erase_lock() as alone:
                if alone or time.monotonic() > deadline:
                    yield alone
                    return
            time.sleep(READERS_LOOK_S)


_ELSEWHERE: Final = "another process erases just now; it is tried again"

_READER: Final = (
    "a process has a read of the store open, which keeps its write-ahead log; it ends with that "
    "process at the latest"
)

_PAST: Final = "a process makes a copy of the past and does not stop; it is tried again"
_OLD_GENERATION: Final = (
    "a process still has an older projection open; it lets go at its next call, or when it ends"
)


_UNREAD_ASIDE: Final = (
    "was put aside by a restore and is damaged, so that it may hold some of it and cannot be "
    "rewritten; delete it, or move it out of the home"
)


def outside_copies(home: Path, seq: int) -> tuple[str, ...]:
    """Return the copies written outside the store that may hold a record or later ones."""
    with suppress(OSError):
        return tuple(
            f"{copy.kind}: {copy.path}"
            for copy in copies_from(home, seq)
            # What a restore put aside is in the home: it is not listed but erased there.
            if copy.exists and copy.path.parent != home.resolve()
        )
    return ("the journal of copies cannot be read",)


def _workspace_name(workspace_id: str, connection: Connection) -> str | None:
    name: str | None = connection.value("SELECT name FROM workspaces WHERE id = ?", (workspace_id,))
    return name


def _gone_memories(connection: Connection, rid: int) -> list[str]:
    rows = connection.execute(
        "SELECT DISTINCT e.subject FROM redaction_targets t JOIN events e ON e.seq = t.seq "
        "WHERE t.redaction = ? AND e.subject NOT IN (SELECT rid FROM memories)",
        (rid,),
    )
    return ids_at(connection, [subject for (subject,) in rows])


def _as_held(error: Exception) -> str:
    if isinstance(error, LockTimeoutError):
        return "another process kept a lock of the store; it is tried again"
    if isinstance(error, LedgerWriteError):
        return f"the disk could not be written to ({error.reason}); it is tried again"
    return refusal_of(error).message
