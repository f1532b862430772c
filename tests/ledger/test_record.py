"""Records: bytes as written, seen alike by writer and reader."""

import math
from hashlib import sha256
from typing import Any

import pytest

from ledger import (
    RECORD_BYTES_MAX,
    AliasAdded,
    AliasRemoved,
    AliasState,
    Event,
    Header,
    InvalidPayloadError,
    MemoryAdded,
    MemoryState,
    Position,
    Record,
    RecordTooLargeError,
    SessionEnded,
    SessionRestored,
    SessionStarted,
    SessionState,
    SessionWithdrawn,
    UnknownEventError,
    WorkspaceCreated,
)
from ledger.record import (
    EVENTS,
    BadRecordError,
    decode_payload,
    encode_line,
    encode_payload,
    event_name,
    is_canonical,
    open_record,
)

PINNED = (
    b'{"h":{"seq":6,"g":5,"b":5,"n":2,"t":"2026-11-30T20:29:33.123456Z",'
    b'"type":"workspace_created","ws":"a","sub":"a","act":"b",'
    b'"pc":"73fe8c91cbe7f4d3675b60016413b07afd001280d88b0a03fe9e95438d05e205",'
    b'"prev":"0000000000000000000000000000000000000000000000000000000000000000"},'
    b'"p":{"salt":"00","name":"x"},'
    b'"d":"7e63d53dfc9b41eb18ba03c9788dd639d8ef9af62c62cf9eb275adcc20e3ecf6"}'
)


def header(**fields: object) -> Header:
    """Return a header with defaults for what is not given."""
    made: dict[str, Any] = {
        "seq": 6,
        "t": "2026-11-30T20:29:33.123456Z",
        "type": "workspace_created",
        "ws": "a",
        "sub": "a",
        "act": "b",
        "pc": "",
        "prev": "0" * 64,
    }
    return Header(**(made | fields))


def line_of(payload: WorkspaceCreated | MemoryAdded, **fields: object) -> bytes:
    body, commitment, _ = encode_payload(payload)
    name, version = event_name(payload)
    return encode_line(header(pc=commitment, type=name, v=version, **fields), body)[0][:-1]


def test_a_record_is_three_raw_parts() -> None:
    line = line_of(WorkspaceCreated(salt="00", name="x"))

    head, head_raw, body, digest = open_record(line)

    assert line == b'{"h":' + head_raw + b',"p":' + body + b',"d":"' + digest.encode() + b'"}'
    assert head.group == head.batch == 6
    assert decode_payload(head, body) == WorkspaceCreated(salt="00", name="x")
    assert is_canonical(head, head_raw, decode_payload(head, body), body)


def test_the_bytes_of_format_one_do_not_change() -> None:
    line = line_of(WorkspaceCreated(salt="00", name="x"), g=5, b=5, n=2)

    assert line == PINNED


def test_every_flipped_bit_of_a_record_is_noticed() -> None:
    line = line_of(WorkspaceCreated(salt="00", name="x"))
    for at in range(len(line)):
        for bit in range(8):
            bad = line[:at] + bytes([line[at] ^ (1 << bit)]) + line[at + 1 :]
            with pytest.raises(BadRecordError):
                open_record(bad)


def test_a_redacted_payload_leaves_header_and_digest_valid() -> None:
    line = line_of(WorkspaceCreated(salt="00", name="x"))
    start, end = line.index(b',"p":') + 5, line.rindex(b',"d":')

    head, head_raw, body, digest = open_record(line[:start] + b"null" + line[end:])

    assert (body, digest) == (b"null", line[-66:-2].decode())
    assert decode_payload(head, body) is None
    assert is_canonical(head, head_raw, None, body)


@pytest.mark.parametrize(
    "line", [b"", b"{}", b'{"h":{},"p":', b'{"h":{},"p":null,"d":"' + b"0" * 64 + b'"}']
)
def test_what_is_no_record_is_refused(line: bytes) -> None:
    with pytest.raises(BadRecordError):
        open_record(line)


def test_a_header_with_an_unknown_field_is_refused() -> None:
    head = b'{"seq":1,"zz":2}'
    digest = sha256(b"\x00" + head).hexdigest().encode()

    with pytest.raises(BadRecordError, match="header"):
        open_record(b'{"h":' + head + b',"p":null,"d":"' + digest + b'"}')


def test_an_unknown_type_or_version_is_named() -> None:
    for name, version in (("dream_dreamt", 1), ("memory_added", 99)):
        with pytest.raises(UnknownEventError) as caught:
            decode_payload(header(type=name, v=version), b"{}")
        assert (caught.value.name, caught.value.version, caught.value.seq) == (name, version, 6)


