"""Every byte of a small ledger is flipped, cut off, swapped, repeated or comes from elsewhere.

None of it goes unnoticed, none of it crashes the reader, none of it is repaired in silence.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from ledger import (
    Ledger,
    LedgerError,
    LedgerOptions,
    Position,
    RandomIds,
    TornTail,
    verify,
)
from ledger.codec import compress
from ledger.layout import Layout
from ledger.manifest import Manifest, decode_manifest, encode_manifest
from ledger.record import open_record
from ledger.segment import read_header
from tests.crash.states import folder
from tests.support.ledgers import (
    SMALL,
    CountingIds,
    QuickFiles,
    TickingClock,
    append,
    append_each,
    close_opened,
    content_of,
    open_ledger,
    open_sealer,
)

BITS: Final = 8 if os.environ.get("CRASH_STATES") else 1
"""Bits of each byte that are flipped; which one it is goes round."""

LIVE: Final = "log/00000000000000000007.jsonl"
ROLLED: Final = "log/00000000000000000005.jsonl"
GZIP: Final = "log/00000000000000000003.g0.jsonl.gz"
ZSTD: Final = "log/00000000000000000001.g0.jsonl.zst"
FILES: Final = ("FORMAT", "MANIFEST.json", ZSTD, GZIP, ROLLED, LIVE)
TEXTS: Final = [f"memory {number}" for number in range(1, 11)]


class Sample(NamedTuple):
    """A ledger, its files' bytes, its end, and the same of another ledger."""

    root: Path
    files: dict[str, bytes]
    end: Position
    foreign: dict[str, bytes]


def _make(root: Path, ids: CountingIds | RandomIds) -> Position:
    end = Position.start
    for number, options in enumerate((SMALL, LedgerOptions(segment_bytes_max=1, codec="gz"))):
        ledger = Ledger.open(
            root, clock=TickingClock(), ids=ids, options=options, files=QuickFiles()
        )
        end = append(ledger, [TEXTS[2 * number : 2 * number + 2]], known=end)
        open_sealer(ledger).run()
        ledger.close()
    rolling = open_ledger(root, options=SMALL)
    end = append(rolling, [TEXTS[4:6]], known=end)
    rolling.close()
    live = open_ledger(root)
    end = append_each(live, TEXTS[6], known=end)
    end = append(live, [TEXTS[7:9]], known=end)
    end = append_each(live, TEXTS[9], known=end)
    close_opened()
    return end


@pytest.fixture(scope="module")
def sample() -> Iterator[Sample]:
    with folder() as base:
        end = _make(base / "l", CountingIds())
        _make(base / "other", RandomIds())
        files = {name: (base / "l" / name).read_bytes() for name in FILES}
        foreign = {name: (base / "other" / name).read_bytes() for name in FILES}
        assert verify(base / "l", end).problems == []
        yield Sample(base / "l", files, end, foreign)


def _assert_noticed(sample: Sample, name: str, data: bytes, *, writes: bool) -> None:
    """Put bytes in a file's place; verify, read and, if wanted, try to write."""
    if data == sample.files[name]:
        return
    path = sample.root / name
    path.write_bytes(data)
    try:
        _assert_verify_tells(sample, path, data)
        if BITS == 8 or len(data) % 4 == 0 or sum(data[::7]) % 4 == 0:
            _assert_readers_go_on(sample)
        if writes:
            _assert_no_silent_repair(sample, path, data)
    finally:
        path.write_bytes(sample.files[name])


def _assert_verify_tells(sample: Sample, path: Path, data: bytes) -> None:
    try:
        report = verify(sample.root, sample.end)
    except LedgerError:
        pass
    else:
        assert not report.ok, "verify saw nothing"
    assert path.read_bytes() == data, "verify changed a file"
    assert not list((sample.root / "quarantine").iterdir())


