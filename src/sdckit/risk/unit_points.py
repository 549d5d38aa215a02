"""Units as records: facts, means and sorted rows of all rows of a household, firm or person together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core.classes import number_values
from sdckit.core.converted_cells import converted_numbers, polars_column
from sdckit.kernels.candidates import Side
from sdckit.risk.distances import cached_value, standardised
from sdckit.risk.equal_records import row_marks

if TYPE_CHECKING:
    from sdckit.kernels.jit import Floats, Ints
    from sdckit.metrics.original import Original
    from sdckit.metrics.pair import Pair

SMALL = 20  # units of at most this many rows are also compared by their sorted rows


def units_of_original(original: Original) -> Ints | None:
    """Return the number of each record's unit, read once and kept without the table; None without units."""
    if "units" not in original.kept:
        original.kept["units"] = original.units
    units: Ints | None = original.kept["units"]
    return units


def units_of(pair: Pair) -> Ints | None:
    """Return the number of each original record's unit; None without units."""
    if pair.whole is None or pair.rows is None:
        return units_of_original(pair.original)
    units = units_of(pair.whole)
    return None if units is None else number_values(units[pair.rows])


def publishes_units(pair: Pair) -> bool:
    """Return True if the published file shows which records belong together."""
    whole = pair.whole or pair
    name = whole.original.roles.unit
    if whole.table is None:
        return name in whole.original.roles.published(whole.original.table_names)
    if name not in whole.table.names:
        return False

    def keeps_grouping() -> bool:
        """Return True if the published unit numbers form the same units."""
        column = whole.table.column(name)  # type: ignore[union-attr]
        there = column if whole.places is None else column[whole.places.tolist()]
        theirs, ours = converted_numbers(polars_column(there))[0], units_of(whole)
        both = number_values(row_marks(ours, theirs)) if ours is not None else theirs
        return ours is not None and int(both.max()) == int(ours.max()) == int(number_values(theirs).max())

    return bool(cached_value(whole.cache, "publishes units", keeps_grouping))


class Units:
    """Rows of each unit: those of unit u are rows[starts[u] : starts[u] + sizes[u]]."""

    def __init__(self, numbers: Ints) -> None:
        self.numbers = numbers
        self.sizes: Ints = np.bincount(numbers)
        self.rows: Ints = np.argsort(numbers, kind="stable")
        self.starts: Ints = np.cumsum(self.sizes) - self.sizes

    @property
    def count(self) -> int:
        """Number of units."""
        return len(self.sizes)

    @property
    def position(self) -> Ints:
        """Position of each of `rows` within its unit."""
        return np.arange(self.rows.size) - np.repeat(self.starts, self.sizes)

    def means(self, points: Floats) -> Floats:
        """Return the mean of each unit's observed cells, NaN where it has none.

        Cells are summed in their order of size, so that equal cells in another order have equal means.
        """
        found = np.empty((self.count, points.shape[1]))
        for j in range(points.shape[1]):
            order = np.lexsort((points[:, j], self.numbers))
            column = points[order, j]
            seen = ~np.isnan(column)
            counts = np.bincount(self.numbers[order][seen], minlength=self.count)
            sums = np.bincount(self.numbers[order][seen], column[seen], self.count)
            found[:, j] = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
        return found

    def sorted_rows(self, points: Floats) -> Floats:
        """Return each unit's cells as one record, each variable sorted by itself; NaN fills up."""
        longest = int(self.sizes.max())
        found = np.full((self.count, longest, points.shape[1]), np.nan)
        for j in range(points.shape[1]):
            order = np.lexsort((points[:, j], self.numbers))  # NaN last
            found[self.numbers[order], self.position, j] = points[order, j]
        return np.ascontiguousarray(found.reshape(self.count, -1))

    def side(self, side: Side) -> Side:
        """Return the facts about units: the same number of rows, and a row that fits each row.

        Blocks of units are equal if their rows have the same blocks. Of intervals, the sorted ends are
        compared: rows that fit each other one to one need sorted ends that fit, so the true unit is inside.
        """
        marks = np.zeros(self.count, np.uint64)
        np.add.at(marks, self.numbers, row_marks(side.blocks))  # the same sum for the same blocks
        blocks = number_values(row_marks(marks, self.sizes))
        return Side(blocks, self.sorted_ends(side.low), self.sorted_ends(side.high))

    def sorted_ends(self, ends: Floats) -> Floats:
        """Return the sorted ends of the intervals of each unit's rows, filled up by what fits everything."""
        if not ends.shape[1]:
            return np.empty((self.count, 0))
        found = self.sorted_rows(ends)
        return np.where(np.isnan(found), 0.0, found)  # units of one size only are compared


def unit_distances(pair: Pair, units: Units) -> dict[str, tuple[Floats, Floats]]:
    """Return the points of original and published units, by the name of the distance between them."""
    files = standardised(pair)
    found: dict[str, Any] = {"unit_means": tuple(units.means(points) for points in files)}
    if units.sizes.max() <= SMALL:
        found["sorted_rows"] = tuple(units.sorted_rows(points) for points in files)
    return found
