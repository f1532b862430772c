"""A completion: the values that an argument may be finished with while somebody types it."""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from server.tool import Call

COMPLETION_VALUES_MAX: Final = 100
"""Values in one completion; the protocol allows no more."""


class Completion(Struct, frozen=True, kw_only=True):
    """The first values that fit.

    Attributes:
        values: At most COMPLETION_VALUES_MAX of them, in their order.
        total: How many fit.
    """

    values: tuple[str, ...] = ()
    total: int = 0


Complete = Callable[[str, Call], Completion]
"""Finds what begins with a text, letter case aside; raises UseCaseError if it cannot now."""


def among(choices: Sequence[str]) -> Complete:
    """Complete one of a few fixed values."""

    def complete(prefix: str, _: Call) -> Completion:
        found = tuple(choice for choice in choices if choice.startswith(prefix.casefold()))
        return Completion(values=found, total=len(found))

    return complete
