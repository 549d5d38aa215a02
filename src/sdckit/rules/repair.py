"""Repair of masked records: the smallest change, on the grid of decimals, that makes edit rules hold.

Columns that share a rule form a block; a record's cells of one block are repaired together. Blocks with one
sum, or with sums that need no repair at the same time, take one pass of plain arithmetic. For the rest, all
vertices of the linear programme are tried where they are few; else it is solved as an integer programme, once
for each different record.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import ceil, floor, inf
from typing import TYPE_CHECKING

import numpy as np

from sdckit.core.table import decimals_of, round_column
from sdckit.kernels.jit import inner, kernel
from sdckit.kernels.sums import spread
from sdckit.progress import track

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sdckit.arrays import Bools, Floats, Ints
    from sdckit.rules.parse import Rule

LARGEST = 2.0**53 / 64  # sums of whole numbers up to this size are exact
STEADY = 1e-6  # spreads below this share of the block's largest one are raised to it
MOST = 2_000  # most vertices that are tried; with more, a solver is quicker
LENIENT = 1e-3  # of a grid step: rounding error up to which a vertex still bounds the cost from below
EQUAL = 1e-12  # costs that differ by less, relatively, are equal
ROUNDS = 3  # most calls of the solver: a solution that misses by its tolerance starts the next call


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
    >>> from sdckit.rules.rules import rules_of
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
    if large.any():  # numbers too large for exact grids; where rounding then breaks a rule, a gap
        exact = cells[large]
        loose = repair_block(replace(block, digits=None), exact)
        touched = (loose != exact) & ~np.isnan(loose)
        for j, digits in enumerate(block.digits):
            loose[touched[:, j], j] = round_column(loose[touched[:, j], j], digits)
        loose[np.ix_(block.broken(loose), block.free)] = np.nan
        found[large] = loose
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
        found[left] = solved(block, cells[left])
    elif left.size:
        found[np.ix_(left, np.flatnonzero(block.free))] = np.nan
    empty = low > high  # no value of the grid lies between the bounds
    found[:, empty & block.free] = np.nan
    return found


# --- blocks of columns and their sums ---


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
    found = []
    for group in joined_sets(set(column_numbers) for _, column_numbers in known):
        inside = sorted(group)
        mine = tuple(
            (rule, tuple(inside.index(j) for j in column_numbers))
            for rule, column_numbers in known
            if column_numbers[0] in group
        )
        decimals = None if digits is None else tuple(digits[j] for j in inside)
        found.append(Block(np.array(inside), free[inside], _costs(spreads[inside]), mine, decimals))
    return found


def _costs(spreads: Floats) -> Floats:
    """Return the cost of a change by 1 in each column: the inverse of its standard deviation."""
    largest = float(spreads.max())
    if not 0 < largest < inf:
        return np.ones(len(spreads))
    least = spreads[spreads > 0].min()
    return 1.0 / np.maximum(np.where(spreads > 0, spreads, least), STEADY * largest)


@dataclass(frozen=True)
class Block:
    """Columns linked by common edit rules, which of them may change, and at what cost."""

    columns: Ints  # numbers of the block's columns in the whole matrix
    free: Bools  # whether each column may change
    costs: Floats  # cost of a change by 1 in each column
    rules: tuple[tuple[Rule, tuple[int, ...]], ...]  # with a free column; their columns within the block
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
    def bounds(self) -> Floats:
        """Lowest and highest value that the rules allow in each column to repair, rounded to its decimals."""
        found = np.array([[-inf], [inf]]) * np.ones(len(self.columns))
        for rule, (j, *others) in self.rules:
            if not others and self.free[j]:
                low, high = (None if bound is None else bound * self.unit for bound in rule.bounds)
                step = Fraction(self.steps[j]) or None
                found[0, j] = max(found[0, j], on_grid(low, step, up=True))
                found[1, j] = min(found[1, j], on_grid(high, step, up=False))
        return found

    @cached_property
    def sums(self) -> list[SumRule]:
        """The rules of the block that name several columns."""
        return [SumRule(self, rule, np.array(numbers)) for rule, numbers in self.rules if len(numbers) > 1]

    def broken(self, cells: Floats) -> Bools:
        """Return which records break any rule of the block, given their cells in the data's own units."""
        found = np.zeros(len(cells), np.bool_)
        for rule, column_numbers in self.rules:
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
        low, high = self.block.bounds[:, self.column_numbers]
        chosen = cells[:, self.column_numbers]
        subject = self.block.digits is None and bool(free[0])
        _solve_for_columns(
            chosen, self.broken(cells), self.factors, self.constant, order, low, high, step, subject
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
    subject: bool,  # noqa: FBT001 - kernels take no keywords
) -> None:
    """Change needed records in place: solve the sum for one column after another, within their bounds.

    If `subject`, the rule's first column is at last set to the floating-point sum of the other terms.
    """
    for i in range(len(cells)):
        if not needed[i]:
            continue
        for j in order:
            wanted = (constant - _others(cells[i], factors, j)) / factors[j]
            if step > 0:  # an inequality may have to go beyond its bound to stay on the grid
                wanted = step * (np.floor(wanted / step) if factors[j] > 0 else np.ceil(wanted / step))
            cells[i, j] = min(max(wanted, low[j]), high[j])
            if cells[i, j] == wanted:
                break
        wanted = (constant - _others(cells[i], factors, 0)) / factors[0]
        if subject and low[0] <= wanted <= high[0]:
            cells[i, 0] = wanted


