"""Time distance-based record linkage by counting nearer records against a search of the nearest (cKDTree)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING
from unittest.mock import patch

import numpy as np
from scipy.spatial import cKDTree

import sdckit as sdc
from sdckit.kernels.candidates import Targets, no_facts
from sdckit.risk.literature import TOLERANCE
from timing import Row, row, seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from sdckit.arrays import Floats

RECORDS, ASKED = 1_000_000, 100_000  # the yardstick answers so many, and its time is extrapolated
NOISE = (0.05, 0.2, 0.5)  # standard deviations, of data with standard deviation 1
REPEATS = 3
TARGET = "at least 10 x faster"


def on_one_thread(work: Callable[[], object]) -> Callable[[], object]:
    def alone() -> object:
        with patch("os.cpu_count", return_value=1):
            return work()

    return alone


def cpu(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def compared(case: str, x: Floats, y: Floats) -> list[Row]:
    """Growing the tree, the search in it, and the public call, each against its share of the yardstick."""
    n = len(x)
    truth, share = np.arange(n), n / min(ASKED, n)
    asked = np.random.default_rng(1).permutation(n)[:ASKED]
    facts, yardstick = no_facts(n), cKDTree(x)
    targets = Targets(x, facts)
    contenders: list[Callable[[], object]] = [
        on_one_thread(lambda: Targets(x, facts).forest),
        on_one_thread(lambda: targets.count_closer(y, truth, facts, TOLERANCE)),
        on_one_thread(lambda: sdc.dbrl(x, y)),
        lambda: sdc.dbrl(x, y),
        lambda: cKDTree(x),
        lambda: yardstick.query(y[asked]),
    ]
    grow, search, alone, together, built, answered = seconds(contenders, REPEATS)
    whole = built + share * answered
    ratio = (cpu(contenders[4]) + share * cpu(contenders[5])) / cpu(contenders[2])
    return [
        row("tree, one thread", case, grow, "cKDTree, built", built),
        row("search in it, one thread", case, search, "cKDTree.query", share * answered, TARGET),
        row("tree and search, one thread", case, grow + search, "cKDTree, built and asked", whole, TARGET),
        row(f"dbrl(), one thread; {ratio:.1f} x by CPU time", case, alone, "cKDTree, built and asked", whole),
        row(f"dbrl(), {os.cpu_count()} threads", case, together, "cKDTree, built and asked", whole),
    ]


def peak_memory() -> float:
    """Largest memory of a process that only makes the data and calls `dbrl`, in GB.

    From /proc: what `getrusage` says begins with the size of the process that started this one.
    """
    program = (
        "import numpy as np, sdckit as sdc\n"
        f"x = np.random.default_rng(0).normal(size=({RECORDS}, 4))\n"
        "sdc.dbrl(x, x + np.random.default_rng(1).normal(0, 0.05, x.shape))\n"
        "print(*(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - as written above
    return float(found.stdout) * 1024 / 1e9


def rows() -> list[Row]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(RECORDS, 4))
    found = []
    for sd in NOISE:
        found += compared(f"1,000,000 x 4, noise {sd}", x, x + rng.normal(0, sd, x.shape))
    wide = rng.normal(size=(100_000, 1)) + rng.normal(0, 0.5, (100_000, 13))
    wide /= wide.std(0)
    noisy = wide + rng.normal(0, 1.5, wide.shape)
    asked = np.arange(1_000)  # the yardstick takes minutes for all
    facts = no_facts(len(wide))
    targets = Targets(wide, facts)
    yardstick = cKDTree(wide)
    search, answered = seconds(
        [
            on_one_thread(lambda: targets.count_closer(noisy, np.arange(len(wide)), facts, TOLERANCE)),
            lambda: yardstick.query(noisy[asked]),
        ],
        REPEATS,
    )
    case = "100,000 x 13, correlated, noise 1.5"
    found.append(row("search, one thread", case, search, "cKDTree.query", 100 * answered, TARGET))
    most = peak_memory()
    case = "1,000,000 x 4, noise 0.05"
    return [*found, row(f"dbrl(), {most:.2f} GB at most", case, most, "1 GB", 1.0, "under 1 GB")]
