"""Record linkage attacks of an intruder: nearest records inside the facts, plain guesses, windows of ranks.

An attack is prepared from a pair of files once and then asked, for any assignment of true records, how
often it finds them: for the real one, and for random ones to learn what chance alone would find. Targets
that are equally good guesses share the credit; `linkage_scores` shares it among equal queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from sdckit.kernels import candidates, kd_tree
from sdckit.risk import missing_cells
from sdckit.risk.credits import Credits, credits_of_counts

if TYPE_CHECKING:
    from sdckit.kernels.jit import Bools, Floats, Ints
    from sdckit.kernels.kd_tree import Tree
    from sdckit.risk.distances import TieBlocks
    from sdckit.risk.facts import Facts, Sides

TOLERANCE = 1e-9  # squared distances that differ by less, relatively, are equal: rounding must not break ties


class LinkageAttack(Protocol):
    """Interface of a linkage attack, prepared once from a pair of files."""

    def credits(self, truth: Ints, rows: Ints | None = None) -> Credits:
        """Return the success of each query, or of some rows of them, if `truth` were their true targets."""
        ...


@dataclass(frozen=True)
class NearestAttack:
    """Attack that links each query to its nearest candidate, or to the nearest few (Euclidean).

    `sides` are the facts about targets and queries; None where no fact excludes any pair. What is built for
    a search among the targets is kept while records are drawn in several steps, but not where all records
    are looked up at once: it is large.
    """

    targets: Floats
    queries: Floats
    sides: Sides | None = None
    places: int = 1
    known_tree: Tree | None = None
    known_targets: candidates.Targets | None = None

    @cached_property
    def complete(self) -> bool:
        """True where no cell is missing in targets or queries."""
        return not (np.isnan(self.targets).any() or np.isnan(self.queries).any())

    @cached_property
    def tree(self) -> Tree:
        """The k-d tree of the target records."""
        return kd_tree.build(self.targets) if self.known_tree is None else self.known_tree

    @cached_property
    def inside_facts(self) -> candidates.Targets:
        """The target records with the facts about them, kept for the next queries."""
        return self.make_targets() if self.known_targets is None else self.known_targets

    def make_targets(self) -> candidates.Targets:
        """Return the target records with the facts about them."""
        facts = candidates.no_facts(len(self.targets)) if self.sides is None else self.sides[0]
        return candidates.Targets(self.targets, facts)

    def credits(self, truth: Ints, rows: Ints | None = None) -> Credits:
        """Return each query's success: 1 if no candidate is nearer than the true one, shared among ties."""
        queries = self.queries if rows is None else self.queries.take(rows, axis=0)
        if self.sides is None and self.complete:
            counts = kd_tree.count_closer(self.tree, queries, truth, TOLERANCE, self.places)
        else:
            facts = candidates.no_facts(len(queries)) if self.sides is None else _some(self.sides[1], rows)
            targets = self.make_targets() if rows is None else self.inside_facts
            counts = targets.count_closer(queries, truth, facts, TOLERANCE, self.places)
        return credits_of_counts(counts[0], counts[1], self.places)


def _some(side: candidates.Side, rows: Ints | None) -> candidates.Side:
    """Return the facts about some rows, or about all if None."""
    return side if rows is None else candidates.take(side, rows)


@dataclass(frozen=True)
class PlainGuess:
    """Attack that picks any of the candidates of each query."""

    facts: Facts
    direction: str
    run: str

    def credits(self, truth: Ints, rows: Ints | None = None) -> Credits:
        """Return each query's success: 1 / number of candidates if the true record is one, else 0."""
        targets, queries = self.facts.sides(self.direction, self.run)
        inside = fits(candidates.take(targets, truth), _some(queries, rows)).astype(float)
        if rows is None:
            count = self.facts.candidates(self.direction, self.run)[0]
        else:
            count = self.facts.candidates_of(self.direction, self.run, rows)[0]
        count = np.maximum(count, 1)
        return Credits(inside / count, inside * (count == 1), inside)


def fits(ours: candidates.Side, theirs: candidates.Side) -> Bools:
    """Return True for each record whose facts in two files agree."""
    overlap = (ours.low <= theirs.high) & (theirs.low <= ours.high)
    return np.asarray((ours.blocks == theirs.blocks) & overlap.all(axis=1))


@dataclass(frozen=True)
class WindowAttack:
    """Attack that guesses among targets whose ranks differ from the query's by at most a published move."""

    targets: TieBlocks
    queries: TieBlocks
    width: int | Floats  # one for all variables, or one for each

    @cached_property
    def tree(self) -> Tree:
        """The k-d tree of the first ranks of the targets."""
        return kd_tree.build(self.targets.first)

    def candidates(self, low: Floats, high: Floats) -> Ints:
        """Return how many targets have ranks between those given, tie blocks that reach in included."""
        if self.targets.complete and self.queries.complete:
            return kd_tree.count_inside(self.tree, self.targets.block_starts(low), high)
        return missing_cells.count_overlaps(self.targets.first, self.targets.last, low, high)

    def credits(self, truth: Ints, rows: Ints | None = None) -> Credits:
        """Return each query's success: 1 / number of candidates if the true record is one, else 0."""
        some = slice(None) if rows is None else rows
        low, high = self.queries.first[some] - self.width, self.queries.last[some] + self.width
        inside = missing_cells.overlaps(self.targets.first[truth], self.targets.last[truth], low, high)
        count = np.maximum(self.candidates(low, high), 1)
        return Credits(inside / count, inside * (count == 1.0), inside.astype(float))
