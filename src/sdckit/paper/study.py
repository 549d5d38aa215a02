"""The study: settings, replications, results."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sdckit.io import datasets
from sdckit.masking import apply
from sdckit.metrics import METRICS as METRIC_RECORDS
from sdckit.metrics.original import Original
from sdckit.metrics.pair import Pair
from sdckit.paper.correlations import BOUNDED, TIES, UNBOUNDED, correlations
from sdckit.paper.design import NOTE_METHODS, SEED, STUDY_METHODS, measure_files
from sdckit.progress import track
from sdckit.selection.microdata import Microdata
from sdckit.selection.plan import settings_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sdckit.arrays import Floats
    from sdckit.paper.risks import Risks


@dataclass(frozen=True)
class Study:
    """All measurements that the tables and figures of the study show.

    `measured` has one row per masked file: `dataset`, `method`, `setting`, `replication` and the losses;
    `levels` the values of an unrelated order, for the strongest masking of each method: `dataset`,
    `method`, `ties`, `brmae`, `brmse`; `tie_range` the smallest and largest value over all ways to break
    ties under microaggregation: `dataset`, `setting`, `metric`, `value`, `tie_low`, `tie_high`; `risks` the
    disclosure risks, if they were measured.
    """

    measured: pl.DataFrame
    levels: pl.DataFrame
    tie_range: pl.DataFrame
    risks: Risks | None = None

    @property
    def required_risks(self) -> Risks:
        """The measured risks of the study; ValueError if it has none."""
        if self.risks is None:
            raise ValueError("the files of this study were not attacked; measure their risks first")
        return self.risks

    @cached_property
    def correlations(self) -> pl.DataFrame:
        """Table of Spearman's correlations of each series: metrics with the grid and with each other."""
        return correlations(self.measured)

    @property
    def datasets(self) -> list[str]:
        """Names of the data sets that were masked, in the paper's order."""
        present = self.measured["dataset"].unique(maintain_order=True).to_list()
        return sorted(present, key=lambda name: (name == "Census", name != "Tarragona"))

    def methods_on(self, dataset: str, wanted: Sequence[str] = NOTE_METHODS) -> list[str]:
        """Return those of the named methods that masked a data set."""
        present = set(self.measured.filter(dataset=dataset)["method"])
        return [method for method in wanted if method in present]

    def replications(self, dataset: str) -> int:
        """Return the number of replications of the random methods on a data set."""
        return int(self.measured.filter(dataset=dataset)["replication"].n_unique())

    def first_replication(self, dataset: str, method: str, *, ties: str = "first") -> pl.DataFrame:
        """Return the first replication of a method: its `setting` and one column per metric."""
        rows = self.measured.filter(dataset=dataset, method=method, replication=1).sort("setting")
        bounded = [pl.col(f"{metric}_{ties}").alias(metric) for metric in BOUNDED]
        return rows.select("setting", *bounded, *UNBOUNDED)

    def spearman(self, dataset: str, method: str, metric: str, reference: str = "parameter") -> float | None:
        """Return Spearman's r of a metric and the parameter (or another metric), in the first replication."""
        found = self.correlations.filter(
            pl.col("ties").is_in(["first", "-"]),
            dataset=dataset,
            method=method,
            metric=metric,
            reference=reference,
            replication=1,
        )["spearman"]
        return found[0] if len(found) else None

    def unrelated_level(self, dataset: str, method: str, metric: str) -> float | None:
        """Return a metric's value for an unrelated order, ties ranked by row; None if it is unbounded."""
        if metric not in BOUNDED:
            return None
        chosen = self.levels.filter(dataset=dataset, method=method, ties="first")
        return next(iter(chosen[metric].drop_nulls().drop_nans()), None)


METRICS = {f"{metric}_{rule}": f"{metric}:ties={rule}" for rule in TIES for metric in BOUNDED}
METRICS |= {metric: metric for metric in UNBOUNDED} | {"il1": "il1:zeros=drop"}
SHUFFLES = 100  # number of random orders that estimate a level without a formula


