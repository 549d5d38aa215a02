"""The one-to-one posterior of an attacker, slow and plain: dense Sinkhorn, belief propagation, enumeration.

`scores[u, i]` is the logarithm of how likely published record u is, if it belongs to original record i; minus
infinity where that is impossible. Every published record belongs to one original and the other way round, so
the chance that u is i is a sum over all permutations. Record u of the published file truly is record
`truth[u]` of the original; it is used to count what was found, and for nothing else.
"""

import itertools

import numpy as np

EQUAL = 1e-9  # claims that differ by less, relatively, are equal and share the credit
LEAST = 1e-280  # stands for an empty sum, so that nothing is divided by 0


def weights(scores):
    """Likelihoods, each row divided by its largest, which changes no posterior."""
    top = scores.max(1, keepdims=True)
    return np.exp(np.where(np.isfinite(top), scores - np.where(np.isfinite(top), top, 0), 0.0))


def row_posterior(scores):
    """Chances without one to one: each published record by itself."""
    found = weights(scores)
    return found / found.sum(1, keepdims=True)


def sinkhorn(scores, rounds=200, error=1e-3):
    """Chances by dividing rows and columns by their sums in turns, until rows add up to 1."""
    found = weights(scores)
    for _ in range(rounds):
        found = found / np.maximum(found.sum(1, keepdims=True), LEAST)
        found = found / np.maximum(found.sum(0, keepdims=True), LEAST)
        if np.abs(found.sum(1) - 1).max() < error:
            break
    return found


def bethe(scores, rounds=150, change=1e-3):
    """Chances by belief propagation, where each row and each column holds exactly one link.

    The message of a row to a cell is 1 / (sum of what its other cells claim), that of a column likewise; the
    odds of a cell are its weight times both messages. Starts from Sinkhorn's scaling, which leaves the
    posterior as it is and keeps numbers within reach.
    """
    found = sinkhorn(scores, rounds=30)
    from_columns, before = np.ones_like(found), np.zeros_like(found)
    for _ in range(rounds):
        from_rows = 1 / others(found * from_columns)
        from_columns = 1 / others((found * from_rows).T).T
        odds = np.minimum(found * from_rows * from_columns, 1e12)
        chances = odds / (1 + odds)
        if np.abs(chances - before).max() < change:
            break
        before = chances
    return chances


def others(table):
    """For each cell, the sum of the other cells in its row; the largest cell's is added up without it."""
    rows, best = np.arange(len(table)), table.argmax(1)
    left = table.sum(1, keepdims=True) - table
    rest = table.copy()
    rest[rows, best] = 0
    left[rows, best] = rest.sum(1)
    return np.clip(left, 1e-100, 1e100)


def enumerated(scores):
    """Chances by adding up all permutations: for up to seven records."""
    n = len(scores)
    found, total = np.zeros((n, n)), 0.0
    table = np.exp(scores - scores[np.isfinite(scores)].max())
    for order in itertools.permutations(range(n)):
        weight = np.prod([table[u, i] for u, i in enumerate(order)])
        total += weight
        for u, i in enumerate(order):
            found[u, i] += weight
    return found / total


def posterior(scores):
    """Half Sinkhorn, half belief propagation: the chances by which links are chosen."""
    return (sinkhorn(scores) + bethe(scores)) / 2


def right_links(claims, truth):
    """For each row 1 if its largest claim is the truth, shared among equal largest ones; else 0."""
    top = claims.max(1, keepdims=True)
    best = claims >= top - EQUAL * np.abs(top)
    return best[np.arange(len(claims)), truth] / best.sum(1)


def found(scores, truth=None, *, one_to_one=True):
    """Share of the published records linked rightly, each to its largest chance.

    One way of linking, fixed in advance: the best of several, chosen with the truth in hand, would find more
    than anybody can.
    """
    truth = np.arange(len(scores)) if truth is None else truth
    return right_links(posterior(scores) if one_to_one else row_posterior(scores), truth).mean()


def sure_links(scores, truth=None, share=0.05):
    """Precision of the surest links, and the share of all records named with a chance above 1/2 and right."""
    truth = np.arange(len(scores)) if truth is None else truth
    chances = bethe(scores)
    right, top = chances.argmax(1) == truth, chances.max(1)
    surest = np.argsort(-top)[: max(1, round(share * len(scores)))]
    return right[surest].mean(), ((top > 0.5) & right).mean()


def exposed(scores, truth=None, limit=0.5):
    """Number of records whose true original has a chance above the limit."""
    truth = np.arange(len(scores)) if truth is None else truth
    return int((bethe(scores)[np.arange(len(scores)), truth] > limit).sum())
