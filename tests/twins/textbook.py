"""MDAV as the textbook has it, compiled: the yardstick of the benchmarks, and the judge of large cases."""

import numpy as np
from numba import njit


@njit(cache=True)
def measure(points, rows, left, point, distances):
    for i in range(left):
        row = rows[i]
        total = 0.0
        for j in range(len(point)):
            difference = points[row, j] - point[j]
            total += difference * difference
        distances[i] = total


@njit(cache=True)
def farthest(rows, left, distances):
    best = 0
    for i in range(1, left):
        if distances[i] > distances[best]:
            best = i
    return rows[best]


@njit(cache=True)
def nearest(rows, distances, centre, near, group):
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


@njit(cache=True)
def remove(points, rows, groups, number, total):
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


@njit(cache=True)
def textbook(points, k):
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
