"""What a date or a range of time means when people or models write it in words.

Two readings, both pure: `understand_date` for what is kept with a memory (when it happened, since
when it holds) and `understand_range` for filters. ISO 8601 text goes to `ledger.parse_span` as it
is and is UTC unless it has an offset. Everything else is English or Russian words, read by these
rules in the calendar of the given zone, which is never the zone of the machine:

- A year, month, day or minute is as wide as it is written: `March 2021` is that whole month.
- A day or month without a year is the nearest one that does not begin after today. In a range the
  year written at one end serves both; if none is, the range begins at the nearest such day or month
  and ends at the first such after that.
- `last`, `this` and `next` (прошлый, этот, следующий) with week, month or year are the calendar's,
  and a week begins on Monday: `last week` is the Monday to Sunday before this one.
- `past` (последний), a number of units (`last 3 days`), and any `last` hour or day count back from
  now, the clock time kept; `next 3 days` counts on from now.
- `3 days ago` and `2 weeks ago` are that day, `2 months ago` that month, `2 years ago` that year,
  `2 hours ago` that minute.
- `since`, `until` (по) and `between ... and ...` take in the whole of what they name; `after` and
  `before` (до) leave it out.
- A clock time that the zone skips is refused; of one that it has twice, the first is meant.
- Dates in figures are read in ISO order only: 03/04/2025 is two dates, and 25/04/2025 is refused
  with it.

A range of time (a week, `last 3 days`, `since May`) is no date that could be kept.
"""

from __future__ import annotations

from datetime import UTC
from typing import Final

import msgspec

from ledger.instants import MIN_US, format_us, parse_span
from server.date_words import UNITS, YEAR_WORDS, Kind, Token, tokens
from server.zone_calendar import END_US, Meaning, Part, ZoneCalendar, zone_named

TEXT_CHARACTERS_MAX: Final = 200
_ECHO_CHARACTERS_MAX: Final = 40
_COUNT: Final[tuple[Kind, ...]] = ("number", "year")
_JOINERS: Final[tuple[Kind, ...]] = ("dash", "to", "until")

_DATES: Final = (
    "expected a date in ISO 8601 (2025, 2025-03, 2025-03-17, 2025-03-17T22:15, UTC unless an "
    "offset is given) or in words such as `17 May`, `March 2021`, `3 August 2021 22:15`, "
    "`yesterday`, `3 days ago`, `3 марта 2026`, `вчера`"
)
_RANGES: Final = (
    f"{_DATES}, or a range such as `last 3 days`, `last week`, `this month`, "
    "`between May and July 2024`, `since 2024-05`, `на прошлой неделе`, `февраль–март 2025`"
)


class NotUnderstoodError(ValueError):
    """The text is no date or range of time; the message says why and what is accepted."""


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """A range of time, half-open and never empty.

    Attributes:
        from_us: First microsecond since 1970-01-01 UTC, MIN_US to MAX_US.
        to_us: The microsecond after the last one, at most MAX_US + 1.
        said: A sentence on how the text was read; None for ISO 8601 text, which needs none.
    """

    from_us: int
    to_us: int
    said: str | None


class When(Span, frozen=True, kw_only=True):
    """A date, of the precision it was written in.

    Attributes:
        stored: The ISO 8601 form to keep; `parse_span` reads it as this very span.
    """

    stored: str


def understand_date(text: str, *, now_us: int, zone: str) -> When:
    """Read a date: a year, month, day, minute or second.

    Words count their days in the zone. What is kept of a year, month or day is the bare date, and
    the span of a bare date is in UTC like that of every stored one; a minute keeps the zone's
    offset, rounded to a minute where it has seconds (before standard time).

    Args:
        text: What was written, at most TEXT_CHARACTERS_MAX characters.
        now_us: The present, in microseconds since 1970-01-01 UTC.
        zone: The IANA name of the zone that words are read in.

    Raises:
        NotUnderstoodError: the text is no date, or a range of time, or outside the years 0001 to
            9999.
        LookupError: there is no such zone.
    """
    given = _as_iso(text)
    if given is not None:
        return When(stored=text.strip(), from_us=given[0], to_us=given[1], said=None)
    calendar = ZoneCalendar(now_us, zone_named(zone))
    try:
        meaning = _Reader(text, calendar).meaning()
        stored = _date_of(meaning)
        from_us, to_us = parse_span(stored)
    except (ValueError, OverflowError) as error:
        raise _not_understood(text, error, _DATES) from error
    said = _said(text, stored, zone if meaning.in_words else "UTC")
    return When(stored=stored, from_us=from_us, to_us=to_us, said=said)


