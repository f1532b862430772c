"""The audit export as a command, a program and a stranger use it."""

import json
import re
import shlex
import stat
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ledger import Position, create_checkpoint, read_signer
from projections.redactions import redacted_records
from server import audit_export
from server.audit_args import AuditExportArgs
from server.audit_export import ATTEMPTS
from server.audit_results import AuditExportResult
from server.bundle import UnaccountedError, write_bundle
from server.copies import copies_from
from server.errors import (
    BusyError,
    CallCancelledError,
    DamagedError,
    FolderExistsError,
    InvalidArgumentsError,
    NotFoundError,
    ReadOnlyError,
)
from server.schema import convert
from server.tool import Call
from tests.support.bundles import checked, edit, erase
from tests.support.cli import Shell
from tests.support.store import Client, Home


@pytest.fixture
def client(home: Home) -> Client:
    return home.open(name="ana")


def export(client: Client, folder: Path, **fields: object) -> AuditExportResult:
    return exported(client, folder, Call(), fields)


def exported(
    client: Client, folder: Path, call: Call, fields: Mapping[str, object]
) -> AuditExportResult:
    args = convert({"folder": str(folder), **fields}, AuditExportArgs)
    return client.store.app.audit_export(args, call)


def subjects(folder: Path) -> set[str]:
    lines = (folder / "records.jsonl").read_bytes().splitlines()
    return {json.loads(line)["h"]["sub"] for line in lines}


# ---------------------------------------------------------------------------- scopes


def test_the_whole_ledger_is_exported_up_to_its_end(client: Client, tmp_path: Path) -> None:
    client.add("tea")
    client.delete_many(everything=True)

    result = export(client, tmp_path / "b")

    assert (result.is_whole, result.position, result.records) == (True, 4, 4)
    verdict = checked(tmp_path / "b", "--key", result.public_key)
    assert (verdict.status, verdict.problems) == (0, [])


def test_an_empty_ledger_is_exported_too(client: Client, tmp_path: Path) -> None:
    assert export(client, tmp_path / "b").records == 0
    assert checked(tmp_path / "b").status == 0


@pytest.mark.guarantee("G-AUDIT-2")
def test_a_memory_is_exported_alone_with_names_and_redaction(
    client: Client, tmp_path: Path
) -> None:
    memory, other = client.add("hunter2").id, client.add("tea").id
    client.call("memory_redact", {"id": memory, "reason": "a password"})

    result = export(client, tmp_path / "b", memory=memory)

    assert (result.is_whole, result.redacted_records) == (False, 1)
    assert memory in subjects(tmp_path / "b")
    assert other not in subjects(tmp_path / "b")
    assert checked(tmp_path / "b").status == 0
    summary = json.loads((tmp_path / "b" / "summary.json").read_bytes())
    (redaction,) = summary["redactions"]
    assert (redaction["by"], redaction["reason"]) == ("ana", "a password")
    assert summary["scope"]["memory"] == memory


@pytest.mark.guarantee("G-AUDIT-2")
def test_an_entity_is_exported_by_any_of_its_names(client: Client, tmp_path: Path) -> None:
    one, two = client.add("tea", entity_name="Ana").id, client.add("x", entity_name="Anna").id
    other = client.add("roof", entity_name="boiler").id
    client.alias("add", alias="Anna", entity_name="Ana")

    export(client, tmp_path / "b", entity="Ana")

    found = subjects(tmp_path / "b")
    assert {one, two} <= found
    assert other not in found
    assert checked(tmp_path / "b").status == 0


def test_a_workspace_is_exported_without_the_others(
    home: Home, client: Client, tmp_path: Path
) -> None:
    here, there = client.add("tea").id, home.open("there").add("roof").id

    export(client, tmp_path / "b", only_workspace=True)

    assert here in subjects(tmp_path / "b")
    assert there not in subjects(tmp_path / "b")
    assert checked(tmp_path / "b").status == 0


@pytest.mark.guarantee("G-AUDIT-2")
def test_a_range_is_exported_by_dates_and_by_positions(
    home: Home, client: Client, tmp_path: Path
) -> None:
    first = client.add("one").id
    home.clock.advance(days=1)
    second = client.add("two")
    home.clock.advance(days=1)
    third = client.add("three").id

    export(client, tmp_path / "dates", **{"from": "2026-06-16", "to": "2026-06-16"})
    place = str(second.position)
    export(client, tmp_path / "positions", **{"from": place, "to": place})

    for folder in (tmp_path / "dates", tmp_path / "positions"):
        assert second.id in subjects(folder)
        assert not {first, third} & subjects(folder)
        assert checked(folder).status == 0


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"memory": "never"}, NotFoundError),
        ({"entity": "nobody"}, NotFoundError),
        ({"from": "2999-01-01"}, NotFoundError),
        ({"from": "2025-06", "to": "2025-06"}, NotFoundError),
        ({"from": "soonish"}, InvalidArgumentsError),
        ({"from": "3", "to": "2"}, InvalidArgumentsError),
        ({"checkpoint": "nowhere"}, InvalidArgumentsError),
    ],
)
def test_what_is_not_there_is_refused_and_nothing_is_written(
    client: Client, tmp_path: Path, fields: dict[str, str], error: type[Exception]
) -> None:
    client.add("tea")

    with pytest.raises(error):
        export(client, tmp_path / "b", **fields)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]


