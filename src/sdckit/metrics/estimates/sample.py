"""The records that have a value of an estimate's columns, with their weights, by domain."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sdckit.metrics.estimates.figures import NO_VALUE, NO_WEIGHT, ONE_RECORD, ONE_UNIT, Figures
from sdckit.metrics.estimates.ordering import Ordering

if TYPE_CHECKING:
    from sdckit.kernels.jit import Bools, Floats, Ints
    from sdckit.metrics.estimates.grouping import Grouping


class Sample:
    """Columns of numbers on the records that have all of them; others count as 0 and weigh nothing.

    `columns` has no NaN, `weights` is None where all records weigh 1, `seen` is None where all count.
    """

    def __init__(self, grouping: Grouping, weights: Floats | None, *columns: Floats) -> None:
        self.grouping = grouping
        self.columns, self.weights = list(columns), weights
        self.seen: Bools | None = None
        sums = [float(column.sum()) for column in columns]  # NaN with a missing cell, and fast
        if np.isnan(sums).any():
            seen = np.asarray(~np.isnan(columns).any(0))
            self.seen, self.columns = seen, [np.where(seen, column, 0.0) for column in columns]
            self.weights = seen.astype(float) if weights is None else np.where(seen, weights, 0.0)
        elif grouping.some_outside:
            self.seen = grouping.numbers < grouping.count

    @cached_property
    def size(self) -> Floats:
        """Sum of the weights of each domain."""
        return self.grouping.sums(self.weights)

    @cached_property
    def records(self) -> Ints:
        """Number of records of each domain that have the values."""
        return self.grouping.records if self.seen is None else self.grouping.count_records(self.seen)

    @cached_property
    def ordering(self) -> Ordering:
        """The records sorted by the first column within each domain."""
        return Ordering(self.grouping, self.weights, self.columns[0])

    def totals(self, values: Floats) -> Floats:
        """Return the weighted sum of the values in each domain."""
        return self.grouping.sums(values, self.weights)

    def means(self, values: Floats) -> Floats:
        """Return the weighted mean of the values in each domain."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.totals(values) / self.size

    def figures(self, values: Floats, variances: Floats, scale: Floats | float) -> Figures:
        """Return estimates whose errors are the roots of the given variances over `scale`."""
        with np.errstate(divide="ignore", invalid="ignore"):
            errors = np.sqrt(variances) / np.abs(scale)
        return self.explained(Figures(values, errors, self.records))

    def explained(self, figures: Figures, *, alone: bool = False) -> Figures:
        """Return the figures with a reason where a domain has none; `alone` if one record has an error."""
        figures.withhold(self.records == 0, NO_VALUE)
        figures.withhold((self.size <= 0) & (self.records > 0), NO_WEIGHT)
        if not alone:
            figures.withhold(self.records == 1, ONE_RECORD, value=False)
        figures.withhold(np.isnan(figures.errors) & ~np.isnan(figures.values), ONE_UNIT, value=False)
        return figures
