"""Facts on the columns of a whole file by stratum, from scans: counts, extremes, means and products.

Sums are exact, so that they are the same however the file is cut into blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.core.decimals import decimals_that_fit
from sdckit.core.in_blocks import InBlocks, WholeColumns
from sdckit.engines.transport import Reads
from sdckit.kernels.scaling import deviations_from
from sdckit.kernels.sums import exact_sum, rounded_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sdckit.engines.transport import Block, Transport
    from sdckit.kernels.jit import Floats, Ints


def matrix_of(block: Block, names: Sequence[str]) -> Floats:
    """Return columns of the original in a block as an n x p matrix."""
    found = np.empty((block.rows, len(names)), order="F")
    for j, name in enumerate(names):
        found[:, j] = block.original[name]
    return found


def strata_in(block: Block) -> Iterator[tuple[int, Ints]]:
    """Yield the number of each stratum that has rows in a block, with these rows; 0 without strata."""
    if block.strata is None:
        if block.rows:
            yield 0, np.arange(block.rows)
        return
    yield from places_by_number(block.strata)


def places_by_number(numbers: Ints) -> Iterator[tuple[int, Ints]]:
    """Yield each number that occurs in an array, in ascending order, with the places where it stands."""
    order = np.argsort(numbers, kind="stable")
    found, starts = np.unique(numbers[order], return_index=True)
    if found.size:
        yield from zip(found.tolist(), np.split(order, starts[1:]), strict=True)


def without_zeros(values: Floats) -> Floats:
    """Return the values with zeros made missing."""
    return np.where(values == 0, np.nan, values)


class Counts(NamedTuple):
    """Counts, extremes and exact sums of the columns of some records; `fits` are `decimals_that_fit`."""

    records: int
    present: int
    seen: Ints
    zeros: Ints
    low: Floats
    high: Floats
    totals: tuple[int, ...]
    fits: tuple[int, ...]

    @classmethod
    def of(cls, values: Floats, *, nonzero: bool, decimals: bool) -> Counts:
        """Return the counts of a block's records; decimals are only tried if they are asked for."""
        seen = ~np.isnan(values)
        used = without_zeros(values) if nonzero else values
        return cls(
            len(values),
            int(seen.any(axis=1).sum()),
            (~np.isnan(used)).sum(axis=0),
            (values == 0).sum(axis=0),
            np.fmin.reduce(used, axis=0, initial=np.nan),
            np.fmax.reduce(used, axis=0, initial=np.nan),
            tuple(exact_sum(column) for column in used.T),
            tuple(decimals_that_fit(column) for column in values.T) if decimals else (-1,) * values.shape[1],
        )

    def plus(self, other: Counts) -> Counts:
        """Return the counts of the records of both."""
        return Counts(
            self.records + other.records,
            self.present + other.present,
            self.seen + other.seen,
            self.zeros + other.zeros,
            np.fmin(self.low, other.low),
            np.fmax(self.high, other.high),
            tuple(a + b for a, b in zip(self.totals, other.totals, strict=True)),
            tuple(a & b for a, b in zip(self.fits, other.fits, strict=True)),
        )

    def whole(self, *, nonzero: bool) -> WholeColumns:
        """Return these counts as facts on the columns."""
        means = [rounded_mean(total, int(n)) for total, n in zip(self.totals, self.seen, strict=True)]
        return WholeColumns(
            self.records,
            self.present,
            self.seen,
            self.zeros,
            self.low,
            self.high,
            np.array(means),
            nonzero=nonzero,
        )


@dataclass(frozen=True)
class CountColumns:
    """Task: the counts of a block by stratum."""

    names: tuple[str, ...]
    nonzero: bool = False
    decimals: bool = False

    def __call__(self, block: Block) -> dict[int, Counts]:
        """Return the counts of each stratum that has rows in the block."""
        values = matrix_of(block, self.names)
        return {
            number: Counts.of(values[rows], nonzero=self.nonzero, decimals=self.decimals)
            for number, rows in strata_in(block)
        }


class Products(NamedTuple):
    """Exact sums of products of deviations, by pairs of columns, and the numbers of records with both."""

    totals: tuple[int, ...]
    pairs: Ints


@dataclass(frozen=True)
class AddProducts:
    """Task: sums of products of deviations from the means of each stratum; squares alone unless `full`."""

    names: tuple[str, ...]
    units: tuple[tuple[Floats, Floats], ...]  # powers and centres of each stratum
    nonzero: bool
    full: bool

    def __call__(self, block: Block) -> dict[int, Products]:
        """Return the sums of each stratum that has rows in the block."""
        values = matrix_of(block, self.names)
        used = without_zeros(values) if self.nonzero else values
        return {number: self._products(used[rows], *self.units[number]) for number, rows in strata_in(block)}

    def _products(self, values: Floats, powers: Floats, centres: Floats) -> Products:
        """Return the sums over some records, given units and means of the columns."""
        centred = deviations_from(values / powers, centres)
        seen = (~np.isnan(values)).astype(np.float64)
        pairs = pairs_of_columns(len(powers), full=self.full)
        totals = tuple(exact_sum(centred[:, i] * centred[:, j]) for i, j in pairs)
        return Products(totals, (seen.T @ seen).astype(np.int64))


def pairs_of_columns(p: int, *, full: bool) -> list[tuple[int, int]]:
    """Return the pairs of columns whose products are summed: each with itself, and all others if `full`."""
    return [(i, j) for i in range(p) for j in range(i + 1) if full or i == j]


def count_columns(
    transport: Transport,
    names: tuple[str, ...],
    strata: int,
    *,
    nonzero: bool = False,
    decimals: bool = False,
) -> list[Counts]:
    """Return the counts of each stratum, by a scan."""
    task = CountColumns(names, nonzero, decimals)
    found = _merged(transport.scan(task, Reads(names), step="counting"))
    empty = Counts.of(np.empty((0, len(names))), nonzero=nonzero, decimals=False)
    return [found.get(number, empty) for number in range(strata)]


def _merged(results: Sequence[dict[int, Counts]]) -> dict[int, Counts]:
    """Return the counts by stratum of all blocks."""
    found: dict[int, Counts] = {}
    for of_block in results:
        for number, counts in of_block.items():
            found[number] = found[number].plus(counts) if number in found else counts
    return found


def with_products(
    transport: Transport, names: tuple[str, ...], columns: list[WholeColumns], plan: InBlocks
) -> list[WholeColumns]:
    """Return the facts on each stratum with sums of products of deviations, by a second scan."""
    full = plan.needs == "products"
    units = tuple((one.powers, one.centres) for one in columns)
    task = AddProducts(names, units, plan.nonzero, full)
    p = len(names)
    totals = [[0] * len(pairs_of_columns(p, full=full)) for _ in columns]
    pairs = [np.zeros((p, p), np.int64) for _ in columns]
    for of_block in transport.scan(task, Reads(names), step="adding up"):
        for number, found in of_block.items():
            totals[number] = [a + b for a, b in zip(totals[number], found.totals, strict=True)]
            pairs[number] += found.pairs
    return [
        replace(one, products=_matrix(sums, p, full=full), pairs=both.astype(np.float64))
        for one, sums, both in zip(columns, totals, pairs, strict=True)
    ]


def _matrix(totals: Sequence[int], p: int, *, full: bool) -> Floats:
    """Return sums of products as a symmetric matrix, zeros outside the diagonal unless `full`."""
    found = np.zeros((p, p))
    for (i, j), total in zip(pairs_of_columns(p, full=full), totals, strict=True):
        found[i, j] = found[j, i] = rounded_mean(total, 1)
    return found
