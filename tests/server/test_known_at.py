"""known_at: what the store knew at a moment, whichever way the moment is named."""

import fcntl
import json
from pathlib import Path
from typing import Final

import pytest

from ledger import OsFiles
from projections import past_build
from projections.past import erase_past
from server import past_reads
from server.bootstrap import Store
from server.commands import SearchArgs
from server.config import Config
from server.errors import (
    BusyError,
    CallCancelledError,
    DiskFullError,
    InvalidArgumentsError,
    NotFoundError,
)
from server.results import KnownAt
from server.tool import Call
from tests.support.store import DAY_US, Client, Home

BERLIN: Final = "the office is in Berlin"
LISBON: Final = "the office is in Lisbon"


@pytest.fixture
def moved(home: Home, client: Client) -> tuple[str, str]:
    """An office that moved: the old memory, known from June 15 on, and the new one, from 20 on."""
    old = client.add(BERLIN, entity_name="office", ttl_days=100).id
    home.clock.advance(days=5)
    new = client.supersede(old, LISBON)
    home.clock.advance(days=5)
    return old, new


def copies(home: Home) -> list[Path]:
    folder = home.path / "projections" / "past"
    return sorted(path for path in folder.glob("*-*") if path.is_dir())


# ---------------------------------------------------------------------------- moments


@pytest.mark.parametrize(
    "known_at",
    [3, "3", "2026-06-15", "2026-06-15T12:00:00Z", "June 17", "10 days ago", "17 июня"],
)
def test_a_moment_is_a_position_or_a_time_in_any_words(
    client: Client, moved: tuple[str, str], known_at: str | int
) -> None:
    old, _ = moved
    result = client.search("office", known_at=known_at)

    assert [memory.id for memory in result.memories] == [old]
    assert result.known_at is not None
    assert result.known_at.position == 3


def test_the_reply_names_the_position_and_the_time_that_were_used(
    client: Client, moved: tuple[str, str]
) -> None:
    by_time = client.search("office", known_at="2026-06-17")
    by_position = client.search("office", known_at=3)

    assert moved
    assert by_time.known_at == KnownAt(
        position=3, at="2026-06-17T23:59:59.999999Z", redacted_since=0
    )
    assert by_position.known_at == KnownAt(
        position=3, at="2026-06-15T12:00:00.000000Z", redacted_since=0
    )
    assert client.search("office").known_at is None


def test_a_position_inside_an_operation_means_the_end_of_it(
    client: Client, moved: tuple[str, str]
) -> None:
    _, new = moved
    for position in (4, 5):
        result = client.search("office", known_at=position)
        assert [memory.id for memory in result.memories] == [new]
        assert result.known_at is not None
        assert result.known_at.position == 5


@pytest.mark.parametrize("known_at", ["2026-12-31", "tomorrow", "today", "since 2026-01"])
def test_a_moment_that_is_not_over_is_now_and_a_note_says_so(
    home: Home, client: Client, moved: tuple[str, str], known_at: str
) -> None:
    _, new = moved
    result = client.search("office", known_at=known_at)

    assert [memory.id for memory in result.memories] == [new]
    assert result.known_at == KnownAt(position=5, at=home.clock.now(), redacted_since=0)
    assert "not over yet" in " ".join(result.notes)


@pytest.mark.parametrize("known_at", [0, "2019", "2026-06-14", "the year 2019"])
def test_before_the_store_began_nothing_was_known_and_a_note_says_so(
    client: Client, moved: tuple[str, str], known_at: str | int
) -> None:
    if known_at == "2019":
        with client.refused(InvalidArgumentsError, "position 2019", "ends at position 5"):
            client.search("office", known_at=known_at)
        return
    result = client.search("office", known_at=known_at)

    assert moved
    assert result.memories == ()
    assert result.known_at is not None
    assert result.known_at.position == 0
    assert "nothing had been stored" in " ".join(result.notes)


def test_a_workspace_that_began_later_was_empty(home: Home, client: Client) -> None:
    client.add(BERLIN)
    other = home.open("other")
    other.add(LISBON)

    result = other.search("office", known_at=3)

    assert result.memories == ()
    assert "nothing had been stored in this workspace" in " ".join(result.notes)
    assert client.found("office", known_at=3) == client.found("office")


