"""Instants: microseconds since 1970-01-01 UTC inside, one text form in records.

The record form is always `2026-11-30T20:29:33.123456Z`: six digits, UTC, 27 characters, so that
text order is time order. What people and models give is read by `parse_span` as a half-open span
as wide as the precision given.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone
from functools import lru_cache

from ledger.errors import InvalidInstantError

SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
DAY_US = 24 * 60 * MINUTE_US

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
MIN_US = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND
"""First instant that has a record form."""
MAX_US = (datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC) - _EPOCH) // _MICROSECOND
"""Last instant that has a record form."""

_RECORD_FORM = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
_GIVEN_FORM = re.compile(
    r"(?P<year>\d{4})(?:-(?P<month>\d\d)(?:-(?P<day>\d\d)"
    r"(?:[Tt ](?P<minute>\d\d:\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?)?"
    r" ?(?P<zone>[Zz]|[+-]\d\d(?::?\d\d)?)?)?)?)?",
    re.ASCII,
)
_ACCEPTED = (
    "expected a date (2026-11-30, or a whole month 2026-11 or year 2026) or a date-time "
    "(2026-11-30T20:29, 2026-11-30T20:29:33.123456Z, 2026-11-30T22:29+02:00), UTC unless an "
    "offset is given, years 0001 to 9999"
)


def format_us(us: int) -> str:
    """Return the record form of an instant.

    Args:
        us: microseconds since 1970-01-01 UTC, MIN_US to MAX_US.

    Raises:
        InvalidInstantError: the instant lies outside the years 0001 to 9999.
    """
    if not MIN_US <= us <= MAX_US:
        raise InvalidInstantError(f"{us} microseconds is outside the years 0001 to 9999")
    day, rest = divmod(us, DAY_US)
    second, micro = divmod(rest, SECOND_US)
    return f"{_day_text(day)}T{_second_text(second)}.{micro:06d}Z"


def stamp(t_us: int) -> str:
    """Return an instant as a part of a file name: the record form without its marks."""
    return format_us(t_us).replace(":", "").replace("-", "")


def parse_us(text: str) -> int:
    """Return the instant of a text in record form.

    Raises:
        InvalidInstantError: the text is not exactly in record form.
    """
    if _RECORD_FORM.fullmatch(text) is None:
        raise InvalidInstantError(f"not an instant in record form: {text[:40]!r}")
    try:
        return (datetime.fromisoformat(text) - _EPOCH) // _MICROSECOND
    except ValueError as error:
        raise InvalidInstantError(f"not an instant: {text!r} ({error})") from error


def parse_span(text: str) -> tuple[int, int]:
    """Return the half-open span [from, to) in microseconds that a date or date-time means.

    A date is the whole day in UTC, `YYYY-MM` the whole month and `YYYY` the whole year; a date-time
    is as wide as its last digit: a minute, a second, or a fraction down to one microsecond. Without
    an offset it is UTC.

    Raises:
        InvalidInstantError: the text is no date or date-time, or lies outside the years 0001 to
            9999 in UTC. The message says what is accepted.
    """
    match = _GIVEN_FORM.fullmatch(text.strip())
    if match is None:
        raise InvalidInstantError(f"not a date or date-time: {text[:40]!r}; {_ACCEPTED}")
    fraction = match["fraction"]
    digits = (fraction or "")[:6]
    clock = f"{match['minute'] or '00:00'}:{match['second'] or '00'}.{digits:0<6}"
    try:
        day = f"{match['year']}-{match['month'] or '01'}-{match['day'] or '01'}"
        local = datetime.fromisoformat(f"{day}T{clock}")
        instant = local.replace(tzinfo=_zone(match["zone"]))
        start = (instant - _EPOCH) // _MICROSECOND
    except (ValueError, OverflowError) as error:
        raise InvalidInstantError(
            f"not a date or date-time: {text[:40]!r} ({error}); {_ACCEPTED}"
        ) from error
    if match["day"] is None:
        width = _days(local.year, local.month if match["month"] else None) * DAY_US
    elif match["minute"] is None:
        width = DAY_US
    elif match["second"] is None:
        width = MINUTE_US
    else:
        width = 10 ** (6 - len(digits))
    if not MIN_US <= start <= MAX_US:
        raise InvalidInstantError(f"out of range: {text[:40]!r}; {_ACCEPTED}")
    return start, start + width


def _days(year: int, month: int | None) -> int:
    """The days of a month, or of a year if there is no month."""
    first = date(year, month or 1, 1)
    if month is None or month == 12:
        return (date(year, 12, 31) - first).days + 1
    return (date(year, month + 1, 1) - first).days


def _zone(text: str | None) -> timezone:
    if text is None or text in "Zz":
        return UTC
    hours = int(text[1:3])
    minutes = int(text[-2:]) if len(text) > 3 else 0
    if minutes > 59:
        raise ValueError("offset minutes must be 00 to 59")
    sign = -1 if text[0] == "-" else 1
    return timezone(sign * timedelta(hours=hours, minutes=minutes))


@lru_cache(maxsize=64)
def _day_text(day: int) -> str:
    return (_EPOCH + timedelta(days=day)).date().isoformat()


@lru_cache(maxsize=256)
def _second_text(second: int) -> str:
    return f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
