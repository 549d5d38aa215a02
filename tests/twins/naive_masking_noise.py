"""Slow, obvious twins of the noise family; they are handed the random numbers."""

import math
import statistics

import numpy as np

NORMAL = statistics.NormalDist().inv_cdf(0.75)  # the median absolute deviation of the standard normal


def zero_preserving(values, percent, draws):
    out = [list(row) for row in values]
    for j in range(len(values[0])):
        others = [row[j] for row in values if row[j] != 0 and not math.isnan(row[j])]
        sd = statistics.stdev(others) if len(others) > 1 else 0.0
        for i, row in enumerate(values):
            if row[j] != 0:
                out[i][j] = row[j] + percent / 100 * sd * draws[j][i]
    return np.array(out)


def multiplicative(values, percent, draws):
    return np.array(
        [
            [x if x == 0 else x * (1 + percent / 100 * draws[j][i]) for j, x in enumerate(row)]
            for i, row in enumerate(values)
        ]
    )


def kim(values, noisy, share):
    """From data with noise of this share of their covariance."""
    mean = values.mean(0)
    return mean + (noisy - mean) / math.sqrt(1 + share)


def power(matrix, exponent):
    """Of a symmetric matrix."""
    roots, vectors = np.linalg.eigh(matrix)
    return vectors @ np.diag(roots**exponent) @ vectors.T


def moment_preserving(values, delta, draws):
    """For variables that do not determine each other."""
    mean, sd = values.mean(0), values.std(0, ddof=1)
    known = np.column_stack([np.ones(len(values)), values])
    noise = draws.T - known @ np.linalg.lstsq(known, draws.T)[0]
    points = (values - mean) / sd
    residuals = noise @ power(noise.T @ noise, -0.5) @ power(points.T @ points, 0.5)
    return mean + math.sqrt(1 - delta**2) * (values - mean) + delta * residuals * sd


def gram_schmidt(matrix):
    """Columns made orthonormal, one after another."""
    columns = []
    for column in matrix.T:
        for _ in range(2):
            for other in columns:
                column = column - (column @ other) * other  # noqa: PLW2901 - what is left of it
        columns.append(column / math.sqrt(column @ column))
    return np.array(columns).T


def rotation(n, blocks, strength):
    """The whole n x n matrix; `blocks` holds the rows of each block and its normal numbers."""
    whole = np.zeros((n, n))
    for rows, draws in blocks:
        m = len(rows)
        axis = np.full(m, 1 / math.sqrt(m))
        axis[0] += 1
        mirror = np.eye(m) - 2 * np.outer(axis, axis) / (axis @ axis)
        inner = np.eye(m)
        inner[1:, 1:] = gram_schmidt(np.eye(m - 1) + strength / math.sqrt(m) * draws)
        whole[np.ix_(rows, rows)] = mirror @ inner @ mirror
    return whole


def scale(numbers):
    middle = statistics.median(numbers)
    mad = statistics.median(abs(x - middle) for x in numbers) / NORMAL
    return mad if mad > 1e-8 else statistics.stdev(numbers)


def robust_distances(values):
    """Two rounds of pairwise robust scales, for complete data that spread in every direction."""
    columns = [[x - statistics.median(column) for x in column] for column in values.T.tolist()]
    p = len(columns)
    for _ in range(2):
        columns = [[x / scale(column) for x in column] for column in columns]
        pairs = np.eye(p)
        for j in range(p):
            for k in range(p):
                if j != k:
                    total = scale([a + b for a, b in zip(columns[j], columns[k], strict=True)]) ** 2
                    gap = scale([a - b for a, b in zip(columns[j], columns[k], strict=True)]) ** 2
                    pairs[j, k] = (total - gap) / (total + gap)
        vectors = np.linalg.eigh(pairs)[1]
        columns = [
            [sum(columns[j][i] * vectors[j, k] for j in range(p)) for i in range(len(values))]
            for k in range(p)
        ]
    squares = np.zeros(len(values))
    for column in columns:
        middle, size = statistics.median(column), scale(column)
        squares += [((x - middle) / size) ** 2 for x in column]
    return np.sqrt(squares)
