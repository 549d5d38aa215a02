"""The paper's experiment: its methods, grids and metrics on its data sets, measured as tables.

The masking methods and their conventions are in `paper.design`; each grid point has its own random draws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sdckit.io import datasets
from sdckit.masking import apply
from sdckit.metrics import METRICS as METRIC_RECORDS
from sdckit.metrics.original import Original, prepare
from sdckit.metrics.pair import Pair
from sdckit.paper.correlations import BOUNDED, TIES, UNBOUNDED
from sdckit.paper.design import STUDY_METHODS
from sdckit.paper.results import Study
from sdckit.paper.sweeps import SEED, measure_files
from sdckit.progress import track
from sdckit.selection.microdata import Microdata
from sdckit.selection.plan import settings_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sdckit.kernels.jit import Floats

METRICS = {f"{metric}_{rule}": f"{metric}:ties={rule}" for rule in TIES for metric in BOUNDED}
METRICS |= {metric: metric for metric in UNBOUNDED} | {"il1": "il1:zeros=drop"}
SHUFFLES = 100  # number of random orders that estimate a level without a formula


def load_data_sets(names: Sequence[str]) -> dict[str, Original]:
    """Load data sets and return them prepared, by their names in tables."""
    found = {}
    for name in names:
        if name == "sample":
            sample = datasets.load_sample().drop("firm", "sector", "weight")
            found[name] = prepare(sample.select(column for column in sample if not column.null_count()))
        else:
            found[name.capitalize()] = prepare(datasets.load_dataset(name))
    return found


def run_study(
    data: dict[str, Original],
    *,
    replications: int = 30,
    seed: int = SEED,
    workers: int | None = None,
    folder: Path | None = None,
    overwrite: bool = False,
) -> Study:
    """Mask the data sets with all methods and measure all losses; finished runs are stored in `folder`."""
    parts, levels, ranges = [], [], []
    with track("the study", len(data)) as report:
        for place, (name, original) in enumerate(data.items()):
            report(place)
            parts.append(
                measure_losses(
                    original,
                    list(STUDY_METHODS),
                    name=name,
                    replications=replications,
                    seed=seed,
                    workers=workers,
                    folder=folder and folder / name.lower(),
                    overwrite=overwrite,
                )
            )
            levels += [_unrelated_levels(original, label, seed, name) for label in STUDY_METHODS]
            ranges.append(_tie_range(original, name))
    return Study(pl.concat(parts), pl.concat(levels), pl.concat(ranges))


def measure_losses(
    original: Original,
    labels: Sequence[str],
    *,
    name: str,
    replications: int,
    seed: int = SEED,
    workers: int | None = None,
    folder: Path | None = None,
    overwrite: bool = False,
    metrics: Sequence[str] = tuple(METRICS),
) -> pl.DataFrame:
    """Mask one data set with the named methods; return one row per masked file with its losses."""
    plan: dict[str, list[Any]] = {}
    for label in labels:
        plan.setdefault(STUDY_METHODS[label].method, []).append(STUDY_METHODS[label].grid)
    table = measure_files(
        original,
        plan,
        metrics=[METRICS[metric] for metric in metrics],
        replications=replications,
        draws="fresh",
        rng=seed,
        workers=workers,
        folder=folder,
        overwrite=overwrite,
        name=name,
    )
    return table.drop("parameters").rename({METRICS[metric]: metric for metric in metrics})


def _unrelated_levels(original: Original, label: str, seed: int, name: str) -> pl.DataFrame:
    """Return brMAE and brMSE of a masked file in random order, under each rule for ties."""
    strongest = settings_of({STUDY_METHODS[label].method: STUDY_METHODS[label].grid})[-1]
    rng = np.random.default_rng(seed)
    masked = apply(strongest.method, original.values, strongest.options, rng, names=original.columns)
    levels = {rule: _levels_by_formula(original, masked, rule) for rule in ("average", "expected")}
    levels["first"] = _levels_by_shuffling(original, masked, levels["average"], rng)
    rows = [
        {"dataset": name, "method": label, "ties": rule} | dict(zip(BOUNDED, levels[rule], strict=True))
        for rule in TIES
    ]
    return pl.DataFrame(rows)


def _levels_by_formula(original: Original, masked: Floats, rule: str) -> list[float]:
    """Return brMAE and brMSE expected of a random order under one rule for ties, by formula."""
    pair = Pair(original, masked)
    scores = [METRIC_RECORDS[metric].score(pair, ties=rule, detail=True) for metric in BOUNDED]
    return [np.nan if score.random is None else score.random.overall for score in scores]


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
