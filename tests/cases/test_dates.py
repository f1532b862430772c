"""Group D, dates and time: instants, spans, what was true when."""

import time
from collections.abc import Iterator

import pytest

from server.errors import InvalidArgumentsError
from server.results import ExportResult, ListResult
from tests.support.store import Client, Home


@pytest.fixture
def host_zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Move the machine into a zone."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", request.param)
        time.tzset()
        yield request.param
    time.tzset()


HOSTS = pytest.mark.parametrize(
    "host_zone", ["UTC", "Asia/Tokyo", "America/Los_Angeles"], indirect=True
)


# ---------------------------------------------------------------------------- D-1


@pytest.mark.parametrize(
    ("when", "days"),
    [
        ("last 3 days", [2]),
        ("past nine days", [8, 2]),
        ("last week", [8]),  # Monday to Sunday before this week; it is a Wednesday
        ("this week", [2]),
        ("8 days ago", [8]),
        ("за последние 3 дня", [2]),
        ("last year", [400]),
        ("since 2024", [400, 8, 2]),
        ("before 2025-06-01", [400]),
    ],
)
def test_d1_a_time_phrase_is_the_range_it_says(
    home: Home, client: Client, when: str, days: list[int]
) -> None:
    now = "2025-06-18T12:00:00.000000Z"
    ids = {}
    for ago in (400, 8, 2):
        home.clock.set(now)
        home.clock.advance(days=-ago)
        ids[ago] = client.add("swan seen").id
    home.clock.set(now)
    expected = {ids[ago] for ago in days}
    for mode in ("fts", "exact"):
        assert {*client.found("swan", when=when, mode=mode)} == expected
    listed = client.call("memory_list", {"when": when})
    assert isinstance(listed, ListResult)
    assert {memory.id for memory in listed.memories} == expected
    assert any(f"`{when}` was understood as" in note for note in listed.notes)
    assert client.search("swan", when=when).notes == listed.notes


@pytest.mark.guarantee("G-DATE-1")
@pytest.mark.parametrize("given", ["last blursday", "2026-02-30", "03/04/2025", "", "sometime"])
def test_d1_a_time_that_is_not_understood_is_an_error_and_never_the_full_range(
    client: Client, given: str
) -> None:
    client.add("content")
    for field in ("when", "as_of", "date_from", "date_to"):
        with client.refused(InvalidArgumentsError, f"`{field}`"):
            client.search("content", **{field: given})
        with client.refused(InvalidArgumentsError, f"`{field}`"):
            client.call("memory_list", {field: given})
    for field in ("date_from", "date_to"):
        with client.refused(InvalidArgumentsError, f"`{field}`"):
            client.call("memory_export", {"format": "json", field: given})
        with client.refused(InvalidArgumentsError, f"`{field}`"):
            client.call("memory_delete_many", {field: given})
    assert client.inspect().total == 1


def test_d1_a_range_and_a_bound_without_a_common_moment_are_refused(client: Client) -> None:
    with client.refused(InvalidArgumentsError, "`when`"):
        client.search("content", when="May 2024", date_from="2024-06-01")
    with client.refused(InvalidArgumentsError, "`date_to`"):
        client.search("content", date_to="May 2024", date_from="June 2024")


# ---------------------------------------------------------------------------- D-2


@HOSTS
@pytest.mark.usefixtures("host_zone")
@pytest.mark.parametrize(
    ("stated", "when"),
    [
        ("UTC", "yesterday"),  # it left on 10 March; now it is the 11th
        ("Asia/Tokyo", "today"),  # it left on 11 March at half past eight
        ("America/Los_Angeles", "today"),  # it is 10 March still
    ],
)
def test_d2_a_day_in_words_is_one_of_the_stated_zone_on_every_host(
    home: Home, stated: str, when: str
) -> None:
    home.clock.set("2025-03-10T23:30:00.000000Z")
    client = home.open(time_zone=stated)
    stored = client.add("the night train left").id
    home.clock.set("2025-03-11T01:00:00.000000Z")
    for day in ("yesterday", "today", "вчера", "сегодня"):
        same = day in (when, {"yesterday": "вчера", "today": "сегодня"}[when])
        result = client.search("train", when=day)
        assert [found.id for found in result.memories] == ([stored] if same else [])
        assert stated in result.notes[0]
    assert client.found("train", date_from="2025-03-10", date_to="2025-03-10") == [stored]
    assert client.found("train", date_from="2025-03-11") == []
    memory = client.inspect(stored).memory
    assert memory is not None
    assert memory.created_at == "2025-03-10T23:30:00.000000Z"


