"""The result of an evaluation, its table, and what it assumes that an intruder knows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sdckit.core import checks, notebook, registry
from sdckit.core.table import USUAL_KIND
from sdckit.core.text import plural
from sdckit.estimation.compare import Estimates  # noqa: TC001 - typing.get_type_hints looks for it
from sdckit.metrics.publishable import WHOLE, public_evaluation
from sdckit.report import build
from sdckit.report.result import ReportedResult

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from sdckit.arrays import Floats
    from sdckit.core.registry import Metric
    from sdckit.core.roles import Roles
    from sdckit.metrics.original import Original
    from sdckit.metrics.pair import Comparison, Pair
    from sdckit.metrics.score import Score


@dataclass(frozen=True)
class Knowledge:
    """Columns of a published file that the intruder knows and does not know, and those not masked.

    Lists of columns are never shortened. `unmasked` says in parentheses what else is known of a column: that
    it was recoded, that it numbers units, or that it is a key, which no release has.
    """

    known: tuple[str, ...]
    unknown: tuple[str, ...] = ()
    unmasked: tuple[str, ...] = ()
    named: bool = False  # the user named the known columns

    @property
    def sentence(self) -> str:
        """What the risks assume, such as "assumes that the intruder knows: all 12 published columns"."""
        rest = f"; not: {', '.join(self.unknown)}" if self.unknown else ""
        if self.named or not self.known:
            return f"assumes that the intruder knows: {', '.join(self.known) or 'no column'}{rest}"
        count = len(self.known)
        every = "" if self.unknown else "all " if count > 1 else "the "
        return f"assumes that the intruder knows: {every}{count} published {plural(count, 'column')}{rest}"

    @property
    def unmasked_sentence(self) -> str:
        """Names of the columns published without masking, as a sentence."""
        if not self.unmasked:
            return "published unmasked: no column"
        return f"published unmasked: {', '.join(self.unmasked)}"

    def to_dict(self) -> dict[str, list[str]]:
        """Return the lists of columns, JSON-ready."""
        return {"known": list(self.known), "unknown": list(self.unknown), "unmasked": list(self.unmasked)}


def knowledge_of_pair(pair: Pair) -> Knowledge:
    """Return what the intruder knows of the people in a published file, by the roles of its columns."""
    names = dict.fromkeys([*pair.published, *pair.columns])
    return knowledge_of_columns(pair.original.roles, names, pair.disclosure.columns or pair.columns)


def knowledge_of_releases(original: Original) -> Knowledge:
    """Return what the intruder will know of the people in a release of prepared data."""
    names = original.roles.published(dict.fromkeys([*original.table_names, *original.columns]))
    return knowledge_of_columns(original.roles, names, original.columns)


def knowledge_of_columns(roles: Roles, published: Iterable[str], masked: Collection[str]) -> Knowledge:
    """Return the knowledge of the intruder from the roles and names of the published columns."""
    names = list(published)
    known = roles.known_columns(names)
    others = {*known, *roles.key, *roles.columns_with("unit")}
    remarks = dict.fromkeys(roles.columns_with("recode"), "recoded")
    remarks |= dict.fromkeys(roles.columns_with("unit"), "unit") | dict.fromkeys(roles.key, "key")
    return Knowledge(
        known=tuple(known),
        unknown=tuple(name for name in names if name not in others),
        unmasked=tuple(
            f"{name} ({remarks[name]})" if name in remarks else name for name in names if name not in masked
        ),
        named=roles.known is not None,
    )


SCHEMA: dict[Any, Any] = {  # typed for polars, which takes more kinds of keys than text
    "metric": pl.String,
    "family": pl.String,
    "variable": pl.String,
    "stratum": pl.String,
    "value": pl.Float64,
    "random": pl.Float64,
    "tie_low": pl.Float64,
    "tie_high": pl.Float64,
    "ci_low": pl.Float64,
    "ci_high": pl.Float64,
    "n_used": pl.Int64,
    "n_left_out": pl.Int64,
    "n_suppressed": pl.Int64,
    "n_imputed": pl.Int64,
    "n_both_missing": pl.Int64,
}
FIGURES = [name for name, kind in SCHEMA.items() if kind != pl.String]


def tidy_table(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Return rows of the evaluation as a polars table with the columns and types of `SCHEMA`."""
    floats = {name: pl.Float64 if name in FIGURES else kind for name, kind in SCHEMA.items()}
    return pl.DataFrame(rows, schema=floats).with_columns(pl.col(pl.Float64).fill_nan(None)).cast(SCHEMA)


