"""Candidates of queries, by a look at all records: what the searches in `kernels/candidates` must find."""

import numpy as np


def candidates(targets, queries, i):
    """Whether each target is a candidate of query i; both sides are (blocks, low, high)."""
    (blocks, low, high), (asked, lower, upper) = targets, queries
    overlap = (low <= upper[i]) & (high >= lower[i])
    return (blocks == asked[i]) & overlap.all(axis=1)


def distances(points, query):
    """Squared distances over shared cells, times all cells / shared cells; infinite without a shared cell."""
    total, shared = np.zeros(len(points)), np.zeros(len(points))
    for j in range(points.shape[1]):  # sums in the order of the variables, as everywhere
        difference = points[:, j] - query[j]
        both = ~np.isnan(difference)
        total[both] += difference[both] ** 2
        shared += both
    scale = np.divide(points.shape[1], shared, out=np.zeros(len(points)), where=shared > 0)
    return np.where(shared > 0, total * scale, np.inf)


def count_closer(points, queries, truth, facts, tolerance, places=1):
    """Per query: candidates closer than the true one (up to `places`), and those that tie with it."""
    found = []
    for i, query in enumerate(queries):
        fits = candidates(*facts, i)
        if not fits[truth[i]]:
            found.append((places, 0))
            continue
        all_distances = distances(points, query)
        own, others = all_distances[truth[i]], all_distances[fits]
        closer = np.sum(others < own * (1 - tolerance))
        within = np.sum(others <= own * (1 + tolerance))
        found.append((closer, within - closer) if closer < places else (places, 0))
    return np.array(found, np.int64).reshape(-1, 2).T


def count_nearest(points, queries, facts, property_of, tolerance):
    """Per query: its nearest candidates, and those of them whose further intervals overlap the query's."""
    (low, high), (lower, upper) = property_of
    found = []
    for i, query in enumerate(queries):
        fits, all_distances = candidates(*facts, i), distances(points, query)
        nearest = fits & (all_distances <= all_distances[fits].min(initial=np.inf) * (1 + tolerance))
        right = nearest & ((low <= upper[i]) & (high >= lower[i])).all(axis=1)
        found.append((nearest.sum(), right.sum()))
    return np.array(found, np.int64).reshape(-1, 2).T
