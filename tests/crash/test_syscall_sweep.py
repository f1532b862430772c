"""Every system call on every kind of file fails, or kills the process, at its first, middle and
last occurrence; then the store is opened again.

Which calls there are is read from a trace of a run that nobody disturbs.
"""

import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from ledger import MemoryAdded, MemoryRedacted, Position, verify
from server.commands import AddArgs
from server.tool import Call
from tests.crash.deed import DEEDS, REFUSED, open_store
from tests.crash.harness import environment
from tests.crash.states import SEED, folder
from tests.support.store import Client, live_digest, replayed_digest

POINTS_MAX: Final = int(os.environ.get("CRASH_SYSCALLS", "6"))
"""Points of each deed that are tried; 0 for every one of them, as in `make crash`."""

HUNG_S: Final = 60

_LINE = re.compile(r"(?P<tid>\d+) +(?P<call>\w+)\((?P<arguments>.*)")
_RANDOM: Final = (
    (re.compile(r"\d{20}"), "N"),
    (re.compile(r"(g\d{6}|new)-[a-z2-7]{16}"), "GENERATION"),
    (re.compile(r"/[\dTZ.]+-N-\d+\.torn"), "/TORN"),
)

WRITING: Final = re.compile(r"write|sync|truncate|allocate|rename|unlink|mkdir|open|chmod")
"""Calls that want space or change something: these also fail with ENOSPC."""


class Point(NamedTuple):
    """One call of a run."""

    call: str
    role: str
    """The file's path below the home, without what differs between runs; or two of them."""
    number: int
    """Which call of that name it is in its thread, from 1."""


class Fault(NamedTuple):
    """What happens at a point."""

    point: Point
    how: str
    """As strace's `inject` has it."""


@pytest.fixture(scope="module")
def strace() -> str:
    program = shutil.which("strace")
    if program is None:
        pytest.skip("strace is not installed")
    if subprocess.run([program, "-qq", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("strace may not trace here")
    return program


@pytest.fixture(scope="module")
def template() -> Iterator[Path]:
    """A home with six memories, four rolled segments and nothing sealed."""
    with folder() as base:
        store = open_store(base / "home")
        for number in range(6):
            text = f"crane number {number} {'x' * 900}"
            store.app.add(AddArgs(content=text, layer="semantic"), Call(actor_name="template"))
        store.close()
        yield base / "home"


def _run(strace: str, deed: str, home: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    command = [strace, "-f", "-qq", *options, sys.executable, "-m", "tests.crash.deed"]
    settings = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [*command, deed, str(home)],
        env=environment(home, **settings),
        capture_output=True,
        text=True,
        check=False,
        timeout=HUNG_S,
    )


def _role(arguments: str, home: Path) -> str:
    """Return the kind of file that a call is about; empty if it is none of the home's."""
    paths = re.findall(rf"{re.escape(str(home))}(/[^\"<>, ]*)?", arguments)
    roles = []
    for path in paths:
        role = path or "/"
        for pattern, word in _RANDOM:
            role = pattern.sub(word, role)
        roles.append(role)
    return " ".join(dict.fromkeys(roles))


def _points(strace: str, deed: str, template: Path, base: Path) -> list[Point]:
    """Return the first, middle and last call of each name on each kind of file."""
    home, log = base / "home", base / "trace"
    shutil.copytree(template, home)
    done = _run(strace, deed, home, "-y", "-e", "trace=file,desc", "-o", str(log))
    assert done.returncode == 0, done.stdout + done.stderr
    counts: dict[tuple[str, str], int] = {}
    found: dict[tuple[str, str], list[int]] = {}
    for line in log.read_text(errors="replace").splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        key = match["tid"], match["call"]
        counts[key] = counts.get(key, 0) + 1
        role = _role(match["arguments"], home)
        if role:
            found.setdefault((match["call"], role), []).append(counts[key])
    shutil.rmtree(home)
    return [
        Point(call, role, number)
        for (call, role), numbers in sorted(found.items())
        for number in dict.fromkeys((numbers[0], numbers[len(numbers) // 2], numbers[-1]))
    ]


def _faults(points: list[Point]) -> list[Fault]:
    faults = []
    for point in points:
        hows = ["error=EIO", "signal=KILL"]
        if WRITING.search(point.call):
            hows.append("error=ENOSPC")
        faults += [Fault(point, how) for how in hows]
    if POINTS_MAX == 0:
        return faults
    # A sample in which those that change the disk are most.
    dice = random.Random(SEED)
    weighty = [fault for fault in faults if WRITING.search(fault.point.call)]
    return dice.sample(weighty, POINTS_MAX - 2) + dice.sample(faults, 2)


@pytest.mark.guarantee("G-ACK-1", "G-ACK-3")
@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.parametrize("deed", list(DEEDS))
def test_a_call_that_fails_or_kills_loses_nothing_that_was_acknowledged(
    strace: str, template: Path, deed: str
) -> None:
    bad: list[str] = []
    hit = 0
    with folder() as base:
        faults = _faults(_points(strace, deed, template, base))
        for fault in faults:
            home = base / "home"
            shutil.copytree(template, home)
            inject = f"inject={fault.point.call}:{fault.how}:when={fault.point.number}"
            log = base / "injected"
            options = ["-e", f"trace={fault.point.call}", "-e", inject, "-o", str(log)]
            done = _run(strace, deed, home, *options)
            hit += "INJECTED" in log.read_text(errors="replace") or done.returncode < 0
            try:
                _assert_kept(home, done)
            except Exception as error:  # noqa: BLE001 - the list of all of them is wanted
                bad.append(f"{fault}: {type(error).__name__}: {error}")
            shutil.rmtree(home)
    sys.stdout.write(f"{len(faults)} faults in {deed}, {hit} of them met\n")
    assert not bad, "\n".join(bad)
    assert hit > len(faults) // 2


def _assert_kept(home: Path, done: "subprocess.CompletedProcess[str]") -> None:
    assert done.returncode in {0, REFUSED, -9, 137}, done.stdout + done.stderr
    acknowledged = {
        line.removeprefix("ack ") for line in done.stdout.splitlines() if line.startswith("ack ")
    }
    client = Client(open_store(home))
    try:
        client.add("after the fault")
        client.store.upkeep.run_once()  # a redaction that was cut short goes on
        records = list(client.store.ledger.read(Position.start))
        stored = [
            record.payload.memory.content
            for record in records
            if isinstance(record.payload, MemoryAdded)
        ]
        assert acknowledged <= set(stored), f"lost {acknowledged - set(stored)}"
        erased = sum(isinstance(record.payload, MemoryRedacted) for record in records)
        assert len([text for text in stored if text.startswith("crane")]) == 6 - erased
        assert len(set(stored)) == len(stored), "something is there twice"
        assert sorted(memory.content for memory in client.listed()) == sorted(stored)
        assert (
            live_digest(client).text()
            == replayed_digest(client, home.parent / "replayed.db").text()
        )
    finally:
        client.store.upkeep.stop(1.0)
        client.store.close()
    report = verify(home / "ledger")
    assert report.problems == [], report.problems
