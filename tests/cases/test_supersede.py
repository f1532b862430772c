"""Group S, superseding: chains, loops, missing targets, edits."""

from pathlib import Path

import pytest

from ledger import Batch, MemoryRelinked, NewEvent, Position
from server.errors import InvalidArgumentsError, NotFoundError, SupersededError, UndoConflictError
from server.results import HealthResult
from server.tool import Call
from tests.support.store import Client, Home, live_digest, replayed_digest


def chain(client: Client, memory_id: str) -> list[str]:
    seen = client.inspect(memory_id, include_history=True).superseded_chain
    assert seen is not None
    return [memory.id for memory in seen]


def three(client: Client) -> tuple[str, str, str]:
    """A chain: the first, the middle one, the head."""
    first = client.add("the depot is in Quarry Lane").id
    middle = client.supersede(first, "the depot is in Orchard Row")
    return first, middle, client.supersede(middle, "the depot is in Station Road")


# ---------------------------------------------------------------------------- S-1, loops


def test_s1_what_is_superseded_cannot_be_superseded_again_and_the_error_names_its_successor(
    client: Client,
) -> None:
    first, middle, head = three(client)
    with client.refused(SupersededError, middle) as caught:
        client.update(first, supersede=True, new_content="closes a loop")
    assert caught.value.details == {"id": first, "superseded_by": middle}
    with client.refused(SupersededError, head):
        client.update(middle, supersede=True, new_content="closes a loop")
    assert chain(client, head) == [head, middle, first]


def test_s1_superseding_by_the_same_text_leaves_one_live_version(client: Client) -> None:
    old = client.add("the depot is in Quarry Lane").id
    new = client.supersede(old, "the depot is in Quarry Lane")
    assert client.found("Quarry") == [new]
    assert client.inspect(new).status == "active"


def _loop(client: Client, links: dict[str, str]) -> None:
    """Write the events that make each memory superseded by the one it maps to."""
    predecessors = {newer: older for older, newer in links.items()}
    store = client.store
    records = [record.header for record in store.ledger.read(Position.start)]
    last = {header.sub: header.seq for header in records}
    with store.ledger.lock(5.0) as writer:
        list(writer.catch_up(None))
        group = writer.group()
        events = [
            NewEvent(
                memory,
                MemoryRelinked(
                    salt="00" * 16, supersedes=predecessors[memory], superseded_by=newer
                ),
                last[memory],
            )
            for memory, newer in links.items()
        ]
        group.add(Batch(workspace=records[-1].ws, actor=records[-1].act, events=events))
        group.commit()


@pytest.mark.parametrize("length", [1, 2, 3])
def test_s1_a_loop_made_by_hand_is_rebuilt_stays_reachable_and_can_be_opened(
    home: Home, client: Client, length: int
) -> None:
    ids = [client.add(f"heron number {number}").id for number in range(length)]
    _loop(client, dict(zip(ids, [*ids[1:], ids[0]], strict=True)))
    for seen in home.lives(home.reopened()):
        assert {*seen.found("heron", include_superseded=True)} == {*ids}
        for memory_id in ids:
            assert seen.inspect(memory_id).status == "superseded"
            assert {*chain(seen, memory_id)} == {*ids}
        with seen.refused(SupersededError):
            seen.update(ids[0], supersede=True, new_content="another")
        health = seen.call("memory_health", {})
        assert isinstance(health, HealthResult)
        assert {*health.looped_ids} == {*ids}
        assert f"{length} memories stand in chains without a newest one" in health.issues
    seen = home.reopened()
    seen.update(ids[0], content="heron, edited")
    for memory_id in ids[:-1]:
        seen.delete(memory_id)
    if length > 1:
        assert seen.inspect(ids[-1]).status == "active"
        assert seen.found("heron") == [ids[-1]]
    seen.delete(ids[-1])
    assert seen.inspect().total == 0


# ---------------------------------------------------------------------------- S-2, missing targets


def test_s2_acting_on_what_is_not_there_says_so_and_writes_nothing(client: Client) -> None:
    client.add("the depot is in Quarry Lane")
    for act in (
        lambda: client.update("no-such-id", supersede=True, new_content="orphan text"),
        lambda: client.update("no-such-id", content="orphan text"),
        lambda: client.delete("no-such-id"),
        lambda: client.undo(id="no-such-id"),
    ):
        with client.refused(NotFoundError, "no memory with this id", "nothing was changed"):
            act()
    with client.refused(NotFoundError, "no memory with this id"):
        client.inspect("no-such-id")
    assert client.found("orphan", include_superseded=True) == []
    assert client.inspect().total == 1


