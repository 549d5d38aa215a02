"""The result of an evaluation: a table of measures, a sentence that explains each, and notes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from sdckit.core import checks, frame_kinds, notebook, registry
from sdckit.core.notebook import WrittenReport  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.estimation.compare import Estimates  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.io.atomic import AnyPath  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.metrics.evaluation_table import WHOLE
from sdckit.metrics.knowledge import Knowledge  # noqa: TC001 - typing.get_type_hints looks for it

WITHHELD = "withheld: one record dominates this figure, or values of the original could be computed from it"
FIGURES = ["value", "random", "tie_low", "tie_high", "ci_low", "ci_high"]


@dataclass(frozen=True)
class Evaluation:
    """Measured loss and risk of one masked file: table, explanations and notes.

    `table` has one row per metric, variable ("all" for the whole file) and stratum ("all" for all
    records). `meaning` has a sentence for each metric that explains its value. `notes` are warnings and
    remarks on the numbers. `parts` has, for some metrics, the components of their value by name. `records`
    has one row per record and a column per metric, None unless `per_record` was set. `dominated` has metric,
    stratum and variable of the figures that one record dominates: do not publish them; see `public`.
    `knowledge` has the columns that the intruder is assumed to know; None where no risk was measured.
    `scenarios` has a row per scenario and risk: what its intruder knows, value, limit, and whether it is met.
    `estimates` has the declared estimates of both files, None without any: these figures are exact, so that
    values of the original follow from them, and are for the owner alone. `kind` is the type of the original's
    dataframe, which `to_frame` returns.
    """

    table: pl.DataFrame
    meaning: dict[str, str]
    notes: tuple[str, ...] = ()
    parts: dict[str, dict[str, float]] = field(default_factory=dict, repr=False)
    records: pl.DataFrame | None = field(default=None, repr=False)
    dominated: frozenset[tuple[str, str, str]] = field(default=frozenset(), repr=False)
    knowledge: Knowledge | None = field(default=None, repr=False)
    scenarios: pl.DataFrame | None = field(default=None, repr=False)
    estimates: Estimates | None = field(default=None, repr=False)
    kind: str = field(default=frame_kinds.USUAL, repr=False, compare=False)

    @property
    def summary(self) -> pl.DataFrame:
        """Rows of the table for the whole file, without those of single variables and strata."""
        return self.table.filter(WHOLE)

    @property
    def withheld(self) -> frozenset[str]:
        """Names of the metrics whose value for the whole file is not to be published."""
        return frozenset(name for name, *place in self.dominated if place == ["all", "all"])

    def __getitem__(self, metric: str) -> float:
        """Return the whole-file value of a metric; NaN where it has none.

        "linkage (press)" is that of the scenario named press.
        """
        if self.scenarios is not None and metric in (labels := self._scenario_values()):
            return labels[metric]
        name = registry.current_name(metric)
        found = self.summary.filter(pl.col("metric") == name)["value"]
        if not len(found):
            raise self._not_measured(metric)
        return math.nan if found[0] is None else float(found[0])

    def upper_end(self, metric: str) -> float:
        """Return the upper end of a metric's interval, or its value where this is no estimate; else NaN.

        A limit is met only if it meets it.
        """
        if metric in (labels := self._scenario_values("ci_high")):
            return self[metric] if math.isnan(labels[metric]) else labels[metric]
        name = registry.current_name(metric)
        found = self.summary.filter(pl.col("metric") == name)["ci_high"].drop_nulls()
        return float(found[0]) if len(found) else self[metric]

    def _scenario_values(self, column: str = "value") -> dict[str, float]:
        """Return the values of all scenarios by a label such as "linkage (press)"; NaN without one."""
        rows = () if self.scenarios is None else self.scenarios.iter_rows(named=True)
        return {
            f"{row['metric']} ({row['scenario']})": math.nan if row[column] is None else row[column]
            for row in rows
        }

    def _not_measured(self, metric: str) -> ValueError:
        """Return the error for a metric that is unknown or was not computed."""
        measured = self.summary["metric"].to_list()
        checks.one_of("metric", str(metric).partition(":")[0], [*measured, *registry.METRICS])
        return ValueError(f"{metric} was not measured; measured: {', '.join(measured)}; add it to metrics")

    def __repr__(self) -> str:
        """Return one line of text per metric, what the intruder is assumed to know, and the notes."""
        width = max(map(len, self.meaning), default=0) + 3
        lines = [f"{metric:<{width}}{value:>9}  {meaning}" for metric, value, meaning in self._rows()]
        return "\n".join([*lines, *self._sentences()])

    def _rows(self) -> list[tuple[str, str, str]]:
        """Return name, value and meaning of each metric as texts."""
        return [
            (
                row["metric"],
                "no value" if row["value"] is None else f"{row['value']:.6g}",
                self.meaning[row["metric"]],
            )
            for row in self.summary.iter_rows(named=True)
        ]

    def _sentences(self) -> list[str]:
        """Return what the intruder is assumed to know, the risk in each scenario, and the notes."""
        known = [] if self.knowledge is None else [self.knowledge.sentence]
        return [*known, *_scenario_lines(self.scenarios), *(f"note: {note}" for note in self.notes)]

    def public(self) -> Evaluation:
        """Return a copy to publish: figures that one record dominates are None, and records are left out.

        So are the declared estimates, whose figures are exact.
        """
        return replace(public_evaluation(self), records=None, estimates=None)

    def _repr_html_(self) -> str:
        """Return what `print` shows, for notebooks."""
        rows = notebook.table(["metric", "value", "meaning"], self._rows(), right=["value"])
        return notebook.block(rows, notebook.paragraphs(self._sentences()))

    def to_frame(self, kind: str | None = None) -> Any:
        """Return the table as a dataframe.

        Parameters
        ----------
        kind : str, optional
            "polars", "pandas" or "pyarrow"; by default that of the original, and polars for arrays and files.

        Returns
        -------
        dataframe

        Examples
        --------
        >>> import sdckit as sdc
        >>> found = sdc.evaluate([1.0, 2.0, 3.0], [2.0, 1.0, 3.0], metrics="brmae")
        >>> found.to_frame("pandas")["variable"].tolist()
        ['all', 'x1']
        """
        return frame_kinds.converted(self.table, kind, self.kind)

    def to_html(self, name: str = "the masked file") -> str:
        """Return a self-contained HTML report on these measures, without original records."""
        from sdckit.report import build  # noqa: PLC0415 - slow to import, and only reports need it

        return build.report_on_evaluation(self, name=name)

    def report(
        self, path: AnyPath, *, name: str = "the masked file", overwrite: bool = False
    ) -> WrittenReport:
        """Write a self-contained HTML report on these measures, without original records.

        Parameters
        ----------
        path : str or Path
            A file ending in .html or .htm; on an error no file is left.
        name : str
            What the report calls the masked file.
        overwrite : bool
            Replace a file that exists.

        Returns
        -------
        WrittenReport
            The path, which a notebook shows as the report itself.

        Raises
        ------
        FileExistsError
            The file exists, and `overwrite` is not set.
        """
        from sdckit.report import build  # noqa: PLC0415 - slow to import, and only reports need it

        return build.write_report(path, lambda: self.to_html(name), overwrite=overwrite)

    def to_csv(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the table to a CSV file; raise FileExistsError unless `overwrite` where it exists."""
        from sdckit.io import files  # noqa: PLC0415 - only needed to write

        files.write(path, self.table, overwrite=overwrite)


