"""Standard normal random numbers by the ziggurat method, three times as fast as numpy's.

The ziggurat method covers the density by 256 layers of equal area, so that one random word and one
comparison suffice for 99 draws of 100. The words come from the SFC64 generator, seeded by the caller's;
for draws that belong to cells, each cell has its own, whose state is made of the cell's random words.
A cryptographic generator seeds no weaker one: its own words make the draws, by numpy's ziggurat.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sdckit.kernels.bit_generators import is_fast
from sdckit.kernels.cell_draws import CellDraws, write_words
from sdckit.kernels.jit import Floats, inlined, inner, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

Words = npt.NDArray[np.uint64]

LAYERS = 256
EDGE = 3.6541528853610088  # where the tail begins: Marsaglia & Tsang 2000, doi:10.18637/jss.v005.i08
UNIT = 2.0**-53  # step between uniform numbers
WARM_UP = 12  # words that are discarded after seeding SFC64

# Unsigned constants: numba turns a mix of signed and unsigned integers into floats.
ONE, THREE, ELEVEN, ROTATE, BACK, LOWEST = (np.uint64(number) for number in (1, 3, 11, 24, 40, 255))


def _layers() -> tuple[Floats, Floats]:
    """Return the half-width of each ziggurat layer, widest first, and its share under the next layer."""
    area = EDGE * math.exp(-EDGE * EDGE / 2) + math.sqrt(math.pi / 2) * math.erfc(EDGE / math.sqrt(2))
    width = np.zeros(LAYERS + 1)
    width[0], width[1] = area / math.exp(-EDGE * EDGE / 2), EDGE
    for i in range(2, LAYERS):
        width[i] = math.sqrt(-2 * math.log(area / width[i - 1] + math.exp(-(width[i - 1] ** 2) / 2)))
    return width, width[1:] / width[:-1]


WIDTH, SHARE = _layers()


@inner
def _next_word(state: Words) -> np.uint64:
    """Return the next 64-bit random word of the SFC64 generator, and advance its state."""
    word = state[0] + state[1] + state[3]
    state[3] += ONE
    state[0] = state[1] ^ (state[1] >> ELEVEN)
    state[1] = state[2] + (state[2] << THREE)
    state[2] = ((state[2] << ROTATE) | (state[2] >> BACK)) + word
    return word


@inlined
def _uniform(word: np.uint64) -> float:
    """Return a uniform number between 0 and 1, both excluded, from a random word."""
    return (np.float64(word >> ELEVEN) + 0.5) * UNIT


@inner
def _tail_draw(state: Words) -> float:
    """Return a standard normal draw conditional on being beyond `EDGE`, where the tail begins."""
    while True:
        x = -math.log(_uniform(_next_word(state))) / EDGE
        if -2.0 * math.log(_uniform(_next_word(state))) > x * x:
            return EDGE + x


@inner
def _normal(state: Words, width: Floats, share: Floats) -> float:
    """Return a standard normal draw, given the generator's state and the ziggurat's layers."""
    while True:
        word = _next_word(state)
        layer = np.int64(word & LOWEST)
        side = 2.0 * _uniform(word) - 1.0
        x = side * width[layer]
        if abs(side) < share[layer]:
            return x
        if layer == 0:
            return math.copysign(_tail_draw(state), side)
        upper = math.exp((x * x - width[layer] * width[layer]) / 2)
        lower = math.exp((x * x - width[layer + 1] * width[layer + 1]) / 2)
        if upper + _uniform(_next_word(state)) * (lower - upper) < 1.0:
            return x


@kernel
def _fill_normals(state: Words, width: Floats, share: Floats, out: Floats) -> None:
    """Fill an array with standard normal draws, given the generator's state and the ziggurat's layers."""
    for j in range(out.size):
        out[j] = _normal(state, width, share)


@kernel
def _fill_cell_normals(
    key: Words, rows: Words, place: Words, width: Floats, share: Floats, out: Floats
) -> None:
    """Fill an array with the standard normal draw of each row at a place."""
    state = np.empty(4, np.uint64)
    for i in range(rows.size):
        write_words(key, rows[i], place, state)  # a random state needs no warm-up
        out[i] = _normal(state, width, share)


def normals(rng: np.random.Generator | CellDraws, shape: Sequence[int]) -> Floats:
    """Return an array of independent standard normal numbers.

    Parameters
    ----------
    rng
        Generator from which the seed of these draws is drawn, or if its bit generator is not numpy's, all
        of them; or draws that belong to cells, which give the same number to a cell whatever else is asked
        for.
    shape
        Shape of the array; for draws that belong to cells one line for each column, one place for each row.

    Returns
    -------
    numpy.ndarray

    Examples
    --------
    >>> normals(np.random.default_rng(1), (2, 3)).shape
    (2, 3)
    """
    if isinstance(rng, CellDraws):
        return _cell_normals(rng, shape)
    if not is_fast(rng):
        return rng.standard_normal(tuple(shape))
    state = np.ones(4, np.uint64)  # the last word is a counter
    state[:3] = np.frombuffer(rng.bytes(24), "<u8")
    out = np.empty(shape)
    _fill_normals(state, WIDTH, SHARE, np.empty(WARM_UP))
    _fill_normals(state, WIDTH, SHARE, out.reshape(-1))
    return out


def _cell_normals(draws: CellDraws, shape: Sequence[int]) -> Floats:
    """Return the standard normal numbers of cells: a line for each column, or one line for one column."""
    out = np.empty(shape)
    lines = out.reshape(-1, shape[-1])
    key, rows = draws.key_words(), draws.row_numbers(shape[-1])
    for j, line in enumerate(lines):
        _fill_cell_normals(key, rows, draws.place(j), WIDTH, SHARE, line)
    return out
