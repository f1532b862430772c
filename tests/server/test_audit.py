"""The audits: who did what, when and why, of one memory and of a workspace."""

import os
from typing import Any

import pytest

from ledger import Batch, MemoryDeleted, NewEvent
from projections.audit import SUBJECTS_MAX, AuditFilters, _query
from projections.audit_model import AuditedSubject, AuditEntry
from server.audit_args import AuditArgs, AuditShowArgs
from server.audit_results import AuditResult
from server.errors import InvalidArgumentsError, NotFoundError
from server.schema import convert
from server.tool import Call
from tests.support.cli import Shell
from tests.support.store import Client, Home


@pytest.fixture
def client(home: Home) -> Client:
    return home.open(name="ana")


def history(client: Client, memory: str, **fields: object) -> AuditResult:
    result = client.call("memory_audit", {"id": memory, **fields})
    assert isinstance(result, AuditResult)
    return result


def shown(client: Client, **fields: object) -> AuditResult:
    return client.store.app.audit_show(convert(fields, AuditShowArgs), Call(actor_name="auditor"))


def only(entry: AuditEntry) -> AuditedSubject:
    (subject,) = entry.subjects
    return subject


def told(subject: AuditedSubject) -> dict[str, tuple[str | None, str | None]]:
    return {change.field: (change.before, change.after) for change in subject.changes}


# ---------------------------------------------------------------------------- what it tells


@pytest.mark.guarantee("G-AUDIT-3")
def test_a_memorys_history_tells_who_changed_what_and_when(home: Home, client: Client) -> None:
    added = client.add("Deploys go out on Tuesdays", title="Deploys", tags=["ops"])
    home.clock.advance(days=1)
    other = home.open(name="bob")
    changed = other.update(added.id, content="Deploys go out on Wednesdays", importance=0.9)

    newest, oldest = history(client, added.id).entries

    assert (newest.position, newest.actor, newest.action) == (changed.position, "bob", "changed")
    assert newest.at == home.clock.now()
    assert told(only(newest)) == {
        "content": ("Deploys go out on Tuesdays", "Deploys go out on Wednesdays"),
        "importance": ("0.5", "0.9"),
    }
    assert (only(newest).title, only(newest).id) == ("Deploys", added.id)
    assert (oldest.actor, oldest.action) == ("ana", "added")
    assert told(only(oldest)) == {
        "content": (None, "Deploys go out on Tuesdays"),
        "layer": (None, "semantic"),
        "title": (None, "Deploys"),
        "tags": (None, '["ops"]'),
    }


def test_a_superseding_tells_of_both_memories(client: Client) -> None:
    old = client.add("tea", entity_name="Ana").id
    new = client.supersede(old, "coffee")

    entry = history(client, old).entries[0]

    assert entry.action == "superseded"
    assert [(each.id, each.action) for each in entry.subjects] == [
        (old, "superseded"),
        (new, "added"),
    ]
    assert told(entry.subjects[0]) == {"superseded_by": (None, new)}
    assert entry.subjects[0].entity_name == "Ana"


def test_an_undo_and_what_it_undid_name_each_other(client: Client) -> None:
    memory = client.add("tea").id
    changed = client.update(memory, content="coffee")
    undone = client.undo(position=changed.position)

    undo, change, _ = history(client, memory).entries

    assert (undo.position, undo.undoes, undo.action) == (
        undone.position,
        changed.position,
        f"undid {changed.position}",
    )
    assert change.undone_by == undone.position
    assert told(only(undo)) == {"content": ("coffee", "tea")}


def test_a_deleted_memory_keeps_its_history_and_comes_back(client: Client) -> None:
    memory = client.add("tea").id
    deleted = client.delete(memory)
    client.undo(position=deleted.position)

    restored, deletion, added = history(client, memory).entries

    assert (restored.action, only(restored).action) == (f"undid {deleted.position}", "restored")
    assert (deletion.action, only(deletion).snippet) == ("deleted", "tea")
    assert only(deletion).changes == ()
    assert added.action == "added"


