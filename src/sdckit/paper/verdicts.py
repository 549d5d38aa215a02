"""What the study shows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from sdckit.core import randomness
from sdckit.core.text import listed
from sdckit.kernels.ranks import gap_distance, largest_absolute, largest_squared
from sdckit.paper import correlations as study
from sdckit.paper.correlations import BOUNDED, NO_TIES, UNBOUNDED, summarise_replications
from sdckit.paper.design import NOTE_METHODS, RANDOM_METHODS, STUDY_METHODS, UNTAILED
from sdckit.report.charts import label

if TYPE_CHECKING:
    from collections.abc import Callable

    from sdckit.arrays import Ints


LONGEST = 9  # 362,880 rankings; one more record would need ten times the memory
COSTS = {"brmae": "absolute", "brmse": "squared"}


class Printed(NamedTuple):
    """A table as the paper prints it: its rankings and their two sums, column by column."""

    rankings: str
    absolute: str
    squared: str


PRINTED = {
    3: Printed("123 132 213 312 231 321", "0 2 2 4 4 4", "0 2 2 6 6 8"),
    4: Printed(
        "1234 1243 1324 2134 2143 1423 1342 3124 2314 1432 3214 3142 "
        "2413 4123 2341 4132 3241 2431 4213 3412 4312 3421 4231 4321",
        "0 2 2 2 4 4 4 4 4 4 4 6 6 6 6 6 6 6 6 8 8 8 6 8",
        "0 2 2 2 4 6 6 6 6 8 8 10 10 12 12 14 14 14 14 16 18 18 18 20",
    ),
}


def rankings(n: int) -> Ints:
    """Return all n! rankings of n records as an array, one per row, in the paper's order.

    Examples
    --------
    >>> rankings(3).tolist()
    [[1, 2, 3], [1, 3, 2], [2, 1, 3], [3, 1, 2], [2, 3, 1], [3, 2, 1]]
    """
    if not 2 <= n <= LONGEST:
        raise ValueError(
            f"n is {n}; give 2 to {LONGEST} to list every ranking, or draw with random_distances"
        )
    found = np.ones((1, 1), np.int64)  # each ranking is one exchange of neighbours away from the one before
    for largest in range(2, n + 1):
        longer = np.empty((len(found), largest, largest), np.int64)
        for place in range(largest):
            longer[:, place, :place] = found[:, :place]
            longer[:, place, place] = largest
            longer[:, place, place + 1 :] = found[:, place:]
        longer[::2] = longer[::2, ::-1]  # from right to left first, then back
        found = longer.reshape(-1, largest)
    squared = ((found - np.arange(1, n + 1)) ** 2).sum(axis=1)
    return found[np.argsort(squared, kind="stable")]


def _distances(found: Ints) -> pl.DataFrame:
    """Return a table of the absolute and squared distances of rankings from the ranking 1, 2, ..., n."""
    n = found.shape[1]
    sums = [gap_distance(gaps2) for gaps2 in 2 * (np.arange(1, n + 1) - found)]
    return pl.DataFrame(
        {
            "n": np.full(len(sums), n),
            "permutation": np.arange(1, len(sums) + 1),
            "absolute": np.array([row.absolute2 for row in sums], np.int64) // 2,
            "squared": np.array([row.squared4 for row in sums], np.int64) // 4,
            "brmae": [row.absolute for row in sums],
            "brmse": [row.squared for row in sums],
        }
    )


def all_distances(n: int) -> pl.DataFrame:
    """Return the distances of all n! rankings from 1, 2, ..., n (Figure 1: n = 5, 6 and 7).

    0 means the same order; 1 the largest distance, which only the reversed order has under brMSE.

    Returns
    -------
    polars.DataFrame
        One row per ranking in the paper's order: `n`, `permutation` (from 1), `absolute` and `squared`
        (sums over the records), `brmae`, `brmse`.

    Examples
    --------
    >>> all_distances(3)["squared"].to_list()
    [0, 2, 2, 6, 6, 8]
    """
    return _distances(rankings(n))


def random_distances(n: int = 100, draws: int = 10_000, *, rng: Any = None) -> pl.DataFrame:
    """Return distances of random rankings, the same and the reversed order, from 1, ..., n (Figure 2).

    0 means the same order, 1 (under brMSE) the reversed one; a drawn ranking scores 2/3 and 1/2 on
    average.

    Returns
    -------
    polars.DataFrame
        As `all_distances`, and `kind`: "identity" in the first row, "reversal" in the last, "random"
        between them.

    Examples
    --------
    >>> found = random_distances(4, 2, rng=1)
    >>> found["kind"].to_list(), found["brmse"][0], found["brmse"][-1]
    (['identity', 'random', 'random', 'reversal'], 0.0, 1.0)
    """
    if n < 2 or draws < 0:
        raise ValueError(f"n is {n} and draws is {draws}; give at least 2 records and no negative number")
    start = np.arange(1, n + 1)
    drawn = randomness.generator(rng).permuted(np.tile(start, (draws, 1)), axis=1)
    kinds = ["identity", *["random"] * draws, "reversal"]
    return _distances(np.vstack([start, drawn, start[::-1]])).with_columns(kind=pl.Series(kinds))


def table_is_right(n: int) -> bool:
    """Return True if the paper's table prints every ranking once, in our order, with the right sums."""
    printed, found, measured = PRINTED[n], rankings(n), all_distances(n)
    expected = Printed(
        " ".join("".join(map(str, ranking)) for ranking in found.tolist()),
        *(" ".join(map(str, measured[cost])) for cost in COSTS.values()),
    )
    return printed == expected


