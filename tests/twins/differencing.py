"""What two published files tell of the records that only one of them has, by subtraction.

The attacker has both files, as lists of columns of numbers, and knows how many records left and joined. He
does not know how either file was masked.
"""

from collections import Counter

import numpy as np


def present(column):
    """The cells of a column that are not missing, as a list."""
    return [float(cell) for cell in column if not np.isnan(cell)]


def by_sums(before, after, left, joined):
    """Guesses of a cell that left and of one that joined: the difference of the sums, split equally.

    n1 mean1 - n2 mean2 = (sum of those who left) - (sum of those who joined). With both, each of them is
    taken for an average record, and what is then unexplained is split equally.
    """
    first, second = present(before), present(after)
    average = (sum(first) + sum(second)) / (len(first) + len(second))
    unexplained = sum(first) - sum(second) - (left - joined) * average
    return average + unexplained / (left + joined), average - unexplained / (left + joined)


def by_values(before, after, *_):
    """Guesses by the values that one file has and the other has not, counted: of these, the most crowded."""
    first, second = Counter(present(before)), Counter(present(after))
    gone, new = list((first - second).elements()), list((second - first).elements())
    return crowded(gone), crowded(new)


def crowded(values):
    """The value that lies within 10 % of most others; NaN without values."""
    best, most = np.nan, 0
    for one in sorted(values):
        near = sum(abs(one - other) <= 0.1 * abs(other) for other in values)
        if near > most:
            best, most = one, near
    return best


KINDS = {"sums": by_sums, "values": by_values}
CONSTANTS = {
    "median": np.median,
    "most frequent": lambda cells: min(Counter(cells).items(), key=lambda item: (-item[1], item[0]))[0],
    "crowded": crowded,
}


def groups_of(labels):
    """The whole file and, if labels of groups are published, each of them: lists of (group, which rows)."""
    *_, gone, new = labels
    whole = [[np.ones(len(part), bool) for part in labels]]
    each = [[part == group for part in labels] for group in np.union1d(gone, new)]
    return [whole, each]


def shares(before, after, gone, new, labels, within, guesses_of):
    """For one way to guess, the shares of cells that are guessed in the whole files and by groups.

    n1 mean1 - n2 mean2 within a group is the difference of means of groups times their sizes.
    """
    found = []
    for cut in groups_of(labels):
        hits = []
        for first, second, left, joined in cut:
            for j in range(before.shape[1]):
                cells = gone[left, j], new[joined, j]
                guesses = guesses_of(before[first, j], after[second, j], len(cells[0]), len(cells[1]))
                for guess, some in zip(guesses, cells, strict=True):
                    hits += [abs(guess - cell) <= within * abs(cell) + 1e-9 for cell in some]
        found.append(float(np.mean(hits)))
    return found


def best_share(before, after, gone, new, within=0.1, labels=None):
    """The share of cells that left or joined and are guessed within a share of their value, by the best kind.

    `before` and `after` are published arrays, `gone` and `new` original cells of those who left or joined;
    `labels` are published groups of these four.
    """
    labels = labels or [np.zeros(len(part)) for part in (before, after, gone, new)]
    return max(max(shares(before, after, gone, new, labels, within, kind)) for kind in KINDS.values())


def constant_share(before, after, gone, new, within=0.1, labels=None):
    """The same share for one guess for everybody: median, most frequent or crowded value of a column."""
    labels = labels or [np.zeros(len(part)) for part in (before, after, gone, new)]

    def guess_of(constant):
        return lambda first, second, *_: (constant(present(first)), constant(present(second)))

    return max(
        max(shares(before, after, gone, new, labels, within, guess_of(constant)))
        for constant in CONSTANTS.values()
    )
