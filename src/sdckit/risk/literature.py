"""Attacks of the literature: nearest records, plain guesses, windows of ranks, one-to-one matching.

An attack is prepared from a pair of files once and then asked, for any assignment of true records, how
often it finds them: for the real one, and for random ones to learn what chance alone would find. Targets
that are equally good guesses share the credit; `attacks` shares it among equal queries.

Matching links all records at once, with the smallest sum of distances. Pairs that the facts exclude are not
linked, and blocks of records that equal facts separate are matched one by one. Where several matchings are
best, a solver returns one of them, chosen by the order of the rows, which would credit the intruder with
knowledge that the files do not hold. So the credit is shared among all links that occur in some best one.
The work grows with the cube of the records in a block, so that it is for files of at most 2,000 records.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from sdckit.arrays import Bools, Floats, Ints
from sdckit.core import checks
from sdckit.kernels import candidates
from sdckit.kernels.jit import kernel
from sdckit.metrics.pair import Pair
from sdckit.risk.distances import (
    Credits,
    cached_value,
    credits_of_counts,
    standardised,
    tie_blocks_of_files,
    whitened,
)
from sdckit.risk.facts import TO_ORIGINAL, Facts, facts_of, fits, sides_of_relations, window_relation

if TYPE_CHECKING:
    from sdckit.risk.facts import Sides

TOLERANCE = 1e-9  # squared distances that differ by less, relatively, are equal: rounding must not break ties
LARGEST = 2_000  # records that are matched; the work grows with their cube
DISTANCES = ("standardised", "gower", "raw")
ROUNDING = 1e-12  # upper bound of the relative error of a distance
ROUNDS = 200  # iterations at most when credit is shared among links
Space = Callable[[Pair], tuple[Floats, Floats]]  # both files as points whose distances are compared


class LinkageAttack(Protocol):
    """Interface of a linkage attack, prepared once from a pair of files."""

    def credits(self, truth: Ints, rows: Ints | None = None) -> Credits:
        """Return the success of each query, or of some rows of them, if `truth` were their true targets."""
        ...


# --- nearest records -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NearestAttack:
    """Attack that links each query to its nearest candidate, or to the nearest few (Euclidean).

    `sides` are the facts about targets and queries; None where no fact excludes any pair. Targets
    without facts are kept in the store: the next masked file needs that of originals, too.
    """

    targets: Floats
    queries: Floats
    sides: Sides | None = None
    places: int = 1
    name: str = ""
    store: dict[str, Any] = field(default_factory=dict)

    def credits(self, truth: Ints, rows: Ints | None = None) -> Credits:
        """Return each query's success: 1 if no candidate is nearer than the true one, shared among ties."""
        queries = self.queries if rows is None else self.queries.take(rows, axis=0)
        ours, theirs = self.sides or map(candidates.no_facts, (len(self.targets), len(self.queries)))
        theirs = theirs if rows is None else candidates.take(theirs, rows)
        store = self.store if self.sides is None else {}
        targets = cached_value(store, f"targets {self.name}", lambda: candidates.Targets(self.targets, ours))
        counts = targets.count_closer(queries, truth, theirs, TOLERANCE, self.places)
        return credits_of_counts(counts[0], counts[1], self.places)


def nearest_attack(pair: Pair, space: Space, direction: str, places: int = 1) -> NearestAttack:
    """Return the attack by the nearest record in a space, inside the facts."""
    facts, (ours, theirs) = facts_of(pair), space(pair)
    sides = facts.sides(direction) if facts.tie_rows else None
    if direction != TO_ORIGINAL:
        return NearestAttack(theirs, ours, sides, places)
    of_original = space is not whitened and len(pair.known_variables) == pair.p
    store = pair.original.cache if of_original else {}
    return NearestAttack(ours, theirs, sides, places, f"{space.__name__} {pair.known_variables}", store)


# --- guesses ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlainGuess:
    """Attack that picks any of the candidates of each query."""

    facts: Facts
    direction: str

    def credits(self, truth: Ints, rows: Ints | None = None) -> Credits:
        """Return each query's success: 1 / number of candidates if the true record is one, else 0."""
        targets, queries = self.facts.sides(self.direction)
        queries = queries if rows is None else candidates.take(queries, rows)
        inside = fits(candidates.take(targets, truth), queries).astype(float)
        count = np.maximum(self.facts.candidates(self.direction, rows)[0], 1)
        return Credits(inside / count, inside * (count == 1), inside)


def window_attack(pair: Pair, direction: str, within: float) -> PlainGuess:
    """Return the guess among records whose every rank differs by at most the published move.

    The move is the share `within` of the records, or what the method publishes if that is 0.
    """
    width = checks.whole_share(within, pair.original.n) if within or pair.window is None else pair.window
    blocks = tie_blocks_of_files(pair)
    moves = np.broadcast_to(np.asarray(width, float), pair.p)
    relations = [window_relation(*blocks, j, move) for j, move in enumerate(moves)]
    return PlainGuess(Facts(*sides_of_relations(np.zeros(pair.original.n, np.int64), relations)), direction)


# --- one-to-one matching ---------------------------------------------------------------------------------


