"""The forms that values of settings have: how each is written, read and described."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

Value = str | int | float | bool | Path | None
"""What a setting can be set to; None where it is not set."""


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """What the values of a setting look like.

    Attributes:
        accepted: What is accepted, in words.
        parse: Reads a text; raises ValueError if it is not accepted.
        types: Types that the value may have in the file.
        accepted_in_file: What is accepted there, if it is written in another way.
    """

    accepted: str
    parse: Callable[[str], Value]
    types: tuple[type, ...] = (str,)
    accepted_in_file: str = ""

    def parse_in_file(self, value: object) -> Value:
        """Read a value of the file.

        Raises:
            ValueError: it is not accepted.

        """
        # By the very type: a bool would pass for an int.
        if type(value) not in self.types:
            raise ValueError(value)
        assert isinstance(value, str | int | float)
        return self.parse(written(value))


def written(value: Value) -> str:
    """Write a value the way the environment has it; empty for None."""
    match value:
        case None:
            return ""
        case bool():
            return "on" if value else "off"
        case float():
            return str(value).removesuffix(".0")
        case _:
            return str(value)


def path_form() -> Form:
    """Return the form of a path; `~` is expanded and a relative path is made absolute."""

    def parse(text: str) -> Path:
        if "\0" in text:
            raise ValueError(text)
        text.encode()
        # Resolved, so that a relative path means one place for the life of the process and two
        # names of one store are one store.
        try:
            return Path(text).expanduser().resolve()
        except RuntimeError as error:
            raise ValueError(text) from error

    return Form(accepted="a path in UTF-8; `~` must be a user that exists", parse=parse)


def name_form(characters_max: int) -> Form:
    """Return the form of a name, which is not blank."""

    def parse(text: str) -> str:
        if not text.strip() or len(text) > characters_max:
            raise ValueError(text)
        text.encode()
        return text

    return Form(accepted=f"a name of 1 to {characters_max} characters", parse=parse)


def choice_form(choices: tuple[str, ...]) -> Form:
    """Return the form of one of these words."""

    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(text)
        return text

    return Form(accepted=", ".join(choices), parse=parse)


def switch_form() -> Form:
    """Return the form of what is on or off."""
    choice = choice_form(("on", "off"))
    return Form(
        accepted=choice.accepted,
        accepted_in_file="true, false",
        parse=lambda text: choice.parse(text) == "on",
        types=(bool,),
    )


def number_form(lowest: float, highest: float, *, whole: bool) -> Form:
    """Return the form of a number in a range, both ends included."""

    def parse(text: str) -> int | float:
        value = int(text) if whole else float(text)
        if not lowest <= value <= highest:
            raise ValueError(text)
        return value

    return Form(
        accepted=f"a {'whole ' if whole else ''}number from {_figure(lowest)} to "
        f"{_figure(highest)}",
        parse=parse,
        types=(int,) if whole else (int, float),
    )


def time_zone_form() -> Form:
    """Return the form of a time zone's IANA name."""

    def parse(text: str) -> str:
        if text != "UTC":  # which needs no database
            import zoneinfo  # noqa: PLC0415 - most starts do not need it

            try:
                zoneinfo.ZoneInfo(text)
            except (KeyError, OSError) as error:
                raise ValueError(text) from error
        return text

    return Form(
        accepted="UTC, or a name this machine's time zone database has, such as Europe/Berlin",
        parse=parse,
    )


def _figure(value: float) -> str:
    return f"{value:,}".removesuffix(".0")
