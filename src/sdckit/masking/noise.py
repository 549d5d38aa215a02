"""Additive, correlated, multiplicative and moment-preserving noise."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.core.registry import InBlocks, Parameter, correlated, independent, method
from sdckit.kernels.draws import CellDraws, normals
from sdckit.kernels.jit import inner, kernel
from sdckit.kernels.sums import centres, deviations, deviations_from, powers_of_two, spread
from sdckit.progress import track

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sdckit.arrays import Bools, Floats, Ints
    from sdckit.core.registry import Options, Stated, WholeColumns


def covariance_root(values: Floats) -> Floats:
    """Return a matrix R with R'R the covariance of the columns, which may be linearly dependent.

    Cholesky fails where a column is a sum of others, so the root comes from eigenvectors. With
    missing cells each covariance uses the records that have both variables.
    """
    seen = (~np.isnan(values)).astype(np.float64)
    powers = powers_of_two(values)
    centred = deviations(values / powers)
    return root_of_products(centred.T @ centred, seen.T @ seen, powers, len(values))


def root_of_products(products: Floats, pairs: Floats, powers: Floats, n: int) -> Floats:
    """Return the root of the covariance of n records, from sums of products of deviations and their numbers.

    The deviations are in units of `powers`, one for each column.
    """
    covariance = products / np.maximum(pairs - 1, 1)
    size = np.sqrt(np.diag(covariance))
    unit = np.where(size > 0, size, 1.0)  # work on correlations: columns may differ by many orders of size
    roots, vectors = np.linalg.eigh(covariance / np.outer(unit, unit))
    # Where columns depend on each other a root is 0, and rounding alone must not bring noise into it.
    rounding = roots.max() * max(n, len(size)) * np.finfo(np.float64).eps
    return np.sqrt(np.where(roots > rounding, roots, 0.0))[:, None] * vectors.T * (size * powers)


def correlated_normals(rng: np.random.Generator | CellDraws, root: Floats, n: int) -> Floats:
    """Return normal draws for n records, one line per variable, with the covariance of a root."""
    p = root.shape[1]
    draws = normals(rng, (p, n))
    if not isinstance(rng, CellDraws):
        return np.asarray(root.T @ draws, np.float64)
    # A matrix product may round a record differently in a block of another length.
    found = np.zeros((p, n))
    for j in range(p):
        for i in range(p):
            found[j] += root[i, j] * draws[i]
    return found


class KimBasis(NamedTuple):
    """What Kim's noise needs of the whole file: the covariance's root, and units and means of the columns.

    The means are in these units; NaN for a constant column.
    """

    root: Floats
    powers: Floats
    means: Floats


def kim_basis(values: Floats) -> KimBasis:
    """Return what Kim's noise needs to know of the whole file."""
    powers = powers_of_two(values)
    return KimBasis(covariance_root(values), powers, centres(values / powers))


def nonzero_spread(values: Floats) -> Floats:
    """Return the standard deviation of each column's cells other than 0."""
    return spread(np.where(values == 0, np.nan, values))


def varying(values: Floats) -> Bools:
    """Return True for each column that has different values, or only one."""
    return columns_vary(np.fmin.reduce(values), np.fmax.reduce(values), (~np.isnan(values)).sum(0))


def columns_vary(low: Floats, high: Floats, seen: Ints) -> Bools:
    """Return True for each column with different values, or only one, from extremes and numbers of values."""
    return (low != high) | (seen < 2)


# --- the same from facts that were added up over blocks of rows ---

SPREAD_IN_BLOCKS = InBlocks(needs="squares", basis=lambda whole, _options: whole.spread)


def whole_root(whole: WholeColumns, _options: Options) -> Floats:
    """Return the root of the covariance of the columns; see `covariance_root`."""
    assert whole.products is not None  # noqa: S101 - asked for in the registry
    assert whole.pairs is not None  # noqa: S101
    return root_of_products(whole.products, whole.pairs, whole.powers, whole.records)


def whole_kim_basis(whole: WholeColumns, options: Options) -> KimBasis:
    """Return what Kim's noise needs to know of the whole file; see `kim_basis`."""
    return KimBasis(whole_root(whole, options), whole.powers, whole.centres)


BRAND = "Brand 2002, doi:10.1007/3-540-47804-3_8"
KIM = (
    "Kim 1986, A method for limiting disclosure in microdata based on random noise and transformation, "
    "Proceedings of the Section on Survey Research Methods, American Statistical Association"
)
KIM_WINKLER = (
    "Kim & Winkler 2003, Multiplicative noise for masking continuous data, US Bureau of the Census, Research "
    "Report Series, Statistics 2003-01"
)
SCALES = ("sd", "variance")
PERCENT = Parameter("percent", float, 10.0, "strength of the noise in percent", low=0, grid=range(1, 301))
STRENGTH = replace(PERCENT, grid=(10, 20, 30, 40, 50, 60, 80, 100, 125, 150, 175, 200, 250, 300))
# In percent of the value itself: from about 40 % on, signs change (1 value in 160; at 100 % 1 in 6).
FACTOR = replace(PERCENT, grid=(1, 2, 3, 5, 7, 10, 15, 20, 25, 30, 40, 50, 70, 100))
SMALLEST = 5e-324  # smallest floating-point number above 0
SCALE = Parameter("scale", str, "sd", "what percent is a share of", choices=SCALES)


