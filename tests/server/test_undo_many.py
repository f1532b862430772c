"""memory_undo with a filter: its report, writers that come between, requests sent again."""

import threading

import pytest

from ledger import Position
from server.commands import UndoArgs
from server.errors import (
    BusyError,
    IdempotencyConflictError,
    InvalidArgumentsError,
    RedactedError,
    UndoConflictError,
)
from server.tool import Call
from server.undo_many import ROUND_OPERATIONS_MAX, SKIPPED_SHOWN_MAX, UndoMany
from tests.support.store import Client, Home


def undo_many(client: Client) -> UndoMany:
    return client.store.app._undo_many


def note(client: Client, text: str = "note", **fields: object) -> str:
    return client.add(content=text, layer="semantic", **fields).id


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"dry_run": True},
        {"position": 1, "id": "x"},
        {"position": 1, "actor": "x"},
        {"id": "x", "from": 1},
    ],
)
def test_exactly_one_way_says_what_to_undo(client: Client, given: dict[str, object]) -> None:
    note(client)
    with client.refused(InvalidArgumentsError, "exactly one of", "`from`"):
        client.undo(**given)


def test_a_bound_that_is_no_time_is_refused_by_its_name(client: Client) -> None:
    note(client)
    with client.refused(InvalidArgumentsError, "`from`"):
        client.undo(**{"from": "whenever"})


def test_a_dry_run_of_one_operation_says_what_would_change(client: Client) -> None:
    memory = note(client)
    position = client.position()

    by_position = client.undo(position=position, dry_run=True)
    by_id = client.undo(id=memory, dry_run=True)

    assert by_position == by_id
    assert (by_id.undone, by_id.dry_run, by_id.undone_position) == (False, True, position)
    assert by_id.memories == (memory,)
    client.undo(id=memory)
    with client.refused(UndoConflictError, "undone already"):
        client.undo(position=position, dry_run=True)


@pytest.mark.guarantee("G-UNDO-2")
def test_what_somebody_else_changed_since_is_left_and_named(home: Home) -> None:
    ann, bob = home.open(name="ann"), home.open(name="bob")
    kept, gone = note(ann), note(ann)
    bob.update(kept, content="better")
    at = bob.position()

    result = ann.undo(actor="ann")

    assert (result.matched_count, result.undone_count, result.skipped_count) == (2, 1, 1)
    assert result.memories == (gone,)
    assert result.skipped_by_code == {"undo_conflict": 1}
    assert result.skipped[0].later == (at,)
    assert bob.content(kept) == "better"


def test_a_batch_is_undone_by_its_cause_and_done_again_by_the_undos_cause(client: Client) -> None:
    before = note(client)
    added = client.add_many(*({"content": f"n{n}", "layer": "semantic"} for n in range(5)))

    undone = client.undo(cause=added.cause)
    gone = client.inspect().total
    redone = client.undo(cause=undone.cause)

    assert (undone.undone_count, gone, redone.undone_count) == (5, 1, 5)
    assert client.inspect().total == 6
    assert {record.header.cause for record in client.store.ledger.read(Position.start)} == {
        "",
        added.cause,
        undone.cause,
        redone.cause,
    }
    assert client.content(before) == "note"


def test_deletions_by_filter_share_a_cause(client: Client) -> None:
    note(client)
    deleted = client.delete_many(everything=True)

    result = client.undo(cause=deleted.cause)

    assert (result.undone_count, client.inspect().total) == (1, 1)
    assert client.delete_many(scope="nowhere").cause is None


def test_a_session_is_what_named_it_and_nobody_elses_changes(client: Client) -> None:
    session = client.session_start().id
    memory = note(client, session_id=session)
    other = note(client)
    headers = [record.header.ses for record in client.store.ledger.read(Position.start)]
    trial = client.undo(session_id=session, dry_run=True)
    newer = client.supersede(memory, "better")

    result = client.undo(session_id=session)

    assert headers == ["", "", session, session, ""]
    assert (trial.undone_count, result.matched_count, result.undone_count) == (2, 2, 1)
    assert client.content(newer) == "better"
    assert client.content(other) == "note"


def test_a_session_of_a_foreign_name_is_the_additions_that_carry_it(client: Client) -> None:
    memory = note(client, session_id="run 7")
    note(client, session_id="run 8")

    result = client.undo(session_id="run 7")
    again = client.undo(session_id="run 7")

    assert result.memories == (memory,)
    assert again.skipped_by_code == {"undone_already": 1}
    assert client.inspect().total == 1


