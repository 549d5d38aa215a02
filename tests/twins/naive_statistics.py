"""Statistics of a file by their definitions, one figure at a time, as an intruder computes them."""

import math

BAND = 10
QUARTERS = {"q1": 0.25, "median": 0.5, "q3": 0.75}


def observed(column):
    return [x for x in column if not math.isnan(x)]


def standard_deviation(column):
    mean = math.fsum(column) / len(column)
    return math.sqrt(math.fsum((x - mean) ** 2 for x in column) / (len(column) - 1))


def band_mean(column, share):
    """The mean of the ten records around a quartile."""
    start = round(share * len(column)) - BAND // 2
    return math.fsum(sorted(column)[start : start + BAND]) / BAND


def correlation(x, y):
    both = [(a, b) for a, b in zip(x, y, strict=True) if not (math.isnan(a) or math.isnan(b))]
    x, y = [a for a, _ in both], [b for _, b in both]
    a, b = math.fsum(x) / len(x), math.fsum(y) / len(y)
    product = math.fsum((p - a) * (q - b) for p, q in both)
    return product / math.sqrt(math.fsum((p - a) ** 2 for p in x) * math.fsum((q - b) ** 2 for q in y))


def figure(columns, name, what):
    """One figure of a file given as lists by name; `what` is a statistic, or "with" another variable."""
    if what.startswith("with "):
        return correlation(columns[name], columns[what.removeprefix("with ")])
    values = observed(columns[name])
    if what in QUARTERS:
        return band_mean(values, QUARTERS[what])
    if what == "sd":
        return standard_deviation(values)
    return math.fsum(values) / (len(values) if what == "mean" else 1)