def _assert_readers_go_on(sample: Sample) -> None:
    """Assert that what is read is what was written, and that only typed errors come."""
    layout = Layout(sample.root)
    try:
        ledger = Ledger.open(
            layout.root, clock=TickingClock(), ids=CountingIds(), files=QuickFiles()
        )
    except LedgerError:
        return
    read: list[str] = []
    with suppress(LedgerError):
        read.extend(map(content_of, ledger.read(Position.start)))
    assert read == TEXTS[: len(read)]
    try:
        tolerated = list(map(content_of, ledger.read_tolerant(Position.start, lambda _: None)))
    except LedgerError:
        tolerated = []
    assert set(tolerated) <= set(TEXTS)
    ledger.close()


def _assert_no_silent_repair(sample: Sample, path: Path, data: bytes) -> None:
    """Assert that a writer refuses, or cuts what may be a tear and keeps it."""
    for known in (sample.end, None):
        try:
            ledger = Ledger.open(
                sample.root, clock=TickingClock(), ids=CountingIds(), files=QuickFiles()
            )
        except LedgerError:
            return
        try:
            with ledger.lock(1) as writer:
                list(writer.catch_up(known))
        except LedgerError:
            assert path.read_bytes() == data
            assert ledger.reports == []
        else:
            left = path.read_bytes()
            kept = b"".join(
                (sample.root / report.kept).read_bytes()
                for report in ledger.reports
                if isinstance(report, TornTail)
            )
            assert data == left + kept, "bytes went without a trace"
            assert known is None or not kept or left == sample.files[LIVE]
        finally:
            ledger.close()
            path.write_bytes(data)
            shutil.rmtree(sample.root / "quarantine")
            (sample.root / "quarantine").mkdir(mode=0o700)


@pytest.mark.guarantee("G-DAMAGE-1")
@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_every_flipped_byte_is_noticed(sample: Sample, name: str) -> None:
    data = sample.files[name]
    for at in range(len(data)):
        for bit in range(at % 8, at % 8 + BITS):
            flipped = bytearray(data)
            flipped[at] ^= 1 << bit % 8
            _assert_noticed(
                sample, name, bytes(flipped), writes=name == LIVE and (BITS == 8 or at % 4 == 0)
            )


@pytest.mark.guarantee("G-DAMAGE-1")
@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_every_truncation_is_noticed(sample: Sample, name: str) -> None:
    data = sample.files[name]
    for size in range(len(data)):
        writes = name == LIVE and (BITS == 8 or size % 4 == 0)
        _assert_noticed(sample, name, data[:size], writes=writes)


def _rearranged(lines: list[bytes], others: list[bytes]) -> Iterator[bytes]:
    """Yield the lines in every wrong order of two, with each repeated, left out or replaced."""
    for at in range(len(lines)):
        yield b"".join([*lines[:at], lines[at], *lines[at:]])
        yield b"".join([*lines[:at], *lines[at + 1 :]])
        yield b"".join([*lines, lines[at]])
        for other in range(at):
            swapped = list(lines)
            swapped[at], swapped[other] = swapped[other], swapped[at]
            yield b"".join(swapped)
        for foreign in others:
            yield b"".join([*lines[:at], foreign, *lines[at + 1 :]])
            yield b"".join([*lines[:at], foreign, *lines[at:]])


def _raw(sample: Sample, name: str) -> bytes:
    """Return a segment's raw content."""
    if name in {ROLLED, LIVE}:
        return sample.files[name]
    manifest = _manifest(sample)
    (entry,) = (entry for entry in manifest.segments if name == f"log/{entry.name}")
    return entry.open(sample.files[name])


def _manifest(sample: Sample) -> Manifest:
    ledger = open_ledger(sample.root)
    manifest = decode_manifest(sample.files["MANIFEST.json"], ledger=ledger.id)
    close_opened()
    return manifest


@pytest.mark.guarantee("G-DAMAGE-1")
@pytest.mark.parametrize("name", [ROLLED, LIVE])
def test_lines_that_are_swapped_repeated_left_out_or_foreign_are_noticed(
    sample: Sample, name: str
) -> None:
    lines = sample.files[name].splitlines(keepends=True)
    others = [
        *sample.foreign[name].splitlines(keepends=True)[:3],
        *sample.files[ROLLED if name == LIVE else LIVE].splitlines(keepends=True)[:2],
    ]
    for data in _rearranged(lines, others):
        _assert_noticed(sample, name, data, writes=name == LIVE)


