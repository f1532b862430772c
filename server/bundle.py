"""Audit bundles: a folder with records of a ledger and what proves them to a stranger.

    records.jsonl        lines of the ledger as they stand there, in order
    proofs               of a part only: the ledger's tree as a cover (`ledger.cover`), a piece a
                         line: `record FIRST 1 DIGEST` for a record that is shown and
                         `others FIRST COUNT DIGEST` for a subtree of those that are not
    checkpoint           a signed note over the tree at the position the bundle was made at
    earlier-checkpoint   the newest note that was signed before, if there is one
    public-key           of the notes, as NAME+ID+BASE64
    summary.json         what the bundle holds, for people and programs; it is not signed
    VERIFY.md, verify.py how to check it, and what does

The chain proves that a whole ledger is whole. Of a part the cover proves that each record is the
ledger's, and that the earlier checkpoint is of the same history.

The folder is written under another name beside its own and renamed once it is whole and on disk.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from ledger import (
    AgentRegistered,
    Checkpoint,
    Cover,
    CoverNode,
    Ledger,
    LedgerBehindError,
    LedgerDamagedError,
    MemoryRedacted,
    OsFiles,
    Position,
    Record,
    RedactionCompleted,
    RedactionExplained,
    Tree,
    WorkspaceCreated,
    line_of,
)
from server.bundle_scope import Selection

BUNDLE_FORMAT: Final = 1
FILES: Final = Path(__file__).with_name("bundle_files")
"""What every bundle is given."""

_BUFFER_BYTES: Final = 1 << 20


class UnaccountedError(Exception):
    """A payload is missing and no redaction up to the checkpoint names it.

    Attributes:
        seq: the record's position.
    """

    def __init__(self, seq: int) -> None:
        """Keep the position."""
        super().__init__(f"the payload of record {seq} is missing")
        self.seq = seq


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What goes into a bundle.

    Attributes:
        checkpoint: What is signed.
        note: The signed note of it.
        key: The public key's text.
        earlier: An earlier signed note; None if there is none.
        anchors: Size -> root of earlier checkpoints; a part can be compared with each.
        selection: The records of a part; None for the whole.
        redacted: Position -> digest of each record that a redaction names, erased or not yet.
        facts: What the summary says besides.
    """

    checkpoint: Checkpoint
    note: bytes
    key: str
    earlier: bytes | None
    anchors: Mapping[int, bytes]
    selection: Selection | None
    redacted: Mapping[int, str]
    facts: Mapping[str, Any]


class RedactionSummary(msgspec.Struct, omit_defaults=True):
    """One redaction, as far as the bundle shows it."""

    redaction: str
    by: str = ""
    at: str = ""
    positions: list[int] = []
    """Where the ledger says it."""
    records: int = 0
    """How many of the bundle's records it erased."""
    reason: str | None = None
    """None if none is kept, or it was redacted too."""
    completed_at: str | None = None
    """None while it is not finished."""


class Account:
    """What is shown, counted as it goes by."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.records = 0
        self.first: Record | None = None
        self.last: Record | None = None
        self.agents: dict[str, str] = {}
        self.workspaces: dict[str, str] = {}
        self.redactions: dict[str, RedactionSummary] = {}
        self._missing: dict[int, str] = {}
        self._named: dict[int, str] = {}

    def take(self, record: Record) -> None:
        """Note a record that is shown."""
        self.records += 1
        self.first = self.first or record
        self.last = record
        header = record.header
        match record.payload:
            case None:
                self._missing[record.seq] = record.digest
            case AgentRegistered(name=name):
                self.agents[header.sub] = name
            case WorkspaceCreated(name=name):
                self.workspaces[header.sub] = name
            case MemoryRedacted(redaction=redaction, targets=targets):
                said = self._redaction(redaction)
                said.by, said.at = header.act, header.t
                said.positions.append(record.seq)
                for target in targets:
                    if self._missing.get(target.seq) == target.digest:
                        said.records += target.seq not in self._named
                        self._named[target.seq] = redaction
            case RedactionExplained(reason=reason):
                self._redaction(header.sub).reason = reason
            case RedactionCompleted():
                self._redaction(header.sub).completed_at = header.t
            case _:
                pass

    def check(self) -> None:
        """Check that a redaction names every payload that is missing.

        Raises:
            UnaccountedError: none names one of them.
        """
        for seq in self._missing:
            if seq not in self._named:
                raise UnaccountedError(seq)

    def facts(self) -> dict[str, Any]:
        """Return what the summary says of what was shown."""
        return {
            "records": self.records,
            "first": None if self.first is None else self.first.seq,
            "last": None if self.last is None else self.last.seq,
            "first_at": None if self.first is None else self.first.header.t,
            "last_at": None if self.last is None else self.last.header.t,
            "redacted_records": len(self._missing),
            "redacted_positions": _spans(sorted(self._missing)),
            "redactions": [
                {**msgspec.to_builtins(each), "by": self.agents.get(each.by, each.by)}
                for each in self.redactions.values()
            ],
            "agents": self.agents,
            "workspaces": self.workspaces,
        }

    def _redaction(self, name: str) -> RedactionSummary:
        return self.redactions.setdefault(name, RedactionSummary(redaction=name))


def write_bundle(
    ledger: Ledger,
    target: Path,
    plan: Plan,
    *,
    tick: Callable[[int], None] = lambda _: None,
    before_it_is_named: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Write a bundle; return its summary.

    Args:
        ledger: is read up to the checkpoint.
        target: the folder, which must not exist.
        plan: what goes into it.
        tick: is told the position of each record read; may raise to stop.
        before_it_is_named: called when all of it is on disk; may raise to stop.

    Raises:
        FileExistsError: the folder exists.
        OSError: it cannot be written; nothing is left behind.
        LedgerDamagedError: the ledger is not what the checkpoint says.
        LedgerBehindError: it does not extend an earlier checkpoint.
        UnaccountedError: a payload is missing without a reason.
    """
    with _new_folder(target) as folder:
        account = Account()
        _write_records(ledger, plan, account, folder, tick)
        account.check()
        summary = {
            "format": BUNDLE_FORMAT,
            "ledger": ledger.id,
            "size": plan.checkpoint.size,
            "is_whole": plan.selection is None,
            **plan.facts,
            **account.facts(),
        }
        texts = {
            "checkpoint": plan.note,
            "public-key": f"{plan.key}\n".encode(),
            "summary.json": msgspec.json.format(msgspec.json.encode(summary), indent=2) + b"\n",
            **{path.name: path.read_bytes() for path in sorted(FILES.iterdir()) if path.is_file()},
        }
        if plan.earlier is not None:
            texts["earlier-checkpoint"] = plan.earlier
        for name, data in texts.items():
            with _new_file(folder / name) as file:
                file.write(data)
        before_it_is_named()
    return summary


