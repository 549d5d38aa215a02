"""MSE as an exact sum of two parts: changed distributions, and values permuted among records."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sdckit.core import checks
from sdckit.core.parameters import MISSING_RULE
from sdckit.core.registry import metric
from sdckit.kernels.jit import Floats, Ints, kernel
from sdckit.kernels.scaling import powers_of_two
from sdckit.metrics.averages import pooled_means, record_weights
from sdckit.metrics.dominated import cell_is_dominated
from sdckit.metrics.loss.cell_overflow import merge_values, pooled_scaled
from sdckit.metrics.loss.cell_sums import MSE
from sdckit.metrics.loss.per_variable import CoupledColumns, couple_quantiles
from sdckit.metrics.loss.scaled_numbers import Scaled
from sdckit.metrics.pair import Pair, pair_of
from sdckit.metrics.score import Score, Values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from sdckit.metrics.original import Original

Part = Literal["marginal", "permutation"]

CELLS_AT_ONCE = 1 << 18
ROUNDING = 1e-14  # share of MSE below which a part is the rounding error of the other
REFERENCE = "Hardy, Littlewood & Polya 1952, Inequalities (rearrangements)"


def sums_of_parts(pair: Pair) -> dict[Part, Scaled]:
    """Return each variable's weighted sum of both parts of the squared error, computed once."""
    if "parts of mse" not in pair.cache:
        found = [_part_sums(pieces) for pieces in _coupled_columns(pair)]
        marginal, permutation, powers = (np.concatenate(part) for part in zip(*found, strict=True))
        pair.cache["parts of mse"] = {
            "marginal": Scaled(marginal, powers),
            "permutation": Scaled(permutation, powers),
        }
    sums: dict[Part, Scaled] = pair.cache["parts of mse"]
    return sums


