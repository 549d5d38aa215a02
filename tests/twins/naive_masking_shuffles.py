"""Slow, obvious twins of swapping and shuffling; numpy and the standard library only."""

import math
from fractions import Fraction
from itertools import pairwise
from statistics import NormalDist

import numpy as np


def swap_window(column, *, tails=0.0, exclusive=False, r0=0.0, k0=0.0):
    """Largest move in ranks that R0 or K0 allows in one column."""
    ordered = sorted(x for x in column if not math.isnan(x))
    n = len(ordered)
    tail = max(math.ceil(n * tails) - 1, 0)
    inside = ordered[tail : n - tail]
    if not ordered:
        return -int(exclusive)
    low, high = (ordered[tail - 1], ordered[n - tail]) if tail else (ordered[0], ordered[-1])
    if low == high:
        return -int(exclusive)
    exact = [Fraction(x) for x in inside]
    mean = sum(exact) / len(exact)
    variance = sum((x - mean) ** 2 for x in exact) / len(exact)
    cut = Fraction(high) - Fraction(low)
    wanted = (
        math.sqrt(2 * variance / cut**2 * Fraction(1 - r0)) if r0 else math.sqrt(8 / 3) * k0 * abs(mean / cut)
    )
    return math.floor(len(inside) * min(wanted, 1) + 1e-9) - exclusive


def swapped_by_moves(ordered, moves):
    """Each value not swapped yet, from the lowest up, with the free rank nearest to its move ahead."""
    found, free = list(ordered), set(range(len(ordered)))
    for rank, move in enumerate(moves):
        if rank not in free:
            continue
        free.remove(rank)
        if move and free:
            target = min(rank + move, len(found) - 1)
            other = min(free, key=lambda place: (abs(place - target), place))
            free.remove(other)
            found[rank], found[other] = found[other], found[rank]
    return found


def rank_noised(column, a, among_ties, noise):
    """One column in the order of ranks plus noise; the draws are listed from the lowest value up.

    Equal values, first listed by their rows, are ordered by `among_ties`; `noise` is standard normal, one
    for each observed row, in the order of the rows.
    """
    rows = [row for row, x in enumerate(column) if not math.isnan(x)]
    n = len(rows)
    by_row = sorted(rows, key=lambda row: column[row])
    by_rank = sorted(range(n), key=lambda place: (column[by_row[place]], among_ties[place]))
    key = {by_row[place]: rank for rank, place in enumerate(by_rank)}
    for row, z in zip(rows, noise, strict=True):
        key[row] += a * n * z
    found = list(column)
    for row, value in zip(sorted(rows, key=key.get), sorted(column[row] for row in rows), strict=True):
        found[row] = value
    return found


# --- shuffling by normal scores ---


def mean_ranks(column):
    """1-based ranks of the observed cells, tied values at their mean; nan for missing ones."""
    seen = [x for x in column if not math.isnan(x)]
    return [
        math.nan if math.isnan(x) else sum(y < x for y in seen) + (sum(y == x for y in seen) + 1) / 2
        for x in column
    ]


def rank_correlation(a, b):
    """Of two columns of ranks, from the rows that both have, about the middle rank of each column."""
    a, b = ([r - (sum(not math.isnan(s) for s in c) + 1) / 2 for r in c] for c in (a, b))
    both = [(s, t) for s, t in zip(a, b, strict=True) if not (math.isnan(s) or math.isnan(t))]
    size = math.sqrt(math.fsum(s * s for s, _ in both) * math.fsum(t * t for _, t in both))
    return math.fsum(s * t for s, t in both) / size if size else 0.0


def shuffled(values, given, draws):
    """Data shuffling with given standard normal draws, one line for each shuffled column."""
    columns = [list(column) for column in np.asarray(values).T]
    others = [j for j in range(len(columns)) if j not in given]
    ranks = [mean_ranks(column) for column in columns]
    R = np.array([[2 * math.sin(math.pi / 6 * rank_correlation(a, b)) for b in ranks] for a in ranks])
    roots, vectors = np.linalg.eigh(R)
    if roots.min() < -1e-9:
        raise ValueError("the twin takes correlations that data can have only")
    scores = []
    for column in ranks:
        n = sum(not math.isnan(r) for r in column)
        scores.append([0.0 if math.isnan(r) else NormalDist().inv_cdf((r - 0.5) / n) for r in column])
    S, X = list(given), others
    slopes = R[np.ix_(X, S)] @ np.linalg.pinv(R[np.ix_(S, S)], rcond=1e-10, hermitian=True)
    rest = R[np.ix_(X, X)] - slopes @ R[np.ix_(S, X)]
    roots, vectors = np.linalg.eigh(rest)
    noise = vectors @ np.diag(np.sqrt(np.maximum(roots, 0))) @ vectors.T @ draws
    drawn = slopes @ np.array(scores)[S] + noise
    result = [list(column) for column in columns]
    for line, j in zip(drawn, X, strict=True):
        rows = [i for i, x in enumerate(columns[j]) if not math.isnan(x)]
        for i, x in zip(
            sorted(rows, key=lambda i: line[i]), sorted(columns[j][i] for i in rows), strict=True
        ):
            result[j][i] = x
    return np.array(result).T


# --- sequential shuffling ---


def bin_of(x, column, bins):
    """Number of the equal-width bin, the upper edge belongs to it; `bins` for a missing cell."""
    if math.isnan(x):
        return bins
    seen = [y for y in column if not math.isnan(y)]
    edges = [min(seen) + (max(seen) - min(seen)) * i / bins for i in range(bins + 1)]
    return next((i for i, (_, top) in enumerate(pairwise(edges)) if x <= top), bins - 1)


def sequentially_shuffled(values, bins, condition, rng):
    """Rows of the later columns change places within their joint bins, the leading ones stay."""
    rows = [list(row) for row in values]
    n, p = len(rows), len(rows[0])
    columns = [[row[j] for row in rows] for j in range(p)]
    order = list(range(p))
    for _ in range(p if p > 1 else 0):
        for i in range(p - 1, 0, -1) if condition == "full" else [p - 1]:
            later = order[i:]
            keys = [tuple(bin_of(row[j], columns[j], bins) for j in later) for row in rows]
            draws = rng.random(n)
            listed = sorted(range(n), key=lambda row: (keys[row], row))
            mixed = list(listed)
            begin = 0
            for end in range(1, n + 1):
                if end < n and keys[listed[end]] == keys[listed[begin]]:
                    continue
                for place in range(end - 1, begin, -1):
                    other = begin + int(draws[place] * (place - begin + 1))
                    mixed[place], mixed[other] = mixed[other], mixed[place]
                begin = end
            old = [list(row) for row in rows]
            for place, source in zip(listed, mixed, strict=True):
                for j in later:
                    rows[place][j] = old[source][j]
        order = order[1:] + order[:1]
    return np.array([rows[i] for i in rng.permutation(n)])
