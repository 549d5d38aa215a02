"""Groups with fewer than k values of a variable are merged in it: nothing is lost, and nothing given away."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_masking_groups as twins
import sdckit as sdc
from cases import each
from maskings import fails
from microaggregations import NAN, holes, lines
from sdckit.kernels import group_changes
from sdckit.kernels.group_changes import merge_small_groups
from sdckit.kernels.mdav.groups import mdav_points
from sdckit.masking.microaggregation import GAP_RULES, MEASURES, mdav, mdav_numbers, publish

GROUPED = [name for name, method in sdc.METHODS.items() if method.groups is not None]


def by_hand():
    """Three groups of two; the second variable has one value in the middle group."""
    values = np.array([[0.0, 1.0], [0.0, 3.0], [4.0, 6.0], [4.0, NAN], [10.0, 20.0], [10.0, 30.0]])
    return values, np.array([0, 0, 1, 1, 2, 2])


def test_the_nearest_group_joins_in_that_variable_alone():
    values, groups = by_hand()
    merged = publish(values, groups, 2, gaps="merge")
    np.testing.assert_array_equal(merged[:, 0], [0, 0, 4, 4, 10, 10])
    np.testing.assert_allclose(merged[:, 1], [10 / 3, 10 / 3, 10 / 3, NAN, 25, 25])  # mean of 1, 3 and 6
    np.testing.assert_array_equal(publish(values, groups, 2)[:, 1], [2, 2, NAN, NAN, 25, 25])
    medians = publish(values, groups, 2, "median", gaps="merge")
    np.testing.assert_array_equal(medians[:, 1], [3, 3, 3, NAN, 25, 25])


def test_a_weight_decides_which_group_is_nearest():
    values = np.column_stack([by_hand()[0], [0, 0, 9, 9, 10, 10]])
    groups = by_hand()[1]
    near = mdav(values, k=2, gaps="merge", groups=groups, variable_weights=np.array([1.0, 1, 0]))
    far = mdav(values, k=2, gaps="merge", groups=groups, variable_weights=np.array([0.01, 1, 1]))
    np.testing.assert_allclose(near[:, 1], [10 / 3, 10 / 3, 10 / 3, NAN, 25, 25])
    np.testing.assert_allclose(far[:, 1], [2, 2, 56 / 3, NAN, 56 / 3, 56 / 3])


def test_of_equal_distances_the_group_formed_first_wins():
    centres, counts = np.array([[2.0], [1.0], [0.0], [-9.0]]), np.array([3, 1, 3, 3])
    np.testing.assert_array_equal(merge_small_groups(centres, counts, 3), [0, 0, 2, 3])


def test_groups_without_a_value_are_left_alone():
    centres, counts = np.array([[0.0], [1.0], [2.0], [9.0]]), np.array([1, 0, 1, 5])
    np.testing.assert_array_equal(merge_small_groups(centres, counts, 2), [0, 1, 0, 3])
    np.testing.assert_array_equal(merge_small_groups(centres, counts * 0, 2), range(4))


def test_a_merged_group_joins_as_a_whole():
    # 1 joins 0, then 2 is nearest to 1 and joins both; none of the three publishes a value of its own.
    centres, counts = np.array([[0.0], [1.0], [1.9], [9.0]]), np.array([3, 1, 1, 3])
    np.testing.assert_array_equal(merge_small_groups(centres, counts, 3), [0, 0, 0, 3])


def test_only_a_variable_with_fewer_than_k_values_is_suppressed():
    values = np.column_stack([np.arange(9.0), [1.0, NAN, NAN, NAN, 2, NAN, NAN, NAN, NAN]])
    masked = mdav(values, k=3, gaps="merge")
    assert np.isnan(masked[:, 1]).all()
    values[8, 1] = 6.0
    np.testing.assert_array_equal(mdav(values, k=3, gaps="merge")[[0, 4, 8], 1], [3, 3, 3])


def test_strata_are_merged_apart():
    data = pl.DataFrame(
        {"a": range(12), "b": [1.0, None, 3, None, 5, 6, *[None] * 5, 7.0], "s": [0] * 6 + [1] * 6}
    )
    masked = sdc.Microdata(data, by="s", columns=["a", "b"]).mask("mdav", k=3, gaps="merge")
    assert masked["b"].to_list() == [3.75, None, 3.75, None, 3.75, 3.75] + [None] * 6


@each("aggregate", MEASURES)
@each("shape", ["lognormal", "integers", "clusters"])
@each("share", [0.1, 0.5, 0.9])
def test_merged_aggregates_equal_their_twin(shape, share, aggregate):
    for seed in range(3):
        values = holes(lines(shape, 80, 3, seed), share, seed)
        groups = np.random.default_rng(seed).integers(-1, 12, 80)
        groups[np.isnan(values).all(axis=1)] = -1
        points = mdav_points(values)  # ties must be ties for both
        expected = twins.merged_aggregates(values, groups, 4, aggregate, points)
        found = publish(values, groups, 4, aggregate, gaps="merge")
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)


def test_a_search_in_small_steps_merges_the_same_groups(monkeypatch):
    rng = np.random.default_rng(1)
    centres, counts = rng.normal(size=(300, 4)).round(1), rng.integers(0, 6, 300)
    merged = merge_small_groups(centres, counts, 5)
    monkeypatch.setattr(group_changes, "STEP", 1)
    np.testing.assert_array_equal(merge_small_groups(centres, counts, 5), merged)


# --- what must hold for any file ---


def check_contributors(values, masked, k):
    """A published value is the mean of the k or more values that it replaces, and none is lost."""
    for old, new in zip(values.T, masked.T, strict=True):
        seen = ~np.isnan(old)
        assert np.array_equal(~np.isnan(new), seen & (seen.sum() >= k))
        for value in np.unique(new[~np.isnan(new)]):
            assert np.count_nonzero(new == value) >= k
            np.testing.assert_allclose(old[new == value].mean(), value, rtol=1e-9)


files = given(
    n=st.integers(9, 60),
    p=st.integers(1, 4),
    k=st.integers(2, 9),
    share=st.floats(0.01, 0.95),
    seed=st.integers(0, 2**32 - 1),
)


@pytest.mark.parametrize("name", [*GROUPED, "individual_ranking", "optimal_univariate"])
@settings(max_examples=30, deadline=None)
@files
def test_no_published_value_has_fewer_than_k_contributors(*, name, n, p, k, share, seed):
    values = holes(lines("lognormal", n, p, seed), share, seed)
    values[:k, 0] = np.arange(1, k + 1) / 7
    masked = sdc.METHODS[name].function(values, k=k, **({"gaps": "merge"} if name in GROUPED else {}))
    check_contributors(values, masked, k)


def test_the_check_sees_broken_maskings():
    values = holes(lines("lognormal", 60, 3), 0.2)
    groups = mdav_numbers(values, k=3)
    assert not fails(check_contributors, values, publish(values, groups, 3, gaps="merge"), 3)
    assert fails(check_contributors, values, publish(values, groups, 3), 3)  # suppressed
    assert fails(check_contributors, values, publish(values, groups, 1), 3)
    small = publish(values, groups, 3, gaps="merge")
    apart = publish(values, groups, 3)
    # The mean of merged groups beside that of the large one alone gives the small one away.
    assert fails(check_contributors, values, np.where(np.isnan(apart), small, apart), 3)


@pytest.mark.parametrize("name", GROUPED)
def test_complete_files_are_masked_as_before(name):
    values = lines("lognormal", 100, 3)
    alike, *others = (sdc.METHODS[name].function(values, k=4, gaps=gaps) for gaps in GAP_RULES)
    for other in others:
        np.testing.assert_array_equal(alike, other)
