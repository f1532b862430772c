"""Cuts the power under one operation, in a process of its own.

    python -m tests.crash.try_states ledger | killed | home  OPERATION STATES

A process of its own is not traced for coverage, which would take most of the time. Prints how many
different states were tried.
"""

import sys
from collections.abc import Iterator

from tests.crash.home_operations import HOME_OPERATIONS, Remembered, check_home, record_home
from tests.crash.ledger_operations import OPERATIONS, Expected, check, record, record_killed
from tests.crash.states import chosen, folder, states_of, try_all

LIMIT = 32_768
"""States of one moment; more are drawn from."""


def try_operation(name: str, count: int) -> int:
    """Cut the power at every moment of an operation; return how many states were tried."""
    operation = next(each for each in OPERATIONS if each.name == name)
    with folder() as base:
        recording = record(operation, base)
    states = chosen(states_of(recording, Expected, limit=max(2_048, min(LIMIT, count))), count)
    try_all(states, check, recording)
    return len(states)


def try_killed(name: str, count: int) -> int:
    """Kill the process at every call, let another go on, and cut the power under that one."""
    operation = next(each for each in OPERATIONS if each.name == name)
    recordings = []
    for kill_at in _count_up():
        with folder() as base:
            found = record_killed(operation, base, kill_at)
        if found is None:
            break
        recordings.append(found)
    share = max(1, count // len(recordings))
    tried: set[bytes] = set()
    for recording, since in recordings:
        moments = states_of(recording, Expected, limit=max(2, share // 8), since=since)
        states = [each for each in chosen(moments, share) if each.key not in tried]
        try_all(states, check, recording)
        tried.update(each.key for each in states)
    return len(tried)


def try_home(name: str, count: int) -> int:
    """Cut the power at every moment of an operation on a whole home."""
    operation = next(each for each in HOME_OPERATIONS if each.name == name)
    with folder() as base:
        recording = record_home(operation, base)
    # The sectors of a database are many: all of them, none and a few by lot will do.
    limit = max(16, min(LIMIT, count // 16))
    states = chosen(states_of(recording, Remembered, limit=limit), count)
    try_all(states, check_home, recording)
    return len(states)


def _count_up() -> Iterator[int]:
    number = 0
    while True:
        yield number
        number += 1


KINDS = {"ledger": try_operation, "killed": try_killed, "home": try_home}

if __name__ == "__main__":
    print(KINDS[sys.argv[1]](sys.argv[2], int(sys.argv[3])))  # noqa: T201 - its answer
