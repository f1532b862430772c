"""The kinds of characters: what decides which characters make a word together.

The classes of characters are those of the running Python's Unicode version.
"""

import unicodedata

_KINDS_ENTRIES_MAX = 50_000

# Scripts written without spaces, pairs of whose characters are terms.
_UNSPACED_RANGES = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1100, 0x11FF),  # Hangul
    (0x1780, 0x17FF),  # Khmer
    (0x2E80, 0x2FDF),  # Han radicals
    (0x3005, 0x3007),  # Han
    (0x3021, 0x3029),
    (0x3031, 0x303C),
    (0x3041, 0x30FF),  # kana
    (0x3105, 0x318F),  # Bopomofo, Hangul
    (0x31A0, 0x31BF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xA960, 0xA97F),  # Hangul
    (0xA9E0, 0xA9FF),  # Myanmar
    (0xAA60, 0xAA7F),
    (0xAC00, 0xD7FF),  # Hangul
    (0xF900, 0xFAFF),  # Han
    (0x1AFF0, 0x1B16F),  # kana
    (0x20000, 0x3FFFF),  # Han
)
_SCRIPTS = {
    "latin": (
        (0x0061, 0x02AF),
        (0x1D00, 0x1D25),
        (0x1E00, 0x1EFF),
        (0x2C60, 0x2C7F),
        (0xA722, 0xA7FF),
        (0xAB30, 0xAB64),
    ),
    "cyrillic": ((0x0400, 0x052F), (0x1C80, 0x1C8F), (0x2DE0, 0x2DFF), (0xA640, 0xA69F)),
    "greek": ((0x0370, 0x03FF), (0x1F00, 0x1FFF)),
    "armenian": ((0x0531, 0x058F),),
    "arabic": ((0x0620, 0x06FF), (0x0750, 0x077F), (0x0870, 0x08FF)),
    "devanagari": ((0x0900, 0x097F), (0xA8E0, 0xA8FF)),
    "tamil": ((0x0B80, 0x0BFF),),
}
# One letter a kind of character: what a folded text is translated to before words are looked for.
LETTER_OF_SCRIPT = dict(zip(_SCRIPTS, "lcgyadt", strict=True))
OTHER, UNSPACED, NUMBER, _MARK, _SYMBOL, _FLAG, _NONE = "ounmsf "


class _Kinds(dict[int, str]):
    """The kind of each folded character, by code point: a table that `str.translate` takes."""

    def __missing__(self, code: int) -> str:
        kind = _kind(code)
        if len(self) < _KINDS_ENTRIES_MAX:
            self[code] = kind
        return kind


KINDS = _Kinds()


def _kind(code: int) -> str:
    category = unicodedata.category(chr(code))
    match category[0]:
        case "N":
            number = category == "Nd" or not _within(code, _UNSPACED_RANGES)
            return NUMBER if number else UNSPACED
        case "M":
            return UNSPACED if _within(code, _UNSPACED_RANGES) else _MARK
        case "L":
            return _kind_of_letter(code)
        case _:
            return _kind_of_symbol(code, category)


def _kind_of_letter(code: int) -> str:
    if 0x02B9 <= code <= 0x02FF:
        # Letters that stand for apostrophes and accents separate, as the ASCII apostrophe does.
        return _NONE
    if _within(code, _UNSPACED_RANGES):
        return UNSPACED
    for script, ranges in _SCRIPTS.items():
        if _within(code, ranges):
            return LETTER_OF_SCRIPT[script]
    return OTHER


def _kind_of_symbol(code: int, category: str) -> str:
    if 0x1F1E6 <= code <= 0x1F1FF:
        return _FLAG
    if 0x2500 <= code <= 0x259F or code in {0xFFFC, 0xFFFD}:
        return _NONE
    # A newer Unicode than this Python's has more emoji and more Han.
    new = category == "Cn"
    if category == "So" or 0x1F3FB <= code <= 0x1F3FF or (new and 0x1F000 <= code <= 0x1FAFF):
        return _SYMBOL
    if new and 0x20000 <= code < 0x3FFFE:
        return UNSPACED
    return _NONE


def _within(code: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(first <= code <= last for first, last in ranges)
