"""Swapping and noise of ranks: values stay, records exchange them."""

from __future__ import annotations

import math
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sdckit.arrays import Floats, Int, Ints
from sdckit.core import checks
from sdckit.core.registry import InBlocks, Parameter, independent, method
from sdckit.kernels.draws import CellDraws, normals
from sdckit.kernels.jit import inlined, inner, kernel
from sdckit.kernels.ranks import SMALL, OrderedColumn
from sdckit.kernels.sums import powers_of_two
from sdckit.masking.microaggregation import FEWEST
from sdckit.progress import track

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sdckit.core.registry import Stated
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


MOVES = tuple(i / 1000 for i in range(1, 301))  # as shares of the records
BOUNDS = ("inclusive", "exclusive")
QUANTILES = 100_001  # points between which the distribution of noisy places is taken as linear


class Orders:
    """Each column of a matrix sorted without its missing cells, with the rows of its observed cells."""

    def __init__(self, values: Floats) -> None:
        self.seen: list[Ints] = [np.flatnonzero(~np.isnan(column)) for column in values.T]
        self.columns: list[OrderedColumn] = [
            OrderedColumn(values[rows, j]) for j, rows in enumerate(self.seen)
        ]
        self.short: bool = len(values) < SMALL and all(rows.size == len(values) for rows in self.seen)

    @cached_property
    def stacked(self) -> tuple[Floats, Ints]:
        """Sorted values and ranks of all columns as two matrices, one row per column; only if `short`."""
        return np.stack([c.sorted for c in self.columns]), np.stack([c.rank for c in self.columns])


def largest_move(options: dict[str, Any], values: Floats) -> Floats:
    """Return the largest number of ranks by which rank swapping can move a value, for each column."""
    parameters = swap_parameters(**options)
    if parameters.adapts:
        found = [
            parameters.for_column(column.sorted).window(column.n)[1] for column in Orders(values).columns
        ]
    else:
        found = [parameters.window(int(seen))[1] for seen in (~np.isnan(values)).sum(axis=0)]
    return np.maximum(np.array(found, np.float64), 0.0)


def notes_on_tails(values: Floats, options: dict[str, Any]) -> list[str]:
    """Return a note if a tail has so few values that its mean discloses single values."""
    seen = (~np.isnan(values)).sum(axis=0)
    tails = [SwapParameters(0, options["tails"]).window(int(n))[0] for n in seen]
    if not any(0 < tail < FEWEST for tail in tails):
        return []
    return [f"a tail has fewer than {FEWEST} values, so its mean discloses single values; raise tails"]


def values_of_all(options: Mapping[str, Any]) -> str | None:
    """Return the parameters that need the values of a column at once: tails, r0, k0; None without them."""
    return ", ".join(name for name in ("tails", "r0", "k0") if options[name] > 0) or None


