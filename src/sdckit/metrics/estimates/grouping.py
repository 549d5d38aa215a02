"""Sums over domains, and variances of estimated totals over a design of strata and units."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from sdckit.core.classes import number_values
from sdckit.core.quoting import shown
from sdckit.kernels.sums import NOTHING, cell_moments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sdckit.kernels.jit import Bools, Floats, Int32s, Ints
    from sdckit.metrics.estimates.domains import Domains

Array = TypeVar("Array", "Floats", "Int32s")


class Design:
    """How the records of a file were drawn: units with replacement within strata; a record without a unit.

    `stratum` and `unit` have a number for each record, None where all are in one stratum or are units
    themselves. A unit that lies in two strata counts as two. `sizes` are the units of each stratum.
    `left` is the share of each stratum's units that was not drawn: 1 without `population`, the number of
    units in the population of each record's stratum.
    """

    def __init__(
        self, n: int, strata: Domains | None, units: Domains | None, population: Floats | None = None
    ) -> None:
        self.stratum: Ints | None = None if strata is None else strata.numbers
        self.strata: int = 1 if strata is None else strata.count
        self.unit: Ints | None = None
        if units is None:
            of_unit = self.stratum
            count = n
        else:
            both = units.numbers if self.stratum is None else units.numbers * self.strata + self.stratum
            self.unit = number_values(both)
            count = int(self.unit.max(initial=-1)) + 1
            of_unit = None if self.stratum is None else _of_groups(self.unit, self.stratum, count)
        self.sizes: Floats = (
            np.array([float(count)]) if of_unit is None else np.bincount(of_unit).astype(float)
        )
        self.left: Floats = (
            np.ones(self.sizes.size) if population is None else 1 - self.sizes / self._each(population)
        )

    def _each(self, population: Floats) -> Floats:
        """Return the population of each stratum; raise ValueError if records disagree or it is too small."""
        numbers = np.zeros(population.size, np.int64) if self.stratum is None else self.stratum
        found = np.empty(self.sizes.size)
        found[numbers] = population
        if not (found[numbers] == population).all():
            raise ValueError("the population differs between records of a stratum; give one number for each")
        few = np.flatnonzero(found < self.sizes)
        if few.size:
            at = int(few[0])
            raise ValueError(
                f"a stratum has {self.sizes[at]:g} units and a population of {shown(f'{found[at]:g}')}; give "
                "the number of units that could have been drawn"
            )
        return found


class Grouping:
    """Domains of a file together with its design: sums over domains and variances of such sums."""

    def __init__(self, domains: Domains, design: Design) -> None:
        self.labels: list[str] = domains.labels
        self.count: int = domains.count
        self.design = design
        outside = domains.numbers < 0
        self.some_outside: bool = bool(outside.any())
        # Records outside all domains form one more, the last, which is cut off from all results.
        self.numbers: Ints = (
            np.where(outside, self.count, domains.numbers) if self.some_outside else domains.numbers
        )

    def sums(self, values: Floats | None, weights: Floats | None = None) -> Floats:
        """Return the weighted sum of the values over the records of each domain; their number for None."""
        if values is None:
            return self.records.astype(float)
        none = np.zeros(self.count + 1)
        return _moments(self._small, values, weights, none)[0][: self.count]

    @cached_property
    def _small(self) -> Int32s:
        """Number of each record's domain in four bytes, as sums are as fast as memory is read."""
        return self.numbers.astype(np.int32)

    @cached_property
    def records(self) -> Ints:
        """Number of records of each domain."""
        return self.count_records(None)

    def count_records(self, chosen: Bools | None) -> Ints:
        """Return how many of the chosen records, or of all, each domain has."""
        numbers = self.numbers if chosen is None else self.numbers[chosen]
        return np.bincount(numbers, minlength=self.count + 1)[: self.count]

    @cached_property
    def by_domain(self) -> Ints:
        """Row numbers sorted by domain; records outside all domains come last."""
        small = self.numbers.astype(np.uint16) if self.count < 2**16 else self.numbers
        return np.argsort(small, kind="stable")

    def slices(self) -> Iterator[tuple[int, int]]:
        """Yield where the records of each domain begin and end in `by_domain`."""
        end = 0
        for records in self.records.tolist():
            begin, end = end, end + records
            yield begin, end

    def at_records(self, values: Floats) -> Floats:
        """Return the value of each record's domain; 0 outside all domains."""
        return np.take(np.append(values, 0.0), self.numbers)

    @cached_property
    def _parts(self) -> tuple[Ints | None, Int32s, Floats]:
        """The pair of unit and domain of each record, the cell of each pair, and the pairs of each cell.

        A cell is a domain in a stratum. Without units each record is a pair, which needs no number.
        """
        design = self.design
        cells = self.numbers if design.stratum is None else self.numbers * design.strata + design.stratum
        pairs = None
        if design.unit is not None:
            pairs = number_values(design.unit * (self.count + 1) + self.numbers)
            cells = _of_groups(pairs, cells, int(pairs.max(initial=-1)) + 1)
        sizes = np.bincount(cells, minlength=(self.count + 1) * design.strata).astype(float)
        return pairs, self._small if cells is self.numbers else cells.astype(np.int32), sizes

    @cached_property
    def _factors(self) -> Floats:
        """By what squares about a mean are multiplied in each cell: units / (units - 1), and what is left."""
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = self.design.sizes / (self.design.sizes - 1) * self.design.left
        factors[self.design.left == 0] = 0.0  # also of one unit, which is the whole stratum
        return np.tile(factors, self.count + 1)

    def totals(self, values: Floats, weights: Floats | None = None) -> tuple[Floats, Floats]:
        """Return each domain's weighted sum of the values and its variance.

        The variance is NaN where a stratum has one unit.
        """
        pairs, cells, sizes = self._parts
        if pairs is not None:
            parts = values if weights is None else values * weights
            values = np.asarray(np.bincount(pairs, parts, cells.size), np.float64)
            weights = None
        none = np.zeros(sizes.size)
        sums, _ = _moments(cells, values, weights, none)
        with np.errstate(divide="ignore", invalid="ignore"):
            shifts = np.where(sizes > 0, sums / sizes, 0.0)
        rest, squares = _moments(cells, values, weights, none, shifts=shifts)
        squares -= rest**2 / np.maximum(sizes, 1.0)
        whole = sums.reshape(-1, self.design.strata)[: self.count].sum(1)
        return np.asarray(whole), self._finished(sums, squares)

    def variances(self, values: Floats, weights: Floats | None = None) -> Floats:
        """Return the variance of each domain's weighted sum of the values."""
        return self.totals(values, weights)[1]

    def residual_variances(
        self,
        values: Floats,
        weights: Floats | None,
        centres: Floats,
        others: Floats | None = None,
        slopes: Floats | None = None,
    ) -> Floats:
        """Return the variance of each domain's weighted sum of value - slope * other - centre.

        Centres and slopes are those of domains; the sum over all strata of a domain is 0 or nearly so.
        """
        pairs, cells, sizes = self._parts
        if pairs is not None:
            residuals = values - self.at_records(centres)
            if others is not None and slopes is not None:
                residuals -= self.at_records(slopes) * others
            return self.variances(residuals, weights)
        middle, factor = (self._at_cells(one) for one in (centres, slopes))
        sums, squares = _moments(cells, values, weights, middle, others, factor)
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._finished(sums, np.where(sizes > 0, squares - sums**2 / sizes, 0.0))

    def _at_cells(self, values: Floats | None) -> Floats:
        """Return the value of each cell's domain; 0 outside all domains and where there is none."""
        known = np.zeros(self.count) if values is None else np.nan_to_num(values, posinf=0.0, neginf=0.0)
        return np.repeat(np.append(known, 0.0), self.design.strata)

    def _finished(self, sums: Floats, squares: Floats) -> Floats:
        """Return variances from the sums over each cell and its squares about their own mean.

        Units outside the domain count as 0. In a stratum with n units, of which m have records in the
        domain, the squares about the mean of all n are those of the m about their own mean, and
        (n - m) / (n m) times their squared sum.
        """
        sizes, units = self._parts[2], np.tile(self.design.sizes, self.count + 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            whole = squares + sums**2 * (units - sizes) / (sizes * units)
            found = np.where(sizes > 0, whole * self._factors, 0.0)
        return np.asarray(found.reshape(-1, self.design.strata)[: self.count].sum(1))


def _moments(
    cells: Int32s,
    values: Floats,
    weights: Floats | None,
    centres: Floats,
    others: Floats | None = None,
    slopes: Floats | None = None,
    *,
    shifts: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Return sums and sums of squares over cells; options that are None play no part."""
    none = np.zeros(centres.size)
    return cell_moments(
        _frozen(cells),
        _frozen(NOTHING if weights is None else weights),
        _frozen(values),
        _frozen(NOTHING if others is None else others),
        none if slopes is None else slopes,
        centres,
        none if shifts is None else shifts,
    )


def _frozen(array: Array) -> Array:
    """Return a view that cannot be written to, as polars columns are: one compiled kernel serves all."""
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def _of_groups(groups: Ints, values: Ints, count: int) -> Ints:
    """Return the value that the records of each group share."""
    found = np.empty(count, np.int64)
    found[groups] = values
    return found
