"""The recorder of activity: no call waits for it, and what it is told is what the file counts."""

import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.activity import ActivityFile, ActivityLog, ActivityTotals, LoggedRead, LoggedSearch
from projections.connection import Connection
from server import activity
from server.activity import NOTES_MAX, PRUNE_INTERVAL_S, ActivityRecorder, filters_of
from server.commands import SearchArgs
from tests.support.store import MEMORY_DISK, FakeClock

LONG_S: Final = 60.0
"""A wait that ends much earlier unless something is wrong."""


class Recording:
    """An activity file, its recorder, a clock, and the lines that the recorder logged."""

    def __init__(self, folder: Path, *, enabled: bool = True) -> None:
        self.path = folder / "activity.db"
        self.clock = FakeClock()
        self.monotonic_s = 1000.0
        self.lines: list[str] = []
        self.recorder = self.another(enabled=enabled)

    def another(self, *, enabled: bool = True) -> ActivityRecorder:
        return ActivityRecorder(
            self.path,
            clock=self.clock,
            log=self.lines.append,
            enabled=enabled,
            monotonic=lambda: self.monotonic_s,
        )

    def search(self, *hits: str, query: str = "boiler") -> None:
        self.recorder.note_search(
            workspace="default",
            actor="tester",
            args=SearchArgs(query=query),
            hits=hits,
            duration_ms=1.5,
        )

    def read(self, *ids: str) -> None:
        self.recorder.note_read(ids, workspace="default", actor="tester")

    def close(self) -> None:
        """Close the recorder and wait for its thread, however long that takes."""
        self.recorder.close(LONG_S)
        self.join()

    def join(self) -> None:
        thread = self.recorder._thread
        if thread is not None:
            thread.join(LONG_S)
            assert not thread.is_alive()

    @property
    def log(self) -> ActivityLog:
        return ActivityLog(self.path, "default")

    def counts(self) -> dict[str, int]:
        return {access.memory_id: access.count for access in self.log.most_read(1000)}

    def queries(self) -> list[str]:
        """Return the logged queries, oldest first."""
        return [search.query for search in reversed(self.log.searches(10 * NOTES_MAX))]

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the file as another process would that writes for long."""
        other = Connection(self.path)
        try:
            with other.transaction(write=True):
                yield
        finally:
            other.close()


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[Recording]:
    recording = Recording(tmp_path)
    yield recording
    recording.close()


notes = st.tuples(
    st.sampled_from(["search", "read", "reopen", "flush"]),
    st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=4),
)


@given(steps=st.lists(notes, max_size=12))
def test_counts_are_those_of_a_dictionary_whatever_was_noted(
    steps: list[tuple[str, list[str]]],
) -> None:
    counts: Counter[str] = Counter()
    last_us: dict[str, int] = {}
    searches: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK) as path:
        recording = Recording(Path(path))
        for step, ids in steps:
            recording.clock.advance(seconds=1)
            match step:
                case "search":
                    recording.search(*ids)
                    searches.append(tuple(ids))
                case "read":
                    recording.read(*ids)
                case "reopen":
                    recording.close()
                    recording.recorder = recording.another()
                    continue
                case _:
                    assert recording.recorder.flush(LONG_S)
                    continue
            counts.update(set(ids))
            last_us.update(dict.fromkeys(ids, recording.clock.us))
        recording.close()

        found = recording.log.most_read(1000)
        assert {access.memory_id: access.count for access in found} == counts
        assert {access.memory_id: access.last_us for access in found} == last_us
        assert [search.hits for search in reversed(recording.log.searches(1000))] == searches
        assert recording.recorder.dropped == 0
        assert recording.lines == []


def test_a_search_is_logged_with_its_time_and_the_filters_it_was_given(
    recording: Recording,
) -> None:
    args = SearchArgs(query="насос", mode="exact", layers=("semantic",), tags=("a", "b"), limit=3)

    recording.recorder.note_search(
        workspace="default", actor="tester", args=args, hits=("x", "y"), duration_ms=0.25
    )
    noted_us = recording.clock.us
    recording.clock.advance(days=1)
    recording.close()

    assert recording.log.searches(10) == [
        LoggedSearch(
            at_us=noted_us,
            workspace="default",
            actor="tester",
            query="насос",
            mode="exact",
            filters={"layers": ["semantic"], "tags": ["a", "b"], "limit": 3},
            hits=("x", "y"),
            duration_ms=0.25,
        )
    ]


def test_filters_are_what_differs_from_a_plain_search() -> None:
    assert filters_of(SearchArgs(query="boiler", mode="exact")) == {}
    assert filters_of(SearchArgs(query="boiler", scope="", min_confidence=0.0, offset=0)) == {
        "scope": "",
        "min_confidence": 0.0,
    }


def test_nothing_is_made_before_the_first_note(tmp_path: Path) -> None:
    recording = Recording(tmp_path)

    assert recording.recorder.flush(LONG_S)
    recording.read()
    recording.close()

    assert recording.recorder._thread is None
    assert list(tmp_path.iterdir()) == []


def test_switched_off_it_makes_and_starts_nothing(tmp_path: Path) -> None:
    recording = Recording(tmp_path, enabled=False)

    recording.search("a")
    recording.read("a")
    assert recording.recorder.flush(LONG_S)
    recording.close()

    assert recording.recorder._thread is None
    assert list(tmp_path.iterdir()) == []


def test_a_note_that_meets_the_closing_is_ignored(recording: Recording) -> None:
    recording.recorder.close(LONG_S)

    # What a call does that saw the recorder open a moment ago.
    recording.recorder._put(
        LoggedRead(at_us=1, workspace="default", actor="tester", memories=("a",))
    )

    assert recording.recorder._thread is None
    assert recording.recorder.flush(LONG_S)


def test_notes_after_closing_are_ignored(recording: Recording) -> None:
    recording.search("a")
    recording.close()

    recording.search("b")
    recording.close()

    assert recording.counts() == {"a": 1}


def test_a_full_queue_loses_the_oldest_notes_and_counts_them(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity, "LINGER_S", LONG_S)  # until closing hurries it

    for number in range(NOTES_MAX + 10):
        recording.search(query=str(number))
    recording.close()

    assert recording.recorder.dropped == 10
    assert recording.queries() == [str(number) for number in range(10, NOTES_MAX + 10)]


@pytest.mark.guarantee("G-QUIET-1")
def test_a_locked_file_holds_up_no_call_and_loses_nothing(recording: Recording) -> None:
    recording.search("a", query="before")
    assert recording.recorder.flush(LONG_S)

    with recording.locked():
        # Were one of these calls to wait for the lock, it would wait for ever.
        for number in range(50):
            recording.search("a", query=str(number))
        assert not recording.recorder.flush(0.05)
    recording.close()

    assert recording.queries() == ["before", *map(str, range(50))]
    assert recording.counts() == {"a": 51}
    assert recording.recorder.dropped == 0
    assert recording.lines == []


def test_a_file_locked_for_too_long_costs_its_notes_and_one_line(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity, "ATTEMPTS_MAX", 2)
    monkeypatch.setattr(activity, "PAUSE_S", 0.0)
    recording.search("a")
    assert recording.recorder.flush(LONG_S)

    with recording.locked():
        for _ in range(2):
            recording.search("b")
            assert recording.recorder.flush(LONG_S)
    recording.search("c")
    recording.close()

    assert recording.counts() == {"a": 1, "c": 1}
    assert recording.recorder.dropped == 2
    assert len(recording.lines) == 1
    assert "locked" in recording.lines[0]


def test_closing_does_not_wait_for_a_locked_file_beyond_its_bound(recording: Recording) -> None:
    recording.search("a")
    assert recording.recorder.flush(LONG_S)

    with recording.locked():
        recording.search("b")
        recording.recorder.close(0.0)
        recording.join()

    assert recording.counts() == {"a": 1}
    assert recording.recorder.dropped == 1


def test_a_folder_that_may_not_be_written_switches_it_off_with_one_line(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(30, "Read-only file system", str(path))

    monkeypatch.setattr("projections.activity.create_database", refuse)
    recording.search("a")
    assert recording.recorder.flush(LONG_S)
    recording.search("b")
    recording.close()

    assert recording.log.totals() == ActivityTotals()
    assert recording.recorder.dropped == 1
    assert len(recording.lines) == 1
    assert "Read-only file system" in recording.lines[0]


@pytest.mark.guarantee("G-QUIET-1")
@pytest.mark.parametrize("damage", ["cut", "garbage", "folder"])
def test_damage_costs_old_activity_and_no_call(recording: Recording, damage: str) -> None:
    recording.search("before")
    recording.close()
    match damage:
        case "cut":
            recording.path.write_bytes(recording.path.read_bytes()[:5000])
        case "garbage":
            recording.path.write_bytes(b"no database " * 1000)
        case _:
            recording.path.unlink()
            recording.path.mkdir()

    recording.recorder = recording.another()
    recording.search("after")
    recording.read("after")
    recording.close()

    assert recording.counts() == {"after": 2}
    assert recording.path.with_name("activity.db.set-aside").exists()
    assert recording.recorder.dropped == 0
    assert len(recording.lines) == 1


def test_a_failure_nobody_thought_of_costs_its_notes_and_no_more(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(ActivityFile, "write", lambda *_: 1 // 0)
        recording.search("a")
        assert recording.recorder.flush(LONG_S)
    recording.search("b")
    recording.close()

    assert recording.counts() == {"b": 1}
    assert recording.recorder.dropped == 1
    assert len(recording.lines) == 1
    assert "ZeroDivisionError" in recording.lines[0]


def test_without_a_thread_to_be_had_notes_wait_for_one(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        recording.search("a")
        assert not recording.recorder.flush(0.0)
    recording.search("b")
    recording.close()

    assert recording.counts() == {"a": 1, "b": 1}


def test_the_log_is_pruned_when_the_file_is_opened_and_counts_stay(recording: Recording) -> None:
    recording.search("a", query="old")
    recording.clock.advance(seconds=1)
    recording.search("a", query="newer")
    recording.close()
    recording.clock.advance(days=90)

    recording.recorder = recording.another()
    recording.search("a", query="new")
    recording.close()

    assert recording.queries() == ["newer", "new"]
    assert recording.counts() == {"a": 3}


def test_a_running_recorder_prunes_once_an_hour(recording: Recording) -> None:
    def note(query: str) -> None:
        recording.search(query=query)
        assert recording.recorder.flush(LONG_S)

    note("first")
    recording.clock.advance(days=91)
    recording.monotonic_s += PRUNE_INTERVAL_S - 1
    note("second")
    assert recording.queries() == ["first", "second"]

    recording.monotonic_s += 1
    note("third")
    assert recording.queries() == ["second", "third"]


def test_threads_note_at_once_and_every_note_counts(recording: Recording) -> None:
    def note() -> None:
        for _ in range(100):
            recording.read("a")

    threads = [threading.Thread(target=note) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recording.close()

    assert recording.counts() == {"a": 400}


_CHILD: Final = """
import sys
from pathlib import Path
from ledger import SystemClock
from server.activity import ActivityRecorder

recorder = ActivityRecorder(Path(sys.argv[1]), clock=SystemClock(), log=sys.exit)
for _ in range(20):
    for _ in range(10):
        recorder.note_read(["a", sys.argv[2]], workspace="default", actor="tester")
    assert recorder.flush(60)
recorder.close(60)
assert recorder.dropped == 0
"""


def test_processes_share_the_file_from_its_making_on(recording: Recording) -> None:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", _CHILD, str(recording.path), name],
            cwd=Path(__file__).parents[2],
        )
        for name in ("b", "c")
    ]

    assert [child.wait(LONG_S) for child in children] == [0, 0]

    assert recording.counts() == {"a": 400, "b": 200, "c": 200}