@pytest.mark.parametrize(
    ("known_at", "words"),
    [
        (6, ("position 6", "ends at position 5")),
        ("99999999999999999999", ("beyond the end",)),
        ("soonish", ("`known_at`", "not understood", "ISO 8601")),
        ("", ("`known_at`", "at least 1")),
        (-1, ("`known_at`", "at least 0")),
        (1.5, ("`known_at`",)),
        ("2026-02-30", ("`known_at`", "not understood")),
    ],
)
def test_what_is_no_moment_is_refused_and_named(
    client: Client, moved: tuple[str, str], known_at: object, words: tuple[str, ...]
) -> None:
    assert moved
    for call in (client.search, client.list_page, client.export, client.inspect):
        arguments = {"query": "office"} if call == client.search else {}
        with client.refused(InvalidArgumentsError, *words):
            call(**arguments, known_at=known_at)


def test_the_clock_going_back_counts_as_the_greatest_position_of_a_time(
    home: Home, client: Client
) -> None:
    first = client.add("heron one").id
    home.clock.advance(days=10)
    second = client.add("heron two").id
    home.clock.advance(days=-5)
    third = client.add("heron three").id

    assert {*client.found("heron", known_at="2026-06-16")} == {first}
    assert {*client.found("heron", known_at="2026-06-20")} == {first, second, third}


# ---------------------------------------------------------------------------- answers


def test_expiry_and_age_are_judged_at_the_moment(home: Home, client: Client) -> None:
    stored = client.add("heron", ttl_days=10).id
    home.clock.advance(days=3)
    client.add("something else")
    home.clock.advance(days=300)

    assert client.found("heron") == []
    assert client.search("heron", known_at=4).memories[0].status == "active"
    assert client.found("heron", known_at="2026-06-24") == [stored]
    assert client.found("heron", known_at="2026-06-26") == []
    seen = client.inspect(stored, known_at="2026-06-26")
    assert seen.status == "expired"
    young, old = (
        client.search("heron", known_at=moment).memories[0].score for moment in (3, "2026-06-17")
    )
    assert young > old


def test_world_time_and_known_time_are_asked_for_together(
    home: Home, client: Client, moved: tuple[str, str]
) -> None:
    old, new = moved
    third = client.supersede(new, "the office is in Porto", valid_from="2026-06-10")

    assert client.found("office", as_of="2026-06-24") == [third]
    assert client.found("office", as_of="2026-06-16", known_at="2026-06-24") == [old]
    assert client.found("office", as_of="2026-06-24", known_at="2026-06-24") == [new]
    assert client.found("office", as_of="2026-06-24", known_at="2026-06-16") == [old]
    assert home.verify().problems == []


def test_what_is_deleted_now_was_there_then_in_every_reading_tool(
    client: Client, moved: tuple[str, str]
) -> None:
    old, new = moved
    client.delete(new)
    client.delete(old)

    assert client.get(new).missing
    assert [memory.content for memory in client.get(new, old, known_at=5).memories] == [
        LISBON,
        BERLIN,
    ]
    assert [memory.id for memory in client.listed(known_at=5)] == [new]
    assert client.list_page(known_at=5).known_at is not None
    exported = json.loads(client.export("json", known_at=5, include_superseded=True).content)
    assert {memory["id"] for memory in exported} == {old, new}
    whole = client.inspect(new, known_at=5, include_history=True)
    assert whole.superseded_chain is not None
    assert [memory.id for memory in whole.superseded_chain] == [new, old]
    assert whole.versions is not None
    assert [version.to_seq for version in whole.versions] == [None]
    assert whole.known_at is not None
    counted = client.inspect(known_at=5)
    assert (counted.total, counted.position) == (2, 5)


def test_what_was_deleted_then_and_is_back_now_was_deleted_then(client: Client) -> None:
    stored = client.add("heron").id
    deleted = client.delete(stored).position
    client.undo(position=deleted)

    assert client.found("heron") == [stored]
    assert client.found("heron", known_at=deleted) == []
    assert client.inspect(stored, known_at=deleted).status == "deleted"
    assert client.get(stored, known_at=deleted).missing[0].reason == "deleted"
    with client.refused(NotFoundError):
        client.inspect(stored, known_at=2)


def test_names_of_an_entity_are_those_of_then(client: Client) -> None:
    stored = client.add("heron", entity_name="Kubernetes").id
    before = client.position()
    client.alias("add", alias="k8s", entity_name="Kubernetes")
    during = client.position()
    client.alias("remove", alias="k8s")

    assert client.found("heron", entity_name="k8s", known_at=before) == []
    assert client.found("heron", entity_name="k8s", known_at=during) == [stored]
    assert client.found("heron", entity_name="k8s") == []


