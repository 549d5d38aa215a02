"""Robust interval disclosure (RMDID): outliers get wider intervals, since they are easier to recognise."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sdckit.core import checks, parameters, registry
from sdckit.core.parameters import Parameter
from sdckit.core.registry import metric
from sdckit.kernels.scaling import standardise
from sdckit.metrics.pair import Pair, pair_of
from sdckit.metrics.score import Score, Values
from sdckit.risk.chance_level import mean_level, permutations
from sdckit.risk.interval import RISK, IntervalScore, explain_interval, share_found

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.kernels.jit import Bools, Floats
    from sdckit.metrics.original import Original

TEMPL = (
    "Templ & Meindl 2008, Robust statistics meets SDC: new disclosure risk measures for continuous microdata "
    "masking, Lecture Notes in Computer Science 5262"
)
RULES = ("near", "alone")
UNIT = 0.05  # an interval is k times this share of the robust distance
SAMPLE = 10_000  # records from which a robust covariance is precise enough; more only take time
AGREE = 0.975  # of normal data, as Rousseeuw & Van Driessen 1999 reweight
FLAT = 1e-10  # share of the largest eigenvalue below which there is no spread in a direction
K = Parameter("k", float, 0.01, f"half the interval, in {UNIT:.0%} of the robust distance", low=0.0)
K2 = Parameter("k2", float, 0.05, "distance within which another masked record is a neighbour", low=0.0)
SEED = Parameter("seed", int, 0, "starts the search for the robust covariance", low=0)


@dataclass(frozen=True)
class _StandardisedFiles:
    """Both files standardised, with the interval and neighbourhood of each record."""

    original: Floats
    masked: Floats
    reach: Floats  # half the interval of each record; NaN where the original is incomplete
    isolated: Bools  # masked records without another masked record nearby
    whole: Bools  # masked records without a missing cell

    def disclosed(self, rows: Any, rule: str) -> tuple[Bools, Bools]:
        """Return which originals the masked `rows` disclose under a rule, and which can be judged."""
        gaps = np.abs(self.original - self.masked[rows])
        seen = ~np.isnan(gaps).all(1) & ~np.isnan(self.reach)
        near = (gaps <= self.reach[:, None]).any(1)  # "at most", so that unchanged records are always near
        return (near, seen) if rule == "near" else (near & self.isolated[rows], seen & self.whole[rows])


def score_rmdid(
    pair: Pair,
    *,
    k: float = 0.01,
    k2: float = 0.05,
    rule: str = "near",
    seed: int = 0,
    detail: bool = False,
    per_record: bool = False,
) -> Score:
    """Return the score of RMDID: the share of records with a masked value close to the original."""
    k, k2, seed = (parameters.parameter_value(*given) for given in ((K, k), (K2, k2), (SEED, seed)))
    checks.one_of("rule", rule, RULES)
    reach = k * UNIT * robust_distances(pair.original, seed)
    both = ~pair.original.missing & ~pair.missing
    # Only over the same cells do unchanged values keep their place when others are suppressed.
    ours, theirs = (standardise(np.where(both, file, np.nan)) for file in (pair.original.values, pair.masked))
    files = _StandardisedFiles(ours, theirs, reach, *_isolated_records(pair.masked, k2))
    none = np.full(pair.p, np.nan)
    shares = {name: share_found(*files.disclosed(slice(None), name)) for name in RULES}
    found, seen = files.disclosed(slice(None), rule)
    extra: dict[str, Any] = {}
    if detail:
        orders = permutations(pair.original.n)
        extra["random"] = mean_level(
            Values(share_found(*files.disclosed(rows, rule)), none) for rows in orders
        )
    if per_record:
        extra["records"] = np.where(seen, found, np.nan)
    return IntervalScore(
        Values(shares[rule], none),
        used=(both & seen[:, None]).sum(0),
        left_out=(both & ~seen[:, None]).sum(0),
        parts=shares,
        finding="a masked value lies close to the original (outliers are close from farther away)"
        f"{' and no other masked record is near' if rule == 'alone' else ''}",
        **extra,
    )


def robust_distances(original: Original, seed: int) -> Floats:
    """Return each complete record's distance from the mean under a robust covariance (MCD)."""
    name = f"robust distances, seed {seed}"
    if name not in original.cache:
        points = standardise(original.values)
        complete = ~np.isnan(points).any(1)
        distances = np.full(original.n, np.nan)
        lines = points[complete]
        _refuse_degenerate(lines, original.columns)
        inverse = np.linalg.inv(_robust_covariance(lines, seed))
        distances[complete] = np.sqrt(np.einsum("ij,jk,ik->i", lines, inverse, lines))
        original.cache[name] = distances
    found: Floats = original.cache[name]
    return found


