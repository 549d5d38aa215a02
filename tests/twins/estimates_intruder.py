"""An intruder who reads the public rows of estimates and tells values of the original from them.

Slow and obvious: each class of change is an interval of the original estimate, each estimate a weighted sum
of unknown values that are not negative, and linear programmes give the least and the largest value of what
the intruder looks for. He is given the standard errors of the original, and the direction of a change that is
not in the first class, which are not published.
"""

import math
import re

import numpy as np
from scipy.optimize import linprog

NUMBERS = re.compile(r"\d+(?:\.\d+)?")


def ends_of(text):
    """The ends of a class of change in words; 0 and infinity for no class."""
    if text is None:
        return 0.0, math.inf
    numbers = [float(found) for found in NUMBERS.findall(text)]
    if text.startswith("above"):
        return numbers[0], math.inf
    return (0.0, numbers[0]) if text.startswith("below") else tuple(numbers)


def side(value, low, high, truth):
    """The interval of an original estimate whose distance from the masked one is between low and high.

    Where it may lie on either side, the intruder is told on which.
    """
    if low == 0:
        return value - high, value + high
    return (value + low, value + high) if truth > value else (value - high, value - low)


def interval(row, error, truth):
    """The least and the largest estimate of the original that a public row allows; values are positive."""
    value, (low, high) = row["masked"], (end / 100 for end in ends_of(row["change"]))
    ends = [value / (1 + high), value / (1 - high) if high < 1 else math.inf]
    if low > 0:
        ends = [value / (1 - low), ends[1]] if truth > value else [ends[0], value / (1 + low)]
    if row["change_in_se"] is not None and error is not None:
        low, high = (end * error for end in ends_of(row["change_in_se"]))
        found = side(value, low, high, truth)
        ends = [max(ends[0], found[0]), min(ends[1], found[1])]
    return tuple(ends)


def sums_of(rows, members, exact):
    """For each row: which records it sums, and the interval of that sum; `members` has sets by row."""
    found = []
    for row in rows:
        key = row["estimate"], row["domain"]
        if key in members:
            low, high = interval(row, *exact[key])
            size = len(members[key]) if row["estimate"].startswith("mean") else 1
            found.append((members[key], low * size, high * size))
    return found


def total_of(target, sums, n):
    """The least and the largest total of some records, given intervals of sums over others."""
    upper, ends = [], []
    for records, low, high in sums:
        inside = np.zeros(n)
        inside[list(records)] = 1.0
        if math.isfinite(high):
            upper.append(inside)
            ends.append(high)
        if math.isfinite(low):
            upper.append(-inside)
            ends.append(-low)
    if not upper:
        return 0.0, math.inf
    goal = np.zeros(n)
    goal[list(target)] = 1.0
    found = [linprog(sign * goal, np.array(upper), ends, bounds=(0, None)) for sign in (1, -1)]
    return found[0].fun, (-found[1].fun if found[1].status == 0 else math.inf)


def value_of(record, values, sums):
    """The least and the largest value of a record for an intruder who knows all other ones."""
    low, high = 0.0, math.inf
    for records, least, most in sums:
        if record in records:
            others = sum(values[one] for one in records if one != record)
            low, high = max(low, least - others), min(high, most - others)
    return low, high


def is_told(ends, truth, percent=10):
    """True if both ends lie within so many percent of the truth."""
    return all(abs(end - truth) < percent / 100 * abs(truth) for end in ends)
