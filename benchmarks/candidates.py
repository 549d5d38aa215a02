"""Time the search for closer records inside facts against the same search without facts, by CPU time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from linkage import on_one_thread
from sdckit.kernels import candidates
from sdckit.kernels.candidates import Side, no_facts
from sdckit.risk.literature import TOLERANCE
from timing import Row, row

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sdckit.arrays import Floats, Ints

REPEATS = 5
NOISE = (0.05, 0.2, 0.5)  # standard deviations, of data with standard deviation 1
PLAIN = "the same without facts"
COMPLETE = "the complete file"


def least_cpu_seconds(contenders: Sequence[Callable[[], object]]) -> list[float]:
    """Smallest CPU time of each on one thread; they take turns, after one call to compile and warm up."""
    best = [float("inf")] * len(contenders)
    for turn in range(REPEATS + 1):
        for place, contender in enumerate(map(on_one_thread, contenders)):
            began = time.process_time()
            contender()
            spent = time.process_time() - began
            best[place] = min(best[place], spent) if turn else best[place]
    return best


def search(x: Floats, y: Floats, blocks: Ints | None = None) -> Callable[[], object]:
    """A search, trees built anew, with or without block numbers."""
    side = no_facts(len(x))
    side = side if blocks is None else side._replace(blocks=blocks)
    return lambda: candidates.count_closer(x, y, np.arange(len(x)), (side, side), TOLERANCE)


def block_rows(rng: np.random.Generator, sd: float) -> list[Row]:
    x = rng.normal(size=(1_000_000, 4))
    y = x + rng.normal(0, sd, x.shape)
    sizes = (100_000, 10_000, 1_000)
    plain, *found = least_cpu_seconds(
        [search(x, y), *(search(x, y, rng.integers(0, size, len(x))) for size in sizes)]
    )
    return [
        row(
            f"{size:,} blocks",
            f"1,000,000 x 4, noise {sd}",
            spent,
            PLAIN,
            plain,
            "at most 1.5 x" if size == 100_000 else "",
        )
        for size, spent in zip(sizes, found, strict=True)
    ]


def missing_rows(rng: np.random.Generator, sd: float) -> list[Row]:
    x = rng.normal(size=(100_000, 8))
    y = x + rng.normal(0, sd, x.shape)
    missing = rng.random(x.shape) < 0.05
    places = (missing @ (1 << np.arange(8))).astype(np.int64)
    gaps = [np.where(missing, np.nan, values) for values in (x, y)]
    plain, known, ignored = least_cpu_seconds([search(x, y), search(*gaps, places), search(*gaps)])
    case = f"100,000 x 8, 5 % missing, noise {sd}"
    return [
        row("same places of missing cells", case, known, COMPLETE, plain, "at most 5 x"),
        row("any places of missing cells", case, ignored, COMPLETE, plain, "at most 5 x"),
    ]


def window_rows(rng: np.random.Generator) -> list[Row]:
    """Intervals of ranks, and the nearest record in these windows, against the nearest record alone."""
    n, width = 100_000, 10_000
    ranks = np.argsort(rng.random((4, n))).T.astype(float)
    moved = np.clip(ranks + rng.integers(-width, width, ranks.shape), 0, n - 1)
    blocks = np.zeros(n, np.int64)
    targets, queries = Side(blocks, ranks, ranks), Side(blocks, moved - width, moved + width)
    counted, plain, inside = least_cpu_seconds(
        [
            lambda: candidates.count_candidates(targets, queries),
            search(ranks, moved),
            lambda: candidates.count_closer(ranks, moved, np.arange(n), (targets, queries), TOLERANCE),
        ]
    )
    case = "100,000 x 4, window 10 %"
    return [
        row("count_candidates", case, counted, PLAIN, plain),
        row("nearest inside windows", case, inside, PLAIN, plain),
    ]


def rows() -> list[Row]:
    rng = np.random.default_rng(0)
    found = [each for sd in NOISE for each in block_rows(rng, sd) + missing_rows(rng, sd)]
    return found + window_rows(rng)
