"""After any history, undoing what a filter matches is undoing it one by one, newest first."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from ledger import AgentRegistered, MemoryAdded, Position, Record
from projections.connection import Connection
from server.errors import UseCaseError
from server.redaction import Redactions
from server.results import UndoResult
from server.tool import Call
from tests.properties.test_erasure_laws import postponed
from tests.support.chains import chain_faults
from tests.support.store import (
    MEMORY_DISK,
    Client,
    Home,
    home_at,
    live_digest,
    replayed_digest,
)

ACTORS: Final = ("ann", "bob")
FOREIGN: Final = "made up"

actors = st.sampled_from(ACTORS)
indexes = st.integers(0, 30)
sessions = st.sampled_from([None, None, FOREIGN, 0, 1])
filters = st.fixed_dictionaries(
    {},
    optional={
        "actor": actors,
        "session_id": st.sampled_from([FOREIGN, 0, 1]),
        "cause": indexes,
        "from": indexes,
        "to": indexes,
    },
).filter(bool)
steps = st.one_of(
    st.tuples(st.just("add"), actors, sessions),
    st.tuples(st.just("add_many"), actors, st.integers(1, 3)),
    st.tuples(st.just("from_file"), actors, st.sampled_from(["2026-01-01", "2026-02-01", None])),
    st.tuples(st.just("update"), actors, indexes),
    st.tuples(st.just("supersede"), actors, indexes),
    st.tuples(st.just("delete"), actors, indexes),
    st.tuples(st.just("delete_many"), actors, st.booleans()),
    st.tuples(st.just("session_start"), actors, st.none()),
    st.tuples(st.just("session_end"), actors, indexes),
    st.tuples(st.just("alias_add"), actors, indexes),
    st.tuples(st.just("alias_remove"), actors, indexes),
    st.tuples(st.just("undo"), actors, indexes),
    st.tuples(st.just("undo"), actors, indexes),
    st.tuples(st.just("undo_many"), actors, filters),
)
erasures = st.tuples(
    st.sampled_from(["redact", "redact_alone", "redact_event", "redact_event", "redact_session"]),
    actors,
    indexes,
)
histories = st.lists(steps, min_size=1, max_size=14)
histories_with_gaps = st.lists(st.one_of(*[steps] * 3, erasures), min_size=1, max_size=18)
MEMORY_COLUMNS: Final = (
    "id, superseded_by, supersedes, session_id, content, valid_from, true_from, true_until"
)
NO_OPERATIONS: Final = (
    *("agent_registered", "workspace_created"),
    *("redaction_explained", "redaction_completed"),
)
NAMES: Final = ("k8s", "Kubernetes", "kube")


class Teller:
    """Does the steps of a history, and remembers what they made."""

    def __init__(self, home: Home) -> None:
        self._clients = {name: home.open(name=name) for name in ACTORS}
        self.client = self._clients[ACTORS[0]]
        self.ids: list[str] = []
        self.sessions: list[str] = []
        self.causes: list[str] = []

    def tell(self, history: list[tuple[str, str, Any]]) -> None:
        for step, actor, what in history:
            with suppress(UseCaseError):
                self._do(self._clients[actor], step, what)

    def filter(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return a filter that names what there is."""
        meant = dict(given)
        if isinstance(given.get("session_id"), int):
            meant["session_id"] = _nth(self.sessions, given["session_id"]) or "nobody's"
        if "cause" in given:
            meant["cause"] = _nth(self.causes, given["cause"]) or "nothing"
        return meant

    def _do(self, client: Client, step: str, what: Any) -> None:  # noqa: C901, PLR0912 - a case a step
        content = {"content": f"note {len(self.ids)}", "layer": "semantic"}
        match step:
            case "add":
                named = _nth(self.sessions, what) if isinstance(what, int) else what
                self.ids.append(client.add(**content, session_id=named).id)
            case "add_many":
                added = client.add_many(*[content] * what)
                self.causes.append(added.cause)
                self.ids += [each.added.id for each in added.results if each.added]
            case "from_file":
                named = {**content, "source_file": "a.md", "event_at": what}
                self.ids.append(client.add(**named).id)
            case "update":
                client.update(_nth(self.ids, what) or "", content=f"changed by {client.name}")
            case "supersede":
                new = client.supersede(_nth(self.ids, what) or "", f"superseded by {client.name}")
                self.ids.append(new)
            case "delete":
                client.delete(_nth(self.ids, what) or "")
            case "delete_many":
                which = {"everything": True} if what else {"source_file": "a.md"}
                self.causes.append(client.delete_many(**which).cause or "nothing")
            case "session_start":
                self.sessions.append(client.session_start().id)
            case "session_end":
                client.session_end(_nth(self.sessions, what) or "")
            case "alias_add":
                names = NAMES[what % 3], NAMES[what // 3 % 3]
                client.alias("add", alias=names[0], entity_name=names[1])
            case "alias_remove":
                client.alias("remove", alias=NAMES[what % 3])
            case "undo":
                client.undo(position=1 + what)
            case "redact":
                client.redact(_nth(self.ids, what) or "")
            case "redact_alone":
                client.redact(_nth(self.ids, what) or "", chain=False)
            case "redact_event":
                client.redact(event=1 + what)
            case "redact_session":
                client.redact(_nth(self.sessions, what) or "")
            case _:
                result = client.undo(**self.filter(what))
                self.causes.append(result.cause or "nothing")


def _nth(known: list[str], index: int) -> str | None:
    return known[index % len(known)] if known else None


@contextmanager
def told(history: list[tuple[str, str, Any]]) -> Iterator[tuple[Path, Teller]]:
    """Yield a home with a history and what the history made, its stores closed."""
    folder = Path(tempfile.mkdtemp(prefix="laws-", dir=MEMORY_DISK))
    try:
        with home_at(folder / "home") as home:
            teller = Teller(home)
            teller.tell(history)
        yield folder / "home", teller
    finally:
        shutil.rmtree(folder)


def matching(client: Client, chosen: dict[str, Any]) -> list[int]:
    """Return the operations that a filter matches, newest first, by the records themselves."""
    records = [*client.store.ledger.read(Position.start)]
    actors = {
        record.header.sub: record.payload.name
        for record in records
        if isinstance(record.payload, AgentRegistered)
    }
    named = {record.header.ses for record in records}
    return [
        record.seq
        for record in reversed(records)
        if record.seq == record.header.batch
        and record.header.type not in NO_OPERATIONS
        and chosen.get("actor") in (None, actors[record.header.act])
        and chosen.get("cause") in (None, record.header.cause)
        and chosen.get("from", 0) <= record.seq <= chosen.get("to", record.seq)
        and chosen.get("session_id") in (None, _session(record, named))
    ]


def _session(record: Record, named: set[str]) -> str | None:
    if record.header.ses or not isinstance(record.payload, MemoryAdded):
        return record.header.ses
    name = record.payload.memory.session_id
    return None if name in named else name


def undo_one_by_one(client: Client, positions: list[int]) -> None:
    for position in positions:
        with suppress(UseCaseError):
            client.undo(position=position)


def state(client: Client) -> list[tuple[object, ...]]:
    """Return what every subject says, without when it came to say so."""
    queries = (
        f"SELECT {MEMORY_COLUMNS} FROM memories ORDER BY id",
        "SELECT id FROM tombstones ORDER BY id",
        "SELECT id, gone, CASE WHEN gone THEN NULL ELSE ended_us END FROM sessions ORDER BY id",
        "SELECT id, gone, name, entity FROM aliases ORDER BY id",
    )

    def read(connection: Connection) -> list[tuple[object, ...]]:
        return [row for query in queries for row in connection.execute(query)]

    return client.store.reads.run(Call(), read)


@pytest.mark.guarantee("G-UNDO-2")
@settings(max_examples=settings().max_examples // 3)
@given(history=histories, given=filters)
def test_undoing_what_a_filter_matches_is_undoing_it_one_by_one(
    history: list[tuple[str, str, Any]], given: dict[str, Any]
) -> None:
    _undone_at_once_and_one_by_one(history, given)


@settings(max_examples=settings().max_examples // 3)
@given(history=histories_with_gaps, given=filters)
def test_undoing_many_steps_over_what_is_erased(
    history: list[tuple[str, str, Any]], given: dict[str, Any]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Redactions, "_try", postponed)  # the rows are the same, and it is quicker
        _undone_at_once_and_one_by_one(history, given)


def _undone_at_once_and_one_by_one(
    history: list[tuple[str, str, Any]], given: dict[str, Any]
) -> None:
    with told(history) as (path, teller):
        shutil.copytree(path, path.with_name("other"))
        chosen = teller.filter(given)
        with home_at(path.with_name("other")) as home:
            one_by_one = home.open(name="eve")
            positions = matching(one_by_one, chosen)
            undo_one_by_one(one_by_one, positions)
            expected = state(one_by_one)
        with home_at(path) as home:
            client = home.open(name="eve")
            before, end = state(client), client.position()
            trial = client.undo(**chosen, dry_run=True)
            assert client.position() == end
            result = client.undo(**chosen)
            event(f"undone: {min(result.undone_count or 0, 5)}")
            event(f"skipped: {', '.join(result.skipped_by_code)}")

            assert state(client) == expected
            assert result.matched_count == len(positions)
            assert (result.undone_count or 0) + (result.skipped_count or 0) == len(positions)
            assert _facts(trial) == _facts(result)
            assert chain_faults(client.listed(include_superseded=True)) == []
            if result.cause is not None:
                redone = client.undo(cause=result.cause)
                assert redone.undone_count == result.undone_count
                assert state(client) == before
            assert live_digest(client) == replayed_digest(client, path / "replayed.db")


def _facts(result: UndoResult) -> tuple[object, ...]:
    """Return what a trial and the undoing after it must agree on."""
    return (
        result.matched_count,
        result.undone_count,
        result.undone_positions,
        result.memories,
        result.skipped,
        result.skipped_by_code,
        result.remaining_count,
    )


@settings(max_examples=settings().max_examples // 3)
@given(history=histories)
def test_undoing_everything_by_everybody_gives_the_empty_state(
    history: list[tuple[str, str, Any]],
) -> None:
    with told(history) as (path, _), home_at(path) as home:
        client = home.open(name="eve")
        client.undo(**{"from": 1})

        assert client.inspect().total == 0
        assert client.session_list().total == 0
        assert client.alias("list").aliases == ()
        again = client.undo(**{"from": 1})
        assert (again.undone, again.undone_count) == (False, 0)