def test_s2_an_empty_id_is_refused_by_name(client: Client) -> None:
    for tool in ("memory_update", "memory_delete", "memory_undo"):
        with client.refused(InvalidArgumentsError, "`id`"):
            client.call(tool, {"id": ""})


def test_s2_a_deleted_memory_can_be_looked_at_but_not_changed(client: Client) -> None:
    gone = client.add("the depot is in Quarry Lane").id
    client.delete(gone)
    for act in (
        lambda: client.delete(gone),
        lambda: client.update(gone, content="x"),
        lambda: client.update(gone, supersede=True, new_content="x"),
    ):
        with client.refused(NotFoundError, "was deleted", "nothing was changed", "memory_undo"):
            act()
    seen = client.inspect(gone, include_history=True)
    assert (seen.status, seen.memory) == ("deleted", None)
    assert seen.versions is not None
    assert [version.status for version in seen.versions] == ["deleted", "active"]
    assert seen.versions[1].content == "the depot is in Quarry Lane"


# ---------------------------------------------------------------------------- deletion in chains


def test_deleting_the_head_makes_its_predecessor_current(client: Client) -> None:
    first, middle, head = three(client)
    assert client.delete(head).reactivated_id == middle
    assert client.found("depot") == [middle]
    assert chain(client, middle) == [middle, first]


def test_deleting_the_middle_joins_its_neighbours(client: Client) -> None:
    first, middle, head = three(client)
    version = client.inspect(head).memory
    assert client.delete(middle).reactivated_id is None
    assert client.found("depot") == [head]
    assert chain(client, first) == [head, first]
    assert version is not None
    after = client.inspect(head).memory
    assert after is not None
    assert after.version == version.version  # a neighbour's id in a link is no change


def test_deleting_the_first_leaves_the_rest(client: Client) -> None:
    first, middle, head = three(client)
    assert client.delete(first).reactivated_id is None
    assert chain(client, head) == [head, middle]
    assert client.found("depot") == [head]


@pytest.mark.parametrize("which", [0, 1, 2])
def test_undoing_a_deletion_puts_a_memory_back_where_it_stood(client: Client, which: int) -> None:
    ids = three(client)
    deleted = client.delete(ids[which])
    undone = client.undo(position=deleted.position)
    assert chain(client, ids[which]) == [*reversed(ids)]
    assert client.found("depot") == [ids[2]]
    with client.refused(UndoConflictError, f"undone already, by that at {undone.position}"):
        client.undo(position=deleted.position)
    client.undo(position=undone.position)
    assert client.inspect(ids[which]).status == "deleted"


def test_an_operation_and_its_undo_stand_in_nobodys_way(client: Client) -> None:
    old = client.add("the depot is in Quarry Lane").id
    replaced = client.update(old, supersede=True, new_content="the depot is in Orchard Row")
    assert replaced.new_id is not None
    deleted = client.delete(replaced.new_id)
    with client.refused(UndoConflictError, str(deleted.position)):
        client.undo(position=replaced.position)
    client.undo(position=deleted.position)

    client.undo(position=replaced.position)

    assert client.found("depot") == [old]


def test_undo_by_id_goes_back_step_by_step_and_then_says_so(client: Client) -> None:
    memory_id = client.add("first").id
    client.update(memory_id, content="second")
    client.update(memory_id, content="third")
    for expected in ("second", "first"):
        client.undo(id=memory_id)
        memory = client.inspect(memory_id).memory
        assert memory is not None
        assert memory.content == expected
    client.undo(id=memory_id)
    assert client.inspect(memory_id).status == "deleted"
    with client.refused(UndoConflictError, "Every operation"):
        client.undo(id=memory_id)


def test_undoing_a_superseding_removes_the_new_and_revives_the_old(client: Client) -> None:
    old = client.add("the depot is in Quarry Lane").id
    result = client.update(old, supersede=True, new_content="the depot is in Orchard Row")
    assert result.position is not None
    undone = client.undo(position=result.position)
    assert client.found("depot") == [old]
    client.undo(position=undone.position)
    assert client.found("depot") == [result.new_id]
    assert chain(client, old) == [result.new_id, old]


# ---------------------------------------------------------------------------- S-6, edits


