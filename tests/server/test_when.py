"""Dates and ranges of time in words: what each means, and what is refused."""

import time
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.instants import DAY_US, MAX_US, MIN_US, MINUTE_US, SECOND_US, format_us, parse_span
from server import date_words
from server.when import (
    TEXT_CHARACTERS_MAX,
    NotUnderstoodError,
    Span,
    When,
    understand_date,
    understand_range,
)

NOW = "2025-05-20T12:00:00.000000Z"
"""A Tuesday."""

ZONES = ["UTC", "Asia/Tokyo", "America/Los_Angeles", "Europe/Berlin", "Asia/Kathmandu"]


def us(text: str) -> int:
    return parse_span(text)[0]


def date_of(text: str, *, now: str = NOW, zone: str = "UTC") -> When:
    return understand_date(text, now_us=us(now), zone=zone)


def range_of(text: str, *, now: str = NOW, zone: str = "UTC") -> Span:
    return understand_range(text, now_us=us(now), zone=zone)


def ends(span: Span) -> tuple[int, int]:
    return span.from_us, span.to_us


# ---------------------------------------------------------------------------- dates

DATES = [
    ("17 May", "2025-05-17"),
    ("17 мая", "2025-05-17"),
    ("17-го мая", "2025-05-17"),
    ("May 17", "2025-05-17"),
    ("on the 17th of May", "2025-05-17"),
    ("20 May", "2025-05-20"),
    ("21 May", "2024-05-21"),
    ("31 декабря", "2024-12-31"),
    ("29 February", "2024-02-29"),
    ("May", "2025-05"),
    ("в июне", "2024-06"),
    ("March 2021", "2021-03"),
    ("in Mar. 2021", "2021-03"),
    ("march, 2021", "2021-03"),
    ("март 2025", "2025-03"),
    ("в марте 2025 г.", "2025-03"),
    ("в марте прошлого года", "2024-03"),
    ("March last year", "2024-03"),
    ("17 May this year", "2025-05-17"),
    ("17 мая следующего года", "2026-05-17"),
    ("in 2019", "2019"),
    ("the year 2019", "2019"),
    ("в 2019 году", "2019"),
    ("3 August 2021", "2021-08-03"),
    ("August 3rd, 2021", "2021-08-03"),
    ("3 марта 2026", "2026-03-03"),
    ("3 марта 2026 года", "2026-03-03"),
    ("３ марта ２０２６", "2026-03-03"),
    ("on 2021-08-03", "2021-08-03"),
    ("3 August 2021 22:15", "2021-08-03T22:15"),
    ("3 Aug 2021 22:15", "2021-08-03T22:15"),
    ("3 Aug 2021, at 22:15:30", "2021-08-03T22:15:30"),
    ("3 августа 2021 в 9:05", "2021-08-03T09:05"),
    ("today", "2025-05-20"),
    ("сегодня", "2025-05-20"),
    ("yesterday", "2025-05-19"),
    ("Вчера", "2025-05-19"),
    ("yesterday at 22:15", "2025-05-19T22:15"),
    ("вчера в 22:15", "2025-05-19T22:15"),
    ("the day before yesterday", "2025-05-18"),
    ("позавчера", "2025-05-18"),
    ("tomorrow", "2025-05-21"),
    ("завтра", "2025-05-21"),
    ("the day after tomorrow", "2025-05-22"),
    ("послезавтра", "2025-05-22"),
    ("now", NOW),
    ("сейчас", NOW),
    ("three days ago", "2025-05-17"),
    ("3 дня назад", "2025-05-17"),
    ("a week ago", "2025-05-13"),
    ("две недели тому назад", "2025-05-06"),
    ("3 months ago", "2025-02"),
    ("год назад", "2024"),
    ("2 hours ago", "2025-05-20T10:00"),
    ("90 минут назад", "2025-05-20T10:30"),
    ("last month", "2025-04"),
    ("в прошлом месяце", "2025-04"),
    ("this month", "2025-05"),
    ("в следующем году", "2026"),
    ("last year", "2024"),
]


@pytest.mark.parametrize(("text", "stored"), DATES)
def test_a_date_in_words_is_kept_in_the_precision_it_was_written_in(text: str, stored: str) -> None:
    found = date_of(text)

    assert found.stored == stored
    assert ends(found) == parse_span(stored)
    assert found.said == f"`{text}` was understood as {stored} (UTC)"