@method(
    title="rank swapping",
    place=80,
    colour="pink",
    parameters=(
        Parameter(
            "p", float, 0.05, "largest move in ranks, as a share of the records", low=0, high=1, grid=MOVES
        ),
        Parameter(
            "tails", float, 0.0, "share at each end replaced by its mean and not swapped", low=0, high=0.49
        ),
        Parameter("bound", str, "inclusive", "whether the largest move itself is allowed", choices=BOUNDS),
        Parameter("start", str, "lowest", "the value that swaps first", choices=("lowest", "highest")),
        Parameter(
            "r0",
            float,
            0.0,
            "correlation with the original that sets p by variable; 0: not used",
            low=0,
            high=1,
            off=0.0,
        ),
        Parameter(
            "k0",
            float,
            0.0,
            "share of the mean that means may miss, sets p by variable; 0: not used",
            low=0,
            off=0.0,
        ),
    ),
    keeps=("the values of each variable (tails=0)", "ranks, up to the largest move"),
    basis=Orders,
    random=True,
    window=largest_move,
    release_notes=notes_on_tails,
    in_blocks=InBlocks(how="ranks", refused=values_of_all),
    reference="Moore 1996, U.S. Bureau of the Census, Statistical Research Division, RR 96-04",
)
def rank_swap(
    values: Floats,
    *,
    p: float = 0.05,
    tails: float = 0.0,
    bound: str = "inclusive",
    start: str = "lowest",
    r0: float = 0.0,
    k0: float = 0.0,
    rng: np.random.Generator | CellDraws,
    basis: Orders | None = None,
) -> Floats:
    """Swap values of near rank, to compare with the literature; who holds the original undoes it.

    From one end to the other, each value not swapped yet changes places with a random free one
    at most h = floor(p*n) ranks ahead. Every variable keeps exactly its values, so all marginal
    statistics survive; relations between variables weaken with p.

    Good for studies and for comparison with what was published before. Not for a release to anybody
    who may hold the original values: values change places in pairs, so that each guess of who a record
    is implies another one in every variable, and wrong guesses contradict each other; an intruder who
    holds the original file undoes the swaps completely, whatever p is (see `rank_noise`). The bound on
    the move is public knowledge, too. With `r0` or `k0` it follows from the values of each variable,
    which an intruder estimates from the release.

    Parameters
    ----------
    values
        n x p matrix; NaN cells are missing and stay so, n counts the observed ones.
    p
        Largest move as a share of the number of records; ignored where `r0` or `k0` is set.
    tails
        The ceil(n*tails) - 1 lowest and highest values are replaced by their means and take no
        part; 0.05 is the default of R's sdcMicro.
    bound
        "inclusive" allows moves of h ranks, "exclusive" of h - 1, as R's sdcMicro does, with h
        from the number of values that take part.
    start
        "lowest" goes upwards; "highest" goes downwards, as R's sdcMicro does. Values near the end
        have fewer partners left, so skewed variables change a little more or less.
    r0
        Correlation with the original to aim at, of the values that take part.
    k0
        Share of a variable's mean by which means of subsets may change, to aim at.
    rng
        Source of randomness.
    basis
        `Orders(values)`, where it is known.

    Returns
    -------
    numpy.ndarray

    Notes
    -----
    With C the distance between the values at which the tails end (without tails the range), and
    mean and variance (ddof 0) of the values that take part,

        r0: p = sqrt(2 variance (1 - r0)) / C,   k0: p = sqrt(8/3) k0 |mean| / C,

    at most 1, as in R's sdcMicro. The formulas take ranks for distances: equally spaced values keep a
    correlation well above `r0`, skewed variables fall short of it. Tarragona with r0 = 0.95 keeps 0.90
    to 0.97 among the values that take part with tails of 0.05 (0.75 to 0.88 of all values, the levelled
    ones included), and 0.63 to 0.93 without tails. Measure what was reached.

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
    parameters = swap_parameters(p=p, tails=tails, bound=bound, start=start, r0=r0, k0=k0)
    if orders.short and not parameters.adapts and not isinstance(rng, CellDraws):
        return _swapped_stack(orders, parameters, rng)
    masked = values.copy(order="F")
    for j, (seen, column) in enumerate(zip(orders.seen, orders.columns, strict=True)):
        if seen.size > 1:
            uniforms = rng.of_column(j).sequence() if isinstance(rng, CellDraws) else rng
            masked[seen, j] = swapped(column, parameters, uniforms)
    return masked


class SwapParameters(NamedTuple):
    """Parameters of rank swapping; r0 or k0 above 0 replace the share p by one that fits each column."""

    p: float
    tails: float = 0.0
    exclusive: bool = False
    downwards: bool = False
    r0: float = 0.0
    k0: float = 0.0

    @property
    def adapts(self) -> bool:
        """True if the largest move depends on the values of a column: r0 or k0 is above 0."""
        return self.r0 > 0 or self.k0 > 0

    def for_column(self, ordered: Floats) -> SwapParameters:
        """Return the parameters for one column of ascending values, with p computed from r0 or k0."""
        return self._replace(p=self._share(ordered), r0=0.0, k0=0.0) if self.adapts else self

    def _share(self, ordered: Floats) -> float:
        """Return the largest move in a column as a share of its values, computed from r0 or k0."""
        n = ordered.size
        tail = self.window(n)[0]
        ends = [max(tail - 1, 0), min(n - tail, n - 1)]  # where the tails end, or the ends of the column
        if n < 2 or ordered[ends[0]] == ordered[ends[1]]:
            return 0.0
        scaled = ordered / powers_of_two(ordered)  # no difference must leave the range of numbers
        low, cut = float(scaled[ends[0]]), float(np.diff(scaled[ends])[0])
        inside = (scaled[tail : n - tail] - low) / cut
        if self.r0 > 0:
            return min(math.sqrt(2 * float(inside.var()) * (1 - self.r0)), 1.0)
        return min(math.sqrt(8 / 3) * self.k0 * abs(float(inside.mean()) + low / cut), 1.0)

    def window(self, n: int) -> tuple[int, int]:
        """Return how many of n values at each end are not swapped, and the largest move in ranks."""
        tail = max(checks.whole_share_up(self.tails, n) - 1, 0)
        return tail, checks.whole_share(self.p, n - 2 * tail) - self.exclusive


def swap_parameters(
    *, p: float, tails: float, bound: str, start: str = "lowest", r0: float = 0.0, k0: float = 0.0
) -> SwapParameters:
    """Return `SwapParameters` from the method's options; raise ValueError if both r0 and k0 are set."""
    if r0 > 0 and k0 > 0:
        raise ValueError(f"r0 is {r0:g} and k0 is {k0:g}; set one of them and leave the other at 0")
    return SwapParameters(p, tails, bound == "exclusive", start == "highest", r0, k0)


