"""What noise needs to know of the whole file: spreads, the root of the covariance, columns that vary."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.kernels.draws import CellDraws, normals
from sdckit.kernels.scaling import centres, deviations, powers_of_two, spread

if TYPE_CHECKING:
    from sdckit.core.in_blocks import Options, WholeColumns
    from sdckit.kernels.jit import Bools, Floats, Ints


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


def whole_spread(whole: WholeColumns, _options: Options) -> Floats:
    """Return the standard deviation of each column."""
    return whole.spread


def whole_root(whole: WholeColumns, _options: Options) -> Floats:
    """Return the root of the covariance of the columns; see `covariance_root`."""
    assert whole.products is not None  # noqa: S101 - asked for in the registry
    assert whole.pairs is not None  # noqa: S101
    return root_of_products(whole.products, whole.pairs, whole.powers, whole.records)


def whole_kim_basis(whole: WholeColumns, options: Options) -> KimBasis:
    """Return what Kim's noise needs to know of the whole file; see `kim_basis`."""
    return KimBasis(whole_root(whole, options), whole.powers, whole.centres)


def whole_varying(whole: WholeColumns, _options: Options) -> Bools:
    """Return True for each column that has different values, or only one; see `varying`."""
    return columns_vary(whole.low, whole.high, whole.seen)
