"""Noise: independent for each variable, or correlated like the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sdckit.normals import normals
from sdckit.registry import Parameter, method
from sdckit.scales import deviations, powers_of_two, spread

if TYPE_CHECKING:
    from sdckit.compiled import Floats

BRAND = "Brand 2002, doi:10.1007/3-540-47804-3_8"
SCALES = ("sd", "variance")
PERCENT = Parameter("percent", float, 10.0, "strength of the noise in percent", low=0, grid=range(1, 301))


@method(
    title="additive noise",
    parameters=(PERCENT,),
    default=True,
    keeps=("means and covariances between variables, in expectation",),
    basis=spread,
    random=True,
    reference=BRAND,
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


def covariance_root(values: Floats) -> Floats:
    """A matrix R with R'R the covariance of the columns; works for dependent columns, too.

    Cholesky fails where a column is a sum of others, so the root comes from eigenvectors. With
    missing cells each covariance uses the records that have both variables.
    """
    seen = (~np.isnan(values)).astype(np.float64)
    powers = powers_of_two(values)
    centred = deviations(values / powers)
    pairs = seen.T @ seen
    covariance = (centred.T @ centred) / np.maximum(pairs - 1, 1)
    size = np.sqrt(np.diag(covariance))
    unit = np.where(size > 0, size, 1.0)  # work on correlations: columns may differ by many orders of size
    roots, vectors = np.linalg.eigh(covariance / np.outer(unit, unit))
    # Where columns depend on each other a root is 0, and rounding alone must not bring noise into it.
    rounding = roots.max() * max(values.shape) * np.finfo(np.float64).eps
    return np.sqrt(np.where(roots > rounding, roots, 0.0))[:, None] * vectors.T * (size * powers)


@method(
    title="correlated noise",
    parameters=(
        PERCENT,
        Parameter("scale", str, "sd", "what percent is a share of", choices=SCALES),
    ),
    default=True,
    keeps=("means and correlations, in expectation",),
    basis=covariance_root,
    random=True,
    reference=BRAND,
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
    share = (percent / 100) ** 2 if scale == "sd" else percent / 100
    root = covariance_root(values) if basis is None else basis
    draws = (root * np.sqrt(share)).T @ normals(rng, values.shape[::-1])
    draws += values.T
    return draws.T
