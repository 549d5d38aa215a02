"""Blocks of columns that share edit rules: their bounds, their sums, and which records break them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, floor, inf
from typing import TYPE_CHECKING

import numpy as np

from sdckit.kernels.jit import kernel

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from sdckit.kernels.jit import Bools, Floats, Ints
    from sdckit.rules.parse import Rule

STEADY = 1e-6  # spreads below this share of the block's largest one are raised to it


@dataclass(frozen=True)
class Block:
    """Columns linked by common edit rules, which of them may change, and at what cost."""

    columns: Ints  # numbers of the block's columns in the whole matrix
    free: Bools  # whether each column may change
    costs: Floats  # cost of a change by 1 in each column
    rules: tuple[Rule, ...]  # the rules with at least one free column
    column_numbers: tuple[tuple[int, ...], ...]  # the columns of each rule, numbered within the block
    digits: tuple[int, ...] | None  # decimals of each column; None without rounding

    @cached_property
    def steps(self) -> Floats:
        """Step between allowed values of each column, in steps of the finest column; 0 without rounding."""
        if self.digits is None:
            return np.zeros(len(self.columns))
        return np.array([10.0 ** (max(self.digits) - digits) for digits in self.digits])

    @cached_property
    def unit(self) -> int:
        """Number of steps of the finest column's decimals that make 1: 100 for two decimals."""
        return 1 if self.digits is None else 10 ** max(self.digits)

    @cached_property
    def unrounded(self) -> Block:
        """Copy of the block whose columns are not rounded to decimals."""
        return Block(self.columns, self.free, self.costs, self.rules, self.column_numbers, None)

    @cached_property
    def bounds(self) -> Floats:
        """Lowest and highest value that the rules allow in each column to repair, rounded to its decimals."""
        found = np.array([[-inf], [inf]]) * np.ones(len(self.columns))
        for rule, (j, *others) in zip(self.rules, self.column_numbers, strict=True):
            if others or not self.free[j]:
                continue
            factor = rule.terms[0][1]
            bound = rule.constant * factor * self.unit
            if rule.equality or factor < 0:
                found[0, j] = max(found[0, j], _on_grid(bound, self.steps[j], up=True))
            if factor > 0:  # the factor of an equality is 1, see `rule_of`
                found[1, j] = min(found[1, j], _on_grid(bound, self.steps[j], up=False))
        return found

    @cached_property
    def sums(self) -> list[SumRule]:
        """The rules of the block that name several columns."""
        return [
            SumRule(self, rule, np.array(column_numbers))
            for rule, column_numbers in zip(self.rules, self.column_numbers, strict=True)
            if len(column_numbers) > 1
        ]

    def broken(self, cells: Floats) -> Bools:
        """Return which records break any rule of the block, given their cells in the data's own units."""
        found = np.zeros(len(cells), np.bool_)
        for rule, column_numbers in zip(self.rules, self.column_numbers, strict=True):
            found |= rule.broken([cells[:, j] for j in column_numbers])
        return found

    def broken_on_grid(self, cells: Floats) -> Bools:
        """Return which records break any rule of the block, with cells counted in grid steps (`unit`)."""
        low, high = self.bounds
        found = np.zeros(len(cells), np.bool_)
        for j in np.flatnonzero(self.free):
            found |= (cells[:, j] < low[j]) | (cells[:, j] > high[j])
        for total in self.sums:
            found |= total.broken(cells)
        return found

    @cached_property
    def may_need_solver(self) -> bool:
        """True if repairing records by the sum rules of this block may need the mixed-integer solver."""
        return len(self.sums) > 1 or any(not total.any_column_absorbs for total in self.sums)

    @cached_property
    def disjoint_sums(self) -> list[list[SumRule]]:
        """Lists of sum rules without a common column, which can be repaired one by one; first the empty list.

        Opposite bounds of the same sum are repaired one by one, too: no record breaks both. If the smallest
        repair of such a list satisfies all other rules, too, then no smaller repair does.
        """
        found: list[list[SumRule]] = [[]]
        for first in self.sums:
            disjoint: list[SumRule] = []
            for total in (first, *self.sums):
                others = [other for other in disjoint if not total.is_opposite(other)]
                taken = {j for other in others for j in other.column_numbers}
                if total.any_column_absorbs and taken.isdisjoint(total.column_numbers):
                    disjoint.append(total)
            if not any({*map(id, disjoint)} == {*map(id, other)} for other in found):
                found.append(disjoint)
        return found


