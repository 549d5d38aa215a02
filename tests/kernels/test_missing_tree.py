"""MDAV with missing cells and V-MDAV on files of many leaves: always the groups of scans of all records."""

import itertools

import numpy as np
import pytest

import naive
import naive_masking_groups as twins
from cases import each
from sdckit.kernels.mdav import groups, tree
from sdckit.kernels.mdav.groups import mdav_groups, mdav_points
from sdckit.masking import microaggregation as vmdav
from sdckit.masking.microaggregation import mdav_numbers

SHAPES = {
    "normal": lambda rng, n, p: rng.normal(size=(n, p)),
    "lognormal": lambda rng, n, p: rng.lognormal(sigma=2, size=(n, p)),
    "correlated": lambda rng, n, p: 2 * rng.normal(size=(n, 1)) + rng.normal(size=(n, p)),
    "duplicated": lambda rng, n, p: rng.normal(size=(n // 5 + 1, p))[rng.integers(0, n // 5 + 1, n)],
    "integers": lambda rng, n, p: rng.integers(-2, 3, (n, p)).astype(float),
    "constant column": lambda rng, n, p: np.where(np.arange(p) == 0, 0.1, rng.normal(size=(n, p))),
    "all equal": lambda _rng, n, p: np.full((n, p), 7.1),
}


def at_random(rng, points, share):
    points[rng.random(points.shape) < share] = np.nan


def single_values(rng, points, share):
    """A share of the records keeps one value only."""
    rows = np.flatnonzero(rng.random(len(points)) < share)
    kept = points[rows, rng.integers(0, points.shape[1], len(rows))]
    columns = rng.integers(0, points.shape[1], len(rows))
    points[rows] = np.nan
    points[rows, columns] = kept


def no_values(rng, points, share):
    """Records without any value, as where a variable of weight 0 has the only one."""
    points[rng.random(len(points)) < share] = np.nan
    at_random(rng, points, 0.1)


def in_blocks(rng, points, share):
    """Either half of the columns is missing, never both: some records share no column."""
    half = (points.shape[1] + 1) // 2
    points[rng.random(len(points)) < share, half:] = np.nan
    points[np.isnan(points).any(axis=1) & (rng.random(len(points)) < 0.5), :half] = np.nan
    empty = np.isnan(points).all(axis=1)
    points[empty, 0] = rng.integers(0, 3, np.count_nonzero(empty))


GAPS = {
    "at random": at_random,
    "single values": single_values,
    "no values": no_values,
    "in blocks": in_blocks,
}


def points_with_gaps(shape, gaps, share, n, p, seed):
    rng = np.random.default_rng(seed)
    points = mdav_points(SHAPES[shape](rng, n, p))
    GAPS[gaps](rng, points, share)
    points[0], points[1, 0] = 1.0, np.nan
    return points


def group_points(points, k):
    """Groups of points as they are, records without any value included."""
    return groups.group_incomplete(points, k, lambda _share: None)


CASES = list(
    zip(
        itertools.cycle([(8, 3), (2, 2), (4, 5), (13, 3), (4, 17)]),
        itertools.cycle([0.05, 0.3, 0.7]),
        itertools.product(SHAPES, GAPS),
        strict=False,
    )
)[: len(SHAPES) * len(GAPS)]


@each(("width", "share", "kind"), CASES)
def test_the_groups_of_scans(width, share, kind):
    (p, k), (shape, gaps) = width, kind
    n = 500 + 25 * CASES.index((width, share, kind))
    points = points_with_gaps(shape, gaps, share, n, p, seed=n)
    np.testing.assert_array_equal(group_points(points, k), twins.mdav_with_gaps(points, k))


@each("n", [2, 31, 63, 64, 65, 127, 128, 129, 255, 257, 300])
def test_sizes_at_which_leaves_are_parted(n):
    points = points_with_gaps("integers", "at random", 0.2, n, 3, seed=n)
    points[np.isnan(points).all(axis=1), 0] = 1.0
    assert mdav_groups(points, 2, points).tolist() == twins.mdav_with_gaps(points, 2).tolist()


def test_scans_of_columns_are_the_slow_twin():
    values = points_with_gaps("integers", "at random", 0.3, 60, 3, seed=1)
    values[np.isnan(values).all(axis=1), 0] = 2.0
    points = naive.standardise(values)
    np.testing.assert_array_equal(twins.mdav_with_gaps(points, 3), naive.mdav_groups_missing(values, 3))
    grown = vmdav.with_leftovers(points, twins.vmdav_on_points(points, 3, 1.1), 3)
    np.testing.assert_array_equal(grown, twins.vmdav_groups(values, 3, 1.1))


def test_60_files_of_some_mixed_leaves():
    rng = np.random.default_rng(11)
    for seed, gaps in enumerate(list(GAPS) * 15):
        n, p, k = int(rng.integers(65, 400)), int(rng.integers(1, 6)), int(rng.integers(2, 9))
        shape = str(rng.choice(list(SHAPES)))
        points = points_with_gaps(shape, gaps, float(rng.choice([0.05, 0.2, 0.5])), n, p, seed)
        expected = twins.mdav_with_gaps(points, k)
        np.testing.assert_array_equal(group_points(points, k), expected, f"{shape=}, {gaps=}, {seed=}")


def test_large_values_that_were_grouped_leave_no_rounding_errors_in_the_centroid():
    points = points_with_gaps("normal", "at random", 0.1, 153, 4, seed=6)
    points[-3:] = 1e16  # grouped first
    np.testing.assert_array_equal(group_points(points, 3), twins.mdav_with_gaps(points, 3))


def test_trees_are_built_again_and_progress_goes_up_to_the_end(monkeypatch):
    built, shares, build_tree = [], [], tree.build_tree

    def spy(state, rounded):
        built.append(np.count_nonzero(state.slots >= 0))
        return build_tree(state, rounded)

    monkeypatch.setattr(tree, "build_tree", spy)
    monkeypatch.setattr(groups, "STEP", 1000)
    points = points_with_gaps("correlated", "at random", 0.1, 1500, 4, seed=8)
    found = groups.group_incomplete(points, 3, shares.append)
    np.testing.assert_array_equal(found, twins.mdav_with_gaps(points, 3))
    assert built[0] == 1500
    assert all(after < 0.7 * before for before, after in itertools.pairwise(built))
    assert len(built) > 4
    assert shares == sorted(shares)
    assert 0 < shares[0] < 0.3
    assert shares[-1] == 1.0


def test_variables_of_weight_zero_leave_records_without_any_value():
    values = points_with_gaps("lognormal", "at random", 0.4, 600, 3, seed=4)
    values[np.isnan(values).all(axis=1), 2] = 0.5
    weights = np.array([1.0, 4.0, 0.0])
    points = naive.standardise(values)[:, :2] * np.sqrt([0.25, 1.0])
    assert np.isnan(points).all(axis=1).any()
    found = mdav_numbers(values, k=3, variable_weights=weights)
    np.testing.assert_array_equal(found, twins.mdav_with_gaps(points, 3))


@pytest.mark.parametrize("power", [-1060, -530, -150, 500])
def test_points_of_any_size(power):
    points = np.ldexp(points_with_gaps("lognormal", "at random", 0.1, 600, 4, seed=3), power)
    np.testing.assert_array_equal(group_points(points, 3), twins.mdav_with_gaps(points, 3))


# --- V-MDAV ---


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("share", "gamma"), [(0.0, 1.1), (0.2, 0.0), (0.2, 0.2)])
def test_vmdav_grows_the_groups_of_scans(shape, share, gamma):
    points = points_with_gaps(shape, "at random", share, 500, 4, seed=7)
    points[np.isnan(points).all(axis=1), 0] = 1.0
    if not share:
        points[1, 0] = 0.0
    np.testing.assert_array_equal(
        vmdav.group_points(points, 4, gamma), twins.vmdav_on_points(points, 4, gamma)
    )