def public_evaluation(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation with the figures that one record dominates replaced by None.

    Losses over declared estimates are rounded (see `registry.public_value`).
    """
    evaluation = replace(evaluation, table=rounded_losses(evaluation.table))
    if not evaluation.dominated:
        return evaluation
    rows = pl.DataFrame(
        sorted(evaluation.dominated), schema=["metric", "stratum", "variable"], orient="row"
    ).with_columns(withheld=True)
    marked = evaluation.table.join(
        rows, on=["metric", "stratum", "variable"], how="left", maintain_order="left"
    )
    hidden = pl.col("withheld").fill_null(value=False)
    figures: list[Any] = [pl.when(~hidden).then(pl.col(name)).alias(name) for name in FIGURES]
    names = marked.filter(hidden & WHOLE)["metric"].to_list()
    return replace(
        evaluation,
        table=marked.with_columns(figures).drop("withheld"),
        meaning=evaluation.meaning | dict.fromkeys(names, WITHHELD),
        parts={name: {} if name in names else parts for name, parts in evaluation.parts.items()},
    )


def rounded_losses(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table of measures with losses over declared estimates rounded as they may be published."""
    named = pl.col("metric").is_in(list(registry.estimate_losses()))
    figures = [name for name in FIGURES if name in table.columns]
    return table.with_columns(
        pl.when(named).then(pl.col(name).round(registry.PUBLIC_DECIMALS)).otherwise(name).alias(name)
        for name in figures
    )


def _scenario_lines(table: pl.DataFrame | None) -> list[str]:
    """Return a line of text for each risk in each scenario."""
    lines = []
    for row in () if table is None else table.iter_rows(named=True):
        value = "no value" if row["value"] is None else f"{row['value']:.4g}"
        met = "" if row["limit"] is None else f", limit {row['limit']:g} {'met' if row['met'] else 'not met'}"
        lines.append(f"scenario {row['scenario']} (knows {row['known']}): {row['metric']} {value}{met}")
    return lines
