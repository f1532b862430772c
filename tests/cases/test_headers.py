"""A record's header lives for ever, so nothing that was given stands in it."""

import json
from typing import Any

import pytest

from ledger import Position
from tests.support.store import Home

SECRET = "zqcormorant"


@pytest.mark.guarantee("G-HEADER-1")
def test_no_header_holds_anything_that_was_given(home: Home) -> None:
    client = home.open(f"workspace {SECRET}", name=f"agent {SECRET}")
    session = client.session_start(SECRET, project=SECRET, meta={SECRET: SECRET}).id
    fields: dict[str, Any] = {
        "title": SECRET,
        "entity_name": SECRET,
        "scope": SECRET,
        "tags": [SECRET],
        "source": SECRET,
        "source_file": f"/home/{SECRET}/notes.md",
        "session_id": session,
        "meta": {SECRET: SECRET},
    }
    first = client.add(SECRET, **fields, idempotency_key=f"key {SECRET}")
    client.add(f"{SECRET} again", session_id=f"session {SECRET}")
    client.supersede(first.id, f"{SECRET} anew")
    client.alias("add", alias=f"alias {SECRET}", entity_name=SECRET)
    client.delete(first.id)
    client.undo(id=first.id)
    client.session_end(session, summary=SECRET)

    records = [*client.store.ledger.read(Position.start)]
    (segment,) = home.segments
    lines = segment.read_text("utf-8").splitlines()[1:]

    assert len(lines) == len(records) > 8
    payloads = 0
    for line in lines:
        header, _, rest = line.partition('},"p":')
        assert SECRET not in header
        payload = rest.rpartition(',"d":"')[0]
        assert len(json.loads(payload)["salt"]) == 32
        payloads += SECRET in payload
    assert payloads >= 8
    kept = [path for path in (home.path / "ledger").rglob("*") if path.is_file()]
    assert [path for path in kept if SECRET in path.name] == []
    assert all(SECRET not in path.read_text("utf-8") for path in kept if path.parent.name != "log")


@pytest.mark.guarantee("G-HEADER-1")
def test_a_guess_at_a_payload_cannot_be_tried_against_its_header(home: Home) -> None:
    client = home.open()
    ids = [client.add("the pin is 4711").id for _ in range(2)]

    headers = [
        record.header
        for record in client.store.ledger.read(Position.start)
        if record.header.sub in ids
    ]

    # Each payload begins with a salt of its own, which goes with it.
    assert len({header.pc for header in headers}) == len(headers) == 2
