"""The tree: against the recursive definitions of RFC 6962, and by its laws."""

from __future__ import annotations

from hashlib import sha256
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.merkle import (
    EMPTY_ROOT,
    Growth,
    Tree,
    consistency_runs,
    inclusion_runs,
    verify_consistency,
    verify_inclusion,
)
from tests.support.full_tree import FullTree, consistency_proof, inclusion_proof, root

SIZES = [*range(34), 63, 64, 65, 100, 127, 128, 129]


def leaf(number: int) -> bytes:
    return sha256(b"\x00" + str(number).encode()).digest()


def leaves(size: int) -> list[bytes]:
    return [leaf(number) for number in range(size)]


# ---------------------------------------------------------------------------- the oracle
# The three definitions of RFC 6962, section 2.1, as they stand there, over leaf hashes.


def naive_root(hashes: list[bytes]) -> bytes:
    if not hashes:
        return sha256(b"").digest()
    if len(hashes) == 1:
        return hashes[0]
    k = split(len(hashes))
    return sha256(b"\x01" + naive_root(hashes[:k]) + naive_root(hashes[k:])).digest()


def naive_path(m: int, hashes: list[bytes]) -> list[bytes]:
    if len(hashes) == 1:
        return []
    k = split(len(hashes))
    if m < k:
        return [*naive_path(m, hashes[:k]), naive_root(hashes[k:])]
    return [*naive_path(m - k, hashes[k:]), naive_root(hashes[:k])]


def naive_proof(m: int, hashes: list[bytes], *, whole: bool = True) -> list[bytes]:
    if m == len(hashes):
        return [] if whole else [naive_root(hashes)]
    k = split(len(hashes))
    if m <= k:
        return [*naive_proof(m, hashes[:k], whole=whole), naive_root(hashes[k:])]
    return [*naive_proof(m - k, hashes[k:], whole=False), naive_root(hashes[:k])]


def split(size: int) -> int:
    k = 1
    while k * 2 < size:
        k *= 2
    return k


# ---------------------------------------------------------------------------- the same as the RFC's


@pytest.mark.parametrize("size", SIZES)
def test_the_root_is_the_rfcs(size: int) -> None:
    expected = naive_root(leaves(size))
    tree = Tree()
    for each in leaves(size):
        tree.append(each)
    assert tree.size == size
    assert tree.root() == root(leaves(size)) == FullTree(leaves(size)).root() == expected


def test_the_tree_without_leaves_hashes_nothing() -> None:
    assert root([]) == EMPTY_ROOT
    assert EMPTY_ROOT.hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_a_tree_of_three_written_out() -> None:
    a, b, c = leaves(3)
    pair = sha256(b"\x01" + a + b).digest()
    assert root([a]) == a
    assert root([a, b, c]) == sha256(b"\x01" + pair + c).digest()
    assert inclusion_proof([a, b, c], 0) == [b, c]
    assert inclusion_proof([a, b, c], 2) == [pair]
    assert consistency_proof([a, b, c], 1) == [b, c]
    assert consistency_proof([a, b, c], 2) == [c]


@pytest.mark.guarantee("G-CHECKPOINT-2")
@pytest.mark.parametrize("size", [size for size in SIZES if size])
def test_inclusion_proofs_are_the_rfcs_and_hold(size: int) -> None:
    tree = FullTree(leaves(size))
    for index in range(size):
        proof = tree.inclusion_proof(index)
        assert proof == naive_path(index, leaves(size))
        assert verify_inclusion(tree.leaf(index), index, size, proof, tree.root())


@pytest.mark.guarantee("G-CHECKPOINT-2")
@pytest.mark.parametrize("size", SIZES)
def test_consistency_proofs_are_the_rfcs_and_hold(size: int) -> None:
    tree = FullTree(leaves(size))
    assert tree.consistency_proof(0) == []
    for old in range(1, size + 1):
        proof = tree.consistency_proof(old)
        assert proof == naive_proof(old, leaves(size))
        assert verify_consistency(old, tree.root(old), size, tree.root(), proof)


# ---------------------------------------------------------------------------- laws

