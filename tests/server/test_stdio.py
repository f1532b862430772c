"""The stdio transport as a client meets it: a process, pipes and signals, every byte looked at."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from server import stdio
from tests.support.peer import (
    HANG_SECONDS,
    OURS,
    ROOT,
    Json,
    Peer,
    call,
    cancelled,
    initialize,
    modern,
    notification,
    request,
    started,
)


@pytest.fixture
def peer() -> Iterator[Peer]:
    with started() as fresh:
        yield fresh.handshake()
        fresh.close_input()
        assert fresh.exit_status() == 0


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A named pipe: opening it waits until the tool has opened its end."""
    path = tmp_path / "gate"
    os.mkfifo(path)
    return path


def gates(folder: Path, count: int) -> list[Path]:
    paths = [folder / f"gate-{number}" for number in range(count)]
    for path in paths:
        os.mkfifo(path)
    return paths


def structured(answer: Json) -> Json:
    content: Json = answer["result"]["structuredContent"]
    assert json.loads(answer["result"]["content"][0]["text"]) == content
    return content


# ---------------------------------------------------------------------------- both eras


def test_probing_with_discover_leaves_the_handshake_open() -> None:
    with started() as peer:
        discovered = peer.ask(modern(1, "server/discover"))
        initialized = peer.ask(initialize(2))
        legacy = peer.ask(call(3, "note", text="legacy"))
        modern_again = peer.ask(modern(4, "tools/call", name="note", arguments={"text": "modern"}))

    assert discovered["result"]["supportedVersions"] == ["2026-07-28"]
    assert initialized["result"]["protocolVersion"] == "2025-11-25"
    assert structured(legacy)["actor"] == "legacy-peer"
    assert structured(modern_again)["actor"] == "modern-peer"


def test_tools_are_listed_right_after_the_initialize_answer() -> None:
    with started() as peer:
        answers = [peer.ask(initialize(1)), peer.ask(request(2, "tools/list"))]

    assert "tools" in answers[1]["result"]


def test_a_call_before_the_handshake_is_an_error_and_the_server_lives() -> None:
    with started() as peer:
        early = peer.ask(call(1, "note", text="x"))
        later = peer.handshake().ask(call(2, "note", text="x"))

    assert early["error"]["code"] == -32602
    assert "initialize" in early["error"]["message"]
    assert structured(later)["note"]["text"] == "x"


# ---------------------------------------------------------------------------- bad lines


def test_each_bad_line_gets_its_error_and_the_next_call_works(peer: Peer) -> None:
    lines: list[tuple[bytes, int | None]] = [
        (b"\xff\xfe\n", -32700),
        (b'{"jsonrpc":\n', -32700),
        (b"\n", None),
        (b" \t\r\n", None),
        (b"[]\n", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]\n', -32600),
        (b"null\n", -32600),
        (b'{"jsonrpc":"2.0","method":"notifications/unknown"}\n', None),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n', -32600),
        (b'{"jsonrpc":"2.0"}\n', -32600),
        (b'{"hello":"world"}\n', -32600),
    ]
    peer.send(*(line for line, _ in lines))
    expected = [code for _, code in lines if code is not None]
    answers = [peer.receive() for _ in expected]

    assert [answer["error"]["code"] for answer in answers] == expected
    assert {answer["id"] for answer in answers} == {None}
    assert structured(peer.ask(call(1, "note", text="good")))["note"]["text"] == "good"


@pytest.mark.parametrize("text", [b"\\ud800", b"\\udc00", b"\xff", b"\xed\xa0\x80"[:1]], ids=repr)
def test_text_that_is_no_unicode_is_repaired_and_the_call_answered(peer: Peer, text: bytes) -> None:
    line = json.dumps(call(1, "note", text="a#b")).encode().replace(b"#", text) + b"\n"

    answer = structured(peer.ask(line))

    assert answer["note"]["text"] == "a\ufffdb"
    assert answer["repaired"] is True


def test_a_pair_of_surrogates_is_one_character_and_no_repair(peer: Peer) -> None:
    line = json.dumps(call(1, "note", text="😀")).encode() + b"\n"
    assert b"\\ud83d\\ude00" in line

    answer = structured(peer.ask(line))

    assert answer["note"]["text"] == "😀"
    assert "repaired" not in answer


