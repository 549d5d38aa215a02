"""Losses of means, variances, correlations and other moments."""

from __future__ import annotations

import math
from functools import partial
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core import checks, registry
from sdckit.core.registry import METRICS
from sdckit.core.text import shortened
from sdckit.kernels.ranks import OrderedColumn
from sdckit.kernels.sums import deviations, spread
from sdckit.metrics.loss.cells import MLODAK
from sdckit.metrics.pair import mean_over_variables, metric, penalise_suppressed, require_in_memory
from sdckit.metrics.score import Score, Values, sentence_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sdckit.arrays import Floats
    from sdckit.metrics.blocks import FileCorrelations
    from sdckit.metrics.pair import Comparison, VariableComparison


def measure_variables(
    measure: Callable[[VariableComparison], float], comparison: Comparison, *, least: int = 1
) -> Floats:
    """Return what `measure` finds for each variable; NaN with fewer than `least` shared cells."""
    variables = np.full(comparison.p, np.nan)
    for j in np.flatnonzero(comparison.counts.both >= least).tolist():
        variables[j] = measure(comparison.variable(j))
    return variables


def score_variables(
    comparison: Comparison,
    variables: Floats,
    *,
    missing: str = "pairwise",
    notes: Sequence[str] = (),
) -> Score:
    """Return the score of a metric with a value per variable, whose mean is the file's value."""
    if missing == "penalise":
        variables = penalise_suppressed(comparison, variables)
    value, none = Values(mean_over_variables(variables), variables), np.zeros(comparison.p, np.int64)
    return Score(value, comparison.counts.both, none, notes=tuple(notes))


SINGULAR = 1e-10  # eigenvalue of a correlation matrix below which a linear relation counts as exact
TAKES_PART = 1e-6  # entry of a null vector above which its column takes part in the relation
NAMED = 10  # columns that a message names at most


def require_complete_records(name: str, comparison: Comparison) -> int:
    """Return the number of records complete in both files; raise NotApplicable if the metric needs more."""
    registry.require_size(name, comparison.n, comparison.p)
    found, needed = comparison.complete_records, METRICS[name].records
    if not comparison.complete and found < needed:
        raise checks.NotApplicable(
            f"{name} needs at least {needed} records without a missing cell, the data have {found}; "
            "fill the gaps or leave columns out"
        )
    return found


def complete_values(name: str, comparison: Comparison) -> tuple[Floats, Floats]:
    """Return original and masked values of the records complete in both files, which must be in memory."""
    require_complete_records(name, comparison)
    return require_in_memory(comparison, name).complete_values()


def whole_file_score(
    name: str,
    comparison: Comparison,
    value: float,
    *,
    parts: dict[str, float] | None = None,
    notes: Sequence[str] = (),
    detail: bool,
) -> Score:
    """Return the score of a metric that has one value for the whole file and none per variable."""
    used = np.full(comparison.p, comparison.complete_records, np.int64)
    extra: dict[str, Any] = {"parts": parts or {}}
    if detail:
        extra["notes"] = (*notes, *ignored_weights_notes(name, comparison))
    return Score(Values(value, np.full(comparison.p, np.nan)), used, comparison.counts.both - used, **extra)


def ignored_weights_notes(name: str, comparison: Comparison) -> tuple[str, ...]:
    """Return a note that the metric ignores the weights, if there are weights."""
    return (f"{name} counts every record once, whatever its weight",) if comparison.weighted else ()


def refuse_constant(name: str, spreads: Floats, columns: Sequence[str], which: str) -> None:
    """Raise NotApplicable naming the first column whose spread is 0."""
    if not spreads.all():
        column = columns[int(np.flatnonzero(spreads == 0)[0])]
        raise checks.NotApplicable(
            f"{name} has no value: column {column!r} is constant in the {which} data; leave it out"
        )


def checked_correlations(name: str, comparison: Comparison, which: str, *, inverted: bool = True) -> Floats:
    """Return the correlations in the "original" or the "masked" data.

    Raises NotApplicable for a constant column and, where the matrix is `inverted`, for dependent columns.
    """
    found: FileCorrelations = getattr(comparison.correlations, which)
    refuse_constant(name, found.norms, comparison.columns, which)
    matrix = found.products.copy()
    np.fill_diagonal(matrix, 1.0)
    names = dependent_columns(matrix, comparison.columns) if inverted else []
    if names:
        raise checks.NotApplicable(
            f"{name} has no value: in the {which} data the columns {shortened(names, NAMED)} determine one "
            "another exactly; leave one of them out"
        )
    return matrix


