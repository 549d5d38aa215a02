"""A report on the bundled sample with every part: real losses, risks made up where none are needed."""

from functools import cache

import numpy as np
import polars as pl

import sdckit as sdc
from sdckit.evaluation.result import SCHEMA, Evaluation, Knowledge
from sdckit.metrics.pair import pair_of
from sdckit.report import Points, report

SEED = 918273645
ROLES = {"key": "firm", "unknown": "weight"}
VARIABLES = ["turnover", "wages", "profit"]
PLAN = {
    "mdav": {"k": [3, 5, 10, 20]},
    "noise": {"percent": [5, 20, 50, 100]},
    "correlated_noise": {"percent": [5, 20, 50, 100]},
    "rank_swap": {"p": [0.02, 0.05, 0.1, 0.2]},
}
ATTACKS = {"dbrl": 0.081, "dbrl_mahalanobis": 0.0613, "dbrl_rank": 0.0925, "matching": 0.0702}
METRICS = ["brmae", "brmse", "mae", "il1s"]
LIMITS = {"linkage": 0.1, "linkage_outliers": 0.3}
KNOWLEDGE = Knowledge((*VARIABLES, "sector"), ("weight",), ("sector", "weight"))


@cache
def original():
    return sdc.load_sample()


@cache
def masked():
    return sdc.Microdata(original(), columns=VARIABLES, **ROLES).mask("mdav", k=10, rng=SEED)


@cache
def points():
    found = (
        sdc.Microdata(original(), columns=VARIABLES, **ROLES)
        .sweep(PLAN, metrics="brmae", rng=SEED, workers=1)
        .table
    )
    groups = found["setting"].to_numpy()
    losses = found["value"].to_numpy()
    risks = np.where(found["method"] == "mdav", 0.925 / groups, 0.9 * np.exp(-8 * losses))
    return mapped(found.select("method", "parameters", loss="value").with_columns(risk=risks))


def mapped(table, **options):
    """Points with the frontier and the best of those within the limit marked."""
    pairs = table.select("loss", "risk").rows()
    frontier = [
        not any((a <= loss and b <= risk) and (a, b) != (loss, risk) for a, b in pairs)
        for loss, risk in pairs
    ]
    allowed = [(loss, place) for place, (loss, risk) in enumerate(pairs) if risk <= LIMITS["linkage"]]
    best = min(allowed, default=(None, None))[1]
    marked = table.with_columns(
        frontier=pl.Series(frontier),
        chosen=pl.Series([place == best for place in range(len(pairs))]),
        unpaired=pl.lit(False),
    )
    return Points(marked, **{"loss": "brmae", "risk": "linkage", "limits": LIMITS, "random": 2 / 3} | options)


def files():
    """Points of three files made elsewhere."""
    table = points().table.head(3).select("loss", "risk", method=pl.Series(["a.csv", "b.csv", "c.csv"]))
    return mapped(table.with_columns(parameters=pl.lit("")))


def with_risks(measured, risks, n):
    """An evaluation with a made-up linkage risk beside what was measured."""
    rows = [
        {
            "metric": name,
            "family": "risk",
            "variable": "all",
            "stratum": "all",
            "value": value,
            "random": 1 / n,
        }
        for name, value in risks.items()
    ]
    table = pl.concat([measured.table, pl.DataFrame(rows, schema_overrides=SCHEMA)], how="diagonal")
    said = "someone who picks the nearest record for each published one is right in 9 of 100 cases"
    meaning = measured.meaning | dict.fromkeys(risks, said)
    shares = np.r_[np.zeros(n - 60), np.full(25, 0.1), np.full(20, 0.5), np.full(3, 0.33), np.ones(12)]
    return Evaluation(
        table,
        meaning,
        measured.notes,
        measured.parts | {"linkage": ATTACKS, "linkage_outliers": {"dbrl_rank": 0.24}},
        pl.DataFrame({"linkage": shares}),
        knowledge=KNOWLEDGE,
    )


@cache
def evaluation():
    measured = sdc.Microdata(original(), columns=VARIABLES, by="sector", **ROLES).evaluate(
        masked(), metrics=METRICS
    )
    return with_risks(measured, {"linkage": 0.0925, "linkage_outliers": 0.24}, original().height)


@cache
def many():
    """An evaluation by more metrics than a page is wide for their full titles."""
    names = [f"brmae:ties={rule}" for rule in ("first", "last", "min", "max")]
    names += ["brmae", "brmse", "ks", "hellinger", "wasserstein", "il_variables", "ci_overlap"]
    return sdc.Microdata(original(), columns=VARIABLES, **ROLES).evaluate(masked(), metrics=names)


@cache
def pair():
    return pair_of(original(), masked(), columns=VARIABLES, **ROLES)


PARTS = {
    "choice": [
        "MDAV microaggregation with k=10 loses least of all files with a linkage risk of at most 0.1."
    ],
    "notes": ["risks of random maskings are medians of 5 replications"],
    "facts": {"sdckit": "0.1.0", "ties": "average", "method": "mdav, k=10", "seed": str(SEED)},
}


def full(**changes):
    """A page with every part."""
    parts = {"points": points(), "evaluation": evaluation(), "pair": pair(), **PARTS, **changes}
    return report(
        title="Release of the business survey",
        done=["16 maskings of 1,000 firms were compared.", "The file to be released was measured itself."],
        **parts,
    )
