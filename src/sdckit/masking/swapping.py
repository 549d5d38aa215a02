"""Rank swapping: values change places with values of near rank."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sdckit.compiled import Floats, Ints, kernel
from sdckit.progress import track
from sdckit.ranks import OrderedColumn
from sdckit.registry import Parameter, method

if TYPE_CHECKING:
    import numpy.typing as npt

TRIES = 64  # draws that may hit a taken rank before the free ones are counted
BATCH = 1 << 16


@kernel
def sweep(i: int, window: int, taken: npt.NDArray[np.uint8], partner: Ints, draws: Floats) -> int:
    """Give each free rank, from `i` upwards, a random free partner at most `window` ahead.

    Returns the rank to go on with when the draws run out.
    """
    n = partner.size
    used = 0
    while i < n:
        if taken[i]:
            i += 1
            continue
        if used + TRIES + 1 > draws.size:
            return i
        width = min(window, n - 1 - i)
        found = -1
        if width > 0:
            for _ in range(TRIES):
                candidate = i + 1 + int(draws[used] * width)
                used += 1
                if not taken[candidate]:
                    found = candidate
                    break
            if found < 0:
                found = _pick_free(i, width, taken, draws[used])
                used += 1
        if found >= 0:
            taken[found] = 1
            partner[i], partner[found] = found, i
        i += 1
    return i


@kernel
def _pick_free(i: int, width: int, taken: npt.NDArray[np.uint8], draw: float) -> int:
    """A uniform choice among the free ranks of the window; -1 if there is none."""
    free = 0
    for candidate in range(i + 1, i + 1 + width):
        free += 1 - taken[candidate]
    wanted = int(draw * free)
    for candidate in range(i + 1, i + 1 + width):
        if not taken[candidate]:
            if wanted == 0:
                return candidate
            wanted -= 1
    return -1


def partners(n: int, window: int, rng: np.random.Generator) -> Ints:
    """The rank each rank changes places with; itself where it stays."""
    partner = np.arange(n)
    if window < 1:
        return partner
    taken = np.zeros(n, np.uint8)
    i = 0
    with track("rank swapping", n) as report:
        while i < n:
            i = sweep(i, window, taken, partner, rng.random(max(min(BATCH, n), 2 * TRIES)))
            report(i)
    return partner


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
    ordered = column.sorted
    if tail:
        ordered[:tail] = ordered[:tail].mean()
        ordered[column.n - tail :] = ordered[column.n - tail :].mean()
    inside = column.n - 2 * tail
    window = math.floor(inside * p + 1e-9) - (bound == "exclusive")  # 0.29 * 100 is a little below 29
    ordered[tail : column.n - tail] = ordered[tail + partners(inside, window, rng)]
    masked = np.empty(column.n)
    masked[column.order] = ordered
    return masked
