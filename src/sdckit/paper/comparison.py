"""Compare our correlations with those of R's sdcMicro, each by a rule, with causes of differences."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from sdckit.paper.correlations import NO_TIES, summary

if TYPE_CHECKING:
    from collections.abc import Callable

Row = dict[str, Any]

RUN = 0.005  # MDAV draws nothing: what is left is single against double precision and the order of ties
RANGE = 0.005  # beyond the extremes of 30 replications: another 30 would exceed them a little, too
MEDIAN = 0.003
BETWEEN = 0.02  # one random run against another
CHANCE = 2.0  # standard errors; beyond them a cause is named
THEIR_REPLICATIONS = 30
GRID = 30  # points of MDAV's grid

TIES = "first"  # the rule of R's figures
KEY = ["dataset", "method", "metric", "reference"]
FIVE = ["min", "q25", "median", "q75", "max"]
COLUMNS = {
    **dict.fromkeys(KEY, pl.String),
    "r_single": pl.Float64,
    "single": pl.Float64,
    "difference": pl.Float64,
    **{f"r_{name}": pl.Float64 for name in FIVE},
    "replications": pl.Int64,
    **dict.fromkeys(FIVE, pl.Float64),
    "rule": pl.String,
    "met": pl.Boolean,
    "explanation": pl.String,
}


def sdcmicro() -> pl.DataFrame:
    """Return the correlations that sdcMicro 5.8.1 gives: one run, and five numbers over 30 replications.

    Returns
    -------
    polars.DataFrame
        `dataset`, `method`, `metric`, `reference`, `spearman`, and `min`, `q25`, `median`, `q75`,
        `max` where R was replicated (correlations with the grid of methods that draw).
    """
    return pl.read_csv(Path(__file__).with_name("sdcmicro.csv"), comment_prefix="#")


def comparison(correlations: pl.DataFrame) -> pl.DataFrame:
    """Join our correlations with R's and check each against its rule.

    A `difference` of 0 means the same correlation. Only MDAV can be compared number by number: the
    other methods draw, and R's random stream cannot be matched.

    Parameters
    ----------
    correlations : polars.DataFrame
        From `sdckit.paper.correlations.correlations`; ties by row order are compared, as in R.

    Returns
    -------
    polars.DataFrame
        One row per `dataset`, `method`, `metric` and `reference` that both have: `r_single` and
        `single` (R's one run, our first replication) and their `difference`; `r_min` to `r_max` and
        `min` to `max` over `replications`; the `rule`, whether it is `met`, and an `explanation` of
        what is known where it is not. No rows for datasets without R's figures.
    """
    ours = correlations.filter(pl.col("ties").is_in([TIES, NO_TIES]))
    first = ours.filter(replication=1).select(*KEY, single="spearman")
    theirs = sdcmicro().rename({"spearman": "r_single"} | {name: f"r_{name}" for name in FIVE})
    joined = theirs.join(first, on=KEY, maintain_order="left").join(
        summary(ours).drop("ties"), on=KEY, maintain_order="left"
    )
    return pl.DataFrame([_judged(row) for row in joined.iter_rows(named=True)], schema=COLUMNS)


class _Rule(NamedTuple):
    """A rule that a row must meet, as text and as a test, and an explanation for rows that fail."""

    text: str
    met: Callable[[Row], bool]
    explain: Callable[[Row], str]


def _judged(row: Row) -> Row:
    if row["single"] is None or row["median"] is None:
        reason = "no correlation: a metric is constant or missing over the grid"
        return row | {"difference": None, "rule": "", "met": False, "explanation": reason}
    rule = _rule_of(row)
    met = rule.met(row)
    verdict = {"rule": rule.text, "met": met, "explanation": "" if met else rule.explain(row)}
    return row | {"difference": row["single"] - row["r_single"]} | verdict


def _rule_of(row: Row) -> _Rule:
    if row["reference"] != "parameter":
        return ONE_AGAINST_ONE
    return ONE_RUN if row["r_median"] is None else REPLICATED


def _same_run(row: Row) -> bool:
    return bool(abs(row["single"] - row["r_single"]) <= RUN)


def _explain_run(row: Row) -> str:
    exchange = 12 / (GRID**3 - GRID)  # what two neighbours that change places cost
    places = abs(row["single"] - row["r_single"]) / exchange
    return f"worth about {places:.0f} exchanges of neighbouring grid points: {_cause(row)}"


def _in_range(row: Row) -> bool:
    return bool(row["r_min"] - RANGE <= row["single"] <= row["r_max"] + RANGE)


def _replicated(row: Row) -> bool:
    return _in_range(row) and bool(abs(row["median"] - row["r_median"]) <= MEDIAN)


def _standard_error(row: Row) -> float:
    """Return the standard error of a difference of medians, from R's quartiles under normality."""
    spread = (row["r_q75"] - row["r_q25"]) / 1.349
    return float(math.sqrt(math.pi / 2 * (1 / row["replications"] + 1 / THEIR_REPLICATIONS)) * spread)


def _explain_replicated(row: Row) -> str:
    gap = row["median"] - row["r_median"]
    error = _standard_error(row)
    text = (
        f"medians differ by {gap:+.4f}, {abs(gap) / error:.1f} standard errors of the medians of "
        f"{row['replications']} and {THEIR_REPLICATIONS} replications"
    )
    if not _in_range(row):
        text += f"; replication 1 lies outside R's {row['r_min']:.3f} to {row['r_max']:.3f}"
    return f"{text}: within chance" if abs(gap) <= CHANCE * error else f"{text}: {_cause(row)}"


def _near(row: Row) -> bool:
    return all(abs(row[name] - row["r_single"]) <= BETWEEN for name in ("single", "median"))


def _explain_near(row: Row) -> str:
    low, high, theirs = row["min"], row["max"], row["r_single"]
    text = f"our {row['replications']} replications reach from {low:.3f} to {high:.3f}"
    if low <= theirs <= high:
        return f"{text}, and R's one run lies among them: one draw against another"
    side = "above" if theirs > high else "below"
    return f"{text}, R's one run lies {max(low - theirs, theirs - high):.3f} {side}: {_cause(row)}"


def _cause(row: Row) -> str:
    """Return the known differences between the two programs."""
    if row["method"].startswith("rank_swap"):
        return (
            "IL1 hangs on the few smallest values, which partner they meet is luck, and the random streams "
            "of the two programs cannot be matched"
        )
    if row["method"] == "mdav":
        return (
            "sdcMicro adds up distances in single precision and breaks ties towards later records, so that a "
            "few groups differ"
        )
    return "no cause known"


ONE_RUN = _Rule(f"within {RUN} of R's run", _same_run, _explain_run)
REPLICATED = _Rule(
    f"replication 1 within R's range widened by {RANGE}, medians within {MEDIAN}",
    _replicated,
    _explain_replicated,
)
ONE_AGAINST_ONE = _Rule(f"replication 1 and our median within {BETWEEN} of R's one run", _near, _explain_near)
