"""Bundles for tests: a small history with every kind of record, exported, damaged and checked."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger import (
    AgentRegistered,
    Batch,
    Checkpoint,
    Event,
    Ledger,
    MemoryAdded,
    MemoryDeleted,
    MemoryRedacted,
    MemoryState,
    MemoryUpdated,
    NewEvent,
    Position,
    Record,
    RedactedRecord,
    RedactionCompleted,
    RedactionExplained,
    Signer,
    Tree,
    WorkspaceCreated,
)
from server.bundle import FILES, Plan, write_bundle
from server.bundle_files import verify as script
from server.bundle_scope import Scope, Selection, subjects_about
from tests.support.ledgers import CountingIds, live_path, open_ledger

HANG_SECONDS: Final = 60.0

SCRIPT: Final = FILES / "verify.py"


def private_key(number: int = 1) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)


def checkpoint_at(ledger: Ledger, size: int) -> Checkpoint:
    tree = Tree()
    for record in ledger.read(Position.start, size):
        tree.append(bytes.fromhex(record.digest))
    assert tree.size == size
    return Checkpoint(ledger.identity.origin, size, tree.root())


def note_at(ledger: Ledger, size: int, key: int = 1) -> bytes:
    signer = Signer(ledger.identity.origin, private_key(key))
    return signer.sign(checkpoint_at(ledger, size)).encode()


def redacted_in(records: Sequence[Record]) -> dict[int, str]:
    return {
        target.seq: target.digest
        for record in records
        if isinstance(record.payload, MemoryRedacted)
        for target in record.payload.targets
    }


def make_bundle(
    ledger: Ledger, target: Path, scope: Scope | None = None, *, earlier: int = 0
) -> dict[str, Any]:
    """Export a ledger, with a checkpoint at its end and perhaps an earlier one."""
    records = list(ledger.read(Position.start))
    size = len(records)
    redacted = redacted_in(records)
    selection = None
    scope = scope or Scope(to_seq=size)
    if not scope.is_whole(size):
        subjects = subjects_about(records, scope, redacted) if scope.entity_names else None
        selection = Selection(scope, subjects, redacted)
        for record in records:
            selection.study(record)
    signer = Signer(ledger.identity.origin, private_key())
    plan = Plan(
        checkpoint=checkpoint_at(ledger, size),
        note=note_at(ledger, size),
        key=signer.key.text,
        earlier=note_at(ledger, earlier) if earlier else None,
        anchors={earlier: checkpoint_at(ledger, earlier).root} if earlier else {},
        selection=selection,
        redacted=redacted,
        facts={"scope": {"from": scope.from_seq, "to": scope.to_seq}},
    )
    return write_bundle(ledger, target, plan)


class Verdict:
    """What verify.py ended with."""

    def __init__(self, status: int, report: dict[str, Any], err: str) -> None:
        self.status = status
        self.err = err
        self.problems: list[dict[str, Any]] = report["problems"]
        self.notes: list[str] = report["notes"]
        self.proven: list[str] = report["proven"]
        self.cannot_look: str = report["cannot_look"]

    @property
    def kinds(self) -> list[str]:
        return [problem["kind"] for problem in self.problems]

    def names(self, kind: str) -> list[int]:
        """Return the records that problems of a kind name."""
        return [problem.get("record", 0) for problem in self.problems if problem["kind"] == kind]


def checked(folder: Path, *words: str) -> Verdict:
    """Check a bundle as a stranger does: its own script, nothing else, in an empty folder."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(folder / "verify.py"), "--json", *words],
        cwd=folder,
        env={},
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    assert not done.stderr, done.stderr
    report = json.loads(done.stdout)
    assert report["status"] == done.returncode
    return Verdict(done.returncode, report, done.stderr)


_verified: Final = cache(script.signature_holds)
"""The same few notes are checked thousands of times, some hundredths of a second each."""


def report_of(folder: Path) -> script.Report:
    """Check a bundle in this process: thousands of changes cannot each wait for an interpreter."""
    report = script.Report()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(script, "signature_holds", _verified)
        try:
            script.check(folder, script.Wanted("", ""), report, lambda _: None)
        except script.FaultError as fault:
            report.fault(fault)
        except script.CannotLookError as error:
            report.add("cannot_look", str(error))
    return report


