"""Totals in decimal arithmetic, without any rounding."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core.table import LARGEST_INTEGER, MOST_DECIMALS, decimals_of

if TYPE_CHECKING:
    from sdckit.kernels.jit import Floats


def exact_total(values: Floats, weights: Floats) -> Fraction:
    """Return the weighted total of the observed values as they are written, in decimal arithmetic."""
    seen = ~np.isnan(values)
    parts = [_whole_numbers(part[seen]) for part in (values, weights)]
    total = sum(a * b for a, b in zip(parts[0][0], parts[1][0], strict=True))
    return Fraction(total) / (parts[0][1] * parts[1][1])


def _whole_numbers(values: Floats) -> tuple[list[Any], int]:
    """Return numbers times a power of ten that makes them whole, and that power; fractions without one."""
    digits = decimals_of(values)
    if digits >= MOST_DECIMALS:
        return [Fraction(value) for value in values.tolist()], 1
    if float(np.abs(values).max(initial=0.0)) * 10.0**digits < LARGEST_INTEGER:
        return np.rint(values * 10.0**digits).astype(np.int64).tolist(), 10**digits
    return [int(Fraction(repr(value)) * 10**digits) for value in values.tolist()], 10**digits
