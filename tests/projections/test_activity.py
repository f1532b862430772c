"""The activity file: what it counts, how it forgets, what it makes of whatever is in its place."""

import errno
import os
import stat
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.activity import (
    PRUNED_PER_TRANSACTION,
    SET_ASIDE_MAX,
    VERSION,
    Access,
    ActivityFile,
    ActivityLog,
    ActivityTotals,
    Logged,
    LoggedRead,
    LoggedSearch,
    _alone,
    clear_activity,
)
from projections.connection import Connection, DatabaseError
from projections.errors import ActivityUnavailableError
from tests.support.store import MEMORY_DISK

HOUR_US: Final = 3_600_000_000
WORKSPACES: Final = ("default", "фаб")


def search(at_us: int, *hits: str, workspace: str = "default", query: str = "boiler") -> Logged:
    return LoggedSearch(
        at_us=at_us,
        workspace=workspace,
        actor="tester",
        query=query,
        mode="fts",
        filters={},
        hits=hits,
        duration_ms=1.5,
    )


def read(at_us: int, *memories: str, workspace: str = "default") -> Logged:
    return LoggedRead(at_us=at_us, workspace=workspace, actor="tester", memories=memories)


class Folder:
    """A folder with an activity file, its writer, and the lines that the writer logged."""

    def __init__(self, path: Path) -> None:
        self.path = path / "activity.db"
        self.lines: list[str] = []
        self.file = ActivityFile(self.path, log=self.lines.append)

    def write(self, *calls: Logged) -> None:
        self.file.write(calls)

    def log(self, workspace: str = "default") -> ActivityLog:
        return ActivityLog(self.path, workspace)

    def counts(self, workspace: str = "default") -> dict[str, int]:
        return {access.memory_id: access.count for access in self.log(workspace).most_read(1000)}

    def names(self) -> list[str]:
        return sorted(path.name for path in self.path.parent.iterdir())

    @contextmanager
    def connected(self) -> Iterator[Connection]:
        connection = Connection(self.path)
        try:
            yield connection
        finally:
            connection.close()

    def execute(self, *statements: str) -> None:
        self.file.close()
        with self.connected() as connection:
            for statement in statements:
                connection.execute(statement)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    folder = Folder(tmp_path)
    yield folder
    folder.file.close()


ids = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=4)
calls = st.builds(
    lambda kind, at_us, ids, workspace: kind(at_us, *ids, workspace=workspace),
    st.sampled_from([search, read]),
    st.integers(0, 10),
    ids,
    st.sampled_from(WORKSPACES),
)


@given(batches=st.lists(st.lists(calls, max_size=4), max_size=5))
def test_counts_and_last_times_are_those_of_every_call_that_named_the_memory(
    batches: list[list[Logged]],
) -> None:
    counts: dict[str, Counter[str]] = {name: Counter() for name in WORKSPACES}
    last_us: dict[tuple[str, str], int] = {}
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK) as path:
        folder = Folder(Path(path))
        for batch in batches:
            folder.write(*batch)
            for call in batch:
                named = call.hits if isinstance(call, LoggedSearch) else call.memories
                counts[call.workspace].update(set(named))
                for name in named:
                    key = call.workspace, name
                    last_us[key] = max(last_us.get(key, 0), call.at_us)

        for workspace in WORKSPACES:
            found = {access.memory_id: access for access in folder.log(workspace).most_read(1000)}
            assert {name: access.count for name, access in found.items()} == counts[workspace]
            for name, access in found.items():
                assert access.last_us == last_us[workspace, name]
            for since_us in (0, 5, 11):
                assert folder.log(workspace).read_since(since_us) == {
                    name for name in found if last_us[workspace, name] >= since_us
                }
        folder.file.close()


def test_a_search_comes_back_as_it_was_logged(folder: Folder) -> None:
    logged = LoggedSearch(
        at_us=1,
        workspace="default",
        actor="Фёдор",
        query="насос \x00 🚀",
        mode="exact",
        filters={"layers": ["semantic"], "entity_name": "Фёдор", "limit": 3},
        hits=("b", "a"),
        duration_ms=0.25,
    )

    folder.write(logged)

    assert folder.log().searches(10) == [logged]


def test_text_that_is_no_unicode_is_logged_with_question_marks(folder: Folder) -> None:
    folder.write(search(1, "a", query="pump \udcff"), read(2, "\udcfe"))

    (found,) = folder.log().searches(10)
    assert isinstance(found, LoggedSearch)
    assert found.query == "pump ?"
    assert folder.counts() == {"a": 1, "?": 1}


