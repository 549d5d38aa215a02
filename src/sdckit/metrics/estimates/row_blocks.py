"""Products and QR decompositions of matrices with many rows and few columns, by blocks of rows.

BLAS shares the work on larger matrices between threads, which then wait busily for more: in a search, that
costs many times what the small matrices of a model do. Blocks of this size stay on one thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sdckit.kernels.jit import Floats

CELLS = 8192  # of a block; OpenBLAS uses several threads from 9216


def times(matrix: Floats, other: Floats) -> Floats:
    """Return the product of a matrix with a small matrix or vector."""
    return np.concatenate([matrix[rows] @ other for rows in _blocks(matrix)])


def cross(matrix: Floats, other: Floats) -> Floats:
    """Return the product of the transposed matrix with a matrix or vector of as many rows."""
    return np.asarray(sum(matrix[rows].T @ other[rows] for rows in _blocks(matrix)))


def triangle(matrix: Floats) -> Floats:
    """Return the upper triangle R of the matrix's QR decomposition: that of the triangles of its blocks."""
    while True:
        parts = [np.asarray(np.linalg.qr(matrix[rows], mode="r")) for rows in _blocks(matrix)]
        if len(parts) == 1:
            return parts[0]
        matrix = np.concatenate(parts)


def _blocks(matrix: Floats) -> Iterator[slice]:
    """Yield the rows of each block: as many as cells allow, but more than twice the columns."""
    n, p = matrix.shape
    step = max(CELLS // max(p, 1), 2 * p + 1)
    return (slice(begin, begin + step) for begin in range(0, max(n, 1), step))
