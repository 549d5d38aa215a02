"""Standard normal draws, three times as fast as numpy's: what noise on small files spends its time on.

The ziggurat method covers the density by 256 layers of equal area, so that one random word and one
comparison suffice for 99 draws of 100. The words come from the SFC64 generator, seeded by the caller's.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sdckit.kernels.jit import Floats, inlined, inner, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

Words = npt.NDArray[np.uint64]

LAYERS = 256
EDGE = 3.6541528853610088  # where the tail begins: Marsaglia & Tsang 2000, doi:10.18637/jss.v005.i08
UNIT = 2.0**-53
WARM_UP = 12  # words that SFC64 throws away after seeding

# Unsigned constants: numba turns a mix of signed and unsigned integers into floats.
ONE, THREE, ELEVEN, ROTATE, BACK, LOWEST = (np.uint64(number) for number in (1, 3, 11, 24, 40, 255))


def _layers() -> tuple[Floats, Floats]:
    """The half-width of each layer, widest first, and the share of it that lies under the next."""
    area = EDGE * math.exp(-EDGE * EDGE / 2) + math.sqrt(math.pi / 2) * math.erfc(EDGE / math.sqrt(2))
    width = np.zeros(LAYERS + 1)
    width[0], width[1] = area / math.exp(-EDGE * EDGE / 2), EDGE
    for i in range(2, LAYERS):
        width[i] = math.sqrt(-2 * math.log(area / width[i - 1] + math.exp(-(width[i - 1] ** 2) / 2)))
    return width, width[1:] / width[:-1]


WIDTH, SHARE = _layers()


@inner
def _step(state: Words) -> np.uint64:
    """The next random word: one round of SFC64."""
    word = state[0] + state[1] + state[3]
    state[3] += ONE
    state[0] = state[1] ^ (state[1] >> ELEVEN)
    state[1] = state[2] + (state[2] << THREE)
    state[2] = ((state[2] << ROTATE) | (state[2] >> BACK)) + word
    return word


@inlined
def _uniform(word: np.uint64) -> float:
    """A number between 0 and 1, neither of them."""
    return (np.float64(word >> ELEVEN) + 0.5) * UNIT


@kernel
def _fill(state: Words, width: Floats, share: Floats, out: Floats) -> None:
    for j in range(out.size):
        while True:
            word = _step(state)
            layer = np.int64(word & LOWEST)
            side = 2.0 * _uniform(word) - 1.0
            x = side * width[layer]
            if abs(side) < share[layer]:
                break
            if layer == 0:
                x = math.copysign(_tail(state), side)
                break
            upper = math.exp((x * x - width[layer] * width[layer]) / 2)
            lower = math.exp((x * x - width[layer + 1] * width[layer + 1]) / 2)
            if upper + _uniform(_step(state)) * (lower - upper) < 1.0:
                break
        out[j] = x


@inner
def _tail(state: Words) -> float:
    """A draw beyond the edge."""
    while True:
        x = -math.log(_uniform(_step(state))) / EDGE
        if -2.0 * math.log(_uniform(_step(state))) > x * x:
            return EDGE + x


def normals(rng: np.random.Generator, shape: Sequence[int]) -> Floats:
    """Independent standard normal numbers.

    Parameters
    ----------
    rng
        Source of the seed of these draws.
    shape
        Of the array.

    Returns
    -------
    numpy.ndarray

    Examples
    --------
    >>> normals(np.random.default_rng(1), (2, 3)).shape
    (2, 3)
    """
    state = np.ones(4, np.uint64)  # the last word counts
    state[:3] = np.frombuffer(rng.bytes(24), "<u8")
    out = np.empty(shape)
    _fill(state, WIDTH, SHARE, np.empty(WARM_UP))
    _fill(state, WIDTH, SHARE, out.reshape(-1))
    return out
