"""Records that stand for no original: copulas, shuffling, resampling."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sdckit import progress
from sdckit.arrays import Floats, Ints
from sdckit.core import randomness
from sdckit.core.registry import Parameter, method
from sdckit.core.text import plural
from sdckit.kernels.draws import normals
from sdckit.kernels.jit import kernel
from sdckit.kernels.ranks import OrderedColumn
from sdckit.kernels.sums import deviations, powers_of_two, spread
from sdckit.masking.coding import HANDBOOK
from sdckit.masking.microaggregation import sorted_observed, window_zero
from sdckit.masking.noise import covariance_root
from sdckit.masking.swapping import Orders
from sdckit.progress import each

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.arrays import Bools


BINS = (200, 150, 100, 75, 50, 40, 30, 25, 20, 15, 12, 10, 8, 6, 5, 4, 3, 2)
FEWER = (100, 70, 50, 30, 20, 15, 10, 7, 5, 4, 3, 2, 1)
TINY = 1e-10  # eigenvalues of correlations below this are rounding


class Scores:
    """Orders and normal scores of the columns (one line each), and the correlations of the normal scores."""

    def __init__(self, values: Floats) -> None:
        from scipy.special import ndtri  # noqa: PLC0415 - slow to import

        self.orders: Orders = Orders(values)
        self.normal: Floats = np.zeros(values.shape[::-1])  # a missing cell counts as the middle
        for j, (rows, column) in enumerate(zip(self.orders.seen, self.orders.columns, strict=True)):
            if column.n and column.sorted[0] != column.sorted[-1]:
                self.normal[j, rows] = ndtri((column.row_middle2 + 1) / (2 * column.n))
        self.correlations: Floats = _nearest_correlations(normal_correlations(self.orders, len(values)))


def normal_correlations(orders: Orders, n: int) -> Floats:
    """Return normal-score correlations from the columns' rank correlations; 0 for a constant column."""
    centred, seen = np.zeros((len(orders.columns), n)), np.zeros((len(orders.columns), n))
    for j, (rows, column) in enumerate(zip(orders.seen, orders.columns, strict=True)):
        seen[j, rows] = 1.0
        if column.n and column.sorted[0] != column.sorted[-1]:
            centred[j, rows] = (column.row_middle2 - (column.n - 1)) / column.n
    squares = centred**2 @ seen.T  # over the records that both columns have
    size = np.sqrt(squares * squares.T)
    of_ranks = np.divide(centred @ centred.T, size, out=np.zeros_like(size), where=size > 0)
    return 2 * np.sin(np.pi / 6 * of_ranks)


def _nearest_correlations(correlations: Floats) -> Floats:
    """Return the nearest matrix without negative eigenvalues and with the same diagonal."""
    roots, vectors = np.linalg.eigh(correlations)
    if roots.min(initial=0.0) >= 0:
        return correlations
    clipped = (vectors * np.maximum(roots, 0.0)) @ vectors.T
    size = np.sqrt(np.maximum(np.diag(clipped), TINY))
    kept = np.sqrt(np.maximum(np.diag(correlations), 0.0))
    return clipped * np.outer(kept / size, kept / size)


def given_normal(correlations: Floats, given: Sequence[int], others: Sequence[int]) -> tuple[Floats, Floats]:
    """Return regression slopes on the given normal columns and a root of the residual covariance.

    Given columns that depend on each other count once: small eigenvalues have no inverse.
    """
    across = correlations[np.ix_(others, given)]
    roots, vectors = np.linalg.eigh(correlations[np.ix_(given, given)])
    inverse = np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > TINY)
    slopes = across @ (vectors * inverse) @ vectors.T
    rest = correlations[np.ix_(others, others)] - slopes @ across.T
    roots, vectors = np.linalg.eigh((rest + rest.T) / 2)
    return slopes, (vectors * np.sqrt(np.where(roots > TINY, roots, 0.0))) @ vectors.T


def window_unless_given(options: dict[str, Any], values: Floats) -> Floats:
    """Return the largest move in ranks of each column: 0 if it is a given column, else n (no bound)."""
    given = np.isin(np.arange(values.shape[1]), options["given"])
    return np.where(given, 0.0, float(len(values)))


