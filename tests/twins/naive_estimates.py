"""Estimates and their linearised errors by their definitions: one record, one pair of records at a time."""

import math
from collections import defaultdict

FACTOR = 1.959963984540054


def variance(values, strata, units):
    """Of the sum of the records' values: units with replacement within strata."""
    totals = defaultdict(lambda: defaultdict(float))
    for value, stratum, unit in zip(values, strata, units, strict=True):
        totals[stratum][unit] += value
    found = 0.0
    for own in totals.values():
        n, mean = len(own), math.fsum(own.values()) / len(own)
        found += n / (n - 1) * math.fsum((total - mean) ** 2 for total in own.values())
    return found


def total(w, y):
    return math.fsum(a * b for a, b in zip(w, y, strict=True))


def mean(w, y):
    return total(w, y) / math.fsum(w)


def gini(w, y):
    pairs = ((a * b, abs(x - z)) for a, x in zip(w, y, strict=True) for b, z in zip(w, y, strict=True))
    return math.fsum(weight * gap for weight, gap in pairs) / (2 * math.fsum(w) * total(w, y))


def ratio(w, a, b):
    return total(w, a) / total(w, b)


def correlation(w, a, b):
    x, y = mean(w, a), mean(w, b)
    return mean(w, [(p - x) * (q - y) for p, q in zip(a, b, strict=True)]) / math.sqrt(
        mean(w, [(p - x) ** 2 for p in a]) * mean(w, [(q - y) ** 2 for q in b])
    )


def quantile(w, y, share):
    """The smallest value at which the distribution function reaches a share; None beyond 0 and 1."""
    if not 0 <= share <= 1:
        return None
    whole, reached = math.fsum(w), 0.0
    for value, weight in sorted(zip(y, w, strict=True)):
        reached += weight
        if weight and reached >= share * whole * (1 - 1e-12):
            return value
    return max(y)


def slopes(function, w, *columns):
    """Of a function in each record's weight, by central differences."""
    found = []
    for i, weight in enumerate(w):
        h = 1e-4 * (weight or 1.0)
        up, down = ([*w[:i], weight + step, *w[i + 1 :]] for step in (h, -h))
        found.append((function(up, *columns) - function(down, *columns)) / (2 * h))
    return found


def linearised(function, inside, w, strata, units, *columns):
    """Value and error of a function of weights and columns, on the records inside a domain."""
    rows = [i for i, chosen in enumerate(inside) if chosen]
    own = [[column[i] for i in rows] for column in (w, *columns)]
    values = [0.0] * len(w)
    for i, slope in zip(rows, slopes(function, *own), strict=True):
        values[i] = w[i] * slope
    return function(*own), math.sqrt(variance(values, strata, units))


def woodruff(share, inside, w, strata, units, y):
    """Quantile, error and interval."""
    rows = [i for i, chosen in enumerate(inside) if chosen]
    own, values = [w[i] for i in rows], [y[i] for i in rows]
    middle = quantile(own, values, share)
    below = [float(one <= middle) for one in y]
    reached, error = linearised(mean, inside, w, strata, units, below)
    low, high = (quantile(own, values, reached + sign * FACTOR * error) for sign in (-1, 1))
    return middle, None if None in (low, high) else (high - low) / (2 * FACTOR), low, high


def overlap(first, second):
    """Mean share of two intervals that lies in both."""
    common = max(0.0, min(first[1], second[1]) - max(first[0], second[0]))
    return (common / (first[1] - first[0]) + common / (second[1] - second[0])) / 2
