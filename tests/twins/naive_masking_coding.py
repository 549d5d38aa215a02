"""Slow and obvious twins of coding and synthesis, on numpy and the standard library only."""

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np

# --- coding ---


def rounded(x, base):
    """In exact arithmetic: the multiple of what the base's digits say, halves to even."""
    step = Fraction(repr(float(base)))
    return float(round(Fraction(repr(float(x))) / step) * step)


def next_round_number(size):
    series = [Fraction(digit) * Fraction(10) ** power for power in range(-40, 41) for digit in (1, 2, 5)]
    return float(min(series, key=lambda number: max(number / Fraction(size), Fraction(size) / number)))


def top_coded(column, share, replace):
    """The largest values of a list without missing cells, by share."""
    count = min(max(3, math.ceil(Fraction(repr(share)) * len(column))), len(column))
    least = sorted(column, reverse=True)[count - 1]
    coded = [x for x in column if x >= least]
    code = math.fsum(coded) / len(coded) if replace == "mean" else least
    return [code if x >= least else x for x in column]


def limited(column, limit, replace):
    """The values of a list above a limit."""
    coded = [x for x in column if x > limit]
    code = math.fsum(coded) / len(coded) if replace == "mean" and len(coded) >= 3 else limit
    return [code if x > limit else x for x in column]


def drawn_in(values, share):
    """Records of a complete file, the farthest of them as far away as the farthest of the others."""
    mean, sd = values.mean(axis=0), values.std(axis=0, ddof=1)
    distance = [math.sqrt(sum(((row - mean) / sd) ** 2)) for row in values]
    count = max(3, math.ceil(Fraction(repr(share)) * len(values)))
    cut = sorted(distance, reverse=True)[count]
    return np.array([mean + (row - mean) * min(1, cut / d) for row, d in zip(values, distance, strict=True)])


# --- synthesis ---


def resampled(column, samples, rng):
    """Samples drawn, sorted and averaged one by one; equal values share the mean of theirs."""
    known = sorted(x for x in column if not math.isnan(x))
    n = len(known)
    drawn = [sorted(known[i] for i in rng.integers(n, size=n)) for _ in range(samples)]
    means = [math.fsum(places) / samples for places in zip(*drawn, strict=True)]
    shared = {x: [mean for y, mean in zip(known, means, strict=True) if y == x] for x in known}
    return [x if math.isnan(x) else math.fsum(shared[x]) / len(shared[x]) for x in column]


def ipso(values, given, draws):
    """By regression and Cholesky factors; for complete data of full rank."""
    others = [j for j in range(values.shape[1]) if j not in given]
    design = np.column_stack([np.ones(len(values)), values[:, list(given)]])

    def residuals(parts):
        return parts - design @ np.linalg.lstsq(design, parts, rcond=None)[0]

    left, fresh = residuals(values[:, others]), residuals(draws)
    whitened = fresh @ np.linalg.inv(np.linalg.cholesky(fresh.T @ fresh).T)
    masked = values.copy()
    masked[:, others] += whitened @ np.linalg.cholesky(left.T @ left).T - left
    return masked


def middle_rank(x, column):
    return sum(y < x for y in column) + (sum(y == x for y in column) - 1) / 2


def copula_of(values, draws):
    """Complete columns, none of them constant, whose score correlations are positive definite."""
    n, p = values.shape
    ranks = np.array([[middle_rank(x, column) for x in column] for column in values.T])
    wanted = 2 * np.sin(np.pi * np.corrcoef(ranks) / 6)
    roots, vectors = np.linalg.eigh(wanted)
    scores = vectors @ np.diag(np.sqrt(roots)) @ vectors.T @ draws
    masked = np.empty((n, p))
    for j in range(p):
        known = sorted(values[:, j])
        for i in range(n):
            place = NormalDist().cdf(scores[j, i]) * (n - 1)
            low = math.floor(place)
            masked[i, j] = known[low] + (known[min(low + 1, n - 1)] - known[low]) * (place - low)
    return masked