def test_searches_are_newest_first_and_at_most_as_many_as_asked_for(folder: Folder) -> None:
    folder.write(search(5, query="third"), search(1, query="first"))
    folder.write(search(5, query="fourth"), search(3, query="second"))

    queries = [found.query for found in folder.log().searches(3)]

    assert queries == ["fourth", "third", "second"]


def test_most_read_comes_first_and_the_latest_among_equals(folder: Folder) -> None:
    folder.write(search(1, "old", "often"), read(2, "new"), read(3, "often"))

    assert folder.log().most_read(2) == [
        Access(memory_id="often", count=2, last_us=3),
        Access(memory_id="new", count=1, last_us=2),
    ]


def test_a_workspace_sees_nothing_of_another(folder: Folder) -> None:
    folder.write(search(1, "a", workspace="one"), read(2, "a", "b", workspace="two"))

    assert folder.counts("one") == {"a": 1}
    assert folder.counts("two") == {"a": 1, "b": 1}
    assert folder.log("two").searches(10) == []
    assert folder.log("one").read_since(2) == set()
    assert folder.log("two").totals() == ActivityTotals(reads=1, memories=2, oldest_us=2)


def test_pruning_deletes_what_is_older_and_keeps_the_counts(folder: Folder) -> None:
    folder.write(search(9, "a"), search(10, "a"), read(9, "b"), read(10, "b"))

    folder.file.prune(10)

    assert folder.log().totals() == ActivityTotals(searches=1, reads=1, memories=2, oldest_us=10)
    assert folder.counts() == {"a": 2, "b": 2}


def test_pruning_goes_on_until_nothing_old_is_left_unless_told_to_stop(folder: Folder) -> None:
    folder.write(*[search(1) for _ in range(2 * PRUNED_PER_TRANSACTION + 1)])

    folder.file.prune(10, go_on=lambda: False)
    assert folder.log().totals().searches == PRUNED_PER_TRANSACTION + 1

    folder.file.prune(10)
    assert folder.log().totals() == ActivityTotals()


def test_without_a_file_every_answer_is_empty_and_none_is_made(folder: Folder) -> None:
    log = folder.log()

    assert log.searches(10) == []
    assert log.most_read(10) == []
    assert log.read_since(0) == set()
    assert log.totals() == ActivityTotals()
    clear_activity(folder.path)
    assert folder.names() == []


def test_every_file_is_its_owners_alone_whatever_the_umask(folder: Folder) -> None:
    umask = os.umask(0)
    try:
        folder.write(search(1, "a"))
    finally:
        os.umask(umask)

    modes = {path.name: path.stat().st_mode & 0o777 for path in folder.path.parent.iterdir()}
    files = "activity.db", "activity.db-wal", "activity.db-shm"
    assert modes == dict.fromkeys(files, 0o600)


def ruin(folder: Folder, table: str) -> None:
    """Overwrite the root page of a table."""
    with folder.connected() as connection:
        page = connection.integer("SELECT rootpage FROM sqlite_schema WHERE name = ?", [table])
        size = connection.integer("PRAGMA page_size")
    assert page is not None
    assert size is not None
    with folder.path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)


