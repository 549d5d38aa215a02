"""Where the tails of a column begin that top and bottom coding replaces, and what replaces them.

Each tail is looked at from its own side: the lower one with signs changed, so that one formula serves both.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.core import checks
from sdckit.kernels.scaling import powers_of_two
from sdckit.masking.group_means import FEWEST

if TYPE_CHECKING:
    from sdckit.kernels.jit import Floats


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
