"""Cases L-1, L-2 and L-4: a half-written last record, what follows it, and cut sealed frames."""

from pathlib import Path

import pytest

from server.errors import UseCaseError
from tests.crash.deed import open_store
from tests.support.store import Client, Home

SONGS = ("robin", "wren", "linnet", "siskin", "dunnock")


def _five(home: Home) -> tuple[bytes, int]:
    """Store five memories; return the segment's bytes and where the fifth record begins."""
    client = home.open()
    for song in SONGS:
        client.add(f"{song} sings before dawn")
    home.close()
    (segment,) = home.segments
    data = segment.read_bytes()
    return data, len(data) - len(data.splitlines(keepends=True)[-1])


def test_l1_a_half_written_last_record_never_stops_the_store_and_is_kept(home: Home) -> None:
    data, fifth = _five(home)
    quarantine = home.path / "ledger" / "quarantine"
    for size in [*range(fifth, len(data), 23), len(data) - 1, len(data)]:
        home.segments[0].write_bytes(data[:size])
        client = home.rebuilt()

        listed = {memory.content.split()[0] for memory in client.listed()}

        assert listed == set(SONGS if size == len(data) else SONGS[:4])
        home.close()
        assert home.verify().problems == []
        kept = [file.read_bytes() for file in quarantine.iterdir()]
        assert kept == ([data[fifth:size]] if fifth < size < len(data) else [])
        for file in quarantine.iterdir():
            file.unlink()


def test_l2_what_is_stored_after_a_tear_is_there_after_every_restart(home: Home) -> None:
    data, fifth = _five(home)
    home.segments[0].write_bytes(data[: fifth + 40])
    client = home.rebuilt()
    for name in ("X", "Y"):
        client.add(f"{name} was stored after the tear")

    for again in home.lives(client):
        contents = {memory.content.split()[0] for memory in again.listed()}
        assert contents == {*SONGS[:4], "X", "Y"}
    home.close()
    assert home.verify().problems == []


def _sealed(home: Home) -> Path:
    """Store three sessions, each sealed in a frame of its own; return the last frame."""
    for session in range(3):
        store = open_store(home.path)
        for number in range(3):
            Client(store).add(f"session {session} heard {SONGS[number]} {'tweet ' * 100}")
        store.upkeep.run_once()
        store.upkeep.stop(1.0)
        store.close()
    frames = sorted((home.path / "ledger" / "log").glob("*.zst"))
    assert len(frames) >= 3
    return frames[-1]


def test_l4_every_session_is_read_from_its_own_frame(home: Home) -> None:
    _sealed(home)

    client = home.rebuilt()

    assert len(client.listed()) == 9
    home.close()
    assert home.verify().problems == []


@pytest.mark.parametrize("harm", ["cut", "more"])
def test_l4_a_frame_that_was_cut_or_goes_on_is_reported_and_no_memory_holds_half_a_text(
    home: Home, harm: str
) -> None:
    frame = _sealed(home)
    data = frame.read_bytes()
    frame.write_bytes(data[:-3] if harm == "cut" else data + b"\x9c\x11\x07")

    problems = home.verify().problems
    client = home.rebuilt()

    assert [problem.kind for problem in problems][:1] == ["sealed_file"]
    texts = [client.content(memory.id) for memory in client.listed()]
    assert {text.count("tweet") for text in texts} == {100}
    assert client.search("session").notes
    with pytest.raises(UseCaseError):
        client.add("written over a bad frame")
