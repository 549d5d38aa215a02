"""Memory at hand, and libraries that are to be quiet."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


ERRORS = 2  # handle of standard error
PANIC = "PanicException"  # of which every compiled library has a class of its own


@contextmanager
def without_panic_messages() -> Iterator[None]:
    """Show what libraries wrote to standard error after the `with`; drop it if they panicked in it.

    A library that panics prints its stack before Python knows; the error that is raised says it in one line.
    """
    try:
        kept = os.dup(ERRORS)
    except OSError:  # closed
        yield
        return
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), ERRORS)
        try:
            yield
        except BaseException as error:
            if type(error).__name__ == PANIC:
                held.truncate(0)
            raise
        finally:
            with suppress(AttributeError, OSError, ValueError):
                sys.stderr.flush()
            os.dup2(kept, ERRORS)
            os.close(kept)
            held.seek(0)
            with suppress(OSError):
                os.write(ERRORS, held.read())


try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

UNKNOWN_MEMORY = 4 * 10**9  # bytes at hand where the system does not say
BEYOND_MEMORY = "mask and evaluate Parquet files in blocks (engine='local'), or use fewer columns or records"
V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes")  # files of control groups, older and newer
V2 = ("memory.max", "memory.current")


def memory_text(size: float) -> str:
    """Return a number of bytes as text, such as "1.5 GB"."""
    for name, unit in (("GB", 10**9), ("MB", 10**6)):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size / 1000:.3g} kB"


def require_memory(what: str, size: int, remedy: str) -> None:
    """Raise ValueError if `what` takes more bytes than there is memory at hand, with a remedy."""
    free = memory_at_hand()
    if size > free:
        fact = f"{what} takes {memory_text(size)} of memory and {memory_text(free)} are free"
        raise ValueError(f"{fact}; {remedy}")


def memory_at_hand(root: Path = Path("/")) -> int:
    """Return how many bytes of memory are free for use, on the machine, in its container and in this process.

    `root` is where the system's own files are looked for.
    """
    sizes = (_available(root), _left_of_own_limit(), *_left_in_groups(root))
    limits = [size for size in sizes if size is not None]
    if limits:
        return max(min(limits), 0)
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return UNKNOWN_MEMORY


def _available(root: Path) -> int | None:
    """Return the bytes of memory that the machine has available; None where it does not say."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB", _text(root / "proc/meminfo"), re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def _left_of_own_limit() -> int | None:
    """Return the bytes that this process may still ask for (ulimit -v); None if it is not limited."""
    if resource is None:
        return None
    limit, pages = resource.getrlimit(resource.RLIMIT_AS)[0], _text(Path("/proc/self/statm")).split()
    if limit == resource.RLIM_INFINITY or not pages:
        return None
    return max(limit - int(pages[0]) * os.sysconf("SC_PAGE_SIZE"), 0)


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
