"""A disk that fills up under the whole home, the ledger alone, or the projections alone."""

import random
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ledger import verify
from tests.crash.harness import (
    MNEMOLOG,
    Server,
    assert_sound,
    code,
    contents,
    environment,
    generations,
    run,
    serving,
)
from tests.support.redactions import inflated

DISK_BYTES = 5 << 20
BALLAST_BYTES = 2 << 20
TEXT = "the quick brown fox jumps over the lazy dog " * 100
"""A memory's words: 4.4 KB, so that a disk is full after some hundred of them."""

REFUSALS = {"disk_full", "read_only"}
"""The second: a file has grown as far as it may, which freeing space does not change."""

TRIES_MAX = 20_000


@pytest.fixture(params=["", "ledger", "projections"], ids=["home", "ledger", "projections"])
def full(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """Yield a home, and the ballast on the small disk that all of it or one folder is on."""
    home = tmp_path / "home"
    disk = home / request.param
    with small_disk(disk):
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(BALLAST_BYTES))
        yield home, ballast


@contextmanager
def small_disk(disk: Path) -> Iterator[None]:
    """Mount a small file system on a folder, which is made; skips where that may not be."""
    disk.mkdir(parents=True, mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES},mode=700", "tmpfs", str(disk)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"cannot mount a small file system here: {error}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def noise(number: int) -> str:
    """Return 30 KB of words that no compression makes small."""
    dice = random.Random(number)
    return " ".join(dice.randbytes(8).hex() for _ in range(1_800))


def _fill(server: Server) -> dict[str, str]:
    """Store until a memory is refused; content -> id of those acknowledged."""
    acknowledged: dict[str, str] = {}
    for number in range(TRIES_MAX):
        content = f"number{number} {TEXT}"
        said = server.add(content)
        if "error" in said:
            assert code(said) in REFUSALS, said
            return acknowledged
        acknowledged[content] = said["id"]
    raise AssertionError("the disk never was full")


