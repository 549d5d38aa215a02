"""Files and small helpers for the tests of microaggregation."""

import numpy as np

NAN = float("nan")
SHAPES = {
    "normal": lambda rng, n, p: rng.normal(size=(n, p)),
    "lognormal": lambda rng, n, p: rng.lognormal(sigma=1.5, size=(n, p)),
    "duplicates": lambda rng, n, p: rng.normal(size=(max(n // 5, 1), p))[rng.integers(0, max(n // 5, 1), n)],
    "constant column": lambda rng, n, p: np.where(np.arange(p) == 0, 0.1, rng.normal(size=(n, p))),
    "all equal": lambda _rng, n, p: np.full((n, p), 7.1),
    "lattice": lambda rng, n, p: np.indices((2,) * p).reshape(p, -1).T[rng.integers(0, 2**p, n)] * 1.0,
    "clusters": lambda rng, n, p: rng.integers(0, 3, (n, 1)) + 0.05 * rng.normal(size=(n, p)),
    "correlated": lambda rng, n, p: rng.normal(size=(n, 1)) + 0.1 * rng.normal(size=(n, p)),
    "integers": lambda rng, n, p: rng.integers(-2, 3, (n, p)).astype(float),
    "huge and tiny": lambda rng, n, p: (
        rng.normal(size=(n, p)) * 10.0 ** np.where(np.arange(p) % 2, 280, -280)
    ),
}


def lines(shape, n, p, seed=0):
    return SHAPES[shape](np.random.default_rng(seed), n, p)


def holes(values, share, seed=0):
    return np.where(np.random.default_rng(seed).random(values.shape) < share, NAN, values)


def column(*values):
    return np.array([values], float).T


def sets(groups):
    """Groups as sets of rows counted from 1, as tables in print do."""
    return {frozenset((np.flatnonzero(groups == group) + 1).tolist()) for group in np.unique(groups)}
