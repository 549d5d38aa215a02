"""brMAE and brMSE of one masked column, original prepared, against sorting that column."""

from __future__ import annotations

from functools import partial
from time import process_time
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from scipy.stats import rankdata

import sdckit as sdc
from sdckit.kernels.ranks import SMALL, ColumnStack, OrderedColumn, average_distance, largest_absolute
from timing import Row, row
from timing import seconds as seconds_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sdckit.arrays import Floats

seconds = partial(seconds_by, clock=process_time)
SLOWEST = 1_000_000  # longer columns are not timed with rankdata and polars: they take minutes


def columns(n: int) -> Iterator[tuple[str, Floats, Floats]]:
    """Original and masked column of each kind."""
    rng = np.random.default_rng(n)
    incomes = rng.lognormal(8, 1, n)
    noisy = incomes * (1 + 0.1 * rng.standard_normal(n))
    yield "untied", incomes, noisy
    yield "integers, wide", np.round(incomes), np.round(noisy)
    ages = rng.integers(18, 98, n)
    yield "integers, narrow", ages.astype(float), np.clip(ages + rng.integers(-5, 6, n), 18, 97).astype(float)
    zeros = rng.random(n) < 0.6
    yield "60 % zeros", np.where(zeros, 0, incomes), np.where(zeros, 0, noisy)
    order = np.argsort(incomes, kind="stable")
    means = np.add.reduceat(incomes[order], np.arange(0, n, 3)) / np.diff(np.append(np.arange(0, n, 3), n))
    micro = np.empty(n)
    micro[order] = np.repeat(means, 3)[:n]
    yield "microaggregated", incomes, micro
    yield "microaggregated, 2 decimals", incomes, np.round(micro, 2)


def with_polars(x: Floats, y: Floats) -> float:
    ranks = pl.DataFrame({"x": x, "y": y}).select(pl.all().rank("average"))
    return float((ranks["x"] - ranks["y"]).abs().sum())


def with_scipy(x: Floats, y: Floats) -> float:
    return float(np.abs(rankdata(x) - rankdata(y)).sum())


def single_columns(n: int) -> list[Row]:
    table = []
    for kind, x, y in columns(n):
        column, prepared = OrderedColumn(x), sdc.Microdata(x)
        found = average_distance(column, y).absolute
        wrong = n <= SLOWEST and abs(found - with_scipy(x, y) / largest_absolute(n)) > 1e-12
        if wrong or found != sdc.brmae(prepared, y):
            raise AssertionError(f"{kind}, {n}: {found} is not the rank distance")
        contenders = [
            lambda y=y: np.sort(y),
            lambda column=column, y=y: average_distance(column, y),
            lambda prepared=prepared, y=y: sdc.brmae(prepared, y),
            lambda x=x, y=y: sdc.brmae(x, y),
        ]
        if n < SMALL:  # short columns go together, as a stack
            row_of_table = y[None, :]
            contenders[1] = lambda stack=prepared.original.stack, y=row_of_table: stack.distances(
                ColumnStack(y), "average"
            )
        sort, kernel, public, unprepared = seconds(contenders, inner=max(1, 200_000 // n))
        limit = "at most 1.5 x the time" if kind == "untied" else "at most 3 x the time"
        case = f"{n:,} x 1, {kind}"
        table.append(row("rank distance, kernel", case, kernel, "np.sort", sort, limit if n >= SMALL else ""))
        table.append(row("brmae(), prepared", case, public, "np.sort", sort))
        limit = "at most 5 x the time" if kind == "untied" and n >= SMALL else ""
        table.append(row("brmae(), two arrays", case, unprepared, "np.sort", sort, limit))
        if n <= SLOWEST:
            slow = [lambda x=x, y=y: with_scipy(x, y), lambda x=x, y=y: with_polars(x, y)]
            scipy, polars = seconds(slow, repeats=3)
            table.append(row("rank distance, kernel", case, kernel, "two scipy rankdata", scipy))
            table.append(row("rank distance, kernel", case, kernel, "polars rank", polars))
    return table


def small_table() -> list[Row]:
    rng = np.random.default_rng(13)
    x = rng.lognormal(8, 1, (1000, 13))
    y = x * (1 + 0.1 * rng.standard_normal(x.shape))
    prepared = sdc.Microdata(x)
    turned = np.ascontiguousarray(y.T)

    def sort_columns() -> None:
        for column in turned:
            np.sort(column)

    sort, scipy, kernel, public, unprepared = seconds(
        [
            sort_columns,
            lambda: (rankdata(x, axis=0), rankdata(y, axis=0)),
            lambda: prepared.original.stack.distances(ColumnStack(turned), "average"),
            lambda: sdc.brmae(prepared, y),
            lambda: sdc.brmae(x, y),
        ],
        repeats=25,
        inner=20,
    )
    case = "1,000 x 13, untied"
    return [
        row("rank distance, kernel", case, kernel, "13 np.sort", sort, "at most 1.6 x the time"),
        row("rank distance, kernel", case, kernel, "two scipy rankdata", scipy, "at least 20 x faster"),
        row("brmae(), prepared", case, public, "13 np.sort", sort),
        row("brmae(), prepared", case, public, "two scipy rankdata", scipy),
        row("brmae(), two arrays", case, unprepared, "two scipy rankdata", scipy, "at least 8 x faster"),
    ]


def rows() -> list[Row]:
    return small_table() + [line for n in (1_000, 1_000_000, 10_000_000) for line in single_columns(n)]
