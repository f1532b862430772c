"""Any history, looked back at: the past by intervals equals the past by replay, at every moment."""

from pathlib import Path
from typing import Final

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from ledger import Position
from projections.connection import Connection, create_database
from projections.digest import StateDigest, state_digest
from projections.moment import end_of, moment_at, moment_of
from projections.past_build import fill_indexes, fill_tables
from projections.rebuild import replay
from server.tool import Call
from tests.properties.history_commands import WORKSPACES
from tests.properties.test_state_laws import Histories
from tests.support.store import Client

MOMENTS_MAX: Final = 8
"""Moments of one history that are looked back at; each is replayed from zero."""

KEPT: Final = ("workspaces", "agents", "memories", "aliases", "text")
"""What a copy of the past holds."""


def quiet(_phase: str, _done: int, _total: int) -> None:
    pass


def digest_of(database: Path) -> StateDigest:
    connection = Connection(database)
    try:
        return state_digest(connection)
    finally:
        connection.close()


def batch_ends(client: Client) -> list[int]:
    """Return the position of the last event of each operation, 0 first."""
    rows = client.store.reads.run(
        Call(),
        lambda connection: list(
            connection.execute("SELECT max(seq) FROM events GROUP BY batch ORDER BY 1")
        ),
    )
    return [0, *(seq for (seq,) in rows)]


def some(positions: list[int]) -> list[int]:
    """Return so many of them, the first and the last among them."""
    step = max(1, len(positions) // MOMENTS_MAX)
    return sorted({*positions[::step], positions[-1]})


class LookingBack(Histories):
    """A history that is looked back at once it is over."""

    def _compare_with_replay(self) -> None:
        client = self._clients[WORKSPACES[0]]
        for seq in some(batch_ends(client)):
            replayed, copied = self._folder / "replayed.db", self._folder / "copied.db"
            until = client.store.ledger.position_at(seq=seq)
            self._replay(client, replayed, until)
            self._copy(client, copied, seq)
            wanted, found = digest_of(replayed).projections, digest_of(copied).projections
            assert {name: found[name] for name in KEPT} == {name: wanted[name] for name in KEPT}
            self._moments_are_found(client, until)
            replayed.unlink()
            copied.unlink()

    def _replay(self, client: Client, database: Path, until: Position) -> None:
        create_database(database)
        replay(client.store.ledger, database, until, quiet)

    def _copy(self, client: Client, database: Path, seq: int) -> None:
        create_database(database)
        client.store.reads.run(
            Call(), lambda connection: fill_tables(connection, database, seq, quiet)
        )
        fill_indexes(database, quiet)

    def _moments_are_found(self, client: Client, until: Position) -> None:
        ledger, reads = client.store.ledger, client.store.reads
        by_time = reads.run(Call(), lambda connection: moment_of(connection, until.t_us))
        end = reads.run(Call(), end_of)
        assert ledger.position_at(t_us=until.t_us).seq <= by_time.seq <= end
        by_position = reads.run(Call(), lambda connection: moment_at(connection, until.seq))
        assert (by_position.seq, by_position.t_us) == (until.seq, until.t_us)


def test_a_copy_of_any_moment_holds_the_rows_that_a_replay_until_then_leaves() -> None:
    run_state_machine_as_test(
        LookingBack,
        settings=settings(
            max_examples=settings().max_examples // 4,
            stateful_step_count=30,
            phases=[Phase.generate],
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