@inner
def _others(record: Floats, factors: Floats, j: int) -> float:
    """Return the sum of all terms but the one of column j."""
    found = 0.0
    for m in range(len(factors)):
        found += factors[m] * record[m] if m != j else 0.0
    return found


def on_grid(bound: Fraction | None, step: Fraction | None, *, up: bool) -> float:
    """Return a bound rounded to a multiple of `step`, up or down so that it stays satisfied.

    Without a step it is not rounded; without a bound, the result is infinite.
    """
    if bound is None:
        return -inf if up else inf
    if step is None:
        return float(bound)
    return float((ceil(bound / step) if up else floor(bound / step)) * step)


def joined_sets(sets: Iterable[set[int]]) -> list[set[int]]:
    """Return the given sets with those joined that share a number, in the order of their least numbers."""
    groups: list[set[int]] = []
    for one in sets:
        joined = one.union(*(group for group in groups if group & one))
        groups = [group for group in groups if not group & joined] + [joined]
    return sorted(groups, key=min)


# --- rules that overlap: all vertices, or a mixed-integer programme ---


def solved(block: Block, cells: Floats) -> Floats:
    """Return records repaired to satisfy the rules of a block; free cells are NaN if that is impossible."""
    found = np.empty_like(cells)
    patterns, which = np.unique(np.isnan(cells), axis=0, return_inverse=True)
    for place, gaps in enumerate(patterns):
        rows = np.flatnonzero(which == place)
        sums = [total for total in block.sums if not gaps[total.column_numbers].any()]
        problem = Vertices(block, block.free & ~gaps, sums)
        if problem.few():
            found[rows], sure = problem.best(cells[rows])
            rows = rows[~sure]
        known: dict[bytes, Floats] = {}  # equal records are solved once
        with track("repairing", len(rows)) as report:
            for i, row in enumerate(rows):
                record = cells[row] + 0.0  # -0.0 becomes 0.0: equal records have equal bytes
                key = record.tobytes()
                if key not in known:
                    report(i)
                    known[key] = _repaired_record(problem, record)
                found[row] = known[key]
    return found


