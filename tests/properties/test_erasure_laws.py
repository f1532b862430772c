"""Any history with redactions: live equals replay, whichever comes first, and no word is left.

Every text is made of words that stand nowhere else, so that a search for them shows what is left.
"""

from contextlib import suppress
from hashlib import sha256
from itertools import count
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from projections.connection import Connection
from server.errors import UseCaseError
from server.redaction import Erased, Redactions
from server.results import RedactResult
from server.tool import Call
from tests.support.chains import chain_faults
from tests.support.store import (
    Home,
    flush_substrings,
    live_digest,
    replayed_digest,
    scratch_home,
)
from tests.support.traces import traces_of

ENTITIES: Final = ("Ana", "Анна")
LETTERS: Final = "bcdfghjklmnpqrtvwxz"
WORD_CHARS: Final = 14
MOVES: Final = (
    *("add", "add", "add", "add of file", "add of file", "update", "update", "supersede"),
    *("supersede", "delete", "delete", "undo", "undo", "undo last", "session", "end session"),
    *("alias", "reopen", "flush"),
)
_CHANGES: Final = ("update", "supersede", "delete", "undo last")
REDACTIONS: Final = ("id", "id alone", "event", "event", "entity", "filter", "session")

moves = st.lists(
    st.tuples(st.sampled_from((*MOVES, *MOVES, *REDACTIONS)), st.integers(0, 2**16)),
    min_size=3,
    max_size=25,
)


class History:
    """A home and what was said in it."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.client = home.open()
        self.ids: list[str] = []
        self.sessions: list[str] = []
        self.erased: set[str] = set()
        self.spoken: list[str] = []
        self._numbers = count(1)
        self._begin("add", 1)

    def word(self) -> str:
        """Return a word of letters that stands nowhere else."""
        digest = sha256(str(next(self._numbers)).encode()).digest()
        word = "".join(LETTERS[byte % len(LETTERS)] for byte in digest[:WORD_CHARS])
        self.spoken.append(word)
        return word

    def play(self, move: str, number: int) -> None:
        """Make a move; what is refused is no move."""
        with suppress(UseCaseError):
            if self.ids and move in (*_CHANGES, *REDACTIONS):
                memory = self.ids[number % len(self.ids)]
                (self._change if move in _CHANGES else self._erase)(move, memory, number)
            else:
                self._begin(move, number)

    def _begin(self, move: str, number: int) -> None:
        client, entity = self.client, ENTITIES[number % 2]
        match move:
            case "add of file":
                dates = {"event_at": f"2026-0{1 + number % 5}"} if number % 3 else {}
                self.ids.append(client.add(self.word(), source_file="notes", **dates).id)
            case "alias":
                client.alias("add", alias=self.word(), entity_name=entity)
            case "session":
                self.sessions.append(client.session_start(self.word()).id)
            case "end session" if self.sessions:
                session = self.sessions[number % len(self.sessions)]
                client.session_end(session, summary=self.word())
            case "undo":
                client.undo(position=1 + number % client.position())
            case "reopen":
                self.client = self.home.reopened()
            case "flush":
                flush_substrings(client)
            case _:
                fields: dict[str, Any] = {"entity_name": entity} if number % 3 else {}
                fields |= {"title": self.word(), "tags": [self.word()]} if number % 5 else {}
                self.ids.append(client.add(f"{self.word()} {self.word()}", **fields).id)

    def _change(self, move: str, memory: str, number: int) -> None:
        client = self.client
        match move:
            case "update":
                fields = {"title": self.word()} if number % 4 == 0 else {"content": self.word()}
                client.update(memory, **fields)
            case "supersede":
                self.ids.append(client.supersede(memory, self.word()))
            case "delete":
                client.delete(memory)
            case _:
                client.undo(id=memory)

    def _erase(self, move: str, memory: str, number: int) -> None:
        match move:
            case "id":
                self.redact(id=memory)
            case "id alone":
                self.redact(id=memory, chain=False)
            case "event":
                self.redact(event=1 + number % self.client.position())
            case "entity":
                self.redact(entity=ENTITIES[number % 2])
            case "session" if self.sessions:
                self.redact(id=self.sessions[number % len(self.sessions)])
            case _:
                self.redact(filter={"source_file": "notes"})

    def redact(self, **what: Any) -> RedactResult:
        dry = self.client.redact(dry_run=True, **what)
        before = self._payloads()
        result = self.client.redact(**what)
        assert (result.memories, result.records) == (dry.memories, dry.records)
        targets = self._targets()
        for seq, words in before.items():
            if seq in targets:
                self.erased |= words
        return result

    def check(self) -> None:
        """Live equals replay, and the chains of what is left are whole."""
        replayed = replayed_digest(self.client, self.home.path.parent / "replayed.db")
        assert live_digest(self.client).text() == replayed.text()
        assert self.home.verify().problems == []
        memories = self.client.listed(include_superseded=True, include_expired=True)
        assert chain_faults(memories) == []

    def gone(self) -> set[str]:
        """Return the words that were erased and are in no record that is left."""
        left = set[str]().union(*self._payloads().values())
        return self.erased - left

    def _payloads(self) -> dict[int, set[str]]:
        ledger, targets = self.client.store.ledger, self._targets()
        return {
            record.seq: words_of(repr(record.payload))
            for record in ledger.read(type(ledger.position_at()).start)
            if record.payload is not None and record.seq not in targets
        }

    def _targets(self) -> set[int]:
        def read(connection: Connection) -> set[int]:
            return {seq for (seq,) in connection.execute("SELECT seq FROM redaction_targets")}

        return self.client.store.reads.run(Call(), read)


def words_of(text: str) -> set[str]:
    """Return the words of a text that were made by `History.word`."""
    pieces = "".join(each if each.isalnum() else " " for each in text).split()
    return {piece for piece in pieces if len(piece) == WORD_CHARS and {*piece} <= {*LETTERS}}


def postponed(*_: object) -> Erased:
    """Stand for an erasing that something in the way puts off."""
    return Erased(held_by=("the test",))


@pytest.mark.guarantee("G-ERASE-2", "G-ERASE-4")
@settings(max_examples=max(settings().max_examples // 2, 5))
@given(moves)
def test_a_redaction_leaves_the_rows_that_a_replay_of_what_is_left_makes(
    history: list[tuple[str, int]],
) -> None:
    with scratch_home() as home, pytest.MonkeyPatch.context() as patch:
        patch.setattr(Redactions, "_try", postponed)
        told = History(home)
        for move, number in history:
            told.play(move, number)
        told.check()  # the ledger still holds every payload

        patch.undo()
        assert told.client.store.redactions.resume() is False

        told.check()  # and now it does not


@pytest.mark.guarantee("G-ERASE-1", "G-ERASE-6")
@settings(max_examples=max(settings().max_examples // 10, 3))
@given(moves)
def test_no_word_of_what_was_erased_is_in_any_file(history: list[tuple[str, int]]) -> None:
    with scratch_home() as home:
        told = History(home)
        for move, number in history:
            told.play(move, number)
        told.play("id", 0)
        told.check()
        gone = told.gone()
        home.close()
        assert gone
        assert traces_of(home.path, [word[:10] for word in gone]) == {}
