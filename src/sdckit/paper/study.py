"""The note's experiment: its methods, grids and metrics on its data sets, as tables.

The ways of masking and their conventions are in `paper.design`; each grid point has fresh draws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sdckit.io import datasets
from sdckit.masking import apply
from sdckit.metrics import METRICS as RECORDS
from sdckit.metrics.original import Original, prepare
from sdckit.metrics.pair import Pair
from sdckit.paper.correlations import BOUNDED, TIES, UNBOUNDED
from sdckit.paper.design import WAYS
from sdckit.paper.results import Study
from sdckit.paper.sweeps import SEED, swept
from sdckit.progress import track
from sdckit.selection.plan import settings_of
from sdckit.selection.sweeping import sweep

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sdckit.kernels.jit import Floats

METRICS = {f"{metric}_{rule}": f"{metric}:ties={rule}" for rule in TIES for metric in BOUNDED}
METRICS |= {metric: metric for metric in UNBOUNDED} | {"il1": "il1:zeros=drop"}
SHUFFLES = 100  # random orders behind a level that has no formula


def load(names: Sequence[str]) -> dict[str, Original]:
    """Return the data sets by their names in tables; of the sample, only variables without missing cells."""
    found = {}
    for name in names:
        if name == "sample":
            sample = datasets.load_sample().drop("firm", "sector", "weight")
            found[name] = prepare(sample.select(column for column in sample if not column.null_count()))
        else:
            found[name.capitalize()] = prepare(datasets.load_dataset(name))
    return found


def run(
    data: dict[str, Original],
    *,
    replications: int = 30,
    seed: int = SEED,
    workers: int | None = None,
    folder: Path | None = None,
    overwrite: bool = False,
) -> Study:
    """Mask and measure; with a folder, finished work is kept there."""
    parts, levels, ranges = [], [], []
    with track("the study", len(data)) as report:
        for place, (name, original) in enumerate(data.items()):
            report(place)
            parts.append(
                measure(
                    original,
                    list(WAYS),
                    name=name,
                    replications=replications,
                    seed=seed,
                    workers=workers,
                    folder=folder and folder / name.lower(),
                    overwrite=overwrite,
                )
            )
            levels += [_levels(original, label, seed, name) for label in WAYS]
            ranges.append(_tie_range(original, name))
    return Study(pl.concat(parts), pl.concat(levels), pl.concat(ranges))


def measure(
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
    """Return one row per masked file: `dataset`, `method`, `setting`, `replication` and the metrics."""
    plan: dict[str, list[Any]] = {}
    for label in labels:
        plan.setdefault(WAYS[label].method, []).append(WAYS[label].grid)
    table = swept(
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


def _levels(original: Original, label: str, seed: int, name: str) -> pl.DataFrame:
    """Return brMAE and brMSE of masked records in random order, under each tie rule."""
    strongest = settings_of({WAYS[label].method: WAYS[label].grid})[-1]
    rng = np.random.default_rng(seed)
    masked = apply(strongest.method, original.values, strongest.options, rng, names=original.columns)
    levels = {rule: _by_formula(original, masked, rule) for rule in ("average", "expected")}
    levels["first"] = _by_shuffling(original, masked, levels["average"], rng)
    rows = [
        {"dataset": name, "method": label, "ties": rule} | dict(zip(BOUNDED, levels[rule], strict=True))
        for rule in TIES
    ]
    return pl.DataFrame(rows)


def _by_formula(original: Original, masked: Floats, rule: str) -> list[float]:
    pair = Pair(original, masked)
    scores = [RECORDS[metric].score(pair, ties=rule, detail=True) for metric in BOUNDED]
    return [np.nan if score.random is None else score.random.overall for score in scores]


def _by_shuffling(
    original: Original, masked: Floats, average: list[float], rng: np.random.Generator
) -> list[float]:
    """Return the level of mid-ranks and the deviation of shuffles from it, for ties ranked by row."""
    gaps = []
    for _ in range(SHUFFLES):
        pair = Pair(original, rng.permuted(masked, axis=0))
        gaps.append(
            [
                metric.score(pair, ties="first").value.overall - metric.score(pair).value.overall
                for metric in (RECORDS[name] for name in BOUNDED)
            ]
        )
    return [level + float(gap) for level, gap in zip(average, np.mean(gaps, axis=0), strict=True)]


def _tie_range(original: Original, name: str) -> pl.DataFrame:
    plan = {WAYS["mdav"].method: WAYS["mdav"].grid}
    table = sweep(original, plan, metrics=BOUNDED, detail=True, workers=1, name=name).table
    return table.select("dataset", "setting", "metric", "value", "tie_low", "tie_high").with_columns(
        pl.col("tie_low", "tie_high").fill_null(pl.col("value"))  # without ties there is nothing open
    )
