"""The distances: squared ones between all published and all original records, each with what it compares.

A distance is a pair of coordinates, one row per record; NaN stands for a missing cell. An attack takes the
nearest candidate of each query, shares its credit among ties, and among queries that look the same to it.
"""

from dataclasses import dataclass

import numpy as np

from intruder_facts import converted, number, tie_blocks
from intruder_release import known_columns, known_masked

SAME = 1e-9  # squared distances that differ by less than this share are equal


@dataclass
class Distance:
    """Coordinates of both files and their squared distances."""

    name: str
    published: np.ndarray  # n x p
    original: np.ndarray  # n x p
    squared: np.ndarray  # n x n, row: published record, column: original


def numbers(table, columns):
    """From a table, the n x p array of its numbers, NaN where a cell is missing."""
    cells = [
        [np.nan if number(cell) is None else number(cell) for cell in table[column]] for column in columns
    ]
    return np.array(cells, float).T + 0.0  # -0.0 becomes 0.0, so that equal rows have equal bytes


def squared_distances(published, original):
    """From two coordinates, the squared distances: p times the mean over the cells that both records have."""
    rows = [squared_to_all(row, original) for row in published]
    return np.array(rows)


def squared_to_all(row, original):
    """From one row, its squared distances from all originals; infinite where no cell is there in both."""
    changes = (original - row) ** 2
    common = (~np.isnan(changes)).sum(axis=1)
    sums = np.nansum(changes, axis=1)
    return np.where(common > 0, sums * len(row) / np.maximum(common, 1), np.inf)


def distance(name, published, original):
    """From two coordinates, the Distance with this name."""
    return Distance(name, published, original, squared_distances(published, original))


def plain(size):
    """From the number of records, the Distance of a plain guess: all candidates are equally near."""
    nothing = np.zeros((size, 1))
    return Distance("plain", nothing, nothing, np.zeros((size, size)))


# --- distances between masked cells ------------------------------------------------------------------------


def spread(column):
    """From a column of originals, its standard deviation over observed cells, or 1 for a constant one."""
    seen = column[~np.isnan(column)]
    return float(np.std(seen, ddof=1)) or 1.0 if len(seen) > 1 else 1.0


def standardised(original, published, columns):
    """From both tables, their coordinates in standard deviations of the original variables."""
    x, y = numbers(original, columns), numbers(published, columns)
    scale = np.array([spread(column) for column in x.T])
    return y / scale, x / scale


def euclid(original, published, release):
    """From both tables, the distance in standard deviations of the original variables."""
    return distance("euclid", *standardised(original, published, known_masked(release)))


def midranks(values):
    """From a list with None or NaN for missing, the array of ranks among observed ones, the mean for ties."""
    return tie_blocks([None if value != value else value for value in values]).mean(axis=1)  # noqa: PLR0124


def rank_shares(column):
    """From a column, the middle of each rank's share of the observed cells: 1/2n for the first of n."""
    return (midranks(column) + 0.5) / max((~np.isnan(column)).sum(), 1)


def ranks(original, published, release):
    """From both tables, the distance between ranks, each file and variable ranked by itself."""
    x, y = numbers(original, known_masked(release)), numbers(published, known_masked(release))
    shares = [np.array([rank_shares(column) for column in table.T]).T for table in (y, x)]
    return distance("ranks", *shares)


def cell_distances(original, published, release):
    """From both tables, the distances between masked cells: none if rows were re-paired or none is known."""
    if release.re_paired or not known_masked(release):
        return []
    return [make(original, published, release) for make in (euclid, ranks)]


# --- row order ---------------------------------------------------------------------------------------------


def ranks_within(values, blocks):
    """From sortable values (None for missing) and block labels, the array of midranks within each block."""
    out = np.full(len(values), np.nan)
    for block in set(blocks):
        rows = [i for i, label in enumerate(blocks) if label == block]
        out[rows] = midranks([values[i] for i in rows])
    return out


def centred(values, blocks):
    """From an array with NaN and block labels, the values less the mean of their block."""
    out = values.copy()
    for block in set(blocks):
        rows = [i for i, label in enumerate(blocks) if label == block]
        seen = values[rows][~np.isnan(values[rows])]
        out[rows] -= seen.mean() if len(seen) else 0.0
    return out[~np.isnan(out)]


