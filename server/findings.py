"""What an examination of a store from outside finds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

Level = Literal["ok", "note", "warning", "error"]
"""note: worth knowing, and nothing to do; warning: something to do; error: the store, or a part of
it, does not work."""

LEVELS: Final[tuple[Level, ...]] = ("ok", "note", "warning", "error")


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one check found."""

    check: str
    level: Level
    text: str
    remedy: str = ""
    """What to do; empty where nothing is to be done."""

    @classmethod
    def ok(cls, check: str, text: str) -> Finding:
        """Say that all is well."""
        return cls(check=check, level="ok", text=text)

    @classmethod
    def note(cls, check: str, text: str) -> Finding:
        """Say what is worth knowing."""
        return cls(check=check, level="note", text=text)

    @classmethod
    def warning(cls, check: str, text: str, remedy: str) -> Finding:
        """Say what is wrong though the store works."""
        return cls(check=check, level="warning", text=text, remedy=remedy)

    @classmethod
    def error(cls, check: str, text: str, remedy: str) -> Finding:
        """Say what does not work."""
        return cls(check=check, level="error", text=text, remedy=remedy)


class Examination(msgspec.Struct, frozen=True, kw_only=True):
    """What all checks found."""

    home: str
    level: Level
    """The gravest of the findings."""
    looked: bool
    """False if the ledger could not be looked at."""
    findings: tuple[Finding, ...]

    @classmethod
    def of(cls, home: str, found: Sequence[Finding], *, looked: bool) -> Examination:
        """Sum up what was found of a home."""
        return cls(
            home=home,
            level=max((each.level for each in found), key=LEVELS.index, default="ok"),
            looked=looked,
            findings=tuple(found),
        )
