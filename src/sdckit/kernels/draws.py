"""Random numbers in bulk."""

from __future__ import annotations

import hashlib
import math
import secrets
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from sdckit.arrays import Floats, Ints, UInt64s
from sdckit.kernels.jit import inlined, kernel, uncounted, uncounted_inner

if TYPE_CHECKING:
    from collections.abc import Sequence


NUMPYS = (np.random.PCG64, np.random.PCG64DXSM, np.random.SFC64, np.random.MT19937, np.random.Philox)


def is_fast(rng: np.random.Generator) -> bool:
    """Return True for a generator on one of numpy's bit generators, none of which is cryptographic."""
    return isinstance(rng.bit_generator, NUMPYS)


SECRET = 32  # bytes of entropy where no seed is given
ROUNDS = 10
UNIT = 2.0**-53  # step between uniform numbers

# Unsigned constants: numba turns a mix of signed and unsigned integers into floats.
FIRST, SECOND = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)  # multipliers of a round
STEPS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)  # added to the key in each round
STEP_0, STEP_1 = STEPS
HALF, LOW, ELEVEN = np.uint64(32), np.uint64(0xFFFFFFFF), np.uint64(11)


@inlined
def _high_product(a: np.uint64, b: np.uint64) -> np.uint64:
    """Return the upper 64 bits of the product of two words."""
    middle = (a >> HALF) * (b & LOW) + (((a & LOW) * (b & LOW)) >> HALF)
    other = (a & LOW) * (b >> HALF) + (middle & LOW)
    return (a >> HALF) * (b >> HALF) + (middle >> HALF) + (other >> HALF)


@uncounted_inner
def write_words(key: UInt64s, row: np.uint64, place: UInt64s, words: UInt64s) -> None:
    """Write the four random words of a cell: of its key, its row, and the three numbers of its place."""
    k0, k1 = key[0], key[1]
    c0, c1, c2, c3 = row, place[0], place[1], place[2]
    for _ in range(ROUNDS):
        high0, low0 = _high_product(FIRST, c0), FIRST * c0
        high1, low1 = _high_product(SECOND, c2), SECOND * c2
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0 += STEP_0
        k1 += STEP_1
    words[0], words[1], words[2], words[3] = c0, c1, c2, c3


@kernel
def fill_words(key: UInt64s, rows: UInt64s, place: UInt64s, out: UInt64s) -> None:
    """Fill a matrix with the four random words of each row at a place."""
    for i in range(rows.size):
        write_words(key, rows[i], place, out[i])


@kernel
def _fill_uniforms(key: UInt64s, first: np.uint64, place: UInt64s, out: Floats) -> None:
    """Fill an array with the uniform numbers of a sequence from its number `first` on, four to a counter."""
    words = np.empty(4, np.uint64)
    four, ready = np.uint64(4), False
    for i in range(out.size):
        number = first + np.uint64(i)
        if not ready or number % four == np.uint64(0):
            write_words(key, number // four, place, words)
            ready = True
        out[i] = np.float64(words[number % four] >> ELEVEN) * UNIT


def entropy_bytes(seed: int | None) -> bytes:
    """Return the bytes behind a key: those of a seed, or fresh ones from the operating system for None."""
    return secrets.token_bytes(SECRET) if seed is None else f"seed {int(seed)}".encode()


@dataclass(frozen=True)
class CellDraws:
    """Random numbers of cells, given by key, row, column and stream.

    `rows` are the numbers in the file of the rows that are masked now; `columns` those of the columns, None
    for 0, 1, 2 ... The numbers of one stream are independent of those of another.
    """

    key: tuple[int, int] = field(repr=False)  # secret: with it the draws can be undone
    stream: int = 0
    rows: Ints | None = field(default=None, compare=False)
    columns: tuple[int, ...] | None = None

    @classmethod
    def of(cls, entropy: bytes) -> CellDraws:
        """Return draws whose key is the SHA-256 digest of some bytes, shortened to 128 bits."""
        digest = hashlib.sha256(entropy).digest()
        return cls((int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:16], "little")))

    def at(self, rows: Ints, *, stream: int | None = None) -> CellDraws:
        """Return the draws of some rows, in this stream or another."""
        return replace(self, rows=rows, stream=self.stream if stream is None else stream)

    def in_stream(self, stream: int) -> CellDraws:
        """Return the draws of another stream."""
        return replace(self, stream=stream)

    def of_column(self, column: int) -> CellDraws:
        """Return the draws of one of the columns alone."""
        return replace(self, columns=(self.column_number(column),))

    def column_number(self, column: int) -> int:
        """Return the number in the file of a column that is masked now."""
        return column if self.columns is None else self.columns[column]

    def key_words(self) -> UInt64s:
        """Return the key as the kernels take it."""
        return np.array(self.key, np.uint64)

    def place(self, column: int, kind: int = 0) -> UInt64s:
        """Return the part of a cell's counter besides its row: column, stream and kind of draw."""
        return np.array([self.column_number(column), self.stream, kind], np.uint64)

    def row_numbers(self, n: int) -> UInt64s:
        """Return the numbers of the n rows that are masked now."""
        rows = np.arange(n) if self.rows is None else self.rows
        if len(rows) != n:
            raise ValueError(f"draws for {len(rows)} rows are asked for {n}; give as many row numbers")
        return rows.astype(np.uint64)

    def words(self, rows: Ints, column: int) -> UInt64s:
        """Return the four random words of each of these rows in a column."""
        out = np.empty((len(rows), 4), np.uint64)
        fill_words(self.key_words(), rows.astype(np.uint64), self.place(column), out)
        return out

    def uniforms(self, rows: Ints, column: int) -> Floats:
        """Return a uniform number from 0, below 1, for each of these rows in a column."""
        return (self.words(rows, column)[:, 0] >> ELEVEN).astype(np.float64) * UNIT

    def sequence(self) -> UniformSequence:
        """Return the uniform numbers of the first column in a row, from the first on."""
        return UniformSequence(self.key_words(), self.place(0, kind=1))


