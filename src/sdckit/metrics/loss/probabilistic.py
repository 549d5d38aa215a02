"""Probabilistic information loss: changes of statistics relative to their sampling errors."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.kernels.sums import deviations, standardise_like
from sdckit.metrics.loss.moments import complete_values, whole_file_score
from sdckit.metrics.pair import metric
from sdckit.metrics.score import sentence_of

if TYPE_CHECKING:
    from sdckit.arrays import Bools, Floats
    from sdckit.metrics.pair import Comparison
    from sdckit.metrics.score import Score

LEVELS = np.arange(1, 20) / 20  # of the quantiles, 5 % to 95 %
KEPT = 1e-12  # standard deviations up to which a difference is rounding
ENOUGH = 101  # records from which the asymptotic variances are used


def loss_probabilities(gaps: Floats, variances: Floats) -> Floats:
    """Return P(|Z| <= |gap| / sd) of each statistic, Z standard normal; 0 for one that was kept."""
    moved = np.abs(gaps) > KEPT
    # A statistic with sampling variance 0 that the masking changed counts 1.
    with np.errstate(divide="ignore"):
        sizes = np.divide(np.abs(gaps), np.sqrt(variances), out=np.zeros(gaps.size), where=moved)
    return np.array([math.erf(size / math.sqrt(2)) for size in sizes.tolist()])


def quantile_variances(z: Floats) -> Floats:
    """Return the sampling variance of the 5 % to 95 % quantiles of a standardised column."""
    n = z.size
    points = np.quantile(z, LEVELS)
    low, high = np.quantile(z, [0.25, 0.75])
    if z.min() == z.max():
        return np.zeros(LEVELS.size)
    width = 0.9 * min(1.0, (high - low) / 1.34 or 1.0) * n**-0.2
    density = np.array([np.exp(-(((point - z) / width) ** 2) / 2).mean() for point in points])
    density /= width * math.sqrt(2 * math.pi)
    return LEVELS * (1 - LEVELS) / (n * density**2)


class Moments:
    """Means, variances and covariances of standardised columns, and their sampling variances."""

    def __init__(self, z: Floats) -> None:
        self.n, p = z.shape
        self.pairs = np.triu_indices(p, 1)
        self.means: Floats = z.mean(0)
        self.centred: Floats = deviations(z)
        self.covariances: Floats = self.centred.T @ self.centred / self.n
        self.variances = np.diag(self.covariances)

    @property
    def varying(self) -> Bools:
        """True for each pair of columns that both vary."""
        some = self.variances > 0
        found: Bools = (some[:, None] & some)[self.pairs]
        return found

    def correlations(self, pairs: Bools) -> Floats:
        """Return the correlations of the marked pairs of columns."""
        roots = np.sqrt(self.variances)
        return self.covariances[self.pairs][pairs] / np.outer(roots, roots)[self.pairs][pairs]

    def variance_of_variances(self) -> Floats:
        """Return the sampling variance (m40 - m20**2) / n of each column's variance."""
        return np.maximum((self.centred**4).mean(0) - self.variances**2, 0.0) / self.n

    def variance_of_covariances(self) -> Floats:
        """Return the sampling variance (m22 - m11**2) / n of each pair's covariance."""
        squares = self.centred**2
        return np.maximum((squares.T @ squares / self.n - self.covariances**2)[self.pairs], 0.0) / self.n

    def variance_of_correlations(self, pairs: Bools) -> Floats:
        """Return the sampling variance of each marked pair's correlation, finite also at r = 0.

        In units of the standard deviations, (m22 + r**2 (m40 + m04 + 2 m22) / 4 - r (m31 + m13)) / n; its
        limit at r = 0 is m22 / n, under normality 1/n.
        """
        u = self.centred / np.where(self.variances > 0, np.sqrt(self.variances), 1.0)
        r, m22, m31 = u.T @ u / self.n, (u**2).T @ (u**2) / self.n, (u**3).T @ u / self.n
        m40 = np.diag(m22)
        full = m22 + r**2 * (m40[:, None] + m40 + 2 * m22) / 4 - r * (m31 + m31.T)
        return np.maximum(full[self.pairs][pairs], 0.0) / self.n


