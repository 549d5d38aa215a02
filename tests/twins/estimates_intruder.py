"""An intruder who reads the public rows of estimates and tells values of the original from them.

Slow and obvious: each class of change is an interval of the original estimate, each estimate a weighted sum
of unknown values that are not negative, and linear programmes give the least and the largest value of what
the intruder looks for. He is given the standard errors of the original, which are not published.
"""

import math
import re

import numpy as np
from scipy.optimize import linprog

NUMBERS = re.compile(r"\d+(?:\.\d+)?")


def end_of(text):
    """The upper end of a class of change in words; infinite for "above" and for no class."""
    if text is None or text.startswith("above"):
        return math.inf
    return float(NUMBERS.findall(text)[-1])


def interval(row, error):
    """The least and the largest estimate of the original that a public row allows; values are positive."""
    share, value = end_of(row["change"]) / 100, row["masked"]
    low, high = (value / (1 + share), value / (1 - share)) if share < 1 else (-math.inf, math.inf)
    width = end_of(row["change_in_se"])
    if math.isfinite(width) and error is not None:
        low, high = max(low, value - width * error), min(high, value + width * error)
    return low, high


def sums_of(rows, members, errors):
    """For each row: which records it sums, and the interval of that sum; `members` has sets by row."""
    found = []
    for row in rows:
        key = row["estimate"], row["domain"]
        if key in members:
            low, high = interval(row, errors[key])
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
