"""What is calibrated: a masked matrix, declared totals of its columns, and the limits of each cell."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import ceil, floor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.core.decimals import Step
from sdckit.core.quoting import quoted
from sdckit.core.table import MOST_DECIMALS, decimals_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sdckit.kernels.jit import Bools, Floats, Ints
    from sdckit.rules.rules import Rules

EXACT = 2.0**47  # grid steps up to this number are added without any rounding


class Totals(NamedTuple):
    """Declared totals of one column: the domain of each record (-1: none), and label and total of each."""

    text: str  # such as "total(turnover) by sector"
    column: int
    domains: Ints
    labels: Sequence[str]
    targets: Sequence[Fraction]

    def named(self, domain: int) -> str:
        """Return the words for one of the totals in a message."""
        if len(self.labels) == 1:
            return self.text
        return f"{self.text} in the domain {quoted(self.labels[domain])}"

    def rows_of_domains(self) -> list[Ints]:
        """Return the row numbers of each domain's records."""
        order = np.argsort(self.domains, kind="stable")
        edges = np.searchsorted(self.domains[order], np.arange(len(self.labels) + 1))
        return [order[a:b] for a, b in pairwise(edges)]


class Limits(NamedTuple):
    """Lowest and highest value of each cell; equal where a cell must not change, NaN where it is missing."""

    low: Floats
    high: Floats


@dataclass(frozen=True)
class Problem:
    """A masked matrix, the totals that shall hold in it, and what must not change.

    Attributes
    ----------
    columns
        Names of the columns of `values`.
    values
        The masked cells; NaN where missing.
    weights
        Survey weight of each record.
    totals
        The declared totals.
    rules
        Edit rules, which hold in the masked file, or None.
    free
        Which columns may change.
    usual
        Steps coarser than decimals, such as thousands, that some columns usually have, by name.
    decimals
        Decimals of columns of the original, by name.
    """

    columns: tuple[str, ...]
    values: Floats
    weights: Floats
    totals: tuple[Totals, ...]
    rules: Rules | None
    free: Bools
    usual: Mapping[str, Step] = field(default_factory=dict)
    decimals: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def steps(self) -> tuple[Step | None, ...]:
        """Step between the values of each column; None for a column that is not rounded.

        A usual step is kept if all values share it, but not in columns that share rules: on grids of
        different steps a sum may have no solution.
        """
        several = [rule.columns for rule in (self.rules.rules if self.rules else ()) if len(rule.columns) > 1]
        ruled = {name for names in several for name in names}
        return tuple(
            grid_of(column, None if name in ruled else self.usual.get(name))
            for name, column in zip(self.columns, self.values.T, strict=True)
        )

    @cached_property
    def limits(self) -> Limits:
        """Lowest and highest value of each cell.

        A cell stays within the range of its column, keeps its sign and stays within bounds that rules set.
        Cells of 0, of records without weight and of columns that may not change stay as they are.
        """
        low, high = np.empty_like(self.values), np.empty_like(self.values)
        for j, column in enumerate(self.values.T):
            least, most = self._range(j)
            low[:, j] = np.where(column > 0, max(least, 0.0), least)
            high[:, j] = np.where(column < 0, min(most, 0.0), most)
        fixed = (self.values == 0) | (self.weights <= 0)[:, None] | ~self.free
        missing = np.isnan(self.values)
        return Limits(*(np.where(fixed | missing, self.values, side) for side in (low, high)))

    def _range(self, j: int) -> tuple[float, float]:
        """Return the least and the largest value that a column has, within the bounds of its rules."""
        column, step = self.values[:, j], self.steps[j]
        least, most = float(np.fmin.reduce(column)), float(np.fmax.reduce(column))
        for rule in () if self.rules is None else self.rules.rules:
            for half in rule.halves:
                if half.columns != (self.columns[j],):
                    continue
                factor = half.terms[0][1]
                if half.equality or factor < 0:
                    least = max(least, on_grid(half.constant * factor, step, up=True))
                if half.equality or factor > 0:
                    most = min(most, on_grid(half.constant * factor, step, up=False))
        return least, most


def unit_of(step: Step) -> Fraction:
    """Return the step between values as an exact number."""
    return Fraction(step.multiple) / Fraction(10) ** step.decimals


def on_grid(bound: Fraction, step: Step | None, *, up: bool) -> float:
    """Return a bound rounded to a multiple of the step, up or down so that it stays satisfied."""
    if step is None:
        return float(bound)
    unit = unit_of(step)
    return float((ceil(bound / unit) if up else floor(bound / unit)) * unit)


def grid_of(column: Floats, usual: Step | None = None) -> Step | None:
    """Return the usual step of a column if all values are multiples of it, else the step of its decimals.

    None for a column that is not rounded.
    """
    seen = column[~np.isnan(column)]
    step = usual
    if step is None or not np.array_equal(step.rounded(seen), seen):
        step = Step(decimals_of(seen))
    large = float(np.abs(seen).max(initial=0.0)) / float(unit_of(step)) > EXACT
    return None if step.decimals >= MOST_DECIMALS or large else step


def counted(values: Floats, step: Step) -> Floats:
    """Return values in numbers of grid steps, as whole floats."""
    return np.rint(steps_in(values, step))


def steps_in(values: Floats, step: Step) -> Floats:
    """Return values divided by the grid step."""
    tens = 10.0 ** abs(step.decimals)
    return values * tens / step.multiple if step.decimals >= 0 else values / (tens * step.multiple)


def valued(counts: Floats, step: Step) -> Floats:
    """Return the values of whole numbers of grid steps, exact to the last decimal."""
    tens = 10.0 ** abs(step.decimals)  # a power below 1 would not be exact
    if step.decimals >= 0:
        return counts * step.multiple / tens + 0.0
    return counts * (tens * step.multiple) + 0.0