def test_times_choose_as_positions_do(home: Home, client: Client) -> None:
    home.clock.set("2026-06-01T08:00:00.000000Z")
    note(client, "early")
    home.clock.set("2026-06-02T08:00:00.000000Z")
    middle = note(client, "middle")
    home.clock.set("2026-06-03T08:00:00.000000Z")
    note(client, "late")

    by_day = client.undo(**{"from": "2026-06-02", "to": "2026-06-02"}, dry_run=True)
    in_words = client.undo(**{"from": "yesterday", "to": "yesterday"}, dry_run=True)
    by_position = client.undo(**{"from": 4, "to": "4"}, dry_run=True)

    assert by_day.memories == in_words.memories == by_position.memories == (middle,)
    assert in_words.notes


def test_an_actor_nobody_knows_is_answered_with_those_who_wrote(client: Client) -> None:
    note(client)
    result = client.undo(actor="nobody")

    assert (result.undone, result.matched_count) == (False, 0)
    assert result.notes == ("nothing matched; who has written to the store: tester",)


def test_another_workspace_is_left_alone(home: Home) -> None:
    here, there = home.open(), home.open("other")
    note(here)
    note(there)

    assert here.undo(actor="tester").matched_count == 1
    assert there.inspect().total == 1


def test_a_request_sent_again_is_done_once(client: Client) -> None:
    for _ in range(3):
        note(client)
    first = client.undo(actor="tester", idempotency_key="k")
    note(client)
    with client.refused(IdempotencyConflictError):
        client.undo(**{"from": 1}, idempotency_key="k")
    end = client.position()
    again = client.undo(actor="tester", idempotency_key="k")

    assert client.position() == end
    assert (first.undone, again.undone) == (True, False)
    assert again.cause == first.cause
    assert again.undone_positions == first.undone_positions
    assert again.position == first.position


def test_a_batch_sent_again_names_the_cause_it_had(client: Client) -> None:
    items = [{"content": "a", "layer": "semantic"}]
    first = client.add_many(*items, idempotency_key="k")
    again = client.add_many(*items, idempotency_key="k")

    assert first.cause == again.cause != client.add_many(*items).cause
    assert client.undo(cause=first.cause).undone_count == 1


