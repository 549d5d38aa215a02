"""Masked records changed as little as possible so that edit rules hold again, on the grid of their decimals.

Columns that share a rule form a block; a record's cells of one block are repaired together. Blocks with one
sum, or with sums that need no repair at the same time, take one pass of plain arithmetic; the rest is solved
as an integer programme, once for each different record.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, floor, inf
from typing import TYPE_CHECKING

import numpy as np

from sdckit.core.table import decimals_of, round_column
from sdckit.kernels.jit import kernel
from sdckit.kernels.scaling import spread
from sdckit.rules import repair_milp

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from sdckit.kernels.jit import Bools, Floats, Ints
    from sdckit.rules import Rules
    from sdckit.rules.parse import Rule

LARGEST = 2.0**53 / 64  # sums of so large whole numbers are still exact
STEADY = 1e-6  # share of a block's largest spread below which no spread counts


def repaired(rules: Rules, values: Floats, places: Sequence[int] | None, free: Bools) -> Floats:
    """The records with the smallest change that makes all rules hold.

    The smallest change is the least sum over a record's cells of |change| / spread, where spread is the
    standard deviation (ddof 1) of the column in `values`. So what a total misses goes, as a rule, into the
    one column that varies most, mostly the total; a value beyond its bound goes to the bound. A record that
    breaks no rule is not touched, equal records stay equal, and all is deterministic: of several smallest
    changes, one is taken that depends on the record alone.

    Parameters
    ----------
    rules
        The rules; `values` has one column for each of `rules.columns`.
    values
        Masked data, rounded if `places` says so; NaN cells are missing. A rule with a missing cell is no
        rule for its record.
    places
        Decimals of each column. Changed cells keep to them, and sums then hold in decimal arithmetic, as
        anybody finds who reads the file. None does not round: sums hold as floating-point sums of the cells.
    free
        Which columns may change; the others keep their values, and rules on them alone are left as they are.

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
    if places is not None:  # what must stay may show more decimals than what is masked
        digits = [d if f else decimals_of(c) for d, f, c in zip(places, free, values.T, strict=True)]
    spreads = spread(values)
    for block in blocks_of(rules, free, spreads, digits):
        cells = np.ascontiguousarray(found[:, block.columns])
        found[:, block.columns] = block.repaired(cells)
    return found


