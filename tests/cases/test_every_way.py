"""Groups Q, U, C, D, S over every way in: the inputs that matter most of each case.

What needs a moved clock, many inputs or the tables themselves is asked of the program alone, in the
modules of the groups.
"""

import pytest

from tests.cases.ways import Way

BLANKS = ("", "  \n\t ")

QUERIES: dict[str, tuple[str, ...]] = {
    "Run the pre-flight-check before order ZX-40417 ships": (
        "pre-flight-check", "ZX-40417", "-40417",
    ),
    "status: blocked, see ns::core at 9:45": ("status: blocked", "ns::core", "9:45"),
    "The AND gate beside the NEAR field coil is NOT fitted; ANDROID build kept": (
        'latch "gate', "AND", "NOT fitted", "gate OR", "NEAR(gate", '"AND gate"', "ANDROID",
    ),
    "C++ v3.8.14 moved 70/140 MB/s, five o'clock, ping qa@example.test": (
        "C++", "v3.8.14", "70/140", "MB/s", "o'clock", "qa@example.test",
    ),
    "周二上线后服务器恢复正常": ("服务器", "恢复", "正常"),
    "Фёдор посадил клён у дома Матрёны": ("Федор", "клен", "Матрена", "ФЁДОР"),
    "Утром проверили настройки сети на новых станциях": ("настройку", "станция", "СЕТЬ"),
    "cafe\u0301 in Ko\u0308ln": ("caf\u00e9", "K\u00f6ln"),
    "ship it 🚀 before noon": ("🚀",),
}  # fmt: skip

ABSENT = ("x,y", "^nonesuch", "nonesuch*", "(nonesuch", "{a1 b1}:c1")
WORDLESS = ("*", "!!!", "?", '"" ""', "\u200b", "—")


# ---------------------------------------------------------------------------- Q and U


def test_q1_to_q4_and_u1_to_u4_whatever_is_typed_finds_what_it_names(way: Way) -> None:
    ids = _added(way, *QUERIES)
    queries = {query: ids[text] for text, queries in QUERIES.items() for query in queries}
    found = way.found_each(queries)
    assert {query: memories[0] for query, memories in found.items()} == queries
    memories = way.ask("get", ids=[*ids.values()])["memories"]
    assert [memory["content"] for memory in memories] == [*QUERIES]


def test_q2_and_q7_signs_alone_find_nothing_with_a_reason_and_blanks_are_refused(way: Way) -> None:
    ids = _added(way, *QUERIES)
    assert way.found_each(ABSENT) == {query: [] for query in ABSENT}
    for query, answer in way.search_each(WORDLESS).items():
        assert answer["memories"] == [], query
        assert answer["notes"] == ["the query holds no word, number or symbol to search for"]
    status = ids["status: blocked, see ns::core at 9:45"]
    assert way.found_each(["content:blocked", "rowid:1"]) == {
        "content:blocked": [status],
        "rowid:1": [],
    }
    for blank in ("", "   "):
        refusal = way.refusal("search", query=blank)
        assert refusal.code == "invalid_arguments"
        assert "query" in refusal.message.lower()


def test_q5_and_q6_some_of_the_words_are_enough_and_more_of_the_rarer_ones_rank_higher(
    way: Way,
) -> None:
    boiler, tenants, filler, short = _added(
        way,
        "the boiler pump was replaced on Friday",
        "tenants pay heating by floor",
        f"tidal {'words about harbours and ships that fill a page ' * 4}",
        "tidal gauge buoy",
    ).values()
    assert way.found("why did the tenants complain about the boiler pump last winter?") == [
        boiler,
        tenants,
    ]
    strong, weak = way.search("tidal gauge buoy")["memories"]
    assert (strong["id"], weak["id"]) == (short, filler)
    assert strong["score"] > weak["score"]


# ---------------------------------------------------------------------------- C


@pytest.mark.parametrize("blank", BLANKS)
def test_c1_blank_content_is_refused_alike_everywhere_and_leaves_no_trace(
    way: Way, blank: str
) -> None:
    refusal = way.refusal("add", content=blank, layer="semantic")
    assert (refusal.code, refusal.details["field"]) == ("invalid_arguments", "content")
    kept = way.add("kept")
    successor = way.refusal("update", id=kept, supersede=True, new_content=" ")
    assert (successor.code, successor.details["field"]) == ("invalid_arguments", "new_content")
    batch = way.ask("add_many", memories=[_memory("ok one"), _memory(blank), _memory("ok two")])
    first, second, third = batch["results"]
    assert second["error"]["code"] == "invalid_arguments"
    assert second["error"]["message"].lower() == refusal.message.lower()
    assert (batch["added_count"], batch["refused_count"]) == (2, 1)
    assert {*way.found("ok")} == {first["added"]["id"], third["added"]["id"]}
    assert way.total() == 3


