"""What a release gives away beside links: unique records, confidential values, and dominated groups."""

from collections import Counter

import numpy as np

from intruder_distances import cell_distances, reverse_links
from intruder_facts import column_case, converted, facts, number
from intruder_release import known_untouched


def class_sizes(published, columns):
    """From the published table, how many records share each record's cells in these columns."""
    size = len(next(iter(published.values())))
    rows = [tuple(converted(published[column][i]) for column in columns) for i in range(size)]
    counts = Counter(rows)
    return [counts[row] for row in rows]


def uniques(published, release):
    """From the published table, the share of records alone on the known untouched columns; 0: none is."""
    sizes = class_sizes(published, known_untouched(release))
    return sum(size == 1 for size in sizes) / len(sizes)


def floor(published, release, original=None):
    """From the published table, the mean of 1/class size: linkage cannot fall below it by other masking.

    Columns with other cells than the original ones (cases d and e) are no fact.
    """
    columns = known_untouched(release)
    if original is not None:
        cells = {name: [[converted(c) for c in t[name]] for t in (original, published)] for name in columns}
        columns = [name for name in columns if column_case(*cells[name])[0] in "abc"]
    sizes = class_sizes(published, columns)
    return sum(1 / size for size in sizes) / len(sizes)


# --- attribute disclosure ----------------------------------------------------------------------------------


def right(guess, truth):
    """From a published and an original cell, whether the guess is within 10 % (0 and text: equal)."""
    if guess is None or truth is None:
        return False
    (kind, value), (true_kind, true_value) = converted(guess), converted(truth)
    if kind == true_kind == 0:
        return abs(value - true_value) <= 0.1 * abs(true_value)
    return (kind, value) == (true_kind, true_value)


def rightness(original, published):
    """From a confidential column of both files, the matrix of right guesses: row original, column published.

    Rows of originals without a value are NaN: there is nothing to learn of them.
    """
    return np.array([[right(y, x) if x is not None else np.nan for y in published] for x in original], float)


def share_right(linked, correct):
    """From links of each original and right guesses, the share of right ones, ties shared."""
    shares = [row[link].mean() if link.any() else 0.0 for link, row in zip(linked, correct, strict=True)]
    known = [share for share, row in zip(shares, correct, strict=True) if not np.isnan(row).any()]
    return float(np.mean(known))


def constants(original):
    """From an original column, the constant guesses: the mode (smallest of several) and the median."""
    counts = Counter(cell for cell in original if cell is not None)
    modes = [cell for cell, count in counts.items() if count == max(counts.values())]
    values = [number(cell) for cell in original if number(cell) is not None]
    return [*sorted(modes, key=converted)[:1], *([float(np.median(values))] if values else [])]


def vote(cells, weights):
    """From published cells and their weights, the guess that is right, within 10 %, for the largest weight.

    Of equally good ones, the first by sign, then by size; texts come after numbers.
    """
    known = [
        (converted(cell), weight) for cell, weight in zip(cells, weights, strict=True) if cell is not None
    ]
    best, guess = 0.0, None
    order = sorted(
        {key for key, _ in known},
        key=lambda key: (key[0], np.sign(key[1]), abs(key[1])) if key[0] == 0 else key,
    )
    for kind, value in order:
        if kind == 0:
            largest = abs(value) * (1 + 1e-9)
            mine = [
                (abs(one), weight)
                for (other, one), weight in known
                if other == 0
                and np.sign(one) == np.sign(value)
                and abs(one) <= largest
                and 1.1 * abs(one) * (1 + 1e-9) >= 0.9 * abs(value)
            ]
            total, candidate = sum(w for _, w in mine), 1.1 * np.sign(value) * min(one for one, _ in mine)
        else:
            total, candidate = sum(w for key, w in known if key == (kind, value)), value
        if total > best * (1 + 1e-9):
            best, guess = total, candidate
    return guess


def vote_is_right(guess, truth):
    """Whether a guess by votes is right, the last digits aside."""
    if guess is None or truth is None:
        return False
    kind, value = converted(truth)
    if kind != 0 or isinstance(guess, str):
        return guess == value
    return abs(guess - value) <= 0.1 * abs(value) * (1 + 1e-8)


def guess_share(guess, original):
    """From one guess for all records, the share of the original values for which it is right."""
    return float(np.mean([right(guess, truth) for truth in original if truth is not None]))


def attribute(original, published, release, column):
    """From both tables and a confidential column, a dict of the value, its baselines, excess and groups."""
    found = facts(original, published, release)
    correct = rightness(original[column], published[column])
    made = cell_distances(original, published, release)
    every = [share_right(reverse_links(found.certain, one), correct) for one in made]
    inside = share_right(found.certain.T, correct)
    value = max(every, default=inside)
    voted = vote(original[column], [1.0] * len(original[column]))
    known = [cell for cell in original[column] if cell is not None]
    constant = max(
        (guess_share(guess, original[column]) for guess in constants(original[column])), default=0.0
    )
    constant = max(constant, float(np.mean([vote_is_right(voted, truth) for truth in known])))
    value = max(value, constant)
    random = float(correct[~np.isnan(correct).any(axis=1)].mean())
    return {
        "attribute": value,
        "random": random,
        "constant": constant,
        "excess": value - max(random, constant),
        "groups": inside,
    }


# --- groups ---------------------------------------------------------------------------------------------


def group_labels(published, columns):
    """From the published table, a label per record, equal for records published alike in these columns."""
    return list(zip(*([number(cell) for cell in published[column]] for column in columns), strict=True))


def group_bounds(candidates, labels):
    """From candidates and each record's group, the bound 1/(members of its group that share its facts)."""
    same = np.array([[a == b for b in labels] for a in labels])
    return 1 / (candidates & same).sum(axis=1)


def dominated(values, p=10.0):
    """From a group's original values, whether the second largest learns the largest to within p %."""
    sizes = [*sorted((abs(value) for value in values), reverse=True), 0.0, 0.0]
    return sum(sizes) - sizes[0] - sizes[1] < p / 100 * sizes[0]


def dominance(original, published, columns, labels, p=10.0):
    """From both tables and each record's group, the share of published group cells that fail the p % rule."""
    fails = []
    for column in columns:
        for label in dict.fromkeys(labels):
            rows = [i for i, other in enumerate(labels) if other == label]
            if any(number(published[column][i]) is not None for i in rows):
                values = [number(original[column][i]) for i in rows]
                fails.append(dominated([value for value in values if value is not None], p))
    return sum(fails) / len(fails) if fails else 0.0
