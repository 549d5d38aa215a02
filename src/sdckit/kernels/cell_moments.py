"""Sums and sums of squares of records' weighted residuals over numbered cells, in one pass."""

from __future__ import annotations

import numpy as np

from sdckit.kernels.jit import Floats, Int32s, kernel

NOTHING = np.empty(0)


@kernel
def cell_moments(
    cells: Int32s,
    weights: Floats,
    values: Floats,
    others: Floats,
    slopes: Floats,
    centres: Floats,
    shifts: Floats,
) -> tuple[Floats, Floats]:
    """Return each cell's sum and sum of squares of w (a - slope b - centre) - shift over its records.

    `slopes`, `centres` and `shifts` have a number for each cell; without `others` (b) or `weights`, which are
    empty then, b is 0 and w is 1.
    """
    sums, squares = np.zeros(shifts.size), np.zeros(shifts.size)
    for i in range(cells.size):
        cell = cells[i]
        rest = values[i] - centres[cell]
        if others.size:
            rest -= slopes[cell] * others[i]
        if weights.size:
            rest *= weights[i]
        rest -= shifts[cell]
        sums[cell] += rest
        squares[cell] += rest * rest
    return sums, squares
