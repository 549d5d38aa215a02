"""Exact MDAV against the textbook loop, both compiled: same groups, less time.

Columns are independent normal, or correlated: one common factor, any two columns correlate by 0.75.
Large files are grouped in a process of their own, one thread, in CPU time, which a busy machine
hardly changes; the peak is that of the whole process, data and Python included.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sdckit.kernels.mdav.groups import mdav_groups, standardise
from sdckit.masking.microaggregation import mdav
from timing import Row, row, seconds

sys.path.append(str(Path(__file__).parents[1] / "tests" / "twins"))
from textbook import textbook

if TYPE_CHECKING:
    from sdckit.arrays import Floats, Ints

K = 3
SIZES = (1_000, 5_000, 10_000, 20_000)
COLUMNS = (4, 13)
SHARE = 0.75  # of a correlated column's variance that is common to all


def table(n: int, p: int, kind: str) -> Floats:
    rng = np.random.default_rng(n + p)
    values = rng.normal(size=(n, p))
    if kind == "correlated":
        values = np.sqrt(SHARE) * rng.normal(size=(n, 1)) + np.sqrt(1 - SHARE) * values
    return values


def peak() -> float:
    """Largest memory of this process in GB (getrusage would count the parent's, too)."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
    return int(line.split()[1]) / 2**20


def large(n: int, p: int, kind: str, *, compare: bool) -> tuple[float, float, float]:
    """CPU seconds of the groups, peak memory in GB, and CPU seconds of the textbook loop."""
    mdav_groups(table(12_000, 2, kind), K)  # compile both ways, tree
    mdav_groups(table(12_000, 13, "independent"), K)  # and filter
    values = table(n, p, kind)
    began = time.process_time()
    groups = mdav_groups(values, K)
    spent, memory = time.process_time() - began, peak()
    if not compare:
        return spent, memory, np.nan
    points = standardise(values)
    textbook(points[:100], K)
    began = time.process_time()
    expected = textbook(points, K)
    loop = time.process_time() - began
    np.testing.assert_array_equal(groups, expected)
    return spent, memory, loop


def alone(n: int, p: int, kind: str, *, compare: bool) -> tuple[float, float, float]:
    """The same, in a new process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(large, n, p, kind, compare=compare).result()


def groups_of(points: Floats) -> Ints:
    return mdav_groups(points, K, points)


def small_rows() -> list[Row]:
    rows: list[Row] = []
    for n in SIZES:
        for p in COLUMNS:
            values = table(n, p, "independent")
            points = standardise(values)
            np.testing.assert_array_equal(groups_of(points), textbook(points, K))
            repeats = 51 if n <= 1_000 else 5
            loop, groups, public = seconds(
                [
                    lambda points=points: textbook(points, K),
                    lambda points=points: groups_of(points),
                    lambda values=values: mdav(values, k=K),
                ],
                repeats,
            )
            case = f"{n:,} x {p}, k = {K}"
            rows.append(row("MDAV, groups", case, groups, "textbook loop", loop, "at least 3 x faster"))
            rows.append(row("mdav(), public call", case, public, "textbook loop", loop))
    return rows


def large_rows() -> list[Row]:
    """1e5 records against the loop; 1e6 records, for which it takes half an hour, against 1e5 records."""
    rows: list[Row] = []
    hundred: dict[tuple[int, str], float] = {}
    for p, kind, faster in ((4, "independent", 20), (13, "correlated", 8), (13, "independent", 8)):
        spent, memory, loop = alone(100_000, p, kind, compare=True)
        hundred[p, kind] = spent
        case = f"100,000 x {p} {kind}, k = {K}, peak {memory:.1f} GB"
        rows.append(row("MDAV, groups", case, spent, "textbook loop", loop, f"at least {faster} x faster"))
    for p, kind, target in ((4, "independent", "at most 31.6 x: exponent 1.5"), (13, "correlated", "")):
        spent, memory, _ = alone(1_000_000, p, kind, compare=False)
        case = f"1,000,000 x {p} {kind}, k = {K}, peak {memory:.1f} GB"
        rows.append(row("MDAV, groups", case, spent, "itself on 100,000 records", hundred[p, kind], target))
    return rows


def rows() -> list[Row]:
    """Time both at each size; the groups must be identical."""
    return small_rows() + large_rows()
