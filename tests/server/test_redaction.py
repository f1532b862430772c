"""Redaction as a use case: what each way of naming takes, what undo says, and what is repeated."""

from projections.activity import ActivityLog, forget_queries
from server.errors import (
    IdempotencyConflictError,
    InvalidArgumentsError,
    NotFoundError,
    RedactedError,
    UndoConflictError,
)
from server.redaction_needles import needles_of
from tests.support.store import Client, Home, live_digest, replayed_digest


def _same(home: Home, client: Client) -> None:
    replayed = replayed_digest(client, home.path.parent / "replayed.db")
    assert live_digest(client).text() == replayed.text()


def test_by_id_the_chain_goes_with_it_unless_it_is_to_stay(home: Home, client: Client) -> None:
    old = client.add("deploys on Mondays").id
    new = client.supersede(old, "deploys on Tuesdays")
    other = client.add("a note of another thing").id
    last = client.supersede(other, "another thing again")

    alone = client.redact(last, chain=False)
    both = client.redact(old)

    assert alone.memories == (last,)
    assert alone.reactivated_ids == (other,)
    assert set(both.memories) == {old, new}
    assert client.found("thing") == [other]
    _same(home, client)


def test_a_deleted_wording_of_a_chain_goes_with_it(home: Home, client: Client) -> None:
    old = client.add("the code is 4711").id
    middle = client.supersede(old, "the code is 4712")
    new = client.supersede(middle, "the code is 4713")
    client.delete(middle)

    assert set(client.redact(new).memories) == {old, middle, new}
    _same(home, client)


def test_from_an_undone_wording_the_current_fact_is_not_reached(client: Client) -> None:
    fact = client.add("the right fact").id
    wrong = client.supersede(fact, "a wrong fact with a secret")
    client.undo(id=wrong)

    assert client.redact(wrong).memories == (wrong,)
    assert client.content(fact) == "the right fact"


def test_by_event_one_wording_goes_with_its_copies_and_the_rest_stays(
    home: Home, client: Client
) -> None:
    added = client.add("first wording")
    updated = client.update(added.id, content="second wording")
    client.update(added.id, importance=0.9)
    third = client.update(added.id, content="third wording")

    result = client.redact(event=updated.position)

    assert (result.records, result.memories) == (2, (added.id,))
    assert result.subjects[0].remains
    assert client.content(added.id) == "third wording"
    seen = client.inspect(added.id, include_history=True)
    assert seen.versions is not None
    assert "redacted" in {each.status for each in seen.versions}
    assert {each.content for each in seen.versions} == {"third wording", "first wording", None}
    with client.refused(RedactedError, "erased"):
        client.undo(position=third.position)
    _same(home, client)


def test_by_event_of_what_is_current_the_memory_is_gone(home: Home, client: Client) -> None:
    memory = client.add("first wording").id
    updated = client.update(memory, content="second wording")

    client.redact(event=updated.position)

    assert client.get(memory).missing[0].reason == "redacted"
    with client.refused(RedactedError, "nothing was changed"):
        client.update(memory, content="third")
    with client.refused(RedactedError):
        client.undo(position=updated.position)
    _same(home, client)


def test_by_entity_what_named_it_once_goes_too_with_its_aliases(home: Home, client: Client) -> None:
    client.alias("add", alias="Nusha", entity_name="Ana")
    now = client.add("likes tea", entity_name="Nusha").id
    deleted = client.add("likes milk", entity_name="Ana").id
    client.delete(deleted)
    other = client.add("likes water", entity_name="Bo").id

    result = client.redact(entity="Ana")

    assert {now, deleted} < set(result.memories)
    assert {each.kind for each in result.subjects} == {"memory", "alias"}
    assert client.alias("list").aliases == ()
    assert client.content(other) == "likes water"
    _same(home, client)


def test_by_filter_deleted_and_expired_ones_are_meant_too(home: Home, client: Client) -> None:
    kept = client.add("kept", scope="b").id
    ids = [client.add(f"note {n}", scope="a", ttl_days=1, tags=["x"]).id for n in range(3)]
    client.delete(ids[0])
    home.clock.advance(days=2)

    assert set(client.redact(filter={"scope": "a", "tags": ["x"]}).memories) == {*ids}
    assert client.content(kept) == "kept"
    with client.refused(InvalidArgumentsError, "every memory"):
        client.redact(filter={})
    _same(home, client)


def test_a_session_and_a_reason_can_be_erased(home: Home, client: Client) -> None:
    session = client.session_start("editor").id
    client.session_end(session, summary="a secret summary")
    client.redact(session)
    position = client.redact(client.add("x y z").id, reason="the name of somebody").position
    assert position is not None

    client.redact(event=position)

    assert client.session_list().sessions == ()
    with client.refused(NotFoundError):
        client.session_end(session)
    _same(home, client)


def test_what_is_never_erased_is_refused_by_its_type(client: Client) -> None:
    old = client.add("a fact").id
    client.supersede(old, "a newer fact")

    for position in (1, 2, 5):
        with client.refused(InvalidArgumentsError, "never erased"):
            client.redact(event=position)


def test_a_redaction_cannot_be_undone_and_stands_in_the_way(client: Client) -> None:
    first = client.add("one").id
    second = client.supersede(first, "two")
    third = client.supersede(second, "three")
    done = client.redact(third, chain=False)
    assert done.position is not None

    with client.refused(UndoConflictError, "cannot be undone"):
        client.undo(position=done.position)
    with client.refused(UndoConflictError, "cannot be undone"):
        client.undo(id=second)


def test_a_repeated_request_says_what_it_did_and_writes_nothing(client: Client) -> None:
    memory = client.add("a secret word").id
    first = client.redact(memory, idempotency_key="k")
    end = client.position()

    again = client.redact(memory, idempotency_key="k")

    assert (again.state, again.memories) == ("redacted", (memory,))
    assert (again.position, again.completed) == (first.position, True)
    assert client.position() == end
    with client.refused(IdempotencyConflictError):
        client.redact("another", idempotency_key="k")


def test_a_repeated_addition_of_what_was_redacted_says_so(client: Client) -> None:
    added = client.add("a secret word", idempotency_key="k")
    client.redact(added.id)

    assert client.add("a secret word", idempotency_key="k").state == "redacted"


def test_other_memories_that_hold_the_text_are_named(client: Client) -> None:
    secret = client.add("Zebedee Quirk").id
    other = client.add("the letter was for Zebedee Quirk").id

    result = client.redact(secret)

    assert result.completed
    assert result.also_in == (other,)


def test_long_texts_are_searched_for_by_pieces(client: Client) -> None:
    added = client.add(" ".join(f"word{number}" for number in range(2_000)), title="x" * 5)
    (record,) = client.store.ledger.records_at([added.position]).values()

    needles = needles_of([record])

    assert max(map(len, needles.texts)) <= 80
    assert len(needles.texts) > 5
    assert needles.is_cut


def test_queries_leave_the_activity_log_and_counts_of_what_is_gone(
    home: Home, client: Client
) -> None:
    memory = client.add("a secret word").id
    client.search("secret")
    client.store.recorder.flush(5.0)

    forget_queries(client.store.activity_path, [memory])

    log = ActivityLog(client.store.activity_path, "default")
    assert [each.query for each in log.searches(10)] == [""]
    assert log.most_read(10) == []
    assert home.path.exists()
