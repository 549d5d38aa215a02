"""Calibration: the least change of masked cells that makes declared totals hold, on the grid of the data.

A column whose totals divide its records once, and which shares no edit rule, is multiplied by one factor in
each domain. Columns that share rules, or have several divisions, are solved together: least squares by an
interior-point method, then integer programming on the grid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.core.checks import quoted
from sdckit.core.table import LARGEST_INTEGER, MOST_DECIMALS, Step, decimals_of
from sdckit.core.text import listed, plural
from sdckit.rules.repair import joined_sets, on_grid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sdckit.arrays import Bools, Floats, Ints
    from sdckit.rules.parse import Rule
    from sdckit.rules.rules import Rules

EXACT = 2.0**47  # grid steps up to this number are added without any rounding
NOISE = 1e-12  # share of a sum of sizes that the rounding of floats can explain
HELD = Fraction(1, 10**14)  # share of a total up to which it holds already
WEIGHT_DECIMALS = 6  # of weights with which totals are added in whole numbers, at most
SLACKS = (0.1, 1.0)  # of the largest weight: grid steps by which a weighted total under rules may be missed
REMEDY = "drop this total, take larger domains or a weaker masking"
KEPT = "cells keep their sign, stay within the range of the masked column and satisfy the edit rules"


class Totals(NamedTuple):
    """Declared totals of one column: the domain of each record (-1: none), and label and total of each."""

    text: str  # such as "total(turnover) by sector"
    column: int
    domains: Ints
    labels: Sequence[str]
    targets: Sequence[Fraction]

    def refused(self, domain: int) -> ValueError:
        """Return the error for a total that its cells cannot have."""
        where = "" if len(self.labels) == 1 else f" in the domain {quoted(self.labels[domain])}"
        return ValueError(f"{self.text}{where} cannot hold: {KEPT}; {REMEDY}")

    def rows_of_domains(self) -> list[Ints]:
        """Return the row numbers of each domain's records."""
        return rows_by_domain(self.domains, len(self.labels))


def rows_by_domain(domains: Ints, count: int) -> list[Ints]:
    """Return the row numbers of the records of so many domains, given that of each record (-1: none)."""
    order = np.argsort(domains, kind="stable")
    edges = np.searchsorted(domains[order], np.arange(count + 1))
    return [order[a:b] for a, b in pairwise(edges)]


@dataclass(frozen=True)
class Problem:
    """A masked matrix, the totals that shall hold in it, and what must not change.

    Attributes
    ----------
    columns
        Names of the columns of `values`.
    values
        The masked cells; NaN where missing.
    weights
        Survey weight of each record.
    totals
        The declared totals.
    rules
        Edit rules, which hold in the masked file, or None.
    free
        Which columns may change.
    usual
        Steps coarser than decimals, such as thousands, that some columns usually have, by name.
    decimals
        Decimals of columns of the original, by name.
    """

    columns: tuple[str, ...]
    values: Floats
    weights: Floats
    totals: tuple[Totals, ...]
    rules: Rules | None
    free: Bools
    usual: Mapping[str, Step] = field(default_factory=dict)
    decimals: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def halves(self) -> list[Rule]:
        """The edit rules; a tolerance makes two inequalities of an equality."""
        return [half for rule in (self.rules.rules if self.rules else ()) for half in rule.halves]

    @cached_property
    def steps(self) -> tuple[Step | None, ...]:
        """Step between the values of each column; None for a column that is not rounded.

        A usual step is kept if all values share it, but not in columns that share rules: on grids of
        different steps a sum may have no solution.
        """
        ruled = {name for half in self.halves if len(half.columns) > 1 for name in half.columns}
        found: list[Step | None] = []
        for name, column in zip(self.columns, self.values.T, strict=True):
            seen = column[~np.isnan(column)]
            step = None if name in ruled else self.usual.get(name)
            if step is None or not np.array_equal(step.rounded(seen), seen):
                step = Step(decimals_of(seen))
            large = float(np.abs(seen).max(initial=0.0)) / float(unit_of(step)) > EXACT
            found.append(None if step.decimals >= MOST_DECIMALS or large else step)
        return tuple(found)

    @cached_property
    def limits(self) -> tuple[Floats, Floats]:
        """Lowest and highest value of each cell; equal where it must not change, NaN where it is missing.

        A cell stays within the range of its column, keeps its sign and stays within bounds that rules set.
        Cells of 0, of records without weight and of columns that may not change stay as they are.
        """
        low, high = np.empty_like(self.values), np.empty_like(self.values)
        for j, (name, column, step) in enumerate(zip(self.columns, self.values.T, self.steps, strict=True)):
            unit = None if step is None else unit_of(step)
            least, most = float(np.fmin.reduce(column)), float(np.fmax.reduce(column))
            for half in self.halves:
                if half.columns == (name,):
                    least = max(least, on_grid(half.bounds[0], unit, up=True))
                    most = min(most, on_grid(half.bounds[1], unit, up=False))
            low[:, j] = np.where(column > 0, max(least, 0.0), least)
            high[:, j] = np.where(column < 0, min(most, 0.0), most)
        fixed = (self.values == 0) | (self.weights <= 0)[:, None] | ~self.free
        fixed |= np.isnan(self.values)
        return np.where(fixed, self.values, low), np.where(fixed, self.values, high)

    def targets(self, totals: Totals) -> Floats:
        """Return the totals to reach, in grid steps where there is a grid; without weights, whole steps."""
        step = self.steps[totals.column]
        unit = Fraction(1) if step is None else unit_of(step)
        wanted = [target / unit for target in totals.targets]
        if step is not None and (self.weights == 1).all():
            wanted = [Fraction(round(target)) for target in wanted]
        return np.array([float(target) for target in wanted])

    def misses(self, totals: Totals, values: Floats) -> list[Fraction]:
        """Return by how much the cells miss each of the totals, computed without rounding."""
        return [
            exact_total(values[rows, totals.column], self.weights[rows]) - target
            for rows, target in zip(totals.rows_of_domains(), totals.targets, strict=True)
        ]


