"""Records sorted by the value of a column within each domain: cumulated weights and quantiles."""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
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
        for begin, end in self.grouping.slices():
            found[begin:end] = found[begin:end][np.argsort(values[begin:end])]
        return found

    def differences(self) -> Floats:
        """Return for each record the weighted sum of its absolute differences to all others of its domain."""
        y, weights = self.values, self.weights
        found = np.zeros(y.size)
        for begin, end in self.grouping.slices():
            rows = self.order[begin:end]
            values, own = y[rows], np.ones(rows.size) if weights is None else weights[rows]
            size, total = np.cumsum(own), np.cumsum(own * values)  # of the records up to each one
            if rows.size:
                found[rows] = values * (2 * size - size[-1]) + total[-1] - 2 * total
        return found

    @cached_property
    def _distributions(self) -> list[Distribution | Selection]:
        """The values of each domain that have a weight."""
        y, weights = self.values, self.weights
        if weights is None:
            values = y[self.grouping.by_domain]
            return [Selection(values[begin:end]) for begin, end in self.grouping.slices()]
        found: list[Distribution | Selection] = []
        for begin, end in self.grouping.slices():
            rows = self.order[begin:end]
            own = weights[rows]
            if not own.all():
                rows, own = rows[own > 0], own[own > 0]
            found.append(Distribution(y[rows], np.cumsum(own)))
        return found

    def quantiles(self, shares: Floats) -> Floats:
        """Return each domain's smallest value at which its distribution function reaches a share.

        NaN where the domain is empty or the share is not within 0 and 1.
        """
        found = np.full(shares.size, np.nan)
        for domain, (share, own) in enumerate(zip(shares.tolist(), self._distributions, strict=True)):
            if own.values.size and 0 <= share <= 1:
                found[domain] = own.quantile(share * (1 - ROUNDING))
        return found


class Distribution(NamedTuple):
    """Values in ascending order, and the cumulated weights of their records."""

    values: Floats
    weights: Floats

    def quantile(self, share: float) -> float:
        """Return the smallest value at which the cumulated weight reaches a share of the whole."""
        place = int(self.weights.searchsorted(share * self.weights[-1]))
        return float(self.values[min(place, self.values.size - 1)])


class Selection:
    """Values that weigh 1 each, sorted no further than the quantiles need that were asked for."""

    def __init__(self, values: Floats) -> None:
        self.values: Floats = values  # sorted in place
        self._known = [-1, values.size]  # places whose values are in order, with lower ones before them

    def quantile(self, share: float) -> float:
        """Return the smallest value at which the number of values reaches a share of them all."""
        place = max(math.ceil(share * self.values.size) - 1, 0)
        after = bisect_left(self._known, place)
        if self._known[after] != place:
            begin = self._known[after - 1] + 1
            self.values[begin : self._known[after]].partition(place - begin)
            self._known.insert(after, place)
        return float(self.values[place])
