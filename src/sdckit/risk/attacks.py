"""How an intruder links records, each way an attack of its own.

An attack is prepared from a pair of files once and then asked, for any assignment of true records, how
often it finds them: for the real one, and for random ones to learn what chance alone would find. Records
that are equally good guesses share the credit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from sdckit import trees
from sdckit.ranks import OrderedColumn
from sdckit.risk import partial
from sdckit.scales import deviations, powers_of_two, spread

if TYPE_CHECKING:
    from collections.abc import Callable

    from sdckit.compiled import Bools, Floats, Ints
    from sdckit.pairs import Original, Pair
    from sdckit.trees import Tree

TOLERANCE = 1e-9  # squared distances that differ by less, relatively, are equal: rounding must not break ties
REGULAR = 1e-10  # share of the largest eigenvalue below which a direction has no variance
LARGEST_MATCHING = 2_000  # records; the work grows with their cube
DISTANCES = ("standardised", "gower", "raw")


class Credits(NamedTuple):
    """What each record adds to the intruder's success.

    `expected` shares the credit among equals; `strict` counts only guesses without an equal,
    `optimistic` all that may be right.
    """

    expected: Floats
    strict: Floats
    optimistic: Floats


class Attack(Protocol):
    """One way to link records."""

    def credits(self, truth: Ints) -> Credits:
        """The success if record i of those looked up were record truth[i] of those searched."""
        ...


@dataclass(frozen=True)
class Nearest:
    """Take the nearest record, or the nearest few; distances are Euclidean in some space."""

    targets: Floats
    queries: Floats
    places: int = 1
    known_tree: Tree | None = None

    @cached_property
    def complete(self) -> bool:
        """True where no cell is missing."""
        return not (np.isnan(self.targets).any() or np.isnan(self.queries).any())

    @cached_property
    def tree(self) -> Tree:
        """The records that are searched."""
        return trees.grow(self.targets) if self.known_tree is None else self.known_tree

    def credits(self, truth: Ints) -> Credits:
        """Full credit where nobody is closer, shared among those at the same distance."""
        if self.complete:
            found = trees.beaten(self.tree, self.queries, truth, TOLERANCE, self.places)
        else:
            found = partial.beaten(self.targets, self.queries, truth, TOLERANCE, self.places)
        closer, tied = found.T
        left = np.maximum(self.places - closer, 0)
        return Credits(
            np.minimum(1.0, left / np.maximum(tied, 1)) * (left > 0),
            ((left > 0) & (tied <= left)).astype(float),
            (left > 0).astype(float),
        )


@dataclass(frozen=True)
class Window:
    """Keep the records whose rank lies within the published window in every variable; guess among them."""

    targets: Blocks
    queries: Blocks
    width: int

    @cached_property
    def boxes(self) -> tuple[Floats, Floats]:
        """The first and the last position that a record's value may have had, per variable."""
        return self.queries.first - self.width, self.queries.last + self.width

    @cached_property
    def candidates(self) -> Ints:
        """How many records each box leaves."""
        low, high = self.boxes
        if self.targets.complete and self.queries.complete:
            return trees.count_inside(trees.grow(self.targets.first), self.targets.opening(low), high)
        return partial.count_overlaps(self.targets.first, self.targets.last, low, high)

    def credits(self, truth: Ints) -> Credits:
        """Credit where the truth is among those left, shared by all of them."""
        low, high = self.boxes
        inside = partial.overlaps(self.targets.first[truth], self.targets.last[truth], low, high)
        inside *= (~np.isnan(low) & ~np.isnan(self.targets.first[truth])).any(1)  # no guess without a value
        count = np.maximum(self.candidates, 1)
        return Credits(inside / count, inside * (count == 1.0), inside.astype(float))


@dataclass(frozen=True)
class Blocks:
    """The tie block of every cell within its variable, as positions from 0; NaN where a cell is missing."""

    first: Floats
    last: Floats
    columns: list[OrderedColumn]

    @cached_property
    def complete(self) -> bool:
        """True where no cell is missing."""
        return not np.isnan(self.first).any()

    @cached_property
    def middles(self) -> Floats:
        """Mid-ranks as shares of the records."""
        sizes = np.array([max(column.n, 1) for column in self.columns])
        return (self.first + self.last + 1) / (2.0 * sizes)

    def opening(self, positions: Floats) -> Floats:
        """Where the tie blocks of these positions begin; positions below 0 stay."""
        found = positions.copy()
        for j, column in enumerate(self.columns):
            inside = (positions[:, j] >= 0) & (positions[:, j] < column.n)
            found[inside, j] = column.first[positions[inside, j].astype(np.int64)]
        return found


def blocks(values: Floats, columns: list[OrderedColumn], missing: Bools) -> Blocks:
    """The tie blocks of a file whose observed cells are ordered."""
    first = np.full(values.shape, np.nan)
    last = first.copy()
    for j, column in enumerate(columns):
        seen = ~missing[:, j]
        first[seen, j] = column.first[column.rank]
        last[seen, j] = column.last[column.rank]
    return Blocks(first, last, columns)


