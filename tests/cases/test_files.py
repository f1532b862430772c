"""F-1 and F-4: who may read the files, and odd paths."""

import re
import signal
import stat
import subprocess
from pathlib import Path
from typing import Final

import pytest

from server.bootstrap import Store
from server.config import Config
from tests.crash.harness import (
    MNEMOLOG,
    Server,
    contents,
    end,
    environment,
    filled,
    generations,
    run,
    serving,
)
from tests.support.home_files import entries, is_aside, open_to_others, strace, torn, umask, viewing
from tests.support.store import Client, Home, home_at

NOTES: Final = 30
ODD_NAME: Final = "Mé moire — データ/#1 %20?x"


# ---------------------------------------------------------------------------- F-1


@pytest.mark.guarantee("G-FILES-1")
@pytest.mark.parametrize("mask", [0o022, 0o000])
def test_f1_no_other_user_may_use_a_file_of_the_home_at_any_time(tmp_path: Path, mask: int) -> None:
    home = tmp_path / "home"
    with umask(mask):
        with serving(home) as server:
            server.add("note one")
            assert open_to_others(home) == {}
            assert {"-wal", "-shm"} <= {path.name[-4:] for path in entries(home)}
            assert run(home, "rebuild").returncode == 0
            server.add("note two")
            assert open_to_others(home) == {}
            end(server, signal.SIGKILL)
        torn(home)
        with serving(home) as server:
            server.add("note three")
            assert len(list((home / "ledger" / "quarantine").iterdir())) == 1
        scratch = tmp_path / "past.db"
        assert run(home, "replay", "--into", str(scratch)).returncode == 0

    assert open_to_others(home) == {}
    assert stat.S_IMODE(scratch.stat().st_mode) == 0o600


@pytest.mark.guarantee("G-FILES-1")
def test_f1_files_are_closed_from_the_moment_they_are_made(tmp_path: Path) -> None:
    home, log = tmp_path / "home", tmp_path / "trace"
    calls = "trace=open,openat,creat,mkdir,mkdirat,chmod,fchmod,fchmodat"
    with umask(0):
        prefix = strace("-s", "4096", "-e", calls, "-o", str(log))
        with serving(home, prefix=prefix) as server:
            server.add("note one")
            server.close_input()
            assert server.exit_status() == 0
        traced = log.read_text()
        rebuilding = [*prefix, MNEMOLOG, "rebuild"]
        subprocess.run(rebuilding, env=environment(home), check=True, capture_output=True)
        traced += log.read_text()
    made = [
        line
        for line in traced.splitlines()
        if f'"{home}' in line and ("O_CREAT" in line or "mkdir" in line) and " = -1 " not in line
    ]
    assert len(made) > 10
    for line in made:
        # Where threads take turns, the trace shows a call's end in a line of its own.
        mode = "0700" if "mkdir" in line else "0600"
        assert re.search(rf", {mode}(\)| <unfinished)", line), line


def test_f1_folders_that_were_open_are_closed_and_an_open_home_is_reported(tmp_path: Path) -> None:
    home = tmp_path / "home"
    filled(home, 1)
    ours = [home / "ledger", home / "ledger" / "log", home / "projections"]
    for folder in (home, *ours):
        folder.chmod(0o755)
    said: list[str] = []

    store = Store(Config(home=home), log=said.append)

    store.close()
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in ours] == [0o700] * 3
    assert stat.S_IMODE(home.stat().st_mode) == 0o755
    assert [f"{home} is open to other users" in text for text in said] == [True]


# ---------------------------------------------------------------------------- F-4


def test_f4_every_sign_of_a_path_is_part_of_a_name(tmp_path: Path) -> None:
    home = tmp_path / ODD_NAME
    with serving(home) as server:
        memory_id = server.add("heron one")["id"]
        assert server.call("memory_search", query="heron")["memories"][0]["id"] == memory_id
        server.close_input()
        assert server.exit_status() == 0
    for command in (["rebuild"], ["digest"], ["verify", "--digest"], ["replay"]):
        assert run(home, *command).returncode == 0
    with home_at(home) as opened, viewing(opened) as viewer:
        assert viewer.found("heron") == [memory_id]
        assert not is_aside(viewer)

    assert [path.name for path in tmp_path.iterdir()] == [ODD_NAME.split("/")[0]]
    assert open_to_others(home) == {}


def _add_through(folder: Path, cwd: Path, **variables: str) -> str:
    """Store one memory through a server that is told where by a variable; returns its id."""
    given = {**environment(folder), **variables}
    process = subprocess.Popen(
        [MNEMOLOG, "serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=given,
        cwd=cwd,
        bufsize=0,
    )
    server = Server(process)
    try:
        return str(server.add(f"stored from {cwd.name}")["id"])
    finally:
        end(server)


def test_f4_a_tilde_is_the_users_home_and_a_relative_path_is_below_the_start_folder(
    tmp_path: Path,
) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    starts = [tmp_path / "a", tmp_path / "b"]
    for folder in (real, *starts):
        folder.mkdir()
    link.symlink_to(real)
    for start in starts:
        _add_through(Path("mem"), start, HOME=str(link))
        _add_through(Path("~/mem"), start, HOME=str(link))

    assert contents(real / "mem").counts == {"stored from a": 1, "stored from b": 1}
    for start in starts:
        assert contents(start / "mem").counts == {f"stored from {start.name}": 1}
    made = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("FORMAT"))
    assert made == ["a/mem/ledger/FORMAT", "b/mem/ledger/FORMAT", "real/mem/ledger/FORMAT"]


def test_f4_two_names_of_one_store_are_one_store(home: Home, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(home.path)
    by_path = home.open()
    store = Store(Config(home=link), clock=home.clock)
    by_link = Client(store)
    with serving(link) as server:
        ids = {by_path.add("heron one").id, by_link.add("heron two").id}
        ids.add(server.add("heron three")["id"])

        assert set(by_path.found("heron")) == set(by_link.found("heron")) == ids
    assert store.ledger.id == by_path.store.ledger.id
    store.close()
    assert len(generations(home.path)) == 1
