"""Looking back from the command line: --known-at on what reads, and `mnemolog diff`."""

import json

import pytest

from tests.support.cli import Shell


@pytest.fixture
def revised(cli: Shell) -> str:
    """A memory added at position 3 and changed at position 4."""
    memory = cli.add("Deploys go out on Tuesdays")
    assert cli("update", memory, "--content", "Deploys go out on Fridays").status == 0
    return memory


@pytest.mark.parametrize(
    "words",
    [
        ("search", "deploys"),
        ("search", "tuesday", "--mode", "exact"),
        ("list",),
        ("get", "ID"),
        ("inspect", "ID"),
        ("inspect", "ID", "--include-history"),
        ("export",),
        ("export", "--format", "markdown"),
    ],
)
def test_what_reads_looks_back_and_says_at_which_moment(
    cli: Shell, revised: str, words: tuple[str, ...]
) -> None:
    command = [revised if word == "ID" else word for word in words]
    if "exact" in words:
        command[1] = "on Tuesday"

    past = cli(*command, "--known-at", "3")

    assert past.status == 0
    assert "Tuesdays" in past.out
    assert "Fridays" not in past.out
    assert "as known at position 3, 20" in past.err
    assert "Tuesdays" not in cli(*command, "--known-at", "now").out or "--include-history" in words


def test_statistics_and_json_look_back_too(cli: Shell, revised: str) -> None:
    cli("delete", revised)

    assert "memories: 0\n" in cli("inspect").out
    assert "memories: 1\n" in cli("inspect", "--known-at", "4").out
    found = cli("search", "deploys", "--known-at", "3", "--json").json
    assert found["known_at"]["position"] == 3
    assert [each["content"] for each in found["memories"]] == ["Deploys go out on Tuesdays"]


@pytest.mark.parametrize(
    ("moment", "said"),
    [("99", "`--known-at` is position 99"), ("soonish", "`--known-at`: not understood: 'soonish'")],
)
def test_a_bad_moment_is_wrong_usage_and_named(
    cli: Shell, revised: str, moment: str, said: str
) -> None:
    for command in (["search", "x"], ["inspect", revised], ["list"], ["export"], ["get", revised]):
        refused = cli(*command, "--known-at", moment)
        assert refused.status == 2
        assert said in refused.err


def test_a_difference_is_shown_as_a_patch_or_as_json(cli: Shell, revised: str) -> None:
    shown = cli("diff", "3")

    assert shown.status == 0
    assert f"~ memory {revised} changed (position 4)" in shown.out
    assert "      -Deploys go out on Tuesdays\n      +Deploys go out on Fridays" in shown.out
    assert "from position 3" in shown.err
    assert "memory: 1 changed" in shown.err
    result = json.loads(cli("diff", "0", "3", "--json").out)
    assert [each["what"] for each in result["differences"]] == ["added"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("4", "3"), "`FROM` is position 4"),
        (("3", "99"), "`TO` is position 99"),
        (("soonish",), "`FROM`: not understood"),
        ((), "FROM"),
    ],
)
def test_moments_that_cannot_be_compared_are_wrong_usage(
    cli: Shell, revised: str, words: tuple[str, ...], said: str
) -> None:
    assert revised
    refused = cli("diff", *words)
    assert refused.status == 2
    assert said in refused.err
