"""Row order as a distance: rows sorted, or nearly so, by a column tell each record's rank in that column."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.core.classes import class_numbers, number_values
from sdckit.core.converted_cells import converted_numbers, polars_column
from sdckit.risk.distances import cached_value
from sdckit.risk.facts import facts_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sdckit.kernels.jit import Floats, Ints
    from sdckit.metrics.pair import Pair
    from sdckit.risk.untouched import UntouchedColumn

SORTED = 0.95  # absolute rank correlation with the row number above which rows count as sorted
DOUBT = 0.8  # a sample of rows with less shows that rows are not sorted
SAMPLE = 2_000  # rows in that sample


class RowOrder(NamedTuple):
    """A column that rows follow: rank of each published row, and rank of each original's value."""

    column: str
    in_blocks: bool  # ranks within blocks of equal untouched columns
    by_row: Floats
    by_value: Floats


def row_orders(pair: Pair) -> list[RowOrder]:
    """Return the columns along which the rows of a file are sorted; none where rows were shuffled."""

    def find() -> list[RowOrder]:
        """Return the columns along which the rows are sorted."""
        blocks = facts_of(pair).blocks
        every = np.zeros(pair.original.n, np.int64)
        found = []
        for name, cells in _ordered_cells(pair):
            found.append(_row_order(name, cells, every, in_blocks=False))
            if blocks is not None:
                found.append(_row_order(name, cells, blocks, in_blocks=True))
        return [one for one in found if one is not None]

    if not (pair.by_position and pair.disclosure.paired):
        return []
    orders: list[RowOrder] = cached_value(pair.cache, "row orders", find)
    return orders


def _ordered_cells(pair: Pair) -> Iterator[tuple[str, Floats]]:
    """Yield known columns and the key as numbers in the order of their cells, NaN where one is missing."""
    for j in pair.known_variables:
        values = pair.original.values[:, j]
        yield pair.columns[j], values if pair.complete else np.where(pair.missing[:, j], np.nan, values)
    facts_of(pair)  # reads the untouched columns
    untouched: list[UntouchedColumn] = pair.cache.get("risk: untouched", [])
    for column in untouched:
        gone = (column.original == -1) | (column.published == -1)
        yield column.name, np.where(gone, np.nan, column.original)
    table = pair.original.table
    if pair.original.roles.key and table is not None:
        numbers = [
            converted_numbers(polars_column(table.column(name)))[0] for name in pair.original.roles.key
        ]
        yield ", ".join(pair.original.roles.key), class_numbers(numbers, pair.original.n).astype(float)


def _row_order(name: str, cells: Floats, blocks: Ints, *, in_blocks: bool) -> RowOrder | None:
    """Return ranks of rows and values within blocks if they are nearly monotone, else None."""
    rows = np.arange(len(cells), dtype=float)
    if len(cells) > 2 * SAMPLE and not in_blocks:
        some = slice(None, None, len(cells) // SAMPLE)
        if abs(rank_correlation(rows[some], cells[some], blocks[some])) < DOUBT:
            return None
    rho = rank_correlation(rows, cells, blocks)
    if abs(rho) <= SORTED:
        return None
    seen = np.where(np.isnan(cells), np.nan, rows if rho > 0 else -rows)
    return RowOrder(name, in_blocks, ranks_within(seen, blocks), ranks_within(cells, blocks))


def rank_correlation(rows: Floats, cells: Floats, blocks: Ints) -> float:
    """Return Spearman's correlation of row numbers and cells within blocks, pooled over the blocks."""
    by_row = ranks_within(np.where(np.isnan(cells), np.nan, rows), blocks)
    a, b = (_centred(ranks, blocks) for ranks in (by_row, ranks_within(cells, blocks)))
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 0 else 0.0


def _centred(ranks: Floats, blocks: Ints) -> Floats:
    """Return the ranks that are not NaN, less the mean of their block."""
    seen = ~np.isnan(ranks)
    numbers = number_values(blocks[seen]) if seen.any() else blocks[seen]
    means = np.bincount(numbers, weights=ranks[seen]) / np.maximum(np.bincount(numbers), 1)
    return np.asarray(ranks[seen] - means[numbers])


def ranks_within(values: Floats, blocks: Ints) -> Floats:
    """Return mid-ranks from 0 of the values within their block; NaN stays NaN."""
    seen = np.flatnonzero(~np.isnan(values))
    order = seen[np.lexsort((values[seen], blocks[seen]))]
    found = np.full(len(values), np.nan)
    if not order.size:
        return found
    v, b = values[order], blocks[order]
    new_block = np.r_[True, b[1:] != b[:-1]]
    new_value = new_block | np.r_[True, v[1:] != v[:-1]]
    first = np.flatnonzero(new_value)
    last = np.r_[first[1:], len(v)] - 1
    starts = np.flatnonzero(new_block)[np.cumsum(new_block) - 1]
    found[order] = ((first + last) / 2)[np.cumsum(new_value) - 1] - starts
    return found
