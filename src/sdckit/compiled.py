"""The one way kernels are compiled: on first use, cached on disk, without the interpreter lock."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Int = int | np.int64  # kernels count in int64

Function = TypeVar("Function", bound=Callable[..., object])


def kernel(function: Function, **options: Any) -> Function:
    """Compile `function` with numba; no fast-math, so that results do not depend on the CPU."""
    compiled = numba.njit(nogil=True, **options)(function)
    with suppress(RuntimeError):  # no folder to keep it in: compiled anew by each process
        compiled.enable_caching()
    return cast("Function", compiled)


def inlined(function: Function) -> Function:
    """Compile a small formula that several kernels share."""
    return kernel(function, inline="always")


@kernel
def count_special(values: Floats) -> tuple[Int, Int]:
    """How many values are NaN, and how many infinite."""
    missing = infinite = np.int64(0)
    for i in range(values.size):
        missing += values[i] != values[i]
        infinite += abs(values[i]) == np.inf
    return missing, infinite
