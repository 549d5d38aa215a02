"""Rounding and coding of tails."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.core import checks
from sdckit.core.registry import InBlocks, Parameter, method
from sdckit.kernels.sums import deviations, powers_of_two, spread
from sdckit.masking.microaggregation import FEWEST, each_by_itself, window_zero
from sdckit.masking.noise import SPREAD_IN_BLOCKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.arrays import Floats, Ints
    from sdckit.core.registry import Options


class Codes(NamedTuple):
    """The values of a column from `high` up become `top`, those up to `low` become `bottom`."""

    low: float = -math.inf
    bottom: float = math.nan
    high: float = math.inf
    top: float = math.nan

    def applied(self, column: Floats) -> Floats:
        """Return a column with its tails coded; missing cells stay missing."""
        return np.where(column >= self.high, self.top, np.where(column <= self.low, self.bottom, column))


class Tail(NamedTuple):
    """A tail as a user asks for it: a share of the values, or all beyond a limit if that is finite."""

    share: float
    limit: float = math.inf

    @property
    def by_limit(self) -> bool:
        """True if a limit says which values are coded."""
        return math.isfinite(self.limit)

    def count(self, n: int) -> int:
        """Return how many of n values the share asks for; 0 if a limit says which are coded."""
        return 0 if self.by_limit else coded_count(self.share, n)

    def cut(self, n: int, least: float) -> float:
        """Return the least coded value, `least` if the share says so; infinite where none is coded."""
        if self.by_limit:
            return math.nextafter(self.limit, math.inf)
        return least if self.count(n) else math.inf

    def code(self, cut: float, replace: str, count: int, mean: float) -> float:
        """Return what replaces the `count` values from `cut` on, whose mean is given."""
        # The mean of so few values would disclose them; a limit that the user gave discloses nothing.
        if replace == "limit" or (self.by_limit and count < FEWEST):
            return self.limit if self.by_limit else cut
        return mean


def coded_count(share: float, n: int) -> int:
    """Return how many of n values are top-coded for a share of them: at least three if there are three."""
    return min(max(FEWEST, checks.whole_share_up(share, n)), n) if share > 0 else 0


def joined_codes(upper: tuple[float, float], lower: tuple[float, float], middle: float) -> Codes:
    """Return the codes of a column from cut and code of each tail, each seen from its own side.

    Where the tails meet no value is left between them, and all of them become `middle`.
    """
    if upper[0] <= -lower[0]:
        return Codes(high=-math.inf, top=middle)
    return Codes(-lower[0], -lower[1], *upper)


def column_codes(column: Floats, upper: Tail, lower: Tail, replace: str) -> Codes:
    """Return the codes of one column, whose lower tail is given with its sign changed."""
    seen = column[~np.isnan(column)]
    found = [_cut_and_code(side, tail, replace) for side, tail in ((seen, upper), (-seen, lower))]
    met = found[0][0] <= -found[1][0]
    return joined_codes(found[0], found[1], middle_of(seen, replace) if met else math.nan)


def _cut_and_code(values: Floats, tail: Tail, replace: str) -> tuple[float, float]:
    """Return the least coded value of an upper tail, and what replaces the tail."""
    n = len(values)
    count = tail.count(n)
    cut = tail.cut(n, float(np.partition(values, n - count)[n - count]) if count else math.nan)
    beyond = values[values >= cut]
    return cut, tail.code(cut, replace, len(beyond), mean_of(beyond) if len(beyond) else math.nan)


def middle_of(values: Floats, replace: str) -> float:
    """Return what a column without missing cells becomes where its tails meet: its mean or lower median."""
    if replace == "mean":
        return mean_of(np.sort(values))
    return float(np.sort(values)[median_rank(len(values))])


def median_rank(n: int) -> int:
    """Return the rank, from 0, of the lower median of n values."""
    return (n - 1) // 2


def mean_of(values: Floats) -> float:
    """Return the mean of an array without overflow; exactly the common value if all values are equal."""
    unit = float(powers_of_two(values[:, None])[0])
    mean = float((values / unit).mean() * unit)
    return min(max(mean, float(values.min())), float(values.max()))


HANDBOOK = "Hundepool et al. 2012, Statistical Disclosure Control, doi:10.1002/9781118348239"
FINEST = 2.0**50  # a value of that many bases has no digits to lose
SHARES = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3)
REPLACE = ("mean", "limit")
MULTIVARIATE = ("each", "distance")


# --- rounding ---


def round_number(size: float) -> float:
    """Return the number 1, 2 or 5 times a power of ten nearest to a size by ratio; 0 where there is none."""
    if not 0 < size < math.inf:
        return 0.0
    power = math.floor(math.log10(size))
    candidates = [float(f"{digit}e{power + up}") for up in (0, 1) for digit in (1, 2, 5)]
    return min(candidates, key=lambda number: abs(math.log10(number or 1e-323) - math.log10(size)))


def bases_of(
    sizes: Floats, *, percent: float = 20.0, base: float = 0.0, bases: Floats | None = None
) -> Floats:
    """Return the rounding base of each column: its own, the common one, or a percentage of its deviation."""
    own = np.zeros(len(sizes)) if bases is None else bases
    return np.array(
        [one or base or round_number(size * (percent / 100)) for one, size in zip(own, sizes, strict=True)]
    )


def round_to_multiples(column: Floats, base: float) -> Floats:
    """Return each value rounded to the nearest multiple of a base, halves to the even multiple.

    A base such as 0.1 has no exact double, so that 3 * 0.1 is not 0.3; but 3 * 1 / 10 is. Hence the base
    is taken as the fraction that its decimal digits say.
    """
    fraction = Fraction(repr(float(base)))
    try:
        above, below = float(fraction.numerator), float(fraction.denominator)
    except OverflowError:
        above, below = base, 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        counts = column * below / above
        found = np.rint(counts) * above / below + 0.0  # -0.0 would disclose a sign
        return np.where(np.abs(column / base) < FINEST, found, column)


@method(
    title="rounding",
    place=100,
    parameters=(
        Parameter(
            "percent",
            float,
            20.0,
            "base in percent of each column's standard deviation, made a round number",
            low=0,
            grid=(10, 20, 50, 100, 140, 200, 280, 400),
        ),
        Parameter("base", float, 0.0, "base for all columns; 0 to go by percent", low=0),
        Parameter("bases", dict, {}, "a base for some columns", low=0, fill=0.0),
    ),
    keeps=("order of each column, ties apart", "every value, up to half a base"),
    basis=spread,
    window=window_zero,
    half_width=lambda options, values: bases_of(spread(values), **options) / 2,
    one_by_one=each_by_itself,
    reference=HANDBOOK,
    in_blocks=SPREAD_IN_BLOCKS,
)
def round_to(
    values: Floats,
    *,
    percent: float = 20.0,
    base: float = 0.0,
    bases: Floats | None = None,
    basis: Floats | None = None,
) -> Floats:
    """Round every value to a multiple of a base.

    No value moves by more than half a base and no two change their order; rounding again changes nothing.
    Means are kept roughly. Totals need not be the sum of their rounded parts. Little protection where few
    values share a multiple, as in a long tail: see `top_bottom_code` for that.

    Parameters
    ----------
    values
        n x p matrix; NaN cells are missing and stay so.
    percent
        The base of a column is the number of the series ..., 0.1, 0.2, 0.5, 1, 2, 5, 10, ... that is next to
        this percentage of its standard deviation. A constant column stays as it is.
    base
        Base for all columns, in units of the data, in place of `percent`; 0 is none.
    bases
        Base of each column, in place of both; 0 is none.
    basis
        `spread(values)`, where it is known.

    Returns
    -------
    numpy.ndarray

    Notes
    -----
    y = b round(x / b), halves to the even multiple, so that as many go up as down. Multiples are the nearest
    doubles to what their decimal digits say: 0.3 for three times 0.1. Values beyond 2^50 bases stay as they
    are.

    References
    ----------
    Hundepool et al. 2012, Statistical Disclosure Control, doi:10.1002/9781118348239.

    Examples
    --------
    >>> round_to(np.array([[0.14], [0.31], [0.25], [-0.04]]), base=0.1).ravel()
    array([0.1, 0.3, 0.2, 0. ])
    >>> round_to(np.array([[1.0, 100.0], [2.0, 150.0], [4.0, 420.0]]), percent=100).tolist()
    [[0.0, 0.0], [2.0, 200.0], [4.0, 400.0]]
    """
    sizes = spread(values) if basis is None else basis
    masked = values.copy(order="K")
    for j, chosen in enumerate(bases_of(sizes, percent=percent, base=base, bases=bases)):
        if chosen > 0:
            masked[:, j] = round_to_multiples(values[:, j], chosen)
    return masked


# --- top and bottom coding ---


def move_towards_mean(values: Floats, share: float) -> Floats:
    """Return the matrix with a share of the records, those farthest from the mean, moved towards it."""
    powers = powers_of_two(values)
    centred = deviations(values / powers)
    size = spread(values / powers)
    units = centred / np.where(size > 0, size, 1.0)
    seen = (~np.isnan(values)).sum(axis=1)
    squares = (units**2).sum(axis=1) * (values.shape[1] / np.maximum(seen, 1))
    distance = np.where(seen > 0, np.sqrt(squares), np.nan)
    n = int(np.count_nonzero(seen))
    count = coded_count(share, n)
    cut = float(np.partition(distance, n - count - 1)[n - count - 1]) if count < n else 0.0
    outside = distance > cut
    cut_by = np.where(outside, 1 - cut / np.where(outside, distance, 1.0), 0.0)
    return np.where(outside[:, None], (values / powers - centred * cut_by[:, None]) * powers, values)


def column_tails(
    p: int, *, top: float, bottom: float, above: Floats | None, below: Floats | None
) -> list[tuple[Tail, Tail]]:
    """Return the upper and the lower tail of each of p columns; ValueError for limits in the wrong order."""
    upper = np.full(p, math.inf) if above is None else above
    lower = np.full(p, -math.inf) if below is None else below
    for low, high in zip(lower, upper, strict=True):
        if low > high:
            raise ValueError(
                f"the limit below is {low:g} and the limit above {high:g}; give the smaller one below"
            )
    return [
        (Tail(top, float(high)), Tail(bottom, -float(low))) for low, high in zip(lower, upper, strict=True)
    ]


def notes_on_limits(values: Floats, options: dict[str, Any]) -> list[str]:
    """Return notes on replacement values that are original values or stand for fewer than three."""
    if options["multivariate"] == "distance":
        return []
    few = False
    for limits, sign in ((options["above"], 1), (options["below"], -1)):
        if limits is not None:
            counts = (sign * values > sign * limits).sum(axis=0)
            few |= bool(((counts > 0) & (counts < FEWEST)).any())
    return limit_notes(options, (~np.isnan(values)).sum(axis=0), few=few)


def limit_notes(options: Options, seen: Ints, *, few: bool) -> list[str]:
    """Return the notes on columns with so many values; `few` says that a limit is passed by one or two."""
    notes = []
    shares = [share for share in (options["top"], options["bottom"]) if share > 0]
    if shares and options["replace"] == "limit":
        notes.append("limits from a share are original values; replace='mean' or rounded limits show none")
    if any(0 < share * count <= FEWEST - 1 for share in shares for count in seen):
        notes.append(f"a share of fewer than {FEWEST} values was raised to {FEWEST}")
    if few and options["replace"] == "mean":
        notes.append(f"fewer than {FEWEST} values beyond a limit show the limit, not their mean")
    return notes


@method(
    title="top and bottom coding",
    place=100,
    parameters=(
        Parameter(
            "top", float, 0.05, "share of the largest values that are coded", low=0, high=0.5, grid=SHARES
        ),
        Parameter("bottom", float, 0.0, "share of the smallest values that are coded", low=0, high=0.5),
        Parameter(
            "above", dict, {}, "for some columns, the limit above which values are coded", fill=math.inf
        ),
        Parameter(
            "below", dict, {}, "for some columns, the limit below which values are coded", fill=-math.inf
        ),
        Parameter("replace", str, "mean", "what coded values become", choices=REPLACE),
        Parameter("multivariate", str, "each", "code columns or whole records", choices=MULTIVARIATE),
    ),
    keeps=(
        "order of each column, ties apart (multivariate=each)",
        "column means (replace=mean, multivariate=each)",
    ),
    window=lambda options, values: 0 if options["multivariate"] == "each" else len(values),
    one_by_one=lambda options: bool(options["multivariate"] == "each"),
    release_notes=notes_on_limits,
    reference=HANDBOOK,
    in_blocks=InBlocks(
        needs="codes",
        basis=lambda whole, _options: whole.codes,
        notes=lambda whole, options: limit_notes(options, whole.seen, few=whole.few_coded),
        refused=lambda options: None if options["multivariate"] == "each" else "multivariate='distance'",
    ),
)
def top_bottom_code(
    values: Floats,
    *,
    top: float = 0.05,
    bottom: float = 0.0,
    above: Floats | None = None,
    below: Floats | None = None,
    replace: str = "mean",
    multivariate: str = "each",
    basis: Sequence[Codes] | None = None,
) -> Floats:
    """Replace the largest and the smallest values of each column by one common value each.

    Everything between stays as it is: that is published without any protection, so this is one step of
    several, for columns whose extremes would be recognised. Column means are kept with `replace="mean"`,
    variances shrink. Coding again changes nothing (columns one by one).

    Parameters
    ----------
    values
        n x p matrix; NaN cells are missing and stay so.
    top, bottom
        Share of a column's observed values that are coded, from 0 to 0.5; with values equal to the last of
        them, and at least three where there are three, for a code must not stand for one or two records.
    above, below
        Limits by value, one for each column, in place of the share; infinite where there is none. The other
        columns go by the share: `top=0` leaves them as they are.
    replace
        "mean": coded values become their mean, or the limit where one was given and fewer than three lie
        beyond it. "limit": the limit that was given; with a share the least of the coded values, which is
        an original value and thereby published.
    multivariate
        "each" codes each column by itself. "distance" codes records: the share `top` of those farthest from
        the means, in standard deviations, is drawn straight towards the means until none is farther than
        the farthest of the others. Sums of columns stay right, while ranks and means change, and coding
        again would code more. It takes neither `bottom` nor limits, and `replace` has no part in it.
    basis
        The codes of each column, where they are known.

    Returns
    -------
    numpy.ndarray

    Notes
    -----
    Of n values m are coded: the least m with m >= 3 and m >= n f for a share f, and all that equal the
    least of them. Without ties, brMAE is about f^2 / 2 and brMSE about f^3 / 4 in one tail. Where the coded
    values of both ends meet, the whole column becomes its mean (or median, for "limit"). The distance of a
    record with missing cells is scaled to all columns; the rule for records is this package's own.

    References
    ----------
    Hundepool et al. 2012, Statistical Disclosure Control, doi:10.1002/9781118348239.

    Examples
    --------
    >>> incomes = np.array([[20.0], [31.0], [24.0], [90.0], [40.0], [350.0], [28.0], [70.0]])
    >>> top_bottom_code(incomes, top=0.25).ravel()
    array([ 20.,  31.,  24., 170.,  40., 170.,  28., 170.])
    >>> top_bottom_code(incomes, above=np.array([75.0]), replace="limit").ravel()
    array([20., 31., 24., 75., 40., 75., 28., 70.])
    """
    if multivariate == "distance":
        if bottom > 0 or above is not None or below is not None:
            raise ValueError(
                "multivariate is 'distance', which takes no bottom, above or below; leave them out"
            )
        return move_towards_mean(values, top) if top > 0 else values.copy()
    tails = column_tails(values.shape[1], top=top, bottom=bottom, above=above, below=below)
    masked = values.copy(order="K")
    for j, (upper, lower) in enumerate(tails):
        column = np.ascontiguousarray(values[:, j])
        codes = column_codes(column, upper, lower, replace) if basis is None else basis[j]
        masked[:, j] = codes.applied(column)
    return masked
