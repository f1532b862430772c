"""Any history of commands: live tables equal a replay, and answers are what a dict says.

The machine is long because hypothesis looks for all rules of a machine in one class.
"""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    multiple,
    rule,
    run_state_machine_as_test,
)

from projections.connection import Connection
from server.errors import (
    AliasConflictError,
    AnchorError,
    IdempotencyConflictError,
    InvalidArgumentsError,
    NotFoundError,
    SessionEndedError,
    SupersededError,
    UndoConflictError,
    UseCaseError,
    VersionConflictError,
)
from server.results import AddResult
from server.tool import Call
from tests.properties.history_commands import (
    ENTITIES,
    FILES,
    LAYERS,
    WORKSPACES,
    blanks,
    changes,
    contents,
    deletions,
    extras,
    from_files,
    items,
    keys,
    names,
    workspaces,
)
from tests.properties.history_model import (
    Alias,
    Kept,
    Model,
    Session,
    Standing,
    State,
    expiry,
    status_of,
    with_defaults,
)
from tests.support.chains import chain_faults
from tests.support.store import DAY_US, MEMORY_DISK, Client, Home, live_digest, replayed_digest

KEPT_COLUMNS: Final = "version", "last_seq", "updated_us"
"""What tells when a memory was touched, and not what it says."""


