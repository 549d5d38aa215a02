"""Searches among candidates: the target records that facts leave for each query.

A target is a candidate of a query if both have the same block number and their intervals overlap in every
dimension. A fact that excludes nothing for a record is the interval from -inf to inf.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.kernels import trees
from sdckit.kernels.trees import PART, in_parts

if TYPE_CHECKING:
    from sdckit.arrays import Floats, Ints, UInt64s
    from sdckit.kernels.trees import Forest

PAIRS = 50_000_000  # of records, compared between two checks for Ctrl-C: a fraction of a second


class Side(NamedTuple):
    """What the facts say about the records of one file: block numbers, and ends of intervals."""

    blocks: Ints  # record
    low: Floats  # record x dimension, C order; there may be no dimension
    high: Floats


def take(side: Side, rows: Ints | slice) -> Side:
    """Return the facts about some rows."""
    return Side(side.blocks[rows], side.low[rows], side.high[rows])


def no_facts(n: int) -> Side:
    """Return facts about n records that exclude nothing."""
    return Side(np.zeros(n, np.int64), np.empty((n, 0)), np.empty((n, 0)))


def count_candidates(targets: Side, queries: Side) -> tuple[Ints, UInt64s]:
    """Return the number of each query's candidates, and a fingerprint, equal for equal sets of candidates.

    The fingerprint is the sum of a fixed pseudo-random number for each candidate's row.
    """
    return Records(targets).count(queries)


@dataclass(frozen=True)
class Records:
    """Target records of which the facts alone are compared, prepared once for many searches."""

    facts: Side

    @cached_property
    def forest(self) -> Forest:
        """The trees of the targets, block by block."""
        return trees.build_forest(np.empty((len(self.facts.blocks), 0)), *self.facts)

    @cached_property
    def marks(self) -> UInt64s:
        """A pseudo-random number for each target's row, summed up in the order of the forest."""
        return np.append(np.uint64(0), np.cumsum(_marks(self.forest.rows), dtype=np.uint64))

    def count(self, queries: Side) -> tuple[Ints, UInt64s]:
        """Return the number of each query's candidates, and the fingerprint of their set."""
        grown, marks = self.forest, self.marks
        spans = _groups_of_blocks(grown, queries.blocks)
        found, sums = np.empty(len(queries.blocks), np.int64), np.empty(len(queries.blocks), np.uint64)

        def work(begin: int, end: int) -> None:
            """Count for the queries begin..end-1."""
            part, scratch = slice(begin, end), trees.scratch_for(0)
            low, high = (np.ascontiguousarray(ends[part]) for ends in queries[1:])
            trees.count_fitting(grown, marks, (low, high, spans[part]), found[part], sums[part], scratch)

        in_parts(len(found), work)
        return found, sums


def _groups_of_blocks(grown: Forest, blocks: Ints) -> Ints:
    """Return the first group of each given block and the one after the last; the same if there is none."""
    ends = [np.searchsorted(grown.blocks, blocks, side) for side in ("left", "right")]
    return np.stack(ends, axis=1)


