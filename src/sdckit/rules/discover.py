"""Discovery of edit rules in data: totals that are sums of other columns, and columns never negative."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from sdckit.kernels.scaling import powers_of_two
from sdckit.rules.parse import rule_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sdckit.kernels.jit import Floats, Ints
    from sdckit.rules.parse import Rule

EVIDENCE = 10  # so many different records at least must keep a sum
SPARE = 100  # records beyond the number of columns on which relations are looked for
VANISHING = 1e-10  # share of the largest entry below which elimination takes an entry for 0
CLOSE = 1e-5  # how near to -1, 0 or 1 a factor must come to be tried on all records
COMBINED = 200_000  # combinations of dependent columns that are tried at most
MISSING = 0.5  # columns with a larger share of missing cells take part in no sum


def discovered(names: Sequence[str], values: Floats) -> list[Rule]:
    """Return the rules found: totals first, then columns without a negative value, in table order."""
    zero = Fraction(0)
    lowest = np.fmin.reduce(values, axis=0)
    signs = [
        rule_of({name: -1}, zero, equality=False) for name, low in zip(names, lowest, strict=True) if low >= 0
    ]
    return [*sums(names, values), *signs]


def sums(names: Sequence[str], values: Floats) -> list[Rule]:
    """Return independent equalities "total = sum of parts" that hold in every complete record.

    Columns that do not vary, or have few values, are no parts; of equal columns, the first stands for all.
    """
    used = _candidates(values)
    found: list[Rule] = []
    for j, first in _equal_columns(values, used):
        found.append(rule_of({names[j]: 1, names[first]: -1}, Fraction(0), equality=True))
        used.remove(j)
    sample = _sample(values, used)
    if len(used) < 3 or len(sample) < max(EVIDENCE, len(used) + 1):
        return found
    relations = sorted(
        _relations(sample), key=lambda relation: (np.count_nonzero(relation), *(-np.abs(relation)))
    )
    kept: list[Ints] = []
    for relation in relations:
        if kept and np.linalg.matrix_rank(np.array([*kept, relation])) == len(kept):
            continue
        factors = {names[used[i]]: int(relation[i]) for i in np.flatnonzero(relation)}
        rule = rule_of(factors, Fraction(0), equality=True)
        if _holds(rule, names, values):
            kept.append(relation)
            found.append(rule)
    return found


def _candidates(values: Floats) -> list[int]:
    varying = np.fmin.reduce(values, axis=0) < np.fmax.reduce(values, axis=0)
    seen = np.isnan(values).mean(axis=0) <= MISSING
    return [int(j) for j in np.flatnonzero(varying & seen)]


def _equal_columns(values: Floats, used: list[int]) -> list[tuple[int, int]]:
    """Return pairs of a column and the first earlier column that equals it."""
    head = values[: 10 * EVIDENCE]
    found: list[tuple[int, int]] = []
    for first, j in itertools.combinations(used, 2):
        if any(again in {first, j} for again, _ in found):
            continue
        if np.array_equal(head[:, first], head[:, j], equal_nan=True) and np.array_equal(
            values[:, first], values[:, j], equal_nan=True
        ):
            observed = values[~np.isnan(values[:, j]), j]
            if len(np.unique(observed[: 100 * EVIDENCE])) >= EVIDENCE:
                found.append((j, first))
    return found


def _sample(values: Floats, used: list[int]) -> Floats:
    """Return distinct complete records drawn with a fixed seed from the whole file."""
    gaps = np.zeros(len(values), np.bool_)
    for j in used:
        gaps |= np.isnan(values[:, j])
    complete = np.flatnonzero(~gaps)
    size = len(used) + SPARE
    if len(complete) > 4 * size:
        complete = np.random.default_rng(0).choice(complete, 4 * size, replace=False)
    return np.unique(values[complete][:, used], axis=0)


def _relations(sample: Floats) -> Iterator[Ints]:
    """Yield factors -1, 0, 1 of sums that are 0 in all sampled records: one total minus its parts.

    Elimination leaves some columns as combinations of the others. Any relation is fixed by its factors on the
    former, so that those are all that need be tried.
    """
    p = sample.shape[1]
    unit = powers_of_two(sample)
    reduced, pivots = _eliminated(np.asarray(np.linalg.qr(sample / unit, mode="r")))
    loose = [j for j in range(p) if j not in pivots]
    if not loose:
        return
    # Columns as combinations of the pivots, in the data's units: relation = factors @ basis.
    basis = np.zeros((len(loose), p))
    for row, j in enumerate(loose):
        basis[row, j] = 1.0
        basis[row, pivots] = -reduced[: len(pivots), j] * (unit[j] / unit[pivots])
    for factors in itertools.islice(_factors(len(loose)), COMBINED):
        relation = factors @ basis
        whole = np.rint(relation)
        if np.abs(relation - whole).max() < CLOSE and np.abs(whole).max() == 1:
            plus, minus = (whole > 0).sum(), (whole < 0).sum()
            if min(plus, minus) == 1 and plus + minus > 2:
                yield whole.astype(np.int64) * (1 if plus == 1 else -1)


def _factors(count: int) -> Iterator[Floats]:
    """Yield every vector of -1, 0 and 1 up to its sign, those with few non-zero entries first."""
    for size in range(1, count + 1):
        for places in itertools.combinations(range(count), size):
            for signs in itertools.product((1.0, -1.0), repeat=size - 1):
                factors = np.zeros(count)
                factors[list(places)] = (1.0, *signs)
                yield factors


def _eliminated(matrix: Floats) -> tuple[Floats, list[int]]:
    """Return the reduced row echelon form (full pivoting) and the column of each pivot."""
    matrix = matrix.copy()
    limit = VANISHING * np.abs(matrix).max(initial=0.0)
    pivots: list[int] = []
    for step in range(min(matrix.shape)):
        rest = np.abs(matrix[step:])
        row, column = divmod(int(rest.argmax()), rest.shape[1])
        if rest[row, column] <= limit:
            break
        matrix[[step, step + row]] = matrix[[step + row, step]]
        matrix[step] /= matrix[step, column]
        others = np.arange(len(matrix)) != step
        matrix[others] -= np.outer(matrix[others, column], matrix[step])
        pivots.append(column)
    return matrix, pivots


def _holds(rule: Rule, names: Sequence[str], values: Floats) -> bool:
    """Return True if a sum holds in all complete records, enough of them distinct and not all 0."""
    chosen = values[:, [list(names).index(name) for name in rule.columns]]
    chosen = chosen[~np.isnan(chosen).any(axis=1)]
    if rule.broken(list(chosen.T)).any():
        return False
    telling = chosen[(chosen != 0).any(axis=1)][: 100 * EVIDENCE]
    return len(np.unique(telling, axis=0)) >= EVIDENCE