trees = st.integers(1, 200)
at = st.floats(0, 1, exclude_max=True)


@given(trees, trees, at)
def test_proofs_at_an_earlier_size_are_those_of_the_earlier_tree(
    size: int, more: int, where: float
) -> None:
    tree, earlier = FullTree(leaves(size + more)), FullTree(leaves(size))
    index, old = int(where * size), int(where * (size + 1))
    assert tree.root(size) == earlier.root()
    assert tree.inclusion_proof(index, size) == earlier.inclusion_proof(index)
    assert tree.consistency_proof(old, size) == earlier.consistency_proof(old)


def damage(proof: list[bytes], how: str, where: float) -> list[bytes]:
    place = int(where * len(proof))
    match how:
        case "a hash changed" if proof:
            return [*proof[:place], sha256(proof[place]).digest(), *proof[place + 1 :]]
        case "a hash dropped" if proof:
            return [*proof[:place], *proof[place + 1 :]]
        case "hashes swapped" if proof != proof[::-1]:
            return proof[::-1]
        case _:
            return [*proof, leaf(0)]


HOW = ["a hash changed", "a hash dropped", "hashes swapped", "a hash added"]


@given(trees, at, st.sampled_from(HOW), at)
def test_a_damaged_inclusion_proof_does_not_hold(
    size: int, where: float, how: str, place: float
) -> None:
    tree, index = FullTree(leaves(size)), int(where * size)
    bad = damage(tree.inclusion_proof(index), how, place)
    assert not verify_inclusion(tree.leaf(index), index, size, bad, tree.root())


@given(trees, trees, st.sampled_from(HOW), at)
def test_a_damaged_consistency_proof_does_not_hold(
    old: int, more: int, how: str, place: float
) -> None:
    size = old + more
    tree = FullTree(leaves(size))
    bad = damage(tree.consistency_proof(old), how, place)
    assert not verify_consistency(old, tree.root(old), size, tree.root(), bad)


@pytest.mark.guarantee("G-CHECKPOINT-2")
@given(trees, at, at)
def test_no_other_leaf_place_or_root_is_proven(size: int, where: float, other: float) -> None:
    tree, index, wrong = FullTree(leaves(size)), int(where * size), int(other * size)
    proof = tree.inclusion_proof(index)
    assert not verify_inclusion(leaf(size), index, size, proof, tree.root())
    assert not verify_inclusion(tree.leaf(index), index, size, proof, leaf(-1))
    if wrong != index:
        assert not verify_inclusion(tree.leaf(wrong), index, size, proof, tree.root())
        assert not verify_inclusion(tree.leaf(index), wrong, size, proof, tree.root())


@pytest.mark.guarantee("G-CHECKPOINT-2")
@given(trees, trees, at)
def test_a_rewritten_past_has_no_consistency_proof(old: int, more: int, where: float) -> None:
    size, changed = old + more, int(where * old)
    true = FullTree(leaves(size))
    other = FullTree([leaf(-1) if n == changed else leaf(n) for n in range(size)])
    for proof in (true.consistency_proof(old), other.consistency_proof(old)):
        assert not verify_consistency(old, true.root(old), size, other.root(), proof)


Claim = tuple[int, bytes, int, bytes, list[bytes]]
"""What `verify_consistency` takes."""


@pytest.mark.parametrize(
    "claim",
    [
        (0, EMPTY_ROOT, 0, EMPTY_ROOT, []),
        (0, EMPTY_ROOT, 3, root(leaves(3)), []),
        (3, root(leaves(3)), 3, root(leaves(3)), []),
    ],
)
def test_the_same_tree_and_the_empty_one_need_no_proof(claim: Claim) -> None:
    assert verify_consistency(*claim)


@pytest.mark.parametrize(
    "claim",
    [
        (0, leaf(0), 3, root(leaves(3)), []),
        (0, EMPTY_ROOT, 0, leaf(0), []),
        (0, EMPTY_ROOT, 3, root(leaves(3)), [leaf(1)]),
        (3, root(leaves(3)), 3, root(leaves(4)), []),
        (3, root(leaves(3)), 3, root(leaves(3)), [leaf(1)]),
        (3, root(leaves(3)), 5, root(leaves(5)), []),
        (4, root(leaves(4)), 3, root(leaves(3)), []),
        (-1, EMPTY_ROOT, 3, root(leaves(3)), []),
    ],
)
def test_what_is_no_extension_is_not_proven(claim: Claim) -> None:
    assert not verify_consistency(*claim)


