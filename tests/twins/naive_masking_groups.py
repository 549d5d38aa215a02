"""Slow and obvious twins of the microaggregation family, on numpy and the standard library only."""

import math
import statistics

import numpy as np

import naive


def squared_distance(a, b):
    """Over the columns that both have, scaled to all of them; infinite if there are none."""
    terms = [(x - y) ** 2 for x, y in zip(a, b, strict=True) if not (math.isnan(x) or math.isnan(y))]
    return naive.row_by_row_sum(terms) * (len(a) / len(terms)) if terms else math.inf


def mdav_on_points(points, k):
    """The textbook loop on complete points as they are, not standardised again."""
    left, blocks = list(range(len(points))), []

    def form(row):
        others = sorted((r for r in left if r != row), key=lambda r: squared_distance(points[r], points[row]))
        blocks.append([row, *others[: k - 1]])
        for member in blocks[-1]:
            left.remove(member)

    def farthest(point):
        return max(left, key=lambda r: (squared_distance(points[r], point), -r))

    while len(left) >= 3 * k:
        first = farthest(points[left].mean(axis=0))
        form(first)
        form(farthest(points[first]))
    if len(left) >= 2 * k:
        form(farthest(points[left].mean(axis=0)))
    return [*blocks, left]


def numbered(blocks, n):
    groups = np.full(n, -1)
    for number, block in enumerate(blocks):
        groups[block] = number
    return groups


def weighted_mdav_groups(values, k, weights):
    points = naive.standardise(values)[:, np.asarray(weights) > 0]
    return numbered(mdav_on_points(points * np.sqrt([w for w in weights if w > 0]), k), len(values))


def distances_to(points, point):
    """Of all rows at once, column after column; NaN for a row without a common column."""
    total, shared = np.zeros(len(points)), np.zeros(len(points))
    for j in range(points.shape[1]):
        gap = points[:, j] - point[j]
        total += np.where(np.isnan(gap), 0.0, gap * gap)
        shared += ~np.isnan(gap)
    return total * np.divide(points.shape[1], shared, out=np.full(len(points), np.nan), where=shared > 0)


def nearest_rows(points, row, left, size):
    """Rows nearest to a row among those left (ascending), those without a common column last."""
    others = left[left != row]
    away = distances_to(points[others], points[row])
    return others[np.argsort(np.where(np.isnan(away), np.inf, away), kind="stable")[:size]]


def mdav_with_gaps(points, k):
    """The textbook loop on points with missing cells, by scans of whole columns."""
    left, groups = np.arange(len(points)), np.full(len(points), -1)

    def farthest(point):
        away = distances_to(points[left], point)
        return left[np.argmax(np.where(np.isnan(away), -1.0, away))]

    def centroid():
        seen = [column[~np.isnan(column)] for column in points[left].T]
        return np.array([np.cumsum(column)[-1] / len(column) if len(column) else np.nan for column in seen])

    def form(row):
        groups[[row, *nearest_rows(points, row, left, k - 1)]] = groups.max() + 1
        return left[groups[left] < 0]

    while len(left) >= 2 * k:
        row, pairs = farthest(centroid()), len(left) >= 3 * k
        left = form(row)
        if pairs:
            left = form(farthest(points[row]))
    groups[left] = groups.max() + 1
    return groups


def vmdav_on_points(points, k, gamma):
    """V-MDAV by scans of whole columns, until fewer than 2k are left, whose group is -1."""
    left, groups = np.arange(len(points)), np.full(len(points), -1)
    from_centre = distances_to(points, np.zeros(points.shape[1]))

    def apart(row, others):
        away = distances_to(points[others], points[row])
        return np.where(np.isnan(away), np.inf, away)

    while len(left) >= 2 * k:
        seed = left[np.argmax(from_centre[left])]
        block = [seed, *nearest_rows(points, seed, left, k - 1)]
        left = left[~np.isin(left, block)]
        while len(block) < 2 * k - 1:
            to_block = np.min([apart(member, left) for member in block], axis=0)
            e, inside = left[np.argmin(to_block)], to_block.min()
            if not inside < gamma * gamma * apart(e, left[left != e]).min():
                break
            block.append(e)
            left = left[left != e]
        groups[block] = groups.max() + 1
    return groups


def aggregates(values, groups, k, aggregate="mean"):
    """What is published of given groups, cell by cell."""
    masked = np.full(values.shape, np.nan)
    for i, j in np.argwhere(~np.isnan(values)):
        cells = [values[r, j] for r in range(len(values)) if groups[r] == groups[i]]
        cells = [cell for cell in cells if not math.isnan(cell)]
        if groups[i] >= 0 and len(cells) >= k:
            masked[i, j] = getattr(statistics, aggregate)(cells)
    return masked


