"""Servers on one home, killed at random moments; two of them, a hundred times, by default."""

import itertools
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.harness import (
    Acknowledged,
    Contents,
    assert_sound,
    dice,
    end,
    launch,
    serving,
    structured,
)
from tests.support.peer import Json, call, readable

ROUNDS = 100
MINUTES = float(os.environ.get("CRASH_MINUTES", "0"))
"""If given, rounds go on for so long instead; `make crash` says ten."""

WRITERS = int(os.environ.get("CRASH_WRITERS", "2"))
"""Servers of one round; `make crash` has four."""

CHECK_EVERY = 25
START_SECONDS = 0.3
"""A server may be killed so long after its start, before it has even opened the store."""

WORK_SECONDS = 0.06
"""Or so long after its first acknowledgement."""

BATCH = 3
"""Memories of one request, at most."""


class _Writer:
    """Does one thing after another, each once, until its server is killed."""

    def __init__(
        self, home: Path, name: str, number: signal.Signals, chance: random.Random
    ) -> None:
        self.name = name
        self.signal = number
        self.acknowledged = Acknowledged()
        self.status: int | None = None
        self._sent = 0
        self._first = chance.randrange(7)
        self._contents: dict[object, list[str]] = {}
        self._chance = chance
        self.server = launch(home)
        early = chance.random() < 0.5
        self.kill_at = time.monotonic() + chance.uniform(0, START_SECONDS) if early else None
        self._send()

    @property
    def expected(self) -> set[int]:
        """Exit statuses that are right; a process that is still loading has no handler yet."""
        if self.signal is signal.SIGKILL:
            return {-signal.SIGKILL}
        return {0} if self.server.greeted else {0, -signal.SIGTERM}

    def _send(self) -> None:
        number, self._sent = self._sent, self._sent + 1
        tool, arguments, contents = self._request(number, f"{self.name} note {number}")
        self._contents[number] = contents
        self.server.send(call(number, tool, **arguments))

    def _request(self, number: int, content: str) -> tuple[str, Json, list[str]]:
        """Return a tool, its arguments and the contents that it stores."""
        file = f"{self.name}.md"
        match (self._first + number) % 7:
            case 0:
                texts = [f"{content}.{part}" for part in range(BATCH)]
                memories = [{"content": text, "layer": "semantic"} for text in texts]
                return "memory_add_many", {"memories": memories}, texts
            case 1 | 2:
                arguments = {"content": content, "layer": "semantic", "source_file": file}
                return "memory_add", arguments, [content]
            case 3:
                return "memory_session_start", {"client": content}, []
            case 4:
                names = {"alias": content, "entity_name": self.name}
                return "memory_alias", {"action": "add", **names}, []
            case 5:
                return "memory_delete_many", {"source_file": file}, []
            case _:
                return "memory_add", {"content": content, "layer": "episodic"}, [content]

    def answered(self) -> None:
        """Take the answers that are there, and send the next request."""
        for answer in self.server.available(0.001):
            self._take(answer)
            if self.kill_at is None:
                self.kill_at = time.monotonic() + self._chance.uniform(0, WORK_SECONDS)
            self._send()

    def finish(self) -> None:
        """Send the signal; what was answered before the end counts as well."""
        self.server.process.send_signal(self.signal)
        for answer in self.server.remains():
            self._take(answer)
        self.status = end(self.server)

    def _take(self, answer: Json) -> None:
        said = structured(answer)
        if "error" in said:
            # What is refused because the server ends was not acknowledged.
            assert said["error"]["code"] == "cancelled", said
            return
        self.acknowledged.take(said, self._contents[answer["id"]])


def _round(writers: list[_Writer]) -> None:
    alive = list(writers)
    while alive:
        moments = [writer.kill_at for writer in alive if writer.kill_at is not None]
        left = max(0.0, min(moments, default=time.monotonic() + 60) - time.monotonic())
        ready = readable([writer.server.output for writer in alive], left)
        assert ready or moments, "no server answers"
        for writer in list(alive):
            if writer.kill_at is not None and writer.kill_at <= time.monotonic():
                writer.finish()
                alive.remove(writer)
            elif writer.server.output in ready:
                writer.answered()


def _rounds() -> Iterator[int]:
    until = time.monotonic() + MINUTES * 60
    for number in itertools.count():
        if time.monotonic() >= until if MINUTES else number == ROUNDS:
            return
        yield number


@pytest.mark.guarantee("G-ACK-1")
@pytest.mark.slow
@pytest.mark.crash
def test_writers_killed_hundreds_of_times_lose_nothing_that_was_acknowledged(
    tmp_path: Path,
) -> None:
    chance, home = dice(), tmp_path / "home"
    stored = Contents(home)
    acknowledged = rounds = 0
    for number in _rounds():
        rounds += 1
        gentle = signal.SIGTERM if number % 2 else signal.SIGKILL
        writers = [
            _Writer(
                home,
                f"round {number} writer {which}",
                gentle if which % 2 else signal.SIGKILL,
                chance,
            )
            for which in range(WRITERS)
        ]
        _round(writers)
        stored.refresh()
        for writer in writers:
            assert writer.status in writer.expected
            told = writer.acknowledged
            here = {text for text in stored.counts if text.startswith(f"{writer.name} ")}
            assert told.ids.items() <= stored.ids.items(), f"round {number} lost a memory"
            assert len(here) <= len(told.ids) + BATCH, f"round {number} has too many"
            assert told.deleted <= stored.deleted, f"round {number} forgot a deletion"
            assert {*told.sessions} <= {*stored.sessions}, f"round {number} lost a session"
            assert {*told.aliases} <= {*stored.aliases}, f"round {number} lost an alias"
            acknowledged += len(told.ids)
        if number % CHECK_EVERY == CHECK_EVERY - 1:
            assert_sound(home)
    assert acknowledged > rounds
    assert set(stored.counts.values()) == {1}
    for subjects in (stored.sessions, stored.aliases):
        assert len(set(subjects)) == len(subjects) > 0
    assert stored.deleted
    assert stored.seqs == list(range(1, len(stored.seqs) + 1))
    assert_sound(home)
    with serving(home) as server:
        assert server.total() == len(stored.counts) - len(stored.deleted)
