"""Interval disclosure: how often an original value lies in a narrow interval around the masked one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from sdckit.core import checks, parameters
from sdckit.core.parameters import Parameter
from sdckit.core.registry import metric
from sdckit.kernels.jit import Floats, Ints, kernel
from sdckit.kernels.scaling import spread
from sdckit.metrics.averages import divide_or_nan, pooled_means, record_means
from sdckit.metrics.pair import Pair, pair_of
from sdckit.metrics.score import Score, Values
from sdckit.progress import each
from sdckit.risk.chance_level import mean_level, permutations, shuffled_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sdckit.kernels.jit import Bools

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
RISK: dict[str, Any] = {"family": "risk", "bounds": (0.0, 1.0), "best": 0.0, "in_blocks": True}


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


def share_found(found: Floats | Bools, seen: Bools) -> float:
    """Return the share of True (or the mean) in `found` where `seen` is True; NaN where it never is."""
    return float(found[seen].mean()) if seen.any() else math.nan


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
    k = parameters.parameter_value(WIDTH, k)
    checks.one_of("scale", scale, SCALES)
    checks.one_of("level", level, LEVELS)
    by_records = level == "records"
    reach = k * spread(pair.original.values if scale == "original" else pair.masked)
    inside, seen = _cells_inside(pair, reach)
    extra: dict[str, Any] = {}
    if detail:
        extra["random"] = mean_level(
            _shares_inside(*_cells_inside(other, reach), level) for other in shuffled_pairs(pair)
        )
        extra["notes"] = _sdid_notes(pair, by_records=by_records)
    if per_record:
        extra["records"] = _disclosure_by_record(inside, seen, level)
    return IntervalScore(
        _shares_inside(inside, seen, level),
        used=seen.sum(0),
        left_out=np.zeros(pair.p, np.int64),
        parts={name: _shares_inside(inside, seen, name).overall for name in LEVELS},
        finding=f"the masked {'record' if by_records else 'value'} lies within {100 * k:.3g}% of a standard "
        f"deviation of the original{' in every variable' if by_records and pair.p > 1 else ''}",
        among=level,
        **extra,
    )


def _cells_inside(pair: Pair, reach: Floats) -> tuple[Bools, Bools]:
    """Return which cells lie within `reach` of the original, and which are observed in both files."""
    with np.errstate(over="ignore"):  # a difference beyond all numbers is outside
        gaps = np.abs(pair.original.values - pair.masked)
    return gaps <= reach, ~np.isnan(gaps)


def _disclosure_by_record(inside: Bools, seen: Bools, level: str) -> Floats:
    """Return each record's disclosure: 1 or 0, or the share of its cells; NaN without a shared cell."""
    count = seen.sum(1)
    cells = divide_or_nan(inside.sum(1), count)
    return np.where(np.isnan(cells), np.nan, cells == 1) if level == "records" else cells


def _shares_inside(inside: Bools, seen: Bools, level: str) -> Values:
    """Return the share of cells in their interval by variable, and of all cells or of whole records."""
    variables = np.array([share_found(inside[:, j], seen[:, j]) for j in range(seen.shape[1])])
    if level == "cells":
        return Values(share_found(inside, seen), variables)
    return Values(share_found((seen & ~inside).sum(1) == 0, seen.sum(1) > 0), variables)


def _sdid_notes(pair: Pair, *, by_records: bool) -> tuple[str, ...]:
    """Return a note, if cells were suppressed, that records are judged by the cells they have left."""
    if by_records and pair.counts.suppressed.any():
        return ("sdid judges records with suppressed cells by the cells they have left",)
    return ()


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
        pandas, polars, pyarrow or numpy, rows paired by order; `original` may be prepared.
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
    return score_sdid(pair_of(original, masked), k=k, scale=scale, level=level).value.overall


# --- intervals of some ranks ---


def score_rid(
    pair: Pair, *, half_width: str = "full", detail: bool = False, per_record: bool = False
) -> Score:
    """Return the score of RID: the share of original values within 1 % to 10 % of the ranks of the masked."""
    checks.one_of("half_width", half_width, HALF_WIDTHS)
    positions = _positions_by_variable(pair)
    chances = _chances_by_variable(positions, half_width)
    sizes = np.array([found.shape[1] for found in chances])
    extra: dict[str, Any] = {}
    if detail:
        others = _shuffled_positions(pair, positions)
        extra["random"] = mean_level(
            _pool_chances(_chances_by_variable(other, half_width)) for other in others
        )
        if any(((found > 0) & (found < 1)).any() for found in chances):
            extra["tie_low"] = _pool_chances([np.floor(found) for found in chances])
            extra["tie_high"] = _pool_chances([np.ceil(found) for found in chances])
    if per_record:
        extra["records"] = _rid_records(pair, chances)
    return IntervalScore(
        _pool_chances(chances),
        used=sizes,
        left_out=np.zeros(pair.p, np.int64),
        parts={
            f"{percent}%": float(np.concatenate([found[i] for found in chances]).mean())
            for i, percent in enumerate(PERCENTS.tolist())
            if sizes.any()
        },
        finding="the original value lies between the masked values "
        f"{'1% to 10%' if half_width == 'full' else '0.5% to 5%'} of the ranks below and above",
        among="cells",
        **extra,
    )


class _Positions(NamedTuple):
    """Ranks, from 0, of a variable's masked and original values among its sorted masked values."""

    first: Ints  # of the masked values that equal the record's own
    last: Ints
    low: Ints  # the first masked value that is not below the record's original
    high: Ints  # the last that is not above it

    def chances(self, half_width: str) -> Floats:
        """Return the probability that each cell lies in its interval, a row for each of 1 % to 10 %."""
        hundred = HALF_WIDTHS[half_width]
        reach = (2 * PERCENTS * self.first.size + hundred) // (2 * hundred)  # halves are rounded up
        found = np.zeros((reach.size, self.first.size))
        _write_chances(self.first, self.last, self.low, self.high, reach, found)
        return found


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


@kernel
def _write_chances(first: Ints, last: Ints, low: Ints, high: Ints, reach: Ints, found: Floats) -> None:
    """Write the probability that the rank interval around each masked value contains its original.

    The interval of position q contains x if the value at q - h is at most x and the one at q + h at least x:
    if q lies from h below the first value that is not below x to h above the last that is not above it.
    """
    n = first.size
    for line in range(reach.size):
        for i in range(n):
            if high[i] >= 0 and low[i] < n:  # no interval contains an x beyond all masked values
                begin, end = max(first[i], low[i] - reach[line]), min(last[i], high[i] + reach[line])
                found[line, i] = max(end - begin + 1, 0) / (last[i] - first[i] + 1)


def _chances_by_variable(positions: list[_Positions], half_width: str) -> list[Floats]:
    """Return, for each variable, the probabilities that its cells lie in their intervals."""
    return [column.chances(half_width) for column in positions]


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


def _pool_chances(chances: list[Floats]) -> Values:
    """Return the mean probability over percentages and cells, of each variable and of all cells."""
    return pooled_means(
        np.array([found.sum() for found in chances]), np.array([found.size for found in chances])
    )


def _rid_records(pair: Pair, chances: list[Floats]) -> Floats:
    """Return each record's mean probability over its variables and the percentages."""
    costs = ((pair.both(j), found.mean(0)) for j, found in enumerate(chances))
    return record_means(pair.original.n, costs)


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
        pandas, polars, pyarrow or numpy, rows paired by order; `original` may be prepared.
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
    return score_rid(pair_of(original, masked), half_width=half_width).value.overall