def _law_of_noise(sizes: Callable[[Floats], Floats]) -> Callable[[dict[str, Any], Floats], Stated]:
    """Return the law y = x + e, e independent and, at 100 percent, of the sizes of the values."""
    return lambda options, values: independent(values, sizes(values) * (options["percent"] / 100))


@method(
    title="additive noise",
    place=50,
    colour="orange",
    parameters=(PERCENT,),
    default=True,
    keeps=("means and covariances between variables, in expectation",),
    basis=spread,
    random=True,
    law=_law_of_noise(spread),
    reference=BRAND,
    in_blocks=SPREAD_IN_BLOCKS,
)
def noise(
    values: Floats, *, percent: float = 10.0, rng: np.random.Generator, basis: Floats | None = None
) -> Floats:
    """Add independent normal noise to every variable.

    The noise's standard deviation is `percent` percent of the variable's. Means and covariances
    are kept in expectation, variances grow and correlations shrink: with a share a of added
    variance, by 1 + a. Outlying records stay easy to recognise: noise is no protection for them.

    Parameters
    ----------
    values
        n x p matrix; NaN cells are missing and stay so.
    percent
        Standard deviation of the noise in percent of the variable's (ddof 1).
    rng
        Source of randomness.
    basis
        `spread(values)`, where it is known.

    Returns
    -------
    numpy.ndarray

    References
    ----------
    Brand 2002, Microdata protection through noise addition, doi:10.1007/3-540-47804-3_8.

    Examples
    --------
    >>> import sdckit as sdc
    >>> masked = sdc.mask([[1.0, 5.0], [2.0, 7.0], [4.0, 6.0]], "noise", percent=20, rng=1)
    >>> masked.shape
    (3, 2)
    """
    sizes = (spread(values) if basis is None else basis) * (percent / 100)
    draws = normals(rng, values.shape[::-1])  # one line per variable, as the values lie in memory
    draws *= sizes[:, None]
    draws += values.T
    return draws.T


def _variance_ratio(percent: float, scale: str) -> float:
    """Return the variance of the noise as a share of the variance of the data."""
    return (percent / 100) ** 2 if scale == "sd" else percent / 100


def _law_of_correlated_noise(options: dict[str, Any], values: Floats) -> Stated:
    """Return the law y = x + e, e with the covariance of the data times a."""
    share = _variance_ratio(options["percent"], options["scale"])
    return correlated(values, covariance_root(values) * np.sqrt(share))


@method(
    title="correlated noise",
    place=50,
    colour="green",
    parameters=(PERCENT, SCALE),
    default=True,
    keeps=("means and correlations, in expectation", "linear relations between variables (complete data)"),
    basis=covariance_root,
    random=True,
    law=_law_of_correlated_noise,
    reference=BRAND,
    in_blocks=InBlocks(needs="products", basis=whole_root),
)
def correlated_noise(
    values: Floats,
    *,
    percent: float = 10.0,
    scale: str = "sd",
    rng: np.random.Generator,
    basis: Floats | None = None,
) -> Floats:
    """Add normal noise with the correlations of the data.

    Correlations are kept in expectation and all variances grow by the same factor. Linear
    relations between variables, such as a total and its parts, are kept (up to rounding, and in
    records without missing cells); so are the directions in which an intruder can undo the noise:
    measure the risk. With many missing cells the covariances, each from the records that have both
    variables, may not fit together, and the noise becomes somewhat stronger than asked for.

    Parameters
    ----------
    values
        n x p matrix; NaN cells are missing and stay so.
    percent
        With `scale="sd"` the noise's standard deviation in percent of each variable's, as for
        `noise`; with `scale="variance"` (the convention of R's sdcMicro) its variance in percent.
    scale
        "sd" or "variance".
    rng
        Source of randomness.
    basis
        `covariance_root(values)`, where it is known.

    Returns
    -------
    numpy.ndarray

    References
    ----------
    Brand 2002, Microdata protection through noise addition, doi:10.1007/3-540-47804-3_8.

    Examples
    --------
    >>> import numpy as np, sdckit as sdc
    >>> parts = np.array([[1.0, 5.0], [2.0, 7.0], [4.0, 6.0]])
    >>> table = np.column_stack([parts, parts.sum(1)])
    >>> masked = sdc.mask(table, "correlated_noise", percent=50, rng=1)
    >>> bool(np.allclose(masked[:, 0] + masked[:, 1], masked[:, 2]))
    True
    """
    share = _variance_ratio(percent, scale)
    root = covariance_root(values) if basis is None else basis
    draws = correlated_normals(rng, root * np.sqrt(share), len(values))
    draws += values.T
    return draws.T