class Calibrated(NamedTuple):
    """The calibrated matrix and, for each of the declared totals, by how much it is missed in each domain.

    `continuous` is the matrix before rounding to the grid.
    """

    values: Floats
    continuous: Floats
    misses: list[list[Fraction]]


def calibrated(problem: Problem, rng: np.random.Generator) -> Calibrated:
    """Return the masked cells with the least change that makes the declared totals hold.

    Least is the sum over cells of weight * change² / (|value| * mean |value| of the column): without limits,
    all cells of a domain are multiplied by one factor. Cells of 0 and missing cells stay as they are, no cell
    changes its sign or leaves the range that its column has in the masked file, and edit rules still hold.

    Parameters
    ----------
    problem
        Masked cells, totals, weights and rules.
    rng
        Decides which of equally near cells are rounded up, so that the order of rows does not.

    Returns
    -------
    Calibrated
        The matrix, on the grid of the masked columns: each cell is within one grid step of the least change.
        Totals without weights hold exactly; totals with weights hold as nearly as was found.

    Raises
    ------
    ValueError
        If no cells within the limits have these totals.
    """
    if problem.rules is not None:
        places = [problem.columns.index(name) for name in problem.rules.columns]
        counts = problem.rules.violations(problem.values[:, places])
        for text, count in zip(problem.rules.texts, counts.tolist(), strict=True):
            if count:
                raise ValueError(
                    f"the masked file breaks the rule {text} in {count} {plural(count, 'record')}; "
                    "mask with this rule before calibrating"
                )
    values, continuous = problem.values.copy(order="F"), problem.values.copy(order="F")
    ruled = [{problem.columns.index(name) for name in half.columns} for half in problem.halves]
    for columns in joined_sets([*({j} for j in range(len(problem.columns))), *ruled]):
        totals = tuple(one for one in problem.totals if one.column in columns)
        group = Joint(problem, tuple(sorted(columns)), totals)
        if all(  # also without a total
            abs(miss) <= HELD * abs(total)
            for one in group.totals
            for miss, total in zip(problem.misses(one, problem.values), one.targets, strict=True)
        ):
            continue
        if len(columns) == 1 and len(totals) == 1 and not group.rules:
            _calibrate_column(problem, totals[0], values, continuous, rng)
        else:
            _calibrate_group(group, values, continuous, rng)
    return Calibrated(values, continuous, [problem.misses(one, values) for one in problem.totals])


# --- exact totals, and values as numbers of grid steps ---


def exact_total(values: Floats, weights: Floats) -> Fraction:
    """Return the weighted total of the observed values as they are written, in decimal arithmetic."""
    seen = ~np.isnan(values)
    (cells, below), (factors, under) = (_whole_numbers(part[seen]) for part in (values, weights))
    return Fraction(sum(a * b for a, b in zip(cells, factors, strict=True))) / (below * under)