def understand_range(text: str, *, now_us: int, zone: str) -> Span:
    """Read a range of time; a date is the whole of it.

    Args:
        text: What was written, at most TEXT_CHARACTERS_MAX characters.
        now_us: The present, in microseconds since 1970-01-01 UTC.
        zone: The IANA name of the zone that words are read in; days are that zone's days.

    Raises:
        NotUnderstoodError: the text is neither a range nor a date, ends before it begins, or lies
            outside the years 0001 to 9999.
        LookupError: there is no such zone.
    """
    given = _as_iso(text)
    if given is not None:
        return Span(from_us=given[0], to_us=given[1], said=None)
    calendar = ZoneCalendar(now_us, zone_named(zone))
    try:
        meaning = _Reader(text, calendar).meaning()
        shown = (calendar if meaning.in_words else ZoneCalendar(now_us, UTC)).shown(meaning)
    except (ValueError, OverflowError) as error:
        raise _not_understood(text, error, _RANGES) from error
    said = _said(text, shown, zone if meaning.in_words else "UTC")
    return Span(from_us=meaning.from_us, to_us=meaning.to_us, said=said)


def _as_iso(text: str) -> tuple[int, int] | None:
    try:
        return parse_span(text)
    except ValueError:
        return None


def _date_of(meaning: Meaning) -> str:
    if meaning.stored is None:
        raise ValueError("a range of time, not a date")
    return meaning.stored


def _said(text: str, meaning: str, zone: str) -> str:
    return f"`{_echo(text)}` was understood as {meaning} ({zone})"


def _not_understood(text: str, reason: Exception, accepted: str) -> NotUnderstoodError:
    return NotUnderstoodError(f"not understood: {_echo(text)!r} ({reason}); {accepted}")


def _echo(text: str) -> str:
    plain = " ".join(text[:TEXT_CHARACTERS_MAX].split())
    return plain if len(plain) <= _ECHO_CHARACTERS_MAX else f"{plain[:_ECHO_CHARACTERS_MAX]}…"


# ---------------------------------------------------------------------------- grammar


def _open_ended(opening: Kind | None, whole: Meaning) -> Meaning:
    match opening:
        case "from" | "since":
            return whole._replace(to_us=END_US, stored=None)
        case "after":
            return whole._replace(from_us=whole.to_us, to_us=END_US, stored=None)
        case "before":
            return whole._replace(from_us=MIN_US, to_us=whole.from_us, stored=None)
        case "until":
            return whole._replace(from_us=MIN_US, stored=None)
        case _:
            return whole


