"""Compare `recommend` on sampled queries with the search that looks up all records: setting and CPU time.

Six files of different kinds. `rows` fails if the weakest safe setting of a method is neither that of the full
measurement nor its neighbour on the grid.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

import sdckit as sdc
from sdckit.selection.plan import settings_of
from sdckit.selection.search import settings_by_strength
from timing import Row, row

if TYPE_CHECKING:
    from sdckit.arrays import Floats
    from sdckit.selection.choice import Choice

RECORDS = 20_000
LIMITS = {"linkage": 0.1}
FIRST = 2_048  # records that are looked up at first


def files(n: int = RECORDS) -> dict[str, Floats]:
    """Files of n records and different kinds, by name."""
    rng = np.random.default_rng(1)
    mixed = rng.normal(size=(n, 3)) @ rng.normal(size=(3, 8))
    skewed = np.exp(0.5 * mixed + 0.6 * rng.normal(size=(n, 8)))
    holes = skewed[:, :5].copy()
    holes[rng.random(holes.shape) < 0.02] = np.nan
    return {
        "skewed, correlated": skewed,
        "normal, independent": rng.normal(size=(n, 6)),
        "two variables": skewed[:, :2],
        "many ties": np.round(4 * np.abs(mixed[:, :5])),
        "many zeros": skewed[:, :5] * (rng.random((n, 5)) > 0.3),
        "missing cells": holes,
    }


def search(values: Floats, sample_queries: int, **options: Any) -> tuple[Choice, float]:
    """The recommendation for a file, and its CPU seconds on one thread at a time."""
    began = time.process_time()
    more: dict[str, Any] = {"workers": 1, "replications": 1, "rng": 1} | options
    found = sdc.recommend(values, max_risk=LIMITS, sample_queries=sample_queries, **more)
    return found, time.process_time() - began


def steps_apart(one: Choice, other: Choice) -> int:
    """How many steps of a grid the weakest safe settings of a method are apart, at most, over all methods."""
    most = 0
    for grid in settings_by_strength(settings_of(None)):
        names = [str(setting) for setting in grid]
        found = [
            next((names.index(str(point)) for point in choice.safe if str(point) in names), len(names))
            for choice in (one, other)
        ]
        most = max(most, abs(found[0] - found[1]))
    return most


def rows() -> list[Row]:
    search(files(500)["skewed, correlated"], 64)  # compiles
    found = []
    for name, values in files().items():
        (full, spent_full), (sampled, spent) = search(values, 0), search(values, FIRST)
        apart = steps_apart(full, sampled)
        case = f"{name}, {RECORDS:,} x {values.shape[1]}: {sampled.setting}, {apart} steps apart"
        found.append(row("recommend, sampled", case, spent, "all looked up", spent_full, "at most 1 step"))
        if apart > 1 or full.method is not sampled.method:
            raise RuntimeError(f"{case}: {full.setting} without sampling")
    return found
