"""Measurements of the study, and queries for its tables and figures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from sdckit.paper.correlations import BOUNDED, UNBOUNDED, correlations
from sdckit.paper.design import NOTE_METHODS

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        chosen = self.levels.filter(dataset=dataset, method=method, ties="first")
        found = chosen[metric].drop_nulls().drop_nans().to_list() if metric in BOUNDED else []
        return float(found[0]) if found else None
