"""Any history with redactions, looked back at: the past is what a replay of what is left says.

That is so whether a redaction is completed or has only begun, and no answer brings a word back.
"""

from contextlib import suppress
from itertools import pairwise
from typing import Any, Final

import msgspec
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from ledger import MemoryRedacted, Position, WorkspaceCreated
from server.diff import DiffArgs
from server.errors import NotFoundError
from server.redaction import Redactions
from server.tool import Call
from tests.properties.test_erasure_laws import MOVES, REDACTIONS, History, postponed, words_of
from tests.properties.test_past_laws import Lookback, some_moments
from tests.support.store import Client, Home, scratch_home
from tests.support.traces import traces_of

OTHER: Final = "other"
HERE: Final = "default"
WORDS_ASKED_MAX: Final = 6

moves = st.lists(
    st.tuples(
        st.sampled_from((*MOVES, *MOVES, *REDACTIONS, "look", "look")), st.integers(0, 2**16)
    ),
    min_size=3,
    max_size=25,
)


class Looked(History):
    """A history that is looked back at while it is made, so that copies of the past are about."""

    def __init__(self, home: Home) -> None:
        super().__init__(home)
        home.open(OTHER).add("a note of the other workspace")

    def play(self, move: str, number: int) -> None:
        if move == "look":
            self.client.found(self.ids[0], known_at=number % (self.client.position() + 1))
            return
        super().play(move, number)

    def words(self) -> list[str]:
        """Return the first words of the history, erased ones among them."""
        return [self.spoken[at] for at in range(min(WORDS_ASKED_MAX, len(self.spoken)))]

    def compare(self) -> None:
        """Compare every answer with those of replays, in this workspace and in one beside it."""
        other = self.home.open(OTHER)
        words = self.words()
        Lookback(
            {HERE: self.client, OTHER: other},
            {HERE: self.ids, OTHER: ()},
            self.home.path.parent,
            queries=(*words, " ".join(words)),
            pieces=[word[2:9] for word in words],
        ).compare()

    def answers(self, moments: list[int]) -> list[Any]:
        """Return everything that is said of some moments, and of what differs between them."""
        client = self.client
        said = [answers_at(client, seq, self.words(), self.ids) for seq in moments]
        between = [diff(client, *pair) for pair in pairwise(moments)]
        return [said, between, diff(client, moments[0], moments[-1])]

    def redacted_since(self, workspace: str, seq: int) -> int:
        """Count by the records themselves what was erased later of what was there at a position."""
        records = [*self.client.store.ledger.read(Position.start)]
        (workspace_id,) = [
            record.header.sub
            for record in records
            if isinstance(record.payload, WorkspaceCreated) and record.payload.name == workspace
        ]
        return sum(
            record.seq > seq
            and record.header.ws == workspace_id
            and any(target.seq <= seq for target in record.payload.targets)
            for record in records
            if isinstance(record.payload, MemoryRedacted)
        )

    def counts_are_right(self) -> None:
        for workspace in (HERE, OTHER):
            client = self.home.open(workspace)
            for seq in some_moments(client):
                known = client.inspect(known_at=seq).known_at
                assert known is not None
                assert known.redacted_since == self.redacted_since(workspace, seq)


def answers_at(client: Client, seq: int, words: list[str], ids: list[str]) -> list[Any]:
    """Return all that is said of a moment, as JSON, without what tells how a redaction goes on."""
    said: list[msgspec.Struct] = []
    for word in words:
        said.append(client.search(word, known_at=seq, limit=50))
        said.append(client.search(word[3:9], mode="exact", known_at=seq, include_superseded=True))
    said.append(client.list_page(known_at=seq, include_superseded=True, limit=100))
    said.append(client.get(*ids[:100], known_at=seq, include_versions=True))
    for each in ids:
        with suppress(NotFoundError):  # not added yet
            said.append(client.inspect(each, known_at=seq, include_history=True))
    said.append(client.inspect(known_at=seq))
    said.append(client.export("jsonl", known_at=seq, include_superseded=True))
    return [without_progress(msgspec.to_builtins(each)) for each in said]


def without_progress(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: without_progress(each)
            for name, each in value.items()
            if name not in ("completed", "query_time_ms", "notes")
        }
    if isinstance(value, list | tuple):
        return [without_progress(each) for each in value]
    return value


def diff(client: Client, first: int, second: int) -> Any:
    args = DiffArgs(since=first, until=second, limit=1_000)
    return without_progress(msgspec.to_builtins(client.store.app.diff(args, Call())))


@example([("add", 0), ("alias", 1), ("entity", 1)])
@settings(max_examples=max(settings().max_examples // 12, 5))
@given(moves)
def test_the_past_after_redactions_is_what_a_replay_of_what_is_left_says(
    history: list[tuple[str, int]],
) -> None:
    with scratch_home() as home:
        told = Looked(home)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Redactions, "_try", postponed)
            for move, number in history:
                told.play(move, number)
            told.play("id", 0)
            moments = some_moments(told.client)
            begun = told.answers(moments)
            told.counts_are_right()
        gone = told.gone()
        event(f"erased words: {min(len(gone), 9)}")
        assert _words_in(begun) & gone == set()

        assert told.client.store.redactions.resume() is False

        home.close()
        pieces = [word[:10] for word in gone]
        assert traces_of(home.path, pieces) == {}
        told.client = home.open()
        assert told.answers(moments) == begun
        told.compare()
        told.counts_are_right()
        home.close()
        # Only the activity log, which knows that they were searched for, has heard them again.
        assert traces_of(home.path / "projections", pieces) == {}


def _words_in(said: object) -> set[str]:
    return words_of(repr(said))
