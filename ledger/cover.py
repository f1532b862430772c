"""Covers: what proves that some records are a ledger's, without showing the others.

A cover is the ledger's RFC 6962 tree cut into perfect subtrees, from left to right: each record
that is shown stands alone with its digest, and the records between are hidden in the greatest
subtrees that hold nothing else. Whoever has the cover computes the root from it, as a binary
counter does, and so knows that each digest is part of what was signed under that root. It is the
union of all inclusion proofs, each node once.

A cover may be split at sizes: no subtree reaches across one. The roots at those sizes come out
of it as well, so it is also the consistency proof from each of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from ledger.merkle import parent


class CoverNode(Struct, frozen=True, gc=False):
    """One piece of a cover.

    Attributes:
        first: position of the first record that it covers, from 1.
        count: how many it covers, a power of two that divides `first - 1`.
        digest: of the subtree; of the record if it is shown. 32 bytes.
        is_shown: whether it is one record that is shown.
    """

    first: int
    count: int
    digest: bytes
    is_shown: bool


class Cover:
    """A cover in the making, in the memory of the tree's height. Takes records in order."""

    __slots__ = ("_hidden", "_size", "_splits")

    def __init__(self, splits: Iterable[int] = ()) -> None:
        """Begin before record 1.

        Args:
            splits: sizes at which the roots are to come out too.
        """
        self._hidden: list[tuple[int, int, bytes]] = []
        self._size = 0
        self._splits = frozenset(splits)

    def add(self, digest: bytes, *, is_shown: bool) -> list[CoverNode]:
        """Take the next record; return the pieces that are finished, in order.

        Args:
            digest: the record's, 32 bytes.
            is_shown: whether it is among those that are shown.
        """
        first = self._size + 1
        self._size = first
        if is_shown:
            nodes = self.finish()
            nodes.append(CoverNode(first, 1, digest, is_shown=True))
            return nodes
        count = 1
        hidden = self._hidden
        # Neighbours of one size join only where the tree has a node over both.
        while hidden and hidden[-1][1] == count and not (hidden[-1][0] - 1) % (2 * count):
            first, _, left = hidden.pop()
            digest = parent(left, digest)
            count *= 2
        hidden.append((first, count, digest))
        return self.finish() if self._size in self._splits else []

    def finish(self) -> list[CoverNode]:
        """Return the pieces that were held back; last of all those at the ledger's end."""
        nodes = [
            CoverNode(first, count, digest, is_shown=False) for first, count, digest in self._hidden
        ]
        self._hidden.clear()
        return nodes
