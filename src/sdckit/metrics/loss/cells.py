"""Losses of cells: absolute, squared, relative, bounded; suppression; the split of the squared one."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sdckit.core import checks
from sdckit.core.registry import Parameter
from sdckit.core.roles import Roles
from sdckit.kernels.sums import powers_of_two
from sdckit.metrics.blocks import (
    ALL,
    CHANGED,
    IL1,
    IL1S,
    MAE,
    MSE,
    NOT_ZERO,
    SEEN,
    ZERO,
    Cost,
    Scaled,
    arctan_changes,
    squared_cost,
)
from sdckit.metrics.original import Original
from sdckit.metrics.pair import metric, pooled_means, record_means, require_in_memory
from sdckit.metrics.publishable import cell_is_dominated
from sdckit.metrics.score import Score, Values, sentence_of
from sdckit.progress import each

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sdckit.arrays import Bools, Floats, Ints
    from sdckit.metrics.blocks import VariableCells
    from sdckit.metrics.pair import Comparison, Pair


def may_have_overflowed(score: Score) -> bool:
    """Return True if a number of the score is infinite, or NaN other than for a record without cells."""
    values = [score.value.overall] if score.random is None else [score.value.overall, score.random.overall]
    if not all(map(math.isfinite, values)):
        return True
    return score.records is not None and bool(np.isinf(score.records).any())


def repair_score(plain: Score, pair: Pair, columns: list[VariableCells]) -> Score:
    """Return the score with numbers that are not finite computed again; those beyond all floats stay."""
    costs = [_scaled_costs(pair, j, cells) for j, cells in enumerate(columns)]
    found = replace(plain, value=merge_values(plain.value, _overflow_means(costs, columns)))
    if plain.random is not None:
        found = replace(found, random=merge_values(plain.random, _unrelated_means(pair, columns)))
    if plain.records is not None:
        found = replace(found, records=_merge(plain.records, _overflow_record_means(pair, costs, columns)))
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


def _overflow_means(costs: list[Scaled], columns: list[VariableCells]) -> Values:
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


def _overflow_record_means(pair: Pair, costs: list[Scaled], columns: list[VariableCells]) -> Floats:
    """Return the mean cost of each record over its counted variables; NaN for a record without any."""
    shape = (pair.p, pair.original.n)
    table, counts = Scaled(np.zeros(shape), np.zeros(shape, np.int32)), np.zeros(shape)
    rows = np.arange(pair.original.n)
    for j, (found, cells) in enumerate(zip(costs, columns, strict=True)):
        chosen, used = rows[pair.both(j)][cells.counts], found[cells.counts]
        table.mantissas[j, chosen], table.exponents[j, chosen] = used.mantissas, used.exponents
        counts[j, chosen] = 1
    return (table.sum() / Scaled.of(counts.sum(axis=0))).floats()


MLODAK = "Mlodak 2020, doi:10.5604/01.3001.0014.4121"
SCALES = ("spread", "raw")


def score_il_variables(
    comparison: Comparison,
    *,
    scale: str = "spread",
    missing: str = "pairwise",
    detail: bool = False,
    per_record: bool = False,
) -> Score:
    """Return the score of IL_variables, the mean bounded change of a cell."""
    checks.one_of("scale", scale, SCALES)
    penalise = checks.checked_missing_rule(missing, bounded=True, name="il_variables") == "penalise"
    units = comparison.spreads if scale == "spread" else np.ones(comparison.p)
    known = ~np.isnan(units)
    costs, weights = np.zeros(comparison.p), np.where(known, comparison.kept_weight, 0.0)
    for j in np.flatnonzero(known).tolist():
        costs[j] = comparison.variable(j).arctan_sum(float(units[j]))
    if penalise:
        gone = comparison.suppressed_weight  # at cost 1
        costs, weights = costs + gone, weights + gone
    value = pooled_means(costs, weights)
    extra: dict[str, Any] = {}
    if detail:
        extra["notes"] = _il_variables_notes(comparison, scale, value.variables)
    if per_record:
        pair = require_in_memory(comparison, "a loss of each record")
        extra["records"] = _record_changes(pair, units, penalise=penalise)
    both = comparison.counts.both
    bounded = Values(float(np.minimum(value.overall, 1.0)), np.minimum(value.variables, 1.0))
    return Score(bounded, both * known, both * ~known, **extra)


def _record_changes(pair: Pair, units: Floats, *, penalise: bool) -> Floats:
    """Return the mean bounded change of each record's cells; suppressed ones count 1 if penalised."""
    known = np.flatnonzero(~np.isnan(units)).tolist()
    changes = [(pair.both(j), arctan_changes(*pair.cells(j)[:2], float(units[j]))) for j in known]
    lost = [(pair.suppressed(j), 1.0) for j in range(pair.p)] if penalise else []
    return record_means(pair.n, [*changes, *lost])


