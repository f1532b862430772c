"""F-2: a store that may only be read is read whole, and nothing is left behind."""

import errno
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from projections.generation import Generation
from server.errors import BusyError, ReadOnlyError
from tests.crash.harness import (
    MNEMOLOG,
    Server,
    code,
    contents,
    end,
    environment,
    filled,
    serving,
)
from tests.support.home_files import entries, is_aside, torn, viewing
from tests.support.peer import HANG_SECONDS
from tests.support.store import Home, live_digest

NOTES: Final = 30
ODD_NAME: Final = "Mé moire — データ/#1 %20?x"


class Shelf:
    """A store on a medium that an ordinary user may only read."""

    def __init__(self, folder: Path, prefix: Sequence[str]) -> None:
        self.home = folder / "home"
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.temporary.chmod(0o777)
        self._prefix = prefix

    def environment(self) -> dict[str, str]:
        return environment(self.home, TMPDIR=str(self.temporary), HOME=str(self.temporary))

    def lock_up(self) -> dict[str, bytes]:
        """Take all rights to write away; returns every file that is there."""
        for path in entries(self.home):
            path.chmod(0o555 if path.is_dir() else 0o444)
        return self.files()

    def files(self) -> dict[str, bytes]:
        return {
            str(path): b"" if path.is_dir() else path.read_bytes() for path in entries(self.home)
        }

    @contextmanager
    def serving(self) -> Iterator[Server]:
        server = Server(
            subprocess.Popen(
                [*self._prefix, MNEMOLOG, "serve"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=self.environment(),
                bufsize=0,
            )
        )
        try:
            yield server
            server.close_input()
            assert server.exit_status() == 0
        finally:
            end(server)

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*self._prefix, MNEMOLOG, *arguments],
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_SECONDS,
        )


@pytest.fixture
def shelf(request: pytest.FixtureRequest) -> Iterator[Shelf]:
    # Not below pytest's own folder, which no other user may enter.
    with tempfile.TemporaryDirectory(prefix="mnemolog-test-") as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)
        prefix: list[str] = []
        if request.param == "modes" and os.geteuid() == 0:
            prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
            if (
                shutil.which(prefix[0]) is None
                or subprocess.run(
                    [*prefix, MNEMOLOG, "--version"], capture_output=True, check=False
                ).returncode
            ):
                pytest.skip("root may write everywhere, and no other user can start mnemolog")
        if request.param == "mount":
            home = folder / "home"
            home.mkdir()
            mounting = f"mount --bind '{home}' '{home}' && mount -o remount,bind,ro '{home}'"
            prefix = ["unshare", "-m", "sh", "-c", f'{mounting} && exec "$@"', "sh"]
            if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
                pytest.skip("nothing may be mounted here")
            home.rmdir()
        shelf = Shelf(folder, prefix)
        yield shelf
        for path in entries(shelf.home):
            path.chmod(0o700)


def _as_it_was(home: Path) -> None:
    """Leave the projections as the last clean close left them."""
    assert not list(home.glob("projections/*/memory.db-*"))


def _no_projections(home: Path) -> None:
    shutil.rmtree(home / "projections")


def _killed(home: Path) -> None:
    """Leave a write-ahead log behind, as a killed server does."""
    with serving(home) as server:
        server.add(f"note {NOTES} of the harbour master")
        end(server, signal.SIGKILL)
    assert list(home.glob("projections/*/memory.db-wal"))
    for shared in home.glob("projections/*/memory.db-shm"):
        shared.unlink()


def _behind(home: Path) -> None:
    """Put projections back that lack the newest memory."""
    older = home.parent / "older"
    shutil.copytree(home / "projections", older)
    with serving(home) as server:
        server.add(f"note {NOTES} of the harbour master")
        server.close_input()
        assert server.exit_status() == 0
    shutil.rmtree(home / "projections")
    older.rename(home / "projections")


def _damaged(home: Path) -> None:
    (database,) = home.glob("projections/*/memory.db")
    database.write_bytes(b"\xff" * database.stat().st_size)


