"""Lines that carry their own digest."""

from hashlib import sha256

import pytest
from msgspec import Struct

from ledger.envelope import EnvelopeError, open_line, open_loose, seal_line


class Thing(Struct, frozen=True, forbid_unknown_fields=True):
    a: int


def raw_line(inner: bytes) -> bytes:
    digest = sha256(b"\x01" + inner).hexdigest().encode()
    return b'{"thing":' + inner + b',"d":"' + digest + b'"}\n'


def test_a_line_is_its_two_parts() -> None:
    assert seal_line(b"thing", Thing(a=1)) == raw_line(b'{"a":1}')
    assert open_line(b"thing", raw_line(b'{"a":1}'), Thing) == Thing(a=1)
    assert open_loose(b"thing", raw_line(b'{"a":1,"b":[2]}')) == {"a": 1, "b": [2]}


def test_every_flipped_bit_is_noticed() -> None:
    line = seal_line(b"thing", Thing(a=1))
    for at in range(len(line)):
        for bit in range(8):
            bad = line[:at] + bytes([line[at] ^ (1 << bit)]) + line[at + 1 :]
            with pytest.raises(EnvelopeError):
                open_line(b"thing", bad, Thing)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        raw_line(b'{"a":1}')[:-1],
        raw_line(b'{"a":1}') + b"\n",
        raw_line(b'{"a":1 }'),
        raw_line(b'{"a":1,"a":1}'),
        raw_line(b'{"a":"x"}'),
        raw_line(b'{"b":1}'),
        raw_line(b"nothing"),
        raw_line(b'{"a":1}').replace(b"thing", b"other"),
    ],
)
def test_what_is_not_exactly_a_line_is_refused(line: bytes) -> None:
    with pytest.raises(EnvelopeError):
        open_line(b"thing", line, Thing)


def test_a_loose_line_must_hold_an_object() -> None:
    with pytest.raises(EnvelopeError):
        open_loose(b"thing", raw_line(b"[1]"))
