"""Synthetic values, drawn from the order statistics, the moments or the copula of the data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sdckit import progress
from sdckit.core import randomness
from sdckit.core.parameters import Parameter
from sdckit.core.registry import method
from sdckit.kernels.draws import normals
from sdckit.kernels.scaling import deviations, powers_of_two, spread
from sdckit.masking.coding import HANDBOOK
from sdckit.masking.group_means import window_zero
from sdckit.masking.noise_basis import covariance_root
from sdckit.masking.shuffling import normal_correlations, window_unless_given
from sdckit.masking.swapping import Orders

if TYPE_CHECKING:
    from sdckit.kernels.jit import Bools, Floats, Ints

QUANTILES = ("interpolated", "step")


def sorted_observed(column: Floats) -> tuple[Ints, Floats]:
    """Return the rows of a column's observed values in ascending order, and the sorted values."""
    order = np.argsort(column, kind="stable")  # NaN comes last
    order = order[: len(column) - np.count_nonzero(np.isnan(column))]
    return order, column[order]


def block_starts(values: Floats) -> Ints:
    """Return the positions at which runs of equal values begin in sorted values."""
    return np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))


# --- resampling ---


def averaged_samples(values: Floats, samples: int, rng: np.random.Generator) -> Floats:
    """Return sorted bootstrap samples of sorted values, averaged; equal values get equal means."""
    n = len(values)
    largest = float(np.abs(values).max())
    unit = 2.0 ** max(math.frexp(largest)[1] - 960, 0)  # 1, except where a sum could overflow
    total = np.zeros(n)
    for _ in range(samples):
        # How often each place is drawn gives the sample in order, without sorting it.
        total += np.repeat(values / unit, np.bincount(rng.integers(n, size=n), minlength=n))
    starts = block_starts(values)
    lengths = np.diff(starts, append=n)
    means = np.add.reduceat(total, starts) / lengths
    means = np.clip(means, total[starts], total[starts + lengths - 1]) / samples
    return np.repeat(np.clip(means * unit, values[0], values[-1]), lengths)


@method(
    title="resampling",
    place=110,
    parameters=(
        Parameter(
            "samples",
            int,
            10,
            "bootstrap samples that are averaged; the fewer, the stronger",
            low=1,
            grid=(100, 70, 50, 30, 20, 15, 10, 7, 5, 4, 3, 2, 1),
        ),
    ),
    keeps=("order of each column", "column means, in expectation"),
    random=True,
    window=window_zero,
    reference=HANDBOOK,
)
def resample(values: Floats, *, samples: int = 10, rng: np.random.Generator) -> Floats:
    """Replace the values of each column by averaged order statistics of bootstrap samples.

    Each column keeps its order, and its distribution nearly so, in particular where values lie close
    together; equal values stay equal. Little is lost and little is protected: an intruder who knows a
    record's ranks finds it. With `samples=1` the new values are original values in other places.

    Parameters
    ----------
    values
        n x p matrix; NaN cells are missing and stay so.
    samples
        How many bootstrap samples are averaged. One changes the values most.
    rng
        Source of randomness.

    Returns
    -------
    numpy.ndarray

    Notes
    -----
    From the m observed values of a column t samples of m values are drawn with replacement and sorted. The
    j-th smallest value becomes the mean of the j-th smallest values of the samples; equal values share the
    mean of theirs.

    References
    ----------
    Hundepool et al. 2012, Statistical Disclosure Control, doi:10.1002/9781118348239.

    Examples
    --------
    >>> column = np.array([[5.0], [1.0], [9.0], [2.0], [8.0], [2.0]])
    >>> masked = resample(column, samples=3, rng=np.random.default_rng(1)).ravel()
    >>> [int(i) for i in np.argsort(masked, kind="stable")] == [1, 3, 5, 0, 4, 2]
    True
    """
    masked = np.full_like(values, np.nan)
    p = values.shape[1]
    # Each column draws from a stream of its own: its first samples are the same however many follow.
    streams = randomness.column_generators(rng, p)
    with progress.track("resampling", p) as report:
        for j in range(p):
            order, column = sorted_observed(np.ascontiguousarray(values[:, j]))
            if len(order):
                masked[order, j] = averaged_samples(column, samples, streams[j])
            report(j + 1)
    return masked


# --- information preserving statistical obfuscation ---


def diagonal_signs(triangle: Floats) -> Floats:
    """Return the signs, 1 or -1, of the diagonal of a triangular matrix; they make a QR factor unique."""
    return np.where(np.diag(triangle) < 0, -1.0, 1.0)