def test_a_request_that_was_cut_off_goes_on_when_it_is_sent_again(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(ROUND_OPERATIONS_MAX + 3):
        note(client)
    submit_all = client.store.app._committer.submit_all
    rounds = iter([True, False])

    def cut_off(commands: list[object]) -> list[object]:
        if next(rounds):
            return submit_all(commands)  # type: ignore[arg-type,return-value]
        return [BusyError("The lock is held.") for _ in commands]

    monkeypatch.setattr(client.store.app._committer, "submit_all", cut_off)
    cut = client.undo(actor="tester", idempotency_key="k")
    monkeypatch.undo()
    again = client.undo(actor="tester", idempotency_key="k")
    third = client.undo(actor="tester", idempotency_key="k")

    assert cut.stopped is not None
    assert (cut.stopped.code, cut.undone_count, cut.remaining_count) == (
        "busy",
        ROUND_OPERATIONS_MAX,
        3,
    )
    assert (again.undone_count, again.cause) == (3, cut.cause)
    assert third.undone_count == ROUND_OPERATIONS_MAX + 3
    assert client.inspect().total == 0
    assert client.undo(cause=cut.cause).undone_count == ROUND_OPERATIONS_MAX + 3


def test_what_stops_it_before_the_first_is_the_error(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    note(client)
    refusals = [BusyError("The lock is held.")]
    monkeypatch.setattr(client.store.app._committer, "submit_all", lambda _: refusals)
    with client.refused(BusyError):
        client.undo(actor="tester")


def test_what_nobody_foresaw_is_no_skipped_operation(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    note(client)
    monkeypatch.setattr(client.store.app._committer, "submit_all", lambda _: [ZeroDivisionError()])
    with pytest.raises(ZeroDivisionError):
        client.undo(actor="tester")


def test_a_writer_that_comes_between_wins(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    ann, bob = home.open(name="ann"), home.open(name="bob")
    ids = [note(ann) for _ in range(ROUND_OPERATIONS_MAX + 2)]
    submit_all = ann.store.app._committer.submit_all

    def and_bob(commands: list[object]) -> object:
        outcomes = submit_all(commands)  # type: ignore[arg-type]
        if len(commands) > 1 and bob.content(ids[0]) == "note":
            bob.update(ids[0], content="bob's")
        return outcomes

    monkeypatch.setattr(ann.store.app._committer, "submit_all", and_bob)
    result = ann.undo(actor="ann")

    assert (result.undone_count, result.skipped_count) == (ROUND_OPERATIONS_MAX + 1, 1)
    assert result.skipped[0].code == "undo_conflict"
    assert "another writer came between" in result.notes[-1]
    assert bob.content(ids[0]) == "bob's"


def test_other_writers_get_their_turn_while_many_are_undone(client: Client) -> None:
    for _ in range(5 * ROUND_OPERATIONS_MAX):
        note(client)
    came_in: list[int] = []
    begun = threading.Event()

    def report(done: float, total: float | None, _: str) -> None:
        if not came_in:
            begun.set()
            other.join(20)
        came_in.append(int(done))
        assert total == 5 * ROUND_OPERATIONS_MAX

    def write() -> None:
        begun.wait(20)
        note(client, "meanwhile")

    other = threading.Thread(target=write)
    other.start()
    call = Call(actor_name="tester", report=report)
    result = client.store.app.undo(UndoArgs(actor="tester"), call)

    assert result.undone_count == 5 * ROUND_OPERATIONS_MAX
    assert len(came_in) == 5
    assert client.inspect().total == 1


def test_a_reply_names_the_first_of_many_and_counts_all(home: Home) -> None:
    ann, bob = home.open(name="ann"), home.open(name="bob")
    ids = [note(ann) for _ in range(SKIPPED_SHOWN_MAX + 1)]
    for each in ids:
        bob.update(each, content="other")

    result = ann.undo(actor="ann")

    assert (result.undone, result.cause) == (False, None)
    assert result.skipped_count == SKIPPED_SHOWN_MAX + 1
    assert len(result.skipped) == SKIPPED_SHOWN_MAX


def test_more_than_one_call_undoes_is_left_for_the_next(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.undo_many.UNDONE_MAX", 3)
    for _ in range(5):
        note(client)
    first = client.undo(actor="tester")
    second = client.undo(actor="tester")

    assert (first.undone_count, first.remaining_count) == (3, 2)
    assert (second.undone_count, second.remaining_count) == (2, 0)
    assert client.inspect().total == 0


def test_an_alias_whose_name_was_given_anew_stays_removed(home: Home) -> None:
    ann, bob = home.open(name="ann"), home.open(name="bob")
    ann.alias("add", alias="k8s", entity_name="Kubernetes")
    removed = ann.alias("remove", alias="k8s").position
    bob.alias("add", alias="k8s", entity_name="K-pop")

    trial = ann.undo(**{"from": removed, "to": removed}, dry_run=True)
    result = ann.undo(**{"from": removed, "to": removed})

    assert trial.skipped_by_code == result.skipped_by_code == {"alias_conflict": 1}


def test_text_that_is_no_unicode_is_said_to_be_mended(client: Client) -> None:
    note(client)
    call = Call(actor_name="tester", repaired=True)
    assert any("U+FFFD" in each for each in client.store.app.undo(UndoArgs(actor="x"), call).notes)


def test_what_is_erased_is_left_out_and_a_dry_run_says_the_same(client: Client) -> None:
    gone = note(client, "the code is 4711", source_file="a.md")
    first = client.position()
    kept = note(client, "the ferry leaves at noon")
    added = client.position()
    changed = client.update(kept, content="the ferry leaves at one").position
    client.redact(gone)
    client.redact(event=added)  # what it said before it was changed

    trial = client.undo(**{"from": 1, "dry_run": True})
    result = client.undo(**{"from": 1})

    assert trial.skipped == result.skipped
    assert trial.skipped_by_code == result.skipped_by_code == {"redacted": 2, "undo_conflict": 1}
    codes = {each.position: each.code for each in result.skipped}
    assert codes == {first: "redacted", changed: "redacted", added: "undo_conflict"}
    assert (result.undone, result.undone_count) == (False, 0)
    assert client.content(kept) == "the ferry leaves at one"
    with client.refused(RedactedError, "cannot be put back"):
        client.undo(position=changed)
    with client.refused(RedactedError):
        client.undo(position=first)
