"""Groups of the microaggregation family: variable sizes, optimal ones, projections and blocks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import naive_masking_groups as twins
from microaggregations import NAN, column, holes, lines, sets
from sdckit.core.registry import METHODS
from sdckit.kernels.group_changes import swap_members
from sdckit.kernels.mdav.groups import mdav_groups
from sdckit.masking import microaggregation
from sdckit.masking.microaggregation import (
    blocked_mdav,
    blocked_numbers,
    mdav,
    optimal_sizes,
    optimal_univariate,
    pca_microaggregation,
    pca_numbers,
    vmdav,
    vmdav_numbers,
    within_share,
)

# --- variable group sizes ---


def test_vmdav_by_hand():
    # Farthest from the mean (11.6): 31, with 21. Then 20 is 1 from the group and 16.5 from the others.
    values = column(1, 2, 3, 3.5, 20, 21, 31)
    assert vmdav_numbers(values, k=2, gamma=0.2).tolist() == [1, 1, 2, 2, 0, 0, 0]
    # 20 needs 1 < 0.05 * 16.5, which is false. Then 1 is farthest, with 2; the last three form a group.
    assert vmdav_numbers(values, k=2, gamma=0.05).tolist() == [1, 1, 2, 2, 2, 0, 0]


def test_the_last_records_of_vmdav_join_the_nearest_groups():
    # Two clusters of three with 9 and 10.5 in between; each triple is complete before they are asked.
    values = column(0, 0.1, 0.3, 9, 20, 20.1, 20.4)
    groups = vmdav_numbers(values, k=2, gamma=1)
    assert sets(groups) == {frozenset({5, 6, 7}), frozenset({1, 2, 3, 4})}
    np.testing.assert_allclose(vmdav(values, k=2, gamma=1).ravel()[:4], 9.4 / 4)


@settings(max_examples=30, deadline=None)
@given(
    shape=st.sampled_from(["lognormal", "clusters", "integers"]),
    n=st.integers(4, 45),
    p=st.integers(1, 4),
    k=st.integers(2, 7),
    gamma=st.sampled_from([0.0, 0.2, 1.1, 3.0]),
    share=st.sampled_from([0.0, 0.2]),
    seed=st.integers(0, 2**32 - 1),
)
def test_vmdav_forms_the_twins_groups(*, shape, n, p, k, gamma, share, seed):
    k = min(k, n)
    values = holes(lines(shape, n, p, seed), share, seed)
    values[:k, 0] = np.arange(k)
    expected = twins.vmdav_groups(values, k, gamma)
    np.testing.assert_array_equal(vmdav_numbers(values, k=k, gamma=gamma, gaps="merge"), expected)
    sizes = np.bincount(expected[expected >= 0])
    assert k <= sizes.min()
    assert sizes.max() <= 3 * k - 2
    if gamma == 0 and n % k == 0 and not share:
        assert (sizes == k).all()


def test_vmdav_in_small_steps_forms_the_same_groups(monkeypatch):
    values = lines("clusters", 200, 2)
    expected = vmdav_numbers(values, k=3, gamma=1.0)
    monkeypatch.setattr(microaggregation, "STEP", 1)
    np.testing.assert_array_equal(vmdav_numbers(values, k=3, gamma=1.0), expected)


def test_vmdav_keeps_clusters_together_that_mdav_tears_apart():
    rng = np.random.default_rng(0)
    centres = np.repeat(100 * rng.random((12, 2)), [3, 4, 5] * 4, axis=0)
    values = centres + 0.1 * rng.random(centres.shape)
    shares = [within_share(values, vmdav(values, k=3, gamma=gamma)) for gamma in (0.0, 1.0)]
    assert shares[1] < 0.2 * min(shares[0], within_share(values, mdav(values, k=3)))


# --- optimal groups of one variable ---


def squares(values, masked):
    return float(((values - masked) ** 2).sum())


def test_the_ten_values_of_the_specification():
    values = column(1, 2, 3, 10, 11, 12, 13, 30, 31, 32)
    assert optimal_sizes(values.ravel(), 3).tolist() == [3, 4, 3]
    assert squares(values, optimal_univariate(values, k=3)) == 9
    assert twins.best_partition(values, 3)[0] == pytest.approx(9)


@settings(max_examples=25, deadline=None)
@given(
    values=st.lists(st.integers(-20, 20) | st.floats(-50, 50), min_size=2, max_size=10),
    k=st.integers(2, 6),
)
def test_optimal_groups_are_the_best_of_all_partitions(values, k):
    k, values = min(k, len(values)), column(*values)
    found = squares(values, optimal_univariate(values, k=k))
    assert found == pytest.approx(twins.best_partition(values, k)[0], rel=1e-9, abs=1e-9)


def test_optimal_groups_do_not_depend_on_where_or_how_large_the_values_are():
    values = np.sort(np.random.default_rng(5).integers(0, 2**20, 3000)) / 2**20
    expected = optimal_sizes(values, 4)
    for other in (values + 1e9, values - 2**32, values * 2.0**900, values * 2.0**-400):
        masked = optimal_univariate(other[:, None], k=4).ravel()
        starts = np.flatnonzero(np.diff(masked, prepend=-np.inf))
        np.testing.assert_array_equal(np.diff(starts, append=len(other)), expected)


def test_large_squares_do_not_drown_small_ones():
    small, large = np.sort(np.random.default_rng(1).random(400)), 1e12 * np.arange(1.0, 400) ** 2
    alone = optimal_sizes(small, 3)
    np.testing.assert_array_equal(optimal_sizes(np.concatenate([small, large]), 3)[: len(alone)], alone)
    np.testing.assert_array_equal(
        optimal_sizes(np.concatenate([-large[::-1], small]), 3)[-len(alone) :], alone
    )


def test_optimal_groups_in_small_steps_are_the_same(monkeypatch):
    values = np.sort(lines("lognormal", 300, 1).ravel())
    expected = optimal_sizes(values, 3)
    monkeypatch.setattr(microaggregation, "CELLS", 1)
    np.testing.assert_array_equal(optimal_sizes(values, 3), expected)


def test_optimal_groups_leave_missing_cells_out():
    values = np.array([[3.0, NAN], [NAN, 5.0], [1.0, 6.0], [2.0, NAN], [31.0, NAN], [32.0, NAN], [33.0, NAN]])
    expected = [2, NAN, 2, 2, 32, 32, 32]
    found = optimal_univariate(values, k=3)
    np.testing.assert_array_equal(found[:, 0], expected)
    assert np.isnan(found[:, 1]).all()


# --- along the first principal component ---


def test_pca_by_hand():
    # Both variables grow together but for one record: (1, 10), (2, 14) and (3, 12) come first.
    values = np.array(
        [[3.0, 12.0], [9.0, 70.0], [1.0, 10.0], [8.0, 90.0], [2.0, 14.0], [9.5, 95.0], [9.9, 99.0]]
    )
    np.testing.assert_array_equal(pca_numbers(values, k=3), [0, 1, 0, 1, 0, 1, 1])


@settings(max_examples=40, deadline=None)
@given(
    shape=st.sampled_from(["lognormal", "clusters", "correlated"]),
    n=st.integers(4, 60),
    p=st.integers(1, 4),
    k=st.integers(2, 7),
    share=st.sampled_from([0.0, 0.2]),
    seed=st.integers(0, 2**32 - 1),
)
def test_projections_form_the_twins_groups(*, shape, n, p, k, share, seed):
    k = min(k, n)
    values = holes(lines(shape, n, p, seed), share, seed)
    values[:k, 0] = np.arange(k)
    np.testing.assert_array_equal(pca_numbers(values, k=k, gaps="merge"), twins.pca_groups(values, k))
    if not share:
        found = blocked_numbers(values, k=k, block=10)
        np.testing.assert_array_equal(found, twins.blocked_groups(values, k, 10))


def test_the_component_points_one_way_and_sees_equal_records_as_equal():
    points = naive.standardise(lines("correlated", 101, 5))
    places = microaggregation.first_component(points)
    assert np.corrcoef(places, points[:, 0])[0, 1] > 0
    points[:, 0] *= -1
    assert np.corrcoef(microaggregation.first_component(points), points[:, 0])[0, 1] > 0
    assert len(np.unique(microaggregation.first_component(np.repeat(points, 7, axis=0)))) == 101


def test_pca_equals_sdcmicro(tarragona, golden):
    expected = np.loadtxt(golden / "Tarragona_pca_k3.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(pca_microaggregation(tarragona.to_numpy(), k=3), expected, rtol=1e-12)


# --- blocks ---


def test_one_block_is_exact():
    values = lines("lognormal", 300, 3)
    np.testing.assert_array_equal(blocked_numbers(values, k=3, block=300), mdav_groups(values, 3))
    assert not np.array_equal(blocked_numbers(values, k=3, block=299), mdav_groups(values, 3))
    assert METHODS["blocked_mdav"].release_notes(values, {"k": 3, "block": 300}) == []


def test_blocks_have_between_3k_and_so_many_records():
    points = lines("lognormal", 1000, 3)
    for k, block in ((2, 1), (2, 100), (40, 100), (40, 999)):
        largest = microaggregation.largest_block(k, block)
        blocks = microaggregation.blocks_of(points, np.arange(1000), largest)
        sizes = [len(rows) for rows in blocks]
        assert sorted(np.concatenate(blocks)) == list(range(1000))
        assert 3 * k <= min(sizes) <= max(sizes) <= max(block, 6 * k)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_swaps_are_the_twins_and_only_gain(k):
    points = lines("lognormal", 90, 3)
    points[4 * k : 7 * k] = points[0]  # groups of equal records, which stay as they are
    groups = mdav_groups(points, k, points)
    found = swap_members(points, groups)
    members = [np.flatnonzero(groups == g) for g in range(groups.max() + 1)]
    np.testing.assert_array_equal(found, twins.numbered(twins.swapped(points, members), 90))
    np.testing.assert_array_equal(np.bincount(found), np.bincount(groups))
    after = [np.flatnonzero(found == g) for g in range(found.max() + 1)]
    assert twins.spread(points, *after) < 0.9999 * twins.spread(points, *members)


def test_groups_with_a_missing_cell_swap_nothing():
    points = lines("lognormal", 90, 3)
    points[[3, 40, 77], [0, 1, 2]] = np.nan
    groups = mdav_groups(points, 3, points)
    found = swap_members(points, groups)
    gaps = np.isin(groups, groups[[3, 40, 77]])
    np.testing.assert_array_equal(found[gaps], groups[gaps])
    assert (found != groups).sum() > 10
    assert not np.isin(found[~gaps], groups[gaps]).any()


@pytest.mark.parametrize("sample", [20_000, 3000])
def test_a_note_says_what_blocks_cost(sample, monkeypatch):
    monkeypatch.setattr(microaggregation, "SAMPLE", sample)
    values = lines("lognormal", 6000, 3)
    (sentence,) = METHODS["blocked_mdav"].release_notes(values, {"k": 3, "block": 100, "gaps": "merge"})
    where, remark, block = "", "", 100
    if sample < 6000:
        values = values[np.sort(np.random.default_rng(1).choice(6000, sample, replace=False))]
        where, block = " on a sample of 3,000 records in as many blocks", 50
        remark = "; the file, with more records to a block, loses less as a rule"
    blocked = within_share(values, blocked_mdav(values, k=3, block=block))
    exact = within_share(values, mdav(values, k=3))
    assert 1.0 < blocked / exact < 1.5
    assert sentence == (
        f"blocked MDAV loses {(blocked / exact - 1) * 100:.1f} % more within-group variance "
        f"than exact MDAV{where} (SSE/SST {blocked:.4f} and {exact:.4f}){remark}"
    )


def test_blocks_may_lose_less():
    (sentence,) = METHODS["blocked_mdav"].release_notes(
        lines("correlated", 6000, 3), {"k": 3, "block": 500, "gaps": "merge"}
    )
    assert "% less within-group variance than exact MDAV (SSE" in sentence


def test_blocks_cost_nothing_where_nothing_is_lost():
    copies = np.repeat(lines("correlated", 40, 3), 30, axis=0)
    assert (
        "0.0 % more"
        in METHODS["blocked_mdav"].release_notes(copies, {"k": 3, "block": 500, "gaps": "merge"})[0]
    )
