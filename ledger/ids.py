"""Identifiers and salts: the only place that draws random numbers.

An id is 16 lower-case base32 characters (80 random bits), so it names nothing outside the store
and may stay in a record's header for ever.
"""

from __future__ import annotations

import os
from typing import Protocol

_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
_PAIRS = tuple(a + b for a in _ALPHABET for b in _ALPHABET)
"""Two characters for each 10 bits: half the steps of one character for each 5."""

ID_LENGTH = 16
SALT_LENGTH = 32


class IdSource(Protocol):
    """Whatever mints ids and salts."""

    def new_id(self) -> str:
        """Return 16 characters of [a-z2-7]."""
        ...

    def new_salt(self) -> str:
        """Return 32 hexadecimal characters (128 random bits)."""
        ...


class RandomIds:
    """Ids and salts from the system's random source."""

    def new_id(self) -> str:
        """Return 16 characters of [a-z2-7], 80 random bits."""
        number = int.from_bytes(os.urandom(10), "big")
        return "".join([_PAIRS[(number >> shift) & 1023] for shift in range(70, -1, -10)])

    def new_salt(self) -> str:
        """Return 32 hexadecimal characters, 128 random bits."""
        return os.urandom(16).hex()