@pytest.mark.parametrize("name", FILES)
def test_bytes_and_files_from_elsewhere_are_noticed(sample: Sample, name: str) -> None:
    data = sample.files[name]
    for more in (b"\n", b"\0", b" ", b"{}\n", bytes(4096), data, sample.foreign[name], b"\xff"):
        _assert_noticed(sample, name, data + more, writes=name == LIVE)
    for other in {*sample.files.values(), *sample.foreign.values(), b""} - {data}:
        _assert_noticed(sample, name, other, writes=False)


def _doctored(line: bytes) -> Iterator[bytes]:
    """Yield a record with keys repeated or added, every digest of it computed anew."""
    _, head, body, _ = open_record(line)
    for old, new in (
        (b'{"seq":', b'{"seq":1,"seq":'),
        (b'"type":', b'"type":"memory_added","type":'),
        (b'{"seq":', b'{"extra":1,"seq":'),
        (b'{"seq":', b'{ "seq":'),
    ):
        yield _assembled(head.replace(old, new, 1), body)
    for old, new in (
        (b'{"salt":', b'{"salt":"00","salt":'),
        (b'"content":', b'"content":"x","content":'),
        (b'{"salt":', b'{"extra":1,"salt":'),
        (b'"content":', b'"content" :'),
    ):
        changed = body.replace(old, new, 1)
        assert changed != body
        commitment = sha256(b"\x02" + changed).hexdigest().encode()
        old_commitment = sha256(b"\x02" + body).hexdigest().encode()
        yield _assembled(head.replace(old_commitment, commitment), changed)


def _assembled(head: bytes, body: bytes) -> bytes:
    digest = sha256(b"\x00" + head).hexdigest().encode()
    return b'{"h":' + head + b',"p":' + body + b',"d":"' + digest + b'"}\n'


def test_keys_that_are_repeated_or_added_are_noticed_though_all_digests_fit(
    sample: Sample,
) -> None:
    lines = sample.files[LIVE].splitlines(keepends=True)
    assert _assembled(*open_record(lines[-1][:-1])[1:3]) == lines[-1]
    for doctored in _doctored(lines[-1][:-1]):
        data = b"".join([*lines[:-1], doctored])
        path = sample.root / LIVE
        path.write_bytes(data)
        try:
            # Without a known end: that its digest is another one must not be what tells.
            assert not verify(sample.root).ok, doctored
            assert path.read_bytes() == data
        finally:
            path.write_bytes(sample.files[LIVE])


@pytest.mark.parametrize("name", [ZSTD, GZIP])
def test_a_sealed_segment_whose_lines_are_changed_is_noticed_though_the_manifest_fits(
    sample: Sample, name: str
) -> None:
    manifest = _manifest(sample)
    (entry,) = (entry for entry in manifest.segments if name == f"log/{entry.name}")
    raw = _raw(sample, name)
    _, length = read_header(raw, ledger=manifest.ledger, first=entry.first)
    lines = [raw[:length], *raw[length:].splitlines(keepends=True)]
    others = [sample.files[LIVE].splitlines(keepends=True)[1], b"\n", b"{}\n"]
    for data in [*_rearranged(lines, others), raw + b"x", raw[:-1], b"", *_flips(raw)]:
        if data == raw:
            continue
        packed = compress(data, entry.codec)
        forged = type(entry)(
            **{
                field: getattr(entry, field)
                for field in entry.__struct_fields__
                if field not in {"raw_bytes", "file_bytes", "sha256"}
            },
            raw_bytes=len(data),
            file_bytes=len(packed),
            sha256=sha256(packed).hexdigest(),
        )
        written = encode_manifest(manifest.with_segment(forged))
        (sample.root / "MANIFEST.json").write_bytes(written)
        try:
            _assert_noticed(sample, name, packed, writes=False)
        finally:
            (sample.root / "MANIFEST.json").write_bytes(sample.files["MANIFEST.json"])


def _flips(raw: bytes) -> Iterator[bytes]:
    for at in range(0, len(raw), 1 if BITS == 8 else 7):
        yield raw[:at] + bytes([raw[at] ^ (1 << at % 8)]) + raw[at + 1 :]
