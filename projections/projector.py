"""What an event does to the tables.

`apply` has no clock, no randomness and no model: everything it needs is in the event or in rows
that earlier events made. So a rebuild from zero ends in the very rows that live writing left.
Search indexes are fed afterwards, by `flush_indexes` while live and by `index_everything` in a
rebuild: both write what the memories table says, so the order of edits leaves no trace.
"""

from __future__ import annotations

import msgspec

from ledger import (
    AgentRegistered,
    AliasAdded,
    AliasRemoved,
    AliasState,
    Header,
    MemoryAdded,
    MemoryDeleted,
    MemoryRedacted,
    MemoryRelinked,
    MemoryRestored,
    MemoryState,
    MemoryUpdated,
    Record,
    RedactionCompleted,
    RedactionExplained,
    SessionEvent,
    SessionState,
    SessionWithdrawn,
    WorkspaceCreated,
    parse_span,
    parse_us,
)
from projections.connection import Connection
from projections.erasure import (
    CONTENT_TYPES,
    ERASED,
    close_memory,
    end_gap,
    erase_row,
    erase_state,
)
from projections.states import (
    ACTIVE,
    DELETED,
    STATE_FIELDS,
    SUPERSEDED,
    encode_json,
    state_from_columns,
    state_values,
)
from projections.substring import forget_trigrams, mark_trigrams
from projections.text_index import terms_of

_STATE_COLUMNS = ", ".join(STATE_FIELDS)
_DERIVED_COLUMNS = (
    "rid, id, workspace, agent, created_us, updated_us, version, last_seq, "
    "happened_from, happened_to, true_from, true_until, expires_us"
)
_COLUMN_COUNT = len(STATE_FIELDS) + len(_DERIVED_COLUMNS.split(","))
_INSERT_MEMORY = (
    f"INSERT INTO memories({_DERIVED_COLUMNS}, {_STATE_COLUMNS}) "
    f"VALUES({', '.join('?' * _COLUMN_COUNT)})"
)
_SELECT_STATE = f"SELECT {_STATE_COLUMNS} FROM memories WHERE rid = ?"

ORIGINS_KNOWN_MAX = 1_000