class _Reader:
    """Reads a text from its first token to its last.

    Each method takes the tokens of one phrase and returns what they mean, or None, having taken
    nothing, if no such phrase begins here. A phrase that begins and does not end raises ValueError.
    """

    def __init__(self, text: str, calendar: ZoneCalendar) -> None:
        if len(text) > TEXT_CHARACTERS_MAX:
            raise ValueError(f"longer than {TEXT_CHARACTERS_MAX} characters")
        self._tokens = tokens(text)
        self._at = 0
        self._calendar = calendar

    def meaning(self) -> Meaning:
        """The meaning of the whole text, within the years 0001 to 9999 and not empty."""
        meaning = self._range()
        if self._at < len(self._tokens):
            raise self._stuck()
        begin, end = max(meaning.from_us, MIN_US), min(meaning.to_us, END_US)
        if begin >= end:
            raise ValueError("it ends before it begins, or there is no such time")
        return meaning._replace(from_us=begin, to_us=end)

    def _range(self) -> Meaning:
        opening = self._take("between", "from", "since", "after", "before", "until")
        kind = opening.kind if opening else None
        start = self._simple()
        if kind == "between":
            if self._take("and", *_JOINERS) is None:
                raise self._stuck()
            return self._pair(start, self._simple())
        if kind in (None, "from") and self._take(*_JOINERS):
            return self._pair(start, self._simple())
        return _open_ended(kind, self._whole(start))

    def _pair(self, start: Part | Meaning, end: Part | Meaning) -> Meaning:
        if isinstance(start, Part) and isinstance(end, Part):
            start, end = self._calendar.joined(start, end)
        first, last = self._whole(start), self._whole(end)
        return Meaning(first.from_us, last.to_us, in_words=first.in_words or last.in_words)

    def _whole(self, found: Part | Meaning) -> Meaning:
        return self._calendar.whole(found) if isinstance(found, Part) else found

    def _simple(self) -> Part | Meaning:
        for read in (self._iso, self._counted, self._ago, self._named_day, self._written):
            found = read()
            if found is not None:
                return found
        raise self._stuck()

    def _iso(self) -> Meaning | None:
        """`2024-05`, `2024-05-17T22:15Z`, `now`."""
        if self._take("now"):
            now_us = self._calendar.now_us
            return Meaning(now_us, now_us + 1, format_us(now_us), in_words=False)
        token = self._take("iso")
        if token is None:
            return None
        stored = token.text.upper()
        span = _as_iso(stored)
        if span is None:
            raise ValueError("not in the calendar, or outside the years 0001 to 9999 in UTC")
        return Meaning(*span, stored, in_words=False)

    def _counted(self) -> Part | Meaning | None:
        """`last week`, `past nine days`, `this month`, `next 2 years`."""
        sign = self._take("last", "past", "this", "next")
        if sign is None:
            return None
        count = self._take(*_COUNT)
        unit = self._unit()
        direction = {"this": 0, "next": -1}.get(sign.kind, 1)
        if count is not None:
            if count.value == 0 or direction == 0:
                raise ValueError(f"no count of {count.value} belongs here")
            return self._calendar.rolling(unit, direction * count.value)
        if sign.kind == "this" or (sign.kind != "past" and unit in ("week", "month", "year")):
            return self._calendar.unit(unit, direction)
        return self._calendar.rolling(unit, direction)

    def _ago(self) -> Part | Meaning | None:
        """`3 days ago`, `a week ago`."""
        row = self._row(_COUNT, ("unit",), ("ago",))
        if row is not None:
            return self._calendar.ago(UNITS[row[1].value], row[0].value)
        row = self._row(("unit",), ("ago",))
        return None if row is None else self._calendar.ago(UNITS[row[0].value], 1)

    def _named_day(self) -> Part | None:
        """`yesterday`, `yesterday 22:15`, `the day before yesterday`."""
        steps = self._row(("unit",), ("before", "after"))
        day = self._take("day")
        if steps is None:
            return None if day is None else self._timed(self._calendar.day(day.value))
        step = -1 if steps[1].kind == "before" else 1
        if day is None or UNITS[steps[0].value] != "day" or day.value != step:
            raise ValueError(f"{steps[1].text!r} does not belong here")
        return self._timed(self._calendar.day(2 * step))

    def _written(self) -> Part | None:
        """`2019`, `March 2021`, `17 May`, `May 17th, 2025`, `3 August 2021 22:15`."""
        number = self._take("number", "ordinal")
        month = self._take("month")
        if number is None and month is not None:
            number = self._take("number", "ordinal")
        year = self._year()
        if number is None and month is None and year is None:
            return None
        part = Part(year, month.value if month else None, number.value if number else None)
        return self._timed(part) if number and month else part

    def _year(self) -> int | None:
        """`2019`, `the year 2019`, `2019 года`, and after a month `last year`, `прошлого года`."""
        word = self._peek()
        row = self._row(("unit",), ("year",)) if word and word.text in YEAR_WORDS else None
        year = row[1] if row else self._take("year")
        following = self._peek()
        if year is not None:
            if following and following.text in YEAR_WORDS:
                self._at += 1
            return year.value
        unit = self._peek(1)
        if unit is None or unit.kind != "unit" or UNITS[unit.value] != "year":
            return None
        sign = self._take("last", "this", "next")
        if sign is None:
            return None
        self._at += 1
        return self._calendar.today().year + {"last": -1, "next": 1}.get(sign.kind, 0)

    def _timed(self, part: Part) -> Part:
        clock = self._take("clock")
        if clock is None:
            return part
        return part._replace(clock=clock.text.zfill(5), in_utc=self._take("utc") is not None)

    def _unit(self) -> str:
        unit = self._take("unit")
        if unit is None:
            raise self._stuck()
        return UNITS[unit.value]

    def _peek(self, ahead: int = 0) -> Token | None:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else None

    def _take(self, *kinds: Kind) -> Token | None:
        token = self._peek()
        if token is None or token.kind not in kinds:
            return None
        self._at += 1
        return token

    def _row(self, *rows: tuple[Kind, ...]) -> list[Token] | None:
        taken = self._tokens[self._at : self._at + len(rows)]
        if len(taken) < len(rows) or any(
            token.kind not in kinds for token, kinds in zip(taken, rows, strict=True)
        ):
            return None
        self._at += len(rows)
        return taken

    def _stuck(self) -> ValueError:
        token = self._peek()
        if token is None:
            return ValueError("something is missing at the end")
        if token.kind == "figures":
            return ValueError("dates in figures are read in the order year-month-day only")
        if token.text.isdecimal():
            return ValueError("a number alone is a year, 0001 to 9999")
        return ValueError(f"{_echo(token.text)!r} does not belong here")
