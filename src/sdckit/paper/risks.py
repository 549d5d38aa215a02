"""Risks in the study."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from sdckit.metrics import METRICS as METRIC_RECORDS
from sdckit.paper.correlations import BOUNDED
from sdckit.paper.design import KEYS, SEED, STUDY_METHODS, measure_files
from sdckit.progress import track
from sdckit.report.risk_map import nondominated_rows
from sdckit.risk import attacks as linkage_attacks
from sdckit.selection.plan import settings_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sdckit.metrics.original import Original


ATTACKS = tuple(name for name in linkage_attacks.ATTACKS if name in METRIC_RECORDS)
RISKS = ("linkage", "linkage_outliers")  # by the attacks of the literature, as the study has always measured
NEAREST = {risk: f"{risk}:attacks=nearest" for risk in RISKS}
METRICS = (*BOUNDED, *RISKS, *ATTACKS)
ONE_FOR = 10  # one replication is attacked for each ten of the study
MOST = 3  # largest number of replications that are attacked
FEW = 3  # every third setting is attacked if the study has fewer than ten replications


@dataclass(frozen=True)
class Risks:
    """Risk of each masked file under each linkage attack, and the tables computed from it.

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
        """Table of medians over replications by setting, with the strongest attack and the frontier."""
        medians = self.measured.group_by(KEYS, maintain_order=True).agg(pl.col(METRICS).median())
        found = []
        for part in medians.partition_by("dataset", maintain_order=True):
            frontier = nondominated_rows(part, ["brmae", "linkage"]).alias("frontier")
            found.append(part.with_columns(worst_attack(part).alias("worst"), frontier))
        return pl.concat(found)


def run_attacks(
    data: dict[str, Original],
    *,
    replications: int = 30,
    seed: int = SEED,
    folder: Path | None = None,
    **running: Any,
) -> Risks:
    """Mask the data sets and measure losses and risks; finished runs are stored in `folder`.

    `replications` are those of the study: a tenth of them, at most three, are attacked. With fewer than ten,
    one replication and every third setting are attacked. `running` are further options of a sweep.
    """
    parts = []
    plan = attack_plan(every=1 if replications >= ONE_FOR else FEW)
    running |= {"replications": min(max(replications // ONE_FOR, 1), MOST)}
    with track("the attacks", len(data)) as report:
        for position, (name, original) in enumerate(data.items()):
            report(position)
            own = folder and folder / f"{name.lower()}-risk"
            parts.append(measure_risks(original, plan, name=name, seed=seed, folder=own, **running))
    return Risks(pl.concat(parts))


def attack_plan(
    labels: Sequence[str] = tuple(STUDY_METHODS), *, every: int = 1
) -> dict[str, list[dict[str, Any]]]:
    """Return the plan of a sweep with every n-th setting of each method, the strongest always included."""
    plan: dict[str, list[dict[str, Any]]] = {}
    for label in labels:
        study_method = STUDY_METHODS[label]
        thinned = settings_of({study_method.method: {study_method.varied: study_method.attack_grid}})
        settings = [setting.options[study_method.varied] for setting in thinned]
        plan.setdefault(study_method.method, []).append(
            study_method.grid | {study_method.varied: settings[::-every][::-1]}
        )
    return plan


def measure_risks(
    original: Original, plan: dict[str, list[dict[str, Any]]], *, name: str, seed: int = SEED, **running: Any
) -> pl.DataFrame:
    """Run a sweep on one data set; return one row per masked file with its losses and risks.

    `running` are further options of a sweep: `replications`, `workers`, `folder`, `overwrite`.
    """
    metrics = [NEAREST.get(metric, metric) for metric in METRICS]
    table = measure_files(original, plan, name=name, metrics=metrics, draws="common", rng=seed, **running)
    swapped = pl.col("method").str.starts_with("rank_swap")
    table = table.rename({name: risk for risk, name in NEAREST.items()})
    return table.with_columns(window=pl.when(swapped).then("window")).select(  # others publish none
        *KEYS, "replication", *METRICS
    )


def worst_attack(points: pl.DataFrame) -> pl.Series:
    """Return, for each row, the name of the attack that links most records; the first of equals."""
    values = points.select(pl.col(ATTACKS).fill_null(-1.0))
    positions = values.select(pl.concat_list(ATTACKS).list.arg_max()).to_series()
    return pl.Series([ATTACKS[position] for position in positions])
