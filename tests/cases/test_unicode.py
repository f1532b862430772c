"""Group U, Unicode and languages."""

import json

import pytest

from server.errors import IdempotencyConflictError
from tests.cases.ways import CommandHost, Run, Way
from tests.support.store import Client, Home

CHINESE = "周二上线build-77后服务器恢复正常"
RUSSIAN = "Фёдор посадил клён у дома Матрёны"
DECOMPOSED = "cafe\u0301 in Ko\u0308ln"
COMPOSED = "caf\u00e9 in K\u00f6ln"


@pytest.mark.parametrize("query", ["服务器", "恢复", "服务", "正常", "build-77", "build"])
def test_u1_any_part_of_unspaced_text_is_found(client: Client, query: str) -> None:
    stored = client.add(CHINESE).id
    assert client.found(query) == [stored]
    assert client.found(query, mode="exact") == [stored]
    assert client.found("数据") == []


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("東京タワーへ行った", "タワー"),
        ("회의는 내일로 미뤄졌다", "내일"),
        ("ตลาดน้ำเปิดวันเสาร์", "ตลาด"),
        ("ﾊﾝｶｸ文字", "ハンカク"),
        ("ＦＵＬＬ ｗｉｄｔｈ", "full width"),
    ],
)
def test_u1_other_unspaced_and_wide_scripts_are_found(
    client: Client, text: str, query: str
) -> None:
    stored = client.add(text).id
    assert client.found(query) == [stored]
    assert client.content(stored) == text


@pytest.mark.parametrize("query", ["Федор", "клен", "Матрена", "ФЁДОР", "клёна"])
def test_u2_yo_and_ye_are_one_letter_to_a_search(client: Client, query: str) -> None:
    stored = client.add(RUSSIAN).id
    assert client.found(query) == [stored]
    assert client.content(stored) == RUSSIAN


def test_u2_a_query_with_yo_finds_text_without(client: Client) -> None:
    stored = client.add("Артем ушел").id
    assert client.found("Артём") == [stored]
    assert client.found("ушёл", mode="exact") == [stored]


@pytest.mark.parametrize("query", ["настройка", "настройку", "станция", "СЕТЬ"])
def test_u3_inflected_and_upper_case_cyrillic_is_found(client: Client, query: str) -> None:
    stored = client.add("Утром проверили настройки сети на новых станциях").id
    client.add("хорошее настроение с утра")
    assert client.found(query) == [stored]


@pytest.mark.parametrize(("stored", "asked"), [(DECOMPOSED, COMPOSED), (COMPOSED, DECOMPOSED)])
def test_u4_composed_and_decomposed_text_match_and_come_back_as_stored(
    client: Client, stored: str, asked: str
) -> None:
    memory_id = client.add(stored).id
    for word in asked.split():
        if word != "in":
            assert client.found(word) == [memory_id]
            assert client.found(word, mode="exact") == [memory_id]
    assert client.content(memory_id) == stored
    assert client.search(asked).memories[0].content == stored


@pytest.mark.parametrize(("stored", "added"), [(DECOMPOSED, COMPOSED), (COMPOSED, DECOMPOSED)])
def test_u4_both_forms_are_told_to_say_the_same_and_neither_is_merged(
    client: Client, stored: str, added: str
) -> None:
    first = client.add(stored, entity_name="cafe").id
    second = client.add(added, entity_name="cafe")
    (conflict,) = second.potential_conflicts
    assert (conflict.id, conflict.similarity) == (first, 1.0)
    again = client.add(added, entity_name="cafe")
    assert {found.similarity for found in again.potential_conflicts} == {1.0}
    assert {*client.found(stored)} == {first, second.id, again.id}
    client.add(stored, idempotency_key="k1")
    with client.refused(IdempotencyConflictError):
        client.add(added, idempotency_key="k1")


def test_u6_a_nul_hides_neither_end_of_a_text(home: Home, client: Client) -> None:
    short = client.add("alpha\x00omega").id
    long = client.add("left " + "\x00" * 9_000 + " right").id
    other = client.add("an unrelated memory").id
    for seen in home.lives(client):
        assert seen.found("omega") == seen.found("alpha") == [short]
        assert seen.found("right") == [long]
        assert seen.found("unrelated") == [other]
        assert seen.found("omega", mode="exact") == [short]
        assert seen.found("\x00omega", mode="exact") == [short]
        assert seen.content(long) == "left " + "\x00" * 9_000 + " right"


TEXTS = (
    "\ufeffwith a mark",
    "a\r\nb\rc\n",
    " leading and trailing ",
    "a\u2028b\u2029",
    "\x1b[31mred\x1b[0m",
    "👩‍👩‍👧‍👦 family",
    "🇫🇷🇩🇪",
    "e" + "\u0301" * 100,
    "\ufffd",
    "\uffff",
    "\U0010ffff",
    "\u202edesrever",
    '{"h":{},"p":{},"d":"x"}',
    "\\u0000",
    "a\x7f\x80",
    "nul\x00nul",
)


@pytest.mark.guarantee("G-TEXT-1")
def test_text_comes_back_character_by_character(home: Home, client: Client) -> None:
    stored = {
        client.add(
            text, title=text, entity_name=text, tags=[text[:100]], meta={text: [text]}
        ).id: text
        for text in TEXTS
    }
    for seen in home.lives(client):
        for memory_id, text in stored.items():
            memory = seen.inspect(memory_id).memory
            assert memory is not None
            assert memory.content == memory.title == memory.entity_name == text
            assert memory.tags == (text[:100],)
            assert memory.meta == {text: [text]}


@pytest.mark.guarantee("G-TEXT-1")
def test_u6_text_comes_back_character_by_character_over_every_way(way: Way) -> None:
    for text in ("left " + "\x00" * 9_000 + " right", "a\x7f\x80\u2028b\n", "\x1b[31mred"):
        stored = way.add(text)
        assert way.get(stored)["content"] == text
        assert way.found(text.rpartition("\x00")[2], mode="exact") == [stored]
    way.add("an unrelated memory")
    assert len(way.found("right")) == len(way.found("left")) == len(way.found("unrelated")) == 1


def test_u5_bytes_that_are_no_text_are_replaced_on_the_command_line_and_said(run: Run) -> None:
    finished = run("add", "--json", "--", "shipped \udc9f today")
    added = json.loads(finished.out)
    assert "U+FFFD" in added["notes"][0]
    found = json.loads(run("search", "--json", "--", "shipped").out)
    assert found["memories"][0]["content"] == "shipped \ufffd today"


def test_u5_half_an_emoji_in_a_batch_on_the_command_line_stops_no_other(
    host: CommandHost, home: Home
) -> None:
    lines = b"".join(
        b'{"content":"%s","layer":"semantic"}\n' % content
        for content in (b"crate one", rb"crate two \udcb4 here", b"bytes \xff", b"crate three")
    )
    finished = host.run(home.path, "add", "--batch", "-", "--json", given=lines)
    first, half, broken, last = json.loads(finished.out)["results"]
    assert finished.status == 3
    for refused, line in ((half, 2), (broken, 3)):
        assert refused["error"]["details"] == {"line": line}
    found = json.loads(host.run(home.path, "list", "--order", "oldest", "--json").out)["memories"]
    assert [memory["content"] for memory in found] == ["crate one", "crate three"]
    assert [memory["id"] for memory in found] == [first["added"]["id"], last["added"]["id"]]