class Matched(NamedTuple):
    """Best links of queries and targets, one to one."""

    shares: Floats  # of each query (rows) in each target
    alone: Bools  # queries with one possible link only
    links: Ints  # target of each query in one best matching
    lengths: Floats  # of these links; infinite without a shared cell


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

    def distances(self, rows: Ints) -> Floats:
        """Return the distance of each two of some queries and targets; infinite without a shared variable."""
        there, here = (points[rows] for points in self.points)
        gower = self.distance == "gower"
        total, shared = np.zeros((2, len(rows), len(rows)))
        with np.errstate(over="ignore"):  # as far as without a shared variable
            for ours, theirs in zip(there.T, here.T, strict=True):
                gaps = np.abs(theirs[:, None] - ours)
                seen = ~np.isnan(gaps)
                total += np.where(seen, gaps if gower else gaps * gaps, 0.0)
                shared += seen
            means = np.where(shared > 0, total / np.maximum(shared, 1), np.inf)
            return means if gower else np.sqrt(means * there.shape[1])

    @cached_property
    def matched(self) -> Matched:
        """The best links, within each block of records that equal facts leave together."""
        n = len(self.queries)
        found = Matched(np.zeros((n, n)), np.zeros(n, np.bool_), np.zeros(n, np.int64), np.zeros(n))
        blocks = np.zeros(n, np.int64) if self.sides is None else self.sides[0].blocks
        order = np.argsort(blocks, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(blocks[order])) + 1):
            distances, inside = self.distances(rows), np.ones((len(rows), len(rows)), np.bool_)
            if self.sides is not None:
                ours, theirs = (candidates.take(side, rows) for side in self.sides)
                for a, b, c, d in zip(ours.low.T, ours.high.T, theirs.low.T, theirs.high.T, strict=True):
                    inside &= (a <= d[:, None]) & (c[:, None] <= b)
            equal = any((file[rows] == file[rows[0]]).all() for file in (self.queries, self.targets))
            if inside.all() and (equal or len(rows) == 1):  # as in microaggregation: all links are as good
                links, possible, shares = np.arange(len(rows)), inside, inside / len(rows)
            else:
                links, possible = _possible_links(distances, inside)
                shares = _shares_of(possible) * inside
            found.shares[np.ix_(rows, rows)] = shares
            found.alone[rows] = possible.sum(axis=1) == 1
            found.links[rows] = rows[links]
            found.lengths[rows] = distances[np.arange(len(rows)), links]
        return found

    @property
    def mean_distance(self) -> float:
        """Mean distance of linked records."""
        found = self.matched.lengths[np.isfinite(self.matched.lengths)]
        return float(found.mean()) if found.size else 0.0

    def credits(self, truth: Ints, rows: Ints | None = None) -> Credits:
        """Return each query's success in finding its true target, shared among equally good links."""
        queries = np.arange(len(truth)) if rows is None else rows
        expected = self.matched.shares[queries, truth]
        possible = (expected > 0).astype(float)
        return Credits(np.minimum(expected, 1.0), possible * self.matched.alone[queries], possible)


def matching_attack(pair: Pair, direction: str, distance: str) -> MatchingAttack:
    """Return the one-to-one matching inside the facts; raise NotApplicable for more than 2,000 records."""
    if pair.original.n > LARGEST:
        raise checks.NotApplicable(
            f"matching links at most {LARGEST} records and the data have {pair.original.n}; use dbrl"
        )
    facts, files = facts_of(pair), (pair.original.values, pair.masked)
    there, here = standardised(pair) if distance == "standardised" else files
    sides = facts.sides(direction) if facts.tie_rows else None
    there, here = (there, here) if direction == TO_ORIGINAL else (here, there)
    return MatchingAttack(there, here, distance, sides)


def _possible_links(distances: Floats, inside: Bools) -> tuple[Ints, Bools]:
    """Return each query's target in one best assignment, and which links occur in some best one.

    A link is in some optimal assignment if a cycle of exchanges through it costs nothing. With prices that
    make the cost of every exchange 0 or more, such cycles consist of free exchanges only, so they lie within
    the strong components of the graph of free exchanges.
    """
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - slow to import, and rarely needed
    from scipy.sparse import csr_array  # noqa: PLC0415
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

    finite, every = np.isfinite(distances), np.arange(len(distances))
    most = distances[inside & finite].max(initial=0.0)
    # Without a shared cell as far as the farthest pair; one excluded link outweighs all others.
    costs = np.where(inside, np.where(finite, distances, most), len(distances) * most + 1)
    excess = costs
    for axis in (1, 0):  # less row and column constants: the best assignments stay the same
        excess = excess - excess.min(axis=axis, keepdims=True)
        excess[excess <= ROUNDING * costs] = 0.0
    links = np.asarray(linear_sum_assignment(excess)[1])
    tolerance = TOLERANCE * float(excess[inside].max(initial=0.0))
    prices = np.zeros(len(links))
    for _ in links:
        if not _lower_prices(excess, links, prices, tolerance / (4 * len(links))):
            break
    free = excess - prices <= (excess[every, links] - prices[links] + tolerance)[:, None]
    free[every, links] = True
    rows, targets = np.nonzero(free)
    steps = csr_array((np.ones(len(rows), np.int8), (links[rows], targets)), shape=free.shape)
    part = connected_components(steps, directed=True, connection="strong")[1]  # by way of a query
    free[rows, targets] = part[links[rows]] == part[targets]
    return links, free


def _shares_of(possible: Bools) -> Floats:
    """Return the share of each possible link; those of a query, or of a target, add up to 1."""
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import, and rarely needed

    links = csr_array(possible.astype(float))
    turned = links.T.tocsr()
    ours = np.ones(len(possible))
    for _ in range(ROUNDS):
        theirs = 1 / (turned @ ours)
        sums = links @ theirs
        if np.abs(ours * sums - 1).max() < TOLERANCE:
            break
        ours = 1 / sums
    return ours[:, None] * theirs * possible


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