def swapped(column: OrderedColumn, parameters: SwapParameters, rng: Uniforms) -> Floats:
    """Return one column after rank swapping, its values in the order of the rows."""
    tail, window = parameters.for_column(column.sorted).window(column.n)
    ordered = (column.sorted[::-1] if parameters.downwards else column.sorted).copy()
    if tail:
        level_tails(ordered[None, :], tail)
    swap_ranks(ordered[tail : column.n - tail], window, rng)
    return ordered.take(column.n - 1 - column.rank if parameters.downwards else column.rank)


def _swapped_stack(orders: Orders, parameters: SwapParameters, rng: np.random.Generator) -> Floats:
    """Return the matrix after rank swapping all columns of a short file without missing cells at once."""
    values, rank = orders.stacked
    n = values.shape[1]
    tail, window = parameters.window(n)
    ordered = values[:, ::-1].copy() if parameters.downwards else values.copy()
    if tail:
        level_tails(ordered, tail)
    swap_stack(ordered[:, tail : n - tail], window, rng)
    masked = np.empty_like(ordered)
    copy_by_rank(ordered, n - 1 - rank if parameters.downwards else rank, masked)
    return masked.T


@method(
    title="rank swapping by drawn moves",
    place=80,
    parameters=(
        Parameter(
            "p",
            float,
            0.1,
            "twice mean and deviation of the drawn move in ranks, as a share of the records",
            low=0,
            high=1,
            grid=tuple(i / 50 for i in range(1, 26)),
        ),
    ),
    keeps=("the values of each variable",),
    basis=Orders,
    random=True,
    reference="Nin, Herranz & Torra 2008, doi:10.1016/j.datak.2007.07.006",
    experimental=True,
)
def p_distribution_swap(
    values: Floats, *, p: float = 0.1, rng: np.random.Generator, basis: Orders | None = None
) -> Floats:
    """Swap values at drawn distances in ranks, to compare with the literature; who holds them undoes it.

    From the lowest to the highest, each value not swapped yet changes places with the free one
    nearest to the place that a draw names. Every variable keeps exactly its values; relations between
    variables weaken with p.

    Good for studies and for comparison with what was published before. Not for a release to anybody
    who may hold the original values: there is no largest move to publish, but values change places in
    pairs as by `rank_swap`, and an intruder who holds the original file undoes the swaps completely,
    whatever p is (see `rank_noise`).

    The article could not be read here. That a move is normal with mean and standard deviation p/2
    is from memory, and so it could not be checked that the second number is a standard deviation, what
    becomes of negative draws and of ranks that are taken. Do not use it where the article's own
    method is needed.

    Parameters
    ----------
    values
        n x p matrix; NaN cells are missing and stay so, n counts the observed ones.
    p
        Mean and standard deviation of the drawn move are half of it, as a share of the number of
        records.
    rng
        Source of randomness.
    basis
        `Orders(values)`, where it is known.

    Returns
    -------
    numpy.ndarray

    Notes
    -----
    The move is the whole number nearest to n |m| with m ~ N(p/2, p/2), and 0 leaves the value where it
    is. All ranks behind are taken, so that the size of a negative draw counts ahead; of a pair of values
    one moves up and the other down in any case. A target beyond the last rank is the last rank.

    References
    ----------
    Nin, Herranz & Torra 2008, Rethinking rank swapping to decrease disclosure risk,
    doi:10.1016/j.datak.2007.07.006.

    Examples
    --------
    >>> import sdckit as sdc
    >>> values = [3.0, 1.0, 2.0, 4.0]
    >>> sorted(float(value) for value in sdc.mask(values, "p_distribution_swap", p=1, rng=1))
    [1.0, 2.0, 3.0, 4.0]
    """
    orders = Orders(values) if basis is None else basis
    masked = values.copy(order="F")
    for j, (seen, column) in enumerate(zip(orders.seen, orders.columns, strict=True)):
        if seen.size > 1:
            ordered = column.sorted.copy()
            swap_by_moves(ordered, drawn_moves(column.n, p, rng))
            masked[seen, j] = ordered[column.rank]
    return masked