def test_pages_of_the_past_are_cut_from_one_list(client: Client) -> None:
    ids = [client.add(f"heron {number}").id for number in range(12)]
    moment = client.position()
    for memory_id in ids[::2]:
        client.delete(memory_id)

    assert {*client.found("heron", known_at=moment, limit=5)} == {*ids}
    assert [memory.id for memory in client.listed(known_at=moment, limit=5)] == ids[::-1]
    part = client.export("jsonl", known_at=moment, limit=5)
    rest = client.export("jsonl", known_at=moment, limit=7, cursor=part.next_cursor)
    assert (part.count, part.total, rest.count, rest.has_more) == (5, 12, 7, False)


def test_a_search_for_a_piece_of_text_looks_back_too(client: Client) -> None:
    stored = client.add("the boiler pump").id
    moment = client.position()
    client.update(stored, content="the heat pump")

    assert client.found("oiler pum", mode="exact", known_at=moment) == [stored]
    assert client.found("oiler pum", mode="exact") == []


# ---------------------------------------------------------------------------- redactions


@pytest.mark.guarantee("G-KNOWN-1")
def test_the_reply_counts_the_redactions_since_in_this_workspace(
    home: Home, client: Client
) -> None:
    first = client.add("heron one").id
    moment = client.position()
    second = client.add("heron two").id
    home.open("other").add("heron three")
    other_end = client.position()
    client.redact(first)
    client.redact(second)

    known = client.search("heron", known_at=moment).known_at
    assert known is not None
    assert known.redacted_since == 1
    known = client.inspect(first, known_at=other_end).known_at
    assert known is not None
    assert known.redacted_since == 2
    known = home.open("other").list_page(known_at=other_end).known_at
    assert known is not None
    assert known.redacted_since == 0


def test_after_a_redaction_older_copies_are_used_no_more(home: Home, client: Client) -> None:
    stored = client.add("heron one").id
    client.found("heron", known_at=3)
    (before,) = copies(home)
    client.redact(stored)
    assert copies(home) == []

    client.found("heron", known_at=3)

    (after,) = copies(home)
    assert after != before


def test_a_redaction_of_what_was_said_later_or_elsewhere_is_not_counted(
    home: Home, client: Client
) -> None:
    stored = client.add("heron one").id
    moment = client.position()
    later = client.update(stored, content="heron two").position
    redaction = client.redact(event=later)
    other = home.open("other")
    other.add("heron three")
    end = client.position()
    client.redact(event=redaction.position)  # its reason

    assert _redacted_since(client, moment) == 0
    assert _redacted_since(client, later or 0) == 1
    assert _redacted_since(client, end) == 1
    assert _redacted_since(other, end) == 0


def _redacted_since(client: Client, position: int) -> int:
    known = client.inspect(known_at=position).known_at
    assert known is not None
    return known.redacted_since


def test_a_memory_of_which_nothing_is_left_is_no_deleted_one_in_the_past_either(
    client: Client,
) -> None:
    stored = client.add("heron one").id
    client.delete(stored)
    moment = client.position()
    client.redact(stored)

    assert client.inspect(stored).status == "redacted"
    assert client.inspect(stored, known_at=moment).status == "redacted"
    (missing,) = client.get(stored, known_at=moment).missing
    assert (missing.reason, len(missing.redacted)) == ("redacted", 1)


# ---------------------------------------------------------------------------- copies


def test_by_id_nothing_is_copied_and_a_search_copies_once(
    home: Home, client: Client, moved: tuple[str, str]
) -> None:
    old, _ = moved
    client.inspect(old, known_at=3, include_history=True)
    client.get(old, known_at=3)
    assert copies(home) == []

    client.search("office", known_at=3)
    (copy,) = copies(home)
    inode = (copy / "memory.db").stat().st_ino
    for seen in (client, home.open()):
        seen.search("office", known_at="2026-06-17")
        seen.list_page(known_at=3)
    home.reopened().search("office", known_at=3)
    assert [each / "memory.db" for each in copies(home)] == [copy / "memory.db"]
    assert (copy / "memory.db").stat().st_ino == inode