def test_a_payload_of_another_type_is_refused() -> None:
    with pytest.raises(BadRecordError, match="payload"):
        decode_payload(header(), b'{"salt":"0","nickname":"x"}')


def test_numbers_are_stored_as_they_are_read_back() -> None:
    state = MemoryState(
        content="x", layer="semantic", confidence=1, meta={"b": 1, "a": [2.0, None]}
    )

    body, _, seen = encode_payload(MemoryAdded(salt="0", memory=state))

    assert b'"confidence":1.0' in body
    assert seen == MemoryAdded(salt="0", memory=state)
    assert body.startswith(b'{"salt":"0",')


@pytest.mark.parametrize(
    "meta", [{"x": math.nan}, {"x": math.inf}, {"x": "\ud800"}, {"x": (1, 2)}, {"x": object()}]
)
def test_a_payload_that_json_would_change_is_refused(meta: dict[str, Any]) -> None:
    state = MemoryState(content="x", layer="semantic", meta=meta)

    with pytest.raises(InvalidPayloadError):
        encode_payload(MemoryAdded(salt="0", memory=state))


def test_a_record_over_the_limit_is_refused_with_both_sizes() -> None:
    with pytest.raises(RecordTooLargeError) as caught:
        line_of(WorkspaceCreated(salt="0", name="x" * RECORD_BYTES_MAX))

    assert caught.value.limit == RECORD_BYTES_MAX < caught.value.size
    with pytest.raises(BadRecordError):
        open_record(b'{"h":{},"p":' + b"x" * RECORD_BYTES_MAX + b',"d":"' + b"0" * 64 + b'"}')


NEW_IN_FORMAT_ONE: list[tuple[Event, bytes]] = [
    (
        SessionStarted(salt="0", session=SessionState(client="c", started_at="t", meta={"k": 1})),
        b'{"salt":"0","session":{"client":"c","started_at":"t","meta":{"k":1}}}',
    ),
    (
        SessionEnded(
            salt="0",
            session=SessionState(
                client="c", started_at="t", project="p", ended_at="u", summary="s"
            ),
            request="r",
        ),
        (
            b'{"salt":"0","session":{"client":"c","started_at":"t","project":"p","ended_at":"u",'
            b'"summary":"s"},"request":"r"}'
        ),
    ),
    (
        SessionRestored(salt="0", session=SessionState(client="c", started_at="t")),
        b'{"salt":"0","session":{"client":"c","started_at":"t"}}',
    ),
    (SessionWithdrawn(salt="0", request="r"), b'{"salt":"0","request":"r"}'),
    (
        AliasAdded(salt="0", alias=AliasState(name="n", entity="e")),
        b'{"salt":"0","alias":{"name":"n","entity":"e"}}',
    ),
    (AliasRemoved(salt="0"), b'{"salt":"0"}'),
]


@pytest.mark.parametrize(("payload", "body"), NEW_IN_FORMAT_ONE, ids=lambda one: type(one).__name__)
def test_the_payloads_of_sessions_and_aliases_do_not_change(payload: Event, body: bytes) -> None:
    name, version = event_name(payload)

    assert encode_payload(payload)[0] == body
    assert decode_payload(header(type=name, v=version), body) == payload
    with pytest.raises(BadRecordError):
        decode_payload(header(type=name, v=version), body[:-1] + b',"zz":1}')


def test_stored_names_are_fixed() -> None:
    assert sorted(EVENTS) == [
        ("agent_registered", 1),
        ("alias_added", 1),
        ("alias_removed", 1),
        ("memory_added", 1),
        ("memory_deleted", 1),
        ("memory_redacted", 1),
        ("memory_relinked", 1),
        ("memory_restored", 1),
        ("memory_updated", 1),
        ("redaction_completed", 1),
        ("redaction_explained", 1),
        ("session_ended", 1),
        ("session_restored", 1),
        ("session_started", 1),
        ("session_withdrawn", 1),
        ("workspace_created", 1),
    ]
    assert all(event_name_of == event_name_of.lower() for event_name_of, _ in EVENTS)


def test_the_position_of_a_record_is_the_point_after_it() -> None:
    record = Record(header(), None, "d" * 64, 1, 900)

    assert record.seq == 6
    assert record.position == Position(6, "d" * 64, 1, 900, 1_796_070_573_123_456)
    assert Position.start == Position(0, "", 1, 0, 0)
