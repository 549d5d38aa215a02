"""Data with keys that are found wherever they are written, releases of them, and their private record."""

import json
from pathlib import Path

import numpy as np
import polars as pl

from command import good
from sdckit.record.store import Store

N = 80
ROLES = ["--key", "name", "--drop", "street", "--untouched", "region"]
NOISE = ["--method", "noise", "--set", "percent=100"]


def people(n=N, seed=5):
    """A key, a dropped column and a region beside three variables; every value of the key is unmistakable."""
    rng = np.random.default_rng(seed)
    values = rng.normal(100, 20, (n, 3)).round(1)
    return pl.DataFrame(
        {
            "name": [f"Zq{i:04d}xK" for i in range(n)],
            "street": [f"Wv{i:04d}yR" for i in range(n)],
            "region": ["north", "south"] * (n // 2),
            **{name: values[:, j] for j, name in enumerate(("wages", "rent", "food"))},
        }
    )


def put_people(folder, frame=None, name="data.csv"):
    frame = people() if frame is None else frame
    path = Path(folder, name)
    frame.write_parquet(path) if path.suffix == ".parquet" else frame.write_csv(path)
    return path


def mask(folder, *more, output="out.csv", data="data.csv", **env):
    return good(folder, "mask", data, "-o", output, "--release", *NOISE, *ROLES, "--quiet", *more, **env)


def store_in(folder, name="record"):
    return Store.at(Path(folder, name))


def only_entry(store):
    (one,) = store.ids()
    return store.read(one)


def raw_entry(store, one):
    return json.loads((store.folder / one / "release.json").read_bytes())
