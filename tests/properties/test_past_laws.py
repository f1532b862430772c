"""Any history, looked back at: answers by intervals are those of a replay, at every moment."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from ledger import Position
from projections.connection import Connection, create_database
from projections.difference import Criteria, differences
from projections.digest import state_digest
from projections.facts import Facts
from projections.filters import Filters
from projections.intervals import Past, Present, standing_at
from projections.listing import list_memories
from projections.moment import end_of, moment_at, moment_of
from projections.past_build import fill_indexes, fill_tables
from projections.queries import workspace_rid
from projections.rebuild import replay
from projections.search import search_exact, search_text
from projections.text import parse_query
from server.tool import Call
from tests.properties.history_commands import WORDS, WORKSPACES
from tests.properties.test_state_laws import Histories
from tests.support.store import Client

MOMENTS_MAX: Final = 4
"""Moments of one history that are looked back at; each is replayed from zero."""

KEPT: Final = ("workspaces", "agents", "memories", "aliases", "text")
"""What a copy of the past holds."""

QUERIES: Final = (*WORDS[:4], "boiler Pump насос x", "note", "boiler note")
PIECES: Final = ("p", "oile")

T = TypeVar("T")
States = dict[tuple[str, str], dict[str, Any]]


def quiet(_phase: str, _done: int, _total: int) -> None:
    pass


@contextmanager
def opened(database: Path) -> Iterator[Connection]:
    connection = Connection(database)
    try:
        yield connection
    finally:
        connection.close()
        database.unlink()


def look(client: Client, read: Callable[[Connection], T]) -> T:
    return client.store.reads.run(Call(), read)


def some_moments(client: Client) -> list[int]:
    """Return the ends of so many operations, the first and the last among them, 0 first."""
    sql = "SELECT max(seq) FROM events GROUP BY batch ORDER BY 1"
    ends = [0, *look(client, lambda connection: [seq for (seq,) in connection.execute(sql)])]
    step = max(1, len(ends) // MOMENTS_MAX)
    return sorted({*ends[::step], ends[-1]})


def states_of(connection: Connection, workspace: str) -> States:
    """Return what every subject of a workspace says, by kind and id, in a store as it is."""
    rid = workspace_rid(connection, workspace)
    facts = Facts(connection, rid)
    states: States = {}
    for memory in facts.memories(
        Filters(workspace=rid, now_us=0, include_superseded=True, expiry="any"), 10_000
    ):
        states["memory", memory.id] = fields_of(memory.state)
    for (session_id,) in connection.execute("SELECT id FROM sessions WHERE workspace IS ?", (rid,)):
        session = facts.session(session_id)
        assert session is not None
        if session.state is not None:
            states["session", session_id] = fields_of(session.state)
    for alias_id, name in connection.execute(
        "SELECT id, name FROM aliases WHERE workspace IS ? AND NOT gone", (rid,)
    ):
        alias = facts.alias(name)
        assert alias is not None
        states["alias", alias_id] = fields_of(alias.state)
    return states


def fields_of(state: Any) -> dict[str, Any]:
    return {name: getattr(state, name) for name in state.__struct_fields__}


class Lookback:
    """Looks back at a history: answers by intervals, and by copies of the past, and by replays."""

    def __init__(
        self,
        clients: Mapping[str, Client],
        subjects: Mapping[str, Collection[str]],
        folder: Path,
        queries: Sequence[str] = QUERIES,
        pieces: Sequence[str] = PIECES,
    ) -> None:
        """Take what there is.

        Args:
            clients: of each workspace.
            subjects: workspace -> ids of its memories, whatever became of them.
            folder: where databases are made.
            queries: what is searched for by words; the last of them through the tools too.
            pieces: what is searched for by pieces of words.

        """
        self._clients = clients
        self._subjects = subjects
        self._folder = folder
        self._queries = queries
        self._pieces = pieces
        self._client = next(iter(clients.values()))

    def compare(self) -> None:
        """Compare every answer at some moments, and the differences between them."""
        client = self._client
        known: dict[int, dict[str, States]] = {}
        for seq in some_moments(client):
            until = client.store.ledger.position_at(seq=seq)
            with (
                opened(self._replayed(client, until)) as replayed,
                opened(self._copied(client, seq)) as copied,
            ):
                wanted, found = (state_digest(each).projections for each in (replayed, copied))
                assert {name: found[name] for name in KEPT} == {name: wanted[name] for name in KEPT}
                for workspace in self._clients:
                    self._answers_are_alike(replayed, copied, workspace, until)
                    self._answers_by_id_are_alike(replayed, workspace, until)
                    self._searches_are_those_of_then(replayed, workspace, until)
                known[seq] = {each: states_of(replayed, each) for each in self._clients}
            self._moments_are_found(client, until)
        self._differences_lead_from_one_moment_to_the_other(known)

    def _replayed(self, client: Client, until: Position) -> Path:
        database = self._folder / "replayed.db"
        create_database(database)
        replay(client.store.ledger, database, until, quiet)
        return database

    def _copied(self, client: Client, seq: int) -> Path:
        database = self._folder / "copied.db"
        create_database(database)
        look(client, lambda connection: fill_tables(connection, database, seq, quiet))
        fill_indexes(database, quiet)
        return database

    def _moments_are_found(self, client: Client, until: Position) -> None:
        by_time = look(client, lambda connection: moment_of(connection, until.t_us))
        at_time = client.store.ledger.position_at(t_us=until.t_us).seq
        assert by_time == look(client, lambda connection: moment_at(connection, at_time))
        by_position = look(client, lambda connection: moment_at(connection, until.seq))
        assert (by_position.seq, by_position.t_us) == (until.seq, until.t_us)
        assert until.seq <= look(client, end_of)

    def _answers_are_alike(
        self, replayed: Connection, copied: Connection, workspace: str, until: Position
    ) -> None:
        rid = workspace_rid(replayed, workspace)
        assert workspace_rid(copied, workspace) == rid
        for filters in (
            Filters(workspace=rid, now_us=until.t_us),
            Filters(workspace=rid, now_us=until.t_us, true_at=until.t_us),
            Filters(workspace=rid, now_us=until.t_us, include_superseded=True, expiry="any"),
        ):
            pages = [
                (
                    [
                        search_text(each, parse_query(q), filters, limit=9, offset=0)
                        for q in self._queries
                    ],
                    [search_exact(each, q, filters, limit=9, offset=0) for q in self._pieces],
                    list_memories(each, filters, order="changed", after=None, limit=50),
                )
                for each in (replayed, copied)
            ]
            assert pages[0] == pages[1]

    def _answers_by_id_are_alike(
        self, replayed: Connection, workspace: str, until: Position
    ) -> None:
        client = self._clients[workspace]
        ids = self._subjects[workspace]

        def answers(of: Past | Present) -> list[object]:
            found = [of.find(each) for each in ids]
            chains = [memory and of.chain(memory) for memory in found]
            return [
                *found,
                *chains,
                *(of.fate(each) for each, memory in zip(ids, found, strict=True) if not memory),
                *(of.versions(each) for each in ids),
            ]

        wanted = answers(Present(replayed, workspace_rid(replayed, workspace), until.t_us))
        assert wanted == look(
            client,
            lambda connection: answers(
                Past(connection, workspace_rid(connection, workspace), until.seq, until.t_us)
            ),
        )

    def _searches_are_those_of_then(
        self, replayed: Connection, workspace: str, until: Position
    ) -> None:
        client = self._clients[workspace]
        query = self._queries[-1]
        result = client.search(query, known_at=until.seq, limit=100)
        filters = Filters(workspace=workspace_rid(replayed, workspace), now_us=until.t_us)
        page = search_text(replayed, parse_query(query), filters, limit=100, offset=0)
        wanted = [
            (hit.memory.id, float(f"{hit.score:.6g}"), hit.memory.status) for hit in page.hits
        ]
        assert [(each.id, each.score, each.status) for each in result.memories] == wanted
        assert result.known_at is not None
        assert result.known_at.position == until.seq

    def _differences_lead_from_one_moment_to_the_other(
        self, known: dict[int, dict[str, States]]
    ) -> None:
        moments = [*known]
        for first, second in {*pairwise(moments), (moments[0], moments[-1]), (moments[-1],) * 2}:
            for workspace in self._clients:
                states = {each: dict(state) for each, state in known[first][workspace].items()}
                for found in self._differences(workspace, first, second):
                    key = found.kind, found.id
                    if found.what in ("added", "restored"):
                        assert key not in states
                        states[key] = dict(found.after)
                    elif found.what == "deleted":
                        assert states.pop(key) == found.before
                    elif found.what == "redacted":
                        assert states.pop(key, {}) == found.before
                    elif found.what != "passing":
                        assert found.before.keys() == found.after.keys()
                        for name, value in found.before.items():
                            assert states[key][name] == value
                        states[key].update(found.after)
                assert states == known[second][workspace]

    def _differences(self, workspace: str, first: int, second: int) -> list[Any]:
        def read(connection: Connection) -> list[Any]:
            rid = workspace_rid(connection, workspace)
            found = list(differences(connection, rid, first, second, Criteria()))
            for each in found:
                if each.kind == "memory" and each.version is not None:
                    memory = connection.value(
                        "SELECT rid FROM memories WHERE id = ?1 UNION ALL "
                        "SELECT rid FROM tombstones WHERE id = ?1",
                        (each.id,),
                    )
                    standing = standing_at(connection, memory, second)
                    assert standing is not None
                    assert standing.version == each.version
            return found

        return look(self._clients[workspace], read)


class LookingBack(Histories):
    """A history that is looked back at once it is over."""

    def _compare_with_replay(self) -> None:
        subjects: dict[str, list[str]] = {each: [] for each in WORKSPACES}
        for subject, kept in self._model.subjects.items():
            subjects[kept.workspace].append(subject)
        Lookback(self._clients, subjects, self._folder).compare()


@pytest.mark.guarantee("G-KNOWN-1", "G-KNOWN-2")
def test_any_moment_of_any_history_is_answered_as_a_replay_until_then_answers() -> None:
    run_state_machine_as_test(
        LookingBack,
        settings=settings(
            max_examples=settings().max_examples // 16,
            stateful_step_count=25,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