@pytest.mark.parametrize("supersede", [False, True])
def test_s6_after_an_edit_the_new_wording_matches_and_the_old_does_not(
    home: Home,
    client: Client,
    supersede: bool,  # noqa: FBT001 - a parameter of the case
) -> None:
    stored = client.add("the depot is in Quarry Lane").id
    assert client.found("Quarry") == [stored]
    if supersede:
        now = client.supersede(stored, "the depot is in Orchard Row")
    else:
        client.update(stored, content="the depot is in Orchard Row")
        now = stored
    for seen in home.lives(client):
        for mode in ("fts", "exact"):
            assert seen.found("Orchard", mode=mode) == [now]
            assert seen.found("Quarry", mode=mode) == []


def test_s6_title_and_entity_follow_an_edit_too(client: Client) -> None:
    stored = client.add("content", title="Quarry", entity_name="depot").id
    client.update(stored, title="Orchard")
    assert client.found("Orchard") == client.found("depot") == [stored]
    assert client.found("Quarry") == []


# ---------------------------------------------------------------------------- X-3, exact scopes


@pytest.mark.guarantee("G-FILTER-1")
def test_x3_scopes_tags_and_entities_match_exactly(client: Client) -> None:
    scopes = ("fern", "fern-lab", "fe%", "f_rn", "fern:x", "FERN")
    by_scope = {scope: client.add("one note", scope=scope).id for scope in scopes}
    tags = ("50%", "red_box", "redXbox", "port", "report", "a,b", "[x]")
    by_tag = {tag: client.add("one tag", tags=[tag], entity_name=tag).id for tag in tags}
    for mode in ("fts", "exact"):
        for scope, memory_id in by_scope.items():
            assert client.found("note", scope=scope, mode=mode) == [memory_id]
        for tag, memory_id in by_tag.items():
            assert client.found("tag", tags=[tag], mode=mode) == [memory_id]
            assert client.found("tag", entity_name=tag, mode=mode) == [memory_id]
        assert client.found("tag", tags=["port", "report"], mode=mode) == []


@pytest.mark.parametrize("field", ["scope", "entity_name", "session_id", "source_file"])
def test_x3_an_empty_filter_is_none_and_the_reply_says_so_but_deletes_nothing(
    client: Client, field: str
) -> None:
    stored = client.add("one note", scope="fern", entity_name="fern").id
    result = client.search("note", **{field: ""})
    assert [found.id for found in result.memories] == [stored]
    assert result.notes == (f"`{field}` is empty: no filter",)
    # A scope may be named by nothing; then it holds nothing else.
    if field == "scope":
        client.call("memory_delete_many", {field: ""})
    else:
        with client.refused(InvalidArgumentsError, field):
            client.call("memory_delete_many", {field: ""})
    assert client.found("note") == [stored]


@pytest.mark.parametrize("blank", ["", " ", "\n"])
def test_x3_a_blank_file_or_name_is_none_and_supersedes_nothing(client: Client, blank: str) -> None:
    names = {"source_file": blank, "entity_name": blank, "session_id": blank}
    one = client.add("one note", **names)
    two = client.add("two note", **names)

    assert two.superseded_ids == ()
    assert len(client.found("note")) == 2
    assert [note.split("`")[1] for note in one.notes] == [
        "entity_name",
        "session_id",
        "source_file",
    ]
    memory = client.inspect(one.id).memory
    assert memory is not None
    assert (memory.source_file, memory.entity_name, memory.session_id) == (None, None, None)


# ---------------------------------------------------------------------------- workspaces


@pytest.mark.guarantee("G-SPACE-1")
def test_a_memory_of_another_workspace_can_be_neither_seen_nor_touched(
    home: Home, client: Client, tmp_path: Path
) -> None:
    mine = client.add("the depot is in Quarry Lane", idempotency_key="k")
    other = home.open("other")
    assert other.inspect().total == 0
    for act in (
        lambda: other.inspect(mine.id),
        lambda: other.update(mine.id, content="taken"),
        lambda: other.update(mine.id, supersede=True, new_content="taken"),
        lambda: other.delete(mine.id),
        lambda: other.undo(id=mine.id),
        lambda: other.undo(position=mine.position),
    ):
        with other.refused(NotFoundError):
            act()
    theirs = other.add("the heron nests here")
    with client.refused(NotFoundError):
        client.undo(position=theirs.position)
    assert live_digest(client).text() == replayed_digest(client, tmp_path / "r.db").text()
    assert client.store.reads.run(Call(), lambda db: db.value("SELECT count(*) FROM memories")) == 2