def _il_variables_notes(comparison: Comparison, scale: str, variables: Floats) -> tuple[str, ...]:
    """Return notes on constant variables that changed, or on the dependence on units."""
    if scale == "raw":
        return ("il_variables with scale=raw depends on the units of the data",)
    changed = (comparison.spreads == 0) & (variables > 0)
    return tuple(
        f"{comparison.columns[j]} is constant in the original, so any change of it counts 1"
        for j in np.flatnonzero(changed)
    )


@metric(
    title="IL_variables, bounded change of a cell",
    place=60,
    needs="cells",
    in_blocks=True,
    score=score_il_variables,
    explain=partial(
        sentence_of,
        text="the change of a cell scores {:.4f} on average, where 0 is none, 0.5 a change by one unit "
        "(a standard deviation by default) and 1 an infinite change",
        kept="no cell changed",
    ),
    reference=MLODAK,
    parameters=(Parameter("scale", str, "spread", "the unit of a change", choices=SCALES),),
    default=False,
)
def il_variables(
    original: Any, masked: Any, *, scale: str = "spread", weights: Any = None, missing: str = "pairwise"
) -> float:
    """Mean change of a cell, mapped by the arctangent to 0 (unchanged) to 1 (infinite change).

    0 means that no cell changed, 1/2 is a change by one unit in every cell, 1 an infinite change. With
    `scale="raw"`, the convention of the R package, the unit is that of the data: the value changes when
    amounts are given in thousands, and large numbers always score about 1.

    Parameters
    ----------
    original, masked, weights
        As for `mae`.
    scale : str
        "spread": in units of the original's standard deviation (ddof 1); "raw": in units of the data.
    missing : str
        "pairwise" compares the cells that both files have; "penalise" counts a suppressed cell 1.

    Returns
    -------
    float
        Mean over all cells used.

    Notes
    -----
    (2/pi) arctan(|x - y| / S), S the standard deviation or 1. Any change of a constant variable
    counts 1 where the standard deviation is the unit.

    References
    ----------
    Mlodak 2020, Information loss resulting from statistical disclosure control of output data,
    doi:10.5604/01.3001.0014.4121.

    Examples
    --------
    >>> import sdckit as sdc
    >>> round(sdc.il_variables([1, 2, 3], [1, 2.5, 5], scale="raw"), 4)
    0.3333
    """


HANDBOOK = "Hundepool et al. 2012, Statistical Disclosure Control, Wiley, doi:10.1002/9781118348239"
YANCEY = "Yancey, Winkler & Creecy 2002, doi:10.1007/3-540-47804-3_11"
ZEROS = ("keep", "drop", "error")


def _totals(comparison: Comparison, cost: Cost, zeros: str) -> tuple[Floats, Floats, Ints]:
    """Return each variable's weighted sum of costs, sum of weights and number of cells counted."""
    sums, counts = comparison.cell_sums
    costs, weights, used = sums[:, cost.place], sums[:, ALL], comparison.cell_sums.used(cost, zeros)
    if cost.scale == "value":
        if zeros == "error" and counts[:, CHANGED].any():
            j = int(np.flatnonzero(counts[:, CHANGED])[0])
            raise ValueError(
                f"column {comparison.columns[j]!r} has {counts[j, CHANGED]} zeros that were changed: "
                "no relative change exists; use zeros='keep' or il1s"
            )
        weights = sums[:, NOT_ZERO] + (zeros != "drop") * sums[:, ZERO]
    elif cost.scale == "spread":
        costs = costs / comparison.scales
        if not comparison.all_vary:
            spreads = comparison.spreads
            # Cells of a constant variable cost 0 or infinity; a variable with one value is not counted.
            costs = np.where((spreads == 0) & (costs > 0), np.inf, costs)
            some = ~np.isnan(spreads)
            costs, weights, used = costs * some, weights * some, used * some
    return costs, weights, used


