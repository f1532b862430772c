"""The Merkle tree of RFC 6962 over record digests: roots, proofs, and the checks of both.

A record's digest is the tree's leaf hash of its raw header, SHA-256(0x00 || h), so trees here take
hashes of 32 bytes and never see a record. An inner node is SHA-256(0x01 || left || right), the
empty tree SHA-256 of nothing; the left half of n leaves is the greatest power of two below n
(RFC 6962, section 2.1). The checks follow RFC 9162, sections 2.1.3.2 and 2.1.4.2.

`Tree` keeps only what it needs to go on: a hash for each bit of its size. A proof is the roots over
some runs of leaves, so whoever knows beforehand what is to be proven needs no more than that for
each run (`Growth`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256

HASH_BYTES = 32
EMPTY_ROOT = sha256(b"").digest()
"""Root of the tree without leaves."""

_BLOCK_LEVEL = 10
_BLOCK_BYTES = HASH_BYTES << _BLOCK_LEVEL
"""Leaves that are hashed together, level by level: that takes half the time of one by one."""

Run = tuple[int, int]
"""Leaves `low` to `high - 1`, from 0."""


class Tree:
    """A growing tree of which only the root is wanted."""

    __slots__ = ("_peaks", "_size")

    def __init__(self) -> None:
        """Begin empty."""
        self._peaks: list[bytes] = []
        self._size = 0

    @property
    def size(self) -> int:
        """How many leaves it has."""
        return self._size

    def append(self, leaf: bytes) -> None:
        """Add a leaf hash of 32 bytes."""
        self._push(leaf, 0)

    def extend(self, leaves: bytes) -> None:
        """Add leaf hashes, 32 bytes each, one after the other."""
        at, end = 0, len(leaves)
        while at < end:
            if end - at >= _BLOCK_BYTES and self._size % (1 << _BLOCK_LEVEL) == 0:
                level = leaves[at : at + _BLOCK_BYTES]
                while len(level) > HASH_BYTES:
                    # Neighbours stand side by side already.
                    level = b"".join(
                        [
                            sha256(b"\x01" + level[pair : pair + 2 * HASH_BYTES]).digest()
                            for pair in range(0, len(level), 2 * HASH_BYTES)
                        ]
                    )
                self._push(level, _BLOCK_LEVEL)
                at += _BLOCK_BYTES
            else:
                self._push(leaves[at : at + HASH_BYTES], 0)
                at += HASH_BYTES

    def root(self) -> bytes:
        """Return the root over all leaves so far."""
        return _fold(self._peaks)

    def _push(self, node: bytes, level: int) -> None:
        """Add a perfect subtree; the size must be a multiple of its leaves."""
        rest = self._size >> level
        while rest & 1:
            node = parent(self._peaks.pop(), node)
            rest >>= 1
        self._peaks.append(node)
        self._size += 1 << level


class Growth:
    """A growing tree of which some roots are wanted: at sizes, and over runs of leaves.

    It holds a few hundred bytes for each run, however many leaves come.
    """

    __slots__ = ("_roots", "_runs", "_sizes", "_tree")

    def __init__(self, sizes: Iterable[int] = (), runs: Iterable[Run] = ()) -> None:
        """Begin before the first leaf.

        Args:
            sizes: of which the roots are wanted.
            runs: of leaves, of which the roots are wanted too.
        """
        self._tree = Tree()
        self._sizes = sorted(set(sizes), reverse=True)
        self._runs = [(low, high, Tree()) for low, high in runs]
        self._roots: dict[int, bytes] = {}
        self._note()

    @property
    def size(self) -> int:
        """How many leaves have come."""
        return self._tree.size

    def extend(self, leaves: bytes) -> None:
        """Take the next leaf hashes, 32 bytes each."""
        first = self.size
        last = first + len(leaves) // HASH_BYTES
        for low, high, tree in self._runs:
            if low < last and high > first:
                tree.extend(_cut(leaves, max(low - first, 0), min(high, last) - first))
        at = first
        while self._sizes and self._sizes[-1] <= last:
            self._tree.extend(_cut(leaves, at - first, self._sizes[-1] - first))
            at = self.size
            self._note()
        self._tree.extend(_cut(leaves, at - first, last - first))

    def root(self, size: int) -> bytes:
        """Return the root at one of the sizes that were asked for.

        Raises:
            KeyError: it was not, or so many leaves have not come.
        """
        return self._roots[size]

    def proof(self) -> list[bytes]:
        """Return the roots over the runs, in the order in which they were given."""
        return [tree.root() for _, _, tree in self._runs]

    def _note(self) -> None:
        """Keep the root if it is wanted at just this size."""
        if self._sizes and self._sizes[-1] == self._tree.size:
            self._roots[self._sizes.pop()] = self._tree.root()


def parent(left: bytes, right: bytes) -> bytes:
    """Return the node over two others."""
    return sha256(b"\x01" + left + right).digest()


def inclusion_runs(index: int, size: int) -> list[Run]:
    """Return the runs of leaves whose roots prove leaf `index`, from 0, of `size`.

    The proof goes from the leaf's sibling up.

    Raises:
        ValueError: `index` is not in 0..size-1.
    """
    _check(index, size)
    low, high = 0, size
    runs: list[Run] = []
    while high - low > 1:
        middle = low + _left(high - low)
        if index < middle:
            runs.append((middle, high))
            high = middle
        else:
            runs.append((low, middle))
            low = middle
    runs.reverse()
    return runs


def consistency_runs(old_size: int, size: int) -> list[Run]:
    """Return the runs of leaves whose roots prove that `size` leaves begin with `old_size`.

    There are none if the sizes are equal, or the old one is 0.

    Raises:
        ValueError: `old_size` is not in 0..size.
    """
    if not 0 <= old_size <= size:
        raise ValueError(f"the old size is {old_size}; accepted: 0 to {size}")
    low, high = 0, size
    runs: list[Run] = []
    if old_size == 0:
        return runs
    while old_size < high:
        middle = low + _left(high - low)
        if old_size <= middle:
            runs.append((middle, high))
            high = middle
        else:
            runs.append((low, middle))
            low = middle
    if low:
        # A subtree that begins at leaf 0 is the old tree itself, whose root is known.
        runs.append((low, high))
    runs.reverse()
    return runs


def verify_inclusion(
    leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes
) -> bool:
    """Return whether a proof shows that leaf `index`, from 0, of the tree of `size` is `leaf`.

    Args:
        leaf: the leaf's hash, 32 bytes.
        index: its place.
        size: how many leaves the tree has.
        proof: hashes from the leaf's sibling up.
        root: the tree's root.
    """
    if not 0 <= index < size:
        return False
    node, at, last = leaf, index, size - 1
    for other in proof:
        if last == 0:
            return False
        if at & 1 or at == last:
            node = parent(other, node)
            at, last = _climb(at, last)
        else:
            node = parent(node, other)
        at >>= 1
        last >>= 1
    return last == 0 and node == root


def verify_consistency(
    old_size: int, old_root: bytes, size: int, root: bytes, proof: Sequence[bytes]
) -> bool:
    """Return whether a proof shows that the tree of `size` leaves begins with that of `old_size`.

    Args:
        old_size: leaves of the smaller tree, 0 to `size`.
        old_root: its root.
        size: leaves of the greater tree.
        root: its root.
        proof: hashes as a `Growth` over `consistency_runs` gives them.
    """
    if not 0 <= old_size <= size:
        return False
    if old_size == 0:
        return not proof and old_root == EMPTY_ROOT and (size > 0 or root == EMPTY_ROOT)
    if old_size == size:
        return not proof and old_root == root
    rest = list(proof)
    if old_size & (old_size - 1) == 0:
        rest.insert(0, old_root)
    if not rest:
        return False
    at, last = old_size - 1, size - 1
    while at & 1:
        at >>= 1
        last >>= 1
    old = new = rest[0]
    for other in rest[1:]:
        if last == 0:
            return False
        if at & 1 or at == last:
            old, new = parent(other, old), parent(other, new)
            at, last = _climb(at, last)
        else:
            new = parent(new, other)
        at >>= 1
        last >>= 1
    return last == 0 and old == old_root and new == root


def _check(index: int, size: int) -> None:
    if not 0 <= index < size:
        raise ValueError(f"the index is {index}; accepted: 0 to {size - 1}")


def _cut(leaves: bytes, low: int, high: int) -> bytes:
    """Return some of the leaves, by their place among them."""
    return leaves[low * HASH_BYTES : high * HASH_BYTES]


def _climb(at: int, last: int) -> tuple[int, int]:
    """Pass the levels at which a node at the right edge has no sibling."""
    while at and not at & 1:
        at >>= 1
        last >>= 1
    return at, last


def _left(size: int) -> int:
    """Return how many of `size` leaves, two at least, go into the left half."""
    return 1 << (size - 1).bit_length() - 1


def _fold(peaks: Sequence[bytes]) -> bytes:
    """Return the root over perfect subtrees, from the greatest at the left."""
    if not peaks:
        return EMPTY_ROOT
    node = peaks[-1]
    for peak in peaks[-2::-1]:
        node = parent(peak, node)
    return node
