"""The posterior of an intruder: which original each published record stands for, if each stands for one only.

`likely_pairs` lists the pairs of a published row and an original that the facts allow and the law finds most
likely: the best 50 of each row and of each original. What is left out is not forgotten: a few pairs drawn at
random stand for it. `sinkhorn` and `bethe` turn the likelihoods into probabilities of a one-to-one matching.
Bethe's, belief propagation for the permanent, claim what is right; half of each finds most.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sdckit.arrays import Bools, Floats, Ints
from sdckit.kernels.jit import inner, kernel
from sdckit.risk.distances import ranks_within
from sdckit.risk.facts import fits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sdckit.kernels.candidates import Side

    Likelihood = Callable[[Ints, Ints], Floats]
    Listed = tuple[Ints, Ints, Floats, Floats]  # rows, originals, log-likelihoods, standing
    Spaces = Sequence[tuple[Floats, Floats]]  # points of published rows and of originals
    Lists = Callable[[Ints, Ints, int], Ints]  # rows, originals, count -> row x place in the originals

LISTED = 50  # pairs of each row and of each original
DRAWN = 30  # pairs of each row that stand for all others
DENSE = 40_000  # pairs of a block that are all listed: in small files, equal records stay exactly equal
WHOLE = 9_000_000  # pairs of a block that are all compared; in larger ones, those near each other
COMPARED = 400_000_000  # pairs that are compared by one estimate, where no space comes near the law
AT_ONCE = 2_000_000  # pairs that are compared at a time
SINKHORN, BETHE = 200, 150  # iterations at most
SETTLED = 1e-3  # change of a probability below which iterations end
EQUAL = 1e-6  # probabilities that differ by less, relatively, are equal
LARGEST = 1e140  # factor or message; where no matching exists, they would grow without end
SURE = 0.5 + 1e-6  # probability above which a link is sure


class Pairs(NamedTuple):
    """Pairs of a published row and an original, sorted by row.

    Each has a log-likelihood and the number of pairs that it stands for.
    """

    rows: Ints
    originals: Ints
    likelihood: Floats
    standing: Floats
    n: int


# --- lists of pairs --------------------------------------------------------------------------------------


class Search(NamedTuple):
    """How likely pairs are found: their log-likelihood, and where there are too many to compare all, spaces.

    `spaces` gives points whose distances come near the likelihood. `lists` compares all pairs by one estimate
    of the law; None where distances do. Up to `whole` pairs of a block are all compared.
    """

    likelihood: Likelihood
    spaces: Callable[[], Spaces]
    lists: Lists | None = None
    whole: int = WHOLE


def likely_pairs(search: Search, originals: Side, published: Side, some: Ints | None = None) -> Pairs:
    """Return the likeliest pairs inside the facts, and pairs drawn at random that stand for the others.

    Of all rows, and of all originals; or of `some` rows alone. The original with the number of a row is no
    better placed than others.
    """
    n, rng = len(originals.blocks), np.random.default_rng(3)
    rows = np.arange(n) if some is None else some
    lister = _Lister(search, originals, published, rng, both=some is None)
    parts = [*lister.small_blocks(rows), *(lister.large_block(*both) for both in lister.large_blocks(rows))]
    joined = [np.concatenate(values) for values in zip(*parts, strict=True)] if parts else [np.zeros(0)] * 4
    return sorted_pairs(joined, n)


@dataclass(frozen=True)
class _Lister:
    """Lists likely pairs inside the facts: rows, originals, log-likelihoods, and how many each stands for."""

    search: Search
    originals: Side
    published: Side
    rng: np.random.Generator
    both: bool  # of rows and of originals, or of rows alone

    @cached_property
    def sizes(self) -> Ints:
        """Number of originals in each block."""
        return np.bincount(self.originals.blocks, minlength=int(self.published.blocks.max(initial=0)) + 1)

    def large_blocks(self, rows: Ints) -> Iterator[tuple[Ints, Ints]]:
        """Yield rows and originals of each block with rows and more originals than are listed."""
        theirs, ours = self.published.blocks[rows], self.originals.blocks
        if len(self.sizes) == 1:
            yield rows, np.arange(len(ours))
            return
        by_row, by_original = np.argsort(theirs, kind="stable"), np.argsort(ours, kind="stable")
        for block in np.unique(theirs[self.sizes[theirs] > LISTED]):
            mine = np.searchsorted(theirs, [block, block + 1], sorter=by_row)
            others = np.searchsorted(ours, [block, block + 1], sorter=by_original)
            yield rows[by_row[slice(*mine)]], by_original[slice(*others)]

    def small_blocks(self, rows: Ints) -> Iterator[Listed]:
        """Yield all pairs of these rows in blocks that have no more originals than are listed."""
        theirs, ours, sizes = self.published.blocks, self.originals.blocks, self.sizes
        rows = rows[(sizes <= LISTED)[theirs[rows]]]
        each = sizes[theirs[rows]]
        u = np.repeat(rows, each)
        if len(sizes) > 1 and u.size:
            first = np.cumsum(sizes)[theirs[rows]] - np.cumsum(each)
            i = np.argsort(ours, kind="stable")[np.repeat(first, each) + np.arange(u.size)]
            u, i = self.inside(u, i)
            yield u, i, self.search.likelihood(u, i), np.ones(u.size)

    def inside(self, u: Ints, i: Ints) -> tuple[Ints, Ints]:
        """Return the pairs of rows and originals that the facts allow."""
        fit = fits(self.originals, self.published, i, u)
        return u[fit], i[fit]

    def large_block(self, rows: Ints, ours: Ints) -> Listed:
        """Return the best pairs of a large block, and those that stand for the rest."""
        ours = self.rng.permutation(ours)  # so that the order of the file breaks no tie
        if len(rows) * len(ours) <= self.search.whole:
            matrix = matrix_of(self.search.likelihood, rows, ours, self.originals, self.published)
            return _best_of_all(matrix, rows, ours, self.rng, both=self.both)
        u, i = self.inside(*_near_pairs(rows, ours, self.search, both=self.both))
        parts = (slice(k, k + AT_ONCE) for k in range(0, max(u.size, 1), AT_ONCE))
        values = np.concatenate([self.search.likelihood(u[part], i[part]) for part in parts])
        kept = ranks_within(-values, u, "ordinal") < LISTED
        kept |= (ranks_within(-values, i, "ordinal") < LISTED) & self.both
        u, i, values = u[kept], i[kept], values[kept]
        more_u, more_i, each = self.drawn(u, i, rows, ours)
        more = more_u, more_i, self.search.likelihood(more_u, more_i), each
        listed = (u, i, values, np.ones(u.size))
        return tuple(np.concatenate(one) for one in zip(listed, more, strict=True))  # type: ignore[return-value]

    def drawn(self, u: Ints, i: Ints, rows: Ints, ours: Ints) -> tuple[Ints, Ints, Floats]:
        """Return pairs of a block drawn at random, and how many of those not listed each stands for."""
        more_u = np.repeat(rows, DRAWN)
        more_i = ours[self.rng.integers(0, len(ours), more_u.size)]
        size = int(max(u.max(initial=0), i.max(initial=0), more_u.max(), more_i.max())) + 1
        new = ~np.isin(more_u * size + more_i, u * size + i)
        every = np.bincount(more_u[new], minlength=size)
        more_u, more_i = self.inside(more_u[new], more_i[new])
        fit = np.bincount(more_u, minlength=size)
        left = np.maximum(len(ours) - np.bincount(u, minlength=size), 0) * (fit / np.maximum(every, 1))
        return more_u, more_i, (left / np.maximum(fit, 1))[more_u]


def matrix_of(likelihood: Likelihood, rows: Ints, ours: Ints, originals: Side, published: Side) -> Floats:
    """Return the log-likelihood of every pair of some rows and originals; -inf outside the facts."""
    found = np.empty((len(rows), len(ours)))
    step = max(AT_ONCE // len(ours), 1)
    for begin in range(0, len(rows), step):
        some = rows[begin : begin + step]
        u, i = np.repeat(some, len(ours)), np.tile(ours, len(some))
        values = np.where(fits(originals, published, i, u), likelihood(u, i), -np.inf)
        found[begin : begin + step] = values.reshape(len(some), len(ours))
    return found


def _best_of_all(
    matrix: Floats, rows: Ints, ours: Ints, rng: np.random.Generator, *, both: bool = True
) -> Listed:
    """Return the best pairs by row and, if `both`, by original of a matrix; and pairs drawn for the rest."""
    a, b = matrix.shape
    if a * b <= DENSE:
        u, i = np.nonzero(np.isfinite(matrix))
        return rows[u], ours[i], matrix[u, i], np.ones(u.size)
    chosen = np.zeros((a, b), np.bool_)
    listed = min(LISTED, b)
    np.put_along_axis(chosen, np.argpartition(-matrix, listed - 1, axis=1)[:, :listed], True, 1)
    if both:
        score = matrix - _log_sums(matrix)[:, None]  # of an original, rows compete by their own probability
        listed = min(LISTED, a)
        np.put_along_axis(chosen, np.argpartition(-score, listed - 1, axis=0)[:listed], True, 0)
    possible = np.isfinite(matrix)
    chosen &= possible
    standing = chosen.astype(float)
    rest = possible & ~chosen
    left = rest.sum(axis=1)
    drawn = rest & (rng.random((a, b)) * np.maximum(left, 1)[:, None] < DRAWN)
    count = drawn.sum(axis=1)
    standing += drawn * (left / np.maximum(count, 1))[:, None]
    u, i = np.nonzero(standing)
    return rows[u], ours[i], matrix[u, i], standing[u, i]


def _log_sums(matrix: Floats) -> Floats:
    """Return the log of the sum of exponentials of each row; 0 where all are -inf."""
    top = matrix.max(axis=1)
    top = np.where(np.isfinite(top), top, 0.0)
    return np.asarray(top + np.log(np.maximum(np.exp(matrix - top[:, None]).sum(axis=1), 1e-300)))


def pairs_of_matrix(matrix: Floats) -> Pairs:
    """Return the likely pairs of a whole file from the likelihood of every pair, row x original."""
    n = len(matrix)
    rng = np.random.default_rng(3)
    order = rng.permutation(n)  # so that the order of the file breaks no tie
    found = _best_of_all(matrix[:, order], np.arange(n), order, rng)
    return sorted_pairs(found, n)


def sorted_pairs(found: Sequence[Any], n: int) -> Pairs:
    """Return pairs sorted by row and original."""
    order = np.lexsort((found[1], found[0]))
    rows, ours, values, standing = (values[order] for values in found)
    return Pairs(rows.astype(np.int64), ours.astype(np.int64), values, standing, n)


def _near_pairs(rows: Ints, ours: Ints, search: Search, *, both: bool) -> tuple[Ints, Ints]:
    """Return pairs that are near each other in one of the spaces, looked up from one file or from both."""
    from scipy.spatial import cKDTree  # noqa: PLC0415 - slow to import

    found, listed = [], min(LISTED, len(ours))
    for theirs, points in search.spaces():
        a, b = theirs[rows], points[ours]
        for queries, targets, forward in ((a, b, True), (b, a, False))[: 1 + both]:
            near = cKDTree(targets).query(queries, min(LISTED, len(targets)), workers=-1)[1]
            first = np.repeat(np.arange(len(queries)), near.shape[1])
            u, i = (first, near.ravel()) if forward else (near.ravel(), first)
            found.append(u * len(ours) + i)
    if search.lists is not None and len(rows) * len(ours) <= COMPARED:
        places = search.lists(rows, ours, listed)
        found.append((np.arange(len(rows))[:, None] * len(ours) + places).ravel())
    keys = np.unique(np.concatenate([np.zeros(0, np.int64), *found]))  # none where there is no space
    return rows[keys // len(ours)], ours[keys % len(ours)]


# --- probabilities ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Posterior:
    """Probabilities that a published row and an original are the same record, for a list of pairs.

    Every row has a pair. `plain` is the probability by itself, without one-to-one.
    """

    pairs: Pairs

    @cached_property
    def odds(self) -> Floats:
        """The likelihood of each pair relative to the best one of its row."""
        best = np.full(self.pairs.n, -np.inf)
        np.maximum.at(best, self.pairs.rows, self.pairs.likelihood)
        behind = np.maximum(self.pairs.likelihood - best[self.pairs.rows], -600.0)
        return np.asarray(np.maximum(np.exp(behind), 1e-250))

    @cached_property
    def plain(self) -> Floats:
        """Probability of each pair among those of its row."""
        total = np.bincount(self.pairs.rows, self.odds * self.pairs.standing, self.pairs.n)
        return self.odds / np.maximum(total, 1e-300)[self.pairs.rows]

    @cached_property
    def sinkhorn(self) -> Floats:
        """Probability by scaling rows and originals to one in turn."""
        p = self.pairs
        return _sinkhorn(p.rows, p.originals, self.odds * p.standing, p.n) / p.standing

    @cached_property
    def bethe(self) -> Floats:
        """Probability by belief propagation."""
        p = self.pairs
        found = _bethe(p.rows, p.originals, self.odds, p.standing, p.n)
        total = np.bincount(p.rows, found * p.standing, p.n)
        return found / np.maximum(total, 1e-300)[p.rows]

    @cached_property
    def both(self) -> Floats:
        """Half of Sinkhorn's and half of Bethe's probability."""
        return (self.sinkhorn + self.bethe) / 2

    def of_truth(self, probability: Floats) -> Floats:
        """Return the probability of the true original of each row, that of its number; 0 if not listed."""
        found = np.zeros(self.pairs.n)
        right = self.pairs.originals == self.pairs.rows
        found[self.pairs.rows[right]] = probability[right]
        return found

    def credit(self, probability: Floats, truth: Ints | None = None, *, forward: bool = True) -> Floats:
        """Return each record's success: 1 if its true pair has the largest probability, shared among equals.

        Records are published rows, or originals if not `forward`. The true original of a row is that of its
        number, or `truth` gives it.
        """
        queries, targets, standing = self.links(probability, forward=forward)
        ours, theirs = (queries, targets) if forward else (targets, queries)
        right = queries[theirs == (ours if truth is None else truth[ours])]
        found = np.zeros(self.pairs.n)
        found[right] = 1 / np.bincount(queries, standing, self.pairs.n)[right]
        return found

    def shares(self, probability: Floats, wanted: Callable[[Ints, Ints], Bools], *, forward: bool) -> Floats:
        """Return for each record the share of its most probable partners that have what is wanted.

        Records are as for `credit`; `wanted` says it of partners and records.
        """
        queries, targets, weight = self.links(probability, forward=forward)
        has = weight * wanted(targets, queries)
        total, right = (np.bincount(queries, part, self.pairs.n) for part in (weight, has))
        return np.asarray(right / np.maximum(total, 1e-300))

    def links(self, probability: Floats, *, forward: bool) -> tuple[Ints, Ints, Floats]:
        """Return queries, their most probable partners, all that are equal, and what each pair stands for."""
        pairs, standing = self.pairs[:2], self.pairs.standing
        queries, targets = pairs if forward else pairs[::-1]
        best = np.zeros(self.pairs.n)
        np.maximum.at(best, queries, probability)
        equal = (probability >= best[queries] * (1 - EQUAL)) & (probability > 0)
        return queries[equal], targets[equal], standing[equal]

    @cached_property
    def links_claimed(self) -> Ints:
        """Rows that have an original with a probability above one half, by Bethe."""
        return np.unique(self.pairs.rows[self.bethe > SURE])


@kernel
def _sinkhorn(rows: Ints, originals: Ints, mass: Floats, n: int) -> Floats:
    """Return the mass of each pair after scaling rows and originals to one."""
    a, b, total = np.ones(n), np.ones(n), np.zeros(n)
    for step in range(SINKHORN):
        total[:] = 0.0
        for e in range(len(rows)):
            total[rows[e]] += mass[e] * b[originals[e]]
        worst = 0.0
        for k in range(n):
            if total[k] > 0:
                worst = max(worst, abs(a[k] * total[k] - 1))
                a[k] = min(1 / total[k], LARGEST)
        if step > 0 and worst < SETTLED:
            break
        total[:] = 0.0
        for e in range(len(rows)):
            total[originals[e]] += mass[e] * a[rows[e]]
        for k in range(n):
            if total[k] > 0:
                b[k] = min(1 / total[k], LARGEST)
    return mass * a[rows] * b[originals]


@kernel
def _message(whole: float, own: float) -> float:
    """Return 1 / what others claim; within bounds, as messages run away where a record has one pair only."""
    return 1 / min(max(whole - own, 1e-14 * whole, 1e-290), 1e290)


@kernel
def _bethe(rows: Ints, originals: Ints, odds: Floats, standing: Floats, n: int) -> Floats:
    """Return the probability of each pair by belief propagation for a one-to-one matching."""
    size = len(rows)
    to_row, to_original = np.empty(size), np.empty(size)
    total, before, found = np.zeros(n), np.full(size, -1.0), np.empty(size)
    for e in range(size):
        total[originals[e]] += odds[e] * standing[e]
    for e in range(size):
        to_row[e] = _message(total[originals[e]], 0.0)
    for step in range(BETHE):
        _pass_on(rows, odds, standing, to_row, total, to_original)
        _pass_on(originals, odds, standing, to_original, total, to_row)
        if step % 10 == 9:
            worst = 0.0
            for e in range(size):
                ratio = min(odds[e] * to_row[e] * to_original[e], 1e12)
                found[e] = ratio / (1 + ratio)
                worst = max(worst, abs(found[e] - before[e]))
                before[e] = found[e]
            if worst < SETTLED:
                break
    return found


@inner
def _pass_on(ends: Ints, odds: Floats, standing: Floats, told: Floats, total: Floats, tell: Floats) -> None:
    """Write what each pair is told by the other pairs of its row, or of its original."""
    total[:] = 0.0
    for e in range(len(ends)):
        total[ends[e]] += odds[e] * told[e] * standing[e]
    for e in range(len(ends)):
        tell[e] = _message(total[ends[e]], odds[e] * told[e])
