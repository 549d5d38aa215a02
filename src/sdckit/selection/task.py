"""What is measured for one setting, and for all of a sweep."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sdckit import masking
from sdckit.core import checks, registry
from sdckit.core.checks import quoted
from sdckit.core.randomness import stream_generator
from sdckit.core.registry import function_options
from sdckit.core.table import decimals_of_steps
from sdckit.core.version import INTRUDER_VERSION, VERSION
from sdckit.estimation.compare import declared_of, withheld_losses
from sdckit.kernels.ranks import TIES
from sdckit.masking import column_steps
from sdckit.masking.mask_table import require_whole_units
from sdckit.metrics import METRICS
from sdckit.metrics.evaluation import original_in, score_within_strata
from sdckit.metrics.evaluation_result import FIGURES, SCHEMA, table_figures, whole_file_figures
from sdckit.metrics.pair import Pair
from sdckit.risk.attribute_disclosure import digest_of_columns, keep_columns
from sdckit.rules.rules import edits_of
from sdckit.selection.points import Point

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sdckit.arrays import Floats, Ints
    from sdckit.core.registry import Method, Metric
    from sdckit.core.scenarios import Scenario
    from sdckit.core.table import Step
    from sdckit.metrics.original import Original
    from sdckit.metrics.score import Sampling, Score
    from sdckit.rules.rules import Edits
    from sdckit.selection.checkpoint import Checkpoint
    from sdckit.selection.plan import Run, Setting
    from sdckit.selection.points import Conditions


SOFTWARE = f"sdckit {VERSION}, numpy {np.__version__}"  # other versions may measure other numbers


@dataclass(frozen=True)
class Stratum:
    """The whole file or one stratum of it: records that are measured together."""

    name: str
    original: Original
    rows: Ints | None = None  # None for the whole file
    units: Ints | None = None  # number of each record's unit
    bases: dict[str, Any] = field(default_factory=dict)

    def basis(self, method: Method) -> Any:
        """Return what a method precomputes from the original values of these records, computed once."""
        if method.name not in self.bases:
            self.bases[method.name] = method.basis(self.original.values) if method.basis else None
        return self.bases[method.name]

    def without_table(self) -> Stratum:
        """Return the same records with their numbers only, without the data frame they came from."""
        if self.rows is None:
            keep_columns(self.original)  # read from the table, and kept without it
        return Stratum(self.name, self.original.without_table(), self.rows, self.units)

    def require_records(self, setting: Setting, what: str) -> None:
        """Raise ValueError if there are fewer records or units than a setting needs."""
        masking.enough_records(setting.method, self.original.values, setting.options, what)
        if self.units is not None:
            masking.require_units(setting.method, self.original.values, setting.options, what, self.units)

    def width(self, setting: Setting) -> Any:
        """Return the largest move in ranks among these records that a setting discloses."""
        return setting.disclosure.width(self.name, self.original.values, self.original.columns)

    def mask(self, setting: Setting, rng: np.random.Generator) -> Floats:
        """Mask these records with a setting (method and parameters); return an array of records x columns."""
        method = setting.method
        return masking.mask_rows(
            method,
            self.original.values,
            setting.options,
            rng,
            names=self.original.columns,
            units=self.units,
            basis=self.basis(method) if self.units is None else None,
        )


@dataclass(frozen=True)
class ScenarioTask:
    """The whole file as the intruder of a scenario knows it, and the risks to measure for him."""

    scenario: Scenario
    whole: Stratum

    @property
    def labels(self) -> list[str]:
        """Names of the measured risks, such as "linkage (press)"."""
        return [self.scenario.label(metric.name) for metric in self.scenario.metrics]


@dataclass(frozen=True)
class Task:
    """Data, metrics and options that all runs of a sweep share."""

    whole: Stratum
    strata: Sequence[Stratum]
    metrics: Sequence[Metric]
    ties: str
    missing: str
    draws: str
    per_variable: bool
    detail: bool
    steps: tuple[Step, ...] | None = None  # between the masked values of each column; None does not round
    edits: Edits | None = None  # rules that masked records are made to obey
    scenarios: Sequence[ScenarioTask] = ()  # what other intruders know; not in sweeps
    sampling: Sampling | None = None  # of the records on which linkage is estimated; None: all

    @property
    def groups(self) -> list[Stratum]:
        """All groups of records that are measured: the whole file first, then each stratum."""
        return [self.whole, *self.strata]

    @property
    def variables(self) -> list[str]:
        """Names of the rows of one metric: "all" for the file and, with `per_variable`, each column."""
        return ["all", *(self.whole.original.columns if self.per_variable else ())]

    @property
    def length(self) -> int:
        """How many numbers one run yields: metrics x groups x variables x figures."""
        return len(self.labels) * len(self.groups) * len(self.variables) * len(FIGURES)

    @property
    def labels(self) -> list[str]:
        """Names of all that is measured: the metrics, and those of the scenarios."""
        return [metric.name for metric in self.metrics] + [
            label for one in self.scenarios for label in one.labels
        ]

    @cached_property
    def measures_risks(self) -> bool:
        """True if an intruder looks at the masked files, who knows what the setting discloses."""
        return bool(self.scenarios) or any(metric.family == "risk" for metric in self.metrics)

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Digest of the data and all options; finished runs are used again only if it is equal."""
        original, declared = self.whole.original, declared_of(self.whole.original)
        digest = hashlib.sha256(repr(original.columns).encode())
        digest.update(original.by_variable.tobytes())
        digest.update(b"" if original.weights is None else original.weights.tobytes())
        for stratum in self.strata:
            digest.update(stratum.name.encode() + np.asarray(stratum.rows).tobytes())
        digest.update(digest_of_columns(original))
        digest.update(repr(sorted(original.roles.known_columns(original.columns))).encode())
        for one in self.scenarios:
            digest.update(digest_of_columns(one.whole.original))
        if self.edits is not None:  # rules also look at columns that are not masked
            digest.update(self.edits.values.T[~self.edits.free].tobytes())
        digest.update(b"" if declared is None else declared.digest)
        return {
            "data": digest.hexdigest(),
            "metrics": [metric.name for metric in self.metrics],
            "ties": self.ties,
            "missing": self.missing,
            "draws": self.draws,
            "per variable": self.per_variable,
            "detail": self.detail,
            "steps": None if self.steps is None else [[step.decimals, step.multiple] for step in self.steps],
            "rules": None
            if self.edits is None
            else list(self.edits.rules.texts),  # a list, as JSON stores it
            "scenarios": [[one.scenario.name, [*one.scenario.known], one.labels] for one in self.scenarios]
            or None,
            "sample queries": None if self.sampling is None else repr(self.sampling),
            "version": SOFTWARE,
            "version of the intruder": INTRUDER_VERSION,
        }

    def _too_few_records(self, setting: Setting) -> ValueError | None:
        """Return the error for a setting that needs more records or units than the smallest stratum has."""
        for stratum in sorted(self.strata or [self.whole], key=lambda one: one.original.n):
            try:
                stratum.require_records(
                    setting, f"stratum {quoted(stratum.name)}" if self.strata else "the file"
                )
            except ValueError as error:
                return error
        return None

    def allowed_settings(
        self, settings: Iterable[Setting], *, searched: bool = False
    ) -> tuple[list[Setting], str]:
        """Return the settings that the data allow, and which stratum is too small for others, if one is.

        Raise an error for a setting that the caller named. Those of a default grid that a small file does not
        allow are dropped without an error; so are those of any grid that is `searched` where a stratum has
        too few records.
        """
        for metric in self.metrics:
            if metric.random and self.whole.original.weights is not None:
                checks.require_midranks_for_weights(str(metric.fixed_options.get("ties", self.ties)), True)
        left, refused, too_few = [], None, ""
        for setting in settings:
            small = self._too_few_records(setting)
            too_few = too_few or str(small or "").rpartition(";")[0]  # without the remedy
            try:
                if small is not None:
                    raise small
                function_options(setting.method, setting.options, self.whole.original.columns)
                if (edits := self._edits_for(setting)) is not None:
                    edits.refuse_split_groups(setting.method)
            except ValueError as error:
                if not (setting.usual or (searched and error is small)):
                    raise
                refused = refused or error
            else:
                left.append(setting)
        if refused is not None and not left:
            raise refused
        return left, too_few

    def point(self, setting: Setting, found: Floats) -> Point:
        """Return a setting with the medians of its runs, from the numbers of each run."""
        width = len(FIGURES) * len(self.groups) * len(self.variables)
        first = found.reshape(len(found), -1, width)  # run x label x figure of the whole file, and others
        values, ends = (first[:, :, FIGURES.index(name)] for name in ("value", "ci_high"))
        exact = np.isnan(ends)
        upper = np.median(np.where(exact, values, ends), axis=0)
        return Point(
            setting,
            dict(zip(self.labels, np.median(values, axis=0).tolist(), strict=True)),
            {label: float(upper[i]) for i, label in enumerate(self.labels) if not exact[:, i].all()},
            self.withheld,
        )

    @cached_property
    def withheld(self) -> frozenset[str]:
        """Names of the losses over declared estimates that are not published."""
        return withheld_losses(self.whole.original, None if self.edits is None else self.edits.rules)

    def measure(self, run: Run, entropy: int) -> Floats:
        """Mask the data as one run says and measure the masked data; return all numbers as one array."""
        rng = stream_generator(entropy, run.stream(self.draws))
        edits = self._edits_for(run.setting)
        masked = self._release(run.setting, edits, rng)
        options = {"ties": self.ties, "missing": self.missing, "rng": rng}
        pairs = self._pairs(masked, run.setting, edits, self.whole.original)
        if pairs[0].special_counts[1]:
            checks.require_representable(masked, self.whole.original.columns, run.setting.method.name)
        rows = run.setting.paired
        found = [self._figures_of(metric.name, metric, pairs, options, rows=rows) for metric in self.metrics]
        _forget(pairs)
        for one in self.scenarios:
            known = self._pairs(masked, run.setting, edits, one.whole.original)
            found += [
                self._figures_of(label, metric, known, options, rows=rows)
                for label, metric in zip(one.labels, one.scenario.metrics, strict=True)
            ]
            _forget(known)
        return np.concatenate([np.ravel(line) for lines in found for line in lines])

    def _release(self, setting: Setting, edits: Edits | None, rng: np.random.Generator) -> Floats:
        """Return the data masked with a setting, rounded and repaired as a release is."""
        masked = self._mask(setting, rng)
        if self.steps is not None:
            masked = np.asfortranarray(masking.rounded(masked, self.steps))
        if edits is not None:
            checks.require_representable(masked, self.whole.original.columns, setting.method.name)
            masked = edits.repaired(masked, decimals_of_steps(self.steps))
        return masked

    def _pairs(self, masked: Floats, setting: Setting, edits: Edits | None, original: Original) -> list[Pair]:
        """Return the pairs of original and masked values, of the whole file and of each stratum.

        `original` has the roles of the default intruder, or of a scenario's. A release has its rows shuffled,
        so the order of the rows tells nothing here.
        """
        whole = Pair(
            original,
            masked,
            rules=None if edits is None else edits.public_rules,
            strata=[(part.name, part.rows) for part in self.strata if part.rows is not None],
            remask=lambda rng: self._release(setting, edits, rng),
            trial=True,
        )
        if self.measures_risks:  # what an intruder is told takes longer to find than a loss
            whole.disclosure = replace(setting.disclosure, by=original.roles.by if self.strata else ())
            whole.window = None if self.strata else self.whole.width(setting)
        pairs = [whole]
        for part in self.strata:
            if part.rows is not None:
                pairs.append(whole.take(part.rows, part.original))
                pairs[-1].window = part.width(setting) if self.measures_risks else None
        return pairs

    def _edits_for(self, setting: Setting) -> Edits | None:
        """Return the edit rules for masking with a setting, which may leave some columns unmasked."""
        if self.edits is None:
            return None
        return self.edits.keeping(masking.kept_columns(setting.method, setting.options))

    def _figures_of(
        self, label: str, metric: Metric, pairs: list[Pair], options: dict[str, Any], *, rows: bool
    ) -> list[Any]:
        """Return the numbers of one metric for each group of records; NaN where it does not apply."""

        def measure() -> list[Score | None]:
            """Return the metric's scores on the whole file and on each stratum."""
            scores: list[Score | None] = []
            for pair in pairs:
                try:
                    fits = rows or not metric.paired
                    scores.append(metric.score_with(pair, options, detail=self.detail) if fits else None)
                except checks.NotApplicable:
                    scores.append(None)
            return [score_within_strata(metric, scores, pairs), *scores[1:]]

        scores = measure() if self.sampling is None else self.sampling.scores(label, pairs, measure)
        none = np.full(len(self.variables) * len(FIGURES), np.nan)
        describe = table_figures if self.per_variable else whole_file_figures
        return [
            none if score is None else describe(pair, score)
            for pair, score in zip(pairs, scores, strict=True)
        ]

    def measure_and_record(self, run: Run, entropy: int, checkpoint: Checkpoint | None) -> Floats:
        """Measure one run, append its numbers to the checkpoint if there is one, and return them."""
        values = self.measure(run, entropy)
        if checkpoint is not None:
            checkpoint.add(run.key, values)
        return values

    def without_table(self) -> Task:
        """Return the same task without data frames, to be sent to another process."""
        return replace(
            self,
            whole=self.whole.without_table(),
            strata=[part.without_table() for part in self.strata],
            scenarios=[replace(one, whole=one.whole.without_table()) for one in self.scenarios],
        )

    def _mask(self, setting: Setting, rng: np.random.Generator) -> Floats:
        """Mask all records with a setting (method and parameters), stratum by stratum; return an array."""
        if not self.strata:
            return self.whole.mask(setting, rng)
        masked = np.empty_like(self.whole.original.values)
        for stratum in self.strata:
            masked[stratum.rows] = stratum.mask(setting, rng)
        return masked