def dependent_columns(matrix: Floats, columns: Sequence[str]) -> list[str]:
    """Return the names of the columns in an exact linear relation, given their correlation matrix.

    A relation is a vector that the matrix maps to 0. A column takes part if it has a share in some
    such vector, that is, if its axis is not orthogonal to all of them.
    """
    eigenvalues, vectors = np.linalg.eigh(matrix)
    shares = np.sqrt((vectors[:, eigenvalues <= SINGULAR] ** 2).sum(1))
    return [column for column, share in zip(columns, shares, strict=True) if share > TAKES_PART]


CONFIDENCE = 0.95
MOMENTS: dict[str, Any] = {
    "needs": "moments",
    "in_blocks": True,
    "paired": False,
    "default": False,
}


# --- inverse correlations ---


def inverse_diagonal_distance(ours: Floats, theirs: Floats) -> float:
    """Return the distance of the inverses' normed diagonals, from 0 to 1, for two correlation matrices."""
    first, second = (np.diag(np.linalg.inv(matrix)) for matrix in (ours, theirs))
    gap = first / np.linalg.norm(first) - second / np.linalg.norm(second)
    return min(1.0, float(np.linalg.norm(gap)) / math.sqrt(2))


def score_il_correl(comparison: Comparison, *, detail: bool = False, **_: bool) -> Score:
    """Return the score of IL_correl, the change of the inverse correlation matrix."""
    require_complete_records("il_correl", comparison)
    value = inverse_diagonal_distance(
        *(checked_correlations("il_correl", comparison, which) for which in ("original", "masked"))
    )
    return whole_file_score("il_correl", comparison, value, detail=detail)


@metric(
    title="IL_correl, change of the inverse correlations",
    place=70,
    score=score_il_correl,
    explain=partial(
        sentence_of,
        text="how well each variable follows from the others changed by {:.1%} of the largest possible",
    ),
    reference=MLODAK,
    by_variable=False,
    variables=3,
    **MOMENTS,
)
def il_correl(original: Any, masked: Any) -> float:
    """Change of the diagonal of the inverse correlation matrix, from 0 (proportions kept) to 1.

    0 means that the diagonals of the inverse matrices keep their proportions, 1 is a bound that is not
    reached. Two variables always score 0, so three are needed. Do not use it on variables that add up to
    one another: their matrix has no inverse, and the refusal names them.

    Parameters
    ----------
    original, masked : table
        pandas, polars, pyarrow or numpy; `original` may be a `Microdata`. Records with a missing cell in
        either file are left out; weights play no part.

    Returns
    -------
    float

    Notes
    -----
    |d/|d| - e/|e|| / sqrt(2), d and e the diagonals of the inverse correlation matrices of original
    and masked data. The constant is that of the R package sdcMicro; Mlodak's was 1/2.

    References
    ----------
    Mlodak 2020, Information loss resulting from statistical disclosure control of output data,
    doi:10.5604/01.3001.0014.4121.

    Examples
    --------
    >>> import sdckit as sdc
    >>> x = [[1, 2, 1], [2, 1, 3], [3, 5, 2], [4, 3, 5], [5, 6, 4]]
    >>> y = [[1, 2, 1], [2, 1, 3], [3, 5, 2], [4, 6, 5], [5, 3, 4]]
    >>> round(sdc.il_correl(x, y), 4)
    0.2128
    """


# --- eigenvalues ---


def score_eigen(comparison: Comparison, *, detail: bool = False, **_: bool) -> Score:
    """Return the score of the relative change of the correlation matrix's eigenvalues."""
    require_complete_records("eigen", comparison)
    ours = np.linalg.eigvalsh(checked_correlations("eigen", comparison, "original"))
    theirs = np.linalg.eigvalsh(checked_correlations("eigen", comparison, "masked", inverted=False))
    value = float((np.abs(ours - theirs) / ours).sum())
    notes = []
    if ours[0] < 0.01:
        notes.append(f"eigen divides by eigenvalues as small as {ours[0]:.2g}, which inflates it")
    return whole_file_score("eigen", comparison, value, notes=notes, detail=detail)


