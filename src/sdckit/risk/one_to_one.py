"""One-to-one linkage: link all records at once, with the smallest sum of distances.

Pairs that the facts exclude are not linked: of all matchings inside the facts, the largest count, and of
these the cheapest. Blocks of records that equal facts separate are matched one by one. Where several
matchings are best, a solver returns one of them, chosen by the order of the rows, which would credit the
intruder with knowledge that the files do not hold. So the credit is shared among all links that occur in some
best one.

The work grows with the cube of the records in a block, so `linkage` tries this attack for files of at most
2,000 records, in one direction only (the other gives the same links). Blocks in which all queries or all
targets are equal, such as the groups of microaggregation, need no matching: every link is equally good.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.kernels.jit import Floats, kernel
from sdckit.risk import missing_cells
from sdckit.risk.credits import Credits
from sdckit.risk.linkage_attacks import TOLERANCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sdckit.kernels.candidates import Side
    from sdckit.kernels.jit import Bools, Ints
    from sdckit.risk.facts import Sides

LARGEST = 2_000  # records; the work grows with their cube
DISTANCES = ("standardised", "gower", "raw")
ROUNDING = 1e-12  # upper bound of the relative error of a distance
ROUNDS = 200  # iterations at most when credit is shared among links


class Matched(NamedTuple):
    """Links of one block: rows of its queries and targets, and shares of queries (rows) in targets."""

    queries: Ints
    targets: Ints
    shares: Floats
    alone: Bools  # queries with one possible link only
    links: Ints  # row of each query's target in one best matching, -1 without any


@dataclass(frozen=True)
class MatchingAttack:
    """Attack that links all queries to targets at once, one to one, at the smallest sum of distances.

    `sides` are the facts about targets and queries; None where no fact excludes any pair.
    """

    targets: Floats
    queries: Floats
    distance: str = "standardised"
    sides: Sides | None = None

    @cached_property
    def points(self) -> tuple[Floats, Floats]:
        """Targets and queries in the units of their distance."""
        if self.distance != "gower":
            return self.targets, self.queries
        half, other = self.targets / 2, self.queries / 2  # the range itself may be too large a number
        both = np.vstack([half, other])
        width = np.fmax.reduce(both) - np.fmin.reduce(both)
        scale = np.where(width > 0, width, 1.0)
        return half / scale, other / scale

    def distances(self, queries: Ints, targets: Ints) -> Floats:
        """Return the distance of each of some queries and targets; infinite where they share no variable."""
        there, here = self.points[0][targets], self.points[1][queries]
        if self.distance == "gower":
            return missing_cells.distances(there, here, squared=False)
        return np.sqrt(missing_cells.distances(there, here, squared=True) * there.shape[1])

    @cached_property
    def blocks(self) -> list[Matched]:
        """The links within each block of records that equal facts leave together."""
        if self.sides is None:
            rows = np.arange(len(self.queries))
            return [self.matched(rows, rows, None)]
        return [
            self.matched(queries, targets, _allowed(self.sides, queries, targets))
            for queries, targets in _rows_by_block(self.sides)
        ]

    def matched(self, queries: Ints, targets: Ints, allowed: Bools | None) -> Matched:
        """Return the links between some queries and targets, the allowed ones only."""
        if len(queries) == len(targets) and (allowed is None or allowed.all()):
            if len(queries) == 1 or _all_equal(self.queries[queries]) or _all_equal(self.targets[targets]):
                size = len(queries)
                alone = np.full(size, size == 1)
                return Matched(queries, targets, np.full((size, size), 1 / size), alone, targets)
            allowed = None
        found = _Assignment(self.distances(queries, targets), allowed)
        links = np.where(found.linked, targets[np.minimum(found.links, len(targets) - 1)[: len(queries)]], -1)
        return Matched(queries, targets, found.shares, found.alone, links)

    @cached_property
    def mean_distance(self) -> float:
        """Mean distance of linked records."""
        linked = self.links >= 0
        gaps = np.abs(self.points[1][linked] - self.points[0][self.links[linked]])
        shared = (~np.isnan(gaps)).sum(axis=1)
        gaps = np.where(np.isnan(gaps), 0.0, gaps)[shared > 0]
        shared = shared[shared > 0]
        if self.distance == "gower":
            found = gaps.sum(axis=1) / shared
        else:
            found = np.sqrt((gaps**2).sum(axis=1) * (gaps.shape[1] / shared))
        return float(found.mean()) if found.size else 0.0

    @cached_property
    def links(self) -> Ints:
        """Target of each query in one best matching; -1 for a query without any."""
        found = np.full(len(self.queries), -1)
        for block in self.blocks:
            found[block.queries] = block.links
        return found

    def credits(self, truth: Ints, rows: Ints | None = None) -> Credits:
        """Return each query's success in finding its true target, shared among equally good links."""
        if rows is not None:
            every = np.zeros(len(self.queries), np.int64)
            every[rows] = truth
            return Credits(*(values[rows] for values in self.credits(every)))
        place = np.full(len(self.targets), -1)
        expected, strict = np.zeros(len(truth)), np.zeros(len(truth))
        for block in self.blocks:
            place[block.targets] = np.arange(len(block.targets))
            own = place[truth[block.queries]]
            inside = own >= 0
            expected[block.queries[inside]] = block.shares[np.flatnonzero(inside), own[inside]]
            strict[block.queries] = block.alone
            place[block.targets] = -1
        possible = (expected > 0).astype(float)
        return Credits(np.minimum(expected, 1.0), possible * strict, possible)