def _whole_numbers(values: Floats) -> tuple[list[Any], int]:
    """Return numbers times a power of ten that makes them whole, and that power; fractions without one."""
    digits = decimals_of(values)
    if digits >= MOST_DECIMALS:
        return [Fraction(value) for value in values.tolist()], 1
    if float(np.abs(values).max(initial=0.0)) * 10.0**digits < LARGEST_INTEGER:
        return np.rint(values * 10.0**digits).astype(np.int64).tolist(), 10**digits
    return [int(Fraction(repr(value)) * 10**digits) for value in values.tolist()], 10**digits


def unit_of(step: Step) -> Fraction:
    """Return the step between values as an exact number."""
    return Fraction(step.multiple) / Fraction(10) ** step.decimals


def _snapped(cells: Floats, close: float) -> Floats:
    """Return cells counted in grid steps; those that are closer to the grid are on it."""
    near = np.rint(cells)
    return np.where(np.abs(cells - near) <= close, near, cells)


# --- one column: one factor for all cells of a domain ---


def _calibrate_column(
    problem: Problem, totals: Totals, values: Floats, continuous: Floats, rng: np.random.Generator
) -> None:
    """Write the calibrated cells of a column with one division into domains into both matrices."""
    j = totals.column
    step = problem.steps[j]
    sides = [problem.values[:, j], *(side[:, j] for side in problem.limits)]
    cells, low, high = sides if step is None else [np.rint(step.counted(side)) for side in sides]
    digits = decimals_of(problem.weights)
    size = 10.0**digits if digits <= WEIGHT_DECIMALS else 1.0  # makes weights of a usual size whole numbers
    wanted = problem.targets(totals)
    for domain, (rows, target) in enumerate(zip(totals.rows_of_domains(), wanted, strict=True)):
        chosen = rows[~np.isnan(cells[rows])]
        weights, limits = problem.weights[chosen], (low[chosen], high[chosen])
        found = nearest_in_column(cells[chosen], weights, *limits, float(target))
        if found is None:
            raise totals.refused(domain)
        if step is None:
            values[chosen, j] = continuous[chosen, j] = found
            continue
        continuous[chosen, j] = found * float(unit_of(step))
        whole = rounded_to_sum(found, np.rint(weights * size), *limits, float(np.rint(target * size)), rng)
        values[chosen, j] = step.valued(whole)


def nearest_in_column(
    values: Floats, weights: Floats, low: Floats, high: Floats, target: float
) -> Floats | None:
    """Return the values with the least change that gives them a weighted total; None if that is impossible.

    Least is sum of weight * change² / |value|. Without limits each value is multiplied by one factor; with
    them, by a factor so that the total holds once each product is moved into its limits. Values are the cells
    of a domain, none of them missing; limits are equal where a cell must not change.

    Notes
    -----
    The total grows with the factor and is linear between the factors at which a cell reaches a limit. The
    two of these that enclose the target are found by bisection, and the factor between them is exact.

    Examples
    --------
    >>> import numpy as np
    >>> cells, one = np.array([1.0, 2.0, 7.0]), np.ones(3)
    >>> print(nearest_in_column(cells, one, 0 * one, 7 * one, 11.5))
    [1.5 3.  7. ]
    """
    noise = NOISE * float(weights @ np.maximum(np.abs(low), np.abs(high)))
    if not float(weights @ low) - noise <= target <= float(weights @ high) + noise:
        return None
    sizes = np.where(low < high, np.abs(values), 0.0)
    moving = sizes > 0
    lowest, highest = np.full(values.size, -np.inf), np.full(values.size, np.inf)
    lowest[moving] = (low - values)[moving] / sizes[moving]
    highest[moving] = (high - values)[moving] / sizes[moving]
    edges = np.unique(np.concatenate([lowest[moving], highest[moving]]))
    if not edges.size:
        return values
    first, last = 0, edges.size - 1
    while last - first > 1:
        middle = (first + last) // 2
        at = np.clip(values + edges[middle] * sizes, low, high)
        first, last = (middle, last) if float(weights @ at) <= target else (first, middle)
    found = np.clip(values + edges[first] * sizes, low, high)
    free = moving & (lowest <= edges[first]) & (highest >= edges[last])
    slope = float(weights[free] @ sizes[free])
    rate = edges[first]
    for _ in range(2 if slope > 0 else 0):  # the second time corrects the rounding of the first
        rate += (target - math.fsum(weights * found)) / slope
        found[free] = np.clip(values + rate * sizes, low, high)[free]
    return found