@dataclass(frozen=True)
class Block:
    """Columns that share rules, and how their cells are counted: in steps of the finest decimals."""

    columns: Ints  # of the matrix
    free: Bools
    costs: Floats  # of a change by 1
    rules: tuple[Rule, ...]  # those with a column that is free
    places: tuple[tuple[int, ...], ...]  # the columns of each rule, within the block
    digits: tuple[int, ...] | None

    @cached_property
    def steps(self) -> Floats:
        """The step of each column's grid in the finest one; 0 where there is no grid."""
        if self.digits is None:
            return np.zeros(len(self.columns))
        return np.array([10.0 ** (max(self.digits) - digits) for digits in self.digits])

    @cached_property
    def unit(self) -> int:
        """How many steps of the finest grid make 1."""
        return 1 if self.digits is None else 10 ** max(self.digits)

    @cached_property
    def unrounded(self) -> Block:
        """The same without a grid."""
        return Block(self.columns, self.free, self.costs, self.rules, self.places, None)

    @cached_property
    def bounds(self) -> Floats:
        """The lowest and the highest value of each free column, on its grid."""
        found = np.array([[-inf], [inf]]) * np.ones(len(self.columns))
        for rule, (j, *others) in zip(self.rules, self.places, strict=True):
            if others or not self.free[j]:
                continue
            factor = rule.terms[0][1]
            bound = rule.constant * factor * self.unit
            if rule.equality or factor < 0:
                found[0, j] = max(found[0, j], _on_grid(bound, self.steps[j], up=True))
            if rule.equality or factor > 0:
                found[1, j] = min(found[1, j], _on_grid(bound, self.steps[j], up=False))
        return found

    @cached_property
    def sums(self) -> list[Sum]:
        """The rules on several columns."""
        return [
            Sum(self, rule, np.array(places))
            for rule, places in zip(self.rules, self.places, strict=True)
            if len(places) > 1
        ]

    def broken(self, cells: Floats) -> Bools:
        """Which records break a rule."""
        found = np.zeros(len(cells), np.bool_)
        for rule, places in zip(self.rules, self.places, strict=True):
            found |= rule.broken([cells[:, j] for j in places])
        return found

    def repaired(self, cells: Floats) -> Floats:
        """Records that satisfy the rules."""
        found = cells.copy()
        if self.digits is None:
            rows = np.flatnonzero(self.broken(cells))
            found[rows] = self._settled(cells[rows])
            return found
        tens = 10.0 ** np.array(self.digits)
        counted = np.rint(cells * tens) * self.steps
        large = (np.abs(counted) > LARGEST).any(axis=1)
        rows = np.flatnonzero(~large & self._missed(counted))
        changed = self._settled(counted[rows]) / self.steps / tens
        found[rows] = np.where(self.free, changed, cells[rows])
        if large.any():
            found[large] = self._repaired_large(cells[large])
        return found

    def _repaired_large(self, cells: Floats) -> Floats:
        """Records too large to be counted; missing where rounding would break a rule again."""
        assert self.digits is not None  # noqa: S101 - without a grid nothing is counted
        found = self.unrounded.repaired(cells)
        touched = (found != cells) & ~np.isnan(found)
        for j, digits in enumerate(self.digits):
            found[touched[:, j], j] = round_column(found[touched[:, j], j], digits)
        found[np.ix_(self.broken(found), self.free)] = np.nan
        return found

    def _missed(self, cells: Floats) -> Bools:
        """Which records break a rule, counted in steps of the finest grid."""
        low, high = self.bounds
        found = np.zeros(len(cells), np.bool_)
        for j in np.flatnonzero(self.free):
            found |= (cells[:, j] < low[j]) | (cells[:, j] > high[j])
        for total in self.sums:
            found |= total.missed(cells)
        return found

    def _settled(self, cells: Floats) -> Floats:
        """Records, counted in steps of the finest grid, that satisfy all rules."""
        low, high = self.bounds
        clipped = np.where(self.free, np.clip(cells, low, high), cells)
        left = np.arange(len(cells))
        found = clipped.copy()
        for family in self.families:
            tried = clipped[left]
            done = np.ones(left.size, np.bool_)
            for total in family:
                done &= total.settle(tried)
            for total in self.sums if len(family) < len(self.sums) else ():
                done &= ~total.missed(tried)
            found[left[done]] = tried[done]
            left = left[~done]
            if not left.size:
                break
        if left.size and self.hard:
            found[left] = repair_milp.solved(self, cells[left])
        elif left.size:
            found[np.ix_(left, np.flatnonzero(self.free))] = np.nan
        empty = low > high  # no value of the grid lies between the bounds
        found[:, empty & self.free] = np.nan
        return found

    @cached_property
    def hard(self) -> bool:
        """True where records may be left that plain arithmetic does not settle."""
        return len(self.sums) > 1 or any(not total.plain for total in self.sums)

    @cached_property
    def families(self) -> list[list[Sum]]:
        """No sum at all, then sums without a common column, beginning with each sum in turn.

        If their smallest repair satisfies all other rules, too, then no smaller one does.
        """
        found: list[list[Sum]] = [[]]
        for first in self.sums:
            family: list[Sum] = []
            for total in (first, *self.sums):
                taken = {j for other in family for j in other.places}
                if total.plain and taken.isdisjoint(total.places):
                    family.append(total)
            if not any({*map(id, family)} == {*map(id, other)} for other in found):
                found.append(family)
        return found


