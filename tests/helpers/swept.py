"""A small file with ties and zeros, and sweeps over it."""

import numpy as np
import polars as pl

from calls import called

PLAN = {
    "mdav": {"k": [2, 5]},
    "noise": {"percent": [10, 60]},
    "correlated_noise": {"percent": 20, "scale": ["sd", "variance"]},
    "rank_swap": {"p": [0.05, 0.2], "tails": 0.05},
}
NAMES = ["income", "age", "rooms"]


def values(n=60, seed=0):
    """Three columns of different size, one of them with ties and zeros."""
    rng = np.random.default_rng(seed)
    base = rng.lognormal(5, 1, (n, 1))
    columns = base * rng.lognormal(0, 0.4, (n, 3)) * [1, 1000, 0.02]
    columns[:, 2] = np.round(columns[:, 2])
    return columns


def frame(n=60, seed=0):
    return pl.DataFrame(values(n, seed), schema=NAMES)


def swept(data, plan=None, **more):
    return called("sweep", data, plan or PLAN, **{"replications": 3, "rng": 11, "workers": 1} | more)