class UniformSequence:
    """Uniform numbers from 0, below 1, one after the other; takes the place of a numpy Generator."""

    def __init__(self, key: UInt64s, place: UInt64s) -> None:
        self.key, self.place, self.used = key, place, 0

    def random(self, *, out: Floats) -> Floats:
        """Fill an array with the next numbers of the sequence and return it."""
        _fill_uniforms(self.key, np.uint64(self.used), self.place, out)
        self.used += out.size
        return out


LAYERS = 256
EDGE = 3.6541528853610088  # where the tail begins: Marsaglia & Tsang 2000, doi:10.18637/jss.v005.i08
WARM_UP = 12  # words that are discarded after seeding SFC64

# Unsigned constants: numba turns a mix of signed and unsigned integers into floats.
ONE, THREE, ROTATE, BACK, LOWEST = (np.uint64(number) for number in (1, 3, 24, 40, 255))


def _layers() -> tuple[Floats, Floats]:
    """Return the half-width of each ziggurat layer, widest first, and its share under the next layer."""
    area = EDGE * math.exp(-EDGE * EDGE / 2) + math.sqrt(math.pi / 2) * math.erfc(EDGE / math.sqrt(2))
    width = np.zeros(LAYERS + 1)
    width[0], width[1] = area / math.exp(-EDGE * EDGE / 2), EDGE
    for i in range(2, LAYERS):
        width[i] = math.sqrt(-2 * math.log(area / width[i - 1] + math.exp(-(width[i - 1] ** 2) / 2)))
    return width, width[1:] / width[:-1]


WIDTH, SHARE = _layers()
State = tuple[np.uint64, np.uint64, np.uint64, np.uint64]  # of SFC64: three words and a counter


@inlined
def _next_word(state: State) -> tuple[np.uint64, State]:
    """Return the next 64-bit random word of the SFC64 generator, and its next state."""
    a, b, c, counter = state
    word = a + b + counter
    return word, (b ^ (b >> ELEVEN), c + (c << THREE), ((c << ROTATE) | (c >> BACK)) + word, counter + ONE)


@inlined
def _uniform(word: np.uint64) -> float:
    """Return a uniform number between 0 and 1, both excluded, from a random word."""
    return (np.float64(word >> ELEVEN) + 0.5) * UNIT


@uncounted_inner
def _tail_draw(state: State) -> tuple[float, State]:
    """Return a standard normal draw conditional on being beyond `EDGE`, where the tail begins."""
    while True:
        word, state = _next_word(state)
        other, state = _next_word(state)
        x = -math.log(_uniform(word)) / EDGE
        if -2.0 * math.log(_uniform(other)) > x * x:
            return EDGE + x, state


@inlined
def _normal(state: State, width: Floats, share: Floats) -> tuple[float, State]:
    """Return a standard normal draw and the generator's next state, given the ziggurat's layers."""
    while True:
        word, state = _next_word(state)
        layer = np.int64(word & LOWEST)
        side = 2.0 * _uniform(word) - 1.0
        x = side * width[layer]
        if abs(side) < share[layer]:
            return x, state
        if layer == 0:
            tail, state = _tail_draw(state)
            return math.copysign(tail, side), state
        upper = math.exp((x * x - width[layer] * width[layer]) / 2)
        lower = math.exp((x * x - width[layer + 1] * width[layer + 1]) / 2)
        word, state = _next_word(state)
        if upper + _uniform(word) * (lower - upper) < 1.0:
            return x, state


@uncounted  # counting references to the layers would take three times as long as the draws
def _fill_normals(seed: UInt64s, width: Floats, share: Floats, skipped: int, out: Floats) -> None:
    """Fill an array with standard normal draws, given the generator's seed and the ziggurat's layers.

    As many draws as `skipped` says are discarded first.
    """
    state = seed[0], seed[1], seed[2], ONE  # the last word is a counter
    for j in range(-skipped, out.size):
        draw, state = _normal(state, width, share)
        if j >= 0:
            out[j] = draw


@kernel
def _fill_cell_normals(
    key: UInt64s, rows: UInt64s, place: UInt64s, width: Floats, share: Floats, out: Floats
) -> None:
    """Fill an array with the standard normal draw of each row at a place."""
    words = np.empty(4, np.uint64)
    for i in range(rows.size):
        write_words(key, rows[i], place, words)  # a random state needs no warm-up
        out[i] = _normal((words[0], words[1], words[2], words[3]), width, share)[0]


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
    out = np.empty(shape)
    _fill_normals(np.frombuffer(rng.bytes(24), "<u8"), WIDTH, SHARE, WARM_UP, out.reshape(-1))
    return out


def _cell_normals(draws: CellDraws, shape: Sequence[int]) -> Floats:
    """Return the standard normal numbers of cells: a line for each column, or one line for one column."""
    out = np.empty(shape)
    lines = out.reshape(-1, shape[-1])
    key, rows = draws.key_words(), draws.row_numbers(shape[-1])
    for j, line in enumerate(lines):
        _fill_cell_normals(key, rows, draws.place(j), WIDTH, SHARE, line)
    return out
