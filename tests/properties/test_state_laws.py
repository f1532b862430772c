"""Any history of commands: live tables equal a replay, and answers are what a dict says."""

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from unicodedata import category

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    multiple,
    rule,
    run_state_machine_as_test,
)

from ledger import format_us
from server.errors import (
    IdempotencyConflictError,
    InvalidArgumentsError,
    NotFoundError,
    SupersededError,
    UndoConflictError,
    UseCaseError,
    VersionConflictError,
)
from tests.support.store import DAY_US, MEMORY_DISK, Client, Home, live_digest, replayed_digest

WORKSPACES: Final = ("default", "other")
KEYS: Final = ("k1", "k2", "ключ")
WORDS: Final = (
    "boiler",
    "Pump",
    "насос",
    "Матрёна",
    "服务器",
    "🚀",
    "👩‍👩‍👧",
    "e\u0301",
    "\x00",
    "\x07",
    "\u2028",
    "a\tb",
    '"',
    "{",
    "\\",
    "ﬁ",
    "İ",
    "ß",
    "\U0010ffff",
    "line\nbreak",
    "\r",
    "İstanbul",
    "ا",
    "ไทย",
    "70/140",
)
DATES: Final = (
    "2024-05-01",
    "2026-01-31T10:00",
    "2026-01-31T10:00:00+02:00",
    "0001-01-01",
    "9999-12-31",
    "2025-12-31T23:59:59.999999Z",
)

INVISIBLE = {"Cc", "Cf", "Zl", "Zp", "Zs"}
contents = st.one_of(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30),
).filter(lambda text: any(category(each) not in INVISIBLE for each in text))
blanks = st.sampled_from(["", " ", "\n\t ", "\u3000", "\x1f", "\x00", "\u200b\ufeff"])
names = st.one_of(st.none(), st.sampled_from(["", "Ana", "Матрёна 🚀", "\x00", "%_"]))
shares = st.sampled_from([0.0, 0.1, 0.5, 0.8, 1.0, 1 / 3])
tags = st.lists(
    st.sampled_from(["port", "report", "50%", "red_box", "🚀", "a,b", "\x00"]), max_size=3
)
metas = st.dictionaries(
    st.sampled_from(["a", "b", "ключ", ""]),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**53), 2**53)
        | st.floats(-1e9, 1e9)
        | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
        ),
        max_leaves=3,
    ),
    max_size=2,
)
extras = st.fixed_dictionaries(
    {},
    optional={
        "title": names,
        "entity_name": names,
        "entity_type": st.sampled_from(["person", "rule"]),
        "scope": st.sampled_from(["", "alpha", "f_rn"]),
        "tags": tags,
        "meta": metas,
        "confidence": shares,
        "importance": shares,
        "event_at": st.sampled_from(DATES),
        "valid_from": st.sampled_from(DATES[:1]),
        "valid_until": st.sampled_from(DATES[4:5]),
        "ttl_days": st.sampled_from([0.001, 1, 400]),
        "source_file": names,
    },
)
changes = st.fixed_dictionaries(
    {},
    optional={
        "content": contents,
        "title": names.filter(lambda name: name is not None),
        "tags": tags,
        "meta": metas,
        "confidence": shares,
        "importance": shares,
    },
)
keys = st.one_of(st.none(), st.none(), st.sampled_from(KEYS))


@dataclass(frozen=True)
class State:
    """What a memory says."""

    fields: dict[str, Any]
    supersedes: str | None = None
    superseded_by: str | None = None


@dataclass
class Kept:
    """A memory of the model: where it is, its state (None: deleted), and its versions so far."""

    workspace: str
    state: State | None
    version: int
    operations: list[int]
    history: list[tuple[str, str | None]] = field(default_factory=list)
    """Status and content of every version, oldest first."""

    def move(self, state: State | None, position: int, seq: int) -> None:
        moved = (
            self.state is None
            or state is None
            or self.state.fields != state.fields
            or (self.state.superseded_by is None) != (state.superseded_by is None)
        )
        self.state = state
        self.operations.append(position)
        if moved:
            self.version = seq
        self.history.append((status_of(state), None if state is None else state.fields["content"]))


@dataclass(frozen=True)
class Done:
    """An operation: what each memory it touched was before, by id."""

    workspace: str
    before: dict[str, State | None]
    undoes: int = 0
    """The position that it undid; 0 for none."""