def _law_of_kim_noise(options: dict[str, Any], values: Floats) -> Stated:
    """Return the law y = m + (x + e - m) / sqrt(1 + a)."""
    share = _variance_ratio(options["percent"], options["scale"])
    basis = kim_basis(values)
    root = basis.root * np.sqrt(share / (1 + share))
    return correlated(values - _shrunk(values, share, basis), root)


def _shrunk(values: Floats, share: float, basis: KimBasis) -> Floats:
    """Return by how much each value moves towards the mean: 0 to the last bit in a constant column."""
    shrink = np.sqrt(1 + share)
    moved: Floats = (
        share / (shrink * (1 + shrink)) * basis.powers * deviations_from(values / basis.powers, basis.means)
    )
    return moved


@method(
    title="Kim's noise with transform",
    place=50,
    parameters=(STRENGTH, SCALE),
    keeps=("means and covariances, in expectation", "linear relations between variables (complete data)"),
    basis=kim_basis,
    random=True,
    law=_law_of_kim_noise,
    reference=KIM,
    in_blocks=InBlocks(needs="products", basis=whole_kim_basis),
)
def kim_noise(
    values: Floats,
    *,
    percent: float = 10.0,
    scale: str = "sd",
    rng: np.random.Generator,
    basis: KimBasis | None = None,
) -> Floats:
    """Add noise with the correlations of the data, then shrink towards the mean to keep variances.

    Means, variances and covariances are kept in expectation: in one file they differ by chance (see
    `moment_preserving_noise` for the exact form). Linear relations between variables are kept (up to
    rounding, and in records without missing cells). Skewed variables become more like the normal
    distribution, and values outside the original's range, also negative ones, appear. An intruder who
    holds the original undoes the transform by its formula: what protects is the noise alone, in the same
    ratio as in `correlated_noise`.

    Parameters
    ----------
    values
        n x p matrix; NaN cells are missing and stay so.
    percent, scale
        As for `correlated_noise`, before the transform.
    rng
        Source of randomness.
    basis
        `kim_basis(values)`, where it is known.

    Returns
    -------
    numpy.ndarray

    Notes
    -----
    With a the noise's variance as a share of the data's, e ~ N(0, a S) and m the means,
    y = m + (x + e - m) / sqrt(1 + a).

    References
    ----------
    Kim 1986, A method for limiting disclosure in microdata based on random noise and transformation,
    Proceedings of the Section on Survey Research Methods, American Statistical Association.

    Examples
    --------
    >>> import numpy as np, sdckit as sdc
    >>> x = np.arange(10_000.0)
    >>> masked = sdc.mask(x, "kim_noise", percent=100, rng=1)
    >>> print(f"{masked.std() / x.std():.2f} {np.corrcoef(x, masked)[0, 1]:.2f}")
    1.00 0.71
    """
    share = _variance_ratio(percent, scale)
    basis = kim_basis(values) if basis is None else basis
    draws = correlated_normals(rng, basis.root * (np.sqrt(share) / np.sqrt(1 + share)), len(values))
    # As changes of the values: a column without spread then stays as it is to the last bit.
    draws -= _shrunk(values, share, basis).T
    draws += values.T
    return draws.T


def _notes_on_zeros(values: Floats, _options: dict[str, Any]) -> list[str]:
    """Return a note on how many cells are 0 and stay 0."""
    return _zeros_note(int((values == 0).sum()), int((~np.isnan(values)).sum()))


def _whole_zeros(whole: WholeColumns, _options: Options) -> list[str]:
    """Return a note on how many cells of a file that was read in blocks are 0 and stay 0."""
    return _zeros_note(int(whole.zeros.sum()), int((whole.seen + whole.zeros * whole.nonzero).sum()))


def _zeros_note(zeros: int, seen: int) -> list[str]:
    """Return a note on how many of the cells with a value are 0 and stay 0; none without zeros."""
    text = f"{zeros} of {seen} cells are 0 and stay 0: the file discloses which records have a zero"
    return [text] if zeros else []