def test_a_workspace_that_was_never_written_to_is_refused(home: Home, tmp_path: Path) -> None:
    home.open().add("tea")

    with pytest.raises(NotFoundError):
        export(home.open("empty"), tmp_path / "b", only_workspace=True)


def test_a_folder_that_exists_is_refused(client: Client, tmp_path: Path) -> None:
    with pytest.raises(FolderExistsError):
        export(client, tmp_path)


# ---------------------------------------------------------------------------- checkpoints


def test_an_export_extends_the_one_before(client: Client, tmp_path: Path) -> None:
    memory = client.add("tea").id
    first = export(client, tmp_path / "first")
    client.update(memory, content="coffee")

    for name, fields in (("whole", {}), ("part", {"memory": memory})):
        result = export(client, tmp_path / name, **fields)

        assert result.earlier_position is not None
        kept = str(tmp_path / "first" / "checkpoint")
        verdict = checked(tmp_path / name, "--key", first.public_key, "--checkpoint", kept)
        assert verdict.status == 0
        assert any("the given checkpoint (position 3)" in text for text in verdict.proven)


def test_a_part_is_comparable_with_the_checkpoint_that_was_given(
    client: Client, home: Home, tmp_path: Path
) -> None:
    memory = client.add("tea").id
    export(client, tmp_path / "old")
    kept = tmp_path / "old" / "checkpoint"
    client.update(memory, content="coffee")
    (home.path / "ledger" / "checkpoints").unlink()  # the store has forgotten it

    export(client, tmp_path / "new", memory=memory, checkpoint=str(kept))

    assert checked(tmp_path / "new", "--checkpoint", str(kept)).status == 0


def test_a_ledger_that_does_not_extend_the_given_checkpoint_is_not_exported(
    client: Client, tmp_path: Path, home: Home
) -> None:
    client.add("tea")
    export(client, tmp_path / "old")
    signer = read_signer(home.path / "checkpoint.key", client.store.ledger.identity.origin)
    assert signer is not None
    made = create_checkpoint(client.store.ledger, signer, lock_timeout_s=5)
    forged = type(made.checkpoint)(made.checkpoint.origin, 2, b"\0" * 32)
    (tmp_path / "kept").write_bytes(signer.sign(forged).encode())
    client.add("more")

    with pytest.raises(DamagedError):
        export(client, tmp_path / "new", checkpoint=str(tmp_path / "kept"))

    assert not (tmp_path / "new").exists()


