"""Scratch arrays that are used again: fresh memory costs page faults, up to half the time of sorting it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sdckit.kernels.jit import Ints

LARGEST = 1 << 22  # longer arrays come in huge pages and go back to the system after use
KEPT = 6  # most arrays kept for later calls, all of the last length used

_spare: list[Ints] = []


@contextmanager
def borrowed(n: int) -> Iterator[Ints]:
    """Yield a scratch int64 array of length n with arbitrary content, and keep it for later calls.

    Safe in threads: each call has an array of its own.
    """
    array = _take(n)
    try:
        yield array
    finally:
        if n <= LARGEST and len(_spare) < KEPT:
            _spare.append(array)


def _take(n: int) -> Ints:
    """Return a kept array of length n, or a new one; kept arrays of other lengths are dropped."""
    try:
        while (array := _spare.pop()).size != n:  # arrays of another length are dropped
            pass
    except IndexError:
        return np.empty(n, np.int64)
    return array