@method(
    title="zero-preserving noise",
    place=50,
    parameters=(STRENGTH,),
    keeps=("zeros", "column means, in expectation"),
    basis=nonzero_spread,
    random=True,
    law=_law_of_noise(lambda values: (values != 0) * nonzero_spread(values)),
    reference=BRAND,
    release_notes=_notes_on_zeros,
    in_blocks=replace(SPREAD_IN_BLOCKS, nonzero=True, notes=_whole_zeros),
)
def zero_preserving_noise(
    values: Floats, *, percent: float = 10.0, rng: np.random.Generator, basis: Floats | None = None
) -> Floats:
    """Add independent normal noise to every cell that is not 0.

    Zeros stay exactly 0 and no other cell becomes 0, so the file discloses which records have a zero: not
    for variables in which that is confidential (no income, no debt), and not against intruders who know a
    pattern of zeros over several variables, which often identifies one record. A variable that has only one
    value besides 0 is not masked. Means are kept in expectation, signs are not; rounding afterwards may bring
    new zeros.

    Parameters
    ----------
    values
        n x p matrix; NaN cells are missing and stay so.
    percent
        Standard deviation of the noise in percent of that of the variable's cells other than 0 (ddof 1).
    rng
        Source of randomness.
    basis
        The standard deviations of the cells that are not 0, where they are known.

    Returns
    -------
    numpy.ndarray

    Notes
    -----
    y = x + e where x is not 0, with e ~ N(0, (percent / 100)^2 s^2) and s the standard deviation of the
    cells that are not 0. Variance among them: s^2 (1 + (percent / 100)^2).

    References
    ----------
    Brand 2002, Microdata protection through noise addition, doi:10.1007/3-540-47804-3_8.

    Examples
    --------
    >>> import sdckit as sdc
    >>> masked = sdc.mask([0.0, 3.0, 0.0, 8.0, 4.0], "zero_preserving_noise", percent=50, rng=1)
    >>> print(masked == 0)
    [ True False  True False False]
    """
    sizes = (nonzero_spread(values) if basis is None else basis) * (percent / 100)
    draws = normals(rng, values.shape[::-1])
    draws *= sizes[:, None]
    masked = values + draws.T
    # Noise that meets a value exactly is turned round: x - e = 2x is as likely as 0 was.
    return np.where(values == 0, values, np.where(masked == 0, 2 * values, masked))


@method(
    title="multiplicative noise",
    place=50,
    parameters=(FACTOR,),
    keeps=("zeros", "column means, in expectation"),
    basis=varying,
    random=True,
    law=_law_of_noise(lambda values: np.abs(values) * varying(values)),
    reference=KIM_WINKLER,
    release_notes=_notes_on_zeros,
    in_blocks=InBlocks(
        basis=lambda whole, _options: columns_vary(whole.low, whole.high, whole.seen), notes=_whole_zeros
    ),
)
def multiplicative_noise(
    values: Floats, *, percent: float = 10.0, rng: np.random.Generator, basis: Bools | None = None
) -> Floats:
    """Multiply every cell by a random factor with mean 1.

    The noise is as large as the value: large values are changed much, small ones little, zeros not at
    all. No other cell becomes 0, however small it is, so the file discloses which have a zero; rounding
    afterwards may bring new zeros. Means are kept in expectation; variances grow, the more so
    the farther the mean lies from 0. Factors are normal, so with a large `percent` some values change
    their sign: 1 in 2,300 at 30 %, 1 in 44 at 50 %, 1 in 6 at 100 %. Not for variables whose zero is
    arbitrary (years, temperatures), nor for values close together and far from 0, which lose their order.
    A variable with the same value in all records, two or more, identifies none of them and is left as it is.

    Parameters
    ----------
    values
        n x p matrix; NaN cells are missing and stay so.
    percent
        Standard deviation of the factor, in percent.
    rng
        Source of randomness.
    basis
        `varying(values)`, where it is known.

    Returns
    -------
    numpy.ndarray

    Notes
    -----
    y = x (1 + e), e ~ N(0, s^2) with s = percent / 100, independent for each cell. A variable with mean m
    and variance v gets the variance v (1 + s^2) + s^2 m^2 in expectation; covariances between variables
    are kept in expectation.

    References
    ----------
    Kim & Winkler 2003, Multiplicative noise for masking continuous data, US Bureau of the Census,
    Research Report Series, Statistics 2003-01.

    Examples
    --------
    >>> import numpy as np, sdckit as sdc
    >>> x = np.arange(10_000.0)
    >>> masked = sdc.mask(x, "multiplicative_noise", percent=10, rng=1)
    >>> print(f"{masked[0]:.0f} {(masked[1:] / x[1:]).mean():.2f} {(masked[1:] / x[1:]).std():.2f}")
    0 1.00 0.10
    """
    sizes = np.where(varying(values) if basis is None else basis, percent / 100, 0.0)
    draws = normals(rng, values.shape[::-1])
    draws *= sizes[:, None]
    draws += 1.0
    draws *= values.T
    # A product too small for any number would make a zero of a value that is none.
    lost = (draws == 0) & (values.T != 0)
    draws[lost] = np.copysign(SMALLEST, draws[lost])
    return draws.T


TEMPL = (
    "Templ & Meindl 2008, Robustification of microdata masking methods and the comparison with existing "
    "methods, Lecture Notes in Computer Science 5262"
)
NORMAL = 1.4826022185056018  # standard deviation over median absolute deviation, for normal data
FLAT = 1e-8  # directions with a smaller robust scale, in units of the variables', count as without spread
FARTHEST = 1e100  # larger distances are cut to this, so that squares do not overflow
SAMPLE = 100_000  # records from which robust scales are precise enough; more only take time
TAIL = 0.025  # share of normal records that lie outside the bulk