def _refuse_degenerate(points: Floats, names: Sequence[str]) -> None:
    """Raise NotApplicable if the densest half of the records has no spread in some direction."""
    n, p = points.shape
    registry.require_size("rmdid", n, p)
    if n <= 2 * p:
        raise checks.NotApplicable(
            f"rmdid needs more than twice as many complete records as variables and the data have {n} "
            f"for {p}; use fewer variables"
        )
    rank = int(np.linalg.matrix_rank(points, tol=math.sqrt(n * FLAT)))
    if rank < p:
        raise checks.NotApplicable(
            f"the original has constant variables or such as others determine (rank {rank} of {p}), so rmdid "
            "has no robust distance; leave them out"
        )
    for name, column in zip(names, points.T, strict=True):
        most = int(np.unique_counts(column).counts.max())
        if most >= (n + p + 1) // 2:  # so many records are searched for the smallest covariance
            raise checks.NotApplicable(
                f"column {name!r} has one value in {most} of {n} records, so rmdid has no robust distance; "
                "leave it out"
            )


def _robust_covariance(points: Floats, seed: int) -> Floats:
    """Return the reweighted MCD covariance of the records, or of a sample of 10,000 of them."""
    n = len(points)
    # The search draws rows: sorted, the result does not depend on the order of the file.
    points = points[np.lexsort(points.T)]
    if n > SAMPLE:
        points = points[np.sort(np.random.default_rng(seed).choice(n, SAMPLE, replace=False))]
    half = densest_half(points, seed)
    sizes = np.linalg.eigvalsh(_covariance(points[half]))
    if not sizes[0] > FLAT * sizes[-1]:
        raise checks.NotApplicable(
            f"in half of the {n} records some variables determine others, so rmdid has no robust distance; "
            "leave one of them out"
        )
    return reweighted_covariance(points, half)


def reweighted_covariance(points: Floats, half: Bools) -> Floats:
    """Return the covariance of the records near the densest half, scaled for normal data.

    They are those within the ellipsoid that holds 97.5 % of normal data. Both covariances are multiplied by
    the consistency factor of the share of the records that they are computed from.
    """
    from scipy.stats import chi2  # noqa: PLC0415 - slow to import

    p = points.shape[1]
    raw = _covariance(points[half]) * consistency_factor(half.mean(), p)
    gaps = points - points[half].mean(0)
    agree = np.einsum("ij,jk,ik->i", gaps, np.linalg.inv(raw), gaps) < chi2.ppf(AGREE, p)
    return _covariance(points[agree]) * consistency_factor(agree.mean(), p)


def consistency_factor(share: float, p: int) -> float:
    """Return the ratio of the full to the central records' covariance of p normal variables.

    share / P(chi2_{p+2} <= q) with q the quantile of chi2_p at this share (Croux & Haesbroeck 1999); 1 for
    all records.
    """
    from scipy.stats import chi2  # noqa: PLC0415 - slow to import

    return float(share / chi2.cdf(chi2.ppf(share, p), p + 2))


def _covariance(points: Floats) -> Floats:
    """Return the covariance matrix of the columns, 1 x 1 for a single one."""
    return np.atleast_2d(np.cov(points, rowvar=False))


def densest_half(points: Floats, seed: int) -> Bools:
    """Return True for the half of the records with the smallest covariance determinant found."""
    try:
        from sklearn.covariance import fast_mcd  # noqa: PLC0415 - an extra, and slow to import
    except ImportError:
        raise ValueError('rmdid needs the package scikit-learn; pip install "sdckit[stats]"') from None
    with warnings.catch_warnings():
        # scikit-learn warns of data without spread in some direction, for which the caller raises an error.
        warnings.filterwarnings("ignore", "Determinant has increased", RuntimeWarning)
        half: Bools = fast_mcd(points, random_state=seed)[2]
    return half


