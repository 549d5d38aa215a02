"""Compare our correlations with those of R's sdcMicro, each by a rule, and explain differences."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from sdckit.paper.correlations import NO_TIES, summarise_replications

if TYPE_CHECKING:
    from collections.abc import Callable

Row = dict[str, Any]

RUN = 0.005  # allowed difference of single runs of MDAV, for single precision and the order of ties in R
RANGE = 0.005  # allowed excess over the extremes of 30 replications, which another 30 would exceed as well
MEDIAN = 0.003  # allowed difference of medians
BETWEEN = 0.02  # allowed difference of two random runs
CHANCE = 2.0  # standard errors up to which a difference is put down to chance
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


def sdcmicro_correlations() -> pl.DataFrame:
    """Return the correlations that sdcMicro 5.8.1 gives: one run, and five numbers of 30 replications.

    Returns
    -------
    polars.DataFrame
        `dataset`, `method`, `metric`, `reference`, `spearman`, and `min`, `q25`, `median`, `q75`,
        `max` where R was replicated (correlations with the grid of methods that draw).
    """
    return pl.read_csv(Path(__file__).with_name("sdcmicro.csv"), comment_prefix="#")


def compare_with_sdcmicro(correlations: pl.DataFrame) -> pl.DataFrame:
    """Join our Spearman correlations with R's and check each pair against its rule.

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
    theirs = sdcmicro_correlations().rename({"spearman": "r_single"} | {name: f"r_{name}" for name in FIVE})
    joined = theirs.join(first, on=KEY, maintain_order="left").join(
        summarise_replications(ours).drop("ties"), on=KEY, maintain_order="left"
    )
    return pl.DataFrame([_judge_row(row) for row in joined.iter_rows(named=True)], schema=COLUMNS)


class _Rule(NamedTuple):
    """A rule for two correlations, as text and as a test of a table row, and an explanation of failures."""

    text: str
    met: Callable[[Row], bool]
    explain: Callable[[Row], str]


def _judge_row(row: Row) -> Row:
    """Return a table row with its difference from R, its rule, whether it is met, and an explanation."""
    if row["single"] is None or row["median"] is None:
        reason = "no correlation: a metric is constant or missing over the grid"
        return row | {"difference": None, "rule": "", "met": False, "explanation": reason}
    rule = _rule_for(row)
    met = rule.met(row)
    verdict = {"rule": rule.text, "met": met, "explanation": "" if met else rule.explain(row)}
    return row | {"difference": row["single"] - row["r_single"]} | verdict


def _rule_for(row: Row) -> _Rule:
    """Return the rule by which a table row, one of our correlations beside R's, is judged."""
    if row["reference"] != "parameter":
        return ONE_AGAINST_ONE
    return ONE_RUN if row["r_median"] is None else REPLICATED


def _single_runs_agree(row: Row) -> bool:
    """Return True if our first replication is within 0.005 of R's single run."""
    return bool(abs(row["single"] - row["r_single"]) <= RUN)


def _explain_single_runs(row: Row) -> str:
    """Return how many exchanges of grid points a difference of single runs is worth, and its cause."""
    exchange = 12 / (GRID**3 - GRID)  # change of Spearman's r if two neighbours swap
    exchanges = abs(row["single"] - row["r_single"]) / exchange
    return f"worth about {exchanges:.0f} exchanges of neighbouring grid points: {_known_cause(row)}"


def _first_run_in_range(row: Row) -> bool:
    """Return True if our first replication lies in R's range of replications, widened by 0.005."""
    return bool(row["r_min"] - RANGE <= row["single"] <= row["r_max"] + RANGE)


def _replications_agree(row: Row) -> bool:
    """Return True if our first replication lies in R's range and the medians differ by at most 0.003."""
    return _first_run_in_range(row) and bool(abs(row["median"] - row["r_median"]) <= MEDIAN)


def _standard_error(row: Row) -> float:
    """Return the standard error of our median less that of R's runs, from the quartiles of R's runs."""
    spread = (row["r_q75"] - row["r_q25"]) / 1.349
    return float(math.sqrt(math.pi / 2 * (1 / row["replications"] + 1 / THEIR_REPLICATIONS)) * spread)


def _explain_replications(row: Row) -> str:
    """Return as text by how many standard errors our median differs from that of R's runs, and why."""
    gap = row["median"] - row["r_median"]
    error = _standard_error(row)
    text = (
        f"medians differ by {gap:+.4f}, {abs(gap) / error:.1f} standard errors of the medians of "
        f"{row['replications']} and {THEIR_REPLICATIONS} replications"
    )
    if not _first_run_in_range(row):
        text += f"; replication 1 lies outside R's {row['r_min']:.3f} to {row['r_max']:.3f}"
    return f"{text}: within chance" if abs(gap) <= CHANCE * error else f"{text}: {_known_cause(row)}"


def _near_single_run(row: Row) -> bool:
    """Return True if our first replication and our median are both within 0.02 of R's single run."""
    return all(abs(row[name] - row["r_single"]) <= BETWEEN for name in ("single", "median"))


def _explain_single_run(row: Row) -> str:
    """Return where R's single run lies beside the range of our replications, as text, and the cause."""
    low, high, theirs = row["min"], row["max"], row["r_single"]
    text = f"our {row['replications']} replications reach from {low:.3f} to {high:.3f}"
    if low <= theirs <= high:
        return f"{text}, and R's one run lies among them: one draw against another"
    side = "above" if theirs > high else "below"
    return f"{text}, R's one run lies {max(low - theirs, theirs - high):.3f} {side}: {_known_cause(row)}"


def _known_cause(row: Row) -> str:
    """Return the known reason why the two programs differ for a method, as text."""
    if row["method"].startswith("rank_swap"):
        return (
            "IL1 depends on the few smallest values, whose swapping partners are random, and the random "
            "streams of the two programs cannot be matched"
        )
    if row["method"] == "mdav":
        return (
            "sdcMicro adds up distances in single precision and breaks ties towards later records, so that a "
            "few groups differ"
        )
    return "no cause known"


ONE_RUN = _Rule(f"within {RUN} of R's run", _single_runs_agree, _explain_single_runs)
REPLICATED = _Rule(
    f"replication 1 within R's range widened by {RANGE}, medians within {MEDIAN}",
    _replications_agree,
    _explain_replications,
)
ONE_AGAINST_ONE = _Rule(
    f"replication 1 and our median within {BETWEEN} of R's one run", _near_single_run, _explain_single_run
)