@pytest.mark.parametrize(("text", "stored"), DATES)
def test_a_range_may_be_one_date(text: str, stored: str) -> None:
    assert ends(range_of(text)) == parse_span(stored)


@pytest.mark.parametrize(
    "text",
    ["2019", "2021-03", " 2021-03-05 ", "2021-03-05T10:00", "2021-03-05 10:00:00.5+02:00"],
)
@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_iso_text_is_kept_as_it_is_and_does_not_depend_on_the_zone(text: str, zone: str) -> None:
    found = date_of(text, zone=zone)

    assert (found.stored, found.said) == (text.strip(), None)
    assert ends(found) == parse_span(text) == ends(range_of(text, zone=zone))


def test_a_clock_time_in_words_keeps_the_offset_of_the_zone() -> None:
    winter = date_of("3 February 2021 22:15", zone="Europe/Berlin")
    summer = date_of("3 August 2021 22:15", zone="Europe/Berlin")

    assert winter.stored == "2021-02-03T22:15+01:00"
    assert summer.stored == "2021-08-03T22:15+02:00"
    assert date_of("3 Aug 2021 22:15", zone="America/St_Johns").stored.endswith("-02:30")
    assert date_of("3 Aug 1850 22:15", zone="Europe/Moscow").stored == "1850-08-03T22:15+02:30"
    assert (summer.said or "").endswith("understood as 2021-08-03T22:15+02:00 (Europe/Berlin)")


def test_a_clock_time_that_says_utc_is_utc_in_every_zone() -> None:
    found = date_of("3 August 2021 22:15 UTC", zone="Asia/Tokyo")

    assert found.stored == "2021-08-03T22:15"
    assert (found.said or "").endswith("(UTC)")


def test_a_clock_time_that_the_zone_skips_is_refused_and_a_repeated_one_is_the_first() -> None:
    with pytest.raises(NotUnderstoodError, match="skip that time"):
        date_of("30 March 2025 02:30", zone="Europe/Berlin")

    assert date_of("27 October 2024 02:30", zone="Europe/Berlin").stored.endswith("+02:00")


@pytest.mark.parametrize(
    "text",
    [
        "last 3 days",
        "past week",
        "last week",
        "на этой неделе",
        "since May",
        "until 2024-05",
        "between May and July 2024",
        "2023-2024",
        "февраль–март 2025",
    ],
)
def test_a_range_is_no_date(text: str) -> None:
    assert range_of(text).said is not None

    with pytest.raises(NotUnderstoodError, match="a range of time, not a date"):
        date_of(text)


# ---------------------------------------------------------------------------- ranges