@dataclass(frozen=True)
class Sum:
    """A rule on several columns of a block."""

    block: Block
    rule: Rule
    places: Ints

    @cached_property
    def factors(self) -> Floats:
        """The factor of each column."""
        return np.array([float(factor) for _, factor in self.rule.terms])

    @cached_property
    def constant(self) -> float:
        """The constant in steps of the finest grid; an upper bound that lies between two is the lower one."""
        constant = self.rule.constant * self.block.unit
        if self.block.digits is not None and not self.rule.equality:
            return float(floor(constant))
        return float(constant)

    @cached_property
    def plain(self) -> bool:
        """True where any free column can take what the sum misses."""
        free = self.block.free[self.places]
        steps = self.block.steps[self.places][free]
        return self.block.digits is None or bool(
            (np.abs(self.factors[free]) == 1).all() and (steps == steps[:1]).all()
        )

    def missed(self, cells: Floats) -> Bools:
        """Which records break it."""
        chosen = cells[:, self.places]
        if self.block.digits is None:
            return self.rule.broken(list(chosen.T))
        rest = chosen @ self.factors - self.constant
        return np.asarray(rest != 0 if self.rule.equality else rest > 0) & ~np.isnan(rest)

    def settle(self, cells: Floats) -> Bools:
        """Change cells in place so that it holds, the cheapest first; False where that is impossible."""
        costs = self.block.costs[self.places] / np.abs(self.factors)
        free = self.block.free[self.places]
        order = np.argsort(costs, kind="stable")
        order = order[free[order]]
        step = self.block.steps[self.places][order[0]]
        low, high = self.block.bounds
        chosen = cells[:, self.places]
        subject = self.block.digits is None and bool(free[0])
        needed = self.missed(cells)
        _settle(chosen, needed, self.factors, self.constant, order, low[self.places], high[self.places], step)
        if subject:
            _recompute(chosen, needed, self.factors, self.constant, low[self.places[0]], high[self.places[0]])
        cells[:, self.places] = chosen
        return ~self.missed(cells)


@kernel
def _settle(
    cells: Floats,
    needed: Bools,
    factors: Floats,
    constant: float,
    order: Ints,
    low: Floats,
    high: Floats,
    step: float,
) -> None:
    """Solve for one column after the other until one of them can take what is left within its bounds."""
    for i in range(len(cells)):
        if not needed[i]:
            continue
        for j in order:
            others = 0.0
            for m in range(len(factors)):
                others += factors[m] * cells[i, m] if m != j else 0.0
            wanted = (constant - others) / factors[j]
            if step > 0:  # an inequality may have to go beyond its bound to stay on the grid
                wanted = step * (np.floor(wanted / step) if factors[j] > 0 else np.ceil(wanted / step))
            cells[i, j] = min(max(wanted, low[j]), high[j])
            if cells[i, j] == wanted:
                break


@kernel
def _recompute(
    cells: Floats, needed: Bools, factors: Floats, constant: float, low: float, high: float
) -> None:
    """The rule's subject as the floating-point sum of the rest: the same to the last bit."""
    for i in range(len(cells)):
        if needed[i]:
            others = 0.0
            for m in range(1, len(factors)):
                others += factors[m] * cells[i, m]
            wanted = (constant - others) / factors[0]
            if low <= wanted <= high:
                cells[i, 0] = wanted


def _on_grid(bound: Fraction, step: float, *, up: bool) -> float:
    """The bound, or the grid's next value within it."""
    if step == 0:
        return float(bound)
    steps = bound / int(step)
    return float(ceil(steps) if up else floor(steps)) * step


def blocks_of(rules: Rules, free: Bools, spreads: Floats, digits: Sequence[int] | None) -> list[Block]:
    """The blocks of columns that share rules; rules without a free column can change nothing."""
    place = {name: j for j, name in enumerate(rules.columns)}
    known = [(rule, tuple(place[name] for name in rule.columns)) for rule in rules.rules]
    known = [(rule, places) for rule, places in known if any(free[j] for j in places)]
    groups: list[set[int]] = []
    for _, places in known:
        joined = set(places).union(*(group for group in groups if group & set(places)))
        groups = [group for group in groups if not group & joined] + [joined]
    found = []
    for group in sorted(groups, key=min):
        columns = sorted(group)
        mine = [
            (rule, tuple(columns.index(j) for j in places)) for rule, places in known if places[0] in group
        ]
        found.append(
            Block(
                np.array(columns),
                free[columns],
                _costs(spreads[columns]),
                tuple(rule for rule, _ in mine),
                tuple(places for _, places in mine),
                None if digits is None else tuple(digits[j] for j in columns),
            )
        )
    return found


def _costs(spreads: Floats) -> Floats:
    """What a change by 1 costs in each column."""
    largest = float(spreads.max())
    if not 0 < largest < inf:
        return np.ones(len(spreads))
    least = spreads[spreads > 0].min()
    return 1.0 / np.maximum(np.where(spreads > 0, spreads, least), STEADY * largest)
