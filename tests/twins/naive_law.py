"""Slow twins of the kernels of the law and of structure: one loop over all pairs, as the formulas read."""

import numpy as np


def normal_likelihood(published, free, mean, sd, root, rows, originals):
    """From cells and a normal law, -1/2 z'Jz - sum of log sd over the free cells of each pair."""
    found = []
    for u, i in zip(rows, originals, strict=True):
        some = free[u]
        z = ((published[u] - mean[i]) / sd[i])[some]
        covariance = np.linalg.inv(root @ root.T)[np.ix_(some, some)]
        found.append(-0.5 * z @ np.linalg.inv(covariance) @ z - np.log(sd[i][some]).sum())
    return np.array(found)


def moves_likelihood(ranks, published, free, bins, limits, tables, rows, originals):
    """From ranks of both files, the sum of log shares of the moves, which fall steeply beyond the largest."""
    found = []
    for u, i in zip(rows, originals, strict=True):
        total = 0.0
        for j, limit in enumerate(limits):
            move = published[u, j] - ranks[i, j]
            if not free[u, j] or np.isnan(move):
                continue
            width = tables.shape[2]
            place = int(np.clip(int((move + limit) / (2 * limit) * width), 0, width - 1))
            total += tables[j, bins[i, j], place]
            if abs(move) > limit:
                total += -4 - 3 * (abs(move) - limit) / limit
        found.append(total)
    return np.array(found)


def transitions_likelihood(states, lines, tables, rows, originals):
    """From states and lines of a table, the sum of the log shares of the transitions of each pair."""
    columns = range(lines.shape[1])
    return np.array(
        [
            sum(tables[j, lines[i, j], states[u, j]] for j in columns)
            for u, i in zip(rows, originals, strict=True)
        ]
    )


def keep_exchanged(possible, x, y):
    """From possible pairs, published u x original i, those for which some pair has both values exchanged."""
    found = possible.copy()
    for u, i in zip(*np.nonzero(possible), strict=True):
        partners = [possible[v, h] for v in np.flatnonzero(y == x[i]) for h in np.flatnonzero(x == y[u])]
        found[u, i] = any(partners)
    return found
