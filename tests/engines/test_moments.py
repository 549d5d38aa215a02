"""Moments of columns merged over blocks are those of the whole column, also far from 0 and at extremes."""

import numpy as np
import pytest

from cases import each
from sdckit.engines.compare import ColumnMoments
from sdckit.kernels.sums import spread


def merged(values, weights, borders):
    found = None
    for begin, end in zip([0, *borders], [*borders, values.shape[1]], strict=True):
        rows = slice(begin, end)
        part = values[:, rows]
        here = ColumnMoments.of(part, ~np.isnan(part), None if weights is None else weights[rows])
        found = here if found is None else found.merge(here)
    return found


@each("weighted", [False, True])
@each("seed", range(5))
def test_moments_of_blocks_are_those_of_the_column(seed, weighted):
    rng = np.random.default_rng(seed)
    n = 200
    values = rng.normal(size=(7, n)) * np.array([[1, 1, 1e-300, 1e300, 1, 0, 1]]).T
    values[1] += 1e9
    values[4, rng.random(n) < 0.5] = np.nan
    values[5] += 0.1
    values[6, 1:] = np.nan
    weights = rng.gamma(1, 1, n) if weighted else None
    found = merged(values, weights, sorted(rng.integers(0, n + 1, 6).tolist()))
    assert found.spreads(weighted=weighted) == pytest.approx(spread(values.T, weights), rel=1e-12)
    assert found.count.tolist() == (~np.isnan(values)).sum(1).tolist()
    assert found.low.tolist() == np.nanmin(values, axis=1).tolist()
    assert found.high.tolist() == np.nanmax(values, axis=1).tolist()
    assert found.constant.tolist() == [False] * 5 + [True] * 2
    shares = np.where(np.isnan(values), 0.0, 1.0 if weights is None else weights)
    means = (np.nan_to_num(values / 2) * shares).sum(1) / shares.sum(1) * 2
    near = 1e-12 * np.abs(np.nan_to_num(values)).max(1)
    assert (np.abs(found.means - means) <= near).all()


def test_columns_without_a_value_have_no_moments():
    empty = np.full((1, 3), np.nan)
    found = merged(np.hstack([empty, [[2.0, 4.0]], empty]), None, [0, 3, 5])
    assert (found.count[0], found.means[0], found.squares[0]) == (2, 3.0, 2.0)
    none = merged(empty, None, [1])
    assert (none.count[0], none.means[0], none.largest[0]) == (0, 0.0, 0.0)
