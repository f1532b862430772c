"""Checkpoints of a ledger: making, publishing, and proving from them.

A checkpoint is signed over everything durable, after the ledger has been read from its first record
and found whole, and found to extend every checkpoint in its own file: two that contradict each
other are never signed.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from ledger.errors import (
    LedgerBehindError,
    LedgerWriteError,
    NoteError,
    PublishedBehindError,
    WriteOutcome,
)
from ledger.merkle import HASH_BYTES, Growth, Run, consistency_runs, inclusion_runs
from ledger.note import Checkpoint, Signer, VerifierKey, to_base64
from ledger.notes import NoteFile, SignedCheckpoint, objection, parse_notes, read_notes
from ledger.osfile import read_file, write_reason
from ledger.quarantine import keep_aside
from ledger.record import Position
from ledger.store import Ledger

Progress = Callable[[int, int], None]
"""Called with how many records have been read and how many there are."""

PROGRESS_EVERY = 1_000
_PIECE_BYTES = PROGRESS_EVERY * HASH_BYTES

_PUBLIC_MODE = 0o644
"""Of a file outside that is made: it is there to be read by others, and says nothing of people."""

PROOF_HEADING = "c2sp.org/tlog-proof@v1"
"""First line of an inclusion proof (C2SP tlog-proof)."""


class MadeCheckpoint(Struct, frozen=True, kw_only=True):
    """A checkpoint that is in a file now.

    Attributes:
        checkpoint: the checkpoint.
        data: its note's bytes.
        is_new: it was put there now, and was not there before.
    """

    checkpoint: Checkpoint
    data: bytes
    is_new: bool


class Proof(Struct, frozen=True, kw_only=True):
    """A proof with the checkpoint it leads to.

    Attributes:
        hashes: the proof, 32 bytes each.
        checkpoint: where it leads.
        text: the whole of it, for others to check.
    """

    hashes: list[bytes]
    checkpoint: Checkpoint
    text: str


def list_checkpoints(ledger: Ledger) -> list[SignedCheckpoint]:
    """Return the checkpoints of a ledger's own file, in the order in which they were made.

    Raises:
        LedgerUnreadableError: the system refuses to read it.
    """
    return _own(ledger).notes


def create_checkpoint(
    ledger: Ledger,
    signer: Signer,
    *,
    lock_timeout_s: float,
    known: Position | None = None,
    progress: Progress | None = None,
) -> MadeCheckpoint:
    """Sign a checkpoint over all that the ledger holds, and put it into the ledger's own file.

    If the newest one there is already that, and signed by the same key, it is returned.

    Args:
        ledger: the ledger.
        signer: the key.
        lock_timeout_s: how long to wait for the ledger's lock, each time, in seconds.
        known: a position that is known to be durable, if there is one.
        progress: told about every thousand records.

    Raises:
        LedgerDamagedError: the ledger is damaged; nothing was signed.
        LedgerBehindError: it does not extend `known`, or a checkpoint made before.
        LedgerReadOnlyError: nothing can be written.
        LedgerWriteError: the checkpoint could not be written.
        LockTimeoutError: another writer kept the lock.
    """
    with ledger.lock(lock_timeout_s) as writer:
        end = writer.secure(known)
    made_before = _mine(ledger, _own(ledger).notes)
    tree = grow_tree(ledger, end.seq, sizes=[end.seq, *_sizes(made_before)], progress=progress)
    check_extends(tree, made_before)
    if tree.size < end.seq:
        raise LedgerBehindError(known_seq=end.seq, end_seq=tree.size, reason="shorter")
    checkpoint = Checkpoint(ledger.identity.origin, end.seq, tree.root(end.seq))
    with ledger.lock(lock_timeout_s):
        before = _bytes(ledger.layout.checkpoints)
        found = parse_notes(before or b"")
        newest = found.newest_of(checkpoint.origin)
        if (
            newest is not None
            and newest.checkpoint == checkpoint
            and signer.key.judge(newest.note) == "good"
        ):
            # Whoever put it there may have died before it was synced.
            _append(ledger, before, found, b"")
            return MadeCheckpoint(checkpoint=checkpoint, data=newest.data, is_new=False)
        data = signer.sign(checkpoint).encode()
        _append(ledger, before, found, data)
    return MadeCheckpoint(checkpoint=checkpoint, data=data, is_new=True)


def publish_checkpoint(
    ledger: Ledger, key: VerifierKey, path: Path, *, progress: Progress | None = None
) -> MadeCheckpoint:
    """Append the ledger's newest checkpoint to a file outside, which is replaced as one.

    Args:
        ledger: the ledger.
        key: whose signature the checkpoints must have.
        path: the file; a link to it is followed. It is made if it is not there.
        progress: told about every thousand records.

    Raises:
        NoteError: there is no checkpoint yet, or the file holds something else, or a checkpoint
            of another ledger or key.
        PublishedBehindError: the ledger does not extend what the file holds.
        LedgerBehindError: it does not extend its own checkpoint.
        LedgerDamagedError: the ledger is damaged.
        LedgerUnreadableError: the system refuses to read the file.
        OSError: it cannot be written; it is as it was.
    """
    newest = newest_checkpoint(ledger)
    if key.judge(newest.note) != "good":
        raise NoteError(
            "the newest checkpoint is not signed by this key; `checkpoint create` first"
        )
    target = path.resolve()
    there = read_notes(target)
    notes = [] if there is None else checked(there, path, ledger.identity.origin, key)
    sizes = _sizes([newest, *notes])
    tree = grow_tree(ledger, max(sizes), sizes=sizes, progress=progress)
    check_extends(tree, [newest])
    try:
        check_extends(tree, notes)
    except LedgerBehindError as behind:
        raise PublishedBehindError(path, behind) from behind
    if any(each.checkpoint == newest.checkpoint for each in notes):
        return MadeCheckpoint(checkpoint=newest.checkpoint, data=newest.data, is_new=False)
    _replace_outside(ledger, target, (_bytes(target) or b"") + newest.data)
    return MadeCheckpoint(checkpoint=newest.checkpoint, data=newest.data, is_new=True)


def prove_record(
    ledger: Ledger,
    seq: int,
    *,
    checkpoint: SignedCheckpoint | None = None,
    progress: Progress | None = None,
) -> Proof:
    """Prove that a record is in the ledger as a checkpoint has it.

    Args:
        ledger: the ledger.
        seq: the record.
        checkpoint: of this ledger; its newest, unless given.
        progress: told about every thousand records.

    Returns:
        The proof; its text is a C2SP tlog-proof. The leaf it is about is the record's digest.

    Raises:
        NoteError: there is no checkpoint, or it does not reach the record.
        LedgerBehindError: the ledger does not extend the checkpoint.
        LedgerDamagedError: the ledger is damaged.
    """
    signed = checkpoint or newest_checkpoint(ledger)
    size = signed.checkpoint.size
    if not 1 <= seq <= size:
        raise NoteError(f"the checkpoint covers records 1 to {size}, and {seq} is none of them")
    runs = inclusion_runs(seq - 1, size)
    tree = grow_tree(ledger, size, sizes=[size], runs=runs, progress=progress)
    check_extends(tree, [signed])
    hashes = tree.proof()
    text = proof_text(seq - 1, hashes, signed.data)
    return Proof(hashes=hashes, checkpoint=signed.checkpoint, text=text)


def prove_extension(
    ledger: Ledger, old: SignedCheckpoint, *, progress: Progress | None = None
) -> Proof:
    """Prove that the newest checkpoint extends an old one.

    Args:
        ledger: the ledger.
        old: a checkpoint of this ledger.
        progress: told about every thousand records.

    Returns:
        The proof; its text is the body of a C2SP witness's add-checkpoint request.

    Raises:
        NoteError: there is no checkpoint yet, or none as late as the old one.
        LedgerBehindError: the ledger does not extend the old checkpoint, or the newest.
        LedgerDamagedError: the ledger is damaged.
    """
    newest = newest_checkpoint(ledger)
    size, old_size = newest.checkpoint.size, old.checkpoint.size
    runs = consistency_runs(min(old_size, size), size)
    tree = grow_tree(
        ledger, max(size, old_size), sizes=[size, old_size], runs=runs, progress=progress
    )
    check_extends(tree, [old, newest])
    if old_size > size:
        raise NoteError(f"the newest checkpoint has {size} records, the old one {old_size}")
    hashes = tree.proof()
    lines = [f"old {old_size}", *map(to_base64, hashes)]
    text = "\n".join(lines) + "\n\n" + newest.data.decode()
    return Proof(hashes=hashes, checkpoint=newest.checkpoint, text=text)


def proof_text(index: int, hashes: Sequence[bytes], note: bytes) -> str:
    """Return an inclusion proof as a C2SP tlog-proof.

    Args:
        index: of the leaf, from 0.
        hashes: from the leaf's sibling up.
        note: the checkpoint's bytes.
    """
    lines = [PROOF_HEADING, f"index {index}", *map(to_base64, hashes)]
    return "\n".join(lines) + "\n\n" + note.decode()


def newest_checkpoint(ledger: Ledger) -> SignedCheckpoint:
    """Return the newest checkpoint of a ledger's own file.

    Raises:
        NoteError: there is none.
        LedgerUnreadableError: the system refuses to read the file.
    """
    newest = _own(ledger).newest_of(ledger.identity.origin)
    if newest is None:
        raise NoteError("the ledger has no checkpoint yet; `checkpoint create` makes one")
    return newest


def newest_of(notes: Sequence[SignedCheckpoint]) -> SignedCheckpoint:
    """Return the checkpoint of the most records among one or more; of several such the last."""
    return max(reversed(notes), key=lambda each: each.checkpoint.size)


def read_published(path: Path, origin: str, key: VerifierKey) -> list[SignedCheckpoint]:
    """Return the checkpoints of a file outside, every one of this ledger and signed by this key.

    Raises:
        NoteError: they are not, or there is none, or no file.
        LedgerUnreadableError: the system refuses to read the file.
    """
    found = read_notes(path)
    if found is None:
        raise NoteError(f"there is no file {path}")
    notes = checked(found, path, origin, key)
    if not notes:
        raise NoteError(f"{path} holds no checkpoint")
    return notes


def checked(found: NoteFile, path: Path, origin: str, key: VerifierKey) -> list[SignedCheckpoint]:
    """Return the checkpoints of a file if it holds nothing else, of this ledger and key.

    Raises:
        NoteError: the first thing that is not so.
    """
    for flaw in [*found.flaws, *([found.torn] if found.torn else [])]:
        raise NoteError(f"{path} is no file of checkpoints: byte {flaw.offset}: {flaw.detail}")
    for each in found.notes:
        wrong = objection(each, origin, key)
        if wrong is not None:
            raise NoteError(f"{path}: byte {each.offset}: {wrong.detail}")
    return found.notes


def grow_tree(
    ledger: Ledger,
    until_seq: int,
    *,
    sizes: Iterable[int] = (),
    runs: Iterable[Run] = (),
    progress: Progress | None = None,
) -> Growth:
    """Return the tree over a ledger's records, each of them checked, up to and with `until_seq`.

    It has fewer if the ledger ends before. Payloads are held against their commitments and not
    decoded, and nothing is kept but what was asked for.

    Args:
        ledger: the ledger.
        until_seq: the last record.
        sizes: at which the roots are wanted.
        runs: of leaves, from 0, whose roots are wanted: those of a proof.
        progress: told about every thousand records.

    Raises:
        LedgerDamagedError: the ledger is damaged.
    """
    tree = Growth(sizes, runs)
    for digests in ledger.read_digests(until_seq):
        at = 0
        while at < len(digests):
            # Up to the next thousand, so that what is told are round numbers.
            piece = _PIECE_BYTES - tree.size % PROGRESS_EVERY * HASH_BYTES
            tree.extend(digests[at : at + piece])
            at += piece
            if progress is not None and tree.size % PROGRESS_EVERY == 0:
                progress(tree.size, until_seq)
    return tree


def check_extends(tree: Growth, notes: Iterable[SignedCheckpoint]) -> None:
    """Raise unless the records of a tree are those that the checkpoints have signed.

    Raises:
        LedgerBehindError: they are not; names the first checkpoint that is not extended.
    """
    for each in sorted(notes, key=lambda each: each.checkpoint.size):
        size = each.checkpoint.size
        if size > tree.size:
            raise LedgerBehindError(known_seq=size, end_seq=tree.size, reason="shorter")
        if tree.root(size) != each.checkpoint.root:
            raise LedgerBehindError(known_seq=size, end_seq=tree.size, reason="other")


def _own(ledger: Ledger) -> NoteFile:
    return read_notes(ledger.layout.checkpoints) or parse_notes(b"")


def _mine(ledger: Ledger, notes: Iterable[SignedCheckpoint]) -> list[SignedCheckpoint]:
    return [each for each in notes if each.checkpoint.origin == ledger.identity.origin]


def _sizes(notes: Iterable[SignedCheckpoint]) -> list[int]:
    return [each.checkpoint.size for each in notes]


def _bytes(path: Path) -> bytes | None:
    try:
        return read_file(path)
    except FileNotFoundError:
        return None


def _append(ledger: Ledger, before: bytes | None, found: NoteFile, data: bytes) -> None:
    """Append to the ledger's own file and sync it. Only under the lock.

    Args:
        ledger: the ledger.
        before: the file's bytes, None if there is no file.
        found: what they are; a tear among them is kept aside.
        data: what is appended.

    Raises:
        LedgerWriteError: it is not there, or perhaps.
    """
    files, path = ledger.files, ledger.layout.checkpoints
    outcome: WriteOutcome = "not_written"
    try:
        if before is None or found.torn is not None:
            whole = before or b""
            if found.torn is not None:
                kept = keep_aside(
                    ledger.layout,
                    files,
                    whole[found.torn.offset :],
                    of=path.name,
                    label=path.name,
                    offset=found.torn.offset,
                    now_us=ledger.clock.now_us(),
                )
                ledger.reports.append(kept)
                whole = whole[: found.torn.offset]
            files.replace_file(path, whole + data)
            return
        fd = files.open_write(path)
        try:
            files.write_all(fd, data, len(before))
            files.sync(fd)
        except OSError:
            # A sync that failed is not asked again: the file is made anew as it was.
            outcome = "unknown"
            files.replace_file(path, before)
            outcome = "not_written"
            raise
        finally:
            files.close(fd)
    except OSError as error:
        raise LedgerWriteError(outcome=outcome, reason=write_reason(error)) from error


def _replace_outside(ledger: Ledger, target: Path, data: bytes) -> None:
    """Put a file in place as one, under the mode it has, or one for all to read."""
    files = ledger.files
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else _PUBLIC_MODE
    # In a folder of others, so under a name that is nobody's.
    beside = target.with_name(f".{target.name}.{ledger.ids.new_id()}.tmp")
    try:
        files.write_file(beside, data)
        fd = files.open_write(beside)
        try:
            files.change_mode(fd, mode)
        finally:
            files.close(fd)
        files.rename_file(beside, target)
    except OSError:
        with suppress(OSError):
            files.unlink(beside)
        raise