RANGES = [
    ("last 3 days", "2025-05-17T12:00:00", NOW),
    ("in the last three days", "2025-05-17T12:00:00", NOW),
    ("последние 3 дня", "2025-05-17T12:00:00", NOW),
    ("за последние трое суток", "2025-05-17T12:00:00", NOW),
    ("past nine days", "2025-05-11T12:00:00", NOW),
    ("за последние девять дней", "2025-05-11T12:00:00", NOW),
    ("в течение последних девяти дней", "2025-05-11T12:00:00", NOW),
    ("past week", "2025-05-13T12:00:00", NOW),
    ("за последнюю неделю", "2025-05-13T12:00:00", NOW),
    ("last 2 weeks", "2025-05-06T12:00:00", NOW),
    ("past month", "2025-04-20T12:00:00", NOW),
    ("last 15 months", "2024-02-20T12:00:00", NOW),
    ("last 1 year", "2024-05-20T12:00:00", NOW),
    ("past hour", "2025-05-20T11:00:00", NOW),
    ("last hour", "2025-05-20T11:00:00", NOW),
    ("последние 24 часа", "2025-05-19T12:00:00", NOW),
    ("last 1000 minutes", "2025-05-19T19:20:00", NOW),
    ("next 3 days", NOW, "2025-05-23T12:00:00.000000"),
    ("last week", "2025-05-12", "2025-05-18"),
    ("на прошлой неделе", "2025-05-12", "2025-05-18"),
    ("this week", "2025-05-19", "2025-05-25"),
    ("next week", "2025-05-26", "2025-06-01"),
    ("this month", "2025-05", "2025-05"),
    ("в этом месяце", "2025-05", "2025-05"),
    ("в этом году", "2025", "2025"),
    ("in March 2025", "2025-03", "2025-03"),
    ("between May and July 2024", "2024-05", "2024-07"),
    ("между маем и июлем 2024", "2024-05", "2024-07"),
    ("between May 2023 and July 2024", "2023-05", "2024-07"),
    ("from May to July 2024", "2024-05", "2024-07"),
    ("с мая по июль 2024", "2024-05", "2024-07"),
    ("May through July 2024", "2024-05", "2024-07"),
    ("февраль–март 2025", "2025-02", "2025-03"),
    ("February - March", "2025-02", "2025-03"),
    ("May to July", "2025-05", "2025-07"),
    ("June to July", "2024-06", "2024-07"),
    ("ноябрь — февраль", "2024-11", "2025-02"),
    ("November–February 2025", "2024-11", "2025-02"),
    ("December 2023 to January", "2023-12", "2024-01"),
    ("2023-2024", "2023", "2024"),
    ("2024-05 to 2024-07", "2024-05", "2024-07"),
    ("3–5 March 2025", "2025-03-03", "2025-03-05"),
    ("between 3 and 5 March", "2025-03-03", "2025-03-05"),
    ("с 3 по 5 марта 2025", "2025-03-03", "2025-03-05"),
    ("March 3-5, 2025", "2025-03-03", "2025-03-05"),
    ("March 3 - 5", "2025-03-03", "2025-03-05"),
    ("27 Feb - 2 Mar 2025", "2025-02-27", "2025-03-02"),
    ("from yesterday to now", "2025-05-19", NOW),
    ("from 3 March to 2025-04", "2025-03-03", "2025-04"),
    ("since 2024-05", "2024-05", "9999"),
    ("since last week", "2025-05-12", "9999"),
    ("с мая 2024", "2024-05", "9999"),
    ("after May 2024", "2024-06", "9999"),
    ("после 5 мая", "2025-05-06", "9999"),
    ("before May 2024", "0001", "2024-04"),
    ("до мая 2024", "0001", "2024-04"),
    ("until May 2024", "0001", "2024-05"),
    ("по май 2024", "0001", "2024-05"),
]


@pytest.mark.parametrize(("text", "first", "last"), RANGES)
def test_a_range_is_the_whole_of_its_first_and_last_part(text: str, first: str, last: str) -> None:
    assert ends(range_of(text)) == (parse_span(first)[0], parse_span(last)[1])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("last week", "2025-05-12 to 2025-05-18"),
        ("last 3 days", "2025-05-17T12:00 to 2025-05-20T12:00"),
        ("since 2024-05", "2024-05-01 and after"),
        ("before May 2024", "before 2024-05-01"),
        ("in  March\n2025", "2025-03"),
        ("yesterday 22:15:30 to today", "2025-05-19T22:15:30 to 2025-05-20"),
    ],
)
def test_the_reply_can_say_how_a_range_was_read(text: str, said: str) -> None:
    shown = " ".join(text.split())

    assert range_of(text).said == f"`{shown}` was understood as {said} (UTC)"


def test_a_sentence_on_a_long_text_shows_its_beginning() -> None:
    said = range_of("3 August 2021" + "  in the" * 20).said

    assert said == (
        "`3 August 2021 in the in the in the in th…` was understood as 2021-08-03 (UTC)"
    )


def test_a_range_in_iso_text_alone_is_in_utc_and_says_so() -> None:
    in_iso = range_of("2024-05-01 to 2024-05-03", zone="Asia/Tokyo")
    in_words = range_of("1 May 2024 to 3 May 2024", zone="Asia/Tokyo")

    assert ends(in_iso) == (us("2024-05-01"), us("2024-05-04"))
    assert ends(in_words) == (us("2024-04-30T15:00"), us("2024-05-03T15:00"))
    assert in_iso.said == (
        "`2024-05-01 to 2024-05-03` was understood as 2024-05-01 to 2024-05-03 (UTC)"
    )
    assert (in_words.said or "").endswith("2024-05-01 to 2024-05-03 (Asia/Tokyo)")