@pytest.mark.parametrize("index", [-1, 3, 4])
def test_what_is_outside_a_tree_is_refused(index: int) -> None:
    tree = FullTree(leaves(3))
    with pytest.raises(ValueError, match="accepted: 0 to 2"):
        tree.inclusion_proof(index)
    with pytest.raises(ValueError, match="accepted: 0 to 2"):
        tree.leaf(index)
    assert not verify_inclusion(leaf(0), index, 3, [], tree.root())


@pytest.mark.parametrize("size", [-1, 4])
def test_sizes_outside_a_tree_are_refused(size: int) -> None:
    tree = FullTree(leaves(3))
    with pytest.raises(ValueError, match="accepted: 0 to 3"):
        tree.root(size)
    with pytest.raises(ValueError, match="accepted: 0 to 3"):
        tree.consistency_proof(size)


# ---------------------------------------------------------------------------- leaves in pieces


@st.composite
def pieces(draw: st.DrawFn, size_max: int = 4_200) -> tuple[bytes, list[bytes]]:
    """Return leaf hashes, and the same cut into pieces."""
    size = draw(st.integers(0, size_max))
    cuts = sorted(draw(st.lists(st.integers(0, size), max_size=6)))
    whole = b"".join(leaves(size))
    ends = [0, *cuts, size]
    return whole, [whole[low * 32 : high * 32] for low, high in pairwise(ends)]


@settings(max_examples=settings().max_examples // 4)
@given(pieces())
def test_a_tree_may_take_its_leaves_in_pieces(cut: tuple[bytes, list[bytes]]) -> None:
    whole, parts = cut
    tree, single = Tree(), Tree()
    for part in parts:
        tree.extend(part)
    for at in range(0, len(whole), 32):
        single.append(whole[at : at + 32])
    assert (tree.size, tree.root()) == (single.size, single.root())


@settings(max_examples=settings().max_examples // 4)
@given(pieces(), st.data())
def test_a_growth_gives_the_roots_and_proofs_of_the_full_tree(
    cut: tuple[bytes, list[bytes]], data: st.DataObject
) -> None:
    whole, parts = cut
    size = len(whole) // 32
    full = FullTree(whole[at : at + 32] for at in range(0, len(whole), 32))
    sizes = data.draw(st.lists(st.integers(0, size), max_size=5))
    old = data.draw(st.integers(0, size))
    extension = Growth(sizes, consistency_runs(old, size))
    for part in parts:
        extension.extend(part)
    assert [extension.root(each) for each in sizes] == [full.root(each) for each in sizes]
    assert extension.proof() == full.consistency_proof(old)
    assert extension.size == size
    if size:
        index = data.draw(st.integers(0, size - 1))
        inclusion = Growth((), inclusion_runs(index, size))
        for part in parts:
            inclusion.extend(part)
        assert inclusion.proof() == full.inclusion_proof(index)


def test_a_growth_knows_only_the_roots_that_were_asked_for() -> None:
    tree = Growth([2, 5])
    tree.extend(b"".join(leaves(3)))
    assert tree.root(2) == root(leaves(2))
    for unknown in (3, 5):
        with pytest.raises(KeyError):
            tree.root(unknown)


def test_many_proofs_of_a_big_tree_cost_few_hashes_each(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = FullTree(leaves(5_000))
    hashed = 0

    def counted(left: bytes, right: bytes) -> bytes:
        nonlocal hashed
        hashed += 1
        return sha256(b"\x01" + left + right).digest()

    monkeypatch.setattr("tests.support.full_tree.parent", counted)
    for index in range(0, 5_000, 50):
        tree.inclusion_proof(index)
        tree.consistency_proof(index)
    assert hashed / 200 < 40
