"""Slow twins of what is done with edit rules: all grid points tried, all sets of tight bounds tried.

A rule is (factors, equality, constant): the factors times the cells equal the constant or do not exceed it.
An equality may have a fourth entry, a tolerance: then they differ from the constant by no more than that.
"""

import itertools
from fractions import Fraction

import numpy as np


def as_written(number):
    """The number that a reader of the file sees."""
    return Fraction(repr(float(number)))


def is_broken(rule, record):
    """In exact decimal arithmetic; a rule with a missing cell is never broken."""
    factors, equality, constant, *tolerance = rule
    if any(factor and np.isnan(cell) for factor, cell in zip(factors, record, strict=True)):
        return False
    cells = zip(factors, record, strict=True)
    total = sum((factor * as_written(cell) for factor, cell in cells if factor), Fraction(0))
    missed = total - Fraction(constant)
    return (abs(missed) if equality else missed) > sum(tolerance)


def any_broken(rules, table):
    return any(is_broken(rule, record) for rule in rules for record in table)


def spreads(table, rules):
    """Standard deviations; a column without one has the least of those that share a rule, here one block."""
    found = np.array([np.std(column[~np.isnan(column)], ddof=1) for column in table.T])
    block = np.array([rule[0] for rule in rules if np.count_nonzero(rule[0]) > 1]).any(axis=0)
    return np.where(found > 0, found, min(found[block & (found > 0)], default=1.0))


def cost(before, after, spread):
    """The sum of changes in units of the spreads."""
    return float(np.nansum(np.abs(after - before) / spread))


def least_cost(rules, record, spread, *, free, steps, reach):
    """The smallest cost over all points of the grid within reach; None where none satisfies the rules."""
    seen = [
        rule for rule in rules if not any(f and np.isnan(c) for f, c in zip(rule[0], record, strict=True))
    ]
    axes = [
        np.arange(round(-reach / step), round(reach / step) + 1) * step
        if f and not np.isnan(cell)
        else [cell]
        for f, cell, step in zip(free, record, steps, strict=True)
    ]
    points = np.array(np.meshgrid(*axes, indexing="ij")).reshape(len(record), -1).T
    good = np.ones(len(points), bool)
    for factors, equality, constant, *tolerance in seen:
        rest = np.nansum(points * factors, axis=1) - float(constant)
        good &= (np.abs(rest) if equality else rest) < 1e-6 + float(sum(tolerance))
    costs = np.nansum(np.abs(points[good] - record) / spread, axis=1)
    return min(costs, default=None)


def halves(rule):
    """An equality with a tolerance as two inequalities; any other rule alone."""
    factors, _, constant, *tolerance = rule
    if not tolerance:
        return [rule]
    turned = tuple(-factor for factor in factors)
    return [(factors, False, constant + tolerance[0]), (turned, False, tolerance[0] - constant)]


def projection(rules, record, unit):
    """The nearest point that satisfies the rules: of all sets of inequalities that may be tight, the best."""
    rules = [half for rule in rules for half in halves(rule)]
    equal = [i for i, rule in enumerate(rules) if rule[1]]
    below = [i for i, rule in enumerate(rules) if not rule[1]]
    rows = np.array([rule[0] for rule in rules], float) * unit
    constants = np.array([float(rule[2]) for rule in rules])
    start, best = record / unit, None
    for count in range(len(below) + 1):
        for some in itertools.combinations(below, count):
            tight = [*equal, *some]
            point = start
            if tight:
                a = rows[tight]
                point = start - a.T @ np.linalg.pinv(a @ a.T) @ (a @ start - constants[tight])
            rest = rows @ point - constants
            if (rest[below] < 1e-9).all() and (np.abs(rest[equal]) < 1e-9).all():
                length = np.linalg.norm(point - start)
                if best is None or length < best[0]:
                    best = (length, point * unit)
    return best


def totals(table):
    """Every column that is the sum of two or more others in all records, as (total, parts)."""
    return [
        (total, parts)
        for total in range(table.shape[1])
        for count in range(2, table.shape[1])
        for parts in itertools.combinations([j for j in range(table.shape[1]) if j != total], count)
        if all(as_written(row[total]) == sum(as_written(row[j]) for j in parts) for row in table)
    ]