def _repaired_record(problem: Vertices, record: Floats) -> Floats:
    """Return one record with the cheapest changes that satisfy the rules; free cells NaN if none do."""
    block, found = problem.block, record
    for _ in range(ROUNDS):
        changes = _cheapest_changes(problem, found)
        if changes is None:
            break
        found = found.copy()
        found[problem.moving] += changes
        if block.digits is None:  # the solver keeps bounds to its tolerance only
            found[problem.moving] = np.clip(found, *block.bounds)[problem.moving]
        if not any(total.broken(found[None])[0] for total in problem.sums):
            return found
    return np.where(block.free, np.nan, record)


def _cheapest_changes(problem: Vertices, record: Floats) -> Floats | None:
    """Return the cheapest changes of the cells that may move; None if no change satisfies the rules."""
    from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415 - slow to import, rarely needed

    block, moving, active = problem.block, problem.moving, problem.sums
    cells, costs = record[moving], block.costs[moving]
    steps = np.where(block.steps > 0, block.steps, 1.0)[moving]
    low, high = block.bounds[0][moving], block.bounds[1][moving]
    rows = np.zeros((len(active), len(record)))
    limits = np.zeros((len(active), 2))
    for r, total in enumerate(active):
        rows[r, total.column_numbers] = total.factors
        rest = total.constant - (record[total.column_numbers] * total.factors).sum()
        limits[r] = rest if total.rule.equality else -np.inf, rest
    # Without a grid, the amounts missing are scaled to a size that suits the solver's tolerances.
    size = 1.0
    if block.digits is None:
        needs = [limits[:, 0], -limits[:, 1], low - cells, cells - high]
        size = max(float(max(part.max(initial=0.0) for part in needs)), float(np.finfo(float).tiny))
    rows = rows[:, moving] * steps
    up = (np.maximum(low - cells, 0.0), np.maximum(high - cells, 0.0))
    down = (np.maximum(cells - high, 0.0), np.maximum(cells - low, 0.0))
    edges = [np.concatenate([a / steps, b / steps]) / size for a, b in zip(up, down, strict=True)]
    prices = np.tile(costs * steps, 2)
    if (edges[0] > edges[1]).any():
        return None
    answer = milp(
        prices / prices.min(),
        constraints=LinearConstraint(np.hstack([rows, -rows]), limits[:, 0] / size, limits[:, 1] / size),
        bounds=Bounds(*edges),
        integrality=np.full(2 * cells.size, int(block.digits is not None)),
        options={"mip_rel_gap": 0.0},
    )
    if answer.x is None:
        return None
    half = cells.size
    moves = (answer.x[:half] - answer.x[half:]) * size
    return (np.rint(moves) if block.digits is not None else moves) * steps


