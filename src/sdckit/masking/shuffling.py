"""Shuffling: permute the values of columns, guided by other columns or within bins of values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core.parameters import Parameter
from sdckit.core.registry import method
from sdckit.core.text import plural
from sdckit.kernels.draws import normals
from sdckit.kernels.jit import Floats, Ints, kernel
from sdckit.kernels.ranks import OrderedColumn
from sdckit.kernels.scaling import powers_of_two
from sdckit.masking.swapping import Orders
from sdckit.progress import each

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    return 2 * np.sin(np.pi / 6 * _correlations(centred, seen))


def _correlations(centred: Floats, seen: Floats) -> Floats:
    """Return correlations of centred columns over the records that both have; 0 with a constant one."""
    squares = centred**2 @ seen.T
    size = np.sqrt(squares * squares.T)
    return np.divide(centred @ centred.T, size, out=np.zeros_like(size), where=size > 0)


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
    >>> from sdckit.masking.shuffling import shuffle
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
            grid=(200, 150, 100, 75, 50, 40, 30, 25, 20, 15, 12, 10, 8, 6, 5, 4, 3, 2),
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