def _forget(pairs: Iterable[Pair]) -> None:
    """Free what was cached for pairs: it refers to them, so that their memory would be freed late."""
    for pair in pairs:
        pair.cache.clear()


DRAWS = ("common", "fresh")
HEAD = {
    "dataset": pl.String,
    "method": pl.String,
    "parameters": pl.String,
    "setting": pl.Float64,
    "replication": pl.Int64,
}


def make_task(
    original: Original,
    conditions: Conditions,
    settings: Iterable[Setting],
    *,
    searched: bool = False,
    **options: Any,
) -> tuple[Task, list[Setting], str]:
    """Return data, metrics and options that all runs share, checked, and `Task.allowed_settings`."""
    decimals = checks.checked_decimals(conditions.decimals)
    require_whole_units(original)
    declared_of(original)  # before threads ask for it, and for its errors
    edits = edits_of(conditions.rules, original)
    ruled = () if edits is None else edits.rules.columns
    task = Task(
        Stratum("all", original, units=original.units),
        [
            Stratum(name, part, rows, None if original.units is None else original.units[rows])
            for name, rows, part in original.parts
        ],
        edits=edits,
        steps=None if decimals is None else column_steps(original.values, original.columns, decimals, ruled),
        ties=checks.one_of("rule for ties", conditions.ties, TIES),
        missing=checks.one_of("rule for missing cells", conditions.missing, checks.MISSING),
        scenarios=[
            ScenarioTask(one, Stratum("all", original_in(original, one))) for one in conditions.scenarios
        ],
        **options,
    )
    return task, *task.allowed_settings(settings, searched=searched)