class Histories(RuleBasedStateMachine):
    """Two workspaces of one home, their clients, and the model."""

    ids = Bundle("ids")
    positions = Bundle("positions")
    sessions = Bundle("sessions")

    def __init__(self) -> None:
        super().__init__()
        self._folder = Path(tempfile.mkdtemp(prefix="laws-", dir=MEMORY_DISK))
        self._home = Home(self._folder / "home")
        self._clients: dict[str, Client] = {}
        self._model = Model()
        self._used: dict[tuple[str, str], tuple[tuple[object, ...], tuple[Any, int]]] = {}
        """(workspace, key) -> the request and the subject and position it was answered with."""
        self._open()

    def teardown(self) -> None:
        try:
            for workspace in WORKSPACES:
                self._chains_are_whole(workspace)
            self._compare_with_replay()
        finally:
            self._home.close()
            shutil.rmtree(self._folder)

    @initialize(batch=st.lists(items, max_size=8), name=st.sampled_from(ENTITIES), target=ids)
    def begin(self, batch: list[Any], name: str) -> Any:
        """Begin with something to act on."""
        self.add_alias(WORKSPACES[0], ENTITIES[0], name, None)
        return self.add_many(WORKSPACES[0], [*batch, {"content": "x", "layer": LAYERS[0]}], None)

    # ------------------------------------------------------------------ adding

    @rule(
        target=ids,
        workspace=workspaces,
        content=contents,
        extra=extras | from_files,
        key=keys,
        layer=st.sampled_from(LAYERS),
    )
    def add(
        self, workspace: str, content: str, layer: str, extra: dict[str, Any], key: str | None
    ) -> Any:
        return self._add(workspace, {**extra, "content": content, "layer": layer}, key)

    @rule(
        target=ids,
        session=sessions,
        content=contents,
        unknown=st.booleans(),
        key=keys,
    )
    def add_to_session(self, session: str, content: str, key: str | None, *, unknown: bool) -> Any:
        workspace = self._model.subjects[session].workspace
        session_id = "made up" if unknown else session
        fields = {"content": content, "layer": "episodic", "session_id": session_id}
        return self._add(workspace, fields, key)

    def _add(self, workspace: str, fields: dict[str, Any], key: str | None) -> Any:
        request = ("add", _frozen(fields))
        arguments = {**fields, "idempotency_key": key}
        if self._repeats(workspace, key, request, "memory_add", arguments):
            return multiple()
        result = self._clients[workspace].add(**arguments)
        self._added(workspace, fields, key, result)
        self._candidates_are_current(workspace, result)
        return result.id

    @rule(
        target=ids,
        workspace=workspaces,
        batch=st.lists(items, min_size=1, max_size=5),
        key=keys,
    )
    def add_many(self, workspace: str, batch: list[Any], key: str | None) -> Any:
        before = self._clients[workspace].position()
        result = self._clients[workspace].add_many(*batch, idempotency_key=key)
        fresh: list[AddResult] = []
        for index, (item, outcome) in enumerate(zip(batch, result.results, strict=True)):
            fields = {**item} if isinstance(item, dict) else {}
            own_key = fields.pop("idempotency_key", None) or (key and f"{key}#{index}")
            request = ("add", _frozen(fields))
            used = self._used.get((workspace, own_key or ""))
            if _is_bad(item):
                assert outcome.error is not None
                assert outcome.error.code == "invalid_arguments"
            elif used is not None and used[0] != request:
                assert outcome.error is not None
                assert outcome.error.code == "idempotency_conflict"
            elif used is not None:
                assert outcome.added is not None
                assert (outcome.added.created, outcome.added.position) == (False, used[1][1])
                assert outcome.added.id == used[1][0]
            else:
                assert outcome.added is not None, outcome.error
                self._added(workspace, fields, own_key, outcome.added)
                fresh.append(outcome.added)
        assert result.added_count == len(fresh)
        assert result.refused_count == sum(each.error is not None for each in result.results)
        if not fresh:
            assert self._clients[workspace].position() == before
        for added in fresh:
            self._candidates_are_current(workspace, added)
        return multiple(*(added.id for added in fresh))

    def _added(
        self, workspace: str, given: dict[str, Any], key: str | None, result: AddResult
    ) -> None:
        """Check what a new memory was answered with, and keep it."""
        clock, model = self._home.clock, self._model
        fields = {name: value for name, value in given.items() if name != "ttl_days"}
        if given.get("ttl_days") is not None:
            fields["expires_at"] = expiry(clock.us, given["ttl_days"] * DAY_US)
        state = State(with_defaults(fields))
        place = model.place(workspace, state, clock.us)
        states = model.placed(result.id, state, place, clock.now())
        assert result.created
        assert result.state == status_of(states[result.id])
        assert result.version == result.position
        assert (result.superseded_ids, result.superseded_by) == (place.older, place.newer)
        said = " ".join(result.notes)
        assert all(head in said for head in place.undecided)
        session_id = state.fields["session_id"]
        is_known = session_id in model.sessions(workspace)
        assert ("no session" in said) == (session_id is not None and not is_known)
        model.keep(result.id, workspace, clock.us)
        model.done(workspace, result.position, states)
        self._remember(workspace, key, ("add", _frozen(given)), (result.id, result.position))

    def _candidates_are_current(self, workspace: str, result: AddResult) -> None:
        memories = self._model.memories(workspace)
        expired = self._model.expired(workspace, self._home.clock.now())
        name = memories[result.id].fields["entity_name"] if result.id in memories else None
        for conflict in result.potential_conflicts:
            other = memories[conflict.id]
            assert conflict.id != result.id
            assert status_of(other) == "active"
            assert conflict.id not in expired
            assert name is not None
            assert other.fields["entity_name"] in self._model.names_of(workspace, name)

    # ------------------------------------------------------------------ changing

    @rule(
        memory_id=ids,
        change=changes,
        key=keys,
        target=positions,
        expect=st.sampled_from([None, "right", "wrong"]),
    )
    def update(
        self, memory_id: str, change: dict[str, Any], key: str | None, expect: str | None
    ) -> Any:
        kept = self._model.subjects[memory_id]
        request = (
            "update",
            memory_id,
            _frozen(change),
            expect and kept.version + (expect == "wrong"),
        )
        arguments = {
            **change,
            "id": memory_id,
            "idempotency_key": key,
            **self._expected(kept, expect),
        }
        if self._repeats(kept.workspace, key, request, "memory_update", arguments):
            return multiple()
        client = self._clients[kept.workspace]
        if self._refused(client, kept, expect, "memory_update", arguments):
            return multiple()
        assert isinstance(kept.state, State)
        fields = {**kept.state.fields, **change}
        fields["meta"] = {**kept.state.fields["meta"], **change.get("meta", {})}
        before = client.position()
        result = client.update(memory_id, **_without_id(arguments))
        assert not result.superseded
        assert result.updated_id == memory_id
        assert result.changed == (fields != kept.state.fields)
        if not result.changed:
            assert client.position() == before
            assert result.version == kept.version
            return multiple()
        assert result.position is not None
        self._model.done(
            kept.workspace, result.position, {memory_id: replace(kept.state, fields=fields)}
        )
        self._remember(kept.workspace, key, request, (memory_id, result.position))
        assert result.version == kept.version
        return result.position

    @rule(
        memory_id=ids,
        added=contents,
        cut=st.tuples(st.integers(0, 8), st.integers(1, 3)),
        key=keys,
        target=positions,
        expect=st.sampled_from([None, "right", "wrong"]),
        everywhere=st.booleans(),
    )
    def edit(
        self,
        memory_id: str,
        added: str,
        cut: tuple[int, int],
        key: str | None,
        expect: str | None,
        *,
        everywhere: bool,
    ) -> Any:
        """Append a text, or put it in the place of a piece of the memory's own."""
        kept = self._model.subjects[memory_id]
        content = kept.state.fields["content"] if isinstance(kept.state, State) else "gone"
        old = content[cut[0] : sum(cut)]
        expected = expect and kept.version + (expect == "wrong")
        request = ("edit", memory_id, added, old, everywhere and bool(old), expected)
        arguments: dict[str, Any] = {
            "id": memory_id,
            "idempotency_key": key,
            **self._expected(kept, expect),
        }
        if old:
            tool, text = "memory_patch", content.replace(old, added)
            patch = {"old_string": old, "new_string": added, "replace_all": everywhere}
            arguments |= {"patches": [patch]}
        else:
            tool, text = "memory_append", f"{content}\n\n{added}"
            arguments |= {"text": added}
        if self._repeats(kept.workspace, key, request, tool, arguments):
            return multiple()
        client = self._clients[kept.workspace]
        if self._refused(client, kept, expect, tool, arguments):
            return multiple()
        assert isinstance(kept.state, State)
        if old == added:
            with client.refused(InvalidArgumentsError):
                client.call(tool, arguments)
            return multiple()
        if old and content.count(old) > 1 and not everywhere:
            with client.refused(AnchorError):
                client.call(tool, arguments)
            return multiple()
        before = client.position()
        result: Any = client.call(tool, arguments)
        assert result.changed == (text != content)
        assert result.content_chars == len(text)
        if not result.changed:
            assert client.position() == before
            return multiple()
        fields = {**kept.state.fields, "content": text}
        self._model.done(
            kept.workspace, result.position, {memory_id: replace(kept.state, fields=fields)}
        )
        self._remember(kept.workspace, key, request, (memory_id, result.position))
        assert result.version == kept.version
        return result.position

    @rule(
        memory_id=ids,
        content=contents,
        key=keys,
        target=ids,
        expect=st.sampled_from([None, None, "right", "wrong"]),
    )
    def supersede(self, memory_id: str, content: str, key: str | None, expect: str | None) -> Any:
        kept = self._model.subjects[memory_id]
        request = ("supersede", memory_id, content, expect and kept.version + (expect == "wrong"))
        arguments = {
            "id": memory_id,
            "new_content": content,
            "supersede": True,
            "idempotency_key": key,
            **self._expected(kept, expect),
        }
        if self._repeats(kept.workspace, key, request, "memory_update", arguments):
            return multiple()
        client = self._clients[kept.workspace]
        if self._refused(client, kept, expect, "memory_update", arguments):
            return multiple()
        assert isinstance(kept.state, State)
        if kept.state.superseded_by is not None:
            with client.refused(SupersededError, kept.state.superseded_by):
                client.call("memory_update", arguments)
            return multiple()
        result = client.update(memory_id, **_without_id(arguments))
        assert result.superseded
        assert result.new_id is not None
        assert result.position is not None
        fields = {
            **kept.state.fields,
            "content": content,
            "valid_from": self._home.clock.now(),
            "valid_until": None,
        }
        if fields["expires_at"] is not None and fields["expires_at"] <= self._home.clock.now():
            fields["expires_at"] = None
        self._model.keep(result.new_id, kept.workspace, self._home.clock.us)
        states: dict[str, Standing | None] = {
            result.new_id: State(fields, supersedes=memory_id),
            memory_id: replace(kept.state, superseded_by=result.new_id),
        }
        self._model.done(kept.workspace, result.position, states)
        self._remember(kept.workspace, key, request, (result.new_id, result.position))
        return result.new_id

    # ------------------------------------------------------------------ deleting

    @rule(
        memory_id=ids,
        key=keys,
        target=positions,
        expect=st.sampled_from([None, None, "right", "wrong"]),
    )
    def delete(self, memory_id: str, key: str | None, expect: str | None) -> Any:
        kept = self._model.subjects[memory_id]
        request = ("delete", memory_id, expect and kept.version + (expect == "wrong"))
        arguments = {"id": memory_id, "idempotency_key": key, **self._expected(kept, expect)}
        if self._repeats(kept.workspace, key, request, "memory_delete", arguments):
            return multiple()
        client = self._clients[kept.workspace]
        if self._refused(client, kept, expect, "memory_delete", arguments):
            return multiple()
        states, reactivated = self._model.without([memory_id])
        result = client.delete(memory_id, **_without_id(arguments))
        assert result.deleted
        assert result.reactivated_id == (reactivated[-1] if reactivated else None)
        self._model.done(kept.workspace, result.position, states)
        self._remember(kept.workspace, key, request, (memory_id, result.position))
        return result.position

    @rule(
        workspace=workspaces,
        which=deletions,
        chosen=st.lists(ids, max_size=4),
        key=keys,
        dry_run=st.sampled_from([True, False, False]),
        target=positions,
    )
    def delete_many(
        self,
        workspace: str,
        which: dict[str, Any],
        chosen: list[str],
        key: str | None,
        *,
        dry_run: bool,
    ) -> Any:
        if chosen:
            which = {"ids": chosen}
        request = ("delete_many", _frozen(which), dry_run)
        arguments = {**which, "dry_run": dry_run, "idempotency_key": key}
        if not dry_run and self._repeats(workspace, key, request, "memory_delete_many", arguments):
            return multiple()
        client, before = self._clients[workspace], self._clients[workspace].position()
        gone = self._matching(workspace, which)
        states, reactivated = self._model.without(gone)
        result = client.delete_many(**arguments)
        assert (list(result.ids), result.matched_count) == (gone, len(gone))
        assert result.deleted_count + result.remaining_count == len(gone)
        if dry_run or not gone:
            assert (client.position(), result.position) == (before, None)
            assert result.deleted_count == 0
            return multiple()
        assert result.deleted_count == len(gone)
        assert list(result.reactivated_ids) == reactivated
        assert result.position is not None
        self._model.done(workspace, result.position, states)
        self._remember(workspace, key, request, (tuple(gone), result.position))
        return result.position

    @rule(workspace=workspaces, which=deletions, chosen=st.lists(ids, max_size=4))
    def a_bulk_deletion_and_its_undo_leave_every_memory_as_it_was(
        self, workspace: str, which: dict[str, Any], chosen: list[str]
    ) -> None:
        before = self._rows()
        position = self.delete_many(workspace, which, chosen, None, dry_run=False)
        if isinstance(position, int):
            self._chains_are_whole(workspace)
            self._undo(self._clients[workspace], position, {"position": position})
            assert self._rows() == before

    @rule(workspace=workspaces, key=keys, target=positions)
    def clean_up(self, workspace: str, key: str | None) -> Any:
        request = ("health",)
        arguments = {"cleanup": True, "idempotency_key": key}
        if self._repeats(workspace, key, request, "memory_health", arguments):
            return multiple()
        gone = self._model.expired(workspace, self._home.clock.now())
        states, _ = self._model.without(gone)
        result = self._clients[workspace].health(**arguments)
        assert (result.cleaned_expired, result.remaining_expired) == (len(gone), 0)
        assert (result.expired_count, result.expired) == (0, ())
        assert (result.orphaned_chains, result.looped_ids) == ((), ())
        assert (result.position is None) == (not gone)
        if result.position is None:
            return multiple()
        self._model.done(workspace, result.position, states)
        self._remember(workspace, key, request, (tuple(gone), result.position))
        return result.position

    # ------------------------------------------------------------------ sessions and aliases

    @rule(target=sessions, workspace=workspaces, project=names, key=keys)
    def start_session(self, workspace: str, project: str | None, key: str | None) -> Any:
        request = ("session_start", project)
        arguments: dict[str, Any] = {"client": "editor", "project": project, "idempotency_key": key}
        if self._repeats(workspace, key, request, "memory_session_start", arguments):
            return multiple()
        result = self._clients[workspace].session_start(**arguments)
        assert result.started_at == self._home.clock.now()
        self._model.keep(result.id, workspace, self._home.clock.us)
        session = Session("editor", project, result.started_at)
        self._model.done(workspace, result.position, {result.id: session})
        self._remember(workspace, key, request, (result.id, result.position))
        return result.id

    @rule(target=positions, session=sessions, summary=names, key=keys)
    def end_session(self, session: str, summary: str | None, key: str | None) -> Any:
        kept = self._model.subjects[session]
        client = self._clients[kept.workspace]
        request = ("session_end", session, summary)
        arguments = {"id": session, "summary": summary, "idempotency_key": key}
        if self._repeats(kept.workspace, key, request, "memory_session_end", arguments):
            return multiple()
        if not isinstance(kept.state, Session) or kept.state.ended_at is not None:
            error = SessionEndedError if isinstance(kept.state, Session) else NotFoundError
            with client.refused(error):
                client.call("memory_session_end", arguments)
            return multiple()
        result = client.session_end(session, **_without_id(arguments))
        now = self._home.clock.now()
        assert (result.ended_at, result.summary) == (now, summary)
        assert result.duration_minutes is not None
        assert result.duration_minutes >= 0
        assert result.memories_count == self._model.count_of_session(kept.workspace, session)
        ended = replace(kept.state, ended_at=now, summary=summary)
        self._model.done(kept.workspace, result.position, {session: ended})
        self._remember(kept.workspace, key, request, (session, result.position))
        return result.position

    @rule(
        target=positions,
        workspace=workspaces,
        name=st.sampled_from(ENTITIES),
        entity=st.sampled_from(ENTITIES),
        key=keys,
    )
    def add_alias(self, workspace: str, name: str, entity: str, key: str | None) -> Any:
        request = ("alias", "add", name, entity)
        arguments: dict[str, Any] = {
            "action": "add",
            "alias": name,
            "entity_name": entity,
            "idempotency_key": key,
        }
        if self._repeats(workspace, key, request, "memory_alias", arguments):
            return multiple()
        client = self._clients[workspace]
        known = [
            each.entity for each in self._model.aliases(workspace).values() if each.name == name
        ]
        if known and known != [entity]:
            with client.refused(AliasConflictError, known[0]):
                client.call("memory_alias", arguments)
            return multiple()
        before = client.position()
        result = client.alias(**arguments)
        if name in self._model.names_of(workspace, entity):
            assert (result.changed, client.position()) == (False, before)
            return multiple()
        assert result.changed
        assert result.position is not None
        alias_id = self._alias_id(client, result.position)
        self._model.keep(alias_id, workspace, self._home.clock.us)
        self._model.done(workspace, result.position, {alias_id: Alias(name, entity)})
        self._remember(workspace, key, request, (alias_id, result.position))
        return result.position

    @rule(target=positions, workspace=workspaces, name=st.sampled_from(ENTITIES), key=keys)
    def remove_alias(self, workspace: str, name: str, key: str | None) -> Any:
        request = ("alias", "remove", name)
        arguments: dict[str, Any] = {"action": "remove", "alias": name, "idempotency_key": key}
        if self._repeats(workspace, key, request, "memory_alias", arguments):
            return multiple()
        client = self._clients[workspace]
        known = [
            alias_id
            for alias_id, each in self._model.aliases(workspace).items()
            if each.name == name
        ]
        if not known:
            with client.refused(NotFoundError, name):
                client.call("memory_alias", arguments)
            return multiple()
        result = client.alias(**arguments)
        assert result.changed
        assert result.position is not None
        self._model.done(workspace, result.position, {known[0]: None})
        self._remember(workspace, key, request, (known[0], result.position))
        return result.position

    # ------------------------------------------------------------------ undoing

    @rule(
        position=positions | st.integers(1, 40),
        workspace=workspaces,
        target=positions,
        key=keys,
    )
    def undo_position(self, position: int, workspace: str, key: str | None) -> Any:
        done = self._model.operations.get(position)
        client = self._clients[workspace]
        request = ("undo", position)
        arguments = {"position": position, "idempotency_key": key}
        if self._repeats(workspace, key, request, "memory_undo", arguments):
            return multiple()
        if done is None or done.workspace != workspace:
            with client.refused(NotFoundError, str(position)):
                client.call("memory_undo", arguments)
            return multiple()
        undone = self._undo(client, position, arguments)
        if isinstance(undone, int):
            self._remember(workspace, key, request, (position, undone))
        return undone

    @rule(subject=ids | sessions, target=positions)
    def undo_last(self, subject: str) -> Any:
        kept = self._model.subjects[subject]
        client = self._clients[kept.workspace]
        left = self._model.not_undone(kept.operations)
        if not left:
            with client.refused(UndoConflictError, "Every operation"):
                client.undo(id=subject)
            return multiple()
        return self._undo(client, left[-1], {"id": subject})

    @rule(subject=ids | sessions)
    def undo_twice_is_nothing(self, subject: str) -> None:
        kept = self._model.subjects[subject]
        client = self._clients[kept.workspace]
        position = kept.operations[-1]
        touched = self._model.operations[position].before
        states = {one: self._model.subjects[one].state for one in touched}
        undone = self._undo(client, position, {"position": position})
        if isinstance(undone, int):
            self._undo(client, undone, {"position": undone})
            assert {one: self._model.subjects[one].state for one in touched} == states

    # ------------------------------------------------------------------ refusals

    @rule(memory_id=ids, blank=blanks)
    def blank_content_is_refused(self, memory_id: str, blank: str) -> None:
        kept = self._model.subjects[memory_id]
        client = self._clients[kept.workspace]
        with client.refused(InvalidArgumentsError, "content"):
            client.add(blank)
        expected = InvalidArgumentsError if kept.state is not None else NotFoundError
        with client.refused(expected):
            client.update(memory_id, content=blank)
        with client.refused(expected):
            client.update(memory_id, supersede=True, new_content=blank)

    @rule(memory_id=ids)
    def a_memory_of_another_workspace_is_not_there(self, memory_id: str) -> None:
        (other,) = {*WORKSPACES} - {self._model.subjects[memory_id].workspace}
        client = self._clients[other]
        for tool in ("memory_inspect", "memory_delete", "memory_undo", "memory_update"):
            with client.refused(NotFoundError):
                client.call(tool, {"id": memory_id})

    @rule(
        workspace=workspaces,
        date=st.sampled_from(["2026-02-30", "2026-13-01", "2026-01-01x"]),
    )
    def a_date_that_is_none_is_refused(self, workspace: str, date: str) -> None:
        client = self._clients[workspace]
        with client.refused(InvalidArgumentsError, "event_at"):
            client.add("content", event_at=date)

    # ------------------------------------------------------------------ what happens in between

    @rule(seconds=st.sampled_from([1, 3600, 2 * 86_400, -7_200]))
    def time_passes(self, seconds: int) -> None:
        self._home.clock.advance(seconds=seconds)

    @rule()
    def reopen(self) -> None:
        self._home.close()
        self._open()

    @rule()
    def rebuild(self) -> None:
        self._home.rebuilt()
        self._open()

    @rule(workspace=workspaces)
    def upkeep(self, workspace: str) -> None:
        self._clients[workspace].store.upkeep.run_once()

    @rule()
    def live_equals_replayed(self) -> None:
        self._compare_with_replay()

    # ------------------------------------------------------------------ what always holds

    @rule(memory_id=ids)
    def answers_are_what_the_model_says(self, memory_id: str) -> None:
        kept = self._model.subjects[memory_id]
        seen = self._clients[kept.workspace].inspect(memory_id, include_history=True)
        assert seen.versions is not None
        history = [(version.status, version.content) for version in reversed(seen.versions)]
        assert history == kept.history
        if kept.state is None:
            assert seen.memory is None
            assert seen.status == "deleted"
            return
        assert isinstance(kept.state, State)
        assert seen.memory is not None
        shown = {name: getattr(seen.memory, name) for name in kept.state.fields}
        assert shown == {**kept.state.fields, "tags": tuple(kept.state.fields["tags"])}
        assert seen.memory.version == kept.version
        assert seen.memory.supersedes == kept.state.supersedes
        assert seen.memory.superseded_by == kept.state.superseded_by
        assert seen.superseded_chain is not None
        assert [memory.id for memory in seen.superseded_chain] == self._model.chain(memory_id)
        expires_at = kept.state.fields["expires_at"]
        expired = expires_at is not None and expires_at <= self._home.clock.now()
        status = status_of(kept.state)
        assert seen.status == ("expired" if expired and status == "active" else status)

    @rule(workspace=workspaces)
    def counts_are_what_the_model_says(self, workspace: str) -> None:
        memories = self._model.memories(workspace)
        expired = self._model.expired(workspace, self._home.clock.now())
        seen = self._clients[workspace].inspect()
        assert seen.layer_stats is not None
        assert seen.total == len(memories)
        for layer, counted in seen.layer_stats.items():
            here = [
                "expired"
                if memory_id in expired and state.superseded_by is None
                else status_of(state)
                for memory_id, state in memories.items()
                if state.fields["layer"] == layer
            ]
            assert (counted.total, counted.active, counted.superseded, counted.expired) == (
                len(here),
                here.count("active"),
                here.count("superseded"),
                here.count("expired"),
            )

    @rule(workspace=workspaces)
    def chains_are_whole(self, workspace: str) -> None:
        self._chains_are_whole(workspace)

    @rule(workspace=workspaces, name=st.sampled_from(ENTITIES))
    def lists_are_what_the_model_says(self, workspace: str, name: str) -> None:
        client, model = self._clients[workspace], self._model
        expired = model.expired(workspace, self._home.clock.now())
        names = model.names_of(workspace, name)
        expected = [
            memory_id
            for memory_id, state in model.memories(workspace).items()
            if status_of(state) == "active"
            and memory_id not in expired
            and state.fields["entity_name"] in names
        ]
        found = client.listed(order="oldest", limit=3, entity_name=name)
        assert [memory.id for memory in found] == expected

    @rule(workspace=workspaces)
    def sessions_and_aliases_are_what_the_model_says(self, workspace: str) -> None:
        client, model = self._clients[workspace], self._model
        seen = client.session_list(limit=100)
        expected = list(reversed(model.sessions(workspace).items()))
        assert [session.id for session in seen.sessions] == [one for one, _ in expected]
        for shown, (session_id, session) in zip(seen.sessions, expected, strict=True):
            assert Session(
                shown.client, shown.project, shown.started_at, shown.ended_at, shown.summary
            ) == session  # fmt: skip
            assert shown.memories_count == model.count_of_session(workspace, session_id)
        listed = {(each.alias, each.entity_name) for each in client.alias("list").aliases}
        assert listed == {(each.name, each.entity) for each in model.aliases(workspace).values()}

    # ------------------------------------------------------------------ pieces

    def _open(self) -> None:
        self._clients = {name: self._home.open(name) for name in WORKSPACES}

    def _chains_are_whole(self, workspace: str) -> None:
        memories = self._clients[workspace].listed(include_superseded=True, include_expired=True)
        states = self._model.memories(workspace)
        assert {
            memory.id: (memory.supersedes, memory.superseded_by) for memory in memories
        } == {
            memory_id: (state.supersedes, state.superseded_by)
            for memory_id, state in states.items()
        }  # fmt: skip
        assert chain_faults(memories) == []

    def _rows(self) -> list[tuple[object, ...]]:
        """Return every memory as the tables have it, but for when it was touched."""

        def read(connection: Connection) -> list[tuple[object, ...]]:
            columns = [
                name
                for (name,) in connection.execute("SELECT name FROM pragma_table_info('memories')")
                if name not in KEPT_COLUMNS
            ]
            return list(
                connection.execute(f"SELECT {', '.join(columns)} FROM memories ORDER BY rid")
            )

        return self._clients[WORKSPACES[0]].store.reads.run(Call(), read)

    @staticmethod
    def _alias_id(client: Client, position: int) -> str:
        def read(connection: Connection) -> str:
            return str(connection.value("SELECT id FROM aliases WHERE rid = ?", (position,)))

        return client.store.reads.run(Call(), read)

    def _matching(self, workspace: str, which: dict[str, Any]) -> list[str]:
        names = self._model.names_of(workspace, which.get("entity_name", ""))

        def matches(memory_id: str, fields: dict[str, Any]) -> bool:
            return (
                ("ids" not in which or memory_id in which["ids"])
                and ("layers" not in which or fields["layer"] in which["layers"])
                and ("entity_name" not in which or fields["entity_name"] in names)
                and {*which.get("tags", ())} <= {*fields["tags"]}
                and all(
                    fields[name] == which[name]
                    for name in ("scope", "source_file")
                    if name in which
                )
            )

        memories = self._model.memories(workspace)
        return [one for one, state in memories.items() if matches(one, state.fields)]

    def _undo(self, client: Client, position: int, arguments: dict[str, Any]) -> Any:
        done = self._model.operations[position]
        later = self._model.later(position)
        if later:
            with client.refused(UndoConflictError) as caught:
                client.undo(**arguments)
            assert caught.value.details["later"] == later
            return multiple()
        taken = {each.name for each in self._model.aliases(done.workspace).values()}
        if any(isinstance(one, Alias) and one.name in taken for one in done.before.values()):
            with client.refused(AliasConflictError):
                client.undo(**arguments)
            return multiple()
        result = client.undo(**arguments)
        assert result.undone
        assert result.undone_position == position
        assert result.position is not None
        assert set(result.memories) == set(done.before)
        self._model.done(
            done.workspace,
            result.position,
            {one: done.before[one] for one in result.memories},
            undoes=position,
        )
        return result.position

    def _expected(self, kept: Kept, expect: str | None) -> dict[str, int]:
        return {} if expect is None else {"expected_version": kept.version + (expect == "wrong")}

    def _refused(
        self, client: Client, kept: Kept, expect: str | None, tool: str, arguments: dict[str, Any]
    ) -> bool:
        """Check that a call on a deleted memory, or on a stale version, is refused."""
        error: type[UseCaseError]
        if kept.state is None:
            error, words = NotFoundError, "was deleted"
        elif expect == "wrong":
            error, words = VersionConflictError, f"at version {kept.version}"
        else:
            return False
        with client.refused(error, words):
            client.call(tool, arguments)
        return True

    def _repeats(
        self,
        workspace: str,
        key: str | None,
        request: tuple[object, ...],
        tool: str,
        arguments: dict[str, Any],
    ) -> bool:
        """Check what a key that was used before brings; say whether it was."""
        if key is None or (workspace, key) not in self._used:
            return False
        client = self._clients[workspace]
        first, (subject, position) = self._used[workspace, key]
        if first != request:
            with client.refused(IdempotencyConflictError):
                client.call(tool, arguments)
            return True
        end = client.position()
        result: Any = client.call(tool, arguments)
        assert client.position() == end
        assert result.position == position
        assert result.notes
        self._check_repeated(str(request[0]), subject, result)
        return True

    def _check_repeated(self, kind: str, subject: Any, result: Any) -> None:
        kept = self._model.subjects.get(subject) if isinstance(subject, str) else None
        match kind:
            case "add":
                assert (result.id, result.created) == (subject, False)
                assert kept is not None
                assert result.state == status_of(kept.state)
            case "update" | "supersede":
                assert not result.changed
                assert (result.new_id or result.updated_id) == subject
                assert kept is not None
                assert result.state == status_of(kept.state)
            case "edit":
                assert not result.changed
                assert kept is not None
                assert result.state == status_of(kept.state)
            case "delete":
                assert (result.deleted_id, result.deleted) == (subject, False)
            case "delete_many":
                assert (result.ids, result.deleted_count) == (subject, 0)
            case "health":
                assert result.cleaned_expired == 0
            case "session_start":
                assert result.id == subject
            case "session_end":
                assert kept is not None
                ended = kept.state.ended_at if isinstance(kept.state, Session) else None
                assert (result.id, result.ended_at, result.summary) == (subject, ended, None)
            case "alias":
                assert not result.changed
            case _:
                assert (kind, result.undone, result.undone_position) == ("undo", False, subject)

    def _remember(
        self, workspace: str, key: str | None, request: tuple[object, ...], answer: tuple[Any, int]
    ) -> None:
        if key is not None:
            self._used[workspace, key] = (request, answer)

    def _compare_with_replay(self) -> None:
        client = self._clients[WORKSPACES[0]]
        scratch = self._folder / "replayed.db"
        assert live_digest(client).text() == replayed_digest(client, scratch).text()
        assert self._home.verify().problems == []


