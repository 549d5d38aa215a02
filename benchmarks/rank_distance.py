"""brMAE and brMSE of one masked column, original prepared, against sorting that column."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from scipy.stats import rankdata

import sdckit as sdc
from sdckit.ranks import OrderedColumn, average_distance, largest_absolute
from timing import Row, row, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sdckit.compiled import Floats

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
        column, prepared = OrderedColumn(x), sdc.prepare(x)
        expected = with_scipy(x, y) / largest_absolute(n) if n <= SLOWEST else None
        found = average_distance(column, y).absolute
        if (expected is not None and abs(found - expected) > 1e-12) or found != sdc.brmae(prepared, y):
            raise AssertionError(f"{kind}, {n}: {found} is not {expected}")
        inner = max(1, 200_000 // n)
        sort, kernel, public = seconds(
            [
                lambda y=y: np.sort(y),
                lambda c=column, y=y: average_distance(c, y),
                lambda p=prepared, y=y: sdc.brmae(p, y),
            ],
            inner=inner,
        )
        target = "1.5" if kind == "untied" else "3"
        case = f"{n:,} x 1, {kind}"
        table.append(
            row("rank distance, kernel", case, kernel, "np.sort", sort, f"at most {target} x the time")
        )
        table.append(row("brmae(), public call", case, public, "np.sort", sort))
        if n <= SLOWEST:
            scipy, polars = seconds(
                [lambda x=x, y=y: with_scipy(x, y), lambda x=x, y=y: with_polars(x, y)], 3
            )
            table.append(row("rank distance, kernel", case, kernel, "two scipy rankdata", scipy))
            table.append(row("rank distance, kernel", case, kernel, "polars rank", polars))
    return table


def small_table() -> list[Row]:
    rng = np.random.default_rng(13)
    x = rng.lognormal(8, 1, (1000, 13))
    y = x * (1 + 0.1 * rng.standard_normal(x.shape))
    prepared = sdc.prepare(x)
    turned = np.ascontiguousarray(y.T)

    def sort_columns() -> None:
        for column in turned:
            np.sort(column)

    sort, scipy, kernel, public = seconds(
        [
            sort_columns,
            lambda: (rankdata(x, axis=0), rankdata(y, axis=0)),
            lambda: prepared.stack.average_distances(turned),
            lambda: sdc.brmae(prepared, y),
        ],
        repeats=25,
        inner=20,
    )
    case = "1,000 x 13, untied"
    return [
        row("rank distance, kernel", case, kernel, "13 np.sort", sort, "at most 1.6 x the time"),
        row("rank distance, kernel", case, kernel, "two scipy rankdata", scipy, "at least 20 x faster"),
        row("brmae(), public call", case, public, "13 np.sort", sort),
        row("brmae(), public call", case, public, "two scipy rankdata", scipy),
    ]


def rows() -> list[Row]:
    return small_table() + [line for n in (1_000, 1_000_000, 10_000_000) for line in single_columns(n)]