class NoiseScale(NamedTuple):
    """Standard deviations of the variables and robust distances of the records; both scale the noise."""

    sizes: Floats  # standard deviation of each variable
    distances: Floats  # of each record from the centre; 1 is the edge of the bulk


def _robust_scales(columns: Floats, least: float = 0.0) -> Floats:
    """Return the median absolute deviation of each column, scaled to estimate the standard deviation.

    Where it is at most `least`, as in a column of which half are zeros, the standard deviation is returned.
    """
    apart = np.abs(columns - np.median(columns, axis=0))
    found = NORMAL * np.median(apart, axis=0)
    idle = found <= least
    found[idle] = spread(columns[:, idle])
    return found


def _robust_units(values: Floats) -> Floats:
    """Return each column minus its median, divided by its robust scale; 0 where missing or without spread."""
    points = np.zeros(values.shape, order="F")
    for j, column in enumerate((values / powers_of_two(values)).T):
        seen = ~np.isnan(column)
        if seen.any():
            centred = column[seen] - np.median(column[seen])
            scale = _robust_scales(centred[:, None])[0]
            with np.errstate(over="ignore"):
                points[seen, j] = np.clip(centred / (scale if scale > 0 else 1.0), -FARTHEST, FARTHEST)
    return points


def _robust_correlations(columns: Floats) -> Floats:
    """Return robust correlations of columns, from the robust scales of their sums and differences."""
    found = np.eye(columns.shape[1])
    for j in range(len(found) - 1):
        one, others = columns[:, [j]], columns[:, j + 1 :]
        total, gap = (_robust_scales(both, FLAT) ** 2 for both in (one + others, one - others))
        found[j, j + 1 :] = found[j + 1 :, j] = (total - gap) / np.maximum(total + gap, FLAT)
    return found


def _scaled(points: Floats, axes: Floats) -> Floats:
    """Return the axes, each divided by the robust scale of the points along it; flat ones are dropped."""
    scales = _robust_scales(points @ axes, FLAT)
    wide = scales > FLAT
    return axes[:, wide] / scales[wide]


def robust_distances(values: Floats) -> Floats:
    """Return the robust distance of each record from the centre (OGK); 1 is the edge of the bulk.

    Maronna & Zamar 2002, doi:10.1198/004017002188618509, with two rounds. Directions without spread, such
    as a total less its parts, do not count; missing cells lie at their column's median.
    """
    from scipy.special import chdtri  # noqa: PLC0415 - slow to import

    points = _robust_units(values)
    sample = points
    if len(points) > SAMPLE:
        sample = points[np.random.default_rng(0).choice(len(points), SAMPLE, replace=False)]
    axes = np.eye(values.shape[1])
    for _ in range(2):
        axes = _scaled(sample, axes)
        axes = axes @ np.linalg.eigh(_robust_correlations(sample @ axes))[1]
    axes = _scaled(sample, axes)
    if axes.shape[1] == 0:
        return np.zeros(len(points))
    positions = points @ axes
    positions -= np.median(sample @ axes, axis=0)
    return np.sqrt((positions**2).sum(1) / chdtri(axes.shape[1], TAIL))


def noise_scale(values: Floats) -> NoiseScale:
    """Return the standard deviation of each variable and the robust distance of each record."""
    return NoiseScale(spread(values), robust_distances(values))


def _law_of_outlier_noise(options: dict[str, Any], values: Floats) -> Stated:
    """Return the law y = x + f e, with a factor f of each record."""
    reach = noise_scale(values)
    factors = np.clip(reach.distances, 1.0, options["most"])[:, None]
    return independent(values, factors * reach.sizes * (options["percent"] / 100))