def rounded_to_sum(
    cells: Floats, weights: Floats, low: Floats, high: Floats, target: float, rng: np.random.Generator
) -> Floats:
    """Return whole numbers, each next to its cell, whose weighted sum is the target or as near as found.

    With equal weights the sum is the target, if the target is a multiple of the weight. `rng` decides between
    cells that are as near to their neighbours, so that the order of rows does not.

    Notes
    -----
    Cells with the largest fractions are rounded up, as many as the sum needs. What different weights leave is
    made smaller by changing the direction of one or two cells, at most 50 times, as long as that helps.

    Examples
    --------
    >>> import numpy as np
    >>> cells, one = np.array([1.4, 2.4, 7.2]), np.ones(3)
    >>> print(rounded_to_sum(cells, one, 0 * one, 9 * one, 11.0, np.random.default_rng(1)).sum())
    11.0
    """
    near = _snapped(cells, 1e-7)
    lower = np.clip(np.floor(near), low, high)
    fractions = near - lower
    movable = np.flatnonzero((fractions > 0) & (lower < high))
    order = movable[np.lexsort([rng.random(movable.size), -fractions[movable]])]
    weights, needed = weights[order], target - float(weights @ lower)
    sums = np.concatenate([[0.0], np.cumsum(weights)])
    up = np.arange(weights.size) < int(np.argmin(np.abs(sums - needed)))
    rest = needed - float(weights[up].sum())
    for _ in range(50):
        rising, falling = np.flatnonzero(~up), np.flatnonzero(up)
        falling = falling[np.argsort(weights[falling], kind="stable")]
        # No cell at all takes part as one of weight 0 with the number -1.
        rises, falls = np.append(rising, -1), np.concatenate([[-1], falling])
        gains, losses = np.append(weights[rising], 0.0), np.concatenate([[0.0], weights[falling]])
        after = np.clip(np.searchsorted(losses, gains - rest), 1, max(losses.size - 1, 1))
        places = np.stack([after - 1, np.minimum(after, losses.size - 1)])
        lefts = np.abs(rest - gains + losses[places])
        side, i = np.unravel_index(int(np.argmin(lefts)), lefts.shape)
        if not lefts[side, i] < abs(rest):
            break
        j = places[side, i]
        rest += float(losses[j] - gains[i])
        for cell, rise in ((rises[i], True), (falls[j], False)):
            if cell >= 0:
                up[cell] = rise
    lower[order[up]] += 1.0
    return lower


# --- columns together: least squares under rules and totals ---


class Equations(NamedTuple):
    """Linear conditions `least <= rows @ x <= most` on the moving cells; those of totals come last."""

    rows: Any  # scipy.sparse.csr_array
    least: Floats
    most: Floats
    totals: int  # number of conditions that are totals