def _coupled_columns(pair: Pair) -> Iterator[CoupledColumns]:
    """Yield sorted original columns beside sorted masked ones, several variables at once if complete."""
    if not pair.complete or pair.original.weights is not None:
        for j in range(pair.p):
            x, own, y, weights = couple_quantiles(*pair.cells(j))
            yield CoupledColumns(x[None], own[None], y[None], weights)
        return
    several = max(1, CELLS_AT_ONCE // pair.original.n)
    for begin in range(0, pair.p, several):
        y = pair.by_variable[begin : begin + several]
        x, positions = _sorted_columns(pair.original, begin, len(y))
        yield CoupledColumns(x, np.take(y, positions), np.sort(y), np.empty(0))


def _sorted_columns(original: Original, begin: int, several: int) -> tuple[Floats, Ints]:
    """Return `several` original columns from `begin` on, sorted, and the positions of their records."""
    if "order for parts of mse" in original.cache:
        kept: tuple[Floats, Ints] = original.cache["order for parts of mse"]
        return kept
    columns = [original.ordered(j) for j in range(begin, begin + several)]
    found = (
        np.stack([column.sorted for column in columns]),
        np.stack([column.order + line * original.n for line, column in enumerate(columns)]),
    )
    if several == len(original.columns):  # small, and asked for again by every masked file
        original.cache["order for parts of mse"] = found
    return found


def _part_sums(pieces: CoupledColumns) -> tuple[Floats, Floats, NDArray[np.int32]]:
    """Return both parts of the squared error, marginal and permutation, and the power of two of their unit.

    Each has one sum per row of columns.
    """
    x, own, y, weights = pieces
    sums, power = np.zeros((len(x), 2)), np.zeros(len(x), np.int32)
    if not x.size:
        return sums[:, 0], sums[:, 1], power
    largest = np.abs((x[:, 0], x[:, -1], y[:, 0], y[:, -1])).max(0)
    if not ((largest > 1e-140) & (largest < 1e140)).all():  # squares would leave the range of numbers
        power = np.clip(np.frexp(largest)[1], -1000, 1000)
        x, own, y = (np.ldexp(part, -power[:, None]) for part in (x, own, y))
    add_parts(x, own, y, weights, sums)
    marginal, permutation = sums.T
    permutation[permutation < ROUNDING * marginal] = 0.0
    return marginal, permutation, 2 * power


@kernel
def add_parts(x: Floats, own: Floats, y: Floats, weights: Floats, sums: Floats) -> None:
    """Add both parts of the squared error of each row to the sums; empty `weights` stand for ones.

    With `own` instead of `y` the squares would add up to MSE, so the permutation part is the sum of
    (x - own)**2 - (x - y)**2. Factored, every factor is as small as the changes are: large values
    with small changes lose no digits, and where the order is kept all terms are 0. Blocks are added up
    apart, so that the rounding errors of a long column do not pile up.
    """
    for j in range(len(x)):
        for begin in range(0, x.shape[1], 256):
            marginal = permutation = 0.0
            for i in range(begin, min(begin + 256, x.shape[1])):
                w = weights[i] if weights.size else 1.0
                apart = x[j, i] - y[j, i]
                marginal += w * apart * apart
                permutation += w * (y[j, i] - own[j, i]) * ((x[j, i] - own[j, i]) + apart)
            sums[j, 0] += marginal
            sums[j, 1] += permutation


def score_split(
    part: Part, pair: Pair, *, missing: str = "pairwise", detail: bool = False, per_record: bool = False
) -> Score:
    """Return the score of one part of the MSE: "marginal" or "permutation"."""
    checks.checked_missing_rule(missing, bounded=False, name=f"mse_{part}")
    sums = sums_of_parts(pair)
    weights = pair.counts.both.astype(np.float64)
    if pair.original.weights is not None:
        weights = np.array([record_weights(pair)[pair.both(j)].sum() for j in range(pair.p)])
    extra: dict[str, Any] = {}
    with np.errstate(over="ignore", invalid="ignore"):  # a mean beyond the range of numbers is infinite
        value = _means(sums[part], weights)
        if detail and part == "permutation":
            extra["random"] = _means(_unrelated_squares(pair).minus(sums["marginal"]), weights)
    if per_record:
        extra["records"] = np.full(pair.original.n, np.nan)
    return Score(value, pair.counts.both, np.zeros(pair.p, np.int64), **extra)


def _means(sums: Scaled, weights: Floats) -> Values:
    """Return sum / weight for each variable and for all cells together, also where a sum overflows."""
    plain = pooled_means(sums.floats(), weights)
    return (
        plain
        if math.isfinite(plain.overall)
        else merge_values(plain, pooled_scaled(sums, Scaled.of(weights)))
    )


def _unrelated_squares(pair: Pair) -> Scaled:
    """Return each variable's squared error for an unrelated order: the mean over all permutations."""
    found, powers = np.zeros(pair.p), np.zeros(pair.p, np.int32)
    for j in np.flatnonzero(pair.counts.both):
        x, y, weights = pair.cells(int(j))
        unit = powers_of_two(np.concatenate([x, y]))
        powers[j] = 2 * (np.frexp(unit)[1] - 1)
        found[j] = MSE.unrelated_sum(x / unit, y / unit, np.ones(x.size) if weights is None else weights)
    return Scaled(found, powers)


def _explain_marginal(score: Score) -> str:
    """Return a sentence that explains the part of MSE due to changed distributions."""
    value = score.value.overall
    if math.isnan(value):
        return "there are no cells to compare"
    if value == 0:
        return "every variable keeps its values, in whatever order"
    return (
        f"changed distributions account for {value:.4g} of MSE, which metrics of ranks cannot see: "
        "a change that keeps the order moves no rank"
    )


def _explain_permutation(score: Score) -> str:
    """Return a sentence that explains the part of MSE due to values permuted among records."""
    value, random = score.value.overall, score.random
    if math.isnan(value):
        return "there are no cells to compare"
    if value == 0:
        return "no value has changed places, so the rest of MSE is a change that keeps the order"
    text = f"values that changed places account for {value:.4g} of MSE, the rest keeps the order"
    if random is not None and not math.isnan(random.overall):
        text += f"; an unrelated order would score {random.overall:.4g}"
    return text


@metric(
    title="MSE, part of changed distributions",
    place=40,
    family="loss",
    bounds=(0.0, float("inf")),
    best=0.0,
    needs="columns",
    paired=False,
    score=partial(score_split, "marginal"),
    dominated=partial(cell_is_dominated, MSE),
    explain=_explain_marginal,
    reference=REFERENCE,
    parameters=(MISSING_RULE,),
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
    pair = pair_of(original, masked, weights=weights)
    return score_split("marginal", pair, missing=missing).value.overall


@metric(
    title="MSE, part of changed places",
    place=40,
    family="loss",
    bounds=(0.0, float("inf")),
    best=0.0,
    needs="cells",
    score=partial(score_split, "permutation"),
    dominated=partial(cell_is_dominated, MSE),
    explain=_explain_permutation,
    reference=REFERENCE,
    parameters=(MISSING_RULE,),
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
    pair = pair_of(original, masked, weights=weights)
    return score_split("permutation", pair, missing=missing).value.overall
