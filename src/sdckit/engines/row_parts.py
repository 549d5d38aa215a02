"""Rows of a file masked in parts: whole columns, rules, rounding and output."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.core import checks
from sdckit.core.registry import InBlocks, WholeColumns
from sdckit.core.table import Step, can_change, decimals_that_fit, fewest_decimals
from sdckit.engines.transport import BlockRef, Message, Reads, merged
from sdckit.kernels.sums import deviations_from, exact_sum, rounded_mean, spread_of_sums
from sdckit.masking.mask_table import rounded
from sdckit.rules.rules import Edits, RepairCounts, WholeFile, asks_to_discover, named_columns, rules_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sdckit.arrays import Bools, Floats, Ints
    from sdckit.core.table import Table
    from sdckit.engines.files import PartWriter
    from sdckit.engines.source import Source
    from sdckit.engines.transport import Array, Block, First, Stage, Transport
    from sdckit.rules.rules import Rules


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
    found = reduce(merged, transport.scan(task, Reads(names), step="counting"))
    empty = Counts.of(np.empty((0, len(names))), nonzero=nonzero, decimals=False)
    return [found.get(number, empty) for number in range(strata)]


def with_products(
    transport: Transport, names: tuple[str, ...], columns: list[WholeColumns], plan: InBlocks
) -> list[WholeColumns]:
    """Return the facts on each stratum with sums of products of deviations, by a second scan."""
    full = plan.needs == "products"
    units = tuple((one.powers, one.centres) for one in columns)
    task = AddProducts(names, units, plan.nonzero, full)
    p = len(names)
    found = reduce(merged, transport.scan(task, Reads(names), step="adding up"))
    none = Products((0,) * len(pairs_of_columns(p, full=full)), np.zeros((p, p), np.int64))
    sums = [found.get(number, none) for number in range(len(columns))]
    return [
        replace(one, products=_matrix(both.totals, p, full=full), pairs=both.pairs.astype(np.float64))
        for one, both in zip(columns, sums, strict=True)
    ]


def _matrix(totals: Sequence[int], p: int, *, full: bool) -> Floats:
    """Return sums of products as a symmetric matrix, zeros outside the diagonal unless `full`."""
    found = np.zeros((p, p))
    for (i, j), total in zip(pairs_of_columns(p, full=full), totals, strict=True):
        found[i, j] = found[j, i] = rounded_mean(total, 1)
    return found


class Changes(NamedTuple):
    """Values of each column of some records, how many were changed, and the original's extremes.

    `filled` and `suppressed` are the numbers of cells that were missing before, or afterwards, alone.
    """

    seen: Ints
    changed: Ints
    filled: int
    suppressed: int
    low: Floats
    high: Floats

    @classmethod
    def of(cls, original: Floats, masked: Floats) -> Changes:
        """Return the changes from the original, rounded as the masked values are, to these."""
        seen, shown = ~np.isnan(original), ~np.isnan(masked)
        return cls(
            seen.sum(axis=0),
            (seen & (original != masked)).sum(axis=0),
            int((shown & ~seen).sum()),
            int((seen & ~shown).sum()),
            np.fmin.reduce(original, axis=0, initial=np.nan),
            np.fmax.reduce(original, axis=0, initial=np.nan),
        )

    @property
    def unchanged(self) -> Bools:
        """True for each column that could have been masked and keeps all its values."""
        return (self.changed == 0) & can_change(self.seen, self.low, self.high)


class FinishCounts(NamedTuple):
    """What was counted in finished blocks: changes by stratum, after the repair, and cells on a code."""

    by_stratum: Mapping[int, Changes]
    repaired: Changes
    repair: RepairCounts
    codes_hit: int


@dataclass(frozen=True)
class Finish:
    """Task: finish and write masked blocks of rows; may run anywhere, more than once and in any order."""

    source: Source
    method: str
    names: tuple[str, ...]
    decimals: tuple[int, ...] | None
    writer: PartWriter
    rules: Rules | None = None
    whole: WholeFile | None = None  # of the columns that rules name
    kept: tuple[str, ...] = ()

    @property
    def reads(self) -> Reads:
        """Columns that are read to finish a block: those to mask, and those that rules name."""
        named = () if self.rules is None else self.rules.columns
        return Reads(tuple(dict.fromkeys([*self.names, *named])))

    def part(self, ref: BlockRef, masked: Floats) -> FinishCounts:
        """Read the original of a stretch of rows and finish its masked values; return what was counted."""
        return self(self.source.read(ref, self.reads), masked)

    def __call__(self, block: Block, masked: Floats) -> FinishCounts:
        """Finish and write the masked values of a block of the original; return what was counted."""
        checks.require_representable(masked, self.names, self.method)
        original = matrix_of(block, self.names)
        before, after = self._rounded(original), self._rounded(masked)
        changes = {number: Changes.of(before[rows], after[rows]) for number, rows in strata_in(block)}
        repaired = self._repaired(block, after)
        self.writer.write(block.first, repaired + 0.0, original)
        return FinishCounts(
            changes,
            Changes.of(before, repaired),
            RepairCounts.of(after, repaired),
            int(np.isin(repaired, self.source.na).sum()) if self.source.na else 0,
        )

    def _rounded(self, values: Floats) -> Floats:
        """Return values rounded to the published decimals, if there are any."""
        return values if self.decimals is None else rounded(values, [Step(d) for d in self.decimals])

    def _repaired(self, block: Block, masked: Floats) -> Floats:
        """Return the masked columns changed so that the edit rules hold."""
        if self.rules is None:
            return masked
        values = matrix_of(block, self.rules.columns)
        edits = Edits(self.rules, self.names, values, self.kept, self.whole)
        return edits.repaired(masked, self.decimals)


@dataclass(frozen=True)
class CountBroken:
    """Task: how many records of a block break each rule."""

    rules: Rules

    def __call__(self, block: Block) -> Ints:
        """Return the number of records for each rule."""
        return self.rules.violations(matrix_of(block, self.rules.columns))


def declared_rules(given: Any, table: Table, masked: Sequence[str]) -> Rules | None:
    """Return edit rules that were given as text; None if there are none on a masked column.

    Rules are not discovered here: that takes all records at once.
    """
    if given is None:
        return None
    several = given if isinstance(given, (list, tuple)) else [given]
    if any(asks_to_discover(text) for text in several):
        raise ValueError("rules are discovered in memory only; write them out, such as 'total = a + b'")
    names = sorted(dict.fromkeys([*masked, *named_columns(given, table)]), key=table.names.index)
    found = rules_of(given, names, np.empty((0, len(names))))
    return found if found is not None and set(found.columns) & set(masked) else None


def count_broken(transport: Transport, found: Rules) -> Ints:
    """Return the number of original records that break each rule, by a scan."""
    counts = transport.scan(CountBroken(found), Reads(found.columns), step="checking rules")
    return np.sum(counts, axis=0)


def rule_columns(transport: Transport, found: Rules, strata: int) -> WholeFile:
    """Return decimals and spreads of the columns that rules name, over all strata, by two scans."""
    names = found.columns
    counts = reduce(merged, count_columns(transport, names, strata, decimals=True))
    whole = counts.whole(nonzero=False)
    parts = with_products(transport, names, [whole] * strata, InBlocks(needs="squares"))
    squares = np.sum([np.diag(one.products) for one in parts if one.products is not None], axis=0)
    decimals = {name: fewest_decimals(fits) for name, fits in zip(names, counts.fits, strict=True)}
    return WholeFile(decimals, whole.powers * spread_of_sums(squares, whole.seen))


@dataclass(frozen=True)
class RowParts:
    """Parts of `width` consecutive rows of a file with `rows` rows."""

    rows: int
    width: int

    @classmethod
    def of(cls, rows: int, columns: int, largest: int) -> RowParts:
        """Return parts with so few rows that all their columns fit where `largest` rows of one do."""
        return cls(rows, max(1, min(rows, 3 * largest // (3 + 2 * columns))))

    def ref(self, part: int) -> BlockRef:
        """Return the rows of a part."""
        first = part * self.width
        return BlockRef(first, min(self.width, self.rows - first))

    def sent(self, kind: int, rows: Ints, *columns: Floats) -> Iterator[Message]:
        """Yield values with their row numbers to the parts that hold these rows."""
        yield from by_bucket(rows // self.width, kind, rows, *columns)


def by_bucket(buckets: Ints, kind: int, *arrays: Array) -> Iterator[Message]:
    """Yield arrays, cut by the bucket of each entry, in the order of the buckets and of the entries."""
    for number, chosen in places_by_number(buckets):
        yield Message(number, kind, tuple(array[chosen] for array in arrays))


def joined(messages: Sequence[Message], kind: int, arrays: int) -> tuple[Array, ...]:
    """Return the arrays of all messages of a kind, one after the other; empty if there is no message."""
    found = [message.arrays for message in messages if message.kind == kind]
    if not found:
        return tuple(np.empty(0) for _ in range(arrays))
    return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))


@dataclass(frozen=True)
class FinishPart:
    """Last stage: put the values of a part of rows together, finish and write them.

    The kind of a message is the number of the first column that it has values of.
    """

    finish: Finish
    parts: RowParts

    def __call__(self, part: int, messages: Sequence[Message]) -> FinishCounts:
        """Return what was counted while the part was finished."""
        ref = self.parts.ref(part)
        masked = np.full((ref.rows, len(self.finish.names)), np.nan, order="F")
        for message in messages:
            rows = message.arrays[0] - ref.first
            for j, values in enumerate(message.arrays[1:], message.kind):
                masked[rows, j] = values
        return self.finish.part(ref, masked)


def finish_parts(
    transport: Transport, first: First, stages: Sequence[Stage], last: FinishPart
) -> FinishCounts:
    """Mask by an exchange whose last stage finishes parts of rows; return what was counted in all of them."""
    names = last.finish.names
    found = transport.exchange(first, Reads(names), stages, last, step="masking")
    for part in range(-(-last.parts.rows // last.parts.width)):
        if part not in found:  # no message came: all its cells are missing
            found[part] = last(part, ())
    return reduce(merged, [found[part] for part in sorted(found)])
