"""The paper's claims, each checked against the measurements.

Each claim is a function of the evidence that returns one sentence with the figures and one outcome per
case, such as a method on a dataset. The verdict follows from the outcomes alone. Claims about the masked
files are judged by the paper's four methods; rank swapping replaces tails there, which is R's default,
because the paper names no other. Figures of swapping without tails are added if they were measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from sdckit.core.text import listed
from sdckit.kernels.ranks import largest_absolute
from sdckit.paper import correlations as study
from sdckit.paper import permutations
from sdckit.paper.correlations import BOUNDED, UNBOUNDED
from sdckit.paper.design import NOTE_METHODS, RANDOM_METHODS, STUDY_METHODS, UNTAILED
from sdckit.report.charts import label

if TYPE_CHECKING:
    from collections.abc import Callable

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
    evidence = gather_evidence(measured, ties=ties, rng=rng)
    rows = []
    for claim, where, check in CLAIMS:
        found = check(evidence)
        rows.append((claim, where, found.text, found.verdict))
    return pl.DataFrame(rows, schema=["claim", "where", "measured", "verdict"], orient="row")


def gather_evidence(measured: pl.DataFrame, *, ties: str, rng: Any) -> Evidence:
    """Return the tables by which claims are judged: from measured files, all short and drawn orders."""
    found = study.correlations(measured).filter(pl.col("ties").is_in([ties, study.NO_TIES]))
    numbers = study.summarise_replications(found).filter(pl.col("replications") > 0)
    on_grid = pl.col("reference") == "parameter"
    distances = permutations.random_distances(rng=rng).filter(kind="random")
    bounded = [pl.col(f"{metric}_{ties}").max().alias(metric) for metric in BOUNDED]
    note_files = measured.filter(pl.col("method").is_in(NOTE_METHODS))
    return Evidence(
        grid=numbers.filter(on_grid),
        between=numbers.filter(~on_grid),
        orders=study.disagreement(measured, ties=ties),
        losses=note_files.group_by("dataset", maintain_order=True).agg(bounded),
        listed=permutations.distance_facts(pl.concat(map(permutations.all_distances, SIZES))),
        drawn=permutations.distance_facts(distances),
    )


# --- rankings ---


def _facts_of_metric(facts: pl.DataFrame, metric: str, name: str) -> list[int]:
    """Return column `name` of a table of facts as a list, for the rows of one metric."""
    return facts.filter(metric=metric)[name].to_list()


def _judge_largest_distance(_: Evidence) -> Finding:
    """Judge the claim that the reversed order is farthest, for 3 to 7 records."""
    outcomes = [float(permutations.largest_is_right(n)) for n in SIZES]
    text = f"right for {sum(outcomes):.0f} of {len(SIZES)} sizes, {SIZES_TEXT}, against all rankings"
    return Finding(text, outcomes)


def _judge_tables(_: Evidence) -> Finding:
    """Judge the claim that the paper's Tables 1 and 2 list all rankings and their distances correctly."""
    right = {n: permutations.table_is_right(n) for n in permutations.PRINTED}
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


def _clauses_by_dataset(cells: list[tuple[str, str, Medians]], describe: Callable[[Medians], str]) -> str:
    """Return text with one clause per data set: each method's name and the description of its medians."""
    clauses = []
    for dataset, group in groupby(cells, key=lambda cell: cell[0]):
        parts = [f"{LABELS[method]} {describe(medians)}" for _, method, medians in group]
        clauses.append(f"{dataset}: {', '.join(parts)}")
    return "; ".join(clauses)


def _judge_each_method(
    evidence: Evidence,
    methods: tuple[str, ...],
    lead: str,
    describe: Callable[[Medians], str],
    judge: Callable[[Medians], float],
) -> Finding:
    """Judge each method on each data set; swapping without tails is reported but not counted."""
    cells = _medians_by_method(evidence.grid, methods)
    extra = (
        _clauses_by_dataset(_medians_by_method(evidence.grid, (UNTAILED,)), describe)
        if "rank_swap" in methods
        else ""
    )
    text = f"{lead}{_clauses_by_dataset(cells, describe)}" if cells else "no such files"
    text += f". Not counted: {extra}" if extra else ""
    return Finding(text, [judge(medians) for _, _, medians in cells])


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

    def describe(medians: Medians) -> str:
        """Return the metric with the lowest median correlation as text."""
        last = list(medians)[-1]
        return f"{LABELS[last]} ({medians[last]:.3f})"

    return _judge_each_method(
        evidence, RANDOM_METHODS, "weakest on ", describe, lambda medians: float(list(medians)[-1] == "il1")
    )


def _margin(medians: Medians, favoured: tuple[str, ...]) -> float:
    """Return the lowest correlation of the favoured metrics minus the highest of the others."""
    ours = [median for metric, median in medians.items() if metric in favoured]
    others = [median for metric, median in medians.items() if metric not in favoured]
    return min(ours, default=-1.0) - max(others, default=-1.0)


def _judge_lead(evidence: Evidence, methods: tuple[str, ...], favoured: tuple[str, ...]) -> Finding:
    """Judge the claim that the favoured metrics follow the parameter grid best under these methods."""
    names = " and ".join(LABELS[metric] for metric in favoured)

    def describe(medians: Medians) -> str:
        """Return the lead of the favoured metrics as text."""
        margin = _margin(medians, favoured)
        return f"{margin:+.5f}{' (a near tie)' if abs(margin) < NEAR_TIE else ''}"

    def judge(medians: Medians) -> float:
        """Return 1 if the favoured metrics lead, 0 if not, 1/2 for a near tie."""
        margin = _margin(medians, favoured)
        return 0.5 if abs(margin) < NEAR_TIE else float(margin > 0)

    return _judge_each_method(
        evidence, methods, f"lead of {names} over the best other metric, on ", describe, judge
    )


def _judge_small_differences(evidence: Evidence) -> Finding:
    """Judge the claim that the metrics differ little in how well they follow the parameter grid."""

    def spread(medians: Medians) -> float:
        """Return the highest minus the lowest median correlation."""
        return max(medians.values()) - min(medians.values())

    def describe(medians: Medians) -> str:
        """Return the spread of the median correlations and its two metrics as text."""
        names = list(medians)
        ends = f"{LABELS[names[0]]} {medians[names[0]]:.4f} to {LABELS[names[-1]]} {medians[names[-1]]:.4f}"
        return f"{spread(medians):.3f} ({ends})"

    def judge(medians: Medians) -> float:
        """Return 1 if the spread is at most 0.05, else 0."""
        return float(spread(medians) <= SMALL)

    return _judge_each_method(evidence, RANDOM_METHODS, "best minus weakest, on ", describe, judge)


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