class Projector:
    """Applies records, in ledger order, inside the caller's transaction."""

    def __init__(self, connection: Connection) -> None:
        """Bind to the connection whose tables are filled."""
        self._connection = connection
        self._changed: dict[int, None] = {}
        self._workspaces: dict[str, int] = {}
        self._agents: dict[str, int] = {}
        self._origins: dict[str, int] = {}

    def apply(self, record: Record) -> None:  # noqa: C901, PLR0912 - a case an event
        """Apply one record to the tables; the search indexes follow in `flush_indexes`."""
        header, payload = record.header, record.payload
        seq, t_us = header.seq, parse_us(header.t)
        match payload:
            case MemoryAdded(memory=state):
                subject = self._add(seq, t_us, header, state)
            case MemoryUpdated(memory=state):
                subject = self._update(seq, t_us, header, state)
            case MemoryRelinked():
                subject = self._relink(seq, t_us, header.sub, payload)
            case MemoryDeleted():
                subject = self._delete(seq, header)
            case MemoryRestored(memory=state):
                subject = self._restore(seq, t_us, header, state)
            case SessionEvent(session=session):
                subject = self._session(header, session)
            case AliasAdded(alias=alias):
                subject = self._alias(header, alias)
            case SessionWithdrawn():
                subject = self._gone("sessions", header)
            case AliasRemoved():
                subject = self._gone("aliases", header)
            case WorkspaceCreated():
                subject = seq
                self._connection.execute(
                    "INSERT INTO workspaces VALUES(?, ?, ?)", (seq, header.sub, payload.name)
                )
            case AgentRegistered():
                subject = seq
                self._connection.execute(
                    "INSERT INTO agents VALUES(?, ?, ?)", (seq, header.sub, payload.name)
                )
            case MemoryRedacted():
                subject = self._redact(header, payload)
            case RedactionExplained(reason=reason):
                subject = self._explain(header, reason)
            case RedactionCompleted():
                subject = self._complete(header)
            case _:
                # The payload was redacted; the event keeps its place in the history.
                assert payload is None, "the projector knows every event of the ledger's table"
                subject = self._apply_erased(header)
        self._connection.execute(
            "INSERT INTO events VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                seq,
                header.batch,
                header.type,
                subject,
                self._agent(header.act),
                t_us,
                header.undo or None,
                self._origin(header.ses),
                self._origin(header.cause),
            ),
        )
        if header.ik and seq == header.batch:
            self._connection.execute(
                "INSERT INTO idempotency VALUES(?, ?, ?)",
                (header.ik, seq, getattr(payload, "request", None)),
            )

    def flush_indexes(self) -> None:
        """Bring the text index and the list of missing trigrams up to the tables."""
        for rid in self._changed:
            row = self._connection.one(
                "SELECT title, content, entity_name FROM memories WHERE rid = ?", (rid,)
            )
            if row is None:
                self._connection.execute("DELETE FROM memories_fts WHERE rowid = ?", (rid,))
                forget_trigrams(self._connection, rid)
            else:
                self._connection.execute(
                    "INSERT OR REPLACE INTO memories_fts(rowid, title, content, entity) "
                    "VALUES(?, ?, ?, ?)",
                    (rid, *terms_of(*row)),
                )
                mark_trigrams(self._connection, rid)
        self._changed.clear()

    def forget_changes(self) -> None:
        """Drop what a rolled-back transaction had changed."""
        self._changed.clear()
        self._workspaces.clear()
        self._agents.clear()
        self._origins.clear()

    def place(
        self,
        identity: tuple[int, str, int, int, int, int],
        versions: tuple[int, int],
        state: MemoryState,
    ) -> None:
        """Put a state that a memory has had into the table, as it was while it was current.

        Args:
            identity: rid, id, workspace, agent, created_us and updated_us.
            versions: its `version` and `last_seq`.
            state: the state; `settle` derives what depends on others once all are placed.

        """
        created_us = identity[4]
        self._connection.execute(
            _INSERT_MEMORY,
            (*identity, *versions, *self._times(created_us, state), *state_values(state)),
        )

    def settle(self) -> None:
        """Let each superseded memory end where its successor begins, whichever was placed first."""
        superseded = self._connection.execute(
            f"SELECT rid, created_us, true_until, {_STATE_COLUMNS} FROM memories "
            "WHERE superseded_by IS NOT NULL"
        )
        ends = []
        for rid, created_us, found, *columns in superseded:
            _, _, _, true_until, _ = self._times(created_us, state_from_columns(columns))
            if true_until != found:
                ends.append((true_until, rid))
        self._connection.executemany("UPDATE memories SET true_until = ? WHERE rid = ?", iter(ends))

    def _add(self, seq: int, t_us: int, header: Header, state: MemoryState) -> int:
        workspace, agent = self._workspace(header.ws), self._agent(header.act)
        self._insert((seq, header.sub, workspace, agent, t_us, t_us), seq, state)
        return seq

    def _insert(
        self, identity: tuple[int, str, int, int, int, int], seq: int, state: MemoryState
    ) -> None:
        rid, _, _, _, created_us, _ = identity
        self._connection.execute(
            _INSERT_MEMORY,
            (*identity, seq, seq, *self._times(created_us, state), *state_values(state)),
        )
        self._changed[rid] = None

    def _update(self, seq: int, t_us: int, header: Header, state: MemoryState) -> int:
        memory_id = header.sub
        rid = self._close_version(memory_id, seq)
        created_us = self._connection.value("SELECT created_us FROM memories WHERE rid = ?", (rid,))
        if created_us is None:  # the state before it was erased; or, after damage, is lost
            return self._restore(seq, t_us, header, state)
        columns = (
            "updated_us, version, last_seq, happened_from, happened_to, true_from, true_until, "
            f"expires_us, {_STATE_COLUMNS}"
        )
        self._connection.execute(
            f"UPDATE memories SET ({columns}) = ({', '.join('?' * len(columns.split(',')))}) "
            "WHERE rid = ?",
            (t_us, seq, seq, *self._times(created_us, state), *state_values(state), rid),
        )
        self._end_predecessors(memory_id)
        self._changed[rid] = None
        return rid

    def _end_predecessors(self, memory_id: str) -> None:
        """Let what a memory superseded end where the memory now begins."""
        predecessors = self._connection.execute(
            f"SELECT rid, created_us, {_STATE_COLUMNS} FROM memories WHERE superseded_by = ?",
            (memory_id,),
        )
        for rid, created_us, *columns in list(predecessors):
            _, _, _, true_until, _ = self._times(created_us, state_from_columns(columns))
            self._connection.execute(
                "UPDATE memories SET true_until = ? WHERE rid = ?", (true_until, rid)
            )

    def _relink(self, seq: int, t_us: int, memory_id: str, links: MemoryRelinked) -> int:
        rid = self._close_version(memory_id, seq)
        row = self._connection.one(_SELECT_STATE, (rid,))
        if row is None:
            self._move_tombstone(rid, seq)
            return rid
        before = state_from_columns(row)
        state = msgspec.structs.replace(
            before, supersedes=links.supersedes, superseded_by=links.superseded_by
        )
        created_us = self._connection.value("SELECT created_us FROM memories WHERE rid = ?", (rid,))
        _, _, true_from, true_until, _ = self._times(created_us, state)
        self._connection.execute(
            "UPDATE memories SET (last_seq, supersedes, superseded_by, true_from, true_until) "
            "= (?, ?, ?, ?, ?) WHERE rid = ?",
            (seq, links.supersedes, links.superseded_by, true_from, true_until, rid),
        )
        if links.supersedes != before.supersedes:
            self._end_predecessors(memory_id)
        # A neighbour's id in a link is no change of the memory; becoming superseded or active is.
        if (before.superseded_by is None) != (links.superseded_by is None):
            self._connection.execute(
                "UPDATE memories SET (version, updated_us) = (?, ?) WHERE rid = ?", (seq, t_us, rid)
            )
        return rid

    def _delete(self, seq: int, header: Header) -> int:
        if self._find(header.sub) is None:  # only after damage
            return seq
        rid = self._close_version(header.sub, seq)
        self._connection.execute("DELETE FROM memories WHERE rid = ?", (rid,))
        end_gap(self._connection, rid, seq)  # of a memory whose state is erased
        self._connection.execute(
            "INSERT OR REPLACE INTO tombstones VALUES(?, ?, ?, ?)",
            (rid, header.sub, self._workspace(header.ws), seq),
        )
        self._connection.execute(
            "INSERT INTO memory_versions VALUES(?, ?, NULL, ?, ?, NULL)", (rid, seq, seq, DELETED)
        )
        self._changed[rid] = None
        return rid

    def _restore(self, seq: int, t_us: int, header: Header, state: MemoryState) -> int:
        rid = self._connection.value("SELECT rid FROM tombstones WHERE id = ?", (header.sub,))
        added = self._connection.one("SELECT t_us, actor FROM events WHERE seq = ?", (rid,))
        if added is None:  # only after damage
            return seq
        created_us, agent = added
        self._connection.execute("DELETE FROM tombstones WHERE rid = ?", (rid,))
        end_gap(self._connection, rid, seq)
        workspace = self._workspace(header.ws)
        self._insert((rid, header.sub, workspace, agent, created_us, t_us), seq, state)
        # What it superseded may have come back before it.
        self._end_predecessors(header.sub)
        return int(rid)

    def _apply_erased(self, header: Header) -> int:  # noqa: PLR0911 - a case an event
        """Apply an event whose payload is gone, of which the type is left."""
        match header.type:
            case "memory_added" | "memory_updated" | "memory_restored":
                return self._lose(header)
            case "memory_deleted":
                return self._delete(header.seq, header)
            case "session_started" | "session_ended" | "session_restored":
                return self._lose_row("sessions", header)
            case "alias_added":
                return self._lose_row("aliases", header)
            case "session_withdrawn":
                return self._gone("sessions", header)
            case "redaction_explained":
                return self._explain(header, None)
            case _:
                return self._find_any(header.sub) or header.seq

    def _lose(self, header: Header) -> int:
        seq, rid = header.seq, self._find(header.sub)
        if rid is None and header.type != CONTENT_TYPES[0]:  # only after damage
            return seq
        rid = self._close_version(header.sub, seq)
        close_memory(self._connection, rid, header.sub, self._workspace(header.ws), seq)
        self._changed[rid] = None
        return rid

    def _lose_row(self, table: str, header: Header) -> int:
        rid = self._rid(table, header)
        values = "0, NULL, '', NULL, NULL, NULL" if table == "sessions" else "'', ''"
        self._connection.execute(
            f"INSERT OR REPLACE INTO {table} VALUES(?, ?, ?, ?, {ERASED}, {values})",
            (rid, header.sub, self._workspace(header.ws), header.seq),
        )
        self._note_version(rid, header.seq, None)
        return rid

    def _redact(self, header: Header, redacted: MemoryRedacted) -> int:
        """Erase what a redaction names, wherever the ledger's own erasing stands."""
        redaction = self._rid_of("redactions", redacted.redaction)
        if redaction is None:
            # A restore carried it over, without its reason; it is finished here once more.
            redaction = header.seq
            self._connection.execute(
                "INSERT INTO redactions VALUES(?, ?, ?, 0, NULL, NULL)",
                (redaction, redacted.redaction, self._workspace(header.ws)),
            )
        subject = self._find_any(header.sub) or header.seq
        for target in redacted.targets:
            self._connection.execute(
                "INSERT OR IGNORE INTO redaction_targets VALUES(?, ?, ?)",
                (target.seq, redaction, target.digest),
            )
            self._connection.execute(
                "UPDATE idempotency SET request = NULL WHERE batch = ? AND request IS NOT NULL",
                (target.seq,),
            )
            self._erase(header.sub, subject, target.seq)
        self._move(header.sub, subject, header.seq)
        return subject

    def _erase(self, subject_id: str, rid: int, seq: int) -> None:
        if self._find(subject_id) is not None:
            if erase_state(self._connection, rid, seq):
                self._changed[rid] = None
            return
        for table in ("sessions", "aliases"):
            if self._rid_of(table, subject_id) is not None:
                erase_row(self._connection, table, rid, seq)
                return
        self._connection.execute(
            "UPDATE redactions SET reason = NULL WHERE rid = ? AND rid = ?", (rid, seq)
        )

    def _move(self, subject_id: str, rid: int, seq: int) -> None:
        """Note a subject's last event, which changes nothing of what is left of it."""
        if self._find(subject_id) is not None:
            self._close_version(subject_id, seq)
            self._connection.execute("UPDATE memories SET last_seq = ? WHERE rid = ?", (seq, rid))
            self._move_tombstone(rid, seq)
            return
        for table in ("sessions", "aliases", "redactions"):
            self._connection.execute(
                f"UPDATE {table} SET last_seq = ? WHERE id = ?", (seq, subject_id)
            )

    def _move_tombstone(self, rid: int, seq: int) -> None:
        self._connection.execute("UPDATE tombstones SET seq = ? WHERE rid = ?", (seq, rid))

    def _explain(self, header: Header, reason: str | None) -> int:
        self._connection.execute(
            "INSERT INTO redactions VALUES(?, ?, ?, ?, NULL, ?)",
            (header.seq, header.sub, self._workspace(header.ws), header.seq, reason),
        )
        return header.seq

    def _complete(self, header: Header) -> int:
        self._connection.execute(
            "UPDATE redactions SET (completed_seq, last_seq) = (?1, ?1) WHERE id = ?2",
            (header.seq, header.sub),
        )
        return self._rid_of("redactions", header.sub) or header.seq

    def _session(self, header: Header, state: SessionState) -> int:
        rid = self._rid("sessions", header)
        self._connection.execute(
            "INSERT OR REPLACE INTO sessions VALUES(?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?)",
            (
                rid,
                header.sub,
                self._workspace(header.ws),
                header.seq,
                parse_us(state.started_at),
                None if state.ended_at is None else parse_us(state.ended_at),
                state.client,
                state.project,
                state.summary,
                encode_json(state.meta).decode() if state.meta else None,
            ),
        )
        self._note_version(rid, header.seq, state)
        return rid

    def _alias(self, header: Header, state: AliasState) -> int:
        rid = self._rid("aliases", header)
        self._connection.execute(
            "INSERT OR REPLACE INTO aliases VALUES(?, ?, ?, ?, 0, ?, ?)",
            (
                rid,
                header.sub,
                self._workspace(header.ws),
                header.seq,
                state.name,
                state.entity,
            ),
        )
        self._note_version(rid, header.seq, state)
        return rid

    def _gone(self, table: str, header: Header) -> int:
        rid = self._rid(table, header)
        self._connection.execute(
            f"UPDATE {table} SET (gone, last_seq) = (1, ?) WHERE rid = ?", (header.seq, rid)
        )
        self._note_version(rid, header.seq, None)
        return rid

    def _rid(self, table: str, header: Header) -> int:
        """Return the rid of a session or an alias: the position of its first event."""
        rid = self._rid_of(table, header.sub)
        return header.seq if rid is None else rid

    def _rid_of(self, table: str, subject_id: str) -> int | None:
        return self._connection.integer(f"SELECT rid FROM {table} WHERE id = ?", (subject_id,))

    def _note_version(self, rid: int, seq: int, state: SessionState | AliasState | None) -> None:
        self._connection.execute(
            "INSERT INTO subject_versions VALUES(?, ?, ?)",
            (rid, seq, None if state is None else encode_json(state).decode()),
        )

    def _close_version(self, memory_id: str, seq: int) -> int:
        """Move a memory's current state into its history; return its rid."""
        rid = self._find(memory_id)
        if rid is None:  # only after damage
            return seq
        row = self._connection.one(
            f"SELECT last_seq, version, {_STATE_COLUMNS} FROM memories WHERE rid = ?", (rid,)
        )
        if row is not None:
            from_seq, version, *values = row
            state = state_from_columns(values)
            status = ACTIVE if state.superseded_by is None else SUPERSEDED
            self._connection.execute(
                "INSERT INTO memory_versions VALUES(?, ?, ?, ?, ?, ?)",
                (rid, from_seq, seq, version, status, encode_json(state).decode()),
            )
        return rid

    def _times(
        self, created_us: int, state: MemoryState
    ) -> tuple[int, int, int | None, int | None, int | None]:
        """Derive happened_from, happened_to, true_from, true_until and expires_us of a state."""
        happened = (
            (created_us, created_us + 1) if state.event_at is None else parse_span(state.event_at)
        )
        expires = None if state.expires_at is None else parse_us(state.expires_at)
        ends = [
            None if state.valid_until is None else parse_span(state.valid_until)[1],
            expires,
            None if state.superseded_by is None else self._start_of(state.superseded_by),
        ]
        # What took another's place without saying from when it holds does so from its own date.
        begins = state.valid_from or (state.event_at if state.supersedes else None)
        return (
            *happened,
            None if begins is None else parse_span(begins)[0],
            min((end for end in ends if end is not None), default=None),
            expires,
        )

    def _start_of(self, memory_id: str) -> int | None:
        """Return when a successor became true in the world."""
        row = self._connection.one(
            "SELECT true_from, created_us FROM memories WHERE id = ?", (memory_id,)
        )
        if row is None:
            return None
        true_from, created_us = row
        return int(created_us if true_from is None else true_from)

    def _find(self, memory_id: str) -> int | None:
        rid = self._connection.integer("SELECT rid FROM memories WHERE id = ?", (memory_id,))
        if rid is None:
            rid = self._connection.integer("SELECT rid FROM tombstones WHERE id = ?", (memory_id,))
        return rid

    def _find_any(self, subject_id: str) -> int | None:
        """Return the rid of a memory, a session, an alias or a redaction."""
        rid = self._find(subject_id)
        for table in ("sessions", "aliases", "redactions"):
            if rid is None:
                rid = self._rid_of(table, subject_id)
        return rid

    def _workspace(self, workspace_id: str) -> int:
        rid = _memoised(self._connection, self._workspaces, "workspaces", workspace_id)
        if not rid:
            # Only after damage to the event that named it: its memories must stay within reach.
            rid = self._connection.value("SELECT min(0, coalesce(min(rid), 0)) - 1 FROM workspaces")
            taken = self._connection.value("SELECT 1 FROM workspaces WHERE name = 'default'")
            self._connection.execute(
                "INSERT INTO workspaces VALUES(?, ?, ?)",
                (rid, workspace_id, workspace_id if taken else "default"),
            )
            self._workspaces[workspace_id] = rid
        return rid

    def _agent(self, agent_id: str) -> int:
        return _memoised(self._connection, self._agents, "agents", agent_id)

    def _origin(self, origin_id: str) -> int | None:
        """Return the number of a session or a cause; rows only come, so they are counted up."""
        if not origin_id:
            return None
        if len(self._origins) >= ORIGINS_KNOWN_MAX:
            self._origins.clear()
        rid = _memoised(self._connection, self._origins, "origins", origin_id)
        if not rid:
            self._connection.execute("INSERT INTO origins(id) VALUES(?)", (origin_id,))
            self._origins.pop(origin_id)
            rid = _memoised(self._connection, self._origins, "origins", origin_id)
        return rid


def _memoised(connection: Connection, memo: dict[str, int], table: str, key: str) -> int:
    """Look a workspace's or an agent's rid up; 0 when its event is lost to damage."""
    rid = memo.get(key)
    if rid is None:
        rid = connection.value(f"SELECT rid FROM {table} WHERE id = ?", (key,)) or 0
        memo[key] = rid
    return rid
