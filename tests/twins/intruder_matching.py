"""One-to-one matching inside the facts: the largest and cheapest ones share the credit."""

from collections import Counter
from itertools import permutations

import numpy as np

TOLERANCE = 1e-9  # costs that differ by less than this share are equal


def matching_costs(candidates, squared):
    """From candidates and squared distances, costs in which one forbidden pair outweighs all allowed ones."""
    allowed = squared[candidates & np.isfinite(squared)]
    most = float(allowed.max()) if len(allowed) else 0.0
    far = np.where(np.isfinite(squared), squared, most)  # no common cell: as far as the farthest pair
    return np.where(candidates, far, len(squared) * most + 1.0)


def assignment(costs):
    """From an n x n matrix of costs, a list with the column of each row in an assignment of least total cost.

    The Hungarian method: rows enter one by one along the cheapest augmenting path; u and v are prices.
    """
    size = len(costs)
    u, v = np.zeros(size), np.zeros(size + 1)
    row_of = [-1] * (size + 1)  # the row in each column; the last column holds the row that enters
    for row in range(size):
        row_of[size] = row
        augment(costs, u, v, row_of)
    columns = [0] * size
    for column in range(size):
        columns[row_of[column]] = column
    return columns


def augment(costs, u, v, row_of):
    """Let the row in the last column enter the assignment, and update the prices (in u, v and row_of)."""
    size = len(costs)
    least, before, done = [np.inf] * size, [size] * size, [False] * (size + 1)
    column = size
    while row_of[column] != -1:
        done[column] = True
        row = row_of[column]
        for j in range(size):
            reduced = costs[row][j] - u[row] - v[j]
            if not done[j] and reduced < least[j]:
                least[j], before[j] = reduced, column
        following = min((j for j in range(size) if not done[j]), key=least.__getitem__)
        step = least[following]
        for j in range(size + 1):
            if done[j]:
                u[row_of[j]] += step
                v[j] -= step
            elif j < size:
                least[j] -= step
        column = following
    while column != size:
        row_of[column], column = row_of[before[column]], before[column]
    row_of[size] = -1


def optimal_matching(candidates, squared):
    """From candidates and squared distances, the pairs of an optimal matching and the sum of their costs."""
    costs = matching_costs(candidates, squared)
    chosen = [(i, j) for i, j in enumerate(assignment(costs)) if candidates[i, j]]
    return chosen, float(sum(costs[i, j] for i, j in chosen))


def all_optimal_matchings(candidates, squared):
    """From candidates of a handful of records, the set of all optimal matchings, by trying every one."""
    costs = matching_costs(candidates, squared)
    every = {
        tuple((i, j) for i, j in enumerate(columns) if candidates[i, j])
        for columns in permutations(range(len(costs)))
    }
    largest = max(len(matching) for matching in every)
    totals = {m: sum(costs[pair] for pair in m) for m in every if len(m) == largest}
    limit = min(totals.values()) * (1 + TOLERANCE)
    return {matching for matching, total in totals.items() if total <= limit}


def matching_credits(candidates, squared):
    """From candidates of a handful of records, each record's share of the optimal matchings that find it."""
    matchings = all_optimal_matchings(candidates, squared)
    return np.array([sum((i, i) in m for m in matchings) / len(matchings) for i in range(len(candidates))])


def class_credits(candidates, squared, queries, targets):
    """From labels of equal queries and equal targets, credits shared over permutations of equal records.

    The same as the share of all optimal matchings where nothing but equal records makes several optimal.
    """
    chosen, _ = optimal_matching(candidates, squared)
    linked = Counter((queries[i], targets[j]) for i, j in chosen)
    sizes, others = Counter(queries), Counter(targets)
    return np.array([linked[q, t] / (sizes[q] * others[t]) for q, t in zip(queries, targets, strict=True)])


def complete_matching_exists(candidates):
    """From a matrix of candidates, whether every row can have a column of its own."""
    row_of = {}
    return all(find_column(candidates, row, row_of, set()) for row in range(len(candidates)))


def find_column(candidates, row, row_of, tried):
    """Give a row a free column, moving earlier rows if need be (in row_of); return whether it got one."""
    for column in np.flatnonzero(candidates[row]).tolist():
        if column in tried:
            continue
        tried.add(column)
        if column not in row_of or find_column(candidates, row_of[column], row_of, tried):
            row_of[column] = row
            return True
    return False
