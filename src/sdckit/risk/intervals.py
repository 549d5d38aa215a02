"""Interval disclosure: how often an original value lies in a narrow interval around the masked one.

Intervals of standard deviations (SDID), of ranks (RID), and such as widen for outliers, which are easier to
recognise (RMDID).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from sdckit.core import checks, registry
from sdckit.core.registry import Parameter
from sdckit.kernels.sums import spread, standardise
from sdckit.metrics.pair import Pair, divide_or_nan, metric, pooled_means, record_means
from sdckit.metrics.score import Score, Values
from sdckit.progress import each
from sdckit.risk.distances import RISK, mean_or_nan, once, permutations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sdckit.arrays import Bools, Floats, Ints
    from sdckit.metrics.original import Original

OUTLIERS = "Mateo-Sanz, Sebe & Domingo-Ferrer 2004, doi:10.1007/978-3-540-25955-8_16"
COMPARISON = (
    "Domingo-Ferrer & Torra 2001, A quantitative comparison of disclosure control methods for microdata, "
    "in Confidentiality, Disclosure and Data Access, Elsevier"
)
SCALES = ("original", "masked")
LEVELS = ("records", "cells")
HALF_WIDTHS = {"full": 100, "half": 200}
PERCENTS = np.arange(1, 11)
WIDTH = Parameter("k", float, 0.05, "half the interval, in standard deviations", low=0.0)
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
class IntervalScore(Score):
    """A score with texts for its explanation: what the intruder finds, among records or cells."""

    finding: str = ""
    among: str = "records"


def explain_interval(score: Score) -> str:
    """Return a sentence on an interval attack: what it finds, how often, and how often by chance."""
    attack = cast("IntervalScore", score)
    if math.isnan(attack.value.overall):
        return f"there are no {attack.among} to compare"
    text = f"{attack.finding} for {100 * attack.value.overall:.3g} of 100 {attack.among}"
    if attack.random is not None and not math.isnan(attack.random.overall):
        text += f"; with unrelated records it would be {100 * attack.random.overall:.3g} of 100"
    return text


def shuffled_pairs(pair: Pair) -> Iterator[Pair]:
    """Yield the pair with its masked records permuted, once for each of the `permutations`."""
    for rows in permutations(pair.original.n):
        masked = np.asfortranarray(pair.masked[rows])
        yield Pair(pair.original, masked, window=pair.window, rules=pair.rules)


def mean_level(levels: Iterable[Values]) -> Values:
    """Return the mean of the values over permutations, NaN left out; NaN where all are NaN."""
    lines = np.array([[level.overall, *level.variables] for level in levels])
    known = ~np.isnan(lines)
    total, count = np.where(known, lines, 0.0).sum(0), known.sum(0)
    means = divide_or_nan(total, count)
    return Values(float(means[0]), means[1:])


# --- intervals of some standard deviations ---


def score_sdid(
    pair: Pair,
    *,
    k: float = 0.05,
    scale: str = "original",
    level: str = "records",
    detail: bool = False,
    per_record: bool = False,
) -> Score:
    """Return the score of SDID: the share of records, or cells, within k standard deviations."""
    by_records = level == "records"
    reach = k * spread(pair.original.values if scale == "original" else pair.masked)
    inside, seen = _cells_inside(pair, reach)
    shares = divide_or_nan(inside.sum(1), seen.sum(1))  # NaN without a shared cell
    if by_records:
        shares = np.where(np.isnan(shares), np.nan, shares == 1)
    partly = detail and by_records and bool(pair.counts.suppressed.any())
    levels = (_cells_inside(other, reach) for other in shuffled_pairs(pair))
    return IntervalScore(
        _shares_inside(inside, seen, level),
        used=seen.sum(0),
        left_out=np.zeros(pair.p, np.int64),
        random=mean_level(_shares_inside(*found, level) for found in levels) if detail else None,
        records=shares if per_record else None,
        notes=("sdid judges records with suppressed cells by the cells they have left",) if partly else (),
        parts={name: _shares_inside(inside, seen, name).overall for name in LEVELS},
        finding=f"the masked {'record' if by_records else 'value'} lies within {100 * k:.3g}% of a standard "
        f"deviation of the original{' in every variable' if by_records and pair.p > 1 else ''}",
        among=level,
    )


def _cells_inside(pair: Pair, reach: Floats) -> tuple[Bools, Bools]:
    """Return which cells lie within `reach` of the original, and which are observed in both files."""
    with np.errstate(over="ignore"):  # a difference beyond all numbers is outside
        gaps = np.abs(pair.original.values - pair.masked)
    return gaps <= reach, ~np.isnan(gaps)


def _shares_inside(inside: Bools, seen: Bools, level: str) -> Values:
    """Return the share of cells in their interval by variable, and of all cells or of whole records."""
    variables = np.array([mean_or_nan(inside[seen[:, j], j]) for j in range(seen.shape[1])])
    if level == "cells":
        return Values(mean_or_nan(inside[seen]), variables)
    return Values(mean_or_nan(((seen & ~inside).sum(1) == 0)[seen.any(1)]), variables)


@metric(
    title="SDID, intervals of standard deviations",
    place=20,
    needs="cells",
    score=score_sdid,
    explain=explain_interval,
    reference=OUTLIERS,
    parameters=(
        WIDTH,
        Parameter("scale", str, "original", "the file whose standard deviation counts", choices=SCALES),
        Parameter("level", str, "records", "what is counted", choices=LEVELS),
    ),
    in_blocks=True,
    **RISK,
)
def sdid(
    original: Any, masked: Any, *, k: float = 0.05, scale: str = "original", level: str = "records"
) -> float:
    """Share of records whose values all lie within k standard deviations of the masked ones; 0 if none.

    0 means that no masked record is so close to its original, 1 that all are, as in unchanged data.
    Ties and zeros put records inside by chance: read it beside the level of unrelated records that
    `evaluate` reports. With many variables, a record with one distant value does not count, however close
    the others are; `level="cells"` counts cells instead. Survey weights are not used: records count.

    Parameters
    ----------
    original, masked : table
        pandas, polars, pyarrow or numpy, rows paired by order; `original` may be a `Microdata`.
    k : float
        Half the width of the interval, in standard deviations.
    scale : str
        "original": the original's standard deviation (ddof 1); "masked": the masked file's, as in the R
        package sdcMicro. The latter grows with the noise, so that no amount of noise brings the risk to 0.
    level : str
        "records" counts records with all variables inside, "cells" single cells.

    Returns
    -------
    float
        Share of the records that have a cell in both files. A record is judged by those cells; a
        suppressed cell is never inside.

    Notes
    -----
    Record i is at risk where |x_ij - y_ij| <= k * sd_j for all variables j that both files observe. The
    value of a variable is the share of its cells inside.

    References
    ----------
    Mateo-Sanz, Sebe & Domingo-Ferrer 2004, doi:10.1007/978-3-540-25955-8_16. The R package:
    Templ, Kowarik & Meindl 2015, doi:10.18637/jss.v067.i04.

    Examples
    --------
    >>> import sdckit as sdc
    >>> sdc.sdid([1, 2, 3, 4], [1.0, 2.01, 3.5, 2.0])
    0.5
    """


def score_rid(
    pair: Pair, *, half_width: str = "full", detail: bool = False, per_record: bool = False
) -> Score:
    """Return the score of RID: the share of original values within 1 % to 10 % of the ranks of the masked."""
    positions = _positions_by_variable(pair)
    chances = [column.chances(half_width) for column in positions]
    sizes = np.array([found.shape[1] for found in chances])
    uncertain = detail and any(((found > 0) & (found < 1)).any() for found in chances)
    levels = _shuffled_positions(pair, positions)
    costs = ((pair.both(j), found.mean(0)) for j, found in enumerate(chances))
    return IntervalScore(
        _pool_chances(chances),
        used=sizes,
        left_out=np.zeros(pair.p, np.int64),
        random=mean_level(_pool_chances(column.chances(half_width) for column in other) for other in levels)
        if detail
        else None,
        tie_low=_pool_chances(map(np.floor, chances)) if uncertain else None,
        tie_high=_pool_chances(map(np.ceil, chances)) if uncertain else None,
        records=record_means(pair.original.n, costs) if per_record else None,
        parts={
            f"{percent}%": float(np.concatenate([found[i] for found in chances]).mean())
            for i, percent in enumerate(PERCENTS.tolist())
            if sizes.any()
        },
        finding="the original value lies between the masked values "
        f"{'1% to 10%' if half_width == 'full' else '0.5% to 5%'} of the ranks below and above",
        among="cells",
    )


class _Positions(NamedTuple):
    """Ranks, from 0, of a variable's masked and original values among its sorted masked values."""

    first: Ints  # of the masked values that equal the record's own
    last: Ints
    low: Ints  # the first masked value that is not below the record's original
    high: Ints  # the last that is not above it

    def chances(self, half_width: str) -> Floats:
        """Return the probability that each cell lies in its interval, a row for each of 1 % to 10 %.

        The interval of position q contains x if the value at q - h is at most x and the one at q + h at
        least x: if q lies from h below the first value not below x to h above the last not above it.
        """
        n, hundred = self.first.size, HALF_WIDTHS[half_width]
        reach = ((2 * PERCENTS * n + hundred) // (2 * hundred))[:, None]  # halves are rounded up
        begin, end = np.maximum(self.first, self.low - reach), np.minimum(self.last, self.high + reach)
        inside = (self.high >= 0) & (self.low < n)  # no interval contains an x beyond all masked values
        return inside * np.maximum(end - begin + 1, 0) / (self.last - self.first + 1)


def _positions(x: Floats, y: Floats) -> _Positions:
    """Return the ranks of masked values y and original values x among the sorted masked values."""
    order = np.sort(y)

    def positions(values: Floats) -> tuple[Ints, Ints]:
        """Return ranks of the first masked value not below, and of the last not above, each value."""
        rows = np.argsort(values)  # to look up values in order is several times faster
        low, high = np.empty(rows.size, np.int64), np.empty(rows.size, np.int64)
        low[rows] = np.searchsorted(order, values[rows], "left")
        high[rows] = np.searchsorted(order, values[rows], "right") - 1
        return low, high

    return _Positions(*positions(y), *positions(x))


def _positions_by_variable(pair: Pair) -> list[_Positions]:
    """Return, for each variable, the ranks of its cells among the sorted masked values."""
    return [_positions(*pair.cells(j)[:2]) for j in each("ranking", range(pair.p))]


def _shuffled_positions(pair: Pair, positions: list[_Positions]) -> Iterator[list[_Positions]]:
    """Yield the ranks by variable for each random permutation of the masked records."""
    if not pair.complete:
        yield from (_positions_by_variable(other) for other in shuffled_pairs(pair))
        return
    for rows in permutations(pair.original.n):
        yield [column._replace(first=column.first[rows], last=column.last[rows]) for column in positions]


def _pool_chances(chances: Iterable[Floats]) -> Values:
    """Return the mean probability over percentages and cells, of each variable and of all cells."""
    sums, sizes = np.array([(found.sum(), found.size) for found in chances]).reshape(-1, 2).T
    return pooled_means(sums, sizes.astype(np.int64))


@metric(
    title="RID, intervals of ranks",
    place=20,
    needs="ranks",
    score=score_rid,
    explain=explain_interval,
    reference=COMPARISON,
    parameters=(
        Parameter("half_width", str, "full", "what p percent of the ranks span", choices=tuple(HALF_WIDTHS)),
    ),
    in_blocks=True,
    **RISK,
)
def rid(original: Any, masked: Any, *, half_width: str = "full") -> float:
    """Share of original values within 1 % to 10 % of the ranks around their masked value; 0 if none.

    0 means that no original value lies near the rank of its masked value, 1 that all do, as in unchanged
    data. Unrelated records score about 0.11, far more where a value is frequent: with 60 % zeros 0.43. So
    read it beside the level of unrelated records that `evaluate` reports. Rank losses such as `brmae` measure
    the same moves: the two are no independent evidence. Survey weights are not used: cells count.

    Parameters
    ----------
    original, masked : table
        pandas, polars, pyarrow or numpy, rows paired by order; `original` may be a `Microdata`.
    half_width : str
        "full": the interval reaches p percent of the ranks to either side; "half": half of that. The
        literature's words, ranks that differ by less than p percent, allow both; the default is a choice
        made here.

    Returns
    -------
    float
        Mean over the cells that both files observe, then over p = 1, ..., 10; `parts` of the score has the
        value of each p.

    Notes
    -----
    With the masked values of a variable in order, record i is found where x_i lies in the closed interval
    from the value at rank(y_i) - h to the one at rank(y_i) + h, cut at both ends; h = p n / 100 (or
    p n / 200), rounded to the nearest whole number and halves up. Equal masked values share their ranks: the
    intruder guesses one of them, and a cell counts with the chance that the guess succeeds. The tie range
    goes from cells found whatever the guess to cells found by the luckiest one.

    References
    ----------
    Domingo-Ferrer & Torra 2001, A quantitative comparison of disclosure control methods for microdata,
    in Confidentiality, Disclosure and Data Access, Elsevier.

    Examples
    --------
    >>> import sdckit as sdc
    >>> import numpy as np
    >>> x = np.arange(1.0, 101.0)
    >>> round(sdc.rid(x, np.where(x <= 50, x + 4.5, x)), 2)
    0.76
    """


# --- intervals that widen for outliers -------------------------------------------------------------------


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
    reach = k * UNIT * robust_distances(pair.original, seed)
    both = ~pair.original.missing & ~pair.missing
    # Only over the same cells do unchanged values keep their place when others are suppressed.
    ours, theirs = (standardise(np.where(both, file, np.nan)) for file in (pair.original.values, pair.masked))
    isolated, whole = _isolated_records(pair.masked, k2)
    none = np.full(pair.p, np.nan)

    def disclosed(rows: Any, rule: str) -> tuple[Bools, Bools]:
        """Return which originals the masked `rows` disclose under a rule, and which can be judged."""
        gaps = np.abs(ours - theirs[rows])
        seen = ~np.isnan(gaps).all(1) & ~np.isnan(reach)
        near = (gaps <= reach[:, None]).any(1)  # "at most", so that unchanged records are always near
        return (near, seen) if rule == "near" else (near & isolated[rows], seen & whole[rows])

    every = {name: disclosed(slice(None), name) for name in RULES}
    shares = {name: mean_or_nan(at[judged]) for name, (at, judged) in every.items()}
    found, seen = every[rule]
    levels = (disclosed(rows, rule) for rows in permutations(pair.original.n))
    return IntervalScore(
        Values(shares[rule], none),
        used=(both & seen[:, None]).sum(0),
        left_out=(both & ~seen[:, None]).sum(0),
        random=mean_level(Values(mean_or_nan(at[to]), none) for at, to in levels) if detail else None,
        records=np.where(seen, found, np.nan) if per_record else None,
        parts=shares,
        finding="a masked value lies close to the original (outliers are close from farther away)"
        f"{' and no other masked record is near' if rule == 'alone' else ''}",
    )


@once
def robust_distances(original: Original, seed: int) -> Floats:
    """Return each complete record's distance from the mean under a robust covariance (MCD)."""
    points = standardise(original.values)
    complete = ~np.isnan(points).any(1)
    distances, lines = np.full(original.n, np.nan), points[complete]
    _refuse_degenerate(lines, original.columns)
    inverse = np.linalg.inv(_robust_covariance(lines, seed))
    distances[complete] = np.sqrt(np.einsum("ij,jk,ik->i", lines, inverse, lines))
    return distances


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
    in_blocks=True,
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
        pandas, polars, pyarrow or numpy, rows paired by order; `original` may be a `Microdata`.
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