@metric(
    title="eigen, change of the correlations' eigenvalues",
    place=70,
    bounds=(0.0, math.inf),
    score=score_eigen,
    explain=partial(
        sentence_of, text="the eigenvalues of the correlations changed by {:.4g} of their size, summed up"
    ),
    reference="Templ, Kowarik & Meindl 2015, doi:10.18637/jss.v067.i04",
    by_variable=False,
    variables=2,
    **MOMENTS,
)
def eigen(original: Any, masked: Any) -> float:
    """Sum of the relative changes of the correlation matrix's eigenvalues; 0 if they are kept.

    0 means that the eigenvalues are kept; there is no largest value, and small eigenvalues dominate.
    Do not use it on variables that nearly add up to one another. Where they do so exactly, it has no
    value, and the refusal names them.

    Parameters
    ----------
    original, masked
        As for `il_correl`.

    Returns
    -------
    float

    Notes
    -----
    Sum of |e_j - f_j| / e_j, e and f the sorted eigenvalues of the correlation matrices of original and
    masked data, as `dUtility(method = "eigen")` of the R package sdcMicro has it.

    References
    ----------
    Templ, Kowarik & Meindl 2015, Statistical disclosure control for micro-data using the R package
    sdcMicro, doi:10.18637/jss.v067.i04.

    Examples
    --------
    >>> import sdckit as sdc
    >>> x = [[1, 2], [2, 1], [3, 4], [4, 3]]
    >>> y = [[1, 1], [2, 2], [3, 3], [4, 4]]
    >>> round(sdc.eigen(x, y), 4)  # eigenvalues 1.6 and 0.4 became 2 and 0
    1.25
    """


# --- confidence intervals ---


def overlap(first: tuple[float, float], second: tuple[float, float]) -> float:
    """Return the mean share of two intervals that lies in both; 0 where they are disjoint.

    An interval without length lies in the other wholly or not at all.
    """
    common = min(first[1], second[1]) - max(first[0], second[0])
    if common < 0:
        return 0.0
    lengths = [high - low for low, high in (first, second)]
    return sum(common / length if length > 0 else 1.0 for length in lengths) / 2


def mean_interval_overlap(variable: VariableComparison) -> float:
    """Return the overlap of the 95 % confidence intervals of both columns' means."""
    factor = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) / math.sqrt(variable.facts.records)
    intervals = []
    for mean, deviation in variable.means_and_spreads():
        half = factor * deviation
        intervals.append((mean - half, mean + half))
    return overlap(*intervals)


def score_ci_overlap(comparison: Comparison, *, detail: bool = False, **_: bool) -> Score:
    """Return the score of the mean overlap of confidence intervals over variables."""
    variables = measure_variables(mean_interval_overlap, comparison, least=2)
    notes = ignored_weights_notes("ci_overlap", comparison) if detail else ()
    return score_variables(comparison, variables, notes=notes)


@metric(
    title="CI overlap, confidence intervals of the means",
    place=70,
    best=1.0,
    score=score_ci_overlap,
    explain=partial(
        sentence_of,
        text="confidence intervals of the means overlap by {:.1%} of their length; 100% would be the same",
        empty="there are no records to compare",
    ),
    reference="Karr, Kohnen, Oganian, Reiter & Sanil 2006, doi:10.1198/000313006X124640",
    **MOMENTS,
)
def ci_overlap(original: Any, masked: Any) -> float:
    """Overlap of the 95 % confidence intervals of a variable's mean in both files; 1 if equal, 0 if apart.

    1 means that both files give the same intervals, 0 that no two of them meet. It looks at means and
    variances alone: permuted columns score 1.

    Parameters
    ----------
    original, masked : table
        pandas, polars, pyarrow or numpy; `original` may be a `Microdata`. Each variable is compared on the
        cells that both files have; weights play no part.

    Returns
    -------
    float
        Mean over the variables.

    Notes
    -----
    (o / (U - L) + o / (V - K)) / 2 for the intervals from L to U and from K to V, o the length of
    what they share, 0 at least. The intervals are mean -+ 1.96 S / sqrt(n). An interval without
    length, that of a constant column, counts as shared wholly or not at all.

    References
    ----------
    Karr, Kohnen, Oganian, Reiter & Sanil 2006, A framework for evaluating the utility of data
    altered to protect confidentiality, doi:10.1198/000313006X124640.

    Examples
    --------
    >>> import sdckit as sdc
    >>> round(sdc.ci_overlap([1, 2, 3, 4], [2, 3, 4, 5]), 4)
    0.6048
    """