@method(
    title="outlier noise",
    place=70,
    parameters=(
        STRENGTH,
        Parameter("most", float, 10.0, "how many times as strong it is at most for an outlier", low=1),
    ),
    keeps=("means and covariances between variables, in expectation",),
    basis=noise_scale,
    random=True,
    law=_law_of_outlier_noise,
    reference=TEMPL,
)
def outlier_noise(
    values: Floats,
    *,
    percent: float = 10.0,
    most: float = 10.0,
    rng: np.random.Generator,
    basis: NoiseScale | None = None,
) -> Floats:
    """Add normal noise that grows with the distance of a record from the bulk of the data.

    Plain noise leaves outliers easy to recognise. Here records in the bulk get the noise of
    `noise`, and those outside as many times more as they are farther away than its edge, at most `most`
    times. Means, and covariances between variables, are kept in expectation; variances grow by more than
    with `noise`, and the largest values are the least reliable. Measure the risk of outliers
    (`linkage_outliers`): a single record far from all others needs a large `percent` even so.

    Parameters
    ----------
    values
        n x p matrix; NaN cells are missing and stay so.
    percent
        Standard deviation of the noise in percent of the variable's (ddof 1), for records in the bulk.
    most
        Largest factor by which the noise of an outlier is stronger; 1 gives plain noise.
    rng
        Source of randomness.
    basis
        `noise_scale(values)`, where it is known.

    Returns
    -------
    numpy.ndarray

    Notes
    -----
    y_ij = x_ij + f_i e_ij with e_ij ~ N(0, (percent / 100)^2 s_j^2) and f_i = min(max(1, d_i / c), most).
    d_i is the distance from the centre by orthogonalised pairwise robust scales, c^2 the 0.975 quantile of
    the chi-square distribution with as many degrees of freedom as there are independent variables. The
    robust scale is the median absolute deviation; where more than half of a variable's values are equal,
    such as zeros, it is the standard deviation. A missing cell lies at the variable's median. Files of more
    than 100,000 records take these scales from as many records, the same each time.

    References
    ----------
    Templ & Meindl 2008, Robustification of microdata masking methods and the comparison with existing
    methods, Lecture Notes in Computer Science 5262. Maronna & Zamar 2002, Robust estimates of location
    and dispersion for high-dimensional datasets, doi:10.1198/004017002188618509.

    Examples
    --------
    >>> import numpy as np, sdckit as sdc
    >>> x = np.append(np.arange(99.0), 1000.0)
    >>> moves = [abs(sdc.mask(x, "outlier_noise", percent=10, rng=seed) - x) for seed in range(50)]
    >>> mean = np.mean(moves, axis=0)
    >>> print(f"{mean[:-1].mean():.0f} {mean[-1]:.0f}")
    8 84
    """
    reach = noise_scale(values) if basis is None else basis
    draws = normals(rng, values.shape[::-1])
    draws *= (reach.sizes * (percent / 100))[:, None]
    draws *= np.clip(reach.distances, 1.0, most)
    draws += values.T
    return draws.T


LANGSRUD = (
    "Langsrud 2019, Information preserving regression-based tools for statistical disclosure control, "
    "doi:10.1007/s11222-018-9848-9"
)
TING = (
    "Ting, Fienberg & Trottini 2008, Random orthogonal matrix masking methodology for microdata release, "
    "International Journal of Information and Computer Security 2"
)
SHARES = tuple(step / 20 for step in range(1, 21))
BLOCK = 100  # fewest records that are rotated together: the work per record grows with its square
TINY = 1e-300  # keeps a length from being 0
BATCH = 32  # blocks at a time: their matrices stay in the cache


class Space(NamedTuple):
    """Standardised data as scores times loadings (principal axes), and the standard deviations."""

    points: Floats  # n x p: scores @ loadings
    scores: Floats  # n x r, orthonormal and orthogonal to 1
    loadings: Floats  # r x p
    units: Floats  # p


def _standardised(values: Floats) -> tuple[Floats, Floats]:
    """Return standardised data (0 for missing cells) and the standard deviations."""
    seen = ~np.isnan(values)
    count = seen.sum(0)
    powers = powers_of_two(values)
    centred = deviations(values / powers)
    # Where the mean is large its rounding is left over: small numbers can be centred better.
    centred = np.where(seen, centred - centred.sum(0) / np.maximum(count, 1), 0.0)
    size = np.sqrt((centred**2).sum(0) / np.maximum(count - 1, 1))
    return centred / np.where(size > 0, size, 1.0), size * powers


def space_of(values: Floats) -> Space:
    """Return the principal axes of the data; fewer than variables if some are linearly dependent."""
    points, units = _standardised(values)
    base, triangle = np.linalg.qr(points)
    left, sizes, right = np.linalg.svd(triangle, full_matrices=False)
    # Rounding alone must not add a direction: a total would no longer be the sum of its parts.
    rank = int((sizes > sizes[0] * max(points.shape) * np.finfo(np.float64).eps).sum())
    return Space(points, base @ left[:, :rank], sizes[:rank, None] * right[:rank], units)


def _law_of_moment_preserving_noise(options: dict[str, Any], values: Floats) -> Stated | None:
    """Return the law y = m + sqrt(1 - delta^2) (x - m) + delta E; None for too few records.

    The noise is orthogonal to the data: a record with leverage h gets 1 - 1/n - h of the variance that it
    would have otherwise, and an outlier hardly any.
    """
    space, delta = space_of(values), options["delta"]
    n, rank = space.scores.shape
    if rank == 0 or n < 2 * rank + 1:
        return None
    left = np.maximum(1 - 1 / n - (space.scores**2).sum(axis=1), np.finfo(np.float64).eps)
    mean = values - delta**2 / (1 + math.sqrt(1 - delta**2)) * space.points * space.units
    return correlated(mean, space.loadings * space.units, delta * np.sqrt(left / (n - 1 - rank)))


def notes_on_products(_values: Floats, options: dict[str, Any]) -> list[str]:
    """Return a note that only the true pairing of records keeps what is kept exactly; none without noise."""
    exact = (
        "sums of products of original and published records are exact, and only the true pairing keeps them"
    )
    more = "among few records or with many columns, pairings can be tried, which finds more than linkage says"
    return [f"{exact}: {more}"] if options["delta"] else []


