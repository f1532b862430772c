"""Every promise is proven by a test that cites it, and stands alike wherever it is made."""

import re

import pytest

from tests.support.guarantees import ROOT, citations, cited_in
from tests.support.promises import COMING, GROUPS, GUARANTEES

README = (ROOT / "README.md").read_text("utf-8")
PAGE = (ROOT / "docs" / "guarantees.md").read_text("utf-8")
IDS = [guarantee.id for guarantee in GUARANTEES]

ID = r"G-[A-Z]+-[1-9][0-9]*"


@pytest.mark.parametrize("promise", IDS)
def test_a_promise_has_a_test_that_cites_it(promise: str) -> None:
    assert citations().get(promise), f"no test is marked guarantee({promise!r})"


def test_no_test_cites_what_is_no_promise() -> None:
    known = {guarantee.id for guarantee in (*GUARANTEES, *COMING)}

    assert {cited: tests for cited, tests in citations().items() if cited not in known} == {}


def test_a_promise_that_is_made_waits_for_nothing() -> None:
    known = {*IDS, *(guarantee.id for guarantee in COMING)}
    proven = {guarantee.id: guarantee.awaits for guarantee in COMING if guarantee.id in citations()}

    assert proven == {}, "take `awaits` away: a test proves it"
    assert {*re.findall(ID, README + PAGE)} <= known - {guarantee.id for guarantee in COMING}


def test_a_promise_is_one_sentence_under_an_id_of_its_own() -> None:
    every = [*GUARANTEES, *COMING]
    assert len({guarantee.id for guarantee in every}) == len(every)
    assert len({guarantee.promise for guarantee in every}) == len(every)
    for guarantee in every:
        assert re.fullmatch(ID, guarantee.id)
        assert re.fullmatch(r"[A-Z`][^\n]*[^.]\.", guarantee.promise)
        assert ". " not in guarantee.promise
        assert guarantee.limit == "" or guarantee.limit.endswith(".")
    for group in GROUPS.values():
        numbers: dict[str, list[int]] = {}
        for guarantee in group:
            _, subject, number = guarantee.id.split("-")
            numbers.setdefault(subject, []).append(int(number))
        assert all(counted == sorted(counted) for counted in numbers.values())


def test_the_page_holds_every_promise_with_its_proofs() -> None:
    entries = dict(re.findall(rf"^### ({ID})\n\n(.+)\n", PAGE, re.MULTILINE))

    assert entries == {guarantee.id: guarantee.promise for guarantee in GUARANTEES}
    for proof in re.findall(r"`(tests/[\w/.]+)`", PAGE):
        assert (ROOT / proof).is_file(), proof


def test_the_readme_makes_the_promises_of_the_page_under_the_same_ids() -> None:
    entries = dict(re.findall(rf"^### ({ID})\n\n(.+)\n", PAGE, re.MULTILINE))
    rows = re.findall(rf"^\| (.+) \| \[({ID})\] \|$", README, re.MULTILINE)

    assert len(rows) >= 20
    assert [(entries[promise], promise) for _, promise in rows] == rows


def test_every_id_in_the_readme_leads_to_its_promise() -> None:
    cited = {*re.findall(ID, README)}
    anchors = {heading.lower() for heading in re.findall(rf"^### ({ID})$", PAGE, re.MULTILINE)}
    links = dict(
        re.findall(rf"^\[({ID})\]: docs/guarantees\.md#(g-[a-z0-9-]+)$", README, re.MULTILINE)
    )

    assert cited == {*links} == {*IDS}
    assert {*links.values()} == anchors


@pytest.mark.parametrize("section", ["# mnemolog", "## What it promises"])
def test_where_the_readme_promises_it_gives_the_id(section: str) -> None:
    text = README.split(f"{section}\n", 1)[1].split("\n## ")[0]
    points = re.findall(r"^- .+$", text, re.MULTILINE)

    assert re.search(rf"\[{ID}\]", text)
    assert all(re.search(rf"\[{ID}\]$", point) for point in points)


def test_a_citation_is_found_on_tests_classes_and_modules() -> None:
    source = """
pytestmark = [pytest.mark.slow, pytest.mark.guarantee("G-A-1")]

@pytest.mark.parametrize("x", [1])
@pytest.mark.guarantee("G-B-1", "G-B-2")
def test_one(x): ...

@pytest.mark.guarantee("G-C-1")
class TestMore: ...

@pytest.mark.skip
def test_two(): ...
"""
    assert [*cited_in(source)] == [
        ("pytestmark", "G-A-1"),
        ("test_one", "G-B-1"),
        ("test_one", "G-B-2"),
        ("TestMore", "G-C-1"),
    ]
    assert [*cited_in('pytestmark = pytest.mark.guarantee("G-A-1")')] == [("pytestmark", "G-A-1")]
    with pytest.raises(TypeError, match="line 1"):
        [*cited_in("@pytest.mark.guarantee(name)\ndef test_one(): ...")]
