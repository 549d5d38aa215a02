"""Slow and obvious twins of the disclosure risks, on numpy and the standard library only."""

import itertools
import math

import numpy as np

# --- interval disclosure ------------------------------------------------------------------------


def observed(x, y):
    return not (math.isnan(x) or math.isnan(y))


def sd(values):
    seen = [float(v) for v in values if not math.isnan(v)]
    if len(set(seen)) < 2:
        return 0.0
    mean = math.fsum(seen) / len(seen)
    return math.sqrt(math.fsum((v - mean) ** 2 for v in seen) / (len(seen) - 1))


def share(hits):
    return sum(hits) / len(hits) if hits else math.nan


def sdid(original, masked, k=0.05, scale="original", level="records"):
    scales = [sd(column) for column in (original if scale == "original" else masked).T]
    records, cells = [], []
    for x, y in zip(original, masked, strict=True):
        hits = [abs(a - b) <= k * s for a, b, s in zip(x, y, scales, strict=True) if observed(a, b)]
        cells += hits
        if hits:
            records.append(all(hits))
    return share(records if level == "records" else cells)


def half_width(percent, n, hundred=100):
    return math.floor(percent * n / hundred + 0.5)


def reached(order, place, h, x):
    """Whether x lies between the values h places below and above, cut at both ends."""
    return order[max(place - h, 0)] <= x <= order[min(place + h, len(order) - 1)]


def rid_column(x, y, hundred=100):
    """Each cell's chance over the places of its tie block, mean over the percentages."""
    order = sorted(y)
    found = []
    for a, b in zip(x, y, strict=True):
        places = [place for place, value in enumerate(order) if value == b]
        hits = [
            reached(order, place, half_width(percent, len(order), hundred), a)
            for percent in range(1, 11)
            for place in places
        ]
        found.append(share(hits))
    return found


def rid(original, masked, hundred=100):
    found = []
    for x, y in zip(original.T, masked.T, strict=True):
        rows = [i for i in range(len(x)) if observed(x[i], y[i])]
        found += rid_column(x[rows].tolist(), y[rows].tolist(), hundred)
    return math.fsum(found) / len(found) if found else math.nan


def rid_over_orders(x, y, h):
    """Smallest, mean and largest share of cells found, over all ways to put equal masked values in order.

    Smallest and largest are those of each cell.
    """
    order = sorted(y)
    hits = np.array(
        [
            [reached(order, places.index(i), h, x[i]) for i in range(len(x))]
            for places in itertools.permutations(range(len(x)))
            if [y[i] for i in places] == order
        ]
    )
    return hits.all(0).mean(), hits.mean(), hits.any(0).mean()


def scaled(column):
    return (column - column.mean()) / (sd(column) or 1.0)


def rmdid(original, masked, distances, k=0.01, k2=0.05):
    """Shares of records that are near, and near and alone, given robust distances; complete data."""
    x = np.column_stack([scaled(column) for column in original.T])
    y = np.column_stack([scaled(column) for column in masked.T])
    near, alone = [], []
    for i in range(len(x)):
        near.append(any(abs(a - b) <= k * 0.05 * distances[i] for a, b in zip(x[i], y[i], strict=True)))
        others = [math.dist(y[i], y[j]) for j in range(len(y)) if j != i]
        alone.append(near[-1] and min(others) > k2)
    return share(near), share(alone)


def loss_terms(original, masked):
    """The five terms of the Score's information loss; complete data without zeros."""

    def variation(ours, theirs):
        return math.fsum(abs(a - b) / abs(a) for a, b in zip(ours, theirs, strict=True)) / len(ours)

    p = original.shape[1]
    upper, strict = np.triu_indices(p), np.triu_indices(p, 1)
    files = original, masked
    covariances = [np.cov(file, rowvar=False).reshape(p, p) for file in files]
    correlations = [np.corrcoef(file, rowvar=False).reshape(p, p)[strict] for file in files]
    return {
        "cells": variation(*(file.ravel() for file in files)),
        "means": variation(*(file.mean(0) for file in files)),
        "variances": variation(*(np.diag(matrix) for matrix in covariances)),
        "covariances": variation(*(matrix[upper] for matrix in covariances)),
        "correlations": np.abs(correlations[0] - correlations[1]).mean() if p > 1 else math.nan,
    }


# --- linkage --------------------------------------------------------------------------------------


def squared_distances(queries, targets, scales):
    """Query x target: mean squared difference over the variables that both have, infinite without any."""
    found = np.full((len(queries), len(targets)), np.inf)
    for i, query in enumerate(queries):
        shared = ~np.isnan(query) & ~np.isnan(targets)
        squares = np.where(shared, ((query - targets) / scales) ** 2, 0.0)
        some = shared.any(1)
        found[i, some] = squares.sum(1)[some] / shared.sum(1)[some]
    return found


def shared_credit(distances, places=1, tolerance=1e-9):
    """Expected, strict and optimistic credit of each query, whose true target has the same number."""
    found = []
    for i, line in enumerate(distances):
        own = line[i]
        closer = int((line < own * (1 - tolerance)).sum())
        tied = int(((line >= own * (1 - tolerance)) & (line <= own * (1 + tolerance))).sum())
        if closer >= places:
            found.append((0.0, 0.0, 0.0))
        else:
            found.append((min(1.0, (places - closer) / tied), float(tied <= places - closer), 1.0))
    return np.array(found).T


