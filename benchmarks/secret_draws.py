"""Masking with the cryptographic generator of releases, against the fast one of sweeps: CPU time."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from maskings import table
from sdckit import mask
from sdckit.core.randomness import draw_generator, fresh_entropy
from timing import Row, row, seconds

ROWS, COLUMNS = 1_000_000, 8
CASES: dict[str, dict[str, Any]] = {
    "noise": {"percent": 20},
    "correlated_noise": {"percent": 20},
    "rank_swap": {"p": 0.1},
}


def rows() -> list[Row]:
    """Both generators take turns on the same table."""
    values, found = table(ROWS, COLUMNS), []
    generators = {"aes": draw_generator(fresh_entropy(), 1), "fast": np.random.default_rng(1)}
    for name, options in CASES.items():
        contenders = [
            lambda name=name, options=options, rng=rng: mask(values, name, rng=rng, **options)
            for rng in generators.values()
        ]
        spent, fast = seconds(contenders, repeats=5, clock=time.process_time)
        found.append(row(name, f"{ROWS:,} x {COLUMNS}", spent, "the fast generator", fast, "<= 1.3 times"))
    return found