def residuals_on(parts: Floats, basis: Floats) -> Floats:
    """Return the columns of `parts` minus their means and their projection on orthonormal columns."""
    parts = parts - parts.mean(axis=0)
    return parts - basis @ (basis.T @ parts)


def orthonormal_basis(given: Floats) -> Floats:
    """Return orthonormal columns that span, with a constant, the given columns, which may be dependent."""
    if not given.shape[1]:
        return given
    left, sizes, _ = np.linalg.svd(given - given.mean(axis=0), full_matrices=False)
    return left[:, sizes > sizes.max() * max(given.shape) * np.finfo(np.float64).eps]


def with_missing_drawn(units: Floats, seen: Bools, rng: np.random.Generator) -> Floats:
    """Return the matrix with missing cells drawn from the normal distribution given the record's others.

    A full record is drawn; its missing cells then move by their regression on the difference between its
    observed and its drawn cells.
    """
    root = covariance_root(np.where(seen, units, np.nan))
    covariance = root.T @ root
    drawn = normals(rng, units.shape) @ root
    patterns, which = np.unique(seen, axis=0, return_inverse=True)
    rows_of = np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1])
    for pattern, rows in zip(patterns, rows_of, strict=True):
        gaps, known = np.flatnonzero(~pattern), np.flatnonzero(pattern)
        inverse = np.linalg.pinv(covariance[np.ix_(known, known)], rcond=1e-10, hermitian=True)
        difference = units[np.ix_(rows, known)] - drawn[np.ix_(rows, known)]
        moved = difference @ (inverse @ covariance[np.ix_(known, gaps)])
        drawn[np.ix_(rows, gaps)] += moved
    return np.where(seen, units, drawn)


def records_needed(options: dict[str, Any], p: int) -> int:
    """Return the smallest number of records that IPSO needs for p variables and the given columns."""
    return p + len(options["given"]) + 2


@method(
    title="IPSO",
    place=110,
    parameters=(Parameter("given", tuple, (), "columns that are kept and on which the others depend"),),
    keeps=(
        "means and covariances (complete data)",
        "the given columns",
        "regressions on the given columns (complete data)",
        "linear relations between variables (complete data)",
    ),
    random=True,
    records=records_needed,
    window=window_unless_given,
    paired=False,
    paired_by="given",
    reference="Burridge 2003, doi:10.1023/A:1025658621216",
)
def ipso(values: Floats, *, given: tuple[int, ...] = (), rng: np.random.Generator) -> Floats:
    """Replace what given columns do not explain by normal draws with exactly the same covariance.

    All means, variances and covariances, and every regression on the given columns, come out exactly as in
    the original (where no cell is missing); so do relations such as a total that is the sum of its parts.
    Everything else becomes normal: not for skewed columns, nor for such as must not be negative. A row
    stands for the record whose given values it has. Without given columns the data are wholly synthetic and
    a row stands for no original record, though it is in one's place.

    Parameters
    ----------
    values
        n x p matrix, n at least p + 2 + number of given columns; NaN cells are missing and stay so.
    given
        Places of the columns that are kept as they are.
    rng
        Source of randomness.

    Returns
    -------
    numpy.ndarray

    Notes
    -----
    Y = A B + E, the regression of the other columns on A = (1, given). E = Q R with R upper triangular.
    Normal draws, less their regression on A, are Q* R*; published is A B + Q* R, whose cross-product with
    itself and with A is that of Y. Without given columns these are the synthetic data of Mateo-Sanz et al.
    2004 with draws that are centred and uncorrelated, as their exactness requires. Cells that are missing
    are filled by draws that depend on the record's other cells and emptied at the end: moments are then
    kept roughly.

    References
    ----------
    Burridge 2003, doi:10.1023/A:1025658621216; in terms of Q and R: Langsrud 2019,
    doi:10.1007/s11222-018-9848-9.

    Examples
    --------
    >>> x = np.array([[1.0, 3.0], [2.0, 5.0], [4.0, 4.0], [7.0, 9.0], [8.0, 6.0], [9.0, 9.5]])
    >>> y = ipso(x, given=(0,), rng=np.random.default_rng(1))
    >>> bool(np.allclose(np.cov(y.T), np.cov(x.T))), bool((y[:, 0] == x[:, 0]).all())
    (True, True)
    """
    others = [j for j in range(values.shape[1]) if j not in given]
    if not others:
        raise ValueError("given names every column; leave at least one to mask")
    seen = ~np.isnan(values)
    powers = powers_of_two(values)
    scaled = values / powers
    size = spread(scaled)
    size[size == 0] = 1.0  # constant, or without any value
    units = deviations(scaled) / size
    if not seen.all():
        units = with_missing_drawn(units, seen, rng)
    basis = orthonormal_basis(units[:, list(given)])
    wanted = units[:, others]
    residuals = residuals_on(wanted, basis)
    triangle = cast("Floats", np.linalg.qr(residuals, mode="r"))
    fresh, drawn = np.linalg.qr(residuals_on(normals(rng, wanted.shape), basis))
    change = (fresh * diagonal_signs(drawn)) @ (diagonal_signs(triangle)[:, None] * triangle) - residuals
    masked = scaled.copy(order="K")
    masked[:, others] = np.where(seen[:, others], scaled[:, others] + change * size[others], np.nan)
    return masked * powers


