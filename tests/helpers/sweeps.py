"""A small sweep that several tests run in different ways."""

import numpy as np
import polars as pl

from calls import called

GRIDS = {"mdav": {"k": [2, 5]}, "noise": {"percent": [10, 60]}, "rank_swap": {"p": [0.05, 0.2]}}


def frame(n=60):
    """Three related columns without ties."""
    rng = np.random.default_rng(5)
    values = rng.lognormal(5, 1, (n, 1)) * rng.lognormal(0, 0.4, (n, 3))
    return pl.DataFrame(values.round(2), schema=["a", "b", "c"])


def swept(data=None, plan=GRIDS, **more):
    """The sweep of 22 runs; options replace its own."""
    options = {"replications": 5, "rng": 3, "workers": 1} | more
    return called("sweep", frame() if data is None else data, plan, **options)
