"""The events: what can have happened, as the payloads of records.

A payload concerns exactly one subject and is the only place for personal content. Its first field
is a random salt, so that the commitment in the header says nothing about an erased payload.
Content events carry the whole resulting state: no event needs the payload of an earlier one.
Released fields never change meaning; stored names and versions are in `record.py`'s table.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Event(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,
):
    """Base of every payload.

    Attributes:
        salt: 32 hex characters, fresh for each event.
    """

    salt: str


class WorkspaceCreated(Event, frozen=True, kw_only=True):
    """A workspace began; the subject is its id."""

    name: str


class AgentRegistered(Event, frozen=True, kw_only=True):
    """An agent was seen for the first time; the subject is its id, the actor of later events."""

    name: str


class MemoryState(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,
):
    """Everything a memory says, after the event.

    Attributes:
        content: the text.
        layer: episodic, semantic, procedural or resource.
        title, entity_type, entity_name: as given.
        scope: a name inside the workspace.
        tags: in the order given.
        meta: any JSON object.
        confidence, importance: 0 to 1.
        source: the way in.
        source_file, session_id: where it came from, as given.
        event_at, valid_from, valid_until: dates as given.
        expires_at: an instant in record form.
        supersedes, superseded_by: ids of memories.
    """

    content: str
    layer: str
    title: str | None = None
    entity_type: str | None = None
    entity_name: str | None = None
    scope: str = "global"
    tags: tuple[str, ...] = ()
    meta: dict[str, Any] = {}
    confidence: float = 0.8
    importance: float = 0.5
    source: str = "api"
    source_file: str | None = None
    session_id: str | None = None
    event_at: str | None = None
    valid_from: str | None = None
    valid_until: str | None = None
    expires_at: str | None = None
    supersedes: str | None = None
    superseded_by: str | None = None


class ContentEvent(Event, frozen=True, kw_only=True):
    """Base of the events that carry a memory's whole resulting state.

    Attributes:
        memory: the state after the event.
        request: SHA-256 hex of the canonical command, only with an idempotency key.
    """

    memory: MemoryState
    request: str | None = None


class MemoryAdded(ContentEvent, frozen=True, kw_only=True):
    """A memory began."""


class MemoryUpdated(ContentEvent, frozen=True, kw_only=True):
    """A memory changed."""


class MemoryRestored(ContentEvent, frozen=True, kw_only=True):
    """A deleted memory came back."""


class MemoryRelinked(Event, frozen=True, kw_only=True):
    """A memory's place in its supersede chain changed; these are its links now."""

    supersedes: str | None = None
    superseded_by: str | None = None


class MemoryDeleted(Event, frozen=True, kw_only=True):
    """A memory was deleted.

    Attributes:
        reason: as given.
        request: SHA-256 hex of the canonical command, only with an idempotency key.
    """

    reason: str | None = None
    request: str | None = None


class SessionState(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,
):
    """Everything a session says, after the event.

    Attributes:
        client: the program that works in it, as given.
        started_at, ended_at: instants in record form; the second is None while it goes on.
        project: what it works on, as given.
        meta: any JSON object.
        summary: what was done in it, as given.
    """

    client: str
    started_at: str
    project: str | None = None
    meta: dict[str, Any] = {}
    ended_at: str | None = None
    summary: str | None = None


class SessionEvent(Event, frozen=True, kw_only=True):
    """Base of the events that carry a session's whole resulting state.

    Attributes:
        session: the state after the event.
        request: SHA-256 hex of the canonical command, only with an idempotency key.
    """

    session: SessionState
    request: str | None = None


class SessionStarted(SessionEvent, frozen=True, kw_only=True):
    """A session began; the subject is its id."""


class SessionEnded(SessionEvent, frozen=True, kw_only=True):
    """A session ended."""


class SessionRestored(SessionEvent, frozen=True, kw_only=True):
    """A session is again what it was before its end, or before it was withdrawn."""


class SessionWithdrawn(Event, frozen=True, kw_only=True):
    """The beginning of a session was undone.

    Attributes:
        request: SHA-256 hex of the canonical command, only with an idempotency key.
    """

    request: str | None = None


class AliasState(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False
):
    """Two names of one entity.

    Attributes:
        name: the further name.
        entity: the name it stands for.
    """

    name: str
    entity: str


class AliasAdded(Event, frozen=True, kw_only=True):
    """An entity got a further name; the subject is the alias' id.

    Attributes:
        alias: the names.
        request: SHA-256 hex of the canonical command, only with an idempotency key.
    """

    alias: AliasState
    request: str | None = None


class AliasRemoved(Event, frozen=True, kw_only=True):
    """A name does not stand for an entity any more.

    Attributes:
        request: SHA-256 hex of the canonical command, only with an idempotency key.
    """

    request: str | None = None


class RedactedRecord(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False
):
    """A record whose payload is erased, named without a word of it.

    Attributes:
        seq: its position.
        digest: its digest, so that a position alone never erases another ledger's record.
    """

    seq: int
    digest: str


class MemoryRedacted(Event, frozen=True, kw_only=True):
    """Payloads about one memory, session or alias, the subject, are erased from here on.

    The intent comes first and the erasing after it, so that a crash between them is seen and the
    erasing goes on. It holds nothing personal and is never erased itself.

    Attributes:
        redaction: id of the redaction it is part of.
        targets: the records, in ledger order.
    """

    redaction: str
    targets: tuple[RedactedRecord, ...]


class RedactionExplained(Event, frozen=True, kw_only=True):
    """Why a redaction was asked for; the subject is the redaction's id.

    An event of its own, because people write names into reasons: it can be erased like a memory.

    Attributes:
        reason: as given.
        request: SHA-256 hex of the canonical command, only with an idempotency key.
    """

    reason: str
    request: str | None = None


class RedactionCompleted(Event, frozen=True, kw_only=True):
    """The receipt of a redaction, once no file of the store holds what it erased.

    The subject is the redaction's id; it holds nothing personal and is never erased itself.

    Attributes:
        segments: first seq of each segment that was rewritten.
        files: how many files were searched for the erased texts and salts.
        searched: False if the redaction was resumed by a process that did not know the texts any
            more, so that they could not be searched for.
        remains: what is known to stand in other records still, as stable words.
    """

    segments: tuple[int, ...] = ()
    files: int = 0
    searched: bool = True
    remains: tuple[str, ...] = ()