@method(
    title="moment-preserving noise",
    place=60,
    parameters=(
        Parameter(
            "delta",
            float,
            0.3,
            "share of noise in each value's standard deviation",
            low=0,
            high=1,
            grid=SHARES,
        ),
    ),
    keeps=("means and covariances (complete data)", "linear relations between variables (complete data)"),
    basis=space_of,
    random=True,
    law=_law_of_moment_preserving_noise,
    release_notes=notes_on_products,
    records=lambda _options, p: 2 * p + 1,  # for noise orthogonal to p variables with their covariance
    reference=LANGSRUD,
)
def moment_preserving_noise(
    values: Floats, *, delta: float = 0.3, rng: np.random.Generator, basis: Space | None = None
) -> Floats:
    """Mix the data with noise so that no mean, variance or covariance changes.

    Whatever is computed from means and covariances (regressions, principal components) gives the same
    result as from the original, up to rounding; so do linear relations such as a total and its parts.
    Skewness, quantiles and relations that are not linear are not kept: variables become more like the
    normal distribution, and values outside the original's range, also negative ones, appear. Exactness
    is lost where cells are missing (the variable's mean stands in for them and they are taken out again)
    and where the result is rounded. Needs 2p + 1 records for p variables. Not for strata of about ten
    records, in which the exact products tell which published record stands for which original.

    Parameters
    ----------
    values
        n x p matrix; NaN cells are missing and stay so.
    delta
        0 leaves the data alone; 1 puts noise in their place, uncorrelated with the original. Each variable
        has the correlation sqrt(1 - delta^2) with its original, exactly.
    rng
        Source of randomness.
    basis
        `space_of(values)`, where it is known.

    Returns
    -------
    numpy.ndarray

    Notes
    -----
    y = m + sqrt(1 - delta^2) (x - m) + delta E, with m the means and E the residuals of normal noise
    regressed on a constant and the data, multiplied by a matrix that gives them the covariance of the data.
    Where variables determine others, all of this happens in the space of those that do not.

    References
    ----------
    Langsrud 2019, Information preserving regression-based tools for statistical disclosure control,
    doi:10.1007/s11222-018-9848-9.

    Examples
    --------
    >>> import numpy as np, sdckit as sdc
    >>> x = np.array([[1.0, 5.0], [2.0, 7.0], [4.0, 6.0], [8.0, 1.0], [9.0, 9.0], [3.0, 2.0]])
    >>> masked = sdc.mask(x, "moment_preserving_noise", delta=0.8, rng=1)
    >>> bool(np.allclose(masked.mean(0), x.mean(0))), bool(np.allclose(np.cov(masked.T), np.cov(x.T)))
    (True, True)
    """
    space = space_of(values) if basis is None else basis
    n, rank = space.scores.shape
    if n < 2 * rank + 1:
        raise ValueError(
            f"moment_preserving_noise needs {2 * rank + 1} records for {rank} independent variables and the "
            f"data have {n}; mask fewer variables"
        )
    if rank == 0:
        return values.copy()
    axes = space.loadings / np.linalg.norm(space.loadings, axis=1, keepdims=True)
    noise = _orthonormal(normals(rng, values.shape[::-1]).T @ axes.T, space.scores) @ space.loadings
    # As a change of the values: a column without spread then stays as it is to the last bit.
    stay = math.sqrt(1 - delta**2)
    return values + (delta * noise - delta**2 / (1 + stay) * space.points) * space.units


def _orthonormal(noise: Floats, scores: Floats) -> Floats:
    """Return the orthonormal columns nearest to the noise, orthogonal to 1 and to the scores."""
    for _ in range(2):  # the second pass removes what rounding left over
        noise -= noise.mean(0)
        noise -= scores @ (scores.T @ noise)
    base, triangle = np.linalg.qr(noise)
    left, _, right = np.linalg.svd(triangle)
    return base @ (left @ right)