def losses_by_family(x: Floats, y: Floats) -> dict[str, Floats]:
    """Return the loss of every statistic by family: quantiles, means, variances and so on."""
    zx, zy = standardise_like(x, x), standardise_like(y, x)  # scales statistics and variances alike
    ours, theirs = Moments(zx), Moments(zy)
    pairs = ours.pairs
    quantiles = (np.quantile(zy, LEVELS, axis=0) - np.quantile(zx, LEVELS, axis=0)).T.ravel()
    found = {
        "quantiles": loss_probabilities(
            quantiles, np.concatenate([quantile_variances(column) for column in zx.T])
        ),
        "means": loss_probabilities(theirs.means - ours.means, ours.variances / ours.n),
        "variances": loss_probabilities(theirs.variances - ours.variances, ours.variance_of_variances()),
        "covariances": loss_probabilities(
            (theirs.covariances - ours.covariances)[pairs], ours.variance_of_covariances()
        ),
        "correlations": _correlation_losses(ours, theirs),
    }
    return {family: values for family, values in found.items() if values.size}


def _correlation_losses(ours: Moments, theirs: Moments) -> Floats:
    """Return the loss of each correlation of the original; 1 where the masked data lack it."""
    shared = ours.varying & theirs.varying
    gaps = theirs.correlations(shared) - ours.correlations(shared)
    losses = np.ones(shared.size)
    losses[shared] = loss_probabilities(gaps, ours.variance_of_correlations(shared))
    return losses[ours.varying]


def score_pil(comparison: Comparison, *, detail: bool = False, **_: bool) -> Score:
    """Return the score of PIL, the mean over families of the mean loss of their statistics."""
    x, y = complete_values("pil", comparison)
    parts = {family: float(values.mean()) for family, values in losses_by_family(x, y).items()}
    value = min(1.0, math.fsum(parts.values()) / len(parts))
    return whole_file_score("pil", comparison, value, parts=parts, detail=detail)


@metric(
    title="PIL, probabilistic information loss",
    place=80,
    needs="moments",
    score=score_pil,
    explain=partial(
        sentence_of,
        text="a fresh sample of the same size would keep closer to the original's statistics in "
        "{:.1%} of cases, on average over the statistics",
    ),
    reference="Mateo-Sanz, Domingo-Ferrer & Sebe 2005, doi:10.1007/s10618-005-0011-9",
    by_variable=False,
    records=ENOUGH,
    paired=False,
    default=False,
    experimental=True,
)
def pil(original: Any, masked: Any) -> float:
    """Probability that sampling alone would change a statistic less than the masking did; 0 if all are kept.

    0 means that quantiles, means, variances, covariances and correlations are kept, 1 that all moved far
    beyond what sampling does. It works like a test: in large files a trifling change scores 1.
    Experimental: how the parameters are averaged could not be checked against the primary source.

    Parameters
    ----------
    original, masked : table
        pandas, polars, pyarrow or numpy, over 100 records; `original` may be a `Microdata`. Records with a
        missing cell in either file are left out; weights play no part.

    Returns
    -------
    float
        Mean of the families' means; each family is also a part of the score.

    Notes
    -----
    2 P(0 <= Z <= |t - s| / sqrt(V)) for a parameter s of the original that became t; Z is standard
    normal, V the asymptotic sampling variance of s with the original's moments. The families are: the
    quantiles 5 %, 10 % ... 95 % of each variable, means, variances, and the covariances and
    correlations of each pair. V of a quantile needs a density: Gaussian kernels on the original,
    width 0.9 min(S, IQR/1.34) n**(-1/5), a choice of this package. V of a correlation takes its limit
    at r = 0, which is 1/n under normality. A parameter that is kept counts 0 even where V is 0, one
    that changed where V is 0 counts 1. Correlations with a variable that was constant from the start
    are left out; those that the masking made constant count 1.

    References
    ----------
    Mateo-Sanz, Domingo-Ferrer & Sebe 2005, Probabilistic information loss measures in confidentiality
    protection of continuous microdata, doi:10.1007/s10618-005-0011-9.

    Examples
    --------
    >>> import sdckit as sdc
    >>> x = list(range(1, 201))
    >>> result = sdc.evaluate(x, [value + 3 for value in x], metrics="pil")
    >>> parts = result.parts["pil"]
    >>> round(parts["means"], 4), parts["variances"]
    (0.5376, 0.0)
    """
