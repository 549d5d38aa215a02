"""Slow, obvious twins of calibration, and attacks on exact totals; numpy and the standard library only."""

from itertools import product


def calibrated_column(values, weights, low, high, target):
    """Cells multiplied by one factor and moved into their limits, the factor found by bisection."""

    def cells(rate):
        return [min(max(v + rate * abs(v), a), b) for v, a, b in zip(values, low, high, strict=True)]

    least, most = -1e9, 1e9
    for _ in range(300):
        rate = (least + most) / 2
        if sum(w * x for w, x in zip(weights, cells(rate), strict=True)) < target:
            least = rate
        else:
            most = rate
    return cells(most)


def least_miss(lower, weights, target):
    """The smallest distance to a weighted sum, over all ways to round each cell up by 1 or not."""
    return min(
        abs(target - sum(w * (x + up) for w, x, up in zip(weights, lower, ups, strict=True)))
        for ups in product((0, 1), repeat=len(lower))
    )


def last_record(total, others):
    """What an intruder computes who knows a total and all records but one."""
    return total - sum(others)


def largest_seen_by_second(values):
    """The largest value, and what the second largest contributor takes for it: all that is not his own."""
    ordered = sorted(map(abs, values), reverse=True)
    return ordered[0], sum(ordered) - ordered[1]


def undone_factor(published, originals):
    """The factor that brings most published cells of a domain back to values of the original file.

    An intruder who has the original values tries the ratios of some published cells to all of them.
    """
    known = sorted(set(originals))

    def hits(factor):
        return sum(min(abs(cell - factor * value) for value in known) <= 0.5 for cell in published)

    tried = {cell / value for cell in sorted(published)[-3:] for value in known if 0.5 < cell / value < 2}
    return max(tried, key=hits)
