"""Compare what `minimise="estimates"` and `minimise="brmae"` choose: `python tools/estimates_choice.py`.

For each of ten files both searches have the same plan, limits and seed, and a sweep with that seed measures
every setting of the plan on the same random numbers. Printed are both chosen settings with their loss in
declared estimates, and the least such loss of all settings that meet the limits.
Needs the Tarragona and Census files, as `sdckit paper` does: the folder in SDCKIT_DATA, or a download.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import sdckit as sdc
from sdckit.io.datasets import load_dataset

sys.path.append(str(Path(__file__).parent.parent / "tests" / "helpers"))
import firm_panels

PLAN: dict[str, dict[str, list[float]]] = {
    "mdav": {"k": [3, 5, 8, 12, 20, 30]},
    "individual_ranking": {"k": [3, 5, 10, 20, 40]},
    "noise": {"percent": [5, 10, 20, 40, 80, 160]},
    "correlated_noise": {"percent": [5, 10, 20, 40, 80, 160]},
    "multiplicative_noise": {"percent": [5, 10, 20, 40, 80]},
    "rank_swap": {"p": [0.02, 0.05, 0.1, 0.2, 0.3]},
}
LOSSES = ("estimates", "brmae")
RECORDS = 600  # of a file that is made here


@dataclass(frozen=True)
class File:
    """A file, what its users compute, the roles of its columns, and the largest linkage allowed."""

    data: pl.DataFrame
    estimates: list[str]
    roles: dict[str, Any] = field(default_factory=dict)
    linkage: float = 0.1


def sample() -> File:
    estimates = ["total(turnover) by sector", "median(wages) by sector", "ratio(wages, employees)"]
    return File(sdc.load_sample(), estimates, {"key": "firm", "weights": "weight", "unknown": "weight"}, 0.3)


def tarragona() -> File:
    estimates = ["total(SALES)", "gini(SALES)", "model: SALES ~ `LABOR.COSTS` + DEPRECIATION"]
    return File(load_dataset("tarragona"), estimates)


def census() -> File:
    estimates = ["mean(AGI)", "quantile(AGI, 0.9)", "correlation(AGI, FICA)", "ratio(TAXINC, AGI)"]
    return File(load_dataset("census"), estimates)


def panel() -> File:
    roles = {"key": firm_panels.KEY, "rules": firm_panels.RULE}
    return File(firm_panels.firm_panel(), firm_panels.ESTIMATES, roles, 0.2)


def made(seed: int, spread: float = 1.0, tail: float | None = None) -> pl.DataFrame:
    """Return firms of four regions; amounts are lognormal, or with `tail` powers of a Pareto variable."""
    rng = np.random.default_rng(seed)
    size = rng.normal(3, spread, RECORDS) if tail is None else rng.pareto(tail, RECORDS) * spread
    cost, income = (np.exp(0.9 * size + rng.normal(level, 0.4, RECORDS)) for level in (0.5, 1.0))
    staff = np.ceil(np.exp(0.7 * size + rng.normal(0, 0.3, RECORDS)))
    region = rng.choice(["east", "north", "south", "west"], RECORDS, p=[0.4, 0.3, 0.2, 0.1])
    return pl.DataFrame({"region": region, "cost": cost.round(1), "income": income.round(1), "staff": staff})


USUAL = ["total(income) by region", "mean(cost)", "model: log(income) ~ log(cost)"]


def skewed() -> File:
    return File(made(1, spread=1.5), USUAL)


def heavy_tailed() -> File:
    return File(made(2, tail=3.0), ["total(income) by region", "quantile(income, 0.9)", "gini(income)"])


def correlated() -> File:
    rng = np.random.default_rng(3)
    values = 50 + 10 * rng.multivariate_normal(
        [0, 0, 0], [[1, 0.9, 0.5], [0.9, 1, 0.4], [0.5, 0.4, 1]], RECORDS
    )
    data = pl.DataFrame(dict(zip("abc", values.T.round(2), strict=True)))
    return File(data, ["correlation(a, b)", "correlation(b, c)", "model: a ~ b + c"])


def in_strata() -> File:
    return File(made(4), USUAL, {"by": "region"}, 0.2)


def weighted() -> File:
    weight = np.random.default_rng(5).choice([5.0, 10.0, 40.0], RECORDS)
    return File(made(5).with_columns(weight=pl.Series(weight)), USUAL, {"weights": "weight"}, 0.2)


def with_gaps() -> File:
    absent = pl.Series(np.random.default_rng(6).random(RECORDS) < 0.05)
    data = made(6).with_columns(income=pl.when(~absent).then("income"))
    return File(data, ["mean(income) by region", "median(cost)", "correlation(cost, staff)"], linkage=0.2)


FILES: tuple[Callable[[], File], ...] = (
    *(sample, tarragona, census, panel),
    *(skewed, heavy_tailed, correlated, in_strata, weighted, with_gaps),
)


def compared(file: File, seed: int) -> dict[str, tuple[str, float, float]]:
    """Return setting, loss in estimates and brMAE of both choices, and of the best setting of the plan.

    The best has the least loss in estimates of all that meet the limit by themselves; a search takes only
    settings that no stronger one of their method contradicts.
    """
    options: dict[str, Any] = {"plan": PLAN, "rng": seed, "replications": 3}
    data = sdc.Microdata(file.data, estimates=file.estimates, **file.roles)
    swept = data.sweep(metrics=[*LOSSES, "linkage"], **options)
    points = {str(point): point.values for curve in swept.curves for point in curve}
    found = {}
    for loss in LOSSES:
        choice = data.recommend(max_risk={"linkage": file.linkage}, minimise=loss, **options)
        if choice.point is None:
            raise ValueError(choice.describe_miss())
        if choice.point.values[loss] != points[str(choice.point)][loss]:
            raise ValueError(f"search and sweep measure other random numbers: {choice.point}")
        found[loss] = str(choice.point)
    safe = [name for name, values in points.items() if values["linkage"] <= file.linkage]
    found["best"] = min(safe, key=lambda name: points[name]["estimates"])
    return {who: (name, points[name]["estimates"], points[name]["brmae"]) for who, name in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=20)
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # files are made here, and their roles are meant
    print("| file | linkage at most | minimise=estimates | minimise=brmae | least in the sweep |")
    print("|---|--:|---|---|---|")
    worse = []
    for make in FILES:
        file = make()
        found = compared(file, given.seed)
        cells = [f"{name}: {loss:.3f} (brmae {rank:.3f})" for name, loss, rank in found.values()]
        print(" | ".join([f"| {make.__name__}", f"{file.linkage:g}", *cells]) + " |", flush=True)
        if found["estimates"][1] > found["brmae"][1]:
            worse.append(make.__name__)
    print(f"\nworse by minimise=estimates: {', '.join(worse) or 'none'}")
    print(f"{time.process_time():.0f} s of CPU time")


if __name__ == "__main__":
    main()
