"""A user of mnemon-mcp 1.3.0 gets the same replies, but for the differences that are named."""

import copy
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.mnemon import DIFFERENCES, SESSION_DIFFERENCES, TOOLS
from tests.support.mnemon_session import STEPS, Step, asked, compared, explained, play, recorded
from tests.support.peer import Json, Peer, started

Replies = list[Json]

THEIRS = recorded()
NUMBERED = pytest.mark.parametrize(
    ("number", "step"), list(enumerate(STEPS)), ids=[step.title for step in STEPS]
)


@contextmanager
def mnemolog(home: Path) -> Iterator[Peer]:
    command = (
        "env",
        f"MNEMOLOG_HOME={home}",
        sys.executable,
        "-c",
        "from server.cli import main; main()",
        "serve",
    )
    with started(command=command) as peer:
        yield peer.handshake()
        peer.close_input()
        assert peer.exit_status() == 0


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Replies:
    with mnemolog(tmp_path_factory.mktemp("mnemolog")) as peer:
        return list(play(peer))


@NUMBERED
def test_a_reply_says_what_theirs_said_but_for_what_is_named(
    ours: Replies, number: int, step: Step
) -> None:
    shown, left = explained(step, compared(THEIRS[number], ours[number]))

    assert left == [], (THEIRS[number], ours[number])
    assert shown == set(step.differs), (THEIRS[number], ours[number])


def test_the_replies_on_record_are_those_of_the_server() -> None:
    assert asked() == THEIRS


def test_every_difference_of_replies_is_shown_by_a_step() -> None:
    visible = [each for each in DIFFERENCES if each.paths]

    assert {each.name for each in visible} == {name for step in STEPS for name in step.differs}
    assert set(SESSION_DIFFERENCES) <= set(visible)


def test_every_tool_of_theirs_is_called() -> None:
    assert {step.tool for step in STEPS} >= set(TOOLS)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda reply: reply["result"]["memories"].pop(), "memories"),
        (lambda reply: reply["result"]["memories"].reverse(), "memories"),
        (lambda reply: reply["result"]["memories"][1].pop("content"), "memories[1].content"),
        (
            lambda reply: reply["result"]["memories"][0].update(importance=0.1),
            "memories[0].importance",
        ),
        (lambda reply: reply["result"].update(has_more=True), "has_more"),
        (lambda reply: reply.update(error=True), "error"),
    ],
    ids=["one less", "another order", "a field less", "another value", "more said", "an error"],
)
def test_the_comparison_notices(change: Callable[[Json], object], place: str) -> None:
    theirs = THEIRS[[step.title for step in STEPS].index("search by a word, best first")]
    ours = copy.deepcopy(theirs)
    assert compared(theirs, ours) == []

    change(ours)

    assert place in compared(theirs, ours)
