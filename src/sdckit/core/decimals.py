"""Decimals of a column that is read in parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sdckit.core.table import LARGEST_INTEGER, MOST_DECIMALS, fits_decimals

if TYPE_CHECKING:
    from sdckit.kernels.jit import Floats


def decimals_that_fit(values: Floats) -> int:
    """Return a number whose bit d says whether all values have at most d decimals, for d below 15.

    The bits that all parts of a column have in common are those of the whole column.
    """
    seen = values[np.abs(values) < LARGEST_INTEGER]  # larger values are whole numbers
    return sum(1 << d for d in range(MOST_DECIMALS) if fits_decimals(seen, d))


def fewest_decimals(fits: int) -> int:
    """Return the number of decimals of a column, as `decimals_of` does, from its `decimals_that_fit`."""
    return next((d for d in range(MOST_DECIMALS) if fits >> d & 1), MOST_DECIMALS)
