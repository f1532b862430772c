"""The prompts: named and filled in as users of mnemon-mcp know them, in words of our own."""

import re

import pytest

from server.prompt import Prompt
from server.prompts import make_prompts
from server.service import CORE_TOOLS
from server.tool import Call
from tests.support.store import Home


def prompts() -> dict[str, Prompt]:
    def no_store() -> None:
        raise AssertionError("nothing is completed here")

    return {prompt.name: prompt for prompt in make_prompts(no_store)}  # type: ignore[arg-type]


GIVEN = {
    "recall": {"topic": 'the "big" move'},
    "context-load": {"task": "tidy up\nthe cellar", "scope": "home"},
    "journal": {"summary": "First this.\nThen that."},
}


def test_names_and_arguments_are_those_that_users_know() -> None:
    known = {
        name: {argument.name: argument.required for argument in prompt.arguments}
        for name, prompt in prompts().items()
    }

    assert known == {
        "recall": {"topic": True},
        "context-load": {"task": True, "scope": False},
        "journal": {"summary": True},
    }


@pytest.mark.parametrize("name", GIVEN)
def test_a_prompt_names_only_tools_that_every_client_is_offered(name: str) -> None:
    text = prompts()[name].write(GIVEN[name])

    named = set(re.findall(r"memory_\w+", text))
    assert named
    assert named <= CORE_TOOLS


def test_what_was_filled_in_is_in_the_text() -> None:
    texts = {name: prompts()[name].write(given) for name, given in GIVEN.items()}

    assert r'"the \"big\" move"' in texts["recall"]
    assert r'"tidy up\nthe cellar"' in texts["context-load"]
    assert 'scope "home"' in texts["context-load"]
    assert texts["journal"].endswith("First this.\nThen that.")


def test_without_a_scope_none_is_spoken_of() -> None:
    assert "scope" not in prompts()["context-load"].write({"task": "x"})


def test_topics_and_scopes_are_completed_from_the_store(home: Home) -> None:
    client = home.open()
    client.add("x", entity_name="Ada", scope="alpha")
    client.add("x", entity_name="Bob", scope="beta")
    completed = {
        argument.name: argument.complete("A", Call()).values
        for prompt in make_prompts(lambda: client.store.suggestions)
        for argument in prompt.arguments
        if argument.complete is not None
    }

    assert completed == {"topic": ("Ada",), "scope": ("alpha",)}
