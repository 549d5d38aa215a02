"""Kernels of rank swapping: swap ascending values in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sdckit.kernels.jit import Floats, Int, Ints, inlined, inner, kernel
from sdckit.progress import track

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sdckit.kernels.draws import UniformSequence

    Uniforms = np.random.Generator | UniformSequence

Words = npt.NDArray[np.uint64]  # one bit per rank, set once its value has been swapped

TRIES = 64  # draws that may hit a swapped rank before the free ones are counted
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
    """Return True if the bit of a rank is set: its value has been swapped."""
    return (taken[rank >> WORD] >> (rank & LAST)) & ONE != NONE


@kernel
def _sweep(
    i: int, stop: int, n: int, window: int, taken: Words, ordered: Floats, base: int, draws: Floats, used: int
) -> tuple[Int, Int]:
    """Swap each value not yet swapped, from rank `i` upwards, with a random one at most `window` ahead.

    `ordered` has the values from rank `base` on, of n in all. Returns the rank to go on with, `stop` or more
    unless the draws ran out, and how many draws were used up to then.
    """
    word = np.uint64(i) >> WORD
    passed = (ONE << (np.uint64(i) & LAST)) - ONE  # ranks of this word that the sweep has left behind
    while word < np.uint64(taken.size):
        free = ~(taken[word] | passed)
        while free != NONE:
            lowest = free & (~free + ONE)
            rank = np.int64(word << WORD) + BIT_NUMBER[(lowest * DE_BRUIJN) >> LEADING]
            if rank >= stop or used + TRIES + 1 > draws.size:
                return rank, used
            width = min(window, n - 1 - rank)
            other = np.uint64(rank)
            if width > 0:
                for _ in range(TRIES):
                    other = np.uint64(rank + 1 + int(draws[used] * width))
                    used += 1
                    if not _is_taken(taken, other):
                        break
                if _is_taken(taken, other):
                    other = np.uint64(_pick_free(rank, width, taken, draws[used]))
                    used += 1
                here, there = rank - base, np.int64(other) - base
                ordered[here], ordered[there] = ordered[there], ordered[here]
                taken[other >> WORD] |= ONE << (other & LAST)
            passed |= lowest | (lowest - ONE)
            free = ~(taken[word] | passed)
        word += ONE
        passed = NONE
    return n, used


@inner
def _pick_free(rank: int, width: int, taken: Words, draw: float) -> int:
    """Return a uniformly drawn rank not yet swapped within the window; the rank itself if there is none."""
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


def _no_ranks_taken(n: int) -> Words:
    """Return a bit mask for n ranks, none of which has been swapped."""
    taken = np.zeros(-(-n // 64), np.uint64)
    if n % 64:
        taken[-1] = 2**64 - 2 ** (n % 64)  # ranks beyond the last one
    return taken


def swap_ranks(ordered: Floats, window: int, rng: Uniforms) -> None:
    """Swap ascending values in place, each with a random other one, none by more than `window` ranks."""
    n = ordered.size
    if window < 1 or n < 2:
        return
    taken = _no_ranks_taken(n)
    draws = _empty_draws(n)
    i = 0
    with track("rank swapping", n) as report:
        while i < n:
            i = int(_sweep(i, n, n, window, taken, ordered, 0, rng.random(out=draws), 0)[0])
            report(i)


def partner_ranks(n: int, window: int, rng: Uniforms, stretch: int) -> Iterator[Ints]:
    """Yield the rank that each rank swaps with in `swap_ranks`, by stretches of ranks; itself if none.

    Takes as much memory as a stretch and the window behind it, and a bit for each rank.
    """
    if window < 1:
        yield from (np.arange(first, min(first + stretch, n)) for first in range(0, n, stretch))
        return
    taken, draws = _no_ranks_taken(n), _empty_draws(n)
    i, used = 0, draws.size
    partners = np.empty(0)
    for first in range(0, n, stretch):
        end = min(first + stretch, n)
        partners = np.append(
            partners, np.arange(first + partners.size, min(end + window, n), dtype=np.float64)
        )
        while i < end:
            if used + TRIES + 1 > draws.size:
                rng.random(out=draws)
                used = 0
            found = _sweep(i, end, n, window, taken, partners, first, draws, used)
            i, used = int(found[0]), int(found[1])
        yield partners[: end - first].astype(np.int64)
        partners = partners[end - first :]


def _empty_draws(n: int) -> Floats:
    """Return the array for the random numbers of one batch, for n ranks."""
    return np.empty(max(min(BATCH, n), 2 * TRIES))


@kernel
def _sweep_stack(reached: Ints, window: int, taken: Words, ordered: Floats, draws: Floats) -> None:
    """Go on with rank swapping in each of several sorted columns, from the rank that it has reached."""
    n = ordered.shape[1]
    for j in range(len(ordered)):
        if reached[j] < n:
            reached[j] = _sweep(reached[j], n, n, window, taken[j], ordered[j], 0, draws[j], 0)[0]


def swap_stack(ordered: Floats, window: int, rng: np.random.Generator) -> None:
    """Swap the values of each line in place as `swap_ranks` does; for short columns."""
    p, n = ordered.shape
    if window < 1 or n < 2:
        return
    taken = np.empty((p, -(-n // 64)), np.uint64)
    taken[:] = _no_ranks_taken(n)
    reached = np.zeros(p, np.int64)
    while (reached < n).any():  # usually one round of draws is enough
        _sweep_stack(reached, window, taken, ordered, rng.random((p, n + TRIES + 1)))


@kernel
def level_tails(ordered: Floats, tail: int) -> None:
    """Replace the `tail` lowest and the `tail` highest values of each line, in place, by their means."""
    for j in range(len(ordered)):
        for part in (ordered[j, :tail], ordered[j, -tail:]):
            ends = min(part[0], part[-1]), max(part[0], part[-1])
            # The mean of equal values can differ from them by a bit.
            part[:] = min(max(part.mean(), ends[0]), ends[1])


@kernel
def copy_by_rank(ordered: Floats, rank: Ints, masked: Floats) -> None:
    """Write to each row of `masked` the swapped value at that row's rank; one line per column."""
    for j in range(len(ordered)):
        for i in range(ordered.shape[1]):
            masked[j, i] = ordered[j, rank[j, i]]


