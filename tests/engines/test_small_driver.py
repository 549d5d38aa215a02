"""The driver of a cluster stays small: it loads no compiler and no package that only workers need."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl

import small_driver


def test_the_driver_loads_neither_the_compiler_nor_heavy_packages(tmp_path):
    rng = np.random.default_rng(1)
    x = rng.lognormal(3, 1, (2, 2000))
    x[1, rng.random(2000) < 0.4] = 0.0  # equal rows that fill buckets
    y = np.where(x == 0, 0.0, x + rng.normal(0, 3, x.shape))
    for name, values in (("original", x), ("masked", y)):
        pl.DataFrame({"income": values[0], "debt": values[1]}).write_parquet(tmp_path / f"{name}.parquet")
    files = [str(tmp_path / f"{name}.parquet") for name in ("original", "masked")]
    command = [sys.executable, str(Path(small_driver.__file__)), *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    values, *heavy = done.stdout.split()
    assert int(values) > 0
    assert heavy == []
