"""Blocked MDAV of files: the tree of blocks, sizes of groups, and what the blocks cost."""

import numpy as np
import polars as pl
import pytest

from file_transport import engine
from sdckit.engines.masking import mask_files
from sdckit.engines.record_tree import (
    Node,
    blocks_of_points,
    count_blocks,
    grow,
    without_small_blocks,
)
from sdckit.masking.group_means import within_share
from sdckit.masking.microaggregation import mdav

N, K, BLOCK = 6000, 3, 1500


@pytest.fixture(scope="module")
def values():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(N, 2))
    return np.column_stack([x, x + 0.1 * rng.normal(size=(N, 2))])


@pytest.fixture(scope="module")
def made(tmp_path_factory, values):
    folder = tmp_path_factory.mktemp("groups")
    pl.DataFrame(values, ["a", "b", "c", "d"]).write_parquet(folder / "in.parquet")
    found = mask_files(
        folder / "in.parquet",
        "blocked_mdav",
        transport=engine(blocks=5, bucket_rows=700),
        output=folder / "out.parquet",
        parameters={"k": K, "block": BLOCK},
    )
    return pl.read_parquet(found.path).to_numpy(), found.notes


def test_every_group_has_k_records_and_means_are_kept(values, made):
    masked, _ = made
    sizes = np.unique(masked, axis=0, return_counts=True)[1]
    assert sizes.min() >= K
    assert sizes.max() <= 2 * K - 1
    np.testing.assert_allclose(masked.mean(axis=0), values.mean(axis=0), atol=1e-12)


def test_blocks_cost_little_and_notes_say_what(values, made):
    masked, notes = made
    lost = within_share(values, masked) / within_share(values, mdav(values, k=K))
    assert lost < 1.06
    assert notes[0].startswith("groups were formed within 5 blocks of 1,")
    assert notes[1].startswith("blocked MDAV loses ")
    assert len(notes) == 2


def test_a_tree_cuts_points_into_blocks_of_about_one_size(values):
    tree = grow(values, 7)
    assert count_blocks(tree) == 7
    sizes = np.bincount(blocks_of_points(tree, values))
    assert len(sizes) == 7
    assert sizes.max() - sizes.min() <= 3
    shuffled = np.random.default_rng(1).permutation(N)
    apart = np.concatenate([blocks_of_points(tree, part) for part in np.array_split(values[shuffled], 11)])
    np.testing.assert_array_equal(apart, blocks_of_points(tree, values)[shuffled])


def test_equal_points_and_missing_cells_have_their_block():
    assert grow(np.zeros((100, 2)), 4) == 0
    points = np.random.default_rng(2).normal(size=(200, 2))
    points[::7, 1] = np.nan
    assert np.bincount(blocks_of_points(grow(points, 4), points)).min() > 30


def test_small_blocks_are_joined_with_their_neighbours():
    one = np.ones(1)
    tree = Node(one, 0.0, Node(one, -1.0, 0, 1), Node(one, 1.0, 2, Node(one, 2.0, 3, 4)))
    assert without_small_blocks(tree, [9, 9, 9, 9, 9], 9) == tree
    found = without_small_blocks(tree, [9, 9, 9, 9, 1], 9)
    assert found == Node(one, 0.0, Node(one, -1.0, 0, 1), Node(one, 1.0, 2, 3))
    found = without_small_blocks(tree, [1, 0, 9, 9, 9], 9)
    assert found == Node(one, 1.0, 0, Node(one, 2.0, 1, 2))
    assert without_small_blocks(tree, [1, 0, 2, 1, 1], 9) == 0
