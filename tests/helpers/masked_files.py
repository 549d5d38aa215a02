"""Files for tests of masking in blocks, and the masking by memory's own function with the same draws."""

import numpy as np
import polars as pl

from file_transport import engine
from sdckit.core.registry import METHODS, parameters_by_stratum
from sdckit.engines.masking import cell_draws, mask_files
from sdckit.masking.mask_table import apply

NAMES = ("money", "zeros", "rate")
SEED = 5
CUTS = [(1, 10_000), (7, 90), (40, 31)]  # blocks of the file, and rows to a bucket


def survey(n=500, seed=1):
    """A file with text, money in cents with gaps, whole numbers with zeros, and skewed rates."""
    rng = np.random.default_rng(seed)
    money = [None if i % 17 == 3 else v for i, v in enumerate(rng.normal(5000, 900, n).round(2).tolist())]
    zeros = np.where(rng.random(n) < 0.4, 0, rng.lognormal(3, 1, n).round())
    return pl.DataFrame(
        {
            "name": [f"record {i}" for i in range(n)],
            "money": money,
            "area": rng.choice(["north", "south"], n, p=[0.8, 0.2]),
            "zeros": pl.Series(zeros, dtype=pl.Int32),
            "rate": rng.lognormal(2, 1, n),
        }
    )


def masked(source, target, method, *, cut=CUTS[0], by=None, seed=0, retry=0.0, **options):
    """Mask a Parquet file in blocks; return the masked file and the notes."""
    drop = options.pop("drop", None)
    roles = {"columns": list(NAMES), "by": by, "na": options.pop("na", None), "drop": drop}
    roles["untouched"] = [name for name in ("name", "area") if name not in (drop, by)]
    transport = engine(blocks=cut[0], bucket_rows=cut[1], seed=seed, retry=retry)
    others = ("decimals", "rules", "overwrite", "rng")
    more = {"rng": SEED} | {name: options.pop(name) for name in others if name in options}
    found = mask_files(
        source, method, transport=transport, output=target, roles=roles, parameters=options, **more
    )
    return pl.read_parquet(found.path), found.notes


def matrix(frame):
    """The columns to mask as floats, NaN where a cell is missing."""
    return np.asfortranarray(frame.select(NAMES).cast(pl.Float64).fill_null(np.nan).to_numpy())


def in_memory(frame, method, by=None, **parameters):
    """The same masking of the whole matrix by the method's own function, with the same draws of cells."""
    values, record = matrix(frame), METHODS[method]
    strata = frame[by].to_list() if by else ["all"] * frame.height
    names = list(dict.fromkeys(strata))
    options = parameters_by_stratum(record, parameters, names, grouped=by is not None)
    result = np.empty_like(values)
    for number, (name, chosen) in enumerate(zip(names, options, strict=True)):
        rows = np.flatnonzero(np.array(strata) == name)
        by_cell = record.in_blocks.how == "cells"
        draws = cell_draws(SEED).at(rows) if by_cell else cell_draws(SEED).in_stream(1 + number)
        result[rows] = apply(record, np.asfortranarray(values[rows]), chosen, draws, names=NAMES)
    return result
