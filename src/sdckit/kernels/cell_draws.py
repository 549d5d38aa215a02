"""Random words that belong to cells: a keyed function of row, column and stream, not of the order of work.

A block of a file draws the same numbers in whatever task, order or engine it is masked. The keyed function
is Philox4x64-10 (Salmon et al. 2011, doi:10.1145/2063384.2063405); nothing outside this module knows it.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field, replace

import numpy as np

from sdckit.kernels.jit import Floats, Ints, UInt64s, inlined, inner, kernel

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


@inner
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
