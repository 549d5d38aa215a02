"""The law of a masking: how likely a published record is, for each original that it may stand for.

The intruder knows how a file was masked. He masks the original many times with draws of his own (`shadows`),
sees how published records lie around their originals, and reads the release by that. A law is the weighted
sum of a few estimates of log p(published record | original record):

plain   published = linear function of the original + normal noise with one covariance
local   mean and scale of each cell; the scale is a smooth function of value and rank, and of the record
rank    how far ranks move, by the rank of the original, by the better of two histograms
stated  the method's own formula, where it declares one (`Method.law`)

The law of a masking of the user's own may have any form. Its shadows are also read by how far values move and
by which factor they change, in all records (`Changes`), and by where the shadows of each single record lie:
all cells together or each alone (`OwnShadows`), and with a covariance of its own (`OwnNormal`).

Cells that are missing or stand at a value of many records (zeros, coded tails) follow a table of transitions,
which all of them share. The weights maximise the probability of the true original on shadows that the
estimates have not seen. `law_of_shadows` and `laws_of_folds` make laws; the latter from the release itself:
each fold of records is read by what the others show, so that a secret which all rows share, such as a
rotation, is found, and so is a method that was not named, or named wrongly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from sdckit.arrays import Bools, Floats, Int, Ints
from sdckit.core.cells import number_values
from sdckit.kernels.jit import inner, kernel
from sdckit.risk.distances import mid_ranks_of, places_among, ranks_within, row_marks
from sdckit.risk.posterior import Search

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sdckit.core.registry import Stated

HEAP = 0.01  # a value that this share of a column's published cells has is a state of its own
HEAPS = 12  # at most so many of a column
ORDERED = 8  # parts of the records with one frequent value, by the order of the rows
RANK_BINS, MOVE_BINS = 24, 81  # of the histogram of moves in ranks, where there are enough shadows
SMOOTH = 8  # passes over the bins of a smooth histogram; a sharp one shows cells that stay
PER_BIN = 1_000  # moves that a bin of original ranks needs
QUERIES, ALTERNATIVES = 500, 600  # records of unseen shadows, and originals, that weights are learnt from
MOST, RIDGE = 3.0, 1e-3  # largest weight, and what its square costs
NEWTON, LEAST_GAIN = 30, 1e-8  # steps at most, and the fall of the loss that is worth another one
NOTHING = 40.0  # distance from the best log-likelihood beyond which an original counts as impossible
SURVIVES, MEAN_SURVIVES = 0.3, 0.15  # shrinkage below which an effect of a record counts as none
FOLDS = 5
LARGE = 20_000  # records; a larger file is read by one law for all records, without effects of single ones
UNEQUAL = 0.5  # standard deviation of log scales above which values are also compared by their sizes
FLAT = -60.0  # a log-likelihood so far below the best one tells nothing about the weights
FARTHER = 100.0  # sum of squares beyond which a normal density falls no faster than a power
NOWHERE = 100.0  # usual distance at which a missing cell of a shadow stands: near no published cell
ROOTS = 20_000_000  # numbers in the roots for all places of missing cells, at most
SMALLEST = 1e-12  # variance, of residuals in standard deviations, that is never undercut
EXACT, PER_CELL = 1e-9, 20  # variance without noise, as a share of the largest; residuals for each product
STILL = 1e-9  # standard deviation of a cell that never moves, as a share of its column's largest
LARGEST_STEP = 100.0  # of a log variance above the smallest one
FAR = -4.0  # further fall of the rank estimate outside of all moves seen


# --- estimates -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Normal:
    """Published cells are normal around a mean for each original cell, with pooled correlations."""

    mean: Floats
    sd: Floats
    root: Floats  # variable x direction: its product with itself is the precision of standardised residuals
    transform: Callable[[Floats], Floats] | None = None
    kept: dict[bytes, Floats] = field(default_factory=dict, repr=False)  # roots by which cells are free

    def read(self, published: Floats) -> Floats:
        """Return the published cells, transformed as the method's own law asks for; 0 where missing."""
        cells = published if self.transform is None else self.transform(published)
        return np.nan_to_num(np.ascontiguousarray(cells))

    def add(self, read: Floats, free: Bools, rows: Ints, originals: Ints, found: Floats) -> None:
        """Add -1/2 z'Jz - sum of log sd over the free cells of each pair.

        Where variables determine others, there are fewer directions than variables, and each variable's
        log sd counts by its share in them: a total has no spread of its own.
        """
        inverse = np.where(self.sd > 0, 1 / np.where(self.sd > 0, self.sd, 1.0), 0.0)
        logs = np.log(np.where(self.sd > 0, self.sd, 1.0))
        kinds, p = number_values(row_marks(free.astype(np.int64))), len(self.root)
        kept = free[np.unique(kinds, return_index=True)[1]]
        if len(kept) * p**2 <= ROOTS:
            roots = np.stack([self._root_of(one) for one in kept])
        else:  # cells that are not free count as if they were where expected, and no direction as exact
            kinds, roots = np.zeros_like(kinds), inverse_root(self.covariance, 1e-6)[None]
        squares = roots**2
        shares = (squares / np.maximum(squares.sum(axis=1, keepdims=True), 1e-300)).sum(axis=2)
        parts = self.mean, inverse, logs, roots, shares, kinds
        _add_normal(parts, read, free, rows, originals, found)

    def _root_of(self, free: Bools) -> Floats:
        """Return the root for records with these free cells, of which the others are not known to be 0."""
        key = free.tobytes()
        if key not in self.kept:
            root = self.root
            if not free.all():
                part = inverse_root(self.covariance[np.ix_(free, free)])
                root = np.zeros((len(free), part.shape[1]))
                root[free] = part
            self.kept[key] = np.pad(root, ((0, 0), (0, len(free) - root.shape[1])))
        return self.kept[key]

    @cached_property
    def covariance(self) -> Floats:
        """The covariance of standardised residuals."""
        return np.asarray(np.linalg.pinv(self.root @ self.root.T, hermitian=True), float)


