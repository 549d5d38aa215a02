"""Success of guesses of an intruder: credits of records, shared among equally good guesses."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from sdckit.kernels.jit import Floats, Ints


class Credits(NamedTuple):
    """Success of each of the intruder's guesses, from 0 to 1, under three rules for equally good guesses.

    `expected` shares the credit among equals; `strict` counts only guesses without an equal,
    `optimistic` all that may be right.
    """

    expected: Floats
    strict: Floats
    optimistic: Floats


def credits_of_counts(closer: Ints, tied: Ints, places: int) -> Credits:
    """Return credits from the numbers of targets closer than the true one and equally close."""
    left = np.maximum(places - closer, 0)
    return Credits(
        np.minimum(1.0, left / np.maximum(tied, 1)) * (left > 0),
        ((left > 0) & (tied <= left)).astype(float),
        (left > 0).astype(float),
    )
