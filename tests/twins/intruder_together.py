"""Several releases of one file together: noise averages out."""

import numpy as np

from intruder import all_credits, linkage, means
from intruder_distances import Distance, cell_distances, distance, numbers, plain, spread
from intruder_facts import facts
from intruder_release import known_masked


def common_facts(original, releases):
    """From the original and pairs of published table and release, the candidates that all facts leave."""
    return np.all([facts(original, published, release).certain for published, release in releases], axis=0)


def weighted_mean(tables, weights):
    """From n x p arrays and one row of weights each, the weighted mean over the observed cells, else NaN."""
    total, weight = np.zeros(tables[0].shape), np.zeros(tables[0].shape)
    for table, w in zip(tables, weights, strict=True):
        seen = ~np.isnan(table)
        total += np.where(seen, table, 0.0) * w
        weight += seen * w
    return np.where(weight > 0, total / np.where(weight > 0, weight, 1.0), np.nan)


def mean_squared_changes(original, published):
    """From two n x p arrays, the mean squared change of each variable where both have cells (or infinity)."""
    changes = (published - original) ** 2
    return [np.mean(column[~np.isnan(column)]) if (column >= 0).any() else np.inf for column in changes.T]


def precisions(original, tables):
    """From the original and R published n x p arrays, R x p weights 1/mean squared change.

    Where releases publish a variable unchanged, they alone count for it.
    """
    changes = np.array([mean_squared_changes(original, table) for table in tables])
    unchanged = changes == 0
    return np.where(unchanged.any(axis=0), unchanged, 1 / np.where(unchanged, 1.0, changes))


def mean_distances(original, releases):
    """From the original and the releases, the distances of their mean and of their weighted mean."""
    columns = known_masked(releases[0][1])
    x, tables = numbers(original, columns), [numbers(published, columns) for published, _ in releases]
    scale = np.array([spread(column) for column in x.T])
    plain = weighted_mean(tables, [np.ones(len(columns))] * len(tables))
    best = weighted_mean(tables, precisions(x, tables))
    return [distance("mean", plain / scale, x / scale), distance("weighted mean", best / scale, x / scale)]


def linkage_together(original, releases):
    """From the original and pairs of published table and release, a dict of the credits and the linkage."""
    inside = common_facts(original, releases)
    made = [plain(len(inside))]
    for number, (published, release) in enumerate(releases):
        made += [
            renamed(one, f"{one.name} of release {number}")
            for one in cell_distances(original, published, release)
        ]
    credit = all_credits(inside, [*made, *mean_distances(original, releases)])
    single = [linkage(original, published, release)["linkage"] for published, release in releases]
    return {"credits": credit, "single": single, "linkage": max(*single, *means(credit).values())}


def renamed(made, name):
    """From a Distance, the same one with another name."""
    return Distance(name, made.published, made.original, made.squared)
