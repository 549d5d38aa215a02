"""Slow and obvious twins of the fast code, on numpy and the standard library only."""

import itertools
import math
from fractions import Fraction

import numpy as np

# --- microaggregation ---------------------------------------------------------------------------


def standardise(values):
    seen = ~np.isnan(values)
    count = np.maximum(seen.sum(axis=0), 1)
    centred = values - np.where(seen, values, 0.0).sum(axis=0) / count
    sd = np.sqrt(np.where(seen, centred**2, 0.0).sum(axis=0) / count)
    for j in range(values.shape[1]):
        if len(np.unique(values[seen[:, j], j])) < 2:
            centred[seen[:, j], j], sd[j] = 0.0, 1.0
    return centred / sd


def row_by_row_sum(numbers):
    total = 0.0
    for number in numbers:
        total += float(number)
    return total


def mdav_groups(values, k):
    """The textbook loop: running-sum centroid, ties by smallest row, groups numbered as formed."""
    points = standardise(values)
    left = list(range(len(points)))
    groups = np.full(len(points), -1)
    total = [row_by_row_sum(column) for column in points.T]

    def distances_to(point):
        distances = np.zeros(len(points))
        for j in range(points.shape[1]):
            distances += (points[:, j] - point[j]) ** 2
        return distances

    def farthest(point):
        distances = distances_to(point)
        return max(left, key=lambda row: (distances[row], -row))

    def form(row):
        distances = distances_to(points[row])
        nearest = sorted(
            (other for other in left if other != row), key=lambda other: (distances[other], other)
        )
        number = groups.max() + 1
        for member in sorted([row, *nearest[: k - 1]]):
            groups[member] = number
            left.remove(member)
            for j in range(points.shape[1]):
                total[j] -= points[member, j]

    if k == 1:
        return np.arange(len(points))
    while len(left) >= 3 * k:
        first = farthest([column / len(left) for column in total])
        form(first)
        form(farthest(points[first]))
    if len(left) >= 2 * k:
        form(farthest([column / len(left) for column in total]))
    groups[left] = groups.max() + 1
    return groups


def mdav_groups_missing(values, k):
    """The same with missing cells: distances over shared columns, centroid over observed values."""
    points = standardise(values)
    left = [row for row in range(len(points)) if not np.isnan(points[row]).all()]
    groups = np.full(len(points), -1)

    def distance(a, b):
        terms = [(x - y) ** 2 for x, y in zip(a, b, strict=True) if not (math.isnan(x) or math.isnan(y))]
        return row_by_row_sum(terms) * (len(a) / len(terms)) if terms else None

    def farthest(point):
        def rank(row):
            gap = distance(points[row], point)
            return (-1.0 if gap is None else gap, -row)

        return max(left, key=rank)

    def form(row):
        def rank(other):
            gap = distance(points[other], points[row])
            return (math.inf if gap is None else gap, other)

        nearest = sorted((other for other in left if other != row), key=rank)
        number = groups.max() + 1
        for member in [row, *nearest[: k - 1]]:
            groups[member] = number
            left.remove(member)

    def centroid():
        seen = [column[~np.isnan(column)] for column in points[left].T]
        return [row_by_row_sum(column) / len(column) if len(column) else math.nan for column in seen]

    while len(left) >= 3 * k:
        first = farthest(centroid())
        form(first)
        form(farthest(points[first]))
    if len(left) >= 2 * k:
        form(farthest(centroid()))
    groups[left] = groups.max() + 1
    return groups


def individual_ranking(values, k):
    masked = np.full(values.shape, np.nan)
    for j in range(values.shape[1]):
        rows = [row for row in range(len(values)) if not math.isnan(values[row, j])]
        rows = sorted(rows, key=values[:, j].__getitem__)
        while len(rows) >= k:
            size = k if len(rows) >= 2 * k else len(rows)
            members, rows = rows[:size], rows[size:]
            masked[members, j] = math.fsum(values[members, j]) / size
    return masked


# --- ranks and ties -----------------------------------------------------------------------------


def ranks(values, ties="average"):
    """1-based ranks under the rules that look at one column alone, by counting."""
    found = []
    for i, value in enumerate(values):
        below = sum(other < value for other in values)
        equal = sum(other == value for other in values)
        earlier = sum(other == value for other in values[:i])
        found.append({"average": below + (equal + 1) / 2, "first": below + earlier + 1}.get(ties))
        if ties == "last":
            found[-1] = below + equal - earlier
    return found