def test_d1_each_range_finds_the_memories_of_its_days_and_never_all() -> None:
    now = us(NOW)

    def ages(text: str) -> list[int]:
        span = range_of(text)
        return [days for days in (400, 8, 2) if span.from_us <= now - days * DAY_US < span.to_us]

    assert ages("last 3 days") == ages("последние 3 дня") == [2]
    assert ages("past nine days") == ages("за последние девять дней") == [8, 2]
    assert ages("last week") == ages("на прошлой неделе") == [8, 2]
    with pytest.raises(NotUnderstoodError, match="'blursday'"):
        ages("last blursday")


def test_d2_yesterday_is_the_day_of_the_stated_zone() -> None:
    stored, now = us("2025-03-10T23:30:00Z"), "2025-03-11T01:00:00Z"

    def yesterday(zone: str) -> tuple[int, int]:
        return ends(range_of("yesterday", now=now, zone=zone))

    assert yesterday("UTC") == (us("2025-03-10"), us("2025-03-11"))
    assert yesterday("Asia/Tokyo") == (us("2025-03-09T15:00"), us("2025-03-10T15:00"))
    # The clocks went forward that night: the day had 23 hours.
    assert yesterday("America/Los_Angeles") == (us("2025-03-09T08:00"), us("2025-03-10T07:00"))
    assert [yesterday(zone)[0] <= stored < yesterday(zone)[1] for zone in ZONES[:3]] == [
        True,
        False,
        False,
    ]


def test_a_day_is_as_long_as_the_zone_makes_it() -> None:
    long = range_of("27 October 2024", zone="Europe/Berlin")
    rolling = range_of("last 1 day", now="2025-03-30T12:00:00Z", zone="Europe/Berlin")

    assert long.to_us - long.from_us == 25 * 60 * MINUTE_US
    assert rolling.from_us == us("2025-03-29T14:00+01:00")
    with pytest.raises(NotUnderstoodError, match="there is no such time"):
        range_of("30 December 2011", zone="Pacific/Apia")


def test_a_month_back_from_its_last_day_is_the_last_day_of_a_shorter_month() -> None:
    assert range_of("past month", now="2025-03-31T10:00:00Z").from_us == us("2025-02-28T10:00:00")
    assert range_of("past month", now="2025-12-31T10:00:00Z").from_us == us("2025-11-30T10:00:00")
    assert range_of("past month", now="2026-01-31T10:00:00Z").from_us == us("2025-12-31T10:00:00")


# ---------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    "text",
    [
        "",
        "in the",
        "last blursday",
        "last",
        "last 0 days",
        "this 3 days",
        "last 3 blurs",
        "days",
        "3 days",
        "in 3 days",
        "3",
        "3-5",
        "3 - May 2025",
        "May 2025 - 3",
        "03/04/2025",
        "25/04/2025",
        "04/2025",
        "25.04.2025",
        "2025/04/25",
        "2025-4-25",
        "1718000000123",
        "253402300800",
        "-1",
        "0000",
        "3 March 0000",
        "3 March 21",
        "32 May",
        "31 June",
        "31 June 2025",
        "29 February 2025",
        "3 August 2021 24:00",
        "3 August 2021 22:60",
        "3 August 2021 10:15 pm",
        "May 2025 22:15",
        "22:15",
        "2021-08-03 at 22:15",
        "2026-02-29",
        "2026-13-01",
        "2026-01-01T24:01",
        "2026-01-01T10:00+25:00",
        "2026-01-01 ten",
        "2026-01-01T10:00:00.000000Z; DROP",
        "9999-12-31T23:59:59-01:00",
        "0001-01-01T00:00:00+14:00",
        "٣ May 2025",
        "week before yesterday",
        "day after yesterday",
        "day before 2025",
        "between May",
        "between May and",
        "May and July",
        "May and year",
        "from",
        "5 May 2025 to 3 May 2025",
        "5–3 March 2025",
        "July 2025 to 2024-05",
        "March last week",
        "after 9999",
        "before 0001",
        "last 9999 years",
        "9999 weeks of May",
        "31 December 9999 23:59:59 to tomorrow",
        "17 May ☃",
        "x" * (TEXT_CHARACTERS_MAX + 1),
    ],
)
def test_what_is_not_understood_is_refused_with_what_is_accepted(text: str) -> None:
    with pytest.raises(NotUnderstoodError, match="expected a date in ISO 8601"):
        date_of(text)
    with pytest.raises(NotUnderstoodError, match="`last 3 days`"):
        range_of(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("03/04/2025", "in the order year-month-day only"),
        ("1718000000123", "a number alone is a year, 0001 to 9999"),
        ("2026-02-29", "not in the calendar"),
        ("May and", "'and' does not belong here"),
        ("last", "something is missing at the end"),
        ("17", "the month is missing"),
        ("5 May 2025 to 3 May 2025", "ends before it begins"),
        ("x" * 1000, f"longer than {TEXT_CHARACTERS_MAX} characters"),
    ],
)
def test_a_refusal_says_why(text: str, reason: str) -> None:
    with pytest.raises(NotUnderstoodError, match=reason) as refused:
        range_of(text)

    assert len(str(refused.value)) < 700


