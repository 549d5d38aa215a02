"""Flat exact MDAV against the textbook loop, both compiled: same groups, less time."""

from __future__ import annotations

import numpy as np

from sdckit import neighbours
from sdckit.compiled import Floats, Ints, kernel
from sdckit.masking.microaggregation import mdav
from sdckit.masking.partition import standardise
from timing import Row, row, seconds

K = 3
SIZES = (1_000, 5_000, 10_000, 20_000)
COLUMNS = (4, 13)


@kernel
def measure(points: Floats, rows: Ints, left: int, point: Floats, distances: Floats) -> None:
    for i in range(left):
        row = rows[i]
        total = 0.0
        for j in range(len(point)):
            difference = points[row, j] - point[j]
            total += difference * difference
        distances[i] = total


@kernel
def farthest(rows: Ints, left: int, distances: Floats) -> int:
    best = 0
    for i in range(1, left):
        if distances[i] > distances[best]:
            best = i
    return rows[best]  # type: ignore[no-any-return]


@kernel
def nearest(rows: Ints, distances: Floats, centre: int, near: Floats, group: Ints) -> None:
    """One pass with a sorted list of the best so far; rows come in order, so ties need no care."""
    size = 0
    for i in range(len(rows)):
        if rows[i] != centre and (size < len(near) or distances[i] < near[size - 1]):
            size = min(size + 1, len(near))
            j = size - 1
            while j > 0 and near[j - 1] > distances[i]:
                near[j], group[j] = near[j - 1], group[j - 1]
                j -= 1
            near[j], group[j] = distances[i], rows[i]


@kernel
def remove(points: Floats, rows: Ints, groups: Ints, number: int, total: Floats) -> int:
    kept = 0
    for i in range(len(rows)):
        row = rows[i]
        if groups[row] == number:
            for j in range(len(total)):
                total[j] -= points[row, j]
        else:
            rows[kept] = row
            kept += 1
    return kept


@kernel
def textbook(points: Floats, k: int) -> Ints:
    """Distances to the centroid, its farthest, distances to that, k nearest, the farthest left."""
    n, p = points.shape
    rows, left, number = np.arange(n), n, 0
    groups = np.full(n, -1)
    distances, near, group = np.empty(n), np.empty(k - 1), np.empty(k - 1, np.int64)
    total, centre = np.zeros(p), np.empty(p)
    for i in range(n):
        for j in range(p):
            total[j] += points[i, j]
    while left >= 2 * k:
        for j in range(p):
            centre[j] = total[j] / left
        measure(points, rows, left, centre, distances)
        row = farthest(rows, left, distances)
        for side in range(2 if left >= 3 * k else 1):
            if side:
                measure(points, rows, left, points[row], distances)
                row = farthest(rows, left, distances)
            measure(points, rows, left, points[row], distances)
            nearest(rows[:left], distances, row, near, group)
            groups[row] = number
            for i in range(k - 1):
                groups[group[i]] = number
            left = remove(points, rows[:left], groups, number, total)
            number += 1
    for i in range(left):
        groups[rows[i]] = number
    return groups


def flat(points: Floats, k: int) -> Ints:
    state = neighbours.start(points, k)
    while not neighbours.advance(state, k, len(points)):
        pass
    return state.groups


def rows() -> list[Row]:
    """Time both at each size; the groups must be identical."""
    table: list[Row] = []
    for n in SIZES:
        for p in COLUMNS:
            values = np.random.default_rng(n + p).normal(size=(n, p))
            points = standardise(values)
            np.testing.assert_array_equal(flat(points, K), textbook(points, K))
            repeats = 51 if n <= 1_000 else 5
            loop, groups = seconds(
                [lambda points=points: textbook(points, K), lambda points=points: flat(points, K)], repeats
            )
            (public,) = seconds([lambda values=values: mdav(values, k=K)], repeats)
            case = f"{n:,} x {p}, k = {K}"
            table.append(row("MDAV flat, groups", case, groups, "textbook loop", loop, "at least 3 x faster"))
            table.append(row("mdav(), public call", case, public, "textbook loop", loop))
    return table
