"""The note's claims, checked against the measurements.

Each claim is a function of the evidence that returns one sentence with the figures and one outcome per
case, such as a method on a dataset. The verdict follows from the outcomes alone. Claims about the masked
files rest on the note's four methods; rank swapping has the tails of R's default there, because the note
names no other, and what swapping without tails gives is added where it is at hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from sdckit.kernels.rank_sums import largest_absolute
from sdckit.paper import correlations as study
from sdckit.paper import permutations
from sdckit.paper.correlations import BOUNDED, UNBOUNDED
from sdckit.paper.design import DRAWN, NOTED, UNTAILED, WAYS
from sdckit.report.charts import label

if TYPE_CHECKING:
    from collections.abc import Callable

GROWING = 0.5  # 30 points in random order reach 0.43 once in a hundred times
STRONG = 0.8  # where textbooks begin to call a correlation very strong
SMALL = 0.05  # a twentieth of the scale from 0 to 1
NEAR_TIE = 0.0001  # no plot of correlations shows less
SIMILAR = 0.05  # one pair in twenty in a different order
VISIBLE = 1 / 500  # a printed panel of 5 cm has about 500 dots
FULL = 0.95  # a scale is used up to its end if the worst masking comes this near to 1
ANNOUNCED, LISTED = 10, 11  # distinct squared distances of four records, as the note counts and lists them

SIZES = range(3, 8)
SPAN = f"n = {SIZES[0]} to {SIZES[-1]}"
NOISE = ("noise", "correlated_noise")
SWAPS = ("rank_swap",)
LABELS = {name: way.short for name, way in WAYS.items()} | {name: label(name) for name in BOUNDED + UNBOUNDED}
Medians = dict[str, float]  # of each metric's correlation with the grid, best first


class Finding(NamedTuple):
    """A sentence with figures, and per case 1 (claim holds), 0 (does not hold) or 1/2 (undecided)."""

    text: str
    outcomes: list[float]

    @property
    def verdict(self) -> str:
        """Verdict: holds in all cases, in some or in none."""
        if not self.outcomes:
            return "not measured"
        if min(self.outcomes) == 1:
            return "holds"
        return "holds in part" if max(self.outcomes) > 0 else "does not hold"


@dataclass(frozen=True)
class Evidence:
    """The tables by which claims are judged."""

    grid: pl.DataFrame  # correlations with the grid: five numbers per dataset, method and metric
    between: pl.DataFrame  # the same for bounded against unbounded metrics
    orders: pl.DataFrame  # how often two metrics order two maskings differently
    losses: pl.DataFrame  # largest brMAE and brMSE of each dataset
    listed: pl.DataFrame  # facts on all rankings of few records
    drawn: pl.DataFrame  # facts on random rankings of 100 records


def verdicts(measured: pl.DataFrame, *, ties: str = "first", rng: Any = 1) -> pl.DataFrame:
    """Judge each claim of the note by the measured files.

    Parameters
    ----------
    measured : polars.DataFrame
        One row per masked file, as for `sdckit.paper.correlations`; any datasets and replications.
    ties : str
        Rule for ties of the bounded metrics; the note leaves it open, R's figures go by row order.
    rng : None, int or numpy Generator
        For the random rankings of 100 records.

    Returns
    -------
    polars.DataFrame
        `claim`, `where` in the note, `measured` (the figures, per dataset), `verdict` ("holds",
        "holds in part", "does not hold"; "not measured" where no file bears on it).
    """
    evidence = gather(measured, ties=ties, rng=rng)
    rows = []
    for claim, where, check in CLAIMS:
        found = check(evidence)
        rows.append((claim, where, found.text, found.verdict))
    return pl.DataFrame(rows, schema=["claim", "where", "measured", "verdict"], orient="row")


def gather(measured: pl.DataFrame, *, ties: str, rng: Any) -> Evidence:
    """Compute the tables behind the claims."""
    found = study.correlations(measured).filter(pl.col("ties").is_in([ties, study.NO_TIES]))
    numbers = study.summary(found).filter(pl.col("replications") > 0)
    on_grid = pl.col("reference") == "parameter"
    distances = permutations.random_distances(rng=rng).filter(kind="random")
    bounded = [pl.col(f"{metric}_{ties}").max().alias(metric) for metric in BOUNDED]
    noted = measured.filter(pl.col("method").is_in(NOTED))
    return Evidence(
        grid=numbers.filter(on_grid),
        between=numbers.filter(~on_grid),
        orders=study.disagreement(measured, ties=ties),
        losses=noted.group_by("dataset", maintain_order=True).agg(bounded),
        listed=permutations.distance_facts(pl.concat(map(permutations.all_distances, SIZES))),
        drawn=permutations.distance_facts(distances),
    )


# --- rankings ---


def _column(facts: pl.DataFrame, metric: str, name: str) -> list[int]:
    return facts.filter(metric=metric)[name].to_list()


def _listing(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:-1])) + f" and {numbers[-1]}"


def _largest(_: Evidence) -> Finding:
    outcomes = [float(permutations.largest_is_right(n)) for n in SIZES]
    text = f"right for {sum(outcomes):.0f} of {len(SIZES)} sizes, {SPAN}, against all rankings"
    return Finding(text, outcomes)


def _tables(_: Evidence) -> Finding:
    right = {n: permutations.table_is_right(n) for n in permutations.PRINTED}
    text = "; ".join(f"n = {n}: {'all' if ok else 'not all'} columns right" for n, ok in right.items())
    return Finding(text, [float(ok) for ok in right.values()])


def _several(evidence: Evidence) -> Finding:
    several, one = (_column(evidence.listed, metric, "at_largest") for metric in BOUNDED)
    text = f"{_listing(several)} rankings have the largest absolute distance for {SPAN}"
    outcomes = [float(a > 1 and s == 1) for a, s in zip(several, one, strict=True)]
    return Finding(f"{text}, {_listing(one)} the largest squared one", outcomes)


def _granular(evidence: Evidence) -> Finding:
    coarse, fine = (_column(evidence.listed, metric, "distinct") for metric in BOUNDED)
    text = f"{_listing(coarse)} distinct absolute distances for {SPAN}, {_listing(fine)} squared ones"
    return Finding(text, [float(a < s) for a, s in zip(coarse, fine, strict=True)])


def _counted(evidence: Evidence) -> Finding:
    found = evidence.listed.filter(n=4, metric="brmse")["distinct"].item()
    text = f"{found} distinct squared distances; the note announces {ANNOUNCED} and lists {LISTED}"
    return Finding(text, [float(found == ANNOUNCED)])


def _discrete(evidence: Evidence) -> Finding:
    coarse, fine = (_column(evidence.drawn, metric, "distinct")[0] for metric in BOUNDED)
    step = 2 / largest_absolute(100)  # a sum of |r - s| is always even
    seen = f"{'too small' if step < VISIBLE else 'large enough'} to be seen in a plot"
    count = evidence.drawn["rankings"][0]
    text = f"{coarse} distinct brMAE and {fine} brMSE values of {count} drawn rankings; a step of brMAE is "
    text += f"{step:.4f}, {seen}"
    return Finding(text, [float(step < VISIBLE), float(coarse >= fine)])


# --- masked files ---


def _by_dataset(frame: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    return [(name, frame.filter(dataset=name)) for name in frame["dataset"].unique(maintain_order=True)]


def _cells(frame: pl.DataFrame, methods: tuple[str, ...]) -> list[tuple[str, str, Medians]]:
    """Yield data set, method and medians of each series."""
    found = []
    for dataset, rows in _by_dataset(frame):
        for method in methods:
            cell = rows.filter(method=method).sort("median", descending=True, maintain_order=True)
            if cell.height:
                found.append((dataset, method, dict(cell.select("metric", "median").iter_rows())))
    return found


def _told(cells: list[tuple[str, str, Medians]], tell: Callable[[Medians], str]) -> str:
    """Return one clause per data set, with each method and its finding."""
    clauses = []
    for dataset, group in groupby(cells, key=lambda cell: cell[0]):
        parts = [f"{LABELS[method]} {tell(medians)}" for _, method, medians in group]
        clauses.append(f"{dataset}: {', '.join(parts)}")
    return "; ".join(clauses)


def _per_cell(
    evidence: Evidence,
    methods: tuple[str, ...],
    lead: str,
    tell: Callable[[Medians], str],
    judge: Callable[[Medians], float],
) -> Finding:
    """Judge each method on each data set; swapping without tails is reported but not counted."""
    cells = _cells(evidence.grid, methods)
    extra = _told(_cells(evidence.grid, (UNTAILED,)), tell) if "rank_swap" in methods else ""
    text = f"{lead}{_told(cells, tell)}" if cells else "no such files"
    text += f". Not counted: {extra}" if extra else ""
    return Finding(text, [judge(medians) for _, _, medians in cells])


def _least(frame: pl.DataFrame) -> str:
    """Return per data set the lowest median of a table of correlations, and where it is."""
    clauses = []
    for dataset, rows in _by_dataset(frame):
        row = rows.sort("median", maintain_order=True).row(0, named=True)
        against = "" if row["reference"] == "parameter" else f"{LABELS[row['reference']]} and "
        place = f"{LABELS[row['method']]}, {against}{LABELS[row['metric']]}"
        middle = rows.select(pl.col("median").median()).item()
        clauses.append(f"{dataset}: lowest {row['median']:.3f} ({place}), median {middle:.4f}")
    return "; ".join(clauses)


def _noted(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.filter(pl.col("method").is_in(NOTED))


def _at_least(frame: pl.DataFrame, limit: float) -> Finding:
    rows = _noted(frame)
    text = f"{(rows['median'] >= limit).sum()} of {rows.height} at least {limit}; {_least(rows)}"
    untailed = frame.filter(method=UNTAILED)
    text += f". Not counted: {_least(untailed)}" if untailed.height else ""
    return Finding(text, [float(median >= limit) for median in rows["median"]])


def _weakest(evidence: Evidence) -> Finding:
    def tell(medians: Medians) -> str:
        last = list(medians)[-1]
        return f"{LABELS[last]} ({medians[last]:.3f})"

    return _per_cell(evidence, DRAWN, "weakest on ", tell, lambda medians: float(list(medians)[-1] == "il1"))


def _margin(medians: Medians, favoured: tuple[str, ...]) -> float:
    """Return by how much the weakest favoured metric is ahead of the best of the others."""
    ours = [median for metric, median in medians.items() if metric in favoured]
    others = [median for metric, median in medians.items() if metric not in favoured]
    return min(ours, default=-1.0) - max(others, default=-1.0)


def _favoured(evidence: Evidence, methods: tuple[str, ...], favoured: tuple[str, ...]) -> Finding:
    """Judge whether the favoured metrics follow the grid best under the methods."""
    whom = " and ".join(LABELS[metric] for metric in favoured)

    def tell(medians: Medians) -> str:
        margin = _margin(medians, favoured)
        return f"{margin:+.5f}{' (a near tie)' if abs(margin) < NEAR_TIE else ''}"

    def judge(medians: Medians) -> float:
        margin = _margin(medians, favoured)
        return 0.5 if abs(margin) < NEAR_TIE else float(margin > 0)

    return _per_cell(evidence, methods, f"lead of {whom} over the best other metric, on ", tell, judge)


def _small(evidence: Evidence) -> Finding:
    def spread(medians: Medians) -> float:
        return max(medians.values()) - min(medians.values())

    def tell(medians: Medians) -> str:
        names = list(medians)
        ends = f"{LABELS[names[0]]} {medians[names[0]]:.4f} to {LABELS[names[-1]]} {medians[names[-1]]:.4f}"
        return f"{spread(medians):.3f} ({ends})"

    def judge(medians: Medians) -> float:
        return float(spread(medians) <= SMALL)

    return _per_cell(evidence, DRAWN, "best minus weakest, on ", tell, judge)


def _similar(evidence: Evidence) -> Finding:
    """Judge similarity within a method by correlations, across methods by pairs of maskings."""
    crossed = pl.col("metric").is_in(BOUNDED) & pl.col("other_metric").is_in(UNBOUNDED)
    overall = evidence.orders.filter(method="all").drop_nulls("share")
    clauses = []
    for dataset, rows in _by_dataset(overall):
        worst = rows.filter(crossed).sort("share", descending=True, maintain_order=True).row(0, named=True)
        own = rows.filter(metric="mae", other_metric="mse")["share"].sum()
        names = f"{LABELS[worst['metric']]} and {LABELS[worst['other_metric']]}"
        clauses.append(
            f"{dataset}: up to {worst['share']:.1%} of the pairs in a different order ({names}; "
            f"MAE and MSE {own:.1%})"
        )
    within = _noted(evidence.between)
    strong = f"within a method {(within['median'] >= STRONG).sum()} of {within.height} correlations at least "
    text = f"{strong}{STRONG}; across methods, {'; '.join(clauses) or 'no pairs'}"
    shares = overall.filter(crossed)["share"].to_list()
    outcomes = [float(median >= STRONG) for median in within["median"]]
    return Finding(text, outcomes + [float(share <= SIMILAR) for share in shares])


def _scale(evidence: Evidence) -> Finding:
    levels = [evidence.drawn.filter(metric=metric)["mean"].item() for metric in BOUNDED]
    text = f"a drawn order of 100 records scores {levels[0]:.3f} and {levels[1]:.3f} on average"
    for row in evidence.losses.iter_rows(named=True):
        text += f"; {row['dataset']}: largest brMAE {row['brmae']:.3f}, brMSE {row['brmse']:.3f}"
    largest = [value for metric in BOUNDED for value in evidence.losses[metric]]
    outcomes = [float(0 <= value <= 1) for value in largest]
    return Finding(text, outcomes + [float(level >= FULL) for level in levels])


CLAIMS: tuple[tuple[str, str, Callable[[Evidence], Finding]], ...] = (
    ("The reversed order is farthest; two sums give its distances", "Section 2, equations 1-3", _largest),
    ("The listed rankings and their distances are right", "Tables 1 and 2", _tables),
    ("Several rankings share the largest absolute distance, none the squared", "Figure 1", _several),
    ("The absolute distance takes fewer values than the squared one", "Tables 1, 2, Figure 1", _granular),
    ("Four records have ten distinct squared distances", "Section 2, at Table 2", _counted),
    ("With 100 records the coarser steps no longer show", "Section 2, Figure 2", _discrete),
    ("Loss tends to grow with the amount of masking", "Figures 3, 4", lambda e: _at_least(e.grid, GROWING)),
    ("All metrics correlate highly with the grid", "Figures 3-6", lambda e: _at_least(e.grid, STRONG)),
    ("IL1 follows the grid least", "Figures 5, 6", _weakest),
    ("IL1s follows it best under noise", "Figures 5, 6", lambda e: _favoured(e, NOISE, ("il1s",))),
    ("brMAE and brMSE follow it best under swapping", "Figures 5, 6", lambda e: _favoured(e, SWAPS, BOUNDED)),
    ("The metrics differ little in how well they follow it", "Figures 5, 6", _small),
    (
        "Bounded and unbounded go together in all comparisons",
        "Figures 7-10",
        lambda e: _at_least(e.between, STRONG),
    ),
    ("Bounded metrics rank maskings much as the others do", "Abstract, Section 4", _similar),
    ("Bounded by 0 and 1, losses share the scale of disclosure risks", "Abstract, Section 1", _scale),
)
