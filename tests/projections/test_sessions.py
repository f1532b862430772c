"""Sessions: listed newest first, with the memories that name them."""

from server.errors import NotFoundError, SessionEndedError
from tests.support.store import Client, Home


def test_a_session_says_how_long_it_took_and_what_was_kept_of_it(
    home: Home, client: Client
) -> None:
    session = client.session_start("editor", project="fern", meta={"n": 1})
    old = client.add("one", session_id=session.id).id
    client.supersede(old, "two")
    client.delete(client.add("three", session_id=session.id).id)
    home.clock.advance(seconds=90)

    ended = client.session_end(session.id, summary="found the leak")

    assert (ended.duration_minutes, ended.memories_count) == (1.5, 2)
    (shown,) = client.session_list().sessions
    assert (shown.client, shown.project, shown.meta) == ("editor", "fern", {"n": 1})
    assert (shown.summary, shown.memories_count) == ("found the leak", 2)
    assert (shown.started_at, shown.ended_at) == (session.started_at, ended.ended_at)


def test_a_clock_that_went_back_makes_no_negative_duration(home: Home, client: Client) -> None:
    session = client.session_start()
    home.clock.advance(seconds=-3_600)

    assert client.session_end(session.id).duration_minutes == 0


def test_filters_of_sessions_are_exact_and_hold_together(client: Client) -> None:
    ids = {
        (name, project): client.session_start(name, project=project).id
        for name in ("editor", "Editor")
        for project in ("fern", None)
    }
    client.session_end(ids["editor", "fern"])

    def listed(**fields: object) -> set[str]:
        page = client.session_list(**fields)
        assert page.total == page.returned_count == len(page.sessions)
        return {session.id for session in page.sessions}

    assert listed(client="editor") == {ids["editor", "fern"], ids["editor", None]}
    assert listed(project="fern") == {ids["editor", "fern"], ids["Editor", "fern"]}
    assert listed(client="editor", active_only=True) == {ids["editor", None]}
    assert listed() == {*ids.values()}


def test_a_session_started_between_pages_moves_none_of_the_others(client: Client) -> None:
    ids = [client.session_start(str(number)).id for number in range(5)]
    first = client.session_list(limit=2)

    client.session_start("meanwhile")
    second = client.session_list(limit=10, cursor=first.next_cursor)

    seen = [session.id for session in (*first.sessions, *second.sessions)]
    assert seen == list(reversed(ids))
    assert (first.total, second.total, second.has_more) == (5, 5, False)


def test_an_ended_session_is_opened_again_by_undo_and_ended_once_only(client: Client) -> None:
    session = client.session_start().id
    client.session_end(session, summary="first")

    with client.refused(SessionEndedError, "memory_undo"):
        client.session_end(session)
    client.undo(id=session)
    assert client.session_list(active_only=True).sessions[0].summary is None
    assert client.session_end(session, summary="second").summary == "second"


def test_a_beginning_that_is_undone_leaves_no_session_and_can_come_back(client: Client) -> None:
    started = client.session_start()
    undone = client.undo(position=started.position)

    assert client.session_list().sessions == ()
    with client.refused(NotFoundError):
        client.session_end(started.id)
    added = client.add("x", session_id=started.id)
    assert "no session" in " ".join(added.notes)
    client.undo(position=undone.position)
    (back,) = client.session_list().sessions
    assert (back.id, back.memories_count) == (started.id, 1)


def test_a_session_of_another_workspace_is_not_there(home: Home, client: Client) -> None:
    other = home.open("other")
    session = other.session_start().id

    assert client.session_list().sessions == ()
    with client.refused(NotFoundError):
        client.session_end(session)
    with client.refused(NotFoundError):
        client.undo(id=session)


def test_sessions_are_the_same_after_a_rebuild(home: Home, client: Client) -> None:
    ids = [client.session_start(f"editor {number}").id for number in range(3)]
    client.add("x", session_id=ids[0])
    client.session_end(ids[1], summary="done")
    before = client.session_list()

    assert home.rebuilt().session_list() == before
