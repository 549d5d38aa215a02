"""Totals of one variable that need its values in order; an exchange delivers them, metrics ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sdckit.kernels.ranks import RankSums  # noqa: TC001 - typing.get_type_hints looks for it


@dataclass(frozen=True)
class RankTotals:
    """Totals of a piece over its records with a value in both files.

    Parameters
    ----------
    n
        Number of records with a value in both files.
    sums
        Sums of rank distances by tie rule: "average", "expected", "min", "max"; also "first", "last".
    tie_sums
        Sum of L**3 - L over the tie blocks (of length L) of the original and of the masked column.
    unrelated_ranks
        Sum over the original mid-ranks of their mean distance from all masked mid-ranks: `mean_cross_gap` of
        the mid-ranks with weight 1. Needed with ties only.
    weighted
        Weighted brMAE and brMSE; None without weights.
    largest_gap
        Largest difference, over all values v, of the numbers of original and of masked values up to v.
    power
        Values counted in units of 2**power in the sums below, so that none leaves the range of numbers:
        `stream_power` of the column's largest absolute value, 0 for all but extreme columns.
    quantile_gaps
        Sum of |x(i) - y(i)|, both columns sorted, in units of 2**power.
    marginal, permutation
        Sums of both parts of the squared error, in units of 4**power.
    cross_gaps
        Sum over the original values of their mean distance from all masked values, in units of 2**power,
        each times its weight.
    relative_cross_gaps
        The same over the original values other than 0, each times its weight / |x|.
    order_statistics
        Original values by rank (from 0, in ascending order, among the records with a value in both files).

    A total that was not asked for, or that this engine cannot deliver, is None.
    """

    n: int
    sums: Mapping[str, RankSums] = field(default_factory=dict)
    tie_sums: tuple[int, int] | None = None
    unrelated_ranks: float | None = None
    weighted: tuple[float, float] | None = None
    largest_gap: int | None = None
    power: int = 0
    quantile_gaps: float | None = None
    marginal: float | None = None
    permutation: float | None = None
    cross_gaps: float | None = None
    relative_cross_gaps: float | None = None
    order_statistics: Mapping[int, float] = field(default_factory=dict)