def largest_is_right(n: int) -> bool:
    """Return True if the paper's sums for the reversed order are the largest distances of n records."""
    steps = [n - 2 * k + 1 for k in range(1, n // 2 + 1)]
    noted = (2 * sum(steps), 2 * sum(step**2 for step in steps))
    found = all_distances(n).select(pl.col(*COSTS.values()).max()).row(0)
    return noted == found == (largest_absolute(n), largest_squared(n))


def permutation_table(n: int) -> pl.DataFrame:
    """Return Table 1 (n = 3) or Table 2 (n = 4) of the paper, with brMAE and brMSE below.

    Returns
    -------
    polars.DataFrame
        `row`, then one column per ranking, named by its number; cells are text, so that ranks and
        shares can stand in one column. `r2[i]` is the rank of record i, `r1-r2[i]` its difference.

    Examples
    --------
    >>> permutation_table(3).select("row", "1", "4", "6").rows()[-4:]
    [('absolute', '0', '4', '4'), ('squared', '0', '6', '8'),
     ('brmae', '0.0000', '1.0000', '1.0000'), ('brmse', '0.0000', '0.7500', '1.0000')]
    """
    found = rankings(n)
    measured = _distances(found)
    rows = {f"r2[{i + 1}]": [str(rank) for rank in found[:, i]] for i in range(n)}
    rows |= {f"r1-r2[{i + 1}]": [str(i + 1 - rank) for rank in found[:, i]] for i in range(n)}
    rows |= {name: [str(value) for value in measured[name]] for name in COSTS.values()}
    rows |= {name: [f"{value:.4f}" for value in measured[name]] for name in COSTS}
    names = ["row", *(str(number) for number in measured["permutation"])]
    return pl.DataFrame([[row, *cells] for row, cells in rows.items()], schema=names, orient="row")


def distance_counts(distances: pl.DataFrame) -> pl.DataFrame:
    """Count the rankings at each distance; return a table.

    Returns
    -------
    polars.DataFrame
        `n`, `metric` ("brmae", "brmse"), `distance` (the sum), `value` (its share of the largest),
        `count`; ascending.

    Examples
    --------
    >>> distance_counts(all_distances(3)).filter(metric="brmae").select("distance", "count").rows()
    [(0, 1), (2, 2), (4, 3)]
    """
    return pl.concat(
        distances.group_by(
            "n", pl.lit(metric).alias("metric"), pl.col(cost).alias("distance"), pl.col(metric).alias("value")
        ).agg(count=pl.len())
        for metric, cost in COSTS.items()
    ).sort("n", "metric", "distance")


def distance_facts(distances: pl.DataFrame) -> pl.DataFrame:
    """Return a table of facts on distances: numbers of rankings and distinct values, mean, deviation.

    Returns
    -------
    polars.DataFrame
        One row per `n` and `metric`: `rankings`, `distinct` values, `at_largest` (rankings with the
        largest distance there is), `mean` and `sd` of the bounded distance.

    Examples
    --------
    >>> distance_facts(all_distances(4)).select("metric", "rankings", "distinct", "at_largest").rows()
    [('brmae', 24, 5, 4), ('brmse', 24, 11, 1)]
    """
    return pl.concat(
        distances.group_by("n", pl.lit(metric).alias("metric")).agg(
            rankings=pl.len(),
            distinct=pl.col(cost).n_unique(),
            at_largest=(pl.col(metric) == 1).sum(),
            mean=pl.col(metric).mean(),
            sd=pl.col(metric).std(ddof=0),
        )
        for metric, cost in COSTS.items()
    ).sort("n", "metric")


Row = dict[str, Any]

RUN = 0.005  # allowed difference of single runs of MDAV, for single precision and the order of ties in R
RANGE = 0.005  # allowed excess over the extremes of 30 replications, which another 30 would exceed as well
MEDIAN = 0.003  # allowed difference of medians
BETWEEN = 0.02  # allowed difference of two random runs

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


def _judge_row(row: Row) -> Row:
    """Return a table row with its difference from R, its rule, whether it is met, and an explanation."""
    run, first, median = row["r_single"], row["single"], row["median"]
    if first is None or median is None:
        reason = "no correlation: a metric is constant or missing over the grid"
        return row | {"difference": None, "rule": "", "met": False, "explanation": reason}
    if row["reference"] != "parameter":
        rule = f"replication 1 and our median within {BETWEEN} of R's one run"
        met = max(abs(first - run), abs(median - run)) <= BETWEEN
    elif row["r_median"] is None:
        rule = f"within {RUN} of R's run"
        met = abs(first - run) <= RUN
    else:
        rule = f"replication 1 within R's range widened by {RANGE}, medians within {MEDIAN}"
        met = row["r_min"] - RANGE <= first <= row["r_max"] + RANGE
        met = met and abs(median - row["r_median"]) <= MEDIAN
    explanation = "" if met else _known_cause(row)
    return row | {"difference": first - run, "rule": rule, "met": met, "explanation": explanation}


def _known_cause(row: Row) -> str:
    """Return the known reason why the two programs differ for a method, as text."""
    if row["method"].startswith("rank_swap") and "il1" in {row["metric"], row["reference"]}:
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


GROWING = 0.5  # smallest correlation that counts as growing; 30 random points reach 0.43 once in a hundred
STRONG = 0.8  # smallest correlation that textbooks call very strong
SMALL = 0.05  # largest difference of correlations that counts as small
NEAR_TIE = 0.0001  # differences of correlations below this show in no plot
SIMILAR = 0.05  # largest share of pairs in a different order that counts as similar
VISIBLE = 1 / 500  # a printed panel of 5 cm has about 500 dots
FULL = 0.95  # a scale is used up to its end if the worst masking comes this near to 1
ANNOUNCED, LISTED = 10, 11  # distinct squared distances of four records, as the note counts and lists them

SIZES = range(3, 8)
SIZES_TEXT = f"n = {SIZES[0]} to {SIZES[-1]}"
NOISE = ("noise", "correlated_noise")
SWAPS = ("rank_swap",)
LABELS = {name: study_method.short for name, study_method in STUDY_METHODS.items()} | {
    name: label(name) for name in BOUNDED + UNBOUNDED
}
Medians = dict[str, float]  # of each metric's correlation with the grid, best first
if TYPE_CHECKING:
    Judge = Callable[[Medians], tuple[str, float]]  # what is said of a method, and an outcome


class Finding(NamedTuple):
    """A sentence with figures, and one outcome per case: 1 (claim holds), 0 (does not), 1/2 (undecided)."""

    text: str
    outcomes: list[float]

    @property
    def verdict(self) -> str:
        """The verdict as text: the claim holds in all cases, in some, in none, or was not measured."""
        if not self.outcomes:
            return "not measured"
        if min(self.outcomes) == 1:
            return "holds"
        return "holds in part" if max(self.outcomes) > 0 else "does not hold"


@dataclass(frozen=True)
class Evidence:
    """The tables by which the claims are judged."""

    grid: pl.DataFrame  # correlations with the grid: five numbers per dataset, method and metric
    between: pl.DataFrame  # the same for bounded against unbounded metrics
    orders: pl.DataFrame  # how often two metrics order two maskings differently
    losses: pl.DataFrame  # largest brMAE and brMSE of each dataset
    listed: pl.DataFrame  # facts on all rankings of few records
    drawn: pl.DataFrame  # facts on random rankings of 100 records


def judge_claims(measured: pl.DataFrame, *, ties: str = "first", rng: Any = 1) -> pl.DataFrame:
    """Return the claims of Chaibub Neto's note, one per row, with measured figures and a verdict.

    Parameters
    ----------
    measured : polars.DataFrame
        One row per masked file, as for `sdckit.paper.correlations`; any datasets and replications.
    ties : str
        Rule for ties of the bounded metrics; the paper leaves it open, R's figures go by row order.
    rng : None, int or numpy Generator
        For the random rankings of 100 records.

    Returns
    -------
    polars.DataFrame
        `claim`, `where` in the paper, `measured` (the figures, per dataset), `verdict` ("holds",
        "holds in part", "does not hold"; "not measured" where no file bears on it).
    """
    found = study.correlations(measured).filter(pl.col("ties").is_in([ties, NO_TIES]))
    numbers = summarise_replications(found).filter(pl.col("replications") > 0)
    on_grid = pl.col("reference") == "parameter"
    bounded = [pl.col(f"{metric}_{ties}").max().alias(metric) for metric in BOUNDED]
    evidence = Evidence(
        grid=numbers.filter(on_grid),
        between=numbers.filter(~on_grid),
        orders=study.disagreement(measured, ties=ties),
        losses=_rows_of_note_methods(measured).group_by("dataset", maintain_order=True).agg(bounded),
        listed=distance_facts(pl.concat(map(all_distances, SIZES))),
        drawn=distance_facts(random_distances(rng=rng).filter(kind="random")),
    )
    rows = []
    for claim, where, check in CLAIMS:
        judged = check(evidence)
        rows.append((claim, where, judged.text, judged.verdict))
    return pl.DataFrame(rows, schema=["claim", "where", "measured", "verdict"], orient="row")


# --- rankings ---


def _facts_of_metric(facts: pl.DataFrame, metric: str, name: str) -> list[int]:
    """Return column `name` of a table of facts as a list, for the rows of one metric."""
    return facts.filter(metric=metric)[name].to_list()


def _judge_largest_distance(_: Evidence) -> Finding:
    """Judge the claim that the reversed order is farthest, for 3 to 7 records."""
    outcomes = [float(largest_is_right(n)) for n in SIZES]
    text = f"right for {sum(outcomes):.0f} of {len(SIZES)} sizes, {SIZES_TEXT}, against all rankings"
    return Finding(text, outcomes)


def _judge_tables(_: Evidence) -> Finding:
    """Judge the claim that the paper's Tables 1 and 2 list all rankings and their distances correctly."""
    right = {n: table_is_right(n) for n in PRINTED}
    text = "; ".join(f"n = {n}: {'all' if ok else 'not all'} columns right" for n, ok in right.items())
    return Finding(text, [float(ok) for ok in right.values()])


def _judge_rankings_at_largest(evidence: Evidence) -> Finding:
    """Judge the claim that several rankings have the largest absolute, one the squared distance."""
    several, one = (_facts_of_metric(evidence.listed, metric, "at_largest") for metric in BOUNDED)
    text = f"{listed(several)} rankings have the largest absolute distance for {SIZES_TEXT}"
    outcomes = [float(a > 1 and s == 1) for a, s in zip(several, one, strict=True)]
    return Finding(f"{text}, {listed(one)} the largest squared one", outcomes)


def _judge_distinct_values(evidence: Evidence) -> Finding:
    """Judge the claim that the absolute distance takes fewer values than the squared one."""
    coarse, fine = (_facts_of_metric(evidence.listed, metric, "distinct") for metric in BOUNDED)
    text = f"{listed(coarse)} distinct absolute distances for {SIZES_TEXT}"
    text += f", {listed(fine)} squared ones"
    return Finding(text, [float(a < s) for a, s in zip(coarse, fine, strict=True)])


def _judge_count_for_four(evidence: Evidence) -> Finding:
    """Judge the claim that four records have ten distinct squared distances."""
    found = evidence.listed.filter(n=4, metric="brmse")["distinct"].item()
    text = f"{found} distinct squared distances; the note announces {ANNOUNCED} and lists {LISTED}"
    return Finding(text, [float(found == ANNOUNCED)])


def _judge_steps_for_hundred(evidence: Evidence) -> Finding:
    """Judge the claim that with 100 records the steps of the absolute distance no longer show."""
    coarse, fine = (_facts_of_metric(evidence.drawn, metric, "distinct")[0] for metric in BOUNDED)
    step = 2 / largest_absolute(100)  # a sum of |r - s| is always even
    seen = f"{'too small' if step < VISIBLE else 'large enough'} to be seen in a plot"
    count = evidence.drawn["rankings"][0]
    text = f"{coarse} distinct brMAE and {fine} brMSE values of {count} drawn rankings; a step of brMAE is "
    text += f"{step:.4f}, {seen}"
    return Finding(text, [float(step < VISIBLE), float(coarse >= fine)])


# --- masked files ---


def _split_by_dataset(frame: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    """Return (name, rows) of each data set in a table."""
    return [(name, frame.filter(dataset=name)) for name in frame["dataset"].unique(maintain_order=True)]


def _medians_by_method(frame: pl.DataFrame, methods: tuple[str, ...]) -> list[tuple[str, str, Medians]]:
    """Return (data set, method, median correlation of each metric, best first) of each series."""
    found = []
    for dataset, rows in _split_by_dataset(frame):
        for method in methods:
            cell = rows.filter(method=method).sort("median", descending=True, maintain_order=True)
            if cell.height:
                found.append((dataset, method, dict(cell.select("metric", "median").iter_rows())))
    return found


def _clauses_by_dataset(cells: list[tuple[str, str, Medians]], judge: Judge) -> str:
    """Return text with one clause per data set: each method's name and what is said of its medians."""
    clauses = []
    for dataset, group in groupby(cells, key=lambda cell: cell[0]):
        parts = [f"{LABELS[method]} {judge(medians)[0]}" for _, method, medians in group]
        clauses.append(f"{dataset}: {', '.join(parts)}")
    return "; ".join(clauses)


def _judge_each_method(evidence: Evidence, methods: tuple[str, ...], lead: str, judge: Judge) -> Finding:
    """Judge each method on each data set; swapping without tails is reported but not counted."""
    cells = _medians_by_method(evidence.grid, methods)
    untailed = _medians_by_method(evidence.grid, (UNTAILED,)) if "rank_swap" in methods else []
    text = f"{lead}{_clauses_by_dataset(cells, judge)}" if cells else "no such files"
    text += f". Not counted: {_clauses_by_dataset(untailed, judge)}" if untailed else ""
    return Finding(text, [judge(medians)[1] for _, _, medians in cells])


def _lowest_text(frame: pl.DataFrame) -> str:
    """Return, as text, the lowest median correlation of each data set, and where it is."""
    clauses = []
    for dataset, rows in _split_by_dataset(frame):
        row = rows.sort("median", maintain_order=True).row(0, named=True)
        against = "" if row["reference"] == "parameter" else f"{LABELS[row['reference']]} and "
        place = f"{LABELS[row['method']]}, {against}{LABELS[row['metric']]}"
        middle = rows.select(pl.col("median").median()).item()
        clauses.append(f"{dataset}: lowest {row['median']:.3f} ({place}), median {middle:.4f}")
    return "; ".join(clauses)


def _rows_of_note_methods(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of a table whose method is one of the four that the note compares."""
    return frame.filter(pl.col("method").is_in(NOTE_METHODS))


def _judge_at_least(frame: pl.DataFrame, limit: float) -> Finding:
    """Judge the claim that all median correlations in a table reach a limit."""
    rows = _rows_of_note_methods(frame)
    text = f"{(rows['median'] >= limit).sum()} of {rows.height} at least {limit}; {_lowest_text(rows)}"
    untailed = frame.filter(method=UNTAILED)
    text += f". Not counted: {_lowest_text(untailed)}" if untailed.height else ""
    return Finding(text, [float(median >= limit) for median in rows["median"]])


def _judge_il1_weakest(evidence: Evidence) -> Finding:
    """Judge the claim that IL1 follows the parameter grid least of all metrics."""

    def judge(medians: Medians) -> tuple[str, float]:
        """Return the metric with the lowest median correlation as text, and 1 if it is IL1."""
        last = list(medians)[-1]
        return f"{LABELS[last]} ({medians[last]:.3f})", float(last == "il1")

    return _judge_each_method(evidence, RANDOM_METHODS, "weakest on ", judge)


def _judge_lead(evidence: Evidence, methods: tuple[str, ...], favoured: tuple[str, ...]) -> Finding:
    """Judge the claim that the favoured metrics follow the parameter grid best under these methods."""
    names = " and ".join(LABELS[metric] for metric in favoured)

    def judge(medians: Medians) -> tuple[str, float]:
        """Return the lead of the favoured metrics as text, and 1 if they lead; 1/2 for a near tie."""
        ours = [median for metric, median in medians.items() if metric in favoured]
        others = [median for metric, median in medians.items() if metric not in favoured]
        margin = min(ours, default=-1.0) - max(others, default=-1.0)
        if abs(margin) < NEAR_TIE:
            return f"{margin:+.5f} (a near tie)", 0.5
        return f"{margin:+.5f}", float(margin > 0)

    return _judge_each_method(evidence, methods, f"lead of {names} over the best other metric, on ", judge)


def _judge_small_differences(evidence: Evidence) -> Finding:
    """Judge the claim that the metrics differ little in how well they follow the parameter grid."""

    def judge(medians: Medians) -> tuple[str, float]:
        """Return the spread of the median correlations and its two metrics as text, and 1 if it is small."""
        names = list(medians)
        best, weakest = names[0], names[-1]
        spread = medians[best] - medians[weakest]
        ends = f"{LABELS[best]} {medians[best]:.4f} to {LABELS[weakest]} {medians[weakest]:.4f}"
        return f"{spread:.3f} ({ends})", float(spread <= SMALL)

    return _judge_each_method(evidence, RANDOM_METHODS, "best minus weakest, on ", judge)


def _judge_similarity(evidence: Evidence) -> Finding:
    """Judge the claim that bounded metrics order masked files much as the unbounded ones do."""
    crossed = pl.col("metric").is_in(BOUNDED) & pl.col("other_metric").is_in(UNBOUNDED)
    overall = evidence.orders.filter(method="all").drop_nulls("share")
    clauses = []
    for dataset, rows in _split_by_dataset(overall):
        worst = rows.filter(crossed).sort("share", descending=True, maintain_order=True).row(0, named=True)
        own = rows.filter(metric="mae", other_metric="mse")["share"].sum()
        names = f"{LABELS[worst['metric']]} and {LABELS[worst['other_metric']]}"
        clauses.append(
            f"{dataset}: up to {worst['share']:.1%} of the pairs in a different order ({names}; "
            f"MAE and MSE {own:.1%})"
        )
    within = _rows_of_note_methods(evidence.between)
    strong = f"within a method {(within['median'] >= STRONG).sum()} of {within.height} correlations at least "
    text = f"{strong}{STRONG}; across methods, {'; '.join(clauses) or 'no pairs'}"
    shares = overall.filter(crossed)["share"].to_list()
    outcomes = [float(median >= STRONG) for median in within["median"]]
    return Finding(text, outcomes + [float(share <= SIMILAR) for share in shares])


def _judge_scale(evidence: Evidence) -> Finding:
    """Judge the claim that bounded losses use the scale from 0 to 1 as disclosure risks do."""
    levels = [evidence.drawn.filter(metric=metric)["mean"].item() for metric in BOUNDED]
    text = f"a drawn order of 100 records scores {levels[0]:.3f} and {levels[1]:.3f} on average"
    for row in evidence.losses.iter_rows(named=True):
        text += f"; {row['dataset']}: largest brMAE {row['brmae']:.3f}, brMSE {row['brmse']:.3f}"
    largest = [value for metric in BOUNDED for value in evidence.losses[metric]]
    outcomes = [float(0 <= value <= 1) for value in largest]
    return Finding(text, outcomes + [float(level >= FULL) for level in levels])


CLAIMS: tuple[tuple[str, str, Callable[[Evidence], Finding]], ...] = (
    (
        "The reversed order is farthest; two sums give its distances",
        "Section 2, equations 1-3",
        _judge_largest_distance,
    ),
    ("The listed rankings and their distances are right", "Tables 1 and 2", _judge_tables),
    (
        "Several rankings share the largest absolute distance, none the squared",
        "Figure 1",
        _judge_rankings_at_largest,
    ),
    (
        "The absolute distance takes fewer values than the squared one",
        "Tables 1, 2, Figure 1",
        _judge_distinct_values,
    ),
    ("Four records have ten distinct squared distances", "Section 2, at Table 2", _judge_count_for_four),
    ("With 100 records the coarser steps no longer show", "Section 2, Figure 2", _judge_steps_for_hundred),
    (
        "Loss tends to grow with the amount of masking",
        "Figures 3, 4",
        lambda e: _judge_at_least(e.grid, GROWING),
    ),
    ("All metrics correlate highly with the grid", "Figures 3-6", lambda e: _judge_at_least(e.grid, STRONG)),
    ("IL1 follows the grid least", "Figures 5, 6", _judge_il1_weakest),
    ("IL1s follows it best under noise", "Figures 5, 6", lambda e: _judge_lead(e, NOISE, ("il1s",))),
    (
        "brMAE and brMSE follow it best under swapping",
        "Figures 5, 6",
        lambda e: _judge_lead(e, SWAPS, BOUNDED),
    ),
    ("The metrics differ little in how well they follow it", "Figures 5, 6", _judge_small_differences),
    (
        "Bounded and unbounded go together in all comparisons",
        "Figures 7-10",
        lambda e: _judge_at_least(e.between, STRONG),
    ),
    ("Bounded metrics rank maskings much as the others do", "Abstract, Section 4", _judge_similarity),
    ("Bounded by 0 and 1, losses share the scale of disclosure risks", "Abstract, Section 1", _judge_scale),
)