STATES = (_as_it_was, _no_projections, _killed, _behind, torn, _damaged)


@pytest.mark.guarantee("G-READ-1")
@pytest.mark.parametrize(
    ("shelf", "state"),
    [
        *(("modes", state) for state in STATES),
        *(("mount", state) for state in (_as_it_was, _no_projections)),
    ],
    indirect=["shelf"],
)
def test_f2_a_store_that_may_only_be_read_is_read_whole_and_leaves_no_file(
    shelf: Shelf, state: Callable[[Path], None]
) -> None:
    filled(shelf.home, NOTES)
    state(shelf.home)
    ids = contents(shelf.home).ids
    before = shelf.lock_up()

    with shelf.serving() as server:
        total = server.total()
        found = server.call("memory_search", query="harbour master", limit=100)["memories"]
        seen = server.call("memory_inspect", id=ids["note 3 of the harbour master"])
        listed = server.call("memory_list", limit=100)["memories"]
        exported = server.call("memory_export", format="jsonl")
        health = server.call("memory_health")
        refused = server.add("one more")
        again = server.call("memory_search", query="harbour master", limit=100)["memories"]
    dry = shelf.run("delete", "--layer", "semantic", "--dry-run", "--json")
    outcomes = {command: shelf.run(command) for command in ("verify", "digest", "replay")}

    assert total == len(ids) in {NOTES, NOTES + 1}
    assert {memory["id"] for memory in found} == set(ids.values())
    assert found == again
    assert {memory["id"] for memory in listed} == set(ids.values())
    assert code(exported) == ""
    assert health["ledger"]["read_only"]
    assert seen["memory"]["content"] == "note 3 of the harbour master"
    assert code(refused) == "read_only"
    assert json.loads(dry.stdout)["matched_count"] == len(ids), dry
    damage = int(state in {torn, _damaged})
    statuses = {command: outcome.returncode for command, outcome in outcomes.items()}
    assert statuses == {"verify": damage, "digest": 0, "replay": 0}, outcomes
    assert f"memories: {len(ids)}" in outcomes["replay"].stdout
    assert shelf.files() == before
    assert list(shelf.temporary.iterdir()) == []


@pytest.mark.parametrize("shelf", ["modes"], indirect=True)
def test_f2_commands_that_would_write_are_refused_by_name(shelf: Shelf) -> None:
    filled(shelf.home, 1)
    before = shelf.lock_up()

    rebuilt = shelf.run("rebuild")

    assert (rebuilt.returncode, rebuilt.stdout) == (2, "")
    assert "read-only" in rebuilt.stderr
    assert shelf.files() == before


@pytest.mark.parametrize("shelf", ["modes", "mount"], indirect=True)
def test_f2_where_there_is_no_store_and_none_can_be_made_nothing_is_called_empty(
    shelf: Shelf,
) -> None:
    shelf.home.mkdir()
    before = shelf.lock_up()

    with shelf.serving() as server:
        said = server.call("memory_search", query="anything")

    assert code(said) == "read_only"
    assert shelf.run("verify").returncode == 2
    assert shelf.files() == before


def test_f2_a_viewer_sees_what_others_write_meanwhile(home: Home) -> None:
    writer = home.open()
    first = writer.add("heron one").id
    home.close()
    said: list[str] = []
    with viewing(home, said=said) as viewer:
        assert viewer.store.is_read_only
        assert viewer.found("heron") == [first]
        assert not is_aside(viewer)
        writer = home.open()
        ids = [first]
        for number in range(3):
            ids.append(writer.add(f"heron again {number}").id)
            assert sorted(viewer.found("heron")) == sorted(ids)
        assert is_aside(viewer)
        writer.delete(first)
        assert sorted(viewer.found("heron")) == sorted(ids[1:])
        assert live_digest(viewer).text() == live_digest(writer).text()
        viewer.store.upkeep.run_once()
    assert any("opened read-only (read_only)" in text for text in said)
    assert any("from a copy in a temporary folder" in text for text in said)


