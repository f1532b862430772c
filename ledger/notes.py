"""Files of checkpoints: signed notes one after the other, a ledger's own file and those outside.

A note ends where its signature lines end, so notes need nothing between them; empty lines there
mean nothing. What is between them or before them and is no note is a flaw. What follows the last
note is a tear: an append that did not finish, which nobody has been told of.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from ledger.errors import LedgerUnreadableError, NoteError
from ledger.layout import Layout
from ledger.note import DASH, Checkpoint, Note, VerifierKey, parse_note
from ledger.osfile import read_file

TEXT_BYTES_MAX = 4096
"""Longest text of a checkpoint that is read; ours have some 80 bytes."""

_DASH = DASH.encode()


class SignedCheckpoint(Struct, frozen=True):
    """One checkpoint as it stands in a file.

    Attributes:
        note: text and signatures, which nobody has checked yet.
        checkpoint: what the text says.
        data: its bytes.
        offset: where in the file they begin.
    """

    note: Note
    checkpoint: Checkpoint
    data: bytes
    offset: int


class Flaw(Struct, frozen=True):
    """Bytes of a file that are no checkpoint.

    Attributes:
        offset: where in the file they begin.
        size: how many they are.
        detail: what is wrong with them.
    """

    offset: int
    size: int
    detail: str


class NoteFile(Struct, frozen=True):
    """What a file of checkpoints holds.

    Attributes:
        notes: the checkpoints in their order.
        flaws: what stands before a checkpoint and is none.
        torn: what stands after the last one and is none; None if nothing does.
    """

    notes: list[SignedCheckpoint]
    flaws: list[Flaw]
    torn: Flaw | None

    def newest_of(self, origin: str) -> SignedCheckpoint | None:
        """Return the checkpoint of the most records of a ledger, of several such the last."""
        mine = [each for each in self.notes if each.checkpoint.origin == origin]
        return max(reversed(mine), key=lambda each: each.checkpoint.size, default=None)


def parse_notes(data: bytes) -> NoteFile:
    """Return what the bytes of a file of checkpoints hold."""
    notes: list[SignedCheckpoint] = []
    flaws: list[Flaw] = []
    bad: Flaw | None = None
    at, gap = 0, -1
    while at < len(data):
        if gap < at:
            gap = data.find(b"\n\n", at)
            gap = len(data) if gap < 0 else gap
        try:
            found = _note_at(data, at, gap)
        except NoteError as error:
            # Whatever is wrong, the next line may begin a note that is whole.
            stop = data.find(b"\n", at) + 1 or len(data)
            if bad is not None:
                bad = Flaw(bad.offset, stop - bad.offset, bad.detail)
            elif data[at:stop] != b"\n":
                bad = Flaw(at, stop - at, str(error))
            at = stop
            continue
        if bad is not None:
            flaws.append(bad)
            bad = None
        notes.append(found)
        at += len(found.data)
    return NoteFile(notes, flaws, bad)


def read_notes(path: Path) -> NoteFile | None:
    """Return what a file of checkpoints holds; None if there is no file.

    Raises:
        LedgerUnreadableError: the system refuses to read it.
    """
    try:
        return parse_notes(read_file(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LedgerUnreadableError(path, str(error)) from error


class Objection(Struct, frozen=True):
    """Why a checkpoint is not to be believed.

    Attributes:
        detail: the reason, for people.
        is_unsigned: it is of the right ledger, but not of the key; nothing speaks against it.
    """

    detail: str
    is_unsigned: bool = False


def objection(signed: SignedCheckpoint, origin: str, key: VerifierKey | None) -> Objection | None:
    """Return why a checkpoint is not to be believed; None if it is this ledger's and this key's.

    Args:
        signed: the checkpoint.
        origin: of the ledger.
        key: whose signature it must have; None if there is no key to check with.
    """
    found = signed.checkpoint.origin
    if found != origin:
        return Objection(f"it is of another ledger, {found[:100]!r}; this one is {origin!r}")
    if key is None:
        return Objection("there is no key to check its signature with", is_unsigned=True)
    verdict = key.judge(signed.note)
    if verdict == "bad":
        return Objection("its signature does not hold; it was altered, or another key made it")
    if verdict == "unsigned":
        return Objection(f"it is not signed by the key {key.text}", is_unsigned=True)
    return None


class NoteFloor:
    """How many records the newest checkpoint in a ledger's own file has signed.

    A floor for what may be cut: a checkpoint is made of records that are durable. No signature is
    checked; whoever can forge the file can also take it away.
    """

    __slots__ = ("_key", "_origin", "_path", "_size")

    def __init__(self, layout: Layout, origin: str) -> None:
        """Look at the file of the ledger at `layout`, whose notes have this origin."""
        self._path = layout.checkpoints
        self._origin = origin
        self._key: tuple[int, int, int] | None = None
        self._size = 0

    def size(self) -> int:
        """Return the floor, 0 without a file; the file is read again only if it has changed.

        Raises:
            LedgerUnreadableError: the system refuses to read it.
        """
        try:
            stat = self._path.stat()
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise LedgerUnreadableError(self._path, str(error)) from error
        key = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
        if key != self._key:
            found = read_notes(self._path)
            newest = None if found is None else found.newest_of(self._origin)
            self._size = 0 if newest is None else newest.checkpoint.size
            self._key = key
        return self._size


def _note_at(data: bytes, at: int, gap: int) -> SignedCheckpoint:
    """Return the checkpoint whose first line begins at an offset.

    Args:
        data: the file.
        at: the offset.
        gap: where the next text ends that an empty line follows.

    Raises:
        NoteError: none begins there.
    """
    if not at < gap <= at + TEXT_BYTES_MAX or not data.startswith(_DASH, gap + 2):
        raise NoteError("it is not a text, an empty line and signature lines")
    stop = gap + 2
    while data.startswith(_DASH, stop):
        # Without its newline the last line is none, which parsing then says.
        stop = data.find(b"\n", stop) + 1 or len(data)
    chunk = data[at:stop]
    note = parse_note(chunk)
    return SignedCheckpoint(note, note.checkpoint(), chunk, at)
