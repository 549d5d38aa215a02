"""Calibration: the least change of masked cells that makes declared totals hold, on the grid of the data."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.core.decimals import Step
from sdckit.core.table import MOST_DECIMALS, decimals_of
from sdckit.core.text import listed, plural
from sdckit.rules.calibration import grid, grid_rules, one_column
from sdckit.rules.calibration.exact import exact_total
from sdckit.rules.calibration.joint import Joint
from sdckit.rules.calibration.problem import Problem, Totals, counted, steps_in, unit_of, valued

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sdckit.kernels.jit import Floats

__all__ = ["Calibrated", "Problem", "Totals", "calibrated", "exact_total"]

NOISE = Fraction(1, 10**14)  # share of a total that the rounding of floats can explain
WEIGHT_DECIMALS = 6  # of weights with which totals are added in whole numbers, at most
SLACKS = (0.1, 1.0)  # of the largest weight: grid steps by which a weighted total under rules may be missed
REMEDY = "drop this total, take larger domains or a weaker masking"
KEPT = "cells keep their sign, stay within the range of the masked column and satisfy the edit rules"


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
    _require_rules(problem)
    values, continuous = problem.values.copy(order="F"), problem.values.copy(order="F")
    for group in _groups(problem):
        if _holds(group):
            continue
        if len(group.columns) == 1 and len(group.totals) == 1 and not group.rules:
            _calibrate_column(problem, group.totals[0], values, continuous, rng)
        else:
            _calibrate_group(group, values, continuous, rng)
    return Calibrated(values, continuous, [_misses(problem, one, values) for one in problem.totals])


def _misses(problem: Problem, totals: Totals, values: Floats) -> list[Fraction]:
    """Return by how much the cells miss each of the totals, computed without rounding."""
    return [
        exact_total(values[rows, totals.column], problem.weights[rows]) - target
        for rows, target in zip(totals.rows_of_domains(), totals.targets, strict=True)
    ]


def _holds(group: Joint) -> bool:
    """Return True if the masked cells of a group have all totals already, up to rounding errors of floats."""
    for one in group.totals:
        misses = _misses(group.problem, one, group.problem.values)
        if any(abs(miss) > NOISE * abs(total) for miss, total in zip(misses, one.targets, strict=True)):
            return False
    return True


def _require_rules(problem: Problem) -> None:
    """Raise ValueError if the masked file breaks an edit rule."""
    if problem.rules is None:
        return
    places = [problem.columns.index(name) for name in problem.rules.columns]
    counts = problem.rules.violations(problem.values[:, places])
    for text, count in zip(problem.rules.texts, counts.tolist(), strict=True):
        if count:
            raise ValueError(
                f"the masked file breaks the rule {text} in {count} {plural(count, 'record')}; "
                "mask with this rule before calibrating"
            )


def _groups(problem: Problem) -> list[Joint]:
    """Return the columns with totals in groups: those that share edit rules are calibrated together."""
    groups: list[set[int]] = [{j} for j in range(len(problem.columns))]
    for rule in () if problem.rules is None else problem.rules.rules:
        inside = {problem.columns.index(name) for name in rule.columns}
        joined = inside.union(*(group for group in groups if group & inside))
        groups = [group for group in groups if not group & joined] + [joined]
    found = []
    for group in sorted(groups, key=min):
        totals = tuple(one for one in problem.totals if one.column in group)
        if totals:
            found.append(Joint(problem, tuple(sorted(group)), totals))
    return found


def _targets(problem: Problem, totals: Totals) -> Floats:
    """Return the totals to reach, in grid steps if the column has a grid; without weights, whole steps."""
    step = problem.steps[totals.column]
    unit = Fraction(1) if step is None else unit_of(step)
    wanted = [target / unit for target in totals.targets]
    if step is not None and (problem.weights == 1).all():
        wanted = [Fraction(round(target)) for target in wanted]
    return np.array([float(target) for target in wanted])


def _calibrate_column(
    problem: Problem, totals: Totals, values: Floats, continuous: Floats, rng: np.random.Generator
) -> None:
    """Write the calibrated cells of a column with one division into domains into both matrices."""
    j = totals.column
    step = problem.steps[j]
    sides = [problem.values[:, j], *(side[:, j] for side in problem.limits)]
    cells, low, high = sides if step is None else [counted(side, step) for side in sides]
    size = _weight_unit(problem.weights)
    for domain, (rows, target) in enumerate(
        zip(totals.rows_of_domains(), _targets(problem, totals), strict=True)
    ):
        chosen = rows[~np.isnan(cells[rows])]
        weights, limits = problem.weights[chosen], (low[chosen], high[chosen])
        found = one_column.nearest(cells[chosen], weights, *limits, float(target))
        if found is None:
            raise ValueError(f"{totals.named(domain)} cannot hold: {KEPT}; {REMEDY}")
        if step is None:
            values[chosen, j] = continuous[chosen, j] = found
            continue
        continuous[chosen, j] = found * float(unit_of(step))
        whole = grid.rounded(found, np.rint(weights * size), *limits, float(np.rint(target * size)), rng)
        values[chosen, j] = valued(whole, step)


def _require_reachable(problem: Problem, totals: Totals, targets: Floats) -> None:
    """Raise ValueError for a total that its cells cannot have between their limits, whatever others hold."""
    step = problem.steps[totals.column]
    unit = 1.0 if step is None else float(unit_of(step))
    low, high = (problem.weights * side[:, totals.column] / unit for side in problem.limits)
    for domain, (rows, target) in enumerate(zip(totals.rows_of_domains(), targets, strict=True)):
        noise = one_column.NOISE * float(np.nansum(np.abs(low[rows]) + np.abs(high[rows])))
        if not np.nansum(low[rows]) - noise <= target <= np.nansum(high[rows]) + noise:
            raise ValueError(f"{totals.named(domain)} cannot hold: {KEPT}; {REMEDY}")


def _weight_unit(weights: Floats) -> float:
    """Return the power of ten that makes all weights whole numbers; 1 if none of a usual size does."""
    digits = decimals_of(weights)
    return 10.0**digits if digits <= WEIGHT_DECIMALS else 1.0


def _calibrate_group(group: Joint, values: Floats, continuous: Floats, rng: np.random.Generator) -> None:
    """Write the calibrated cells of columns that share rules or have several divisions into both matrices."""
    problem = group.problem
    steps = {j: problem.steps[j] for j in group.columns}
    targets = [_targets(problem, one) for one in group.totals]
    units = [1.0 if (step := steps[one.column]) is None else float(unit_of(step)) for one in group.totals]
    for one, wanted in zip(group.totals, targets, strict=True):
        _require_reachable(problem, one, wanted)
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
        values[group.moving] = _without_noise(problem, found)[group.moving]
        return
    whole = _on_common_grid(group, found, targets, rng)
    if whole is None:
        raise ValueError(
            f"{texts} cannot hold on the grid: no cells within one step of the least change satisfy the edit "
            "rules; mask with more decimals"
        )
    for j in group.columns:
        step, moving = steps[j], group.moving[:, j]
        assert step is not None  # noqa: S101 - checked above
        values[moving, j] = valued(whole[moving, j], step)


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


def _without_noise(problem: Problem, found: Floats) -> Floats:
    """Return unrounded cells moved, by the rounding of floats, to where edit rules hold to the last bit."""
    if problem.rules is None:
        return found
    places = [problem.columns.index(name) for name in problem.rules.columns]
    result = found.copy()
    result[:, places] = problem.rules.repaired(found[:, places], None, problem.free[places])
    return result


def _on_common_grid(
    group: Joint, found: Floats, targets: Sequence[Floats], rng: np.random.Generator
) -> Floats | None:
    """Return all cells in whole grid steps for which rules and totals hold; None if there are none."""
    problem = group.problem
    steps = [step or Step(0) for step in problem.steps]  # columns outside of the group are not read
    exact = [unit_of(step) for step in steps]
    common = Fraction(1, math.lcm(*(exact[j].denominator for j in group.columns)))
    units = np.array([float(unit / common) for unit in exact])
    counts = np.column_stack(
        [counted(column, step) for column, step in zip(problem.values.T, steps, strict=True)]
    )
    equations = group.equations(counts, units, common, targets)
    weighted = bool((problem.weights != 1).any())
    cells, low, high = (
        np.column_stack([steps_in(column, step) for column, step in zip(side.T, steps, strict=True)])[
            group.moving
        ]
        for side in (found, *problem.limits)
    )
    for share in SLACKS if weighted else (0.0,):
        slack = np.zeros(len(equations.most))
        slack[len(slack) - equations.totals :] = share * problem.weights.max()
        whole = grid_rules.rounded(cells, np.rint(low), np.rint(high), equations, slack, rng)
        if whole is not None:
            counts[group.moving] = whole
            return counts
    return None
