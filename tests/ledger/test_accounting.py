"""A missing payload is lawful where a redaction names it, and counted."""

from pathlib import Path

from msgspec.structs import replace

from ledger import Position
from ledger.accounting import RedactionAccount
from tests.support.ledgers import append_each, open_ledger
from tests.support.redactions import digests, name


def test_only_redactions_and_missing_payloads_are_accounted_for(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "l")
    append_each(ledger, "one", "two", "three")
    name(ledger, digests(ledger, [1, 3]))
    one, two, *others = ledger.read(Position.start)
    account = RedactionAccount()

    account.take([replace(one, payload=None), replace(two, payload=None), *others], "log/x", 7)

    ((place, missing),) = account.unlawful()
    assert (place, missing.seq, missing.segment, missing.offset) == (7, 2, "log/x", two.end)
    assert (account.redacted, account.unfinished) == (1, 1)
