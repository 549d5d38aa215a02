"""Structure of swaps: where values were exchanged in pairs, each link of two records implies others.

If published row u is original i, then the original that had the value which u shows was published with the
value of i. So a pair (u, i) is possible only if, in every swapped column, some possible pair has both values
exchanged. Wrong pairs lose their partners within a few rounds. Whether a column was swapped is not taken from
the method's name: the shadows prove it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdckit.arrays import Bools, Floats, Ints
from sdckit.kernels.jit import kernel
from sdckit.risk.distances import places_among

if TYPE_CHECKING:
    from collections.abc import Sequence

RETURNS = 0.99  # share of exchanged cells whose partner got the other value, in every shadow
MOVED = 20  # cells that must have moved: a column that stays as it is proves nothing
ROUNDS = 30  # of propagation, at most
SOFT_ROUNDS = 3
FLOOR = -30.0  # log probability of a pair that nothing speaks for


class Codes(NamedTuple):
    """Values of a column as numbers, in both files; -1 for an original value that is not published.

    `open` marks values that somebody unknown may have had; None where all persons are known.
    """

    published: Ints
    original: Ints
    size: int
    open: Bools | None = None


def codes_of(original: Floats, published: Floats, strata: Ints | None = None) -> Codes:
    """Return the numbers of the published values, and of the original ones among them.

    Where values were exchanged within strata, equal values of two strata have different numbers.
    """
    values = np.unique(published[~np.isnan(published)])
    theirs, ours = places_among(published, values), places_among(original, values)
    if strata is None:
        return Codes(theirs, ours, len(values))
    theirs, ours = (np.where(found < 0, -1, found * len(strata) + strata) for found in (theirs, ours))
    values = np.unique(theirs[theirs >= 0])
    return Codes(places_among(theirs, values), places_among(ours, values), len(values))


def is_exchanged(original: Floats, published: Floats) -> bool:
    """Return True if almost every value that moved was exchanged with that of one other record."""
    codes = codes_of(original, published)
    both = (codes.published >= 0) & (codes.original >= 0)
    a, b = codes.original[both], codes.published[both]
    moved = a != b
    if moved.sum() < MOVED:
        return False
    pairs, counts = np.unique(a[moved] * codes.size + b[moved], return_counts=True)
    place = places_among(pairs % codes.size * codes.size + pairs // codes.size, pairs)
    returned = np.where(place >= 0, np.minimum(counts, counts[place]), 0)
    return bool(returned.sum() >= RETURNS * moved.sum())


def exchanged_columns(original: Floats, shadows: Sequence[Floats] | Floats) -> list[int]:
    """Return the columns whose values every shadow exchanges in pairs."""
    return [
        j for j in range(original.shape[1]) if all(is_exchanged(original[:, j], one[:, j]) for one in shadows)
    ]


def propagate(possible: Bools, columns: Sequence[Codes]) -> Bools:
    """Return which pairs, published row x original, are left when every pair needs its exchanged partners."""
    found = possible.copy()
    left = int(found.sum())
    for _ in range(ROUNDS):
        for codes in columns:
            partners = np.zeros((codes.size, codes.size), np.bool_)
            if codes.open is not None:
                partners[:, codes.open] = True
            _keep_exchanged(codes.published, codes.original, partners, found)
        _keep_single(found)
        now = int(found.sum())
        if now == left:
            break
        left = now
    return found


@kernel
def _keep_exchanged(published: Ints, original: Ints, partners: Bools, found: Bools) -> None:
    """Remove pairs without a possible pair that has both values exchanged; unpublished values have none."""
    for u in range(len(found)):
        if published[u] >= 0:
            for i in range(len(original)):
                if found[u, i] and original[i] >= 0:
                    partners[published[u], original[i]] = True
    for u in range(len(found)):
        if published[u] >= 0:
            for i in range(len(original)):
                if found[u, i] and original[i] >= 0:
                    found[u, i] = partners[original[i], published[u]]


def _keep_single(found: Bools) -> None:
    """Where a row or an original has one possible pair left, remove the others of its partner."""
    for lines in (found, found.T):
        for number, line in enumerate(lines):
            places = np.flatnonzero(line)
            if len(places) == 1:
                lines[:, places] = False
                lines[number, places] = True


def supported(likelihood: Floats, columns: Sequence[Codes]) -> Floats:
    """Return log-likelihoods, row x original, to which each pair's exchanged partners have added theirs.

    Where several records have a value, the best of them counts; a value that is not published says nothing.
    """
    base = np.maximum(likelihood - likelihood.max(axis=1, keepdims=True), FLOOR)
    found: Floats = base
    for _ in range(SOFT_ROUNDS):
        total = np.log(np.exp(found - found.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True))
        chance = np.maximum(found - found.max(axis=1, keepdims=True) - total, FLOOR)
        odds = np.exp(chance)
        usual = float((odds * chance).sum() / odds.sum())
        found = base.copy()
        for codes in columns:
            best = np.full((codes.size, codes.size), FLOOR)
            if codes.open is not None:
                best[:, codes.open] = usual
            _add_partners(codes.published, codes.original, chance, usual, best, found)
    return found


@kernel
def _add_partners(
    published: Ints, original: Ints, chance: Floats, usual: float, best: Floats, found: Floats
) -> None:
    """Add to each pair the best log probability of a pair with both values exchanged."""
    for u in range(len(found)):
        if published[u] >= 0:
            for i in range(len(original)):
                if original[i] >= 0:
                    a, b = published[u], original[i]
                    best[a, b] = max(best[a, b], chance[u, i])
    for u in range(len(found)):
        for i in range(len(original)):
            if published[u] >= 0 and original[i] >= 0:
                found[u, i] += best[original[i], published[u]]
            else:
                found[u, i] += usual