# --- covariances along the original's axes ---


def covariance_utility(ours: Floats, theirs: Floats) -> float:
    """Return the utility UM of two covariance matrices: 1 if shares of variance are kept, else down to 0."""
    axes = np.linalg.eigh(ours)[1]
    along = [np.einsum("ij,ik,kj->j", axes, matrix, axes) for matrix in (ours, theirs)]
    if not along[1].sum() > 0:
        return 0.0  # nothing varies any more
    first, second = (variances / variances.sum() for variances in along)
    gap = float(((first - second) ** 2).sum())
    largest = float(((first - 1 / first.size) ** 2).sum())
    if gap == 0:
        return 1.0
    return 1.0 - min(1.0, gap / largest) if largest > 0 else 0.0


def rank_confidentiality(x: Floats, y: Floats) -> float:
    """Return CM, the product of 1 - r**2 over the canonical correlations of both files' ranks."""
    bases = []
    for values in (x, y):
        ranks = np.column_stack([OrderedColumn(column).row_middle2 for column in values.T]).astype(float)
        ranks -= ranks.mean(0)
        left, sizes, _ = np.linalg.svd(ranks, full_matrices=False)
        bases.append(left[:, sizes > 1e-10 * max(1.0, sizes[0])])
    if not all(basis.size for basis in bases):
        return 1.0  # a constant file says nothing about the other
    found = np.linalg.svd(bases[0].T @ bases[1], compute_uv=False)
    return float(np.prod(1 - np.minimum(found, 1.0) ** 2))


def score_covariance_loss(comparison: Comparison, *, detail: bool = False, **_: bool) -> Score:
    """Return the score of the changed shares of variance along the original's principal axes."""
    name = "covariance_loss"
    x, y = complete_values(name, comparison)
    units = spread(x)
    refuse_constant(name, units, comparison.columns, "original")
    scaled = [deviations(values) / units for values in (x, y)]
    loss = 1.0 - covariance_utility(*(values.T @ values for values in scaled))
    parts = {"UM": 1.0 - loss}
    if detail:
        parts["CM"] = rank_confidentiality(x, y)
    return whole_file_score(name, comparison, loss, parts=parts, detail=detail)


@metric(
    title="covariance loss, 1 - UM",
    place=70,
    score=score_covariance_loss,
    explain=partial(
        sentence_of,
        text="of what sets the original's main directions apart from round scatter, {:.1%} is lost",
    ),
    reference="Domingo-Ferrer, Muralidhar & Bras-Amoros 2020, IEEE TDSC",
    by_variable=False,
    variables=2,
    experimental=True,
    **MOMENTS | {"in_blocks": False},
)
def covariance_loss(original: Any, masked: Any) -> float:
    """Change of the shares of variance along the original's principal axes; 0 if they are kept.

    0 means that the shares are kept, 1 that they are at least as far from the original's as equal
    shares would be. A change of all variances by one factor does not count. Experimental: the formula
    could not be checked against the primary source.

    Parameters
    ----------
    original, masked
        As for `il_correl`.

    Returns
    -------
    float
        IL = 1 - UM.

    Notes
    -----
    UM = 1 - min(1, sum (l - g)**2 / sum (l - 1/m)**2) over m variables; l are the eigenvalues of the
    original's covariance matrix, g the variances of the masked data along its eigenvectors, each
    scaled to sum 1. Both files are standardised by the original's means and standard deviations
    first: on raw columns the largest unit decides all. As a part, the confidentiality CM is the
    product of 1 - r**2 over the canonical correlations r between the ranks of both files.

    References
    ----------
    Domingo-Ferrer, Muralidhar & Bras-Amoros 2020, General confidentiality and utility metrics for
    privacy-preserving data publishing based on the permutation model, IEEE TDSC.

    Examples
    --------
    >>> import sdckit as sdc
    >>> x = [[1, 2], [2, 1], [3, 4], [4, 3]]
    >>> y = [[1, 2], [2, 4], [3, 1], [4, 3]]
    >>> round(sdc.covariance_loss(x, y), 4)  # shares of 0.8 and 0.2 became 0.5 and 0.5
    1.0
    """
