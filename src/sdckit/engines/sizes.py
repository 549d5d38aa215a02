"""Sizes of memory: from text, in use by this process; and which engine fits a file."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sdckit.engines.parquet_files import find_files
from sdckit.io.suffixes import PARQUET_SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Sequence

STATM = "/proc/self/statm"  # where Linux says how many pages of memory a process has
UNITS = {"MB": 10**6, "GB": 10**9, "TB": 10**12, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
UNKNOWN_USE = 3 * 10**8  # bytes that this program is taken to use where the system does not say
EVALUATE_BYTES = 700  # that evaluating a numeric cell and its masked value takes in memory, about


def parse_memory(text: str | float) -> int:
    """Return an amount of memory such as "4GB" or "512 MiB" in bytes; raise ValueError for other text.

    Examples
    --------
    >>> parse_memory("1.5GB")
    1500000000
    """
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]i?B)\s*", str(text), re.IGNORECASE)
    size = 0 if found is None else int(float(found[1]) * UNITS.get(found[2].upper(), 0))
    if not size:
        raise ValueError(f"memory is {text!r}; give a number with MB, GB, MiB or GiB, such as 4GB")
    return size


def memory_in_use() -> int:
    """Return the resident memory of this process in bytes; its peak where the system says no more."""
    try:
        pages = int(Path(STATM).read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        pass
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return UNKNOWN_USE
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def return_freed_memory() -> None:
    """Return memory that was freed to the system at once, where C's library offers it (glibc does)."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return
    trim(0)


def choose_engine(paths: Sequence[Any], memory: int) -> Literal["memory", "local"]:
    """Return the engine for files: "memory" if evaluating them fits into so many bytes, else "local".

    With the default metrics, it takes about 700 bytes for each row and numeric column of the original
    (measured on 500,000 to 1,000,000 rows of 4 and 8 columns). Files other than Parquet are always read into
    memory.
    """
    given = Path(paths[0])
    if not given.is_dir() and given.suffix.lower() not in PARQUET_SUFFIXES:
        return "memory"
    files = find_files(given)
    needed = files.rows * len(files.table.numeric_names) * EVALUATE_BYTES
    return "memory" if needed <= memory else "local"
