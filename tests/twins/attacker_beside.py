"""Attacks by what stands beside the masked cells: codes, columns that follow, places of rows, units.

Slow and plain, in numpy; as in `attacker`, `scores[u, i]` is the log likelihood of published record u, if it
belongs to original record i. Relations that the intruder must learn come from the true pairs of other folds.
"""

import math

import numpy as np

from attacker import NEVER
from attacker_posterior import posterior

# ---- groups and codes ----------------------------------------------------------------------------------


def same_group(again, Y):
    """0 where original i, masked by himself once more, is published as u is; minus infinity elsewhere.

    `again[i]` is how a method that draws nothing publishes original i.
    """
    return np.where((Y[:, None] == again[None]).all(2), 0.0, NEVER)


def codes_with_errors(codes, published, wrong):
    """Score a column of codes in which a share of the published cells is wrong: any other code instead."""
    others = len(np.unique(codes)) - 1
    same = published[:, None] == codes[None]
    return np.where(same, math.log(1 - wrong), math.log(wrong / others))


def near_numbers(known, published, wrong, most):
    """Score numbers of which a share is published wrongly, by up to `most` upwards or downwards."""
    gap = np.abs(published[:, None] - known[None])
    moved = np.where(gap <= most, math.log(wrong / (2 * most)), -30.0)
    return np.where(gap == 0, math.log(1 - wrong), moved)


# ---- columns and places that follow from what is known -------------------------------------------------


def follows(known, published, folds=5):
    """Score a published column that he does not know, by how it follows from the columns that he knows.

    Published value = a + b known + e, e normal; learnt for each record from the true pairs of other folds.
    """
    n = len(known)
    base, total = np.column_stack([np.ones(n), known]), np.empty((n, n))
    fold = np.random.default_rng(17).permutation(n) % folds
    for k in range(folds):
        use = fold != k
        law = np.linalg.lstsq(base[use], published[use], rcond=None)[0]
        deviation = max(np.std(published[use] - base[use] @ law), 1e-9)
        expected = base @ law
        total[~use] = -0.5 * ((published[~use, None] - expected[None]) / deviation) ** 2
    return total


def class_of_number(x, edges, published):
    """Score a published class of size: x lies in it or not."""
    return np.where(np.searchsorted(edges, x)[None] == published[:, None], 0.0, NEVER)


def normal_places(n):
    """Where each row of a sorted file lies, as the normal quantile of its place."""
    draws = np.sort(np.random.default_rng(19).normal(size=200 * n))
    return draws.reshape(n, 200).mean(1)


def in_place(key):
    """Scores of a file that is sorted by what he knows: row u is the person with the u-th smallest key."""
    scores = np.full((len(key), len(key)), NEVER)
    scores[np.arange(len(key)), np.argsort(key, kind="stable")] = 0.0
    return scores


# ---- what is learnt ------------------------------------------------------------------------------------


def read_within(links, confidential, published, share=0.1):
    """Share of persons whose confidential value is read to within a share of it; `links[i]` is i's record."""
    return float((np.abs(published[links] - confidential) <= share * np.abs(confidential)).mean())


def linked_records(scores):
    """For each person the most probable record, records one to one."""
    return posterior(scores).argmax(0)


def linked_rows_of_units(scores, months):
    """For each person-row its record: that of the same month in the unit which its own is linked to.

    Rows are sorted by unit, each with the same number of months in the same order.
    """
    unit = posterior(scores).argmax(0)
    return (unit[:, None] * months + np.arange(months)).ravel()


# ---- units ---------------------------------------------------------------------------------------------


def noise_of_units(X, Y, deviations, sample):
    """Scores of sampled published units against all units, months aligned: noise with these deviations.

    X and Y have three axes: units, months and columns.
    """
    return np.array([-0.5 * (((Y[u] - X) / deviations) ** 2).sum((1, 2)) for u in sample])


def nearest_units(scores, sample):
    """Share of the sampled published units whose most probable unit is the right one."""
    return float((scores.argmax(1) == sample).mean())


# ---- large files ---------------------------------------------------------------------------------------


def multiplicative_row_by_row(X, Y, percent):
    """Share of the published rows whose most probable original is right: y = x (1 + e), zeros apart.

    The law in closed form, one published row against all originals at a time; not one to one.
    """
    scale = np.abs(X) * percent / 100
    heights, right = np.log(scale).sum(1), 0
    for u, y in enumerate(Y):
        scores = -0.5 * (((y - X) / scale) ** 2).sum(1) - heights
        right += scores.argmax() == u
    return right / len(Y)
