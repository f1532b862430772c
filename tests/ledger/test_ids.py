"""Ids, salts and the clock."""

import re

from ledger import RandomIds, SystemClock, format_us
from ledger.ids import ID_LENGTH, SALT_LENGTH


def test_ids_are_sixteen_base32_characters_and_do_not_repeat() -> None:
    ids = {RandomIds().new_id() for _ in range(500)}

    assert len(ids) == 500
    assert all(re.fullmatch(f"[a-z2-7]{{{ID_LENGTH}}}", each) for each in ids)


def test_salts_are_128_bits_in_hexadecimal_and_do_not_repeat() -> None:
    salts = {RandomIds().new_salt() for _ in range(500)}

    assert len(salts) == 500
    assert all(re.fullmatch(f"[0-9a-f]{{{SALT_LENGTH}}}", each) for each in salts)


def test_the_system_clock_counts_microseconds_since_1970() -> None:
    one, two = SystemClock().now_us(), SystemClock().now_us()

    assert format_us(one) >= "2026"
    assert two >= one
