"""Statistics of blocks of records or stretches of values, combined, are those of the whole column."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdckit.metrics.blocks import (
    IL1,
    IL1S,
    MAE,
    MSE,
    Contributions,
    cell_sums,
    dominance,
    unrelated_squares,
)
from sdckit.metrics.pair import VariablePair


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
