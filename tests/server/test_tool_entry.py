"""What clients are told of the tools is made ahead of time, from the tools."""

import msgspec

from server.tool_entry import ENTRIES, describe, encode_entries, entries_of
from tests.support.reference import TOOLS
from tests.support.sample_tools import TOOLS as SAMPLE_TOOLS


def test_the_entries_that_are_kept_are_those_of_the_code() -> None:
    assert ENTRIES.read_bytes() == encode_entries(TOOLS)


def test_the_entries_are_listed_in_the_order_of_the_tools() -> None:
    backwards = tuple(reversed(TOOLS))

    listed = msgspec.json.decode(entries_of(backwards))

    assert listed == [msgspec.to_builtins(describe(tool)) for tool in backwards]


def test_a_tool_without_an_entry_is_described_when_it_is_listed() -> None:
    listed = msgspec.json.decode(entries_of(SAMPLE_TOOLS))

    assert [entry["name"] for entry in listed] == [tool.name for tool in SAMPLE_TOOLS]
    assert all(entry["inputSchema"]["type"] == "object" for entry in listed)