@dataclass(frozen=True)
class Matching:
    """Link all records at once, one to one, with the smallest sum of distances."""

    targets: Floats
    queries: Floats
    distance: str = "standardised"

    @cached_property
    def costs(self) -> Floats:
        """The distance of every pair; beyond all others where a pair shares no cell."""
        if self.distance == "gower":
            both = np.vstack([self.targets, self.queries])
            width = np.fmax.reduce(both) - np.fmin.reduce(both)
            scale = np.where(width > 0, width, 1.0)
            found = sum(
                np.abs(y[:, None] - x[None, :])
                for x, y in zip((self.targets / scale).T, (self.queries / scale).T, strict=True)
            ) / len(scale)
        else:
            found = np.sqrt(partial.distances(self.targets, self.queries) * self.targets.shape[1])
        top = found[np.isfinite(found)].max(initial=0.0)
        return np.where(np.isfinite(found), found, 2 * top + 1)

    @cached_property
    def links(self) -> Ints:
        """The target of each query."""
        from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - slow to import, and rarely needed

        # What is subtracted from a whole row or column changes no assignment, and shortens the search.
        costs = self.costs - self.costs.min(axis=1, keepdims=True)
        return np.asarray(linear_sum_assignment(costs - costs.min(axis=0))[1])

    @cached_property
    def mean_distance(self) -> float:
        """The mean distance of linked records."""
        return float(self.costs[np.arange(len(self.links)), self.links].mean())

    @cached_property
    def twins(self) -> tuple[Ints, Ints]:
        """The class of equal records that each target and each query belongs to."""
        return _classes(self.targets), _classes(self.queries)

    def credits(self, truth: Ints) -> Credits:
        """Credit for the linked record; equal records can change places at no cost, so they share it."""
        ours, theirs = self.twins
        shape = (theirs.max() + 1, ours.max() + 1)
        links = np.ravel_multi_index((theirs, ours[self.links]), shape)
        pairs, counts = np.unique(links, return_counts=True)
        asked = np.ravel_multi_index((theirs, ours[truth]), shape)
        place = np.minimum(np.searchsorted(pairs, asked), pairs.size - 1)
        linked = np.where(pairs[place] == asked, counts[place], 0)
        ways = np.bincount(theirs)[theirs] * np.bincount(ours)[ours[truth]]
        return Credits(linked / ways, (linked == ways).astype(float), (linked > 0).astype(float))


def _classes(points: Floats) -> Ints:
    """A number for each distinct record."""
    plain = np.ascontiguousarray(np.where(np.isnan(points), np.nan, points + 0.0))  # one NaN, and no -0
    lines = plain.view(np.dtype((np.void, plain.itemsize * plain.shape[1]))).ravel()
    return np.unique(lines, return_inverse=True)[1].reshape(-1)


# --- the spaces in which records are compared ---------------------------------------------------------


def standardised(pair: Pair) -> tuple[Floats, Floats]:
    """Both files, in standard deviations of the original; a constant variable tells nobody apart."""

    def scales(original: Original) -> tuple[Floats, Floats, Floats]:
        unit = powers_of_two(original.values)
        unit[unit == 0] = 1.0
        values = original.values / unit
        sd = spread(values)
        centre = np.where(sd > 0, np.nanmean(np.where(sd > 0, values, 0.0), axis=0), 0.0)
        return unit, centre, np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > 0)

    unit, centre, factor = remembered(pair.original.found, "scales", lambda: scales(pair.original))
    ours = remembered(
        pair.original.found,
        "standardised",
        lambda: np.ascontiguousarray((pair.original.values / unit - centre) * factor),
    )
    theirs = remembered(
        pair.found, "standardised", lambda: np.ascontiguousarray((pair.masked / unit - centre) * factor)
    )
    return ours, theirs


def whitened(pair: Pair) -> tuple[Floats, Floats]:
    """Both files in the principal directions of the release, each of unit variance there.

    Directions without variance are left out: a total that is the sum of its parts tells nothing new.
    A missing cell stands at the release's mean.
    """

    def turn() -> tuple[Floats, Floats]:
        unit = powers_of_two(pair.masked)
        unit[unit == 0] = 1.0
        release = pair.masked / unit
        sd = spread(release)
        factor = np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > 0)
        scaled = deviations(release) * factor
        shift = np.where(sd > 0, np.nan_to_num(np.nanmean(release, axis=0)), 0.0) if len(release) else 0.0
        values, vectors = np.linalg.eigh(scaled.T @ scaled / max(len(scaled) - 1, 1))
        kept = values > REGULAR * max(values.max(initial=0.0), 0.0)
        axes = vectors[:, kept] / np.sqrt(values[kept])
        ours = np.nan_to_num((pair.original.values / unit - shift) * factor) @ axes
        return np.ascontiguousarray(ours), np.ascontiguousarray(scaled @ axes)

    return remembered(pair.found, "whitened", turn)


def ordered_blocks(pair: Pair) -> tuple[Blocks, Blocks]:
    """The tie blocks of both files, each ranked by itself."""

    def ours() -> Blocks:
        original = pair.original
        columns = [original.ordered(j) for j in range(pair.p)]
        return blocks(original.values, columns, original.missing)

    def theirs() -> Blocks:
        columns = [OrderedColumn(pair.masked[~pair.missing[:, j], j]) for j in range(pair.p)]
        return blocks(pair.masked, columns, pair.missing)

    return remembered(pair.original.found, "blocks", ours), remembered(pair.found, "blocks", theirs)


def remembered(store: dict[str, Any], name: str, compute: Callable[[], Any]) -> Any:
    """What is in the store, computed when first asked for; losses keep their own things there."""
    name = f"risk: {name}"
    if name not in store:
        store[name] = compute()
    return store[name]
