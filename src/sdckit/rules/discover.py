"""Discovery of edit rules in data: totals that are sums of other columns, and columns never negative."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from sdckit.kernels.sums import powers_of_two
from sdckit.rules.parse import rule_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sdckit.arrays import Floats, Ints
    from sdckit.rules.parse import Rule

EVIDENCE = 10  # fewest distinct records that must satisfy a sum
SPARE = 100  # records beyond the number of columns that are searched for relations
VANISHING = 1e-10  # share of the largest entry below which elimination treats an entry as 0
CLOSE = 1e-5  # largest deviation from -1, 0 or 1 of a factor that is tried on all records
COMBINED = 200_000  # most combinations of dependent columns that are tried
MISSING = 0.5  # columns with a larger share of missing cells take part in no sum


def discovered(names: Sequence[str], values: Floats) -> list[Rule]:
    """Return the edit rules that hold in the data: totals of other columns, then columns never negative."""
    zero = Fraction(0)
    lowest = np.fmin.reduce(values, axis=0)
    signs = [
        rule_of({name: -1}, zero, equality=False) for name, low in zip(names, lowest, strict=True) if low >= 0
    ]
    return [*discovered_sums(names, values), *signs]


def discovered_sums(names: Sequence[str], values: Floats) -> list[Rule]:
    """Return independent rules "total = sum of parts" that hold in every complete record of the data.

    Columns that do not vary, or have few values, are no parts; of equal columns, the first stands for all.
    """
    varying = np.fmin.reduce(values, axis=0) < np.fmax.reduce(values, axis=0)
    seen = np.isnan(values).mean(axis=0) <= MISSING
    used = [int(j) for j in np.flatnonzero(varying & seen)]
    found: list[Rule] = []
    for j, first in equal_columns(values, used):
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


def equal_columns(values: Floats, used: list[int]) -> list[tuple[int, int]]:
    """Return pairs (j, i) of columns with equal values, i being the first column that equals column j."""
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
    """Return distinct complete records of the used columns, drawn with a fixed seed from the file."""
    gaps = np.zeros(len(values), np.bool_)
    for j in used:
        gaps |= np.isnan(values[:, j])
    complete = np.flatnonzero(~gaps)
    size = len(used) + SPARE
    if len(complete) > 4 * size:
        complete = np.random.default_rng(0).choice(complete, 4 * size, replace=False)
    return np.unique(values[complete][:, used], axis=0)


def _relations(sample: Floats) -> Iterator[Ints]:
    """Yield vectors of factors -1, 0, 1, one per column, whose sum is 0 in all sampled records.

    Exactly one factor differs in sign from all others: one total minus its parts. Elimination leaves some
    columns as combinations of the others; the factors of the former fix a relation, so only these are tried.
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
    for factors in itertools.islice(sign_vectors(len(loose)), COMBINED):
        relation = factors @ basis
        whole = np.rint(relation)
        if np.abs(relation - whole).max() < CLOSE and np.abs(whole).max() == 1:
            plus, minus = (whole > 0).sum(), (whole < 0).sum()
            if min(plus, minus) == 1 and plus + minus > 2:
                yield whole.astype(np.int64) * (1 if plus == 1 else -1)


def sign_vectors(count: int) -> Iterator[Floats]:
    """Yield every vector of `count` factors -1, 0 or 1 up to its sign, those with few non-zeros first."""
    for size in range(1, count + 1):
        for column_numbers in itertools.combinations(range(count), size):
            for signs in itertools.product((1.0, -1.0), repeat=size - 1):
                factors = np.zeros(count)
                factors[list(column_numbers)] = (1.0, *signs)
                yield factors


def _eliminated(matrix: Floats) -> tuple[Floats, list[int]]:
    """Return the reduced row echelon form of a matrix (full pivoting) and the column of each pivot."""
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
    """Return True if a rule holds in all complete records and enough of them are distinct and not all 0."""
    chosen = values[:, [list(names).index(name) for name in rule.columns]]
    chosen = chosen[~np.isnan(chosen).any(axis=1)]
    if rule.broken(list(chosen.T)).any():
        return False
    nonzero = chosen[(chosen != 0).any(axis=1)][: 100 * EVIDENCE]
    return len(np.unique(nonzero, axis=0)) >= EVIDENCE
