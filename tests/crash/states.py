"""Every state in which a power cut may leave an operation, and what must hold in each of them.

An operation is recorded once, on real files. Then the power is cut in thought at every moment of
the recording: each state of the disk that may follow is laid out in a folder of its own and opened
by a program that knows nothing of what happened.
"""

import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Generic, NamedTuple, TypeVar

from tests.support.power_cut import Disk, State, Told, fingerprint, lay_out
from tests.support.recorder import Recorder
from tests.support.store import MEMORY_DISK

STATES_MAX: Final = int(os.environ.get("CRASH_STATES", "32000"))
"""States that all operations together are tried in, at most; `make crash` has 1,000,000.

Most operations have fewer than their share: 32,000 come to over 20,000 and 1,000,000 to over
100,000, which is every state of most of them."""

SEED: Final = os.environ.get("CRASH_SEED", "mnemolog")
"""Chooses among states where there are more; fixed, so that a run can be repeated."""

ExpectedT = TypeVar("ExpectedT")


class BadStateError(AssertionError):
    """A power cut may leave the store in a state in which a promise is broken."""


class Found(NamedTuple, Generic[ExpectedT]):
    """A state to be tried."""

    state: State
    expected: ExpectedT
    moment: int
    key: bytes


def states_of(
    recording: Recorder, kind: type[ExpectedT], *, limit: int, since: int = 0
) -> Iterator[list[Found[ExpectedT]]]:
    """Yield the new states of each moment of a recording; limits as in `Disk.states`."""
    dice = random.Random(SEED)
    disk = Disk(recording.before)
    expected: ExpectedT | None = None
    seen: set[tuple[bytes, int]] = set()
    for moment, step in enumerate(recording.steps):
        disk.play(step)
        if isinstance(step, Told):
            assert isinstance(step.what, kind)
            expected = step.what
        if expected is None or moment < since:
            continue
        fresh = []
        for state in disk.states(limit, dice):
            key = fingerprint(state)
            if (key, id(expected)) not in seen:
                seen.add((key, id(expected)))
                fresh.append(Found(state, expected, moment, key))
        yield fresh


def chosen(moments: Iterator[list[Found[ExpectedT]]], count: int) -> list[Found[ExpectedT]]:
    """Return so many states, or all: some of every moment, and others by lot."""
    dice = random.Random(SEED)
    all_moments = [found for found in moments if found]
    quota = max(2, count // (2 * len(all_moments)))
    taken: list[Found[ExpectedT]] = []
    left: list[Found[ExpectedT]] = []
    for found in all_moments:
        if len(found) > quota:
            dice.shuffle(found)
        taken += found[:quota]
        left += found[quota:]
    room = max(0, count - len(taken))
    return taken + (left if len(left) <= room else dice.sample(left, room))


def try_all(
    states: list[Found[ExpectedT]],
    check: Callable[[Path, Found[ExpectedT]], None],
    recording: Recorder,
) -> None:
    """Lay out each state and check it.

    Raises:
        BadStateError: the check failed; it says at which step of the recording and how.
    """
    with folder() as base:
        for found in states:
            root = base / "cut"
            lay_out(found.state, root)
            try:
                check(root, found)
            except Exception as error:
                raise BadStateError(_report(found, recording, error)) from error
            finally:
                shutil.rmtree(root)


@contextmanager
def folder() -> Iterator[Path]:
    """Make a folder in memory, where there are such."""
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK, prefix="crash-") as name:
        yield Path(name)


def _report(found: Found[ExpectedT], recording: Recorder, error: Exception) -> str:
    steps = [
        f"{'->' if at == found.moment else '  '} {at} {_short(step)}"
        for at, step in enumerate(recording.steps[: found.moment + 1])
    ]
    files = [
        f"   {path} {'/' if content is None else len(content)} {mode:o}"
        for path, (content, mode) in sorted(found.state.items())
    ]
    lines = [f"{type(error).__name__}: {error}", "after", *steps[-40:], "in the state", *files]
    return "\n".join([*lines, f"expected {found.expected}"])


def _short(step: object) -> str:
    text = repr(step)
    return text if len(text) < 160 else f"{text[:120]} ... {text[-30:]}"
