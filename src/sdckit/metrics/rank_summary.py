"""Table of rank statistics per variable: means, largest values, tie ranges, values in unrelated order."""

from __future__ import annotations

from typing import Any

import polars as pl

from sdckit.kernels.tie_rules import random_level
from sdckit.metrics.loss.rank import LARGEST
from sdckit.metrics.pair import Pair, pair_of


def rank_table(
    original: Any, masked: Any, *, columns: Any = None, key: Any = None, na: Any = None
) -> pl.DataFrame:
    """Return rank statistics of each variable: means, largest values, range over ties, unrelated order.

    Parameters
    ----------
    original, masked, columns, key, na
        As for `evaluate`.

    Returns
    -------
    polars.DataFrame
        One row per variable: `n`, `rank_mae`, `rank_mae_max`, `rank_mse`, `rank_mse_max` (mid-ranks), then
        brMAE and brMSE under the rules min, average, expected and max, `brmse_tie_sd` (the exact
        standard deviation of brMSE when ties are broken at random) and the level of unrelated
        order for mid-ranks.

    Examples
    --------
    >>> import sdckit as sdc
    >>> table = sdc.rank_table([1, 1, 1, 1, 2, 3], [1, 1, 2, 1, 1, 1])
    >>> [round(table[name][0], 4) for name in ("brmae_min", "brmae_average", "brmae_expected", "brmae_max")]
    [0.2222, 0.5556, 0.7222, 1.0]
    """
    return rank_table_of_pair(pair_of(original, masked, columns=columns, key=key, na=na))


def rank_table_of_pair(pair: Pair) -> pl.DataFrame:
    """Return the table of `rank_table` for files whose rows are aligned already."""
    rows: list[dict[str, Any]] = []
    for j, name in enumerate(pair.columns):
        n = int(pair.counts.both[j])
        row: dict[str, Any] = {"variable": name, "n": n}
        if n > 1:
            alignment = pair.alignment(j)
            rules = {
                "min": alignment.least(),
                "average": alignment.average(),
                "expected": alignment.expected(),
                "max": alignment.largest(),
            }
            for cost, short in (("absolute", "mae"), ("squared", "mse")):
                largest = LARGEST[cost](n) / n
                mean = getattr(rules["average"], f"mean_{cost}")
                row |= {f"rank_{short}": mean, f"rank_{short}_max": largest}
                row |= {f"br{short}_{rule}": getattr(sums, cost) for rule, sums in rules.items()}
            row["brmse_tie_sd"] = alignment.squared_variance() ** 0.5
            row["brmae_random"], row["brmse_random"] = random_level(alignment, "average")
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)