def test_f2_a_frozen_generation_that_changes_under_a_read_is_not_believed(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_id = home.open().add("heron one").id
    home.close()
    with viewing(home) as viewer:
        assert viewer.found("heron") == [memory_id]
        os.utime(home.database)
        assert viewer.found("heron") == [memory_id]
        monkeypatch.setattr(Generation, "is_as_found", lambda _: False)
        with pytest.raises(BusyError):
            viewer.search("heron")
        monkeypatch.undo()
        home.database.rename(home.path / "elsewhere")
        assert viewer.found("heron") == [memory_id]
        assert is_aside(viewer)


def test_f2_a_viewer_believes_the_ledger_and_not_newer_projections(home: Home) -> None:
    client = home.open()
    client.add("heron one")
    shutil.copytree(home.path / "ledger", home.path / "older")
    client.add("heron two")
    home.close()
    shutil.rmtree(home.path / "ledger")
    (home.path / "older").rename(home.path / "ledger")

    with viewing(home) as viewer:
        assert len(viewer.found("heron")) == 1
        assert is_aside(viewer)


def test_f2_a_viewer_whose_copy_was_overtaken_by_another_ledger_makes_a_new_one(
    home: Home,
) -> None:
    client = home.open()
    client.add("heron one")
    home.close()
    shutil.copytree(home.path / "ledger", home.path / "older")
    with viewing(home) as viewer:
        client = home.open()
        client.add("heron two")
        assert len(viewer.found("heron")) == 2
        home.close()
        shutil.rmtree(home.path / "ledger")
        (home.path / "older").rename(home.path / "ledger")

        assert len(viewer.found("heron")) == 1


def test_f2_a_viewer_does_not_believe_projections_that_lack_something(home: Home) -> None:
    client = home.open()
    client.add("heron one")
    home.close()
    shutil.copytree(home.path / "projections", home.path / "older")
    home.open().add("heron two")
    home.close()
    shutil.rmtree(home.path / "projections")
    (home.path / "older").rename(home.path / "projections")

    with viewing(home) as viewer:
        assert len(viewer.found("heron")) == 2
        assert is_aside(viewer)


def test_f2_a_viewer_of_a_ledger_that_is_damaged_meanwhile_reads_what_it_had(home: Home) -> None:
    client = home.open()
    client.add("heron one")
    with viewing(home) as viewer:
        client.add("heron two")
        assert len(viewer.found("heron")) == 2
        client.add("heron three")
        client.add("heron four")
        (segment,) = home.segments
        segment.write_bytes(segment.read_bytes().replace(b"heron three", b"xeron three"))
        assert len(viewer.found("heron")) == 2


def test_f2_projections_that_may_not_be_read_are_made_anew_aside(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_id = home.open().add("heron one").id
    home.close()

    def refuse(_: Generation) -> bool:
        raise PermissionError(errno.EACCES, "not yours")

    monkeypatch.setattr(Generation, "_peek", refuse)
    with viewing(home) as viewer:
        assert viewer.found("heron") == [memory_id]
        assert is_aside(viewer)


def test_f2_a_viewer_of_a_store_without_its_log_reads_on(home: Home) -> None:
    memory_id = home.open().add("heron one").id
    home.close()
    (home.path / "ledger" / "log").rename(home.path / "elsewhere")

    with viewing(home) as viewer:
        assert viewer.found("heron") == [memory_id]
        with pytest.raises(ReadOnlyError):
            viewer.add("heron two")


def test_f2_a_viewer_of_a_damaged_ledger_without_projections_reads_what_is_whole(
    home: Home,
) -> None:
    client = home.open()
    ids = [client.add(f"heron {number}").id for number in range(6)]
    home.close()
    shutil.rmtree(home.path / "projections")
    (segment,) = home.segments
    lines = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(b"".join([*lines[:4], lines[4].replace(b"heron", b"xeron"), *lines[5:]]))

    with viewing(home) as viewer:
        found = viewer.search("heron")

    assert {memory.id for memory in found.memories} == {*ids[:1], *ids[2:]}
    assert any("damaged" in note for note in found.notes)