def test_a_ledger_whose_end_was_cut_does_not_verify_against_an_earlier_export(
    home: Home, client: Client, tmp_path: Path, cli: Shell
) -> None:
    for number in range(10):
        client.add(f"number {number}")
    export(client, tmp_path / "kept")
    home.close()
    (live,) = home.segments
    lines = live.read_bytes().splitlines(keepends=True)
    live.write_bytes(b"".join(lines[:-3]))
    (home.path / "ledger" / "checkpoints").unlink()
    for path in sorted((home.path / "projections").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()

    against = str(tmp_path / "kept" / "checkpoint")
    verdict = cli("verify", "--against", against)

    assert verdict.status == 1
    assert "10 to 12" in verdict.out


# ---------------------------------------------------------------------------- redactions meanwhile


def test_a_redaction_that_comes_meanwhile_has_the_bundle_written_anew(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = client.add("hunter2").id
    client.add("tea")
    calls: list[int] = []

    def redact_first(*args: Any, **more: Any) -> Any:
        calls.append(1)
        before = more["before_it_is_named"]

        def redacted_in_between() -> None:
            if len(calls) == 1:
                client.call("memory_redact", {"id": memory, "reason": "a password"})
            before()

        return write_bundle(*args, **{**more, "before_it_is_named": redacted_in_between})

    monkeypatch.setattr(audit_export, "write_bundle", redact_first)

    result = export(client, tmp_path / "b")

    assert (len(calls), result.redacted_records) == (2, 1)
    assert b"hunter2" not in (tmp_path / "b" / "records.jsonl").read_bytes()
    assert checked(tmp_path / "b").status == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "home"]


def test_redactions_that_never_end_are_given_up(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [client.add(f"secret {number}").id for number in range(ATTEMPTS)]

    def redacting(*args: Any, **more: Any) -> Any:
        client.call("memory_redact", {"id": ids.pop(), "reason": "again"})
        return write_bundle(*args, **more)

    monkeypatch.setattr(audit_export, "write_bundle", redacting)

    with pytest.raises((BusyError, DamagedError)):
        export(client, tmp_path / "b")

    assert not (tmp_path / "b").exists()


def test_what_is_named_and_not_erased_yet_does_not_leave_the_store(
    client: Client, tmp_path: Path
) -> None:
    """The process died between the intent and the erasing."""
    memory = client.add("hunter2").id
    ledger = client.store.ledger
    before = next(path for path in ledger.layout.log.iterdir()).read_bytes()
    client.call("memory_redact", {"id": memory, "reason": "a password"})
    (record,) = [each for each in ledger.read(Position.start) if each.header.sub == memory][:1]
    assert record.payload is None
    assert b"hunter2" in before
    named = client.store.reads.run(Call(), redacted_records)
    assert record.seq in named

    export(client, tmp_path / "b")

    assert b"hunter2" not in b"".join(path.read_bytes() for path in (tmp_path / "b").iterdir())


@pytest.mark.guarantee("G-ERASE-2")
def test_a_payload_that_is_missing_without_a_redaction_is_not_exported(
    home: Home, client: Client, tmp_path: Path
) -> None:
    client.add("tea")
    client.add("coffee")
    erase(client.store.ledger, 3)
    reopened = home.reopened()

    with pytest.raises(DamagedError, match="payload of record 3"):
        export(reopened, tmp_path / "b")

    assert not (tmp_path / "b").exists()
    assert UnaccountedError(3).seq == 3


# ---------------------------------------------------------------------------- the process


def test_a_call_that_is_taken_back_leaves_nothing(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_export, "PROGRESS_RECORDS", 1)
    for number in range(5):
        client.add(f"number {number}")
    seen = threading.Event()

    def report(_done: float, _total: float | None, message: str) -> None:
        if message == "writing the records":
            seen.set()
            call.cancel()

    call = Call(report=report)

    with pytest.raises(CallCancelledError):
        exported(client, tmp_path / "b", call, {})

    assert seen.is_set()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]


def test_the_store_remembers_that_there_is_a_bundle(
    home: Home, client: Client, tmp_path: Path
) -> None:
    client.add("tea")

    export(client, tmp_path / "b")

    (copy,) = copies_from(home.path, 1)
    assert (copy.kind, copy.path, copy.position) == ("audit", tmp_path / "b", 3)


def test_a_store_that_can_only_be_read_cannot_sign(home: Home, tmp_path: Path) -> None:
    home.open().add("tea")
    home.close()
    reading = home.open()
    reading.store.ledger.refusal = "read_only"

    with pytest.raises(ReadOnlyError):
        export(reading, tmp_path / "b")


# ---------------------------------------------------------------------------- command and stranger


def test_the_command_writes_a_bundle_and_says_what_to_give_whoever_checks_it(
    cli: Shell, tmp_path: Path
) -> None:
    memory = cli.add("tea", "--entity-name", "Ana")
    cli.add("far", "--workspace", "there")

    whole = cli("audit", "export", str(tmp_path / "whole"))
    part = cli("audit", "export", str(tmp_path / "part"), "--workspace", "there", "--json").json
    again = cli("audit", "export", str(tmp_path / "part"))

    assert whole.status == 0
    assert f"exported the whole ledger up to position 5 to {tmp_path / 'whole'}\n" in whole.out
    assert re.search(r"^public key: mnemolog/\w+\+[0-9a-f]{8}\+\S{44}$", whole.out, re.MULTILINE)
    assert "give the public key by another way" in whole.err
    assert (part["is_whole"], memory in subjects(tmp_path / "part")) == (False, False)
    assert again.status == 3
    assert "exists; name a new folder" in again.err
    assert stat.S_IMODE((tmp_path / "whole").stat().st_mode) == 0o700


@pytest.mark.guarantee("G-AUDIT-1")
def test_a_stranger_follows_the_document_in_the_bundle(cli: Shell, tmp_path: Path) -> None:
    """Each command that VERIFY.md shows, as it stands there, with nothing but Python."""
    memory = cli.add("hunter2")
    cli.add("tea")
    cli("audit", "export", str(tmp_path / "earlier"))
    cli("redact", memory, "--reason", "a password", "--yes")
    key = cli("audit", "export", str(tmp_path / "bundle"), "--json").json["public_key"]
    document = (tmp_path / "bundle" / "VERIFY.md").read_text("utf-8")
    commands = re.findall(r"^\$ (.+)$", document, re.MULTILINE)
    assert len(commands) == 3
    given = {
        "KEY": key,
        "FILE": str(tmp_path / "earlier" / "checkpoint"),
        "python3": sys.executable,
    }

    for command in commands:
        words = [given.get(word, word) for word in shlex.split(command)]
        done = subprocess.run(
            words, cwd=tmp_path / "bundle", env={}, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.endswith("all of it holds\n")
    edit(tmp_path / "bundle" / "records.jsonl", lambda data: data.replace(b"tea", b"pea"))
    done = subprocess.run(
        [sys.executable, "-I", "-S", "verify.py"],
        cwd=tmp_path / "bundle",
        env={},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "PROBLEM record 4: line 4: commitment" in done.stdout
