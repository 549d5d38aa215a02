"""Cells of decimal numbers read as the nearest floats, or refused where a float has too few digits."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from sdckit.core.quoting import shown

if TYPE_CHECKING:
    from sdckit.kernels.jit import Floats

SAFE_DIGITS = 10**15  # a decimal of up to 15 digits comes back from float64 as it was
EXACT_POWER = 22  # the largest power of ten that float64 holds exactly


def decimal_floats(series: nw.Series[Any]) -> Floats:
    """Return a column of decimals as the nearest floats, NaN where missing.

    Raises ValueError if a float cannot hold the digits of a cell.
    """
    scale = getattr(series.dtype, "scale", None)
    largest = max((abs(end) for end in (series.min(), series.max()) if end is not None), default=0)
    if scale is not None and scale <= EXACT_POWER and largest * 10**scale < SAFE_DIGITS:
        # pyarrow's floats may be neighbours of the nearest ones, which rounding finds.
        near: Floats = np.asarray(series.cast(nw.Float64).to_numpy(), np.float64)
        return near.round(scale)
    cells = series.drop_nulls().to_list()
    lost = next((cell for cell in cells if loses_digits(cell)), None)
    if lost is not None:
        raise ValueError(
            f"column {series.name!r} has decimals that lose digits, such as {shown(lost)}; "
            "leave it out with columns or round it to 15 digits"
        )
    values = np.full(len(series), np.nan)
    values[~series.is_null().to_numpy()] = [float(cell) for cell in cells]
    return values


def loses_digits(cell: Decimal) -> bool:
    """Return True if the shortest text of the nearest float is another decimal."""
    return Decimal(repr(float(cell))) != cell
