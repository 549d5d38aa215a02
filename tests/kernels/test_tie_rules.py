"""What ties leave open, against full enumeration and the specification's worked examples."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import sdckit as sdc
from cases import each
from columns import SHAPES, column
from sdckit.kernels.ranks import (
    TIES,
    AlignedColumn,
    OrderedColumn,
    distance,
    largest_absolute,
    largest_squared,
    random_level,
    tie_sum,
)

pytestmark = pytest.mark.usefixtures("short_columns")

few = st.integers(0, 3).map(float)
short_pairs = st.integers(2, 6).flatmap(
    lambda n: st.tuples(st.lists(few, min_size=n, max_size=n), st.lists(few, min_size=n, max_size=n))
)


def alignment(x, y):
    return AlignedColumn(OrderedColumn(np.array(x, float)), np.array(y, float))


def both(sums):
    return sums.absolute, sums.squared


# --- against full enumeration ---


@settings(max_examples=60)
@given(short_pairs)
def test_every_rule_against_all_tie_breakings(pair):
    x, y = pair
    absolute, squared = naive.every_tie_breaking(x, y)
    found = alignment(x, y)
    assert both(found.least()) == pytest.approx((absolute.min(), squared.min()), abs=1e-12)
    assert both(found.largest()) == pytest.approx((absolute.max(), squared.max()), abs=1e-12)
    assert both(found.expected()) == pytest.approx((absolute.mean(), squared.mean()), abs=1e-12)
    assert both(found.average()) == pytest.approx(naive.br(x, y), abs=1e-12)
    assert found.has_ties == (len(set(x)) < len(x) or len(set(y)) < len(y))


@settings(max_examples=50)
@given(short_pairs)
def test_record_values_add_up_to_the_expected_and_extreme_sums(pair):
    x, y = pair
    found = alignment(x, y)
    n = found.n
    assert found.expected_absolute().sum() / largest_absolute(n) == pytest.approx(found.expected().absolute)
    assert found.expected_squared().sum() / largest_squared(n) == pytest.approx(found.expected().squared)
    for original, masked in (found.least_ranks(), found.largest_ranks()):
        x_ranks, y_ranks = found.to_rows(original), found.to_rows(masked)
        assert sorted(x_ranks) == sorted(y_ranks) == list(range(n))
        assert all(x[i] <= x[j] for i in range(n) for j in range(n) if x_ranks[i] < x_ranks[j])
        assert all(y[i] <= y[j] for i in range(n) for j in range(n) if y_ranks[i] < y_ranks[j])


@settings(max_examples=30)
@given(short_pairs)
def test_random_levels_are_means_over_all_pairings(pair):
    x, y = pair[0][:4], pair[1][:4]
    n = len(x)
    midranks = naive.every_pairing(x, y, naive.br)
    assert random_level(alignment(x, y), "average") == pytest.approx(midranks, abs=1e-12)
    broken = naive.every_pairing(x, y, lambda a, b: np.mean(naive.every_tie_breaking(a, b), axis=1))
    for ties in ("random", "expected"):
        assert random_level(alignment(x, y), ties) == pytest.approx(broken, abs=1e-12)
    assert broken == pytest.approx(((n * n - 1) / (3 * (n * n // 2)), 0.5))


# --- theorems on longer columns ---

pairs_of_shapes = st.tuples(st.sampled_from(sorted(SHAPES)), st.sampled_from(sorted(SHAPES)))


@settings(max_examples=40)
@given(pairs_of_shapes, st.sampled_from([2, 3, 17, 300, 5001]), st.integers(0, 1000))
def test_the_rules_are_ordered(names, n, seed):
    x, y = (column(name, 3 * n, [seed, place][place])[:n] for place, name in enumerate(names))
    found = alignment(x, y)
    least, average, expected, largest = (
        np.array(both(sums)) for sums in (found.least(), found.average(), found.expected(), found.largest())
    )
    tiny = 1e-12
    assert (least <= average + tiny).all()
    assert (average <= expected + tiny).all()
    assert (expected <= largest + tiny).all()
    assert (largest <= 1).all()
    assert (least >= 0).all()
    for rule in ("first", "last", "random"):
        one = np.array(both(distance(OrderedColumn(x), y, rule, np.random.default_rng(seed))))
        assert (least <= one).all()
        assert (one <= largest).all()


@settings(max_examples=30)
@given(pairs_of_shapes, st.integers(0, 1000))
def test_the_order_of_rows_does_not_matter(names, seed):
    x, y = (column(name, 402, seed + place) for place, name in enumerate(names))
    shuffle = np.random.default_rng(seed).permutation(402)
    for rule in ("average", "expected", "min", "max"):
        before = both(distance(OrderedColumn(x), y, rule))
        assert both(distance(OrderedColumn(x[shuffle]), y[shuffle], rule)) == pytest.approx(before, rel=1e-12)


def test_first_and_last_do_depend_on_the_order_of_rows():
    x, y = np.array([1.0, 1.0, 2.0]), np.array([1.0, 2.0, 2.0])
    ordered = distance(OrderedColumn(x), y, "first").absolute2
    assert distance(OrderedColumn(x[[1, 0, 2]]), y[[1, 0, 2]], "first").absolute2 != ordered


@given(st.sampled_from(sorted(SHAPES)), st.sampled_from([3, 99, 6000]))
def test_identical_data_score_exactly_zero(name, n):
    x = column(name, n)
    for rule in ("average", "min", "first", "last"):
        sums = distance(OrderedColumn(x), x.copy(), rule)
        assert (sums.absolute2, sums.squared4) == (0, 0)


@settings(max_examples=40)
@given(pairs_of_shapes, st.integers(0, 1000))
def test_midrank_brmse_is_the_expected_one_less_the_part_of_tie_breaking_itself(names, seed):
    x, y = (column(name, 300, seed + place) for place, name in enumerate(names))
    expected = alignment(x, y).expected().squared
    itself = alignment(x, x).expected().squared + alignment(y, y).expected().squared
    assert alignment(x, y).average().squared == pytest.approx(expected - itself / 2, abs=1e-12)


def test_the_least_distance_is_zero_exactly_without_discordant_pairs():
    rng = np.random.default_rng(5)
    seen = set()
    for _ in range(300):
        x, y = rng.integers(0, 3, (2, 4))
        concordant = all((x[i] - x[j]) * (y[i] - y[j]) >= 0 for i in range(4) for j in range(4))
        assert (alignment(x, y).least().absolute2 == 0) == concordant
        seen.add(concordant)
    assert seen == {True, False}


def test_long_columns_expect_the_mean_of_draws():
    x, y = column("zero-inflated", 150, 1), column("small integers", 150, 2)
    rng = np.random.default_rng(6)
    drawn = [distance(OrderedColumn(x), y, "random", rng).squared for _ in range(4000)]
    found = alignment(x, y)
    assert np.mean(drawn) == pytest.approx(found.expected().squared, abs=4 * np.std(drawn) / math.sqrt(4000))


def test_long_columns_have_the_expected_distance_of_the_interval_formula():
    """E|R - S| from the second antidifference of |k|, block pair by block pair, in whole numbers."""
    x, y = column("zero-inflated", 6000, 1), column("near and true ties", 6000, 2)
    found = alignment(x, y)

    def f(k):
        return (abs(k) ** 3 - abs(k)) // 6

    total = 0.0
    places = [(np.searchsorted(np.sort(v), v), np.searchsorted(np.sort(v), v, "right") - 1) for v in (x, y)]
    for a, b, c, d in zip(*(place.tolist() for pair in places for place in pair), strict=True):
        total += (f(b - c + 1) - f(a - c) - f(b - d) + f(a - d - 1)) / ((b - a + 1) * (d - c + 1))
    assert found.expected().absolute == pytest.approx(total / largest_absolute(6000), rel=1e-12)


# --- the specification's numbers ---

WORKED = {
    "min": (4, 0.2222, 6, 0.0857),
    "first": (6, 0.3333, 12, 0.1714),
    "last": (16, 0.8889, 56, 0.8000),
    "average": (10, 0.5556, 26, 0.3714),
    "expected": (13, 0.7222, 41, 0.5857),
    "max": (18, 1.0000, 70, 1.0000),
}


@each("rule", WORKED)
def test_worked_table(rule):
    x, y = [1, 1, 1, 1, 2, 3], [1, 1, 2, 1, 1, 1]
    sums = distance(OrderedColumn(np.array(x, float)), np.array(y, float), rule)
    absolute, brmae, squared, brmse = WORKED[rule]
    assert (sums.absolute2 / 2, sums.squared4 / 4) == pytest.approx((absolute, squared), abs=1e-12)
    assert round(sdc.brmae(x, y, ties=rule), 4) == brmae
    assert round(sdc.brmse(x, y, ties=rule), 4) == brmse


def test_random_ties_punish_identity():
    z = [1, 1, 2, 2, 2, 3]
    assert round(sdc.brmae(z, z, ties="expected"), 4) == 0.2037
    assert round(sdc.brmse(z, z, ties="expected"), 4) == 0.0714
    absolute, _ = naive.every_tie_breaking(z, z)
    assert np.mean(absolute == 0) == pytest.approx(1 / 12)
    drawn = [sdc.brmae(z, z, ties="random", rng=seed) for seed in range(600)]
    assert np.mean(np.array(drawn) == 0) == pytest.approx(1 / 12, abs=0.04)


@each("n", [2, 5, 100, 5001])
def test_a_constant_column_scores_a_half_and_a_quarter(n):
    x = np.random.default_rng(n).permutation(n).astype(float)
    constant = np.full(n, 3.3)
    even = 1.0 if n % 2 == 0 else 1 / (1 - 1 / n**2)  # floor(n*n/2) makes odd n a little larger
    assert sdc.brmae(x, constant) == pytest.approx(
        0.5 * even * (1 if n % 2 == 0 else 1 - 1 / n**2), rel=1e-12
    )
    assert sdc.brmse(x, constant) == pytest.approx(0.25, rel=1e-12)
    assert sdc.brmae(x, constant, ties="min") == 0
    assert sdc.brmse(x, constant, ties="max") == 1


def test_level_of_a_constant_column_is_its_value():
    x, constant = np.arange(9.0), np.zeros(9)
    found = alignment(x, constant)
    assert random_level(found, "average") == pytest.approx(both(found.average()))
    assert random_level(alignment(x, x[::-1]), "average") == pytest.approx((2 / 3, 0.5))
    assert random_level(alignment(x[:8], x[:8]), "average") == pytest.approx((2 / 3 * (1 - 1 / 64), 0.5))
    assert all(math.isnan(level) for level in random_level(alignment([1.0], [2.0]), "average"))


def test_levels_of_midranks_by_their_formula():
    x, y = column("zero-inflated", 500, 1), column("small integers", 500, 2)
    found = alignment(x, y)
    n, ties = 500, tie_sum(OrderedColumn(x).first) + tie_sum(OrderedColumn(y).first)
    mu, nu = naive.middle_ranks2(x) / 2, naive.middle_ranks2(y) / 2
    gaps = np.abs(mu[:, None] - nu[None, :]).sum() / (n * largest_absolute(n))
    assert random_level(found, "average") == pytest.approx(
        (gaps, 0.5 - ties / (4 * n * (n * n - 1))), rel=1e-12
    )


def test_tie_sum_counts_blocks():
    assert tie_sum(OrderedColumn(np.array([1.0, 1, 2, 2, 2, 3])).first) == (8 - 2) + (27 - 3)


def test_every_rule_is_offered_and_others_are_refused():
    x, y = [3.0, 1.0, 2.0], [1.0, 1.0, 2.0]
    values = {rule: sdc.brmae(x, y, ties=rule, rng=1) for rule in TIES}
    assert set(WORKED) | {"random"} == set(values)
    with pytest.raises(ValueError, match="unknown rule for ties 'mean'; choose from: average"):
        sdc.brmae(x, y, ties="mean")
    with pytest.raises(ValueError, match="weights go with ties='average' only"):
        sdc.brmae(x, y, ties="min", weights=[1.0, 1.0, 2.0])