@method(
    title="random orthogonal matrix masking",
    place=60,
    parameters=(STRENGTH,),
    keeps=("means and covariances (complete data)", "linear relations between variables (complete data)"),
    random=True,
    reference=TING,
)
def romm(values: Floats, *, percent: float = 10.0, rng: np.random.Generator) -> Floats:
    """Mix records by a random rotation that adds `percent` % of each spread and keeps all covariances.

    Each masked record is its original plus a little of many others. Whatever is computed from means and
    covariances gives the same result as from the original, up to rounding, and so do linear relations such
    as a total and its parts. Skewness, quantiles and relations that are not linear are not kept: with a
    large `percent` all variables look normal. Exactness is lost where cells are missing (the variable's
    mean stands in for them and they are taken out again) and where the result is rounded. Two records can
    only stay or change places: not for strata of a few.

    Parameters
    ----------
    values
        n x p matrix; NaN cells are missing and stay so.
    percent
        Size of what the others bring in, in percent of the variable's standard deviation, as long as it is
        small; 0 leaves the data alone, and without end it leads to rotations that are all equally likely. A
        variable's correlation with its original is about 0.98 at 20 %, 0.89 at 50 %, 0.62 at 100 % and
        0.23 at 300 %.
    rng
        Source of randomness.

    Returns
    -------
    numpy.ndarray

    Notes
    -----
    Y = T X with T orthogonal and T 1 = 1; without the second condition, as in the R package sdcMicro, the
    means are lost. Orthogonal to 1, T is I + s G / sqrt(m) with its columns made orthonormal one after
    another, G being normal noise. Files of 200 records and more are cut at random into blocks of
    m = 100 to 199, and each is rotated by itself: T then has these rotations as its blocks, and the time
    grows with the records, not with their square. With the records of a block known, one could compute its
    means, so the blocks are not published.

    References
    ----------
    Ting, Fienberg & Trottini 2008, Random orthogonal matrix masking methodology for microdata release,
    International Journal of Information and Computer Security 2.

    Examples
    --------
    >>> import numpy as np, sdckit as sdc
    >>> x = np.array([[1.0, 5.0], [2.0, 7.0], [4.0, 6.0], [8.0, 1.0], [9.0, 9.0]])
    >>> masked = sdc.mask(x, "romm", percent=50, rng=1)
    >>> bool(np.allclose(masked.mean(0), x.mean(0))), bool(np.allclose(np.cov(masked.T), np.cov(x.T)))
    (True, True)
    """
    points, units = _standardised(values)
    change = np.empty_like(points)
    with track("rotating records", len(points)) as report:
        done = 0
        for rows in _blocks(len(points), rng):
            size = rows.shape[1]
            draws = normals(rng, (len(rows), size - 1, size - 1))
            change[rows] = _rotation_changes(points[rows], draws * (percent / 100 / math.sqrt(size)))
            done += rows.size
            report(done)
    return values + change * units


def _blocks(n: int, rng: np.random.Generator) -> Iterator[Ints]:
    """Yield matrices of row numbers: random blocks of records, one line each, of nearly equal size."""
    order = rng.permutation(n)
    count = max(n // BLOCK, 1)
    size, larger = divmod(n, count)
    split = larger * (size + 1)
    for rows in (order[:split].reshape(larger, size + 1), order[split:].reshape(count - larger, size)):
        for start in range(0, len(rows), BATCH):
            yield rows[start : start + BATCH]


def _rotation_changes(points: Floats, draws: Floats) -> Floats:
    """Return (T - I) X for each block X (records x variables) and a random rotation T that keeps means."""
    size = points.shape[1]
    root = math.sqrt(size)
    centred = points - points.mean(1, keepdims=True)
    # A reflection that turns 1 into the first axis: the others are then orthogonal to 1.
    turned = centred[:, 1:] - centred[:, :1] / (1 + root)
    moved = turned.copy()
    _rotate_blocks(draws + np.eye(size - 1), moved)
    moved -= turned
    total = moved.sum(1, keepdims=True) / root
    return np.concatenate([-total, moved - total / (1 + root)], axis=1)


@kernel
def _rotate_blocks(matrices: Floats, points: Floats) -> None:
    """Multiply each block of points, in place, by its matrix after orthonormalising the matrix's columns.

    By reflections, which lose no digits; the columns keep their directions, as by Gram and Schmidt. Uses
    the matrices up.
    """
    size = matrices.shape[1]
    mirrors = np.zeros((size, size))
    for b in range(len(matrices)):
        matrix, block = matrices[b], points[b]
        for k in range(size):
            mirror = mirrors[k]
            for i in range(k, size):
                mirror[i] = matrix[i, k]
            length = _length(mirror, k)
            if mirror[k] > 0:  # the reflection turns the column round
                length = -length
                for j in range(block.shape[1]):
                    block[k, j] = -block[k, j]
            mirror[k] -= length
            norm = _length(mirror, k)
            for i in range(k, size):
                mirror[i] /= norm
            _reflect(mirror, k, matrix, k + 1)
        for k in range(size - 1, -1, -1):
            _reflect(mirrors[k], k, block, 0)


@inner
def _length(line: Floats, start: int) -> float:
    """Return the Euclidean length of a vector from `start` on; never 0, so that it can be a divisor."""
    total = TINY
    for i in range(start, line.size):
        total += line[i] * line[i]
    return math.sqrt(total)


@inner
def _reflect(mirror: Floats, start: int, matrix: Floats, first: int) -> None:
    """Apply a Householder reflection in place to the columns of a matrix from `first` on."""
    share = np.zeros(matrix.shape[1])
    for i in range(start, len(matrix)):
        for j in range(first, matrix.shape[1]):
            share[j] += mirror[i] * matrix[i, j]
    for i in range(start, len(matrix)):
        for j in range(first, matrix.shape[1]):
            matrix[i, j] -= 2.0 * mirror[i] * share[j]
