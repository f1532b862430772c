"""Covers: their laws, against the tree that they are pieces of."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from hashlib import sha256
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.cover import Cover, CoverNode
from ledger.merkle import Tree
from tests.support.full_tree import root


def leaf(number: int) -> bytes:
    return sha256(b"\x00" + str(number).encode()).digest()


def leaves(size: int) -> list[bytes]:
    return [leaf(number) for number in range(1, size + 1)]


def covered(
    size: int, shown: AbstractSet[int], splits: AbstractSet[int] = frozenset()
) -> list[CoverNode]:
    cover = Cover(splits)
    nodes = [
        node
        for number in range(1, size + 1)
        for node in cover.add(leaf(number), is_shown=number in shown)
    ]
    return [*nodes, *cover.finish()]


def roots_of(nodes: list[CoverNode]) -> dict[int, bytes]:
    """Return the root after each piece, computed from the pieces alone."""
    peaks: list[tuple[int, bytes]] = []
    roots, size = {0: sha256(b"").digest()}, 0
    for node in nodes:
        assert node.first == size + 1
        assert size % node.count == 0
        size += node.count
        count, digest = node.count, node.digest
        while peaks and peaks[-1][0] == count:
            digest = sha256(b"\x01" + peaks.pop()[1] + digest).digest()
            count *= 2
        peaks.append((count, digest))
        whole = digest
        for _, peak in reversed(peaks[:-1]):
            whole = sha256(b"\x01" + peak + whole).digest()
        roots[size] = whole
    return roots


histories = st.integers(0, 70).flatmap(
    lambda size: st.tuples(
        st.just(size),
        st.sets(st.integers(1, max(size, 1))),
        st.sets(st.integers(0, size), max_size=3),
    )
)


@given(histories)
def test_the_root_and_those_at_the_splits_come_out_of_any_cover(
    history: tuple[int, set[int], set[int]],
) -> None:
    size, shown, splits = history

    roots = roots_of(covered(size, shown, splits))

    assert {each: roots[each] for each in {size, *splits}} == {
        each: root(leaves(each)) for each in {size, *splits}
    }


@given(histories)
def test_exactly_the_records_that_are_shown_stand_alone_with_their_digests(
    history: tuple[int, set[int], set[int]],
) -> None:
    size, shown, splits = history

    nodes = covered(size, shown, splits)

    assert [(node.first, node.digest) for node in nodes if node.is_shown] == [
        (number, leaf(number)) for number in sorted(shown) if number <= size
    ]
    assert all(node.count == 1 for node in nodes if node.is_shown)


@given(histories)
def test_no_two_hidden_neighbours_could_be_one(history: tuple[int, set[int], set[int]]) -> None:
    size, shown, splits = history

    nodes = covered(size, shown, splits)

    for left, right in pairwise(nodes):
        could_join = left.count == right.count and (left.first - 1) % (2 * left.count) == 0
        assert left.is_shown or right.is_shown or right.first - 1 in splits or not could_join


@pytest.mark.parametrize(("size", "count"), [(0, 0), (1, 1), (2, 1), (3, 2), (1024, 1), (1023, 10)])
def test_a_ledger_of_which_nothing_is_shown_is_a_piece_for_each_bit_of_its_size(
    size: int, count: int
) -> None:
    assert len(covered(size, set())) == count


def test_one_record_of_a_thousand_costs_two_pieces_a_level_at_most() -> None:
    assert len(covered(1_000, {517})) <= 2 * 10


def test_a_cover_agrees_with_the_tree_that_only_grows() -> None:
    tree = Tree()
    for each in leaves(37):
        tree.append(each)

    assert roots_of(covered(37, {5, 6, 36}))[37] == tree.root()
