"""Decimals of a column that is read in parts, and the step between its usual values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sdckit.core.table import LARGEST_INTEGER, MOST_DECIMALS, fits_decimals, round_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.kernels.jit import Floats

USUAL = 0.95  # share of the values of a column that decides about its step
DIFFERENT = 10  # so many different values show that a step is no accident
MULTIPLES = (125, 25, 12, 6, 5, 4, 3, 2)  # of a power of ten, coarsest first
BLOCK = 10_000  # values that are looked at together


def decimals_that_fit(values: Floats) -> int:
    """Return a number whose bit d says whether all values have at most d decimals, for d below 15.

    The bits that all parts of a column have in common are those of the whole column.
    """
    seen = values[np.abs(values) < LARGEST_INTEGER]  # larger values are whole numbers
    return sum(1 << d for d in range(MOST_DECIMALS) if fits_decimals(seen, d))


def fewest_decimals(fits: int) -> int:
    """Return the number of decimals of a column, as `decimals_of` does, from its `decimals_that_fit`."""
    return next((d for d in range(MOST_DECIMALS) if fits >> d & 1), MOST_DECIMALS)


@dataclass(frozen=True)
class Step:
    """The distance between neighbouring values of a column: a multiple of 10 to the power of -decimals."""

    decimals: int  # negative for tens, hundreds and so on
    multiple: int = 1

    def rounded(self, values: Floats) -> Floats:
        """Return the values rounded to multiples of the step; values beyond 2**53 are whole and stay."""
        if self.multiple == 1 and self.decimals >= 0:
            return round_column(values, self.decimals)
        small = np.abs(values) < LARGEST_INTEGER
        return np.where(small, self._nearest(np.where(small, values, 0.0)), values)

    @property
    def size(self) -> float:
        """Distance between neighbouring multiples."""
        return float(self.multiple * 10.0**-self.decimals)

    def _nearest(self, values: Floats) -> Floats:
        """Return the multiples of the step that are nearest to the values, exact to the last decimal."""
        tens = 10.0 ** abs(self.decimals)  # a power below 1 would not be exact
        if self.decimals >= 0:
            return np.rint(values * tens / self.multiple) * self.multiple / tens + 0.0
        return np.rint(values / (tens * self.multiple)) * (tens * self.multiple) + 0.0


def usual_step(values: Floats) -> Step:
    """Return the coarsest step that 95 % of a column's values share; the number of decimals if there is none.

    Zeros, which are multiples of everything, do not count, and a value that many records have counts for at
    most 5 % of them; a step coarser than the decimals is only taken from 10 different values on. So neither
    one record with more decimals nor one frequent value decides about the step.
    """
    column = _Observed(values[(np.abs(values) < LARGEST_INTEGER) & (values != 0)])
    finest = fewest_decimals(decimals_that_fit(values))
    if finest == MOST_DECIMALS or column.values.size < DIFFERENT:
        return Step(finest)
    found = Step(finest)
    for decimals in range(finest - 1, -MOST_DECIMALS, -1):
        if not column.shares(Step(decimals)):
            break
        found = Step(decimals)
    multiples = (Step(found.decimals, multiple) for multiple in MULTIPLES)
    return next((step for step in multiples if column.shares(step)), found)


def decimals_of_steps(steps: Sequence[Step] | None) -> list[int] | None:
    """Return the decimals of each step; None for None."""
    return None if steps is None else [step.decimals for step in steps]


class _Observed:
    """The values of a column that are neither missing nor 0, and how often each occurs."""

    def __init__(self, values: Floats) -> None:
        self.values = values

    def shares(self, step: Step) -> bool:
        """Return True if 95 % of the values are multiples of a step, frequent ones counted as few."""
        if not self._most_fit(step):
            return False
        different, counts = self.counted
        fits = step.rounded(different) == different
        return fits.sum() >= DIFFERENT and counts[fits].sum() >= USUAL * counts.sum()

    def _most_fit(self, step: Step) -> bool:
        """Return True if 95 % of the values are multiples of a step; reads no further than it must."""
        left = self.values.size - math.ceil(USUAL * self.values.size)
        for first in range(0, self.values.size, BLOCK):
            part = self.values[first : first + BLOCK]
            left -= int(np.count_nonzero(step.rounded(part) != part))
            if left < 0:
                return False
        return True

    @cached_property
    def counted(self) -> tuple[Floats, Floats]:
        """The different values, and for how many records each counts."""
        different, counts = np.unique(self.values, return_counts=True)
        return different, np.minimum(counts, max((1 - USUAL) * self.values.size, 1.0))
