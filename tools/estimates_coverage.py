"""Print how often 95 % intervals hold the truth after masking: `python tools/estimates_coverage.py`.

Samples are drawn with replacement from a population that is known, as the standard errors assume. Each is
masked, and for each estimate three intervals are looked up: that of the unmasked sample, the naive one that a
user computes from the masked file, and the inflated one of `sdc.estimates(..., replications=)`.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

import sdckit as sdc

UNITS, RECORDS, FURTHER = 20_000, 500, 5  # of the population, of a sample; maskings beside the published one
ESTIMATES = [
    "total(turnover) by sector",
    "mean(wages)",
    "median(wages)",
    "ratio(wages, employees)",
    "correlation(wages, turnover)",
    "model: log(turnover) ~ log(employees)",
]
MASKINGS: list[tuple[str, dict[str, Any]]] = [
    ("noise", {"percent": 10}),
    ("noise", {"percent": 50}),
    ("mdav", {"k": 5}),
    ("mdav", {"k": 20}),
    ("rank_swap", {"p": 0.05}),
    ("rank_swap", {"p": 0.2}),
]
HOLDS = {  # an interval that is absent does not hold the truth
    name: pl.col("truth").is_between(pl.col(f"low_{ends}"), pl.col(f"high_{ends}")).fill_null(value=False)
    for name, ends in {"unmasked": "original", "naive": "masked", "inflated": "inflated"}.items()
}


def population(rng: np.random.Generator) -> pl.DataFrame:
    """Return firms of four sectors: skewed, correlated, `weight` the inverse of the chance to be drawn."""
    sector = rng.choice(["a", "b", "c", "d"], UNITS, p=[0.4, 0.3, 0.2, 0.1])
    employees = np.ceil(np.exp(rng.normal(2.3, 0.9, UNITS)))
    wages = employees * np.exp(rng.normal(3.2, 0.3, UNITS))
    turnover = wages * np.exp(rng.normal(1.0, 0.6, UNITS)) * np.where(sector == "d", 2, 1)
    columns = {"employees": employees, "wages": wages.round(1), "turnover": turnover.round(1)}
    return pl.DataFrame({"sector": sector, "weight": UNITS / RECORDS} | columns)


def truth(units: pl.DataFrame) -> pl.DataFrame:
    """Return each estimate of the whole population, where every unit stands for itself."""
    found = sdc.estimates(units, units, ESTIMATES).table
    return found.select("estimate", "domain", truth="original")


def maskings(
    sample: pl.DataFrame, method: str, parameters: dict[str, Any], rng: np.random.Generator
) -> list[pl.DataFrame]:
    """Return the published masking and further ones; a method without randomness gives the same again."""
    if not sdc.METHODS[method].random:
        return [sdc.Microdata(sample, weights="weight").mask(method, **parameters)] * 2
    return [
        sdc.Microdata(sample, weights="weight").mask(method, rng=rng, **parameters)
        for _ in range(1 + FURTHER)
    ]


def label(method: str, parameters: dict[str, Any]) -> str:
    """Return a masking as the head of a column."""
    return " ".join([method, *(f"{name}={value}" for name, value in parameters.items())])


def held(units: pl.DataFrame, samples: int, seed: int) -> Iterator[pl.DataFrame]:
    """Yield, for each sample and masking, which intervals hold the truth."""
    true = truth(units)
    for number in range(samples):
        rng = np.random.default_rng([seed, number])
        sample = units[rng.integers(0, UNITS, RECORDS)]
        for method, parameters in MASKINGS:
            masked, *others = maskings(sample, method, parameters, rng)
            found = sdc.estimates(sample, masked, ESTIMATES, weights="weight", replications=others).table
            rows = found.join(true, on=["estimate", "domain"])
            yield rows.select("estimate", masking=pl.lit(label(method, parameters)), **HOLDS)


def coverage(samples: int, seed: int) -> pl.DataFrame:
    """Return the share of intervals that hold the truth, by estimate and masking; domains are pooled."""
    rows = pl.concat(held(population(np.random.default_rng(seed)), samples, seed))
    slopes = rows.filter(~pl.col("estimate").str.contains("Intercept"))
    return slopes.group_by("estimate", "masking", maintain_order=True).agg(pl.col(*HOLDS).mean())


def markdown(found: pl.DataFrame) -> str:
    """Return a row for each estimate; cells have the naive and the inflated share of a masking in percent."""
    heads = found["masking"].unique(maintain_order=True)
    lines = [
        "| " + " | ".join(["estimate", "unmasked", *heads]) + " |",
        "|---" + "|--:" * (1 + len(heads)) + "|",
    ]
    for (estimate,), rows in found.group_by("estimate", maintain_order=True):
        pairs = [
            f"{100 * naive:.0f} → {100 * inflated:.0f}"
            for naive, inflated in rows["naive", "inflated"].rows()
        ]
        lines.append(" | ".join([f"| `{estimate}`", f"{100 * rows['unmasked'][0]:.0f}", *pairs]) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument("--seed", type=int, default=20)
    given = parser.parse_args()
    started = time.process_time()
    print(markdown(coverage(given.samples, given.seed)))
    error = 100 * math.sqrt(0.95 * 0.05 / given.samples)
    print(f"\n{given.samples} samples: a share of 95 % has a Monte-Carlo error of {error:.1f} points")
    print(f"{time.process_time() - started:.0f} s of CPU time")


if __name__ == "__main__":
    main()