def test_an_overlong_line_is_refused_with_the_limit_and_skipped(peer: Peer) -> None:
    def feed() -> None:
        peer.send(b'"' + b"x" * stdio.LINE_BYTES_MAX + b'"\n', request(1, "ping"))

    with beside(feed):
        refused, answered = peer.receive(), peer.receive()

    assert refused["error"]["code"] == -32600
    assert str(stdio.LINE_BYTES_MAX) in refused["error"]["message"]
    assert answered == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_a_line_of_ten_megabytes_comes_back_whole(peer: Peer) -> None:
    text = "\0é" * 800_000  # twelve bytes each in JSON

    with beside(lambda: peer.send(call(1, "note", text=text))):
        answer = structured(peer.receive())

    assert answer["note"]["text"] == text


def test_ids_come_back_with_the_type_they_had(peer: Peer) -> None:
    ids: list[object] = [0, -1, "1", "", 2**40, "é\n"]

    assert [peer.ask(request(request_id, "ping"))["id"] for request_id in ids] == ids


# ---------------------------------------------------------------------------- one thing on stdout


@pytest.mark.guarantee("G-STDOUT-1")
def test_whatever_a_tool_prints_goes_to_standard_error(tmp_path: Path) -> None:
    with (tmp_path / "stderr").open("wb") as stderr, started(stderr=stderr.fileno()) as peer:
        answer = peer.handshake().ask(call(1, "speak"))
        peer.close_input()
        rest = peer.rest()
        status = peer.exit_status()

    assert structured(answer) == {"ok": True}
    assert rest == []
    assert status == 0
    noise = (tmp_path / "stderr").read_text()
    assert all(word in noise for word in ("printed", "written", "from a child", "warned"))


def test_a_tool_cannot_read_the_clients_messages(peer: Peer) -> None:
    assert structured(peer.ask(call(1, "listen"))) == {"text": ""}


def test_a_crash_shows_a_reference_and_keeps_its_traceback_to_standard_error(
    tmp_path: Path,
) -> None:
    with (tmp_path / "stderr").open("wb") as stderr, started(stderr=stderr.fileno()) as peer:
        answer = peer.handshake().ask(call(1, "crash"))

    assert answer["result"]["isError"] is True
    error = structured(answer)["error"]
    reference = error["message"].removeprefix("internal error (ref ").removesuffix(")")
    assert error == {"code": "internal_error", "message": f"internal error (ref {reference})"}
    log = (tmp_path / "stderr").read_text()
    assert reference in log
    assert "SELECT secret" in log


def test_a_client_that_never_reads_standard_error_still_gets_answers() -> None:
    with started(stderr=subprocess.PIPE) as peer:
        peer.handshake()
        crashes = [peer.ask(call(number, "crash")) for number in range(300)]
        with beside(lambda: peer.send(call(300, "note", text="x" * 5_000_000))):
            answer = structured(peer.receive())

    assert all(crash["result"]["isError"] for crash in crashes)
    assert len(answer["note"]["text"]) == 5_000_000


def test_answers_larger_than_the_pipe_wait_for_a_slow_reader(peer: Peer) -> None:
    with beside(
        lambda: peer.send(*(call(number, "fill", characters=2**20) for number in range(4)))
    ):
        answers = [peer.receive() for _ in range(4)]

    assert {answer["id"] for answer in answers} == {0, 1, 2, 3}
    assert all(len(structured(answer)["text"]) == 2**20 for answer in answers)


# ---------------------------------------------------------------------------- calls side by side


def test_a_slow_call_delays_neither_pings_nor_other_calls(peer: Peer, gate: Path) -> None:
    peer.send(call("slow", "hold", gate=str(gate)))
    with gate.open("w") as opened:
        pings = [peer.ask(request(number, "ping"))["id"] for number in range(5)]
        calls = [peer.ask(call(number, "note", text="x"))["id"] for number in range(49)]
        opened.write("through")

    assert pings == list(range(5))
    assert calls == list(range(49))
    assert structured(peer.receive()) == {"text": "through"}