def copied(folder: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target)
    return target


def edit(path: Path, change: Callable[[bytes], bytes]) -> None:
    data = path.read_bytes()
    changed = change(data)
    assert changed != data
    path.write_bytes(changed)


# ---------------------------------------------------------------------------- a small ledger

AGENT, OTHER_AGENT = "agentaaaaaaaaaaa", "agentbbbbbbbbbbb"
HERE, THERE = "workspaceaaaaaaa", "workspacebbbbbbb"
ANA, BOILER, SECRET, FAR = (f"memory{letter * 10}" for letter in "abcd")
REDACTION: Final = "redactionaaaaaaa"


def state(content: str, entity: str | None = None) -> MemoryState:
    return MemoryState(content=content, layer="semantic", entity_name=entity)


def small_ledger(root: Path, seed: int = 0) -> Ledger:
    """A ledger of two workspaces in which each kind of record stands, one of them erased."""
    salts = CountingIds()
    for _ in range(seed):
        salts.new_salt()
    ledger = open_ledger(root, ids=salts)

    def write(workspace: str, actor: str, *events: tuple[str, Event, int]) -> None:
        with ledger.lock(5) as writer:
            for _ in writer.catch_up(None):
                pass
            group = writer.group()
            group.add(Batch(workspace, actor, [NewEvent(*event) for event in events]))
            group.commit()

    def salt() -> str:
        return salts.new_salt()

    write(HERE, AGENT, (AGENT, AgentRegistered(salt=salt(), name="ana's editor"), 0))
    write(HERE, AGENT, (HERE, WorkspaceCreated(salt=salt(), name="here"), 0))
    write(HERE, AGENT, (ANA, MemoryAdded(salt=salt(), memory=state("tea", "Ana")), 0))
    write(HERE, AGENT, (BOILER, MemoryAdded(salt=salt(), memory=state("on the roof")), 0))
    write(HERE, AGENT, (SECRET, MemoryAdded(salt=salt(), memory=state("hush", "Ana")), 0))
    write(THERE, OTHER_AGENT, (OTHER_AGENT, AgentRegistered(salt=salt(), name="bob"), 0))
    write(THERE, OTHER_AGENT, (THERE, WorkspaceCreated(salt=salt(), name="there"), 0))
    write(HERE, AGENT, (ANA, MemoryUpdated(salt=salt(), memory=state("coffee", "Ana")), 3))
    write(THERE, AGENT, (FAR, MemoryAdded(salt=salt(), memory=state("far away")), 0))
    (secret,) = (record for record in ledger.read(Position.start) if record.seq == 5)
    named = MemoryRedacted(
        salt=salt(), redaction=REDACTION, targets=(RedactedRecord(seq=5, digest=secret.digest),)
    )
    write(
        HERE,
        OTHER_AGENT,
        (SECRET, named, 5),
        (REDACTION, RedactionExplained(salt=salt(), reason="Ana asked"), 0),
    )
    erase(ledger, 5)
    ledger = open_ledger(root)
    write(HERE, OTHER_AGENT, (REDACTION, RedactionCompleted(salt=salt(), segments=(1,)), 11))
    write(HERE, AGENT, (BOILER, MemoryDeleted(salt=salt(), reason="sold"), 4))
    write(HERE, AGENT, (ANA, MemoryUpdated(salt=salt(), memory=state("water", "Ana")), 8))
    return ledger


def erase(ledger: Ledger, seq: int) -> None:
    """Take a payload away from the live segment, as a redaction does."""
    path = live_path(ledger)
    lines = path.read_bytes().splitlines(keepends=True)
    found = [line for line in lines if line.startswith(b'{"h":{"seq":%d,' % seq)]
    (line,) = found
    start, stop = line.index(b'},"p":') + 6, line.rindex(b',"d":"')
    lines[lines.index(line)] = line[:start] + b"null" + line[stop:]
    ledger.close()
    path.write_bytes(b"".join(lines))
