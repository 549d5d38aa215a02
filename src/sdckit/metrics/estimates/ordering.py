"""Records sorted by the value of a column within each domain: cumulated weights and quantiles."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sdckit.kernels.jit import Floats, Ints
    from sdckit.metrics.estimates.grouping import Grouping

ROUNDING = 1e-12  # of a sum of weights, which may be this much too small


class Ordering:
    """The records of a file, sorted by domain and by their values within it; `weights` may be None."""

    def __init__(self, grouping: Grouping, weights: Floats | None, values: Floats) -> None:
        self.grouping, self.weights, self.values = grouping, weights, values

    @cached_property
    def order(self) -> Ints:
        """Row numbers by domain and value; records without a value or a weight come at any place."""
        found = self.grouping.by_domain.copy()
        values = self.values[found]
        for begin, end in self._slices():
            found[begin:end] = found[begin:end][np.argsort(values[begin:end])]
        return found

    def _slices(self) -> Iterator[tuple[int, int]]:
        """Yield where the records of each domain begin and end in the order."""
        end = 0
        for records in self.grouping.records.tolist():
            begin, end = end, end + records
            yield begin, end

    def cumulated(self) -> tuple[Floats, Floats]:
        """Return for each record the weight of those up to it in its domain, and their weighted sum."""
        y = self.values
        weights = np.ones(y.size) if self.weights is None else self.weights
        below, part = np.zeros(y.size), np.zeros(y.size)
        for begin, end in self._slices():
            rows = self.order[begin:end]
            own = weights[rows]
            below[rows], part[rows] = np.cumsum(own), np.cumsum(own * y[rows])
        return below, part

    @cached_property
    def distributions(self) -> list[tuple[Floats, Floats]]:
        """The sorted values of each domain that have a weight, and their cumulated weights."""
        y, weights = self.values, self.weights
        found = []
        for begin, end in self._slices():
            rows = self.order[begin:end]
            own = np.ones(rows.size) if weights is None else weights[rows]
            if weights is not None and not own.all():
                rows, own = rows[own > 0], own[own > 0]
            found.append((y[rows], np.cumsum(own)))
        return found

    def quantiles(self, shares: Floats) -> Floats:
        """Return each domain's smallest value at which its distribution function reaches a share.

        NaN where the domain is empty or the share is not within 0 and 1.
        """
        found = np.full(shares.size, np.nan)
        for domain, (values, weights) in enumerate(self.distributions):
            if values.size and 0 <= shares[domain] <= 1:
                wanted = shares[domain] * weights[-1] * (1 - ROUNDING)
                found[domain] = values[min(int(np.searchsorted(weights, wanted)), values.size - 1)]
        return found
