"""Chance level of an attack: its expected success if masked and original records were unrelated.

Simple formulas fail under ties, so the masked rows are permuted and the attack is run again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sdckit.metrics.averages import divide_or_nan
from sdckit.metrics.pair import Pair
from sdckit.metrics.score import Values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sdckit.kernels.jit import Ints

MOST, FEWEST = 20, 2  # permutations of short and of long files
RECORDS = 200_000  # permuted in all, within these bounds: a mean over many records needs few permutations


def permutations(n: int, blocks: Ints | None = None) -> Iterator[Ints]:
    """Yield random orders of n records, the same at every call: 20 for short files, down to 2 for long.

    With `blocks`, records change places within their block only.
    """
    rng = np.random.default_rng(0)
    for _ in range(min(MOST, max(FEWEST, RECORDS // n))):
        yield rng.permutation(n) if blocks is None else _permutation_within(blocks, rng)


def _permutation_within(blocks: Ints, rng: np.random.Generator) -> Ints:
    """Return a random order of the records in which each stays in its block."""
    found = np.empty(len(blocks), np.int64)
    found[np.argsort(blocks, kind="stable")] = np.lexsort((rng.random(len(blocks)), blocks))
    return found


def shuffled_pairs(pair: Pair) -> Iterator[Pair]:
    """Yield the pair with its masked records permuted, once for each of the `permutations`."""
    for rows in permutations(pair.original.n):
        masked = np.asfortranarray(pair.masked[rows])
        yield Pair(pair.original, masked, window=pair.window, rules=pair.rules)


def mean_level(levels: Iterable[Values]) -> Values:
    """Return the mean of the values over permutations, NaN left out; NaN where all are NaN."""
    lines = np.array([[level.overall, *level.variables] for level in levels])
    known = ~np.isnan(lines)
    total, count = np.where(known, lines, 0.0).sum(0), known.sum(0)
    means = divide_or_nan(total, count)
    return Values(float(means[0]), means[1:])
