"""Means of cells whose plain sums overflow, computed again with mantissas and exponents apart.

A sum of large numbers can be infinite although their mean is not. Only numbers that came out infinite or
NaN are replaced; all others keep their digits.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sdckit.core.roles import Roles
from sdckit.kernels.scaling import powers_of_two
from sdckit.metrics.blocks.cell_sums import squared_cost
from sdckit.metrics.blocks.scaled_numbers import Scaled
from sdckit.metrics.original import Original
from sdckit.metrics.score import Score, Values

if TYPE_CHECKING:
    from sdckit.kernels.jit import Floats
    from sdckit.metrics.blocks.variable_cells import VariableCells
    from sdckit.metrics.pair import Pair


def may_have_overflowed(score: Score) -> bool:
    """Return True if a number of the score is infinite, or NaN other than for a record without cells."""
    values = [score.value.overall] if score.random is None else [score.value.overall, score.random.overall]
    if not all(map(math.isfinite, values)):
        return True
    return score.records is not None and bool(np.isinf(score.records).any())


def repair_score(plain: Score, pair: Pair, columns: list[VariableCells]) -> Score:
    """Return the score with numbers that are not finite computed again; those beyond all floats stay."""
    costs = [_scaled_costs(pair, j, cells) for j, cells in enumerate(columns)]
    found = replace(plain, value=merge_values(plain.value, _means(costs, columns)))
    if plain.random is not None:
        found = replace(found, random=merge_values(plain.random, _unrelated_means(pair, columns)))
    if plain.records is not None:
        found = replace(found, records=_merge(plain.records, _record_means(pair, costs, columns)))
    return found


def merge_values(plain: Values, other: Values) -> Values:
    """Return file and variable values, those that are not finite from `other`."""
    overall = plain.overall if math.isfinite(plain.overall) else other.overall
    return Values(overall, _merge(plain.variables, other.variables))


def _merge(plain: Floats, other: Floats) -> Floats:
    """Return the numbers of `plain`, those that are not finite from `other`."""
    return np.where(np.isfinite(plain), plain, other)


def _scales(pair: Pair, j: int, cells: VariableCells) -> Scaled:
    """Return the divisor of each cell's cost; sqrt(2) standard deviations may exceed the largest float."""
    if cells.cost.scale != "spread" or cells.constant:
        return Scaled.of(cells.scale)
    values = pair.original.values[:, [j]]
    unit = powers_of_two(values)
    spread = Original(Roles(("x1",)), values / unit, weights=pair.original.weights).spreads
    scale = Scaled.of(math.sqrt(2) * spread) * Scaled.of(unit)
    n = cells.x.size
    return Scaled(np.repeat(scale.mantissas, n), np.repeat(scale.exponents, n))


def _scaled_costs(pair: Pair, j: int, cells: VariableCells) -> Scaled:
    """Return the cost of each cell of variable j; infinite for changed cells of a constant variable."""
    if cells.constant:
        return Scaled.of(cells.costs())
    gaps = Scaled.gaps(cells.x, cells.y)
    return (gaps * gaps if cells.cost.of is squared_cost else gaps) / _scales(pair, j, cells)


def _means(costs: list[Scaled], columns: list[VariableCells]) -> Values:
    """Return the weighted mean cost of each variable and of all cells that count."""
    used = [found[cells.counts] for found, cells in zip(costs, columns, strict=True)]
    weights = [Scaled.of(cells.weights[cells.counts]) for cells in columns]
    sums = [(found * weight).sum() for found, weight in zip(used, weights, strict=True)]
    return pooled_scaled(Scaled.stack(sums), Scaled.stack([weight.sum() for weight in weights]))


def pooled_scaled(costs: Scaled, shares: Scaled) -> Values:
    """Return sum / weight for each variable and for all together; NaN where the weight is 0."""
    return Values(float((costs.sum() / shares.sum()).floats()), (costs / shares).floats())


def _unrelated_means(pair: Pair, columns: list[VariableCells]) -> Values:
    """Return the mean costs over permutations of the masked values, as `VariableCells.unrelated_totals`."""
    totals = [_unrelated_totals(pair, j, cells) for j, cells in enumerate(columns)]
    costs, shares = zip(*totals, strict=True)
    return pooled_scaled(Scaled.stack(list(costs)), Scaled.stack(list(shares)))


def _unrelated_totals(pair: Pair, j: int, cells: VariableCells) -> tuple[Scaled, Scaled]:
    """Return the sums of costs and of weights of variable j over permutations of its masked values."""
    rows, none = cells.costly, Scaled.of(np.zeros(()))
    if not cells.has_unrelated_level:
        return none, none
    met = np.where(rows, 1.0, 0.0 if rows.all() else cells.zero_share)
    weights = (Scaled.of(cells.weights) * Scaled.of(met)).sum()
    if not rows.any():
        return none, weights
    shares = (Scaled.of(cells.weights) / _scales(pair, j, cells))[rows].in_one_unit()
    unit = powers_of_two(np.concatenate([cells.x, cells.y]))
    total = cells.cost.unrelated_sum(cells.x[rows] / unit, cells.y / unit, shares.mantissas)
    power = Scaled.of(unit) * Scaled.of(unit) if cells.cost.of is squared_cost else Scaled.of(unit)
    return Scaled(np.array(total), shares.exponents) * power, weights


def _record_means(pair: Pair, costs: list[Scaled], columns: list[VariableCells]) -> Floats:
    """Return the mean cost of each record over its counted variables; NaN for a record without any."""
    shape = (pair.p, pair.original.n)
    table, counts = Scaled(np.zeros(shape), np.zeros(shape, np.int32)), np.zeros(shape)
    rows = np.arange(pair.original.n)
    for j, (found, cells) in enumerate(zip(costs, columns, strict=True)):
        chosen, used = rows[pair.both(j)][cells.counts], found[cells.counts]
        table.mantissas[j, chosen], table.exponents[j, chosen] = used.mantissas, used.exponents
        counts[j, chosen] = 1
    return (table.sum() / Scaled.of(counts.sum(axis=0))).floats()