def table_figures(comparison: Comparison, score: Score) -> Floats:
    """Return the numbers of a score as a matrix: a row for the whole file, then one per variable."""
    levels = (score.value, score.random, score.tie_low, score.tie_high)
    counts = comparison.counts
    numbers = (score.used, score.left_out, counts.suppressed, counts.imputed, counts.neither)
    none = np.full(comparison.p, np.nan)
    columns = [*(none if level is None else level.variables for level in levels), none, none, *numbers]
    return np.vstack([whole_file_figures(comparison, score), np.array(columns, np.float64).T])


def whole_file_figures(comparison: Comparison, score: Score) -> list[float]:
    """Return the numbers of a score for the whole file, in the order of `FIGURES`."""
    levels = (score.value, score.random, score.tie_low, score.tie_high)
    found = [math.nan if level is None else level.overall for level in levels]
    found += [math.nan, math.nan] if score.estimate is None else score.estimate[:2]
    found += [sum(score.used.tolist()), sum(score.left_out.tolist())]  # faster than numpy for a few columns
    if comparison.complete:
        return [*found, 0.0, 0.0, 0.0]
    counts = comparison.counts
    return [*found, *(float(cells.sum()) for cells in (counts.suppressed, counts.imputed, counts.neither))]


def table_rows(metric: Metric, stratum: str, comparison: Comparison, score: Score) -> list[dict[str, Any]]:
    """Return the rows of the evaluation's table for one metric in one stratum."""
    label = {"metric": metric.name, "family": metric.family, "stratum": stratum}
    return [
        {**label, "variable": variable, **dict(zip(FIGURES, line, strict=True))}
        for variable, line in zip(
            ["all", *comparison.columns], table_figures(comparison, score).tolist(), strict=True
        )
        if variable == "all" or metric.by_variable
    ]


