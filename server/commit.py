"""The append protocol: how a command becomes events, rows and a reply, in that order of trust.

Under the ledger's lock: catch up, decide, apply to the tables, append and sync (the commit point),
note the checkpoint, commit the tables, unlock, reply. Applying comes before appending, so that an
event the projector cannot apply is refused instead of stored. Callers that arrive while another
leads are decided together in the next round and share its one sync.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ledger import (
    AgentRegistered,
    Batch,
    Clock,
    Group,
    IdSource,
    InvalidPayloadError,
    Ledger,
    LedgerError,
    LockTimeoutError,
    NewEvent,
    RecordTooLargeError,
    WorkspaceCreated,
    Writer,
)
from projections.checkpoint import write_checkpoint
from projections.connection import DAMAGE_ERRORS, STORAGE_ERRORS, Connection
from projections.facts import Facts
from projections.generation import Generation
from server.decision import Decision, Moment
from server.errors import (
    DamagedError,
    IdempotencyConflictError,
    InvalidArgumentsError,
    StoreError,
    UseCaseError,
)
from server.reads import ReadSide
from server.refusal import refusal_of
from server.request import WriteArgs, request_digest_input
from server.tool import Call

COMMANDS_PER_ROUND_MAX = 128
PARTIES_KNOWN_MAX = 256

ROUND_ATTEMPTS = 3
"""A round is decided anew when the projections had to be swapped or rebuilt under it."""


Decide = Callable[[Any, Facts, Moment], Decision]
Repeat = Callable[[Any, Facts, int], msgspec.Struct]


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A request to change the store."""

    args: WriteArgs
    decide: Decide
    repeat: Repeat
    """Makes the reply to a request that was done before, from its position."""
    workspace: str
    actor: str
    call: Call
    cause: str = ""
    """Minted id that the operations of one bulk command share."""
    request: WriteArgs | None = None
    """The request whose idempotency key this command carries, if it is a part of one."""


class _Pending:
    """A command on its way, and what became of it."""

    __slots__ = ("command", "done", "error", "reply", "settle")

    def __init__(self, command: Command) -> None:
        self.command = command
        self.done = False
        self.error: BaseException | None = None
        self.reply: msgspec.Struct | None = None
        self.settle: Callable[[], msgspec.Struct] | None = None
        """Makes the reply; set once decided, called once durable."""

    def outcome(self) -> msgspec.Struct | BaseException:
        """Return what became of the command."""
        if self.error is not None:
            return self.error
        assert self.reply is not None
        return self.reply


