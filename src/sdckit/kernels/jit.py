"""How kernels are compiled, and how long that took."""

from __future__ import annotations

import gc
import hashlib
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba
import numpy as np
from numba.core import event
from numba.extending import register_jitable

from sdckit import progress
from sdckit.arrays import Floats, Int

if TYPE_CHECKING:
    from numba.core.event import Event


NOTICE_AFTER = 1.0  # seconds of compiling before the notice: a single kernel takes less
NOTICE = "compiling kernels for this computer: some 10 to 20 seconds, at the first start only"


class CompileClock(event.Listener):
    """Listener to numba's events that sums the seconds of compiling and announces long compiling once."""

    def __init__(self) -> None:
        self.depth: int = 0  # kernels being compiled, each for the one before
        self.begun: float = 0.0
        self.finished: float = 0.0
        self.noticed: bool = False
        self.collects: bool = False

    @property
    def seconds(self) -> float:
        """Seconds spent on compiling so far, including the kernel that is being compiled."""
        return self.finished + (process_time() - self.begun if self.depth else 0.0)

    def on_start(self, event: Event) -> None:  # noqa: ARG002 - numba's signature
        """Start the clock when numba begins to compile a kernel, and switch garbage collection off.

        Kernels that are compiled for another one do not start it again. Garbage collection would examine
        all objects of numba again and again, and free little.
        """
        if self.seconds > NOTICE_AFTER and not self.noticed:
            self.noticed = True
            progress.print_notice(NOTICE)
        if self.depth == 0:
            self.begun, self.collects = process_time(), gc.isenabled()
            gc.disable()
        self.depth += 1

    def on_end(self, event: Event) -> None:  # noqa: ARG002
        """Stop the clock when the outermost kernel is compiled, and switch garbage collection on again."""
        if self.depth == 1:
            self.finished = self.seconds
            if self.collects:
                gc.enable()
        self.depth -= 1


CLOCK = CompileClock()
event.register("numba:compile", CLOCK)  # type: ignore[no-untyped-call]


INTERPRETED = bool(cast("Any", numba.config).DISABLE_JIT)  # kernels run as plain Python

# A module with one of these contains kernels.
MARKS = (b"@kernel", b"@inner", b"@inlined", b"@uncounted", b"@intrinsic", b"@plain")

Function = TypeVar("Function", bound=Callable[..., object])


def digest_of_kernels() -> str:
    """Return the SHA-256 digest of all source files of the package that contain kernels.

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
    """Compile a function with numba, cached on disk; without fast-math, so that all CPUs agree.

    With `NUMBA_DISABLE_JIT=1` it stays a Python function, through which a debugger can step.
    """
    if INTERPRETED:
        return np.errstate(all="ignore")(function)  # compiled code does not warn, either
    options["no_cfunc_wrapper"] = True  # no kernel is called from C
    # Kernels divide by nothing that can be 0: checks for it would only take time to compile and to run.
    compiled = numba.njit(nogil=True, error_model="numpy", **options)(function)
    with suppress(RuntimeError):  # without a writable folder, each process compiles anew
        _enable_caching(compiled)
        file = compiled._cache._cache_file  # noqa: SLF001 - numba offers no other way
        # An index of older sources may name classes that are gone, and then it cannot be unpickled: numba
        # leaves an index of another version unread.
        file._source_stamp, file._version = STAMP, f"{numba.__version__} {STAMP}"  # noqa: SLF001
    return cast("Function", compiled)


def _enable_caching(compiled: Any) -> None:
    """Let numba keep compiled code: beside the sources, for the user, or else in a temporary folder.

    Workers of a cluster often run as a user without a home and may not write to the package.
    """
    try:
        compiled.enable_caching()
    except RuntimeError:
        config: Any = numba.config
        before, config.CACHE_DIR = config.CACHE_DIR, _temporary_folder()
        try:
            compiled.enable_caching()
        except RuntimeError:
            config.CACHE_DIR = before
            raise


def _temporary_folder() -> str:
    """Return a folder for compiled code that only this user can write to; raise RuntimeError for none."""
    user = os.getuid() if hasattr(os, "getuid") else "user"
    folder = Path(tempfile.gettempdir()) / f"sdckit-numba-{user}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise RuntimeError(str(error)) from error
    # Compiled code of somebody else is never run.
    strange = found.st_uid not in {user, 0} or found.st_mode & 0o022
    if folder.is_symlink() or (hasattr(os, "getuid") and strange):  # on Windows, each user has such a folder
        raise RuntimeError(f"{folder} belongs to somebody else")
    return str(folder)


def inner(function: Function) -> Function:
    """Compile a function that only kernels call: without an entry from Python, to save compiling time."""
    return kernel(function, no_cpython_wrapper=True)


def uncounted(function: Function) -> Function:
    """Compile a function that allocates no memory, without counting references to arrays.

    Numba counts the references to each array of a tuple whenever the tuple is passed on: in a loop over small
    steps this takes longer than the steps do.
    """
    return kernel(function, _nrt=False)


def uncounted_inner(function: Function) -> Function:
    """Compile a function that only kernels call and that allocates no memory, see `uncounted`."""
    return kernel(function, _nrt=False, no_cpython_wrapper=True)


def inlined(function: Function) -> Function:
    """Compile a small function whose code numba inserts into each kernel that calls it."""
    return kernel(function, inline="always")


def plain(function: Function) -> Function:
    """Let kernels call a function that stays plain Python for others.

    The first kernel that a process runs loads the compiler, which takes 60 MB: too much for the driver of a
    cluster, which needs only few results of small functions.
    """
    return register_jitable(function)


@kernel
def count_special(values: Floats) -> tuple[Int, Int]:
    """Return how many values are NaN, and how many are infinite."""
    missing = infinite = np.int64(0)
    for i in range(values.size):
        missing += values[i] != values[i]
        infinite += abs(values[i]) == np.inf
    return missing, infinite
