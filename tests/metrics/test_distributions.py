"""Losses of distributions: KS, Hellinger, Wasserstein, and MSE split into changed values and places."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_loss
import sdckit as sdc
from cases import each
from contract import data, shaken
from sdckit.core.registry import metrics_named
from sdckit.metrics.blocks import bin_edges, bin_numbers, couple_quantiles, hellinger_distance
from sdckit.metrics.pair import pair_of

NAN = float("nan")


def columns(low=2, high=30):
    """Two columns of few distinct values, so that ties occur, and weights."""
    value = st.integers(-6, 6).map(lambda k: k / 2)
    return st.integers(low, high).flatmap(
        lambda n: st.tuples(
            *[st.lists(value, min_size=n, max_size=n)] * 2,
            st.lists(st.integers(1, 4), min_size=n, max_size=n),
        )
    )


def heavy(n=300, seed=0):
    rng = np.random.default_rng(seed)
    x = np.exp(rng.normal(3, 1.5, (n, 2)))
    x[:, 1] = np.round(x[:, 1])
    return x, x * np.exp(rng.normal(0, 0.3, x.shape))


# --- worked examples ---


def test_hellinger_of_two_bins():
    assert hellinger_distance(np.array([0.5, 0.5]), np.array([0.2, 0.8])) == pytest.approx(0.2265, abs=5e-5)
    assert hellinger_distance(np.array([1.0, 0.0]), np.array([0.0, 1.0])) == 1


def test_bins_have_quantile_edges_and_room_outside():
    x = np.array([1.0, 2, 3, 4, 5, 6, 7, 8, 9])
    edges = bin_edges(x)  # three bins for nine records
    assert edges == pytest.approx([1, 1 + 8 / 3, 1 + 16 / 3, 9])
    assert bin_numbers(np.array([0.9, 1, 3, 4, 7, 9, 9.1]), edges).tolist() == [0, 1, 1, 2, 3, 3, 5]
    assert bin_edges(np.arange(1000.0)).size == 21
    assert bin_edges(np.full(50, 3.0)).tolist() == [3]
    for value in (2.0, 4.0):
        assert sdc.hellinger(np.full(9, 3.0), np.full(9, value)) == 1


def test_parts_of_mse_are_pooled_over_cells_like_mse():
    x = np.array([[1.0, 10], [2, 20], [3, NAN], [4, 40]])
    y = np.array([[2.0, 20], [1, 10], [3, 30], [NAN, 40]])
    result = sdc.evaluate(x, y, metrics=["mse", "mse_marginal", "mse_permutation"])
    assert result["mse"] == pytest.approx(202 / 6)
    assert (result["mse_marginal"], result["mse_permutation"]) == (0, pytest.approx(202 / 6))
    rows = result.table.filter(metric="mse_permutation")
    assert rows["value"].to_list() == pytest.approx([202 / 6, 2 / 3, 200 / 3])
    assert rows["n_used"].to_list() == [6, 3, 3]


def test_wasserstein_by_both_scales():
    x, y = [0.0, 0, 0, 4], [1.0, 1, 1, 9]
    assert sdc.wasserstein(x, y) == pytest.approx((3 * 1 + 5) / 4 / 9)
    assert sdc.wasserstein(x, y, scale="spread") == pytest.approx(2 / 2)
    assert sdc.wasserstein([0, 0, 0], [7, 7, 7]) == 1
    assert sdc.wasserstein([3, 3, 3], [3, 3, 3], scale="spread") == 0


def test_a_changed_constant_has_no_scale_of_its_own():
    result = sdc.evaluate([3.0, 3, 3], [3.0, 3, 4], metrics="wasserstein:scale=spread")
    assert result["wasserstein:scale=spread"] == math.inf
    assert "no bound" in repr(result)
    assert result.notes == ("x1 is constant in the original, so its change has no scale",)


def test_a_suppressed_cell_counts_1_where_it_is_penalised():
    x, y = [1.0, 2, 3, 4], [2.0, 3, 4, NAN]
    for name in ("ks", "hellinger", "wasserstein"):
        function = getattr(sdc, name)
        alone = function(x[:3], y[:3])
        assert function(x, y) == alone
        assert function(x, y, missing="penalise") == pytest.approx((3 * alone + 1) / 4)
        assert function(x, [NAN] * 4, missing="penalise") == 1
        weights = [1, 1, 1, 3]
        expected = (3 * alone + 3) / 6
        assert function(x, y, missing="penalise", weights=weights) == pytest.approx(expected)
    with pytest.raises(ValueError, match="no largest value, so missing='penalise' is undefined"):
        sdc.wasserstein(x, y, scale="spread", missing="penalise")
    with pytest.raises(ValueError, match="unknown scale 'sd'"):
        sdc.wasserstein(x, y, scale="sd")


# --- against the slow twins ---


@given(columns())
def test_distances_equal_the_slow_twins(drawn):
    x, y, _ = drawn
    assert sdc.ks(x, y) == pytest.approx(naive_loss.ks(x, y), abs=1e-12)
    assert sdc.hellinger(x, y) == pytest.approx(naive_loss.hellinger(x, y), abs=1e-7)
    span = max([*x, *y]) - min([*x, *y])
    assert sdc.wasserstein(x, y) * span == pytest.approx(naive_loss.wasserstein(x, y), abs=1e-12)
    parts = sdc.mse_marginal(x, y), sdc.mse_permutation(x, y)
    assert parts == pytest.approx(naive_loss.mse_parts(x, y), abs=1e-12)


@given(columns())
def test_weights_are_repeated_records(drawn):
    x, y, weights = drawn
    many = np.repeat(x, weights), np.repeat(y, weights)
    for name in ("ks", "wasserstein", "mse_marginal", "mse_permutation"):
        function = getattr(sdc, name)
        assert function(x, y, weights=weights) == pytest.approx(function(*many), abs=1e-12), name
    assert sdc.ks(x, y, weights=weights) == pytest.approx(naive_loss.ks(x, y, weights), abs=1e-12)
    total = sdc.mse(x, y, weights=weights)
    parts = [sdc.mse_marginal(x, y, weights=weights), sdc.mse_permutation(x, y, weights=weights)]
    assert sum(parts) == pytest.approx(total, rel=1e-12)


# --- invariants ---


@given(columns())
def test_no_transport_is_cheaper_than_that_of_equal_ranks(drawn):
    x, y, weights = drawn
    for given_weights in (None, weights):
        spread = pair_of(x, y, weights=given_weights).original.spreads[0]
        moved = sdc.wasserstein(x, y, scale="spread", weights=given_weights) * spread if spread else 0.0
        assert moved <= sdc.mae(x, y, weights=given_weights) + 1e-12
        assert sdc.mse_marginal(x, y, weights=given_weights) >= 0
        assert sdc.mse_permutation(x, y, weights=given_weights) >= 0


@each("n", [7, 300, 20_000])
@each("scale", [1.0, 1e-3, 1e-9])
def test_the_parts_add_up_to_mse(n, scale):
    x, y = heavy(n)
    y = x + scale * (y - x)
    parts = sdc.mse_marginal(x, y), sdc.mse_permutation(x, y)
    assert min(parts) >= 0
    assert sum(parts) == pytest.approx(sdc.mse(x, y), rel=1e-12, abs=0)
    if n < 1000:
        exact = np.mean([naive_loss.mse_parts(*both) for both in zip(x.T, y.T, strict=True)], axis=0)
        assert parts == pytest.approx(exact, rel=1e-10, abs=0)
    assert (parts[1] > 0) == (scale == 1 or (scale == 1e-3 and n > 7))


def test_small_changes_of_large_values_lose_no_digits():
    rng = np.random.default_rng(1)
    x = 1e6 + rng.random(400)
    y = x + rng.normal(0, 1e-3, 400)
    parts = sdc.mse_marginal(x, y), sdc.mse_permutation(x, y)
    assert parts == pytest.approx(naive_loss.mse_parts(x, y), rel=1e-12, abs=0)
    assert sum(parts) == pytest.approx(sdc.mse(x, y), rel=1e-12, abs=0)


def test_parts_of_numbers_whose_squares_are_out_of_range():
    x, y = np.array([1.0, 2, 3, 4, 5]), np.array([2.0, 1, 3, 6, 4])
    for unit in (2.0**-600, 2.0**600):
        pair = pair_of(unit * x, unit * y)
        scores = [sdc.METRICS[name].score(pair).value.overall for name in ("mse_marginal", "mse_permutation")]
        assert scores == ([0, 0] if unit < 1 else [math.inf, math.inf])
    assert sdc.mse_permutation(2.0**600 * x, 2.0**601 * x) == 0
    assert sdc.mse_marginal(2.0**500 * x, 2.0**500 * y) == 0.2 * 2.0**1000


def test_a_monotone_change_costs_no_places_and_a_permutation_no_values(tarragona):
    x = tarragona.to_numpy()
    bent = np.cbrt(x)
    assert sdc.brmae(x, bent) == sdc.mse_permutation(x, bent) == 0
    assert sdc.mse_marginal(x, bent) == pytest.approx(sdc.mse(x, bent), rel=1e-12)
    swapped = sdc.mask(x, "rank_swap", p=0.1, rng=1)
    for name in ("mse_marginal", "ks", "hellinger", "wasserstein"):
        assert getattr(sdc, name)(x, swapped) == 0, name
    assert sdc.mse_permutation(x, swapped) == pytest.approx(sdc.mse(x, swapped), rel=1e-12)
    weights = np.arange(1.0, len(x) + 1)
    assert sdc.mse_permutation(x, bent, weights=weights) == 0


def test_a_monotone_change_of_tied_values_costs_no_places():
    x = np.repeat(np.arange(10.0), 5)
    y = np.sqrt(np.arange(50.0))
    order = np.random.default_rng(1).permutation(50)
    assert sdc.mse_permutation(x[order], y[order]) == 0
    assert sdc.mse_permutation(x[order], y[order], weights=order + 1.0) == 0


def test_distances_do_not_see_the_order_of_records():
    x = data(200)
    y = shaken(x)
    order = np.random.default_rng(2).permutation(200)
    for name in ("ks", "hellinger", "wasserstein", "mse_marginal"):
        function = getattr(sdc, name)
        assert function(x, y[order]) == pytest.approx(function(x, y), rel=1e-12), name
    assert sdc.mse_permutation(x, y[order]) > 2 * sdc.mse_permutation(x, y)


def test_distances_do_not_see_units():
    x, y = heavy()
    for name in ("ks", "hellinger", "wasserstein"):
        function = getattr(sdc, name)
        assert function(1024 * x, 1024 * y) == pytest.approx(function(x, y), rel=1e-12)


def test_random_level_of_changed_places_is_the_mean_over_orders():
    x, y = heavy(60)
    level = sdc.METRICS["mse_permutation"].score(pair_of(x, y), detail=True).random
    rng = np.random.default_rng(0)
    draws = [sdc.mse_permutation(x, np.column_stack([rng.permutation(c) for c in y.T])) for _ in range(400)]
    assert level.overall == pytest.approx(np.mean(draws), abs=5 * np.std(draws) / 20)
    assert "an unrelated order would score" in repr(sdc.evaluate(x, y, metrics="mse_permutation"))


def test_a_column_without_a_common_cell_is_left_out():
    x, y = np.array([[1.0, NAN], [2, NAN], [3, 4]]), np.array([[1.0, 5], [3, 5], [2, NAN]])
    weights = [1.0, 2, 3]
    for name in ("ks", "hellinger", "wasserstein", "mse_marginal", "mse_permutation"):
        for given_weights in (None, weights):
            score = sdc.METRICS[name].score(pair_of(x, y, weights=given_weights))
            alone = getattr(sdc, name)(x[:, 0], y[:, 0], weights=given_weights)
            assert score.value.overall == pytest.approx(alone)
            assert math.isnan(score.value.variables[1])


def test_the_split_is_shown_unless_metrics_are_named():
    names = [metric.name for metric in metrics_named(None) if metric.family == "loss" and not metric.role]
    result = sdc.evaluate([1.0, 2, 3, 4], [1.0, 4, 9, 16], metrics=names)
    assert result["brmae"] == result["mse_permutation"] == 0
    assert result["mse_marginal"] == result["mse"] > 0
    assert "which metrics of ranks cannot see" in result.meaning["mse_marginal"]
    assert "ks" not in result.meaning


def test_equal_values_are_coupled_in_the_order_of_their_rows():
    x, y = np.arange(300.0) % 3, np.arange(300.0)  # numpy's own order of ties differs between CPUs
    assert np.array_equal(couple_quantiles(x, y, None).own, np.concatenate([y[i::3] for i in range(3)]))
