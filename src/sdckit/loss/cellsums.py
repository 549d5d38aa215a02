"""What cells cost, and the sums of these costs over a pair: one pass serves MAE, MSE, IL1 and IL1s."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sdckit.compiled import Floats, Ints, inlined, kernel
from sdckit.ties import mean_cross_gap

if TYPE_CHECKING:
    from collections.abc import Callable

    from sdckit.pairs import Original, Pair

# The two costs of a cell: for arrays as they stand, compiled for the kernel that adds them up.


def absolute(x: Any, y: Any, scale: Any) -> Any:
    """|x - y| in units of `scale`."""
    return abs(x - y) / scale


def squared(x: Any, y: Any, scale: Any) -> Any:
    """(x - y)**2 in units of `scale`."""
    return (x - y) * (x - y) / scale


_absolute, _squared = inlined(absolute), inlined(squared)


@dataclass(frozen=True)
class Cost:
    """What one cell costs, divided by nothing, its own size or sqrt(2) standard deviations of its variable.

    `place` is the column of `_cell_sums` that adds it up.
    """

    of: Callable[[Any, Any, Any], Any]
    scale: Literal["none", "value", "spread"]
    place: int

    def shuffled(self, x: Floats, y: Floats, shares: Floats) -> float:
        """Sum over rows of their share times the mean cost over all masked values."""
        if self.of is squared:
            return float(np.sum(shares * ((x - y.mean()) ** 2 + y.var())))
        order = np.argsort(x, kind="stable")
        return float(mean_cross_gap(x[order], shares[order], np.sort(y)))


MAE, MSE = Cost(absolute, "none", 0), Cost(squared, "none", 1)
IL1, IL1S = Cost(absolute, "value", 2), Cost(absolute, "spread", 3)
ALL, NOT_ZERO, ZERO = 4, 5, 6  # columns of the sums that hold weights: of all cells, of x != 0, of x = y = 0
SEEN, KEPT, CHANGED = range(3)  # columns of the counts: cells in both files, x = y = 0, x = 0 but y not


@kernel
def _cell_sums(x: Floats, y: Floats, weights: Floats, scales: Floats) -> tuple[Floats, Ints]:
    """Costs, weights and counts of the cells that both files observe; one line per variable.

    An empty `weights` stands for ones. Blocks are added up apart, so that the rounding errors of a long
    column do not pile up.
    """
    sums, counts = np.zeros((len(x), 7)), np.zeros((len(x), 3), np.int64)
    for j in range(len(x)):
        scale = scales[j]
        for begin in range(0, x.shape[1], 256):
            plain = square = relative = scaled = every = not_zero = zero = 0.0
            seen = kept = changed = 0
            for i in range(begin, min(begin + 256, x.shape[1])):
                a, b = x[j, i], y[j, i]
                if np.isnan(a) or np.isnan(b):
                    continue
                w = weights[i] if weights.size else 1.0
                seen += 1
                every += w
                plain += w * _absolute(a, b, 1.0)
                square += w * _squared(a, b, 1.0)
                scaled += w * _absolute(a, b, scale)
                if a != 0:
                    not_zero += w
                    relative += w * _absolute(a, b, abs(a))
                elif b == 0:
                    zero += w
                    kept += 1
                else:
                    changed += 1
            sums[j] += np.array([plain, square, relative, scaled, every, not_zero, zero])
            counts[j] += np.array([seen, kept, changed])
    return sums, counts


def sums_of(pair: Pair) -> tuple[Floats, Ints]:
    """The sums behind all four metrics, in one pass through the data."""
    if "cells" not in pair.found:
        weights = pair.original.weights
        pair.found["cells"] = _cell_sums(
            pair.original.turned,
            pair.turned,
            np.empty(0) if weights is None else weights,
            scales_of(pair.original),
        )
    sums: tuple[Floats, Ints] = pair.found["cells"]
    return sums


def scales_of(original: Original) -> Floats:
    """sqrt(2) standard deviations of each variable; 1 where there is no spread."""
    if "scales" not in original.found:
        spreads = original.spreads
        original.found["scales"] = np.where(spreads > 0, math.sqrt(2) * spreads, 1.0)
    scales: Floats = original.found["scales"]
    return scales
