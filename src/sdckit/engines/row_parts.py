"""Rows of a file masked in parts: whole columns, rules, rounding and output."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.core import checks
from sdckit.core.registry import WholeColumns
from sdckit.core.table import Step, can_change, decimals_that_fit, fewest_decimals
from sdckit.engines.transport import BlockRef, Reads, by_bucket, matrix_of, merged, scanned, strata_in
from sdckit.kernels.sums import deviations_from, exact_sum, rounded_mean, spread_of_sums
from sdckit.masking.mask_table import rounded
from sdckit.rules.rules import Edits, RepairCounts, WholeFile, asks_to_discover, named_columns, rules_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sdckit.arrays import Bools, Floats, Ints
    from sdckit.core.table import Table
    from sdckit.engines.files import PartWriter
    from sdckit.engines.source import Source
    from sdckit.engines.transport import Block, First, Message, Stage, Transport
    from sdckit.rules.rules import Rules


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


def count_block(names: Sequence[str], nonzero: bool, decimals: bool, block: Block) -> dict[int, Counts]:  # noqa: FBT001
    """Return the counts of each stratum that has rows in a block."""
    values = matrix_of(block, names)
    return {
        number: Counts.of(values[rows], nonzero=nonzero, decimals=decimals)
        for number, rows in strata_in(block)
    }


def count_columns(
    transport: Transport,
    names: tuple[str, ...],
    strata: int,
    *,
    nonzero: bool = False,
    decimals: bool = False,
) -> list[Counts]:
    """Return the counts of each stratum, by a scan."""
    found = scanned(transport, partial(count_block, names, nonzero, decimals), names, "counting")
    empty = Counts.of(np.empty((0, len(names))), nonzero=nonzero, decimals=False)
    return [found.get(number, empty) for number in range(strata)]


class Products(NamedTuple):
    """Exact sums of products of deviations, by pairs of columns, and the numbers of records with both."""

    totals: tuple[int, ...]
    pairs: Ints


def add_products(
    names: Sequence[str],
    columns: Sequence[WholeColumns],
    full: bool,  # noqa: FBT001 - an argument of a task
    block: Block,
) -> dict[int, Products]:
    """Return sums of products of deviations from the means of each stratum; squares alone unless `full`."""
    values = matrix_of(block, names)
    return {number: _products(values[rows], columns[number], full=full) for number, rows in strata_in(block)}


def _products(values: Floats, whole: WholeColumns, *, full: bool) -> Products:
    """Return the sums over some records, given facts on the columns."""
    used = without_zeros(values) if whole.nonzero else values
    centred = deviations_from(used / whole.powers, whole.centres)
    seen = (~np.isnan(used)).astype(np.float64)
    pairs = _pairs_of_columns(used.shape[1], full=full)
    totals = tuple(exact_sum(centred[:, i] * centred[:, j]) for i, j in pairs)
    return Products(totals, (seen.T @ seen).astype(np.int64))


def _pairs_of_columns(p: int, *, full: bool) -> list[tuple[int, int]]:
    """Return the pairs of columns whose products are summed: each with itself, and all others if `full`."""
    return [(i, j) for i in range(p) for j in range(i + 1) if full or i == j]


def with_products(
    transport: Transport, names: tuple[str, ...], columns: list[WholeColumns], *, full: bool
) -> list[WholeColumns]:
    """Return the facts on each stratum with sums of products of deviations, by a second scan."""
    p, result = len(names), []
    found = scanned(transport, partial(add_products, names, columns, full), names, "adding up")
    for number, one in enumerate(columns):
        both = found.get(number) or _products(np.empty((0, p)), one, full=full)
        products = np.zeros((p, p))
        for (i, j), total in zip(_pairs_of_columns(p, full=full), both.totals, strict=True):
            products[i, j] = products[j, i] = rounded_mean(total, 1)
        result.append(replace(one, products=products, pairs=both.pairs.astype(np.float64)))
    return result


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
    counts: Ints = scanned(transport, partial(_broken, found), found.columns, "checking rules")
    return counts


def _broken(rules: Rules, block: Block) -> Ints:
    """Return how many records of a block break each rule."""
    return rules.violations(matrix_of(block, rules.columns))


def rule_columns(transport: Transport, found: Rules, strata: int) -> WholeFile:
    """Return decimals and spreads of the columns that rules name, over all strata, by two scans."""
    names = found.columns
    counts = reduce(merged, count_columns(transport, names, strata, decimals=True))
    whole = counts.whole(nonzero=False)
    parts = with_products(transport, names, [whole] * strata, full=False)
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

    def sent(self, kind: int, rows: Ints, *columns: Floats) -> Iterator[Message]:
        """Yield values with their row numbers to the parts that hold these rows."""
        yield from by_bucket(rows // self.width, kind, rows, *columns)


@dataclass(frozen=True)
class FinishPart:
    """Last stage: put the values of a part of rows together, finish and write them.

    The kind of a message is the number of the first column that it has values of.
    """

    finish: Finish
    parts: RowParts

    def __call__(self, part: int, messages: Sequence[Message]) -> FinishCounts:
        """Return what was counted while the part was finished."""
        first = part * self.parts.width
        ref = BlockRef(first, min(self.parts.width, self.parts.rows - first))
        masked = np.full((ref.rows, len(self.finish.names)), np.nan, order="F")
        for message in messages:
            rows = message.arrays[0] - ref.first
            for j, values in enumerate(message.arrays[1:], message.kind):
                masked[rows, j] = values
        return self.finish(self.finish.source.read(ref, self.finish.reads), masked)


def finish_parts(
    transport: Transport, first: First, stages: Sequence[Stage], last: FinishPart
) -> FinishCounts:
    """Mask by an exchange whose last stage finishes parts of rows; return what was counted in all of them."""
    found = transport.exchange(first, Reads(last.finish.names), stages, last, step="masking")
    parts = range(-(-last.parts.rows // last.parts.width))
    # A part that no message came for has missing cells only.
    return reduce(merged, [found[part] if part in found else last(part, ()) for part in parts])
