"""Rank swapping: values change places with values of near rank."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sdckit.compiled import Floats, Ints, inlined, kernel
from sdckit.keys import SMALL
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


def _untaken(n: int) -> Words:
    """The bits of n free ranks."""
    taken = np.zeros(-(-n // 64), np.uint64)
    if n % 64:
        taken[-1] = 2**64 - 2 ** (n % 64)  # ranks beyond the last one
    return taken


def swap_ranks(ordered: Floats, window: int, rng: np.random.Generator) -> None:
    """Swap ascending values in place, none by more than `window` ranks."""
    n = ordered.size
    if window < 1 or n < 2:
        return
    taken = _untaken(n)
    draws = np.empty(max(min(BATCH, n), 2 * TRIES))
    i = 0
    with track("rank swapping", n) as report:
        while i < n:
            i = int(_sweep(i, window, taken, ordered, rng.random(out=draws)))
            report(i)


@kernel
def _sweep_stack(reached: Ints, window: int, taken: Words, ordered: Floats, draws: Floats) -> None:
    """The same for one line per column, each from the rank that it has reached."""
    for j in range(len(ordered)):
        if reached[j] < ordered.shape[1]:
            reached[j] = _sweep(reached[j], window, taken[j], ordered[j], draws[j])


def swap_stack(ordered: Floats, window: int, rng: np.random.Generator) -> None:
    """Swap each line of short columns, see `swap_ranks`."""
    p, n = ordered.shape
    if window < 1 or n < 2:
        return
    taken = np.empty((p, -(-n // 64)), np.uint64)
    taken[:] = _untaken(n)
    reached = np.zeros(p, np.int64)
    while (reached < n).any():  # one round of draws is enough, as a rule
        _sweep_stack(reached, window, taken, ordered, rng.random((p, n + TRIES + 1)))


@kernel
def _level_tails(ordered: Floats, tail: int) -> None:
    """Replace the lowest and the highest values of each line by their means."""
    for j in range(len(ordered)):
        for part in (ordered[j, :tail], ordered[j, -tail:]):
            ends = min(part[0], part[-1]), max(part[0], part[-1])
            part[:] = min(
                max(part.mean(), ends[0]), ends[1]
            )  # the mean of equal values can miss them by a bit


@kernel
def _hand_out(ordered: Floats, rank: Ints, masked: Floats) -> None:
    """Give each row the value that its rank has now."""
    for j in range(len(ordered)):
        for i in range(ordered.shape[1]):
            masked[j, i] = ordered[j, rank[j, i]]


class Orders:
    """The columns of a file in order, each without its missing cells."""

    def __init__(self, values: Floats) -> None:
        self.seen = [np.flatnonzero(~np.isnan(column)) for column in values.T]
        self.columns = [OrderedColumn(values[rows, j]) for j, rows in enumerate(self.seen)]
        self.short = len(values) < SMALL and all(rows.size == len(values) for rows in self.seen)

    @cached_property
    def stacked(self) -> tuple[Floats, Ints]:
        """Sorted values and ranks of short and complete columns, one line each."""
        return np.stack([c.sorted for c in self.columns]), np.stack([c.rank for c in self.columns])


def largest_move(options: dict[str, Any], values: Floats) -> int:
    """How many ranks a value moves at most."""
    n = len(values)
    rule = Rule(options["p"], options["tails"], options["bound"] == "exclusive")
    shorter = math.ceil(1 / rule.tails) if rule.tails else 0  # a column with missing cells may move more
    return max(0, *(rule.window(m)[1] for m in range(max(n - shorter, 0), n + 1)))


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
        Parameter("start", str, "lowest", "the value that swaps first", choices=("lowest", "highest")),
    ),
    default=True,
    keeps=("the values of each variable (without tails)", "ranks, up to the largest move"),
    basis=Orders,
    random=True,
    window=largest_move,
    reference="Moore 1996, U.S. Bureau of the Census, Statistical Research Division, RR 96-04",
)
def rank_swap(
    values: Floats,
    *,
    p: float = 0.05,
    tails: float = 0.0,
    bound: str = "inclusive",
    start: str = "lowest",
    rng: np.random.Generator,
    basis: Orders | None = None,
) -> Floats:
    """Swap each value of a variable with one of near rank.

    From one end to the other, each value not swapped yet changes places with a random free one
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
    start
        "lowest" goes upwards; "highest" goes downwards, as R's sdcMicro does. Values near the end
        have fewer partners left, so skewed variables change a little more or less.
    rng
        Source of randomness.
    basis
        `Orders(values)`, where it is known.

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
    orders = Orders(values) if basis is None else basis
    rule = Rule(p, tails, bound == "exclusive", start == "highest")
    if orders.short:
        return _swapped_stack(orders, rule, rng)
    masked = values.copy(order="F")
    for j, (seen, column) in enumerate(zip(orders.seen, orders.columns, strict=True)):
        if seen.size > 1:
            masked[seen, j] = swapped(column, rule, rng)
    return masked


class Rule(NamedTuple):
    """The parameters of a swapping."""

    p: float
    tails: float = 0.0
    exclusive: bool = False
    downwards: bool = False

    def window(self, n: int) -> tuple[int, int]:
        """How many values at each end take no part, and the largest move of the others."""
        tail = max(math.ceil(n * self.tails) - 1, 0)
        return tail, math.floor((n - 2 * tail) * self.p + 1e-9) - self.exclusive  # 0.29 * 100 is below 29


def swapped(column: OrderedColumn, rule: Rule, rng: np.random.Generator) -> Floats:
    """One swapped column, by row."""
    tail, window = rule.window(column.n)
    with borrowed(column.n) as scratch:
        ordered = scratch.view(np.float64)
        ordered[:] = column.sorted[::-1] if rule.downwards else column.sorted
        if tail:
            _level_tails(ordered[None, :], tail)
        swap_ranks(ordered[tail : column.n - tail], window, rng)
        return ordered.take(column.n - 1 - column.rank if rule.downwards else column.rank)


def _swapped_stack(orders: Orders, rule: Rule, rng: np.random.Generator) -> Floats:
    """All columns of a short file: the same in a few calls."""
    values, rank = orders.stacked
    n = values.shape[1]
    tail, window = rule.window(n)
    ordered = values[:, ::-1].copy() if rule.downwards else values.copy()
    if tail:
        _level_tails(ordered, tail)
    swap_stack(ordered[:, tail : n - tail], window, rng)
    masked = np.empty_like(ordered)
    _hand_out(ordered, n - 1 - rank if rule.downwards else rank, masked)
    return masked.T