class Committer:
    """Runs the commands of this process, one round at a time."""

    def __init__(
        self,
        ledger: Ledger,
        reads: ReadSide,
        *,
        clock: Clock,
        ids: IdSource,
        zone: str,
        lock_timeout_s: float,
    ) -> None:
        """Bind to the ledger and the read side; `zone` is what dates in words are meant in."""
        self._ledger = ledger
        self._reads = reads
        self._clock = clock
        self._ids = ids
        self._zone = zone
        self._lock_timeout_s = lock_timeout_s
        self._known: dict[tuple[str, str, str], _Parties] = {}
        self._waiting: list[_Pending] = []
        self._waiting_mutex = threading.Lock()
        self._leading = threading.Lock()

    def submit(self, command: Command) -> msgspec.Struct:
        """Do a command; return its reply once it is durable.

        Raises:
            UseCaseError: it was refused; unless it says otherwise nothing was written.

        """
        (outcome,) = self.submit_all([command])
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def submit_all(self, commands: Sequence[Command]) -> list[msgspec.Struct | BaseException]:
        """Do several commands, each on its own; return the reply or the refusal of each.

        They share syncs: one for each `COMMANDS_PER_ROUND_MAX` of them.
        """
        pending = [_Pending(command) for command in commands]
        with self._waiting_mutex:
            self._waiting += pending
        with self._leading:
            while not all(each.done for each in pending):
                self._lead()
        return [each.outcome() for each in pending]

    def exclusively(self, work: Callable[[Generation], None], *, lock_timeout_s: float) -> bool:
        """Run upkeep that writes to the tables but not to the ledger; False if it cannot be now.

        Raises:
            LedgerError: the ledger is damaged, or may not be written to.

        """
        with self._leading:
            try:
                with self._ledger.lock(lock_timeout_s) as writer:
                    generation = self._reads.ready()
                    if generation is None:
                        return False
                    with generation.changing():
                        generation.catch_up(writer)
                        work(generation)
            except LockTimeoutError:
                return False
            finally:
                self._reads.close_retired()
        return True

    def _lead(self) -> None:
        with self._waiting_mutex:
            round_ = self._waiting[:COMMANDS_PER_ROUND_MAX]
            del self._waiting[:COMMANDS_PER_ROUND_MAX]
        try:
            self._run_round(round_)
        except _ApplyError as failure:
            # One command of the round cannot be applied. Nothing was appended, so each gets a round
            # of its own, and only the one that cannot be applied fails.
            self._run_alone(round_, failure)
        except Exception as error:  # noqa: BLE001 - each caller of the round must hear of it
            for pending in round_:
                pending.error = pending.error or error
        finally:
            for pending in round_:
                pending.done = True
            self._reads.close_retired()

    def _run_alone(self, round_: list[_Pending], failure: _ApplyError) -> None:
        if len(round_) == 1:
            round_[0].error = failure.cause
            return
        for pending in round_:
            try:
                self._run_round([pending])
            except _ApplyError as error:
                pending.error = error.cause

    def _run_round(self, round_: list[_Pending]) -> None:
        call = round_[0].command.call if len(round_) == 1 else Call()
        try:
            for _ in range(ROUND_ATTEMPTS):
                generation = self._reads.current(call)  # waits for a rebuild, so not under the lock
                try:
                    with self._ledger.lock(self._lock_timeout_s) as writer:
                        generation_now = self._reads.ready()
                        if generation_now is not None:
                            generation = generation_now
                            self._write(round_, generation, writer)
                            return
                except DAMAGE_ERRORS as error:
                    self._reads.report_damage(generation, str(error))
            raise StoreError(
                "The projections are damaged again and again; nothing was written. Look at the "
                "disk."
            )
        except (LedgerError, UseCaseError, *STORAGE_ERRORS) as error:
            refusal = error if isinstance(error, UseCaseError) else refusal_of(error)
            for pending in round_:
                pending.error = pending.error or refusal

    def _write(self, round_: list[_Pending], generation: Generation, writer: Writer) -> None:
        if generation.gaps:
            raise DamagedError(
                f"{generation.gaps[0]} Nothing was written; reading goes on without the "
                f"{len(generation.gaps)} parts of the ledger that cannot be read. Restore them, "
                "then run `mnemolog rebuild`."
            )
        connection = generation.writer
        committed = False
        try:
            with generation.changing():
                if generation.catch_up(writer):
                    # If the tables cannot take what the ledger has, it must not get more: answers
                    # would fall ever further behind what was acknowledged.
                    connection.keep()
                group = writer.group()
                for pending in round_:
                    pending.error = pending.settle = None
                    self._decide(pending, generation, group)
                generation.projector.flush_indexes()
                if group:
                    if generation.is_disk_tight():
                        connection.find_room()
                    end = group.commit()
                    committed = True
                    write_checkpoint(connection, end)
        except BaseException:
            self._known.clear()
            # After the commit point the ledger has the events whatever became of the tables: the
            # next writer applies them again, so the callers are told the truth, which is success.
            if not committed:
                raise
            self._reads.reopen()
        for pending in round_:
            if pending.settle is not None:
                pending.reply = pending.settle()

    def _decide(self, pending: _Pending, generation: Generation, group: Group) -> None:
        command = pending.command
        try:
            command.call.check()
            parties = self._parties(generation, command)
            facts = Facts(generation.writer, parties.workspace_rid)
            digest, request = self._idempotency(parties, command.request or command.args)
            repeated = facts.repeated(digest) if digest else None
            if repeated is not None:
                pending.settle = _repeat(command, facts, request, *repeated)
                return
            moment = Moment(
                now_us=self._clock.now_us(),
                zone=self._zone,
                new_id=self._ids.new_id,
                new_salt=self._ids.new_salt,
                request=request,
            )
            decision = command.decide(command.args, facts, moment)
            position = self._append(
                parties, decision, digest, generation, group, cause=command.cause
            )
            pending.settle = lambda: decision.reply(position)
        except UseCaseError as refusal:
            pending.error = refusal

    def _parties(self, generation: Generation, command: Command) -> _Parties:
        """Look workspace and actor up; ids are minted for those never seen before."""
        names = (generation.name, command.workspace, command.actor)
        known = self._known.get(names)
        if known is None:
            known = self._look_up(generation.writer, command)
            if not known.introductions:
                # They stay what they are for as long as the generation does.
                if len(self._known) >= PARTIES_KNOWN_MAX:
                    self._known.clear()
                self._known[names] = known
        return known

    def _look_up(self, connection: Connection, command: Command) -> _Parties:
        workspace = connection.one(
            "SELECT rid, id FROM workspaces WHERE name = ?", (command.workspace,)
        )
        agent = connection.value("SELECT id FROM agents WHERE name = ?", (command.actor,))
        salt, new_id = self._ids.new_salt, self._ids.new_id
        introductions: list[NewEvent] = []
        if agent is None:
            agent = new_id()
            introductions.append(
                NewEvent(agent, AgentRegistered(salt=salt(), name=command.actor), 0)
            )
        if workspace is None:
            workspace = None, new_id()
            introductions.append(
                NewEvent(workspace[1], WorkspaceCreated(salt=salt(), name=command.workspace), 0)
            )
        return _Parties(workspace[0], workspace[1], agent, tuple(introductions))

    def _append(
        self,
        parties: _Parties,
        decision: Decision,
        digest: str,
        generation: Generation,
        group: Group,
        *,
        cause: str,
    ) -> int:
        """Add a decision's events to the group and apply them; return the first one's position."""
        if not decision.events:
            return 0
        position = 0
        batches = [([event], 0, "", "", "") for event in parties.introductions]
        batches.append((list(decision.events), decision.undo, decision.session, digest, cause))
        for events, undo, session, ik, why in batches:
            try:
                records = group.add(
                    Batch(
                        workspace=parties.workspace_id,
                        actor=parties.agent_id,
                        events=_in_order(events, group.end.seq + 1),
                        session=session,
                        cause=why,
                        undo=undo,
                        ik=ik,
                    )
                )
                for record in records:
                    generation.projector.apply(record)
            except (*DAMAGE_ERRORS, *STORAGE_ERRORS):
                raise
            except (RecordTooLargeError, InvalidPayloadError) as error:
                raise _ApplyError(
                    InvalidArgumentsError(f"This cannot be stored: {error}.")
                ) from error
            except Exception as error:
                raise _ApplyError(error) from error
            position = records[0].seq
        return position

    def _idempotency(self, parties: _Parties, args: WriteArgs) -> tuple[str, str | None]:
        """Return the keyed digest of the idempotency key and the digest of the request."""
        if args.idempotency_key is None:
            return "", None
        digest = self._ledger.idempotency_digest(
            parties.workspace_id, parties.agent_id, args.idempotency_key
        )
        return digest, request_digest(args)


