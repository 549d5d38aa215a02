"""Sizes of memory: as text, at hand on this machine, in use; and which engine fits a file."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sdckit.engines.parquet_files import find_files
from sdckit.io.atomic import PARQUET_SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Sequence

STATM = "/proc/self/statm"  # where Linux says how many pages of memory a process has
UNITS = {"MB": 10**6, "GB": 10**9, "TB": 10**12, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
UNKNOWN_MEMORY = 4 * 10**9  # bytes at hand where the system does not say
V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes")  # files of control groups, older and newer
V2 = ("memory.max", "memory.current")
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


def memory_text(size: float) -> str:
    """Return a number of bytes as text, such as "1.5 GB"."""
    for name, unit in (("GB", 10**9), ("MB", 10**6)):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size / 1000:.3g} kB"


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


def memory_at_hand(root: Path = Path("/")) -> int:
    """Return how many bytes of memory are free for use, on the machine and in its container.

    `root` is where the system's own files are looked for.
    """
    limits = [size for size in (_available(root), *_left_in_groups(root)) if size is not None]
    if limits:
        return max(min(limits), 0)
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return UNKNOWN_MEMORY


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


def _available(root: Path) -> int | None:
    """Return the bytes of memory that the machine has available; None where it does not say."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB", _text(root / "proc/meminfo"), re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def _left_in_groups(root: Path) -> list[int]:
    """Return the bytes that each control group of this process, such as a container, has left."""
    left: list[int | None] = []
    groups = root / "sys/fs/cgroup"
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, name = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        top = groups / "memory" if controllers else groups
        names = V1 if controllers else V2
        left += [_left_in_group(folder, *names) for folder in (top, *_folders_down(top, name))]
    return [size for size in left if size is not None]


def _left_in_group(folder: Path, limit: str, use: str) -> int | None:
    """Return the bytes that a control group has left, its file cache counted as free; None if unlimited."""
    most, used = _number(folder / limit), _number(folder / use)
    if most is None or used is None:
        return None
    cache = re.search(r"^(?:total_)?inactive_file (\d+)", _text(folder / "memory.stat"), re.MULTILINE)
    return most - used + (int(cache[1]) if cache else 0)


def _folders_down(top: Path, name: str) -> list[Path]:
    """Return the folders of a control group and of those that it lies in."""
    steps = [step for step in name.split("/") if step]
    return [top.joinpath(*steps[: i + 1]) for i in range(len(steps))]


def _number(path: Path) -> int | None:
    """Return the whole number that a file holds; None for another text, such as max, or no file."""
    text = _text(path).strip()
    return int(text) if text.isdigit() else None


def _text(path: Path) -> str:
    """Return the text of a file; empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
