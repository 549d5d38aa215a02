"""Which records MDAV puts together: the groups, whatever is published of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from sdckit import neighbours, progress
from sdckit.scales import powers_of_two

if TYPE_CHECKING:
    from collections.abc import Callable

    from sdckit.compiled import Floats, Ints

CELLS = 100_000_000  # visits to a cell between two looks at the keyboard: a fraction of a second


def standardise(values: Floats) -> Floats:
    """Columns with mean 0 and standard deviation 1, over observed values; a constant column is 0."""
    values = np.ascontiguousarray(values)
    values = values / powers_of_two(values)
    observed = ~np.isnan(values)
    counts = np.maximum(observed.sum(axis=0), 1)
    centred: Floats = values - np.where(observed, values, 0.0).sum(axis=0) / counts
    spread = np.sqrt(np.where(observed, centred * centred, 0.0).sum(axis=0) / counts)
    constant = np.fmin.reduce(values, axis=0) == np.fmax.reduce(values, axis=0)
    spread[constant | (spread == 0)] = np.inf
    centred /= spread
    return centred


def mdav_groups(values: Floats, k: int, points: Floats | None = None) -> Ints:
    """The MDAV group of each row, numbered as they are formed; -1 for a record without any value."""
    observed = ~np.isnan(values)
    present = observed.any(axis=1)
    count = np.count_nonzero(present)
    if count < k:
        raise ValueError(
            f"{count} records have a value, fewer than k = {k}; choose a smaller k or add records"
        )
    groups = np.full(len(values), -1)
    if k == 1:
        groups[present] = np.arange(count)
        return groups
    points = standardise(values) if points is None else points
    if observed.all():
        flat = neighbours.start(points, k)
        run(partial(neighbours.advance, flat, k), flat.counters, 2 * points.shape[1])
        return flat.groups
    part = neighbours.start_partial(points[present], k)
    run(partial(neighbours.advance_partial, part, k), part.counters, 10 * points.shape[1])
    groups[present] = part.groups
    return groups


def run(advance: Callable[[int], bool], counters: Ints, cost: int) -> None:
    """Call `advance(rounds)` until it is done; a round visits `cost` cells of each record left."""
    n = left = int(counters[neighbours.LEFT])
    with progress.track("MDAV", n * n) as report:  # a round's cost grows with the records left
        while not advance(max(1, CELLS // (left * cost))):
            left = int(counters[neighbours.LEFT])
            report(n * n - left * left)