def _all_equal(points: Floats) -> bool:
    """Return True if all records are equal and complete."""
    return bool((points == points[0]).all())


def _rows_by_block(sides: Sides) -> Iterator[tuple[Ints, Ints]]:
    """Yield the rows of queries and targets of each block that has both."""
    targets: dict[int, Ints] = {}
    queries: dict[int, Ints] = {}
    for rows, side in ((targets, sides[0]), (queries, sides[1])):
        order = np.argsort(side.blocks, kind="stable")
        cuts = np.flatnonzero(np.diff(side.blocks[order])) + 1
        rows |= {int(side.blocks[part[0]]): part for part in np.split(order, cuts)}
    for number in queries.keys() & targets.keys():
        yield queries[number], targets[number]


def _allowed(sides: Sides, queries: Ints, targets: Ints) -> Bools | None:
    """Return a query x target matrix, True where intervals overlap; None without intervals."""
    there, here = sides
    if not there.low.shape[1]:
        return None
    found = np.ones((len(queries), len(targets)), np.bool_)
    for d in range(there.low.shape[1]):
        found &= _overlap(here, queries, there, targets, d)
    return found


def _overlap(here: Side, queries: Ints, there: Side, targets: Ints, d: int) -> Bools:
    """Return a query x target matrix, True where the intervals of dimension d overlap."""
    left = here.low[queries, d][:, None] <= there.high[targets, d]
    return np.asarray(left & (there.low[targets, d] <= here.high[queries, d][:, None]))


class _Assignment:
    """Best links between queries and targets, given all distances and which links are allowed."""

    def __init__(self, distances: Floats, allowed: Bools | None) -> None:
        self.shape = distances.shape
        size = max(self.shape)
        inside = np.ones(self.shape, np.bool_) if allowed is None else allowed
        self.inside, self.costs = inside, distances
        if allowed is None and self.shape[0] == self.shape[1] and np.isfinite(distances.sum()):
            return
        most = distances[inside & np.isfinite(distances)].max(initial=0.0)
        far = np.where(np.isfinite(distances), distances, most)  # no shared cell: as the farthest pair
        self.costs = np.full((size, size), size * most + 1)  # one excluded link outweighs all others
        self.costs[: self.shape[0], : self.shape[1]] = np.where(inside, far, size * most + 1)
        self.inside = np.zeros((size, size), np.bool_)
        self.inside[: self.shape[0], : self.shape[1]] = inside

    @cached_property
    def excess(self) -> Floats:
        """Distances less row and column constants, with the same optimal assignments."""
        found = self.costs - self.costs.min(axis=1, keepdims=True)
        found[found <= ROUNDING * self.costs] = 0.0
        _reduce_columns(found, self.costs, found.min(axis=0))
        return found

    @cached_property
    def links(self) -> Ints:
        """Target of each query in one optimal assignment."""
        from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - slow to import, and rarely needed

        return np.asarray(linear_sum_assignment(self.excess)[1])

    @property
    def linked(self) -> Bools:
        """True for each query that one optimal assignment links inside the facts."""
        return np.asarray(self.inside[np.arange(len(self.links)), self.links])[: self.shape[0]]

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
        tolerance = TOLERANCE * float(excess[self.inside].max(initial=0.0))
        prices = np.zeros(len(links))
        for _ in links:
            if not _lower_prices(excess, links, prices, tolerance / (4 * len(links))):
                break
        own = excess[np.arange(len(links)), links]
        free = excess - prices <= (own - prices[links] + tolerance)[:, None]
        free[np.arange(len(links)), links] = True
        rows, targets = np.nonzero(free)
        steps = csr_array((np.ones(len(rows), np.int8), (links[rows], targets)), shape=free.shape)
        part = connected_components(steps, directed=True, connection="strong")[1]  # by way of a query
        free[rows, targets] = part[links[rows]] == part[targets]
        return free

    @property
    def alone(self) -> Bools:
        """True for each query with one possible link only."""
        return np.asarray(self.possible.sum(axis=1) == 1)[: self.shape[0]]

    @cached_property
    def shares(self) -> Floats:
        """Share of each link inside the facts; those of a query, or of a target, add up to at most 1."""
        ours, theirs = _balanced(self.possible)
        found = ours[:, None] * theirs * (self.possible & self.inside)
        return np.asarray(found[: self.shape[0], : self.shape[1]])


def _balanced(possible: Bools) -> tuple[Floats, Floats]:
    """Return factors of queries and targets whose products over possible links sum to 1 per record."""
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import, and rarely needed

    links = csr_array(possible.astype(float))
    turned = links.T.tocsr()
    ours, theirs = np.ones(len(possible)), np.ones(len(possible))
    for _ in range(ROUNDS):
        theirs = 1 / (turned @ ours)
        sums = links @ theirs
        if np.abs(ours * sums - 1).max() < TOLERANCE:
            break
        ours = 1 / sums
    return ours, theirs


@kernel
def _reduce_columns(excess: Floats, costs: Floats, least: Floats) -> None:
    """Subtract the least of each column in place; what rounding leaves of 0 becomes 0."""
    for i in range(len(excess)):
        for k in range(len(excess)):
            left = excess[i, k] - least[k]
            excess[i, k] = left if left > ROUNDING * costs[i, k] else 0.0


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
