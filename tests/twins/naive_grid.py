"""A slow, obvious twin of the usual step of a column, in exact fractions; the standard library only."""

from collections import Counter
from fractions import Fraction

MULTIPLES = (125, 25, 12, 6, 5, 4, 3, 2)


def is_multiple(value, step):
    """Whether a number as it is written is a multiple of a step."""
    return Fraction(repr(value)) % step == 0


def shares(values, step):
    """Whether 95 of 100 values, none of them 0 or missing, are multiples of a step, by both counts."""
    counts = Counter(values)
    capped = {
        value: min(Fraction(count), max(Fraction(len(values), 20), 1)) for value, count in counts.items()
    }
    fit = [value for value in counts if is_multiple(value, step)]
    return (
        len(fit) >= 10
        and 20 * sum(counts[value] for value in fit) >= 19 * len(values)
        and 20 * sum(capped[value] for value in fit) >= 19 * sum(capped.values())
    )


def usual_step(values):
    """The coarsest step that most values share, or that of the decimals: all are below 2**53."""
    decimals = next(
        d for d in range(16) if d == 15 or all(is_multiple(v, Fraction(1, 10**d)) for v in values)
    )
    found = Fraction(1, 10**decimals)
    seen = [value for value in values if value]
    if decimals == 15 or len(seen) < 10:
        return found
    while found < 10**14 and shares(seen, 10 * found):
        found *= 10
    return next((found * multiple for multiple in MULTIPLES if shares(seen, found * multiple)), found)
