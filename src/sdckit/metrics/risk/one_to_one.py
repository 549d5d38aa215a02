"""One-to-one linkage: link all records at once, with the smallest sum of distances.

Where several assignments have that sum, a solver returns one of them, chosen by the order of the rows, which
would credit the intruder with knowledge that the files do not hold. So the credit is shared among all links
that occur in some best assignment.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sdckit.kernels.jit import Floats, kernel
from sdckit.metrics.risk import missing_cells
from sdckit.metrics.risk.linkage_attacks import TOLERANCE, Credits

if TYPE_CHECKING:
    from sdckit.kernels.jit import Bools, Ints

LARGEST = 2_000  # records; the work grows with their cube
DISTANCES = ("standardised", "gower", "raw")
ROUNDING = 1e-12  # upper bound of the relative error of a distance
ROUNDS = 200  # iterations at most when credit is shared among links


@dataclass(frozen=True)
class MatchingAttack:
    """Attack that links all queries to targets at once, one to one, at the smallest sum of distances."""

    targets: Floats
    queries: Floats
    distance: str = "standardised"

    @cached_property
    def costs(self) -> Floats:
        """Distance of every query and target; larger than all others where they share no variable."""
        if self.distance == "gower":
            half, other = self.targets / 2, self.queries / 2  # the range itself may be too large a number
            both = np.vstack([half, other])
            width = np.fmax.reduce(both) - np.fmin.reduce(both)
            scale = np.where(width > 0, width, 1.0)
            found = missing_cells.distances(half / scale, other / scale, squared=False)
        else:
            squares = missing_cells.distances(self.targets, self.queries, squared=True)
            found = np.sqrt(squares * self.targets.shape[1])
        top = found[np.isfinite(found)].max(initial=0.0)
        return np.where(np.isfinite(found), found, 2 * top + 1)

    @cached_property
    def excess(self) -> Floats:
        """Distances less row and column constants, with the same optimal assignments."""
        found = self.costs
        for axis in (1, 0):
            found = found - found.min(axis=axis, keepdims=True)
            found[found <= ROUNDING * self.costs] = 0.0
        return found

    @cached_property
    def links(self) -> Ints:
        """Target of each query in one optimal assignment."""
        from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - slow to import, and rarely needed

        return np.asarray(linear_sum_assignment(self.excess)[1])

    @cached_property
    def mean_distance(self) -> float:
        """Mean distance of linked records."""
        return float(self.costs[np.arange(len(self.links)), self.links].mean())

    @cached_property
    def possible(self) -> Bools:
        """Query x target matrix, True for links that occur in some optimal assignment.

        A link is in some optimal assignment if a cycle of exchanges through it costs nothing. With prices
        that make the cost of every exchange 0 or more, such cycles consist of free exchanges only, so they
        lie within the strong components of the graph of free exchanges.
        """
        from scipy.sparse import csr_array  # noqa: PLC0415 - as above
        from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

        excess, links = self.excess, self.links
        tolerance = TOLERANCE * float(excess.max())
        prices = np.zeros(len(links))
        for _ in links:
            if not _lower_prices(excess, links, prices, tolerance / (4 * len(links))):
                break
        own = excess[np.arange(len(links)), links]
        free = excess - prices <= (own - prices[links] + tolerance)[:, None]
        free[np.arange(len(links)), links] = True
        steps = free[np.argsort(links)]  # from a target, by way of its query, to a target
        part = connected_components(csr_array(steps), directed=True, connection="strong")[1]
        return np.asarray(free & (part[links][:, None] == part))

    @cached_property
    def shares(self) -> tuple[Floats, Floats]:
        """Factors of queries and targets whose products over possible links sum to 1 per row and column."""
        from scipy.sparse import csr_array  # noqa: PLC0415 - as above

        possible = csr_array(self.possible.astype(float))
        turned = possible.T.tocsr()
        ours, theirs = np.ones(len(self.links)), np.ones(len(self.links))
        for _ in range(ROUNDS):
            theirs = 1 / (turned @ ours)
            sums = possible @ theirs
            if np.abs(ours * sums - 1).max() < TOLERANCE:
                break
            ours = 1 / sums
        return ours, theirs

    def credits(self, truth: Ints) -> Credits:
        """Return each query's success in finding its true target, shared among equally good links."""
        possible = self.possible[np.arange(len(truth)), truth].astype(float)
        ours, theirs = self.shares
        alone = self.possible.sum(axis=1) == 1
        return Credits(np.minimum(possible * ours * theirs[truth], 1.0), possible * alone, possible)


@kernel
def _lower_prices(excess: Floats, links: Ints, prices: Floats, least: float) -> bool:
    """Lower each target's price to the best offer of a query leaving its link; return True if any fell."""
    fell = False
    for i in range(len(links)):
        base = prices[links[i]] - excess[i, links[i]]
        for k in range(len(links)):
            if base + excess[i, k] < prices[k] - least:
                prices[k] = base + excess[i, k]
                fell = True
    return fell
