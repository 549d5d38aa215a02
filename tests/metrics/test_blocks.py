"""Statistics of blocks of records or stretches of values, combined, are those of the whole column."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive_loss import mean_cross_gap as slow_cross_gap
from sdckit.kernels.ranks import cross_gap_part, mean_cross_gap
from sdckit.metrics.blocks import (
    IL1,
    IL1S,
    MAE,
    MSE,
    Contributions,
    CoupledColumns,
    bin_edges,
    cell_sums,
    couple_quantiles,
    dominance,
    largest_gap,
    part_sums,
    split_sums,
    stream_power,
    sum_of_gaps,
    unrelated_squares,
)
from sdckit.metrics.pair import VariablePair


@st.composite
def two_columns(draw):
    """Two columns with many ties, at least one value each, and two cuts between values."""
    value = st.integers(-4, 4).map(lambda k: k / 2)
    x, y = (np.array(draw(st.lists(value, min_size=1, max_size=25))) for _ in range(2))
    cuts = sorted(draw(st.tuples(value, value)))
    return np.sort(x), np.sort(y), [-np.inf, cuts[0] + 0.25, cuts[1] + 0.25, np.inf]


def stretches(cuts):
    return pairwise(cuts)


def inside(values, low, high):
    return values[(values > low) & (values <= high)]


@given(two_columns())
def test_the_largest_gap_of_stretches_is_that_of_the_column(columns):
    x, y, cuts = columns
    points = np.union1d(x, y)
    expected = max(abs((x <= v).sum() - (y <= v).sum()) for v in points)
    found = []
    for low, high in stretches(cuts):
        parts = [inside(values, low, high) for values in (x, y)]
        ends = [(v <= low).sum() + np.arange(part.size + 1.0) for v, part in zip((x, y), parts, strict=True)]
        found.append(largest_gap(parts[0], ends[0], parts[1], ends[1]))
    assert max(found) == expected


@given(two_columns())
def test_cross_gaps_of_stretches_add_up(columns):
    x, y, cuts = columns
    weights = 1 + np.arange(x.size) % 3
    low, high = min(x[0], y[0]), max(x[-1], y[-1])
    total = 0.0
    for begin, end in stretches(np.unique(np.clip(cuts, low, high))):
        first = begin == low
        chosen = ((x > begin) | first) & (x <= end)
        others = ((y > begin) | first) & (y <= end)
        below = 0.0 if first else weights[x <= begin].sum()
        passed = 0 if first else int((y <= begin).sum())
        part = x[chosen], weights[chosen].astype(float), y[others]
        total += cross_gap_part(*part, begin, end, float(below), float(weights.sum() - below), passed, y.size)
    expected = slow_cross_gap(x, weights, y)
    assert total / y.size == pytest.approx(expected, abs=1e-12)
    assert mean_cross_gap(x, weights.astype(float), y) == pytest.approx(expected, abs=1e-12)


def test_sums_of_coupled_stretches_add_up():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 500)) * 1e150
    whole = couple_quantiles(x, y, None)
    power = stream_power(np.array([max(abs(x).max(), abs(y).max())]))
    assert power[0] > 0
    sums = np.zeros(2)
    gaps = 0.0
    for begin, end in ((0, 0), (0, 130), (130, 131), (131, 500)):
        piece = CoupledColumns(*(part[None, begin:end] for part in whole[:3]), np.empty(0))
        sums += np.concatenate(part_sums(piece, power))
        gaps += sum_of_gaps(CoupledColumns(*(v[begin:end] for v in whole)))
    marginal, permutation = split_sums([CoupledColumns(*(part[None] for part in whole[:3]), whole.weights)])
    expected = [part.mantissas[0] for part in (marginal, permutation)]
    assert sums == pytest.approx(expected, rel=1e-13)
    assert marginal.exponents[0] == 2 * power[0]
    assert gaps == pytest.approx(np.abs(np.sort(x) - np.sort(y)).sum(), rel=1e-13)
    assert np.ldexp(sums.sum(), 2 * power[0] - 1000) == pytest.approx(
        (np.ldexp(x - y, -500) ** 2).sum(), rel=1e-12
    )


@pytest.mark.parametrize("n", [1, 2, 9, 50, 401, 1000])
def test_bin_edges_are_numpys_quantiles(n):
    x = np.random.default_rng(n).lognormal(3, 2, n)
    bins = min(20, int(n**0.5))
    expected = np.unique(np.quantile(x, np.linspace(0, 1, bins + 1)))
    assert bin_edges(x).tolist() == expected.tolist()


@given(st.lists(st.lists(st.integers(-5, 9), max_size=6), min_size=1, max_size=5))
def test_largest_contributions_of_blocks_are_those_of_all(blocks):
    found = Contributions.of(np.empty(0))
    for block in blocks:
        found = found.merge(Contributions.of(np.array(block, float)))
    sizes = [*sorted((abs(value) for block in blocks for value in block), reverse=True), 0, 0]
    unit = sizes[0] or 1
    assert found == pytest.approx((sum(sizes), sizes[0], sum(sizes) / unit, sizes[1] / unit), abs=1e-12)


@pytest.mark.parametrize("cost", [MAE, MSE, IL1, IL1S])
def test_dominance_and_sums_of_blocks_are_those_of_the_file(cost):
    rng = np.random.default_rng(4)
    x = np.where(rng.random(300) < 0.2, 0.0, rng.lognormal(1, 2, 300))
    y, weights = x * rng.lognormal(0, 0.2, 300), rng.gamma(1, 1, 300)
    whole = VariablePair(x, y, weights, x.std(ddof=1), 2**0.5 * x.std(ddof=1))
    cells = whole.cells(cost, "keep")
    means = x[cells.counts].mean(), y[cells.counts].mean()
    expected, found, sums, squares = whole.dominance(cost), None, 0.0, 0.0
    for begin, end in ((0, 0), (0, 7), (7, 200), (200, 300)):
        part = VariablePair(x[begin:end], y[begin:end], weights[begin:end], whole.spread, whole.scale)
        here = dominance(part.cells(cost, "keep"), *means)
        found = here if found is None else found.merge(here)
        sums = sums + cell_sums(part.x[None], part.y[None], part.weights).sums
        squares += unrelated_squares(part.x, part.weights, y.mean(), y.var())
    assert found.largest == expected.largest
    for one, other in zip(found.sums, expected.sums, strict=True):
        assert one == pytest.approx(other, rel=1e-12)
    assert sums == pytest.approx(cell_sums(x[None], y[None], weights).sums, rel=1e-12)
    assert squares == pytest.approx(MSE.unrelated_sum(x, y, weights), rel=1e-12)
