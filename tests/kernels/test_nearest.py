"""The nearest candidates, found in trees, are those that a look at all records finds."""

import numpy as np
import pytest

import naive_candidates as naive
from sdckit.kernels.candidates import Side, count_nearest

TOLERANCE = 1e-9


def drawn(seed):
    """Targets, queries, facts and properties: ties, missing cells, blocks without targets, intervals."""
    rng = np.random.default_rng(seed)
    n, m, p, q = rng.integers(2, 400), rng.integers(1, 60), rng.integers(1, 5), rng.integers(0, 3)
    digits = rng.integers(0, 3)
    points, queries = (np.round(rng.normal(size=(size, p)), digits) for size in (n, m))
    for values in (points, queries):
        values[rng.random(values.shape) < rng.choice([0.0, 0.2, 0.6])] = np.nan
    blocks = int(rng.integers(1, 6))
    sides = []
    for size in (n, m):
        low = np.round(rng.normal(size=(size, q)), 1)
        high = low + rng.choice([0.0, 1.0, np.inf])
        sides.append(Side(rng.integers(0, blocks + (size == m), size), low, high))
    values = [np.round(rng.normal(size=(size, 1)), 1) for size in (n, m)]
    return points, queries, tuple(sides), ((values[0], values[0]), (values[1] - 0.3, values[1] + 0.3))


@pytest.mark.parametrize("seed", range(60))
def test_nearest_candidates_and_their_property(seed):
    given = drawn(seed)
    assert (count_nearest(*given, TOLERANCE) == naive.count_nearest(*given, TOLERANCE)).all()