def request_digest(args: WriteArgs) -> str:
    """Return what is compared of two requests with one idempotency key, 64 hex characters."""
    return hashlib.sha256(request_digest_input(args)).hexdigest()


def refuse_other_request(position: int, request: str | None, first_request: str | None) -> None:
    """Refuse a request whose key was used for a different one.

    A first request whose digest is gone was redacted; there is nothing left to compare with.

    Raises:
        IdempotencyConflictError: it was.

    """
    if first_request is not None and first_request != request:
        raise IdempotencyConflictError(
            "This idempotency key was used for a different request; nothing was written. Use a new "
            "key for a new request.",
            details={"position": position},
        )


class _Parties(msgspec.Struct, frozen=True):
    """Where a command acts, who acts, and the events that introduce either."""

    workspace_rid: int | None
    workspace_id: str
    agent_id: str
    introductions: tuple[NewEvent, ...]


class _ApplyError(Exception):
    """The projector could not apply an event; nothing was appended."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


def _in_order(events: list[NewEvent], first: int) -> list[NewEvent]:
    """Let an event that is not the first of its batch about a subject name the one before it."""
    if len(events) == 1:
        return events
    last: dict[str, int] = {}
    ordered = []
    for seq, event in enumerate(events, first):
        before = last.get(event.subject, event.previous_seq)
        ordered.append(NewEvent(event.subject, event.payload, before))
        last[event.subject] = seq
    return ordered


def _repeat(
    command: Command, facts: Facts, request: str | None, position: int, first_request: str | None
) -> Callable[[], msgspec.Struct]:
    """Return the reply to a request that was done before."""
    refuse_other_request(position, request, first_request)
    reply = command.repeat(command.args, facts, position)
    return lambda: reply
