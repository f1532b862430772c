"""A running call: cancellation and progress."""

import pytest

from server.errors import CallCancelledError
from server.tool import Call


def test_a_call_goes_on_until_it_is_cancelled() -> None:
    call = Call(actor_name="a")
    call.check()
    assert not call.cancelled

    call.cancel()

    assert call.cancelled
    with pytest.raises(CallCancelledError):
        call.check()


def test_callbacks_run_once_and_only_inside_their_block() -> None:
    call = Call()
    ran: list[str] = []
    with call.on_cancel(lambda: ran.append("before")):
        pass
    with (
        call.on_cancel(lambda: ran.append("outer")),
        call.on_cancel(lambda: ran.append("inner")),
    ):
        call.cancel()
        call.cancel()

    assert ran == ["outer", "inner"]


def test_a_block_is_not_entered_once_the_call_is_cancelled() -> None:
    call = Call()
    call.cancel()

    with pytest.raises(CallCancelledError), call.on_cancel(lambda: None):
        pytest.fail("entered")


def test_progress_without_a_listener_goes_nowhere() -> None:
    Call().progress(1)


def test_progress_reaches_its_listener() -> None:
    seen: list[tuple[float, float | None, str]] = []
    call = Call(report=lambda *step: seen.append(step))

    call.progress(1, 2, "half")
    call.progress(2)

    assert seen == [(1, 2, "half"), (2, None, "")]