@HOSTS
@pytest.mark.usefixtures("host_zone")
def test_d2_what_is_kept_of_a_date_in_words_is_the_same_on_every_host(home: Home) -> None:
    home.clock.set("2025-03-10T23:30:00.000000Z")
    client = home.open(time_zone="Asia/Tokyo")
    for given, kept in (
        ("yesterday", "2025-03-10"),
        ("9 March 22:15", "2025-03-09T22:15+09:00"),
        ("9 March 22:15 UTC", "2025-03-09T22:15"),
        ("2025-03-09T22:15", "2025-03-09T22:15"),
    ):
        assert _kept(client, "event_at", given) == kept


# ---------------------------------------------------------------------------- D-3 to D-5


def test_d3_instants_with_and_without_a_zone_and_days_stand_in_one_order(client: Client) -> None:
    no_zone = client.add("swan seen", event_at="2025-06-01T10:00:00").id
    with_zone = client.add("swan seen", event_at="2025-06-01T10:00:00+02:00").id
    whole_day = client.add("swan seen", event_at="2025-06-01").id

    def between(date_from: str, date_to: str) -> set[str]:
        return {*client.found("swan", date_from=date_from, date_to=date_to)}

    assert between("2025-06-01T08:00:00", "2025-06-01T08:00:00") == {with_zone, whole_day}
    assert between("2025-06-01T10:00:00Z", "2025-06-01T10:00:00Z") == {no_zone, whole_day}
    assert between("2025-06-01T23:59", "2025-06-01T23:59") == {whole_day}
    assert between("2025-06-01", "2025-06-01") == {no_zone, with_zone, whole_day}
    assert between("2025-06-02", "2025-06-02") == between("2025-05-31", "2025-05-31") == set()


def test_d3_a_fact_with_a_zone_succeeds_one_without(home: Home, client: Client) -> None:
    first = client.add("swan on the lake", event_at="2025-06-01T10:00:00").id
    second = client.supersede(first, "swan on the river", event_at="2025-06-01T10:00:00+02:00")
    day = client.add("swan seen", event_at="2025-06-01").id
    for seen in home.lives(client):
        assert {*seen.found("swan", as_of="2025-06-01T09:00:00Z")} == {second, day}
        assert {*seen.found("swan", as_of="2025-06-01T07:59:59Z")} == {first, day}
        listed = seen.call("memory_list", {"order": "happened", "include_superseded": True})
        assert isinstance(listed, ListResult)
        assert [memory.id for memory in listed.memories] == [first, second, day]


def test_d3_dates_come_back_as_they_were_given(client: Client) -> None:
    for given in ("2025-06-01", "2025-06-01T10:00", "2025-06-01T10:00:00+02:00"):
        memory = client.inspect(client.add("x", event_at=given).id).memory
        assert memory is not None
        assert memory.event_at == given


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("2019", "2019"),
        ("March 2021", "2021-03"),
        ("март 2021", "2021-03"),
        ("17 May", "2025-05-17"),
        ("17 June", "2024-06-17"),  # not a day that is yet to come
        ("29 February", "2024-02-29"),
        ("3 August 2021 22:15", "2021-08-03T22:15"),
        ("3 Aug 2021 22:15", "2021-08-03T22:15"),
        ("August 3rd, 2021", "2021-08-03"),
        ("２０２６-01-01", "2026-01-01"),
    ],
)
def test_d4_a_date_in_words_keeps_its_precision_and_the_reply_says_how_it_was_read(
    home: Home, client: Client, given: str, kept: str
) -> None:
    home.clock.set("2025-05-20T12:00:00.000000Z")
    for field in ("event_at", "valid_from", "valid_until"):
        assert _kept(client, field, given) == kept


def test_d4_a_year_and_a_month_are_the_whole_of_it(home: Home, client: Client) -> None:
    home.clock.set("2025-05-20T12:00:00.000000Z")
    year = client.add("swan seen", event_at="2019").id
    month = client.add("swan seen", event_at="March 2021").id
    for seen in home.lives(client):
        for day in ("2019-01-01", "2019-12-31"):
            assert seen.found("swan", date_from=day, date_to=day) == [year]
        for day in ("2021-03-01", "2021-03-31"):
            assert seen.found("swan", when=day) == [month]
        for day in ("2018-12-31", "2020-01-01", "2021-02-28", "2021-04-01", "2025-05-20"):
            assert seen.found("swan", when=day) == []