@kernel
def _add_normal(parts: Any, read: Floats, free: Bools, rows: Ints, originals: Ints, found: Floats) -> None:
    """Add the normal log-density of each pair, over the cells that are free in the published record."""
    mean, inverse, logs, roots, shares, kinds = parts
    p, directions = roots.shape[1:]
    z = np.empty(p)
    for e in range(len(rows)):
        u, i = rows[e], originals[e]
        root, share = roots[kinds[u]], shares[kinds[u]]
        total = 0.0
        for j in range(p):
            z[j] = 0.0
            if free[u, j]:
                z[j] = (read[u, j] - mean[i, j]) * inverse[i, j]
                total -= logs[i, j] * share[j]
        squares = 0.0
        for k in range(directions):
            length = 0.0
            for j in range(p):
                length += z[j] * root[j, k]
            squares += length * length
        if squares > FARTHER:  # heavier tails: one cell that seldom moves must not exclude the true record
            squares = FARTHER * (1 + 0.2 * math.log(min(squares, 1e200) / FARTHER))
        found[e] += total - 0.5 * squares


@kernel
def _list_best(  # noqa: C901 - one pass
    read: Floats, free: Bools, mean: Floats, inverse: Floats, logs: Floats, root: Floats, found: Ints
) -> None:
    """Write the places of the best originals of each row; a pair that is behind all of them is left early."""
    directions, p = root.shape
    z, count = np.empty(p), found.shape[1]
    values = np.empty(count)
    for u in range(len(read)):
        values[:] = -np.inf
        last, border = 0, -np.inf
        for i in range(len(mean)):
            value = 0.0
            for j in range(p):
                z[j] = 0.0
                if free[u, j]:
                    z[j] = (read[u, j] - mean[i, j]) * inverse[i, j]
                    value -= logs[i, j]
            for k in range(directions):
                length = 0.0
                for j in range(p):
                    length += z[j] * root[k, j]
                value -= 0.5 * length * length
                if value <= border:
                    break
            if value > border:
                values[last], found[u, last] = value, i
                for k in range(count):
                    if values[k] < values[last]:
                        last = k
                border = values[last]


class RankMoves(NamedTuple):
    """Histogram of the move in ranks, by bins of the original's rank, each variable by itself."""

    ranks: Floats
    bins: Ints
    limits: Floats  # largest move seen of each variable
    tables: Floats  # log share: variable x bin of ranks x bin of moves

    def read(self, published: Floats) -> Floats:
        """Return the mid-ranks of the published cells."""
        return mid_ranks_of(published)

    def add(self, read: Floats, free: Bools, rows: Ints, originals: Ints, found: Floats) -> None:
        """Add the log share of the move of each free cell."""
        _add_moves(self, read, free, rows, originals, found)


@kernel
def _add_moves(law: RankMoves, read: Floats, free: Bools, rows: Ints, originals: Ints, found: Floats) -> None:
    """Add the log share of the move in ranks of each pair; beyond the largest one seen it falls steeply."""
    ranks, bins, limits, tables = law
    p, width = len(limits), tables.shape[2]
    for e in range(len(rows)):
        u, i = rows[e], originals[e]
        for j in range(p):
            move = read[u, j] - ranks[i, j]
            if free[u, j] and move == move:  # noqa: PLR0124 - false for NaN
                place = int((move + limits[j]) / (2 * limits[j]) * width)
                found[e] += tables[j, bins[i, j], min(max(place, 0), width - 1)]
                if abs(move) > limits[j]:
                    found[e] += FAR - 3.0 * (abs(move) - limits[j]) / limits[j]


@dataclass(frozen=True)
class States:
    """Transitions between what a cell can be: missing, at a frequent value, or free.

    The state of a published cell is 0 if it is free, 1 if missing, and from 2 on a frequent value.
    """

    heaps: Sequence[Floats]  # frequent values of each variable
    lines: Ints  # record x variable: line of the table that an original cell belongs to
    tables: Floats  # log share: variable x line x state

    def of(self, published: Floats) -> Ints:
        """Return the state of each published cell."""
        return np.stack(
            [_states(column, heaps) for column, heaps in zip(published.T, self.heaps, strict=True)], 1
        )

    def add(self, states: Ints, rows: Ints, originals: Ints, found: Floats) -> None:
        """Add the log share of each transition."""
        _add_transitions(states, self.lines, self.tables, rows, originals, found)


@kernel
def _add_transitions(
    states: Ints, lines: Ints, tables: Floats, rows: Ints, originals: Ints, found: Floats
) -> None:
    """Add the log share of the transition of each cell of each pair."""
    for e in range(len(rows)):
        for j in range(lines.shape[1]):
            found[e] += tables[j, lines[originals[e], j], states[rows[e], j]]


def _states(column: Floats, heaps: Floats) -> Ints:
    """Return 1 for each missing cell, the number of its frequent value from 2 on, and else 0."""
    place = places_among(column, heaps)
    return np.where(place >= 0, place + 2, np.isnan(column))