def test_as_many_calls_as_allowed_run_at_once_and_the_next_waits(
    peer: Peer, tmp_path: Path
) -> None:
    paths = gates(tmp_path, stdio.CALLS_MAX)
    peer.send(*(call(number, "hold", gate=str(path)) for number, path in enumerate(paths)))
    opened = [path.open("w") for path in paths]
    peer.send(call("next", "note", text="x"))
    opened.pop().close()
    answers = [peer.receive(), peer.receive()]
    for file in opened:
        file.close()
    answers += [peer.receive() for _ in opened]

    assert {answer["id"] for answer in answers} == {"next", *range(stdio.CALLS_MAX)}
    assert answers[0]["id"] == stdio.CALLS_MAX - 1


def test_an_id_in_use_is_refused_and_its_owner_answered_once(peer: Peer, gate: Path) -> None:
    peer.send(call(1, "hold", gate=str(gate)))
    with gate.open("w"):
        refused = peer.ask(call(1, "note", text="x"))
        refused_too = peer.ask(request(1, "ping"))
        other_type = peer.ask(request("1", "ping"))

    assert [refused["id"], refused["error"]["code"]] == [None, -32600]
    assert [refused_too["id"], refused_too["error"]["code"]] == [None, -32600]
    assert other_type["id"] == "1"
    assert peer.receive()["id"] == 1
    assert peer.ask(request(1, "ping"))["id"] == 1


# ---------------------------------------------------------------------------- cancellation


def test_a_cancelled_call_is_told_and_gets_no_answer(peer: Peer, gate: Path) -> None:
    peer.send(call(1, "obey", gate=str(gate)))
    with gate.open() as opened:
        peer.send(cancelled(1), cancelled(1), cancelled("1"), cancelled(99), cancelled(None))
        assert opened.read() == "cancelled"

    assert peer.ask(request(2, "ping"))["id"] == 2
    peer.close_input()
    assert peer.rest() == []
    assert peer.exit_status() == 0


def test_a_call_deaf_to_its_cancellation_stays_unanswered(peer: Peer, gate: Path) -> None:
    peer.send(call(1, "hold", gate=str(gate)))
    with gate.open("w"):
        peer.send(cancelled(1))
        assert peer.ask(request(2, "ping"))["id"] == 2
    peer.close_input()

    assert peer.rest() == []


@pytest.mark.guarantee("G-ANSWER-1")
def test_cancelling_at_any_moment_gives_at_most_one_answer_and_never_an_error(
    peer: Peer,
) -> None:
    for number in range(100):
        peer.send(call(number, "fill", characters=number * 50), cancelled(number))
    peer.send(call("last", "note", text="x"))
    peer.close_input()
    answers = peer.rest()

    ids = [answer["id"] for answer in answers]
    assert len(ids) == len(set(ids))
    assert "last" in ids
    assert not any(answer["result"]["isError"] for answer in answers)
    assert peer.exit_status() == 0


def test_malformed_cancellations_are_ignored(peer: Peer) -> None:
    peer.send(
        notification("notifications/cancelled"),
        notification("notifications/cancelled", requestId=[1]),
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": [1]},
    )

    assert peer.ask(request(1, "ping"))["id"] == 1


# ---------------------------------------------------------------------------- the end


@pytest.mark.guarantee("G-ANSWER-1")
def test_requests_followed_at_once_by_the_end_of_input_are_all_answered() -> None:
    lines = [initialize(0), *(call(number, "note", text="x") for number in range(1, 30))]
    data = b"\n".join(json.dumps(line).encode() for line in lines)

    done = subprocess.run(OURS, input=data, stdout=subprocess.PIPE, cwd=ROOT, check=True)

    ids = [json.loads(line)["id"] for line in done.stdout.splitlines()]
    assert sorted(ids) == list(range(30))