@pytest.mark.parametrize("zone", ["Nowhere/Land", "", "../UTC", "/etc/localtime", "America"])
def test_a_zone_that_is_not_there_is_not_blamed_on_the_text(zone: str) -> None:
    with pytest.raises(LookupError, match="no time zone"):
        range_of("yesterday", zone=zone)


# ---------------------------------------------------------------------------- laws

PIECES = [
    *("last", "past", "this", "next", "ago", "days", "week", "month", "year", "hours", "minutes"),
    *("between", "and", "from", "since", "to", "until", "before", "after", "-", "in", "now", "utc"),
    *("1", "17", "31", "300", "5th", "two", "мая", "December", "February", "yesterday", "завтра"),
    *("2019", "9999", "0001", "0000", "22:15", "2024-05", "2024-02-29", "3/4/2025"),
]

ENGLISH_NUMBERS = [
    *("one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
]

moments = st.integers(us("1900"), us("2100"))
zones = st.sampled_from(ZONES)
dates = st.sampled_from([text for text, _ in DATES])
phrases = st.sampled_from([text for text, *_ in DATES + RANGES])


def _holds(span: Span) -> None:
    assert MIN_US <= span.from_us < span.to_us <= MAX_US + 1


@given(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map(" ".join),
    st.one_of(moments, st.sampled_from([MIN_US, MAX_US])),
    zones,
)
def test_any_row_of_known_words_is_a_span_that_is_not_empty_or_is_refused(
    text: str, now_us: int, zone: str
) -> None:
    read: tuple[Callable[..., Span], ...] = (understand_date, understand_range)
    for understand in read:
        try:
            _holds(understand(text, now_us=now_us, zone=zone))
        except NotUnderstoodError as refused:
            assert "expected a date" in str(refused)  # noqa: PT017 - most are refused, some are not


@pytest.mark.guarantee("G-DATE-1")
@given(st.text(max_size=40), moments)
def test_any_text_at_all_is_understood_or_refused(text: str, now_us: int) -> None:
    try:
        _holds(understand_range(text, now_us=now_us, zone="UTC"))
    except NotUnderstoodError as refused:
        assert "expected a date" in str(refused)  # noqa: PT017 - most texts are refused, some are not


@given(phrases, moments, zones)
def test_what_is_understood_is_never_empty_whenever_and_wherever(
    text: str, now_us: int, zone: str
) -> None:
    span = understand_range(text, now_us=now_us, zone=zone)

    _holds(span)
    assert span.said is not None


@given(dates, moments, zones)
def test_what_is_kept_of_a_date_means_the_same_when_it_is_read_again(
    text: str, now_us: int, zone: str
) -> None:
    date = understand_date(text, now_us=now_us, zone=zone)
    again = understand_date(date.stored, now_us=0, zone="Asia/Tokyo")

    assert ends(date) == parse_span(date.stored) == ends(again)
    assert again.said is None


@given(
    phrases, st.integers(0, 10), st.sampled_from(["blursday", "весной", "maybe", "5.5", "?", "№"])
)
def test_one_unknown_word_anywhere_refuses_the_whole(text: str, at: int, stranger: str) -> None:
    words = text.split()
    words.insert(at, stranger)

    with pytest.raises(NotUnderstoodError):
        range_of(" ".join(words))


@given(phrases, st.sampled_from([str.upper, str.title, str.lower]))
def test_letter_case_spaces_and_commas_do_not_matter(
    text: str, changed: Callable[[str], str]
) -> None:
    spaced = "  " + changed(text).replace(" ", "\u00a0 , ") + "\t"

    assert ends(range_of(spaced)) == ends(range_of(text))


@given(moments, zones)
def test_days_weeks_months_and_years_join_without_a_gap_and_hold_the_present(
    now_us: int, zone: str
) -> None:
    def read(text: str) -> Span:
        return understand_range(text, now_us=now_us, zone=zone)

    for rows in (
        ["позавчера", "yesterday", "today", "завтра", "послезавтра"],
        ["last week", "this week", "next week"],
        ["last month", "this month", "next month"],
        ["прошлый год", "этот год", "следующий год"],
    ):
        spans = [read(text) for text in rows]
        middle = spans[len(spans) // 2]
        assert middle.from_us <= now_us < middle.to_us
        assert all(one.to_us == two.from_us for one, two in pairwise(spans))


@given(st.integers(1, 28), st.sampled_from(["May", "августа", "Dec", "февраля"]), moments)
def test_a_day_without_a_year_is_the_last_such_day_not_after_today(
    day: int, month: str, now_us: int
) -> None:
    found = understand_date(f"{day} {month}", now_us=now_us, zone="UTC")

    assert found.from_us <= now_us
    assert now_us - found.from_us < 366 * DAY_US
    assert found.stored in (found.said or "")


@given(st.sampled_from(range(1, 13)), st.sampled_from(["day", "week", "hour", "minute"]), moments)
def test_a_number_in_words_counts_like_the_figure(count: int, unit: str, now_us: int) -> None:
    english = ENGLISH_NUMBERS[count - 1]
    widths = {"minute": MINUTE_US, "hour": 60 * MINUTE_US, "day": DAY_US, "week": 7 * DAY_US}

    def read(text: str) -> tuple[int, int]:
        return ends(understand_range(text, now_us=now_us, zone="UTC"))

    assert read(f"past {english} {unit}s") == read(f"last {count} {unit}s")
    assert read(f"last {count} {unit}s") == (now_us - count * widths[unit], now_us + 1)


@pytest.mark.parametrize(
    ("russian", "english"),
    [
        ("один одна одной одну", 1),
        ("два две двух двум", 2),
        ("три трех трём", 3),
        ("четыре четырёх", 4),
        ("пять пяти", 5),
        ("шесть шести", 6),
        ("семь семи", 7),
        ("восемь восьми", 8),
        ("девять девяти", 9),
        ("десять десяти", 10),
        ("одиннадцать одиннадцати", 11),
        ("двенадцать двенадцати", 12),
    ],
)
def test_russian_numbers_are_read_in_their_cases(russian: str, english: int) -> None:
    for number in russian.split():
        assert ends(range_of(f"последние {number} дней")) == ends(range_of(f"last {english} days"))


@pytest.mark.parametrize("month", range(1, 13))
def test_a_month_has_the_same_meaning_in_every_form_and_language(month: int) -> None:
    forms = [word for word, meaning in date_words._WORDS.items() if meaning == ("month", month)]

    assert len(forms) >= 6
    for form in forms:
        assert date_of(f"{form} 2021").stored == f"2021-{month:02d}"


@pytest.fixture(params=["UTC", "Asia/Tokyo", "America/Los_Angeles"])
def host_zone(request: pytest.FixtureRequest) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield request.param
    time.tzset()


@pytest.mark.parametrize("zone", ZONES)
def test_d2_the_zone_of_the_machine_changes_nothing(host_zone: str, zone: str) -> None:
    assert time.tzname[0] in {"UTC", "JST", "PST"}, host_zone
    now_us = us("2025-03-11T01:00:00Z")
    day = {"UTC": "2025-03-10", "America/Los_Angeles": "2025-03-09"}.get(zone, "2025-03-10")

    assert understand_date("yesterday", now_us=now_us, zone=zone).stored == day
    clock = understand_date("3 August 2021 22:15", now_us=now_us, zone=zone)
    offset = {
        "UTC": "",
        "Asia/Tokyo": "+09:00",
        "America/Los_Angeles": "-07:00",
        "Europe/Berlin": "+02:00",
        "Asia/Kathmandu": "+05:45",
    }[zone]
    assert clock.stored == f"2021-08-03T22:15{offset}"
    assert clock.to_us - clock.from_us == MINUTE_US
    last = understand_range("last 3 days", now_us=now_us, zone=zone)
    # Over the night of 9 March the clocks of Los Angeles went forward: three days had 71 hours.
    hours = 71 if zone == "America/Los_Angeles" else 72
    assert format_us(last.from_us) == format_us(now_us - hours * 3600 * SECOND_US)