def test_c2_too_long_a_text_is_refused_with_the_limit(way: Way) -> None:
    text = "word " * 400_000 + "the heron password hint is teal"
    refusal = way.refusal("add", content=text, layer="semantic")
    assert refusal.code == "invalid_arguments"
    assert "100000" in refusal.message.replace(",", "")
    end = " the heron password hint is teal"
    longest = way.add(("The quay was quiet. " * 5_000)[: 100_000 - len(end)] + end)
    (found,) = way.search("heron teal hint")["memories"]
    assert (found["id"], len(found["content"])) == (longest, 100_000)
    assert found["content"].endswith(end)


def test_c3_one_oversized_item_of_a_batch_disturbs_no_other(way: Way) -> None:
    run = "QUJDREVGR0hJSktMTU5PUFFS" * 3_750
    batch = way.ask(
        "add_many", memories=[_memory("ok one"), _memory(run), _memory("ok two"), _memory(run * 2)]
    )
    first, big, second, refused = batch["results"]
    assert "100000" in refused["error"]["message"].replace(",", "")
    assert {*way.found("ok")} == {first["added"]["id"], second["added"]["id"]}
    assert way.get(big["added"]["id"])["content"] == run
    assert way.total() == 3


def test_c4_a_key_stores_once_and_nothing_else_is_merged(way: Way) -> None:
    request = {"content": "gate code rule", "layer": "procedural"}
    first, again = (way.ask("add", **request, idempotency_key="k1") for _ in range(2))
    assert (first["created"], again["created"]) == (True, False)
    assert (again["id"], again["position"]) == (first["id"], first["position"])
    assert again["notes"]
    conflict = way.refusal("add", **request, scope="beta", idempotency_key="k1")
    assert conflict.code == "idempotency_conflict"
    others = {way.add("gate code rule"), way.add("gate code rule", scope="beta")}
    assert {*way.found("gate")} == {first["id"], *others}


def test_c5_what_was_deleted_can_be_stored_again(way: Way) -> None:
    gone = way.add("gate code rule")
    way.delete(gone)
    live = way.add("gate code rule")
    assert way.found("gate") == way.listed() == [live]
    assert way.get(gone) == {}


# ---------------------------------------------------------------------------- D


def test_d1_a_time_in_words_is_the_range_it_says_and_nonsense_is_never_all_of_it(way: Way) -> None:
    old, week, fresh = (
        way.add("swan seen", event_at=when) for when in ("400 days ago", "8 days ago", "2 days ago")
    )
    assert way.found("swan", when="last 3 days") == way.listed(when="last 3 days") == [fresh]
    assert {*way.found("swan", when="past nine days")} == {week, fresh}
    assert old not in way.found("swan", when="last week")
    assert "`last week` was understood as" in way.search("swan", when="last week")["notes"][0]
    for tool, more in (("search", {"query": "swan"}), ("list", {})):
        refusal = way.refusal(tool, when="last blursday", **more)
        assert refusal.code == "invalid_arguments"
        assert "last blursday" in refusal.message
    for field in ("date_from", "date_to"):
        assert (
            "last blursday"
            in way.refusal("export", format="json", **{field: "last blursday"}).message
        )


def test_d3_to_d5_a_date_keeps_its_precision_or_is_refused_by_name(way: Way) -> None:
    kept = {
        "2019": "2019",
        "March 2021": "2021-03",
        "3 August 2021 22:15": "2021-08-03T22:15",
        "2025-06-01T10:00:00+02:00": "2025-06-01T10:00:00+02:00",
        "2025-06-01": "2025-06-01",
    }
    batch = way.ask("add_many", memories=[{**_memory("swan"), "event_at": date} for date in kept])
    ids = [result["added"]["id"] for result in batch["results"]]
    memories = {memory["id"]: memory for memory in way.ask("get", ids=ids)["memories"]}
    assert [memories[memory_id]["event_at"] for memory_id in ids] == [*kept.values()]
    assert way.found("swan", when="2021-03-17") == [ids[1]]
    refused = (
        "03/04/2025", "1718000000123", "253402300800", "9999-12-31T23:59:59-01:00",
        "0001-01-01T00:00:00+14:00", "-1",
    )  # fmt: skip
    batch = way.ask("add_many", memories=[{**_memory("x"), "event_at": date} for date in refused])
    for date, result in zip(refused, batch["results"], strict=True):
        assert result["error"]["code"] == "invalid_arguments"
        assert date in result["error"]["message"]
    assert way.total() == len(kept)


def test_d6_an_older_note_of_the_same_file_does_not_become_the_current_one(way: Way) -> None:
    birch = way.add("Ana works at Birch Ltd", event_at="2026-01", source_file="ana.md")
    alder = way.ask(
        "add",
        **_memory("Ana works at Alder Ltd"),
        event_at="2024-05",
        source_file="ana.md",
    )
    assert alder["superseded_by"] == birch
    assert way.found("Ana works") == way.listed() == [birch]
    assert way.found("Ana works", as_of="2024-06") == [alder["id"]]


# ---------------------------------------------------------------------------- S


