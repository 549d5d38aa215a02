"""Loss against risk: the methods of the study under every attack, as tables.

An attack that links all records at once takes a hundred times as long as the losses, so the grids are
thinner. The settings of a method share their random numbers: only then does a curve show the parameter's
effect, which the rule for safe settings rests on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit.core.registry import shown_metrics
from sdckit.metrics import METRICS as RECORDS
from sdckit.metrics.risk import linkage_scores
from sdckit.paper.correlations import BOUNDED
from sdckit.paper.design import WAYS
from sdckit.paper.sweeps import KEYS, SEED, swept
from sdckit.progress import track
from sdckit.selection.plan import settings_of
from sdckit.selection.points import Point, curves_of, nondominated_rows, weakest_safe_position

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sdckit.metrics.original import Original
    from sdckit.selection.points import Curve

ATTACKS = tuple(name for name in linkage_scores.ATTACKS if name in RECORDS)
RISKS = tuple(metric.name for metric in shown_metrics("headline", family="risk"))
METRICS = (*BOUNDED, *RISKS, *ATTACKS)
LIMITS = (0.3, 0.1, 0.05, 0.02)
ONE_FOR = 10  # replications of the study that stand for one here
MOST = 3  # replications
FEW = 3  # one of so many settings is tried where the study has fewer than ten replications


@dataclass(frozen=True)
class Risks:
    """Risk of each masked file under each attack, and the tables computed from it.

    `measured` has one row per masked file: `dataset`, `method`, `parameters`, `setting`, `replication`,
    losses, risks and attacks; `window` only where a method publishes one.
    """

    measured: pl.DataFrame

    @property
    def replications(self) -> int:
        """Number of replications of the random methods."""
        return int(self.measured["replication"].n_unique())

    @cached_property
    def points(self) -> pl.DataFrame:
        """Medians over the replications of each setting, the strongest attack, and frontier membership."""
        medians = self.measured.group_by(KEYS, maintain_order=True).agg(pl.col(METRICS).median())
        found = []
        for part in medians.partition_by("dataset", maintain_order=True):
            frontiers = [
                nondominated_rows(part, ["brmae", risk]).alias(name)
                for risk, name in zip(RISKS, FRONTIERS, strict=True)
            ]
            found.append(part.with_columns(worst_attack(part).alias("worst"), *frontiers))
        return pl.concat(found)

    @cached_property
    def safe(self) -> pl.DataFrame:
        """The weakest safe setting of each method under each limit of linkage; null where there is none."""
        found = []
        for (dataset, method), part in self.points.group_by(["dataset", "method"], maintain_order=True):
            line = line_of(part)
            for limit in LIMITS:
                place = weakest_safe_position(line, {"linkage": limit})
                row: dict[str, Any] = {"dataset": dataset, "limit": limit, "method": method}
                if place is None:
                    found.append(row | {"safe": "none"})
                else:
                    point = line[place]
                    setting = float(point.setting.options[WAYS[str(method)].varied])
                    values = {name: point.values[name] for name in (*BOUNDED, *RISKS)}
                    found.append(row | {"safe": spelled(str(method), setting), "setting": setting} | values)
        return pl.DataFrame(found, schema=SAFE)

    def least(self, dataset: str, limit: float) -> list[dict[str, Any]]:
        """Return the safe settings under a limit, those with the least brMAE first."""
        rows = self.safe.filter(pl.col("setting").is_not_null(), dataset=dataset, limit=limit)
        return rows.sort("brmae", maintain_order=True).to_dicts()


FRONTIERS = ("frontier", "frontier_outliers")
SAFE = {
    "dataset": pl.String,
    "limit": pl.Float64,
    "method": pl.String,
    "safe": pl.String,
    **dict.fromkeys(["setting", *BOUNDED, *RISKS], pl.Float64),
}


def run(
    data: dict[str, Original],
    *,
    replications: int = 30,
    seed: int = SEED,
    workers: int | None = None,
    folder: Path | None = None,
    overwrite: bool = False,
) -> Risks:
    """Mask and attack; with a folder, finished work is kept there.

    `replications` are those of the study: a tenth of them, at most three, are attacked. Fewer than ten ask
    for a quick look: one replication and every third setting.
    """
    parts = []
    with track("the attacks", len(data)) as report:
        for place, (name, original) in enumerate(data.items()):
            report(place)
            parts.append(
                measure(
                    original,
                    plan_of(every=1 if replications >= ONE_FOR else FEW),
                    name=name,
                    replications=min(max(replications // ONE_FOR, 1), MOST),
                    seed=seed,
                    workers=workers,
                    folder=folder and folder / f"{name.lower()}-risk",
                    overwrite=overwrite,
                )
            )
    return Risks(pl.concat(parts))


def plan_of(labels: Sequence[str] = tuple(WAYS), *, every: int = 1) -> dict[str, list[dict[str, Any]]]:
    """Return the plan of a sweep with every n-th setting, the strongest always included."""
    plan: dict[str, list[dict[str, Any]]] = {}
    for label in labels:
        way = WAYS[label]
        thinned = settings_of({way.method: {way.varied: way.thinned}})
        settings = [setting.options[way.varied] for setting in thinned]
        plan.setdefault(way.method, []).append(way.grid | {way.varied: settings[::-every][::-1]})
    return plan


def measure(
    original: Original,
    plan: dict[str, list[dict[str, Any]]],
    *,
    name: str,
    replications: int,
    seed: int = SEED,
    workers: int | None = None,
    folder: Path | None = None,
    overwrite: bool = False,
) -> pl.DataFrame:
    """Return one row per masked file."""
    table = swept(
        original,
        plan,
        metrics=METRICS,
        replications=replications,
        draws="common",
        rng=seed,
        workers=workers,
        folder=folder,
        overwrite=overwrite,
        name=name,
    )
    swapped = pl.col("method").str.starts_with("rank_swap")
    return table.with_columns(window=pl.when(swapped).then("window")).select(  # others publish none
        *KEYS, "replication", *METRICS
    )


def worst_attack(points: pl.DataFrame) -> pl.Series:
    """Return the name of the attack that links most records, the first of equals."""
    values = points.select(pl.col(ATTACKS).fill_null(-1.0))
    places = values.select(pl.concat_list(ATTACKS).list.arg_max()).to_series()
    return pl.Series([ATTACKS[place] for place in places])


def line_of(points: pl.DataFrame) -> Curve:
    """Return the settings of one method on one data set, from the weakest to the strongest."""
    way = WAYS[points["method"][0]]
    settings = settings_of({way.method: {way.varied: points["setting"].to_list()}})
    values = points.select(*BOUNDED, *RISKS).rows(named=True)
    (line,) = curves_of([Point(*measured) for measured in zip(settings, values, strict=True)])
    return line


def spelled(method: str, setting: float) -> str:
    """Return the text of a setting."""
    return WAYS[method].setting.format(setting)