def _assert_found(server: Server, acknowledged: dict[str, str], *, behind: int = 0) -> None:
    """Check the answers; the last of the acknowledged memories may be `behind`, for want of room.

    What the ledger has is acknowledged, even if the tables' own commit then finds no more room.
    They take it in before anything else is written, and until then nothing else is.
    """
    missing = len(acknowledged) - server.total()
    assert 0 <= missing <= behind
    shown = list(acknowledged.items())[: len(acknowledged) - missing]
    for content, id_ in shown[:: max(1, len(shown) // 10)]:
        found = server.call("memory_search", query=content.split()[0], limit=2)
        assert [memory["id"] for memory in found["memories"]] == [id_], found


@pytest.mark.guarantee("G-ACK-4")
@pytest.mark.crash
def test_a_full_disk_refuses_writes_keeps_what_was_acknowledged_and_recovers(
    full: tuple[Path, Path],
) -> None:
    home, ballast = full
    with serving(home) as server:
        acknowledged = _fill(server)
        assert acknowledged
        _assert_found(server, acknowledged, behind=1)
        assert code(server.add(TEXT)) == "disk_full"
        with serving(home) as other:
            assert code(other.add(TEXT)) == "disk_full"
            _assert_found(other, acknowledged, behind=1)
        ballast.unlink()
        for number in range(10):
            content = f"later{number} {TEXT}"
            said = server.add(content)
            assert "error" not in said, said
            acknowledged[content] = said["id"]
        server.close_input()
        assert server.exit_status() == 0
    assert contents(home).ids == acknowledged
    with serving(home) as fresh:
        _assert_found(fresh, acknowledged)
        assert "error" not in fresh.add("after the restart")
    assert_sound(home)


@pytest.mark.guarantee("G-TABLES-3")
@pytest.mark.crash
def test_a_rebuild_that_finds_the_disk_full_leaves_the_old_projections_in_use(
    full: tuple[Path, Path],
) -> None:
    home, ballast = full
    with serving(home) as server:
        acknowledged = _fill(server)
        server.close_input()
        server.exit_status()
    before = generations(home)
    with serving(home) as server:
        _assert_found(server, acknowledged, behind=1)
        rebuilt = run(home, "rebuild")
        if rebuilt.returncode != 0:
            assert "Traceback" not in rebuilt.stderr
            assert generations(home) == before, "half a generation was left"
        _assert_found(server, acknowledged, behind=1)
    with serving(home) as server:
        _assert_found(server, acknowledged, behind=1)
        ballast.unlink()
        assert "error" not in server.add("after the ballast went")


@pytest.mark.guarantee("G-ACK-4")
@pytest.mark.crash
def test_a_limit_on_file_sizes_refuses_writes_and_loses_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with serving(home) as server:
        server.add("first")
    limit = 1 << 20
    process = subprocess.Popen(
        [MNEMOLOG, "serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(home),
        bufsize=0,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),  # noqa: PLW1509 - the child has one thread
    )
    server = Server(process)
    acknowledged = {"first": contents(home).ids["first"]} | _fill(server)
    assert code(server.add(TEXT)) in REFUSALS
    _assert_found(server, acknowledged, behind=1)
    server.close_input()
    assert server.exit_status() == 0
    assert process.stdout is not None
    process.stdout.close()
    assert contents(home).ids == acknowledged
    with serving(home) as fresh:
        _assert_found(fresh, acknowledged)
        assert "error" not in fresh.add(TEXT)
    assert_sound(home)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder on a small disk of its own."""
    disk = tmp_path / "disk"
    with small_disk(disk):
        yield disk


def _home_of(count: int, home: Path) -> None:
    """Make a home whose ledger is larger than what is left beside a small disk's ballast."""
    with serving(home) as server:
        for number in range(count):
            assert "error" not in server.add(f"number{number} {noise(number)}")
        server.close_input()
        assert server.exit_status() == 0


def _assert_full(done: "subprocess.CompletedProcess[str]") -> None:
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert "disk_full" in done.stderr or "disk is full" in done.stderr, done.stderr


@pytest.mark.crash
def test_a_backup_that_finds_the_disk_full_leaves_nothing_and_the_one_before(
    tmp_path: Path, small: Path
) -> None:
    home = tmp_path / "home"
    _home_of(2, home)
    assert run(home, "backup", str(small / "good")).returncode == 0
    good = inflated(small / "good")
    _home_of(40, home)
    ballast = small / "ballast"
    _leave(small, ballast, 1 << 19)

    for _ in range(2):
        _assert_full(run(home, "backup", str(small / "next")))
        assert sorted(path.name for path in small.iterdir()) == ["ballast", "good"]
        assert inflated(small / "good") == good
    assert_sound(home)

    ballast.unlink()
    done = run(home, "backup", str(small / "next"))
    assert done.returncode == 0, done.stderr
    assert verify(small / "next").ok
    restored = run(tmp_path / "other", "restore", str(small / "next"))
    assert restored.returncode == 0, restored.stderr
    assert contents(tmp_path / "other").ids == contents(home).ids


@pytest.mark.crash
def test_a_restore_that_finds_the_disk_full_leaves_the_ledger_that_was_there(
    tmp_path: Path, small: Path
) -> None:
    source, home = tmp_path / "source", small / "home"
    _home_of(40, source)
    backed_up = run(source, "backup", str(tmp_path / "copy"))
    assert backed_up.returncode == 0, backed_up.stderr
    home.mkdir(0o700)
    with serving(home) as server:
        assert "error" not in server.add("what was there")
        server.close_input()
        assert server.exit_status() == 0
    before = contents(home).ids
    ballast = small / "ballast"
    _leave(small, ballast, 1 << 19)

    for _ in range(2):
        _assert_full(run(home, "restore", str(tmp_path / "copy"), "--replace"))
        assert [path.name for path in home.glob("ledger*")] == ["ledger"]
        assert contents(home).ids == before
    with serving(home) as server:
        assert server.total() == 1

    ballast.unlink()
    restored = run(home, "restore", str(tmp_path / "copy"), "--replace")
    assert restored.returncode == 0, restored.stderr
    assert contents(home).ids == contents(source).ids
    assert_sound(home)


@pytest.mark.crash
def test_a_rebuild_that_failed_for_want_of_room_is_done_once_there_is_some(
    small: Path,
) -> None:
    home = small / "home"
    home.mkdir(0o700)
    _home_of(12, home)
    ballast = small / "ballast"
    _leave(small, ballast, 1 << 18)
    before = generations(home)

    for _ in range(2):
        _assert_full(run(home, "rebuild"))
        assert generations(home) == before, "half a generation was left"

    ballast.unlink()
    rebuilt = run(home, "rebuild")
    assert rebuilt.returncode == 0, rebuilt.stderr
    assert generations(home).isdisjoint(before)
    assert_sound(home)


def _leave(disk: Path, ballast: Path, room: int) -> None:
    """Fill a disk but for some room."""
    free = shutil.disk_usage(disk).free
    ballast.write_bytes(bytes(free - room))