def test_s1_and_s2_loops_and_missing_targets_are_refused_and_change_nothing(way: Way) -> None:
    first = way.add("the depot is in Quarry Lane")
    middle = way.supersede(first, "the depot is in Orchard Row")
    head = way.supersede(middle, "the depot is in Station Road")
    refusal = way.refusal("update", id=first, supersede=True, new_content="closes a loop")
    assert (refusal.code, refusal.details["superseded_by"]) == ("superseded", middle)
    gone = way.add("gone")
    way.delete(gone)
    calls: tuple[tuple[str, dict[str, object]], ...] = (
        ("update", {"supersede": True, "new_content": "orphan text"}),
        ("delete", {}),
    )
    for tool, arguments in calls:
        for memory_id in ("no-such-id", gone):
            refusal = way.refusal(tool, id=memory_id, **arguments)
            assert refusal.code == "not_found"
            assert "nothing was changed" in refusal.message
    assert way.found("depot") == way.listed() == [head]
    assert way.total() == 3


def test_s3_what_expires_is_marked_where_it_is_asked_for(way: Way) -> None:
    kept = way.add("the heron password is ochre")
    gone = way.add("the heron password is teal", ttl_days=1e-9)
    assert way.found("heron") == way.listed() == [kept]
    assert {*way.listed(include_expired=True)} == {kept, gone}
    assert way.get(gone)["status"] == "expired"
    assert "teal" not in way.export("jsonl")
    assert '"status":"expired"' in way.export("jsonl", include_expired=True)
    assert way.ask("health")["expired_count"] == 1


def test_s4_and_s5_deleting_a_scope_leaves_the_others_and_nothing_else_is_all(way: Way) -> None:
    scopes = ["alpha"] * 3 + ["beta"] * 5
    way.ask("add_many", memories=[_memory("zqcanary note", scope=scope) for scope in scopes])
    wrong: list[dict[str, object]] = [{}, {"scope": None}, {"scpe": "alpha"}, {"layers": []}]
    for arguments in wrong:
        refusal = way.refusal("delete_many", **arguments)
        assert refusal.code in ("invalid_arguments", "usage")
    dry = way.ask("delete_many", scope="alpha", dry_run=True)
    assert (dry["matched_count"], dry["deleted_count"]) == (3, 0)
    assert way.ask("delete_many", scope="alpha")["deleted_count"] == 3
    assert len(way.found("zqcanary")) == len(way.listed(scope="beta")) == 5
    assert way.listed(scope="alpha") == []
    assert way.ask("delete_many", everything=True)["deleted_count"] == 5
    assert way.total() == 0


def test_s6_after_an_edit_the_new_wording_matches_and_the_old_does_not(way: Way) -> None:
    stored = way.add("the depot is in Quarry Lane", tags=["port"], meta={"kept": 1})
    way.update(stored, content="the depot is in Orchard Row", meta={"new": 2})
    assert (way.found("Orchard"), way.found("Quarry")) == ([stored], [])
    assert way.get(stored)["meta"] == {"kept": 1, "new": 2}
    replaced = way.supersede(stored, "the depot is in Station Road")
    assert (way.found("Station"), way.found("Orchard")) == ([replaced], [])


# ---------------------------------------------------------------------------- names and sessions


def test_a_contradiction_candidate_is_named_by_any_name_of_its_entity(way: Way) -> None:
    old = way.add("the billing service deploys on Tuesdays", entity_name="billing-service")
    way.ask("alias", action="add", alias="billing", entity_name="billing-service")
    added = way.ask(
        "add", **_memory("the billing service deploys on Fridays"), entity_name="billing"
    )
    (conflict,) = added["potential_conflicts"]
    assert conflict["id"] == old
    assert "Tuesdays" in conflict["snippet"]
    for name in ("billing", "billing-service"):
        assert {*way.found("deploys", entity_name=name)} == {old, added["id"]}
    (alias,) = way.ask("alias", action="list")["aliases"]
    assert alias == {"alias": "billing", "entity_name": "billing-service"}
    taken = way.refusal("alias", action="add", alias="billing", entity_name="other")
    assert taken.code == "alias_conflict"
    assert way.ask("alias", action="remove", alias="billing")["changed"]
    assert way.found("deploys", entity_name="billing") == [added["id"]]


def test_a_session_ties_together_what_was_learned_in_it(way: Way) -> None:
    session = way.ask("session_start", client="tester", project="harbour")["id"]
    stored = way.add("the crane is rusty", session_id=session)
    way.add("elsewhere")
    assert way.listed(session_id=session) == way.found("crane", session_id=session) == [stored]
    ended = way.ask("session_end", id=session, summary="looked at cranes")
    assert (ended["memories_count"], ended["summary"]) == (1, "looked at cranes")
    assert way.refusal("session_end", id=session).code == "session_ended"
    (listed,) = way.ask("session_list")["sessions"]
    assert (listed["id"], listed["memories_count"]) == (session, 1)
    assert "ended_at" in listed


def _memory(content: str, **fields: object) -> dict[str, object]:
    return {"content": content, "layer": "semantic", **fields}


def _added(way: Way, *contents: str) -> dict[str, str]:
    """Store texts with one call; returns text -> id."""
    results = way.ask("add_many", memories=[_memory(content) for content in contents])["results"]
    return {
        content: result["added"]["id"] for content, result in zip(contents, results, strict=True)
    }
