"""Time declared estimates by CPU time: of a large file against polars, and in a sweep against one without."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

import sdckit as sdc
from timing import Row, row, seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

RECORDS, DOMAINS, COLUMNS = 1_000_000, 50, [f"x{j}" for j in range(20)]
TOTALS = [f"total({name}) by domain" for name in COLUMNS]
MEANS = [f"mean({name}) by domain" for name in COLUMNS]
MIXED = [
    *TOTALS[:5],
    *MEANS[5:8],
    *("median(x8) by domain", "median(x9) by domain", "quantile(x10, 0.9) by domain"),
    *("share(x11 > 20) by domain", "share(x12 > 20) by domain"),
    *("ratio(x13, x14) by domain", "ratio(x15, x16) by domain", "mean(x14) by domain", "mean(x16) by domain"),
    *("gini(x17) by domain", "correlation(x18, x19) by domain", "correlation(x0, x1) by domain"),
]
SAME = [  # statistics of MIXED without their standard errors
    pl.col(COLUMNS[:8] + COLUMNS[13:17]).sum(),
    pl.col("x8", "x9").median(),
    pl.col("x10").quantile(0.9),
    (pl.col("x11", "x12") > 20).mean(),
    (pl.col("x17").sort() * pl.int_range(pl.len())).sum(),
    pl.corr("x18", "x19"),
    pl.corr("x0", "x1").alias("second"),
]
PLAN = {  # 200 settings of the methods that are tried by default
    "mdav": {"k": range(3, 31)},
    "individual_ranking": {"k": range(3, 31)},
    "noise": {"percent": range(6, 289, 6)},
    "correlated_noise": {"percent": range(6, 289, 6)},
    "rank_swap": {"p": [place / 1000 for place in range(6, 289, 6)]},
}
FIRMS = 1_000
MASKED = ["turnover", "wages", "profit", "employees", "assets"]
DECLARED = [
    *(f"total({name}) by sector" for name in ("turnover", "wages", "profit", "assets")),
    *("mean(turnover)", "mean(wages) by sector", "mean(assets) by sector"),
    *("median(wages)", "median(turnover) by sector"),
    *("quantile(wages, 0.9)", "quantile(turnover, 0.25) by sector"),
    *("share(profit > 0) by sector", "share(turnover > 1000)", "ratio(wages, employees) by sector"),
    *("gini(turnover)", "correlation(turnover, wages)", "correlation(wages, profit) by sector"),
    "model: log(wages) ~ log(turnover) + sector",
    "model: profit ~ turnover + wages + employees",
    "logit: exporter ~ log(turnover) + employees",
]


def large_file() -> pl.DataFrame:
    """A million records in 50 domains."""
    rng = np.random.default_rng(0)
    domain = rng.integers(0, DOMAINS, RECORDS).astype(str)
    return pl.DataFrame({"domain": domain, **{name: np.exp(rng.normal(3, 1, RECORDS)) for name in COLUMNS}})


def firms() -> pl.DataFrame:
    """A thousand firms in ten sectors."""
    rng = np.random.default_rng(1)
    turnover = np.exp(rng.normal(6, 1.2, FIRMS))
    wages = turnover * np.exp(rng.normal(-1.5, 0.4, FIRMS))
    return pl.DataFrame(
        {
            "sector": [f"s{one}" for one in rng.integers(0, 10, FIRMS)],
            "exporter": (rng.logistic(6, 1, FIRMS) < np.log(turnover)).astype(int),
            "turnover": turnover.round(1),
            "wages": wages.round(1),
            "profit": (turnover * rng.normal(0.1, 0.2, FIRMS)).round(1),
            "employees": np.ceil(wages / 30),
            "assets": np.exp(rng.normal(5, 1, FIRMS)).round(1),
        }
    )


def large_rows() -> list[Row]:
    """Both files with standard errors and intervals, against one `group_by` of one file."""
    data = large_file()
    sets = {"totals": TOTALS, "means": MEANS, "mixed": MIXED}
    grouped = data.group_by("domain")
    sums, same, *found = seconds(
        [
            lambda: grouped.agg(pl.col(COLUMNS).sum()),
            lambda: grouped.agg(SAME),
            *(partial(sdc.estimates, data, data, texts) for texts in sets.values()),
        ],
        repeats=3,
        clock=time.process_time,
    )
    case = f"{RECORDS:,} records, {DOMAINS} domains, two files"
    plain = "one polars group_by, sums"
    return [
        *(
            row(f"20 {kind}", case, spent, plain, sums, "at most 10 x")
            for kind, spent in zip(sets, found, strict=True)
        ),
        row("20 mixed", case, found[-1], "one polars group_by, same statistics", same, "at most 10 x"),
    ]


def sweep_row() -> Row:
    """All settings with estimates, against the same sweep without, on one worker."""
    data = firms()

    def sweep(declared: Sequence[str]) -> object:
        """The sweep with some estimates."""
        return sdc.Microdata(
            data, columns=MASKED, untouched=["sector", "exporter"], estimates=declared or None
        ).sweep(PLAN, workers=1, rng=1)

    without, spent = seconds(
        [partial(sweep, ()), partial(sweep, DECLARED)], repeats=3, clock=time.process_time
    )
    settings = sum(len(values) for grid in PLAN.values() for values in grid.values())
    case = f"{FIRMS:,} records, {settings} settings, {len(DECLARED)} estimates"
    return row("sweep with estimates", case, spent, "without", without, "at most 1.5 x")


def rows() -> list[Row]:
    return [*large_rows(), sweep_row()]