@dataclass(frozen=True)
class Joint:
    """A group of columns, given by their numbers, with their totals and the rules that connect them."""

    problem: Problem
    columns: tuple[int, ...]
    totals: tuple[Totals, ...]

    @cached_property
    def rules(self) -> list[Rule]:
        """The rules on several of the columns."""
        known = {self.problem.columns[j] for j in self.columns}
        return [
            half for half in self.problem.halves if len(half.columns) > 1 and known.issuperset(half.columns)
        ]

    @cached_property
    def moving(self) -> Bools:
        """Which cells of the whole matrix may change: in these columns, in a domain, between two limits."""
        low, high = self.problem.limits
        found = np.zeros(low.shape, np.bool_)
        inside = np.any([one.domains >= 0 for one in self.totals], axis=0)
        for j in self.columns:
            found[:, j] = inside & (low[:, j] < high[:, j])
        return found

    def equations(
        self, values: Floats, units: Floats, scale: Fraction, targets: Sequence[Floats]
    ) -> Equations:
        """Return rules and totals as conditions on the moving cells.

        Parameters
        ----------
        values
            All cells, those of column j in units of `units[j] * scale`.
        units, scale
            The units of the columns, and the common unit of the rules.
        targets
            The totals, each in units of its column.
        """
        from scipy import sparse  # noqa: PLC0415 - slow to import, rarely needed

        weights, moving = self.problem.weights, self.moving
        numbers = np.full(moving.shape, -1)  # of each cell among the moving ones; -1 for others
        numbers[moving] = np.arange(int(moving.sum()))
        parts: list[tuple[Ints, Floats, Floats, Floats]] = []  # variables, factors, least, most
        for rule in self.rules:
            inside = np.array([self.problem.columns.index(name) for name in rule.columns])
            factors = np.array([float(factor) for _, factor in rule.terms]) * units[inside]
            complete = ~np.isnan(values[:, inside]).any(axis=1)
            cells = np.ix_(np.flatnonzero(complete & moving[:, inside].any(axis=1)), inside)
            most = float(rule.constant / scale) - np.where(moving[cells], 0.0, values[cells]) @ factors
            least = most if rule.equality else np.full(len(most), -np.inf)
            parts.append((numbers[cells], factors, least, most))
        count = sum(len(part[0]) for part in parts)
        for one, wanted in zip(self.totals, targets, strict=True):
            for rows, target in zip(one.rows_of_domains(), wanted, strict=True):
                free, fixed = rows[moving[rows, one.column]], rows[~moving[rows, one.column]]
                side = np.array([target - np.nansum(weights[fixed] * values[fixed, one.column])])
                if free.size:
                    parts.append((numbers[free, one.column][None], weights[free][None], side, side))
        begins = np.cumsum([0, *(len(part[0]) for part in parts)])
        entries = []
        for begin, (variables, factors, _, _) in zip(begins, parts, strict=False):
            rows = np.broadcast_to(np.arange(len(variables))[:, None] + begin, variables.shape)
            used = variables >= 0
            entries.append((rows[used], variables[used], np.broadcast_to(factors, variables.shape)[used]))
        where, what, factors = (np.concatenate(one) for one in zip(*entries, strict=True))
        matrix = sparse.csr_array((factors, (where, what)), shape=(begins[-1], int(moving.sum())))
        least, most = (np.concatenate([part[side] for part in parts]) for side in (2, 3))
        return Equations(matrix, least, most, int(begins[-1]) - count)

    def nearest(self, targets: Sequence[Floats]) -> Floats | None:
        """Return all cells with the least change that makes totals and rules hold; None if none was found."""
        from scipy import sparse  # noqa: PLC0415

        values = self.problem.values
        found = self.equations(values, np.ones(values.shape[1]), Fraction(1), targets)
        open_rows = np.flatnonzero(found.least < found.most)  # each with a slack, a variable without cost
        slacks = sparse.csr_array(
            (np.ones(open_rows.size), (open_rows, np.arange(open_rows.size))),
            (len(found.most), open_rows.size),
        )
        sizes = np.abs(values) * np.nanmean(np.abs(values), axis=0)
        weights = np.broadcast_to(self.problem.weights[:, None], values.shape)
        costs = weights[self.moving] / sizes[self.moving]
        none = np.zeros(open_rows.size)
        start = np.concatenate([values[self.moving], none])
        low, high = (
            np.concatenate([side[self.moving], end])
            for side, end in zip(self.problem.limits, (none, none + np.inf), strict=True)
        )
        # Variables and equations are scaled to size 1.
        usual = (abs(found.rows) @ np.abs(values[self.moving]))[open_rows]
        unit = np.concatenate([1.0 / np.sqrt(np.where(costs > 0, costs, 1.0)), usual])
        rows = sparse.hstack([found.rows, slacks], format="csr")
        sides = found.most - rows @ start
        rows = rows @ sparse.diags_array(unit)
        lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
        rows = (sparse.diags_array(1.0 / lengths) @ rows).tocsr()
        curve = np.concatenate([(costs > 0).astype(float), none])
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # without solution, steps diverge
            limits = np.stack([(low - start) / unit, (high - start) / unit])
            moves = _InteriorPoint(rows, sides / lengths, curve, limits).solved()
        if moves is None:
            return None
        result = values.copy(order="F")
        result[self.moving] = np.clip(start + unit * moves, low, high)[: costs.size]
        return result


class _Point(NamedTuple):
    """Variables, multipliers of the equations, and of the lower and upper limits (0 where there is none)."""

    x: Floats
    equations: Floats
    limits: Floats

    def moved(self, step: _Point, share: float) -> _Point:
        """Return the point moved by a share of a step."""
        return _Point(*(one + share * other for one, other in zip(self, step, strict=True)))


