"""Text analysis in a child process gives what it gives in this one."""

import subprocess
from collections.abc import Iterator

import pytest

from projections.term_worker import ROWS_PER_FRAME, ROWS_WORTH_A_PROCESS, Row, analyze_rows

TEXTS = ("The boiler pumps", "Настройки сети", "周二上线", "", "🚀 x\0y")


def rows(count: int) -> Iterator[Row]:
    for rid in range(count):
        text = TEXTS[rid % len(TEXTS)]
        yield rid, None if rid % 3 else text, f"{text} {rid}", text if rid % 2 else None


@pytest.mark.parametrize("count", [0, 1, ROWS_PER_FRAME, 12 * ROWS_PER_FRAME + 1])
def test_a_child_gives_the_same_rows_in_the_same_order(count: int) -> None:
    here = list(analyze_rows(rows(count), count))

    there = list(analyze_rows(rows(count), ROWS_WORTH_A_PROCESS))

    assert there == here
    assert [row[0] for row in there] == list(range(count))


def test_a_child_that_ends_early_is_an_error_and_no_shorter_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = subprocess.Popen

    def start_one_that_ends(command: list[str], **options: object) -> "subprocess.Popen[bytes]":
        return start([command[0], "-c", "import sys; sys.stdin.buffer.read(1)"], **options)  # type: ignore[call-overload,no-any-return]

    monkeypatch.setattr("projections.term_worker.subprocess.Popen", start_one_that_ends)

    with pytest.raises(RuntimeError, match="ended early"):
        list(analyze_rows(rows(20 * ROWS_PER_FRAME), ROWS_WORTH_A_PROCESS))
