"""Slow and obvious twins of the fast code, on numpy and the standard library only."""

import math

import numpy as np

# --- microaggregation ---------------------------------------------------------------------------


def standardise(values):
    seen = ~np.isnan(values)
    count = np.maximum(seen.sum(axis=0), 1)
    centred = values - np.where(seen, values, 0.0).sum(axis=0) / count
    sd = np.sqrt(np.where(seen, centred**2, 0.0).sum(axis=0) / count)
    for j in range(values.shape[1]):
        if len(np.unique(values[seen[:, j], j])) < 2:
            centred[seen[:, j], j], sd[j] = 0.0, 1.0
    return centred / sd


def row_by_row_sum(numbers):
    total = 0.0
    for number in numbers:
        total += float(number)
    return total


def mdav_groups(values, k):
    """The textbook loop: running-sum centroid, ties by smallest row, groups numbered as formed."""
    points = standardise(values)
    left = list(range(len(points)))
    groups = np.full(len(points), -1)
    total = [row_by_row_sum(column) for column in points.T]

    def distances_to(point):
        distances = np.zeros(len(points))
        for j in range(points.shape[1]):
            distances += (points[:, j] - point[j]) ** 2
        return distances

    def farthest(point):
        distances = distances_to(point)
        return max(left, key=lambda row: (distances[row], -row))

    def form(row):
        distances = distances_to(points[row])
        nearest = sorted(
            (other for other in left if other != row), key=lambda other: (distances[other], other)
        )
        number = groups.max() + 1
        for member in sorted([row, *nearest[: k - 1]]):
            groups[member] = number
            left.remove(member)
            for j in range(points.shape[1]):
                total[j] -= points[member, j]

    if k == 1:
        return np.arange(len(points))
    while len(left) >= 3 * k:
        first = farthest([column / len(left) for column in total])
        form(first)
        form(farthest(points[first]))
    if len(left) >= 2 * k:
        form(farthest([column / len(left) for column in total]))
    groups[left] = groups.max() + 1
    return groups


def mdav_groups_missing(values, k):
    """The same with missing cells: distances over shared columns, centroid over observed values."""
    points = standardise(values)
    left = [row for row in range(len(points)) if not np.isnan(points[row]).all()]
    groups = np.full(len(points), -1)

    def distance(a, b):
        terms = [(x - y) ** 2 for x, y in zip(a, b, strict=True) if not (math.isnan(x) or math.isnan(y))]
        return row_by_row_sum(terms) * (len(a) / len(terms)) if terms else None

    def farthest(point):
        def rank(row):
            gap = distance(points[row], point)
            return (-1.0 if gap is None else gap, -row)

        return max(left, key=rank)

    def form(row):
        def rank(other):
            gap = distance(points[other], points[row])
            return (math.inf if gap is None else gap, other)

        nearest = sorted((other for other in left if other != row), key=rank)
        number = groups.max() + 1
        for member in [row, *nearest[: k - 1]]:
            groups[member] = number
            left.remove(member)

    def centroid():
        seen = [column[~np.isnan(column)] for column in points[left].T]
        return [row_by_row_sum(column) / len(column) if len(column) else math.nan for column in seen]

    while len(left) >= 3 * k:
        first = farthest(centroid())
        form(first)
        form(farthest(points[first]))
    if len(left) >= 2 * k:
        form(farthest(centroid()))
    groups[left] = groups.max() + 1
    return groups


def individual_ranking(values, k):
    masked = np.full(values.shape, np.nan)
    for j in range(values.shape[1]):
        rows = [row for row in range(len(values)) if not math.isnan(values[row, j])]
        rows = sorted(rows, key=values[:, j].__getitem__)
        while len(rows) >= k:
            size = k if len(rows) >= 2 * k else len(rows)
            members, rows = rows[:size], rows[size:]
            masked[members, j] = math.fsum(values[members, j]) / size
    return masked