def score_cells(
    cost: Cost,
    comparison: Comparison,
    *,
    missing: str = "pairwise",
    zeros: str = "keep",
    detail: bool = False,
    per_record: bool = False,
) -> Score:
    """Return the score of MAE, MSE, IL1 or IL1s, as `cost` says."""
    checks.checked_missing_rule(missing, bounded=False, name="this metric")
    checks.one_of("rule for zeros", zeros, ZEROS)
    with np.errstate(over="ignore", invalid="ignore"):
        found = _score_without_rescaling(cost, comparison, zeros=zeros, detail=detail, per_record=per_record)
        if may_have_overflowed(found) and comparison.in_memory is not None:
            found = repair_score(found, comparison.in_memory, _columns(comparison.in_memory, cost, zeros))
    return found


def _columns(pair: Pair, cost: Cost, zeros: str) -> list[VariableCells]:
    """Return the cells of each variable, ready to be counted one by one."""
    return [pair.variable(j).cells(cost, zeros) for j in range(pair.p)]


def _score_without_rescaling(
    cost: Cost, comparison: Comparison, *, zeros: str, detail: bool, per_record: bool
) -> Score:
    """Return the score from plain sums; infinite or NaN where a sum exceeds the range of floats."""
    costs, weights, used = _totals(comparison, cost, zeros)
    left_out = comparison.cell_sums.counts[:, SEEN] - used
    extra: dict[str, Any] = {}
    if detail:
        variables = (comparison.variable(j) for j in each("measuring", range(comparison.p)))
        shuffled = np.array([variable.unrelated_cells(cost, zeros) for variable in variables])
        extra["random"] = pooled_means(*shuffled.T)
        extra["notes"] = _cell_notes(comparison, cost, costs, left_out)
    if per_record:
        memory = require_in_memory(comparison, "a loss of each record")
        rows, cells = np.arange(memory.n), enumerate(_columns(memory, cost, zeros))
        used_costs = ((rows[memory.both(j)][one.counts], one.costs()[one.counts]) for j, one in cells)
        extra["records"] = record_means(memory.n, used_costs)
    return Score(pooled_means(costs, weights), used, left_out, **extra)


def _cell_notes(comparison: Comparison, cost: Cost, costs: Floats, left_out: Ints) -> tuple[str, ...]:
    """Return notes on constant variables that changed and on zeros without a relative change."""
    notes = [
        f"{name} is constant in the original, so its change has no scale"
        for name, total, spread in zip(comparison.columns, costs, comparison.spreads, strict=True)
        if cost.scale == "spread" and spread == 0 and np.isinf(total)
    ]
    if cost.scale == "value" and left_out.sum():
        cells = int(left_out.sum())
        notes.append(f"cells left out because an original value of 0 has no relative change: {cells}")
    return tuple(notes)


UNBOUNDED: dict[str, Any] = {"bounds": (0.0, math.inf), "in_blocks": True}
explain_cells = partial(
    sentence_of,
    infinite="a change has no bound: a constant variable was changed, or the numbers are too large",
)


