"""Columns that take every path of the sorting code: ties, near ties, heavy values, integers, extremes."""

import numpy as np

import naive

N = 6000  # long enough for the paths of long columns


def near(rng, n, centre=1e9, width=40):
    return centre + np.spacing(centre) * rng.integers(-width, width, n)


SHAPES = {
    "normal": lambda rng, n: rng.normal(size=n),
    "lognormal": lambda rng, n: rng.lognormal(8, 3, n),
    "zero-inflated": lambda rng, n: np.where(rng.random(n) < 0.6, 0.0, rng.lognormal(size=n)),
    "zeros in the middle": lambda rng, n: np.where(rng.random(n) < 0.3, 0.0, rng.normal(size=n)),
    "heavy maximum": lambda rng, n: np.minimum(rng.normal(size=n), 0.2),
    "two heavy values": lambda rng, n: np.clip(rng.normal(size=n), -0.5, 0.5),
    "heavy value with near ties": lambda rng, n: np.where(
        rng.random(n) < 0.5, 1e9, np.where(rng.random(n) < 0.06, near(rng, n), 1e9 + rng.normal(size=n) * 1e6)
    ),
    "heavy negative with near ties": lambda rng, n: np.where(
        rng.random(n) < 0.5, -1e9, np.where(rng.random(n) < 0.06, near(rng, n, -1e9), rng.normal(size=n))
    ),
    "heavy value among near ties": lambda rng, n: np.where(rng.random(n) < 0.5, 1e9, near(rng, n, width=500)),
    "small integers": lambda rng, n: rng.integers(-40, 41, n).astype(float),
    "integers, one of them not whole": lambda rng, n: np.where(
        np.arange(n) == n // 2 + 1, 0.5, rng.integers(-40, 41, n)
    ),
    "integers from a half": lambda rng, n: rng.integers(-40, 41, n) + 0.5,
    "wide integers": lambda rng, n: rng.integers(0, 10**6, n).astype(float),
    "large integers": lambda rng, n: 2.0**53 - rng.integers(0, 3 * n, n),
    "near ties": lambda rng, n: near(rng, n, width=n),
    "short runs of near ties": lambda rng, n: np.ldexp(
        1.0 + rng.integers(0, 20, n) * 2.0**-50, rng.integers(0, 200, n)
    ),
    "few near ties": lambda rng, n: np.where(
        rng.random(n) < 0.02, near(rng, n), 1e9 + rng.normal(size=n) * 1e6
    ),
    "one long run of near ties": lambda rng, n: np.where(
        rng.random(n) < 0.05, near(rng, n, width=10**6), 1e6 * rng.normal(size=n)
    ),
    "near and true ties": lambda rng, n: near(rng, n, width=12),
    "cents": lambda rng, n: np.round(rng.lognormal(3, 1, n), 2),
    "negative cents": lambda rng, n: -np.round(rng.lognormal(3, 1, n), 2),
    "signed zeros": lambda rng, n: np.where(rng.random(n) < 0.5, 0.0, -0.0) * rng.integers(0, 2, n)
    + rng.choice([-1.0, -0.0, 0.0, 1.0, 5e-324, -5e-324], n),
    "subnormal": lambda rng, n: rng.integers(-50, 50, n) * 5e-324,
    "huge": lambda rng, n: rng.normal(size=n) * 10.0 ** rng.integers(-300, 300, n),
    "largest": lambda rng, n: rng.choice([1.7976931348623157e308, -1.7976931348623157e308, 1e308, 0.0], n),
    "constant": lambda _rng, n: np.full(n, 0.1),
    "microaggregated": lambda rng, n: np.repeat(rng.normal(size=n), 3)[rng.permutation(3 * n)][:n],
    "ascending": lambda _rng, n: np.arange(n) / 7,
    "descending": lambda _rng, n: -np.arange(n) / 7,
}  # fmt: skip


def column(name, n=N, seed=0):
    return SHAPES[name](np.random.default_rng([seed, n]), n)


def assert_sums(found, x, y):
    absolute, squared = naive.rank_sums(x, y)
    assert (found.absolute2, found.squared4) == (absolute, squared)


def assert_order(ordered, values):
    n = len(values)
    assert np.array_equal(ordered.order, np.argsort(values, kind="stable"))
    assert np.array_equal(ordered.order[ordered.rank], np.arange(n))
    assert np.array_equal(ordered.sorted, np.sort(values, kind="stable"))
    assert np.array_equal(ordered.row_middle2 + 2, naive.middle_ranks2(values))
    inside = ordered.sorted
    assert np.array_equal(ordered.first, np.searchsorted(inside, inside, "left"))
    assert np.array_equal(ordered.last, np.searchsorted(inside, inside, "right") - 1)
    assert ordered.tied == (len(np.unique(values)) < n)