def status_of(state: State | None) -> str:
    if state is None:
        return "deleted"
    return "active" if state.superseded_by is None else "superseded"


class Histories(RuleBasedStateMachine):
    """Two workspaces of one home, their clients, and the model."""

    ids = Bundle("ids")
    positions = Bundle("positions")

    def __init__(self) -> None:
        super().__init__()
        self._folder = Path(tempfile.mkdtemp(prefix="laws-", dir=MEMORY_DISK))
        self._home = Home(self._folder / "home")
        self._clients: dict[str, Client] = {}
        self._memories: dict[str, Kept] = {}
        self._operations: dict[int, Done] = {}
        self._used: dict[tuple[str, str], tuple[tuple[object, ...], tuple[str, int]]] = {}
        """(workspace, key) -> the request and the ids and position it was answered with."""
        self._open()

    def teardown(self) -> None:
        try:
            self._compare_with_replay()
        finally:
            self._home.close()
            shutil.rmtree(self._folder)

    # ------------------------------------------------------------------ commands

    @rule(
        target=ids,
        workspace=st.sampled_from(WORKSPACES),
        content=contents,
        extra=extras,
        key=keys,
        layer=st.sampled_from(["episodic", "semantic", "procedural", "resource"]),
    )
    def add(
        self, workspace: str, content: str, layer: str, extra: dict[str, Any], key: str | None
    ) -> Any:  # noqa: ANN401
        request = ("add", content, layer, _frozen(extra))
        arguments = {**extra, "content": content, "layer": layer, "idempotency_key": key}
        if self._repeats(workspace, key, request, "memory_add", arguments):
            return multiple()
        result = self._clients[workspace].add(**arguments)
        assert result.created
        assert result.state == "active"
        assert result.version == result.position
        fields = {name: value for name, value in extra.items() if name != "ttl_days"}
        if extra.get("ttl_days") is not None:
            fields["expires_at"] = format_us(int(self._home.clock.us + extra["ttl_days"] * DAY_US))
        state = State(_with_defaults({**fields, "content": content, "layer": layer}))
        self._memories[result.id] = Kept(workspace, None, 0, [])
        self._done(workspace, result.position, {result.id: state})
        self._remember(workspace, key, request, (result.id, result.position))
        return result.id

    @rule(
        memory_id=ids,
        change=changes,
        key=keys,
        target=positions,
        expect=st.sampled_from([None, "right", "wrong"]),
    )
    def update(
        self, memory_id: str, change: dict[str, Any], key: str | None, expect: str | None
    ) -> Any:  # noqa: ANN401
        kept = self._memories[memory_id]
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
        assert kept.state is not None
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
        self._done(kept.workspace, result.position, {memory_id: replace(kept.state, fields=fields)})
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
    def supersede(self, memory_id: str, content: str, key: str | None, expect: str | None) -> Any:  # noqa: ANN401
        kept = self._memories[memory_id]
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
        assert kept.state is not None
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
        self._memories[result.new_id] = Kept(kept.workspace, None, 0, [])
        states = {
            result.new_id: State(fields, supersedes=memory_id),
            memory_id: replace(kept.state, superseded_by=result.new_id),
        }
        self._done(kept.workspace, result.position, states)
        self._remember(kept.workspace, key, request, (result.new_id, result.position))
        return result.new_id

    @rule(
        memory_id=ids,
        key=keys,
        target=positions,
        expect=st.sampled_from([None, None, "right", "wrong"]),
    )
    def delete(self, memory_id: str, key: str | None, expect: str | None) -> Any:  # noqa: ANN401
        kept = self._memories[memory_id]
        request = ("delete", memory_id, expect and kept.version + (expect == "wrong"))
        arguments = {"id": memory_id, "idempotency_key": key, **self._expected(kept, expect)}
        if self._repeats(kept.workspace, key, request, "memory_delete", arguments):
            return multiple()
        client = self._clients[kept.workspace]
        if self._refused(client, kept, expect, "memory_delete", arguments):
            return multiple()
        assert kept.state is not None
        older, newer = kept.state.supersedes, kept.state.superseded_by
        result = client.delete(memory_id, **_without_id(arguments))
        states: dict[str, State | None] = {memory_id: None}
        if older is not None:
            states[older] = replace(self._state(older), superseded_by=newer)
        if newer is not None:
            states[newer] = replace(self._state(newer), supersedes=older)
        assert result.deleted
        assert result.reactivated_id == (older if newer is None else None)
        self._done(kept.workspace, result.position, states)
        self._remember(kept.workspace, key, request, (memory_id, result.position))
        return result.position

    @rule(
        position=positions | st.integers(1, 40),
        workspace=st.sampled_from(WORKSPACES),
        target=positions,
    )
    def undo_position(self, position: int, workspace: str) -> Any:  # noqa: ANN401
        done = self._operations.get(position)
        client = self._clients[workspace]
        if done is None or done.workspace != workspace:
            with client.refused(NotFoundError, str(position)):
                client.undo(position=position)
            return multiple()
        return self._undo(client, position, {"position": position})

    @rule(memory_id=ids, target=positions)
    def undo_last(self, memory_id: str) -> Any:  # noqa: ANN401
        kept = self._memories[memory_id]
        client = self._clients[kept.workspace]
        left = self._not_undone(kept.operations)
        if not left:
            with client.refused(UndoConflictError, "Every operation"):
                client.undo(id=memory_id)
            return multiple()
        return self._undo(client, left[-1], {"id": memory_id})

    @rule(memory_id=ids)
    def undo_twice_is_nothing(self, memory_id: str) -> None:
        kept = self._memories[memory_id]
        client = self._clients[kept.workspace]
        position = kept.operations[-1]
        touched = self._operations[position].before
        states = {one: self._memories[one].state for one in touched}
        undone = self._undo(client, position, {"position": position})
        if isinstance(undone, int):
            self._undo(client, undone, {"position": undone})
            assert {one: self._memories[one].state for one in touched} == states

    # ------------------------------------------------------------------ refusals

    @rule(memory_id=ids, blank=blanks)
    def blank_content_is_refused(self, memory_id: str, blank: str) -> None:
        kept = self._memories[memory_id]
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
        (other,) = {*WORKSPACES} - {self._memories[memory_id].workspace}
        client = self._clients[other]
        for tool in ("memory_inspect", "memory_delete", "memory_undo", "memory_update"):
            with client.refused(NotFoundError):
                client.call(tool, {"id": memory_id})

    @rule(
        workspace=st.sampled_from(WORKSPACES),
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

    @rule(workspace=st.sampled_from(WORKSPACES))
    def upkeep(self, workspace: str) -> None:
        self._clients[workspace].store.upkeep.run_once()

    @rule()
    def live_equals_replayed(self) -> None:
        self._compare_with_replay()

    # ------------------------------------------------------------------ what always holds

    @rule(memory_id=ids)
    def answers_are_what_the_model_says(self, memory_id: str) -> None:
        kept = self._memories[memory_id]
        seen = self._clients[kept.workspace].inspect(memory_id, include_history=True)
        assert seen.versions is not None
        history = [(version.status, version.content) for version in reversed(seen.versions)]
        assert history == kept.history
        if kept.state is None:
            assert seen.memory is None
            assert seen.status == "deleted"
            return
        assert seen.memory is not None
        shown = {name: getattr(seen.memory, name) for name in kept.state.fields}
        assert shown == {**kept.state.fields, "tags": tuple(kept.state.fields["tags"])}
        assert seen.memory.version == kept.version
        assert seen.memory.supersedes == kept.state.supersedes
        assert seen.memory.superseded_by == kept.state.superseded_by
        assert seen.superseded_chain is not None
        assert [memory.id for memory in seen.superseded_chain] == self._chain(memory_id)
        expires_at = kept.state.fields["expires_at"]
        expired = expires_at is not None and expires_at <= self._home.clock.now()
        status = status_of(kept.state)
        assert seen.status == ("expired" if expired and status == "active" else status)

    @rule(workspace=st.sampled_from(WORKSPACES))
    def counts_are_what_the_model_says(self, workspace: str) -> None:
        states = [
            kept.state
            for kept in self._memories.values()
            if kept.workspace == workspace and kept.state is not None
        ]
        seen = self._clients[workspace].inspect()
        assert seen.layers is not None
        assert seen.total == len(states)
        for layer, counted in seen.layers.items():
            here = [status_of(state) for state in states if state.fields["layer"] == layer]
            assert (counted.total, counted.active, counted.superseded) == (
                len(here),
                here.count("active"),
                here.count("superseded"),
            )

    # ------------------------------------------------------------------ pieces

    def _open(self) -> None:
        self._clients = {name: self._home.open(name) for name in WORKSPACES}

    def _state(self, memory_id: str) -> State:
        state = self._memories[memory_id].state
        assert state is not None
        return state

    def _chain(self, memory_id: str) -> list[str]:
        """Newest first."""
        state = self._state(memory_id)
        while state.superseded_by is not None:
            memory_id = state.superseded_by
            state = self._state(memory_id)
        chain = [memory_id]
        while state.supersedes is not None:
            chain.append(state.supersedes)
            state = self._state(state.supersedes)
        return chain

    def _done(
        self, workspace: str, position: int, states: Mapping[str, State | None], undoes: int = 0
    ) -> None:
        """Note an operation whose events, one a memory, are in this order."""
        before = {memory_id: self._memories[memory_id].state for memory_id in states}
        self._operations[position] = Done(workspace, before, undoes)
        for seq, (memory_id, state) in enumerate(states.items(), position):
            self._memories[memory_id].move(state, position, seq)

    def _undo(self, client: Client, position: int, arguments: dict[str, Any]) -> Any:  # noqa: ANN401
        done = self._operations[position]
        later: set[int] = set()
        for memory_id in done.before:
            after = [each for each in self._memories[memory_id].operations if each > position]
            later.update(self._not_undone(after))
        if later:
            with client.refused(UndoConflictError) as caught:
                client.undo(**arguments)
            assert caught.value.details["later"] == sorted(later)
            return multiple()
        result = client.undo(**arguments)
        assert result.undone
        assert result.undone_position == position
        assert set(result.memories) == set(done.before)
        self._done(
            done.workspace,
            result.position,
            {one: done.before[one] for one in result.memories},
            undoes=position,
        )
        return result.position

    def _not_undone(self, operations: list[int]) -> list[int]:
        """Return the operations left when each undo, newest first, took its target and itself."""
        left = list(operations)
        for position in reversed(operations):
            undoes = self._operations[position].undoes
            if position in left and undoes in left:
                left.remove(position)
                left.remove(undoes)
        return left

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
        first, (memory_id, position) = self._used[workspace, key]
        if first != request:
            with client.refused(IdempotencyConflictError):
                client.call(tool, arguments)
            return True
        end = client.position()
        result: Any = client.call(tool, arguments)
        assert client.position() == end
        assert result.position == position
        assert result.notes
        state = self._memories[memory_id].state
        match request[0]:
            case "add":
                assert (result.id, result.created) == (memory_id, False)
                assert result.state == status_of(state)
            case "update" | "supersede":
                assert not result.changed
                assert (result.new_id or result.updated_id) == memory_id
                assert result.state == status_of(state)
            case _:
                assert (result.deleted_id, result.deleted) == (memory_id, False)
        return True

    def _remember(
        self, workspace: str, key: str | None, request: tuple[object, ...], answer: tuple[str, int]
    ) -> None:
        if key is not None:
            self._used[workspace, key] = (request, answer)

    def _compare_with_replay(self) -> None:
        client = self._clients[WORKSPACES[0]]
        scratch = self._folder / "replayed.db"
        assert live_digest(client).text() == replayed_digest(client, scratch).text()
        assert self._home.verify().problems == []


def _with_defaults(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "title": None,
        "entity_type": None,
        "entity_name": None,
        "scope": "global",
        "tags": [],
        "meta": {},
        "confidence": 0.8,
        "importance": 0.5,
        "source": "api",
        "source_file": None,
        "session_id": None,
        "event_at": None,
        "valid_from": None,
        "valid_until": None,
        "expires_at": None,
        **fields,
    }


def _without_id(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name != "id"}


def _frozen(value: Any) -> str:  # noqa: ANN401
    return repr(sorted(value.items()))


def test_live_tables_equal_a_replay_and_answers_equal_a_dict() -> None:
    run_state_machine_as_test(
        Histories,
        settings=settings(
            max_examples=settings().max_examples // 4,
            stateful_step_count=40,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