@pytest.mark.guarantee("G-AUDIT-3")
def test_the_reason_of_a_deletion_is_told(client: Client) -> None:
    """No way in takes one yet; the ledger does."""
    memory = client.add("tea")
    ledger = client.store.ledger
    (first,) = ledger.records_at([memory.position]).values()
    header = first.header
    event = MemoryDeleted(salt="0" * 32, reason="it was wrong")
    with ledger.lock(5) as writer:
        for _ in writer.catch_up(None):
            pass
        group = writer.group()
        group.add(
            Batch(
                workspace=header.ws,
                actor=header.act,
                events=[NewEvent(memory.id, event, first.seq)],
                session="s" * 16,
                cause="c" * 16,
            )
        )
        group.commit()
    client.add("catches up")

    entry = history(client, memory.id).entries[0]

    assert (entry.reason, entry.session_id, entry.cause) == ("it was wrong", "s" * 16, "c" * 16)


@pytest.mark.guarantee("G-AUDIT-3", "G-ERASE-5")
def test_a_redacted_memory_tells_what_was_redacted_by_whom_and_why(client: Client) -> None:
    memory = client.add("hunter2 is the password").id
    client.update(memory, content="hunter3 is the password")
    result = client.call("memory_redact", {"id": memory, "reason": "a password"})

    audit = history(client, memory)

    redacted, changed, added = audit.entries
    assert (redacted.action, redacted.reason, redacted.actor) == ("redacted", "a password", "ana")
    assert redacted.subjects[0].redacted_records == 2
    assert all(only(each).is_redacted and not only(each).changes for each in (changed, added))
    (redaction,) = audit.redactions
    assert redaction.id == redacted.redaction_id == getattr(result, "redaction_id", None)
    assert (redaction.by, redaction.reason, redaction.completed) == ("ana", "a password", True)
    assert "hunter" not in str(audit)


def test_sessions_and_aliases_are_told_of_too(client: Client) -> None:
    session = client.session_start("editor", project="billing").id
    memory = client.add("tea", session_id=session)
    client.session_end(session, summary="drank")
    client.alias("add", alias="k8s", entity_name="Kubernetes")
    client.alias("remove", alias="k8s")

    removed, named, ended, added, began, _ = shown(client).entries

    assert (removed.action, named.action) == ("removed the name", "named the entity")
    assert told(only(named)) == {"name": (None, "k8s"), "entity": (None, "Kubernetes")}
    assert (ended.action, told(only(ended))["summary"]) == ("ended the session", (None, "drank"))
    assert (added.position, added.session_id) == (memory.position, session)
    assert began.session_id == session


def test_long_texts_are_cut_and_of_many_subjects_the_first_are_told(client: Client) -> None:
    for number in range(SUBJECTS_MAX + 5):
        client.add(f"{number} " + "long " * 500)
    client.delete_many(everything=True)

    deleted, added, *_ = shown(client).entries

    assert len(deleted.subjects) == SUBJECTS_MAX
    assert deleted.subjects_count == SUBJECTS_MAX + 5
    text = told(only(added))["content"][1] or ""
    assert (len(text), text[-1]) == (200, "…")


def test_of_an_operation_on_many_the_memory_that_was_asked_for_is_told_first(
    client: Client,
) -> None:
    ids = [client.add(f"number {number}").id for number in range(SUBJECTS_MAX + 5)]
    client.delete_many(everything=True)

    entry = history(client, ids[-1]).entries[0]

    assert (entry.subjects[0].id, entry.subjects_count) == (ids[-1], SUBJECTS_MAX + 5)


# ---------------------------------------------------------------------------- filters


@pytest.fixture
def busy(home: Home, client: Client) -> dict[str, Any]:
    """Two actors and two workspaces, a day apart each."""
    bob = home.open(name="bob")
    far = home.open("far", name="bob")
    session = client.session_start().id
    first = client.add("tea", entity_name="Ana", session_id=session)
    home.clock.advance(days=1)
    client.alias("add", alias="Anna", entity_name="Ana")
    second = bob.add("roof", entity_name="boiler")
    home.clock.advance(days=1)
    elsewhere = far.add("elsewhere")
    deleted = bob.delete(first.id)
    return {
        "session": session,
        "first": first,
        "second": second,
        "deleted": deleted,
        "elsewhere": elsewhere,
    }


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({"actor": "bob"}, ["deleted", "second"]),
        ({"actor": "nobody"}, []),
        ({"entity": "Anna"}, ["deleted", "first"]),
        ({"entity": "boiler"}, ["second"]),
        ({"types": ["deleted"]}, ["deleted"]),
        ({"types": ["added"], "actor": "ana"}, ["first"]),
        ({"types": ["undo"]}, []),
        ({"from": "2026-06-17"}, ["deleted"]),
        ({"from": "2026-06-16", "to": "2026-06-16", "types": ["added"]}, ["second"]),
        ({"from": "yesterday", "to": "yesterday", "types": ["added"]}, ["second"]),
        ({"to": "2026-06-15", "types": ["added", "deleted"]}, ["first"]),
        ({"to": "2026-06-14"}, []),
    ],
    ids=str,
)
def test_filters_choose_operations(
    client: Client, busy: dict[str, Any], filters: dict[str, Any], names: list[str]
) -> None:
    found = [entry.position for entry in shown(client, **filters).entries]

    assert found == [busy[name].position for name in names]