@metric(
    title="MAE, mean absolute error",
    place=20,
    in_paper=True,
    colour="orange",
    score=partial(score_cells, MAE),
    dominated=partial(cell_is_dominated, MAE),
    explain=partial(explain_cells, text="a cell changed by {:.4g} on average, in the units of the data"),
    reference=HANDBOOK,
    needs="cells",
    **UNBOUNDED,
)
def mae(original: Any, masked: Any, *, weights: Any = None, missing: str = "pairwise") -> float:
    """Mean absolute difference of original and masked cells, in units of the data; 0 if no cell changed.

    0 means that no cell changed; there is no largest value. Variables in large units dominate it.

    Parameters
    ----------
    original, masked : table
        pandas, polars, pyarrow or numpy, rows paired by order; `original` may be a `Microdata`.
    weights : str or array, optional
        Survey weights.
    missing : str
        "pairwise": cells missing in either file are left out and counted.

    Returns
    -------
    float
        Mean of |x - y| over all cells used.

    References
    ----------
    Hundepool et al. 2012, Statistical Disclosure Control, Wiley, doi:10.1002/9781118348239.

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.mae([10, 20, 30, 40, 0], [12, 18, 33, 40, 1])
    1.6
    """


@metric(
    title="MSE, mean squared error",
    place=20,
    in_paper=True,
    colour="amber",
    score=partial(score_cells, MSE),
    dominated=partial(cell_is_dominated, MSE),
    explain=partial(
        explain_cells, text="the squared change of a cell is {:.4g} on average, in squared units of the data"
    ),
    reference=HANDBOOK,
    needs="cells",
    **UNBOUNDED,
)
def mse(original: Any, masked: Any, *, weights: Any = None, missing: str = "pairwise") -> float:
    """Mean squared difference of original and masked cells, in squared units of the data; 0 if none changed.

    0 means that no cell changed; there is no largest value. Few large changes dominate it, and so
    do variables in large units.

    Parameters
    ----------
    original, masked, weights, missing
        As for `mae`.

    Returns
    -------
    float
        Mean of (x - y)**2 over all cells used.

    References
    ----------
    Hundepool et al. 2012, Statistical Disclosure Control, Wiley, doi:10.1002/9781118348239.

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.mse([10, 20, 30, 40, 0], [12, 18, 33, 40, 1])
    3.6
    """


@metric(
    title="IL1, mean variation",
    place=20,
    in_paper=True,
    colour="green",
    score=partial(score_cells, IL1),
    dominated=partial(cell_is_dominated, IL1),
    explain=partial(explain_cells, text="a cell changed by {:.1%} of its own size on average"),
    reference="Mateo-Sanz, Sebe & Domingo-Ferrer 2004, doi:10.1007/978-3-540-25955-8_16",
    parameters=(Parameter("zeros", str, "keep", "what a changed zero counts", choices=ZEROS),),
    needs="cells",
    **UNBOUNDED,
)
def il1(
    original: Any, masked: Any, *, zeros: str = "keep", weights: Any = None, missing: str = "pairwise"
) -> float:
    """Mean absolute change of a cell relative to its own size; 0 if no cell changed.

    0 means that no cell changed; there is no largest value. Values near 0 dominate it, and a value
    of 0 has no relative change at all: prefer `il1s` where there are such cells.

    Parameters
    ----------
    original, masked, weights, missing
        As for `mae`.
    zeros : str
        "keep": a zero that stays zero counts 0, a changed zero is left out and counted; "drop":
        every cell that was zero is left out; "error": a changed zero is refused.

    Returns
    -------
    float
        Mean of |x - y| / |x| over all cells used.

    References
    ----------
    Mateo-Sanz, Sebe & Domingo-Ferrer 2004, doi:10.1007/978-3-540-25955-8_16.

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.il1([10, 20, 30, 40, 0], [12, 18, 33, 40, 1])
    0.1
    """


