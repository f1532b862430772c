"""The calendar of one zone at one moment: what days, months and counted units are in it.

Pure: the present is given, and the zone of the machine is never asked.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final, NamedTuple

from ledger.instants import MAX_US, MIN_US, parse_span

END_US: Final = MAX_US + 1
"""The end of what has none."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_MINUTE: Final = timedelta(minutes=1)
_CLOCK_UNITS: Final = {"minute": _MINUTE, "hour": 60 * _MINUTE}
_YEARS_TO_A_LEAP_DAY_MAX: Final = 8
"""From 1904 back to 1896: a century that is no leap year lies between."""


def zone_named(name: str) -> tzinfo:
    """Return the zone of an IANA name.

    Raises:
        LookupError: there is no such zone, or its rules are not installed on this machine.
    """
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - most servers never need it

    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError) as error:
        raise LookupError(f"no time zone {name[:60]!r} is installed here") from error


class Meaning(NamedTuple):
    """What a phrase means.

    Attributes:
        from_us: First microsecond since 1970-01-01 UTC.
        to_us: The microsecond after the last one.
        stored: The ISO 8601 form of it if it is one date; None for any other range.
        in_words: Whether the zone had a part in it.
    """

    from_us: int
    to_us: int
    stored: str | None = None
    in_words: bool = True


class Part(NamedTuple):
    """A date as far as it is written.

    Attributes:
        year: 1 to 9999.
        month: 1 to 12.
        day: Of the month.
        clock: `HH:MM` or `HH:MM:SS`; only with a month and a day.
        in_utc: Whether the clock is that of UTC and not that of the zone.
    """

    year: int | None = None
    month: int | None = None
    day: int | None = None
    clock: str | None = None
    in_utc: bool = False