def test_a_position_is_a_bound_too(client: Client, busy: dict[str, Any]) -> None:
    first, second = busy["first"].position, busy["second"].position

    found = shown(client, **{"from": str(first), "to": str(second), "types": ["added"]}).entries

    assert [entry.position for entry in found] == [second, first]


def test_a_session_tells_what_was_done_in_it(client: Client, busy: dict[str, Any]) -> None:
    found = shown(client, session=busy["session"], oldest_first=True, types=["session", "added"])

    assert [entry.action for entry in found.entries] == ["began the session", "added"]


def test_a_memory_of_another_workspace_is_none_here(client: Client, busy: dict[str, Any]) -> None:
    for memory in (busy["elsewhere"].id, "never"):
        with pytest.raises(NotFoundError):
            history(client, memory)
        with pytest.raises(NotFoundError):
            shown(client, memory=memory)
    positions = [entry.position for entry in shown(client).entries]
    assert busy["elsewhere"].position not in positions


@pytest.mark.parametrize(
    ("first", "last"),
    [("2025-01", "2025-01"), ("2999-01", "2999-02"), ("3", "2025-01"), ("2999-01", "1")],
)
def test_a_time_in_which_nothing_was_done_has_no_entries(
    client: Client, first: str, last: str
) -> None:
    client.add("tea")

    assert shown(client, **{"from": first, "to": last}).entries == ()


@pytest.mark.parametrize(
    ("filters", "field"),
    [
        ({"from": "2026-13"}, "from"),
        ({"to": "soonish"}, "to"),
        ({"from": "0"}, "from"),
        ({"to": "9" * 30}, "to"),
        ({"from": "5", "to": "4"}, "to"),
        ({"from": "2026-06", "to": "2026-05"}, "to"),
    ],
)
def test_bounds_that_mean_nothing_are_refused(
    client: Client, filters: dict[str, str], field: str
) -> None:
    client.add("tea")

    with pytest.raises(InvalidArgumentsError) as caught:
        shown(client, **filters)

    assert caught.value.details["field"] == field


@pytest.mark.parametrize("oldest_first", [False, True])
def test_pages_hold_every_operation_once_and_in_order(
    client: Client, *, oldest_first: bool
) -> None:
    memory = client.add("0").id
    for number in range(7):
        client.update(memory, content=str(number + 1))
    client.add_many(*({"content": f"m{n}", "layer": "semantic"} for n in range(4)))
    whole = [each.position for each in shown(client, oldest_first=oldest_first, limit=100).entries]

    for of_one in (False, True):
        more: dict[str, object] = {"memory": memory} if of_one else {}
        cursor: str | None = None
        found: list[int] = []
        while True:
            page = shown(client, oldest_first=oldest_first, limit=3, cursor=cursor, **more)
            found += [entry.position for entry in page.entries]
            assert page.has_more == (page.next_cursor is not None)
            if not page.has_more:
                break
            cursor = page.next_cursor
        assert found == sorted(set(found), reverse=not oldest_first)
        assert set(found) <= set(whole)
        assert of_one or found == whole