def among_equals(credit, queries):
    """Credit of queries shared with their equals: expected and optimistic as means, strict as none."""
    rows = [tuple("missing" if math.isnan(cell) else cell for cell in row) for row in queries]
    classes = {row: [i for i, other in enumerate(rows) if other == row] for row in rows}
    shared = np.array([credit[:, classes[row]].mean(axis=1) for row in rows]).T
    shared[1] = [strict * (len(classes[row]) == 1) for strict, row in zip(credit[1], rows, strict=True)]
    return shared


def scales_of(values):
    """Standard deviations; a variable that does not vary has an infinite scale and adds no distance."""
    return np.array([sd(column) or math.inf for column in values.T])


def directed(original, masked, direction):
    """The records that are looked up, and those that are searched."""
    return (masked, original) if direction == "masked_to_original" else (original, masked)


def dbrl(original, masked, direction="masked_to_original", places=1):
    queries, targets = directed(original, masked, direction)
    credit = shared_credit(squared_distances(queries, targets, scales_of(original)), places)
    return among_equals(credit, queries)


def dbrl_mahalanobis(original, masked, direction="masked_to_original", places=1):
    """Complete data; distances by the pseudo-inverse of the release's correlations, in its units."""
    scales = scales_of(masked)
    scaled = (masked - masked.mean(0)) / scales
    inverse = np.linalg.pinv(scaled.T @ scaled / (len(masked) - 1), rcond=1e-10, hermitian=True)
    queries, targets = directed(original / scales, masked / scales, direction)
    gaps = queries[:, None] - targets
    return among_equals(shared_credit(np.einsum("ikj,jl,ikl->ik", gaps, inverse, gaps), places), queries)


def midranks(values):
    """From 0 to 1, each variable among its observed cells; NaN where a cell is missing."""
    found = np.full(values.shape, np.nan)
    for j, column in enumerate(values.T):
        seen = column[~np.isnan(column)]
        for i, value in enumerate(column):
            if not math.isnan(value):
                found[i, j] = ((seen < value).sum() + (seen == value).sum() / 2) / len(seen)
    return found


def dbrl_rank(original, masked, direction="masked_to_original", places=1):
    queries, targets = directed(midranks(original), midranks(masked), direction)
    credit = shared_credit(squared_distances(queries, targets, np.ones(original.shape[1])), places)
    return among_equals(credit, queries)


def positions(column, value):
    """The first and the last place of a value in the ordered column."""
    seen = column[~np.isnan(column)]
    return int((seen < value).sum()), int((seen <= value).sum()) - 1


def near(ours, theirs, width):
    """Whether some place of the one is at most `width` away from some place of the other."""
    places = itertools.product(range(ours[0], ours[1] + 1), range(theirs[0], theirs[1] + 1))
    return min(abs(a - b) for a, b in places) <= width


def window(original, masked, width, direction="masked_to_original"):
    """Each record's credit, shared with all that fit; a missing cell fits everywhere."""
    queries, targets = directed(original, masked, direction)
    n, p = original.shape

    def fits(i, k):
        return all(
            near(positions(queries[:, j], queries[i, j]), positions(targets[:, j], targets[k, j]), width)
            for j in range(p)
            if observed(queries[i, j], targets[k, j])
        )

    found = np.zeros(n)
    for i in range(n):
        if fits(i, i):
            found[i] = 1 / sum(fits(i, k) for k in range(n))
    return among_equals(np.array([found, found, found]), queries)[0]


def matching(costs):
    """Each record's true link over all best one-to-one assignments: its share, in all of them, in some."""
    n = len(costs)
    orders = [np.array(order) for order in itertools.permutations(range(n))]
    totals = np.array([costs[np.arange(n), order].sum() for order in orders])
    best = [order for order, total in zip(orders, totals, strict=True) if total <= totals.min() + 1e-9]
    hits = np.array([order == np.arange(n) for order in best])
    return hits.mean(0), hits.all(0).astype(float), hits.any(0).astype(float)


def chi2_below(q, p):
    """P(chi2_p <= q) for a whole number p, by adding up the series of the incomplete gamma function."""
    if math.isinf(q):
        return 1.0
    a, x = p / 2, q / 2
    term = total = 1 / a
    for step in range(1, 2000):
        term *= x / (a + step)
        total += term
    return total * math.exp(a * math.log(x) - x - math.lgamma(a)) if x > 0 else 0.0


def chi2_quantile(share, p):
    """By halving an interval."""
    if share == 1:
        return math.inf
    low, high = 0.0, 1000.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if chi2_below(middle, p) < share else (low, middle)
    return low


def consistency_factor(share, p):
    return share / chi2_below(chi2_quantile(share, p), p + 2)


def reweighted_covariance(points, half):
    """Record by record: who lies within the 97.5 % ellipsoid of the densest half, and their covariance."""
    p = points.shape[1]

    def consistent(rows):
        gaps = points[rows] - points[rows].mean(axis=0)
        return (
            sum(np.outer(g, g) for g in gaps)
            / (len(rows) - 1)
            * consistency_factor(len(rows) / len(points), p)
        )

    rows = [i for i in range(len(points)) if half[i]]
    centre, inverse = points[rows].mean(axis=0), np.linalg.inv(consistent(rows))
    limit = chi2_quantile(0.975, p)
    return consistent([i for i, x in enumerate(points) if (x - centre) @ inverse @ (x - centre) < limit])


def dominated_sum(contributions, percent=10.0):
    """Whether the p % rule fails for a sum, and whether one contribution dominates it by any rule."""
    sizes = [*sorted((abs(value) for value in contributions), reverse=True), 0.0, 0.0]
    rest = sum(sizes[2:])
    learnt = rest < percent / 100 * sizes[0]
    return learnt, learnt or sizes[0] > sum(sizes) / 2