class Changes(NamedTuple):
    """Density of the change of a cell, a difference or a factor, by the nearest ones in all records."""

    original: Floats
    seen: Sequence[Floats]  # changes of each variable, sorted
    factors: Int  # 1 for factors, 0 for differences

    def read(self, published: Floats) -> Floats:
        """Return the published cells; 0 where missing."""
        return np.nan_to_num(published)

    def add(self, read: Floats, free: Bools, rows: Ints, originals: Ints, found: Floats) -> None:
        """Add the log density of the change of each free cell; that of a factor of 0 is left out."""
        for j, seen in enumerate(self.seen):
            if seen.size:
                ours, theirs = self.original[originals, j], read[rows, j]
                _add_changes(ours, theirs, free[rows, j], seen, self.factors, found)


@kernel
def _add_changes(
    ours: Floats, theirs: Floats, free: Bools, seen: Floats, factors: Int, found: Floats
) -> None:
    """Add minus the log of the width that the nearest changes take, on both sides, for each pair."""
    size = len(seen)
    near = int(math.sqrt(size) / 4) + 2
    least = 1e-9 * (seen[-1] - seen[0]) + 1e-300
    for e in range(len(ours)):
        x = ours[e]
        if free[e] and x == x and (x != 0 or factors == 0):  # noqa: PLR0124 - false for NaN
            change = theirs[e] / x if factors == 1 else theirs[e] - x
            place = np.searchsorted(seen, change)
            low, high = seen[max(place - near, 0)], seen[min(place + near, size - 1)]
            found[e] -= math.log(max(high, change) - min(low, change) + least)
            if factors == 1:
                found[e] -= math.log(abs(x))


class OwnShadows(NamedTuple):
    """Published records lie near the shadows of their original: all cells together, or each by itself."""

    shadows: Floats  # original x shadow x variable, in usual distances
    scale: Floats  # usual distance of a published cell from its original
    width: Floats  # usual distance from the nearest shadow: of each variable, and last of records
    together: Int  # 1 for all cells of a record together, 0 for each by itself

    def read(self, published: Floats) -> Floats:
        """Return the published cells in usual distances; 0 where missing."""
        return np.ascontiguousarray(np.nan_to_num(published / self.scale))

    def add(self, read: Floats, free: Bools, rows: Ints, originals: Ints, found: Floats) -> None:
        """Add the log of the mean of Cauchy densities around the shadows of each original."""
        _add_own(self, read, free, rows, originals, found)


@kernel
def _add_own(law: OwnShadows, read: Floats, free: Bools, rows: Ints, originals: Ints, found: Floats) -> None:
    """Add the log density of each pair, by the distances from all shadows of its original."""
    shadows, _, width, together = law
    count, p = shadows.shape[1:]
    cells = np.empty(p)
    for e in range(len(rows)):
        u, i = rows[e], originals[e]
        cells[:] = 0.0
        used = 0.0
        for j in range(p):
            used += free[u, j]
        total = 0.0
        for s in range(count):
            square = width[p] ** 2
            for j in range(p):
                if free[u, j]:
                    distance = (read[u, j] - shadows[i, s, j]) ** 2
                    square += distance
                    cells[j] += width[j] / (distance + width[j] ** 2)
            if together == 1:
                total += float(square) ** (-(used + 1) / 2)
        if together == 1:
            found[e] += math.log(total)
        else:
            for j in range(p):
                if free[u, j]:
                    found[e] += math.log(cells[j])


class OwnNormal(NamedTuple):
    """Published cells are normal with mean and covariance of the shadows of their own original."""

    mean: Floats
    root: Floats  # original x variable x variable: its product with itself is the precision
    logs: Floats  # half the log determinant of each covariance
    draws: int  # shadows that mean and covariance come from

    def read(self, published: Floats) -> Floats:
        """Return the published cells."""
        return np.ascontiguousarray(published)

    def add(self, read: Floats, free: Bools, rows: Ints, originals: Ints, found: Floats) -> None:
        """Add the log density that a few draws allow for, Student's; only free cells count."""
        _add_own_normal(self, read, free, rows, originals, found)


@kernel
def _add_own_normal(
    law: OwnNormal, read: Floats, free: Bools, rows: Ints, originals: Ints, found: Floats
) -> None:
    """Add Student's log density of each pair."""
    mean, root, logs, draws = law
    p = mean.shape[1]
    for e in range(len(rows)):
        u, i = rows[e], originals[e]
        squares = 0.0
        for k in range(p):
            length = 0.0
            for j in range(p):
                if free[u, j]:
                    length += (read[u, j] - mean[i, j]) * root[i, j, k]
            squares += length * length
        found[e] -= logs[i] + 0.5 * draws * math.log(1 + squares / (draws - 1))


Estimate = Normal | RankMoves | Changes | OwnShadows | OwnNormal  # one of the estimates; see the module


# --- a law -----------------------------------------------------------------------------------------------


@dataclass
class Law:
    """Estimates of the law with their weights; `read` a published file, then ask for likelihoods."""

    states: States
    estimates: dict[str, Estimate]
    weights: Floats = field(default_factory=lambda: np.ones(0))
    effects: bool = False  # some records have a scale of their own: more shadows are worth their time

    @property
    def local(self) -> Normal:
        """The local estimate, which all laws but stated ones have."""
        return cast("Normal", self.estimates["local"])

    def read(self, published: Floats) -> Reading:
        """Return what the estimates compare of a published file."""
        states = self.states.of(published)
        read = {name: one.read(published) for name, one in self.estimates.items()}
        return Reading(self, states, states == 0, read)