class ZoneCalendar:
    """The calendar of one zone at one moment.

    Every method raises ValueError (with the reason) or OverflowError for what is not in the
    calendar or lies outside the years 0001 to 9999.
    """

    def __init__(self, now_us: int, zone: tzinfo) -> None:
        self.now_us = now_us
        self._zone = zone

    def today(self) -> date:
        """The day it is in the zone."""
        return self._local(self.now_us).date()

    def whole(self, part: Part) -> Meaning:
        """The whole of what is written; if the year is not, the latest that is possible."""
        part = self._with_year(part)
        first = _first_day(part)
        if part.month is None:
            return self._days(first, first.replace(month=12, day=31), f"{first.year:04d}")
        if part.day is None:
            return self._days(first, _last_of_month(first), first.isoformat()[:7])
        if part.clock is None:
            return self._days(first, first, first.isoformat())
        local = datetime.combine(
            first, time.fromisoformat(part.clock), UTC if part.in_utc else self._zone
        )
        there_and_back = local.astimezone(UTC).astimezone(local.tzinfo)
        if there_and_back.replace(tzinfo=None) != local.replace(tzinfo=None):
            raise ValueError("the clocks of the zone skip that time")
        stored = f"{first}T{part.clock}{_offset(local)}"
        return Meaning(*parse_span(stored), stored, in_words=not part.in_utc)

    def joined(self, start: Part, end: Part) -> tuple[Part, Part]:
        """Complete the ends of a range from one another: month, then year.

        If neither has a year, the range begins at the latest start that is not after today.
        """
        if start.month is None and start.day is not None and end.day is not None:
            start = start._replace(month=end.month, year=end.year)  # 3 to 5 March
        elif end.month is None and end.day is not None and start.day is not None:
            year = start.year if end.year is None else end.year  # March 3 to 5
            start, end = start._replace(year=year), end._replace(month=start.month, year=year)
        over_new_year = int((start.month or 0) > (end.month or 12))
        if start.year is None and end.year is not None:
            return start._replace(year=end.year - over_new_year), end
        start = self._with_year(start)
        if end.year is None and start.year is not None:
            end = end._replace(year=start.year + over_new_year)
        return start, end

    def day(self, distance: int) -> Part:
        """The day so many after today."""
        day = self.today() + timedelta(days=distance)
        return Part(day.year, day.month, day.day)

    def unit(self, unit: str, count: int) -> Part | Meaning:
        """The calendar's week, month, year or day so many before the present one."""
        if unit != "week":
            return self.ago(unit, count)
        today = self.today()
        monday = today - timedelta(days=today.weekday() + 7 * count)
        return self._days(monday, monday + timedelta(days=6))

    def ago(self, unit: str, count: int) -> Part | Meaning:
        """The minute, day, month or year so many units before now; of weeks, the day."""
        if unit in _CLOCK_UNITS:
            local = self._local(self.now_us - count * (_CLOCK_UNITS[unit] // _MICROSECOND))
            stored = f"{local.replace(tzinfo=None).isoformat(timespec='minutes')}{_offset(local)}"
            return Meaning(*parse_span(stored), stored)
        day = _moved(self.today(), unit, -count)
        if unit == "year":
            return Part(day.year)
        return Part(day.year, day.month, None if unit == "month" else day.day)

    def rolling(self, unit: str, count: int) -> Meaning:
        """From so many units before now through now, or from now on if the count is negative."""
        if unit in _CLOCK_UNITS:
            other_us = self.now_us - count * (_CLOCK_UNITS[unit] // _MICROSECOND)
        else:
            local = self._local(self.now_us)
            day = _moved(local.date(), unit, -count)
            other_us = self._us(datetime.combine(day, local.time(), self._zone))
        return Meaning(min(other_us, self.now_us), max(other_us, self.now_us) + 1)

    def shown(self, meaning: Meaning) -> str:
        """The span for people: local days, or local times where it is not made of days."""
        if meaning.stored is not None:
            return meaning.stored
        if meaning.to_us == END_US:
            return f"{self._text(meaning.from_us)} and after"
        if meaning.from_us == MIN_US:
            return f"before {self._text(meaning.to_us)}"
        after = self._local(meaning.to_us)
        if after.time() == time.min:
            last = (after.date() - timedelta(days=1)).isoformat()
        else:
            last = self._text(meaning.to_us - 1)
        return f"{self._text(meaning.from_us)} to {last}"

    def _with_year(self, part: Part) -> Part:
        if part.month is None and part.day is not None:
            raise ValueError("the month is missing")
        if part.year is not None:
            return part
        today = self.today()
        for year in range(today.year, max(0, today.year - _YEARS_TO_A_LEAP_DAY_MAX - 1), -1):
            dated = part._replace(year=year)
            if _exists(dated) and _first_day(dated) <= today:
                return dated
        raise ValueError("there is no such day")

    def _days(self, first: date, last: date, stored: str | None = None) -> Meaning:
        to_us = END_US if last == date.max else self._begin_us(last + timedelta(days=1))
        return Meaning(self._begin_us(first), to_us, stored)

    def _begin_us(self, day: date) -> int:
        return self._us(datetime.combine(day, time.min, self._zone))

    def _us(self, local: datetime) -> int:
        return (local - _EPOCH) // _MICROSECOND

    def _local(self, us: int) -> datetime:
        return (_EPOCH + us * _MICROSECOND).astimezone(self._zone)

    def _text(self, us: int) -> str:
        local = self._local(us).replace(tzinfo=None)
        if local.time() == time.min:
            return local.date().isoformat()
        return local.isoformat(timespec="seconds" if local.second else "minutes")


def _first_day(part: Part) -> date:
    assert part.year is not None
    return date(part.year, part.month or 1, part.day or 1)


def _exists(part: Part) -> bool:
    try:
        _first_day(part)
    except ValueError:
        return False
    return True


def _last_of_month(day: date) -> date:
    if day.month == 12:
        return day.replace(day=31)
    return day.replace(month=day.month + 1, day=1) - timedelta(days=1)


def _moved(day: date, unit: str, count: int) -> date:
    """A day so many units later; the last of the month where the month is too short for it."""
    if unit in ("day", "week"):
        return day + timedelta(days=count * (7 if unit == "week" else 1))
    months = day.year * 12 + day.month - 1 + count * (12 if unit == "year" else 1)
    first = date(months // 12, months % 12 + 1, 1)
    return first.replace(day=min(day.day, _last_of_month(first).day))


def _offset(local: datetime) -> str:
    """The offset as ISO writes it, to the minute; nothing for UTC itself."""
    offset = local.utcoffset()
    if local.tzinfo is UTC or offset is None:
        return ""
    minutes = round(offset / _MINUTE)
    hours, minute = divmod(abs(minutes), 60)
    return f"{'-' if minutes < 0 else '+'}{hours:02d}:{minute:02d}"