class _InteriorPoint:
    """Steps towards the least of ½ · curve · x² under `rows @ x = sides` and two rows of limits of x.

    Notes
    -----
    Mehrotra's predictor and corrector; the normal equations are factorised by SuperLU in the given order, so
    that equations of single records must come first.

    References
    ----------
    Mehrotra 1992, On the implementation of a primal-dual interior point method.
    """

    ITERATIONS = 100
    SMALL = 1e-11  # residuals at the solution, in units of the cells' scales
    PRODUCT = 1e-18  # mean product of gaps and multipliers: both may go to 0, each as the root of it
    NEARLY = 1e-12  # mean product with which a point is taken if rounding errors allow no smaller one
    DAMPING = 1e-11  # share of the diagonal that is added where equations depend on each other
    CLOSE = 1e-20  # least distance to a limit, as a difference of floats can be 0
    SLOW = 0.9  # of the mean product before a step: where more is left, a plain step is taken
    CENTRE = 0.3  # of the mean product, where a plain step goes to
    BACK = 0.995  # share of the way to the nearest limit that a step takes at most

    def __init__(self, rows: Any, sides: Floats, curve: Floats, limits: Floats) -> None:
        self.rows, self.sides, self.curve, self.limits = rows, sides, curve, limits
        self.limited = np.isfinite(limits)

    def solved(self) -> Floats | None:
        """Return the solution as exactly as rounding errors allow; None where the steps do not reach it."""
        low, high = self.limits
        width = np.minimum(high - low, 1.0)
        x = np.clip(0.0, low + 0.1 * width, high - 0.1 * width)
        point, found = _Point(x, np.zeros(len(self.sides)), 0.1 * self.limited.astype(float)), None
        for _ in range(self.ITERATIONS):
            gap = self._mean_product(point)
            size = max(1.0, float(np.abs(point.x).max(initial=0.0)))
            missed = max(np.abs(one).max(initial=0.0) for one in self._residuals(point))
            if missed <= self.SMALL * size and gap <= self.NEARLY * size:
                found = point.x
                if gap <= self.PRODUCT * size:
                    break
            try:
                point = self._advanced(point, gap)
            except RuntimeError:  # SuperLU: the matrix is singular
                break
            if not np.isfinite(point.x).all():
                break
        return found

    def _gaps(self, point: _Point) -> Floats:
        """Return the distances to the lower and upper limits; 1 where there is none."""
        gaps = np.stack([point.x - self.limits[0], self.limits[1] - point.x])
        return np.maximum(np.where(self.limited, gaps, 1.0), self.CLOSE)

    def _residuals(self, point: _Point) -> tuple[Floats, Floats]:
        """Return by how much the conditions of a least cost, and the equations, are missed."""
        below, above = point.limits
        dual = self.rows.T @ point.equations + below - above - self.curve * point.x
        return dual, self.sides - self.rows @ point.x

    def _mean_product(self, point: _Point) -> float:
        """Return the mean product of gaps and multipliers, 0 at the solution."""
        (below, above), (low, high) = self._gaps(point), point.limits
        return float(below @ low + above @ high) / max(int(self.limited.sum()), 1)

    def _advanced(self, point: _Point, gap: float) -> _Point:
        """Return the point after a predictor step that is corrected and centred."""
        from scipy import sparse  # noqa: PLC0415
        from scipy.sparse.linalg import splu  # noqa: PLC0415

        gaps, (dual, primal), rows = self._gaps(point), self._residuals(point), self.rows
        ratios = point.limits / gaps
        inverse = 1.0 / (self.curve + ratios[0] + ratios[1])
        normal = (rows @ sparse.diags_array(inverse) @ rows.T).tocsc()
        normal = normal + sparse.diags_array(self.DAMPING * normal.diagonal(), format="csc")
        factors = splu(normal, permc_spec="NATURAL", diag_pivot_thresh=0.0, options={"SymmetricMode": True})

        def step_towards(centre: float, products: Floats | float = 0.0) -> _Point:
            """Return Newton's step towards products of gaps and multipliers that are all `centre`."""
            wanted = np.where(self.limited, centre - products, 0.0) / gaps - point.limits
            first = dual + wanted[0] - wanted[1]
            equations = factors.solve(primal - rows @ (inverse * first))
            rest = primal - rows @ (inverse * (first + rows.T @ equations))
            equations += factors.solve(rest)
            x = inverse * (first + rows.T @ equations)
            return _Point(x, equations, wanted - ratios * np.stack([x, -x]))

        def longest(step: _Point) -> float:
            """Return the longest share, up to 1, of a step that keeps gaps and multipliers above 0."""
            moves = np.stack([step.x, -step.x])
            closing, falling = self.limited & (moves < 0), step.limits < 0
            # A cost with squares needs one share for both.
            return float(
                min(
                    1.0,
                    (gaps[closing] / -moves[closing]).min(initial=np.inf),
                    (point.limits[falling] / -step.limits[falling]).min(initial=np.inf),
                )
            )

        def inside(step: _Point) -> _Point:
            """Return the point moved by a step, or by as much as leaves gaps and multipliers above 0."""
            share = longest(step)
            return point.moved(step, self.BACK * share if share < 1 else share)

        guess = step_towards(0.0)
        ahead = point.moved(guess, longest(guess))
        centre = gap * (self._mean_product(ahead) / gap) ** 3 if gap > 0 else 0.0
        new = inside(step_towards(centre, np.stack([guess.x, -guess.x]) * guess.limits))
        if self._mean_product(new) > self.SLOW * gap:  # corrections can go round in circles
            new = inside(step_towards(self.CENTRE * gap))
        return new


