"""Clopper-Pearson interval by bisection of binomial tails, for whole sums."""

import math


def clopper_pearson(total, m, lower_tail, upper_tail):
    """Ends of the interval for a share of which `total` of m were seen, with the error of each end."""
    low = _share(lambda p: _at_least(total, m, p) < lower_tail) if total else 0.0
    high = _share(lambda p: 1 - _at_least(total + 1, m, p) > upper_tail) if total < m else 1.0
    return low, high


def _share(too_small):
    """The share at which a condition that holds for small shares ends."""
    low, high = 0.0, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if too_small(middle) else (low, middle)
    return low


def _at_least(count, m, p):
    """Probability of at least `count` successes among m."""
    return sum(math.comb(m, k) * p**k * (1 - p) ** (m - k) for k in range(count, m + 1))