def _marks(rows: Ints) -> UInt64s:
    """Return a pseudo-random number for each row number, always the same (splitmix64)."""
    x = (rows.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def count_closer(
    targets: Floats,
    queries: Floats,
    truth: Ints,
    facts: tuple[Side, Side],
    tolerance: float,
    places: int = 1,
) -> Ints:
    """Return how many candidates are closer to each query than its true one (to `places`), and how many tie.

    `truth` gives the rows of the true targets; the true one is among those that tie. Squared distances over
    the cells that both records have, times all cells / shared cells, are compared; they are infinite where
    no cell is shared, and equal where they differ by less than the tolerance, relative to their size. The
    counts are `places` and 0 where so many are closer, or where the true target is no candidate. `facts`
    are those about the targets and those about the queries.
    """
    return Targets(targets, facts[0]).count_closer(queries, truth, facts[1], tolerance, places)


@dataclass(frozen=True)
class Targets:
    """Target records with at least one variable and the facts about them, prepared once for many searches."""

    points: Floats
    facts: Side

    @cached_property
    def forest(self) -> Forest:
        """The trees of the targets, block by block."""
        return trees.build_forest(self.points, *self.facts)

    @cached_property
    def queries_at_once(self) -> int:
        """Number of queries between two checks for Ctrl-C: fewer where records are compared one by one."""
        sizes = np.diff(self.forest.starts[self.forest.roots[:-1]]).ravel()
        most = int((sizes * self.forest.mixed).max())
        return max(min(PART, PAIRS // max(most, 1)), 1)

    def count_closer(
        self, queries: Floats, truth: Ints, facts: Side, tolerance: float, places: int = 1
    ) -> Ints:
        """Return how many candidates are closer to each query than its true one, and how many tie.

        As the function `count_closer` does; `facts` are those about the queries.
        """
        same = facts.blocks == self.facts.blocks[truth]
        found = np.zeros((2, len(queries)), np.int64)
        found[0] = places
        order, place = trees.order_by_place(self.forest.rows, truth)
        order = order if same.all() else order[same[order]]

        def work(begin: int, end: int) -> None:
            """Count for some of the queries, in the order of their true targets."""
            part = order[begin:end]
            true, asked = truth[part], Asked(queries.take(part, axis=0), take(facts, part))
            own = own_distances(asked, self.points.take(true, axis=0), take(self.facts, true))
            leaf = self.forest.leaf[place[true]]
            home = self.forest.tree[leaf]
            homes = np.column_stack([leaf, home, self.forest.family[home]])
            counts, scratch = np.empty((2, len(own)), np.int64), trees.scratch_for(self.points.shape[1])
            trees.count_closer_in_forest(
                self.forest, asked.arrays, own, homes, tolerance, places, counts, scratch
            )
            found[:, part] = counts

        in_parts(order.size, work, self.queries_at_once)
        return found


class Asked(NamedTuple):
    """Query records: their values, and the facts about them."""

    points: Floats
    facts: Side

    @property
    def arrays(self) -> tuple[Floats, Floats, Floats]:
        """Values and ends of intervals as kernels take them."""
        low, high = (np.ascontiguousarray(ends) for ends in self.facts[1:])
        return np.ascontiguousarray(self.points), low, high


def own_distances(asked: Asked, points: Floats, facts: Side) -> Floats:
    """Return the squared distance of each query to its true record, given its values and facts.

    Over shared cells, times all cells / shared cells; infinite without any, NaN where the facts exclude the
    true record.
    """
    found = np.empty(len(points))
    trees.own_distances(Asked(points, facts).arrays, asked.arrays, found)
    return np.where(facts.blocks == asked.facts.blocks, found, np.nan)


QUERIES = 2_000  # queries between two checks for Ctrl-C


def count_nearest(
    targets: Floats,
    queries: Floats,
    facts: tuple[Side, Side],
    property_of: tuple[tuple[Floats, Floats], tuple[Floats, Floats]],
    tolerance: float,
) -> Ints:
    """Return how many candidates are nearest to each query, and how many of these have a further property.

    Distances, candidates and ties are those of `candidates.count_closer`. A target has the property that a
    query asks for if their intervals overlap: `property_of` has the ends of the intervals (record x
    dimension) of targets and of queries. Both numbers are 0 where a query has no candidate.
    """
    (ours, theirs), ((low, high), (lower, upper)) = facts, property_of
    grown = trees.build_forest(targets, ours.blocks, np.hstack([ours.low, low]), np.hstack([ours.high, high]))
    spans = _groups_of_blocks(grown, theirs.blocks)
    anywhere = np.full(lower.shape, np.inf)
    wide = np.hstack([theirs.low, -anywhere]), np.hstack([theirs.high, anywhere])
    narrow = np.hstack([theirs.low, lower]), np.hstack([theirs.high, upper])
    found = np.zeros((2, len(queries)), np.int64)

    def work(begin: int, end: int) -> None:
        """Count for the queries begin..end-1."""
        part, scratch = slice(begin, end), trees.scratch_for(queries.shape[1])
        asked = np.ascontiguousarray(queries[part]), wide[0][part], wide[1][part]
        counts = np.zeros((2, len(asked[0])), np.int64)
        further = narrow[0][part], narrow[1][part]
        trees.count_nearest(grown, asked, further, spans[part], tolerance, counts, scratch)
        found[:, part] = counts

    in_parts(len(queries), work, QUERIES)
    return found
