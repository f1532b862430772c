"""The append protocol: what cannot be applied is not appended."""

from pathlib import Path

import pytest

from ledger import MemoryAdded, Record
from projections.projector import Projector
from tests.support.store import Client, Home, live_digest, replayed_digest


@pytest.mark.guarantee("G-APPLY-1")
def test_an_event_that_cannot_be_applied_is_refused_and_not_in_the_ledger(
    home: Home, client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = client.add("the heron is applied").id
    before = home.segments[0].read_bytes()
    apply = Projector.apply

    def stumble(projector: Projector, record: Record) -> None:
        apply(projector, record)
        if isinstance(record.payload, MemoryAdded) and "stumble" in record.payload.memory.content:
            raise ArithmeticError("a fault of the projector")

    monkeypatch.setattr(Projector, "apply", stumble)
    with pytest.raises(ArithmeticError, match="a fault of the projector"):
        client.add("the heron makes it stumble")
    assert home.segments[0].read_bytes() == before
    assert client.found("heron") == [first]

    # Of those that would share a write and a sync, the others are stored.
    texts = ("the heron goes on", "the heron will stumble", "the heron stays")
    with pytest.raises(ArithmeticError, match="a fault of the projector"):
        client.add_many(*({"content": text, "layer": "semantic"} for text in texts))
    stored = {client.content(memory_id) for memory_id in client.found("heron")}
    assert stored == {"the heron is applied", texts[0], texts[2]}
    assert live_digest(client).text() == replayed_digest(client, tmp_path / "r.db").text()
    assert home.verify().ok