@dataclass
class Reading:
    """A published file as a law reads it."""

    law: Law
    states: Ints
    free: Bools
    read: dict[str, Floats]

    def components(self, rows: Ints, originals: Ints) -> Floats:
        """Return each estimate's log-likelihood of each pair, estimate x pair."""
        shared = np.zeros(len(rows))
        self.law.states.add(self.states, rows, originals, shared)
        found = np.repeat(shared[None], len(self.law.estimates), 0)
        for line, (name, one) in zip(found, self.law.estimates.items(), strict=True):
            one.add(self.read[name], self.free, rows, originals, line)
        return found

    def likelihood(self, rows: Ints, originals: Ints) -> Floats:
        """Return the log-likelihood of each pair of a published row and an original."""
        return np.einsum("k,km->m", self.law.weights, self.components(rows, originals))

    @property
    def search(self) -> Search:
        """How likely pairs are found."""
        return Search(self.likelihood, self.spaces, self.lists if self.uneven else None)

    def spaces(self) -> list[tuple[Floats, Floats]]:
        """Return points of published rows and originals whose distances come near the law, for searches.

        One by cells and one by ranks: normal estimates differ by the scales of single cells only. Where
        these differ much, as under multiplicative noise, one by sizes, too.
        """
        formed = [
            (weight, one, self.read[name])
            for (name, one), weight in zip(self.law.estimates.items(), self.law.weights, strict=True)
            if isinstance(one, Normal | RankMoves)
        ]
        formed.sort(key=lambda entry: entry[0])
        weighty = [entry for entry in formed if entry[0] >= 0.1 * formed[-1][0]]
        kinds = {type(one): (one, read) for _, one, read in weighty}
        found = [_space_of(one, read) for one, read in kinds.values()]
        return found + ([_space_of_sizes(self.law.local, self.read["local"])] if self.uneven else [])

    @property
    def uneven(self) -> bool:
        """True where scales of cells differ so much that no distance comes near the law."""
        return "local" in self.read and bool((np.log(self.law.local.sd).std(axis=0) > UNEQUAL).any())

    def lists(self, rows: Ints, originals: Ints, count: int) -> Ints:
        """Return the places of the likeliest originals of each row by the local estimate, row x place."""
        local = self.law.local
        mean, sd = (np.ascontiguousarray(part[originals]) for part in (local.mean, local.sd))
        found = np.zeros((len(rows), count), np.int64)
        _list_best(
            self.read["local"][rows], self.free[rows], mean, 1 / sd, np.log(sd), local.root.T.copy(), found
        )
        return found


def _space_of(one: Normal | RankMoves, read: Floats) -> tuple[Floats, Floats]:
    """Return the points of published rows and of originals that an estimate compares."""
    if isinstance(one, RankMoves):
        return np.nan_to_num(read / one.limits), np.nan_to_num(one.ranks / one.limits)
    scale = np.sqrt(np.mean(one.sd**2, axis=0))
    scale[scale == 0] = np.inf
    return read / scale @ one.root, one.mean / scale @ one.root


def _space_of_sizes(one: Normal, read: Floats) -> tuple[Floats, Floats]:
    """Return points whose coordinates grow like the logs of large values, in units of the usual spread."""
    middle = np.median(np.abs(one.mean), axis=0)
    middle[middle == 0] = 1.0
    scale = np.median(one.sd / np.hypot(one.mean, middle), axis=0)
    return np.arcsinh(read / middle) / scale, np.arcsinh(one.mean / middle) / scale