@method(
    title="data shuffling",
    place=90,
    parameters=(Parameter("given", tuple, (), "columns that stay and guide the shuffling of the others"),),
    keeps=("the values of each variable", "the given columns", "rank correlations, nearly"),
    basis=Scores,
    random=True,
    window=window_unless_given,
    paired=False,
    paired_by="given",
    reference="Muralidhar & Sarathy 2006, doi:10.1287/mnsc.1050.0503",
)
def shuffle(
    values: Floats,
    *,
    given: tuple[int, ...] = (),
    rng: np.random.Generator,
    basis: Scores | None = None,
) -> Floats:
    """Permute the values of each column not given, in an order that depends on the given columns only.

    Normal scores are drawn with the rank correlations of the data, conditional on the given columns,
    and each other variable takes its own values in the order of its drawn scores. It keeps exactly its
    values; rank correlations, among the shuffled and with the given ones, are kept up to chance and as
    far as a normal copula has them. About a record, a shuffled value discloses no more than the given
    columns do. So a given column that nearly determines another one gives it away: one in the same
    order returns it unchanged. Without given columns each row is drawn anew and stands for no record:
    measures that compare row by row then see chance only.

    Parameters
    ----------
    values
        n x p matrix; NaN cells are missing and stay so. A missing given cell counts as the middle of
        its column, and each correlation uses the records that have both variables.
    given
        Places of the columns that come back unchanged.
    rng
        Source of randomness.
    basis
        `Scores(values)`, where it is known.

    Returns
    -------
    numpy.ndarray

    Notes
    -----
    With normal scores S* of (rank - 1/2)/n, tied values sharing their mean rank, and
    R = 2 sin(pi/6 rho) from Spearman's rho,

        Y* = R_XS R_SS^-1 S* + e,   e ~ N(0, R_XX - R_XS R_SS^-1 R_SX),

    and the masked variable is x sorted into the order of Y*. Equal Y*, possible only where nothing is
    left to chance, are ordered by row. Matrices of correlations that no data can have are replaced by
    the nearest ones, and R_SS^-1 is a pseudo-inverse.

    References
    ----------
    Muralidhar & Sarathy 2006, Data shuffling: a new masking approach for numerical data,
    doi:10.1287/mnsc.1050.0503.

    Examples
    --------
    >>> import numpy as np
    >>> from sdckit.masking.synthetic import shuffle
    >>> values = np.array([[1.0, 30.0], [2.0, 10.0], [3.0, 20.0], [4.0, 40.0]])
    >>> masked = shuffle(values, given=(0,), rng=np.random.default_rng(1))
    >>> print(masked[:, 0], np.sort(masked[:, 1]))
    [1. 2. 3. 4.] [10. 20. 30. 40.]
    """
    p = values.shape[1]
    others = [j for j in range(p) if j not in given]
    if not others:
        raise ValueError(f"given names all {p} columns; leave at least one to shuffle")
    scores = Scores(values) if basis is None else basis
    slopes, root = given_normal(scores.correlations, given, others)
    drawn = slopes @ scores.normal[list(given)] + root @ normals(rng, (len(others), len(values)))
    masked = values.copy(order="F")
    for line, j in zip(drawn, others, strict=True):
        rows, column = scores.orders.seen[j], scores.orders.columns[j]
        if column.n > 1:
            masked[rows, j] = column.sorted[OrderedColumn(line[rows]).rank]
    return masked


@kernel
def split_classes(classes: Ints, order: Ints, cell: Ints) -> None:
    """Split classes of records by the bins of one more column, in place; `order` lists rows class by class.

    `classes` are numbers from 0 on; `cell` is the number of each row's cell.
    """
    starts = np.zeros(classes.max() + 2, np.int64)
    for row in range(classes.size):
        starts[classes[row] + 1] += 1
    starts = np.cumsum(starts)
    before = order.copy()
    for place in range(before.size):
        row = before[place]
        order[starts[classes[row]]] = row
        starts[classes[row]] += 1
    number = np.int64(0)
    last = cell[order[0]]
    for place in range(order.size):
        row = order[place]
        if place > 0 and (cell[row] != last or classes[row] != classes[order[place - 1]]):
            number += 1
        last = cell[row]
        cell[row] = number


@kernel
def permute_within_classes(order: Ints, cell: Ints, draws: Floats) -> Ints:
    """Return for each row the row it takes its values from: a random permutation within each class."""
    mixed = order.copy()
    begin = 0
    for end in range(1, order.size + 1):
        if end < order.size and cell[order[end]] == cell[order[begin]]:
            continue
        for place in range(end - 1, begin, -1):
            other = begin + int(draws[place] * (place - begin + 1))
            mixed[place], mixed[other] = mixed[other], mixed[place]
        begin = end
    source = np.empty_like(order)
    source[order] = mixed
    return source


def classes_of(values: Floats, bins: int) -> Ints:
    """Return the equal-width bin of each cell, one line per column; missing cells form their own bin."""
    scaled = values / powers_of_two(values)  # a range must not leave the range of numbers
    low, high = np.fmin.reduce(scaled, axis=0), np.fmax.reduce(scaled, axis=0)
    width = np.where(high > low, high - low, 1.0)
    share = np.where(np.isnan(values), 0.0, (scaled - low) / width)
    found = np.clip(np.ceil(share * bins) - 1, 0, bins - 1)  # an edge counts to the bin below, as in R's cut
    return np.ascontiguousarray(np.where(np.isnan(values), bins, found).astype(np.int64).T)


