"""Sixty small pairs of files for engines: ties, zeros, missing cells, -0.0, constants, strata, weights."""

from dataclasses import dataclass, field

import numpy as np
import polars as pl

COLUMNS = ("a", "b", "c")
RULES = ("average", "expected", "min", "max", "first", "last")
NUMBER = 60
KINDS = {
    "normal": lambda x, _: x,
    "rounded": lambda x, _: np.round(x * 3),
    "zeros": lambda x, rng: np.where(rng.random(x.size) < 0.5, rng.choice([0.0, -0.0], x.size), x),
    "constant": lambda x, _: np.full(x.size, 2.5),
    "large": lambda x, _: 1e3 + np.round(x, 2),
    "heavy": lambda x, rng: np.where(rng.random(x.size) < 0.7, 4.0, np.round(np.exp(x), 1)),
}


@dataclass
class Case:
    """A pair of tables, the options of `evaluate`, and the number of rows of each part, some without any."""

    original: pl.DataFrame
    masked: pl.DataFrame
    parts: list[int]
    bucket_rows: int
    options: dict = field(default_factory=dict)

    def write(self, folder):
        """Write both tables as folders of Parquet files, cut at different rows; return their paths."""
        for name, table, parts in (
            ("original", self.original, self.parts),
            ("masked", self.masked, self.parts[::-1]),
        ):
            (folder / name).mkdir()
            begin = 0
            for number, rows in enumerate(parts):
                table.slice(begin, rows).write_parquet(folder / name / f"{number:03}.parquet")
                begin += rows
        return folder / "original", folder / "masked"


def column(n, rng):
    """Return an original and a masked column, NaN in missing cells."""
    kind = rng.choice(list(KINDS), p=[0.3, 0.2, 0.2, 0.05, 0.1, 0.15])
    x = KINDS[kind](rng.normal(size=n), rng)
    y = x + rng.normal(size=n) * rng.choice([0.0, 0.3, 3.0])
    if kind == "zeros" and rng.random() < 0.5:
        y = np.where(x == 0, rng.choice([0.0, -0.0], n), y)
    y = np.round(y, 1) if rng.random() < 0.4 else y
    return tuple(np.where(rng.random(n) < 0.1 * (rng.random() < 0.3), np.nan, one) for one in (x, y))


def case(seed):
    """Return one of the pairs of files."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(40, 400))
    columns, masked = {}, {}
    for name in COLUMNS:
        x, y = column(n, rng)
        columns[name], masked[name] = (pl.Series(values, nan_to_null=bool(seed % 2)) for values in (x, y))
    strata = rng.choice(["north", "south", "east", "west"], n, p=[0.6, 0.2, 0.15, 0.05])
    other = {"region": strata, "weight": np.round(rng.exponential(10, n) + 0.1, 2)}
    borders = np.sort(rng.integers(0, n + 1, rng.integers(0, 40)))  # up to 40 parts, some empty, some large
    parts = np.diff([0, *borders.tolist(), n]).tolist()
    options = {"columns": list(COLUMNS), "unknown": "weight"}
    if seed % 3 == 1:
        options["by"] = "region"
    if seed % 4 == 3:
        options["weights"] = "weight"
    else:
        options["ties"] = RULES[seed % len(RULES)]
    if seed % 5 == 2:
        options["missing"] = "penalise"
    return Case(
        pl.DataFrame(columns | other), pl.DataFrame(masked | other), parts, int(rng.integers(7, 80)), options
    )