# --- columns together: whole grid steps for which totals and rules hold ---


def _calibrate_group(group: Joint, values: Floats, continuous: Floats, rng: np.random.Generator) -> None:
    """Write the calibrated cells of columns that share rules or have several divisions into both matrices."""
    problem = group.problem
    steps = {j: problem.steps[j] for j in group.columns}
    targets = [problem.targets(one) for one in group.totals]
    units = [1.0 if (step := steps[one.column]) is None else float(unit_of(step)) for one in group.totals]
    for one, wanted, unit in zip(group.totals, targets, units, strict=True):
        _require_reachable(problem, one, wanted, unit)
    if not group.moving.any():
        return
    found = group.nearest([unit * target for unit, target in zip(units, targets, strict=True)])
    texts = listed([one.text for one in group.totals])
    if found is None:
        together = " together" if len(group.totals) > 1 else ""
        raise ValueError(f"{texts} cannot hold{together}: {KEPT}; {REMEDY}")
    continuous[group.moving] = found[group.moving]
    if None in steps.values():
        _require_unrounded(problem, steps, texts)
        if problem.rules is not None:  # by the rounding of floats, to where rules hold to the last bit
            places = [problem.columns.index(name) for name in problem.rules.columns]
            found[:, places] = problem.rules.repaired(found[:, places], None, problem.free[places])
        values[group.moving] = found[group.moving]
        return
    whole = _on_common_grid(group, found, targets, rng)
    if whole is None:
        raise ValueError(
            f"{texts} cannot hold on the grid: no cells within one step of the least change satisfy the edit "
            "rules; mask with more decimals"
        )
    for j, step in steps.items():
        assert step is not None  # noqa: S101 - checked above
        values[group.moving[:, j], j] = step.valued(whole[group.moving[:, j], j])


def _require_reachable(problem: Problem, totals: Totals, targets: Floats, unit: float) -> None:
    """Raise ValueError for a total that its cells cannot have between their limits, whatever others hold."""
    low, high = (problem.weights * side[:, totals.column] / unit for side in problem.limits)
    for domain, (rows, target) in enumerate(zip(totals.rows_of_domains(), targets, strict=True)):
        noise = NOISE * float(np.nansum(np.abs(low[rows]) + np.abs(high[rows])))
        if not np.nansum(low[rows]) - noise <= target <= np.nansum(high[rows]) + noise:
            raise totals.refused(domain)


def _require_unrounded(problem: Problem, steps: Mapping[int, Step | None], texts: str) -> None:
    """Raise ValueError if some columns of a group are rounded as in the original and others are not at all.

    A column with more decimals than in the original is not rounded either: its means happen to have few.
    """
    rounded = [
        problem.columns[j]
        for j, step in steps.items()
        if step is not None and step.decimals <= problem.decimals.get(problem.columns[j], MOST_DECIMALS)
    ]
    if rounded:
        raise ValueError(
            f"{texts} cannot be calibrated: of columns that share edit rules, {listed(rounded)} are rounded "
            "and others are not; mask with decimals"
        )


