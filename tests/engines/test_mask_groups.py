"""Blocked MDAV of files: the tree of blocks, sizes of groups, and what the blocks cost."""

import numpy as np
import polars as pl
import pytest

import sdckit as sdc
from file_transport import engine
from sdckit.engines.group_masking import Node, blocks_of_points, count_blocks, grow, without_small_blocks
from sdckit.engines.masking import mask_files
from sdckit.masking.microaggregation import mdav, within_share

N, K, BLOCK = 6000, 3, 1500


@pytest.fixture(scope="module", params=["copies", "lognormal"])
def values(request):
    rng = np.random.default_rng(4)
    if request.param == "lognormal":
        return rng.lognormal(size=(N, 4))
    x = rng.normal(size=(N, 2))
    return np.column_stack([x, x + 0.1 * rng.normal(size=(N, 2))])


def masked_file(folder, blocks):
    """Mask a file in so many blocks of rows; return the masked values and the notes."""
    found = mask_files(
        folder / "in.parquet",
        "blocked_mdav",
        transport=engine(blocks=blocks, bucket_rows=700),
        output=folder / f"out{blocks}.parquet",
        parameters={"k": K, "block": BLOCK},
    )
    return pl.read_parquet(found.path).to_numpy(), found.notes


@pytest.fixture(scope="module")
def folder(tmp_path_factory, values):
    folder = tmp_path_factory.mktemp("groups")
    pl.DataFrame(values, ["a", "b", "c", "d"]).write_parquet(folder / "in.parquet")
    return folder


@pytest.fixture(scope="module")
def made(folder):
    return masked_file(folder, blocks=5)


def test_every_group_has_k_records_and_is_published_as_its_mean(values, made):
    masked, _ = made
    groups, sizes = np.unique(masked, axis=0, return_inverse=True, return_counts=True)[1:]
    assert sizes.min() >= K
    assert sizes.max() <= 2 * K - 1
    for column, published in zip(values.T, masked.T, strict=True):
        means = np.bincount(groups.ravel(), column) / sizes
        np.testing.assert_allclose(published, means[groups.ravel()], rtol=1e-12, atol=1e-12)


def test_the_groups_do_not_depend_on_blocks_of_rows(folder, made):
    np.testing.assert_array_equal(masked_file(folder, blocks=40)[0], made[0])


def test_swaps_make_up_for_blocks_and_notes_say_what(values, made):
    masked, notes = made
    lost = within_share(values, masked) / within_share(values, mdav(values, k=K))
    assert lost < 1.01
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


def test_the_outermost_points_make_a_block(values):
    points = (values - values.mean(axis=0)) / values.std(axis=0)
    found = blocks_of_points(grow(points, 7), points)
    lengths = (points**2).sum(axis=1)
    assert lengths[found == 6].min() > lengths[found < 6].max()


def test_equal_points_and_missing_cells_have_their_block():
    assert grow(np.zeros((100, 2)), 4) is None
    points = np.random.default_rng(2).normal(size=(200, 2))
    points[::7, 1] = np.nan
    assert np.bincount(blocks_of_points(grow(points, 4), points)).min() > 30


def test_small_blocks_are_joined_with_their_neighbours():
    one = np.ones(1)
    low = Node(one, -1.0, None, None)
    tree = Node(one, 0.0, low, Node(one, 1.0, None, Node(one, 2.0, None, None)))
    assert without_small_blocks(tree, [9, 9, 9, 9, 9], 9) == tree
    found = without_small_blocks(tree, [9, 9, 9, 9, 1], 9)
    assert found == Node(one, 0.0, low, Node(one, 1.0, None, None))
    found = without_small_blocks(tree, [1, 0, 9, 9, 9], 9)
    assert found == Node(one, 1.0, None, Node(one, 2.0, None, None))
    assert without_small_blocks(tree, [1, 0, 2, 1, 1], 9) is None


def gappy(folder, empty):
    """Write a file of 60 records with gaps, some with a code, and some records without any value."""
    rng = np.random.default_rng(5)
    values = rng.lognormal(size=(60, 3)).round(3)
    values[rng.random(values.shape) < 0.15] = -9
    values[rng.random(values.shape) < 0.1] = np.nan
    values[:empty] = np.nan
    frame = pl.DataFrame(values, ["a", "b", "c"]).fill_nan(None)
    frame.write_parquet(folder / "in.parquet")
    return frame


def masked_gappy(folder, **parameters):
    """Mask the file in blocks of rows; return the masked table and the notes."""
    found = mask_files(
        folder / "in.parquet",
        "mdav",
        transport=engine(blocks=4, bucket_rows=700),
        output=folder / "out.parquet",
        overwrite=True,
        roles={"na": -9},
        parameters={"k": 4} | parameters,
    )
    return pl.read_parquet(found.path), found.notes


@pytest.mark.parametrize("empty", [0, 5])
def test_records_of_a_group_are_alike_as_in_memory(tmp_path, empty):
    frame = gappy(tmp_path, empty)
    found, (note,) = masked_gappy(tmp_path)
    expected = sdc.Microdata(frame, na=-9).mask("mdav", k=4)
    assert found.null_count().equals(expected.null_count())
    np.testing.assert_allclose(found.to_numpy(), expected.to_numpy(), rtol=1e-12)
    assert found.group_by(found.columns).len()["len"].min() >= 4
    assert "alike" in note
    kept, _ = masked_gappy(tmp_path, gaps="merge")
    assert kept.select((pl.all() == -9).sum()).equals(frame.select((pl.all() == -9).sum()))


def test_a_few_records_without_any_value_are_refused(tmp_path):
    gappy(tmp_path, 2)
    with pytest.raises(ValueError, match="the file has 2 records without any value, too few for a group"):
        masked_gappy(tmp_path)
    assert not (tmp_path / "out.parquet").exists()
    masked_gappy(tmp_path, gaps="merge")
