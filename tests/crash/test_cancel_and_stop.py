"""Writes that are taken back, and servers that are told to end while writes are on their way."""

import signal
from pathlib import Path

import pytest

from tests.crash.harness import Server, assert_sound, contents, dice, serving, structured
from tests.support.peer import call, cancelled

CANCELLATIONS = 100
LATEST_SECONDS = 0.004
"""A write takes about a millisecond; some are cancelled after they have ended."""

IN_FLIGHT = 300
ROUNDS = 8


def _drain(server: Server, request_id: object) -> list[tuple[object, dict[str, object]]]:
    """Read answers up to one; return those before it."""
    before = []
    while (message := server.receive()).get("id") != request_id:
        before.append((message["id"], structured(message)))
    assert "error" not in structured(message), message
    return before


@pytest.mark.guarantee("G-CANCEL-1")
@pytest.mark.crash
def test_a_cancelled_write_is_there_or_not_and_its_repetition_does_not_double_it(
    tmp_path: Path,
) -> None:
    chance, home = dice(), tmp_path / "home"
    answered = 0
    with serving(home) as server:
        server.add("first")
        for number in range(CANCELLATIONS):
            arguments = {"content": f"note {number}", "layer": "semantic"}
            arguments["idempotency_key"] = f"key {number}"
            first, again = f"{number} first", f"{number} again"
            server.send(call(first, "memory_add", **arguments))
            early = server.available(chance.uniform(0, LATEST_SECONDS))
            server.send(cancelled(first), cancelled(first), cancelled("never sent"))
            server.send(call(again, "memory_add", **arguments))
            late = _drain(server, again)
            seen = [(message["id"], structured(message)) for message in early] + late
            assert len(seen) <= 1, "one request, two answers"
            for request_id, said in seen:
                assert request_id == first
                assert "error" not in said
            answered += len(seen)
        assert server.total() == CANCELLATIONS + 1
        server.close_input()
        assert server.exit_status() == 0
    stored = contents(home)
    expected = {"first", *(f"note {number}" for number in range(CANCELLATIONS))}
    assert stored.counts == dict.fromkeys(expected, 1)
    assert_sound(home)
    assert 0 < answered < CANCELLATIONS, "no cancellation came in time, or all of them"


@pytest.mark.guarantee("G-CANCEL-1")
@pytest.mark.crash
def test_cancelling_a_crowd_of_writes_leaves_each_there_or_not(tmp_path: Path) -> None:
    chance, home = dice(), tmp_path / "home"
    with serving(home) as server:
        server.add("first")
        for number in range(IN_FLIGHT):
            server.send(call(number, "memory_add", content=f"note {number}", layer="semantic"))
            if chance.random() < 0.5:
                server.send(cancelled(chance.randint(max(0, number - 8), number)))
        server.close_input()
        answers = [message for message in server.rest() if message["id"] != "handshake"]
        assert server.exit_status() == 0
    stored = contents(home)
    assert set(stored.counts.values()) == {1}
    ids = [message["id"] for message in answers]
    assert len(ids) == len(set(ids))
    for message in answers:
        said = structured(message)
        assert stored.ids[f"note {message['id']}"] == said["id"]
    assert_sound(home)


@pytest.mark.guarantee("G-ACK-1")
@pytest.mark.crash
@pytest.mark.slow
def test_sigterm_among_writes_keeps_what_was_acknowledged_and_ends_the_server(
    tmp_path: Path,
) -> None:
    chance, home = dice(), tmp_path / "home"
    for round_ in range(ROUNDS):
        with serving(home) as server:
            server.add(f"first of {round_}")
            for number in range(IN_FLIGHT):
                content = f"note {number} of {round_}"
                server.send(call(number, "memory_add", content=content, layer="semantic"))
            answers = [server.receive() for _ in range(chance.randrange(IN_FLIGHT // 2))]
            server.process.send_signal(signal.SIGTERM)
            answers += server.rest()
            assert server.exit_status() == 0
        stored = contents(home)
        assert set(stored.counts.values()) == {1}
        for message in answers:
            said = structured(message)
            if "error" not in said:
                assert stored.ids[f"note {message['id']} of {round_}"] == said["id"]
    assert_sound(home)


@pytest.mark.crash
def test_the_end_of_input_among_writes_answers_every_one_of_them_first(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with serving(home) as server:
        for number in range(IN_FLIGHT):
            content = f"note {number}"
            server.send(call(number, "memory_add", content=content, layer="semantic"))
        server.close_input()
        answers = {message["id"]: message for message in server.rest()}
        assert server.exit_status() == 0
    del answers["handshake"]
    stored = contents(home)
    said = {f"note {number}": structured(answer)["id"] for number, answer in answers.items()}
    assert stored.ids == said
    assert len(said) == IN_FLIGHT
    assert_sound(home)


@pytest.mark.crash
def test_a_client_that_dies_among_writes_leaves_no_server_behind(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with serving(home) as server:
        server.add("first")
        for number in range(IN_FLIGHT):
            content = f"note {number}"
            server.send(call(number, "memory_add", content=content, layer="semantic"))
        assert server.process.stdout is not None
        server.process.stdout.close()
        server.close_input()
        assert server.exit_status() == 0
    assert set(contents(home).counts.values()) == {1}
    assert_sound(home)
