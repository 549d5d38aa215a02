"""Results of the study, and queries by its tables and figures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from sdckit.paper.correlations import BOUNDED, UNBOUNDED, correlations
from sdckit.paper.design import NOTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdckit.paper.risks import Risks


@dataclass(frozen=True)
class Study:
    """All measurements that the tables and figures show.

    `measured` has one row per masked file: `dataset`, `method`, `setting`, `replication` and the losses;
    `levels` what an unrelated order scores, for the strongest masking of each method: `dataset`,
    `method`, `ties`, `brmae`, `brmse`; `tie_range` what ties leave open under microaggregation:
    `dataset`, `setting`, `metric`, `value`, `tie_low`, `tie_high`; `risks` what attacks find, where the
    files were attacked.
    """

    measured: pl.DataFrame
    levels: pl.DataFrame
    tie_range: pl.DataFrame
    risks: Risks | None = None

    @property
    def attacked(self) -> Risks:
        """The risks of the study; an error where it has none."""
        if self.risks is None:
            raise ValueError("the files of this study were not attacked; measure their risks first")
        return self.risks

    @cached_property
    def correlations(self) -> pl.DataFrame:
        """Spearman's correlation of every series."""
        return correlations(self.measured)

    @property
    def datasets(self) -> list[str]:
        """The data sets that were masked, in the note's order."""
        present = self.measured["dataset"].unique(maintain_order=True).to_list()
        return sorted(present, key=lambda name: (name == "Census", name != "Tarragona"))

    def methods(self, dataset: str, wanted: Sequence[str] = NOTED) -> list[str]:
        """Return those of the wanted methods that masked a data set."""
        present = set(self.measured.filter(dataset=dataset)["method"])
        return [method for method in wanted if method in present]

    def replications(self, dataset: str) -> int:
        """Number of replications of the random methods."""
        return int(self.measured.filter(dataset=dataset)["replication"].n_unique())

    def one_run(self, dataset: str, method: str, *, ties: str = "first") -> pl.DataFrame:
        """Return the first replication of a method: `setting` and one column per metric."""
        rows = self.measured.filter(dataset=dataset, method=method, replication=1).sort("setting")
        bounded = [pl.col(f"{metric}_{ties}").alias(metric) for metric in BOUNDED]
        return rows.select("setting", *bounded, *UNBOUNDED)

    def spearman(self, dataset: str, method: str, metric: str, reference: str = "parameter") -> float | None:
        """Return the correlation in the first replication, ties by row order."""
        found = self.correlations.filter(
            pl.col("ties").is_in(["first", "-"]),
            dataset=dataset,
            method=method,
            metric=metric,
            reference=reference,
            replication=1,
        )["spearman"]
        return found[0] if len(found) else None

    def level(self, dataset: str, method: str, metric: str) -> float | None:
        """Return the value of an unrelated order with ties ranked by row; None for unbounded metrics."""
        chosen = self.levels.filter(dataset=dataset, method=method, ties="first")
        found = chosen[metric].drop_nulls().drop_nans().to_list() if metric in BOUNDED else []
        return float(found[0]) if found else None