@dataclass(frozen=True)
class Evaluation(ReportedResult):
    """Measured loss and risk of a masked file, or of several: table, explanations and notes.

    `result["brmae"]` is the value for the whole file; `"brmae" in result`, `result.keys()` and `dict(result)`
    work as for a dictionary. With several files, `table` has a column `file`, values are named as
    in `result["brmae (mine)"]`, and `files` has the evaluation of each file by its name.

    `table` has one row per metric, variable ("all" for the whole file) and stratum ("all" for all
    records). `meaning` has a sentence for each metric that explains its value. `notes` are warnings and
    remarks on the numbers. `parts` has, for some metrics, the components of their value by name. `records`
    has one row per record and a column per metric, None unless `per_record` was set. `dominated` has metric,
    stratum and variable of the figures that one record dominates: do not publish them; see `public`.
    `knowledge` has the columns that the intruder is assumed to know; None where no risk was measured.
    `scenarios` has a row per scenario and risk: what its intruder knows, value, limit, and whether it is met.
    `estimates` has the declared estimates of both files, None without any: these figures are exact, so that
    values of the original follow from them, and are for the owner alone. `kind` is the type of the original's
    dataframe, which `to_frame` returns; `size` is the number of its records.
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
    kind: str = field(default=USUAL_KIND, repr=False, compare=False)
    size: int = field(default=0, repr=False, compare=False)
    files: Mapping[str, Evaluation] = field(default_factory=dict, repr=False)

    @classmethod
    def of_files(cls, files: Mapping[str, Evaluation]) -> Evaluation:
        """Return the evaluations of several masked files of one original, by name, as one."""
        first = next(iter(files.values()))
        named = [(name, one) for name, one in files.items()]
        return cls(
            pl.concat([one.table.select(pl.lit(name).alias("file"), pl.all()) for name, one in named]),
            {f"{metric} ({name})": text for name, one in named for metric, text in one.meaning.items()},
            tuple(f"{name}: {note}" for name, one in named for note in one.notes),
            {f"{metric} ({name})": part for name, one in named for metric, part in one.parts.items()},
            kind=first.kind,
            size=first.size,
            files=dict(files),
        )

    def keys(self) -> list[str]:
        """Return the names of what was measured, in the order of the table."""
        if self.files:
            return [f"{metric} ({name})" for name, one in self.files.items() for metric in one]
        return [*self.summary["metric"].to_list(), *self._scenario_values()]

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __contains__(self, metric: object) -> bool:
        return registry.current_name(metric) in self.keys()

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

        "linkage (press)" is that of the intruder, or of the file, named press.
        """
        for name, one in self.files.items():
            if metric.endswith(f" ({name})") and (own := metric.removesuffix(f" ({name})")) in one:
                return one[own]
        if self.files:
            raise ValueError(f"{metric} was not measured; measured: {', '.join(self.keys())}")
        if self.scenarios is not None and metric in (labels := self._scenario_values()):
            return labels[metric]
        name = registry.current_name(metric)
        found = self.summary.filter(pl.col("metric") == name)["value"]
        if not len(found):
            measured = self.summary["metric"].to_list()
            checks.one_of("metric", str(metric).partition(":")[0], [*measured, *registry.METRICS])
            raise ValueError(f"{metric} was not measured; measured: {', '.join(measured)}; add it to metrics")
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

    def __repr__(self) -> str:
        """Return one line of text per metric, what the intruder is assumed to know, and the notes."""
        width = max(map(len, self.meaning), default=0) + 3
        lines = [f"{metric:<{width}}{value:>9}  {meaning}" for metric, value, meaning in self._rows()]
        return "\n".join([*lines, *self._sentences()])

    def _rows(self) -> list[tuple[str, str, str]]:
        """Return name, value and meaning of each metric as texts."""
        rows = [
            (f"{row['metric']} ({row['file']})" if self.files else row["metric"], row["value"])
            for row in self.summary.iter_rows(named=True)
        ]
        return [
            (name, "no value" if value is None else f"{value:.6g}", self.meaning[name])
            for name, value in rows
        ]

    def _sentences(self) -> list[str]:
        """Return what the intruder is assumed to know, the risk in each scenario, and the notes."""
        known = [] if self.knowledge is None else [self.knowledge.sentence]
        known += [
            f"{name}: {line}"
            for name, one in self.files.items()
            for line in (
                *([one.knowledge.sentence] if one.knowledge else ()),
                *_scenario_lines(one.scenarios),
            )
        ]
        return [*known, *_scenario_lines(self.scenarios), *(f"note: {note}" for note in self.notes)]

    def public(self) -> Evaluation:
        """Return a copy to publish: figures that one record dominates are None, and records are left out.

        So are the declared estimates, whose figures are exact.
        """
        if self.files:
            return self.of_files({name: one.public() for name, one in self.files.items()})
        return replace(public_evaluation(self), records=None, estimates=None)

    def _repr_html_(self) -> str:
        """Return what `print` shows, for notebooks."""
        rows = notebook.table(["metric", "value", "meaning"], self._rows(), right=["value"])
        return notebook.block(rows, notebook.paragraphs(self._sentences()))

    def to_html(self, name: str | None = None) -> str:
        """Return a self-contained HTML report on these measures, without original records."""
        if self.files:
            page: str = build.report_on_files(self.files, records=self.size)
        else:
            page = build.report_on_evaluation(self, name=name or "the masked file")
        return page

    def map(self) -> Any:
        """Return the map of loss and risk as an altair chart, with a mark for each masked file.

        Notebooks show it without a network, as a picture; `save` writes it to a file.

        Raises
        ------
        ValueError
            No bounded loss, or no risk, was measured.
        """
        return build.map_of_files(self.files or {"the masked file": self}, self.size)


def _scenario_lines(table: pl.DataFrame | None) -> list[str]:
    """Return a line of text for each risk in each scenario."""
    lines = []
    for row in () if table is None else table.iter_rows(named=True):
        value = "no value" if row["value"] is None else f"{row['value']:.4g}"
        met = "" if row["limit"] is None else f", limit {row['limit']:g} {'met' if row['met'] else 'not met'}"
        lines.append(f"scenario {row['scenario']} (knows {row['known']}): {row['metric']} {value}{met}")
    return lines
