"""One rank swapping of a column, its order known, against sorting that column."""

from __future__ import annotations

import numpy as np

import sdckit as sdc
from sdckit.kernels.ranks import OrderedColumn
from sdckit.masking.swapping import SwapParameters, swapped
from timing import Row, row, seconds


def rows() -> list[Row]:
    table = []
    n = 1_000_000
    values = np.random.default_rng(1).lognormal(8, 1, n)
    column = OrderedColumn(values)
    rng = np.random.default_rng(2)
    for p in (0.001, 0.05, 0.3):
        sort, kernel, public = seconds(
            [
                lambda: np.sort(values),
                lambda p=p: swapped(column, SwapParameters(p), rng),
                lambda p=p: sdc.mask(values, "rank_swap", p=p, rng=rng),
            ]
        )
        case = f"{n:,} x 1, p = {p}"
        table.append(row("rank swapping, kernel", case, kernel, "np.sort", sort, "at most 2 x the time"))
        table.append(row("mask(..., 'rank_swap'), public call", case, public, "np.sort", sort))
    return table
