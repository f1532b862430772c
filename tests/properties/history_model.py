"""A store as a dict: what every subject is now, what each operation found, and what follows."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ledger import format_us, parse_span


@dataclass(frozen=True)
class State:
    """What a memory says."""

    fields: dict[str, Any]
    supersedes: str | None = None
    superseded_by: str | None = None


@dataclass(frozen=True)
class Session:
    """What a session says."""

    client: str
    project: str | None
    started_at: str
    ended_at: str | None = None
    summary: str | None = None


@dataclass(frozen=True)
class Alias:
    """Two names of one entity."""

    name: str
    entity: str


Standing = State | Session | Alias


@dataclass
class Kept:
    """A subject: where it is, its state (None: deleted, withdrawn, removed), what was done to it.

    Only memories have versions: the position of the last, and status and content of each, oldest
    first.
    """

    workspace: str
    created_us: int
    state: Standing | None = None
    version: int = 0
    operations: list[int] = field(default_factory=list)
    history: list[tuple[str, str | None]] = field(default_factory=list)

    def move(self, state: Standing | None, position: int, seq: int) -> None:
        before, self.state = self.state, state
        self.operations.append(position)
        if isinstance(before, State) and isinstance(state, State):
            moved = (
                before.fields != state.fields
                or (before.superseded_by is None) != (state.superseded_by is None)
            )  # fmt: skip
        else:
            moved = True
        if moved:
            self.version = seq
        content = state.fields["content"] if isinstance(state, State) else None
        self.history.append((status_of(state), content))


@dataclass(frozen=True)
class Done:
    """An operation: what each subject it touched was before, by id."""

    workspace: str
    before: dict[str, Standing | None]
    undoes: int = 0
    """The position that it undid; 0 for none."""


@dataclass(frozen=True)
class Place:
    """Where a new memory goes among those of its file."""

    older: tuple[str, ...] = ()
    newer: str | None = None
    undecided: tuple[str, ...] = ()


def status_of(state: Standing | None) -> str:
    if not isinstance(state, State):
        return "deleted"
    return "active" if state.superseded_by is None else "superseded"


def tells_of_us(state: State) -> int | None:
    event_at = state.fields["event_at"]
    return None if event_at is None else parse_span(event_at)[0]


class Model:
    """Every workspace of a home."""

    def __init__(self) -> None:
        self.subjects: dict[str, Kept] = {}
        self.operations: dict[int, Done] = {}

    # ------------------------------------------------------------------ what there is

    def memories(self, workspace: str) -> dict[str, State]:
        """Return what is not deleted, oldest first."""
        return {
            subject: kept.state
            for subject, kept in self.subjects.items()
            if kept.workspace == workspace and isinstance(kept.state, State)
        }

    def memory(self, memory_id: str) -> State:
        state = self.subjects[memory_id].state
        assert isinstance(state, State)
        return state

    def sessions(self, workspace: str) -> dict[str, Session]:
        """Return the sessions that were not withdrawn, oldest first."""
        return {
            subject: kept.state
            for subject, kept in self.subjects.items()
            if kept.workspace == workspace and isinstance(kept.state, Session)
        }

    def aliases(self, workspace: str) -> dict[str, Alias]:
        return {
            subject: kept.state
            for subject, kept in self.subjects.items()
            if kept.workspace == workspace and isinstance(kept.state, Alias)
        }

    def names_of(self, workspace: str, name: str) -> set[str]:
        """Return every name of an entity, by joining pairs until nothing is joined any more."""
        names, before = {name}, 0
        while len(names) > before:
            before = len(names)
            for alias in self.aliases(workspace).values():
                if names & {alias.name, alias.entity}:
                    names |= {alias.name, alias.entity}
        return names

    def count_of_session(self, workspace: str, session_id: str) -> int:
        states = self.memories(workspace).values()
        return sum(state.fields["session_id"] == session_id for state in states)

    def expired(self, workspace: str, now: str) -> list[str]:
        """Return the memories whose time to live has run out, oldest first."""
        return [
            memory_id
            for memory_id, state in self.memories(workspace).items()
            if state.fields["expires_at"] is not None and state.fields["expires_at"] <= now
        ]

    def chain(self, memory_id: str) -> list[str]:
        """Return a memory between what came after it and what it came after, newest first."""
        newer = list(self._walk(memory_id, "superseded_by"))
        return [*reversed(newer), memory_id, *self._walk(memory_id, "supersedes")]

    def _walk(self, memory_id: str, link: str) -> Iterator[str]:
        following: str | None = getattr(self.memory(memory_id), link)
        while following is not None:
            yield following
            following = getattr(self.memory(following), link)

    # ------------------------------------------------------------------ what follows

    def place(self, workspace: str, state: State, now_us: int) -> Place:
        """Say where a new memory of a file goes: by its date, else by its arrival."""
        if state.fields["source_file"] is None:
            return Place()
        sorted_: dict[bool | None, list[str]] = {True: [], False: [], None: []}
        for head, other in self.memories(workspace).items():
            same = all(
                other.fields[name] == state.fields[name] for name in ("source_file", "scope")
            )
            if same and other.superseded_by is None:
                later = self._is_later(state, other, self.subjects[head].created_us, now_us)
                sorted_[later].append(head)
        older, undecided = sorted_[True], tuple(sorted_[None])
        if not sorted_[False]:
            return Place(tuple(older), None, undecided)
        newer, own_us = sorted_[False][0], tells_of_us(state)
        assert own_us is not None
        while (preceding := self.memory(newer).supersedes) is not None:
            their_us = tells_of_us(self.memory(preceding))
            if their_us is None or their_us <= own_us:
                return Place((*older, preceding), newer, undecided)
            newer = preceding
        return Place(tuple(older), newer, undecided)

    def _is_later(self, state: State, other: State, created_us: int, now_us: int) -> bool | None:
        own_us, their_us = tells_of_us(state), tells_of_us(other)
        if own_us is not None and their_us is not None:
            return own_us >= their_us
        moments = now_us if own_us is None else own_us, created_us if their_us is None else their_us
        return True if moments[0] >= moments[1] else None

    def placed(self, new: str, state: State, place: Place, now: str) -> dict[str, State]:
        """Return the states after a memory is put in its place, in the order of the events."""
        if not place.older and place.newer is None:
            return {new: state}
        begins = state.fields["valid_from"] or state.fields["event_at"] or now
        ends = state.fields["valid_until"]
        if ends is None or parse_span(begins)[0] < parse_span(ends)[1]:
            state = replace(state, fields={**state.fields, "valid_from": begins})
        older = place.older[-1] if place.older else None
        states = {new: replace(state, supersedes=older, superseded_by=place.newer)}
        for each in place.older:
            states[each] = replace(self.memory(each), superseded_by=new)
        if place.newer is not None:
            states[place.newer] = replace(self.memory(place.newer), supersedes=new)
        return states

    def without(self, gone: Iterable[str]) -> tuple[dict[str, State | None], list[str]]:
        """Return the states after memories are deleted, and who is current again."""
        states: dict[str, State | None] = dict.fromkeys(gone)
        workspaces = {self.subjects[memory_id].workspace for memory_id in states}
        left = {
            memory_id: state
            for workspace in workspaces
            for memory_id, state in self.memories(workspace).items()
            if memory_id not in states
        }
        after = {
            memory_id: replace(
                state,
                supersedes=self._past(state.supersedes, "supersedes", states),
                superseded_by=self._past(state.superseded_by, "superseded_by", states),
            )
            for memory_id, state in left.items()
        }
        for memory_id, state in after.items():
            if state.supersedes is None and left[memory_id].supersedes is not None:
                others = [each for each in after if after[each].superseded_by == memory_id]
                if others:
                    after[memory_id] = replace(state, supersedes=others[-1])
        reactivated = []
        for memory_id in list(states):
            successor = self.memory(memory_id).superseded_by
            beside = [each for each, state in left.items() if state.superseded_by == memory_id]
            for each in (*beside, successor):
                if each in left and each not in states:
                    states[each] = after[each]
                    if left[each].superseded_by and not after[each].superseded_by:
                        reactivated.append(each)
        return states, reactivated

    def _past(self, following: str | None, link: str, gone: Mapping[str, object]) -> str | None:
        while following is not None and following in gone:
            following = getattr(self.memory(following), link)
        return following

    # ------------------------------------------------------------------ what is done

    def keep(self, subject: str, workspace: str, created_us: int) -> None:
        self.subjects[subject] = Kept(workspace, created_us)

    def done(
        self,
        workspace: str,
        position: int,
        states: Mapping[str, Standing | None],
        undoes: int = 0,
    ) -> None:
        """Note an operation whose events, one a subject, are in this order."""
        before = {subject: self.subjects[subject].state for subject in states}
        self.operations[position] = Done(workspace, before, undoes)
        for seq, (subject, state) in enumerate(states.items(), position):
            self.subjects[subject].move(state, position, seq)

    def later(self, position: int) -> list[int]:
        """Return the operations that stand in the way of undoing one."""
        later: set[int] = set()
        for subject in self.operations[position].before:
            after = [each for each in self.subjects[subject].operations if each > position]
            later.update(self.not_undone(after))
        return sorted(later)

    def not_undone(self, operations: list[int]) -> list[int]:
        """Return the operations left when each undo, newest first, took its target and itself."""
        left = list(operations)
        for position in reversed(operations):
            undoes = self.operations[position].undoes
            if position in left and undoes in left:
                left.remove(position)
                left.remove(undoes)
        return left


def with_defaults(fields: dict[str, Any]) -> dict[str, Any]:
    """Return every field of a memory that nothing is superseded by."""
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


def expiry(now_us: int, ttl_us: float) -> str:
    return format_us(int(now_us + ttl_us))
