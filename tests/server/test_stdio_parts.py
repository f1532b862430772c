"""Parts of the stdio transport in states a whole process reaches only by chance."""

import os
from collections.abc import Iterator

import pytest

from server import stdio
from server.protocol import Connection, ServerInfo
from server.stdio import Pipes


@pytest.fixture
def ends() -> Iterator[tuple[int, int]]:
    """A pipe: the end to read from, the end to write to."""
    read_fd, write_fd = os.pipe()
    os.set_blocking(write_fd, False)
    yield read_fd, write_fd
    for fd in (read_fd, write_fd):
        try:
            os.close(fd)
        except OSError:
            continue


@pytest.fixture
def pool(ends: tuple[int, int]) -> Iterator[stdio._Pool]:
    pipes = Pipes(*ends)
    info = ServerInfo(name="n", title="t", version="1", instructions="", tools=())
    peer = Connection(info, write=pipes.write, log=stdio.log)
    news = stdio._News()
    yield stdio._Pool(peer, pipes, news)
    os.close(news._read_fd)
    os.close(news._write_fd)


def test_a_lost_reader_is_told_of_once(ends: tuple[int, int]) -> None:
    pipes = Pipes(*ends)
    told: list[str] = []
    pipes.on_lost = lambda: told.append("lost")
    os.close(ends[0])

    pipes.write(b"a")
    pipes.write(b"b")

    assert told == ["lost"]


def test_a_log_nobody_reads_is_dropped_and_not_waited_for(ends: tuple[int, int]) -> None:
    read_fd, write_fd = ends
    os.set_blocking(write_fd, True)

    for _ in range(100):
        stdio.log("x" * 5000, write_fd)

    assert os.read(read_fd, 5000).startswith(b"xxx")


def test_a_log_that_cannot_be_written_is_dropped(ends: tuple[int, int]) -> None:
    os.close(ends[0])

    stdio.log("x", ends[1])


def test_input_that_cannot_be_read_is_input_that_has_ended(ends: tuple[int, int]) -> None:
    lines = stdio._Lines(ends[1])

    assert lines.next() is None


def test_the_last_line_needs_no_newline(ends: tuple[int, int]) -> None:
    os.write(ends[1], b"first\n\nlast")
    os.close(ends[1])
    lines = stdio._Lines(ends[0])

    assert [lines.next() for _ in range(4)] == [b"first", b"", b"last", None]


def test_without_a_new_thread_the_server_goes_on_with_those_it_has(
    pool: stdio._Pool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(pool, "start", fail)

    pool._start_next()

    assert "can't start new thread" in capfd.readouterr().err


def test_a_full_server_waits_while_its_client_is_there(
    pool: stdio._Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio, "DRAIN_SECONDS", 0.001)
    for _ in range(stdio.CALLS_MAX):
        assert pool._admitted()

    def there() -> bool:
        pool._slots.release()
        return False

    monkeypatch.setattr(pool._pipes, "abandoned", there)

    assert pool._admitted()


def test_a_stopped_server_admits_no_call(pool: stdio._Pool) -> None:
    assert pool.stop() == 0

    assert not pool._admitted()