@pytest.mark.parametrize(
    "given",
    [
        "03/04/2025",
        "25/04/2025",
        "last week",
        "last blursday",
        "1718000000123",
        "253402300800",
        "9999-12-31T23:59:59-01:00",
        "0001-01-01T00:00:00+14:00",
        "-1",
        "2026-02-29",
        "2026-13-01",
        "2026-00-10",
        "2026-01-01T24:01",
        "2026-01-01T10:00+25:00",
        "2026-01-01 ten",
        "2026-01-01T10:00:00.000000Z; DROP",
        "0000-01-01",
        "10000-01-01",
        "",
    ],
)
def test_d4_and_d5_what_is_no_date_is_refused_by_name(client: Client, given: str) -> None:
    stored = client.add("content").id
    for field in ("event_at", "valid_from", "valid_until"):
        with client.refused(InvalidArgumentsError, f"`{field}`"):
            client.add("content", **{field: given})
        with client.refused(InvalidArgumentsError, f"`{field}`"):
            client.update(stored, **{field: given})


@pytest.mark.parametrize("given", ["9999-12-31", "0001-01-01", "9999-12-31T23:59:59.999999Z"])
def test_d5_the_first_and_last_instants_are_stored_found_and_rebuilt(
    home: Home, client: Client, given: str
) -> None:
    stored = client.add("far away", event_at=given, valid_until="9999-12-31").id
    for seen in home.lives(client):
        assert seen.found("far", date_from=given, date_to=given) == [stored]
        assert seen.found("far", as_of="9999-12-31") == [stored]
        for order in ("newest", "happened", "changed"):
            listed = seen.call("memory_list", {"order": order})
            assert isinstance(listed, ListResult)
            assert [memory.event_at for memory in listed.memories] == [given]
        for form in ("json", "markdown"):
            exported = seen.call("memory_export", {"format": form})
            assert isinstance(exported, ExportResult)
            assert given in exported.content


@pytest.mark.parametrize("ttl", [3_000_000, 1e300])
def test_d5_an_expiry_beyond_the_calendar_is_refused(client: Client, ttl: float) -> None:
    with client.refused(InvalidArgumentsError, "`ttl_days`"):
        client.add("content", ttl_days=ttl)


def test_a_validity_window_that_never_holds_is_refused(client: Client) -> None:
    with client.refused(InvalidArgumentsError, "`valid_until`"):
        client.add("content", valid_from="2026-02-01", valid_until="2026-01-31")
    one_day = client.add("one day only", valid_from="2026-02-01", valid_until="2026-02-01").id
    assert client.found("day", as_of="2026-02-01T12:00") == [one_day]


@pytest.mark.guarantee("G-ASOF-1")
def test_as_of_a_window_holds_from_its_first_moment_through_its_last_day(client: Client) -> None:
    stored = client.add("ferry runs", valid_from="2026-04-01", valid_until="2026-04-30").id
    holding = ["2026-04-01T00:00:00", "2026-04-15", "2026-04-30T23:59:59.999999Z", "2026-04-01"]
    for moment in holding:
        assert client.found("ferry", as_of=moment) == [stored]
    for moment in ("2026-03-31T23:59:59.999999Z", "2026-05-01T00:00:00.000000Z", "2026-05-01"):
        assert client.found("ferry", as_of=moment) == []


def test_as_of_a_memory_without_dates_was_always_true(client: Client) -> None:
    stored = client.add("water boils at 100 degrees").id
    assert client.found("boils", as_of="0001-01-01") == [stored]
    assert client.found("boils", as_of="9999-12-31") == [stored]


@pytest.mark.guarantee("G-ASOF-1")
def test_as_of_a_successor_takes_over_when_it_was_added(home: Home, client: Client) -> None:
    home.clock.set("2026-01-10T00:00:00.000000Z")
    old = client.add("Ana works at Alder Ltd").id
    home.clock.set("2026-03-10T00:00:00.000000Z")
    new = client.supersede(old, "Ana works at Birch Ltd")
    home.clock.set("2026-05-10T00:00:00.000000Z")
    newest = client.supersede(new, "Ana works at Cedar Ltd")
    for seen in home.lives(client):
        assert seen.found("Ana works") == [newest]
        assert seen.found("Ana works", as_of="2025-01-01") == [old]
        assert seen.found("Ana works", as_of="2026-03-09") == [old]
        assert seen.found("Ana works", as_of="2026-03-10") == [new]
        assert seen.found("Ana works", as_of="2026-06-01") == [newest]
    client = home.open()
    client.delete(new)  # the middle one: its neighbours meet where the newest began
    assert client.found("Ana works", as_of="2026-03-11") == [old]
    assert client.found("Ana works", as_of="2026-05-11") == [newest]


