"""What all microaggregation has in common: what is published, what is promised, what others compute."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import naive_masking_groups as twins
from cases import each
from maskings import fails
from microaggregations import NAN, column, holes, lines, sets
from sdckit.core.registry import METHODS
from sdckit.kernels.mdav.groups import mdav_groups
from sdckit.masking import microaggregation as group_means
from sdckit.masking.microaggregation import (
    blocked_mdav,
    blocked_numbers,
    individual_ranking,
    mdav,
    mdav_numbers,
    optimal_univariate,
    pca_microaggregation,
    pca_numbers,
    publish,
    vmdav,
    vmdav_numbers,
    within_share,
)

# --- what is published of a group ---


def test_medians_by_hand():
    values = np.array([[1.0, 5.0], [9.0, NAN], [2.0, 7.0], [4.0, 6.0], [8.0, NAN], [7.0, 1.0]])
    groups = np.array([0, 1, 0, 0, 1, 0])
    # 1, 2, 4, 7 have the middle values 2 and 4; the other group has no two values in the second column.
    found = publish(values, groups, 2, "median")
    np.testing.assert_array_equal(found[:, 0], [3, 8.5, 3, 3, 8.5, 3])
    np.testing.assert_array_equal(found[:, 1], [5.5, NAN, 5.5, 5.5, NAN, 5.5])


@pytest.mark.parametrize("aggregate", group_means.MEASURES)
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_aggregates_equal_their_twin(aggregate, share, monkeypatch):
    values = holes(lines("lognormal", 80, 3), share)
    groups = np.random.default_rng(1).integers(-1, 12, 80)
    expected = twins.aggregates(values, groups, 3, aggregate)
    np.testing.assert_allclose(publish(values, groups, 3, aggregate), expected, rtol=1e-14)
    monkeypatch.setattr(group_means, "RUNS", 2)
    np.testing.assert_allclose(publish(values, groups, 3, aggregate), expected, rtol=1e-14)


def test_the_largest_and_smallest_numbers_have_medians():
    values = column(1.7e308, 1.7e308, 5e-324, 5e-324)
    np.testing.assert_array_equal(publish(values, np.array([0, 0, 1, 1]), 2, "median"), values)


def test_the_share_lost_by_hand():
    values = np.array([[0.0, 5.0], [2.0, 5.0], [4.0, 5.0], [6.0, 5.0]])  # squares from the mean: 20
    masked = np.array([[1.0, 5.0], [1.0, 5.0], [5.0, 5.0], [5.0, 5.0]])  # from the group means: 4
    assert within_share(values, masked) == pytest.approx(4 / 20)
    masked[0, 0] = NAN  # as if it were the mean, 3
    assert within_share(values, masked) == pytest.approx((9 + 3) / 20)
    assert within_share(values, values) == 0.0
    assert within_share(values[:, [1]], values[:, [1]]) == 0.0
    assert within_share(1e300 * values, 1e300 * np.full((4, 2), [3.0, 5.0])) == pytest.approx(1.0)


# --- options of mdav and individual ranking ---


def test_weights_by_hand():
    # The first variable makes the pairs (1, 2) and (3, 4), the second (1, 3) and (2, 4).
    values = np.array([[0.0, 0.0], [1.0, 10.0], [10.0, 1.0], [11.0, 11.0]])
    first, second = (mdav_numbers(values, k=2, variable_weights=np.array(w)) for w in ([1.0, 0], [0, 1.0]))
    assert sets(first) == {frozenset({1, 2}), frozenset({3, 4})}
    assert sets(second) == {frozenset({1, 3}), frozenset({2, 4})}
    masked = mdav(values, k=2, variable_weights=np.array([1.0, 0.0]))
    np.testing.assert_array_equal(masked, [[0.5, 5.0], [0.5, 5.0], [10.5, 6.0], [10.5, 6.0]])


@pytest.mark.parametrize("weights", [(1, 1, 1), (4, 1, 0.25), (0, 2, 1), (0, 0, 3)])
def test_weighted_groups_equal_their_twin(weights):
    values = lines("lognormal", 61, 3)
    found = mdav_numbers(values, k=3, variable_weights=np.array(weights, float))
    np.testing.assert_array_equal(found, twins.weighted_mdav_groups(values, 3, weights))


def test_only_ratios_of_weights_count_and_a_large_one_rules():
    values = lines("lognormal", 200, 3)
    plain = mdav_numbers(values, k=3)
    for factor in (1.0, 8.0, 1e300):
        np.testing.assert_array_equal(mdav_numbers(values, k=3, variable_weights=np.full(3, factor)), plain)
    lost = [
        within_share(values[:, [0]], mdav(values, k=3, variable_weights=np.array([weight, 1.0, 1.0]))[:, [0]])
        for weight in (0.0, 1.0, 100.0)
    ]
    assert lost[0] > 2 * lost[1] > 2 * lost[2]


def test_a_variable_without_weight_needs_no_values():
    values = lines("lognormal", 40, 3)
    gaps = values.copy()
    gaps[::2, 2] = NAN
    weights = np.array([1.0, 1.0, 0.0])
    expected = mdav_numbers(values, k=3, variable_weights=weights)
    np.testing.assert_array_equal(mdav_numbers(gaps, k=3, variable_weights=weights), expected)
    gaps[5, :2] = NAN
    gaps[5, 2] = 1.0  # no distance to anybody, but still in a group
    assert mdav_numbers(gaps, k=3, variable_weights=weights)[5] >= 0


def test_weights_of_nothing_are_refused():
    with pytest.raises(ValueError, match="all variable_weights are 0; give at least one"):
        mdav(lines("lognormal", 9, 2), variable_weights=np.zeros(2))


def test_weights_with_and_without_the_basis():
    values, weights = lines("lognormal", 50, 3), np.array([1.0, 5.0, 0.0])
    basis = METHODS["mdav"].basis(values)
    expected = mdav(values, k=4, variable_weights=weights)
    np.testing.assert_array_equal(mdav(values, k=4, variable_weights=weights, basis=basis), expected)


def test_individual_ranking_by_medians():
    values = column(5, 1, 9, 2, 8, NAN)
    np.testing.assert_array_equal(
        individual_ranking(values, k=2, aggregate="median").ravel(), [8, 1.5, 8, 1.5, 8, NAN]
    )


@each("name", ["mdav", "vmdav", "pca_microaggregation", "blocked_mdav"])
def test_groups_handed_in_are_used(name):
    method, values = METHODS[name], holes(lines("lognormal", 90, 3), 0.1)
    values[7] = NAN
    options = {"k": 4, "gaps": "merge"} | ({"block": 24} if name == "blocked_mdav" else {})
    groups = method.groups(values, **options)
    assert groups[7] == -1
    assert sorted(set(groups)) == list(range(-1, groups.max() + 1))
    expected = method.function(values, **options)
    np.testing.assert_array_equal(method.function(values, groups=groups, **options), expected)
    assert np.isnan(expected[7]).all()
    others = np.arange(90) % 9
    np.testing.assert_allclose(
        method.function(values, groups=others, **options), twins.aggregates(values, others, 4)
    )


# --- what all of them promise, each promise broken once ---

GROUPED = {
    "mdav": (mdav, mdav_numbers),
    "vmdav": (lambda x, k: vmdav(x, k=k, gamma=1.0), lambda x, k: vmdav_numbers(x, k=k, gamma=1.0)),
    "pca_microaggregation": (pca_microaggregation, pca_numbers),
    "blocked_mdav": (
        lambda x, k: blocked_mdav(x, k=k, block=20),
        lambda x, k: blocked_numbers(x, k=k, block=20),
    ),
}
SINGLE = {"individual_ranking": individual_ranking, "optimal_univariate": optimal_univariate}
FUNCTIONS = {name: function for name, (function, _) in GROUPED.items()} | SINGLE


def check_groups(values, groups, k, largest):
    """Every record in one group, as large as promised."""
    assert len(groups) == len(values)
    sizes = np.bincount(groups)
    assert sizes.sum() == len(values)
    assert k <= sizes.min() <= sizes.max() <= largest


def check_means(values, masked):
    size = np.maximum(np.abs(values).max(axis=0), 1e-300)
    assert (np.abs((masked / size - values / size).mean(axis=0)) <= 1e-9).all()


def check_share(values, masked):
    assert 0 <= within_share(values, masked) <= 1 + 1e-12


def check_same(values, masked):
    np.testing.assert_array_equal(values, masked)


def check_monotone(values, masked):
    for before, after in zip(values.T, masked.T, strict=True):
        assert (np.diff(after[np.argsort(before, kind="stable")]) >= 0).all()


def check_not_worse(values, masked, other):
    assert within_share(values, masked) <= within_share(values, other) * (1 + 1e-9)


files = given(
    shape=st.sampled_from(["lognormal", "clusters", "correlated", "integers"]),
    n=st.integers(2, 70),
    p=st.integers(1, 4),
    k=st.integers(2, 9),
    seed=st.integers(0, 2**32 - 1),
)


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=30, deadline=None)
@files
def test_every_method_keeps_its_promises(*, name, shape, n, p, k, seed):
    k, values = min(k, n), lines(shape, n, p, seed)
    masked = FUNCTIONS[name](values, k=k)
    check_means(values, masked)
    check_share(values, masked)
    check_same(values, FUNCTIONS[name](values, k=1))
    if name in SINGLE:
        check_monotone(values, masked)
        check_not_worse(values, optimal_univariate(values, k=k), masked)
    else:
        groups = GROUPED[name][1](values, k=k)
        check_groups(values, groups, k, 3 * k - 2 if name == "vmdav" else 2 * k - 1)
        np.testing.assert_allclose(masked, twins.aggregates(values, groups, k), rtol=1e-9, atol=1e-12)


@each("name", FUNCTIONS)
def test_equal_values_come_back_to_the_last_bit(name):
    values = lines("lognormal", 100, 3)
    constant = np.hstack([values, np.full((100, 1), 0.1)])
    np.testing.assert_array_equal(FUNCTIONS[name](constant, k=3)[:, -1], 0.1)
    copies = np.repeat(values[:1] / 3, 100, axis=0)
    np.testing.assert_array_equal(FUNCTIONS[name](copies, k=3), copies)


@each("name", FUNCTIONS)
def test_numbers_of_any_size(name):
    values = lines("huge and tiny", 50, 3)
    masked = FUNCTIONS[name](values, k=4)
    assert np.isfinite(masked).all()
    check_means(values, masked)
    assert 0 < within_share(values, masked) < 1


def test_the_checks_see_broken_methods():
    values = lines("lognormal", 60, 3)
    groups, masked = mdav_numbers(values, k=3), mdav(values, k=3)
    assert not fails(check_groups, values, groups, 3, 5)
    assert fails(check_groups, values, np.where(groups == 4, 5, groups), 3, 5)  # one empty, one of six
    assert fails(check_groups, values, mdav_numbers(values, k=2), 3, 5)
    assert fails(check_groups, values, groups[1:], 3, 5)
    assert not fails(check_means, values, masked)
    assert fails(check_means, values, mdav(values, k=3, aggregate="median"))
    assert not fails(check_share, values, masked)
    assert fails(check_share, values, -values)
    assert fails(check_same, values, np.nextafter(values, 0))
    assert not fails(check_monotone, values, optimal_univariate(values, k=3))
    assert fails(check_monotone, values, masked)
    assert fails(check_not_worse, values, individual_ranking(values, k=3), optimal_univariate(values, k=3))


# --- printed and computed elsewhere ---

FIRMS = np.array(  # surface and employees of eleven small and medium firms, from the SDC handbook
    [
        [790, 710, 730, 810, 950, 510, 400, 330, 510, 760, 50],
        [55, 44, 32, 17, 3, 25, 45, 50, 5, 52, 12],
    ],
    float,
).T


def test_small_and_medium_firms_of_the_handbook():
    points = naive.standardise(FIRMS)
    best, blocks = twins.best_partition(points, 3)
    assert best / (points**2).sum() == pytest.approx(0.3402, abs=5e-5)
    optimum = twins.numbered(blocks, 11)
    assert sets(optimum) == {frozenset({1, 2, 3, 10}), frozenset({4, 5, 9}), frozenset({6, 7, 8, 11})}
    assert within_share(FIRMS, publish(FIRMS, optimum, 3)) == pytest.approx(0.3402, abs=5e-5)
    found = mdav_groups(FIRMS, 3)
    assert sets(found) == {frozenset({6, 9, 11}), frozenset({1, 2, 10}), frozenset({3, 4, 5, 7, 8})}
    assert within_share(FIRMS, mdav(FIRMS, k=3)) == pytest.approx(0.5495, abs=5e-5)


def masked_by_sdcmicro(golden, name):
    return np.loadtxt(golden / f"Tarragona_{name}.csv", delimiter=",", skiprows=1)


def test_medians_equal_sdcmicro(tarragona, golden):
    expected = masked_by_sdcmicro(golden, "onedims_k3_median")
    found = individual_ranking(tarragona.to_numpy(), k=3, aggregate="median")
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_mdav_forms_the_groups_of_argus(tarragona, golden):
    theirs = masked_by_sdcmicro(golden, "argus_k3")
    np.testing.assert_allclose(mdav(tarragona.to_numpy(), k=3), theirs, rtol=1e-12)


def test_mdav_differs_from_argus_in_the_last_two_groups_only(tarragona, golden):
    # 14 records are left in the end; their code groups round the record farthest from the outermost one.
    values, theirs = tarragona.to_numpy(), masked_by_sdcmicro(golden, "argus_k5")
    groups, ours = mdav_numbers(values, k=5), mdav(values, k=5)
    same = np.isclose(ours, theirs, rtol=1e-12).all(axis=1)
    assert set(groups[~same]) == {groups.max() - 1, groups.max()}
    assert within_share(values, ours) == pytest.approx(within_share(values, theirs), rel=1e-5)
    left = np.flatnonzero(~same)
    points = naive.standardise(values)[left]
    outermost = np.argmax(((points - points.mean(axis=0)) ** 2).sum(axis=1))
    opposite = np.argmax(((points - points[outermost]) ** 2).sum(axis=1))
    nearest = left[np.argsort(((points - points[opposite]) ** 2).sum(axis=1))[:5]]
    np.testing.assert_allclose(theirs[nearest], np.tile(values[nearest].mean(axis=0), (5, 1)), rtol=1e-12)


def test_other_methods_of_sdcmicro_explained(tarragona, golden):
    values = tarragona.to_numpy()
    in_order = publish(values, np.arange(834) // 3, 3)
    assert (np.diff(values[:, 0]) >= 0).all()  # the file comes sorted by its first variable, so that
    for name in ("simple_k3", "single_k3"):  # row order and the order of one variable are the same
        np.testing.assert_allclose(masked_by_sdcmicro(golden, name), in_order, rtol=1e-12)
    ranked = individual_ranking(values, k=3)
    np.testing.assert_allclose(masked_by_sdcmicro(golden, "mafast_k3"), ranked, rtol=1e-12)