def _on_common_grid(
    group: Joint, found: Floats, targets: Sequence[Floats], rng: np.random.Generator
) -> Floats | None:
    """Return all cells in whole grid steps for which rules and totals hold; None if there are none."""
    problem = group.problem
    steps = [step or Step(0) for step in problem.steps]  # columns outside of the group are not read
    exact = [unit_of(step) for step in steps]
    common = Fraction(1, math.lcm(*(exact[j].denominator for j in group.columns)))
    units = np.array([float(unit / common) for unit in exact])

    def in_steps(matrix: Floats) -> Floats:
        """Return a matrix with each column in its grid steps."""
        return np.column_stack([step.counted(one) for one, step in zip(matrix.T, steps, strict=True)])

    counts = np.rint(in_steps(problem.values))
    equations = group.equations(counts, units, common, targets)
    cells, low, high = (in_steps(side)[group.moving] for side in (found, *problem.limits))
    for share in SLACKS if (problem.weights != 1).any() else (0.0,):
        slack = np.zeros(len(equations.most))  # by how much each condition may be missed
        slack[len(slack) - equations.totals :] = share * problem.weights.max()
        whole = _rounded_together(cells, np.rint(low), np.rint(high), equations, slack, rng)
        if whole is not None:
            counts[group.moving] = whole
            return counts
    return None


def _rounded_together(
    cells: Floats, low: Floats, high: Floats, equations: Equations, slack: Floats, rng: np.random.Generator
) -> Floats | None:
    """Return whole numbers within 1 of the cells that satisfy all equations; None if there are none.

    Cells that no condition connects are rounded separately. First each cell goes up or down to its neighbour,
    and cells on the grid stay; only where that is impossible, those may move by one step, too.
    """
    from scipy import sparse  # noqa: PLC0415
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

    near = _snapped(cells, 1e-6)
    result = np.clip(np.rint(near), low, high)
    graph = sparse.block_array([[None, equations.rows], [equations.rows.T, None]], format="csr")
    count, labels = connected_components(graph, directed=False)
    ends = np.cumsum(np.bincount(labels, minlength=count))[:-1]
    for places in np.split(np.argsort(labels, kind="stable"), ends):
        rows, chosen = places[places < len(slack)], places[places >= len(slack)] - len(slack)
        if not (rows.size and chosen.size):
            continue
        matrix = equations.rows[rows][:, chosen]
        least, most = equations.least[rows] - slack[rows], equations.most[rows] + slack[rows]
        ties = 1e-3 * rng.random(chosen.size)  # costs that decide between cells that are as near
        part = (near[chosen], low[chosen], high[chosen], matrix, least, most, ties)
        found = _neighbours(*part, wide=False)
        if found is None:
            found = _neighbours(*part, wide=True)
        if found is None:
            return None
        result[chosen] = found
    return result


def _neighbours(
    cells: Floats,
    low: Floats,
    high: Floats,
    matrix: Any,
    least: Floats,
    most: Floats,
    ties: Floats,
    *,
    wide: bool,
) -> Floats | None:
    """Return whole numbers next to the cells that satisfy the conditions; None if none are found."""
    from scipy import sparse  # noqa: PLC0415
    from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415

    lower = np.floor(cells)
    fractions, reached = cells - lower, matrix @ lower
    up = np.flatnonzero(((fractions > 0) | wide) & (lower < high))
    down = np.flatnonzero((fractions == 0) & wide & (lower > low))
    if not up.size + down.size:
        return lower if ((least <= reached) & (reached <= most)).all() else None
    prices = np.concatenate([(1.0 - 2.0 * fractions + ties)[up], (1.0 + ties)[down]])
    answer = milp(
        prices,
        constraints=LinearConstraint(
            sparse.hstack([matrix[:, up], -matrix[:, down]], format="csc"), least - reached, most - reached
        ),
        bounds=Bounds(0.0, 1.0),
        integrality=np.ones(prices.size),
        options={"mip_rel_gap": 0.2},  # any neighbour is near enough
    )
    if answer.x is None:
        return None
    lower[up] += np.rint(answer.x[: up.size])
    lower[down] -= np.rint(answer.x[up.size :])
    reached = matrix @ lower  # the solver keeps conditions to its tolerance only
    margin = np.where(np.isfinite(least), 1e-3 * (most - least), 0.0)
    return lower if ((least - margin <= reached) & (reached <= most + margin)).all() else None