def _write_records(
    ledger: Ledger, plan: Plan, account: Account, folder: Path, tick: Callable[[int], None]
) -> None:
    """Write the records, and the proofs of a part, in one walk over the ledger."""
    selection, redacted, size = plan.selection, plan.redacted, plan.checkpoint.size
    anchors = plan.anchors
    cover, tree = Cover(anchors), Tree()
    with ExitStack() as stack:
        records = stack.enter_context(_new_file(folder / "records.jsonl"))
        proofs = None if selection is None else stack.enter_context(_new_file(folder / "proofs"))
        for record in ledger.read(Position.start, size):
            tick(record.seq)
            digest = bytes.fromhex(record.digest)
            tree.append(digest)
            if record.seq in anchors and tree.root() != anchors[record.seq]:
                raise LedgerBehindError(known_seq=record.seq, end_seq=size, reason="other")
            is_shown = selection is None or selection.shows(record.header)
            if is_shown:
                # A redaction may not have come to this record yet: what it names is not shown.
                is_redacted = redacted.get(record.seq) == record.digest
                shown = msgspec.structs.replace(record, payload=None) if is_redacted else record
                account.take(shown)
                records.write(line_of(shown))
            if proofs is not None:
                proofs.writelines(map(_proof_line, cover.add(digest, is_shown=is_shown)))
        if proofs is not None:
            proofs.writelines(map(_proof_line, cover.finish()))
    if (beyond := max(anchors, default=0)) > size:
        raise LedgerBehindError(known_seq=beyond, end_seq=size, reason="shorter")
    if tree.size != size or tree.root() != plan.checkpoint.root:
        raise LedgerDamagedError(
            segment="checkpoints",
            seq=size,
            offset=0,
            reason="checkpoint: the ledger is not what was signed",
        )


def _proof_line(node: CoverNode) -> bytes:
    kind = "record" if node.is_shown else "others"
    return f"{kind} {node.first} {node.count} {node.digest.hex()}\n".encode()


def _spans(numbers: list[int]) -> list[list[int]]:
    """Return runs of numbers as first and last."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return spans


@contextmanager
def _new_folder(target: Path) -> Iterator[Path]:
    """Make a folder of mode 0700 under a name beside its own, which it gets after the block."""
    parent = target.absolute().parent
    if target.exists() or target.is_symlink():
        raise FileExistsError(target)
    beside = parent / f".mnemolog-{os.getpid()}-{time.monotonic_ns()}.part"
    beside.mkdir(mode=0o700)
    try:
        yield beside
        OsFiles().sync_names(beside)
        # Only an empty folder is replaced by a rename, and only this call made that one.
        target.mkdir(mode=0o700)
        beside.rename(target)
        OsFiles().sync_names(parent)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


@contextmanager
def _new_file(path: Path) -> Iterator[IO[bytes]]:
    """Write a file of mode 0600 that is on disk after the block."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb", buffering=_BUFFER_BYTES) as file:
        yield file
        file.flush()
        os.fsync(fd)
