"""Instants: the record form, and what people give."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import InvalidInstantError, format_us, parse_span, parse_us
from ledger.instants import DAY_US, MAX_US, MIN_US, MINUTE_US, SECOND_US

DAY = 1_796_000_400_000_000 // DAY_US * DAY_US
"""2026-11-30T00:00Z"""


def test_the_record_form_is_fixed() -> None:
    assert format_us(0) == "1970-01-01T00:00:00.000000Z"
    assert format_us(MIN_US) == "0001-01-01T00:00:00.000000Z"
    assert format_us(MAX_US) == "9999-12-31T23:59:59.999999Z"
    assert parse_us("1969-12-31T23:59:59.999999Z") == -1


@given(st.integers(MIN_US, MAX_US))
def test_the_record_form_round_trips(us: int) -> None:
    assert parse_us(format_us(us)) == us


@given(st.integers(MIN_US, MAX_US), st.integers(MIN_US, MAX_US))
def test_text_order_is_time_order(one: int, two: int) -> None:
    assert (one < two) == (format_us(one) < format_us(two))


@pytest.mark.parametrize("us", [MIN_US - 1, MAX_US + 1])
def test_an_instant_outside_the_calendar_has_no_record_form(us: int) -> None:
    with pytest.raises(InvalidInstantError):
        format_us(us)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-11-30",
        "2026-11-30T20:29:33Z",
        "2026-11-30T20:29:33.123Z",
        "2026-11-30 20:29:33.123456Z",
        "2026-11-30T20:29:33.123456+00:00",
        "2026-02-30T20:29:33.123456Z",
        "0000-01-01T00:00:00.000000Z",
        "٢026-11-30T20:29:33.123456Z",
    ],
)
def test_what_is_not_in_record_form_is_refused(text: str) -> None:
    with pytest.raises(InvalidInstantError):
        parse_us(text)


@pytest.mark.parametrize(
    ("text", "start", "width"),
    [
        ("2026-11-30", 0, DAY_US),
        (" 2026-11-30 ", 0, DAY_US),
        ("2026-11-30T20:29", 1229 * MINUTE_US, MINUTE_US),
        ("2026-11-30t20:29z", 1229 * MINUTE_US, MINUTE_US),
        ("2026-11-30 20:29:33", 1229 * MINUTE_US + 33 * SECOND_US, SECOND_US),
        ("2026-11-30T20:29:33.5Z", 1229 * MINUTE_US + 33_500_000, 100_000),
        ("2026-11-30T20:29:33,123456Z", 1229 * MINUTE_US + 33_123_456, 1),
        ("2026-11-30T20:29:33.123456789Z", 1229 * MINUTE_US + 33_123_456, 1),
        ("2026-11-30T22:29+02:00", 1229 * MINUTE_US, MINUTE_US),
        ("2026-11-30T22:29+0200", 1229 * MINUTE_US, MINUTE_US),
        ("2026-11-30T22:29 +02", 1229 * MINUTE_US, MINUTE_US),
        ("2026-11-30T14:59:00-05:30", 1229 * MINUTE_US, SECOND_US),
    ],
)
def test_what_people_give_is_a_span_as_wide_as_its_precision(
    text: str, start: int, width: int
) -> None:
    assert parse_span(text) == (DAY + start, DAY + start + width)


@pytest.mark.parametrize(
    ("text", "first", "next_day"),
    [
        ("2019", "2019-01-01", "2020-01-01"),
        ("2020", "2020-01-01", "2021-01-01"),
        (" 2021-03 ", "2021-03-01", "2021-04-01"),
        ("2024-02", "2024-02-01", "2024-03-01"),
        ("2100-02", "2100-02-01", "2100-03-01"),
        ("2021-12", "2021-12-01", "2022-01-01"),
        ("0001", "0001-01-01", "0002-01-01"),
    ],
)
def test_a_month_or_a_year_alone_is_the_whole_of_it(text: str, first: str, next_day: str) -> None:
    assert parse_span(text) == (parse_span(first)[0], parse_span(next_day)[0])


@pytest.mark.parametrize("text", ["9999", "9999-12", "9999-12-31"])
def test_the_last_year_month_and_day_end_with_the_calendar(text: str) -> None:
    assert parse_span(text)[1] == MAX_US + 1


@given(st.dates())
def test_a_day_lies_in_its_month_and_its_month_in_its_year(day: date) -> None:
    year, month = parse_span(f"{day.year:04d}"), parse_span(f"{day.year:04d}-{day.month:02d}")
    inside = parse_span(day.isoformat())

    assert year[0] <= month[0] <= inside[0] < inside[1] <= month[1] <= year[1]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0000",
        "0000-01",
        "2026-00",
        "2026-13",
        "2026-1",
        "2026-",
        "26",
        "20261",
        "202611",
        "2026T20:29",
        "2026-11T20:29",
        "2026Z",
        "2026-11+02:00",
        "２０２６",
        "yesterday",
        "2026-13-01",
        "2026-02-30",
        "2026-11-30T24:00",
        "2026-11-30T20",
        "2026-11-30T20:29:60",
        "2026-11-30T20:29+02:60",
        "2026-11-30T20:29+24:00",
        "0001-01-01T00:00+01:00",
        "9999-12-31T23:59-01:00",
        "2026-11-30T20:29:33.1234567890Z",
        "1764534573",
        "2026-11-30Z",
    ],
)
def test_what_is_no_date_is_refused_with_what_is_accepted(text: str) -> None:
    with pytest.raises(InvalidInstantError, match="expected a date"):
        parse_span(text)