def law_of_shadows(
    original: Floats, shadows: Floats, stated: Stated | None = None, *, any_form: bool = False
) -> Law:
    """Return the law that shadows of an original show, shadow x record x variable; two are the fewest.

    It may have `any_form` where it is that of a masking of the user's own.
    """
    held, n = unseen(shadows), len(original)
    seen = shadows[: -len(held)]
    law = _fit(original, seen, np.ones(n, np.bool_), effects=n <= LARGE)
    if stated is not None:
        law.estimates["stated"] = _normal_of(stated)
    if any_form:
        law.estimates |= _fit_any_form(original, seen)
    rng = np.random.default_rng(1)
    each = -(-QUERIES // len(held))
    some = [_queries_of(law.read(shadow), rng, np.arange(n), each) for shadow in held]
    _set_weights(law, np.concatenate(some, 1))
    return law


def unseen(shadows: Floats) -> Floats:
    """Return the last fifth of the shadows, from which no estimate is made."""
    return shadows[-max(len(shadows) // 5, 1) :]


def law_as_stated(original: Floats, stated: Stated) -> Law:
    """Return the law that a method states of itself, with no shadow: for searches."""
    n, p = original.shape
    states = States([np.empty(0)] * p, np.zeros((n, p), np.int64), np.zeros((p, 1, 2)))  # they tell nothing
    return Law(states, {"stated": _normal_of(stated)}, np.ones(1))


def laws_of_folds(original: Floats, published: Floats) -> Search:
    """Return the release as read by its own folds: no record is read by a law that has seen it."""
    n = len(original)
    rng = np.random.default_rng(2)
    if n > LARGE:
        return _law_of_some(original, published, rng)
    classes = number_values(row_marks(published))  # records that are published alike stay together
    folds = (rng.permutation(int(classes.max()) + 1) % FOLDS)[classes]
    if len(np.unique(folds)) < FOLDS:
        folds = rng.permutation(n) % FOLDS
    laws = [_fit(original, published[None], folds != number, effects=False) for number in range(FOLDS)]
    readings = [law.read(published) for law in laws]
    each = QUERIES // FOLDS
    seen = [
        _queries_of(one, rng, np.flatnonzero(folds == number), each) for number, one in enumerate(readings)
    ]
    for number, law in enumerate(laws):
        law.weights = _weights(np.concatenate([one for k, one in enumerate(seen) if k != number], 1))

    def likelihood(rows: Ints, originals: Ints) -> Floats:
        """Return the log-likelihood of each pair of a published row and an original."""
        found, mine = np.empty(len(rows)), folds[rows]
        for number, reading in enumerate(readings):
            some = np.flatnonzero(mine == number)
            found[some] = reading.likelihood(rows[some], originals[some])
        return found

    return readings[0].search._replace(likelihood=likelihood)  # the first law is near all


def _law_of_some(original: Floats, published: Floats, rng: np.random.Generator) -> Search:
    """Return a large release as read by the law of some of its records: too many to know one by heart."""
    order = rng.permutation(len(original))
    train = np.zeros(len(original), np.bool_)
    train[order[QUERIES:LARGE]] = True
    law = _fit(original, published[None], train, effects=False)
    reading = law.read(published)
    _set_weights(law, _queries_of(reading, rng, order[:QUERIES], QUERIES))
    return reading.search


def _normal_of(stated: Stated) -> Normal:
    """Return a method's own law as an estimate; a cell that is published as it is has next to no spread."""
    mean, sd = stated.mean, stated.sd
    unit = np.where(sd.max(axis=0) > 0, sd.max(axis=0), np.abs(mean).max(axis=0))
    sd = np.where(sd > 0, sd, STILL * np.where(unit > 0, unit, 1.0))
    return Normal(mean, sd, inverse_root(stated.correlation), stated.transform)


# --- weights ---------------------------------------------------------------------------------------------


def _queries_of(reading: Reading, rng: np.random.Generator, among: Ints, count: int) -> Floats:
    """Return estimates for some rows against originals drawn at random: estimate x row x original.

    The true original of each row comes first.
    """
    n = len(reading.states)
    chosen = rng.permutation(among)[:count]
    others = rng.permutation(n)[: min(n, ALTERNATIVES) - 1]
    originals = np.concatenate([chosen[:, None], np.broadcast_to(others, (len(chosen), len(others)))], 1)
    rows = np.repeat(chosen, originals.shape[1])
    found = reading.components(rows, originals.ravel()).reshape(-1, *originals.shape)
    found[:, :, 1:][:, others[None] == chosen[:, None]] = -1e12  # the true one is there already
    return found


def _set_weights(law: Law, components: Floats) -> None:
    """Set the weights of a law, after leaving out the worse of two histograms of moves in ranks."""
    names, weights = list(law.estimates), _weights(components)
    if "smooth rank" in names:
        worse = min("rank", "smooth rank", key=lambda name: weights[names.index(name)])
        del law.estimates[worse]
        weights = _weights(np.delete(components, names.index(worse), axis=0))
    law.weights = weights


def _weights(components: Floats) -> Floats:
    """Return weights of at least 0 that make the true originals, the first ones, most probable."""
    count = len(components)
    weights = np.full(count, 1 / count)
    if count > 1 and components.shape[1]:
        _minimise(np.maximum(components - components.max(axis=2, keepdims=True), FLAT), weights)
    return weights


@kernel
def _minimise(found: Floats, weights: Floats) -> None:
    """Move weights to the least misfit between 0 and MOST by Newton's steps, halved where one is too long."""
    count = len(weights)
    slope, bend = np.empty(count), np.empty((count, count))
    trial, more_slope, more_bend = np.empty(count), np.empty(count), np.empty((count, count))
    value = _penalised_misfit(found, weights, slope, bend)
    for _ in range(NEWTON):
        step = _newton_step(weights, slope, bend)
        new = value
        for _ in range(10):
            trial[:] = weights + step
            new = _penalised_misfit(found, trial, more_slope, more_bend)
            if new <= value:
                break
            step *= 0.5
        gain = value - new
        if gain >= 0:
            weights[:], slope[:], bend[:], value = trial, more_slope, more_bend, new
        if gain < LEAST_GAIN:
            break


@inner
def _newton_step(weights: Floats, slope: Floats, bend: Floats) -> Floats:
    """Return the way to the least value of a parabola between the bounds, one weight after the other."""
    step = np.zeros(len(weights))
    for _ in range(200):
        largest = 0.0
        for k in range(len(weights)):
            rest = slope[k] - bend[k, k] * step[k]
            for m in range(len(weights)):
                rest += bend[k, m] * step[m]
            new = min(max(weights[k] - rest / bend[k, k], 0.0), MOST) - weights[k]
            largest = max(largest, abs(new - step[k]))
            step[k] = new
        if largest < 1e-9:
            break
    return step


@inner
def _penalised_misfit(found: Floats, weights: Floats, slope: Floats, bend: Floats) -> float:
    """Return minus the mean log probability of the truth, plus a ridge; write both derivatives."""
    count, rows, size = found.shape
    score, mean, products = np.empty(size), np.empty(count), np.empty((count, count))
    value = 0.0
    slope[:] = 0.0
    bend[:] = 0.0
    for row in range(rows):
        score[:] = 0.0
        for k in range(count):
            score += weights[k] * found[k, row]
        top = score.max()
        total = _add_odds(found, row, score, top, mean, products)
        value += (math.log(total) + top - score[0]) / rows
        slope += (mean / total - found[:, row, 0]) / rows
        bend += (products - np.outer(mean, mean) / total) / total / rows
    for k in range(count):  # a little more the larger weights are, so that equal estimates share
        value += RIDGE * weights[k] * weights[k]
        slope[k] += 2 * RIDGE * weights[k]
        bend[k, k] += 2 * RIDGE
    return value


@inner
def _add_odds(found: Floats, row: int, score: Floats, top: float, mean: Floats, products: Floats) -> float:
    """Return the sum of a row's odds; write the sums of its estimates, and of their products, by odds."""
    total = 0.0
    mean[:] = 0.0
    products[:] = 0.0
    for i in range(len(score)):
        if score[i] > top - NOTHING:
            odds = math.exp(score[i] - top)
            total += odds
            for k in range(len(mean)):
                mean[k] += odds * found[k, row, i]
                for m in range(len(mean)):
                    products[k, m] += odds * found[k, row, i] * found[m, row, i]
    return total


# --- fitting ---------------------------------------------------------------------------------------------


def _fit(original: Floats, published: Floats, train: Bools, *, effects: bool) -> Law:
    """Return the law without weights, from published files of an original and the rows to learn from."""
    ranks = mid_ranks_of(original)
    states = _fit_states(original, ranks, published, train)
    own = np.stack([states.of(one) == 0 for one in published]) & train[:, None] & ~np.isnan(original)
    seen = ~np.isnan(published) & train[:, None] & ~np.isnan(original)
    local, own_scale = _fit_local(original, published, own, ranks, effects=effects and len(published) > 2)
    sharp, smooth = _fit_moves(ranks, published, own)
    found: dict[str, Estimate] = {
        "plain": _fit_plain(original, published, seen),
        "local": local,
        "rank": sharp,
    }
    return Law(states, found | ({"smooth rank": smooth} if effects else {}), effects=own_scale)


def _fit_states(original: Floats, ranks: Floats, published: Floats, train: Bools) -> States:
    """Return frequent values, and how often each kind of original cell becomes each state.

    Some methods break ties by the order of the rows: of shadows, equal originals are told apart by it.
    """
    n, p = original.shape
    heaps = [_frequent(published[:, train, j]) for j in range(p)]
    states, parts = max(len(found) for found in heaps) + 2, ORDERED if len(published) > 1 else 1
    size = states * parts + 8
    lines, tables = np.empty((n, p), np.int64), np.full((p, size, states), -np.inf)
    for j in range(p):
        state = _states(original[:, j], heaps[j])
        eighth = np.nan_to_num((ranks[:, j] - 0.5) * 8 / max(n, 1)).astype(np.int64).clip(0, 7)
        part = (
            ranks_within(np.arange(n, dtype=float), state).astype(np.int64)
            * parts
            // np.maximum(np.bincount(state)[state], 1)
        )
        lines[:, j] = np.where(state > 0, state * parts + part, states * parts + eighth)
        counts = np.zeros((size, states))
        for one in published:
            np.add.at(counts, (lines[train, j], _states(one[train, j], heaps[j])), 1)
        possible = counts[:, : len(heaps[j]) + 2] + 0.05
        tables[j, :, : len(heaps[j]) + 2] = np.log(possible / possible.sum(axis=1, keepdims=True))
    return States(heaps, lines, tables)


def _frequent(values: Floats) -> Floats:
    """Return the frequent values of a column in several published files, sorted; a missing cell is none."""
    values_seen, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    often = (counts >= HEAP * values.size) & (counts > 1.5 * len(values))
    if len(values_seen) > HEAPS:  # among whole numbers many are frequent, and their sizes tell more
        beside = np.pad(counts, 1)
        often &= counts >= np.maximum(5 * np.median(counts), 3 * np.maximum(beside[:-2], beside[2:]))
    most = np.argsort(-counts[often], kind="stable")[:HEAPS]
    return np.sort(values_seen[often][most])


def _design(original: Floats) -> Floats:
    """Return a column of ones and the standardised original; a missing cell stands at its mean."""
    mean, sd = _moments(original)
    return np.column_stack([np.ones(len(original)), np.nan_to_num((original - mean) / sd)])


def _moments(values: Floats) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of each column's observed cells; a deviation of 1 for none."""
    seen = ~np.isnan(values)
    count = np.maximum(seen.sum(axis=0), 1)
    mean = np.where(seen, values, 0.0).sum(axis=0) / count
    sd = np.sqrt(np.where(seen, (values - mean) ** 2, 0.0).sum(axis=0) / count)
    return mean, np.where(sd > 0, sd, 1.0)


def _fit_plain(original: Floats, published: Floats, seen: Bools) -> Normal:
    """Return the linear law with one covariance, from complete records where there are enough.

    Means and products over other records for each variable would blur directions without noise.
    """
    often = seen.mean(axis=(0, 1))
    usual = often > often.max() / 2  # an empty column would leave no record complete
    complete = seen & seen[:, :, usual].all(axis=2, keepdims=True)
    enough = complete.sum() > PER_CELL * seen.shape[2] ** 2
    seen = complete if enough else seen
    design, (centre, sd) = _design(original), _moments(original)
    filled = np.where(np.isnan(original), centre, original)
    count = seen.sum(axis=0)
    change = np.where(seen, published - filled, 0.0).sum(axis=0) / np.maximum(count, 1)
    mean = filled.copy()
    for j in range(original.shape[1]):
        used = np.sqrt(count[:, j])
        mean[:, j] += design @ solved(design * used[:, None], change[:, j] * used)
    rest = np.where(seen, (published - mean) / sd, 0.0)
    root = inverse_root(_products(rest, seen), EXACT if enough else 0.0)
    return Normal(mean, np.broadcast_to(sd, original.shape).copy(), root)


def solved(design: Floats, values: Floats) -> Floats:
    """Return the coefficients of least squares; directions that the columns of the design lack get none.

    By products of its few columns, as a decomposition of all records takes many times as long.
    """
    root = inverse_root(design.T @ design)
    return root @ (root.T @ (design.T @ values))


def _products(rest: Floats, seen: Bools) -> Floats:
    """Return the mean product of each two variables' residuals over the cells where both are seen."""
    p = rest.shape[2]
    flat, there = rest.reshape(-1, p), seen.reshape(-1, p).astype(float)
    return np.asarray(flat.T @ flat / np.maximum(there.T @ there, 1))


def inverse_root(covariance: Floats, least: float = 0.0, border: float | None = None) -> Floats:
    """Return a matrix whose product with itself is the inverse; directions without variance are left out.

    Or they get the share `least` of the largest variance: what is published without noise tells most. Without
    variance is a direction below the `border`, by default a tiny share of the largest variance.
    """
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    largest = max(float(values.max(initial=0.0)), 1e-300)
    if least > 0:
        values = np.maximum(values, max(least * largest, SMALLEST))
    kept = values > (largest * 1e-10 if border is None else border)
    return np.ascontiguousarray(vectors[:, kept] / np.sqrt(values[kept]))


def _smooth_terms(column: Floats, ranks: Floats) -> Floats:
    """Return smooth functions of value, size and rank, of which the log variance of a column is a sum."""
    n = len(column)
    x = np.nan_to_num(column)
    middle = max(float(np.median(np.abs(x[x != 0]))) if (x != 0).any() else 1.0, 1e-12)
    bent = np.arcsinh(x / middle)
    size = np.log(np.abs(x) + 1e-3 * middle)
    size = (size - size.mean()) / max(float(size.std()), 1e-9)
    place = np.nan_to_num((ranks - 0.5) / n - 0.5)
    return np.column_stack([np.ones(n), bent, bent**2, size, size**2, place, place**2, place**3])


def _fit_local(
    original: Floats, published: Floats, own: Bools, ranks: Floats, *, effects: bool
) -> tuple[Normal, bool]:
    """Return mean and scale of each cell, and True if some records have a scale of their own."""
    count = own.sum(axis=0)
    centre, sd = _moments(original)
    filled = np.where(np.isnan(original), centre, original)
    change = np.where(own, published - filled, 0.0).sum(axis=0) / np.maximum(count, 1)
    scatter = np.where(own, (published - filled - change) ** 2, 0.0).sum(axis=0) / np.maximum(count - 1, 1)
    design, floor = _design(original), np.maximum(1e-12 * sd**2, 1e-300)
    enough = count >= (max(3, len(published) // 4) if effects else 1)
    mean, logs, rest = filled.copy(), np.zeros_like(filled), np.zeros_like(filled)
    terms: list[Floats] = []
    for j in range(original.shape[1]):
        rows, basis = np.flatnonzero(enough[:, j]), _smooth_terms(original[:, j], ranks[:, j])
        terms += [basis] if effects else []  # of large files all of them would take much memory
        if rows.size < original.shape[1] + 5:
            logs[:, j] = np.log(sd[j] ** 2)
            continue
        step = _fit_change(design, change[:, j], rows, scatter[:, j] if effects else None, basis, floor[j])
        mean[:, j] += step
        if effects:
            off = (change[rows, j] - step[rows]) / np.sqrt(
                np.maximum(scatter[rows, j], floor[j]) / count[rows, j]
            )
            kept = _shrinkage(1.0, float(np.mean(np.minimum(off**2, 25))), MEAN_SURVIVES)
            mean[rows, j] += kept * (change[rows, j] - step[rows])
        else:
            scatter[:, j] = (change[:, j] - step) ** 2
        y = np.log(np.maximum(scatter[:, j], floor[j]))
        logs[:, j] = basis @ solved(basis[rows], y[rows])
        rest[rows, j] = y[rows] - logs[rows, j]
    survived = effects and _add_record_scales(logs, rest, enough, terms, len(published))
    missing = np.isnan(original)
    logs = np.clip(logs, np.log(floor), np.log(floor) + LARGEST_STEP)  # a smooth function may run away
    mean, scale = np.where(missing, centre, mean), np.where(missing, sd, np.exp(logs / 2))
    z = np.clip(np.where(own, (published - mean) / scale, 0.0), -1e9, 1e9)
    size = np.sqrt(np.minimum(z**2, 16).sum(axis=(0, 1)) / np.maximum(own.sum(axis=(0, 1)), 1))
    size[size == 0] = 1.0
    return Normal(mean, np.where(missing, sd, scale * size), _root_of_correlation(z / size, own)), survived


def _fit_change(
    design: Floats, change: Floats, rows: Ints, scatter: Floats | None, basis: Floats, floor: float
) -> Floats:
    """Return the mean change of each cell as a linear function of the original, by weighted least squares."""
    weight = np.ones(rows.size)
    for _ in range(2 if scatter is None else 1):
        if scatter is not None:
            weight = 1 / np.sqrt(np.maximum(scatter[rows], floor))
        weight = weight / weight.max()
        fitted = design @ solved(design[rows] * weight[:, None], change[rows] * weight)
        if scatter is None:
            y = np.log(np.maximum((change[rows] - fitted[rows]) ** 2, floor))
            logs = basis[rows] @ solved(basis[rows], y)
            weight = np.exp((logs.min() - logs) / 2)
    return np.asarray(fitted)


def _shrinkage(noise: float, total: float, border: float) -> float:
    """Return the share of a variance that is no noise; 0 below a border, where it is worth no parameter."""
    share = max(0.0, 1 - noise / max(total, 1e-12))
    return share if share >= border else 0.0


def _add_record_scales(
    logs: Floats, rest: Floats, enough: Bools, terms: Sequence[Floats], shadows: int
) -> bool:
    """Add to the log variances what belongs to the record and to the cell, shrunk; True if anything does."""
    noise, cells = 2 / (shadows - 1), np.maximum(enough.sum(axis=1), 1)
    record = (rest * enough).sum(axis=1) / cells
    kept = _shrinkage(noise / float(cells.mean()), float(np.var(record)), SURVIVES)
    if kept:
        total, effect = logs + rest, kept * record
        for _ in range(6):  # smooth functions and records in turn
            for j, basis in enumerate(terms):
                rows = enough[:, j]
                if rows.sum() > basis.shape[1]:
                    left = total[rows, j] - effect[rows]
                    logs[:, j] = basis @ solved(basis[rows], left)
            effect = kept * ((total - logs) * enough).sum(axis=1) / cells
        rest[:] = (total - logs) * enough - effect[:, None] * enough
        logs += effect[:, None]
    survived = bool(kept)
    for j in range(logs.shape[1]):
        spread = float(np.var(rest[enough[:, j], j])) if enough[:, j].any() else 0.0
        own = _shrinkage(noise, spread, SURVIVES)
        logs[:, j] += own * rest[:, j] * enough[:, j]
        survived = survived or bool(own)
    return survived


def _root_of_correlation(z: Floats, own: Bools) -> Floats:
    """Return the root of the inverse correlation of standardised residuals; nothing for what never moves."""
    products = _products(np.clip(z, -6, 6), own)
    size = np.sqrt(np.diag(products))
    dead = size < 1e-6
    size[dead] = 1.0
    correlation = products / size[:, None] / size
    correlation[dead, dead] = 1.0
    root = inverse_root(correlation, border=1e-9)
    root[dead] = 0.0
    return root


def _fit_moves(ranks: Floats, published: Floats, own: Bools) -> tuple[RankMoves, RankMoves]:
    """Return the histogram of moves in ranks, smoothed a little and more over neighbouring bins."""
    n, p = ranks.shape
    lines = int(np.clip(own.sum() / p // PER_BIN, 1, RANK_BINS))
    width = MOVE_BINS if lines == RANK_BINS else 21 if lines <= 2 else 41
    bins = np.nan_to_num((ranks - 0.5) * lines / max(n, 1)).astype(np.int64).clip(0, lines - 1)
    limits, tables = np.empty(p), np.empty((2, p, lines, width))
    moves = np.stack([mid_ranks_of(one) for one in published]) - ranks
    for j in range(p):
        seen = own[:, :, j] & ~np.isnan(moves[:, :, j])
        move = moves[:, :, j][seen]
        limits[j] = max(float(np.abs(move).max(initial=0.0)), 0.5) + 0.5
        place = ((move + limits[j]) / (2 * limits[j]) * width).astype(np.int64).clip(0, width - 1)
        line = np.broadcast_to(bins[:, j], seen.shape)[seen]
        counts = (
            np.bincount(line * width + place, minlength=lines * width).reshape(lines, width).astype(float)
        )
        tables[:, j] = [_smoothed_shares(counts, passes) for passes in (1, SMOOTH)]
    sharp, smooth = (RankMoves(ranks, bins, limits, table) for table in tables)
    return sharp, smooth


def _smoothed_shares(counts: Floats, passes: int) -> Floats:
    """Return the log share of each bin of moves, each line smoothed with its neighbours and within itself."""
    up, same, down = (np.pad(counts, ((1, 1), (0, 0)), mode="edge")[k : k + len(counts)] for k in (0, 1, 2))
    found = 0.25 * up + 0.5 * same + 0.25 * down
    spread = found
    for _ in range(passes):
        wide = np.pad(spread, ((0, 0), (1, 1)), mode="edge")
        spread = 0.2 * wide[:, :-2] + 0.6 * spread + 0.2 * wide[:, 2:]
    spread = np.where(found == 0, np.minimum(spread, 0.3), spread) + 0.05
    return np.asarray(np.log(spread / spread.sum(axis=1, keepdims=True)))


def _fit_any_form(original: Floats, published: Floats) -> dict[str, Estimate]:
    """Return the estimates that take no form for granted, from the shadows of an original."""
    columns, mine = range(original.shape[1]), np.moveaxis(published, 0, 1)
    found: dict[str, Estimate] = {}
    with np.errstate(divide="ignore", invalid="ignore"):
        for name, changes in (("differences", published - original), ("factors", published / original)):
            each = [np.sort(one[np.isfinite(one)]) for one in (changes[:, :, j] for j in columns)]
            found[name] = Changes(original, each, int(name == "factors"))
    scale = _moments(mine.reshape(-1, len(columns)))[1]
    own = np.ascontiguousarray(np.nan_to_num(mine / scale, nan=NOWHERE))
    last = np.abs(own[:, :-1] - own[:, -1:])
    nearest = [np.median(last.min(axis=1), axis=0), [np.median(np.sqrt((last**2).sum(axis=2)).min(axis=1))]]
    width = np.maximum(np.concatenate(nearest), EXACT)
    found |= {name: OwnShadows(own, scale, width, int(name == "own")) for name in ("own", "own cells")}
    count = len(published)
    if count > 2 * len(columns) and not np.isnan(published).any():
        mean = mine.mean(axis=1)
        rest = mine - mean[:, None]
        values, vectors = np.linalg.eigh(rest.transpose(0, 2, 1) @ rest / (count - 1))
        values = np.maximum(values, EXACT**2 * scale.max() ** 2 + EXACT * values[:, -1:])
        found["own normal"] = OwnNormal(
            mean, vectors / np.sqrt(values)[:, None], np.log(values).sum(axis=1) / 2, count
        )
    return found
