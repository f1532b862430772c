"""The analysis that the text index and queries share."""

import re
from itertools import pairwise

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections import characters
from projections import text as text_module
from projections.text import (
    QUERY_PHRASES_MAX,
    QUERY_TERMS_MAX,
    WORD_CHARS_MAX,
    Languages,
    Phrase,
    Query,
    Term,
    analyze,
    fold,
    occurrences,
    parse_query,
    terms,
)

# Characters that meet every branch: cases, marks, joiners, quotes, scripts, symbols, controls.
TRICKY = (
    "aZ9 _-'\"«»“”„「」ёЁЕе́̈ӥйßİıſǅﬁ²½Ⅷ①ΐΣς"
    "服务器々〇ー。，ｱﾞﾟ가각ㅏᅠㅤกี่้ລໍາကခ្ម"
    "🚀👍🏽👩\u200d🔬🇩🇪1\ufe0f\u20e3©─█�\u0000\u200b\u200c\xad\ufeff\u0301\u0323\u0345אَ١क्षிʼ"
)
TEXTS = st.one_of(
    st.text(max_size=80),
    st.text(alphabet=TRICKY, max_size=60),
    st.text(alphabet=st.characters(codec="utf-8"), max_size=40),
    st.lists(st.text(alphabet=TRICKY, max_size=8), max_size=8).map(" ".join),
)


def index_of(*texts: str) -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE VIRTUAL TABLE docs USING fts5(body, tokenize='ascii')")
    connection.execute("CREATE VIRTUAL TABLE seen USING fts5vocab(docs, 'instance')")
    for text in texts:
        connection.execute("INSERT INTO docs(body) VALUES(?)", (terms(text),))
    return connection


def finds(text: str, query: str) -> bool:
    """Tell whether a query finds a text, stop words aside, as a search for all terms does."""
    expression = parse_query(query).match_all()
    rows = index_of(text).execute("SELECT 1 FROM docs WHERE docs MATCH ?", (expression,))
    return bool(expression) and rows.fetchone() is not None


# ------------------------------------------------------------------------- query text (cases Q)

HYPHENS = "Run the pre-flight-check before order ZX-40417 ships"
COLONS = "status: blocked, see ns::core at 9:45"
OPERATORS = "The AND gate beside the NEAR field coil is NOT fitted; ANDROID build kept"
SIGNS = "C++ build v3.8.14 at 70/140 MB/s, five o'clock, ping qa@example.test"


@pytest.mark.parametrize(
    ("text", "query"),
    [
        *[(HYPHENS, query) for query in ("pre-flight-check", "ZX-40417", "-40417")],
        *[(COLONS, query) for query in ("status: blocked", "ns::core", "9:45", "blocked:9")],
        *[(OPERATORS, query) for query in ("AND", "NOT fitted", "gate OR", "NEAR(gate")],
        *[
            (OPERATORS, query)
            for query in ('"AND gate"', "ANDROID", 'near "gate', "fields NOT coil")
        ],
        *[(SIGNS, query) for query in ("C++", "v3.8.14", "70/140", "MB/s", "o'clock")],
        *[
            (SIGNS, query)
            for query in ("qa@example.test", "^build", "build*", "(ping", "{build}:c")
        ],
        ("under_score and kebab-case", "score"),
        ("path/to/file.py:12", "file.py"),
    ],
)
def test_punctuation_in_a_query_is_no_syntax(text: str, query: str) -> None:
    assert finds(text, query)


@pytest.mark.parametrize("query", ["content:blocked", "rowid:1", "docs MATCH blocked"])
def test_a_column_name_in_a_query_is_a_plain_word(query: str) -> None:
    assert len(parse_query(query).terms) >= 2
    assert not finds(COLONS, query)


@pytest.mark.parametrize(
    "query", ["x,y", "(draft", "{a b}:c", "a^b", "gate AND latch", '"gate AND"']
)
def test_any_query_is_a_valid_expression(query: str) -> None:
    assert not finds(SIGNS, query)


def test_numbers_with_a_slash_are_not_one_number() -> None:
    assert not finds("rate 70140", "70/140")
    assert terms("70/140 3,5 9:45 007") == "70 140 3 5 9 45 007"