def _isolated_records(masked: Floats, k2: float) -> tuple[Bools, Bools]:
    """Return which masked records are farther than k2 from every other, and which are complete."""
    from scipy.spatial import cKDTree  # noqa: PLC0415 - slow to import

    whole = np.isnan(masked).sum(1) == 0
    masked = standardise(masked)
    isolated = np.zeros(len(masked), np.bool_)
    points, place, count = np.unique(masked[whole], axis=0, return_inverse=True, return_counts=True)
    if len(points):
        nearest = cKDTree(points).query(points, k=2, distance_upper_bound=np.nextafter(k2, np.inf))[0][:, 1]
        isolated[whole] = ((nearest > k2) & (count == 1))[place.ravel()]
    return isolated, whole


@metric(
    title="RMDID, intervals that widen for outliers",
    place=30,
    needs="rows",
    score=score_rmdid,
    explain=explain_interval,
    reference=TEMPL,
    parameters=(K, K2, Parameter("rule", str, "near", "which records are at risk", choices=RULES), SEED),
    by_variable=False,
    records=10,
    default=False,
    extra="stats",
    **RISK,
)
def rmdid(
    original: Any, masked: Any, *, k: float = 0.01, k2: float = 0.05, rule: str = "near", seed: int = 0
) -> float:
    """Share of records with a masked value close to the original, more widely for outliers; 0 if none.

    0 means that no record has a single value close to its original, 1 that every record has one, as in
    unchanged data. One value is enough, so columns that a method leaves alone put every record at
    risk. Not for data in which variables determine others, or in which half of the records share a
    value: they have no robust distance and are refused. Survey weights change nothing: records count.

    Parameters
    ----------
    original, masked : table
        pandas, polars, pyarrow or numpy, rows paired by order; `original` may be prepared.
    k : float
        Half the width of the interval, in 5 % of the record's robust distance from the mean.
    k2 : float
        For `rule="alone"`: the distance, in standard deviations, within which masked records protect
        each other.
    rule : str
        "near": all records with a close value. "alone": of these only such as have no other masked record
        within k2, which is the R package's second measure. The default is "near" because by the other
        even unchanged data are safe where the records lie close together.
    seed : int
        Start of the search for the robust covariance, and the choice of 10,000 records that it is
        computed from in larger files; another start may move a few records.

    Returns
    -------
    float
        Share of the records that are complete in the original (and, for "alone", in the masked file).
        A suppressed cell is never close.

    Notes
    -----
    Each file is scaled by its own means and standard deviations, over the cells that both observe. With S
    the minimum covariance determinant estimate of the scaled original, m_i = 0.05 * sqrt(x_i' S^-1 x_i) and
    record i is near where |x_ij - y_ij| <= k * m_i for at least one j. Neighbours are sought by Euclidean
    distance.

    S is the reweighted estimate: the covariance of the records within the 97.5 % ellipsoid of the densest
    half, which scikit-learn searches for. The covariances of the half and of these records are multiplied
    by their consistency factors share / P(chi2_{p+2} <= q), with q the quantile of chi2_p at the share of
    the records used (Croux & Haesbroeck 1999). R's covMcd, on which its measure rests, takes the same
    factors and in addition those for small samples (Pison, Van Aelst & Willems 2002), which are not applied
    here; on the Tarragona data the mean distance is within 1 % of R's.

    References
    ----------
    Templ & Meindl 2008, Robust statistics meets SDC: new disclosure risk measures for continuous microdata
    masking, Lecture Notes in Computer Science 5262. Rousseeuw & Van Driessen 1999, A fast algorithm for the
    minimum covariance determinant estimator, doi:10.1080/00401706.1999.10485670. Croux & Haesbroeck 1999,
    Influence function and efficiency of the minimum covariance determinant scatter matrix estimator,
    doi:10.1006/jmva.1999.1839. Pison, Van Aelst & Willems 2002, Small sample corrections for LTS and MCD,
    doi:10.1007/s001840200191.

    Examples
    --------
    >>> import sdckit as sdc
    >>> import numpy as np
    >>> x = np.arange(20.0)
    >>> sdc.rmdid(x, np.where(x < 5, 4 - x, x))
    0.8
    """
    return score_rmdid(pair_of(original, masked), k=k, k2=k2, rule=rule, seed=seed).value.overall
