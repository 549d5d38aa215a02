"""Search for sums that hold in most records of a file: in small random subsets, then improved on a sample.

A relation is a vector of factors -1, 0, 1, one per column: one total (1) minus its parts (-1). A subset that
happens to have no broken record shows its relations as linear dependences between columns. Where all records
are rounded, columns depend on each other up to the rounding, and least squares gives factors near -1, 0, 1.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from sdckit.core.decimals import usual_step
from sdckit.core.table import LARGEST_INTEGER
from sdckit.kernels.scaling import powers_of_two, spread
from sdckit.rules.discover import CLOSE, EVIDENCE, VANISHING, sign_vectors
from sdckit.rules.parse import EPSILON

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sdckit.kernels.jit import Bools, Floats, Ints

LOOKED_AT = 20_000  # records from which complete ones are taken
SEARCHED = 1_000  # complete records that are searched, and on which relations are compared
DRAWS = 300  # subsets drawn for exact relations, and as many of two sizes for relations up to rounding
STEPS = 2  # rounding by as many steps of the grid is recognised
WIDE = 20  # steps that a column must vary by for its rounding to be told from its values
ROUGH = 0.3  # largest deviation from -1, 0 or 1 of a factor from rounded records
COMBINED = 2_000  # most combinations of dependent columns that are tried in a subset
TRIED = 100  # candidates that are improved
STARTING = 0.3  # share of the records in which a candidate must hold to be improved
ENOUGH = 0.75  # share of the sampled records in which a relation must hold to be counted on the file
HALF = 0.5  # share that must hold of the records in which a column of the relation has an unusual value


@dataclass(frozen=True)
class Found:
    """A relation, whether it holds exactly in most records, and the share of records in which it does.

    Where it is not exact, the share is that of the records within the tolerance, which stands for rounding.
    """

    relation: Ints
    exact: bool
    share: float
    tolerance: float

    @property
    def order(self) -> tuple[bool, float, int]:
        """Key that sorts exact relations before rounded ones, then by share, then by number of columns."""
        return (not self.exact, -self.share, int(np.count_nonzero(self.relation)))

    def widened(self, columns: Ints, count: int) -> Found:
        """Return the relation of some columns as one of all `count` columns of a table."""
        relation = np.zeros(count, np.int64)
        relation[columns] = self.relation
        return replace(self, relation=relation)


def near_relations(values: Floats, used: Sequence[int]) -> list[Found]:
    """Return relations between the used columns that seem to hold in most records, the best first."""
    rng = np.random.default_rng(0)
    few = len(values) <= LOOKED_AT
    chosen = np.arange(len(values)) if few else rng.choice(len(values), LOOKED_AT, replace=False)
    looked = values[np.sort(chosen)][:, used]
    found: dict[tuple[int, ...], Found] = {}
    with np.errstate(over="ignore", invalid="ignore"):  # a sum that overflows breaks no rule
        for columns in column_sets(np.isnan(looked)):
            complete = looked[:, columns]
            complete = complete[~np.isnan(complete).any(axis=1)]
            if len(complete) > SEARCHED:
                complete = complete[rng.choice(len(complete), SEARCHED, replace=False)]
            for result in _searched(complete, rng):
                widened = result.widened(np.asarray(used)[columns], values.shape[1])
                before = found.get(tuple(widened.relation))
                if before is None or widened.order < before.order:
                    found[tuple(widened.relation)] = widened
    return sorted(found.values(), key=lambda result: result.order)


def column_sets(gaps: Bools) -> list[list[int]]:
    """Return sets of columns with enough complete records to search; together they have all columns.

    The columns with most gaps are left out of a set until enough records are complete; each of them has a
    set of its own.
    """
    n, p = gaps.shape
    enough = min(max(100, 4 * p), n // 2)
    sets: list[list[int]] = []
    for must in (None, *range(p)):
        if must is not None and any(must in columns for columns in sets):
            continue
        columns = list(range(p))
        while len(columns) > 1 and np.count_nonzero(~gaps[:, columns].any(axis=1)) < enough:
            rows = slice(None) if must is None else ~gaps[:, must]
            shares = gaps[rows].sum(axis=0)
            columns.remove(max((j for j in columns if j != must), key=lambda j: int(shares[j])))
        sets.append(columns)
    return sets


def _searched(sample: Floats, rng: np.random.Generator) -> Iterator[Found]:
    """Yield relations that most of the sampled records satisfy, exactly first, then up to rounding."""
    distinct = np.unique(sample, axis=0)
    p = sample.shape[1]
    if p < 2 or len(distinct) < max(EVIDENCE, p + 1):
        return
    steps = np.array([_step(column) for column in sample.T])
    candidates = _candidates(distinct, VANISHING * powers_of_two(distinct), CLOSE, p + 1, DRAWS, rng)
    yield from _improved(sample, candidates, steps, exact=True)
    # Rounding cannot be told from the values of columns that vary little, or are too large for a grid.
    wide, large = spread(sample), np.abs(sample).max(axis=0)
    for step in np.unique(steps):
        fit = (steps <= step) & (wide >= WIDE * step) & (large < LARGEST_INTEGER * steps)
        columns = np.flatnonzero(fit)
        if len(columns) < 2 or not (steps[columns] == step).any():
            continue
        limits = np.full(len(columns), STEPS * step)
        # Small subsets have fewer broken records, large ones give better factors.
        sizes = (len(columns) + 3, 2 * len(columns))
        candidates = [
            candidate
            for size in sizes
            for candidate in _candidates(distinct[:, columns], limits, ROUGH, size, DRAWS // len(sizes), rng)
        ]
        for result in _improved(sample[:, columns], candidates, steps[columns], exact=False):
            yield result.widened(columns, p)


def _step(column: Floats) -> float:
    """Return the usual distance between neighbouring values of a column as a number."""
    step = usual_step(column)
    return step.multiple * 10.0**-step.decimals


def _candidates(
    distinct: Floats, limits: Floats, close: float, size: int, draws: int, rng: np.random.Generator
) -> list[Ints]:
    """Return relations found in random subsets of the records, the most frequent first.

    A column depends on others if what they leave of it has a root mean square below its limit.
    """
    size = min(size, len(distinct))
    rows = np.argpartition(rng.random((draws, len(distinct))), size - 1, axis=1)[:, :size]
    subsets = distinct[rows] / (limits * np.sqrt(size))
    seen: Counter[tuple[int, ...]] = Counter()
    for subset, pivot in zip(subsets, _pivots(subsets), strict=True):
        loose = ~pivot & ((subset**2).sum(axis=0) > 1)
        if loose.any():
            seen.update({tuple(relation) for relation in _relations(subset, pivot, loose, limits, close)})
    return [np.array(relation) for relation, _ in seen.most_common(COMBINED)]


def _pivots(subsets: Floats) -> Bools:
    """Return for each subset the columns of which all others are combinations, up to a norm of 1.

    The column with the largest rest is chosen and projected out of all others until all rests are small.
    """
    rest = subsets.copy()
    draws, _, p = rest.shape
    chosen = np.zeros((draws, p), np.bool_)
    for _ in range(p):
        norms = np.sqrt((rest**2).sum(axis=1))
        best = norms.argmax(axis=1)
        largest = norms[np.arange(draws), best]
        active = np.flatnonzero(largest > 1)
        if not len(active):
            break
        chosen[active, best[active]] = True
        axis = rest[active, :, best[active]] / largest[active, None]
        rest[active] -= axis[:, :, None] * np.einsum("dm,dmp->dp", axis, rest[active])[:, None, :]
        rest[active, :, best[active]] = 0.0
    return chosen


def _relations(subset: Floats, pivot: Bools, loose: Bools, limits: Floats, close: float) -> Ints:
    """Return the relations of one subset as rows: dependent columns less their combination of pivots."""
    factors = np.linalg.lstsq(subset[:, pivot], subset[:, loose], rcond=None)[0]
    basis = np.zeros((np.count_nonzero(loose), subset.shape[1]))
    basis[:, loose] = np.eye(len(basis))
    basis[:, pivot] = -(factors * (limits[loose] / limits[pivot][:, None])).T
    relations = _signs(len(basis)) @ basis
    whole = np.rint(relations)
    good = (np.abs(relations - whole).max(axis=1) < close) & (np.abs(whole).max(axis=1) == 1)
    whole = whole[good].astype(np.int64)
    return _with_total_ahead(whole[_is_sum(whole)])


@lru_cache
def _signs(count: int) -> Floats:
    """Return the first combinations of `count` factors -1, 0 or 1 as rows, those with few non-zeros first."""
    return np.array(list(itertools.islice(sign_vectors(count), COMBINED)))


def _is_sum(relations: Ints) -> Bools:
    """Return which rows have one total: exactly one factor that differs in sign from all others."""
    return np.minimum((relations > 0).sum(axis=1), (relations < 0).sum(axis=1)) == 1


def _with_total_ahead(relations: Ints) -> Ints:
    """Return the rows with such signs that the total is positive; of two equal columns, the first is."""
    first = np.take_along_axis(relations, (relations != 0).argmax(axis=1)[:, None], axis=1)[:, 0]
    plus = (relations > 0).sum(axis=1)
    pair = np.count_nonzero(relations, axis=1) == 2
    return relations * np.where(pair, first, np.where(plus == 1, 1, -1))[:, None]


def _improved(sample: Floats, candidates: list[Ints], steps: Floats, *, exact: bool) -> Iterator[Found]:
    """Yield the candidates with enough evidence, each after the changes that make it hold most often."""
    if not candidates:
        return
    relations = np.array(candidates)
    allowed = steps * (not exact)
    shares = _held(sample, relations, allowed).mean(axis=0)
    order = np.argsort(-shares, kind="stable")[:TRIED]
    done: set[tuple[int, ...]] = set()
    for relation in relations[order[shares[order] >= STARTING]]:
        best, held = _climbed(sample, relation, allowed)
        share, tolerance = float(held.mean()), tolerance_of(best, steps)
        new = share >= ENOUGH and tuple(best) not in done
        if new and has_evidence(sample[:, best != 0], held, tolerance * (not exact)):
            yield Found(best, exact, share, tolerance)
        done.add(tuple(best))


def tolerance_of(relation: Ints, steps: Floats) -> float:
    """Return the tolerance of a relation: 2 of the coarsest steps, or half a step for each column."""
    used = relation != 0
    return float(max(STEPS, np.count_nonzero(used) / 2) * steps[used].max(initial=0.0))


def _held(sample: Floats, relations: Ints, steps: Floats) -> Bools:
    """Return which records (rows) satisfy which relations (columns) up to the rounding of these steps."""
    limits = np.array([tolerance_of(relation, steps) for relation in relations])
    share = (np.count_nonzero(relations, axis=1) + 1) / 2 * EPSILON
    return np.abs(sample @ relations.T) <= limits + share * (np.abs(sample) @ np.abs(relations).T)


def _climbed(sample: Floats, relation: Ints, steps: Floats) -> tuple[Ints, Bools]:
    """Return the relation that no change of one factor improves, and the records that satisfy it.

    So a part that is 0 in most records is found, too, though few subsets show it.
    """
    p = len(relation)
    moves = np.vstack([np.zeros((1, p), np.int64), np.eye(p, dtype=np.int64), -np.eye(p, dtype=np.int64)])
    while True:
        others = relation + moves
        others = others[(np.abs(others).max(axis=1) <= 1) & _is_sum(others)]
        held = _held(sample, others, steps)
        # Of relations that hold equally often, the one with the fewest columns; the present one is first.
        key = held.sum(axis=0) * (p + 1) - np.count_nonzero(others, axis=1)
        best = int(key.argmax())
        if best == 0:
            return _with_total_ahead(relation[None])[0], held[:, 0]
        relation = others[best]


def has_evidence(cells: Floats, held: Bools, tolerance: float) -> bool:
    """Return True if a relation holds also where its columns have unusual values, and in various records.

    Columns that are 0 in most records satisfy many sums that say nothing, as do columns of similar values
    if there is a tolerance.
    """
    away = np.abs(cells - np.median(cells, axis=0)) > 10 * tolerance
    count = away.sum(axis=0)
    fewest = EVIDENCE if tolerance else 1
    if (count < fewest).any() or ((away & held[:, None]).sum(axis=0) < HALF * count).any():
        return False
    return len(np.unique(cells[held & away.any(axis=1)], axis=0)) >= EVIDENCE


def follows(known: Sequence[Ints], relation: Ints) -> bool:
    """Return True if a relation follows from known ones, or would with them make a column 0.

    Two sums that differ by one column, which is 0 in most records, are the same sum.
    """
    matrix = np.array([*known, relation], np.float64)
    _, sizes, axes = np.linalg.svd(matrix)
    rank = np.count_nonzero(sizes > 1e-9)
    free = np.abs(axes[rank:]).max(axis=0, initial=0.0) > 1e-9
    return bool(rank < len(matrix) or (~free & (matrix != 0).any(axis=0)).any())