@pytest.mark.guarantee("G-ANSWER-1")
def test_calls_running_at_the_end_of_input_are_answered(tmp_path: Path) -> None:
    paths = gates(tmp_path, 3)
    with started(f"closed={tmp_path / 'closed'}") as peer:
        peer.handshake()
        peer.send(*(call(number, "hold", gate=str(path)) for number, path in enumerate(paths)))
        opened = [path.open("w") for path in paths]
        peer.close_input()
        for file in opened:
            file.close()
        answers = peer.rest()
        status = peer.exit_status()

    assert {answer["id"] for answer in answers} == {0, 1, 2}
    assert not any(answer["result"]["isError"] for answer in answers)
    assert status == 0
    assert (tmp_path / "closed").read_text() == "closed"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_an_idle_server_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    with started(f"closed={tmp_path / 'closed'}") as peer:
        peer.handshake()
        peer.process.send_signal(number)
        status = peer.exit_status()

    assert status == 0
    assert (tmp_path / "closed").read_text() == "closed"


@pytest.mark.parametrize("end", ["the end of input", "a signal"])
def test_open_requests_to_listen_are_answered_at_the_end_and_hold_nothing_up(end: str) -> None:
    wanted = {"resourceSubscriptions": ["sample://board"]}
    with started(f"drain={10 * HANG_SECONDS}") as peer:
        for name in ("a", "b"):
            peer.ask(modern(name, "subscriptions/listen", notifications=wanted))
        if end == "a signal":
            peer.process.send_signal(signal.SIGTERM)
        else:
            peer.close_input()
        answers = peer.rest()
        status = peer.exit_status()

    key = "io.modelcontextprotocol/subscriptionId"
    assert [(answer["id"], answer["result"]["_meta"][key]) for answer in answers] == [
        ("a", "a"),
        ("b", "b"),
    ]
    assert status == 0


@pytest.mark.guarantee("G-ANSWER-1")
def test_a_call_running_at_a_signal_is_answered(gate: Path, tmp_path: Path) -> None:
    with started(f"closed={tmp_path / 'closed'}") as peer:
        peer.handshake().send(call(1, "hold", gate=str(gate)))
        with gate.open("w") as opened:
            peer.process.send_signal(signal.SIGTERM)
            opened.write("through")
        answers = peer.rest()
        status = peer.exit_status()

    assert [structured(answer) for answer in answers] == [{"text": "through"}]
    assert status == 0
    assert (tmp_path / "closed").read_text() == "closed"


def test_a_second_signal_takes_the_running_calls_back(gate: Path) -> None:
    with started() as peer:
        peer.handshake().send(call(1, "obey", gate=str(gate)))
        with gate.open() as opened:
            peer.process.send_signal(signal.SIGTERM)
            peer.process.send_signal(signal.SIGINT)
            assert opened.read() == "cancelled"
        answers = peer.rest()
        status = peer.exit_status()

    assert [structured(answer)["error"]["code"] for answer in answers] == ["cancelled"]
    assert status == 0


def test_calls_that_outlast_the_bound_are_taken_back_and_told_so(gate: Path) -> None:
    with started("drain=0.1") as peer:
        peer.handshake().send(call(1, "obey", gate=str(gate)))
        with gate.open() as opened:
            peer.close_input()
            assert opened.read() == "cancelled"
        answers = peer.rest()
        status = peer.exit_status()

    assert [structured(answer)["error"]["code"] for answer in answers] == ["cancelled"]
    assert status == 0


def test_a_call_that_never_ends_does_not_keep_the_process(gate: Path, tmp_path: Path) -> None:
    with started(f"closed={tmp_path / 'closed'}", "drain=0.1") as peer:
        peer.handshake().send(call(1, "persist", gate=str(gate)))
        gate.read_bytes()
        peer.close_input()
        answers = peer.rest()
        status = peer.exit_status()

    assert answers == []
    assert status == 0
    assert (tmp_path / "closed").read_text() == "closed"


def test_nor_do_more_such_calls_than_may_run(tmp_path: Path) -> None:
    paths = gates(tmp_path, stdio.CALLS_MAX)
    with started("drain=0.1") as peer:
        peer.handshake()
        peer.send(*(call(number, "persist", gate=str(path)) for number, path in enumerate(paths)))
        for path in paths:
            path.read_bytes()
        peer.send(call("waits", "note", text="x"), call("unread", "note", text="x"))
        peer.close_input()
        status = peer.exit_status()

    assert status == 0