@pytest.mark.parametrize(
    "query",
    [
        "",
        "   ",
        "!!!",
        "?",
        "*",
        '"" ""',
        "\u200b",
        "—",
        "\u200d\ufe0f",
        "\x00\x01",
        "«»",
        "... - _",
        "\u0301",
    ],
)
def test_a_query_without_words_has_no_terms(query: str) -> None:
    parsed = parse_query(query)

    assert parsed == Query(())
    assert not parsed
    assert parsed.match_all() == ""


# ------------------------------------------------------------------------- phrases and stop words


@pytest.mark.parametrize(
    "quoted",
    ['"{}"', "“{}”", "„{}“", "„{}”", "«{}»", "»{}«", "‹{}›", "「{}」", "『{}』", "＂{}＂"],
)
def test_balanced_quotes_of_every_style_make_a_phrase(quoted: str) -> None:
    query = parse_query("see " + quoted.format("the AND gate") + " here")

    assert query.phrases == (Phrase(("the", "and", "gate")),)
    assert query.phrases[0].match == '"the and gate"'
    assert [term.text for term in query.terms] == ["see", "gate", "here"]


@pytest.mark.parametrize(
    "text", ['latch "gate', "rock 'n' roll", "it’s “open", '5" disk', "«a", '""']
)
def test_unbalanced_quotes_and_apostrophes_make_no_phrase(text: str) -> None:
    assert parse_query(text).phrases == ()


def test_a_phrase_keeps_the_order_of_words() -> None:
    assert finds(OPERATORS, '"AND gate"')
    assert not finds(OPERATORS, '"gate AND"')


def test_a_phrase_may_end_within_a_run_without_spaces() -> None:
    text = "他说周二上线build-77后服务器恢复正常"

    assert finds(text, '"上线 build-77"')
    assert finds(text, '"build-77 后"')
    assert finds(text, '"后服务"')
    assert finds(text, '"服"')
    assert not finds(text, '"服务 build"')


def test_stop_words_are_left_out_unless_they_are_all_there_is() -> None:
    assert [term.text for term in parse_query("why is the crane here?").terms] == ["crane", "here"]
    assert [term.text for term in parse_query("что это за кран").terms] == ["кран"]
    assert [term.text for term in parse_query("to be or not to be").terms] == [
        "to",
        "be",
        "or",
        "not",
    ]
    assert [term.text for term in parse_query("её").terms] == ["е"]


def test_terms_keep_their_order_and_come_once() -> None:
    query = parse_query("Pump pumps PUMP boiler pump")

    assert query.terms == (Term("pump"), Term("boiler"))
    assert query.dropped == 0


def test_a_query_keeps_a_bounded_number_of_terms_and_phrases_and_says_so() -> None:
    words = " ".join(f"w{number}" for number in range(QUERY_TERMS_MAX + 5))
    quotes = " ".join(f'"w{number}"' for number in range(QUERY_PHRASES_MAX + 2))

    assert len(parse_query(words).terms) == QUERY_TERMS_MAX
    assert parse_query(words).dropped == 5
    assert len(parse_query(quotes).phrases) == QUERY_PHRASES_MAX
    assert parse_query(quotes).dropped == 2
    assert len(parse_query(f'"{words}"').phrases[0].terms) == QUERY_TERMS_MAX


# ------------------------------------------------------------------------- languages (cases U)

CHINESE = "周二上线build-77后服务器恢复正常"


@pytest.mark.parametrize(
    "query", ["服务器", "恢复", "服务", "正常", "build-77", "build", "服", "常", CHINESE]
)
def test_any_part_of_text_without_spaces_is_found(query: str) -> None:
    assert finds(CHINESE, query)


@pytest.mark.parametrize("query", ["数据", "务复", "数", "build-78"])
def test_other_characters_do_not_find_text_without_spaces(query: str) -> None:
    assert not finds(CHINESE, query)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("東京タワーへ行きました", "タワー"),
        ("ﾀﾜｰとｶﾞｽ", "ガス"),
        ("데이터베이스를 복구했다", "베이스"),
        ("ระบบกลับมาทำงานปกติ", "ทำงาน"),
        ("ການປະຊຸມມື້ນີ້", "ປະຊຸມ"),
        ("ប្រព័ន្ធដំណើរការ", "ដំណើរ"),
        ("စနစ်ပြန်ကောင်းပြီ", "ကောင်း"),
    ],
)
def test_every_script_without_spaces_is_found_by_its_parts(text: str, query: str) -> None:
    assert finds(text, query)


