"""How all benchmarks measure: contenders take turns, the median counts, ratios are within one run."""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Row = dict[str, str | float]


def seconds(
    contenders: Sequence[Callable[[], object]],
    repeats: int = 5,
    inner: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """Median time of each; they take turns, so that a busy machine slows all of them alike.

    With `clock=time.process_time`, what others do on the machine counts less: for work on one thread.
    """
    times: list[list[float]] = [[] for _ in contenders]
    for contender in contenders:
        contender()  # compile, load, warm up
    for _ in range(repeats):
        for contender, spent in zip(contenders, times, strict=True):
            began = clock()
            for _ in range(inner):
                contender()
            spent.append((clock() - began) / inner)
    return [median(spent) for spent in times]


def row(name: str, case: str, spent: float, yardstick: str, yardstick_spent: float, target: str = "") -> Row:
    """One line of the table: how many times the yardstick's time it took, and how many times faster it is."""
    return {
        "what": name,
        "case": case,
        "ms": spent * 1e3,
        "yardstick": yardstick,
        "yardstick_ms": yardstick_spent * 1e3,
        "times_the_time": spent / yardstick_spent,
        "times_faster": yardstick_spent / spent,
        "target": target,
    }
