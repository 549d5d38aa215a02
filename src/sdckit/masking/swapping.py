"""Rank swapping: values change places with values of near rank."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from sdckit.compiled import Floats, inlined, kernel
from sdckit.progress import track
from sdckit.ranks import OrderedColumn
from sdckit.registry import Parameter, method
from sdckit.scratch import borrowed

Words = npt.NDArray[np.uint64]  # one bit per rank, set once the rank is dealt with

TRIES = 64  # draws that may hit a taken rank before the free ones are counted
BATCH = 1 << 14  # random numbers at a time: they stay in the cache

# Unsigned constants: numba turns a mix of signed and unsigned integers into floats.
NONE, ONE, WORD, LAST = np.uint64(0), np.uint64(1), np.uint64(6), np.uint64(63)

# A de Bruijn sequence multiplied by a power of two shows a different pattern in its leading six
# bits for each power: a table of these patterns finds the lowest set bit without a loop.
DE_BRUIJN, LEADING = np.uint64(0x03F79D71B4CB0A89), np.uint64(58)
BIT_NUMBER = np.zeros(64, np.int64)
for _bit in range(64):
    BIT_NUMBER[((int(DE_BRUIJN) << _bit) & (2**64 - 1)) >> int(LEADING)] = _bit


@inlined
def _is_taken(taken: Words, rank: np.uint64) -> bool | np.bool_:
    return (taken[rank >> WORD] >> (rank & LAST)) & ONE != NONE


@kernel
def _sweep(i: int, window: int, taken: Words, ordered: Floats, draws: Floats) -> int | np.int64:
    """Swap each value not swapped yet, from rank `i` upwards, with a random one at most `window` ahead.

    Returns the rank to go on with when the draws run out.
    """
    n = ordered.size
    used = 0
    word = np.uint64(i) >> WORD
    passed = (ONE << (np.uint64(i) & LAST)) - ONE  # ranks of this word that the sweep has left behind
    while word < np.uint64(taken.size):
        free = ~(taken[word] | passed)
        while free != NONE:
            lowest = free & (~free + ONE)
            rank = np.int64(word << WORD) + BIT_NUMBER[(lowest * DE_BRUIJN) >> LEADING]
            if used + TRIES + 1 > draws.size:
                return rank
            width = min(window, n - 1 - rank)
            here = other = np.uint64(rank)
            if width > 0:
                for _ in range(TRIES):
                    other = np.uint64(rank + 1 + int(draws[used] * width))
                    used += 1
                    if not _is_taken(taken, other):
                        break
                if _is_taken(taken, other):
                    other = np.uint64(_pick_free(rank, width, taken, draws[used]))
                    used += 1
                ordered[here], ordered[other] = ordered[other], ordered[here]
                taken[other >> WORD] |= ONE << (other & LAST)
            passed |= lowest | (lowest - ONE)
            free = ~(taken[word] | passed)
        word += ONE
        passed = NONE
    return n


@kernel
def _pick_free(rank: int, width: int, taken: Words, draw: float) -> int:
    """A uniform choice among the free ranks of the window; the rank itself if there is none."""
    free = 0
    for candidate in range(rank + 1, rank + 1 + width):
        free += not _is_taken(taken, np.uint64(candidate))
    wanted = int(draw * free)
    for candidate in range(rank + 1, rank + 1 + width):
        if not _is_taken(taken, np.uint64(candidate)):
            if wanted == 0:
                return candidate
            wanted -= 1
    return rank


def swap_ranks(ordered: Floats, window: int, rng: np.random.Generator) -> None:
    """Swap ascending values in place, none by more than `window` ranks."""
    n = ordered.size
    if window < 1 or n < 2:
        return
    taken = np.zeros(-(-n // 64), np.uint64)
    if n % 64:
        taken[-1] = 2**64 - 2 ** (n % 64)  # ranks beyond the last one
    draws = np.empty(max(min(BATCH, n), 2 * TRIES))
    i = 0
    with track("rank swapping", n) as report:
        while i < n:
            i = int(_sweep(i, window, taken, ordered, rng.random(out=draws)))
            report(i)


@method(
    title="rank swapping",
    parameters=(
        Parameter(
            "p",
            float,
            0.05,
            "largest move in ranks, as a share of the records",
            low=0,
            high=1,
            grid=tuple(i / 1000 for i in range(1, 301)),
        ),
        Parameter(
            "tails", float, 0.0, "share at each end replaced by its mean and not swapped", low=0, high=0.49
        ),
        Parameter(
            "bound",
            str,
            "inclusive",
            "whether the largest move itself is allowed",
            choices=("inclusive", "exclusive"),
        ),
    ),
    keeps=("the values of each variable (without tails)", "ranks, up to the largest move"),
    random=True,
    reference="Moore 1996, U.S. Bureau of the Census, Statistical Research Division, RR 96-04",
)
def rank_swap(
    values: Floats, *, p: float = 0.05, tails: float = 0.0, bound: str = "inclusive", rng: np.random.Generator
) -> Floats:
    """Swap each value of a variable with one of near rank.

    From the lowest rank upwards, each value not swapped yet changes places with a random free one
    at most h = floor(p*n) ranks ahead. Every variable keeps exactly its values, so all marginal
    statistics survive; relations between variables weaken with p. The bound on the move is public
    knowledge: an intruder can search within it.

    Parameters
    ----------
    values
        n x p matrix; NaN cells are missing and stay so, n counts the observed ones.
    p
        Largest move as a share of the number of records.
    tails
        The ceil(n*tails) - 1 lowest and highest values are replaced by their means and take no
        part; 0.05 is the default of R's sdcMicro.
    bound
        "inclusive" allows moves of h ranks, "exclusive" of h - 1, as R's sdcMicro does, with h
        from the number of values that take part.
    rng
        Source of randomness.

    Returns
    -------
    numpy.ndarray

    References
    ----------
    Moore 1996, Controlled data-swapping techniques for masking public use microdata, U.S. Bureau
    of the Census, Statistical Research Division Report Series, RR 96-04.

    Examples
    --------
    >>> import sdckit as sdc
    >>> values = [3.0, 1.0, 2.0, 4.0]
    >>> sorted(float(value) for value in sdc.mask(values, "rank_swap", p=0.5, rng=1))
    [1.0, 2.0, 3.0, 4.0]
    """
    masked = values.copy(order="F")
    for j in range(values.shape[1]):
        seen = np.flatnonzero(~np.isnan(values[:, j]))
        if seen.size > 1:
            column = OrderedColumn(values[seen, j])
            masked[seen, j] = swapped(column, p, tails, bound, rng)
    return masked


def swapped(column: OrderedColumn, p: float, tails: float, bound: str, rng: np.random.Generator) -> Floats:
    """One swapped column, by row."""
    tail = max(math.ceil(column.n * tails) - 1, 0)
    end = column.n - tail
    window = math.floor((end - tail) * p + 1e-9) - (bound == "exclusive")  # 0.29 * 100 is a little below 29
    with borrowed(column.n) as scratch:
        ordered = scratch.view(np.float64)
        ordered[:] = column.sorted
        if tail:
            ordered[:tail] = ordered[:tail].mean()
            ordered[end:] = ordered[end:].mean()
        swap_ranks(ordered[tail:end], window, rng)
        return ordered.take(column.rank)
