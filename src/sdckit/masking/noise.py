"""Masking by noise: independent per variable, proportional to the values, or correlated like the data."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core.in_blocks import InBlocks
from sdckit.core.law import correlated, independent
from sdckit.core.parameters import Parameter
from sdckit.core.registry import method
from sdckit.kernels.draws import normals
from sdckit.kernels.scaling import deviations_from, spread
from sdckit.masking.noise_basis import (
    KimBasis,
    correlated_normals,
    covariance_root,
    kim_basis,
    nonzero_spread,
    varying,
    whole_kim_basis,
    whole_root,
    whole_spread,
    whole_varying,
)

if TYPE_CHECKING:
    from sdckit.core.in_blocks import Options, WholeColumns
    from sdckit.core.law import Stated
    from sdckit.kernels.jit import Bools, Floats

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


def _law_of_noise(options: dict[str, Any], values: Floats) -> Stated | None:
    """Return the law y = x + e, e independent; None without noise."""
    share = options["percent"] / 100
    return independent(values, spread(values) * share) if share else None


@method(
    title="additive noise",
    place=50,
    colour="orange",
    parameters=(PERCENT,),
    default=True,
    keeps=("means and covariances between variables, in expectation",),
    basis=spread,
    random=True,
    law=_law_of_noise,
    reference=BRAND,
    in_blocks=InBlocks(needs="squares", basis=whole_spread),
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


def _law_of_correlated_noise(options: dict[str, Any], values: Floats) -> Stated | None:
    """Return the law y = x + e, e with the covariance of the data times a; None without noise."""
    share = _variance_ratio(options["percent"], options["scale"])
    return correlated(values, covariance_root(values) * np.sqrt(share)) if share else None


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


def _law_of_kim_noise(options: dict[str, Any], values: Floats) -> Stated | None:
    """Return the law y = m + (x + e - m) / sqrt(1 + a); None without noise."""
    share = _variance_ratio(options["percent"], options["scale"])
    if not share:
        return None
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


def _notes_on_zeros(values: Floats, options: dict[str, Any]) -> list[str]:
    """Return a note on how many cells are 0 and stay 0."""
    del options
    return _zeros_note(int((values == 0).sum()), int((~np.isnan(values)).sum()))


def _whole_zeros(whole: WholeColumns, _options: Options) -> list[str]:
    """Return a note on how many cells of a file that was read in blocks are 0 and stay 0."""
    return _zeros_note(int(whole.zeros.sum()), int((whole.seen + whole.zeros * whole.nonzero).sum()))


def _zeros_note(zeros: int, seen: int) -> list[str]:
    """Return a note on how many of the cells with a value are 0 and stay 0; none without zeros."""
    return (
        [f"{zeros} of {seen} cells are 0 and stay 0: the file discloses which records have a zero"]
        if zeros
        else []
    )


def _law_of_zero_preserving_noise(options: dict[str, Any], values: Floats) -> Stated | None:
    """Return the law y = x + e where x is not 0, and y = 0 elsewhere; None without noise."""
    share = options["percent"] / 100
    return independent(values, (values != 0) * nonzero_spread(values) * share) if share else None


@method(
    title="zero-preserving noise",
    place=50,
    parameters=(STRENGTH,),
    keeps=("zeros", "column means, in expectation"),
    basis=nonzero_spread,
    random=True,
    law=_law_of_zero_preserving_noise,
    reference=BRAND,
    release_notes=_notes_on_zeros,
    in_blocks=InBlocks(needs="squares", nonzero=True, basis=whole_spread, notes=_whole_zeros),
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


def _law_of_multiplicative_noise(options: dict[str, Any], values: Floats) -> Stated | None:
    """Return the law y = x (1 + e); None without noise."""
    share = options["percent"] / 100
    return independent(values, np.abs(values) * np.where(varying(values), share, 0.0)) if share else None


@method(
    title="multiplicative noise",
    place=50,
    parameters=(FACTOR,),
    keeps=("zeros", "column means, in expectation"),
    basis=varying,
    random=True,
    law=_law_of_multiplicative_noise,
    reference=KIM_WINKLER,
    release_notes=_notes_on_zeros,
    in_blocks=InBlocks(basis=whole_varying, notes=_whole_zeros),
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