@metric(
    title="IL1s, mean variation scaled by the standard deviation",
    place=20,
    shown="overview",
    in_paper=True,
    colour="pink",
    score=partial(score_cells, IL1S),
    dominated=partial(cell_is_dominated, IL1S),
    explain=partial(
        explain_cells,
        text="a cell changed by {:.1%} of its variable's standard deviation on average",
        factor=math.sqrt(2),
    ),
    reference=YANCEY,
    needs="cells",
    **UNBOUNDED,
)
def il1s(original: Any, masked: Any, *, weights: Any = None, missing: str = "pairwise") -> float:
    """Mean absolute change of a cell in sqrt(2) standard deviations of its variable; 0 if none changed.

    0 means that no cell changed; there is no largest value, but unrelated normal columns score
    about 0.8. The scale is the original's standard deviation (ddof 1) over its observed cells, within
    a stratum that of the stratum.

    Parameters
    ----------
    original, masked, weights, missing
        As for `mae`.

    Returns
    -------
    float
        Mean of |x - y| / (sqrt(2) S) over all cells used; infinite where a constant variable
        was changed.

    References
    ----------
    Yancey, Winkler & Creecy 2002, doi:10.1007/3-540-47804-3_11.

    Examples
    --------
    >>> import sdckit as sdc
    >>> round(sdc.il1s([10, 20, 30, 40, 0], [12, 18, 33, 40, 1]), 5)
    0.07155
    """


def score_suppressed(comparison: Comparison, *, per_record: bool = False, **_: bool) -> Score:
    """Return the score of `suppressed`: shares of the original's cells that the masked file has not."""
    counts = comparison.counts
    if counts.suppressed.any():
        gone, kept = comparison.suppressed_weight, comparison.kept_weight
    else:
        gone, kept = np.zeros(comparison.p), counts.both.astype(np.float64)
    records = None
    if per_record:
        records = record_means(comparison.n, _lost(require_in_memory(comparison, "a loss of each record")))
    none = np.zeros(comparison.p, np.int64)
    return Score(pooled_means(gone, kept + gone), counts.both, none, records=records)


def _lost(pair: Pair) -> Iterator[tuple[Bools, Floats]]:
    """Yield, for each variable, the rows with an original value, and 1 for each suppressed one."""
    for j in range(pair.p):
        observed = ~pair.original.missing[:, j]
        yield observed, pair.suppressed(j)[observed].astype(np.float64)


def _explain_suppressed(score: Score) -> str:
    """Return a sentence that explains the share of suppressed cells."""
    if score.value.overall == 1:
        return "no value of the original is left in the masked file"
    return sentence_of(
        score,
        "{:.2g} of 100 values of the original are missing in the masked file",
        factor=100,
        empty="the original has no values",
        kept="no value of the original is missing in the masked file",
    )


@metric(
    title="suppressed cells, the share of values that are gone",
    place=12,
    needs="places",
    in_blocks=True,
    score=score_suppressed,
    explain=_explain_suppressed,
    reference="a count; Hundepool et al. 2012, doi:10.1002/9781118348239, on local suppression",
    any_data=True,
    shown="headline",
)
def suppressed(original: Any, masked: Any, *, weights: Any = None) -> float:
    """Share of the original's values that are missing in the masked file.

    0 means that no value was suppressed, 1 that none is left. The other losses compare the cells that both
    files have and leave suppressed ones out, unless `missing="penalise"` counts them. Not for comparing the
    values that are left (see `brmae`), nor for files whose rows are not paired.

    Parameters
    ----------
    original, masked : table
        pandas, polars, pyarrow or numpy; `original` may be a `Microdata`.
    weights : str or array, optional
        Survey weights: a cell counts with the weight of its record.

    Returns
    -------
    float
        Suppressed cells of all variables, divided by the cells of the original that have a value.

    Notes
    -----
    A cell is suppressed if it has a value in the original and none in the masked file. Cells that are
    missing in the original do not count, whatever the masked file has there.

    References
    ----------
    Hundepool et al. 2012, Statistical Disclosure Control, doi:10.1002/9781118348239, on local suppression.

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.suppressed([[1, 5], [2, 6], [3, float("nan")]], [[1, 5], [float("nan")] * 2, [3, 7]])
    0.4
    """


Part = Literal["marginal", "permutation"]

REFERENCE = "Hardy, Littlewood & Polya 1952, Inequalities (rearrangements)"


