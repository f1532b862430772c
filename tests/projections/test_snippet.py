"""Snippets cut from the original text."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.snippet import ELLIPSIS, snippet
from projections.text import Term, analyze, fold, parse_query

FILLER = "Nothing of note was said in the long meeting about budgets and dates. "
CLUSTERS = ["a", "b ", "e\u0301", "👍🏽", "👩\u200d🔬", "🇩🇪", "服", "กี่", "\n", "Ё", "ﬁ", "각"]


def cut(text: str, query: str, width_chars: int = 80) -> str:
    return snippet(text, parse_query(query).terms, width_chars)


def test_a_short_text_is_returned_as_it_is() -> None:
    assert cut("  Cafe\u0301 — ЁЛКА\n", "crane") == "  Cafe\u0301 — ЁЛКА\n"


def test_a_text_without_a_match_is_shown_from_its_beginning() -> None:
    shown = cut(FILLER * 20, "crane")

    assert shown.startswith("Nothing of note")
    assert shown.endswith(ELLIPSIS)
    assert len(shown) <= 80


def test_the_match_is_shown_with_its_surroundings_and_both_ends_marked() -> None:
    shown = cut(FILLER * 20 + "The crane was inspected. " + FILLER * 20, "inspecting cranes")

    assert "The crane was inspected" in shown
    assert shown.startswith(ELLIPSIS)
    assert shown.endswith(ELLIPSIS)


def test_the_place_with_the_most_different_terms_wins() -> None:
    text = (
        "pump " * 5 + FILLER * 10 + "the boiler and its pump stood " + FILLER * 10 + "boiler " * 5
    )

    assert "boiler and its pump" in cut(text, "boiler pump")


def test_the_cut_ends_at_blanks() -> None:
    text = FILLER * 20 + "crane " + FILLER * 20
    words = set(text.split())

    shown = cut(text, "crane").strip(ELLIPSIS)

    assert set(shown.split()) <= words


def test_a_match_at_the_very_end_is_shown() -> None:
    shown = cut(FILLER * 20 + "crane", "crane")

    assert shown.endswith("crane")
    assert shown.startswith(ELLIPSIS)


def test_text_without_spaces_is_cut_around_the_match() -> None:
    text = "会议讨论下次检查时间" * 30 + "服务器恢复正常" + "会议讨论下次检查时间" * 30

    assert "服务器恢复正常" in cut(text, "服务器")
    assert "服" in cut(text, "服")


def test_the_original_letters_are_shown() -> None:
    text = FILLER * 10 + "Фёдор посадил КЛЁН у cafe\u0301 " + FILLER * 10

    assert "Фёдор посадил КЛЁН у cafe\u0301" in cut(text, "клен café")


def test_a_word_longer_than_the_snippet_is_cut() -> None:
    shown = cut("x" * 90_000, "x" * 64)

    assert len(shown) <= 80
    assert set(shown.strip(ELLIPSIS)) == {"x"}


@pytest.mark.parametrize(
    "text",
    [FILLER * 1_500, "服务器恢复正常" * 15_000, "a\u0301" * 50_000, "🇩🇪" * 50_000],
    ids=lambda text: ascii(text[:8]),
)
def test_a_long_text_is_cut_as_well(text: str) -> None:
    assert len(cut(text, "meeting 恢复 🇩🇪", 300)) <= 300


@pytest.mark.parametrize(("before_chars", "is_seen"), [(199_990, True), (200_010, False)])
def test_beyond_two_hundred_thousand_characters_nothing_is_looked_for(
    before_chars: int, *, is_seen: bool
) -> None:
    text = (FILLER * 3_000)[: before_chars - 1] + " crane " + FILLER

    assert ("crane" in cut(text, "crane")) is is_seen


@pytest.mark.parametrize(("count", "is_seen"), [(400, True), (500, False)])
def test_after_five_hundred_matches_no_better_place_is_looked_for(
    count: int, *, is_seen: bool
) -> None:
    text = "pump " * count + FILLER * 10 + "the boiler and its pump"

    assert ("boiler" in cut(text, "boiler pump")) is is_seen


@pytest.mark.parametrize("width_chars", range(16, 40))
def test_combined_characters_are_shown_whole_at_any_width(width_chars: int) -> None:
    cluster = "👩\u200d🔬"

    shown = cut(cluster * 40 + "crane" + cluster * 40, "crane", width_chars).strip(ELLIPSIS)

    assert "crane" in shown
    assert shown.replace("crane", "").replace(cluster, "") == ""


def test_a_width_that_shows_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="width_chars is 15"):
        snippet("text", (), 15)


@given(
    st.lists(st.sampled_from(CLUSTERS), max_size=120).map("".join),
    st.integers(min_value=16, max_value=90),
    st.data(),
)
def test_a_snippet_is_a_piece_of_the_text_that_splits_no_character(
    text: str, width_chars: int, data: st.DataObject
) -> None:
    found = analyze(text)
    wanted = data.draw(st.sampled_from(found)).term if found else "none"

    shown = snippet(text, [Term(wanted)], width_chars)

    assert len(shown) <= width_chars
    inner = shown.removeprefix(ELLIPSIS).removesuffix(ELLIPSIS)
    places = [at for at in range(len(text)) if text.startswith(inner, at)]
    assert len(text) <= width_chars or any(
        not splits(text, at) and not splits(text, at + len(inner)) for at in places
    )


def splits(text: str, at: int) -> bool:
    """Tell whether a place lies within one of the clusters that the text was made of."""
    if at in {0, len(text)}:
        return False
    flags = len(text[:at]) - len(text[:at].rstrip("🇩🇪"))
    return (
        unicodedata.category(text[at]).startswith("M")
        or text[at] in "\u200d🏽"
        or text[at - 1] == "\u200d"
        or (flags % 2 == 1 and text[at] in "🇩🇪")
    )


@given(st.text(max_size=300), st.text(max_size=20), st.integers(min_value=16, max_value=100))
def test_any_text_and_query_give_a_snippet(text: str, query: str, width_chars: int) -> None:
    shown = snippet(text, parse_query(query).terms, width_chars)

    assert len(shown) <= max(width_chars, 16)
    assert shown.strip(ELLIPSIS) in text or shown == text


@given(st.integers(min_value=0, max_value=60), st.integers(min_value=0, max_value=60))
def test_a_match_is_always_in_its_snippet(before: int, after: int) -> None:
    text = "lorem ipsum dolor " * before + "КРАН" + " sit amet consectetur" * after

    assert "кран" in fold(cut(text, "краны", 40))
