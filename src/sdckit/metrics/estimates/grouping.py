"""Sums over domains, and variances of estimated totals over a design of strata and units."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sdckit.core.classes import number_values

if TYPE_CHECKING:
    from sdckit.kernels.jit import Bools, Floats, Ints
    from sdckit.metrics.estimates.domains import Domains


class Design:
    """How the records of a file were drawn: units with replacement within strata; a record without a unit.

    `stratum` and `unit` have a number for each record, None where all are in one stratum or are units
    themselves. A unit that lies in two strata counts as two. `sizes` are the units of each stratum.
    """

    def __init__(self, n: int, strata: Domains | None, units: Domains | None) -> None:
        self.stratum = None if strata is None else strata.numbers
        self.strata = 1 if strata is None else strata.count
        self.unit: Ints | None = None
        if units is None:
            of_unit = self.stratum
            count = n
        else:
            both = units.numbers if self.stratum is None else units.numbers * self.strata + self.stratum
            self.unit = number_values(both)
            count = int(self.unit.max(initial=-1)) + 1
            of_unit = None if self.stratum is None else _of_groups(self.unit, self.stratum, count)
        self.sizes = np.array([float(count)]) if of_unit is None else np.bincount(of_unit).astype(float)


class Grouping:
    """Domains of a file together with its design: sums over domains and variances of such sums."""

    def __init__(self, domains: Domains, design: Design) -> None:
        self.labels, self.count, self.design = domains.labels, domains.count, design
        outside = domains.numbers < 0
        self.some_outside = bool(outside.any())
        # Records outside all domains form one more, the last, which is cut off from all results.
        self.numbers = (
            np.where(outside, self.count, domains.numbers) if self.some_outside else domains.numbers
        )

    def sums(self, values: Floats | None) -> Floats:
        """Return the sum of the values over the records of each domain; their number for None."""
        if values is None:
            return self.records.astype(float)
        return np.asarray(np.bincount(self.numbers, values, self.count + 1)[: self.count], np.float64)

    @cached_property
    def records(self) -> Ints:
        """Number of records of each domain."""
        return self.count_records(None)

    def count_records(self, chosen: Bools | None) -> Ints:
        """Return how many of the chosen records, or of all, each domain has."""
        numbers = self.numbers if chosen is None else self.numbers[chosen]
        return np.bincount(numbers, minlength=self.count + 1)[: self.count]

    def at_records(self, values: Floats) -> Floats:
        """Return the value of each record's domain; 0 outside all domains."""
        return np.take(np.append(values, 0.0), self.numbers)

    @cached_property
    def _parts(self) -> tuple[Ints | None, Ints, Floats]:
        """The pair of unit and domain of each record, the cell of each pair, and the pairs of each cell.

        A cell is a domain in a stratum. Without units each record is a pair, which needs no number.
        """
        design = self.design
        cells = self.numbers
        if design.stratum is not None:
            cells = cells * design.strata + design.stratum
        pairs = None
        if design.unit is not None:
            pairs = number_values(design.unit * (self.count + 1) + self.numbers)
            cells = _of_groups(pairs, cells, int(pairs.max(initial=-1)) + 1)
        sizes = np.bincount(cells, minlength=(self.count + 1) * design.strata).astype(float)
        return pairs, cells, sizes

    def variances(self, values: Floats) -> Floats:
        """Return the variance of each domain's sum of the values; NaN where a stratum has one unit.

        The values are those of records, weights included, and count as 0 outside the domain. In a stratum
        with n units, of which m have records in the domain, the sum of squares about the mean of all n is
        that of the m about their own mean, and (n - m) / (n m) times their squared sum.
        """
        pairs, cells, sizes = self._parts
        totals = values if pairs is None else np.bincount(pairs, values, cells.size)
        sums = np.bincount(cells, totals, sizes.size)
        units = np.tile(self.design.sizes, self.count + 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            rest = totals - np.take(sums / sizes, cells)
            squares = np.bincount(cells, rest * rest, sizes.size)
            squares += sums**2 * (units - sizes) / (sizes * units)
            found = np.where(sizes > 0, squares * units / (units - 1), 0.0)
        return np.asarray(found.reshape(-1, self.design.strata)[: self.count].sum(1))


def _of_groups(groups: Ints, values: Ints, count: int) -> Ints:
    """Return the value that the records of each group share."""
    found = np.empty(count, np.int64)
    found[groups] = values
    return found