def score_split(
    part: Part, comparison: Comparison, *, missing: str = "pairwise", detail: bool = False, **_: bool
) -> Score:
    """Return the score of one part of the MSE: "marginal" or "permutation"."""
    checks.checked_missing_rule(missing, bounded=False, name=f"mse_{part}")
    marginal, permutation = comparison.split_sums
    weights = comparison.kept_weight
    extra: dict[str, Any] = {}
    with np.errstate(over="ignore", invalid="ignore"):  # a mean beyond the range of numbers is infinite
        value = _split_means(marginal if part == "marginal" else permutation, weights)
        if detail and part == "permutation":
            extra["random"] = _split_means(comparison.unrelated_squares.minus(marginal), weights)
    return Score(value, comparison.counts.both, np.zeros(comparison.p, np.int64), **extra)


def _split_means(sums: Scaled, weights: Floats) -> Values:
    """Return sum / weight for each variable and for all cells together, also where a sum overflows."""
    plain = pooled_means(sums.floats(), weights)
    return (
        plain
        if math.isfinite(plain.overall)
        else merge_values(plain, pooled_scaled(sums, Scaled.of(weights)))
    )


@metric(
    title="MSE, part of changed distributions",
    place=40,
    needs="columns",
    paired=False,
    score=partial(score_split, "marginal"),
    dominated=partial(cell_is_dominated, MSE),
    explain=partial(
        sentence_of,
        text="changed distributions account for {:.4g} of MSE, which metrics of ranks cannot see: "
        "a change that keeps the order moves no rank",
        kept="every variable keeps its values, in whatever order",
    ),
    reference=REFERENCE,
    **UNBOUNDED,
)
def mse_marginal(original: Any, masked: Any, *, weights: Any = None, missing: str = "pairwise") -> float:
    """Mean squared difference of original and masked values of equal rank; 0 if distributions are kept.

    0 means that every variable keeps its values, in whatever order, as after rank swapping; there is
    no largest value. Metrics of ranks cannot see a monotone change of a variable; this part of MSE
    is all that such a change costs. Variables in large units dominate it.

    Parameters
    ----------
    original, masked, weights, missing
        As for `mae`.

    Returns
    -------
    float
        Mean of (x(i) - y(i))**2 over all cells used, both columns sorted.

    Notes
    -----
    mse = mse_marginal + mse_permutation, exactly, and neither part is below 0: no pairing of the
    values costs less than that of equal ranks.

    References
    ----------
    Hardy, Littlewood & Polya 1952, Inequalities, chapter 10 (rearrangements).

    Examples
    --------
    >>> import sdckit as sdc
    >>> x, y = [1, 2, 3, 4, 5], [2, 1, 3, 6, 4]
    >>> sdc.mse(x, y), sdc.mse_marginal(x, y), sdc.mse_permutation(x, y)
    (1.4, 0.2, 1.2)
    """


@metric(
    title="MSE, part of changed places",
    place=40,
    needs="cells",
    score=partial(score_split, "permutation"),
    dominated=partial(cell_is_dominated, MSE),
    explain=partial(
        sentence_of,
        text="values that changed places account for {:.4g} of MSE, the rest keeps the order",
        kept="no value has changed places, so the rest of MSE is a change that keeps the order",
    ),
    reference=REFERENCE,
    **UNBOUNDED,
)
def mse_permutation(original: Any, masked: Any, *, weights: Any = None, missing: str = "pairwise") -> float:
    """Part of the mean squared error due to values permuted among records; 0 if the order is kept.

    0 means that every variable keeps its order, however its values changed; there is no largest
    value. It says in units of the data what `brmse` says in ranks. Variables in large units dominate it.

    Parameters
    ----------
    original, masked, weights, missing
        As for `mae`.

    Returns
    -------
    float
        (2/n) (sum x(i) y(i) - sum x y), with both columns sorted in the first sum, over all cells used.

    Notes
    -----
    mse = mse_marginal + mse_permutation, exactly, and neither part is below 0.

    References
    ----------
    Hardy, Littlewood & Polya 1952, Inequalities, chapter 10 (rearrangements).

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.mse_permutation([1, 2, 3, 4, 5], [2, 1, 3, 6, 4])
    1.2
    >>> sdc.mse_permutation([1, 2, 3, 4, 5], [1, 4, 9, 16, 25])
    0.0
    """
