"""Slow and obvious twins of the losses of distributions, moments and models, as in `naive`."""

import bisect
import itertools
import math
import statistics
from fractions import Fraction

import numpy as np

# --- distributions --------------------------------------------------------------------------------


def ks(x, y, weights=None):
    weights = [1.0] * len(x) if weights is None else list(weights)
    total = sum(weights)

    def share(values, point):
        return sum(w for value, w in zip(values, weights, strict=True) if value <= point) / total

    return max(abs(share(x, point) - share(y, point)) for point in [*x, *y])


def mean_cross_gap(points, weights, others):
    """Sum over points of the weight times the mean distance to all others."""
    return sum(
        w * sum(abs(a - b) for b in others) / len(others) for a, w in zip(points, weights, strict=True)
    )


def hellinger(x, y):
    """Bins by comparison with every edge: below all, up to each of them, above all."""
    bins = min(20, math.isqrt(len(x)))
    edges = sorted(set(np.quantile(x, [i / bins for i in range(bins + 1)]).tolist()))

    def place(value):
        if value < edges[0]:
            return "below"
        if value > edges[-1]:
            return "above"
        return max(1, bisect.bisect_left(edges, value))

    ours, theirs = ([place(value) for value in values] for values in (x, y))
    shared = sum(math.sqrt(ours.count(b) * theirs.count(b)) for b in set(ours)) / len(x)
    return math.sqrt(max(0.0, 1 - shared))


def wasserstein(x, y, weights=None):
    """The area between the two distribution functions, step by step."""
    weights = [1.0] * len(x) if weights is None else list(weights)
    points = sorted({*x, *y})
    area = 0.0
    for low, high in itertools.pairwise(points):
        below = [
            sum(w for value, w in zip(v, weights, strict=True) if value <= low) / sum(weights) for v in (x, y)
        ]
        area += abs(below[0] - below[1]) * (high - low)
    return area


def mse_parts(x, y):
    """Marginal and permutation part by their definitions, in exact fractions."""
    x, y = [Fraction(value) for value in x], [Fraction(value) for value in y]
    n = len(x)
    marginal = sum((a - b) ** 2 for a, b in zip(sorted(x), sorted(y), strict=True)) / n
    together = sum(a * b for a, b in zip(sorted(x), sorted(y), strict=True))
    permutation = 2 * (together - sum(a * b for a, b in zip(x, y, strict=True))) / n
    return float(marginal), float(permutation)


def il_variables(x, y, unit):
    return statistics.fmean(2 / math.pi * math.atan(abs(a - b) / unit) for a, b in zip(x, y, strict=True))


# --- moments --------------------------------------------------------------------------------------


def il_correl(x, y):
    d, e = (np.diag(np.linalg.inv(np.corrcoef(values, rowvar=False))) for values in (x, y))
    d, e = d / math.sqrt(sum(d**2)), e / math.sqrt(sum(e**2))
    return math.sqrt(sum((d - e) ** 2) / 2)


def eigen(x, y):
    ours, theirs = (sorted(np.linalg.eigvals(np.corrcoef(v, rowvar=False)).real) for v in (x, y))
    return sum(abs(a - b) / a for a, b in zip(ours, theirs, strict=True))


def ci_overlap(x, y):
    ends = []
    for values in (x, y):
        half = statistics.NormalDist().inv_cdf(0.975) * statistics.stdev(values) / math.sqrt(len(values))
        ends.append((statistics.fmean(values) - half, statistics.fmean(values) + half))
    common = max(0.0, min(high for _, high in ends) - max(low for low, _ in ends))
    return statistics.fmean(common / (high - low) for low, high in ends)


def um(x, y):
    z = (x - x.mean(0)) / x.std(0, ddof=1)
    w = (y - x.mean(0)) / x.std(0, ddof=1)
    values, vectors = np.linalg.eigh(np.cov(z, rowvar=False))
    along = np.array([np.var(w @ vectors[:, j]) for j in range(values.size)])
    values, along = values / values.sum(), along / along.sum()
    return 1 - min(1, sum((values - along) ** 2) / sum((values - 1 / values.size) ** 2))