def middle_ranks2(values):
    """Doubled mid-ranks (1-based) of a long column: twice the number below, plus the number equal, plus 1."""
    ordered = np.sort(values)
    return np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right") + 1


def exact_sum(numbers):
    """Sum of int64 numbers below 2**51 without overflow."""
    numbers = np.asarray(numbers, np.int64)
    return sum(int(numbers[first : first + 4096].sum()) for first in range(0, len(numbers), 4096))


def rank_sums(x, y):
    """Sums of |r - s|, doubled, and of (r - s)**2, times four, of mid-ranks, as whole numbers."""
    gap = middle_ranks2(np.asarray(x)) - middle_ranks2(np.asarray(y))
    return exact_sum(np.abs(gap)), exact_sum(gap * gap)


def largest_sums(n):
    """The note's maxima, term by term."""
    terms = [n - 2 * k + 1 for k in range(1, n // 2 + 1)]
    return 2 * sum(terms), 2 * sum(term**2 for term in terms)


def bounded(r, s):
    """brMAE and brMSE of two rankings."""
    absolute, squared = largest_sums(len(r))
    gaps = [a - b for a, b in zip(r, s, strict=True)]
    return sum(abs(gap) for gap in gaps) / absolute, sum(gap**2 for gap in gaps) / squared


def br(x, y, ties="average"):
    """brMAE and brMSE of two columns under a rule that looks at one column alone."""
    return bounded(ranks(x, ties), ranks(y, ties))


def tie_breakings(values):
    """Every ranking without ties that agrees with the values."""
    n = len(values)
    less = [(i, j) for i in range(n) for j in range(n) if values[i] < values[j]]
    every = itertools.permutations(range(1, n + 1))
    return np.array([rank for rank in every if all(rank[i] < rank[j] for i, j in less)])


def every_tie_breaking(x, y):
    """brMAE and brMSE of all pairs of tie-breakings of the two columns."""
    absolute, squared = largest_sums(len(x))
    gaps = tie_breakings(x)[:, None, :] - tie_breakings(y)[None, :, :]
    return np.abs(gaps).sum(2).ravel() / absolute, (gaps**2).sum(2).ravel() / squared


def every_pairing(x, y, measure):
    """Mean of a measure over all ways to pair the rows of y with those of x."""
    values = [measure(x, list(other)) for other in itertools.permutations(y)]
    return np.mean(values, axis=0)


def weighted_positions(values, weights):
    """Weight below each value plus half the weight tied with it."""
    found = []
    for value in values:
        below = math.fsum(w for v, w in zip(values, weights, strict=True) if v < value)
        equal = math.fsum(w for v, w in zip(values, weights, strict=True) if v == value)
        found.append(below + equal / 2)
    return found


def weighted_br(x, y, weights):
    """Weighted brMAE and brMSE."""
    total = math.fsum(weights)
    triples = zip(weights, weighted_positions(x, weights), weighted_positions(y, weights), strict=True)
    gaps = [(w, r - s) for w, r, s in triples]

    def reach(values):
        below = found = 0.0
        for _, w in sorted(zip(values, weights, strict=True)):
            found += w * abs(below + w / 2 - total / 2)
            below += w
        return found

    absolute = math.fsum(w * abs(gap) for w, gap in gaps) / (reach(x) + reach(y))
    cubes = math.fsum(w**3 for w in weights)
    return absolute, math.fsum(w * gap**2 for w, gap in gaps) / ((total**3 - cubes) / 3)


def weighted_br_exactly(x, y, weights):
    """The same in exact fractions, for weights of any size."""
    w = [Fraction(weight) for weight in weights]
    total = sum(w)

    def position(values, i):
        below = sum(w[j] for j, value in enumerate(values) if value < values[i])
        return below + sum(w[j] for j, value in enumerate(values) if value == values[i]) / 2

    def reach(values):
        below = found = Fraction(0)
        for i in sorted(range(len(w)), key=lambda i: (values[i], w[i])):
            found += w[i] * abs(below + w[i] / 2 - total / 2)
            below += w[i]
        return found

    gaps = [position(x, i) - position(y, i) for i in range(len(w))]
    absolute = sum(weight * abs(gap) for weight, gap in zip(w, gaps, strict=True)) / (reach(x) + reach(y))
    squared = sum(weight * gap**2 for weight, gap in zip(w, gaps, strict=True))
    return float(absolute), float(squared / ((total**3 - sum(weight**3 for weight in w)) / 3))


def penalised(value, kept, suppressed):
    """Loss with every suppressed cell counted as a complete loss."""
    return (kept * value + suppressed) / (kept + suppressed)


def displacement(x, y):
    """Largest move in ranks between two columns that hold the same values; ties count as near as they can."""
    ordered = sorted(x)
    first = {value: place for place, value in reversed(list(enumerate(ordered)))}
    last = {value: place for place, value in enumerate(ordered)}
    gaps = [max(first[b] - last[a], first[a] - last[b]) for a, b in zip(x, y, strict=True) if a != b]
    return max(gaps, default=0)


# --- losses of single cells -----------------------------------------------------------------------


def spread(column, weights=None):
    """Standard deviation of the observed cells, ddof 1, weighted or not."""
    pairs = [(x, 1.0 if weights is None else weights[i]) for i, x in enumerate(column) if not math.isnan(x)]
    total = math.fsum(w for _, w in pairs)
    mean = math.fsum(w * x for x, w in pairs) / total
    squares = math.fsum(w * (x - mean) ** 2 for x, w in pairs) / total
    return math.sqrt(squares * len(pairs) / (len(pairs) - 1))


def cell_costs(name, x, y, weights=None, zeros="keep"):
    """(cost, weight) of every cell of two matrices that counts, column by column."""
    found = []
    for j in range(len(x[0])):
        scale = math.sqrt(2) * spread([row[j] for row in x], weights) if name == "il1s" else 1.0
        for i in range(len(x)):
            a, b, w = x[i][j], y[i][j], 1.0 if weights is None else weights[i]
            if math.isnan(a) or math.isnan(b):
                continue
            if name == "mse":
                found.append(((a - b) ** 2, w))
            elif name != "il1":
                found.append((abs(a - b) / scale, w))
            elif a != 0:
                found.append((abs(a - b) / abs(a), w))
            elif zeros == "keep" and b == 0:
                found.append((0.0, w))
    return found


def cell_loss(name, x, y, weights=None, zeros="keep"):
    """MAE, MSE, IL1 or IL1s over all cells that count."""
    costs = cell_costs(name, x, y, weights, zeros)
    return math.fsum(cost * w for cost, w in costs) / math.fsum(w for _, w in costs)


def exact_root(square):
    """The square root of a fraction to many more digits than a float has, whatever its size."""
    return Fraction(math.isqrt((square.numerator << 5000) // square.denominator), 1 << 2500)


def cell_loss_exactly(name, x, y, weights=None):
    """The same in exact fractions, so that no sum is too large; complete matrices without zeros."""
    w = [Fraction(1 if weights is None else weights[i]) for i in range(len(x))]
    found = Fraction(0)
    for j in range(len(x[0])):
        a, b = [Fraction(row[j]) for row in x], [Fraction(row[j]) for row in y]
        gaps = [abs(c - d) ** (2 if name == "mse" else 1) for c, d in zip(a, b, strict=True)]
        if name == "il1":
            gaps = [gap / abs(c) for gap, c in zip(gaps, a, strict=True)]
        mean = sum(v * gap for v, gap in zip(w, gaps, strict=True)) / sum(w)
        if name == "il1s":
            centre = sum(v * c for v, c in zip(w, a, strict=True)) / sum(w)
            squares = sum(v * (c - centre) ** 2 for v, c in zip(w, a, strict=True)) / sum(w)
            mean /= exact_root(2 * squares * len(a) / (len(a) - 1))
        found += mean / len(x[0])
    return found


# --- the reproduced study -----------------------------------------------------------------------


def ranking_distances(ranking):
    """Sums of absolute and squared differences between a ranking and 1, 2, ..., n."""
    gaps = [place - rank for place, rank in enumerate(ranking, start=1)]
    return sum(abs(gap) for gap in gaps), sum(gap**2 for gap in gaps)


def ordered_differently(methods, losses, others):
    """Share of the pairs of files by different methods that two losses put in a different order."""

    def order(a, b):
        return (a > b) - (a < b)

    files = zip(methods, losses, others, strict=True)
    costs = [
        abs(order(a[1], b[1]) - order(a[2], b[2])) / 2
        for a, b in itertools.combinations(files, 2)
        if a[0] != b[0]
    ]
    return sum(costs) / len(costs)


def suppressed(x, y, weights=None):
    """Share of the cells with a value in x that have none in y."""
    weights = [1.0] * len(x) if weights is None else weights
    cells = [
        (w, b)
        for w, row, other in zip(weights, x, y, strict=True)
        for a, b in zip(row, other, strict=True)
        if not np.isnan(a)
    ]
    return sum(w for w, b in cells if np.isnan(b)) / sum(w for w, _ in cells)
