"""Group D, dates and time: instants, spans, what was true when."""

import pytest

from server.errors import InvalidArgumentsError
from tests.support.store import Client, Home


def test_d2_stored_instants_do_not_depend_on_the_hosts_zone(
    home: Home, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.clock.set("2025-03-10T23:30:00.000000Z")
    stored = client.add("the night train left").id
    home.clock.set("2025-03-11T01:00:00.000000Z")
    for zone in ("UTC", "Asia/Tokyo", "America/Los_Angeles"):
        monkeypatch.setenv("TZ", zone)
        assert client.found("train", date_from="2025-03-10", date_to="2025-03-10") == [stored]
        assert client.found("train", date_from="2025-03-11") == []
        memory = client.inspect(stored).memory
        assert memory is not None
        assert memory.created_at == "2025-03-10T23:30:00.000000Z"


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


def test_d3_dates_come_back_as_they_were_given(client: Client) -> None:
    for given in ("2025-06-01", "2025-06-01T10:00", "2025-06-01T10:00:00+02:00"):
        memory = client.inspect(client.add("x", event_at=given).id).memory
        assert memory is not None
        assert memory.event_at == given


@pytest.mark.parametrize(
    "given",
    [
        "2019",
        "March 2021",
        "17 May",
        "3 August 2021 22:15",
        "03/04/2025",
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
        "２０２６-01-01",
        "",
    ],
)
@pytest.mark.parametrize("field", ["event_at", "valid_from", "valid_until"])
def test_d4_and_d5_what_is_no_whole_date_is_refused_by_name(
    client: Client, field: str, given: str
) -> None:
    with client.refused(InvalidArgumentsError, f"`{field}`"):
        client.add("content", **{field: given})


@pytest.mark.parametrize("given", ["last blursday", "2026-02-30", "yesterday"])
@pytest.mark.parametrize("field", ["as_of", "date_from", "date_to"])
def test_d1_a_filter_that_is_no_date_is_an_error_and_never_the_full_range(
    client: Client, field: str, given: str
) -> None:
    client.add("content")
    with client.refused(InvalidArgumentsError, f"`{field}`"):
        client.search("content", **{field: given})


@pytest.mark.parametrize("given", ["9999-12-31", "0001-01-01", "9999-12-31T23:59:59.999999Z"])
def test_d5_the_first_and_last_instants_are_stored_found_and_rebuilt(
    home: Home, client: Client, given: str
) -> None:
    stored = client.add("far away", event_at=given, valid_until="9999-12-31").id
    for seen in home.lives(client):
        assert seen.found("far", date_from=given, date_to=given) == [stored]
        assert seen.found("far", as_of="9999-12-31") == [stored]


@pytest.mark.parametrize("ttl", [3_000_000, 1e300])
def test_d5_an_expiry_beyond_the_calendar_is_refused(client: Client, ttl: float) -> None:
    with client.refused(InvalidArgumentsError, "`ttl_days`"):
        client.add("content", ttl_days=ttl)


def test_a_validity_window_that_never_holds_is_refused(client: Client) -> None:
    with client.refused(InvalidArgumentsError, "`valid_until`"):
        client.add("content", valid_from="2026-02-01", valid_until="2026-01-31")
    one_day = client.add("one day only", valid_from="2026-02-01", valid_until="2026-02-01").id
    assert client.found("day", as_of="2026-02-01T12:00") == [one_day]


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
