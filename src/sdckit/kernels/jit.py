"""The one way kernels are compiled: on first use, cached on disk, without the interpreter lock."""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Int = int | np.int64  # kernels count in int64

MARKS = (b"@kernel", b"@inner", b"@inlined")  # of modules with kernels

Function = TypeVar("Function", bound=Callable[..., object])


def digest_of_kernels() -> str:
    """Digest of all modules with kernels, wherever in the package they are.

    A compiled kernel contains code of the kernels it calls, also of other modules, while numba asks
    only whether the kernel's own file has changed: after an update it would go on with old code.
    """
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parents[1].rglob("*.py")):
        text = file.read_bytes()
        if any(mark in text for mark in MARKS):
            digest.update(text)
    return digest.hexdigest()


STAMP = digest_of_kernels()


def kernel(function: Function, **options: Any) -> Function:
    """Compile `function` with numba; no fast-math, so that results do not depend on the CPU."""
    options["no_cfunc_wrapper"] = True  # C calls none of them
    compiled = numba.njit(nogil=True, **options)(function)
    with suppress(RuntimeError):  # no folder to keep it in: compiled anew by each process
        compiled.enable_caching()
        compiled._cache._cache_file._source_stamp = STAMP  # noqa: SLF001 - numba offers no other way
    return cast("Function", compiled)


def inner(function: Function) -> Function:
    """Compile what only kernels call: without an entry from Python, which takes its time to compile."""
    return kernel(function, no_cpython_wrapper=True)


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


@kernel
def drop_zero_signs(values: Floats) -> Int:
    """Turn each -0.0 into 0.0, in place; return how many values are infinite."""
    infinite = np.int64(0)
    for i in range(values.size):
        values[i] += 0.0
        infinite += abs(values[i]) == np.inf
    return infinite