def alike_aggregates(values, groups, k, aggregate="mean"):
    """What is published of given groups if a variable is published for all records of a group or for none."""
    masked = np.full(values.shape, np.nan)
    for i, j in np.ndindex(values.shape):
        cells = [values[r, j] for r in range(len(values)) if groups[r] == groups[i] >= 0]
        seen = [cell for cell in cells if not math.isnan(cell)]
        if len(seen) >= (k if len(seen) == len(cells) else max(k, 3)):
            masked[i, j] = getattr(statistics, aggregate)(seen)
    return masked


def with_empty_records(values, groups, k):
    """The groups, with records without any value in groups of their own or in a small one in the middle."""
    found, empty = list(groups), [row for row in range(len(values)) if groups[row] < 0]
    numbers = range(max(groups) + 1)
    if len(empty) >= k:
        for place, row in enumerate(empty):
            found[row] = len(numbers) + min(place // k, len(empty) // k - 1)
    elif empty:
        points, smallest = naive.standardise(values), min(list(groups).count(number) for number in numbers)

        def reach(number):
            columns = [[x for x in column if not math.isnan(x)] for column in points[groups == number].T]
            return sum((sum(column) / len(column)) ** 2 for column in columns if column)

        inner = min((n for n in numbers if list(groups).count(n) == smallest), key=lambda n: (reach(n), n))
        for row in empty:
            found[row] = inner
    return np.array(found)


def merged_labels(values, groups, k, j, points):
    """For variable j, a label for each group with a value of it; equal for groups that publish one value."""
    numbers = [number for number in range(groups.max() + 1) if (groups == number).any()]

    def centre(number):
        seen = [[cell for cell in column if not math.isnan(cell)] for column in points[groups == number].T]
        return [naive.row_by_row_sum(column) / len(column) if column else 0.0 for column in seen]

    centres = {number: centre(number) for number in numbers}
    held = {number: int((~np.isnan(values[groups == number, j])).sum()) for number in numbers}
    label = {number: number for number in numbers if held[number]}
    for small in list(label):
        while sum(held[number] for number in label if label[number] == label[small]) < k:
            apart = [number for number in label if label[number] != label[small]]
            if not apart:
                break
            near = min(apart, key=lambda n: (squared_distance(centres[n], centres[small]), n))
            old = label[near]
            label = {number: label[small] if was == old else was for number, was in label.items()}
    return label


def merged_aggregates(values, groups, k, aggregate="mean", points=None):
    """What is published of given groups if those with fewer than k values of a variable are merged.

    `points` are the records as distances compare them, by default standardised.
    """
    masked = np.full(values.shape, np.nan)
    points = naive.standardise(values) if points is None else points
    for j in range(values.shape[1]):
        label = merged_labels(values, groups, k, j, points)
        for i in np.flatnonzero(~np.isnan(values[:, j]) & (groups >= 0)):
            own = label[groups[i]]
            cells = [v for v, g in zip(values[:, j], groups, strict=True) if label.get(g, -1) == own]
            cells = [cell for cell in cells if not math.isnan(cell)]
            if len(cells) >= k:
                masked[i, j] = getattr(statistics, aggregate)(cells)
    return masked


def vmdav_groups(values, k, gamma):
    points = naive.standardise(values)
    left = [row for row in range(len(points)) if not np.isnan(points[row]).all()]
    blocks = []

    def apart(a, b):
        return squared_distance(points[a], points[b])  # squares, so that ties are ties for both twins

    while len(left) >= 2 * k:
        centre = [0.0] * points.shape[1]
        seed = max(left, key=lambda r: (squared_distance(points[r], centre), -r))
        block = [seed, *sorted((r for r in left if r != seed), key=lambda r: apart(r, seed))[: k - 1]]
        left = [r for r in left if r not in block]
        while len(block) < 2 * k - 1:
            inside, e = min((min(apart(r, m) for m in block), r) for r in left)
            if not inside < gamma * gamma * min(apart(r, e) for r in left if r != e):
                break
            block.append(e)
            left.remove(e)
        blocks.append(block)
    if len(left) >= k:
        return numbered([*blocks, left], len(points))
    centres = []
    for block in blocks:
        seen = [[x for x in column if not math.isnan(x)] for column in points[block].T]
        centres.append([sum(column) / len(column) if column else math.nan for column in seen])
    groups = numbered(blocks, len(points))
    for row in left:
        groups[row] = min(range(len(blocks)), key=lambda b: squared_distance(points[row], centres[b]))
    return groups


def best_partition(points, k):
    """Least sum of squares of all partitions into blocks of at least k, and one that attains it.

    Every block is tried for the smallest record that has none yet.
    """
    n = len(points)

    def squares(block):
        members = points[[i for i in range(n) if block >> i & 1]]
        return float(((members - members.mean(axis=0)) ** 2).sum())

    cost = {block: squares(block) for block in range(1, 1 << n) if block.bit_count() >= k}
    best = {0: (0.0, [])}
    for mask in range(1, 1 << n):
        lowest, found, rest = mask & -mask, (math.inf, []), mask & (mask - 1)
        sub = rest
        while True:
            block = sub | lowest
            before = best.get(mask ^ block)
            if block in cost and before is not None and cost[block] + before[0] < found[0]:
                found = (cost[block] + before[0], [*before[1], block])
            if sub == 0:
                break
            sub = (sub - 1) & rest
        if found[1]:
            best[mask] = found
    total, blocks = best[(1 << n) - 1]
    return total, [[i for i in range(n) if block >> i & 1] for block in blocks]


def component(points):
    """First principal component by singular values; missing cells are column means."""
    centred = points - np.nanmean(points, axis=0)
    centred = np.where(np.isnan(centred), 0.0, centred)
    loadings = np.linalg.svd(centred, full_matrices=False)[2][0]
    large = [loading for loading in loadings if abs(loading) >= max(map(abs, loadings)) / 2]
    return (centred * loadings).sum(axis=1) * math.copysign(1, large[0])


def pca_groups(values, k):
    places = component(naive.standardise(values))
    rows = [row for row in range(len(values)) if not np.isnan(values[row]).all()]
    rows.sort(key=places.__getitem__)
    blocks = [rows[i : i + k] for i in range(0, len(rows) - len(rows) % k, k)]
    blocks[-1] = rows[(len(blocks) - 1) * k :]
    return numbered(blocks, len(values))


def blocked_groups(values, k, block):
    points, n = naive.standardise(values), len(values)
    largest = max(block, 6 * k)
    if n <= largest:
        return numbered(mdav_on_points(points, k), n)

    def form(rows):
        return [[rows[i] for i in group] for group in swapped(points[rows], mdav_on_points(points[rows], k))]

    def cut(rows):
        if len(rows) <= largest:
            return form(rows)
        places = component(points[rows])
        order = sorted(range(len(rows)), key=places.__getitem__)
        half = len(rows) // 2
        low, high = (sorted(rows[i] for i in part) for part in (order[:half], order[half:]))
        return cut(low) + cut(high)

    outwards = sorted(range(n), key=lambda row: (-naive.row_by_row_sum(points[row] ** 2), row))
    outer = n // math.ceil(n / largest)
    return numbered(form(sorted(outwards[:outer])) + cut(sorted(outwards[outer:])), n)


def spread(points, *groups):
    """Squared distances to the centroid of each group, summed."""
    return sum(((points[rows] - points[rows].mean(axis=0)) ** 2).sum() for rows in groups)


def swapped(points, groups, neighbours=8, rounds=3):
    """Each group swaps one record with each of its neighbours, the best pair if it gains; over and over."""
    groups = [sorted(rows) for rows in groups]
    open_ones = [g for g, rows in enumerate(groups) if spread(points, rows) > 0]
    centres = [points[rows].mean(axis=0) for rows in groups]
    near = {
        g: sorted((h for h in open_ones if h != g), key=lambda h: squared_distance(centres[g], centres[h]))
        for g in open_ones
    }
    for _ in range(rounds):
        for g in open_ones:
            for h in near[g][:neighbours]:
                swap_best_pair(points, groups[g], groups[h])
    return groups


def swap_best_pair(points, one, other):
    """In place; of pairs that gain the same but for rounding, the first."""
    before, best, pair = spread(points, one, other), 0.0, None
    for i, x in enumerate(one):
        for j, y in enumerate(other):
            after = spread(points, [*one[:i], y, *one[i + 1 :]], [*other[:j], x, *other[j + 1 :]])
            if after - before < best - 1e-9 * squared_distance(points[x], points[y]):
                best, pair = after - before, (i, j)
    if pair is not None:
        i, j = pair
        one[i], other[j] = other[j], one[i]
