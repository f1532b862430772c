"""Group Q, query text and ranking: whatever people type is words, never syntax."""

import pytest

from server.errors import InvalidArgumentsError
from tests.support.store import Client, Home

PREFLIGHT = "Run the pre-flight-check before order ZX-40417 ships"
STATUS = "status: blocked, see ns::core at 9:45"
OPERATORS = "The AND gate beside the NEAR field coil is NOT fitted; ANDROID build kept"
SIGNS = "C++ build v3.8.14 at 70/140 MB/s, five o'clock, ping qa@example.test"

NASTY = (
    "-40417", "content:blocked", "rowid:1", 'latch "gate', "NEAR(gate", "NEAR(a b, 5)", "x,y",
    "^build", "*", "build*", "(draft", "{a b}:c", "a^b", "AND", "OR OR", "NOT", '"', '""', "\\",
    "'; DROP TABLE memories; --", "%", "_", "[x]", "a AND", "AND b", "+", "- -", "content : x",
    '"a" NEAR "b"', "memories_fts MATCH 'x'", "\x00", "gate\x00", "\ufeffgate", "a" * 10_000,
    "w " * 5_000, '"gate ' * 1_000, "?1", ":name", "@p", "$v", "\u202egate", "𝔤ate",
)  # fmt: skip


@pytest.mark.parametrize(
    "query", ["pre-flight-check", "ZX-40417", "-40417", "zx 40417", "check pre"]
)
def test_q1_a_hyphen_in_a_query_is_no_operator(client: Client, query: str) -> None:
    stored = client.add(PREFLIGHT).id
    assert client.found(query) == [stored]


@pytest.mark.parametrize("query", ["status: blocked", "ns::core", "9:45"])
def test_q2_a_colon_in_a_query_is_no_column_filter(client: Client, query: str) -> None:
    stored = client.add(STATUS).id
    assert client.found(query) == [stored]


@pytest.mark.parametrize("column", ["content", "title", "entity", "rowid", "rank", "memories_fts"])
def test_q2_no_column_can_be_aimed_at(client: Client, column: str) -> None:
    stored = client.add(STATUS, title="harbour").id
    other = client.add(f"a note that says {column}").id
    # Both are plain words: the one memory holds the first, the other one the second.
    assert {*client.found(f"{column}:blocked")} == {stored, other}
    assert client.found(f"{column}:nonesuch") == [other]


@pytest.mark.parametrize(
    "query",
    ['latch "gate', "AND", "NOT fitted", "gate OR", "NEAR(gate", '"AND gate"', "ANDROID", "near"],
)
def test_q3_operator_words_and_quotes_are_ordinary_text(client: Client, query: str) -> None:
    stored = client.add(OPERATORS).id
    assert client.found(query) == [stored]


def test_q3_a_balanced_phrase_keeps_its_order(client: Client) -> None:
    in_order = client.add("the coil field gate").id
    client.add("the gate field coil")
    # The words alone still find both; the phrase comes first.
    assert client.found('"coil field gate"')[0] == in_order
    client.add("coil field and gate", importance=1)
    assert client.found('"coil field gate"', min_importance=0.5)[0] == in_order


@pytest.mark.parametrize(
    "query", ["C++", "v3.8.14", "70/140", "MB/s", "o'clock", "qa@example.test"]
)
def test_q4_signs_inside_words_find_what_holds_them(client: Client, query: str) -> None:
    stored = client.add(SIGNS).id
    glued = client.add("70140 in one piece").id
    assert client.found(query) == [stored]
    assert client.found("70140") == [glued]


@pytest.mark.guarantee("G-QUERY-1")
@pytest.mark.parametrize("mode", ["fts", "exact"])
def test_q4_no_text_makes_a_query_an_error(client: Client, mode: str) -> None:
    signs = client.add(SIGNS).id
    operators = client.add(OPERATORS).id
    for query in NASTY:
        assert {*client.found(query, mode=mode)} <= {signs, operators}, query
    assert client.found("AND", mode=mode) == [operators]


@pytest.mark.parametrize("mode", ["fts", "exact"])
def test_q7_a_query_without_words_finds_nothing_and_says_why(client: Client, mode: str) -> None:
    client.add("ship it 🚀 before noon")
    for query in ("*", "!!!", "?", "\u200b", "\u200d", "—", '"" ""', "\ufe0f", "\u3164"):
        result = client.search(query, mode=mode)
        assert result.memories == (), query
        if mode == "fts":
            assert result.notes


@pytest.mark.parametrize("mode", ["fts", "exact"])
def test_q7_a_blank_query_is_refused_by_name(client: Client, mode: str) -> None:
    client.add("ship it 🚀 before noon")
    for query in ("", "   ", "\n\t", "\u3000"):
        with client.refused(InvalidArgumentsError, "query"):
            client.search(query, mode=mode)


@pytest.mark.parametrize("query", ["🚀", "🚀 lunch", "ship 🚀"])
def test_q7_an_emoji_is_found(client: Client, query: str) -> None:
    stored = client.add("ship it 🚀 before noon").id
    client.add("a quiet afternoon")
    assert client.found(query) == [stored]
    assert client.found("🚀", mode="exact") == [stored]


def test_q5_a_sentence_finds_what_holds_some_of_its_words(client: Client) -> None:
    boiler = client.add("the boiler pump was replaced on Friday").id
    tenants = client.add("tenants pay heating by floor").id
    client.add("nothing of the kind")
    found = client.found("why did the tenants complain about the boiler pump last winter?")
    assert found == [boiler, tenants]


def test_q5_more_of_the_rarer_words_rank_higher(client: Client) -> None:
    for number in range(30):
        client.add(f"tenants meet on day {number}")
    rare = client.add("the boiler pump is loud").id
    found = client.found("do the tenants know the boiler pump?")
    assert found[0] == rare
    assert len(found) == 31


def test_q6_a_short_strong_match_comes_before_long_weak_ones(client: Client) -> None:
    filler = "words about harbours and ships and many other things that fill a page "
    for number in range(50):
        client.add(f"{filler * 3} tidal {number}")
    strong = client.add("tidal gauge buoy").id
    scores = [(memory.id, memory.score) for memory in client.pages("tidal gauge buoy")]
    assert len(scores) == 51
    assert scores[0][0] == strong
    assert scores[0][1] > 2 * scores[1][1]
    single = client.pages("tidal")
    assert single[0].id == strong
    assert single[0].score > single[1].score


def test_q6_a_title_counts_more_than_an_entity_and_that_more_than_content(client: Client) -> None:
    content = client.add("harbour mole north side", title="Notes", entity_name="Port").id
    entity = client.add("mole north side notes", title="Notes", entity_name="harbour").id
    title = client.add("mole north side notes", title="harbour", entity_name="Port").id
    assert client.found("harbour") == [title, entity, content]


@pytest.mark.guarantee("G-SPACE-1")
def test_a_search_never_returns_another_workspaces_memory(home: Home, client: Client) -> None:
    mine = client.add("the heron nests here").id
    other = home.open("other")
    theirs = other.add("the heron nests there").id
    for mode in ("fts", "exact"):
        assert client.found("heron", mode=mode) == [mine]
        assert other.found("heron", mode=mode) == [theirs]
