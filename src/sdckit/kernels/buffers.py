"""Scratch arrays that are used again: fresh memory costs page faults, up to half the time of sorting it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sdckit.kernels.jit import Ints

LARGEST = 1 << 22  # longer arrays come in huge pages and go back to the system after use
KEPT = 6  # arrays kept for the next call, all of the last length asked for

_spare: list[Ints] = []


@contextmanager
def borrowed(n: int) -> Iterator[Ints]:
    """Lend an int64 array of length n with any content; safe in threads, each has its own."""
    array = _take(n)
    try:
        yield array
    finally:
        if n <= LARGEST and len(_spare) < KEPT:
            _spare.append(array)


def _take(n: int) -> Ints:
    try:
        while (array := _spare.pop()).size != n:  # another length: the old arrays are no use any more
            pass
    except IndexError:
        return np.empty(n, np.int64)
    return array
