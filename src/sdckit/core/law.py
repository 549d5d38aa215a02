"""The law that a masking method states of itself: how its published records lie around their originals."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from sdckit.kernels.jit import Floats


class Stated(NamedTuple):
    """A method's own law: after `transform`, a published record is normal around each original.

    `mean` and `sd` have a value for each cell of the original; an `sd` of 0 says that the cell is published
    as it is. `correlation` is that of the standardised residuals. `transform` acts on each column of a
    published file by itself; None: cells are compared as published.
    """

    transform: Callable[[Floats], Floats] | None
    mean: Floats
    sd: Floats
    correlation: Floats


def independent(
    mean: Floats, sd: Floats | float, transform: Callable[[Floats], Floats] | None = None
) -> Stated:
    """Return the law of noise that is independent in each cell; `sd` for each cell or each column."""
    return Stated(transform, mean, np.broadcast_to(sd, mean.shape), np.eye(mean.shape[1]))


def correlated(mean: Floats, root: Floats, factors: Floats | float = 1.0) -> Stated:
    """Return the law of noise with the covariance root'root, times the factor of each record.

    The covariance may be singular. A column without noise has the correlation 0, also with itself.
    """
    size = np.sqrt((root**2).sum(axis=0))
    scaled = root / np.where(size > 0, size, 1.0)
    sd = np.broadcast_to(np.asarray(factors).reshape(-1, 1) * size, mean.shape)
    return Stated(None, mean, sd, scaled.T @ scaled)
