"""Lines: the bytes that stand in the ledger, and no others."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ledger import LedgerDamagedError, MemoryAdded, MemoryState, Position
from ledger.lines import line_of
from tests.support.ledgers import append_each, live_path, open_ledger


def test_the_line_of_every_record_is_the_one_in_the_ledger(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "ledger")
    append_each(ledger, "one", "zwei\n\u2028", "три 🚀", '"p":null')

    lines = [line_of(record) for record in ledger.read(Position.start)]

    raw = live_path(ledger).read_bytes()
    assert lines
    assert raw.endswith(b"".join(lines))
    assert raw.count(b"\n") == 1 + len(lines)


def test_a_record_without_its_payload_is_the_line_that_a_redaction_leaves(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "ledger")
    append_each(ledger, "secret")
    (record,) = ledger.read(Position.start)

    line = line_of(msgspec.structs.replace(record, payload=None))

    assert b'"p":null,"d":"' in line
    assert b"secret" not in line
    assert record.digest.encode() in line


@pytest.mark.parametrize("part", ["digest", "payload"])
def test_a_record_that_no_writer_wrote_so_is_damage_and_names_itself(
    part: str, tmp_path: Path
) -> None:
    ledger = open_ledger(tmp_path / "ledger")
    append_each(ledger, "one")
    (record,) = ledger.read(Position.start)
    other = MemoryAdded(salt="1" * 32, memory=MemoryState(content="other", layer="semantic"))
    changed = (
        msgspec.structs.replace(record, digest="0" * 64)
        if part == "digest"
        else msgspec.structs.replace(record, payload=other)
    )

    with pytest.raises(LedgerDamagedError) as caught:
        line_of(changed)

    assert caught.value.seq == 1