def test_a_page_ends_where_it_would_get_too_long(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        client.add(f"{number}")
    monkeypatch.setattr("projections.audit.PAGE_CHARS_MAX", 500)

    page = shown(client)

    assert (page.returned_count, page.has_more) == (2, True)


def test_a_store_that_was_rebuilt_tells_the_same(home: Home, client: Client) -> None:
    memory = client.add("tea", entity_name="Ana").id
    client.update(memory, content="coffee")
    gone = client.add("secret").id
    client.call("memory_redact", {"id": gone, "reason": "wrong"})
    client.supersede(memory, "water")
    before = shown(client), history(client, memory)

    rebuilt = home.rebuilt()

    assert (shown(rebuilt), history(rebuilt, memory)) == before


def test_where_the_ledger_cannot_be_read_the_rest_is_told_with_a_note(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = client.add("tea").id
    client.delete(memory)

    def refuse(_: object) -> None:
        raise OSError(5, os.strerror(5))

    monkeypatch.setattr(client.store.ledger, "records_at", refuse)

    audit = history(client, memory)

    assert audit.returned_count == 2
    assert "left out" in audit.notes[0]


# ---------------------------------------------------------------------------- speed


@pytest.mark.parametrize(
    ("filters", "rid", "plan"),
    [
        (
            AuditFilters(workspace=1),
            None,
            "SEARCH e USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
        ),
        (
            AuditFilters(workspace=1, memory="x"),
            5,
            "SEARCH v USING COVERING INDEX events_subject",
        ),
        (
            AuditFilters(workspace=1, entity_names=("a",)),
            None,
            "memories USING COVERING INDEX memories_entity",
        ),
        (
            AuditFilters(workspace=1, actor="a"),
            None,
            "SEARCH agents USING",
        ),
        (
            AuditFilters(workspace=1, session_id="s"),
            None,
            "SEARCH origins USING",
        ),
    ],
)
def test_questions_are_answered_by_indexes(
    client: Client, filters: AuditFilters, rid: int | None, plan: str
) -> None:
    client.add("tea")
    sql, params = _query(filters, rid, after=None, newest=True)

    found = client.store.reads.run(
        Call(), lambda connection: list(connection.execute(f"EXPLAIN QUERY PLAN {sql}", params))
    )

    steps = [row[3] for row in found]
    assert any(plan in step for step in steps), steps
    # Of deleted memories only the versions say what they were about; w are the ids asked for.
    scanned = {step.split()[1] for step in steps if step.startswith("SCAN")}
    assert scanned <= {"CONSTANT", "t", "w", "(subquery-1)"}, steps
    assert not any("USE TEMP B-TREE FOR ORDER BY" in step for step in steps) or rid, steps


# ---------------------------------------------------------------------------- ways in


def test_the_command_tells_people_and_programs(cli: Shell) -> None:
    memory = cli.add("Deploys go out on Tuesdays", "--title", "Deploys", "--actor", "ana")
    cli("update", memory, "--content", "On Wednesdays", "--actor", "bob")

    people = cli("audit", "show", "--memory", memory)
    programs = cli("audit", "show", "--actor", "bob", "--type", "changed", "--json").json

    assert people.status == 0
    assert f"memory {memory}: changed “Deploys”\n" in people.out
    assert "        content: Deploys go out on Tuesdays -> On Wednesdays\n" in people.out
    (entry,) = programs["entries"]
    assert (entry["actor"], entry["subjects"][0]["id"]) == ("bob", memory)


def test_the_command_pages_and_says_when_there_is_nothing(cli: Shell) -> None:
    for text in ("one", "two", "three"):
        cli.add(text)

    first = cli("audit", "show", "--type", "added", "--limit", "2")
    cursor = first.err.split("--cursor ")[1].strip()
    second = cli("audit", "show", "--type", "added", "--limit", "2", "--cursor", cursor)
    nothing = cli("audit", "show", "--actor", "nobody")

    assert (first.out.count("added"), second.out.count("added")) == (4, 2)
    assert "nothing was done that fits" in nothing.err
    assert nothing.status == 0


def test_what_steers_a_terminal_is_shown_as_text(cli: Shell) -> None:
    memory = cli.add("a\x1b[31mred\nline", "--entity-name", "x\ry")
    cli("delete", memory)

    out = cli("audit", "show").out

    assert "\x1b" not in out
    assert "\r" not in out


def test_a_program_asks_the_store_itself(client: Client) -> None:
    memory = client.add("tea").id

    result = client.store.app.audit(AuditArgs(id=memory), Call())

    assert result.returned_count == 1