def chosen_metrics(names: str | Iterable[str] | None, settings: Iterable[Setting]) -> list[Metric]:
    """Return the metrics to measure; by default with metrics for unpaired rows if a method needs them."""
    chosen = registry.metrics_named(names)
    if not any(setting.paired for setting in settings):
        registry.metrics_for_rows(names, paired=False)  # raises for metrics without any value
    if names is None and not all(setting.paired for setting in settings):
        chosen += [metric for metric in METRICS.values() if metric.default_unpaired]
    return chosen


def available_cores() -> int:
    """Return how many processor cores this process may use."""
    known = getattr(os, "sched_getaffinity", None)  # not on every system
    return len(known(0)) if known else os.cpu_count() or 1


def results_table(task: Task, runs: Sequence[Run], found: Floats, name: str) -> pl.DataFrame:
    """Return the numbers of all runs as a table with one row per run, metric, group and variable."""
    labelled = [
        (metric.name, metric.family, variable, group.name)
        for metric in task.metrics
        for group in task.groups
        for variable in task.variables
    ]
    heads = pl.DataFrame(
        {
            "dataset": [name] * len(runs),
            "method": [run.setting.method.name for run in runs],
            "parameters": [run.setting.text for run in runs],
            "setting": [run.setting.value for run in runs],
            "replication": [run.replication for run in runs],
        },
        schema=HEAD,
    )
    labels = pl.DataFrame(labelled, schema=list(SCHEMA)[:4], orient="row")
    numbers = pl.DataFrame(found.reshape(-1, len(FIGURES)), schema=FIGURES).with_columns(
        pl.all().fill_nan(None)
    )
    rows = np.arange(len(runs) * len(labelled))
    table = pl.concat([heads[rows // len(labelled)], labels[rows % len(labelled)], numbers], how="horizontal")
    whole = [metric.name for metric in task.metrics if not metric.by_variable]
    kept = (pl.col("variable") == "all") | ~pl.col("metric").is_in(whole)
    return table.filter(kept).select(*HEAD, *SCHEMA).cast(SCHEMA)
