"""A Merkle tree that keeps all its nodes: what the trees of the ledger are held against."""

from __future__ import annotations

from collections.abc import Iterable

from ledger.merkle import EMPTY_ROOT, HASH_BYTES, Tree, consistency_runs, inclusion_runs, parent


class FullTree:
    """A growing tree that keeps its nodes, for proofs of any leaf and between any two sizes."""

    __slots__ = ("_levels",)

    def __init__(self, leaves: Iterable[bytes] = ()) -> None:
        """Begin with these leaf hashes of 32 bytes each."""
        # One string of hashes a level: a million small objects would take three times the room.
        self._levels = [bytearray()]
        for leaf in leaves:
            self.append(leaf)

    @property
    def size(self) -> int:
        """How many leaves it has."""
        return len(self._levels[0]) // HASH_BYTES

    def append(self, leaf: bytes) -> None:
        """Add a leaf hash of 32 bytes."""
        node, rest, level = leaf, self.size, 0
        self._levels[0] += node
        while rest & 1:
            node = parent(self._node(level, rest - 1), node)
            rest >>= 1
            level += 1
            if level == len(self._levels):
                self._levels.append(bytearray())
            self._levels[level] += node

    def leaf(self, index: int) -> bytes:
        """Return a leaf hash.

        Raises:
            ValueError: `index` is not in 0..size-1.
        """
        if not 0 <= index < self.size:
            raise ValueError(f"the index is {index}; accepted: 0 to {self.size - 1}")
        return self._node(0, index)

    def root(self, size: int | None = None) -> bytes:
        """Return the root over the first `size` leaves, or over all.

        Raises:
            ValueError: there are fewer.
        """
        return self._root(0, self._sized(size))

    def inclusion_proof(self, index: int, size: int | None = None) -> list[bytes]:
        """Return the proof that leaf `index`, from 0, is in the tree of the first `size` leaves.

        The hashes go from the leaf's sibling up.

        Raises:
            ValueError: `index` is not in 0..size-1, or there are fewer leaves.
        """
        runs = inclusion_runs(index, self._sized(size))
        return [self._root(low, high) for low, high in runs]

    def consistency_proof(self, old_size: int, size: int | None = None) -> list[bytes]:
        """Return the proof that the tree of `size` leaves begins with that of `old_size`.

        It is empty if the sizes are equal, and from the empty tree, of which every tree is an
        extension.

        Raises:
            ValueError: `old_size` is not in 0..size, or there are fewer leaves.
        """
        runs = consistency_runs(old_size, self._sized(size))
        return [self._root(low, high) for low, high in runs]

    def _sized(self, size: int | None) -> int:
        if size is None:
            return self.size
        if not 0 <= size <= self.size:
            raise ValueError(f"the size is {size}; accepted: 0 to {self.size}")
        return size

    def _node(self, level: int, index: int) -> bytes:
        at = index * HASH_BYTES
        return bytes(self._levels[level][at : at + HASH_BYTES])

    def _root(self, low: int, high: int) -> bytes:
        """Return the root over leaves low..high-1, where a split of the tree may leave them."""
        peaks: list[bytes] = []
        while low < high:
            level = (high - low).bit_length() - 1
            peaks.append(self._node(level, low >> level))
            low += 1 << level
        if not peaks:
            return EMPTY_ROOT
        node = peaks[-1]
        for peak in peaks[-2::-1]:
            node = parent(peak, node)
        return node


def root(leaves: Iterable[bytes]) -> bytes:
    """Return the root over leaf hashes of 32 bytes each."""
    tree = Tree()
    for leaf in leaves:
        tree.append(leaf)
    return tree.root()


def inclusion_proof(leaves: Iterable[bytes], index: int) -> list[bytes]:
    """Return one proof; for several of the same leaves, see `FullTree.inclusion_proof`."""
    return FullTree(leaves).inclusion_proof(index)


def consistency_proof(leaves: Iterable[bytes], old_size: int) -> list[bytes]:
    """Return one proof; for several of the same leaves, see `FullTree.consistency_proof`."""
    return FullTree(leaves).consistency_proof(old_size)