def order_correlation(places_, values, blocks):
    """From ranks of rows and of values within blocks, Spearman's correlation pooled over the blocks."""
    a, b = centred(places_, blocks), centred(values, blocks)
    size = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / size) if size > 0 else 0.0


def order_distance(name, values, positions, blocks):
    """From a variable's cells and row numbers, the distance of row and rank, or None if rows tell nothing."""
    observed = [None if cell is None else row for cell, row in zip(values, positions, strict=True)]
    by_row, by_value = ranks_within(observed, blocks), ranks_within(values, blocks)
    rho = order_correlation(by_row, by_value, blocks)
    if abs(rho) <= 0.95:
        return None
    if rho < 0:
        by_row = ranks_within([None if row is None else -row for row in observed], blocks)
    return distance(name, by_row[:, None], by_value[:, None])


def order_cells(original, published, column, release):
    """From both tables, a column's sortable original cells, None where either file has none."""
    read = number if column in release.masked else converted
    x = [read(cell) for cell in original[column]]
    y = [read(cell) for cell in published[column]] if column in published else x
    return [None if there is None else cell for cell, there in zip(x, y, strict=True)]


def order_distances(original, published, release, found, positions):
    """From both tables, the facts and the row numbers as published, the distances that row order gives."""
    everything = [()] * len(positions)
    out = []
    for column in [*sorted(known_columns(release)), *([release.key] if release.key else [])]:
        cells = order_cells(original, published, column, release)
        out.append(order_distance(f"order of {column}", cells, positions, everything))
        if set(found.blocks) != {()}:
            out.append(order_distance(f"order of {column} in blocks", cells, positions, found.blocks))
    return [made for made in out if made is not None]


# --- attacks -----------------------------------------------------------------------------------------------


def nearest(candidates, squared):
    """From one query's candidates and squared distances, the booleans of the nearest ones, ties included."""
    if not candidates.any():
        return candidates
    return candidates & (squared <= squared[candidates].min() * (1 + SAME))


def links(candidates, made):
    """From candidates and a Distance, the matrix of nearest candidates, one row per published record."""
    return np.array([nearest(*row) for row in zip(candidates, made.squared, strict=True)])


def reverse_links(candidates, made):
    """From candidates and a Distance, the matrix of nearest published records, one row per original."""
    return links(candidates.T, reversed_distance(made))


def reversed_distance(made):
    """From a Distance, the same one seen from the originals."""
    return Distance(made.name, made.original, made.published, made.squared.T)


def raw_credits(linked):
    """From a matrix of links, each query's credit before sharing: 1/links if it links the truth, else 0."""
    return np.array([row[i] / row.sum() if row.any() else 0.0 for i, row in enumerate(linked)])


def look(row, candidates):
    """From a query's coordinates and candidates, a label that is equal for queries that look the same."""
    return row.tobytes(), candidates.tobytes()


def shared(values, looks):
    """From credits and labels, the credits with each replaced by the mean over equal labels."""
    classes = {}
    for value, label in zip(values, looks, strict=True):
        classes.setdefault(label, []).append(value)
    return np.array([sum(classes[label]) / len(classes[label]) for label in looks])


def attack(candidates, made):
    """From n x n candidates and a Distance, each published record's shared credit (masked_to_original)."""
    looks = [look(*row) for row in zip(made.published, candidates, strict=True)]
    return shared(raw_credits(links(candidates, made)), looks)


def attack_both(candidates, made):
    """From n x n candidates and a Distance, a dict of direction to shared credits, one per record."""
    return {
        "masked_to_original": attack(candidates, made),
        "original_to_masked": attack(candidates.T, reversed_distance(made)),
    }


def naive_linkage(original, published, columns):
    """From both tables, the share of nearest neighbours that are true, without facts and without sharing."""
    y, x = standardised(original, published, columns)
    squared = squared_distances(y, x)
    return float(np.mean(raw_credits(links(np.ones(squared.shape, bool), Distance("naive", y, x, squared)))))