def _is_bad(item: object) -> bool:
    """Whether an item of a batch is one of those that no memory can be made of."""
    if not isinstance(item, dict) or not {"content", "layer"} <= {*item}:
        return True
    return (
        item["layer"] not in LAYERS
        or item["content"] == "\u200b"
        or item.get("event_at") == "2026-02-30"
        or bool({"colour", "confidence"} & {*item})
    )


def _without_id(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name != "id"}


def _frozen(value: Any) -> str:
    return repr(sorted(value.items()))


@pytest.mark.guarantee(
    "G-TABLES-1", "G-UNDO-1", "G-HISTORY-1", "G-CHAIN-1", "G-REPEAT-1", "G-STALE-1", "G-DELETE-1"
)
def test_live_tables_equal_a_replay_and_answers_equal_a_dict() -> None:
    run_state_machine_as_test(
        Histories,
        settings=settings(
            max_examples=settings().max_examples // 4,
            stateful_step_count=40,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )


moves = st.tuples(
    st.sampled_from(
        [
            *("add", "add", "add", "add", "supersede", "clock"),
            *("delete", "delete some", "delete some and undo", "undo", "undo"),
        ]
    ),
    st.integers(0, 255),
    st.sampled_from([None, None, "2026-01-01", "2026-06-01", "2026-06-15", "2026-07"]),
)


@pytest.mark.guarantee("G-CHAIN-1")
@settings(max_examples=settings().max_examples // 2)
@given(st.lists(moves, min_size=4, max_size=30))
def test_chains_of_one_file_stay_whole_whatever_is_put_in_deleted_and_undone(
    history: list[tuple[str, int, str | None]],
) -> None:
    machine = Histories()
    try:
        for move, number, date in history:
            _play(machine, move, number, date)
            machine._chains_are_whole(WORKSPACES[0])
    finally:
        machine.teardown()


def _play(machine: Histories, move: str, number: int, date: str | None) -> None:
    workspace, memories = WORKSPACES[0], [*machine._model.memories(WORKSPACES[0])]
    some = [one for bit, one in enumerate(memories[-8:]) if number >> bit & 1]
    if move == "clock":
        machine.time_passes(3_600 * (number % 5 - 2))
    elif move == "add" or not memories:
        event = {} if date is None else {"event_at": date}
        machine.add(
            workspace, f"note {number}", LAYERS[0], {"source_file": FILES[1], **event}, None
        )
    elif move == "supersede":
        machine.supersede(memories[number % len(memories)], f"note {number}", None, None)
    elif move == "delete":
        machine.delete(memories[number % len(memories)], None, None)
    elif move == "undo":
        done = [*machine._model.operations]
        machine.undo_position(done[-1 - number % len(done)], workspace, None)
    elif some and move == "delete some":
        machine.delete_many(workspace, {}, some, None, dry_run=False)
    elif some:
        machine.a_bulk_deletion_and_its_undo_leave_every_memory_as_it_was(workspace, {}, some)