def test_one_character_of_an_unspaced_script_is_a_prefix_term() -> None:
    query = parse_query("服")

    assert query.terms == (Term("服", is_prefix=True),)
    assert query.terms[0].match == '"服" *'
    assert query.terms[0].matches("服务")
    assert not query.terms[0].matches("务")


def test_a_run_without_spaces_gives_pairs_and_its_last_character() -> None:
    assert terms("服务器") == "服务 务器 器"
    assert parse_query("服务器").terms == (Term("服务"), Term("务器"))
    assert Term("服务").match == '"服务"'


@pytest.mark.parametrize("query", ["Федор", "клен", "Матрена", "ФЁДОР", "фе\u0308дор"])
def test_yo_and_ye_are_one_letter(query: str) -> None:
    assert finds("Фёдор посадил клён у дома Матрёны", query)
    assert finds("Артем ушел", "Артём")


NETWORK = "Утром проверили настройки сети на новых станциях"


@pytest.mark.parametrize("query", ["настройка", "настройку", "станция", "СЕТЬ", "новая станция"])
def test_russian_inflection_and_case_do_not_matter(query: str) -> None:
    assert finds(NETWORK, query)
    assert not finds("плохое настроение", "настройка")


def test_english_inflection_and_case_do_not_matter() -> None:
    assert finds("The pumps were REPLACED", "replacing pump")


DECOMPOSED = "cafe\u0301 in Ko\u0308ln"


@pytest.mark.parametrize("query", ["caf\xe9", "K\xf6ln", "CAFÉ", "cafe\u0301", "ｃａｆé"])
def test_composed_and_decomposed_letters_are_the_same(query: str) -> None:
    assert finds(DECOMPOSED, query)
    assert finds("caf\xe9 in K\xf6ln", query)
    assert fold(DECOMPOSED) == fold("café in Köln")


def test_diacritics_other_than_yo_count() -> None:
    assert not finds("café", "cafe")
    assert not finds("йод", "иод")


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("ship it 🚀 before noon", "🚀"),
        ("done✅now", "✅ now"),
        ("made by 👩\u200d🔬", "🔬"),
        ("good 👍🏽", "👍"),
        ("step 1\ufe0f\u20e3", "1"),
        ("love ❤", "❤\ufe0f"),
        ("in 🇩🇪🇫🇷", "🇫🇷"),
        ("newer than this Python \U0001faff", "\U0001faff"),
    ],
)
def test_symbols_are_found(text: str, query: str) -> None:
    assert finds(text, query)


def test_flags_are_pairs_of_letters() -> None:
    assert terms("🇩🇪🇫🇷") == "🇩🇪 🇫🇷"
    assert not finds("🇩🇪", "🇪🇩")


def test_scripts_are_split_and_digits_join_either_side() -> None:
    assert terms("VPNом v3д 3д2 3模2型x") == "vpn ом v3 д 3д2 3 模 2 型 x"


@pytest.mark.parametrize("invisible", ["\xad", "\u200c", "\u200d", "\u2060", "\ufeff", "\ufe0f"])
def test_invisible_characters_do_not_split_words(invisible: str) -> None:
    assert terms(f"co{invisible}operate") == terms("cooperate")


@pytest.mark.parametrize(
    "separator", ["\0", "\x1f", "\u200b", "\u2028", "\xa0", "—", "─", "ʼ", "\ufffd"]
)
def test_controls_blanks_and_dashes_split_words(separator: str) -> None:
    assert terms(f"alpha{separator}omega") == "alpha omega"


def test_a_frame_of_box_characters_makes_no_terms() -> None:
    assert terms("┌──────┐\n│ crane │\n└──────┘ ███") == "crane"


def test_other_languages_can_be_chosen() -> None:
    german = Languages(latin="german", greek="greek")

    assert terms("Häuser βιβλία", german) == "haus βιβλ"
    assert terms("Häuser βιβλία") == "häuser βιβλία"
    assert terms("running", Languages(latin="")) == "running"
    assert parse_query("the house", german).terms == (Term("the"), Term("hous"))


def test_an_unknown_language_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="latin: no stemmer 'klingon'"):
        Languages(latin="klingon")


# ------------------------------------------------------------------------- bounds


