"""Households, firms and panels: how often a row leads to its unit, and a whole unit to itself."""

import numpy as np

from intruder_distances import (
    attack_both,
    cell_distances,
    distance,
    links,
    look,
    plain,
    reversed_distance,
    shared,
    standardised,
)
from intruder_facts import facts
from intruder_matching import complete_matching_exists
from intruder_release import known_masked

SMALL = 20  # units of at most this many rows are also compared row by row


def row_to_unit(candidates, made, units):
    """From candidates, a Distance and unit labels, each published row's share of links to its own unit."""
    credit = []
    for i, linked in enumerate(links(candidates, made)):
        found = [units[j] == units[i] for j in np.flatnonzero(linked)]
        credit.append(sum(found) / len(found) if found else 0.0)
    return shared(credit, [look(*row) for row in zip(made.published, candidates, strict=True)])


def rows_of_units(units):
    """From unit labels, a list with the list of rows of each unit, in order of appearance."""
    return [[i for i, unit in enumerate(units) if unit == label] for label in dict.fromkeys(units)]


def unit_candidates(candidates, groups):
    """From row candidates and the rows of units, which units fit: as many rows, matched inside the facts."""
    return np.array(
        [
            [len(a) == len(b) and complete_matching_exists(candidates[np.ix_(a, b)]) for b in groups]
            for a in groups
        ]
    )


def unit_means(coordinates, groups):
    """From coordinates of rows, those of units: the mean of the observed cells, NaN where none is."""
    return np.array([column_means(coordinates[rows]) for rows in groups]) + 0.0


def column_means(rows):
    """From some rows of coordinates, the mean of each column over observed cells, NaN where none is."""
    seen = [column[~np.isnan(column)] for column in rows.T]
    return [float(np.sort(cells).mean()) if len(cells) else np.nan for cells in seen]


def unit_sorted(coordinates, groups):
    """From coordinates of rows, all cells of a unit, each variable sorted by itself; NaN to fill up."""
    longest = max(len(rows) for rows in groups)
    out = np.full((len(groups), longest, coordinates.shape[1]), np.nan)
    for unit, rows in enumerate(groups):
        out[unit, : len(rows)] = np.sort(coordinates[rows], axis=0)  # numpy puts NaN last
    return out.reshape(len(groups), -1)


def unit_distances(original, published, release, groups):
    """From both tables and the rows of units, the distances between whole units."""
    y, x = standardised(original, published, known_masked(release))
    out = [distance("unit means", unit_means(y, groups), unit_means(x, groups))]
    if max(len(rows) for rows in groups) <= SMALL:
        out.append(distance("sorted rows", unit_sorted(y, groups), unit_sorted(x, groups)))
    return out


def linkage_units(original, published, release):
    """From both tables with a unit, a dict of row_to_unit, unit_to_unit and linkage_units, the larger one."""
    inside, units = facts(original, published, release).certain, original[release.unit]
    made = [plain(len(units)), *cell_distances(original, published, release)]
    rows = [row_to_unit(inside, one, units).mean() for one in made]
    rows += [row_to_unit(inside.T, reversed_distance(one), units).mean() for one in made]
    a = float(max(rows))
    b = unit_to_unit(original, published, release, inside) if release.unit in published else 0.0
    return {"row_to_unit": a, "unit_to_unit": b, "linkage_units": max(a, b)}


def unit_to_unit(original, published, release, inside):
    """From both tables and row candidates, the largest mean credit of units that are attacked as a whole."""
    groups = rows_of_units(original[release.unit])
    fits = unit_candidates(inside, groups)
    made = [plain(len(groups))]
    if not release.re_paired and known_masked(release):
        made += unit_distances(original, published, release, groups)
    return float(max(credit.mean() for one in made for credit in attack_both(fits, one).values()))