# --- Gaussian copula ---


def correlation_root(correlations: Floats) -> Floats:
    """Return a matrix with rows of length 1 whose products are, as nearly as possible, the correlations."""
    roots, vectors = np.linalg.eigh(correlations)
    root = (vectors * np.sqrt(np.maximum(roots, 0.0))) @ vectors.T  # whatever the signs of the vectors
    return root / np.linalg.norm(root, axis=1, keepdims=True)


def quantiles_at(values: Floats, shares: Floats, rule: str) -> Floats:
    """Return the quantiles of sorted values at the given shares, interpolated or as one of the values."""
    n = len(values)
    if rule == "step":
        return values[np.minimum((shares * n).astype(np.int64), n - 1)]
    place = shares * (n - 1)
    lower = np.minimum(place.astype(np.int64), max(n - 2, 0))
    unit = 2.0  # the gap between two of the largest numbers is beyond what a double holds
    left, right = values[lower] / unit, values[np.minimum(lower + 1, n - 1)] / unit
    return np.where(left == right, values[lower], (left + (right - left) * (place - lower)) * unit)


@method(
    title="Gaussian copula",
    place=110,
    parameters=(
        Parameter(
            "quantiles", str, "interpolated", "values between the original ones or these", choices=QUANTILES
        ),
    ),
    keeps=("distribution of each column, nearly", "rank correlations, nearly", "places of missing cells"),
    random=True,
    paired=False,
    reference="Patki, Wedge & Veeramachaneni 2016, doi:10.1109/DSAA.2016.49",
)
def copula(values: Floats, *, quantiles: str = "interpolated", rng: np.random.Generator) -> Floats:
    """Draw new records with the distribution of each column and nearly the rank correlations of the data.

    Rows stand for no original record, so that comparisons row by row have no meaning. What is more
    than a correlation between two columns is lost: bends, groups, totals of parts; correlations of columns
    with many equal values come out too small. Extremes are hardly protected, for the largest value
    of a long tail still shows where it was.

    Parameters
    ----------
    values
        n x p matrix; NaN cells are missing and the same cells are missing in the result.
    quantiles
        "interpolated": values lie between two neighbouring ones of the column, and equal one only where
        these are equal, such as the zeros of a column of many zeros, whose share is kept roughly. "step":
        original values, for codes and counts; each is thereby published.
    rng
        Source of randomness.

    Returns
    -------
    numpy.ndarray

    Notes
    -----
    With r the rank correlations (mid-ranks), z ~ N(0, R), R = 2 sin(pi r / 6) with negative eigenvalues set
    to 0 and the diagonal to 1; y_j = F_j^-1(Phi(z_j)), F_j^-1(u) being the value at place u (n - 1), from 0,
    in the sorted column. With missing cells each correlation is that of the records that have both variables.

    References
    ----------
    Patki, Wedge & Veeramachaneni 2016, The Synthetic Data Vault, doi:10.1109/DSAA.2016.49.

    Examples
    --------
    >>> x = np.column_stack([np.arange(1000.0), np.arange(1000.0) ** 3])
    >>> y = copula(x, rng=np.random.default_rng(1))
    >>> bool(np.corrcoef(y[:, 0] ** 3, y[:, 1])[0, 1] > 0.999), bool(0 < y.min())
    (True, True)
    """
    from scipy.special import ndtr  # noqa: PLC0415 - slow to import

    seen = ~np.isnan(values)
    correlations = normal_correlations(Orders(values), len(values))
    np.fill_diagonal(correlations, 1.0)  # also of a constant
    root = correlation_root(correlations)
    shares = ndtr(root @ normals(rng, values.shape[::-1]))
    masked = np.full_like(values, np.nan)
    for j, column in enumerate(values.T):
        known = np.sort(column[seen[:, j]])
        if len(known):
            masked[seen[:, j], j] = quantiles_at(known, shares[j, seen[:, j]], quantiles)
    return masked
