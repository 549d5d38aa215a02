"""Slow twin of the search for sums with exceptions: all totals and all sets of parts, in exact decimals."""

import itertools
import math
from fractions import Fraction

import numpy as np

from naive_rules import as_written


def exactly(table):
    """The records as they are written; None for missing cells."""
    return [[None if np.isnan(cell) else as_written(cell) for cell in row] for row in table]


def misses(records, total, parts):
    """By how much each complete record misses the sum, in the order of the file."""
    complete = [row for row in records if all(row[j] is not None for j in (total, *parts))]
    return [abs(row[total] - sum(row[j] for j in parts)) for row in complete]


def counts(table, total, parts):
    """Complete records, those in which the sum holds, the tolerance of 99.8 % of them, those within it."""
    missed = misses(exactly(table), total, parts)
    within = sorted(missed)[math.ceil(Fraction(998, 1000) * len(missed)) - 1]
    return len(missed), missed.count(0), within, sum(miss <= within for miss in missed)


def near_sums(table, rounding):
    """Every column that is the sum of others in 80 % of the complete records, exactly or up to rounding."""
    columns, records = range(table.shape[1]), exactly(table)
    return [
        (total, parts)
        for total in columns
        for count in range(2, len(columns))
        for parts in itertools.combinations([j for j in columns if j != total], count)
        for missed in [misses(records, total, parts)]
        if sum(miss <= rounding for miss in missed) >= Fraction(8, 10) * len(missed)
    ]


def tolerance(table, total, parts, rounding):
    """The tolerance of 99.8 % of all records or, if that is more than rounding, of the rounded ones."""
    missed = misses(exactly(table), total, parts)
    rounded = [miss for miss in missed if miss <= rounding]
    known = missed if len(rounded) >= Fraction(998, 1000) * len(missed) else rounded
    return sorted(known)[math.ceil(Fraction(998, 1000) * len(known)) - 1]