@dataclass(frozen=True)
class SumRule:
    """An edit rule on several columns of a block, such as total = a + b."""

    block: Block
    rule: Rule
    column_numbers: Ints

    def is_opposite(self, other: SumRule) -> bool:
        """Return True if this rule bounds the same sum as the other one, from the other side."""
        return sorted(self.rule.terms) == sorted((name, -factor) for name, factor in other.rule.terms)

    @cached_property
    def factors(self) -> Floats:
        """Factor of each column in the rule's sum."""
        return np.array([float(factor) for _, factor in self.rule.terms])

    @cached_property
    def constant(self) -> float:
        """Constant of the rule in grid steps; an upper bound is rounded down to a whole step."""
        constant = self.rule.constant * self.block.unit
        if self.block.digits is not None and not self.rule.equality:
            return float(floor(constant))
        return float(constant)

    @cached_property
    def any_column_absorbs(self) -> bool:
        """True if any free column alone can take up the whole amount by which a record misses the sum."""
        free = self.block.free[self.column_numbers]
        steps = self.block.steps[self.column_numbers][free]
        return self.block.digits is None or bool(
            (np.abs(self.factors[free]) == 1).all() and (steps == steps[:1]).all()
        )

    def broken(self, cells: Floats) -> Bools:
        """Return which records break this rule, with cells counted in grid steps if there is a grid."""
        chosen = cells[:, self.column_numbers]
        if self.block.digits is None:
            return self.rule.broken(list(chosen.T))
        rest = chosen @ self.factors - self.constant
        return np.asarray(rest != 0 if self.rule.equality else rest > 0) & ~np.isnan(rest)

    def repair_in_place(self, cells: Floats) -> None:
        """Change cells in place until the sum holds, as far as bounds allow, cheapest column first."""
        costs = self.block.costs[self.column_numbers] / np.abs(self.factors)
        free = self.block.free[self.column_numbers]
        order = np.argsort(costs, kind="stable")
        order = order[free[order]]
        step = self.block.steps[self.column_numbers][order[0]]
        low, high = self.block.bounds
        chosen = cells[:, self.column_numbers]
        subject = self.block.digits is None and bool(free[0])
        needed = self.broken(cells)
        _solve_for_columns(
            chosen,
            needed,
            self.factors,
            self.constant,
            order,
            low[self.column_numbers],
            high[self.column_numbers],
            step,
        )
        if subject:
            _recompute_subject(
                chosen,
                needed,
                self.factors,
                self.constant,
                low[self.column_numbers[0]],
                high[self.column_numbers[0]],
            )
        cells[:, self.column_numbers] = chosen


@kernel
def _solve_for_columns(
    cells: Floats,
    needed: Bools,
    factors: Floats,
    constant: float,
    order: Ints,
    low: Floats,
    high: Floats,
    step: float,
) -> None:
    """Change needed records in place: solve the sum for one column after another, within their bounds."""
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
def _recompute_subject(
    cells: Floats, needed: Bools, factors: Floats, constant: float, low: float, high: float
) -> None:
    """Set the rule's first column, in place, to the floating-point sum of the other terms."""
    for i in range(len(cells)):
        if needed[i]:
            others = 0.0
            for m in range(1, len(factors)):
                others += factors[m] * cells[i, m]
            wanted = (constant - others) / factors[0]
            if low <= wanted <= high:
                cells[i, 0] = wanted


def _on_grid(bound: Fraction, step: float, *, up: bool) -> float:
    """Return the bound rounded to a multiple of `step`, up or down so that it stays satisfied."""
    if step == 0:
        return float(bound)
    steps = bound / int(step)
    return float(ceil(steps) if up else floor(steps)) * step


def blocks_of(
    columns: Sequence[str],
    rules: Sequence[Rule],
    free: Bools,
    spreads: Floats,
    digits: Sequence[int] | None,
) -> list[Block]:
    """Return the blocks of columns that share rules; rules without a free column are left out."""
    place = {name: j for j, name in enumerate(columns)}
    halves = [half for rule in rules for half in rule.halves]
    known = [(rule, tuple(place[name] for name in rule.columns)) for rule in halves]
    known = [(rule, column_numbers) for rule, column_numbers in known if any(free[j] for j in column_numbers)]
    groups: list[set[int]] = []
    for _, column_numbers in known:
        joined = set(column_numbers).union(*(group for group in groups if group & set(column_numbers)))
        groups = [group for group in groups if not group & joined] + [joined]
    found = []
    for group in sorted(groups, key=min):
        inside = sorted(group)
        mine = [
            (rule, tuple(inside.index(j) for j in column_numbers))
            for rule, column_numbers in known
            if column_numbers[0] in group
        ]
        found.append(
            Block(
                np.array(inside),
                free[inside],
                _costs(spreads[inside]),
                tuple(rule for rule, _ in mine),
                tuple(column_numbers for _, column_numbers in mine),
                None if digits is None else tuple(digits[j] for j in inside),
            )
        )
    return found


def _costs(spreads: Floats) -> Floats:
    """Return the cost of a change by 1 in each column: the inverse of its standard deviation."""
    largest = float(spreads.max())
    if not 0 < largest < inf:
        return np.ones(len(spreads))
    least = spreads[spreads > 0].min()
    return 1.0 / np.maximum(np.where(spreads > 0, spreads, least), STEADY * largest)
