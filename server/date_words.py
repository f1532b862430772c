"""The words and figures of dates in English and Russian, and a text as a list of them.

Only what a word is stands here; what a row of them means is in `server.when`. The vocabulary is
closed: a word outside it is a token of the kind `unknown`, which no reading accepts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

Kind = Literal[
    "iso",  # an ISO 8601 date or date-time
    "clock",  # 22:15 or 22:15:30
    "figures",  # a date in figures in any other order
    "number",  # a number of up to three digits, or one to twelve in words
    "ordinal",  # 3rd, 3-го
    "year",  # a number of four digits
    "month",
    "unit",  # of time; the value is an index into UNITS
    "day",  # today and its neighbours; the value is the distance in days
    "now",
    "utc",
    "last",
    "past",
    "this",
    "next",
    "ago",
    "since",
    "from",
    "after",
    "before",
    "until",
    "between",
    "and",
    "to",
    "dash",
    "filler",  # makes no difference
    "unknown",
]

UNITS: Final = ("minute", "hour", "day", "week", "month", "year")
"""What the values of `unit` tokens index, shortest first."""

YEAR_WORDS: Final = frozenset({"year", "год", "года", "году", "г"})
"""What may stand beside the figures of a year."""


class Token(NamedTuple):
    """One word or figure of a text.

    Attributes:
        kind: What it is.
        text: As it stood there, in lower case.
        value: The number of a number, month (1 to 12), unit or day; otherwise 0.
    """

    kind: Kind
    text: str
    value: int = 0


def tokens(text: str) -> list[Token]:
    """Split a text into what matters for dates.

    Letter case, compatibility forms, ё, commas, spaces, and words such as "the" and "in" make no
    difference.
    """
    plain = unicodedata.normalize("NFKC", text).casefold().replace("ё", "е")
    found = (_token(match) for match in _TOKEN.finditer(plain))
    return [token for token in found if token.kind != "filler"]


# An ISO date that more figures follow is none: 2023-2024 is two years, 2024-05-3 is not accepted.
_TOKEN = re.compile(
    r"""
    (?P<iso> [0-9]{4}-[0-9]{2}
        (?: -[0-9]{2}
            (?: [t\ ] [0-9]{2}:[0-9]{2} (?: :[0-9]{2} (?: [.,][0-9]{1,9} )? )?
                (?: \ ? (?: z | [+-][0-9]{2} (?: :?[0-9]{2} )? ) )?
            )?
        )?
    ) (?! [\w:] | -[0-9] )
    | (?P<clock> [0-9]{1,2}:[0-9]{2} (?: :[0-9]{2} )? ) (?! [\w:] )
    | (?P<figures> [0-9]+ / [0-9]+ (?: / [0-9]+ )? | [0-9]+ [.-] [0-9]+ [.-] [0-9]+ )
    | (?P<ordinal> [0-9]{1,2} ) (?: st | nd | rd | th | -?(?: го | ого | е | ое ) ) (?! \w )
    | (?P<figure> [0-9]+ )
    | (?P<word> [^\W\d_]+ ) \.?
    | (?P<dash> [-‐‒–—−] )
    | (?P<filler> [\s,]+ )
    | (?P<unknown> . )
    """,
    re.VERBOSE,
)


def _token(match: re.Match[str]) -> Token:
    text = match[0]
    match match.lastgroup:
        case "iso" | "clock" | "figures" | "dash" | "filler" | "unknown" as shape:
            return Token(shape, text)
        case "ordinal":
            return Token("ordinal", text, int(match["ordinal"]))
        case "figure":
            return _number(text)
        case _:
            kind, value = _WORDS.get(match["word"], ("unknown", 0))
            return Token(kind, match["word"], value)


def _number(text: str) -> Token:
    if len(text) > 4:
        return Token("unknown", text)
    return Token("year" if len(text) == 4 else "number", text, int(text))


# ---------------------------------------------------------------------------- vocabulary

_MONTHS: Final = (
    "january jan январ|ь|я|е|ю|ем янв",
    "february feb феврал|ь|я|е|ю|ем фев февр",
    "march mar март||а|е|у|ом мар",
    "april apr апрел|ь|я|е|ю|ем апр",
    "may ма|й|я|е|ю|ем",
    "june jun июн|ь|я|е|ю|ем",
    "july jul июл|ь|я|е|ю|ем",
    "august aug август||а|е|у|ом авг",
    "september sep sept сентябр|ь|я|е|ю|ем сен сент",
    "october oct октябр|ь|я|е|ю|ем окт",
    "november nov ноябр|ь|я|е|ю|ем ноя нояб",
    "december dec декабр|ь|я|е|ю|ем дек",
)
_NUMBERS: Final = (
    "one од|ин|на|но|ного|ной|ну|ному|ним|ном",
    "two дв|а|е|ух|ум|умя|ое",
    "three тр|и|ех|ем|емя|ое",
    "four четыр|е|ех|ем|ьмя четверо",
    "five пят|ь|и|ью",
    "six шест|ь|и|ью",
    "seven сем|ь|и|ью",
    "eight вос|емь|ьми|емью|ьмью",
    "nine девят|ь|и|ью",
    "ten десят|ь|и|ью",
    "eleven одиннадцат|ь|и|ью",
    "twelve двенадцат|ь|и|ью",
)
_UNIT_FORMS: Final = (
    "minute minutes минут||а|у|ы|е|ой|ам|ами|ах",
    "hour hours час||а|у|ом|е|ы|ов|ам|ами|ах",
    "day days ден|ь дн|я|ю|ем|е|и|ей|ям|ями|ях сут|ки|ок|кам|ками|ках",
    "week weeks недел|я|и|е|ю|ей|ь|ям|ями|ях",
    "month months месяц||а|у|ем|е|ы|ев|ам|ами|ах",
    "year years год||а|у|ом|е|ы|ов|ам|ами|ах лет г",
)
_DAYS: Final = {
    "позавчера": -2,
    "yesterday": -1,
    "вчера": -1,
    "today": 0,
    "сегодня": 0,
    "tomorrow": 1,
    "завтра": 1,
    "послезавтра": 2,
}
_SIGNS: Final[dict[Kind, str]] = {
    "now": "now сейчас",
    "utc": "utc gmt z",
    "last": (
        "last previous прошл|ый|ая|ое|ые|ого|ой|ую|ому|ым|ом|ых|ыми "
        "предыдущ|ий|ая|ее|ие|его|ей|ую|ему|им|ем|их|ими"
    ),
    "past": "past последн|ий|яя|ее|ие|его|ей|юю|ему|им|ем|их|ими",
    "this": (
        "this current эт|от|а|о|и|ого|ой|у|ому|им|ом|их "
        "текущ|ий|ая|ее|ие|его|ей|ую|ему|им|ем|их|ими"
    ),
    "next": "next следующ|ий|ая|ее|ие|его|ей|ую|ему|им|ем|их|ими будущ|ий|ая|ее|его|ей|ую|ем|ем",
    "ago": "ago назад",
    "since": "since",
    "from": "from с со",
    "after": "after после",
    "before": "before до",
    "until": "until till through по",
    "between": "between между",
    "and": "and и",
    "to": "to",
    "filler": "a an at during for in of on over the within в во за на начиная течение тому",
}


def _forms(words: str) -> Iterator[str]:
    """Yield each form of words written as `form` or as `stem|ending|ending`."""
    for word in words.split():
        stem, *endings = word.split("|")
        yield from (stem + ending for ending in endings or [""])


def _words() -> dict[str, tuple[Kind, int]]:
    counted: tuple[tuple[Kind, tuple[str, ...], int], ...] = (
        ("month", _MONTHS, 1),
        ("number", _NUMBERS, 1),
        ("unit", _UNIT_FORMS, 0),
    )
    words: dict[str, tuple[Kind, int]] = {word: ("day", value) for word, value in _DAYS.items()}
    for kind, rows, first in counted:
        for value, row in enumerate(rows, first):
            words.update(dict.fromkeys(_forms(row), (kind, value)))
    for kind, row in _SIGNS.items():
        words.update(dict.fromkeys(_forms(row), (kind, 0)))
    return words


_WORDS: Final = _words()
