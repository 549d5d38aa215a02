"""Record linkage attacks of an intruder: nearest records inside the facts, plain guesses, windows of ranks.

An attack is prepared from a pair of files once and then asked, for any assignment of true records, how
often it finds them: for the real one, and for random ones to learn what chance alone would find. Targets
that are equally good guesses share the credit; `linkage_scores` shares it among equal queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from sdckit.core.classes import class_numbers
from sdckit.kernels import candidates, kd_tree
from sdckit.metrics.risk import missing_cells

if TYPE_CHECKING:
    from sdckit.kernels.jit import Bools, Floats, Ints
    from sdckit.kernels.kd_tree import Tree
    from sdckit.metrics.risk.distances import TieBlocks
    from sdckit.metrics.risk.facts import Facts, Sides

TOLERANCE = 1e-9  # squared distances that differ by less, relatively, are equal: rounding must not break ties


class Credits(NamedTuple):
    """Success of each of the intruder's guesses, from 0 to 1, under three rules for equally good guesses.

    `expected` shares the credit among equals; `strict` counts only guesses without an equal,
    `optimistic` all that may be right.
    """

    expected: Floats
    strict: Floats
    optimistic: Floats


class LinkageAttack(Protocol):
    """Interface of a linkage attack, prepared once from a pair of files."""

    def credits(self, truth: Ints) -> Credits:
        """Return the success of each query i if its true record were target truth[i]."""
        ...


def credits_of_counts(closer: Ints, tied: Ints, places: int) -> Credits:
    """Return credits from the numbers of targets closer than the true one and equally close."""
    left = np.maximum(places - closer, 0)
    return Credits(
        np.minimum(1.0, left / np.maximum(tied, 1)) * (left > 0),
        ((left > 0) & (tied <= left)).astype(float),
        (left > 0).astype(float),
    )


@dataclass(frozen=True)
class NearestAttack:
    """Attack that links each query to its nearest candidate, or to the nearest few (Euclidean).

    `sides` are the facts about targets and queries; None where no fact excludes any pair.
    """

    targets: Floats
    queries: Floats
    sides: Sides | None = None
    places: int = 1
    known_tree: Tree | None = None

    @cached_property
    def complete(self) -> bool:
        """True where no cell is missing in targets or queries."""
        return not (np.isnan(self.targets).any() or np.isnan(self.queries).any())

    @cached_property
    def tree(self) -> Tree:
        """The k-d tree of the target records."""
        return kd_tree.build(self.targets) if self.known_tree is None else self.known_tree

    def credits(self, truth: Ints) -> Credits:
        """Return each query's success: 1 if no candidate is nearer than the true one, shared among ties."""
        if self.sides is None and self.complete:
            counts = kd_tree.count_closer(self.tree, self.queries, truth, TOLERANCE, self.places)
        else:
            sides = self.sides or (
                candidates.no_facts(len(self.targets)),
                candidates.no_facts(len(self.queries)),
            )
            counts = candidates.count_closer(self.targets, self.queries, truth, sides, TOLERANCE, self.places)
        return credits_of_counts(counts[0], counts[1], self.places)


@dataclass(frozen=True)
class SamePlacesAttack:
    """Attack that takes candidates with exactly the same places of missing cells first, then the nearest.

    `patterns` are classes of targets and of queries by their places of missing cells.
    """

    targets: Floats
    queries: Floats
    sides: Sides
    patterns: tuple[Ints, Ints]
    places: int = 1

    @cached_property
    def refined(self) -> Sides:
        """The facts, with the same places of missing cells as one more."""
        blocks = [
            np.concatenate([side.blocks for side in self.sides]),
            np.concatenate(self.patterns),
        ]
        n = len(self.targets)
        ours, theirs = np.split(class_numbers(blocks, 2 * n), 2)
        return self.sides[0]._replace(blocks=ours), self.sides[1]._replace(blocks=theirs)

    @cached_property
    def without(self) -> Ints:
        """Queries that have no candidate with the same places."""
        return np.flatnonzero(candidates.count_candidates(*self.refined)[0] == 0)

    def credits(self, truth: Ints) -> Credits:
        """Return each query's success among its preferred candidates, or among all if none is preferred."""
        counts = candidates.count_closer(
            self.targets, self.queries, truth, self.refined, TOLERANCE, self.places
        )
        rest = self.without
        if rest.size:
            asked = self.sides[0], candidates.take(self.sides[1], rest)
            counts[:, rest] = candidates.count_closer(
                self.targets, self.queries[rest], truth[rest], asked, TOLERANCE, self.places
            )
        return credits_of_counts(counts[0], counts[1], self.places)


@dataclass(frozen=True)
class PlainGuess:
    """Attack that picks any of the candidates of each query."""

    facts: Facts
    direction: str
    run: str

    def credits(self, truth: Ints) -> Credits:
        """Return each query's success: 1 / number of candidates if the true record is one, else 0."""
        targets, queries = self.facts.sides(self.direction, self.run)
        inside = fits(candidates.take(targets, truth), queries).astype(float)
        count = np.maximum(self.facts.candidates(self.direction, self.run)[0], 1)
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
    def boxes(self) -> tuple[Floats, Floats]:
        """Smallest and largest rank that each query's value may have had before masking, per variable."""
        return self.queries.first - self.width, self.queries.last + self.width

    @cached_property
    def candidates(self) -> Ints:
        """Number of targets whose ranks all differ from the query's by at most the published move."""
        low, high = self.boxes
        if self.targets.complete and self.queries.complete:
            return kd_tree.count_inside(
                kd_tree.build(self.targets.first), self.targets.block_starts(low), high
            )
        return missing_cells.count_overlaps(self.targets.first, self.targets.last, low, high)

    def credits(self, truth: Ints) -> Credits:
        """Return each query's success: 1 / number of candidates if the true record is one, else 0."""
        low, high = self.boxes
        inside = missing_cells.overlaps(self.targets.first[truth], self.targets.last[truth], low, high)
        count = np.maximum(self.candidates, 1)
        return Credits(inside / count, inside * (count == 1.0), inside.astype(float))