@inner
def _free_above(above: Ints, rank: int) -> int:
    """Return the lowest rank not yet swapped from `rank` upwards; the number of ranks if there is none."""
    while above[rank] != rank:
        above[rank] = above[above[rank]]  # shortens the path of later searches
        rank = above[rank]
    return rank


@inner
def _free_below(below: Ints, rank: int) -> int:
    """Return 1 + the highest rank not yet swapped up to `rank`; 0 if there is none."""
    rank += 1
    while below[rank] != rank:
        below[rank] = below[below[rank]]
        rank = below[rank]
    return rank


@kernel
def swap_by_moves(ordered: Floats, moves: Ints) -> None:
    """Swap each value not yet swapped with the free rank nearest to its drawn move, lowest first, in place.

    Of two free ranks at the same distance the lower one; a value whose move is 0 stays.
    """
    n = ordered.size
    above, below = np.arange(n + 1), np.arange(n + 1)
    for rank in range(n):
        if above[rank] != rank:
            continue
        above[rank], below[rank + 1] = rank + 1, rank
        if moves[rank] == 0:
            continue
        target = min(rank + moves[rank], n - 1)
        high, low = _free_above(above, target), _free_below(below, target) - 1
        if high == n and low < 0:
            continue
        other = low if high == n or (low >= 0 and target - low <= high - target) else high
        ordered[rank], ordered[other] = ordered[other], ordered[rank]
        above[other], below[other + 1] = other + 1, other