def cm(x, y):
    """From the ranks' covariance matrices; no ties."""
    ranks = np.hstack([np.argsort(np.argsort(values, axis=0), axis=0) for values in (x, y)])
    full = np.cov(ranks, rowvar=False)
    p = x.shape[1]
    a, b, c = full[:p, :p], full[p:, p:], full[:p, p:]
    squares = np.linalg.eigvals(np.linalg.inv(a) @ c @ np.linalg.inv(b) @ c.T).real
    return math.prod(1 - squares)


def moment(u, v, r, s):
    return statistics.fmean((a - u.mean()) ** r * (b - v.mean()) ** s for a, b in zip(u, v, strict=True))


def pil(x, y):
    """The mean of each family, parameter by parameter as SPEC writes them; no constant column."""
    n, p = x.shape
    found = {}

    def add(family, old, new, variance):
        z = abs(new - old) / math.sqrt(variance)
        found.setdefault(family, []).append(2 * statistics.NormalDist().cdf(z) - 1)

    for j in range(p):
        u, w = x[:, j], y[:, j]
        m2, m4 = moment(u, u, 2, 0), moment(u, u, 4, 0)
        add("means", u.mean(), w.mean(), m2 / n)
        add("variances", m2, moment(w, w, 2, 0), (m4 - m2**2) / n)
        low, high = np.quantile(u, [0.25, 0.75])
        width = 0.9 * min(u.std(ddof=1), (high - low) / 1.34) * n ** (-1 / 5)
        for step in range(1, 20):
            q = step / 20
            point = np.quantile(u, q)
            f = statistics.fmean(statistics.NormalDist(value, width).pdf(point) for value in u)
            add("quantiles", point, np.quantile(w, q), q * (1 - q) / (n * f**2))
    for j, k in itertools.combinations(range(p), 2):
        u, v = x[:, j], x[:, k]
        m = {(r, s): moment(u, v, r, s) for r in range(5) for s in range(5)}
        m11 = moment(y[:, j], y[:, k], 1, 1)
        add("covariances", m[1, 1], m11, (m[2, 2] - m[1, 1] ** 2) / n)
        r = m[1, 1] / math.sqrt(m[2, 0] * m[0, 2])
        new = m11 / (y[:, j].std() * y[:, k].std())
        ends = m[4, 0] / m[2, 0] ** 2 + m[0, 4] / m[0, 2] ** 2 + 2 * m[2, 2] / (m[2, 0] * m[0, 2])
        mixed = m[3, 1] / (m[1, 1] * m[2, 0]) + m[1, 3] / (m[1, 1] * m[0, 2])
        add("correlations", r, new, r**2 / n * (m[2, 2] / m[1, 1] ** 2 + ends / 4 - mixed))
    return {family: statistics.fmean(values) for family, values in found.items()}


# --- models ---------------------------------------------------------------------------------------


def pmse(x, y, *, quadratic):
    """Plain Newton steps for an unpenalised logistic regression on the columns as they are."""
    table = np.vstack([x, y])
    target = np.array([0.0] * len(x) + [1.0] * len(y))
    columns = [np.ones(len(table)), *table.T]
    if quadratic:
        products = itertools.combinations_with_replacement(table.T, 2)
        columns += [a * b for a, b in products]
    matrix = np.column_stack(columns)
    matrix = matrix / np.abs(matrix).max(0)
    weights = np.zeros(matrix.shape[1])
    for _ in range(50):
        fitted = 1 / (1 + np.exp(-matrix @ weights))
        curvature = matrix.T @ np.diag(fitted * (1 - fitted)) @ matrix
        weights += np.linalg.solve(curvature, matrix.T @ (target - fitted))
    fitted = 1 / (1 + np.exp(-matrix @ weights))
    return np.mean((fitted - len(y) / len(table)) ** 2)
