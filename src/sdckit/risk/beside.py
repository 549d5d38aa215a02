"""What an intruder reads beside the known variables that were masked, and adds to their law.

- unmasked columns that he knows, some of whose published cells are wrong (`ChangedColumn`);
- published columns that he does not know, as far as they follow from what he knows (`InferredColumns`): a
  published wealth tells who has a high income;
- the order of the rows, where they are sorted by a column that he knows or by a sum of them (`OrderedRows`).

Each adds a log probability to every pair of a published row and an original. How cells differ, or follow from
others, is learnt from other folds of the records than the one that is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from sdckit.core.cells import class_numbers, converted_numbers, number_values, polars_column
from sdckit.risk import distances
from sdckit.risk.facts import facts_of, is_renumbering, unmasked_unknown, untouched_of
from sdckit.risk.law import FOLDS, Normal, inverse_root, solved
from sdckit.risk.posterior import LISTED, Search

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sdckit.arrays import Bools, Floats, Ints
    from sdckit.metrics.pair import Pair
    from sdckit.risk.posterior import Spaces

SORTED = 0.95  # absolute rank correlation with the row number above which rows count as sorted
SETTLED = 1e-7  # change of a sum, in standard deviations, below which it is found
DOUBT = 0.8  # a sample of rows with less shows that rows are not sorted
SAMPLE = 2_000  # rows in that sample
SMALLEST_STEP = 0.1  # ranks by which the order of rows is never more exact
STEPS = 400  # at most, in which the sum that rows follow is found
FOLLOWS = 0.05  # share of a column's variance that others must explain, for it to tell anything
PER_TERM = 10  # records for each coefficient that is learnt
KEPT = 0.05  # share of equal cells below which distinct cells are a fresh numbering, which tells nothing
CLASSES = 50  # values up to which a column is one of classes
LEVELS = 20  # blocks that are told apart, at most
BINS, PER_BIN = 400, (3, 6, 24, 96)  # of ranks that classes follow from, at most, and records of one
FROM_ALL = 2.0  # records of all blocks that are added to those of one
CLEARLY = 3.0  # standard errors by which bins must tell more than none
NEAR = 0.25  # differences of log shares that are too small to tell
EXACT = 1e-8  # share of a column's variance that is never explained
APART = 1e3  # distance of different cells, in units of the law: equal ones are nearer


class Beside(Protocol):
    """Something that tells about records beside the law of the masked variables."""

    def add(self, rows: Ints, originals: Ints, found: Floats) -> None:
        """Add the log probability of each pair to `found`."""

    @property
    def space(self) -> tuple[Floats, Floats] | None:
        """Points of published rows and of originals, in units of the law; None if near ones tell nothing."""


def with_more(search: Search, more: Sequence[Beside]) -> Search:
    """Return how pairs are found where other columns and the order of the rows add what they tell."""

    def likelihood(rows: Ints, originals: Ints) -> Floats:
        """Return the sum of all log-likelihoods of each pair."""
        found = search.likelihood(rows, originals)
        for one in more:
            one.add(rows, originals, found)
        return found

    def spaces() -> Spaces:
        """Return the spaces of the law with the coordinates that the others add, and as they are."""
        own, parts = list(search.spaces()), [one.space for one in more]
        if not any(parts):
            return own
        ours, theirs = (
            np.column_stack([part[side] for part in parts if part is not None]) for side in (1, 0)
        )
        joint = [(np.hstack([a, theirs]), np.hstack([b, ours])) for a, b in own]
        return [*(joint or [(theirs, ours)]), *own[:1]]  # a wrong cell must not hide a record

    return Search(likelihood, spaces, search.lists)


def read_beside(pair: Pair, *, order: bool, inferred: bool = True) -> list[Beside]:
    """Return all that is read beside the masked variables; the order of the rows only if asked for."""
    follow, orders = inferred_columns(pair) if inferred else (), row_orders(pair) if order else ()
    return [*changed_columns(pair), *follow, *orders]


def folds_of(n: int) -> Ints:
    """Return the number of the fold of each record."""
    return np.random.default_rng(2).permutation(n) % FOLDS


# --- known columns with wrong cells ----------------------------------------------------------------------


@dataclass(frozen=True)
class ChangedColumn:
    """An unmasked column whose cells differ from the original's in some records, read by folds.

    A published cell is the original one in a share of the records; else it follows from it as in other folds,
    or is as many steps away as there.
    """

    original: Ints
    published: Ints
    folds: Ints

    @property
    def space(self) -> tuple[Floats, Floats] | None:
        """The numbers of the cells, far apart; None where too many records share one to look it up."""
        if np.bincount(self.original + 1).max() > LISTED:
            return None
        return APART * self.published.astype(float), APART * self.original.astype(float)

    @cached_property
    def counts(self) -> list[tuple[float, Ints, Ints, Ints, Floats, Floats]]:
        """Outside of each fold: share of equal cells; keys of pairs of cells, and their counts; more shares.

        These are the counts of originals, the share of each cell, and that of each difference among cells
        that differ.
        """
        size = int(max(self.original.max(), self.published.max())) + 2
        found = []
        for number in range(FOLDS):
            out = self.folds != number
            x, y = self.original[out] + 1, self.published[out] + 1
            keys, often = np.unique(x * size + y, return_counts=True)
            shares = (np.bincount(y, minlength=size) + 1 / size) / (out.sum() + 1)
            moved = np.bincount((y - x + size)[x != y], minlength=2 * size + 1)
            moves = (moved + 0.5 / size) / (moved.sum() + 1)
            same = min(max(np.mean(x == y), 1e-6), 1 - 1e-6)
            found.append((same, keys, often, np.bincount(x, minlength=size), shares, moves))
        return found

    def add(self, rows: Ints, originals: Ints, found: Floats) -> None:
        """Add the log probability of each published cell, given the original one."""
        mine = self.folds[rows]
        for number, (same, keys, often, of_original, shares, moves) in enumerate(self.counts):
            some = np.flatnonzero(mine == number)
            x, y = self.original[originals[some]] + 1, self.published[rows[some]] + 1
            place = distances.places_among(x * len(shares) + y, keys)
            seen = np.where(place >= 0, often[place], 0)
            usual = (shares[y] + moves[y - x + len(shares)]) / 2
            other = (seen + usual) / (of_original[x] + 1)
            found[some] += np.log(same * (x == y) + (1 - same) * other)


@distances.once
def changed_columns(pair: Pair) -> list[ChangedColumn]:
    """Return the known unmasked columns that differ from the original in a way that is no fact."""
    found, folds = [], folds_of(pair.original.n)
    for one in untouched_of(pair):
        equal = np.mean(one.original == one.published)
        if one.case in "de" and not (equal < KEPT and is_renumbering(one.original, one.published)):
            found.append(ChangedColumn(one.original, one.published, folds))
    return found


# --- columns that he does not know -----------------------------------------------------------------------


@dataclass(frozen=True)
class InferredColumns:
    """Published columns that the intruder does not know, each as a function of what he knows, read by folds.

    Value, logarithm or normal score of a cell is a linear function of those of the known variables.
    """

    cells: Floats  # published, each column in the form that follows best; 0 where missing
    free: Bools  # cells that are not missing
    folds: Ints
    laws: Sequence[Normal]  # of each fold, learnt from the others

    @property
    def space(self) -> tuple[Floats, Floats]:
        """Cells, and what the first law expects of each original, in units of the residuals."""
        law = self.laws[0]
        return self.cells @ law.root, law.mean @ law.root

    def add(self, rows: Ints, originals: Ints, found: Floats) -> None:
        """Add the log-density of the residuals of each pair."""
        mine = self.folds[rows]
        for number, law in enumerate(self.laws):
            some = np.flatnonzero(mine == number)
            part = np.zeros(some.size)
            law.add(self.cells, self.free, rows[some], originals[some], part)
            found[some] += part


class _Inferred(NamedTuple):
    """One such column: its cells, what is expected of each original by each fold, and what is left."""

    cells: Floats
    expected: Floats  # fold x record
    rest: Floats  # residual of each record by its own fold; NaN where a cell is missing


@distances.once
def inferred_columns(pair: Pair) -> list[Beside]:
    """Return the published columns that follow from what the intruder knows."""
    known, n, blocks = distances.standardised(pair)[0], pair.original.n, facts_of(pair).blocks
    columns = [*np.delete(pair.masked, pair.known_variables, axis=1).T, *unmasked_unknown(pair).values()]
    if not columns or not known.shape[1] or n < PER_TERM:
        return []
    blocks = np.zeros(n, np.int64) if blocks is None else blocks
    enough = blocks.max() < min(n / PER_TERM**2, LEVELS)  # records in each block to learn from
    large = blocks if enough else np.zeros(n, np.int64)
    levels = np.eye(large.max() + 1)[large]
    folds = folds_of(n)
    classes: list[Beside] = []
    found: list[_Inferred] = []
    forms = list(_forms(np.asarray(distances.known_columns(pair, pair.original.values))))
    forms = forms if n >= PER_TERM * (levels.shape[1] + len(forms) * known.shape[1]) else forms[:1]
    design = np.nan_to_num(np.column_stack([levels, *forms]))
    for column in columns:
        values = np.unique(column[~np.isnan(column)])
        numbers = np.searchsorted(values, column)
        if number_values(distances.row_marks(blocks, numbers)).max() == blocks.max():
            continue  # the facts tell as much
        if len(values) <= CLASSES:
            classes += _class_of_a_variable(known, numbers, large, folds)
        elif n >= PER_TERM * design.shape[1]:
            each = [_inferred(design, form[:, 0], folds) for form in _forms(column[:, None])]
            best = min(each, key=_ranks_off)
            found += [best] if np.nanvar(best.rest) < 1 - FOLLOWS else []
    return [*classes, *([_joined(found, folds)] if found else [])]


def _forms(values: Floats) -> Iterator[Floats]:
    """Yield normal scores, standardised values and standardised logarithms of the sizes of some columns."""
    from scipy.special import ndtri  # noqa: PLC0415 - slow to import

    yield np.asarray(ndtri((distances.mid_ranks_of(values) - 0.5) / len(values)))
    yield distances.column_scale(values).apply(values)
    logs = np.log(np.abs(np.where(values == 0, np.nan, values)))
    yield distances.column_scale(logs).apply(logs)


def _inferred(design: Floats, cells: Floats, folds: Ints) -> _Inferred:
    """Return a column in one form, of variance 1, with what least squares on other folds expect."""
    cells = cells / max(float(np.nanstd(cells)), 1e-300) if (~np.isnan(cells)).any() else cells
    expected = np.empty((FOLDS, len(cells)))
    for number in range(FOLDS):
        some = np.flatnonzero((folds != number) & ~np.isnan(cells))
        expected[number] = design @ solved(design[some], cells[some])
    return _Inferred(cells, expected, cells - expected[folds, np.arange(len(cells))])


def _ranks_off(column: _Inferred) -> float:
    """Return how far the ranks of a column are from those of its expected cells, in the mean."""
    both = np.column_stack([column.cells, column.cells - column.rest])
    ranks = distances.mid_ranks_of(both)
    return float(np.nanmean(np.abs(ranks[:, 0] - ranks[:, 1])))


def _joined(columns: Sequence[_Inferred], folds: Ints) -> InferredColumns:
    """Return inferred columns with the law of their residuals."""
    cells = np.column_stack([one.cells for one in columns])
    rest, free = np.nan_to_num(np.column_stack([one.rest for one in columns])), ~np.isnan(cells)
    laws = []
    for number in range(FOLDS):
        own, there = rest[folds != number], free[folds != number].astype(float)
        covariance = own.T @ own / np.maximum(there.T @ there, 1) + EXACT * np.eye(len(columns))
        mean = np.column_stack([one.expected[number] for one in columns])
        laws.append(Normal(mean, np.ones_like(mean), inverse_root(covariance)))
    return InferredColumns(np.nan_to_num(cells), np.ascontiguousarray(free), folds, laws)


@dataclass(frozen=True)
class ClassColumn:
    """A column of classes that he does not know, as it follows from the rank of a known variable."""

    bins: Ints  # of the ranks of originals
    classes: Ints  # that are published
    blocks: Ints  # of what is published unmasked
    folds: Ints
    space: None = None  # classes are too large to look records up in

    @cached_property
    def tables(self) -> Floats:
        """Log share of each class in each bin and block, outside of each fold: block x fold x bin x class.

        A few records of the same bin in all blocks are added to those of each block.
        """
        size = self.blocks.max() + 1, FOLDS, self.bins.max() + 1, self.classes.max() + 1
        counts = np.zeros(size)
        np.add.at(counts, (self.blocks, self.folds, self.bins, self.classes), 1.0)
        occurs = counts.any(axis=(1, 2), keepdims=True)
        counts = counts.sum(axis=1, keepdims=True) - counts
        wide = np.pad(counts, ((0, 0), (0, 0), (1, 1), (0, 0)), mode="edge")
        counts = counts / 2 + (wide[:, :, :-2] + wide[:, :, 2:]) / 4
        whole = counts.sum(axis=0)
        whole += 0.1 * whole.sum(axis=1, keepdims=True) / len(self.bins) + 1e-6
        whole = whole * occurs
        counts += FROM_ALL * whole / whole.sum(axis=3, keepdims=True)
        return np.log(np.maximum(counts / counts.sum(axis=3, keepdims=True), 1e-9))

    def add(self, rows: Ints, originals: Ints, found: Floats) -> None:
        """Add the log share of each published class, rounded.

        Only the true original is never in its own fit: smaller differences would count against it.
        """
        found += np.round(self.told(rows, originals) / NEAR) * NEAR

    def told(self, rows: Ints, originals: Ints) -> Floats:
        """Return the log share of the published class of each row in the bin of an original."""
        return self.tables[self.blocks[rows], self.folds[rows], self.bins[originals], self.classes[rows]]


def _class_of_a_variable(known: Floats, classes: Ints, blocks: Ints, folds: Ints) -> list[Beside]:
    """Return a column of few values as it follows from the rank of the known variable that tells most.

    It is left out where bins of no variable clearly tell more about unseen records than all of them together.
    """
    every, ranks = np.arange(len(known)), distances.mid_ranks_of(known) - 0.5
    each = [np.zeros_like(classes)]
    for size in PER_BIN:
        bins = int(np.clip(len(known) // size, 1, BINS))
        each += list(np.nan_to_num(ranks * bins / len(known), nan=bins).astype(np.int64).T)
    told = [ClassColumn(bins, classes, blocks, folds).told(every, every) for bins in each]
    best = int(np.argmax([np.mean(one) for one in told]))
    gain = told[best] - told[0]
    clear = gain.mean() > CLEARLY * gain.std() / np.sqrt(len(known))
    return [ClassColumn(each[best], classes, blocks, folds)] if clear else []


# --- the order of the rows -------------------------------------------------------------------------------


@dataclass(frozen=True)
class OrderedRows:
    """Rows sorted, or nearly so, by a column: the rank of a row is near the rank of its original."""

    column: str
    by_row: Floats  # rank of each published row
    by_value: Floats  # rank of each original's value

    @property
    def space(self) -> tuple[Floats, Floats]:
        """Ranks of rows and of values, in units of their usual difference."""
        return np.nan_to_num(self.by_row / self.spread), np.nan_to_num(self.by_value / self.spread)

    @cached_property
    def spread(self) -> float:
        """Standard deviation of the difference of both ranks."""
        return max(float(np.sqrt(np.nanmean((self.by_row - self.by_value) ** 2))), SMALLEST_STEP)

    def add(self, rows: Ints, originals: Ints, found: Floats) -> None:
        """Add the normal log-density of the difference of both ranks."""
        found -= 0.5 * np.nan_to_num((self.by_row[rows] - self.by_value[originals]) / self.spread) ** 2


@distances.once
def row_orders(pair: Pair) -> list[OrderedRows]:
    """Return the columns, or the sum of columns, along which rows are sorted; none where they are shuffled.

    Rows sorted, or nearly so, by a column tell each record's rank in that column, or its rank within the
    records that are equal in the untouched columns.
    """
    if not (pair.by_position and pair.disclosure.paired):
        return []
    blocks, every = facts_of(pair).blocks, []
    for inside in [None] if blocks is None else [None, blocks]:
        found = [one for name, cells in _ordered_cells(pair) for one in _row_order(name, cells, inside)]
        total = None if found else _sum_that_rows_follow(distances.standardised(pair)[0], inside)
        every += found if total is None else _row_order("a sum of columns", total, inside)
    return every


def _ordered_cells(pair: Pair) -> Iterator[tuple[str, Floats]]:
    """Yield known columns and the key as numbers in the order of their cells, NaN where one is missing."""
    for j in pair.known_variables:
        values = pair.original.values[:, j]
        yield pair.columns[j], values if pair.complete else np.where(pair.missing[:, j], np.nan, values)
    for column in untouched_of(pair):
        gone = (column.original == -1) | (column.published == -1)
        yield column.name, np.where(gone, np.nan, column.original)
    key, table = pair.original.roles.key, pair.original.table
    if key and table is not None:
        numbers = [converted_numbers(polars_column(table.column(name)))[0] for name in key]
        yield ", ".join(key), class_numbers(numbers, pair.original.n).astype(float)


def _sum_that_rows_follow(values: Floats, blocks: Ints | None) -> Floats | None:
    """Return the weighted sum of columns whose order is nearest to that of the rows; None if none is near.

    Least squares on the sorted values of the sum itself, in turn: where rows are sorted by a sum, it stays.
    Rows may be sorted within blocks.
    """
    n, p = values.shape
    inside = np.zeros(n, np.int64) if blocks is None else blocks
    if p < 2 or n < PER_TERM * p + 2 * len(np.unique(inside)):
        return None
    sizes = np.bincount(inside)

    def centred(column: Floats) -> Floats:
        """Return a column less the mean of each block."""
        return np.asarray(column - (np.bincount(inside, column) / np.maximum(sizes, 1))[inside])

    design = np.column_stack([centred(column) for column in np.nan_to_num(values).T])
    by_row = np.lexsort((np.arange(n), inside))
    target = centred(distances.ranks_within(np.arange(n, dtype=float), inside) / sizes[inside])
    for step in range(STEPS):
        before, target = target, target / max(float(target.std()), 1e-300)
        total = design @ solved(design, target)
        if total.std() < (DOUBT / 2 if step < 5 else DOUBT):  # that of the target is 1
            return None
        target = np.empty(n)
        target[by_row] = total[np.lexsort((total, inside))]
        if step and np.abs(target - before).max() < SETTLED:
            break
    return np.asarray(total)


def _row_order(name: str, cells: Floats, blocks: Ints | None) -> list[OrderedRows]:
    """Return ranks of rows and values, within blocks if given, if they are nearly monotone, else nothing."""
    rows, every = np.arange(len(cells), dtype=float), np.zeros(len(cells), np.int64)
    if len(cells) > 2 * SAMPLE and blocks is None:
        some = slice(None, None, len(cells) // SAMPLE)
        if abs(rank_correlation(rows[some], cells[some], every[some])) < DOUBT:
            return []
    inside = every if blocks is None else blocks
    rho = rank_correlation(rows, cells, inside)
    if abs(rho) <= SORTED:
        return []
    seen = np.where(np.isnan(cells), np.nan, rows if rho > 0 else -rows)
    return [OrderedRows(name, distances.ranks_within(seen, inside), distances.ranks_within(cells, inside))]


def rank_correlation(rows: Floats, cells: Floats, blocks: Ints) -> float:
    """Return Spearman's correlation of row numbers and cells within blocks, pooled over the blocks."""
    seen = ~np.isnan(cells)
    ranks = [distances.ranks_within(values[seen], blocks[seen]) for values in (rows, cells)]
    a, b = (one - (np.bincount(blocks[seen])[blocks[seen]] - 1) / 2 for one in ranks)  # less the mean rank
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 0 else 0.0