def halve(folder: Folder) -> None:
    os.truncate(folder.path, folder.path.stat().st_size // 2)


def replace_by_folder(folder: Folder) -> None:
    folder.path.unlink()
    folder.path.mkdir()


def replace_by_link(folder: Folder) -> None:
    folder.path.unlink()
    folder.path.symlink_to("elsewhere")


def replace_by_pipe(folder: Folder) -> None:
    folder.path.unlink()
    os.mkfifo(folder.path)


DAMAGE: Final[dict[str, Callable[[Folder], object]]] = {
    "cut in half": halve,
    "empty": lambda folder: folder.path.write_bytes(b""),
    "garbage": lambda folder: folder.path.write_bytes(b"no database " * 1000),
    "counts ruined": lambda folder: ruin(folder, "access"),
    "searches ruined": lambda folder: ruin(folder, "search"),
    "a table is gone": lambda folder: folder.execute("DROP TABLE access"),
    "of another program": lambda folder: folder.execute("PRAGMA application_id=7"),
    "of an older version": lambda folder: folder.execute(f"PRAGMA user_version={VERSION - 1}"),
    "a folder": replace_by_folder,
    "a link": replace_by_link,
    "a pipe": replace_by_pipe,
}


@pytest.fixture(params=DAMAGE)
def damaged(folder: Folder, request: pytest.FixtureRequest) -> Folder:
    folder.write(search(1, "before", query="before"))
    folder.file.close()
    DAMAGE[request.param](folder)
    return folder


def test_what_cannot_be_used_is_set_aside_and_a_new_file_begun(damaged: Folder) -> None:
    damaged.write(search(2, "after"), read(3, "after"))

    assert damaged.counts() == {"after": 2}
    assert damaged.log().totals() == ActivityTotals(searches=1, reads=1, memories=1, oldest_us=2)
    assert "activity.db.set-aside" in damaged.names()
    assert not any(name.startswith("activity.db.set-aside-2") for name in damaged.names())
    assert len(damaged.lines) == 1
    assert "activity.db.set-aside" in damaged.lines[0]


def test_what_cannot_be_used_reads_as_empty_and_is_left_in_its_place(damaged: Folder) -> None:
    before = damaged.path.lstat()

    totals = damaged.log().totals()

    assert damaged.path.lstat().st_ino == before.st_ino
    assert "activity.db.set-aside" not in damaged.names()
    # SQLite does not look at pages that a question does not need.
    assert totals.problem or totals.memories == 1
    assert damaged.log().searches(10) in ([], [search(1, "before", query="before")])


def test_what_cannot_be_used_is_cleared_away(damaged: Folder) -> None:
    if damaged.path.is_dir():
        with pytest.raises(ActivityUnavailableError):
            clear_activity(damaged.path)
        return

    clear_activity(damaged.path)

    assert damaged.log().totals() == ActivityTotals()


def test_damage_that_pruning_meets_is_set_aside_too(folder: Folder) -> None:
    folder.write(search(1, "a"))
    folder.file.close()
    ruin(folder, "search_by_time")

    folder.file.prune(10)

    assert "activity.db.set-aside" in folder.names()
    assert folder.log().totals() == ActivityTotals()


def test_a_file_of_a_newer_version_is_refused_and_left_alone(folder: Folder) -> None:
    folder.write(search(1, "a"))
    folder.execute(f"PRAGMA user_version={VERSION + 1}")
    before = folder.path.read_bytes()

    with pytest.raises(ActivityUnavailableError, match="newer mnemolog"):
        folder.write(search(2, "b"))
    with pytest.raises(ActivityUnavailableError, match="newer mnemolog"):
        clear_activity(folder.path)

    assert "newer mnemolog" in (folder.log().totals().problem or "")
    assert folder.path.read_bytes() == before
    assert "activity.db.set-aside" not in folder.names()


def test_a_file_that_may_only_be_read_is_refused(folder: Folder) -> None:
    folder.write(search(1, "a"))
    folder.file.close()
    with folder.path.open("r+b") as file:
        file.seek(18)  # the least version of SQLite that may write: one to come
        file.write(b"\x03")

    with pytest.raises(ActivityUnavailableError, match="readonly"):
        folder.write(search(2, "b"))


@pytest.mark.parametrize(
    ("number", "refusal"),
    [
        (errno.EACCES, ActivityUnavailableError),
        (errno.EROFS, ActivityUnavailableError),
        (errno.ENOSPC, OSError),
    ],
)
@pytest.mark.parametrize("is_there", [False, True], ids=["absent", "damaged"])
def test_a_folder_that_cannot_be_written_is_refused_for_good_if_it_may_not_be(
    folder: Folder,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    refusal: type[Exception],
    *,
    is_there: bool,
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    if is_there:
        folder.path.write_bytes(b"no database " * 1000)
    before = folder.names()
    with monkeypatch.context() as patched:
        patched.setattr("projections.activity.create_database", refuse)
        patched.setattr(Path, "rename", refuse)
        with pytest.raises(refusal, match=os.strerror(number)):
            folder.write(search(1, "a"))
    assert folder.names() == before

    folder.write(search(1, "a"))

    assert folder.counts() == {"a": 1}


def test_a_folder_that_is_gone_is_an_error_of_the_system(folder: Folder, tmp_path: Path) -> None:
    gone = ActivityFile(tmp_path / "gone" / "activity.db", log=folder.lines.append)

    with pytest.raises(FileNotFoundError):
        gone.write([search(1, "a")])
    assert folder.names() == []


def test_a_file_deleted_while_it_is_open_is_begun_anew(folder: Folder) -> None:
    folder.write(search(1, "before"))
    for path in folder.path.parent.iterdir():
        path.unlink()

    folder.write(search(2, "after"))

    assert folder.counts() == {"after": 1}
    assert folder.lines == []


def test_the_log_of_a_file_that_was_deleted_alone_does_not_come_back(folder: Folder) -> None:
    folder.write(search(1, "before"))
    folder.path.unlink()
    assert "activity.db-wal" in folder.names()

    folder.write(search(2, "after"))

    assert folder.counts() == {"after": 1}


def test_an_open_writer_follows_a_file_that_another_set_aside(folder: Folder) -> None:
    folder.write(search(1, "before"))
    folder.path.rename(folder.path.with_name("activity.db.set-aside"))
    other = ActivityFile(folder.path, log=folder.lines.append)
    other.write([search(2, "after")])

    folder.write(search(3, "after"))
    other.close()
    folder.write(search(4, "after"))

    assert folder.counts() == {"after": 3}


def test_a_file_that_another_made_meanwhile_is_used(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = ActivityFile(folder.path, log=folder.lines.append)

    @contextmanager
    def overtaken(path: Path) -> Iterator[None]:
        monkeypatch.undo()
        other.write([search(1, "a")])
        other.close()
        with _alone(path):
            yield

    monkeypatch.setattr("projections.activity._alone", overtaken)
    folder.write(search(2, "a"))

    assert folder.counts() == {"a": 2}


def test_a_file_that_another_replaced_meanwhile_is_not_set_aside(folder: Folder) -> None:
    folder.write(search(1, "before"))
    folder.path.rename(folder.path.with_name("activity.db.set-aside"))
    other = ActivityFile(folder.path, log=folder.lines.append)
    other.write([search(2, "after")])
    other.close()

    folder.file._replace(ValueError("damage"))

    assert folder.counts() == {"after": 1}
    assert folder.lines == []


def test_what_cannot_be_set_aside_is_refused(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.path.mkdir()
    monkeypatch.setattr("projections.activity._set_aside", lambda path: path.name)

    with pytest.raises(ActivityUnavailableError, match="no file"):
        folder.write(search(1, "a"))


def test_a_file_is_set_aside_over_the_one_before(folder: Folder) -> None:
    for content in (b"first", b"second"):
        folder.path.write_bytes(content * 1000)
        folder.write(search(1, "a"))
        folder.file.close()

    assert folder.names() == ["activity.db", "activity.db.set-aside"]
    assert folder.path.with_name("activity.db.set-aside").read_bytes() == b"second" * 1000


def test_folders_are_set_aside_under_names_of_their_own_until_there_is_none(
    folder: Folder,
) -> None:
    for _ in range(SET_ASIDE_MAX):
        folder.path.unlink(missing_ok=True)
        folder.path.mkdir()
        (folder.path / "kept").touch()
        folder.write(search(1, "a"))
        folder.file.close()
    folder.path.unlink()
    folder.path.mkdir()

    folder.path.joinpath("kept").touch()
    with pytest.raises(ActivityUnavailableError, match="no name"):
        folder.write(search(1, "a"))

    kept = [path for path in folder.path.parent.iterdir() if (path / "kept").exists()]
    assert len(kept) == SET_ASIDE_MAX + 1


def test_a_file_that_was_set_aside_is_forgotten_when_it_is_old(folder: Folder) -> None:
    folder.write(search(1, "a"))
    old, kept = folder.path.with_name("activity.db.set-aside"), folder.path.with_name("other")
    old.write_bytes(b"old")
    old.with_name("activity.db.set-aside-wal").write_bytes(b"old")
    kept.write_bytes(b"old")
    for path in (old, kept):
        os.utime(path, (HOUR_US // 1_000_000, HOUR_US // 1_000_000))

    folder.file.prune(HOUR_US)
    assert old.exists()

    folder.file.prune(HOUR_US + 1)
    folder.file.close()
    assert folder.names() == ["activity.db", "other"]


def test_clearing_leaves_no_word_in_any_file(folder: Folder) -> None:
    folder.write(*[search(at_us, f"memory{at_us}", query="gooseberry") for at_us in range(100)])
    folder.path.with_name("activity.db.set-aside").write_bytes(b"gooseberry")

    clear_activity(folder.path)

    assert folder.log().totals() == ActivityTotals()
    for path in folder.path.parent.iterdir():
        assert b"gooseberry" not in path.read_bytes() or path.name.endswith("-shm")
    folder.write(search(1, "a"))
    assert folder.counts() == {"a": 1}


def test_a_busy_file_is_not_cleared_and_not_written(folder: Folder) -> None:
    folder.write(search(1, "a"))
    with folder.connected() as other, other.transaction(write=True):
        with pytest.raises(ActivityUnavailableError, match="locked"):
            clear_activity(folder.path)
        with pytest.raises(DatabaseError):
            folder.write(search(2, "a"))
        assert folder.counts() == {"a": 1}

    folder.write(search(2, "a"))

    assert folder.counts() == {"a": 2}
    assert folder.lines == []


def test_whoever_makes_the_file_is_alone_at_it(folder: Folder, tmp_path: Path) -> None:
    with _alone(tmp_path), pytest.raises(BlockingIOError):
        folder.write(search(1, "a"))
    assert folder.names() == []

    folder.write(search(1, "a"))

    assert folder.counts() == {"a": 1}
    assert stat.S_ISREG(folder.path.lstat().st_mode)
