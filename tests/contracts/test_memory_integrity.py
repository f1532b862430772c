"""The attacks of the public suite `agent-memory-integrity`, all of them, and what came of each."""

from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import pytest
from agmi.agent import compose as chains
from agmi.attacks.at_rest import AT_REST_ATTACKS_WITH_SNAPSHOT
from agmi.attacks.base import Attack
from agmi.attacks.memory_specific import ALL_MEMORY_ATTACKS
from agmi.check import verdict

from server import AddArgs, ListArgs, open_store
from server.errors import DamagedError
from tests.cases.ways import CommandHost, command_host
from tests.support.integrity import AT_REST, EDITS, FRONT_DOOR, SUITE, VERDICTS
from tests.support.tampering import SCENES, Scene, StoreThroughItsDoor, StoreUnderEdit, at_rest

FOUND = {
    (row.scene, edit): VERDICTS[letter]
    for row in AT_REST
    for edit, letter in zip(EDITS, row.verdicts, strict=True)
}


@pytest.fixture(scope="module")
def host() -> Iterator[CommandHost]:
    with command_host() as host:
        yield host


def scene(name: str) -> Scene:
    (found,) = [scene for scene in SCENES if scene.name == name]
    return found


# ---------------------------------------------------------------------------- edits of the files


def test_every_edit_of_the_suite_is_made_to_every_scene_and_has_a_result() -> None:
    assert version("agent-memory-integrity") == SUITE
    assert [attack.name for attack in AT_REST_ATTACKS_WITH_SNAPSHOT] == [*EDITS]
    assert [row.scene for row in AT_REST] == [scene.name for scene in SCENES]
    for row in AT_REST:
        assert bool(row.accepted_because) is ("a" in row.verdicts)


@pytest.mark.guarantee("G-HEAD-1")
@pytest.mark.parametrize("edited", SCENES, ids=lambda scene: scene.name)
@pytest.mark.parametrize("attack", AT_REST_ATTACKS_WITH_SNAPSHOT, ids=lambda attack: attack.name)
def test_an_edit_behind_the_stores_back_has_the_result_that_is_written_down(
    host: CommandHost, edited: Scene, attack: type[Attack]
) -> None:
    store = at_rest(edited, host)

    result = attack().run(store)

    assert (result.guard, result.error) == (None, None)
    assert verdict(result, store).lower() == FOUND[edited.name, attack.name], result.detail


@pytest.mark.parametrize(
    "attack", AT_REST_ATTACKS_WITH_SNAPSHOT[:-1], ids=lambda attack: attack.name
)
def test_after_an_edit_of_the_ledger_reads_answer_with_what_was_stored_and_a_write_is_refused(
    host: CommandHost, attack: type[Attack]
) -> None:
    store = at_rest(scene("ledger: search"), host)
    store.setup()
    try:
        store.seed(5)
        before = contents(store)
        attack().tamper(store)
        assert contents(store) == before
        assert len(before) == 5
        with open_store(store.home) as memory:
            if attack.name == "forge":
                memory.add(AddArgs(content="after it", layer="semantic"))
            else:
                with pytest.raises(DamagedError):
                    memory.add(AddArgs(content="over it", layer="semantic"))
        kept = [*(store.home / "ledger" / "quarantine").iterdir()]
        assert len(kept) == (attack.name == "forge")
    finally:
        store.teardown()


def contents(store: StoreUnderEdit) -> list[str]:
    with open_store(store.home) as memory:
        return [found.content for found in memory.list(ListArgs(limit=100)).memories]


def test_no_two_edits_pass_together_where_neither_passes_alone(
    host: CommandHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Those that cut, and the write that could hide a cut: the whole search takes a minute.
    monkeypatch.setattr(chains, "_candidate_moves", lambda: ["write", "rollback", "edit:truncate"])
    edited = scene("new hashes, no tables: verify --head")

    _, findings = chains.compose(lambda: at_rest(edited, host))

    assert findings == []


# ---------------------------------------------------------------------------- the front door


@pytest.fixture
def door() -> Iterator[StoreThroughItsDoor]:
    door = StoreThroughItsDoor()
    yield door
    door.close()


def test_every_attack_on_the_front_door_has_a_result() -> None:
    attacks: list[Any] = [*ALL_MEMORY_ATTACKS]

    assert [attack.name for attack in attacks] == [row.attack for row in FRONT_DOOR]


@pytest.mark.guarantee("G-SPACE-1")
@pytest.mark.parametrize("attack", ALL_MEMORY_ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_on_the_front_door_has_the_result_that_is_written_down(
    door: StoreThroughItsDoor, attack: Any
) -> None:
    (expected,) = [row for row in FRONT_DOOR if row.attack == attack.name]

    result = attack().run(door)

    assert result.error is None
    assert result.safe is expected.kept_out, result.detail
    outcomes = [outcome for channel in result.channels.values() for outcome in channel]
    assert {*outcomes} == {not expected.kept_out}