def _steps(p: int, condition: str) -> list[tuple[list[int], bool]]:
    """Return the columns to permute at each step, and whether the step begins a new rotation of columns."""
    orders = [[*range(i, p), *range(i)] for i in range(p)] if p > 1 else []
    later = [order[:0:-1] if condition == "full" else order[-1:] for order in orders]
    return [(columns[: i + 1], i == 0) for columns in later for i in range(len(columns))]


def notes_on_single_records(values: Floats, options: dict[str, Any]) -> list[str]:
    """Return a note on records each of whose values is alone in its bin: they stay unchanged."""
    alone = np.ones(values.shape[0], bool)
    for line in classes_of(values, options["bins"]):
        alone &= np.bincount(line)[line] == 1
    count = int(alone.sum())
    if count == 0:
        return []
    return [f"{count} {plural(count, 'record')} only changed rows: each value is alone in its bin"]


@method(
    title="sequential shuffling within bins",
    place=90,
    parameters=(
        Parameter(
            "bins",
            int,
            30,
            "equal-width bins of each variable; fewer mask more",
            low=1,
            high=100_000,
            grid=BINS,
        ),
        Parameter(
            "condition",
            str,
            "simple",
            "the bins of the last column only, or of all later ones together",
            choices=("simple", "full"),
        ),
    ),
    keeps=("the values of each variable", "the number of records in each combination of bins"),
    random=True,
    reference="Chaibub Neto 2024, Transactions on Data Privacy",
    paired=False,
    experimental=True,
    release_notes=notes_on_single_records,
)
def sequential_shuffle(
    values: Floats, *, bins: int = 30, condition: str = "simple", rng: np.random.Generator
) -> Floats:
    """Shuffle columns against each other within bins of equal width, column after column.

    Every variable keeps exactly its values, and every combination of bins of all variables keeps its
    number of records; relations within bins are lost. At the end rows come in random order, so that a
    row stands for no original record. That order alone is no protection: each masked record lies within
    one bin's width, in every variable, of an original one, and values alone in their bin, such as
    outliers of a skewed variable, stay with the bins of their record. With many bins nearly all
    records are published as they are, though measures that compare row by row cannot see it.

    Follows the description of the method and the R code that its author published; the article itself
    could not be read here. Do not take it for the article's method without a check.

    Parameters
    ----------
    values
        n x p matrix; NaN cells are missing. A missing cell is a bin of its own and moves with its row.
    bins
        Number of bins between a variable's smallest and largest value; fewer mask more. 1 shuffles
        every variable by itself.
    condition
        "simple" shuffles all columns but the last, together, within the bins of the last one. "full"
        shuffles the first i columns, together, within the joint bins of all later ones, for i from
        the number of columns less one down to 1. Both rotate the columns until each has been the last.
    rng
        Source of randomness.

    Returns
    -------
    numpy.ndarray

    Notes
    -----
    Seen from the rows of the later columns, each step moves values among records with the same bin, so
    that bins never part. Since each column is once alone behind the others, its values end in a
    uniformly random order within each bin, independent of all other columns; with "simple" and "full"
    alike. The two have the same distribution, and "full" costs p - 1 times as much.

    References
    ----------
    Chaibub Neto 2024, Statistical disclosure control for numeric microdata via sequential joint
    probability preserving data shuffling, Transactions on Data Privacy.

    Examples
    --------
    >>> import sdckit as sdc
    >>> values = [[1.0, 5.0], [2.0, 6.0], [8.0, 1.0], [9.0, 2.0]]
    >>> masked = sdc.mask(values, "sequential_shuffle", bins=2, rng=3)
    >>> sorted((float(row[0]) > 5, float(row[1]) > 3) for row in masked)
    [(False, True), (False, True), (True, False), (True, False)]
    """
    n, p = values.shape
    lines = np.array(values.T, order="C")
    classes = classes_of(values, bins)
    order, cell, draws = np.arange(n), np.zeros(n, np.int64), np.empty(n)
    for later, new_rotation in each("shuffling", _steps(p, condition)):
        if new_rotation:
            order[:], cell[:] = np.arange(n), 0
        split_classes(classes[later[-1]], order, cell)
        source = permute_within_classes(order, cell, rng.random(out=draws))
        for j in later:  # moving these columns has the same effect as moving all others against them
            lines[j] = lines[j, source]
    return lines[:, rng.permutation(n)].T


QUANTILES = ("interpolated", "step")


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
    starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))  # of runs of equal values
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
            grid=FEWER,
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
    records=lambda options, p: p + len(options["given"]) + 2,
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
