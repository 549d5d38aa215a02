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
