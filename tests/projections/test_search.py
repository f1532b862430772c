"""Search at sizes where not every match may be scored, on a small store with a small limit."""

import pytest

from projections import search
from tests.support.store import Client


def test_where_any_term_would_score_too_many_rows_pairs_and_rare_terms_are_scored(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        client.add(f"common filler {number}")
    rare = client.add("a rarity alone").id
    pair = client.add("common usual pair").id
    usual = client.add("usual only").id
    everything = set(client.found("common usual rarity absent"))
    assert {rare, pair, usual} < everything

    monkeypatch.setattr(search, "SCORED_ROWS_MAX", 3)
    found = client.found("common usual rarity absent")

    assert {rare, pair} <= set(found) < everything
    assert found[0] in {rare, pair}


def test_a_lone_frequent_term_is_scored_whatever_the_limit(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = {client.add(f"common filler {number}").id for number in range(12)}
    monkeypatch.setattr(search, "SCORED_ROWS_MAX", 3)

    assert set(client.found("common absent")) == ids