def test_a_copy_that_is_damaged_is_made_anew(
    home: Home, client: Client, moved: tuple[str, str]
) -> None:
    old, _ = moved
    assert client.found("office", known_at=3) == [old]
    (copy,) = copies(home)
    (copy / "memory.db").write_bytes(b"x" * (copy / "memory.db").stat().st_size)

    assert client.found("office", known_at=3) == [old]


def test_copies_that_are_erased_are_made_anew(
    home: Home, client: Client, moved: tuple[str, str]
) -> None:
    old, _ = moved
    client.found("office", known_at=3)
    assert erase_past(home.path / "projections") == 1

    assert client.found("office", known_at=3) == [old]


def test_a_copy_erased_at_every_read_is_given_up(
    home: Home, client: Client, moved: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("projections.past.PastCopies.is_there", lambda *_: False)

    assert moved
    with client.refused(BusyError, "erased while they are read"):
        client.search("office", known_at=3)
    assert home.verify().problems == []


def test_a_rebuild_makes_older_copies_useless(
    home: Home, client: Client, moved: tuple[str, str]
) -> None:
    old, _ = moved
    client.found("office", known_at=3)
    (before,) = copies(home)

    again = home.rebuilt()

    assert again.found("office", known_at=3) == [old]
    assert copies(home) != [before]


def test_a_cancelled_call_stops_the_making_and_leaves_nothing(
    home: Home, client: Client, moved: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past_build, "PROGRESS_EVERY", 1)
    args = SearchArgs(query="office", known_at=5)
    reported: list[str] = []
    for stop_at in range(1, 4):
        calls: list[Call] = []
        reported.clear()

        def report(_done: float, _total: float | None, message: str) -> None:
            reported.append(message)
            if len(reported) == stop_at:  # noqa: B023 - called before the next round
                calls[0].cancel()  # noqa: B023 - as above

        calls.append(Call(report=report))
        with pytest.raises(CallCancelledError):
            client.store.app.search(args, calls[0])
        assert set(reported) == {"indexing the store as it was"}
        assert copies(home) == []
    assert client.found("office", known_at=5) == [moved[1]]


def test_how_far_the_making_is_is_told_and_never_goes_back(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        client.update(client.add(f"heron {number}").id, content=f"grey heron {number}")
    monkeypatch.setattr(past_build, "PROGRESS_EVERY", 1)
    done: list[float] = []

    call = Call(report=lambda percent, _total, _message: done.append(percent))
    client.store.app.search(SearchArgs(query="heron", known_at=client.position()), call)

    assert done == sorted(done)
    assert done[-1] == 100


def test_a_full_disk_is_named_and_nothing_half_made_stays(
    home: Home, client: Client, moved: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    assert moved
    with monkeypatch.context() as patch:
        patch.setattr(past_reads, "fill_indexes", full)
        with client.refused(DiskFullError, "disk is full"):
            client.search("office", known_at=3)
    assert copies(home) == []
    assert client.search("office", known_at=3).returned_count == 1


def test_who_waits_too_long_for_another_maker_is_told_to_come_back(
    home: Home, client: Client, moved: tuple[str, str]
) -> None:
    folder = home.path / "projections" / "past"
    OsFiles().ensure_directory(folder)
    store = Store(Config(home=home.path), clock=home.clock, rebuild_wait_s=0.0)
    try:
        with (folder / "BUILD").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with client.refused(BusyError, "Another process is indexing"):
                Client(store).search("office", known_at=5)
    finally:
        store.close()

    assert moved
    assert client.search("office", known_at=5).returned_count == 1


def test_a_read_only_store_looks_back_without_a_file_in_its_home(
    home: Home, client: Client, moved: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, _ = moved
    client.store.upkeep.stop(5.0)
    home.close()
    before = sorted(home.path.rglob("*"))
    monkeypatch.setattr(OsFiles, "may_write", lambda *_: False)

    reader = home.open()

    assert reader.store.is_read_only
    assert reader.found("office", known_at=3) == [old]
    home.close()
    assert sorted(home.path.rglob("*")) == before


def test_a_day_is_the_whole_of_it(home: Home, client: Client) -> None:
    home.clock.set("2026-06-20T23:59:59.999999Z")
    stored = client.add("heron").id
    home.clock.us += DAY_US

    assert client.found("heron", known_at="2026-06-20") == [stored]
    assert client.found("heron", known_at="2026-06-20T23:59:59.999998Z") == []
