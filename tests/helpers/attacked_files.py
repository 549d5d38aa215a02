"""Files of the kinds that intruders attack, and their maskings, as plain tables of column name to list."""

import numpy as np
import polars as pl

from calls import called


def amounts(size, variables, seed):
    """From sizes, a table of skewed amounts v0, v1, ... that share one factor."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(size, 1))
    logs = 0.6 * factor + 0.8 * rng.normal(size=(size, variables))
    return {f"v{j}": np.exp(logs[:, j]).tolist() for j in range(variables)}


def codes(size, variables, seed):
    """From sizes, a table of skewed codes 0 to 3 named d0, d1, ..."""
    drawn = np.random.default_rng(seed).choice(4, size=(size, variables), p=[0.7, 0.2, 0.07, 0.03])
    return {f"d{j}": drawn[:, j].tolist() for j in range(variables)}


def replaced(table, share, cell, seed):
    """From a table, one in which this share of the cells of each column is replaced."""
    rng = np.random.default_rng(seed)
    return {name: [cell if rng.random() < share else x for x in column] for name, column in table.items()}


def published(table, method, columns, seed=1, **options):
    """From a table, the one that a method of sdckit publishes for it, rows in place."""
    untouched = [name for name in table if name not in columns]
    masked = called(
        "mask", pl.DataFrame(table), method, columns=list(columns), untouched=untouched, rng=seed, **options
    )
    return {name: masked[name].to_list() for name in masked.columns}