@dataclass(frozen=True)
class Vertices:
    """Candidate repairs (vertices of the linear programme) for records with the same cells missing.

    The cost of a repair is linear between the points where a cell keeps its value, meets a bound, or a sum
    just holds. So the cheapest repair is a vertex: some sums are tight and solved for as many columns, and
    every other column keeps its value or lies at a bound. All are tried, for all records at once.
    """

    block: Block
    moving: Bools  # the columns that are free and observed
    sums: list[SumRule]  # those without a missing cell

    def best(self, cells: Floats) -> tuple[Floats, Bools]:
        """Return the cheapest vertex of each record, and whether it is proved to be the smallest repair.

        Free cells are missing where there is no vertex: then no values satisfy the rules.
        """
        found = np.where(self.block.free, np.nan, cells)
        least, bound = np.full((2, len(cells)), np.inf)
        for vertex in self._each_vertex(cells):
            cost = np.zeros(len(cells))
            for j in np.flatnonzero(self.moving):
                cost += np.abs(vertex[:, j] - cells[:, j]) * self.block.costs[j]
            near, exact = self._satisfied(vertex)
            bound[near & (cost < bound)] = cost[near & (cost < bound)]
            better = exact & (cost < least)
            found[better], least[better] = vertex[better], cost[better]
        none = np.isinf(bound) & (self.block.digits is not None)  # without a grid, rounding may hide one
        return found, np.isfinite(bound) & (least <= bound * (1 + EQUAL)) | none

    def few(self) -> bool:
        """Return True if there are few enough vertices to try them all."""
        return len(list(itertools.islice(self._plans(), MOST + 1))) <= MOST

    def _satisfied(self, vertex: Floats) -> tuple[Bools, Bools]:
        """Return where a vertex satisfies all rules up to rounding, and where exactly on the grid."""
        low, high = self.block.bounds
        near = np.ones(len(vertex), np.bool_)
        for j in np.flatnonzero(self.moving):
            slack = LENIENT if self.block.digits is not None else EQUAL * np.abs(vertex[:, j])
            near &= (vertex[:, j] >= low[j] - slack) & (vertex[:, j] <= high[j] + slack)
        if self.block.digits is None:
            vertex[:, self.moving] = np.clip(vertex, low, high)[:, self.moving]
            for total in self.sums:
                near &= ~total.broken(vertex)
            return near, near
        exact = near.copy()
        for j in np.flatnonzero(self.moving):
            steps = vertex[:, j] / self.block.steps[j]
            exact &= (steps == np.rint(steps)) & (vertex[:, j] >= low[j]) & (vertex[:, j] <= high[j])
        for total in self.sums:
            rest = -np.full(len(vertex), total.constant)
            for j, factor in zip(total.column_numbers, total.factors, strict=True):
                rest += factor * vertex[:, j]
            rest = np.abs(rest) if total.rule.equality else rest
            near &= rest <= LENIENT
            exact &= rest <= 0
        return near, exact

    def _each_vertex(self, cells: Floats) -> Iterator[Floats]:
        """Yield each vertex as a matrix: the same candidate repair computed for every record."""
        low, high = self.block.bounds
        kept = np.clip(cells, low, high)
        for solved, tight, others, choice in self._plans():
            vertex = cells.copy()
            for j, option in zip(others, choice, strict=True):
                vertex[:, j] = kept[:, j] if option == 0 else (low, high)[option - 1][j]
            rests = []
            for total in tight:
                rest = np.full(len(cells), total.constant)
                for j, factor in zip(total.column_numbers, total.factors, strict=True):
                    rest -= factor * vertex[:, j] if j not in solved else 0.0
                rests.append(rest)
            matrix, determinant = _inverse(tight, solved)
            for j, row in zip(solved, matrix, strict=True):
                vertex[:, j] = sum(f * rest for f, rest in zip(row, rests, strict=True)) / determinant
            yield vertex

    def _plans(self) -> Iterator[tuple[tuple[int, ...], tuple[SumRule, ...], list[int], tuple[int, ...]]]:
        """Yield plans of vertices: columns to solve for, tight sums, other columns and each one's bound."""
        low, high = self.block.bounds
        columns = [int(j) for j in np.flatnonzero(self.moving)]
        options = {j: [0, *([1] * bool(low[j] > -np.inf)), *([2] * bool(high[j] < np.inf))] for j in columns}
        for count in range(min(len(self.sums), len(columns)) + 1):
            for tight in itertools.combinations(self.sums, count):
                for solved in itertools.combinations(columns, count):
                    if _inverse(tight, solved)[1] == 0:
                        continue
                    others = [j for j in columns if j not in solved]
                    for choice in itertools.product(*(options[j] for j in others)):
                        yield solved, tight, others, choice


def _inverse(tight: tuple[SumRule, ...], solved: tuple[int, ...]) -> tuple[list[list[float]], float]:
    """Return the inverse of the sums' factors as an integer matrix and its common divisor."""
    if not solved:
        return [], 1.0
    factors = np.array(
        [
            [dict(zip(total.column_numbers, total.factors, strict=True)).get(j, 0.0) for j in solved]
            for total in tight
        ]
    )
    determinant = float(np.rint(np.linalg.det(factors)))
    if determinant == 0:
        return [], 0.0
    return np.rint(np.linalg.inv(factors) * determinant).tolist(), determinant
