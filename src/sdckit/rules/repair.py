"""Repair of masked records: the smallest change, on the grid of decimals, that makes edit rules hold.

Columns that share a rule form a block; a record's cells of one block are repaired together. Blocks with one
sum, or with sums that need no repair at the same time, take one pass of plain arithmetic; the rest is solved
as an integer programme, once for each different record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sdckit.core.table import decimals_of, round_column
from sdckit.kernels.scaling import spread
from sdckit.rules import repair_milp
from sdckit.rules.blocks import blocks_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.kernels.jit import Bools, Floats
    from sdckit.rules.blocks import Block
    from sdckit.rules.parse import Rule

LARGEST = 2.0**53 / 64  # sums of whole numbers up to this size are exact


def repaired(
    columns: Sequence[str],
    rules: Sequence[Rule],
    values: Floats,
    decimals: Sequence[int] | None,
    free: Bools,
    spreads: Floats | None = None,
) -> Floats:
    """Return the records with the smallest changes that make all edit rules hold.

    The smallest change is the least sum over a record's cells of |change| / spread, where spread is the
    standard deviation (ddof 1) of the column in `values`. So what a total misses goes, as a rule, into the
    one column that varies most, mostly the total; a value beyond its bound goes to the bound. A record that
    breaks no rule is not touched, equal records stay equal, and all is deterministic: of several smallest
    changes, one is taken that depends on the record alone.

    Parameters
    ----------
    columns
        The names of the columns of `values`.
    rules
        The edit rules that every record must satisfy.
    values
        Masked data, rounded if `decimals` says so; NaN cells are missing. A rule with a missing cell is no
        rule for its record.
    decimals
        Decimals of each column. Changed cells keep to them, and sums then hold in decimal arithmetic on the
        written file. None does not round: sums hold as floating-point sums of the cells.
    free
        Which columns may change; the others keep their values, and rules on them alone are left as they are.
    spreads
        Spread of each column in the whole file, where `values` are a part of it; `decimals` are then those of
        the whole file, too.

    Returns
    -------
    numpy.ndarray
        A new matrix. Where no values of the free columns satisfy the rules, with the others as they are,
        the free cells in question are missing: a gap rather than a published violation.

    Notes
    -----
    Numbers so large that their grid exceeds the precision of floating-point numbers (2**47 steps) are
    repaired as if they were not rounded. A column without spread counts like the least varying one of its
    block that has one; spreads below 1e-6 of the block's largest count as that.

    Examples
    --------
    >>> import numpy as np
    >>> from sdckit.rules import rules_of
    >>> table = np.array([[5.0, 2.0, 3.0], [9.0, 4.0, 4.0], [3.0, -2.0, 4.0]])
    >>> rules = rules_of(["total = a + b", "a >= 0"], ["total", "a", "b"], table)
    >>> print(rules.repaired(table, [0, 0, 0], [True, True, True]))
    [[5. 2. 3.]
     [8. 4. 4.]
     [4. 0. 4.]]
    """
    found = np.array(values, np.float64, order="F")
    digits = None
    if decimals is not None and spreads is not None:
        digits = list(decimals)
    elif decimals is not None:  # columns that must stay may show more decimals than masked ones
        digits = [d if f else decimals_of(c) for d, f, c in zip(decimals, free, values.T, strict=True)]
    units = spread(values) if spreads is None else spreads
    for block in blocks_of(columns, rules, free, units, digits):
        cells = np.ascontiguousarray(found[:, block.columns])
        found[:, block.columns] = repair_block(block, cells)
    return found


def repair_block(block: Block, cells: Floats) -> Floats:
    """Return the cells of a block of columns with every record repaired to satisfy the block's rules."""
    found = cells.copy()
    if block.digits is None:
        rows = np.flatnonzero(block.broken(cells))
        found[rows] = _repaired_records(block, cells[rows])
        return found
    tens = 10.0 ** np.array(block.digits)
    counted = np.rint(cells * tens) * block.steps
    large = (np.abs(counted) > LARGEST).any(axis=1)
    rows = np.flatnonzero(~large & block.broken_on_grid(counted))
    changed = _repaired_records(block, counted[rows]) / block.steps / tens
    found[rows] = np.where(block.free, changed, cells[rows])
    if large.any():
        found[large] = _repaired_large(block, cells[large])
    return found


def _repaired_large(block: Block, cells: Floats) -> Floats:
    """Return records with numbers too large for exact grids repaired; cells that break a rule become NaN."""
    assert block.digits is not None  # noqa: S101 - without rounding no number is too large
    found = repair_block(block.unrounded, cells)
    touched = (found != cells) & ~np.isnan(found)
    for j, digits in enumerate(block.digits):
        found[touched[:, j], j] = round_column(found[touched[:, j], j], digits)
    found[np.ix_(block.broken(found), block.free)] = np.nan
    return found


def _repaired_records(block: Block, cells: Floats) -> Floats:
    """Return records that break a rule of the block repaired, with cells counted in grid steps."""
    low, high = block.bounds
    clipped = np.where(block.free, np.clip(cells, low, high), cells)
    left = np.arange(len(cells))
    found = clipped.copy()
    for chosen_sums in block.disjoint_sums:
        tried = clipped[left]
        done = np.ones(left.size, np.bool_)
        for total in chosen_sums:
            total.repair_in_place(tried)
        for total in block.sums:
            done &= ~total.broken(tried)
        found[left[done]] = tried[done]
        left = left[~done]
        if not left.size:
            break
    if left.size and block.may_need_solver:
        found[left] = repair_milp.solved(block, cells[left])
    elif left.size:
        found[np.ix_(left, np.flatnonzero(block.free))] = np.nan
    empty = low > high  # no value of the grid lies between the bounds
    found[:, empty & block.free] = np.nan
    return found
