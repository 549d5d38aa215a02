"""Maskings that keep means and covariances exactly: moment-preserving noise and random rotations (ROMM)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.core.law import correlated
from sdckit.core.parameters import Parameter
from sdckit.core.registry import method
from sdckit.kernels.draws import normals
from sdckit.kernels.jit import inner, kernel
from sdckit.kernels.scaling import deviations, powers_of_two
from sdckit.masking.noise import STRENGTH
from sdckit.progress import track

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sdckit.core.law import Stated
    from sdckit.kernels.jit import Floats, Ints

LANGSRUD = (
    "Langsrud 2019, Information preserving regression-based tools for statistical disclosure control, "
    "doi:10.1007/s11222-018-9848-9"
)
TING = (
    "Ting, Fienberg & Trottini 2008, Random orthogonal matrix masking methodology for microdata release, "
    "International Journal of Information and Computer Security 2"
)
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


def _records_needed(options: dict[str, Any], p: int) -> int:
    """Return 2p + 1, the records needed for noise orthogonal to p variables with their covariance."""
    del options
    return 2 * p + 1


def _law_of_moment_preserving_noise(options: dict[str, Any], values: Floats) -> Stated | None:
    """Return the law y = m + sqrt(1 - delta^2) (x - m) + delta E; None without noise.

    The noise is orthogonal to the data: a record with leverage h gets 1 - 1/n - h of the variance that it
    would have otherwise, and an outlier hardly any.
    """
    space, delta = space_of(values), options["delta"]
    n, rank = space.scores.shape
    if not delta or rank == 0 or n < 2 * rank + 1:
        return None
    left = np.maximum(1 - 1 / n - (space.scores**2).sum(axis=1), np.finfo(np.float64).eps)
    mean = values - delta**2 / (1 + math.sqrt(1 - delta**2)) * space.points * space.units
    return correlated(mean, space.loadings * space.units, delta * np.sqrt(left / (n - 1 - rank)))


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
            grid=tuple(step / 20 for step in range(1, 21)),
        ),
    ),
    keeps=("means and covariances (complete data)", "linear relations between variables (complete data)"),
    basis=space_of,
    random=True,
    law=_law_of_moment_preserving_noise,
    records=_records_needed,
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
    and where the result is rounded. Needs 2p + 1 records for p variables.

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