def test_a_very_long_word_is_cut_and_the_whole_word_is_found() -> None:
    word = "qwertyuiop" * 9_000
    pieces = terms(f"see {word} end").split()[1:-1]

    assert {len(piece) for piece in pieces[:-1]} == {WORD_CHARS_MAX}
    assert "".join(pieces) == word
    assert finds(f"see {word} end", word[: 10 * WORD_CHARS_MAX])


@pytest.mark.parametrize(
    "text",
    [
        "a" + "\u0301\u0323" * 25_000,
        "e" + "\uff9e\u0301" * 25_000,
        "е" + "\u0308\u0323" * 25_000,
        "\u1100" + "\u1161" * 50_000,
        "“" * 50_000,
        "🚀" * 50_000,
        "aя" * 25_000,
        "服" * 50_000,
    ],
    ids=lambda text: ascii(text[:3]),
)
def test_no_text_takes_more_than_linear_work(text: str) -> None:
    joined = terms(text)

    assert joined == " ".join(token.term for token in analyze(text))
    assert parse_query(text).dropped >= 0


def test_a_run_of_marks_keeps_the_first_thirty() -> None:
    folded = fold("q" + "\u0323" * 1_000 + "🚀" * 40)

    assert folded == "q" + "\u0323" * 30 + "🚀" * 40


def test_the_memos_are_bounded_and_change_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_module, "_MEMO_ENTRIES_MAX", 2)
    monkeypatch.setattr(characters, "_KINDS_ENTRIES_MAX", 0)
    languages = Languages(latin="english", tamil="tamil")
    words = "pumps boilers cranes ᚠᚢ \U00010300"

    joined = terms(words, languages)

    assert joined == "pump boiler crane ᚠᚢ \U00010300"
    assert joined == terms(words, languages)


# ------------------------------------------------------------------------- properties


@given(TEXTS)
def test_the_fast_terms_are_the_analyzed_ones(text: str) -> None:
    assert terms(text) == " ".join(token.term for token in analyze(text))
    assert terms(text) == " ".join(token.term for token in analyze(text))


@given(st.text(alphabet=TRICKY.replace(" ", ""), min_size=33, max_size=200))
def test_the_fast_terms_of_long_runs_are_the_analyzed_ones(text: str) -> None:
    assert terms(text) == " ".join(token.term for token in analyze(text))


@given(TEXTS)
def test_offsets_are_valid_and_grow(text: str) -> None:
    tokens = analyze(text)

    assert all(0 <= token.start < token.end <= len(text) for token in tokens)
    assert all(one.start <= two.start and one.end <= two.end for one, two in pairwise(tokens))


@given(TEXTS)
def test_a_token_is_what_its_span_of_the_text_folds_to(text: str) -> None:
    languages = Languages(latin="", cyrillic="")

    for token in analyze(text, languages):
        assert token.term in fold(text[token.start : token.end])


@given(TEXTS)
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(TEXTS)
def test_terms_hold_no_ascii_but_letters_and_digits(text: str) -> None:
    for term in terms(text).split(" "):
        assert re.fullmatch(r"[0-9a-z\x80-\U0010ffff]*", term)
        assert not any(char.isspace() for char in term)


@given(TEXTS)
def test_fts5_sees_exactly_our_terms(text: str) -> None:
    rows = index_of(text).execute('SELECT term FROM seen ORDER BY "offset"')

    assert [term for (term,) in rows] == terms(text).split()


@pytest.mark.guarantee("G-QUERY-1")
@given(TEXTS)
def test_every_text_finds_itself_and_no_query_is_an_error(text: str) -> None:
    query = parse_query(text)
    connection = index_of(text)

    parts = [phrase.match for phrase in query.phrases] + [term.match for term in query.terms]
    for part in parts:
        found = connection.execute("SELECT 1 FROM docs WHERE docs MATCH ?", (part,))
        assert found.fetchone()
    assert bool(query) == bool(terms(text))


@given(TEXTS, st.data())
def test_occurrences_are_the_matching_tokens(text: str, data: st.DataObject) -> None:
    tokens = analyze(text)
    some = data.draw(st.lists(st.sampled_from(tokens), max_size=3)) if tokens else []
    wanted = [Term(token.term, is_prefix=data.draw(st.booleans())) for token in some]

    expected = [token for token in tokens if any(term.matches(token.term) for term in wanted)]

    assert occurrences(text, wanted, limit=10_000) == expected
    assert bool(occurrences(text, wanted, limit=1)) == bool(expected)