def test_the_server_is_gone_when_its_client_is_killed(gate: Path) -> None:
    client = (
        "import subprocess, sys;"
        f"server = subprocess.Popen({[*OURS, 'drain=0.1']!r}, stdin=subprocess.PIPE);"
        "server.stdin.write(sys.stdin.buffer.read());"
        "server.stdin.flush();"
        "server.wait()"
    )
    lines = [initialize(0), call(1, "persist", gate=str(gate))]
    with subprocess.Popen(
        [sys.executable, "-c", client], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    ) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        parent.stdin.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        parent.stdin.close()
        gate.read_bytes()
        parent.kill()
        # Nothing more comes once the last process that holds the pipe is gone: the server.
        answers = parent.stdout.read().splitlines()

    assert [json.loads(answer)["id"] for answer in answers] == [0]


def test_a_client_that_closes_only_our_output_ends_the_server(tmp_path: Path) -> None:
    with started(f"closed={tmp_path / 'closed'}") as peer:
        peer.handshake()
        assert peer.process.stdout is not None
        peer.process.stdout.close()
        peer.send(request(1, "ping"), request(2, "ping"))
        status = peer.exit_status()

    assert status == 0
    assert (tmp_path / "closed").read_text() == "closed"


# The bound on closing is short only where it is waited for: what measures coverage writes its file
# when the process ends itself, and does not take a second end, from the watchdog, meanwhile.
@pytest.mark.parametrize("way", [("close=fail",), ("close=hang", "closing=0.1")])
def test_closing_that_goes_wrong_shows_in_the_exit_status(way: tuple[str, ...]) -> None:
    with started(*way, "drain=0.1", stderr=subprocess.DEVNULL) as peer:
        peer.handshake().close_input()
        status = peer.exit_status()

    assert status == 1


# ---------------------------------------------------------------------------- progress


def test_progress_is_sent_to_who_asked_and_only_upwards(peer: Peer) -> None:
    asked = call("a", "step", steps=[1, 2, 2, 1.5, 3], total=3)
    asked["params"]["_meta"] = {"progressToken": "token"}
    peer.send(asked)
    steps = [peer.receive() for _ in range(3)]
    answer = peer.receive()

    assert [step["params"]["progress"] for step in steps] == [1, 2, 3]
    assert steps[0] == notification(
        "notifications/progress", progressToken="token", progress=1, total=3, message="at 1.0"
    )
    assert answer["id"] == "a"


def test_no_progress_follows_the_answer(peer: Peer) -> None:
    asked = call(1, "step", steps=[])
    asked["params"]["_meta"] = {"progressToken": 7}

    assert peer.ask(asked)["id"] == 1
    assert peer.ask(call(2, "step_late"))["id"] == 2


def test_no_progress_is_sent_to_who_did_not_ask(peer: Peer) -> None:
    assert peer.ask(call(1, "step", steps=[1, 2]))["id"] == 1


# ---------------------------------------------------------------------------- start


def test_the_transport_loads_nothing_slow_before_the_descriptors_are_safe() -> None:
    code = "import sys, server.stdio; print('msgspec' in sys.modules)"

    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=ROOT, check=True
    )

    assert done.stdout == b"False\n"


def test_serving_needs_neither_the_sdk_nor_an_event_loop() -> None:
    code = (
        "import sys, server.stdio, server.protocol;"
        "print([name for name in ('mcp', 'anyio', 'asyncio', 'pydantic', 'argparse', 'logging',"
        " 'json') if name in sys.modules])"
    )
    # Measuring coverage loads some of them.
    env = {key: value for key, value in os.environ.items() if not key.startswith("COVERAGE")}

    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=ROOT, env=env, check=True
    )

    assert done.stdout == b"[]\n"


# ---------------------------------------------------------------------------- helpers


@contextmanager
def beside(work: Callable[[], object]) -> Iterator[None]:
    """Run something beside the block: a big write must not wait for the read that follows it."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    yield
    thread.join(HANG_SECONDS)
    assert not thread.is_alive()
