"""Decisions about sessions: their beginning and their end."""

from __future__ import annotations

import msgspec

from ledger import NewEvent, SessionEnded, SessionStarted, SessionState, format_us, parse_us
from projections.facts import Facts
from server.commands import SessionEndArgs, SessionStartArgs
from server.decision import Decision, Moment, refuse_blank
from server.errors import NotFoundError, SessionEndedError
from server.results import SessionEndResult, SessionStartResult

US_PER_MINUTE = 60_000_000


def decide_session_start(args: SessionStartArgs, facts: Facts, moment: Moment) -> Decision:
    """Begin a session."""
    del facts  # nothing that is stored forbids a session
    refuse_blank("client", args.client)
    session_id, started_at = moment.new_id(), format_us(moment.now_us)
    state = SessionState(
        client=args.client, started_at=started_at, project=args.project, meta=args.meta
    )

    def reply(position: int) -> SessionStartResult:
        return SessionStartResult(id=session_id, started_at=started_at, position=position)

    event = SessionStarted(salt=moment.new_salt(), session=state, request=moment.request)
    return Decision(events=(NewEvent(session_id, event, 0),), reply=reply, session=session_id)


def decide_session_end(args: SessionEndArgs, facts: Facts, moment: Moment) -> Decision:
    """End a session."""
    session = facts.session(args.id)
    if session is None or session.state is None:
        raise NotFoundError(
            "There is no session with this id in this workspace; nothing was changed. Ids come "
            "from memory_session_start and memory_session_list.",
            details={"id": args.id},
        )
    if session.state.ended_at is not None:
        raise SessionEndedError(
            f"Session {args.id} ended at {session.state.ended_at}; nothing was changed. "
            "memory_undo with its id opens it again.",
            details={"id": args.id, "ended_at": session.state.ended_at},
        )
    state = msgspec.structs.replace(
        session.state, ended_at=format_us(moment.now_us), summary=args.summary
    )
    count = facts.count_of_session(args.id)

    def reply(position: int) -> SessionEndResult:
        return ended(args.id, state, count, position)

    event = SessionEnded(salt=moment.new_salt(), session=state, request=moment.request)
    return Decision(
        events=(NewEvent(args.id, event, session.last_seq),), reply=reply, session=args.id
    )


def ended(session_id: str, state: SessionState, count: int, position: int) -> SessionEndResult:
    """Return what is said of a session that has ended."""
    assert state.ended_at is not None
    lasted_us = max(0, parse_us(state.ended_at) - parse_us(state.started_at))
    return SessionEndResult(
        id=session_id,
        ended_at=state.ended_at,
        duration_minutes=round(lasted_us / US_PER_MINUTE, 1),
        memories_count=count,
        summary=state.summary,
        position=position,
    )
