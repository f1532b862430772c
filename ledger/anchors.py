"""Whether a ledger extends checkpoints that were signed earlier, found out while it is walked."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from ledger.merkle import HASH_BYTES, Growth
from ledger.note import Checkpoint, VerifierKey
from ledger.notes import NoteFile, objection


class Anchor(Struct, frozen=True):
    """A checkpoint that a ledger must extend.

    Attributes:
        source: the file it was found in.
        checkpoint: how many records, and the root over them.
    """

    source: str
    checkpoint: Checkpoint


class Doubt(Struct, frozen=True):
    """Something in a file of checkpoints that cannot be believed.

    Attributes:
        kind: "note" or "torn_note", see module `verify`.
        size: how many records it says it has signed, 0 where none applies.
        offset: where in the file it begins.
        detail: what is wrong with it.
    """

    kind: str
    size: int
    offset: int
    detail: str


class Evidence(Struct, frozen=True):
    """What a file of checkpoints is worth.

    Attributes:
        source: the file.
        anchors: what the ledger is to be compared with.
        doubts: what cannot be believed.
        remarks: what is worth knowing and no problem.
    """

    source: str
    anchors: list[Anchor]
    doubts: list[Doubt]
    remarks: list[str]


class Broken(Struct, frozen=True):
    """An anchor that the ledger does not extend.

    Attributes:
        source: the file it was found in.
        size: how many records it has signed.
        detail: what is missing or other, for people.
    """

    source: str
    size: int
    detail: str


class Anchors:
    """Compares checkpoints with the tree over the records, as they come."""

    __slots__ = ("_anchors", "_compared", "_held", "_other", "_signed", "_size", "_tree")

    def __init__(self, anchors: Iterable[Anchor]) -> None:
        """Begin before the first record."""
        self._anchors = sorted(anchors, key=lambda each: each.checkpoint.size)
        self._signed = self._anchors[-1].checkpoint.size if self._anchors else 0
        self._tree = Growth(each.checkpoint.size for each in self._anchors)
        self._size = 0
        self._compared = 0
        self._held = 0
        self._other: dict[str, Broken] = {}
        self._compare()

    @property
    def size(self) -> int:
        """How many records, from the first and without a gap, have been taken."""
        return self._size

    @property
    def signed(self) -> int:
        """How many records the greatest of them has signed, 0 without any."""
        return self._signed

    def take(self, digests: bytearray) -> None:
        """Take the digests of the next records, HASH_BYTES each."""
        # Nobody asks for the root beyond the last of them.
        self._tree.extend(bytes(digests[: (self._signed - self._tree.size) * HASH_BYTES]))
        self._size += len(digests) // HASH_BYTES
        self._compare()

    def broken(self, end: int) -> list[Broken]:
        """Return what the ledger does not extend, at most two a file.

        Args:
            end: the last record of the ledger.
        """
        missing: dict[str, Broken] = {}
        for anchor in self._anchors:
            size = anchor.checkpoint.size
            if size > end:
                these = (
                    f"record {size} is" if size == end + 1 else f"records {end + 1} to {size} are"
                )
                detail = f"{these} missing, and the checkpoint has signed up to {size}"
                missing[anchor.source] = Broken(anchor.source, size, detail)
        return [*self._other.values(), *missing.values()]

    def uncompared(self, end: int) -> list[int]:
        """Return the sizes of those that damage before them kept from being compared.

        Args:
            end: the last record of the ledger.
        """
        sizes = {each.checkpoint.size for each in self._anchors}
        return sorted(size for size in sizes if self._size < size <= end)

    def _compare(self) -> None:
        """Look at the anchors that have been reached."""
        for anchor in self._anchors[self._compared :]:
            size, source = anchor.checkpoint.size, anchor.source
            if size > self._tree.size:
                return
            self._compared += 1
            if anchor.checkpoint.root == self._tree.root(size):
                self._held = size
            elif source not in self._other:
                # Past the first of a file all the later ones are other too.
                detail = f"records {self._held + 1} to {size} are not those that were signed"
                self._other[source] = Broken(source, size, detail)


def weigh(
    source: str, found: NoteFile, origin: str, key: VerifierKey | None, *, is_own: bool
) -> Evidence:
    """Tell what of a file of checkpoints is to be believed.

    Args:
        source: the file.
        found: what it holds.
        origin: of the ledger; empty if that is unknown.
        key: whose signature is wanted; None: there is no key to check with.
        is_own: it is the ledger's own file. There a checkpoint without this key's signature is
            compared all the same, since the key may have been another when it was made.
    """
    anchors: list[Anchor] = []
    doubts = [Doubt("note", 0, flaw.offset, flaw.detail) for flaw in found.flaws]
    unchecked = 0
    for each in found.notes:
        wrong = objection(each, origin or each.checkpoint.origin, key)
        if wrong is not None and wrong.is_unsigned and is_own:
            unchecked, wrong = unchecked + 1, None
        if wrong is None:
            anchors.append(Anchor(source, each.checkpoint))
        else:
            doubts.append(Doubt("note", each.checkpoint.size, each.offset, wrong.detail))
    torn = found.torn
    if torn is not None and is_own:
        detail = f"{torn.size} bytes at the end that no append finished: {torn.detail}"
        doubts.append(Doubt("torn_note", 0, torn.offset, detail))
    elif torn is not None:
        doubts.append(Doubt("note", 0, torn.offset, torn.detail))
    remarks = []
    if unchecked:
        why = "there is no key" if key is None else "this key did not make them"
        remarks.append(f"{source}: {unchecked} of {len(found.notes)} signatures not checked: {why}")
    return Evidence(source, anchors, doubts, remarks)
