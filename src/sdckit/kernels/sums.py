"""Sums of floating-point numbers without any rounding, and moments of groups of cells."""

from __future__ import annotations

import numpy as np

from sdckit.kernels.jit import Floats, Int32s, Ints, kernel

EXPONENTS = 2048  # of float64, those of infinite numbers included
DIGITS, HALF = 52, 26  # binary digits after the first one, and those of the lower part of a number
BELOW = 1074  # numbers are whole multiples of 2**-1074
MOST = 1 << 35  # numbers that may be added before a part of a sum could overflow


@kernel
def _add_digits(bits: Ints, upper: Ints, lower: Ints) -> None:
    """Add the digits of each number to the sums of its exponent: its upper and its lower half."""
    for i in range(bits.size):
        exponent = (bits[i] >> DIGITS) & (EXPONENTS - 1)
        digits = bits[i] & ((1 << DIGITS) - 1)
        if exponent == EXPONENTS - 1:
            continue  # NaN, a missing cell
        if exponent > 0:
            digits |= 1 << DIGITS
        else:
            exponent = 1
        if bits[i] < 0:
            upper[exponent] -= digits >> HALF
            lower[exponent] -= digits & ((1 << HALF) - 1)
        else:
            upper[exponent] += digits >> HALF
            lower[exponent] += digits & ((1 << HALF) - 1)


def exact_sum(values: Floats) -> int:
    """Return the sum of the finite numbers of an array, missing ones left out, in units of 2**-1074."""
    if values.size > MOST:
        raise ValueError(f"an array of {values.size} numbers is too long for an exact sum; add up its parts")
    upper, lower = np.zeros(EXPONENTS, np.int64), np.zeros(EXPONENTS, np.int64)
    _add_digits(np.ascontiguousarray(values, np.float64).view(np.int64), upper, lower)
    total = 0
    for exponent in np.flatnonzero(upper | lower).tolist():
        total += ((int(upper[exponent]) << HALF) + int(lower[exponent])) << (exponent - 1)
    return total


def rounded_mean(total: int, n: int) -> float:
    """Return an exact sum divided by n, rounded once; NaN for n = 0."""
    return total / (n << BELOW) if n else float("nan")


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