def load_data_sets(names: Sequence[str]) -> dict[str, Original]:
    """Load data sets and return them prepared, by their names in tables."""
    found = {}
    for name in names:
        if name == "sample":
            sample = datasets.load_sample().drop("firm", "sector", "weight")
            found[name] = Original.of(sample.select(column for column in sample if not column.null_count()))
        else:
            found[name.capitalize()] = Original.of(datasets.load_dataset(name))
    return found


def run_study(
    data: dict[str, Original],
    *,
    replications: int = 30,
    seed: int = SEED,
    folder: Path | None = None,
    **running: Any,
) -> Study:
    """Mask the data sets with all methods and measure all losses; finished runs are stored in `folder`.

    `running` are further options of a sweep: `workers`, `overwrite`.
    """
    parts, levels, ranges = [], [], []
    labels = list(STUDY_METHODS)
    with track("the study", len(data)) as report:
        for place, (name, original) in enumerate(data.items()):
            report(place)
            running |= {"replications": replications, "folder": folder and folder / name.lower()}
            parts.append(measure_losses(original, labels, name=name, seed=seed, **running))
            levels += [_unrelated_levels(original, label, seed, name) for label in labels]
            ranges.append(_tie_range(original, name))
    return Study(pl.concat(parts), pl.concat(levels), pl.concat(ranges))


def measure_losses(
    original: Original,
    labels: Sequence[str],
    *,
    name: str,
    seed: int = SEED,
    metrics: Sequence[str] = tuple(METRICS),
    **running: Any,
) -> pl.DataFrame:
    """Mask one data set with the named methods; return one row per masked file with its losses.

    `running` are further options of a sweep: `replications`, `workers`, `folder`, `overwrite`.
    """
    plan: dict[str, list[Any]] = {}
    for label in labels:
        plan.setdefault(STUDY_METHODS[label].method, []).append(STUDY_METHODS[label].grid)
    named = [METRICS[metric] for metric in metrics]
    table = measure_files(original, plan, name=name, metrics=named, draws="fresh", rng=seed, **running)
    return table.drop("parameters").rename({METRICS[metric]: metric for metric in metrics})


def _unrelated_levels(original: Original, label: str, seed: int, name: str) -> pl.DataFrame:
    """Return brMAE and brMSE of a masked file in random order, under each rule for ties."""
    strongest = settings_of({STUDY_METHODS[label].method: STUDY_METHODS[label].grid})[-1]
    rng = np.random.default_rng(seed)
    masked = apply(strongest.method, original.values, strongest.options, rng, names=original.columns)
    pair, levels = Pair(original, masked), {}
    for rule in ("average", "expected"):
        scores = [METRIC_RECORDS[metric].score(pair, ties=rule, detail=True) for metric in BOUNDED]
        levels[rule] = [np.nan if score.random is None else score.random.overall for score in scores]
    levels["first"] = _levels_by_shuffling(original, masked, levels["average"], rng)
    rows = [
        {"dataset": name, "method": label, "ties": rule} | dict(zip(BOUNDED, levels[rule], strict=True))
        for rule in TIES
    ]
    return pl.DataFrame(rows)


def _levels_by_shuffling(
    original: Original, masked: Floats, average: list[float], rng: np.random.Generator
) -> list[float]:
    """Return brMAE and brMSE of a random order if ties are ranked by row, estimated by shuffling."""
    gaps = []
    for _ in range(SHUFFLES):
        pair = Pair(original, rng.permuted(masked, axis=0))
        gaps.append(
            [
                metric.score(pair, ties="first").value.overall - metric.score(pair).value.overall
                for metric in (METRIC_RECORDS[name] for name in BOUNDED)
            ]
        )
    return [level + float(gap) for level, gap in zip(average, np.mean(gaps, axis=0), strict=True)]


def _tie_range(original: Original, name: str) -> pl.DataFrame:
    """Return smallest and largest brMAE and brMSE over all ways to break ties, for microaggregated files."""
    plan = {STUDY_METHODS["mdav"].method: STUDY_METHODS["mdav"].grid}
    data = Microdata(original, name=name)
    table = data.sweep(plan, metrics=BOUNDED, detail=True, workers=1).table
    return table.select("dataset", "setting", "metric", "value", "tie_low", "tie_high").with_columns(
        pl.col("tie_low", "tie_high").fill_null(pl.col("value"))  # without ties the range is one value
    )