def drawn_moves(n: int, p: float, rng: np.random.Generator) -> Ints:
    """Return a random move for each of n ranks: n times the size of a normal draw, in whole ranks."""
    return np.rint(np.abs(p / 2 + p / 2 * normals(rng, (n,))) * n).astype(np.int64)


def _law_of_rank_noise(options: dict[str, Any], values: Floats) -> Stated:
    """Return the law of the noisy places in a column: normal around the original's."""
    a = options["a"]
    return independent(_places(values), a, partial(_noisy_places, a=a))


def _places(values: Floats) -> Floats:
    """Return the middle of each value's ranks in its column, as a share of the records."""
    found = [OrderedColumn(column).ranks2("average") for column in np.asfortranarray(values).T]
    return (np.stack(found, axis=1) + 1) / (2 * len(values))


def _noisy_places(published: Floats, a: float) -> Floats:
    """Return where the noisy places of published values lay: quantiles of U + a Z, U uniform, Z normal."""
    from scipy.special import ndtr  # noqa: PLC0415 - slow to import

    ends = np.linspace(-8 * a, 1 + 8 * a, QUANTILES)
    # The integral of the normal distribution function, at both ends of the uniform one.
    below = [t * ndtr(t) + np.exp(-(t**2) / 2) / math.sqrt(2 * math.pi) for t in (ends / a, (ends - 1) / a)]
    return np.interp(_places(published), a * (below[0] - below[1]), ends)


@method(
    title="rank noise",
    place=80,
    colour="amber",
    parameters=(
        Parameter(
            "a",
            float,
            0.1,
            "standard deviation of the noise on ranks, as a share of the records",
            low=0,
            high=10,
            grid=tuple(i / 200 for i in range(1, 101)),
        ),
    ),
    default=True,
    keeps=("the values of each variable", "places of missing cells"),
    basis=Orders,
    random=True,
    law=_law_of_rank_noise,
    reference="own design, see docs/explanation/methods.md",
)
def rank_noise(
    values: Floats, *, a: float = 0.1, rng: np.random.Generator, basis: Orders | None = None
) -> Floats:
    """Publish the values of each variable in the order of its ranks plus normal noise.

    Every variable keeps exactly its values, so all statistics of single variables survive; relations
    between variables weaken with `a`. A value can move by any number of ranks, and no two values trade
    places: an intruder who holds the original finds neither a largest move nor pairs to undo. Not for
    relations between variables that must survive strong masking (see `mdav`), nor for totals that must
    add up in each record without edit rules.

    Parameters
    ----------
    values
        n x p matrix; NaN cells are missing and stay so, n counts the observed ones.
    a
        Standard deviation of the noise as a share of the number of records; 0 leaves the values as they
        are, and the larger it is, the less the new order has to do with the old one.
    rng
        Source of randomness.
    basis
        `Orders(values)`, where it is known.

    Returns
    -------
    numpy.ndarray

    Notes
    -----
    The n observed cells of a variable have the ranks r = 0 to n - 1 in the order of their values, equal
    values in a random order. Each cell gets the key r + a n Z with Z standard normal, and the cell with
    the k-th smallest key gets the k-th smallest value. Without ties the loss `brmae` is about 0.08, 0.14,
    0.21, 0.26, 0.31 and 0.41 for a = 0.05, 0.1, 0.15, 0.2, 0.25 and 0.4; 0.67 is that of unrelated order.

    References
    ----------
    Own design, see docs/explanation/methods.md.

    Examples
    --------
    >>> import sdckit as sdc
    >>> values = [3.0, 1.0, 2.0, 4.0]
    >>> sorted(float(value) for value in sdc.mask(values, "rank_noise", a=0.5, rng=1))
    [1.0, 2.0, 3.0, 4.0]
    """
    orders = Orders(values) if basis is None else basis
    masked = values.copy(order="F")
    for j, (seen, column) in enumerate(zip(orders.seen, orders.columns, strict=True)):
        ranks = column.ranks2("random", rng) // 2 if column.tied else column.rank
        keys = ranks + a * column.n * normals(rng, (column.n,))
        masked[seen[np.argsort(keys, kind="stable")], j] = column.sorted
    return masked
