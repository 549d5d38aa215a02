"""Masking by noise that grows with the distance of a record from the bulk of the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.core.law import independent
from sdckit.core.parameters import Parameter
from sdckit.core.registry import method
from sdckit.kernels.draws import normals
from sdckit.kernels.scaling import powers_of_two, spread
from sdckit.masking.noise import STRENGTH

if TYPE_CHECKING:
    from sdckit.core.law import Stated
    from sdckit.kernels.jit import Floats

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


def _law_of_outlier_noise(options: dict[str, Any], values: Floats) -> Stated | None:
    """Return the law y = x + f e, with a factor f of each record; None without noise."""
    share = options["percent"] / 100
    if not share:
        return None
    reach = noise_scale(values)
    return independent(values, np.clip(reach.distances, 1.0, options["most"])[:, None] * reach.sizes * share)


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
