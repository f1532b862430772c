"""The installed command in processes of its own: pipes, terminals, signals, start-up."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from server import usage
from tests.support.cli import COMMAND, HANG_SECONDS, environment, installed

HOSTILE = "\x1b[2J\x1b]0;owned\x07 [bold red]not markup[/] \u202eevil\u202c \x9b31m :smile: \r gone"

NOT_NEEDED = ("anyio", "asyncio", "mcp", "pydantic", "rich", "sqlite3", "socket", "server.service")


def in_terminal(
    home: Path, words: Sequence[str], *, columns: int = 80, answer: bytes = b""
) -> tuple[int, str]:
    """Run a command on a terminal of its own; return its status and what was on the screen."""
    master, slave = pty.openpty()
    try:
        process = subprocess.Popen(
            [*COMMAND, *words],
            env=environment(home, {"COLUMNS": str(columns), "TERM": "xterm-256color"}),
            stdin=slave,
            stdout=slave,
            stderr=slave,
        )
    finally:
        os.close(slave)
    os.write(master, answer)
    shown = b""
    try:
        while part := os.read(master, 65_536):
            shown += part
    except OSError:  # Linux says so when the last process has closed it
        pass
    finally:
        os.close(master)
    return process.wait(HANG_SECONDS), shown.decode().replace("\r\n", "\n")


def test_the_installed_command_stores_finds_and_prints_json(tmp_path: Path) -> None:
    added = installed(tmp_path, "add", "-", "--json", stdin=b"Deploys go out on Tuesdays")
    found = installed(tmp_path, "search", "deploy", "--json")

    assert (added.status, found.status) == (0, 0)
    assert found.json["memories"][0]["id"] == added.id
    assert (added.err, found.err) == ("", "")


@pytest.mark.guarantee("G-STATUS-1")
def test_statuses_tell_usage_refusal_and_what_is_not_possible_now_apart(tmp_path: Path) -> None:
    home = tmp_path / "home"
    installed(home, "add", "x")
    blocked = tmp_path / "blocked"
    blocked.write_text("no folder")

    statuses = [
        installed(home, "list").status,
        installed(home, "nonsense").status,
        installed(home, "list", MNEMOLOG_TIME_ZONE="Nowhere/Land").status,
        installed(home, "get", "missing").status,
        installed(blocked / "home", "add", "x").status,
        installed(home, "export", "--output", str(blocked / "file")).status,
    ]

    assert statuses == [0, 2, 2, 3, 4, 4]


@pytest.mark.guarantee("G-STATUS-1")
def test_a_damaged_ledger_ends_a_write_with_1_and_reading_goes_on(tmp_path: Path) -> None:
    kept = installed(tmp_path, "add", "kept", "--json").id
    installed(tmp_path, "add", "lost")
    (segment,) = (tmp_path / "ledger" / "log").iterdir()
    segment.write_bytes(segment.read_bytes().replace(b"lost", b"tsol"))

    write, read = installed(tmp_path, "add", "more"), installed(tmp_path, "get", kept)

    assert (write.status, len(write.err.splitlines()) >= 1) == (1, True)
    assert "Traceback" not in write.err
    assert "kept" in read.out


def test_an_output_that_is_closed_early_ends_the_command_quietly(tmp_path: Path) -> None:
    lines = b"".join(b'{"content": "%d %s"}\n' % (n, b"x" * 900) for n in range(300))
    installed(tmp_path, "add", "--batch", "-", stdin=lines)

    process = subprocess.Popen(
        [*COMMAND, "export", "--format", "jsonl"],
        env=environment(tmp_path, {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        first = process.stdout.read(10)
        process.stdout.close()
        said = process.stderr.read()
        status = process.wait(HANG_SECONDS)

    assert (first[:6], said, status) == (b'{"id":', b"", 141)


@pytest.mark.parametrize("command", ["verify", "digest", "replay", "rebuild"])
def test_an_output_that_nobody_reads_ends_a_command_on_the_ledger_quietly(
    tmp_path: Path, command: str
) -> None:
    installed(tmp_path, "add", "x")
    reading, writing = os.pipe()
    os.close(reading)

    with os.fdopen(writing, "wb") as output:
        done = subprocess.run(
            [*COMMAND, command],
            env=environment(tmp_path, {}),
            stdout=output,
            stderr=subprocess.PIPE,
            timeout=HANG_SECONDS,
            check=False,
        )

    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [("list",), ("add", "y"), ("--help",), ("list", "--help")])
def test_an_output_that_is_full_is_a_failure(
    tmp_path: Path, words: tuple[str, ...], unbuffered: str
) -> None:
    installed(tmp_path, "add", "x")

    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, *words],
            env=environment(tmp_path, {"PYTHONUNBUFFERED": unbuffered}),
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=HANG_SECONDS,
            check=False,
        )

    assert done.returncode == 4
    assert done.stderr == b"mnemolog: standard output: No space left on device\n"


def test_a_closed_standard_output_takes_no_other_files_place(tmp_path: Path) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *COMMAND, "add", "quiet"],
        env=environment(tmp_path, {}),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=HANG_SECONDS,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, b"")
    assert installed(tmp_path, "verify").status == 0
    assert installed(tmp_path, "list", "--json").json["total"] == 1


@pytest.mark.parametrize("words", [("add", "-"), ("add", "--batch", "-"), ("serve",), ()])
def test_a_closed_standard_input_is_an_empty_one(tmp_path: Path, words: tuple[str, ...]) -> None:
    empty = installed(tmp_path, *words)

    closed = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" <&-', "sh", *COMMAND, *words],
        env=environment(tmp_path, {}),
        capture_output=True,
        timeout=HANG_SECONDS,
        check=False,
    )

    assert (closed.returncode, closed.stdout.decode(), closed.stderr.decode()) == (
        empty.status,
        empty.out,
        empty.err,
    )


def test_ctrl_c_while_reading_input_ends_with_130_and_stores_nothing(tmp_path: Path) -> None:
    installed(tmp_path, "add", "before")
    process = subprocess.Popen(
        [*COMMAND, "add", "-"],
        env=environment(tmp_path, {}),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stderr is not None
    with process.stderr:
        # More than the pipe holds: once it is written the command is reading.
        os.write(process.stdin.fileno(), b"x" * 200_000)
        process.send_signal(signal.SIGINT)
        # Had the signal come between two reads, the next one would wait for ever.
        process.stdin.close()
        said = process.stderr.read()
        status = process.wait(HANG_SECONDS)

    assert (status, said) == (130, b"mnemolog: interrupted\n")
    assert installed(tmp_path, "list", "--json").json["total"] == 1


@pytest.mark.guarantee("G-DATA-1")
def test_stored_text_cannot_steer_the_terminal_that_shows_it(tmp_path: Path) -> None:
    memory = installed(tmp_path, "add", "-", "--json", stdin=HOSTILE.encode()).id
    commands = (["list"], ["search", "markup"], ["get", memory], ["export", "--format", "markdown"])

    for words in (*commands, ["list", "--json"]):
        status, shown = in_terminal(tmp_path, words, columns=200)
        assert status == 0
        for character in "\x07\x9b\u202e\u202c\r":
            assert character not in shown, words
        assert "\x1b[2J" not in shown
        assert "\x1b]" not in shown
        assert "[bold red]not markup[/]" in shown
        assert ":smile:" in shown


def test_hostile_text_in_an_entity_a_title_and_a_batch_is_harmless_too(tmp_path: Path) -> None:
    line = json.dumps({"content": "x", "entity_name": HOSTILE[:20], "title": HOSTILE[:20]})
    bad = json.dumps({"content": "x", "layer": HOSTILE[:10]})

    told = installed(tmp_path, "add", "--batch", "-", stdin=f"{line}\n{bad}\n".encode())
    listed = installed(tmp_path, "list")

    assert "\x1b" not in told.err + told.out + listed.out + listed.err


def test_an_export_in_a_pipe_is_byte_for_byte_what_is_stored(tmp_path: Path) -> None:
    installed(tmp_path, "add", "-", stdin=HOSTILE.encode())

    exported = subprocess.run(
        [*COMMAND, "export", "--format", "claude-md"],
        env=environment(tmp_path, {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        timeout=HANG_SECONDS,
        check=True,
    )

    assert HOSTILE.encode() in exported.stdout


def test_a_terminal_gets_a_table_that_fits_its_width(tmp_path: Path) -> None:
    memory = installed(tmp_path, "add", "river " * 60, "--entity-name", "the Danube", "--json").id

    status, shown = in_terminal(tmp_path, ["list"], columns=72)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", shown)

    assert status == 0
    assert max(map(len, shown.splitlines())) <= 72
    assert memory in shown
    assert {"id", "date", "layer", "entity", "memory"} <= set(shown.splitlines()[1].split())
    assert shown.count("river") > 20


def test_a_terminal_too_narrow_for_a_table_gets_all_of_its_columns(tmp_path: Path) -> None:
    memory = installed(tmp_path, "add", "river", "--json").id

    status, shown = in_terminal(tmp_path, ["list"], columns=20)

    assert (status, memory in shown, "river" in shown) == (0, True, True)


@pytest.mark.parametrize(
    ("answer", "status", "left"), [(b"y\n", 0, 0), (b"n\n", 3, 1), (b"\n", 3, 1)]
)
def test_deleting_by_filter_asks_on_a_terminal(
    tmp_path: Path, answer: bytes, status: int, left: int
) -> None:
    installed(tmp_path, "add", "x", "--scope", "old")

    ended, shown = in_terminal(tmp_path, ["delete", "--scope", "old"], answer=answer)

    assert "delete 1 memories" in shown
    assert ended == status
    assert installed(tmp_path, "list", "--json").json["total"] == left


def test_help_names_every_command_once_in_its_group() -> None:
    shown = installed(Path("/nowhere"), "--help")

    listed = [line.split()[0] for line in shown.out.splitlines() if line.startswith("    ")]

    assert shown.status == 0
    assert listed == list(usage.COMMANDS)


def test_a_search_in_a_pipe_loads_neither_tables_nor_the_server(tmp_path: Path) -> None:
    installed(tmp_path, "add", "x")
    program = (
        "import sys; before = {*sys.modules}; sys.argv = ['mnemolog', 'search', 'x']\n"
        "from server.cli import main\n"
        "try: main()\n"
        "except SystemExit: print(*{*sys.modules} - before, file=sys.stderr)"
    )

    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(tmp_path, {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=True,
    )

    assert set(NOT_NEEDED) & set(done.stderr.split()) == set()


def test_a_server_can_be_started_on_a_home_named_by_option(tmp_path: Path) -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "ping"}

    done = installed(
        Path("/nowhere"),
        "serve",
        "--home",
        str(tmp_path),
        stdin=json.dumps(request).encode() + b"\n",
    )

    assert done.status == 0
    assert done.json["id"] == 1