def test_as_of_the_successor_of_a_dated_fact_does_not_reach_back_to_that_date(
    home: Home, client: Client
) -> None:
    home.clock.set("2026-05-10T00:00:00.000000Z")
    old = client.add("Ana works at Alder", event_at="2024-05-01", valid_from="2024-05-01").id
    home.clock.set("2026-06-10T00:00:00.000000Z")
    new = client.supersede(old, "Ana works at Birch")
    for seen in home.lives(client):
        assert seen.found("Ana", as_of="2024-04-30") == []
        assert seen.found("Ana", as_of="2025-01-01") == [old]
        assert seen.found("Ana", as_of="2026-06-09") == [old]
        assert seen.found("Ana", as_of="2026-06-10") == [new]
        assert seen.found("Ana") == [new]


def test_a_day_in_a_filter_is_the_whole_day_in_utc(home: Home, client: Client) -> None:
    for instant in ("2026-06-14T23:59:59.999999Z", "2026-06-15T00:00:00.000000Z"):
        home.clock.set(instant)
        client.add(f"swan at {instant}")
    assert len(client.found("swan", date_to="2026-06-14")) == 1
    assert len(client.found("swan", date_from="2026-06-15")) == 1
    assert len(client.found("swan", date_from="2026-06-14", date_to="2026-06-15")) == 2
    with client.refused(InvalidArgumentsError, "`date_to`"):
        client.search("swan", date_from="2026-06-15", date_to="2026-06-14")


# ---------------------------------------------------------------------------- D-6


def test_d6_an_older_note_of_a_file_stands_before_the_newer_one_whenever_it_arrives(
    home: Home, client: Client
) -> None:
    birch = client.add("Ana works at Birch Ltd", event_at="2026-01", source_file="ana.md").id
    alder = client.add("Ana works at Alder Ltd", event_at="2024-05", source_file="ana.md")
    cedar = client.add("Ana works at Cedar Ltd", event_at="2025-02", source_file="ana.md")
    assert (alder.superseded_by, cedar.superseded_by) == (birch, birch)
    assert cedar.superseded_ids == (alder.id,)
    for seen in home.lives(client):
        assert seen.found("Ana works") == [birch]
        assert seen.found("Ana works", as_of="2024-06") == [alder.id]
        assert seen.found("Ana works", as_of="2025-06") == [cedar.id]
        assert seen.found("Ana works", as_of="2024-04") == []
        chain = seen.inspect(alder.id, include_history=True).superseded_chain
        assert chain is not None
        assert [memory.id for memory in chain] == [birch, cedar.id, alder.id]


def test_d6_what_cannot_be_told_apart_stays_live_and_the_reply_says_so(
    home: Home, client: Client
) -> None:
    home.clock.set("2026-06-01T00:00:00.000000Z")
    undated = client.add("Ana works at Birch Ltd", source_file="ana.md").id
    home.clock.set("2026-06-02T00:00:00.000000Z")
    dated = client.add("Ana works at Alder Ltd", event_at="2024-05", source_file="ana.md")
    assert undated in dated.notes[-1]
    assert "cannot be told which is newer" in dated.notes[-1]
    assert {*client.found("Ana works")} == {undated, dated.id}


def test_d6_other_files_scopes_and_texts_without_a_file_replace_nothing(client: Client) -> None:
    birch = client.add(
        "Ana works at Birch Ltd", event_at="2026-01", source_file="ana.md", entity_name="Ana"
    ).id
    others = [
        client.add("Ana works at Alder Ltd", event_at="2024-05", entity_name="Ana", **fields)
        for fields in ({}, {"source_file": "b.md"}, {"source_file": "ana.md", "scope": "alpha"})
    ]
    assert {*client.found("Ana works")} == {birch, *(other.id for other in others)}
    assert [conflict.id for conflict in others[0].potential_conflicts] == [birch]


def _kept(client: Client, field: str, given: str) -> str:
    """Store a date and return what is kept of it, which the reply must have told of."""
    added = client.add("content", **{field: given})
    memory = client.inspect(added.id).memory
    assert memory is not None
    kept = getattr(memory, field)
    if kept != given:
        assert f"`{given}` was understood as {kept}" in added.notes[0]
    assert isinstance(kept, str)
    return kept
