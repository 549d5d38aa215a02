"""Classes of change, in percent and in standard errors, and what they leave unknown of the original."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.metrics.estimates.measuring import Row

PERCENTS = (1.0, 5.0, 10.0)  # ends of the classes of change, in percent of the original
ERRORS = (0.5, 1.0, 2.0)  # and in standard errors of the original
NOTHING = (math.inf, math.inf)


class Class(NamedTuple):
    """A class of change from `low` up to `high`, None where it has no end; both are ends of classes."""

    low: float
    high: float | None

    def text(self, unit: str) -> str:
        """Return the class in words, such as "1 to 5 %"."""
        if self.high is None:
            return f"above {self.low:g} {unit}"
        return f"{self.low:g} to {self.high:g} {unit}" if self.low else f"below {self.high:g} {unit}"

    @property
    def end(self) -> float:
        """The upper end; infinite without one."""
        return math.inf if self.high is None else self.high


def class_of(change: float | None, ends: Sequence[float], first: float | None) -> Class | None:
    """Return the class of a change, whatever its direction; the first class ends at `first`."""
    if change is None or first is None or math.isnan(change):
        return None
    kept = [0.0, *(end for end in ends if end >= first)]
    size = abs(change)
    return next((Class(low, high) for low, high in pairwise(kept) if size < high), Class(kept[-1], None))


def half_width(ends: Sequence[float], first: float) -> float:
    """Return half the length of the shortest interval that a class leaves, if the first one ends at `first`.

    The first class has both sides of the masked estimate, and the last one no end.
    """
    kept = [end for end in ends if end >= first]
    return min([first, *((high - low) / 2 for low, high in pairwise(kept))])


def percent_slack(row: Row, masked: float, first: float | None) -> tuple[float, float]:
    """Return how far above and below its value an original estimate may lie, given its class in percent.

    As multiples of the value. The direction of a change that is not in the first class counts as known.
    """
    if first is None or not row.value:
        return NOTHING
    share = masked / row.value
    found = class_of(100 * (share - 1), PERCENTS, first)
    if found is None:
        return NOTHING
    low, high = found.low / 100, found.end / 100
    above = share / (1 - high) - 1 if high < 1 else math.inf
    below = 1 - share / (1 + high)
    if low and share > 1:
        return share / (1 + low) - 1, below
    return (above, 1 - share / (1 - low)) if low else (above, below)


def error_slack(row: Row, masked: float, first: float | None) -> tuple[float, float]:
    """Return the same, given the class of the change in standard errors."""
    size = abs(row.value)
    if first is None or not size or not row.error > 0:
        return NOTHING
    gap = (masked - row.value) * (1 if row.value > 0 else -1) / size
    error = row.error / size
    found = class_of(gap / error, ERRORS, first)
    if found is None:
        return NOTHING
    low, high = found.low * error, found.end * error
    if not low:
        return high + gap, high - gap
    return (gap - low, high - gap) if gap > 0 else (high + gap, -gap - low)
